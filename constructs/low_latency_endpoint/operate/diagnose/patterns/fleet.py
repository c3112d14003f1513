"""The fleet itself: scaling that goes out and in, and instances that go away at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from ....account.metrics import median
from ....account.scaling import Activity
from ....report.numbers import percent, readable
from .. import thresholds as const
from ..cold_starts import after_starts, cold
from ..findings import Evidence
from ..starts import deployed_near
from ..view import VariantView, runs
from .pattern import MINUTE, Matched, all_slow, hit_words, kept, same_load, share, slower
from .recurring import rhythm

_NOT_ASKED = "scaling did not request it"
_ASKED_UNKNOWN = "whether scaling requested it is unknown"


def flapping(view: VariantView) -> Iterator[Matched]:
    """At most one finding: the starts, and what is slow or fails because of them, are its work."""
    done = [
        a for a in view.variant.activities if a.status == "Successful" and a.capacity is not None
    ]
    done.sort(key=lambda activity: activity.start)
    sizes, turns = _turns(view, done)
    loads = [view.tps.between(t - const.PERIODS * view.period, t).median for _, t in turns]
    came = [each for each in loads if each]
    if len(came) < const.TURNS or max(came) > const.SAME_LOAD * min(came):
        return
    counts, slow = view.instances, all_slow(view)
    fewer = [t for t in slow if counts.points.get(t, 0) < (counts.max or 0) - 0.5]
    if not after_starts(view, slow) and len(fewer) < const.MOST * len(slow):
        slow = []
    failing = view.failing(view.failed)
    of_starts = after_starts(view, failing, view.failed)
    explains = frozenset((*slow, *(failing if of_starts else ())))
    apart = sum((t - earlier) / MINUTE for earlier, t in turns) / len(turns)
    text = (
        f"{len(done)} scaling activities between {min(sizes):.0f} and {max(sizes):.0f} instances, "
        f"{apart:.0f} min apart, at {readable(min(came), 3)} to {readable(max(came), 3)} requests a second"
    )
    finding = view.cause(
        "LLD122",
        f"{text}; {hit_words(view, slow)}" if slow else text,
        times=[done[0].start, done[-1].start],
        risk=not explains or (not failing and kept(view, slow)),
        first=[view.at_least(round(max(sizes)), "this load needs so many instances at all times")],
    )
    yield Matched(finding, explains, errors=True)


def _turns(
    view: VariantView, done: list[Activity]
) -> tuple[list[float], list[tuple[datetime, datetime]]]:
    """The sizes of the fleet, and each turn of scaling, out to in or back, soon after another."""
    before = view.instances.between(view.measurements.start, done[0].start).points if done else {}
    sizes = [
        *([before[max(before)]] if before else []),
        *(activity.capacity or 0 for activity in done),
    ]
    outward = [more > fewer for fewer, more in pairwise(sizes)]
    steps = list(zip(done[-len(outward) :], outward, strict=True)) if outward else []
    turns = [later.start for (_, one), (later, other) in pairwise(steps) if one != other]
    return sizes, [pair for pair in pairwise(turns) if pair[1] - pair[0] <= const.TURNS_APART]


def cold_batches(view: VariantView) -> Iterator[Matched]:
    """At most one finding: batch after batch of new instances, each slow too briefly for an alarm."""
    slow = all_slow(view)
    if view.slow_times or share(view, slow) < const.SHARE_OF_SCATTERED:
        return
    starts, typical = after_starts(view, slow), median(view.requests.points.get(t, 0) for t in slow)
    batches = len(runs(slow, view.period))
    few = (typical or 0) < const.ENOUGH_REQUESTS or batches < const.BATCHES
    if not starts or few or slower(view, slow) < const.SLOWER:
        return
    hit = f"{batches} times, {view.unseen_by_alarms}; "
    finding = cold(view, starts, slow, hit + hit_words(view, slow))
    yield Matched(replace(finding, risk=kept(view, slow)), frozenset(slow))


@dataclass(frozen=True, slots=True)
class Loss:
    """At ``time`` the instances that served fell from ``before`` to ``left``.

    ``until`` is when they were replaced, or when the window ended.
    """

    time: datetime
    until: datetime
    replaced: bool
    before: int
    left: int


def lost_instances(view: VariantView) -> Iterator[Matched]:
    """Losses at the same load that made requests slow, instances full, or answers fail.

    Instances that come back and leave again are one finding, whether in a rhythm or not.
    """
    losses = list(_losses(view))
    if len(losses) >= const.CYCLES:
        yield from _leaving(view, losses)
        return
    for loss in losses:
        explained = _explained(view, loss)
        slow = _consequence(view, loss, explained)
        if slow is not None:
            yield _lost(view, loss, explained, slow)
            view = view.without(explained)


def _explained(view: VariantView, loss: Loss) -> list[datetime]:
    """From the loss until those that took the places are warm."""
    end = min(loss.until + const.WARMING, view.measurements.end)
    return [t for t in view.requests.times if loss.time - view.period <= t <= end]


def _leaving(view: VariantView, losses: list[Loss]) -> Iterator[Matched]:
    """At most one finding: instances that leave and return, if any of it hurt."""
    hurt = [_consequence(view, loss, _explained(view, loss)) for loss in losses]
    if all(slow is None for slow in hurt):
        return
    times = sorted({time for loss in losses for time in _explained(view, loss)})
    slow = sorted(set(all_slow(view)) & set(times))
    back = [(loss.until - loss.time) / MINUTE for loss in losses if loss.replaced]
    most = max(loss.before - loss.left for loss in losses)
    words = f"{most} of {losses[0].before} instances stopped serving {len(losses)} times, "
    words += f"{_how_often(view, losses)}, each time for {median(back) or 0:.0f} min; "
    scaling = view.variant.scaling
    known = scaling is not None and scaling.activities is not None
    words += f"{_NOT_ASKED if known else _ASKED_UNKNOWN}; the load was the same"
    hit = hit_words(view, slow) if slow else f"{percent(share(view, times))} of all requests"
    finding = view.cause(
        "LLD129",
        Evidence(words, losses[0].time, losses[-1].until),
        f"{hit}; {view.utilization_words(times)} since",
        times=times,
        risk=bool(slow) and kept(view, slow),
    )
    yield Matched(finding, frozenset(times), errors=True)


def _how_often(view: VariantView, losses: list[Loss]) -> str:
    """The rhythm of the losses in words, or how irregular they are."""
    start, period = view.measurements.start, view.period
    numbers = [round((time - start) / period) for time in view.instances.times]
    gone = {
        number
        for number in numbers
        if any(loss.time <= start + number * period < loss.until for loss in losses)
    }
    found = rhythm(numbers, sorted(gone))
    shown = ", ".join(view.measurements.clock(loss.time) for loss in losses[:4])
    if found is not None:
        return f"every {readable(found.period * period / MINUTE, 3)} min ({shown} and so on)"
    gaps = [(later.time - one.time) / MINUTE for one, later in pairwise(losses)]
    return f"{min(gaps):.0f} to {max(gaps):.0f} min apart ({shown} and so on)"


def _losses(view: VariantView) -> Iterator[Loss]:
    counts = view.instances
    times = [t for t in counts.times if t not in view.explained]
    index = 3
    while index < len(times) - 1:
        before = [counts.points[t] for t in times[max(0, index - 5) : index]]
        after = [counts.points[t] for t in times[index : index + const.AFTER]]
        count, left = round(median(before) or 0), round(median(after) or 0)
        gone = count - left
        if (
            gone < 1
            or gone < const.PART_LOST * count
            or len(after) < 2
            or times[index] - times[index - 1] > const.AT_ONCE * view.period
            or round(counts.points[times[index]]) > count - 0.5
            or round(counts.points[times[index - 1]]) < count
            or not _load_stays(view, times, index)
            or _meant(view, times[index], left)
        ):
            index += 1
            continue
        back = next(
            (
                n
                for n in range(index + 1, len(times))
                if all(round(counts.points[t]) >= count for t in times[n : n + 2])
            ),
            None,
        )
        last = len(times) - 1 if back is None else back
        yield Loss(times[index], times[last], back is not None, count, left)
        index = last + 1


def _load_stays(view: VariantView, times: list[datetime], index: int) -> bool:
    around = times[max(0, index - const.BEFORE) : index], times[index : index + const.BEFORE]
    return same_load(*(view.requests.only(part).median for part in around))


def _meant(view: VariantView, time: datetime, left: int) -> bool:
    """Whether scaling or a deployment took them away."""
    return deployed_near(view, time, const.OLD_FLEET) or any(
        activity.capacity is not None
        and activity.capacity <= left
        and not activity.failed
        and activity.start <= time + view.period
        and (activity.end or activity.start) >= time - const.LOOK_BACK
        for activity in view.variant.activities
    )


def _consequence(view: VariantView, loss: Loss, explained: list[datetime]) -> list[datetime] | None:
    """Slow or full periods since the loss, and not as many before; ``None`` without."""
    begin, end = loss.time - const.BEFORE * view.period, loss.time - view.period
    before = view.requests.between(begin, end).times
    failing = view.failing(view.get("Invocation5XXErrors", "Sum"))
    slow = set(all_slow(view))
    for bad in (slow, set(view.busy_times), set(failing)):
        since = [t for t in explained if t in bad]
        earlier = [t for t in before if t in bad]
        often = len(since) / len(explained) if explained else 0
        if len(since) >= 3 and len(earlier) <= 0.5 * often * len(before):
            return [t for t in since if t in slow]
    return None


def _lost(
    view: VariantView, loss: Loss, explained: list[datetime], slow: list[datetime]
) -> Matched:
    m, scaling, zone = view.measurements, view.variant.scaling, _zone(view, loss)
    asked = _ASKED_UNKNOWN
    if scaling is not None and scaling.activities is not None:
        asked = _NOT_ASKED
    back = "not replaced by the end of the window"
    if loss.replaced:
        back = f"replaced at {m.clock(loss.until)}"
    words = f"{loss.before - loss.left} of {loss.before} instances stopped serving at "
    words += m.clock(loss.time) + (f", with zone {zone}" if zone else "") + f"; {back}; {asked}"
    span, seconds = const.BEFORE * view.period, view.period.total_seconds()
    was, now = (
        (view.requests.between(begin, begin + span).median or 0) / seconds
        for begin in (loss.time - span, loss.time)
    )
    hit = hit_words(view, slow) if slow else f"{percent(share(view, explained))} of all requests"
    zones = len(view.variant.zones)
    finding = view.cause(
        "LLD135",
        Evidence(words, loss.time, loss.until),
        Evidence(
            f"{readable(was, 3)} requests a second before, {readable(now, 3)} after; "
            f"{view.utilization_words(explained)} since"
        ),
        hit,
        times=explained,
        confidence="high" if zone or (scaling is not None and scaling.activities) else "medium",
        risk=bool(slow) and kept(view, slow),
        now=f"; now {zones}" if zones else "",
    )
    return Matched(finding, frozenset(explained), errors=True)


def _zone(view: VariantView, loss: Loss) -> str:
    """The zone whose requests ended with the instances."""
    since = loss.time + view.period, max(loss.until, loss.time + 4 * view.period)
    periods = max(len(view.instances.between(*since)), 1)
    for name, metrics in view.variant.zones.items():
        if served := metrics.get(("Invocations", "Sum")):
            before = served.between(loss.time - const.BEFORE * view.period, loss.time).median
            if before and served.between(*since).sum <= 0.1 * before * periods:
                return name
    return ""
