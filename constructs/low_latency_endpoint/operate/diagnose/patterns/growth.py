"""What grows until something gives: latency at the same load, and memory until instances restart."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import combinations, pairwise

from ....account.metrics import Series, median
from ....report.numbers import milliseconds, readable
from .. import thresholds as const
from ..findings import Evidence
from ..slow_container import workers_stated_too_few
from ..starts import deployed_near
from ..thresholds import BLOCK, BLOCKS, DOUBLED, LEAST_BLOCKS, STEP, TAU
from ..view import VariantView, runs
from .pattern import CONTAINER_ERRORS, MINUTE, Judged, Matched, all_slow, hit_words, judged, kept


def growing(view: VariantView) -> Iterator[Matched]:
    """At most one finding, of the first judged statistic that creeps: leaks, caches, fragmentation."""
    window = view.measurements.start, view.measurements.end
    since = max((d.done + const.WARMING for d in view.measurements.deployments), default=window[0])
    for each in judged(view):
        for begin in dict.fromkeys((window[0], since)):
            series = each.series.without(view.refusing).between(begin, window[1])
            found = creep([series.points[time] for time in series.times])
            if found is None or found.high < const.NEAR_LIMIT * each.limit:
                continue
            times = series.times[found.first : found.last + 1]
            # Where workers are too few, the queue grows, and did from the beginning.
            if not _load_differs(view, times) and not workers_stated_too_few(
                view, times[: len(times) // 3]
            ):
                yield _growing(view, each, found, times)
                return


def _load_differs(view: VariantView, times: list[datetime]) -> bool:
    load = view.load or view.requests
    change = _change(load, times)
    if change is None:
        return True
    # A load that goes up and down may end higher than it began, and still not be what grows.
    known = [load.points[time] for time in times if time in load.points]
    wave = abs(kendall(known[:: max(1, len(known) // 50)])) <= const.NO_TREND
    most = const.WAVES if wave else const.SAME_LOAD
    return not 1 / most <= change <= most


def _slow_with_it(view: VariantView, times: list[datetime]) -> list[datetime]:
    """Slow periods during the growth and right before and after it, at the same load."""
    slow, load, gap = all_slow(view), view.load or view.requests, const.PERIODS * view.period
    usual = load.only(times).median or 0
    near = [
        (first, last)
        for first, last in runs(slow, gap)
        if first <= times[-1] + gap and last >= times[0]
    ]
    return [
        time
        for time in slow
        if any(first <= time <= last for first, last in near)
        and (times[0] <= time <= times[-1] or load.points.get(time, 0) <= const.SAME_LOAD * usual)
    ]


def _thirds(series: Series, times: list[datetime]) -> tuple[float, float] | None:
    """Medians of the first and the last third."""
    known = [series.points[time] for time in times if time in series.points]
    third = len(known) // 3
    first, last = median(known[:third]), median(known[-third:]) if third else None
    return None if first is None or last is None else (first, last)


def _change(series: Series, times: list[datetime]) -> float | None:
    ends = _thirds(series, times)
    return ends[1] / ends[0] if ends and ends[0] else None


def _growing(view: VariantView, each: Judged, found: Creep, times: list[datetime]) -> Matched:
    slow = _slow_with_it(view, times)
    hours = (times[-1] - times[0] + view.period) / timedelta(hours=1)
    length = f"{readable(hours, 2)} h" if hours >= 2 else f"{60 * hours:.0f} min"
    used = [
        f"{name} from {ends[0]:.0f} to {ends[1]:.0f} %"
        for name, metric in (("CPU", "CPUUtilization"), ("memory", "MemoryUtilization"))
        if (ends := _thirds(view.get(metric, "Average"), times))
    ]
    change = _change(view.load or view.requests, times)
    beside = f"load per instance at the end {change:.2f} times the load at the beginning; "
    beside += ", ".join(used or ["no utilization published"])
    beside += f"; {hit_words(view, slow)}" if slow else ""
    leaks = (_change(view.get("MemoryUtilization", "Average"), times) or 0) > const.SAME_LOAD
    finding = view.cause(
        "LLD133",
        f"ModelLatency {each.statistic} grew from {milliseconds(found.low)} to "
        f"{milliseconds(found.high)} in {length}, {found.high / found.low:.1f} times; it "
        f"rises in {100 * (1 + found.tau) / 2:.0f} % of all pairs of stretches",
        Evidence(beside, times[0], max([*slow, times[-1]]) + view.period),
        times=times,
        confidence="high" if each.stated else "medium",
        risk=not slow or kept(view, slow),
        memory="Memory grows too: a leak."
        if leaks
        else "Memory does not grow: look for a list, table, log or number of connections that grows.",
    )
    return Matched(finding, frozenset(slow))


@dataclass(frozen=True, slots=True)
class Tooth:
    """Memory climbed from ``low`` at ``begin`` to ``high``, and fell at ``fall``."""

    begin: datetime
    fall: datetime
    end: datetime
    low: float
    high: float
    climbed: bool


def saw_tooth(view: VariantView) -> Iterator[Matched]:
    """At most one finding: several teeth, most of them with what a restart leaves in metrics."""
    memory = _smooth(view.get("MemoryUtilization", "Average"))
    falls = [
        tooth for tooth in _falls(memory) if not deployed_near(view, tooth.fall, const.WARMING)
    ]
    teeth = [tooth for tooth in falls if tooth.climbed]
    signs = [sign for tooth in teeth if (sign := _restarted(view, tooth))]
    if len(teeth) < const.TEETH or len(signs) < max(const.TEETH, const.RESTARTS * len(teeth)):
        return
    explained = set(_explained(view, falls, memory))
    slow = [time for time in all_slow(view) if time in explained]
    shown = ", ".join(view.measurements.clock(tooth.fall) for tooth in teeth[-4:])
    failed = sum(view.get(metric, "Sum").only(explained).sum for metric in CONTAINER_ERRORS)
    hit = [hit_words(view, slow)] if slow else []
    hit += [f"{failed:,.0f} errors of the container then"] if failed else []
    span = (slow[0], slow[-1] + view.period) if slow else ()
    every = median((later.fall - one.fall) / MINUTE for one, later in pairwise(teeth))
    highs = [tooth.high for tooth in teeth]
    finding = view.cause(
        "LLD134",
        Evidence(
            f"memory climbed to {min(highs):.0f}-{max(highs):.0f} % and fell to "
            f"{min(_low_after(memory, tooth) for tooth in teeth):.0f} % at once, "
            f"{len(teeth)} times, about {every:.0f} min apart ({shown})",
            teeth[0].begin,
            teeth[-1].end,
        ),
        Evidence(
            f"in {len(signs)} of them {', '.join(sorted(set(signs)))} at the fall: "
            "instances restarted"
        ),
        *([Evidence("; ".join(hit), *span)] if hit else []),
        risk=explained.isdisjoint(view.failing(view.failed)) and (not slow or kept(view, slow)),
    )
    yield Matched(finding, frozenset(explained), errors=True)


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
        if top - value < const.SWING:
            if value < memory.points[times[low]] and index > high:
                low = high = index
            continue
        edge = max(
            n
            for n in range(high, index + 1)
            if memory.points[times[n]] >= top - 0.25 * (top - value)
        )
        bottom = memory.points[times[low]]
        abrupt = index - edge <= const.ABRUPT
        climbed = top - bottom >= const.SWING and edge - low >= const.CLIMB * (index - edge)
        if top >= const.TOOTH_PERCENT and abrupt:
            found.append(Tooth(times[low], times[edge], time, bottom, top, climbed))
        low = high = index
    return found


def _low_after(memory: Series, tooth: Tooth) -> float:
    after = [memory.points[t] for t in memory.times if t >= tooth.end][:3]
    return min(after, default=tooth.low)


def _restarted(view: VariantView, tooth: Tooth) -> str:
    """Evidence of a restart at the fall: fewer instances, no answers, or errors."""
    around = (tooth.fall - 2 * view.period, tooth.end + 5 * view.period)
    counts = view.instances
    before = counts.between(tooth.fall - 15 * view.period, tooth.fall - 2 * view.period).median
    during = counts.between(*around)
    if before is not None and during and min(during.points.values()) <= round(before) - 0.5:
        return "fewer instances served"
    errors = [view.get(metric, "Sum").between(*around).sum for metric in CONTAINER_ERRORS]
    requests, came = view.requests, view.requests.between(*around)
    if came.sum and max(errors) >= max(const.LEAST_ERRORS, const.ERROR_RATE * came.sum):
        return "the container failed"
    silent = round((around[1] - around[0]) / view.period) - len(came)
    steady = len(requests) > 0.8 * len(view.get("MemoryUtilization", "Average"))
    return "no request was answered" if silent and requests.median and steady else ""


def _explained(view: VariantView, falls: list[Tooth], memory: Series) -> Iterator[datetime]:
    """From the upper three quarters of each climb until new instances are warm."""
    load, usual = view.load, view.load.median or 0
    low = median(_low_after(memory, tooth) for tooth in falls) or 0.0
    high = median(tooth.high for tooth in falls) or 100.0
    near = [(tooth.fall - 2 * view.period, tooth.end + const.WARMING) for tooth in falls]
    first = view.measurements.start
    if memory.points[memory.times[0]] <= low + 0.25 * (high - low):
        near.append((first, first + const.WARMING))  # a fall right before the window
    much = low
    for time in view.requests.times:
        much = memory.points.get(time, much)  # a datapoint that is missing is as the one before
        if any(begin <= time <= end for begin, end in near):
            yield time
            continue
        busier = usual and load.points.get(time, 0) >= const.SAME_LOAD * usual
        if much >= low + 0.25 * (high - low) and not busier:
            yield time


#: Quarters of the window that are looked at, from and to: a creep may begin late, and may end.
_PARTS = ((0, 4), (1, 4), (2, 4), (0, 3), (1, 3), (0, 2))


# Mann and Kendall's test and Theil and Sen's slope, on block medians: blocks take out what minutes
# have in common with their neighbours, medians single bad minutes; a step is no creep.


@dataclass(frozen=True, slots=True)
class Creep:
    """From index ``first`` to ``last`` (included) the values grew from ``low`` to ``high``."""

    first: int
    last: int
    low: float
    high: float
    tau: float


def creep(values: Sequence[float]) -> Creep | None:
    """The part of a series that creeps upward most; ``None`` without one.

    >>> found = creep([40 + 4 * n for n in range(60)])
    >>> found.first, found.last, round(found.high / found.low, 1)
    (0, 59, 4.4)
    >>> creep([40] * 30 + [200] * 30) is None  # a step
    True
    """
    best = None
    for begin, end in _PARTS:
        first, last = begin * len(values) // 4, end * len(values) // 4
        found = _creep(values[first:last], first)
        if found and (best is None or found.high / found.low > 1.1 * best.high / best.low):
            best = found
    return best


def _creep(values: Sequence[float], first: int) -> Creep | None:
    count = min(BLOCKS, len(values) // BLOCK)
    if count < LEAST_BLOCKS:
        return None
    edges = [round(n * len(values) / count) for n in range(count + 1)]
    blocks = [statistics.median(values[a:b]) for a, b in pairwise(edges)]
    if min(blocks) <= 0:
        return None
    tau = kendall(blocks)
    logs = [math.log(block) for block in blocks]
    grown = theil_sen(logs) * (count - 1)
    low, high = statistics.median(blocks[:2]), statistics.median(blocks[-2:])
    whole = math.log(high / low)
    steepest = max(later - one for one, later in pairwise(logs))
    if tau < TAU or grown < math.log(DOUBLED) or whole < math.log(DOUBLED):
        return None
    if steepest > STEP * max(logs[-1] - logs[0], whole):
        return None
    return Creep(first, first + len(values) - 1, low, high, tau)


def kendall(values: Sequence[float]) -> float:
    """Kendall's tau of a series with time: 1 when it always rises, -1 when it always falls.

    >>> kendall([1, 2, 3]), kendall([3, 2, 1]), kendall([1, 1, 1])
    (1.0, -1.0, 0.0)
    """
    pairs = list(combinations(values, 2))
    return sum((b > a) - (b < a) for a, b in pairs) / len(pairs)


def theil_sen(values: Sequence[float]) -> float:
    """Median of the slopes between all pairs.

    >>> theil_sen([0, 1, 2, 90, 4])
    1.0
    """
    return statistics.median(
        (later - one) / (j - i) for (i, one), (j, later) in combinations(enumerate(values), 2)
    )
