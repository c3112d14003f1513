"""What ``low-latency check-pull-request`` writes: one comment about all settings files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..report.markdown import code, escaped
from ..review.changes import NOT_MEASURED, FileReview, Latency
from ..review.github import MARKER
from ..settings.update.effects import Effect
from .plan_changes import comparison_lines, cost_lines, headline, limited, marked, warning_lines

if TYPE_CHECKING:
    from ..review.verdict import Limit

_MOST_PROBLEMS = 20
_MOST_REASONS = 10
_READ_ONLY = (
    "Only settings, and the files that they name, were read: no code of the pull request was run."
)


def comment(
    reviews: Sequence[FileReview],
    found: Sequence[tuple[Limit, str]],
    limits: Sequence[Limit],
    against: str,
    head: str,
) -> str:
    """The comment, never longer than GitHub takes.

    Parameters
    ----------
    reviews : sequence of FileReview
    found : sequence of (Limit, str)
        What the pull request fails because of.
    limits : sequence of Limit
        What the team chose to fail on.
    against, head : str
        Both revisions in words.
    """
    lines = [MARKER, f"### {summary(reviews)}", "", *_verdict(found, limits)]
    for each in reviews:
        lines += ["", f"#### {code(each.path)}", "", *_file_lines(each)]
    lines += ["", f"<sub>{code(head)} against {code(against)}. {_READ_ONLY}</sub>"]
    return limited(lines, rest="`low-latency check-pull-request` prints what is missing.")


def summary(reviews: Sequence[FileReview]) -> str:
    """The worst thing that happens, in a line of Markdown."""
    wrong = [each for each in reviews if each.problems]
    if wrong:
        names = ", ".join(code(each.path) for each in wrong)
        return f":no_entry: Mistakes in {names}: nothing of it can be deployed"
    worst = max(reviews, key=lambda each: each.effect)
    if worst.effect is Effect.NOTHING:
        return ":white_check_mark: Nothing that is deployed changes"
    return f"{marked(worst.effect)}: {_worst_of(worst)}"


def _worst_of(review: FileReview) -> str:
    if review.is_deleted:
        return f"{code(review.path)} is deleted; its stack stays until somebody deletes it"
    if review.comparison is None:
        why = "has mistakes before, so nothing is compared" if review.before_is_wrong else "is new"
        return f"{code(review.path)} {why}"
    for key, outcome in review.comparison.outcomes.items():
        if outcome.effect is review.effect:
            return f"{escaped(key)}: {escaped(outcome.text)}"
    return escaped(headline(review.comparison))


def _verdict(found: Sequence[tuple[Limit, str]], limits: Sequence[Limit]) -> Iterator[str]:
    chosen = ", ".join(code(str(each)) for each in limits)
    if not found:
        yield f"**The check passes.** It fails on: {chosen}."
        return
    yield f"**The check fails.** It fails on: {chosen}. Because of:"
    yield ""
    for limit, text in found[:_MOST_REASONS]:
        yield f"- {code(str(limit))}: {escaped(text)}"
    if len(found) > _MOST_REASONS:
        yield f"- and {len(found) - _MOST_REASONS} more"


def _file_lines(review: FileReview) -> Iterator[str]:
    if review.problems:
        count = len(review.problems)
        for each in review.problems[:_MOST_PROBLEMS]:
            yield f"- {'<br>'.join(map(escaped, each.splitlines()))}"
        if count > _MOST_PROBLEMS:
            yield f"- and {count - _MOST_PROBLEMS} more: `low-latency plan` lists all"
        return
    facts = [*_latency_lines(review.latencies), *_costs(review)]
    if review.comparison is not None:
        yield from comparison_lines(review.comparison, *facts)
        return
    if review.is_deleted:
        yield "The file is deleted. What it describes stays deployed until somebody deletes the"
        yield "stack; nothing of this repository describes it any more."
        return
    if review.before_is_wrong:
        yield "The former file has mistakes, so there is nothing to compare this one with."
    else:
        assert review.after is not None
        names = ", ".join(code(each) for each in review.after.endpoints)
        yield f"The file is new: {code(review.after.stack_name)} with {names} is made."
    yield from facts
    yield from warning_lines(review.gained_warnings)


def _costs(review: FileReview) -> Iterator[str]:
    for line in cost_lines(*review.costs, hint=""):
        yield from ("", escaped(line))


def _latency_lines(latencies: dict[str, Latency]) -> Iterator[str]:
    """p99 before and after in a table; in a line where nobody knows any."""
    yield ""
    texts = {each for one in latencies.values() for each in (one.before, one.after)}
    if texts <= {"", NOT_MEASURED}:
        yield escaped(f"p99 is {NOT_MEASURED}.")
        return
    yield "| Endpoint | p99 of the model at the peak, before | after |"
    yield "|---|---|---|"
    for key, each in latencies.items():
        yield f"| {escaped(key)} | {_shown(each.before)} | {_shown(each.after)} |"
    yield ""
    yield "Simulated with the load test's service times and the same chance for both; network and"
    yield "SageMaker's own part are left out."


def _shown(found: object) -> str:
    from ..simulate.estimates import Estimate

    if isinstance(found, Estimate):
        return f"{found.scaled(1000)} ms"
    return escaped(str(found)) or "none"
