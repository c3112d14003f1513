"""Series: what containers told at ``/metrics``, by metric and labels, over time.

Source: Prometheus documentation, "Exposition formats".
"""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Labels = tuple[tuple[str, str], ...]  # in the order of their names, without that of the metric

_SAMPLE = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)\s*(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)"
    r"(?:\s+-?\d+)?\s*(?:#.*)?"
)
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_ESCAPES = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}


@dataclass(frozen=True)
class SeriesSample:
    """One line; its family is the name that ``# TYPE`` gives, without ``_bucket`` and so on."""

    name: str
    labels: Labels
    value: float
    type: str
    family: str


def samples_of(text: str) -> Iterator[SeriesSample]:
    """Give the samples of a page; a line that cannot be read is left out, as scrapers do not stop.

    Examples
    --------
    >>> page = '# TYPE vllm:num_requests_waiting gauge\\nvllm:num_requests_waiting{engine="0"} 3'
    >>> (one,) = samples_of(page)
    >>> one.name, one.labels, one.value, one.type
    ('vllm:num_requests_waiting', (('engine', '0'),), 3.0, 'gauge')
    """
    types: dict[str, str] = {}
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("#"):
            words = line.split()
            if len(words) == 4 and words[1] == "TYPE":
                types[words[2]] = words[3]
            continue
        found = _SAMPLE.fullmatch(line)
        labels = _labels(found["labels"] or "") if found else None
        if found is None or labels is None:
            continue
        name, value = found["name"], _number(found["value"])
        if value is not None:
            family = next(
                (
                    name.removesuffix(ending)
                    for ending in ("", "_bucket", "_sum", "_count")
                    if name.endswith(ending) and name.removesuffix(ending) in types
                ),
                name,
            )
            yield SeriesSample(name, labels, value, types.get(family, "untyped"), family)


def _labels(text: str) -> Labels | None:
    found: dict[str, str] = {}
    at = 0
    text = text.strip()
    while at < len(text):
        one = _LABEL.match(text, at)
        if not one:
            return None
        found[one[1]] = re.sub(r"\\.", lambda m: _ESCAPES.get(m[0], m[0]), one[2])
        at = one.end()
    return tuple(sorted(found.items()))


def _number(text: str) -> float | None:
    try:
        return float(text.replace("Inf", "inf").replace("NaN", "nan"))
    except ValueError:
        return None


def bound_of(text: str) -> float:
    """Read the label ``le``; NaN when it is no number."""
    number = _number(text)
    return math.nan if number is None else number


NAME = "__name__"

Names = Literal["as-scraped", "underscores"]
Histograms = Literal["exponential", "explicit"]

LONGEST_RANGE = 7 * 86_400.0
"""Seconds. Source: CloudWatch user guide, "PromQL limits and restrictions"."""


Value = float | Mapping[float, float]
"""A number, or a histogram: measurements up to each bound, with infinity."""


class SeriesPoint(NamedTuple):
    """One value of a series, at seconds since 1970."""

    time: float
    value: Value


@dataclass(frozen=True)
class Form:
    """How CloudWatch names and keeps what it scraped; AWS's pages contradict each other."""

    # ``as-scraped``: `vllm:num_requests_waiting` (SageMaker developer guide, "Amazon SageMaker AI
    # inference monitoring"). ``underscores``: `vllm_num_requests_waiting` (same guide, "Connect to
    # your observability tool").
    names: Names = "as-scraped"
    # ``exponential``: one series whose values are histograms (CloudWatch user guide, "How
    # CloudWatch stores histogram metrics"; their buckets stay the container's here). ``explicit``:
    # `..._bucket` with the label `le`, `..._sum` and `..._count` ("Connect to your observability
    # tool").
    histograms: Histograms = "exponential"


@dataclass
class Series:
    """The points of one metric with one set of labels, in order of time."""

    labels: Mapping[str, str]
    points: list[SeriesPoint] = field(default_factory=list)

    def between(self, after: float, up_to: float) -> list[SeriesPoint]:
        """Give the points after a moment, up to another: as Prometheus 3 takes ranges."""
        first = bisect.bisect_right(self.points, after, key=lambda point: point.time)
        last = bisect.bisect_right(self.points, up_to, key=lambda point: point.time)
        return self.points[first:last]


class SeriesStore:
    """All series of an account and region, by the metric's name."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[Labels, Series]] = {}

    def put(self, name: str, labels: Mapping[str, str], time: float, value: Value) -> None:
        """Add a value; one of the same moment is replaced."""
        key = tuple(sorted(labels.items()))
        kept = self._by_name.setdefault(name, {}).setdefault(key, Series({NAME: name, **labels}))
        points = kept.points
        at = bisect.bisect_left(points, time, key=lambda point: point.time)
        if at < len(points) and points[at].time == time:
            points[at] = SeriesPoint(time, value)
        else:
            points.insert(at, SeriesPoint(time, value))
        if points[0].time < time - 2 * LONGEST_RANGE:  # no query reaches it; cut now and then
            del points[: bisect.bisect_left(points, time - LONGEST_RANGE, key=lambda p: p.time)]

    def named(self, name: str = "") -> Iterator[Series]:
        for each in [name] if name else sorted(self._by_name):
            yield from list(self._by_name.get(each, {}).values())

    def ingest(
        self, page: str, resource: Mapping[str, str], time: float, form: Form | None = None
    ) -> None:
        form = form or Form()
        found: dict[tuple[str, Labels], Value] = {}
        histograms: dict[tuple[str, Labels], dict[float, float]] = {}
        for sample in samples_of(page):
            if sample.type == "histogram" and form.histograms == "exponential":
                own = tuple(pair for pair in sample.labels if pair[0] != "le")
                bound = bound_of(dict(sample.labels).get("le", ""))
                if not math.isnan(bound):
                    histograms.setdefault((sample.family, own), {})[bound] = sample.value
            else:
                found[sample.name, sample.labels] = sample.value
        found |= histograms
        for (scraped, labels), value in found.items():
            name = scraped.replace(":", "_") if form.names == "underscores" else scraped
            self.put(name, {**dict(labels), **resource}, time, value)
