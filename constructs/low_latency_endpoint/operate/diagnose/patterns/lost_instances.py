"""Part of the fleet gone at once while the load stays: a zone, or a rack, or somebody's hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from ....account.metrics import median
from ....report.numbers import percent, readable
from ..findings import GUIDE, Evidence, Remedy, kind
from ..view import WARMING, VariantView
from .yardstick import Pattern, all_slow, hit_words, kept, requests, share

LOST_INSTANCES = kind(
    "LLD135",
    "Instances went away while the load stayed the same",
    (
        "at least a sixth of the fleet goes at once, with requests within 25 %, without scale-in "
        "or deployment; slow, full or failing only since then"
    ),
    GUIDE + "deployment-best-practices.html",
)

#: The smallest part of a fleet that a zone is: one of six.
_PART = 0.15
#: Periods before and after that are compared, and how much the load may differ.
_BEFORE, _AFTER, _FLAT = 10, 3, 1.25
#: Periods within which it is at once: after a pause nobody knows when they went.
_AT_ONCE = 5
#: Blue/green deployments keep the old fleet for a while: one that they remove is not lost.
_OLD_FLEET = timedelta(hours=1)
_SCALED_IN = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Loss:
    """At ``time`` the instances that served fell from ``before`` to ``left``, until ``until``."""

    time: datetime
    until: datetime
    before: int
    left: int


def lost_instances(view: VariantView) -> Iterator[Pattern]:
    """Each loss that made requests slow, instances full, or answers fail."""
    for loss in _losses(view):
        end = min(loss.until + WARMING, view.measurements.end)
        explained = [t for t in requests(view).times if loss.time - view.period <= t <= end]
        slow = _consequence(view, loss, explained)
        if slow is None:
            continue
        yield _pattern(view, loss, explained, slow)
        view = view.without(explained)


def _losses(view: VariantView) -> Iterator[Loss]:
    counts = view.instances
    times = [t for t in counts.times if t not in view.explained]
    index = 3
    while index < len(times) - 1:
        before = median(counts.points[t] for t in times[max(0, index - 5) : index])
        after = [counts.points[t] for t in times[index : index + _AFTER]]
        assert before is not None
        count, left = round(before), round(median(after) or 0)
        gone = count - left
        if (
            gone < 1
            or gone < _PART * count
            or len(after) < 2
            or times[index] - times[index - 1] > _AT_ONCE * view.period
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
            len(times) - 1,
        )
        yield Loss(times[index], times[back], count, left)
        index = back + 1


def _load_stays(view: VariantView, times: list[datetime], index: int) -> bool:
    """Whether as many requests came before as after."""
    came = requests(view)
    before = came.only(times[max(0, index - _BEFORE) : index]).median
    after = came.only(times[index : index + _BEFORE]).median
    return bool(before and after and 1 / _FLAT <= after / before <= _FLAT)


def _meant(view: VariantView, time: datetime, left: int) -> bool:
    """Whether scaling or a deployment took them away."""
    scaled = any(
        each.capacity is not None
        and each.capacity <= left
        and not each.failed
        and each.start <= time + view.period
        and (each.end or each.start) >= time - _SCALED_IN
        for each in view.activities
    )
    return scaled or any(
        each.time - 2 * view.period <= time <= each.done + _OLD_FLEET
        for each in view.measurements.deployments
    )


def _consequence(view: VariantView, loss: Loss, explained: list[datetime]) -> list[datetime] | None:
    """Slow or full periods since the loss, and not as many before; ``None`` without."""
    before = [
        t
        for t in requests(view).times
        if loss.time - _BEFORE * view.period <= t < loss.time - view.period
    ]
    errors = view.get("Invocation5XXErrors", "Sum")
    failing = [
        t for t, v in errors.points.items() if v >= 0.01 * requests(view).points.get(t, 0) > 0
    ]
    slow = set(all_slow(view))
    for bad in (slow, set(view.busy_times), set(failing)):
        since = [t for t in explained if t in bad]
        earlier = [t for t in before if t in bad]
        often = len(since) / len(explained) if explained else 0
        if len(since) >= 3 and len(earlier) <= 0.5 * often * len(before):
            return [t for t in since if t in slow]
    return None


def _pattern(
    view: VariantView, loss: Loss, explained: list[datetime], slow: list[datetime]
) -> Pattern:
    clock = view.measurements.clock
    zone = _zone(view, loss)
    came = requests(view)
    seconds = view.period.total_seconds()
    was = came.between(loss.time - _BEFORE * view.period, loss.time).median or 0
    now = came.between(loss.time, loss.time + _BEFORE * view.period).median or 0
    gone = loss.before - loss.left
    scaling = view.variant.scaling
    asked = (
        "scaling asked for no fewer"
        if scaling is not None and scaling.activities is not None
        else "whether scaling asked for it is unknown"
    )
    back = (
        f"back at {clock(loss.until)}"
        if loss.until < explained[-1] or loss.until < view.measurements.end - 2 * view.period
        else "not back at the end of the window"
    )
    evidence = [
        Evidence(
            f"{gone} of {loss.before} instances stopped serving at {clock(loss.time)}"
            + (f", with zone {zone}" if zone else "")
            + f"; {back}; {asked}",
            loss.time,
            loss.until,
        ),
        Evidence(
            f"{readable(was / seconds, 3)} requests a second before, {readable(now / seconds, 3)} after; "
            f"{view.utilization_words(explained)} since"
        ),
    ]
    hit = hit_words(view, slow) if slow else f"{percent(share(view, explained))} of all requests"
    evidence.append(view.over(explained, hit))
    zones = len(view.variant.zones)
    return Pattern(
        view.finding(
            LOST_INSTANCES,
            "high" if zone or (scaling is not None and scaling.activities) else "medium",
            ("patterns over time", "instances lost"),
            *evidence,
            remedies=[
                Remedy(
                    "client_zones.ids",
                    "stack-level: if it was a zone: with one more, each takes a smaller part along"
                    + (f"; now {zones}" if zones else ""),
                ),
                Remedy(
                    "instances.min",
                    "only if the loss of a zone must not be felt: what it leaves has to hold the "
                    "load",
                ),
            ],
            besides=(
                "See AWS Health for the zone and the endpoint's events for who changed its "
                "capacity. Faster scaling would not have helped: the load did not change."
            ),
            risk=bool(slow) and kept(view, slow),
        ),
        frozenset(explained),
        errors=True,
    )


def _zone(view: VariantView, loss: Loss) -> str:
    """The zone whose requests ended with the instances."""
    for name, metrics in view.variant.zones.items():
        served = metrics.get(("Invocations", "Sum"))
        if served is None:
            continue
        before = served.between(loss.time - _BEFORE * view.period, loss.time).median
        after = served.between(
            loss.time + view.period, max(loss.until, loss.time + 4 * view.period)
        )
        if before and after.sum <= 0.1 * before * max(
            len(
                view.instances.between(
                    loss.time + view.period, max(loss.until, loss.time + 4 * view.period)
                )
            ),
            1,
        ):
            return name
    return ""
