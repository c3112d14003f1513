"""A table as data; prints itself in a terminal and stands on a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

TONES = {
    "": "",
    "good": "green",
    "bad": "red",
    "careful": "yellow",
    "other": "magenta",
    "soft": "dim",
    "strong": "bold",
}


@dataclass(frozen=True)
class Cell:
    """Text that says by its colour, too, what it means."""

    text: str
    tone: str = ""  # good, bad, careful, other, soft or strong; empty for plain
    title: str = ""  # what a page shows under the pointer

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Table:
    """Heads and rows.

    Attributes
    ----------
    heads : sequence of str
    rows : sequence of sequences of str or Cell
    title : str
    align : str
        Of each column, ``l`` or ``r``; the last one holds for all further columns.
    tight : bool
        One space less between columns.
    most : int
        Rows that a terminal shows: the first rows; of a number below zero the last rows.
    order : str
        What the rows shown are, such as ``slowest``.
    leaves : sequence of int
        How soon a narrow terminal goes without each column: the largest number first, 0 for never.
    elsewhere : str
        The option under which all rows and columns are found.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    title: str = ""
    align: str = "lr"
    tight: bool = False
    most: int = 0
    order: str = "first"
    leaves: Sequence[int] = ()
    elsewhere: str = "--json"

    def side(self, column: int) -> str:
        """``l`` or ``r``."""
        return self.align[min(column, len(self.align) - 1)]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        columns = self._columns_within(options.max_width)
        heads = [self.heads[number] for number in columns]
        align = "".join(map(self.side, columns))
        cells = [[str(row[number]) for row in self.rows] for number in columns]
        widths: list[int | None] = [None] * len(heads)
        tight, room = self.tight, options.max_width - (2 if self.tight else 3) * len(heads)
        if room < sum(_longest([head, *of]) for head, of in zip(heads, cells, strict=True)):
            tight, room = True, options.max_width - 2 * len(heads)
            heads = [head.replace("_", "_\n") for head in heads]
            widths = _fitted(heads, cells, align, room)
        table = RichTable(
            title=Text(self.title, style="bold") if self.title else None,
            title_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            padding=(0, 1, 0, 0 if tight else 1),
        )
        for head, width, side in zip(heads, widths, align, strict=True):
            table.add_column(
                Text(head), justify="right" if side == "r" else "left", width=width, overflow="fold"
            )
        shown = self.rows[: self.most] if self.most > 0 else self.rows[self.most or None :]
        for row in shown:
            table.add_row(
                *(
                    Text(
                        str(cell), style=TONES.get(cell.tone if isinstance(cell, Cell) else "", "")
                    )
                    for cell in (row[number] for number in columns)
                )
            )
        yield table
        if len(shown) < len(self.rows):
            said = f"the {self.order} {len(shown)} of {len(self.rows)}"
            yield Text(f"{said}; all of them in {self.elsewhere}", style="dim")
        if left := [head for number, head in enumerate(self.heads) if number not in columns]:
            said = f"Left out for want of width, and in {self.elsewhere}: {', '.join(left)}"
            yield Text(said, style="dim")

    def _columns_within(self, width: int) -> list[int]:
        """The columns that fit, without those that can be left out first."""
        columns = list(range(len(self.heads)))
        wide = [
            _longest([head, *(str(row[number]) for row in self.rows)])
            for number, head in enumerate(self.heads)
        ]
        while sum(wide[number] + 2 for number in columns) > width:
            least = max(columns, key=lambda number: self.leaves[number] if self.leaves else 0)
            if not (self.leaves and self.leaves[least]):
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
