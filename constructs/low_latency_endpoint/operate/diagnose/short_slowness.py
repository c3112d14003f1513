"""Latency that was above its limit for a shorter time than a finding takes: a note beside "healthy"."""

from __future__ import annotations

from ...report.numbers import milliseconds
from .cold_starts import after_starts
from .starts import within_minutes
from .view import SlowPeriods, VariantView


def short_slowness(view: VariantView) -> str:
    """The latency that was above its limit in most periods, and whether a start explains it; or nothing."""
    above = [*above_limits(view, "ModelLatency"), *above_limits(view, "OverheadLatency")]
    if not above:
        return ""
    late = max(above, key=lambda periods: len(periods.values))
    time, worst = late.worst
    words = (
        f"{view.variant.name}: {late.metric} {late.statistic} was above {milliseconds(late.threshold)} in "
        f"{len(late.values)} of {late.judged} periods, at worst {milliseconds(worst)} at "
        f"{view.measurements.clock(time)}: too short for a finding."
    )
    starts = after_starts(view, late.values.times)
    if not starts:
        return words
    return (
        f"{words} It was {within_minutes(view, starts)}: a cold start. Requests that are sent before "
        "callers send theirs prevent it: warm_up in the settings file."
    )


def above_limits(view: VariantView, metric: str) -> list[SlowPeriods]:
    """The periods in which a metric was above its limits, for however short a time."""
    above = []
    for (name, statistic), limit in view.variant.thresholds.items():
        series = view.get(name, statistic).without(view.explained)
        late = series.only([time for time, value in series.points.items() if value > limit.value])
        if name == metric and late:
            above.append(SlowPeriods(name, statistic, limit.value, limit.source, late, len(series)))
    return above
