"""Errors by kind, throttling among them, and multi-model endpoints."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import quantiles

from ...account.metrics import Series, median
from ...options.alarms import MINIMUM_FAILURES
from ...report.numbers import milliseconds, percent, rate
from . import thresholds as const
from .cold_starts import early_errors, served_between
from .findings import Evidence, Finding, Remedy, container_log
from .new_version import with_deployment
from .saturated import reason_of_saturation
from .slow_container import queueing
from .sustained import lasts_over, windows_of
from .view import VariantView, bulk, runs

SERVER, CLIENT = "5XX errors", "4XX errors"
UNANSWERED = "model errors that are neither 4XX nor 5XX"


@dataclass(frozen=True, slots=True)
class Failure:
    """A cause of errors, and the errors of it: by them a slow or full time may be known as theirs."""

    finding: Finding
    errors: Series

    def is_consequence_of(self, cause: Finding) -> bool:
        """Whether most of the errors came in the times that the cause was seen in."""
        spans = [(shown.start, shown.end) for shown in cause.evidence]
        known = [(start, end) for start, end in spans if start and end]
        inside = [
            time for time in self.errors.points if any(start <= time < end for start, end in known)
        ]
        return self.errors.only(inside).sum >= const.MOST * self.errors.sum


def errors(view: VariantView) -> Iterator[Failure]:
    """One finding for each frequent kind of error; explained periods have their cause already."""
    for failure in _failures(view):
        finding = failure.finding
        shown = (*finding.evidence, *_doubt(view, failure.errors))
        yield replace(failure, finding=replace(finding, evidence=shown))


def _doubt(view: VariantView, failed: Series) -> Iterator[Evidence]:
    """That ModelLatency of these periods may be that of refusals, where it is of many."""
    times = bulk(failed).times
    latency = view.get("ModelLatency", "Average").only(times)
    average = latency.weighted_mean(view.requests)
    share = view.refused_share(times)
    if average is not None and share >= const.NOTABLE:
        words = (
            f"ModelLatency was {milliseconds(average)} on average then and may hold the "
            f"{percent(share)} of the calls that failed: it does not say how long answers took"
        )
        yield view.over(times, words)


def _failures(view: VariantView) -> Iterator[Failure]:
    disk = view.get("DiskUtilization", "Average")
    if disk and (worst := max(disk.points.values())) >= const.FULL_DISK_PERCENT:
        time = next(time for time, used in disk.points.items() if used == worst)
        seen = Evidence(f"disk at {worst:.0f} %", time, time)
        yield Failure(view.cause("LLD118", seen, risk=True), Series())
    kinds = errors_by_kind(view)
    server, client, other = (
        kinds[kind][0].without(view.explained) for kind in (SERVER, CLIENT, UNANSWERED)
    )
    for failed, share in _by_fullness(view, server, "error_rate"):
        counted = _count(view, failed, SERVER, share)
        yield Failure(_server(view, failed, counted), failed)
    if share := _too_many(view, client, "client_error_rate"):
        counted = _count(view, client, CLIENT, share)
        yield Failure(_client(view, client, counted), client)
    for failed, share in _by_fullness(view, other, "model_error_rate"):
        counted = _count(view, failed, UNANSWERED, share)
        yield Failure(_unanswered(view, failed, counted), failed)
    streams = view.get("MidStreamErrors", "Sum")
    if share := _too_many(view, streams, "model_error_rate"):
        counted = _count(view, streams, "broken streams", share)
        yield Failure(view.cause("LLD406", counted), streams)


def errors_by_kind(view: VariantView) -> dict[str, tuple[Series, str]]:
    """Errors by their kind in words, with the option that limits their share."""
    server, client, container = (
        view.get(metric, "Sum")
        for metric in ("Invocation5XXErrors", "Invocation4XXErrors", "InvocationModelErrors")
    )
    known = {t: server.points.get(t, 0) + client.points.get(t, 0) for t in container.points}
    other = Series({t: v - known[t] for t, v in container.points.items() if v > known[t]})
    return {
        SERVER: (server, "error_rate"),
        CLIENT: (client, "client_error_rate"),
        UNANSWERED: (other, "model_error_rate"),
    }


def throttled(view: VariantView, refused: Series) -> str:
    """The limit that refusals fit, in words: wrong requests are refused in proportion, at any load."""
    seconds, counts = view.period.total_seconds(), view.instances
    came = Series({time: tps for time, tps in view.tps.points.items() if tps})
    lost = Series({time: count / seconds for time, count in refused.points.items()})
    varied = len({round(count) for count in counts.points.values()}) > 1
    of_each = _limit(came.per(counts), lost.per(counts)) if varied else None
    limit, where = of_each or _limit(came, lost), " on each instance" if of_each else ""
    if not limit:
        return ""
    return (
        f"requests were refused only above {rate(limit)} requests a second{where}, and "
        "this rate was accepted regardless of the load: typical of throttling"
    )


def _limit(came: Series, refused: Series) -> float | None:
    """How many requests a second were let in; ``None`` where there is no limit."""
    touched = [
        t for t, v in came.points.items() if refused.points.get(t, 0) >= const.ERROR_RATE * v
    ]
    # A few single refusals, which are many where hardly anything came, show no limit.
    few = refused.weighted_percentile(refused, const.ERROR_RATE) or 0
    over = [t for t in touched if refused.points.get(t, 0) >= few]
    if len(over) < const.PERIODS:
        return None
    let_in = [came.points[t] - refused.points[t] for t in over]
    low, middle, high = quantiles(let_in, n=4)
    free = sorted(came.without(set(touched)).points.values())
    # Single periods apart: CloudWatch's minute may hold the end of a burst.
    most_free = free[int(0.95 * (len(free) - 1))] if free else 0.0
    most, least = max(came.points[t] for t in over), min(came.points.values())
    if middle <= 0 or high - low > const.EVEN * middle or most_free > (1 + const.EVEN) * middle:
        return None
    if most < const.MORE_ARRIVALS * least or (median(came.points[t] for t in over) or 0) < middle:
        return None
    # A share of wrong requests at an even load looks the same: what came must differ where refused,
    # or stay free below.
    spread = most / min(came.points[t] for t in over)
    return middle if spread >= const.MORE_ARRIVALS or len(free) >= const.PERIODS else None


def rate_limit(view: VariantView, option: str) -> float:
    """The share of errors that is too many: an alarm's, else the usual one."""
    limit = view.variant.thresholds.get((option, "Rate"))
    rate = limit.value if limit else const.ERROR_RATE
    return rate if rate < 1 else rate / 100  # stated in percent


