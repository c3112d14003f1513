"""Series: what containers told, by metric and labels, over time."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from .exposition import Labels, Sample, bound_of, samples_of
from .histograms import Histogram, from_explicit

NAME = "__name__"

Value = float | Histogram

Names = Literal["as-scraped", "underscores"]
Histograms = Literal["exponential", "explicit"]

LONGEST_RANGE = 7 * 86_400.0
"""Seconds. Source: CloudWatch user guide, "PromQL limits and restrictions"."""


class Point(NamedTuple):
    """One value of a series, at seconds since 1970."""

    time: float
    value: Value


@dataclass(frozen=True)
class Form:
    """How CloudWatch names and keeps what it scraped; AWS's pages contradict each other.

    Parameters
    ----------
    names
        ``as-scraped``: `vllm:num_requests_waiting` (SageMaker developer guide, "Amazon SageMaker AI
        inference monitoring"). ``underscores``: `vllm_num_requests_waiting` (same guide, "Connect
        to your observability tool").
    histograms
        ``exponential``: one series whose values are exponential histograms (CloudWatch user guide,
        "How CloudWatch stores histogram metrics"). ``explicit``: `..._bucket` with the label `le`,
        `..._sum` and `..._count` ("Connect to your observability tool").
    """

    names: Names = "as-scraped"
    histograms: Histograms = "exponential"

    def __post_init__(self) -> None:
        for name, choices in (("names", get_args(Names)), ("histograms", get_args(Histograms))):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} is one of {', '.join(choices)}: {getattr(self, name)}")

    def name(self, scraped: str) -> str:
        """Give the name under which a scraped metric can be queried."""
        return scraped.replace(":", "_") if self.names == "underscores" else scraped


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
        series = self._by_name.setdefault(name, {}).get(key)
        if series is None:
            series = self._by_name[name][key] = Series({NAME: name, **labels})
        points = series.points
        at = bisect.bisect_left(points, time, key=lambda point: point.time)
        if at < len(points) and points[at].time == time:
            points[at] = Point(time, value)
        else:
            points.insert(at, Point(time, value))
        if points[0].time < time - 2 * LONGEST_RANGE:  # no query reaches it; cut now and then
            del points[: bisect.bisect_left(points, time - LONGEST_RANGE, key=lambda p: p.time)]

    def named(self, name: str) -> Iterator[Series]:
        """Give all series of a metric."""
        return iter(list(self._by_name.get(name, {}).values()))

    def names(self) -> list[str]:
        """Give the metrics there are, sorted."""
        return sorted(self._by_name)

    def all(self) -> Iterator[Series]:
        """Give every series."""
        for name in self.names():
            yield from self.named(name)

    def ingest(
        self, page: str, resource: Mapping[str, str], time: float, form: Form | None = None
    ) -> int:
        """Keep what a container printed; gives how many series it was.

        Parameters
        ----------
        page
            Prometheus's text format.
        resource
            The labels that SageMaker adds; one of the container's own gives way to them.
        time
            Seconds since 1970.
        """
        form = form or Form()
        kept = 0
        histograms: dict[tuple[str, Labels], _Explicit] = {}
        for sample in samples_of(page):
            if sample.type == "histogram" and form.histograms == "exponential":
                own = tuple(pair for pair in sample.labels if pair[0] != "le")
                histograms.setdefault((sample.family, own), _Explicit()).take(sample)
                continue
            self.put(
                form.name(sample.name), {**dict(sample.labels), **resource}, time, sample.value
            )
            kept += 1
        for (family, labels), explicit in histograms.items():
            made = explicit.histogram()
            if made is not None:
                self.put(form.name(family), {**dict(labels), **resource}, time, made)
                kept += 1
        return kept


@dataclass
class _Explicit:
    """The lines of one classic histogram."""

    buckets: dict[float, float] = field(default_factory=dict)
    sum: float = 0.0

    def take(self, sample: Sample) -> None:
        if sample.name.endswith("_bucket"):
            bound = bound_of(dict(sample.labels).get("le", ""))
            if not math.isnan(bound):
                self.buckets[bound] = sample.value
        elif sample.name.endswith("_sum"):
            self.sum = sample.value

    def histogram(self) -> Histogram | None:
        if not self.buckets:
            return None
        return from_explicit(sorted(self.buckets.items()), self.sum)


def distinct(series: Iterable[Series]) -> list[dict[str, str]]:
    """Give the labels of series, names included, in a stable order."""
    return sorted((dict(one.labels) for one in series), key=lambda labels: sorted(labels.items()))
