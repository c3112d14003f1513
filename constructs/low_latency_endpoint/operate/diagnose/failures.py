"""Errors by kind, throttling among them, and multi-model endpoints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from statistics import quantiles

from ...account.metrics import Series, median
from ...report.numbers import milliseconds, percent, rate
from .events import MOST, early_errors
from .findings import (
    GUIDE,
    KNOWLEDGE_CENTER,
    LOAD_TESTING,
    MONITORING,
    Evidence,
    Finding,
    Remedy,
    kind,
)
from .slow_container import queueing
from .view import ERROR_RATE, VariantView, runs

#: Periods with refusals that are needed, and the share of refused requests that counts as one.
_PERIODS, _REFUSED = 5, 0.01
#: What a limit lets in is even: the middle half within this share; what comes differs by more.
_EVEN, _DIFFERS = 0.06, 1.2


@dataclass(frozen=True, slots=True)
class Limit:
    """So many requests a second were let in, of the whole variant or on each instance."""

    tps: float
    each: bool

    @property
    def words(self) -> str:
        where = " on each instance" if self.each else ""
        return (
            f"refused only where more than {rate(self.tps)} requests a second{where} came, and "
            "so many were let in, whatever came: as throttling does"
        )


def throttled(view: VariantView, refused: Series) -> Limit | None:
    """The limit that refusals fit: wrong requests are refused in proportion, at any load."""
    seconds = view.period.total_seconds()
    came = Series({t: v / seconds for t, v in view.get("Invocations", "Sum").points.items() if v})
    lost = Series({t: v / seconds for t, v in refused.points.items()})
    counts = view.instances
    if counts:
        varied = len({round(v) for v in counts.points.values()}) > 1
        if varied and (tps := _limit(came.per(counts), lost.per(counts))):
            return Limit(tps, True)
    tps = _limit(came, lost)
    return Limit(tps, False) if tps else None


def _limit(came: Series, refused: Series) -> float | None:
    over = [t for t, v in came.points.items() if refused.points.get(t, 0) >= _REFUSED * v]
    if len(over) < _PERIODS:
        return None
    let_in = [came.points[t] - refused.points[t] for t in over]
    low, middle, high = quantiles(let_in, n=4)
    free = sorted(v for t, v in came.points.items() if t not in set(over))
    # Single periods apart: CloudWatch's minute may hold the end of a burst.
    most_free = free[int(0.95 * (len(free) - 1))] if free else 0.0
    most, least = max(came.points[t] for t in over), min(came.points.values())
    if middle <= 0 or high - low > _EVEN * middle or most_free > (1 + _EVEN) * middle:
        return None
    if most < _DIFFERS * least or (median(came.points[t] for t in over) or 0) < middle:
        return None
    # A share of wrong requests at an even load looks the same: what came must differ where refused,
    # or stay free below.
    spread = most / min(came.points[t] for t in over)
    return middle if spread >= _DIFFERS or len(free) >= _PERIODS else None


OVERLOAD_ERRORS = kind(
    "LLD401",
    "Saturated instances answer with server errors",
    "1 % of 5XX (or the alarm's rate), instances full at the time",
    LOAD_TESTING,
)
SERVER_ERRORS = kind(
    "LLD402",
    "The container fails on instances with room",
    "1 % of 5XX, instances with room",
    LOAD_TESTING,
)
CLIENT_ERRORS = kind(
    "LLD403", "Callers send what SageMaker or the model refuses", "1 % of 4XX otherwise", MONITORING
)
MODEL_ERRORS = kind(
    "LLD404",
    "The container answers with errors or not at all",
    "1 % of model errors beside 4XX and 5XX",
    MONITORING,
)
TIMEOUTS = kind(
    "LLD405",
    "Requests reach the time limit of an invocation",
    "model errors beside 4XX and 5XX, the longest ModelLatency in their periods 60 s (a stream: 480 s)",
    GUIDE + "deploy-model-options.html",
)
BROKEN_STREAMS = kind("LLD406", "Streamed responses break off", "1 % of the streams", MONITORING)
THROTTLED = kind(
    "LLD407",
    "More requests come than a limit lets in",
    (
        "1 % of 4XX, only in periods above some rate; accepted requests are then even (middle half "
        "within 6 %) while arrivals differ by 20 %"
    ),
    MONITORING,
)
CACHE_MISSES = kind(
    "LLD301",
    "Requests wait for models that are not loaded",
    (
        "under 95 % of the requests find their model loaded, and the wait is at least a tenth of "
        "the threshold"
    ),
    KNOWLEDGE_CENTER,
)
SLOW_DOWNLOADS = kind(
    "LLD302",
    "Models take long to download",
    "as LLD301; downloading takes twice as long as loading, and nothing is unloaded",
    KNOWLEDGE_CENTER,
)
SILENCE = kind(
    "LLD603",
    "No request arrives, and an alarm expects some",
    "an alarm on Invocations is in ALARM",
    MONITORING,
)
DISK = kind(
    "LLD118", "The disk is nearly full", "DiskUtilization reaches 90 % (a risk)", MONITORING
)

_LEAST = 5
#: SageMaker ends an invocation after 60 s, a stream after 8 minutes.
_LIMITS_MS = ((58_000, 62_000), (470_000, 490_000))
_CACHE_HITS = 0.95


def errors(view: VariantView) -> Iterator[Finding]:
    """One finding for each frequent kind of error; explained periods have their cause already."""
    yield from _disk(view)
    server = _unexplained(view, "Invocation5XXErrors")
    client = _unexplained(view, "Invocation4XXErrors")
    container = _unexplained(view, "InvocationModelErrors")
    if share := _too_many(view, server, "error_rate"):
        yield _server(view, server, share)
    if share := _too_many(view, client, "client_error_rate"):
        yield _refused(view, client, share)
    known = {t: server.points.get(t, 0) + client.points.get(t, 0) for t in container.points}
    other = Series({t: v - known[t] for t, v in container.points.items() if v > known[t]})
    if share := _too_many(view, other, "model_error_rate"):
        yield _unanswered(view, other, share)
    streams = view.get("MidStreamErrors", "Sum")
    if share := _too_many(view, streams, "model_error_rate"):
        yield view.finding(
            BROKEN_STREAMS,
            "medium",
            ("errors", "mid-stream"),
            _count(view, streams, "broken streams", share),
            besides="The container stopped in the middle of an answer: memory, its own timeouts, its log.",
        )


def _refused(view: VariantView, client: Series, share: float) -> Finding:
    """Wrong requests, or too many."""
    evidence = _count(view, client, "4XX errors", share)
    limit = throttled(view, client)
    if limit:
        return view.finding(
            THROTTLED,
            "medium",
            ("errors", "4XX", "only beyond a rate"),
            evidence,
            Evidence(limit.words, view.measurements.start, view.measurements.end),
            remedies=[
                Remedy(
                    "containers[].environment",
                    "the server's own limit of requests or of its queue, if its answer is 429",
                ),
                Remedy("alarms.client_error_rate", "says so next time", "0.05"),
            ],
            besides=(
                "Look at the error that callers get. A ModelError with OriginalStatusCode 429 is the "
                "container's: more instances let more in. SageMaker's own is 400 ThrottlingException, "
                "often without a message, which AWS names in no metric: reporters found a dynamic "
                "limit by number and type of instances, and a faster type or more of them ended it. "
                "Callers wait longer and longer between attempts (boto3 makes three), and come evenly."
            ),
        )
    return view.finding(
        CLIENT_ERRORS,
        "high",
        ("errors", "4XX"),
        evidence,
        remedies=[Remedy("alarms.client_error_rate", "says so next time", "0.05")],
        besides=(
            "AWS counts the model's own 4xx here: look at what callers changed in what they send, and "
            "at the container's log. Is it 429 at an even load, the container may throttle. What "
            "SageMaker refuses itself is in no metric: names, sizes, permissions, 400 "
            "ThrottlingException, 429 ModelNotReadyException of a model that is still loading."
        ),
    )


def _unexplained(view: VariantView, metric: str) -> Series:
    return view.get(metric, "Sum").without(view.explained)


def _too_many(view: VariantView, series: Series, option: str) -> float:
    """Share of requests that failed, over the window or its worst stretch; 0 when few."""
    limit = view.variant.thresholds.get((option, "Rate"))
    rate = limit.value if limit else ERROR_RATE
    rate = rate if rate < 1 else rate / 100  # stated in percent
    invocations = view.get("Invocations", "Sum")
    total = invocations.sum
    if series.sum >= _LEAST and total and series.sum / total >= rate:
        return series.sum / total
    for first, last in _failing_windows(view, series):
        part, all_ = series.between(first, last).sum, invocations.between(first, last).sum
        if part >= 4 * _LEAST and all_ and part / all_ >= 5 * rate:
            return part / all_
    return 0.0


def _failing_windows(view: VariantView, series: Series) -> list[tuple[datetime, datetime]]:
    times = [t for t, v in series.points.items() if v > 0]
    return [(first, last + view.period) for first, last in runs(times, 2 * view.period)]


def _count(view: VariantView, series: Series, words: str, share: float) -> Evidence:
    times = sorted(t for t, v in series.points.items() if v > 0)
    worst = max(times, key=lambda t: series.points[t])
    return view.over(
        times,
        f"{series.sum:,.0f} {words}, {percent(share)} of the requests, in "
        f"{len(times)} of {len(view.get('Invocations', 'Sum'))} periods, most at "
        f"{view.measurements.clock(worst)}",
    )


def _server(view: VariantView, server: Series, share: float) -> Finding:
    times = sorted(t for t, v in server.points.items() if v > 0)
    evidence = _count(view, server, "5XX errors", share)
    full = view.saturation(times)
    if full:
        return view.finding(
            OVERLOAD_ERRORS,
            "high",
            ("errors", "5XX", "instances saturated"),
            evidence,
            full,
            remedies=[
                Remedy("instances.max", "more instances"),
                Remedy("throughput.safety_factor", "lower: instances stay emptier"),
            ],
        )
    if found := early_errors(view, server, evidence) or queueing(view, times, evidence):
        return found
    since = next(
        (d for d in view.measurements.deployments if abs(d.time - times[0]) <= 5 * view.period),
        None,
    )
    more: tuple[Evidence, ...] = ()
    if since:
        at = view.measurements.clock(since.time)
        more = (
            Evidence(
                f"they began with the deployment of {since.configuration} at {at}",
                since.time,
                times[-1] + view.period,
            ),
        )
    return view.finding(
        SERVER_ERRORS,
        "high" if since else "medium",
        ("errors", "5XX", "instances not saturated"),
        evidence,
        *more,
        view.utilization_words(times),
        times=times,
        remedies=[
            Remedy("containers[].environment", "number of workers, memory of each"),
            Remedy("containers[].image", "the version before, if they began with it"),
            Remedy("deployment.rollback_on_alarms", value="true"),
        ],
        besides="The container's log in /aws/sagemaker/Endpoints/<name> has the exception.",
    )


def _unanswered(view: VariantView, other: Series, share: float) -> Finding:
    """Model errors that are no answer of the container: time-outs are among them, by AWS's words."""
    evidence = _count(view, other, "model errors beside 4XX and 5XX", share)
    times = sorted(t for t, v in other.points.items() if v > 0)
    longest = view.get("ModelLatency", "Maximum").only(times)
    at_limit = [
        t for t, v in longest.points.items() if any(low <= v <= high for low, high in _LIMITS_MS)
    ]
    if at_limit and other.only(at_limit).sum >= MOST * other.sum:
        return view.finding(
            TIMEOUTS,
            "high",
            ("errors", "model errors", "at the time limit"),
            evidence,
            f"longest ModelLatency then {milliseconds(longest.max or 0)}",
            times=times,
            remedies=[
                Remedy("containers[].environment", "limit the work of one request"),
                Remedy("instance_type", "a faster one"),
            ],
            besides=(
                "SageMaker ends an invocation after 60 s, a streamed one after 8 minutes; longer work "
                "belongs to asynchronous inference."
            ),
        )
    return early_errors(view, other, evidence) or view.finding(
        MODEL_ERRORS,
        "medium",
        ("errors", "model errors"),
        evidence,
        remedies=[
            Remedy("containers[].environment", "what the log asks for"),
            Remedy("alarms.model_error_rate", "says so next time", "0.01"),
        ],
        besides=(
            "Socket errors and malformed answers of the container count here, and time-outs: its log "
            "says which. On a multi-model endpoint so may a 429 ModelNotReadyException: the model is "
            "still loading."
        ),
    )


