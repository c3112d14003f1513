"""What ``low-latency plan NEW --against OLD`` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..report.markdown import code, escaped

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table as RichTable

    from ..options.effects import Effect
    from ..plan.hourly_cost import StackCost
    from ..settings.update.comparison import Comparison
from ..settings.update.effects import Consequence, Difference

MOST_CHARACTERS = 65_536
"""Of a comment on GitHub; more is refused."""

_ONE_LINE = 58  # characters of a setting and its two values that stand on one line
_TONES = {
    "refused": "bold red",
    "deleted": "red",
    "replaced": "red",
    "not known": "magenta",
    "deployment": "yellow",
    "new": "green",
    "in place": "green",
    "nothing": "dim",
}
_MARKS = {
    "refused": ":no_entry:",
    "deleted": ":x:",
    "replaced": ":x:",
    "not known": ":grey_question:",
    "deployment": ":large_orange_diamond:",
    "new": ":new:",
    "in place": ":white_check_mark:",
    "nothing": ":white_check_mark:",
}


def headline(comparison: Comparison) -> str:
    """How many differences there are, and of which effect."""
    counts = Counter(each.effect for each in comparison.differences)
    if not counts:
        return "no difference"
    number = sum(counts.values())
    words = ", ".join(f"{counts[effect]} {effect.word}" for effect in sorted(counts, reverse=True))
    return f"{number} difference{'s' * (number != 1)}: {words}"


def comparison_parts(comparison: Comparison, before: str, after: str) -> Iterator[RenderableType]:
    """The comparison for a terminal: endpoints, differences, plan, warnings, cost."""
    from rich.text import Text

    from ..settings.update.effects import MEANINGS

    yield Text(f"{after} against {before}", "bold")
    yield Text(f"{headline(comparison)}\n")
    if not comparison.differences:
        yield Text("Deploying it changes nothing.")
        yield from _unread(comparison)
        return
    yield _grid((key, each) for key, each in comparison.outcomes.items())
    for key, found in _by_endpoint(comparison):
        yield Text(f"\n{key or 'Shared by all endpoints'}", "bold")
        yield _grid((_setting(each), *each.consequences) for each in found)
    yield from _plan_parts(comparison, before, after)
    used = sorted({each.effect for each in comparison.differences}, reverse=True)
    yield Text()
    for effect in used:
        yield _hanging(f"{effect.word}: {MEANINGS[effect]}", "dim")
    yield from _unread(comparison)


def _plan_parts(comparison: Comparison, before: str, after: str) -> Iterator[RenderableType]:
    from rich.text import Text

    if changes := _of_both(comparison):
        yield decision_table(changes, before, after)
    for mark, name in (("+", "gained"), ("-", "lost"), ("~", "changed")):
        for key, text in comparison.warnings[name]:
            yield _hanging(f"{mark} Warning {name}, {key}: {text}", "yellow" * (mark != "-"))
    yield Text()
    for line in cost_lines(*comparison.costs):
        yield _hanging(line)


def _of_both(comparison: Comparison) -> list[dict[str, Any]]:
    """The decisions that differ where there is an endpoint before and after."""
    before, after = comparison.explanations
    return [
        each
        for each in comparison.decisions
        if each["endpoint"] in before and each["endpoint"] in after
    ]


def _unread(comparison: Comparison) -> Iterator[RenderableType]:
    if comparison.unread:
        names = ", ".join(str(each) for each in comparison.unread)
        yield _hanging(
            f"Not compared: what is in {names} now with what was in it when it was deployed; other "
            "content is a difference too."
        )


def decision_table(changes: Sequence[dict[str, Any]], before: str, after: str) -> RenderableType:
    """The plan's decisions that differ, side by side."""
    from ..report.tables import Cell, Table

    several = len({each["endpoint"] for each in changes}) > 1
    return Table(
        (*["Endpoint"] * several, "Decision", before, after),
        [
            (
                *[each["endpoint"]] * several,
                each["title"],
                each["before"] or "-",
                Cell(each["after"] or "-", "strong"),
            )
            for each in changes
        ],
        align="l",
    )


