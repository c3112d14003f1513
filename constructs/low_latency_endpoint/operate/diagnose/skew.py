"""Instances or zones of one variant that are slower than the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from ...account.metrics import MetricSeries, Series, median
from ...report.numbers import milliseconds, percent
from .events import after_starts, instance_starts
from .findings import GUIDE, ROUTING, Evidence, Finding, Remedy, kind
from .view import SLOW_OF_PERIODS, WARMING, VariantView

SLOW_INSTANCE = kind(
    "LLD501",
    "One instance is slower than the others",
    (
        "one instance's metrics show twice the latency of the others; its first 10 minutes do not "
        "count unless most are as new"
    ),
    ROUTING,
)
SLOW_ZONE = kind(
    "LLD503",
    "One Availability Zone is slower than the others",
    "one zone's metrics show 1.5 times the latency of the others",
    GUIDE + "realtime-endpoints-privatelink.html",
)

_FACTOR = 2.0
_ZONE_FACTOR = 1.5


def skew(view: VariantView, *, full: bool) -> Iterator[Finding]:
    """At most one finding: the instance, or else the zone, that is slow.

    ``full``: the instances were saturated. Then one that is slower still explains nothing, unless
    the others were fast enough.
    """
    # Without a threshold nobody says what is slow; an instance apart from its peers still is.
    if view.has_model_threshold and not view.slow_times:
        return
    times = view.slow_times or view.get("ModelLatency", "Average").times
    warm = _warm_times(view, times)
    instances = _latencies(view.variant.instances, times, warm)
    slow = _apart(instances, _FACTOR)
    if slow and len(slow) < max(2, (len(instances) + 1) // 2):
        if not full or _fast_enough(view, view.variant.instances, instances, slow):
            yield _instance(view, times, instances, slow)
        return
    if after_starts(view, times):
        return  # a zone with more of the new instances is slow with them
    zones = _latencies(view.variant.zones, times, {})
    slow = _apart(zones, _ZONE_FACTOR)
    if len(slow) == 1 and (not full or _fast_enough(view, view.variant.zones, zones, slow)):
        yield _zone(view, times, zones, slow[0])


def _warm_times(view: VariantView, times: list[datetime]) -> dict[str, list[datetime]]:
    """Periods by instance in which it can be held against the others.

    Until it is warm, a new instance is slower than older ones. Where most are new, as after a
    deployment, they are held against each other.
    """
    began = view.whole.arrivals
    # Which instances were new when the window began, nobody can say.
    early = [
        start.last
        for start in instance_starts(view)
        if not start.deployment and start.first <= view.measurements.start + 2 * view.period
    ]
    cold: dict[str, set[datetime]] = {}
    for name in view.variant.instances:
        since = [began[name]] if name in began else early
        cold[name] = {
            t for t in times if any(first - view.period < t <= first + WARMING for first in since)
        }
    served = {
        name: series.get(("ModelLatency", "Average"), Series()).points
        for name, series in view.variant.instances.items()
    }
    fair = set()
    for time in times:
        serving = [name for name, points in served.items() if time in points]
        if 2 * sum(name in began and time in cold[name] for name in serving) > len(serving):
            fair.add(time)
    return {name: [t for t in times if t in fair or t not in cold[name]] for name in cold}


def _latencies(
    parts: Mapping[str, MetricSeries], times: list[datetime], of_each: Mapping[str, list[datetime]]
) -> dict[str, float]:
    """Mean latency by part, of those with data in enough of these periods."""
    found = {}
    for name, series in parts.items():
        latency: Series = series.get(("ModelLatency", "Average"), Series()).only(
            of_each.get(name, times)
        )
        mean = latency.weighted_mean(series.get(("Invocations", "Sum"), Series()))
        if len(latency) >= min(SLOW_OF_PERIODS, len(times)) and mean is not None:
            found[name] = mean
    return found


def _fast_enough(
    view: VariantView, parts: Mapping[str, MetricSeries], means: dict[str, float], slow: list[str]
) -> bool:
    """Whether the parts beside the slow ones kept what was missed."""
    for each in view.slow_model:
        high = each.statistic.startswith("p") and float(each.statistic[1:]) >= 99
        statistic = "p99" if high else "Average"
        values = []
        for name in means:
            series = parts[name].get(("ModelLatency", statistic), Series())
            value = series.only(each.values.points).median
            if name not in slow and value is not None:
                values.append(value)
        typical = median(values)
        if typical is not None and typical > each.threshold:
            return False
    return True


def _apart(means: dict[str, float], factor: float) -> list[str]:
    """Members whose latency is ``factor`` times the median of the others, slowest first.

    >>> _apart({"a": 10.0, "b": 31.0, "c": 12.0}, 2)
    ['b']
    """
    found = []
    for name, value in means.items():
        others = sorted(v for other, v in means.items() if other != name)
        if others and value >= factor * others[(len(others) - 1) // 2]:
            found.append(name)
    return sorted(found, key=lambda name: -means[name])


def _share(parts: Mapping[str, MetricSeries], name: str, times: list[datetime]) -> float | None:
    sums = {
        part: series.get(("Invocations", "Sum"), Series()).only(times).sum
        for part, series in parts.items()
    }
    total = sum(sums.values())
    return sums[name] / total if total else None


def _instance(
    view: VariantView, times: list[datetime], means: dict[str, float], slow: list[str]
) -> Finding:
    worst = slow[0]
    others = median(v for name, v in means.items() if name not in slow)
    assert others is not None
    rest = len(means) - len(slow)
    text = (
        f"{worst}: ModelLatency {milliseconds(means[worst])} on average, "
        f"{f'the {rest} others' if rest > 1 else 'the other'} {milliseconds(others)}"
    )
    share = _share(view.variant.instances, worst, times)
    if share is not None:
        text += f"; it had {percent(share)} of the requests, {percent(1 / len(means))} is even"
    series: MetricSeries = view.variant.instances[worst]
    cpu = series.get(("CPUUtilization", "Average"), Series()).only(times).mean
    if cpu is not None:
        text += f"; its CPU at {cpu:.0f} %"
    if len(slow) > 1:
        also = [f"{name} {milliseconds(means[name])}" for name in slow[1:4]]
        more = len(slow) - 1 - len(also)
        text += f"; slow too: {', '.join(also)}" + (f" and {more} more" if more else "")
    routing = view.variant.routing
    default = "" if view.variant.routing_stated else ", AWS's default"
    changes = (
        (
            Remedy(
                "routing",
                "fewer requests go to an instance that takes longer",
                "least_outstanding_requests",
            ),
        )
        if routing == "RANDOM"
        else ()
    )
    return view.finding(
        SLOW_INSTANCE,
        "high",
        ("ModelLatency high", "instances differ"),
        *view.slow_evidence(),
        text,
        Evidence(f"routing strategy {routing}{default}"),
        times=times,
        remedies=changes,
        besides=(
            "Replace the instance: a deployment of the same model starts new ones. If it comes back, "
            "look at what that instance is asked (sessions, prefixes) and at its log stream."
        ),
    )


def _zone(view: VariantView, times: list[datetime], means: dict[str, float], worst: str) -> Finding:
    others = median(v for name, v in means.items() if name != worst)
    assert others is not None
    text = (
        f"{worst}: ModelLatency {milliseconds(means[worst])} on average, the other zones "
        f"{milliseconds(others)}"
    )
    share = _share(view.variant.zones, worst, times)
    if share is not None:
        text += f"; it had {percent(share)} of the requests, {percent(1 / len(means))} is even"
    uneven = share is not None and share > 1.5 / len(means)
    changes = [
        Remedy(
            "instances.min",
            "two instances in each zone: a zone then rests on more than one",
            str(2 * len(means)),
        )
    ]
    if uneven:
        changes.append(Remedy("client_zones.ids", "stack-level: all zones that callers run in"))
    changes.append(Remedy("alarms.zone_imbalance", "says so when it happens again", "1.5"))
    return view.finding(
        SLOW_ZONE,
        "high" if uneven else "medium",
        ("ModelLatency high", "zones differ"),
        *view.slow_evidence(),
        text,
        times=times,
        remedies=changes,
        besides="Callers that use the zonal names of one zone only send everything there.",
    )
