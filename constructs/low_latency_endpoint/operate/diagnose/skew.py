"""Instances or zones of one variant that are slower than the others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import cast

from ...account.metrics import MetricSeries, median, statistic_of
from ...report.numbers import milliseconds, percent
from .cold_starts import after_starts
from .findings import Evidence, Finding, Remedy
from .starts import instance_starts
from .thresholds import HALF, MOST, REFUSING, SLOW_INSTANCE, SLOW_OF_PERIODS, SLOW_ZONE, WARMING
from .view import VariantView


def skew(view: VariantView, *, full: bool) -> Iterator[Finding]:
    """At most one finding: the instance, or else the zone, that is slow.

    Where all were ``full``, a slower one explains nothing unless the others were fast enough.
    """
    # Without a threshold nobody says what is slow; an instance apart from its peers still is.
    if view.has_model_threshold and not view.slow_times:
        return
    times = view.slow_times or view.get("ModelLatency", "Average").times
    lost = view.refused.points
    times = [time for time in times if lost.get(time, 0) < HALF]
    if not times:
        return
    warm = _warm_times(view, times)
    instances = _latencies(view.variant.instances, times, warm)
    slow = _apart(instances, SLOW_INSTANCE)
    if slow and len(slow) < max(2, (len(instances) + 1) // 2):
        if not full or _fast_enough(view, view.variant.instances, instances, slow):
            yield _instance(view, times, instances, slow)
        return
    if after_starts(view, times):
        return  # a zone with more of the new instances is slow with them
    zones = _latencies(view.variant.zones, times, {})
    slow = _apart(zones, SLOW_ZONE)
    if len(slow) == 1 and (not full or _fast_enough(view, view.variant.zones, zones, slow)):
        yield _zone(view, times, zones, slow[0])


def only_in_parts(view: VariantView, pattern: Finding, times: list[datetime]) -> Finding | None:
    """The instances, or else the zone, that alone have a pattern at these times; ``None`` of all.

    ``times`` are the slow periods of the pattern: where each part has its turn, none is apart.
    """
    then = view.within(times)
    instances = _latencies(view.variant.instances, times, _warm_times(view, times))
    slow = _apart(instances, SLOW_INSTANCE)
    few = slow and len(slow) < max(2, (len(instances) + 1) // 2)
    if few and _always_these(view.variant.instances, slow, times, SLOW_INSTANCE):
        advice = "Replace these instances: a deployment of the same model starts new ones."
        return _of_parts(then, _instance(then, times, instances, slow), pattern, advice)
    zones = _latencies(view.variant.zones, times, {})
    slow = _apart(zones, SLOW_ZONE)
    if len(slow) == 1:
        advice = (
            f"Replace the instances of {slow[0]} by a deployment of the same model; see AWS Health."
        )
        return _of_parts(then, _zone(then, times, zones, slow[0]), pattern, advice)
    return None


def _always_these(
    parts: Mapping[str, MetricSeries], slow: list[str], times: list[datetime], factor: float
) -> bool:
    """Whether these are apart in most of the periods: not one after the other, some more often."""
    latencies = {
        name: statistic_of(series, "ModelLatency", "Average").points
        for name, series in parts.items()
    }
    explained = 0
    for time in times:
        known = {name: points[time] for name, points in latencies.items() if time in points}
        usual = median(value for name, value in known.items() if name not in slow)
        highest = max((known.get(name, 0.0) for name in slow), default=0.0)
        explained += usual is not None and highest >= factor * usual
    return explained >= MOST * len(times)


def _of_parts(then: VariantView, parts: Finding, pattern: Finding, advice: str) -> Finding:
    """The finding about parts with the pattern that they alone have; it is as bad as the pattern."""
    title = pattern.kind.title
    text, *_ = pattern.evidence
    alone = f"{title[0].lower()}{title[1:]} ({pattern.id}): {text.text}; the others do not have it"
    compared = parts.evidence[len(then.slow_evidence()) :]
    return replace(
        parts,
        evidence=(replace(text, text=alone), *compared),
        path=(*pattern.path, parts.path[-1]),
        besides=f"{advice} If others begin to do it, the container is the cause. {pattern.besides}",
        risk=pattern.risk,
    )


def _warm_times(view: VariantView, times: list[datetime]) -> dict[str, list[datetime]]:
    """Periods in which an instance is as warm as the others: warm itself, or most are new with it."""
    began = view.whole.arrivals
    # Which instances were new when the window began, nobody can say.
    early = [
        start.last
        for start in instance_starts(view)
        if not start.deployment and start.first <= view.measurements.start + 2 * view.period
    ]
    since = {name: [began[name]] if name in began else early for name in view.variant.instances}
    cold = {
        name: {t for t in times if any(s - view.period < t <= s + WARMING for s in starts)}
        for name, starts in since.items()
    }
    served = {
        name: statistic_of(series, "ModelLatency", "Average").points
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
    """Mean latency by part, for parts with data in enough of these periods."""
    latencies = {}
    for name, series in parts.items():
        latency = statistic_of(series, "ModelLatency", "Average").only(of_each.get(name, times))
        mean = latency.weighted_mean(statistic_of(series, "Invocations", "Sum"))
        if len(latency) >= min(SLOW_OF_PERIODS, len(times)) and mean is not None:
            latencies[name] = mean
    refusing = {name for name in latencies if _refuses(parts[name], times)}
    slowest = max((v for name, v in latencies.items() if name not in refusing), default=math.inf)
    # What refuses may look fast, and is slow where it looks slow.
    return {name: v for name, v in latencies.items() if name not in refusing or v > slowest}


def _refuses(series: MetricSeries, times: list[datetime]) -> bool:
    failed, came = (
        statistic_of(series, metric, "Sum").only(times).sum
        for metric in ("Invocation5XXErrors", "Invocations")
    )
    return failed > 0 and failed >= REFUSING * came


def _fast_enough(
    view: VariantView, parts: Mapping[str, MetricSeries], means: dict[str, float], slow: list[str]
) -> bool:
    """Whether the other parts met the limit that the slow parts missed."""
    for periods in view.slow_model:
        high = periods.statistic.startswith("p") and float(periods.statistic[1:]) >= 99
        statistic = "p99" if high else "Average"
        others = (
            statistic_of(parts[name], "ModelLatency", statistic)
            for name in means
            if name not in slow
        )
        medians = (series.only(periods.values.points).median for series in others)
        typical = median(value for value in medians if value is not None)
        if typical is not None and typical > periods.threshold:
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


def _compared(means: dict[str, float], slow: list[str], rest: str) -> str:
    others = cast(float, median(mean for name, mean in means.items() if name not in slow))
    return (
        f"{slow[0]}: ModelLatency {milliseconds(means[slow[0]])} on average, "
        f"{rest} {milliseconds(others)}"
    )


def _share(parts: Mapping[str, MetricSeries], name: str, times: list[datetime]) -> float | None:
    sums = {
        part: statistic_of(series, "Invocations", "Sum").only(times).sum
        for part, series in parts.items()
    }
    total = sum(sums.values())
    return sums[name] / total if total else None


def _share_words(share: float | None, of: int) -> str:
    words = f"; it had {percent(share or 0)} of the requests, its even share is {percent(1 / of)}"
    return words if share is not None else ""


def _instance(
    view: VariantView, times: list[datetime], means: dict[str, float], slow: list[str]
) -> Finding:
    parts, rest = view.variant.instances, len(means) - len(slow)
    text = _compared(means, slow, f"the {rest} others" if rest > 1 else "the other")
    text += _share_words(_share(parts, slow[0], times), len(means))
    cpu = statistic_of(parts[slow[0]], "CPUUtilization", "Average").only(times).mean
    if cpu is not None:
        text += f"; its CPU at {cpu:.0f} %"
    if len(slow) > 1:
        also = [f"{name} {milliseconds(means[name])}" for name in slow[1:4]]
        more = len(slow) - 1 - len(also)
        text += f"; slow too: {', '.join(also)}" + (f" and {more} more" if more else "")
    return view.cause(
        "LLD501",
        *view.slow_evidence(),
        text,
        Evidence(view.routing_words),
        times=times,
        first=_other_routing(view),
    )


def _other_routing(view: VariantView) -> list[Remedy]:
    """What helps against a slow instance under RANDOM."""
    why = "sends fewer requests to a slow instance; `low-latency compare-routing` measures the difference"
    if view.variant.routing != "RANDOM":
        return []
    return [Remedy("routing", why, "least_outstanding_requests")]


def _zone(view: VariantView, times: list[datetime], means: dict[str, float], worst: str) -> Finding:
    text = _compared(means, [worst], "the other zones")
    share = _share(view.variant.zones, worst, times)
    text += _share_words(share, len(means))
    why = "two instances in each zone, so that no zone depends on one"
    scaling, least, confidence = view.variant.scaling, 2 * len(means), "medium"
    held = scaling.minimum if scaling and scaling.minimum else view.variant.current_instances
    first = [view.at_least(least, why)] if (held or 0) < least else []
    if share is not None and share > SLOW_ZONE / len(means):
        first.append(Remedy("client_zones.ids", "stack-level: all zones in which callers run"))
        confidence = "high"
    more: list[Remedy] = []
    if not view.variant.instances:
        # Series by zone exist without metrics per instance.
        text += "; without metrics per instance, one slow instance in that zone looks the same"
        text += f" ({view.routing_words})"
        more = [Remedy("metrics.enhanced", "shows whether one instance is slow (billed)", "true")]
        more += _other_routing(view)
        confidence = "low" if confidence == "medium" else confidence
    shown = view.slow_evidence()
    return view.cause(
        "LLD503", *shown, text, times=times, confidence=confidence, first=first, more=more
    )
