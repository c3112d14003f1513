"""Metric data as it was put, by metric."""

from __future__ import annotations

import bisect
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

MetricKey = tuple[str, str, frozenset[tuple[str, str]]]
"""Namespace, name, dimensions: a metric with other dimensions is another metric."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One datum: a value with its count, or a statistic set.

    A statistic set whose minimum and maximum are equal is as good as raw values; of any other
    one no percentile is known. Source: CloudWatch user guide, "CloudWatch statistics definitions".
    """

    time: float
    unit: str
    minimum: float
    maximum: float
    sum: float
    count: float

    @property
    def raw(self) -> bool:
        """Whether percentiles can be computed from it."""
        return self.minimum == self.maximum


@dataclass
class MetricStore:
    """All samples of an account and region, in order of time."""

    samples: dict[MetricKey, list[Sample]] = field(default_factory=dict)

    def put(self, namespace: str, datum: Mapping[str, Any], now: datetime) -> None:
        """Add one element of PutMetricData's MetricData."""
        time = as_seconds(datum.get("Timestamp") or now)
        # Services choose their own resolution; others' data is kept by the minute unless asked.
        if datum.get("StorageResolution", 60) != 1 and not namespace.lower().startswith(
            ("aws/", "/aws/")
        ):
            time -= time % 60
        key = metric_key(namespace, datum["MetricName"], datum.get("Dimensions") or ())
        kept = self.samples.setdefault(key, [])
        for sample in _samples(datum, time):
            bisect.insort(kept, sample, key=lambda s: s.time)

    def between(self, key: MetricKey, start: float, end: float, unit: str | None) -> list[Sample]:
        """Give the samples of a metric from start (inclusive) to end (exclusive)."""
        kept = self.samples.get(key, [])
        first = bisect.bisect_left(kept, start, key=lambda s: s.time)
        last = bisect.bisect_left(kept, end, key=lambda s: s.time)
        return [s for s in kept[first:last] if unit in (None, s.unit)]

    def earliest(self, key: MetricKey) -> float | None:
        kept = self.samples.get(key)
        return kept[0].time if kept else None


def metric_key(namespace: str, name: str, dimensions: Iterable[Mapping[str, str]]) -> MetricKey:
    return namespace, name, frozenset((d["Name"], d["Value"]) for d in dimensions)


def _samples(datum: Mapping[str, Any], time: float) -> Iterator[Sample]:
    unit = datum.get("Unit") or "None"
    statistics = datum.get("StatisticValues")
    if datum.get("Values"):
        counts = datum.get("Counts") or [1.0] * len(datum["Values"])
        for value, count in zip(datum["Values"], counts, strict=True):
            yield _single(time, unit, float(value), float(count))
    elif statistics:
        yield Sample(
            time,
            unit,
            float(statistics["Minimum"]),
            float(statistics["Maximum"]),
            float(statistics["Sum"]),
            float(statistics["SampleCount"]),
        )
    else:
        yield _single(time, unit, float(datum["Value"]), 1.0)


def _single(time: float, unit: str, value: float, count: float) -> Sample:
    return Sample(time, unit, value, value, value * count, count)


def as_seconds(moment: datetime | float | str) -> float:
    """Give seconds since 1970 in UTC; a time without a zone is taken as UTC."""
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment.replace("Z", "+00:00"))
    if isinstance(moment, datetime):
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return float(moment)


def as_moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def reason_data(**fields: Any) -> str:
    """Write the JSON document that goes with a state, with times as AWS writes them."""
    return json.dumps(fields, default=lambda m: m.strftime("%Y-%m-%dT%H:%M:%S.000+0000"))
