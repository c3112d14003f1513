"""Results of the product as pictures for the docs: a document's parts below each other, in plain SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from docs.drawing import SMALLEST, WIDTH, Drawing, Look, Place, length, wrapped

from low_latency_endpoint.report.charts import Chart
from low_latency_endpoint.report.document import (
    Cell,
    Code,
    Document,
    FindingPart,
    Listed,
    Part,
    Row,
    Section,
    Sentence,
    Table,
)

LINE = 21  # from a line of text to the next
MARGIN = 20
CARD = 14  # from a card's side to its text
LABELS = 84  # for the words before a finding's rows
TICKS = 60  # for the numbers beside a chart
TONES = {"good": "good", "careful": "careful", "bad": "bad", "other": "other", "soft": "soft"}


def picture(document: Document) -> str:
    """A document as its page shows it."""
    drawn = _Page(document.title)
    drawn.lines(document.subject, size=20, bold=True)
    drawn.lines(document.under, colour="soft")
    drawn.verdict(document)
    drawn.parts(document.parts)
    return drawn.drawing.svg(drawn.y + MARGIN)


def texts(drawn: str) -> list[str]:
    """What a picture says."""
    return [text.text or "" for text in ElementTree.fromstring(drawn).iter() if "text" in text.tag]


class _Page:
    """A drawing that grows downwards between two sides."""

    def __init__(self, title: str) -> None:
        self.drawing = Drawing(title)
        self.left, self.right, self.y = float(MARGIN), float(WIDTH - MARGIN), float(MARGIN)

    def lines(
        self,
        text: str,
        *,
        size: float = SMALLEST,
        colour: str = "ink",
        bold: bool = False,
        mono: bool = False,
        indent: float = 0,
    ) -> None:
        """A paragraph."""
        left = self.left + indent
        for line in wrapped(text.replace("`", ""), self.right - left, size, mono=mono, bold=bold):
            if line:
                self.y += LINE * size / SMALLEST
                self.drawing.text(
                    left, self.y - 6, line, size=size, colour=colour, bold=bold, mono=mono
                )

    def verdict(self, document: Document) -> None:
        if document.verdict and document.tone in TONES:
            width = min(length(document.verdict, SMALLEST, bold=True) + 24, self.right - self.left)
            lines = wrapped(document.verdict, width - 20, SMALLEST, bold=True)
            height = LINE * len(lines) + 10
            look = Look(TONES[document.tone], "none")
            self.drawing.box((self.left, self.y + 8, width, height), look)
            self.y += 12
            for line in lines:
                self.y += LINE
                self.drawing.text(self.left + 12, self.y - 5, line, colour="page", bold=True)
            self.y += 14
        else:
            self.lines(document.verdict, bold=True)

    def parts(self, parts: Sequence[Part]) -> None:
        """What it draws of each kind; it leaves out what a terminal alone has."""
        for part in parts:
            if isinstance(part, str):
                self.lines(part)
            elif isinstance(part, Sentence):
                bold = part.tone == "strong"
                self.y += 8 * bold
                self.lines(part.text, colour=TONES.get(part.tone, "ink"), bold=bold)
            elif isinstance(part, Listed):
                for row in part.rows:
                    self.row(row, bullet=True)
            elif isinstance(part, Code):
                for text, _ in part.lines:
                    self.code(text, self.left)
            elif isinstance(part, Table):
                self.table(part)
            elif isinstance(part, FindingPart):
                self.finding(part)
            elif isinstance(part, Chart):
                self.chart(part)
            if isinstance(part, (str, Sentence)):
                self.y += 6
            elif isinstance(part, Section):
                self.y += 10
                self.lines(part.title, size=17, bold=True)
                self.y += 4
                self.parts(part.parts)

    def row(self, row: Row, *, bullet: bool = False) -> None:
        text = f"{row.label}: {row.text}" if row.label else row.text
        if bullet:
            self.drawing.text(self.left, self.y + LINE - 6, "•", colour=TONES.get(row.tone, "ink"))
        self.lines(text, indent=16)

    def finding(self, finding: FindingPart) -> None:
        """A card with the finding's colour on its left side."""
        self.y += 8
        first, behind = self.y, len(self.drawing.shapes)
        self.left, self.right, self.y = self.left + CARD, self.right - CARD, self.y + 8
        self.lines(finding.title, bold=True)
        label = ""
        for row in (*finding.rows, *finding.details):
            if row.label != label:
                self.y += 3
                self.drawing.text(self.left, self.y + LINE - 6, row.label, colour="soft")
            label = row.label
            if row.code:
                self.code(row.text, self.left + LABELS)
            else:
                self.lines(f"{row.text} {row.tag[0]}", indent=LABELS)
        self.left, self.right, self.y = self.left - CARD, self.right + CARD, self.y + 10
        place = (self.left, first, self.right - self.left, self.y - first)
        colour = Look(TONES.get(finding.tone, "soft"), "none")
        above = len(self.drawing.shapes)
        self.drawing.box(place, Look())
        self.drawing.box((self.left, first, 5, self.y - first), colour)
        shapes = self.drawing.shapes
        shapes[behind:] = [*shapes[above:], *shapes[behind:above]]

    def code(self, text: str, left: float) -> None:
        lines = wrapped(text, self.right - left - 16, SMALLEST, mono=True)
        place = (left, self.y + 2, self.right - left, LINE * len(lines) + 6)
        self.drawing.box(place, Look("page", "rule"))
        for line in lines:
            self.y += LINE
            self.drawing.text(left + 8, self.y - 1, line, mono=True)
        self.y += 10

    def table(self, table: Table) -> None:
        """The columns that there is room for; the widest one wraps."""
        columns, widths = _fitting(table, self.right - self.left)
        self.lines(table.title, bold=True)
        heads = [Cell(head, "soft") for head in table.heads]
        for cells in (heads, *table.rows):
            top, bottom, x = self.y, self.y, self.left
            for column in columns:
                cell = cells[column]
                tone = TONES.get(cell.tone, "ink") if isinstance(cell, Cell) else "ink"
                text = cell.text if isinstance(cell, Cell) else cell
                right = table.side(column) == "r"
                for number, line in enumerate(wrapped(text, widths[column], SMALLEST), 1):
                    y = top + LINE * number
                    bottom = max(bottom, y)
                    anchor = "end" if right else "start"
                    at = x + widths[column] if right else x
                    self.drawing.text(at, y - 3, line, colour=tone, anchor=anchor)
                x += widths[column] + 14
            self.y = bottom + 5
            self.drawing.path(f"M{self.left:g} {self.y:g}H{self.right:g}", "rule")
        self.y += 8

    def chart(self, chart: Chart) -> None:
        """Its panels, each with its lines' names above it."""
        drawn = chart.drawn()
        for panel in drawn.panels:
            self.y += 6
            self.lines(panel.panel.title, bold=True)
            self._names([*((line.name, line.colour) for line in panel.lines)], panel.limits)
            place = (
                self.left + TICKS,
                self.y + 8,
                self.right - self.left - TICKS - 12,
                chart.height,
            )
            x, y, width, height = place
            for low, wide, colour in drawn.spans:
                shade = (x + low * width / 1000, y, wide * width / 1000, height)
                self.drawing.box(shade, Look("card", "none"))
                self.drawing.path(f"M{shade[0]:g} {y}h{shade[2]:g}", colour)
            for at, label in panel.ticks:
                self.drawing.path(_placed(f"M0 {1000 - at}H1000", place), "rule")
                level = y + height - at * height / 1000 + 5
                self.drawing.text(x - 6, level, label, colour="soft", anchor="end")
            for at, _ in panel.limits:
                self.drawing.path(_placed(f"M0 {1000 - at}H1000", place), "red", dashed=True)
            for at, colour, _ in drawn.events:
                self.drawing.path(_placed(f"M{at} 0V1000", place), colour, dashed=True)
            for path in panel.paths:
                if "unseen" not in path.kind and path.kind != "area":
                    dashed = "dash" in path.kind
                    self.drawing.path(_placed(path.d, place), path.colour, dashed=dashed)
            for mark_x, mark_y, mark, colour, _ in panel.marks:
                at, level = x + mark_x * width / 1000, y + height - mark_y * height / 1000 + 5
                self.drawing.text(at, level, mark, colour=colour, anchor="middle")
            self.y = y + height
            self._axis([*drawn.ticks], place)
        self.lines(chart.title, colour="soft", indent=TICKS)

    def _names(self, lines: Sequence[tuple[str, str]], limits: Sequence[tuple[float, str]]) -> None:
        """What the colours mean, as many in a row as it takes."""
        x = self.left
        self.y += LINE
        for name, colour, dashed in _keys(lines, limits):
            wide = length(name, SMALLEST) + 34
            if x > self.left and x + wide > self.right:
                x, self.y = self.left, self.y + LINE
            self.drawing.path(f"M{x:g} {self.y - 11:g}h16", colour, dashed=dashed)
            self.drawing.text(x + 21, self.y - 6, name, colour="soft")
            x += wide

    def _axis(self, ticks: Sequence[tuple[float, str]], place: Place) -> None:
        """The numbers below a panel that there is room for."""
        x, _, width, _ = place
        end = -1.0
        for at, label in ticks:
            half = length(label, SMALLEST) / 2
            middle = x + at * width / 1000
            if middle - half > end + 8 and middle + half < WIDTH:
                self.drawing.text(middle, self.y + 18, label, colour="soft", anchor="middle")
                end = middle + half
        self.y += 24


