"""What ``low-latency plan --against`` says: of two settings files, and of all files of a revision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..change.effects import MEANINGS, Effect
from ..change.file_review import FileReview
from ..report.document import (
    Cell,
    Document,
    Entry,
    Listed,
    Part,
    Row,
    Section,
    Sentence,
    Table,
    Tone,
)
from ..report.numbers import readable

if TYPE_CHECKING:
    from ..change.comparison import SettingsComparison
    from ..change.settings_differences import SettingDifference
    from ..change.verdict import FailsOn
    from ..plan.billed_items import BilledItem
    from ..plan.hourly_cost import EndpointCost, StackCost

_MOST_SHOWN = 10  # differences that a page and a comment do not fold
_MOST_NAMED = 3  # files, in the verdict
_LONGEST_PATH = 200  # characters of each
_TONES: dict[Effect, Tone] = {
    Effect.REFUSED: "bad",
    Effect.DELETED: "bad",
    Effect.REPLACED: "bad",
    Effect.NOT_KNOWN: "other",
    Effect.DEPLOYMENT: "careful",
    Effect.NEW: "good",
    Effect.IN_PLACE: "good",
    Effect.NOTHING: "soft",
}
_WORSE: tuple[Tone, ...] = ("soft", "good", "careful", "other", "bad")
_READ_ONLY = (
    "Only settings, the files that they name, cdk.json and cdk.context.json were read: no code of "
    "either revision was run."
)


def compared(
    comparison: SettingsComparison,
    before: str,
    after: str,
    found: Sequence[tuple[FailsOn, str]] = (),
    limits: Sequence[FailsOn] = (),
) -> Document:
    """Two settings files: endpoints, cost, warnings, differences, plan."""
    tone: Tone = "bad" if found else _tone(comparison)
    return Document(
        after,
        [*_judged(found, limits, tone), *_comparison_parts(comparison, before, after)],
        f"against {before}",
        _headline(comparison),
        tone,
    )


def _tone(comparison: SettingsComparison) -> Tone:
    """How the whole change is judged: good only without a new warning and with no less capacity."""
    tone = _TONES[comparison.effect]
    return "careful" if tone in ("good", "soft") and comparison.is_doubtful else tone


def reviewed(
    reviews: Sequence[FileReview],
    against: str,
    head: str,
    found: Sequence[tuple[FailsOn, str]],
    limits: Sequence[FailsOn],
) -> Document:
    """All files of a revision, with the worst thing that happens first."""
    verdict, tone = _worst(reviews)
    tone = "bad" if found else tone
    return Document(
        "low-latency plan",
        [
            *_judged(found, limits, tone),
            *(part for file_review in reviews for part in _measures(file_review)),
            *(
                Section(file_review.path, [*_file_parts(file_review, against)])
                for file_review in reviews
            ),
            Section("", [Sentence(_READ_ONLY, "soft")]),
        ],
        f"{head} against {against}",
        verdict,
        tone,
    )


def _judged(
    found: Sequence[tuple[FailsOn, str]], limits: Sequence[FailsOn], tone: Tone
) -> Iterator[Part]:
    """Whether it passes; nothing where nobody asked and there are no mistakes.

    It has the mark of success only where the whole change, by its ``tone``, has one too.
    """
    if limits or found:
        chosen = ", ".join(f"`{each}`" for each in ("mistakes", *limits))
        word = "fails" if found else "passes"
        mark = tone if found or tone == "good" else ""
        yield Sentence(f"The check {word}. What would fail it: {chosen}.", mark)
    if found:
        yield Listed([Row(str(limit), text) for limit, text in found])


def _headline(comparison: SettingsComparison) -> str:
    """How many settings differ, and the greatest effect."""
    count = len(comparison.differences)
    if not comparison.differs:
        return "no difference"
    return f"{count} difference{'s' * (count != 1)}: {comparison.effect.word}"


def _comparison_parts(comparison: SettingsComparison, before: str, after: str) -> Iterator[Part]:
    if comparison.differs:
        rows = [(outcome.effect, key, outcome.text) for key, outcome in comparison.outcomes.items()]
        yield Section("", [_table(("Effect", "Endpoint", "What becomes of it"), rows)])
        yield from _cost(*comparison.costs)
        yield from _warnings(comparison.warnings)
        many = len(comparison.differences) + len(comparison.stack.rows) > _MOST_SHOWN
        for key in ("", *comparison.keys):
            yield from _of_endpoint(comparison, key, folded=many)
        changes = [
            decision
            for decision in comparison.decisions
            if all(decision["endpoint"] in plans for plans in comparison.explanations)
        ]
        if changes:
            title = f"Plan: {len(changes)} decision{'s' * (len(changes) != 1)} changed"
            yield Section(title, [decision_table(changes, before, after)], folded=True)
        effects = {outcome.effect for outcome in comparison.outcomes.values()}
        effects |= {row.effect for row in comparison.stack.rows}
        meanings = [Row(effect.word, MEANINGS[effect]) for effect in sorted(effects, reverse=True)]
        yield Section("What the effects are", [Listed(meanings, aligned=True)], folded=True)
    else:
        yield Sentence("Deploying it changes nothing.")
    notes = [Sentence(text) for text in _not_compared(comparison)]
    if notes:
        yield Section("", notes)


def _of_endpoint(comparison: SettingsComparison, key: str, *, folded: bool) -> Iterator[Part]:
    """The settings that differ, and what becomes of the resources, of one endpoint or of all."""
    name = key or "Shared by all endpoints"
    settings = [_setting(one) for one in comparison.differences if one.endpoint == key]
    if settings:
        title = f"{name}: {len(settings)} setting{'s' * (len(settings) != 1)}"
        heads = ("Setting", "Before", "After")
        yield Section(title, [Table(heads, settings, align="l")], folded=folded)
    rows = sorted(
        (row for row in comparison.stack.rows if row.endpoint == key),
        key=lambda row: row.effect,
        reverse=True,
    )
    if rows:
        table = _table(("Effect", "In the stack"), [(row.effect, row.text) for row in rows])
        yield Section(f"{name}: the stack", [table], folded=folded)


def _not_compared(comparison: SettingsComparison) -> Iterator[str]:
    """What the comparison does not know."""
    if comparison.unread:
        names = ", ".join(str(asset) for asset in comparison.unread)
        yield (
            f"Not compared: what is in {names} now with what was in it when it was deployed; other "
            "content is a difference too."
        )
    if comparison.not_looked_up:
        yield (
            f"Not in cdk.context.json: {', '.join(comparison.not_looked_up)}. Both sides were "
            "synthesised with a stand-in for it."
        )
    if comparison.changed_lookups:
        yield "cdk.context.json changes what the CDK CLI looked up in the account."


def _table(heads: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Table:
    cells = [(Cell(effect.word, _TONES[effect]), *texts) for effect, *texts in rows]
    return Table(heads, cells, align="l", stacked=True)


def _setting(difference: SettingDifference) -> tuple[str, str, str]:
    """The setting and both values."""
    was, now = difference.before or "none", difference.after or "none"
    return difference.path or "the endpoint", was, now


def decision_table(changes: Sequence[dict[str, Any]], before: str, after: str) -> Table:
    """The plan's decisions that differ, side by side."""
    several = len({change["endpoint"] for change in changes}) > 1
    rows = [
        (
            *[change["endpoint"]] * several,
            *(change["title"], change["before"] or "-"),
            Cell(change["after"] or "-", "strong"),
        )
        for change in changes
    ]
    return Table((*["Endpoint"] * several, "Decision", before, after), rows, align="l")


