"""What ``low-latency plan --against REVISION`` prints of all settings files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..options.effects import Effect
from ..report.markdown import code, escaped
from ..settings.update.review import FileReview
from .plan_changes import (
    comparison_lines,
    comparison_parts,
    cost_lines,
    headline,
    limited,
    marked,
    warning_lines,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..settings.update.verdict import Limit

Breach = tuple["Limit", str]
_MOST_PROBLEMS = 20
_MOST_REASONS = 10
_READ_ONLY = (
    "Only settings, and the files that they name, were read: no code of either revision was run."
)


def review_parts(
    reviews: Sequence[FileReview], against: str, found: Sequence[Breach], limits: Sequence[Limit]
) -> Iterator[RenderableType]:
    """All files for a terminal."""
    for each in reviews:
        if each.problems:
            yield "\n\n".join((f"{each.path}: mistakes", *each.problems))
        elif each.comparison is not None:
            yield from comparison_parts(each.comparison, against, each.path)
        elif each.is_deleted:
            yield f"{each.path} is deleted. Its stack stays until somebody deletes it."
        elif each.before_is_wrong:
            yield f"{each.path} has mistakes in {against}, so there is nothing to compare with."
        else:
            yield f"{each.path} is new."
        yield ""
    yield from verdict_lines(found, limits)


def verdict_lines(found: Sequence[Breach], limits: Sequence[Limit]) -> Iterator[str]:
    """The verdict for a terminal; nothing where nobody asked and there are no mistakes."""
    if not limits and not found:
        return
    yield "It fails, because of:" if found else "It passes."
    for limit, text in found:
        yield f"  {limit}: {text}"


def review_markdown(
    reviews: Sequence[FileReview],
    against: str,
    head: str,
    found: Sequence[Breach],
    limits: Sequence[Limit],
) -> str:
    """All files as a comment, never longer than GitHub takes."""
    lines = [f"### {summary(reviews)}", "", *verdict_markdown(found, limits)]
    for each in reviews:
        lines += _measures(each)
    for each in reviews:
        lines += ["", f"#### {code(each.path)}", "", *_file_lines(each)]
    lines += ["", f"<sub>{code(head)} against {code(against)}. {_READ_ONLY}</sub>"]
    return limited(lines, rest="Without `--markdown` the command prints everything.")


def _measures(review: FileReview) -> Iterator[str]:
    """Which prices and load-test results the change states anew."""
    changed = review.comparison.changed_measures if review.comparison else []
    if changed:
        yield ""
        yield (
            f"{code(review.path)} changes what costs are calculated with; costs below are at the "
            f"former prices: {escaped('; '.join(changed))}"
        )


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


def verdict_markdown(found: Sequence[Breach], limits: Sequence[Limit]) -> Iterator[str]:
    """The verdict as Markdown."""
    chosen = ", ".join(code(str(each)) for each in ("mistakes", *limits))
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
    facts = list(_costs(review))
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