def _too_many(view: VariantView, failed: Series, option: str) -> float:
    """Share of requests that failed, over the window or its worst stretch; 0 when few."""
    rate = rate_limit(view, option)
    came = view.get("Invocations", "Sum")
    if failed.sum >= const.LEAST_ERRORS and came.sum and failed.sum / came.sum >= rate:
        return failed.sum / came.sum
    for first, last in runs([t for t, v in failed.points.items() if v > 0], 2 * view.period):
        part, whole = (series.between(first, last + view.period).sum for series in (failed, came))
        if part >= 4 * const.LEAST_ERRORS and whole and part / whole >= 5 * rate:
            return part / whole
    if _alarmed(view, failed, option, rate):
        return failed.sum / came.only(bulk(failed).points).sum
    return 0.0


def _alarmed(view: VariantView, failed: Series, option: str, rate: float) -> bool:
    """Whether the account's alarm on these errors would be on, however long the window is."""
    came = view.get("Invocations", "Sum")
    times = came.times

    def is_late(first: int, end: int) -> bool:
        count, of = (series.only(times[first:end]).sum for series in (failed, came))
        return count >= MINIMUM_FAILURES and count > rate * of

    alarms = view.measurements.alarms_on(view.variant.name, option, "Rate")
    windows = windows_of(alarms) if alarms else []
    return any(lasts_over(is_late, len(times), window, view.period) for window in windows)


