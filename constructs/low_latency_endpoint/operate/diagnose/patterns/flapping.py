"""Scaling that goes out and in again and again at the same load."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise

from ....report.numbers import readable
from ..events import MOST, after_starts
from ..findings import SCALING, Remedy, kind
from ..view import PERIODS, VariantView
from .yardstick import Pattern, all_slow, hit_words, kept

FLAPPING = kind(
    "LLD122",
    "Scaling goes out and in again and again",
    "three turns from out to in or back within an hour of each other, with requests within 25 %",
    SCALING,
)
#: Turns that follow another one within an hour: a day has two.
_TURNS, _APART, _FLAT = 2, timedelta(hours=1), 1.25


def flapping(view: VariantView) -> Iterator[Pattern]:
    """At most one finding: the starts, and what is slow or fails because of them, are its work."""
    done = [
        each
        for each in sorted(view.activities, key=lambda activity: activity.start)
        if each.status == "Successful" and each.capacity is not None
    ]
    before = view.instances.between(view.measurements.start, done[0].start).points if done else {}
    sizes = [*([before[max(before)]] if before else []), *(each.capacity or 0 for each in done)]
    outward = [more > fewer for fewer, more in pairwise(sizes)]
    steps = list(zip(done[-len(outward) :], outward, strict=True)) if outward else []
    turns = [later for (_, one), (later, other) in pairwise(steps) if one != other]
    turns = [b for a, b in pairwise(turns) if b.start - a.start <= _APART]
    loads = [view.tps.between(a.start - PERIODS * view.period, a.start).median for a in turns]
    came = [each for each in loads if each]
    if len(came) < _TURNS or max(came) > _FLAT * min(came):
        return
    counts, slow = view.instances, all_slow(view)
    fewer = [t for t in slow if counts.points.get(t, 0) < (counts.max or 0) - 0.5]
    if not after_starts(view, slow) and len(fewer) < MOST * len(slow):
        slow = []
    failing = [t for t, v in view.get("InvocationModelErrors", "Sum").points.items() if v]
    failing += [t for t, v in view.get("Invocation5XXErrors", "Sum").points.items() if v]
    explains = frozenset((*slow, *(failing if after_starts(view, failing) else ())))
    apart = (turns[-1].start - turns[0].start) / (len(turns) - 1) / timedelta(minutes=1)
    text = (
        f"{len(done)} scaling activities between {min(sizes):.0f} and {max(sizes):.0f} instances, "
        f"{apart:.0f} min apart, at {readable(min(came), 3)} to {readable(max(came), 3)} requests a second"
    )
    yield Pattern(
        view.finding(
            FLAPPING,
            "high",
            ("patterns over time", "scaling flaps"),
            f"{text}; {hit_words(view, slow)}" if slow else text,
            times=[done[0].start, done[-1].start],
            remedies=[
                Remedy("instances.min", "what this load needs, at all times", f"{max(sizes):.0f}"),
                Remedy("scaling.scale_in_cooldown", "longer: instances stay", "900s"),
            ],
            besides="Does a second policy or a scheduled action want another number? One instance "
            "more or less moves a small fleet past both alarms of target tracking.",
            risk=not explains or (not failing and kept(view, slow)),
        ),
        explains,
        errors=True,
    )
