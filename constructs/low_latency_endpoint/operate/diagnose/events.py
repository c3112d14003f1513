"""What happened to the fleet, when new instances began to serve, and what that explains."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Literal

from ...account.metrics import Series
from ...account.scaling import Activity
from ...report.numbers import milliseconds
from .findings import Confidence, Evidence, Finding, Remedy, container_log
from .fleets import fleets_of
from .measurements import FirstRequest, Measurements, ObservedDeployment, VariantReading
from .thresholds import (
    CLOSELY,
    DOUBLED,
    ERROR_RATE,
    HALF,
    LOOK_BACK,
    MOST,
    PERIODS,
    SLOW_OF_PERIODS,
    WARMING,
)
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
        starts.append(_first_asked(request))
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


def _first_asked(request: FirstRequest) -> Start:
    new: Literal["fleet", "endpoint"] = "fleet" if request.configuration else "endpoint"
    return Start(request.time, request.time, request.words, new)


def was_fast_at_first(view: VariantView, start: Start, slow: Iterable[datetime]) -> bool:
    """Whether the first requests ever were not slow: then what came later was no cold start."""
    request = view.variant.first_request
    if request is None or start != _first_asked(request):
        return False
    counts = view.requests.points
    asked = sorted(time for time, count in counts.items() if count > 0 and time >= start.first)
    return set(slow).isdisjoint(asked[:2])


def _of_update(view: VariantView) -> Iterator[Start]:
    """The new fleet of the update under way: more of its instances come until it ends."""
    update, fleets = view.measurements.update, fleets_of(view.whole)
    if update is None or fleets is None or update.update.rolling_back:
        return
    if max(fleets.since, update.begun or fleets.since) >= view.measurements.start:
        yield Start(fleets.since, view.measurements.end, update.name, "fleet")


def after_starts(
    view: VariantView, slow: list[datetime], failed: Series | None = None
) -> list[Start]:
    """The starts that explain slow periods, or ``failed`` requests of these periods.

    They follow the starts closely; none, when they do not.
    """
    weights = dict.fromkeys(slow, 1.0) if failed is None else failed.only(slow).points
    all_starts = [
        start
        for start in instance_starts(view)
        if not _lasting(view, start, slow) and not was_fast_at_first(view, start, slow)
    ]
    bad = {*slow, *view.explained, *view.whole.slow_times} if failed is None else set(slow)
    served = served_well(view, bad)
    explained = {}
    for start, times in _followed(view, all_starts, sorted(weights)).items():
        if cold_times := _while_cold(view, start, times, served):
            explained[start] = sum(weights[time] for time in cold_times)
    if not explained or sum(explained.values()) < MOST * sum(weights.values()):
        return []
    for start in explained:
        # Slow before it already: then it is no consequence, whatever came after.
        lead = [t for t in slow if start.first - 5 * view.period <= t <= start.first - view.period]
        if len(lead) >= 2:
            return []
    return sorted(explained)


def _followed(
    view: VariantView, starts: list[Start], times: list[datetime]
) -> dict[Start, list[datetime]]:
    """The starts that times follow closely, each with its times: of several the latest start."""
    following: dict[Start, list[datetime]] = {}
    for time in times:
        for start in reversed(starts):
            if start.first - view.period < time <= start.last + WARMING:
                following.setdefault(start, []).append(time)
                break
    return following


def served_well(view: VariantView, bad: Collection[datetime] = ()) -> Series:
    """Requests of the periods in which they succeeded, without those that are bad in another way."""
    failed, came = view.failed.points, view.requests.points
    well = [t for t, count in came.items() if count and failed.get(t, 0) < ERROR_RATE * count]
    return view.requests.only(well).without(bad)


def _while_cold(
    view: VariantView, start: Start, bad: list[datetime], served: Series
) -> list[datetime]:
    """The bad periods after a start in which its instances may have been cold.

    They are warm once each of them can have answered a request well, and a load far above what they
    served well is a cause of its own.
    """
    since = _served_since(view, start)
    served = served.between(since, view.measurements.end)
    new = [rise.time for rise in view.whole.rises] + list(view.whole.arrivals.values())
    cold_times: list[datetime] = []
    for time in bad:
        newest = max((t for t in new if since < t <= time), default=since)
        least = 1 if start.deployment and newest == since else CLOSELY
        lead = served.between(newest, time)
        if cold_times and cold_times[-1] >= newest:
            least, lead = PERIODS, served.between(cold_times[-1], time)
        warm = len(lead) >= least and lead.sum >= view.instances.points.get(time, 1)
        if not warm and not _by_load(view, time, served):
            cold_times.append(time)
    return cold_times


def _served_since(view: VariantView, start: Start) -> datetime:
    """From when on what was served well speaks for a start's instances: the window's end if unknown."""
    for deployment in view.measurements.deployments:
        if deployment.time == start.first and deployment.first:
            return start.first - view.period  # there is no other fleet
        if deployment.time == start.first and not deployment.is_seen:
            return view.measurements.end
    return start.last


def served_between(view: VariantView, deployment: ObservedDeployment, time: datetime) -> bool:
    """Whether a deployment's fleet answered requests without errors before this time."""
    since = _served_since(view, Start(deployment.time, deployment.done, ""))
    return bool(served_well(view).between(since, time))