def cost_lines(
    before: StackCost, after: StackCost, hint: str = ", or give --price ITEM=USD"
) -> Iterator[str]:
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
                yield f"A million requests to {key} at its peak: {_both(*million, '.2f')}"
        return
    for key in dict.fromkeys([*before.endpoints, *after.endpoints]):
        was, now = before.endpoints.get(key), after.endpoints.get(key)
        types = _both(was and was.instance_type, now and now.instance_type)
        parts = [
            f"{moment.replace('_', ' ')} "
            f"{_both(was and was.instances(moment), now and now.instances(moment))}"
            for moment in MOMENTS
        ]
        yield f"Cost of {key}, {types}, instances each hour: {', '.join(parts)}"
    priceless = [
        each.instance_type
        for cost in (before, after)
        for each in cost.endpoints.values()
        if each.price is None
    ]
    missing = dict.fromkeys(priceless)
    yield (
        f"In dollars it is not known, without prices of {', '.join(missing)}: low-latency prices "
        f"reads AWS's{hint}"
    )


def _both(was: Any, now: Any, form: str = "") -> str:
    texts = ["none" if each is None else format(each, form) for each in (was, now)]
    return texts[0] if texts[0] == texts[1] else " -> ".join(texts)


def _by_endpoint(comparison: Comparison) -> Iterator[tuple[str, list[Difference]]]:
    for key in ("", *comparison.keys):
        found = [each for each in comparison.differences if each.endpoint == key]
        if found:
            yield key, found


