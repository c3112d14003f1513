"""What ``low-latency plan`` shows: six lines for each endpoint, warnings, and the details."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..plan.decisions import Explanation
    from ..settings import SharedResources

_TITLE_WIDTH = 10


def plan_parts(plans: Mapping[str, Explanation], *, verbose: bool) -> Iterator[RenderableType]:
    """Each endpoint's lines and what only it is warned of; then what all of them are."""
    from rich.text import Text

    shared = shared_warnings(plans)
    for name, plan in plans.items():
        yield Text.assemble((name, "bold"), f"  {plan['instance_type'].value}")
        yield lines_table((line.title, line.text) for line in plan.summary)
        own = [text for text in plan.warnings if text not in shared]
        if own:
            yield lines_table((("Warning", text) for text in own), "yellow")
        if verbose:
            yield decision_table(plan)
        yield Text()
    if shared:
        yield Text("All endpoints", "bold")
        yield lines_table((("Warning", text) for text in shared), "yellow")
        yield Text()


def shared_lines(shared: SharedResources) -> Iterator[RenderableType]:
    """What all endpoints of the file share, once."""
    from rich.text import Text

    yield Text("Shared by all endpoints", "bold")
    yield lines_table(iter(shared.lines()))
    yield Text()


def shared_warnings(plans: Mapping[str, Explanation]) -> list[str]:
    """The warnings that all of several endpoints have, which are said once."""
    if len(plans) < 2:
        return []
    first, *others = plans.values()
    return [text for text in first.warnings if all(text in each.warnings for each in others)]


def lines_table(lines: Iterator[tuple[str, str]], style: str = "") -> RenderableType:
    """Titles and texts, whose further lines stand below the text."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=1)
    grid.add_column(width=_TITLE_WIDTH, no_wrap=True)
    grid.add_column(overflow="fold")
    for title, text in lines:
        grid.add_row("", Text(title, style or "dim"), Text(text))
    return grid


def decision_table(plan: Explanation) -> RenderableType:
    """Every decision with its rule, its inputs, what is to know besides, and its source."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, leading=1)
    # Two columns, not three: at 80 characters the reasons would be columns of single words.
    # Names such as the scaling metric's stay whole, to be copied.
    longest = max((len(word) for each in plan for word in each.value_text.split()), default=0)
    table.add_column("Decision", ratio=4, min_width=min(longest, 42), overflow="fold")
    table.add_column("Why", ratio=7, overflow="fold")
    for decision in plan:
        what = Text(decision.title + "\n")
        what.append(decision.value_text, style="bold cyan")
        if decision.overridden:
            what.append(" (your choice)", style="dim")
        why = [Text(decision.rule)]
        if decision.inputs:
            why.append(Text(decision.inputs_text, style="dim"))
        why += [Text(text, style="italic") for text in (decision.note, decision.source) if text]
        table.add_row(what, Text("\n").join(why))
    return table