def _by_load(view: VariantView, time: datetime, served: Series) -> bool:
    """Whether far more came in a period than was served well before, or than full instances serve."""
    full = view.saturation([time]) is not None
    load = served.median if full else served.between(view.measurements.start, time).max
    return bool(load) and view.requests.points.get(time, 0) >= DOUBLED * (load or 0)


def _lasting(view: VariantView, start: Start, slow: list[datetime]) -> bool:
    """Whether it has been slow for most of an update under way, and is: then it is not cold."""
    end = view.measurements.end
    since = [time for time in view.requests.times if start.first <= time]
    late = {time for time in slow if start.first <= time}
    last = late.intersection(since[-PERIODS:])
    lasts = len(last) >= SLOW_OF_PERIODS and len(late) >= HALF * len(since)
    return start.last == end and end - start.first > WARMING and lasts


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


@dataclass(frozen=True, slots=True)
class Event:
    """Something on the time axis, for the report."""

    time: datetime
    kind: str
    text: str
    end: datetime | None = None
    state: str = ""  # of the alarms
    names: tuple[str, ...] = ()  # of alarms, configuration or variant
    no_data: bool = False  # whether missing data alone changed the alarms


def events(measurements: Measurements) -> list[Event]:
    """Deployments, scaling activities and alarms on one time axis, within the window."""
    found = []
    for deployed in measurements.deployments:
        name = deployed.configuration
        text = f"{name} ({deployed.how})"
        found.append(Event(deployed.time, "deployment", text, names=(name,)))
    update = measurements.update
    if update and update.begun:
        name, stage = update.configuration or update.serving, update.update.stage
        text = f"{update.update.verb}{f' ({stage})' if stage else ''}"
        found.append(Event(update.begun, "deployment", text, names=(name,)))
    for ended in measurements.taken_back:
        name = ended.configuration
        text = f"{name} (its first request; rolled back to {ended.serving})"
        found.append(Event(ended.start, "deployment", text, ended.end, names=(name,)))
    for variant in measurements.variants:
        found += _scaling(measurements, variant)
    found += _alarms(measurements)
    within = (each for each in found if measurements.start <= each.time <= measurements.end)
    return sorted(within, key=lambda event: event.time)


def _scaling(measurements: Measurements, variant: VariantReading) -> Iterator[Event]:
    """Scaling activities of the window; those that failed one after the other alike are one."""
    within = (a for a in variant.activities if measurements.start <= a.start <= measurements.end)
    ordered = sorted(within, key=lambda activity: activity.start)
    for failure, group in groupby(ordered, key=lambda a: a.message if a.failed else a):
        alike = list(group)
        first, last = alike[0], alike[-1]
        refused = f" Not scaled: {', '.join(first.not_scaled)}." if first.not_scaled else ""
        text = f"{variant.name}: {first.description} {first.status}.{refused}"
        if first.failed and failure:
            text += f" {first.message}"
        if len(alike) > 1:
            text += f" ({len(alike)} times until {measurements.clock(last.start)})"
        yield Event(first.start, "scaling", text, last.end, first.status, (variant.name,))


def _alarms(measurements: Measurements) -> Iterator[Event]:
    """Alarm transitions, one row per minute; an alarm's first evaluation is left out."""
    titles = {
        alarm.name: alarm.title for alarm in measurements.alarms or () if not alarm.of_scaling
    }
    rows: dict[tuple[datetime, str, bool], list[str]] = {}
    for each in sorted(measurements.transitions, key=lambda each: each.time):
        first = each.state == "OK" and each.before == "INSUFFICIENT_DATA"
        if each.alarm in titles and not first:
            row = each.time.replace(second=0, microsecond=0), each.state, each.no_data
            rows.setdefault(row, []).append(each.alarm)
    for (time, state, silent), names in rows.items():
        shown = ", ".join(dict.fromkeys(titles[name] for name in names))
        text = f"{state}{', without data' if silent else ''}: {shown}"
        yield Event(time, "alarm", text, None, state, tuple(names), silent)


