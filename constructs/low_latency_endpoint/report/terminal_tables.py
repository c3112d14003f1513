"""A table in a terminal: figures stay whole, and what does not fit is left out or folded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table as Grid
from rich.text import Text

from .tables import Cell, Table

TONES = {
    "": "",
    "good": "green",
    "bad": "red",
    "careful": "yellow",
    "other": "magenta",
    "soft": "dim",
    "strong": "bold",
}


def cell_text(cell: str | Cell) -> Text:
    """A cell in the style of its tone."""
    return Text(str(cell), TONES[cell.tone] if isinstance(cell, Cell) else "")


@dataclass(frozen=True)
class DrawnTable:
    """Drawn with the columns that fit."""

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        of = self.table
        columns = _columns_within(of, options.max_width)
        heads = [of.heads[number] for number in columns]
        align = "".join(map(of.side, columns))
        cells = [[str(row[number]) for row in of.rows] for number in columns]
        widths: list[int | None] = [None] * len(heads)
        tight, room = of.tight, options.max_width - (2 if of.tight else 3) * len(heads)
        if room < sum(_longest([head, *each]) for head, each in zip(heads, cells, strict=True)):
            tight, room = True, options.max_width - 2 * len(heads)
            heads = [head.replace("_", "_\n") for head in heads]
            widths = _fitted(heads, cells, align, room)
        grid = Grid(
            title=Text(of.title, style="bold") if of.title else None,
            title_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            padding=(0, 1, 0, 0 if tight else 1),
        )
        for head, width, side in zip(heads, widths, align, strict=True):
            grid.add_column(
                Text(head), justify="right" if side == "r" else "left", width=width, overflow="fold"
            )
        shown = of.rows[: of.most] if of.most > 0 else of.rows[of.most or None :]
        for row in shown:
            grid.add_row(*(cell_text(row[each]) for each in columns))
        yield grid
        if len(shown) < len(of.rows):
            said = f"the {of.order} {len(shown)} of {len(of.rows)}"
            yield Text(f"{said}; all of them in {of.elsewhere}", style="dim")
        if left := [head for number, head in enumerate(of.heads) if number not in columns]:
            said = f"Left out for want of width, and in {of.elsewhere}: {', '.join(left)}"
            yield Text(said, style="dim")


def _columns_within(table: Table, width: int) -> list[int]:
    """The columns that fit, without those that can be left out first."""
    columns = list(range(len(table.heads)))
    wide = [
        _longest([head, *(str(row[number]) for row in table.rows)])
        for number, head in enumerate(table.heads)
    ]
    while sum(wide[number] + 2 for number in columns) > width:
        least = max(columns, key=lambda number: table.leaves[number] if table.leaves else 0)
        if not (table.leaves and table.leaves[least]):
            break
        columns.remove(least)
    return columns


def _longest(texts: Iterable[str]) -> int:
    return max((len(line) for text in texts for line in text.split("\n")), default=0)


def _fitted(
    heads: Sequence[str], cells: Sequence[Sequence[str]], align: str, room: int
) -> list[int | None]:
    """Widths with which words and, where there is room, whole figures and names stand in a line."""
    words = [
        _longest(word for text in (head, *of) for word in text.split())
        for head, of in zip(heads, cells, strict=True)
    ]
    spare = room - sum(words)
    if spare < 0:
        return [None] * len(heads)
    # Figures first: texts may be folded at any space.
    for number in sorted(
        range(len(heads)), key=lambda each: align[min(each, len(align) - 1)], reverse=True
    ):
        more = min(spare, max(_longest(cells[number]) - words[number], 0))
        words[number] += more
        spare -= more
    return list(words)