def _by_fullness(view: VariantView, failed: Series, option: str) -> Iterator[tuple[Series, float]]:
    """The errors and their share, if they are too many: of full instances apart, if both are.

    Not apart where as large a share of the requests failed while the instances had room.
    """
    whole = _too_many(view, failed, option)
    of_full = times_of_full(view, failed)
    parts = failed.only(of_full), failed.without(of_full)
    shares = [_too_many(view, part, option) for part in parts]
    if all(shares) and not _alike(*(_rate(view, part) for part in parts)):
        yield from zip(parts, shares, strict=True)
    elif whole:
        yield failed, whole


def _rate(view: VariantView, failed: Series) -> float:
    """Share of the requests that failed in the periods that hold most of the errors."""
    most = bulk(failed)
    return most.sum / view.get("Invocations", "Sum").only(most.points).sum


def _alike(one: float, other: float) -> bool:
    return max(one, other) < const.SAME_LOAD * min(one, other)


def _full_times(view: VariantView, failed: Series) -> list[datetime]:
    return [time for time in failed.times if failed.points[time] and view.saturation([time])]


def times_of_full(view: VariantView, failed: Series) -> list[datetime]:
    """When errors of full instances came: in periods in which these were full, and in those beside."""
    full = failed.only(_full_times(view, failed))
    beside = [
        time for time in failed.without(full.points).times if _belongs(view, failed, full, time)
    ]
    return sorted([*full.times, *beside])


def _belongs(view: VariantView, failed: Series, full: Series, time: datetime) -> bool:
    """Whether the errors of a period come from the full instances of a period beside it.

    It is nearly full, or has no more errors than its part of a full one. Errors that begin or end in
    this period may be twice as many: callers who are refused come again at once. Where the load itself
    begins or ends in it, its use is a mean with the idle rest and says nothing.
    """
    before, after = time - view.period, time + view.period
    beside = full.only((before, after)).max
    if not beside or not failed.points[time]:
        return False
    used = _used(view, time)
    if used >= const.NEARLY_FULL_PERCENT or _is_filled_in_part(view, full, time):
        return True
    fewest = min(failed.points.get(side, 0.0) for side in (before, after))
    begins_or_ends = fewest < const.FEW_BESIDE * failed.points[time]
    most = 2 * beside if begins_or_ends else used / 100 * beside
    return failed.points[time] <= most


def _is_filled_in_part(view: VariantView, full: Series, time: datetime) -> bool:
    """Whether hardly any requests came on the side of a period where no full one is."""
    came = view.get("Invocations", "Sum").points
    sides = (time - view.period, time + view.period)
    return any(
        came.get(side, 0) < const.FEW_BESIDE * came.get(time, 0)
        for side in sides
        if side not in full.points
    )


def _count(view: VariantView, failed: Series, words: str, share: float) -> Evidence:
    most = bulk(failed)
    worst = max(most.times, key=lambda t: failed.points[t])
    came = view.get("Invocations", "Sum")
    of_all = came.sum and math.isclose(share, failed.sum / came.sum)
    span = "window" if of_all else "worst stretch"
    periods = sum(count > 0 for count in failed.points.values())
    apart = f" ({most.sum:,.0f} in {len(most)} of them)" if len(most) < periods else ""
    return view.over(
        most.times,
        f"{failed.sum:,.0f} {words}, {percent(share)} of the requests of the {span}, in "
        f"{periods} of {len(came)} periods{apart}, most at {view.measurements.clock(worst)}",
    )


def _overloaded(view: VariantView, failed: Series, *evidence: Evidence) -> Finding | None:
    """LLD401 where full instances made requests wait."""
    times = _when_full(view, failed)
    if view.saturation(times, failed) is None or _each_works_alone(view, times):
        return None
    return view.cause("LLD401", *evidence)


