"""When new instances began to serve, and why: deployments, scaling, first requests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from ...account.scaling import Activity
from .fleets import fleets_of
from .measurements import FirstRequest
from .thresholds import LOOK_BACK, WARMING
from .view import VariantView


@dataclass(frozen=True, slots=True, order=True)
class Start:
    """New instances served from ``first`` on, and until ``last`` more of them came."""

    first: datetime
    last: datetime
    why: str
    new: Literal["instances", "fleet", "endpoint"] = "instances"

    @property
    def deployment(self) -> bool:
        """Whether all instances are new: a deployment's, an update's or a new endpoint's."""
        return self.new != "instances"


def instance_starts(view: VariantView) -> list[Start]:
    """All starts of the window, the earliest first; with why, where a deployment or scaling says it."""
    starts = [*_of_deployments(view), *_of_update(view)]
    told = [(start.first, start.last) for start in starts]
    request = view.variant.first_request
    if request:
        # Instances may join later, though all that are there meet their first requests.
        starts.append(first_asked(request))
    for activity in scale_outs(view):
        # AWS documents no order of its end and the first request: what was seen counts.
        end = activity.end or activity.start
        near = activity.start - view.period, end + WARMING
        seen = [rise.time for rise in view.whole.rises if near[0] <= rise.time <= near[1]]
        first, last = (min(seen), max(seen)) if seen else (activity.start, end)
        starts.append(Start(first, last, f"the scale-out to {activity.capacity} instances"))
        told.append((activity.start, max(last, end)))
    counted = [
        Start(rise.time, rise.time, f"the rise from {rise.few} to {rise.more} instances")
        for rise in view.whole.rises
    ]
    arrivals = sorted(view.whole.arrivals.items(), key=lambda item: item[1])
    seen_first = [
        Start(time, time, f"the start of {name}")
        for name, time in arrivals
        if not (request and request.time <= time <= request.time + WARMING)
    ]
    for start in (*counted, *seen_first):
        if not any(first - WARMING <= start.first <= last + WARMING for first, last in told):
            starts.append(start)
            told.append((start.first, start.last))
    return sorted(starts)


def _of_deployments(view: VariantView) -> Iterator[Start]:
    """Fleets that were deployed, but for one that only its first request dates."""
    for deployment in view.measurements.deployments:
        if not (deployment.first and view.variant.first_request):
            why = f"the deployment of {deployment.configuration}"
            new: Literal["fleet", "endpoint"] = "endpoint" if deployment.first else "fleet"
            yield Start(deployment.time, deployment.done, why, new)


def first_asked(request: FirstRequest) -> Start:
    new: Literal["fleet", "endpoint"] = "fleet" if request.configuration else "endpoint"
    return Start(request.time, request.time, request.words, new)


def _of_update(view: VariantView) -> Iterator[Start]:
    """The new fleet of the update under way: more of its instances come until it ends."""
    update, fleets = view.measurements.update, fleets_of(view.whole)
    if update is None or fleets is None or update.update.rolling_back:
        return
    if max(fleets.since, update.begun or fleets.since) >= view.measurements.start:
        yield Start(fleets.since, view.measurements.end, update.name, "fleet")


def scale_outs(view: VariantView) -> list[Activity]:
    """Successful activities that added instances."""
    activities = []
    for each in sorted(view.variant.activities, key=lambda activity: activity.start):
        cause, done = each.cause.lower(), each.status in ("Successful", "InProgress", "Overridden")
        if done and each.capacity is not None and "scale in" not in cause:
            before = _capacity_before(view, each)
            # Begun before the window: then the alarm's name is all there is.
            if "alarmhigh" in cause if before is None else each.capacity > before:
                activities.append(each)
    return activities


def _capacity_before(view: VariantView, activity: Activity) -> float | None:
    activities = [a for a in view.variant.activities if a.capacity is not None and not a.failed]
    if earlier := [a for a in activities if a.start < activity.start]:
        return max(earlier, key=lambda a: a.start).capacity
    # The period in which it began may hold the new instances already.
    until = activity.start - view.period + timedelta.resolution
    series = view.whole.instances.between(activity.start - LOOK_BACK, until)
    return round(series.points[series.times[-1]]) if series else None


def deployed_near(view: VariantView, time: datetime, after: timedelta) -> bool:
    """Whether a deployment was under way then, or over for at most so long.

    A roll-back may be told as begun after the update's fleet was asked first.
    """
    m, fleets = view.measurements, fleets_of(view.whole)
    begins = [fleets.since] if fleets else []
    if m.update and m.update.begun:
        begins.append(m.update.begun)
    spans = [(min(begins), m.end)] if begins else []
    spans += [(deployment.time, deployment.done) for deployment in m.deployments]
    spans += [(ended.start, ended.end) for ended in m.taken_back]
    return any(start - 2 * view.period <= time <= end + after for start, end in spans)


def named(view: VariantView, found: list[Start]) -> str:
    """Starts in words, with their times: the first three."""
    clock = view.measurements.clock
    words = [
        f"{start.why} at {clock(start.first)}"
        + (f"-{clock(start.last)}" if start.last > start.first else "")
        for start in found[:3]
    ]
    more = len(found) - len(words)
    return ", ".join(words) + (f" and {more} more" if more else "")


def within_minutes(view: VariantView, found: list[Start]) -> str:
    return f"within {WARMING.seconds // 60} minutes of {named(view, found)}"
