"""Slow at regular intervals: a job, a collection of garbage, a refresh; or callers that come so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from ....report.numbers import readable
from ..events import after_starts
from ..findings import KNOWLEDGE_CENTER, Evidence, Remedy, kind
from ..view import ENOUGH_REQUESTS, PERIODS, VariantView
from .rhythm import Rhythm, rhythm
from .yardstick import (
    Judged,
    Pattern,
    all_slow,
    hit_words,
    judged,
    kept,
    ratio,
    requests,
    then_and_otherwise,
)

PERIODIC = kind(
    "LLD131",
    "Slow at regular intervals",
    (
        "at least four cycles, 70 % of them slow, twice as slow as otherwise, with a chance of at "
        "most 1 %"
    ),
    KNOWLEDGE_CENTER,
)

#: How much slower than otherwise, and how much more load makes it the load's rhythm.
_SLOWER, _MORE_LOAD = 2.0, 1.25
#: With few requests a percentile is the slowest of them: more cycles are needed.
_SPARSE_CYCLES = 10
_BESIDE = 0.5  # periods from the rhythm's place
_SHOWN = 4


def periodic(view: VariantView) -> Iterator[Pattern]:
    """At most one rhythm: the most significant of any judged statistic."""
    found = [(made, each) for each in judged(view) if (made := _rhythm(view, each)) is not None]
    if not found:
        return
    made, each = min(found, key=lambda pair: pair[0].chance)
    times = sorted(view.measurements.start + n * view.period for n in made.bins)
    if after_starts(view, times):
        return  # new instances come in a rhythm: they are the cause
    load = ratio(view.load or requests(view), times)
    bursts = load is not None and load >= _MORE_LOAD
    width = len(made.bins) / made.hits
    if bursts and width > PERIODS:
        return  # the curve of a day, say: the instances and their scaling are the cause
    if (ratio(each.series, times) or 0) < _SLOWER:
        return
    clock = view.measurements.clock
    shown = ", ".join(clock(time) for time in _onsets(times, view.period)[:_SHOWN])
    utilization = view.utilization_words(times)
    failed = view.get("InvocationModelErrors", "Sum") or view.get("Invocation5XXErrors", "Sum")
    if count := failed.only(times).sum:
        utilization += f", {count:,.0f} errors of the container"
    rest = sorted(set(requests(view).points) - set(times))
    work = (
        f"{load:.1f} times the load then: callers come in bursts"
        if bursts
        else "the load is the same then and otherwise"
    )
    yield Pattern(
        view.finding(
            PERIODIC,
            "high" if each.stated else "medium",
            ("patterns over time", "slow at regular intervals"),
            f"slow every {_words(made.period * view.period)} ({shown} and on), in "
            f"{made.hits} of {made.cycles} cycles; by chance {_chance(made.chance)}",
            Evidence(f"{then_and_otherwise(view, times)}; {hit_words(view, times)}"),
            Evidence(f"{work}; {utilization} then, {view.utilization_words(rest)} otherwise"),
            times=times,
            remedies=[]
            if bursts
            else [
                Remedy(
                    "containers[].environment",
                    "what works at this interval in the container: garbage collection, a "
                    "checkpoint, a cache or model that is read anew, a timer's job",
                )
            ],
            besides=(
                "Spread the callers' schedule over time, or queue their bursts: the endpoint holds "
                "their mean."
                if bursts
                else "Compare the container's log at these times. More or larger instances do the "
                "same work at the same interval."
            ),
            risk=kept(view, times),
        ),
        frozenset(times),
        errors=True,
    )


def _rhythm(view: VariantView, each: Judged) -> Rhythm | None:
    slow, any_slow = set(each.slow), set(all_slow(view))
    counts = requests(view)
    numbered = {
        round((time - view.measurements.start) / view.period): time for time in each.series.times
    }
    made = rhythm(list(numbered), [n for n, time in numbered.items() if time in slow])
    if made is None:
        return None
    typical = sorted(counts.points.get(numbered[n], 0) for n in made.bins)[len(made.bins) // 2]
    if typical < ENOUGH_REQUESTS and made.hits < _SPARSE_CYCLES:
        return None
    # Slow in any statistic belongs to it.
    beside = {n + step for n in made.bins for step in (-1, 1)} if made.period > 3 else set()
    wide = {n for n in beside if numbered.get(n) in any_slow}
    # So does what comes in the rhythm where this statistic has no datapoint.
    start, length = min(made.bins), made.period
    places = (round((time - view.measurements.start) / view.period) for time in any_slow)
    missing = {
        n
        for n in places
        if n not in numbered and abs((n - start + length / 2) % length - length / 2) <= _BESIDE
    }
    return replace(made, bins=made.bins | wide | missing)


def _onsets(times: list[datetime], period: timedelta) -> list[datetime]:
    inside = set(times)
    return [time for time in times if time - period not in inside]


def _words(length: timedelta) -> str:
    minutes = length / timedelta(minutes=1)
    return f"{readable(minutes, 3)} min" if minutes < 120 else f"{readable(minutes / 60, 3)} h"


def _chance(chance: float) -> str:
    return (
        "in less than one of a million windows"
        if chance < 1e-6
        else f"in at most one of {1 / chance:,.0f} windows"
    )
