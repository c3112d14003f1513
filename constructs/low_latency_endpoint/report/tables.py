"""A table as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Cell:
    """Text that says by its colour, too, what it means."""

    text: str
    tone: str = ""  # good, bad, careful, other, soft or strong; empty for plain
    title: str = ""  # what a page shows under the pointer
    link: str = ""  # an address of ours; a terminal shows it in place of the text

    def __str__(self) -> str:
        return self.link or self.text


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
    stacked : bool
        A terminal has the first column, and beside it all others below each other.
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
    stacked: bool = False

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, str | Cell]], title: str = "", **more: Any) -> Table:
        """A table of rows that have their cells by the same heads."""
        return cls([*rows[0]] if rows else (), [[*row.values()] for row in rows], title, **more)

    def side(self, column: int) -> str:
        """``l`` or ``r``."""
        return self.align[min(column, len(self.align) - 1)]
