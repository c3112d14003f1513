"""What new instances explain: slow requests, and errors, in the minutes after they began to serve."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from ...account.metrics import Series
from ...report.numbers import milliseconds
from .findings import Confidence, Evidence, Finding, Remedy, container_log
from .measurements import ObservedDeployment
from .starts import Start, first_asked, instance_starts, within_minutes
from .thresholds import (
    CLOSELY,
    DOUBLED,
    ERROR_RATE,
    HALF,
    MOST,
    NO_FASTER,
    PERIODS,
    SAME_LOAD,
    SLOW_OF_PERIODS,
    WARMING,
)
from .view import VariantView


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
    if not starts or times[-1] == came.times[-1] or not _served_as_much_later(view, times):
        return None
    before = sum(time <= starts[0].first - view.period for time in times)
    earlier = f"{before} of {len(times)} failing periods" if before else "none"
    words = f"errors {within_minutes(view, starts)}, {earlier} before"
    log = container_log(view.measurements.endpoint, "what new instances wrote while they started")
    more = [*colder(starts, "new", " when traffic rises"), log]
    return view.cause("LLD408", *evidence, words, times=times, more=more)


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
        if not _lasting(view, start, slow)
        and not was_fast_at_first(view, start, slow)
        and not (failed is None and _is_even(view, start, slow))
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


def _by_load(view: VariantView, time: datetime, served: Series) -> bool:
    """Whether far more came in a period than was served well before, or than full instances serve."""
    full = view.saturation([time]) is not None
    load = served.median if full else served.between(view.measurements.start, time).max
    return bool(load) and view.requests.points.get(time, 0) >= DOUBLED * (load or 0)


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


def served_well(view: VariantView, bad: Collection[datetime] = ()) -> Series:
    """Requests of the periods in which they succeeded, without those that are bad in another way."""
    failed, came = view.failed.points, view.requests.points
    well = [t for t, count in came.items() if count and failed.get(t, 0) < ERROR_RATE * count]
    return view.requests.only(well).without(bad)


def _lasting(view: VariantView, start: Start, slow: list[datetime]) -> bool:
    """Whether it has been slow for most of an update under way, and is: then it is not cold."""
    end = view.measurements.end
    since = [time for time in view.requests.times if start.first <= time]
    late = {time for time in slow if start.first <= time}
    last = late.intersection(since[-PERIODS:])
    lasts = len(last) >= SLOW_OF_PERIODS and len(late) >= HALF * len(since)
    return start.last == end and end - start.first > WARMING and lasts


def _is_even(view: VariantView, start: Start, slow: list[datetime]) -> bool:
    """Whether a new endpoint was never faster than at first: a cold start gets better."""
    if start.new != "endpoint":
        return False
    typical = view.typical.between(start.first, view.measurements.end)
    late = typical.only(slow)
    if len(late) < PERIODS or typical.without(late.points).between(
        late.times[0], view.measurements.end
    ):
        return False
    third = len(late) // 3
    first, last = late.only(late.times[:third]).median, late.only(late.times[-third:]).median
    return bool(first and last and last >= NO_FASTER * first)


def cold_start_at_full(view: VariantView) -> Iterator[Finding]:
    """A cold start that filled the instances, where they serve the same load well after it."""
    slow = view.slow_times
    if not view.full or not _served_as_much_later(view, slow):
        return
    yield from cold_start(view)


def _served_as_much_later(view: VariantView, slow: list[datetime]) -> bool:
    """Whether as many requests on an instance were served later, in time and with room."""
    before = view.load.only(slow).median or 0.0
    later = view.load.between(slow[-1] + view.period, view.measurements.end)
    as_much = [
        time
        for time, load in later.without(view.whole.slow_times).points.items()
        if load * SAME_LOAD >= before and view.saturation([time]) is None
    ]
    return len(as_much) >= CLOSELY


def was_fast_at_first(view: VariantView, start: Start, slow: Iterable[datetime]) -> bool:
    """Whether the first requests ever were not slow: then what came later was no cold start."""
    request = view.variant.first_request
    if request is None or start != first_asked(request):
        return False
    counts = view.requests.points
    asked = sorted(time for time, count in counts.items() if count > 0 and time >= start.first)
    return set(slow).isdisjoint(asked[:2])


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
