"""Use of the hardware where nothing else is wrong: no room for a rise in load, or far too much.

:func:`use_of_hardware` is the start. The limits are those of AWS's post on load testing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from ...report.numbers import readable
from . import thresholds as const
from .findings import Finding
from .saturated import SATURATED, reason_of_saturation
from .underused import highest_use, underused
from .view import VariantView, runs


def use_of_hardware(view: VariantView, findings: Sequence[Finding]) -> Iterator[Finding]:
    """At most one risk; ``findings`` are those of the variant, which have their own advice."""
    busy = list(_busy(view, findings))
    yield from busy
    if not busy and not findings:
        yield from underused(view)


def _busy(view: VariantView, findings: Sequence[Finding]) -> Iterator[Finding]:
    """LLD147, with the changes of what keeps the fleet as small as it is."""
    times = _busy_time(view, findings)
    if not times:
        return
    used = view.utilization(times)
    parts = [f"{name} at {value:.0f} %" for name, value in used.items() if _is_high(value)]
    minutes = len(times) * view.period / timedelta(minutes=1)
    seen = view.over(times, f"{', '.join(parts)} of the whole instance for {readable(minutes)} min")
    reason = reason_of_saturation(view, times)
    full = view.within(times).full
    why = (shown for shown in reason.evidence if shown != full)
    yield view.cause("LLD147", seen, *why, first=reason.changes, risk=True)


def _busy_time(view: VariantView, findings: Sequence[Finding]) -> list[datetime]:
    """The longest time of high use in which nothing else was found; empty where it is too short."""
    if view.variant.has_tokens:
        return []  # a GPU that makes tokens is busy whenever it does; its tokens are judged
    if any(SATURATED in finding.path for finding in findings):
        return []  # the same cause, while requests were still in time
    spans = [finding.span for finding in findings if finding.span]
    slow = set(view.slow_times)
    times = [
        time
        for time in highest_use(view).times
        if time not in slow and not any(start <= time < end for start, end in spans)
    ]
    used = highest_use(view).only(times)
    high = [time for time, value in used.points.items() if _is_high(value)]
    stretches = [
        [time for time in high if first <= time <= last]
        for first, last in runs(high, 2 * view.period)
    ]
    longest = max(stretches, key=len, default=[])
    least = const.PERIODS * view.period
    if _may_grow(view, longest):
        least = max(least, 2 * const.SCALING_REACTS)
    return longest if len(longest) * view.period >= least else []


def _is_high(percent: float) -> bool:
    return percent >= const.USED_PERCENT


def _may_grow(view: VariantView, times: list[datetime]) -> bool:
    """Whether scaling may still add instances at these times."""
    scaling = view.variant.scaling
    if scaling is None or scaling.maximum is None or scaling.scale_out_suspended:
        return False
    serving = view.instances.only(times).median or view.variant.current_instances or 0
    return serving < scaling.maximum - 0.5