def _warnings(warnings: dict[str, list[tuple[str, str]]]) -> Iterator[Part]:
    rows = [
        Row(f"Warning {name}, {key}", text, tone="soft" if name == "lost" else "careful")
        for name, found in warnings.items()
        for key, text in found
    ]
    if rows:
        yield Section("", [Listed(rows)])


def _cost(before: StackCost, after: StackCost) -> Iterator[Part]:
    used = {**before.prices, **after.prices}
    stated = [
        f"{item} {readable(price.usd)} ({price.origin if price.read else 'of the former settings'})"
        for item, price in used.items()
    ]
    prices = [Sentence(f"Prices used: {', '.join(stated)}", "soft")] if stated else []
    yield Section("", [*map(Sentence, _cost_lines(before, after)), *prices])
    rows = list(_items_that_differ(before, after))
    if rows:
        table = Table(("Billed beside the instances", "Before", "After"), rows, align="l")
        yield Section("", [table])


def _items_that_differ(before: StackCost, after: StackCost) -> Iterator[tuple[str, str, str]]:
    """What is billed beside the instances, with how many of it cost how much for an hour."""
    was, now = before.by_kind, after.by_kind
    for kind in dict.fromkeys([*was, *now]):
        old, new = _billed(was.get(kind)), _billed(now.get(kind))
        if old != new:
            yield kind[1], old, new


def _billed(item: BilledItem | None) -> str:
    if item is None:
        return "none"
    count = "" if item.count is None else f"{readable(item.count, 4)}, "
    return f"{count}{'price not known' if item.usd is None else f'{readable(item.usd)} US dollars'}"


