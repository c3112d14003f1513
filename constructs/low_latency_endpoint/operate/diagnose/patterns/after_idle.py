"""Slow in the first minutes of traffic after a pause: something went cold while nobody asked."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise

from ..events import after_starts
from ..findings import KNOWLEDGE_CENTER, Evidence, Remedy, kind
from ..view import WARMING, VariantView
from .yardstick import (
    Pattern,
    all_slow,
    hit_words,
    judged,
    kept,
    ratio,
    requests,
    then_and_otherwise,
)

AFTER_IDLE = kind(
    "LLD132",
    "Slow in the first minutes after a pause",
    (
        "slow after 70 % of the pauses of at least 5 minutes and five times the usual distance "
        "between requests, without new instances"
    ),
    KNOWLEDGE_CENTER,
)

#: A pause: so long, and so many times the usual distance between periods with requests.
_PAUSE, _LONGER = timedelta(minutes=5), 5
#: Share of the pauses that must be followed by slow periods.
_MOST = 0.7
#: Of one pause alone so many slow periods, and no more than this share of the others is slow.
_CLEAR, _ELSEWHERE = 2, 0.1
_MORE_LOAD, _SLOWER = 1.25, 1.5
_SHOWN = 3


def after_idle(view: VariantView) -> Iterator[Pattern]:
    """At most one finding: over several pauses, or one clear one."""
    pauses = _pauses(view)
    slow = set(all_slow(view))
    if not pauses or not slow:
        return
    first = {resumed: _first_slow(view, resumed, slow) for _, resumed in pauses}
    cold = {resumed: times for resumed, times in first.items() if times}
    times = sorted(time for each in cold.values() for time in each)
    if not times or after_starts(view, times):
        return
    if len(cold) < _MOST * len(pauses):
        return
    served = [t for t, count in requests(view).points.items() if count > 0]
    near = {t for _, resumed in pauses for t in served if resumed <= t < resumed + 2 * WARMING}
    others = [t for t in served if t not in near]
    elsewhere = sum(t in slow for t in others) / len(others) if others else 1.0
    if len(cold) == 1 and (len(times) < _CLEAR or elsewhere > _ELSEWHERE):
        return
    # By chance slow periods follow a pause as often as they come elsewhere.
    if elsewhere > 0.3 or not others:
        return
    each = judged(view)[0]
    if (ratio(each.series, times) or 0) < _SLOWER:
        return
    load = ratio(view.load or requests(view), times)
    if load is not None and load >= _MORE_LOAD and view.saturation(times):
        return  # a spike, not the pause
    clock = view.measurements.clock
    shown = ", ".join(f"{clock(since)}-{clock(resumed)}" for since, resumed in pauses[:_SHOWN]) + (
        f" and {len(pauses) - _SHOWN} more" if len(pauses) > _SHOWN else ""
    )
    longest = max(len(each) for each in cold.values())
    among = f"after {len(cold)} of {len(pauses)} pauses" if len(pauses) > 1 else "after a pause"
    yield Pattern(
        view.finding(
            AFTER_IDLE,
            "high" if len(cold) > 1 else "medium",
            ("patterns over time", "slow after a pause"),
            f"slow for up to {longest * view.period / timedelta(minutes=1):.0f} min {among} "
            f"without requests ({shown}); slow in {100 * elsewhere:.0f} % of the periods "
            "otherwise",
            Evidence(f"{then_and_otherwise(view, times)}; {hit_words(view, times)}"),
            Evidence(
                f"no new instances then; {view.utilization_words(times)} on "
                f"{view.variant.instance_type}"
            ),
            times=times,
            remedies=[
                Remedy("warm_up.keep_warm", "requests in the pauses keep it warm"),
                Remedy(
                    "containers[].environment",
                    "what is let go when nobody asks: idle workers, connections, caches, models",
                ),
            ],
            besides="Another instance type does not help: with traffic the same instances are fast.",
            risk=kept(view, times),
        ),
        frozenset(times),
    )


def _pauses(view: VariantView) -> list[tuple[datetime, datetime]]:
    """From when to when no request came; the one that the window begins with too."""
    served = sorted(t for t, count in requests(view).points.items() if count > 0)
    if len(served) < 2:
        return []
    gaps = sorted(later - one for one, later in pairwise(served))
    least = max(_PAUSE, _LONGER * gaps[len(gaps) // 2])
    found = [
        (one + view.period, later)
        for one, later in pairwise(served)
        if later - one - view.period >= least
    ]
    if served[0] - view.measurements.start >= least:
        found.insert(0, (view.measurements.start, served[0]))
    # Where CloudWatch lost a stretch, the instances' own metrics are missing too.
    hosts = view.get("CPUUtilization", "Average") or view.get("MemoryUtilization", "Average")
    return [
        (since, until)
        for since, until in found
        if not hosts or len(hosts.between(since, until)) >= 0.5 * ((until - since) / view.period)
    ]


def _first_slow(view: VariantView, resumed: datetime, slow: set[datetime]) -> list[datetime]:
    """Slow periods from the first ones after a pause on, until one is fast for two periods."""
    found: list[datetime] = []
    misses = 0
    served = sorted(t for t in requests(view).points if t >= resumed)
    for time in served:
        if time - resumed > 2 * WARMING:
            break
        if time in slow:
            found.append(time)
            misses = 0
        else:
            misses += 1
        if misses >= 2:
            break
    # Slow for longer than anything takes to warm up: then the pause is not all.
    still = [t for t in served if t > resumed + 2 * WARMING and t in slow]
    if found and still and still[0] - found[-1] <= 2 * view.period and misses < 2:
        return []
    return found
