"""When new instances began to serve, and why: deployments, scaling, first requests.

An update under way has two fleets: what answers, and since when callers meet the new one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from ...account.metrics import MetricSeries, Series, statistic_of
from ...account.scaling import Activity
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


@dataclass(frozen=True, slots=True)
class Fleets:
    """A variant while a new fleet takes requests from the one that serves.

    ``new`` and ``old`` are ``None`` where CloudWatch does not have that fleet's metrics apart: by
    configuration, else by instances, which came since or were there.
    """

    name: str  # of the new fleet's configuration
    serving: str
    since: datetime  # the first period in which requests may have reached the new fleet
    new: VariantView | None
    old: VariantView | None

    @property
    def apart(self) -> bool:
        return self.new is not None and self.old is not None


def fleets_of(view: VariantView) -> Fleets | None:
    """The fleets of the update under way; ``None`` without one, and while only the old one is asked."""
    update = view.measurements.update
    if update is None:
        return None
    renamed = update.configuration not in ("", update.serving)
    new = _of_configuration(view, update.configuration) if renamed else None
    old = _of_configuration(view, update.serving) if new is not None else None
    if new is None and update.begun is not None:
        if update.update.stage == "Creating" or (renamed and _answers_all(view, update.serving)):
            return None
        new, old = _by_instances(view, update.begun)
    if new is not None:
        return Fleets(update.configuration, update.serving, asked(new)[0], new, old)
    if update.begun is None:
        return None
    return Fleets(update.configuration, update.serving, aligned(view, update.begun), None, None)


def come_since(view: VariantView, time: datetime) -> set[str]:
    """The instances that were not there before, where CloudWatch has metrics of each."""
    return {name for name, seen in view.whole.arrivals.items() if seen >= aligned(view, time)}


def aligned(view: VariantView, time: datetime) -> datetime:
    """The start of the period that contains the time."""
    m = view.measurements
    return m.start + (time - m.start) // m.period * m.period


def asked(view: VariantView) -> list[datetime]:
    """When requests came, in order."""
    requests = view.get("Invocations", "Sum")
    return [time for time in requests.times if requests.points[time] > 0]


def _of_configuration(view: VariantView, configuration: str) -> VariantView | None:
    return _fleet(view, view.variant.fleets.get(configuration, {}))


def _fleet(view: VariantView, series: MetricSeries) -> VariantView | None:
    """A fleet as a variant of its own, if it was asked anything."""
    fleet = VariantView(view.measurements, replace(view.variant, series=series))
    return fleet if asked(fleet) else None


def _by_instances(
    view: VariantView, begun: datetime
) -> tuple[VariantView | None, VariantView | None]:
    """The instances that came since the update began, and those that were there."""
    instances, new = view.variant.instances, come_since(view, begun)
    if not new or new == instances.keys():
        return None, None
    parts = [of for name, of in instances.items() if name in new]
    others = [of for name, of in instances.items() if name not in new]
    return _fleet(view, _together(parts)), _fleet(view, _together(others))


def _together(parts: list[MetricSeries]) -> MetricSeries:
    """Sums added; of other statistics the mean by requests, between the least and the most of them."""
    weights = [statistic_of(part, "Invocations", "Sum") for part in parts]
    together: dict[tuple[str, str], Series] = {}
    for key in {key for part in parts for key in part}:
        sums: dict[datetime, float] = {}
        counts: dict[datetime, float] = {}
        for part, weight in zip(parts, weights, strict=True):
            for time, value in statistic_of(part, *key).points.items():
                count = 1.0 if key[1] == "Sum" else weight.points.get(time, 0)
                sums[time] = sums.get(time, 0) + value * count
                counts[time] = counts.get(time, 0) + count
        means = {time: value / counts[time] for time, value in sums.items() if counts[time]}
        together[key] = Series(sums if key[1] == "Sum" else means)
    return together


def _answers_all(view: VariantView, configuration: str) -> bool:
    """Whether the fleet's own metrics have each request of the last periods that have any."""
    fleet = _of_configuration(view, configuration)
    if fleet is None:
        return False
    last = asked(view)[-3:]
    counts = [each.get("Invocations", "Sum").only(last) for each in (fleet, view)]
    own, whole = (count.sum for count in counts)
    return own >= whole
