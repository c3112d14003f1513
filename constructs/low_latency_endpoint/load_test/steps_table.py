"""A load test as CSV: one line for each step."""

from __future__ import annotations

import csv
import io
import math
from datetime import UTC, datetime
from typing import Any

from .latencies import PERCENTS, LatencyHistogram
from .measured_steps import MeasuredStep
from .result_file import LoadTestReport

__all__ = ["steps_csv"]

_COLUMNS = (
    "step", "purpose", "started_at", "seconds", "offered_tps", "users", "sent", "completed",
    "failed", "tps", "outcome", *(f"p{percent:g}_ms" for percent in PERCENTS), "mean_ms",
    "max_ms", "samples", "samples_beyond_p99", "first_byte_p50_ms", "first_byte_p99_ms",
    "service_p50_ms", "service_p99_ms", "send_lag_p99_ms", "client_cpu_share",
    "generator_us_per_request", "client_bound", "warnings", "model_latency_p99_ms",
    "overhead_latency_mean_ms", "cpu_percent", "gpu_percent", "invocations_per_instance_minute",
    "shared_minutes",
)


def steps_csv(report: LoadTestReport) -> str:
    """One line for each step."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for each in report.run.steps:
        writer.writerow({name: _cell(value) for name, value in _row(report, each).items()})
    return text.getvalue()


def _row(report: LoadTestReport, each: MeasuredStep) -> dict[str, Any]:
    result = each.result
    window = report.metrics.of(result)
    latencies = result.latency.quantiles(percent / 100 for percent in PERCENTS)
    service = result.service.quantiles((0.5, 0.99))
    first_byte = (result.first_byte or LatencyHistogram()).quantiles((0.5, 0.99))
    beyond = {one.percent: one.samples_beyond for one in result.latency.percentiles()}
    return {
        "step": result.step.name, "purpose": each.purpose,
        "started_at": datetime.fromtimestamp(result.started_at, UTC).isoformat(),
        "seconds": result.seconds, "offered_tps": each.offered, "users": result.step.users,
        "sent": result.sent, "completed": result.completed, "failed": result.failed,
        "tps": result.rate, "outcome": each.judgement.outcome,
        **{f"p{percent:g}_ms": 1000 * value
           for percent, value in zip(PERCENTS, latencies, strict=True)},
        "mean_ms": 1000 * result.latency.mean, "max_ms": 1000 * result.latency.max,
        "samples": result.latency.count, "samples_beyond_p99": beyond.get(99.0),
        "first_byte_p50_ms": 1000 * first_byte[0], "first_byte_p99_ms": 1000 * first_byte[1],
        "service_p50_ms": 1000 * service[0], "service_p99_ms": 1000 * service[1],
        "send_lag_p99_ms": 1000 * result.send_lag.percentile(99),
        "client_cpu_share": result.generator.cpu_share,
        "generator_us_per_request": 1e6 * result.generator.cpu_seconds_per_request,
        "client_bound": "; ".join(result.client_bound), "warnings": "; ".join(result.warnings),
        "model_latency_p99_ms": window.get("ModelLatency.p99"),
        "overhead_latency_mean_ms": window.get("OverheadLatency.Average"),
        "cpu_percent": window.get("CPUUtilization.Average"),
        "gpu_percent": window.get("GPUUtilization.Average"),
        "invocations_per_instance_minute": window.get("InvocationsPerInstance.Sum"),
        "shared_minutes": "yes" if window.shared else "",
    }


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.6g}" if math.isfinite(value) else ""
    return "" if value is None else value