def _when_full(view: VariantView, failed: Series) -> list[datetime]:
    """When errors came; those of full instances alone, if most errors came then."""
    mostly = failed.only(times_of_full(view, failed)).sum >= const.MOST * failed.sum
    return _full_times(view, failed) if mostly else bulk(failed).times


def with_reason(view: VariantView, failure: Failure) -> Finding:
    """The finding on its own: LLD401 advises what the reason for the full instances does."""
    finding = failure.finding
    if finding.id != "LLD401":
        return finding
    times = _when_full(view, failure.errors)
    full = view.saturation(times, failure.errors)
    reason = reason_of_saturation(view, times)
    known = (full, *reason.evidence) if full else reason.evidence
    advised = replace(
        finding,
        evidence=(*finding.evidence, *dict.fromkeys(known)),
        changes=reason.changes,
        besides=reason.besides,
    )
    return with_deployment(view, advised, times)


def _each_works_alone(view: VariantView, times: list[datetime]) -> bool:
    """Whether less than one request is in work on an instance: none waits for another then."""
    in_work = view.in_work(times)
    return in_work is not None and in_work < 1 and not view.overloaded(times)


def _server(view: VariantView, server: Series, counted: Evidence) -> Finding:
    """Full instances come before the age of a start: an overload right after one is an overload."""
    times = bulk(server).times
    if finding := (
        _overloaded(view, server, counted)
        or early_errors(view, server, counted)
        or queueing(view, times, counted)
    ):
        return finding
    shown = [counted]
    for deployment in view.measurements.deployments:
        near = abs(deployment.time - times[0]) <= 5 * view.period
        if near and not served_between(view, deployment, times[0]):
            at = view.measurements.clock(deployment.time)
            words = f"they began with the deployment of {deployment.configuration} at {at}"
            shown.append(Evidence(words, deployment.time, times[-1] + view.period))
            break
    confidence = "high" if len(shown) > 1 else "medium"
    used = view.utilization_words(times, server)
    log = container_log(view.measurements.endpoint, "the exception")
    failing = view.cause("LLD402", *shown, used, times=times, confidence=confidence, more=[log])
    return _by_use(view, failing, times, server)


def _by_use(view: VariantView, failing: Finding, times: list[datetime], server: Series) -> Finding:
    """LLD402 as far as the hardware's use allows: nearly full or unknown, it is less certain."""
    used = view.utilization(times, server)
    if not used:
        kind = replace(failing.kind, title="The container fails")
        return replace(failing, kind=kind, confidence="medium", path=failing.path[:-1])
    most_used = max(used.values())
    if most_used < const.NEARLY_FULL_PERCENT:
        return failing
    busy = [time for time in times if _used(view, time) >= const.IDLE_PERCENT]
    mostly = server.only(busy).sum >= const.MOST * server.only(times).sum
    # Some full periods and some idle ones are nearly full in the mean alone.
    if most_used < const.SATURATED_PERCENT and not mostly:
        return failing
    title = "The container fails, or the instances are nearly full"
    # What is slow then has a cause with an advice of its own.
    more = () if view.slow_times else reason_of_saturation(view, busy).changes
    return replace(
        failing,
        kind=replace(failing.kind, title=title),
        confidence="low",
        path=(*failing.path[:-1], "instances nearly full"),
        changes=(*failing.changes, *more),
    )


def _used(view: VariantView, time: datetime) -> float:
    return max(view.utilization([time]).values(), default=0.0)


def _client(view: VariantView, client: Series, counted: Evidence) -> Finding:
    """What full containers refuse is no limit of its own."""
    limit = throttled(view, client)
    if not limit:
        return view.cause("LLD403", counted)
    refused = Evidence(limit, view.measurements.start, view.measurements.end)
    return _overloaded(view, client, counted, refused) or view.cause("LLD407", counted, refused)


