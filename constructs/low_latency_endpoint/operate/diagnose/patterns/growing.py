"""Latency that creeps upward while the load stays the same: leaks, caches, fragmentation."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from ....account.metrics import Series, median
from ....report.numbers import milliseconds, readable
from ..findings import MONITORING, Evidence, Remedy, kind
from ..slow_container import workers_stated_too_few
from ..view import PERIODS, WARMING, VariantView, runs
from .trend import Creep, creep, kendall
from .yardstick import Judged, Pattern, all_slow, hit_words, judged, kept, requests

GROWING = kind(
    "LLD133",
    "Latency grows while the load stays the same",
    "latency at least doubles in many steps, with load per instance within 25 %",
    MONITORING,
)

#: How much the load may differ between the first and the last third.
_FLAT = 1.25
#: The same of a load that goes up and down, without a trend: Kendall's tau at most.
_WAVES, _WAVE = 1.6, 0.3
#: Share of the limit from which growth that is still within it is worth a word.
_NEAR = 0.5


def growing(view: VariantView) -> Iterator[Pattern]:
    """At most one finding, of the first judged statistic that creeps."""
    since = max(
        (each.done + WARMING for each in view.measurements.deployments),
        default=view.measurements.start,
    )
    for each in judged(view):
        for begin in dict.fromkeys((view.measurements.start, since)):
            series = each.series.between(begin, view.measurements.end)
            found = creep([series.points[time] for time in series.times])
            if found is None:
                continue
            times = series.times[found.first : found.last + 1]
            if _load_differs(view, times):
                continue
            if found.high < _NEAR * each.limit:
                continue
            if workers_stated_too_few(view, times[: len(times) // 3]):
                continue  # the queue grows, and did from the beginning
            yield _pattern(view, each, found, times)
            return


def _load_differs(view: VariantView, times: list[datetime]) -> bool:
    load = view.load or requests(view)
    change = _change(load, times)
    if change is None:
        return True
    # A load that goes up and down may end higher than it began, and still not be what grows.
    known = [load.points[time] for time in times if time in load.points]
    wave = abs(kendall(known[:: max(1, len(known) // 50)])) <= _WAVE
    return not 1 / _FLAT <= change <= _FLAT and not (wave and 1 / _WAVES <= change <= _WAVES)


def _slow_with_it(view: VariantView, times: list[datetime]) -> list[datetime]:
    """Slow periods of the growth, and those right before and after it at the same load."""
    slow = all_slow(view)
    load = view.load or requests(view)
    usual = load.only(times).median or 0
    near = [
        (first, last)
        for first, last in runs(slow, PERIODS * view.period)
        if first <= times[-1] + PERIODS * view.period and last >= times[0]
    ]
    return [
        time
        for time in slow
        if any(first <= time <= last for first, last in near)
        and (times[0] <= time <= times[-1] or load.points.get(time, 0) <= _FLAT * usual)
    ]


def _change(series: Series, times: list[datetime]) -> float | None:
    """The last third over the first."""
    known = [series.points[time] for time in times if time in series.points]
    third = len(known) // 3
    first, last = median(known[:third]), median(known[-third:]) if third else None
    return last / first if first and last is not None else None


def _pattern(view: VariantView, each: Judged, found: Creep, times: list[datetime]) -> Pattern:
    slow = _slow_with_it(view, times)
    hours = (times[-1] - times[0] + view.period) / timedelta(hours=1)
    length = f"{readable(hours, 2)} h" if hours >= 2 else f"{60 * hours:.0f} min"
    others = []
    for name, metric in (("CPU", "CPUUtilization"), ("memory", "MemoryUtilization")):
        series = view.get(metric, "Average")
        known = [series.points[t] for t in times if t in series.points]
        third = len(known) // 3
        if third:
            first, last = median(known[:third]), median(known[-third:])
            others.append(f"{name} from {first:.0f} to {last:.0f} %")
    change = _change(view.load or requests(view), times)
    memory = _change(view.get("MemoryUtilization", "Average"), times)
    hit = f"; {hit_words(view, slow)}" if slow else ""
    return Pattern(
        view.finding(
            GROWING,
            "high" if each.stated else "medium",
            ("patterns over time", "grows at the same load"),
            f"ModelLatency {each.statistic} grew from {milliseconds(found.low)} to "
            f"{milliseconds(found.high)} in {length}, {found.high / found.low:.1f} times; it "
            f"rises in {100 * (1 + found.tau) / 2:.0f} % of all pairs of stretches",
            Evidence(
                f"load per instance at the end {change:.2f} times that at the beginning; "
                + ", ".join(others or ["no utilization published"])
                + hit,
                times[0],
                max([*slow, times[-1]]) + view.period,
            ),
            times=times,
            remedies=[
                Remedy(
                    "containers[].image",
                    "the version before, if this one began to grow with its deployment",
                ),
                Remedy(
                    "containers[].environment",
                    "limits of caches and queues; the server's restart of a worker after so many "
                    "requests",
                ),
            ],
            besides=(
                "New instances begin afresh: deploy the same configuration again for the time "
                "being. "
                + (
                    "Memory grows too: a leak. "
                    if memory and memory > _FLAT
                    else "Memory does not grow: look for a list, table, log or number of "
                    "connections that does. "
                )
                + "A larger or faster type grows as well."
            ),
            risk=not slow or kept(view, slow),
        ),
        frozenset(slow),
    )
