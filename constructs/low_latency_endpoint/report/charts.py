"""Charts as HTML and SVG without a library: they take the page's width, its colours, and print.

Lines are drawn on a grid of 1000 by 1000 that the browser stretches; words and marks stand beside
it in percent, so that they keep their size. A small script in the page shows values under the
pointer; it reads them off the lines, so that nothing is in the page twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from .numbers import milliseconds, readable

#: By name: on light paper, and on dark.
COLOURS = {
    "blue": ("#0072b2", "#4ea8de"),
    "orange": ("#c77f00", "#e69f00"),
    "red": ("#c2410c", "#ff7b54"),
    "green": ("#00805e", "#2fc99b"),
    "purple": ("#a8558a", "#dd8fbd"),
    "sky": ("#3c94c4", "#8fd0f5"),
    "grey": ("#6b7280", "#9aa4b2"),
    "ink": ("#1f2937", "#e6e9ee"),
}
#: Lines that mean no more than being different from each other.
PALETTE = ("blue", "orange", "green", "purple", "sky", "red", "grey", "ink")


X = datetime | float | str
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
#: Axis of percentiles, each further nine as wide as the one before: 1 is p90, 2 is p99.
_NINES = tuple(
    (-math.log10(1 - share), f"p{100 * share:g}")
    for share in (0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)
)


@dataclass(frozen=True)
class Line:
    """Values over an axis; ``None`` interrupts the line."""

    name: str
    x: Sequence[X]
    y: Sequence[float | None]
    colour: str  # of :data:`.colours.COLOURS`
    kind: str = "line"  # line, steps, area, bars or marks (without a line)
    dash: bool = False
    marks: Sequence[str] = ()  # A character for each point
    notes: Sequence[str] = ()  # what a mark shows under the pointer
    low: Sequence[float] = ()  # an interval around each value
    high: Sequence[float] = ()
    sketch: str = (
        ""  # what a terminal, which has no room for charts, calls its line; empty for none
    )


@dataclass(frozen=True)
class Panel:
    """Lines over one another, with limits (name and value) across."""

    title: str
    lines: Sequence[Line]
    unit: str = ""
    limits: Sequence[tuple[str, float]] = ()
    logarithmic: bool = False

    def in_words(self, value: float) -> str:
        if self.unit == " ms":
            return milliseconds(value)
        small = 0 < abs(value) < 1  # which is not zero
        return f"{readable(value, 2) if small else f'{value:,.0f}'}{self.unit}"


@dataclass(frozen=True)
class Chart:
    """Panels below one another on one axis."""

    name: str
    panels: Sequence[Panel]
    axis: str = "number"  # time (datetimes), number, nines (see :func:`nines`) or names (texts)
    title: str = ""  # of the axis
    height: int = 120  # of a panel, in pixels
    step: float = 0.0  # from value to value on the axis, in seconds where it is time
    ends: tuple[X, X] | None = None  # where the axis begins and ends; by default with what is drawn
    spans: Sequence[tuple[X, X, str]] = ()  # from, to and colour of what is shaded
    events: Sequence[tuple[X, str, str]] = ()  # when, colour and text of what is marked

    def __bool__(self) -> bool:
        return any(line.y for panel in self.panels for line in panel.lines)

    @property
    def sketched(self) -> Iterator[tuple[Line, str]]:
        """The lines that a terminal draws, each with its least and largest value."""
        for panel in self.panels:
            for line in panel.lines:
                values = [value for value in line.y if value is not None]
                if line.sketch and values:
                    yield line, f"{panel.in_words(min(values))} to {panel.in_words(max(values))}"

    def drawn(self) -> _Drawn:
        """What the page's template lays out."""
        return _Drawn(self)


def nines(count: int, points: int = 160) -> list[float]:
    """Ranks evenly on the axis of nines, up to the last sample but one; 2 stands for p99.

    Examples
    --------
    >>> nines(100, points=4)
    [0.0, 0.5, 1.0, 1.5, 2.0]
    """
    end = min(5.0, math.log10(max(count, 2)))
    return [end * number / points for number in range(points + 1)]