def _grid(rows: Iterator[tuple[Any, ...]]) -> RichTable:
    """What it is about and, below it, each of its consequences with its effect beside it."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=2)
    grid.add_column(min_width=10, no_wrap=True)
    grid.add_column(overflow="fold")
    for what, *consequences in rows:
        if len(consequences) == 1 and "\n" not in what and " -> " not in what:
            each = consequences[0]
            grid.add_row("", _word(each.effect), Text(f"{what}: {each.text}"))
            continue
        effect = max(each.effect for each in consequences)
        grid.add_row("", _word(effect), Text(what))
        for each in sorted(consequences, key=lambda each: each.effect, reverse=True):
            mark = "" if len(consequences) == 1 else f"{each.effect.word}: "
            grid.add_row("", "", Text(f"{mark}{each.text}", "dim"))
    return grid


def _word(effect: Effect) -> RenderableType:
    from rich.text import Text

    return Text(effect.word, _TONES[effect.word])


def _setting(difference: Difference) -> str:
    """The setting and both values, on lines of their own where they are long."""
    path = difference.path or "the endpoint"
    was, now = difference.before or "none", difference.after or "none"
    if len(path) + len(was) + len(now) <= _ONE_LINE:
        return f"{path}: {was} -> {now}"
    return f"{path}\n   {was}\n-> {now}"


def _hanging(text: str, style: str = "") -> RenderableType:
    """A paragraph whose further lines are indented."""
    from rich.table import Table
    from rich.text import Text

    first, _, rest = text.partition(" ")
    grid = Table.grid(padding=0)
    if len(first) > 1:
        grid.add_column(overflow="fold")
        grid.add_row(Text(text, style))
    else:
        grid.add_column(width=2)
        grid.add_column(overflow="fold")
        grid.add_row(Text(first, style), Text(rest, style))
    return grid


# --- a comment on a pull request


def comparison_markdown(comparison: Comparison, before: str, after: str) -> str:
    """The comparison as a comment, never longer than GitHub takes."""
    title = f"### low-latency plan: {code(after)} against {code(before)}"
    costs = cost_lines(*comparison.costs)
    return limited([title, "", *comparison_lines(comparison, *map(_paragraph, costs))])


def _paragraph(text: str) -> str:
    return f"\n{escaped(text)}"


def comparison_lines(comparison: Comparison, *facts: str) -> list[str]:
    """The comparison as Markdown, without a title; ``facts`` stand below what becomes of it."""
    lines = [f"**{headline(comparison)}**", ""]
    if not comparison.differences:
        return [*lines, "Deploying it changes nothing."]
    lines += ["| Endpoint | Effect | What becomes of it |", "|---|---|---|"]
    lines += [
        f"| {escaped(key)} | {marked(each.effect)} | {escaped(each.text)} |"
        for key, each in comparison.outcomes.items()
    ]
    lines += facts
    lines += warning_lines(comparison.warnings["gained"])
    for key, found in _by_endpoint(comparison):
        lines += _details(
            f"{escaped(key or 'Shared by all endpoints')}: {len(found)} difference{'s' * (len(found) != 1)}",
            [
                "| Setting | Before | After | Effect | What it does |",
                "|---|---|---|---|---|",
                *map(_row, found),
            ],
            shown=len(comparison.differences) <= 10,
        )
    return lines + _plan_details(comparison)


def warning_lines(warnings: Sequence[tuple[str, str]]) -> list[str]:
    """Warnings that were not there before."""
    said = [f"> :warning: {escaped(key)}: {escaped(text)}" for key, text in warnings]
    return ["", *said] if said else []


def _row(difference: Difference) -> str:
    what = "<br>".join(_described(each, difference) for each in _ordered(difference))
    cells = (
        code(difference.path or "the endpoint"),
        code(difference.before) if difference.before else "",
        code(difference.after) if difference.after else "",
        marked(difference.effect),
        what,
    )
    return f"| {' | '.join(cells)} |"


def _ordered(difference: Difference) -> list[Consequence]:
    return sorted(difference.consequences, key=lambda each: each.effect, reverse=True)


def _described(consequence: Consequence, difference: Difference) -> str:
    one = len(difference.consequences) == 1
    return escaped(consequence.text if one else f"{consequence.effect.word}: {consequence.text}")


def _plan_details(comparison: Comparison) -> list[str]:
    changes = _of_both(comparison)
    lines: list[str] = []
    if changes:
        lines += _details(
            f"Plan: {len(changes)} decision{'s' * (len(changes) != 1)} changed",
            [
                "| Endpoint | Decision | Before | After |",
                "|---|---|---|---|",
                *(
                    f"| {escaped(each['endpoint'])} | {escaped(each['title'])} | "
                    f"{escaped(each['before'] or '-')} | **{escaped(each['after'] or '-')}** |"
                    for each in changes
                ),
            ],
        )
    for name in ("lost", "changed"):
        found = comparison.warnings[name]
        if found:
            lines += _details(
                f"Warnings {name}: {len(found)}",
                [f"- {escaped(key)}: {escaped(text)}" for key, text in found],
            )
    return lines


def _details(title: str, lines: Sequence[str], *, shown: bool = False) -> list[str]:
    opened = " open" if shown else ""
    return ["", f"<details{opened}><summary>{title}</summary>", "", *lines, "", "</details>"]


def limited(
    lines: Sequence[str],
    most: int = MOST_CHARACTERS,
    rest: str = "Without --markdown the command prints everything.",
) -> str:
    """The lines, or as many as a comment takes and a last one that says how many are missing."""
    text = "\n".join([*lines, ""])
    if len(text) <= most:
        return text
    kept = list(lines)
    while True:
        # Long before the last lines each one counts: at least as many as are too long go at once.
        too_long = len(text) - most
        while too_long > 0:
            too_long -= len(kept.pop()) + 1
        opened = sum(line.startswith("<details") for line in kept) > kept.count("</details>")
        end = ["", "</details>"] * opened
        end += [
            "",
            f"**Cut to what a comment takes: {len(lines) - len(kept)} of {len(lines)} lines are "
            f"missing.** {rest}",
            "",
        ]
        text = "\n".join([*kept, *end])
        if len(text) <= most:
            return text


def marked(effect: Effect) -> str:
    return f"{_MARKS[effect.word]} {effect.word}"
