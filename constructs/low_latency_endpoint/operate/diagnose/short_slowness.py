"""Latency that was above its limit for a shorter time than a finding takes: a note beside "healthy"."""

from __future__ import annotations

from ...account.metrics import Series
from ...report.numbers import milliseconds
from .cold_starts import after_starts
from .starts import within_minutes
from .view import VariantView

_LATENCIES = ("ModelLatency", "OverheadLatency")


def short_slowness(view: VariantView) -> str:
    """The latency that was above its limit in most periods, and whether a start explains it; or nothing."""
    rows = []
    for (metric, statistic), limit in view.variant.thresholds.items():
        late = _above(view.get(metric, statistic), limit.value)
        if metric in _LATENCIES and late:
            rows.append((late, f"{metric} {statistic}", limit.value, view.get(metric, statistic)))
    if not rows:
        return ""
    late, name, limit_ms, series = max(rows, key=lambda row: len(row[0]))
    worst = max(late.times, key=lambda time: late.points[time])
    words = (
        f"{view.variant.name}: {name} was above {milliseconds(limit_ms)} in {len(late)} of {len(series)} "
        f"periods, at worst {milliseconds(late.points[worst])} at {view.measurements.clock(worst)}: too "
        "short for a finding."
    )
    starts = after_starts(view, late.times)
    if not starts:
        return words
    return (
        f"{words} It was {within_minutes(view, starts)}: a cold start. Requests that are sent before "
        "callers send theirs prevent it: warm_up in the settings file."
    )


def _above(series: Series, limit: float) -> Series:
    return series.only([time for time, value in series.points.items() if value > limit])