def _unanswered(view: VariantView, other: Series, counted: Evidence) -> Finding:
    """Model errors that are no answer of the container: time-outs are among them, by AWS's words.

    The cause of the wait comes before the wait's length: full instances, new ones, few workers.
    """
    times = bulk(other).times
    longest = view.get("ModelLatency", "Maximum").only(times)
    at_limit = [
        t
        for t, v in longest.points.items()
        if any(low <= v <= high for low, high in const.TIME_LIMITS_MS)
    ]
    timed_out = bool(at_limit) and other.only(at_limit).sum >= const.MOST * other.sum
    words = f"longest ModelLatency then {milliseconds(longest.max or 0)}"
    waited = view.over(times, words)
    shown = (counted, waited) if timed_out else (counted,)
    if finding := _overloaded(view, other, *shown) or early_errors(view, other, *shown):
        return finding
    if not timed_out:
        log = container_log(view.measurements.endpoint, "which of them it is")
        return view.cause("LLD404", *shown, more=[log])
    if finding := queueing(view, times, *shown):
        return finding
    used = view.utilization(times, other)
    works = not used or max(used.values()) >= const.IDLE_PERCENT
    faster = [Remedy("instance_type", "a faster type")] if works else []
    return view.cause("LLD405", *shown, more=faster)


def multi_model(view: VariantView) -> Iterator[Finding]:
    """Models that were not loaded when a request came."""
    hits, asked = (view.get("ModelCacheHit", name) for name in ("Average", "SampleCount"))
    ratio, waited = hits.weighted_mean(asked), _mean(view, "ModelLoadingWaitTime")
    if ratio is None or ratio >= const.CACHE_HITS or waited is None:
        return
    limits = [
        limit.value
        for (metric, _), limit in view.variant.thresholds.items()
        if metric == "ModelLatency"
    ]
    if limits and waited < 0.1 * min(limits):
        return
    misses = Series({t: (1 - hit) * asked.points.get(t, 1) for t, hit in hits.points.items()})
    times = bulk(misses).times
    parts = [
        f"{percent(1 - ratio)} of the requests waited for their model to load, "
        f"{milliseconds(waited)} on average"
    ]
    if loaded := view.get("LoadedModelCount", "Average"):
        parts.append(f"{loaded.mean:.0f} models loaded on average")
    unloads = view.get("ModelUnloadingTime", "SampleCount").sum
    if unloads:
        parts.append(f"{unloads:,.0f} unloaded to make room")
    memory = view.get("MemoryUtilization", "Average").only(times).weighted_mean(misses)
    if memory is not None:
        parts.append(f"memory at {memory:.0f} %")
    shown, cause = ["; ".join(parts)], "LLD301"
    download, load = _mean(view, "ModelDownloadingTime"), _mean(view, "ModelLoadingTime")
    few_unloads = (
        unloads <= (1 - const.CACHE_HITS) * view.get("ModelLoadingTime", "SampleCount").sum
    )
    if download is not None and load is not None:
        shown.append(f"download {milliseconds(download)}, load {milliseconds(load)} on average")
        if download >= 2 * load and few_unloads:
            cause = "LLD302"
    yield view.cause(cause, *shown, times=times)


def _mean(view: VariantView, metric: str) -> float | None:
    """The mean over all samples, in whichever periods they are."""
    return view.get(metric, "Average").weighted_mean(view.get(metric, "SampleCount"))


def silence(view: VariantView) -> Iterator[Finding]:
    """No traffic although an alarm on it says that there should be."""
    m = view.measurements
    expecting = [a for a in m.alarms or () if a.metric == "Invocations" and a.state == "ALARM"]
    if expecting and view.get("Invocations", "Sum").sum <= 0:
        words = f"no invocation in the window; alarm {expecting[0].name} is in ALARM"
        yield view.cause("LLD603", Evidence(words, m.start, m.end))