class _Scale:
    """From values to per mille of a length."""

    def __init__(self, low: float, high: float, *, logarithmic: bool = False) -> None:
        self.low, self.high, self.logarithmic = low, high if high > low else low + 1, logarithmic

    def __call__(self, value: float) -> float:
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = (math.log10(max(each, 1e-9)) for each in (low, high, value))
        return round(1000 * (value - low) / (high - low), 2)

    def ticks(self, count: int = 4) -> list[float]:
        """Round numbers on it."""
        if self.logarithmic:
            ticks = [digit * 10.0**power for power in range(-9, 10) for digit in (1, 2, 5)]
            ticks = [each for each in ticks if self.low <= each <= self.high]
            if len(ticks) > 2 * count:
                return [each for each in ticks if f"{each:e}"[0] == "1"]
            if len(ticks) > 1:
                return ticks
        step = _round((self.high - self.low) / count)
        first = math.ceil(self.low / step - 1e-9)
        return [number * step for number in range(first, int(self.high / step + 1e-9) + 1)]


def _round(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return power * next(each for each in (1, 2, 5, 10) if each * power >= step * 0.999)


@dataclass(frozen=True)
class _Path:
    """A part of a panel's drawing."""

    d: str
    colour: str
    kind: str
    name: str = ""


class _Drawn:
    """A chart's geometry: everything in per mille of a panel's width and height."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        found = [x for panel in chart.panels for line in panel.lines for x in line.x]
        self.names = list(dict.fromkeys(str(x) for x in found)) if chart.axis == "names" else []
        if self.names:
            self.x = _Scale(-0.5, len(self.names) - 0.5)
        else:
            ends = [self.number(x) for x in chart.ends or found]
            low = 0.0 if chart.axis == "number" else min(ends)
            self.x = _Scale(low, max(ends) + (0.03 * max(ends) if chart.axis == "number" else 0))
        self.panels = [
            _DrawnPanel(self, panel)
            for panel in chart.panels
            if any(v is not None for line in panel.lines for v in line.y)
        ]
        # What began before the axis, or ends after it, is drawn as far as the axis goes.
        spans = [
            (max(self.at(low), 0.0), min(self.at(high), 1000.0), colour)
            for low, high, colour in chart.spans
        ]
        self.spans = [
            (low, round(high - low, 2), colour) for low, high, colour in spans if low < high
        ]
        events = [(self.at(x), colour, text) for x, colour, text in chart.events]
        self.events = [event for event in events if 0 <= event[0] <= 1000]

    def number(self, x: X) -> float:
        if isinstance(x, datetime):
            return x.timestamp()
        return float(self.names.index(x)) if isinstance(x, str) else x

    def at(self, x: X) -> float:
        """A point's place on the axis."""
        return self.x(self.number(x))

    @property
    def ticks(self) -> Iterator[tuple[float, str]]:
        """Places and labels of the axis."""
        axis, scale = self.chart.axis, self.x
        if axis == "names":
            yield from ((scale(number), name) for number, name in enumerate(self.names))
        elif axis == "nines":
            yield from ((scale(at), name) for at, name in _NINES if at <= scale.high + 0.01)
        elif axis == "time":
            step = next(
                (step for step in _STEPS if (scale.high - scale.low) / step <= 8),
                _round((scale.high - scale.low) / 8),
            )
            form = "%H:%M:%S" if step < 60 else "%H:%M" if step < 86400 else "%m-%d"
            for number in range(math.ceil(scale.low / step), int(scale.high / step) + 1):
                yield scale(number * step), f"{datetime.fromtimestamp(number * step, UTC):{form}}"
        else:
            yield from ((scale(value), f"{value:,.6g}") for value in scale.ticks(6))


class _DrawnPanel:
    """One panel's lines, marks and labels."""

    def __init__(self, chart: _Drawn, panel: Panel) -> None:
        self.chart, self.panel = chart, panel
        self.lines = [line for line in panel.lines if any(v is not None for v in line.y)]
        values = [
            v for line in self.lines for v in (*line.y, *line.low, *line.high) if v is not None
        ]
        values += [value for _, value in panel.limits]
        if panel.logarithmic:
            positive = [v for v in values if v > 0] or [1.0]
            self.y = _Scale(0.8 * min(positive), 1.3 * max(positive), logarithmic=True)
        else:
            low, high = min(0.0, *values), max(0.0, *values)
            self.y = _Scale(1.12 * low, 1.12 * high)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Places and labels of its values."""
        values = self.y.ticks(self.chart.chart.height // 30)
        in_seconds = self.panel.unit == " ms" and self.y.high >= 20_000
        factor, unit = (0.001, " s") if in_seconds else (1, self.panel.unit)
        return [(self.y(value), f"{factor * value:,.6g}{unit}") for value in values]

    @property
    def limits(self) -> list[tuple[float, str]]:
        """Places and names of what goes across."""
        return [(self.y(value), name) for name, value in self.panel.limits]

    @property
    def paths(self) -> Iterator[_Path]:
        """Lines, areas, bars and intervals."""
        bars = [line for line in self.lines if line.kind == "bars"]
        for line in self.lines:
            points = self._points(line)
            wide = 0.7 * 1000 / max(len(self.chart.names), 1) / max(len(bars), 1)
            shift = (bars.index(line) - len(bars) / 2 + 0.5) * wide if line in bars else 0
            for at, (low, high) in zip(points, zip(line.low, line.high, strict=True), strict=False):
                if at is not None:
                    yield _Path(
                        f"M{at[0] + shift:g} {1000 - self.y(low):g}V{1000 - self.y(high):g}",
                        line.colour,
                        "whisker",
                    )
            if line in bars:
                yield _Path(
                    "".join(
                        f"M{x + shift - wide / 2:g} {1000 - self.y(0):g}V{y:g}h{wide:g}"
                        f"V{1000 - self.y(0):g}z"
                        for x, y in filter(None, points)
                    ),
                    line.colour,
                    "bars",
                )
            stretch: list[tuple[float, float]] = []
            d, area = "", ""
            for point in (*points, None):
                if point is not None:
                    stretch.append(point)
                elif stretch:
                    joined = self._joined(stretch, steps=line.kind == "steps")
                    d += joined
                    area += f"{joined}V1000H{stretch[0][0]:g}z"
                    stretch = []
            if line.kind == "area":
                yield _Path(area, line.colour, "area")
            # Where nothing is to be seen of the line, the pointer still finds its values.
            yield _Path(
                d,
                line.colour,
                "line"
                + (" unseen" if line.kind in ("marks", "bars") else " dash" if line.dash else ""),
                line.name,
            )

    def _joined(self, points: Sequence[tuple[float, float]], *, steps: bool) -> str:
        (x, y), *rest = points
        d = f"M{x:g} {y:g}" + ("h0" if not rest else "")
        for x, y in rest:
            d += f"H{x:g}V{y:g}" if steps else f"L{x:g} {y:g}"
        return d

    def _points(self, line: Line) -> list[tuple[float, float] | None]:
        return [
            None if y is None else (self.chart.at(x), round(1000 - self.y(y), 2))
            for x, y in zip(line.x, line.y, strict=True)
        ]

    @property
    def marks(self) -> Iterator[tuple[float, float, str, str, str]]:
        """Place, character, colour and note of each mark."""
        for line in self.lines:
            for number, (point, mark) in enumerate(
                zip(self._points(line), line.marks, strict=False)
            ):
                if point is not None:
                    yield (
                        point[0],
                        1000 - point[1],
                        mark,
                        line.colour,
                        line.notes[number] if line.notes else line.name,
                    )