def _disk(view: VariantView) -> Iterator[Finding]:
    disk = view.get("DiskUtilization", "Average")
    if disk and max(disk.points.values()) >= 90:
        time, worst = max(disk.points.items(), key=lambda item: item[1])
        yield view.finding(
            DISK,
            "high",
            ("utilization", "disk"),
            Evidence(f"disk at {worst:.0f} %", time, time),
            remedies=[
                Remedy("volume_size_gib", "larger, on types without local storage"),
                Remedy("instance_type", "one with a larger local disk"),
            ],
            besides="Logs and temporary files of the container are the usual reason.",
            risk=True,
        )


def multi_model(view: VariantView) -> Iterator[Finding]:
    """Models that were not loaded when a request came."""
    hits = view.get("ModelCacheHit", "Average")
    counts = view.get("ModelCacheHit", "SampleCount")
    ratio = hits.weighted_mean(counts)
    wait = view.get("ModelLoadingWaitTime", "Average")
    waited = wait.weighted_mean(view.get("ModelLoadingWaitTime", "SampleCount"))
    if ratio is None or ratio >= _CACHE_HITS or not wait:
        return
    limits = [
        limit.value
        for (metric, _), limit in view.variant.thresholds.items()
        if metric == "ModelLatency"
    ]
    assert waited is not None
    if limits and waited < 0.1 * min(limits):
        return
    times = sorted(t for t, v in hits.points.items() if v < _CACHE_HITS)
    parts = [
        f"{percent(1 - ratio)} of the requests found their model not loaded and waited "
        f"{milliseconds(waited)} on average"
    ]
    loaded = view.get("LoadedModelCount", "Average")
    unloads = view.get("ModelUnloadingTime", "SampleCount").sum
    if loaded:
        parts.append(f"{loaded.mean:.0f} models loaded in the mean")
    if unloads:
        parts.append(f"{unloads:,.0f} unloaded to make room")
    memory = view.get("MemoryUtilization", "Average").only(times).mean
    if memory is not None:
        parts.append(f"memory at {memory:.0f} %")
    download = view.get("ModelDownloadingTime", "Average").mean
    load = view.get("ModelLoadingTime", "Average").mean
    evidence = ["; ".join(parts)]
    if download is not None and load is not None:
        evidence.append(f"download {milliseconds(download)}, load {milliseconds(load)} on average")
    path = ("multi-model", "requests wait for models")
    if download is not None and load is not None and download >= 2 * load and not unloads:
        yield view.finding(
            SLOW_DOWNLOADS,
            "high",
            (*path, "download dominates"),
            *evidence,
            times=times,
            remedies=[
                Remedy("containers[].data", "smaller artifacts in the endpoint's own region"),
                Remedy("instance_type", "more network bandwidth"),
            ],
            besides="Ask for each model once after a deployment, before callers do.",
        )
        return
    yield view.finding(
        CACHE_MISSES,
        "high",
        path,
        *evidence,
        times=times,
        remedies=[
            Remedy("instance_type", "more memory holds more models"),
            Remedy("instances.min", "more instances: each holds some of the models"),
            Remedy("alarms.cache_miss_rate", "says so next time", "0.05"),
        ],
        besides="Put models that are asked for most onto an endpoint of their own.",
    )


def silence(view: VariantView) -> Iterator[Finding]:
    """No traffic although an alarm on it says that there should be."""
    if view.get("Invocations", "Sum").sum > 0:
        return
    for alarm in view.measurements.alarms or ():
        if alarm.metric == "Invocations" and alarm.state == "ALARM":
            yield view.finding(
                SILENCE,
                "high",
                ("traffic", "none"),
                Evidence(
                    f"no invocation in the window; alarm {alarm.name} is in ALARM",
                    view.measurements.start,
                    view.measurements.end,
                ),
                remedies=[Remedy("private_link", "stack-level: security group and private DNS")],
                besides=(
                    "From a caller: does runtime.sagemaker.<region>.amazonaws.com resolve to an "
                    "address of the VPC, and does port 443 answer? `low-latency verify` checks both."
                ),
            )
            return
