"""What a diagnosis found, and where the time of a variant's requests went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from ...account.metrics import MetricSeries, Series
from .events import Event, events
from .findings import Finding
from .measurements import Measurements, VariantReading
from .tokens import FIRST_TOKEN, INTER_TOKEN, TOKEN_TIMES


@dataclass(frozen=True, slots=True)
class BreakdownRow:
    """Means of an instance or zone in ms, weighted by requests; ``share`` 0 to 1."""

    name: str
    requests: float
    share: float | None
    model_average_ms: float | None
    model_p99_ms: float | None
    overhead_average_ms: float | None
    cpu_percent: float | None


def breakdown(of: Mapping[str, MetricSeries]) -> list[BreakdownRow]:
    """Instances or zones of a variant, the slowest first."""
    total = sum(_of(series, "Invocations", "Sum").sum for series in of.values())
    found = []
    for name, series in of.items():
        requests = _of(series, "Invocations", "Sum")
        found.append(
            BreakdownRow(
                name,
                requests.sum,
                requests.sum / total if total else None,
                _of(series, "ModelLatency", "Average").weighted_mean(requests),
                _of(series, "ModelLatency", "p99").weighted_mean(requests),
                _of(series, "OverheadLatency", "Average").weighted_mean(requests),
                _of(series, "CPUUtilization", "Average").mean,
            )
        )
    return sorted(found, key=lambda each: (-(each.model_average_ms or 0), each.name))


def _of(series: MetricSeries, metric: str, statistic: str) -> Series:
    return series.get((metric, statistic), Series())


_STATISTICS = ("p50", "p90", "p99", "Average")
_PARTS = {
    "model": "ModelLatency",
    "overhead": "OverheadLatency",
    "first token": FIRST_TOKEN,
    "between tokens": INTER_TOKEN,
}
_ALARM_FIELDS = ("name", "metric", "statistic", "threshold", "unit", "state")


@dataclass(frozen=True, slots=True)
class Split:
    """Where a variant's time went in ms, weighted by requests; ``worst`` is the worst period's."""

    part: str
    p50: float | None
    p90: float | None
    p99: float | None
    average: float | None
    worst: tuple[datetime, float] | None
    limit: str = ""
    over: bool = False


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was measured, and what it points to."""

    measurements: Measurements
    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        """Whether nothing was found; what is unknown stays unknown."""
        return not self.findings

    @property
    def events(self) -> list[Event]:
        """Deployments, scaling activities and alarms of the window, in order."""
        return events(self.measurements)

    def to_dict(self) -> dict[str, Any]:
        m = self.measurements
        return {
            "endpoint": m.endpoint,
            "region": m.region,
            "status": m.status,
            "start": m.start.isoformat(),
            "end": m.end.isoformat(),
            "period_seconds": int(m.period.total_seconds()),
            "healthy": self.healthy,
            "findings": [finding.to_dict() for finding in self.findings],
            "latency_ms": {v.name: [_split_dict(s) for s in split(m, v)] for v in m.variants},
            "instances": {
                v.name: [asdict(each) for each in breakdown(v.instances)] for v in m.variants
            },
            "zones": {v.name: [asdict(each) for each in breakdown(v.zones)] for v in m.variants},
            "variants": [_variant_dict(v) for v in m.variants],
            "events": [
                {"time": e.time.isoformat(), "kind": e.kind, "text": e.text} for e in self.events
            ],
            "alarms": None
            if m.alarms is None
            else [{name: getattr(alarm, name) for name in _ALARM_FIELDS} for alarm in m.alarms],
            "unknown": [asdict(each) for each in m.unknown],
            "absent": list(m.absent),
        }


def split(measurements: Measurements, variant: VariantReading) -> list[Split]:
    """Client, overhead and model time of a variant, and its tokens' where its server tells them."""
    counts = variant.get("ModelLatency", "SampleCount")
    found = []
    client = measurements.client_latency
    if client:
        p50, p90, p99, average = map(client.get, _STATISTICS)
        found.append(Split("client", p50, p90, p99, average, None))
    for part, metric in _PARTS.items():
        limits = {s: limit for (m, s), limit in variant.thresholds.items() if m == metric}
        of_tokens = metric in TOKEN_TIMES
        wanted = (*_STATISTICS, *(limits if of_tokens else ()))
        means = {s: variant.get(metric, s).weighted_mean(counts) for s in wanted}
        if of_tokens and all(means[s] is None for s in _STATISTICS):
            continue
        p50, p90, p99, average = (means[s] for s in _STATISTICS)
        series = _worst_of(variant, metric, limits)
        found.append(
            Split(
                part,
                p50,
                p90,
                p99,
                average,
                max(series.points.items(), key=lambda item: item[1]) if series else None,
                ", ".join(f"{s} {limit.value:g} ms" for s, limit in limits.items()),
                any((means.get(s) or 0) > limit.value for s, limit in limits.items()),
            )
        )
    return found


def _worst_of(variant: VariantReading, metric: str, limits: Mapping[str, Any]) -> Series:
    for statistic in (*limits, "p99", "Average"):
        series = variant.get(metric, statistic)
        if series:
            return series
    return Series()


def _split_dict(each: Split) -> dict[str, Any]:
    worst = {"time": each.worst[0].isoformat(), "value": each.worst[1]} if each.worst else None
    content = {**asdict(each), "worst": worst, "limit": each.limit or None}
    del content["over"]
    return content


def _variant_dict(variant: VariantReading) -> dict[str, Any]:
    scaling = variant.scaling
    return {
        "name": variant.name,
        "instance_type": variant.instance_type or None,
        "routing": variant.routing,
        "instances": variant.current_instances,
        "scaling": None
        if scaling is None
        else {
            "min": scaling.minimum,
            "max": scaling.maximum,
            "metric": scaling.metric or None,
            "target": scaling.target,
        },
        "requests": variant.get("Invocations", "Sum").sum,
        "series": {
            f"{metric}.{statistic}": {t.isoformat(): series.points[t] for t in series.times}
            for (metric, statistic), series in variant.series.items()
        },
    }
