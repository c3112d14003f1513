"""Series: what containers told, by metric and labels, over time."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from .exposition import Labels, bound_of, samples_of

NAME = "__name__"

Names = Literal["as-scraped", "underscores"]
Histograms = Literal["exponential", "explicit"]

LONGEST_RANGE = 7 * 86_400.0
"""Seconds. Source: CloudWatch user guide, "PromQL limits and restrictions"."""


Value = float | Mapping[float, float]
"""A number, or a histogram: measurements up to each bound, with infinity."""


class Point(NamedTuple):
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
    points: list[Point] = field(default_factory=list)

    def between(self, after: float, up_to: float) -> list[Point]:
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
            points[at] = Point(time, value)
        else:
            points.insert(at, Point(time, value))
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