def _cost_lines(before: StackCost, after: StackCost) -> Iterator[str]:
    """What the stack costs before and after; in instances where a price is missing."""
    from ..plan.hourly_cost import MOMENTS

    if before.usd("at_most") is not None and after.usd("at_most") is not None:
        parts = [
            f"{moment.replace('_', ' ')} {_both(before.usd(moment), after.usd(moment), '.2f')}"
            for moment in MOMENTS
        ]
        yield f"Cost of the stack, US dollars per hour: {', '.join(parts)}"
        yield "A month of 730 hours: " + ", ".join(
            f"{moment.replace('_', ' ')} "
            f"{_both(before.usd_per_month(moment), after.usd_per_month(moment), ',.0f')}"
            for moment in ("at_least", "at_most")
        )
        for key in (name for name in before.endpoints if name in after.endpoints):
            million = before.usd_per_million(key), after.usd_per_million(key)
            if None not in million:
                several = before.endpoints[key].other_peaks or after.endpoints[key].other_peaks
                peak = "usual peak" if several else "peak"
                on = _on_pools(before.endpoints[key], after.endpoints[key])
                yield f"A million requests to {key} at its {peak}: {_both(*million, '.2f')}{on}"
        return
    for key in dict.fromkeys([*before.endpoints, *after.endpoints]):
        was, now = before.endpoints.get(key), after.endpoints.get(key)
        types = _both(was and was.type_names, now and now.type_names)
        parts = [
            f"{moment.replace('_', ' ')} "
            f"{_both(was and was.instances(moment), now and now.instances(moment))}"
            for moment in MOMENTS
        ]
        yield f"Cost of {key}, {types}, instances each hour: {', '.join(parts)}"
    missing = dict.fromkeys([*before.without_price, *after.without_price])
    yield (
        f"In dollars it is not known, without prices of {', '.join(missing)} in the former settings: "
        "low-latency prices reads AWS's"
    )


def _on_pools(before: EndpointCost, after: EndpointCost) -> str:
    """The instance types that the costs count, where one of them has instance pools."""
    if not before.pools and not after.pools:
        return ""
    counted = [cost.pool_text("at_first") or cost.instance_type for cost in (before, after)]
    return f", on {_both(*counted)}"


def _both(was: Any, now: Any, form: str = "") -> str:
    texts = ["none" if each is None else format(each, form) for each in (was, now)]
    return texts[0] if texts[0] == texts[1] else " -> ".join(texts)


def _measures(review: FileReview) -> Iterator[Part]:
    """Which prices and load-test results the change states anew."""
    if review.comparison is None and review.after and review.after.prices:
        yield f"{review.path} has no former settings to compare with: its own prices do not count"
    if review.comparison and (stated := review.comparison.changed_measures):
        yield (
            f"{review.path} changes what costs are calculated with; costs below are at the "
            f"former prices: {'; '.join(stated)}"
        )


def _worst(reviews: Sequence[FileReview]) -> tuple[str, Tone]:
    """The worst thing that happens, in a line."""
    if wrong := [_named(file_review.path) for file_review in reviews if file_review.problems]:
        more = f" and {len(wrong) - _MOST_NAMED:,} more" * (len(wrong) > _MOST_NAMED)
        names = f"{', '.join(wrong[:_MOST_NAMED])}{more}"
        return f"Mistakes in {names}: nothing of it can be deployed", "bad"
    worst = max(reviews, key=_badness)
    tone = _tone_of(worst)
    if worst.effect is Effect.NOTHING:
        return "Nothing that is deployed changes", "good" if tone == "soft" else tone
    if worst.taken:
        return f"{worst.effect.word}: {_named(worst.path)}: {worst.refusal}", tone
    if worst.comparison is None:
        return f"{worst.effect.word}: {_without_another(worst)}", tone
    outcomes = worst.comparison.outcomes.items()
    those = [(key, outcome) for key, outcome in outcomes if outcome.effect is worst.effect]
    if not those:
        return f"{worst.effect.word}: {_headline(worst.comparison)}", tone
    of_doubt = [(key, outcome) for key, outcome in those if any(worst.comparison.lowered(key))]
    key, outcome = [*of_doubt, *those][0]
    return f"{outcome.effect.word}: {key}: {outcome.text}", tone


def _named(path: str) -> str:
    """A file as the verdict names it: the beginning and the end of a path that is too long."""
    half = _LONGEST_PATH // 2
    return path if len(path) <= _LONGEST_PATH else f"{path[: half - 3]}...{path[-half:]}"


def _badness(review: FileReview) -> tuple[int, Effect]:
    return _WORSE.index(_tone_of(review)), review.effect


def _tone_of(review: FileReview) -> Tone:
    if review.taken:
        return _TONES[Effect.REFUSED]
    if review.comparison is not None:
        return _tone(review.comparison)
    tone = _TONES[review.effect]
    return "careful" if tone == "good" and review.gained_warnings else tone


def _without_another(review: FileReview) -> str:
    """What becomes of a file that stands alone."""
    path = _named(review.path)
    if review.is_deleted:
        return f"{path} is deleted; its stack stays until somebody deletes it"
    if review.before_is_wrong:
        return f"{path} has mistakes before, so nothing is compared"
    return f"{path} is new"


def _file_parts(review: FileReview, against: str) -> Iterator[Part]:
    if review.problems:
        for first, *others in (problem.splitlines() for problem in review.problems):
            yield Entry("mistake", "bad", first, others)
        return
    if review.taken:
        yield Entry(Effect.REFUSED.word, "bad", review.refusal, [])
    if review.comparison is not None:
        yield Sentence(_headline(review.comparison), "strong")
        yield from _comparison_parts(review.comparison, against, review.path)
    else:
        yield Sentence(f"{_without_another(review)}.")
        if review.after:
            names = ", ".join(review.after.endpoints)
            yield Sentence(f"It describes the stack {review.after.stack_name} with {names}.")
            yield from _cost(*review.costs)
            yield from _warnings({"gained": review.gained_warnings})
