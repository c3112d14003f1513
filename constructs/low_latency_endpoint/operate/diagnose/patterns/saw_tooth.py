"""Memory that climbs until instances restart, again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from ....account.metrics import Series, median
from ..findings import MONITORING, Evidence, Remedy, kind
from ..view import WARMING, VariantView
from .yardstick import Pattern, all_slow, hit_words, kept, requests

SAW_TOOTH = kind(
    "LLD134",
    "Memory fills up and instances restart, again and again",
    (
        "memory rises by 20 points to at least 80 % and falls within three periods, at least "
        "twice; most times fewer instances serve or the container fails"
    ),
    MONITORING,
)

#: Percent of memory, in the mean of the instances, from which it is nearly full, and how much it
#: must climb and fall: instances fill one after another, so the mean stays below their own.
_NEARLY_FULL, _SWING = 80.0, 20.0
#: A fall is as abrupt as a restart; a climb takes this many times longer.
_ABRUPT, _SLOWER = 3, 2
_TEETH = 2
_MORE_LOAD = 1.25
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Tooth:
    """Memory climbed from ``low`` at ``begin`` to ``high``, and fell at ``fall``."""

    begin: datetime
    fall: datetime
    end: datetime
    low: float
    high: float
    climbed: bool


def saw_tooth(view: VariantView) -> Iterator[Pattern]:
    """At most one finding: several teeth, most of them with what a restart leaves in metrics."""
    memory = _smooth(view.get("MemoryUtilization", "Average"))
    falls = [tooth for tooth in _falls(memory) if not _deployed(view, tooth.fall)]
    teeth = [tooth for tooth in falls if tooth.climbed]
    signs = {tooth: sign for tooth in teeth if (sign := _restarted(view, tooth))}
    if len(teeth) < _TEETH or len(signs) < max(_TEETH, 0.6 * len(teeth)):
        return
    explained = set(_explained(view, falls, memory))
    slow = [time for time in all_slow(view) if time in explained]
    clock = view.measurements.clock
    shown = ", ".join(clock(tooth.fall) for tooth in teeth[-_SHOWN:])
    failed = sum(
        view.get(metric, "Sum").only(explained).sum
        for metric in ("Invocation5XXErrors", "InvocationModelErrors")
    )
    hit = [hit_words(view, slow)] if slow else []
    hit += [f"{failed:,.0f} errors of the container then"] if failed else []
    every = median((later.fall - one.fall) / timedelta(minutes=1) for one, later in pairwise(teeth))
    yield Pattern(
        view.finding(
            SAW_TOOTH,
            "high",
            ("patterns over time", "memory in saw-teeth"),
            Evidence(
                f"memory climbed to {min(tooth.high for tooth in teeth):.0f}-"
                f"{max(tooth.high for tooth in teeth):.0f} % and fell to "
                f"{min(_low_after(memory, tooth) for tooth in teeth):.0f} % at once, "
                f"{len(teeth)} times, some {every:.0f} min apart ({shown})",
                teeth[0].begin,
                teeth[-1].end,
            ),
            Evidence(
                f"in {len(signs)} of them {', '.join(sorted(set(signs.values())))} at the fall: "
                "instances restarted"
            ),
            *(Evidence("; ".join(hit), slow[0], slow[-1] + view.period) for _ in hit[:1] if slow),
            *(Evidence("; ".join(hit)) for _ in hit[:1] if not slow),
            remedies=[
                Remedy(
                    "containers[].environment",
                    "the server's restart of one worker after so many requests, limits of caches, "
                    "until the leak is closed",
                ),
                Remedy(
                    "containers[].image", "the version before, if this one leaks and it did not"
                ),
            ],
            besides=(
                "Look for the leak: the container's log ends without a word where it was killed. "
                "More memory only makes the teeth longer."
            ),
            risk=not failed and (not slow or kept(view, slow)),
        ),
        frozenset(explained),
        errors=True,
    )


def _smooth(series: Series) -> Series:
    """Medians of three: a single period says nothing, and edges stay where they are."""
    times = series.times
    return Series(
        {
            time: median(series.points[t] for t in times[max(n - 1, 0) : n + 2]) or 0.0
            for n, time in enumerate(times)
        }
    )


def _falls(memory: Series) -> list[Tooth]:
    """Abrupt falls from nearly full; with the climb before, where it is in the window."""
    times = memory.times
    found: list[Tooth] = []
    if not times:
        return found
    low = high = 0  # indices of the lowest value since the last fall, and of the highest since it
    for index, time in enumerate(times):
        value = memory.points[time]
        if value > memory.points[times[high]]:
            high = index
        top = memory.points[times[high]]
        # The last period before the fall: it may stay near the top for a while.
        if top - value < _SWING:
            if value < memory.points[times[low]] and index > high:
                low = high = index
            continue
        edge = max(
            n
            for n in range(high, index + 1)
            if memory.points[times[n]] >= top - 0.25 * (top - value)
        )
        bottom = memory.points[times[low]]
        abrupt = index - edge <= _ABRUPT
        climbed = top - bottom >= _SWING and edge - low >= _SLOWER * (index - edge)
        if top >= _NEARLY_FULL and abrupt:
            found.append(Tooth(times[low], times[edge], time, bottom, top, climbed))
        low = high = index
    return found


def _low_after(memory: Series, tooth: Tooth) -> float:
    after = [memory.points[t] for t in memory.times if t >= tooth.end][:3]
    return min(after, default=tooth.low)


def _deployed(view: VariantView, time: datetime) -> bool:
    return any(
        each.time - 2 * view.period <= time <= each.done + WARMING
        for each in view.measurements.deployments
    )


def _restarted(view: VariantView, tooth: Tooth) -> str:
    """What speaks for a restart at the fall: fewer instances, no answers, errors."""
    around = (tooth.fall - 2 * view.period, tooth.end + 5 * view.period)
    counts = view.instances
    before = counts.between(tooth.fall - 15 * view.period, tooth.fall - 2 * view.period).median
    during = counts.between(*around)
    if before is not None and during and min(during.points.values()) <= round(before) - 0.5:
        return "fewer instances served"
    errors = [
        view.get(metric, "Sum").between(*around).sum
        for metric in ("Invocation5XXErrors", "InvocationModelErrors")
    ]
    came = requests(view).between(*around).sum
    if came and max(errors) >= max(5, 0.01 * came):
        return "the container failed"
    usual = requests(view).median or 0
    silent = round((around[1] - around[0]) / view.period) - len(requests(view).between(*around))
    if (
        silent
        and usual
        and len(requests(view)) > 0.8 * len(view.get("MemoryUtilization", "Average"))
    ):
        return "no request was answered"
    return ""


def _explained(view: VariantView, falls: list[Tooth], memory: Series) -> Iterator[datetime]:
    """From the upper three quarters of each climb until new instances are warm."""
    load, usual = view.load, view.load.median or 0
    low = median(_low_after(memory, tooth) for tooth in falls) or 0.0
    high = median(tooth.high for tooth in falls) or 100.0
    near = [(tooth.fall - 2 * view.period, tooth.end + WARMING) for tooth in falls]
    first = view.measurements.start
    if memory.points[memory.times[0]] <= low + 0.25 * (high - low):
        near.append((first, first + WARMING))  # a fall right before the window
    much = low
    for time in requests(view).times:
        much = memory.points.get(time, much)  # a datapoint that is missing is as the one before
        if any(begin <= time <= end for begin, end in near):
            yield time
            continue
        busier = usual and load.points.get(time, 0) >= _MORE_LOAD * usual
        if much >= low + 0.25 * (high - low) and not busier:
            yield time
