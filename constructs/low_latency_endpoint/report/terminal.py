"""A document in a terminal of any width, by ``rich``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import dropwhile
from textwrap import wrap

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table as Grid
from rich.text import Text

from .charts import Chart, Line, X
from .document import (
    Cell,
    Code,
    Document,
    Entry,
    EvidencePart,
    FindingPart,
    Listed,
    Part,
    Row,
    Section,
    Sentence,
    Table,
    findings_in,
    visible_document,
)

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
            grid.add_row(*(cell_text(row[column]) for column in columns))
        yield grid
        if len(shown) < len(of.rows):
            text = f"the {of.order} {len(shown)} of {len(of.rows)}"
            yield Text(f"{text}; all of them in {of.elsewhere}", style="dim")
        if left := [head for number, head in enumerate(of.heads) if number not in columns]:
            text = f"Left out for want of width, and in {of.elsewhere}: {', '.join(left)}"
            yield Text(text, style="dim")


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
    for number in sorted(range(len(heads)), key=align.__getitem__, reverse=True):
        more = min(spare, max(_longest(cells[number]) - words[number], 0))
        words[number] += more
        spare -= more
    return list(words)


_CODE = "bold cyan"  # what can be typed as it stands
_INDENT = 8  # columns, of what is said of a check
_HEADS = 24  # columns at most, of what stands beside a text
_MOST_CLOSE = 3  # columns of a table without a line between its rows
_BARS = "▁▂▃▄▅▆▇█"


def drawn(document: Document) -> Iterator[RenderableType]:
    """The document from top to bottom, without a blank line at the top."""
    shown = visible_document(document)
    return dropwhile(lambda each: isinstance(each, Text) and not each, _all(shown))


def _all(document: Document) -> Iterator[RenderableType]:
    if document.under:  # else whoever typed the command knows the subject
        yield Text.assemble((document.subject, "bold"), f": {document.under}")
    if document.verdict:
        yield Text(document.verdict, style=f"bold {TONES[document.tone]}".rstrip())
    findings = findings_in(document.parts)
    for part in document.parts:
        if isinstance(part, str):  # a paragraph
            yield Text("")
        yield from _drawn(part, findings)


def _drawn(part: Part, findings: Sequence[FindingPart]) -> Iterator[RenderableType]:
    if isinstance(part, str):
        yield _line(part, "")
    elif isinstance(part, Sentence):
        yield _line(part.text, TONES[part.tone], whole=part.whole)
    elif isinstance(part, Entry):
        if part.lines:
            yield Text("")
        yield _Hanging(part.text, part.word, TONES[part.tone])
        yield from map(_Hanging, part.lines)
    elif isinstance(part, Listed) and part.aligned:
        yield _beside(
            (Text(row.label, TONES[row.tone or part.tone or "soft"]), _told(row))
            for row in part.rows
        )
    elif isinstance(part, Table) and part.stacked:
        gap = [Text()] * (len(part.heads) > _MOST_CLOSE)
        yield _beside(
            (cell_text(head), Text("\n").join([*map(cell_text, filter(str, others)), *gap]))
            for head, *others in part.rows
        )
    elif isinstance(part, Listed):
        yield from (_item(row, TONES[part.tone]) for row in part.rows)
    elif isinstance(part, Code):
        for text, comment in part.lines:
            yield Text.assemble(
                (text.rstrip("\n"), _CODE),
                (f"  # {comment}" if comment else "", "dim"),
                no_wrap=True,
                overflow="ignore",
            )
    elif isinstance(part, Chart):
        yield _sketch(part)
    elif isinstance(part, FindingPart):
        number = next(n for n, each in enumerate(findings, 1) if each is part)
        yield from _block(f"{number}. {part.title}", part.rows)
    elif isinstance(part, EvidencePart):
        for number, finding in enumerate(findings, 1):
            yield from _block(f"Evidence of {number}. {finding.id}", finding.details)
            # Not in the grid: a link stays whole, to be followed.
            yield Text.assemble(
                "   source   ", _link(finding.source), no_wrap=True, overflow="ignore"
            )
    elif isinstance(part, Section):
        if part.detail:
            return
        if not part.of_findings:
            yield Text("")
            if part.title:
                yield _line(part.title, "bold")
        for each in part.parts:
            yield from _drawn(each, findings)
    else:
        yield DrawnTable(part)


def _line(text: str, style: str, *, whole: bool = False) -> Text:
    line = Text(style=style, no_wrap=whole or None, overflow="ignore" if whole else None)
    for number, piece in enumerate(text.split("`")):
        line.append(piece, _CODE if number % 2 else "")
    return line


def _beside(
    rows: Iterable[tuple[Text, Text]], *, indent: int = 2, least: int = 10
) -> RenderableType:
    grid = Grid.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=indent - 1)
    grid.add_column(min_width=least, max_width=_HEADS)
    grid.add_column(overflow="fold")
    for head, text in rows:
        grid.add_row("", head, text)
    return grid


def _item(row: Row, style: str) -> RenderableType:
    label = (f"{row.label}: " if row.label else "", TONES[row.tone])
    if " " not in row.text.strip():  # a name or an address, to be copied
        text = _link(row.text) if row.link else row.text.strip()
        mark = "- " if row.label else "  "
        return Text.assemble(mark, label, text, style=style, no_wrap=True, overflow="ignore")
    grid = Grid.grid(padding=(0, 1))
    grid.add_column(no_wrap=True, style=style)
    grid.add_column(overflow="fold")
    grid.add_row("-", Text.assemble(label, row.text, style=style))
    return grid


def _block(head: str, rows: Sequence[Row]) -> Iterator[RenderableType]:
    yield Text("")
    yield Text(head, style="bold")
    yield _beside(((Text(row.label, "dim"), _told(row)) for row in rows), indent=3, least=8)


def _told(row: Row) -> Text:
    word, tone = row.tag
    tag = (f"  # {word}" if row.code and word else word, "dim" if row.code else TONES[tone])
    return Text.assemble((row.text, _CODE if row.code else ""), tag)


def _sketch(chart: Chart) -> RenderableType:
    """Name, bars and range of each line that has a name for them."""
    grid = Grid.grid(padding=(0, 1))
    for style in ("", "", "dim"):
        grid.add_column(no_wrap=True, style=style)
    for line, values in chart.sketched:
        grid.add_row(line.sketch, bars(line, chart), values)
    return grid


def bars(line: Line, chart: Chart) -> str:
    """Up to forty bars from nothing to the largest value, each the highest of its share of time.

    >>> line = Line("requests", [0.0, 2.0], [1.0, 8.0], "blue")
    >>> bars(line, Chart("a", [], ends=(0.0, 4.0), step=1.0))
    '▂ █ '
    """
    start, end = map(_number, chart.ends or (line.x[0], line.x[-1]))
    long = (end - start) or 1.0
    width = max(1, min(40, round(long / chart.step))) if chart.step else 40
    highest: list[float | None] = [None] * width
    for x, value in zip(line.x, line.y, strict=True):
        if value is not None:
            index = min(int((_number(x) - start) / long * width), width - 1)
            highest[index] = max(value, highest[index] or 0.0)
    top = max((value for value in highest if value is not None), default=0.0) or 1.0
    return "".join(" " if v is None else _BARS[min(int(v / top * 8), 7)] for v in highest)


def _number(x: X) -> float:
    return x.timestamp() if isinstance(x, datetime) else float(x)


def _link(address: str) -> tuple[str, str]:
    """An address of ours, to be followed."""
    return address, f"dim link {address}"


@dataclass(frozen=True)
class _Hanging:
    """A paragraph with an indent, in which names stay whole, and so do commands, on lines of their own."""

    text: str  # in which a command stands between backticks
    head: str = ""  # stands within the indent
    style: str = ""  # of the head

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        margin, lines = " " * _INDENT, []
        for number, piece in enumerate(re.split("`([^`]+ [^`]+)`", self.text)):
            if number % 2:
                lines.append((f"{margin}  {piece}", _CODE))
            else:
                lines += [(each, "") for each in _wrapped(piece, options.max_width, margin)]
        for number, (line, style) in enumerate(lines):
            text = Text(line, style=style, no_wrap=True, overflow="ignore")
            if self.head and not number:
                text = Text.assemble((f"{self.head:<{_INDENT}}", self.style), line.lstrip())
                text.no_wrap, text.overflow = True, "ignore"
            yield text


def _wrapped(text: str, width: int, margin: str) -> list[str]:
    """Lines of whole words; what ends a sentence that a command begins hangs on nothing."""
    return wrap(
        text.strip().removeprefix(".").strip(),
        max(width, len(margin) + 20),
        initial_indent=margin,
        subsequent_indent=margin,
        break_long_words=False,
        break_on_hyphens=False,
    )
