"""The same split for each instance and each zone of a variant, where CloudWatch has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...account.metrics import MetricSeries, Series


@dataclass(frozen=True, slots=True)
class BreakdownRow:
    """Where the time of one instance's or zone's requests went; ``None``: no data.

    Latencies are milliseconds, means over the window's periods, weighted by requests; ``share`` is
    that of the requests, from 0 to 1; ``cpu_percent`` is of the whole instance.
    """

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

        def mean(
            metric: str, statistic: str, series: MetricSeries = series, requests: Series = requests
        ) -> float | None:
            return _of(series, metric, statistic).weighted_mean(requests)

        found.append(
            BreakdownRow(
                name,
                requests.sum,
                requests.sum / total if total else None,
                mean("ModelLatency", "Average"),
                mean("ModelLatency", "p99"),
                mean("OverheadLatency", "Average"),
                _of(series, "CPUUtilization", "Average").mean,
            )
        )
    return sorted(found, key=lambda each: (-(each.model_average_ms or 0), each.name))


def _of(series: MetricSeries, metric: str, statistic: str) -> Series:
    return series.get((metric, statistic), Series())
