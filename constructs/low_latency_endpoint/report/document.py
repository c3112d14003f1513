"""A result as a command tells it: sentences, lists, code, tables, charts and findings under headings.

What is told stands here, and how it looks is for the back ends: :mod:`.terminal`, :mod:`.pages`
and :mod:`.markdown`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from operator import is_
from typing import Any, Literal

from .charts import Chart
from .visible import visible, visible_lines


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


Tone = Literal["", "good", "careful", "bad", "other", "soft", "strong"]


@dataclass(frozen=True)
class Sentence:
    """A line of text, in which code stands between backticks."""

    text: str
    tone: Tone = ""
    whole: bool = False  # whether a terminal leaves the line as it is: a name or a command to copy


@dataclass(frozen=True)
class Row:
    """A line of a list or of a finding: a word that says what the line is, and the line."""

    label: str
    text: str
    tag: tuple[str, Tone] = ("", "")  # ends the line
    code: bool = False  # whether the text is to be copied; the tag is a comment then
    link: bool = False  # whether the text is an address of ours
    tone: Tone = ""  # of the label


@dataclass(frozen=True)
class Listed:
    """Lines that stand below each other."""

    items: Sequence[str | Row]
    tone: Tone = ""
    aligned: bool = False  # whether a terminal has the words in a column of their own

    @property
    def rows(self) -> list[Row]:
        """The lines; without a word before a line that is text alone."""
        return [Row("", item) if isinstance(item, str) else item for item in self.items]


@dataclass(frozen=True)
class Entry:
    """What became of a check: a word for it, the check, and what is to be said of it."""

    word: str
    tone: Tone
    text: str
    lines: Sequence[str] = ()


@dataclass(frozen=True)
class Code:
    """Lines to be copied: each a text and a comment."""

    lines: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class FindingPart:
    """Something that was found: what to change, what shows it, and who says so."""

    title: str
    id: str
    tone: Tone
    rows: Sequence[Row]
    details: Sequence[Row] = ()  # what shows it
    source: str = ""  # a link


@dataclass(frozen=True)
class EvidencePart:
    """Where a terminal has the details of the findings; the other back ends have them with each."""


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it."""

    title: str
    parts: Sequence[Part]
    detail: bool = False  # whether a terminal and a comment go without it
    folded: bool = False  # whether a page and a comment show it only to who opens it

    @property
    def of_findings(self) -> bool:
        """Whether it has findings, each with a heading and a frame of its own."""
        return bool(self.parts) and isinstance(self.parts[0], FindingPart)


Part = str | Sentence | Listed | Entry | Code | Table | Chart | FindingPart | EvidencePart | Section


@dataclass(frozen=True)
class Document:
    """A whole result: its subject, what became of it in one line, and the parts."""

    subject: str
    parts: Sequence[Part]
    under: str = ""  # what the subject is, and when
    verdict: str = ""
    tone: Tone = ""  # of the verdict

    @property
    def title(self) -> str:
        return f"{self.subject}: {self.verdict}" if self.verdict else self.subject


def visible_document(document: Document) -> Document:
    """The document, in whose texts nothing acts; cells and code may have several lines."""
    shown: Document = _visible(document, lines=False)
    return shown


def _visible(value: Any, *, lines: bool) -> Any:
    """The same of any part, or of texts in a row: what has nothing to spell out stays itself."""
    if isinstance(value, str):
        return visible_lines(value) if lines else visible(value)
    if isinstance(value, (list, tuple)):
        texts = [_visible(each, lines=lines) for each in value]
        return value if all(map(is_, texts, value)) else type(value)(texts)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    lines = isinstance(value, (Table, Cell, Code))
    changed = {}
    for field in fields(value):
        before = getattr(value, field.name)
        after = _visible(before, lines=lines)
        if after is not before:
            changed[field.name] = after
    return replace(value, **changed) if changed else value


def findings_in(parts: Sequence[Part]) -> list[FindingPart]:
    """The findings among the parts and below them, in their order, which numbers them."""
    finding_parts: list[FindingPart] = []
    for part in parts:
        if isinstance(part, FindingPart):
            finding_parts.append(part)
        elif isinstance(part, Section):
            finding_parts += findings_in(part.parts)
    return finding_parts
