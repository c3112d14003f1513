"""Reading and rules together: :func:`diagnose` and its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from ...account.metrics import Series
from ...account.sessions import ClientFactory
from .breakdown import breakdown
from .events import Event, events
from .findings import Finding
from .measurements import Measurements, VariantReading
from .reading import read_measurements
from .tokens import FIRST_TOKEN, INTER_TOKEN
from .tree import walk

_ALARM_FIELDS = ("name", "metric", "statistic", "threshold", "unit", "state")


@dataclass(frozen=True, slots=True)
class Split:
    """Where the time of a variant's requests went, each in milliseconds; ``None``: no data.

    Percentiles are means over the window's periods, weighted by requests; ``worst`` is the worst
    period and when that was. CloudWatch has no percentiles of OverheadLatency.
    """

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
        """As JSON-safe data."""
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


def diagnose(
    client: ClientFactory,
    endpoint: str,
    *,
    start: datetime,
    end: datetime,
    now: datetime,
    region: str = "",
    # Milliseconds that callers may wait, by statistic; else of the alarms, else of the plan.
    targets: Mapping[str, float] | None = None,
    client_latency: Mapping[str, float] | None = None,  # milliseconds that callers measured
    progress: Callable[[str], None] = lambda text: None,
) -> Diagnosis:
    """Explain an endpoint's latency and errors in a window: ``LLA101``, ``LLD901``, ``LLA102``."""
    measurements = read_measurements(
        client,
        endpoint,
        start=start,
        end=end,
        now=now,
        region=region,
        targets=targets,
        client_latency=client_latency,
        progress=progress,
    )
    return Diagnosis(measurements, tuple(walk(measurements)))


def split(measurements: Measurements, variant: VariantReading) -> list[Split]:
    """Client, overhead and model time of a variant, and its tokens' where its server tells them."""
    counts = variant.get("ModelLatency", "SampleCount")
    found = []
    client = measurements.client_latency
    if client:
        found.append(
            Split(
                "client",
                client.get("p50"),
                client.get("p90"),
                client.get("p99"),
                client.get("Average"),
                None,
            )
        )
    for part, metric in (("model", "ModelLatency"), ("overhead", "OverheadLatency")):
        means = {
            s: variant.get(metric, s).weighted_mean(counts)
            for s in ("p50", "p90", "p99", "Average")
        }
        limits = {s: limit for (m, s), limit in variant.thresholds.items() if m == metric}
        series = _worst_of(variant, metric, limits)
        worst = max(series.points.items(), key=lambda item: item[1]) if series else None
        over = any((means.get(s) or 0) > limit.value for s, limit in limits.items())
        found.append(
            Split(
                part,
                means["p50"],
                means["p90"],
                means["p99"],
                means["Average"],
                worst,
                ", ".join(f"{s} {limit.value:g} ms" for s, limit in limits.items()),
                over,
            )
        )
    return [*found, *_token_splits(variant, counts)]


def _token_splits(variant: VariantReading, counts: Series) -> Iterator[Split]:
    """What the model's server tells of its tokens."""
    for part, metric in (("first token", FIRST_TOKEN), ("between tokens", INTER_TOKEN)):
        means = {s: variant.get(metric, s).weighted_mean(counts) for s in ("p50", "p90", "p99")}
        if all(value is None for value in means.values()):
            continue
        limits = {s: limit for (m, s), limit in variant.thresholds.items() if m == metric}
        series = _worst_of(variant, metric, limits)
        yield Split(
            part,
            means["p50"],
            means["p90"],
            means["p99"],
            None,
            max(series.points.items(), key=lambda item: item[1]) if series else None,
            ", ".join(f"{s} {limit.value:g} ms" for s, limit in limits.items()),
            any(
                (variant.get(metric, s).weighted_mean(counts) or 0) > limit.value
                for s, limit in limits.items()
            ),
        )


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
