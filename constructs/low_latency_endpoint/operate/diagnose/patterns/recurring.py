"""Slow again and again: at regular intervals, after pauses, or in single periods."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from statistics import linear_regression

from ....account.metrics import median
from ....report.numbers import readable
from .. import thresholds as const
from ..cold_starts import after_starts
from ..findings import Evidence
from ..thresholds import BURSTS_EXPLAINED, CYCLES, KEPT, SIGNIFICANT
from ..view import VariantView, runs
from .pattern import (
    CONTAINER_ERRORS,
    MINUTE,
    Judged,
    Matched,
    all_slow,
    hit_words,
    judged,
    kept,
    load_then,
    load_words,
    ratio,
    share,
    slower,
    then_and_otherwise,
)


def periodic(view: VariantView) -> Iterator[Matched]:
    """At most one rhythm, the most significant of any judged statistic: of a job, or of callers."""
    found = [(rhythm, each) for each in judged(view) if (rhythm := _rhythm(view, each)) is not None]
    if not found:
        return
    rhythm, each = min(found, key=lambda pair: pair[0].chance)
    times = sorted(view.measurements.start + n * view.period for n in rhythm.bins)
    load = load_then(view, times)
    bursts = load is not None and load >= const.SAME_LOAD
    if (
        after_starts(view, times)  # new instances come in a rhythm: they are the cause
        # The curve of a day, say: the instances and their scaling are the cause.
        or (bursts and len(rhythm.bins) / rhythm.hits > const.PERIODS)
        or (ratio(each.series, times) or 0) < const.SLOWER
    ):
        return
    onsets = sorted(set(times) - {time + view.period for time in times})
    shown = ", ".join(map(view.measurements.clock, onsets[:4]))
    minutes = rhythm.period * view.period / MINUTE
    every = f"{readable(minutes, 3)} min" if minutes < 120 else f"{readable(minutes / 60, 3)} h"
    chance = (
        "in less than one of a million windows"
        if rhythm.chance < 1e-6
        else f"in at most one of {1 / rhythm.chance:,.0f} windows"
    )
    utilization = view.utilization_words(times)
    failed = view.get(CONTAINER_ERRORS[1], "Sum") or view.get(CONTAINER_ERRORS[0], "Sum")
    if count := failed.only(times).sum:
        utilization += f", {count:,.0f} errors of the container"
    rest = sorted(set(view.requests.points) - set(times))
    work = load_words(load, ": callers send bursts")
    finding = view.cause(
        "LLD131",
        f"slow every {every} ({shown} and so on), in {rhythm.hits} of {rhythm.cycles} cycles; by chance {chance}",
        Evidence(f"{then_and_otherwise(view, times)}; {hit_words(view, times)}"),
        Evidence(f"{work}; {utilization} then, {view.utilization_words(rest)} otherwise"),
        times=times,
        confidence="high" if each.stated else "medium",
        risk=kept(view, times),
    )
    if bursts:
        spread = "Spread the callers' schedule over time, or queue their bursts: the endpoint can serve the mean load."
        finding = replace(finding, changes=(), besides=spread)
    yield Matched(finding, frozenset(times), errors=True)


def _rhythm(view: VariantView, each: Judged) -> Rhythm | None:
    slow, any_slow = set(each.slow), set(all_slow(view))
    counts, start = view.requests, view.measurements.start
    numbered = {round((time - start) / view.period): time for time in each.series.times}
    made = rhythm(list(numbered), [n for n, time in numbered.items() if time in slow])
    if made is None:
        return None
    typical = sorted(counts.points.get(numbered[n], 0) for n in made.bins)[len(made.bins) // 2]
    if typical < const.ENOUGH_REQUESTS and made.hits < const.SPARSE_CYCLES:
        return None
    # Slow in any statistic belongs to it.
    beside = {n + step for n in made.bins for step in (-1, 1)} if made.period > 3 else set()
    wide = {n for n in beside if numbered.get(n) in any_slow}
    # So does what comes in the rhythm where this statistic has no datapoint.
    first, length = min(made.bins), made.period
    missing = {
        n
        for n in (round((time - start) / view.period) for time in any_slow)
        if n not in numbered and abs((n - first + length / 2) % length - length / 2) <= const.BESIDE
    }
    return replace(made, bins=made.bins | wide | missing)


def after_idle(view: VariantView) -> Iterator[Matched]:
    """At most one finding, over several pauses or a clear one: what went cold while nobody asked."""
    pauses, slow = _pauses(view), set(all_slow(view))
    if not pauses or not slow:
        return
    cold = [times for _, resumed in pauses if (times := _first_slow(view, resumed, slow))]
    times = sorted(time for each in cold for time in each)
    elsewhere = _slow_elsewhere(view, pauses, slow)
    if (
        not times
        or after_starts(view, times)
        or len(cold) < const.KEPT * len(pauses)
        # By chance slow periods follow a pause as often as they come elsewhere.
        or elsewhere > const.BY_CHANCE
        or (
            len(cold) == 1
            and (len(times) < const.SLOW_AFTER_ONE or elsewhere > const.SLOW_ELSEWHERE)
        )
        or slower(view, times) < const.SLOWER_AFTER_PAUSE
        # A spike, not the pause.
        or ((load_then(view, times) or 0) >= const.SAME_LOAD and view.saturation(times))
    ):
        return
    clock = view.measurements.clock
    shown = ", ".join(f"{clock(since)}-{clock(resumed)}" for since, resumed in pauses[:3])
    shown += f" and {len(pauses) - 3} more" if len(pauses) > 3 else ""
    longest = max(map(len, cold)) * view.period / MINUTE
    among = f"after {len(cold)} of {len(pauses)} pauses" if len(pauses) > 1 else "after a pause"
    finding = view.cause(
        "LLD132",
        f"slow for up to {longest:.0f} min {among} without requests ({shown}); "
        f"slow in {100 * elsewhere:.0f} % of the periods otherwise",
        Evidence(f"{then_and_otherwise(view, times)}; {hit_words(view, times)}"),
        Evidence(
            f"no new instances then; {view.utilization_words(times)} on "
            f"{view.variant.instance_type}"
        ),
        times=times,
        confidence="high" if len(cold) > 1 else "medium",
        risk=kept(view, times),
    )
    yield Matched(finding, frozenset(times))


def _slow_elsewhere(
    view: VariantView, pauses: list[tuple[datetime, datetime]], slow: set[datetime]
) -> float:
    """Share of slow periods among periods that follow no pause; 1 if every period follows one."""
    served = [t for t, count in view.requests.points.items() if count > 0]
    others = [t for t in served if not any(r <= t < r + 2 * const.WARMING for _, r in pauses)]
    return sum(t in slow for t in others) / len(others) if others else 1.0


def _pauses(view: VariantView) -> list[tuple[datetime, datetime]]:
    """From when to when no request came; the one that the window begins with too.

    None begins before the endpoint, or the fleet that is asked after it, was there.
    """
    served = sorted(t for t, count in view.requests.points.items() if count > 0)
    if len(served) < 2:
        return []
    gaps = sorted(later - one for one, later in pairwise(served))
    least = max(const.PAUSE, const.LONGER_PAUSE * gaps[len(gaps) // 2])
    begun = [(view.measurements.start, served[0])]
    begun += [(one + view.period, later) for one, later in pairwise(served)]
    begun = [(_since_there(view, since, until), until) for since, until in begun]
    # Where CloudWatch lost a stretch, the instances' own metrics are missing too.
    hosts = view.get("CPUUtilization", "Average") or view.get("MemoryUtilization", "Average")
    return [
        (since, until)
        for since, until in begun
        if until - since >= least
        and (not hosts or len(hosts.between(since, until)) >= 0.5 * ((until - since) / view.period))
    ]


def _since_there(view: VariantView, since: datetime, until: datetime) -> datetime:
    """The end of the last deployment in this time, if there was one; else its start."""
    times = [deployment.done for deployment in view.measurements.deployments]
    request = view.variant.first_request
    if request:
        times.append(request.since)
    return max([since, *(time for time in times if time <= until)])


def _first_slow(view: VariantView, resumed: datetime, slow: set[datetime]) -> list[datetime]:
    """Slow periods from the first ones after a pause on, until one is fast for two periods."""
    found: list[datetime] = []
    misses = 0
    served = sorted(t for t in view.requests.points if t >= resumed)
    for time in served:
        if time - resumed > 2 * const.WARMING or misses >= 2:
            break
        misses = 0 if time in slow else misses + 1
        found += [time] if time in slow else []
    # Slow for longer than anything takes to warm up: then the pause is not all.
    still = [t for t in served if t > resumed + 2 * const.WARMING and t in slow]
    if found and still and still[0] - found[-1] <= 2 * view.period and misses < 2:
        return []
    return found


def scattered(view: VariantView) -> Iterator[Matched]:
    """Slow periods that are too far apart for alarms, and hit many requests."""
    slow = all_slow(view)
    apart = runs(slow, view.period)
    typical = median(view.requests.points.get(time, 0) for time in slow) or 0
    if (
        view.slow_times
        or len(apart) < const.PERIODS
        or typical < const.ENOUGH_REQUESTS
        or share(view, slow) < const.SHARE_OF_SCATTERED
        or after_starts(view, slow)
        or slower(view, slow) < const.SLOWER
    ):
        return
    gaps = [(later[0] - one[0]) / MINUTE for one, later in pairwise(apart)]
    work = load_words(load_then(view, slow))
    finding = view.cause(
        "LLD136",
        f"slow {len(apart)} times, for {readable(len(slow) / len(apart), 2)} periods on average, "
        f"{min(gaps):.0f} to {max(gaps):.0f} min apart, at irregular intervals; "
        f"{view.unseen_by_alarms}",
        Evidence(f"{then_and_otherwise(view, slow)}; {hit_words(view, slow)}"),
        Evidence(f"{work}; {view.utilization_words(slow)} then"),
        times=slow,
        risk=kept(view, slow),
    )
    yield Matched(finding, frozenset(slow))


_CANDIDATES, _ANCHORS = 10, 4
#: Ways of looking, by the gap that joins slow bins into a burst and the tolerance of a slot; the
#: plainest has half of the chance that all may have together.
_WAYS = {(1, 0): 2, (1, 1): 6, (2, 0): 6, (2, 1): 6}


# Slow periods next to each other are a burst; a rhythm is a line of slots, one in each cycle. Had a
# burst no rhythm, it would begin in a slot as often as in any other period, so hits are binomial. The
# first and the last burst fix the line and prove nothing; the chance counts every line that was tried.


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Slow in ``hits`` of ``cycles`` cycles of ``period`` bins; ``bins`` are the slow ones of it."""

    period: float
    cycles: int
    hits: int
    chance: float
    bins: frozenset[int]


