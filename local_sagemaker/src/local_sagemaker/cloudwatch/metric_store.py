"""Metric data as it was put, by metric, and CloudWatch's statistics over one period's samples.

Source: CloudWatch user guide, "CloudWatch statistics definitions". Percentiles are by nearest
rank: "p99 is the maximum value of the remaining 99%". AWS computes them from a sketch and may
differ by a fraction of a percent.
"""

from __future__ import annotations

import bisect
import functools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

SIMPLE = ("SampleCount", "Average", "Sum", "Minimum", "Maximum")
_NUMBER = r"\d+(?:\.\d{1,10})?"
_SHORT = re.compile(rf"(p|tm|wm|tc|ts)({_NUMBER})")
_RANGE = re.compile(rf"(TM|WM|TC|TS|PR)\(({_NUMBER}%?)?:({_NUMBER}%?)?\)")


@dataclass(frozen=True)
class Statistic:
    kind: str
    low: float | None = None
    high: float | None = None
    percent: bool = False


@functools.lru_cache(1024)
def parse_statistic(text: str) -> Statistic | None:
    """Take a statistic apart; None when CloudWatch has no such one.

    Examples
    --------
    >>> parse_statistic("p99.9")
    Statistic(kind='p', low=None, high=99.9, percent=True)
    >>> parse_statistic("PR(200000:)").low
    200000.0
    >>> parse_statistic("p101") is None
    True
    """
    if text in SIMPLE:
        return Statistic(text)
    if text == "IQM":
        return Statistic("tm", 25.0, 75.0, True)
    short = _SHORT.fullmatch(text)
    if short:
        high = float(short[2])
        return Statistic(short[1], None, high, True) if high <= 100 else None
    ranged = _RANGE.fullmatch(text)
    if not ranged or not (ranged[2] or ranged[3]):
        return None
    bounds = [bound for bound in (ranged[2], ranged[3]) if bound]
    percents = {bound.endswith("%") for bound in bounds}
    kind = ranged[1].lower()
    if len(percents) > 1 or (kind == "pr" and True in percents):
        return None
    low, high_ = (float(b.rstrip("%")) if b else None for b in (ranged[2], ranged[3]))
    percent = percents == {True}
    if percent and max(float(b.rstrip("%")) for b in bounds) > 100:
        return None
    if low is not None and high_ is not None and low >= high_:
        return None
    return Statistic(kind, low, high_, percent)


def compute(statistic: Statistic, samples: Sequence[Sample]) -> float | None:
    """Give the statistic of one period's samples; None when it has no value.

    Statistics other than the simple ones need raw values and have none where a value is negative.
    """
    count = sum(sample.count for sample in samples)
    if count <= 0:
        return None
    match statistic.kind:
        case "SampleCount":
            return count
        case "Sum":
            return sum(sample.sum for sample in samples)
        case "Average":
            return sum(sample.sum for sample in samples) / count
        case "Minimum":
            return min(sample.minimum for sample in samples)
        case "Maximum":
            return max(sample.maximum for sample in samples)
    if any(not sample.raw or sample.minimum < 0 for sample in samples):
        return None
    ordered = sorted((s.minimum, s.count) for s in samples if s.count > 0)
    if statistic.kind == "p":
        return _percentile(ordered, count, statistic.high or 0.0)
    if statistic.kind == "wm":
        return _winsorized(statistic, ordered, count)
    kept = _kept(statistic, ordered, count)
    kept_count = sum(weight for _, weight in kept)
    if statistic.kind == "pr":
        return 100 * kept_count / count
    if statistic.kind == "tc":
        return kept_count
    kept_sum = sum(value * weight for value, weight in kept)
    if statistic.kind == "ts":
        return kept_sum
    return kept_sum / kept_count if kept_count else None


Weighted = list[tuple[float, float]]


def _percentile(ordered: Weighted, count: float, percent: float) -> float:
    rank = max(1.0, math.ceil(count * percent / 100 - 1e-9))
    passed = 0.0
    for value, weight in ordered:
        passed += weight
        if passed >= rank:
            return value
    return ordered[-1][0]


def _kept(statistic: Statistic, ordered: Weighted, count: float) -> Weighted:
    """Give what lies within the bounds: above the lower one, up to the upper one."""
    if not statistic.percent:
        low = -math.inf if statistic.low is None else statistic.low
        high = math.inf if statistic.high is None else statistic.high
        return [(value, weight) for value, weight in ordered if low < value <= high]
    first = math.floor(count * (statistic.low or 0.0) / 100 + 1e-9)
    last = math.ceil(count * (100.0 if statistic.high is None else statistic.high) / 100 - 1e-9)
    kept, passed = [], 0.0
    for value, weight in ordered:
        inside = min(passed + weight, last) - max(passed, first)
        if inside > 0:
            kept.append((value, inside))
        passed += weight
    return kept


def _winsorized(statistic: Statistic, ordered: Weighted, count: float) -> float:
    def bound(stated: float | None, without: float) -> float:
        if stated is None:
            return without
        return _percentile(ordered, count, stated) if statistic.percent else stated

    low, high = bound(statistic.low, -math.inf), bound(statistic.high, math.inf)
    return sum(min(max(value, low), high) * weight for value, weight in ordered) / count


def samples_wanted(statistic: Statistic) -> float:
    """Give how many samples make a percentile significant; 0 for other statistics.

    Source: CloudWatch user guide, "Percentile-based alarms and low data samples": 10/(1-p) from
    p50 on, 10/p below.
    """
    if statistic.kind != "p" or statistic.high is None or not 0 < statistic.high < 100:
        return 0.0
    share = statistic.high / 100
    return 10 / (1 - share) if share >= 0.5 else 10 / share


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