def cold_start(view: VariantView) -> Iterator[Finding]:
    """Slow only in the minutes after new instances began to serve."""
    slow = view.slow_times
    if starts := after_starts(view, slow):
        yield cold(view, starts, slow)


def cold(view: VariantView, starts: list[Start], slow: list[datetime], hit: str = "") -> Finding:
    """The finding about slow periods that these starts explain; ``hit`` is what else they did."""
    rest = view.typical.without({*view.whole.slow_times, *slow, *view.refusing})
    recovered = bool(rest.between(slow[-1], view.measurements.end))
    usual = f", a median of {milliseconds(rest.median)} otherwise" if rest.median else ""
    words = f"slow {within_minutes(view, starts)}{usual}"
    span = starts[0].first, slow[-1] + view.period
    confidence: Confidence = "high" if recovered else "medium"
    if not recovered and any(start.new == "endpoint" for start in starts):
        confidence = "low"  # nothing tells the start from the load, which began with it
    found = view.cause(
        "LLD121",
        *view.slow_evidence(),
        Evidence(words, *span),
        *([Evidence(hit, *span)] if hit else []),
        confidence=confidence,
        first=[*warmed(starts), *colder(starts, "cold", " when traffic rises")],
    )
    return found if recovered else replace(found, besides=f"{_still(view, starts)} {found.besides}")


def _still(view: VariantView, starts: list[Start]) -> str:
    """What to look at while new instances have not recovered."""
    m, warm = view.measurements, starts[-1].last + WARMING
    if warm > m.end:
        words = f"They have not recovered yet: look again at {m.clock(warm)}."
    else:
        words = f"They have not recovered {WARMING.seconds // 60} minutes after they started."
    if any(start.new == "fleet" for start in starts):
        return f"{words} If they stay slow, roll the deployment back."
    if any(start.new == "endpoint" for start in starts):
        return (
            f"{words} Their load began with the first requests: if they stay slow, it is more than they "
            "hold. `low-latency load-test --find-limit` measures what they hold."
        )
    return f"{words} If they stay slow, ask what they have that the others do not."


def early_errors(view: VariantView, failed: Series, *evidence: Evidence) -> Finding | None:
    """Errors only in the minutes after new instances began to serve, and not for good."""
    came, times = view.get("Invocations", "Sum"), view.failing(failed)
    starts = after_starts(view, times, failed)
    if not starts or times[-1] == came.times[-1]:
        return None
    before = sum(time <= starts[0].first - view.period for time in times)
    earlier = f"{before} of {len(times)} failing periods" if before else "none"
    words = f"errors {within_minutes(view, starts)}, {earlier} before"
    log = container_log(view.measurements.endpoint, "what new instances wrote while they started")
    more = [*colder(starts, "new", " when traffic rises"), log]
    return view.cause("LLD408", *evidence, words, times=times, more=more)


def within_minutes(view: VariantView, found: list[Start]) -> str:
    return f"within {WARMING.seconds // 60} minutes of {named(view, found)}"


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


def warmed(found: list[Start]) -> Iterator[Remedy]:
    """What sends requests before callers do: to a deployment's fleet, which alone they can reach."""
    if not any(start.deployment for start in found):
        return
    why = "requests reach a new endpoint before callers do, and until they meet the target"
    if any(start.new == "fleet" for start in found):
        why = "requests reach the new fleet while its canary bakes, and until they meet the target"
    yield Remedy("warm_up", why, "{payload: ...}")


def colder(found: list[Start], fleet: str, when: str = "") -> Iterator[Remedy]:
    """What makes starts rarer, or lets fewer requests meet them; a new endpoint has no old fleet."""
    if any(start.new == "fleet" for start in found):
        why = f"only a small share of the requests reaches the {fleet} fleet"
        yield Remedy("deployment", why, "{canary: {size_percent: 10, wait: 10m}}")
    if not all(start.deployment for start in found):
        yield Remedy("instances.min", f"more instances at all times: fewer starts{when}")