def _keys(
    lines: Sequence[tuple[str, str]], limits: Sequence[tuple[float, str]]
) -> Iterator[tuple[str, str, bool]]:
    yield from ((name, colour, False) for name, colour in lines if name)
    yield from ((name, "red", True) for _, name in limits)


def _fitting(table: Table, width: float) -> tuple[list[int], dict[int, float]]:
    """The columns that a page as wide has, and how wide each of them is."""
    columns = [*range(len(table.heads))]
    while True:
        widths = {column: _widest(table, column) for column in columns}
        room = width - 14 * (len(columns) - 1)
        excess = sum(widths.values()) - room
        widest = max(columns, key=lambda column: widths[column])
        if excess <= 0 or widths[widest] - excess >= 120:
            widths[widest] -= max(excess, 0)
            return columns, widths
        leaving = max(
            columns[1:], key=lambda column: (*table.leaves, *[0] * 20)[column] or column / 99
        )
        columns.remove(leaving)


def _widest(table: Table, column: int) -> float:
    cells = [table.heads[column], *(row[column] for row in table.rows)]
    texts = (cell.text if isinstance(cell, Cell) else cell for cell in cells)
    return max(length(text, SMALLEST) for text in texts) + 1


def _placed(d: str, place: Place) -> str:
    """A path on a grid of 1000 by 1000, in a rectangle."""
    x, y, width, height = place

    def moved(command: re.Match[str]) -> str:
        kind, first, second = command[1], float(command[2]), float(command[3] or 0)
        across, down = x + first * width / 1000, y + second * height / 1000
        if kind == "V":
            return f"V{y + first * height / 1000:.1f}"
        if kind == "h":
            return f"h{first * width / 1000:.1f}"
        return f"H{across:.1f}" if kind == "H" else f"{kind}{across:.1f} {down:.1f}"

    return re.sub(r"([MLHVh])(-?[\d.e-]+)(?: (-?[\d.e-]+))?", moved, d)
