"""A result as a command tells it: sentences, lists, code, tables, charts and findings under headings.

What is told stands here, and how it looks is for the back ends: :mod:`.terminal`, :mod:`.pages`
and :mod:`.markdown`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .charts import Chart
from .tables import Table

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
        return [Row("", each) if isinstance(each, str) else each for each in self.items]


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
class Finding:
    """Something that was found: what to change, what shows it, and who says so."""

    title: str
    id: str
    tone: Tone
    rows: Sequence[Row]
    details: Sequence[Row] = ()  # what shows it
    source: str = ""  # a link


@dataclass(frozen=True)
class Evidence:
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
        return bool(self.parts) and isinstance(self.parts[0], Finding)


Part = str | Sentence | Listed | Entry | Code | Table | Chart | Finding | Evidence | Section


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
        """Subject and verdict."""
        return f"{self.subject}: {self.verdict}" if self.verdict else self.subject


def findings_in(parts: Sequence[Part]) -> list[Finding]:
    """The findings among the parts and below them, in their order, which numbers them."""
    found: list[Finding] = []
    for part in parts:
        if isinstance(part, Finding):
            found.append(part)
        elif isinstance(part, Section):
            found += findings_in(part.parts)
    return found