def rhythm(observed: Sequence[int], slow: Sequence[int]) -> Rhythm | None:
    """The most significant rhythm of the slow bins among those that have data.

    >>> found = rhythm(range(60), [3, 13, 23, 33, 43, 53])
    >>> found.period, found.hits, found.cycles
    (10.0, 6, 6)
    >>> rhythm(range(60), [3, 9, 23, 31, 47, 53]) is None
    True
    >>> rhythm(range(60), range(20, 60)) is None
    True
    """
    if len(slow) < CYCLES or len(slow) > 0.7 * len(observed):
        return None
    there = frozenset(observed)
    found = [made for gap in (1, 2) for made in _lines(there, slow, gap)]
    found = [made for made in found if made.chance <= SIGNIFICANT]
    return min(found, key=lambda made: (made.chance, made.period), default=None)


def _lines(there: frozenset[int], slow: Sequence[int], gap: int) -> Iterator[Rhythm]:
    bursts = _bursts(slow, gap)
    onsets = [burst[0] for burst in bursts]
    if len(onsets) < CYCLES:
        return
    width = int(statistics.median(burst[-1] - burst[0] + 1 for burst in bursts))
    # Distances up to the third next: a burst may be missing, another too many.
    apart = Counter(
        later - one
        for ahead in (1, 2, 3)
        for one, later in zip(onsets, onsets[ahead:], strict=False)
        if later - one > width
    )
    stride = max(1, len(onsets) // _ANCHORS)
    tried: set[tuple[float, float]] = set()
    for distance, _ in apart.most_common(_CANDIDATES):
        for anchor in onsets[::stride]:
            line = _line(onsets, anchor, distance)
            if line is None or line in tried:
                continue
            tried.add(line)
            for slack in (0, 1):
                made = _judged(there, bursts, line, 2 * width + 1, slack, _WAYS[gap, slack])
                if made is not None:
                    yield made


def _bursts(slow: Sequence[int], gap: int) -> list[list[int]]:
    bursts: list[list[int]] = []
    for each in sorted(slow):
        if bursts and each - bursts[-1][-1] <= gap:
            bursts[-1].append(each)
        else:
            bursts.append([each])
    return bursts


def _line(onsets: Sequence[int], anchor: int, distance: int) -> tuple[float, float] | None:
    """Period and phase of the onsets that follow each other from an anchor, by least squares."""
    found = {0: anchor}
    for way in (1, -1):
        period, turn = float(distance), 0
        while True:
            turn += way
            expected = anchor + turn * period
            if not onsets[0] - 1 <= expected <= onsets[-1] + 1:
                break
            at = bisect_left(onsets, expected)
            near = min(onsets[max(at - 1, 0) : at + 1], key=lambda onset: abs(onset - expected))
            if abs(near - expected) <= 1:
                found[turn] = near
                period = (near - anchor) / turn
    cycles = max(found) - min(found) + 1
    if len(found) < max(CYCLES, KEPT * cycles / 2, BURSTS_EXPLAINED * len(onsets) / 2):
        return None
    period, phase = linear_regression(list(found), list(found.values()))
    return round(period, 4), round(phase % period, 4)


def _judged(
    there: frozenset[int],
    bursts: Sequence[Sequence[int]],
    line: tuple[float, float],
    longest: int,
    slack: int,
    ways: int,
) -> Rhythm | None:
    """How unlikely it is that so many slots on a line hold the beginning of a burst."""
    period, phase = line
    width = 1 + 2 * slack
    if period < width + 1:
        return None
    begins = {burst[0]: number for number, burst in enumerate(bursts)}
    long = {each for burst in bursts if len(burst) > longest for each in burst}
    begin, end = bursts[0][0], bursts[-1][-1]
    cycles, hits, hit = 0, 0, set()
    for turn in range(int((begin - phase) / period) - 1, int((end - phase) / period) + 2):
        first = round(phase + turn * period) - slack
        slot = [each for each in range(first, first + width) if each in there]
        if not slot or long.intersection(slot):
            continue  # no data, or slow for longer and for another reason
        inside = {begins[each] for each in slot if each in begins}
        cycles += 1
        hits += bool(inside)
        hit |= inside
    if (
        cycles < CYCLES
        or hits < max(CYCLES, KEPT * cycles)
        or len(hit) < BURSTS_EXPLAINED * len(bursts)
    ):
        return None
    places = end - begin + 1 - sum(map(len, bursts)) + len(bursts)
    by_chance = min(1.0, width * (len(bursts) - 2) / max(places, 1))
    counts = int(len(bursts) / KEPT) - math.ceil(max(CYCLES, BURSTS_EXPLAINED * len(bursts))) + 1
    ends = max(1.0, len(bursts) / cycles) ** 2
    chance = _tail(cycles - 2, by_chance, hits - 2) * max(counts, 1) * ends * ways
    bins = frozenset(burst for number in hit for burst in bursts[number])
    return Rhythm(period, cycles, hits, chance, bins)


def _tail(draws: int, share: float, least: int) -> float:
    """Chance of at least ``least`` hits in so many draws, each of this chance.

    >>> _tail(2, 0.5, 1), round(_tail(12, 0.1, 12), 15)
    (0.75, 1e-12)
    """
    return sum(
        math.comb(draws, k) * share**k * (1 - share) ** (draws - k) for k in range(least, draws + 1)
    )
