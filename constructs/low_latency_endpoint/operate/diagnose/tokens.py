"""A language model's tokens: why the first comes late, and why the next ones come slowly.

What is known of them is what the model's server tells at its ``/metrics``: times inside the server,
what waits, what runs, and how full the KV cache is. ModelLatency of a stream says nothing of it.

A server that batches has two causes for everything: more work, or slower work. More of one makes
more of the other, as a request that takes longer is under way for longer. So load counts as the
cause only where more requests arrive; and what slow tokens explain is no second cause of late first
ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from ...account.metrics import Series, median
from ...report.numbers import milliseconds, readable
from .findings import GUIDE, Evidence, Finding, Remedy, kind
from .view import SlowPeriods, VariantView

#: What the model's server tells, by the names that findings use; times in milliseconds, the cache's
#: use in percent, requests on the fullest instance.
FIRST_TOKEN, INTER_TOKEN = "TimeToFirstToken", "InterTokenLatency"
TOKEN_TIMES = (FIRST_TOKEN, INTER_TOKEN)
#: As the plan's decisions call them.
MEASURES = {"time to first token": FIRST_TOKEN, "inter-token latency": INTER_TOKEN}
WAITING, RUNNING, KV_CACHE = "RequestsWaiting", "RequestsRunning", "KvCacheUse"
FULLEST = "Maximum"

METRICS = GUIDE + "inference-monitoring.html"
_BATCHING = "https://docs.vllm.ai/en/latest/configuration/optimization/"

NO_ROOM = kind(
    "LLD137",
    "First tokens wait: the KV cache is full",
    "time to first token above its threshold, requests wait, KV cache use from 90 %",
    _BATCHING,
)
NO_PLACE = kind(
    "LLD138",
    "First tokens wait for a place in the batch",
    "time to first token above its threshold, requests wait, and 1.2 times as many arrived or twice as "
    "many run as before",
    _BATCHING,
)
LATE_PREFILL = kind(
    "LLD139",
    "First tokens come late although the server has room",
    "time to first token above its threshold; no request waits, or no more requests arrive and run "
    "than before",
    _BATCHING,
)
BATCH_TOO_LARGE = kind(
    "LLD140",
    "Tokens come slowly: too many sequences are decoded at a time",
    "inter-token latency above its threshold while at least 1.2 times as many requests arrived",
    _BATCHING,
)
PREEMPTED = kind(
    "LLD141",
    "Tokens come slowly: the KV cache is full",
    "inter-token latency above its threshold, KV cache use from 97 %, and no more requests than before",
    _BATCHING,
)
SLOW_DECODE = kind(
    "LLD142",
    "Tokens come slowly at the usual load",
    "inter-token latency above its threshold, and neither load nor KV cache explains it",
    METRICS,
)
SLOW_HOST = kind(
    "LLD143",
    "One instance is slow with its tokens",
    "one instance's p95 at least twice the median of the others'",
    METRICS,
)

_FULL_PERCENT, _PREEMPTING_PERCENT = 90.0, 97.0
_MORE_ARRIVALS, _BATCH_GREW = 1.2, 2.0
_APART = 2.0
_JUDGED = "p95"


def token_times(view: VariantView) -> Iterator[Finding]:
    """What is wrong with the tokens of a variant; one cause for each kind of delay."""
    decode = view.slow_of(INTER_TOKEN)
    yield from _slow_tokens(view, decode) if decode else ()
    explained = {time for slow in decode for time in slow.values.points}
    late = view.without(explained).slow_of(FIRST_TOKEN) if decode else view.slow_of(FIRST_TOKEN)
    if late:
        yield from _late_first_tokens(view, late)


def has_tokens(view: VariantView) -> bool:
    """Whether the model's server told anything of its tokens."""
    return any(metric in TOKEN_TIMES for metric, _ in view.variant.series)


def _slow_tokens(view: VariantView, slow: tuple[SlowPeriods, ...]) -> Iterator[Finding]:
    times = _times(slow)
    path = ("inter-token latency high",)
    apart = _host_apart(view, INTER_TOKEN, times)
    if apart is not None:
        yield _slow_host(view, slow, path, apart)
        return
    more = _more_arrivals(view, times)
    if more is not None:
        yield view.finding(
            BATCH_TOO_LARGE,
            "high",
            (*path, "more requests arrived"),
            *view.slow_evidence(slow),
            more,
            *_levels(view, times, RUNNING),
            times=times,
            remedies=[
                Remedy(
                    "scaling.concurrency_target", "lower it: scaling then adds instances sooner"
                ),
                Remedy("instances.min", "more, where load comes faster than instances start"),
                Remedy(
                    "containers[].environment",
                    "SM_VLLM_MAX_NUM_SEQS: fewer sequences at a time; others then wait for their "
                    "first token",
                ),
            ],
        )
        return
    cache = _median(view, KV_CACHE, times)
    if cache is not None and cache >= _PREEMPTING_PERCENT:
        yield view.finding(
            PREEMPTED,
            "medium",
            (*path, "no more requests than before", "KV cache full"),
            *view.slow_evidence(slow),
            *_levels(view, times, KV_CACHE, RUNNING),
            times=times,
            remedies=_ROOM,
            besides="A server whose cache is full takes sequences out and computes them again: "
            "look at vllm:num_preemptions_total.",
        )
        return
    yield view.finding(
        SLOW_DECODE,
        "medium",
        (*path, "no more requests than before", "room in the KV cache"),
        *view.slow_evidence(slow),
        *_levels(view, times, RUNNING, KV_CACHE),
        times=times,
        remedies=[
            Remedy(
                "containers[].environment",
                "chunked prefill, so that long prompts do not hold up the tokens of others",
            ),
            Remedy("instance_type", "one with more memory bandwidth, where every instance is slow"),
        ],
        besides="Compare lengths of prompts with those before, and look at the server's log: a "
        "throttled GPU and another process on it show nowhere else.",
    )


_ROOM = (
    Remedy("instances.min", "more instances, each with a cache of its own"),
    Remedy("scaling.concurrency_target", "lower it: as many requests as the cache has room for"),
    Remedy(
        "containers[].environment",
        "SM_VLLM_KV_CACHE_DTYPE: fp8 halves what a token needs; SM_VLLM_MAX_MODEL_LEN bounds it",
    ),
    Remedy("instance_type", "one with more GPU memory"),
)


def _late_first_tokens(view: VariantView, slow: tuple[SlowPeriods, ...]) -> Iterator[Finding]:
    times = _times(slow)
    path = ("time to first token high",)
    apart = _host_apart(view, FIRST_TOKEN, times)
    if apart is not None:
        yield _slow_host(view, slow, path, apart)
        return
    waiting, cache = _median(view, WAITING, times), _median(view, KV_CACHE, times)
    more = _more_arrivals(view, times)
    evidence: tuple[Evidence | str, ...] = (
        *view.slow_evidence(slow),
        *_levels(view, times, WAITING, KV_CACHE, RUNNING),
        *([more] if more else []),
    )
    full = cache is not None and cache >= _FULL_PERCENT
    if waiting is not None and waiting >= 1 and (full or more or _more_run(view, times)):
        yield view.finding(
            NO_ROOM if full else NO_PLACE,
            "high",
            (*path, "requests wait", "KV cache full" if full else "room in the KV cache"),
            *evidence,
            times=times,
            remedies=_ROOM
            if full
            else (
                Remedy("instances.min", "more instances"),
                Remedy(
                    "scaling.concurrency_target", "lower it: scaling then adds instances sooner"
                ),
                Remedy(
                    "containers[].environment",
                    "SM_VLLM_MAX_NUM_SEQS and SM_VLLM_MAX_NUM_BATCHED_TOKENS: more at a time, for "
                    "slower tokens",
                ),
            ),
        )
        return
    yield view.finding(
        LATE_PREFILL,
        "low" if waiting is None else "medium",
        (*path, "no more requests than before"),
        *evidence,
        times=times,
        remedies=[
            Remedy(
                "routing",
                "prefix_aware, where prompts begin alike: what is cached needs no prefill",
            ),
            Remedy("tokens.input", "compare it with the prompts that callers send now"),
        ],
        besides="Time passes on the way into the batch or in the prefill: longer prompts, fewer hits "
        "in the prefix cache (vllm:prefix_cache_hits_total), or a slow tokenizer or proxy in the "
        "container.",
    )


def _slow_host(
    view: VariantView, slow: tuple[SlowPeriods, ...], path: tuple[str, ...], apart: str
) -> Finding:
    return view.finding(
        SLOW_HOST,
        "high",
        (*path, "one instance apart"),
        *view.slow_evidence(slow),
        apart,
        times=_times(slow),
        remedies=[
            Remedy(
                "routing",
                "least_outstanding_requests sends less to an instance that answers slowly",
            )
        ],
        besides="Replace the instance: scale out by one and in again, or update the endpoint.",
    )


def _times(slow: tuple[SlowPeriods, ...]) -> list[datetime]:
    return sorted({time for each in slow for time in each.values.points})


def _median(view: VariantView, metric: str, times: list[datetime]) -> float | None:
    return view.get(metric, FULLEST).only(times).median


def _more_arrivals(view: VariantView, times: list[datetime]) -> str | None:
    """That more requests arrived than while tokens came in time; ``None`` when they did not."""
    slow = set(times)
    before = Series({t: v for t, v in view.tps.points.items() if t not in slow and v > 0}).median
    now = view.tps.only(times).median
    if before is None or now is None or now < _MORE_ARRIVALS * before:
        return None
    return f"{readable(now, 3)} requests a second, {readable(before, 3)} while tokens came in time"


def _more_run(view: VariantView, times: list[datetime]) -> bool:
    """Whether the batch is twice what it was in time, at as many requests (idle: no batch)."""
    running, slow = view.get(RUNNING, FULLEST), set(times)
    least = (view.tps.only(times).median or 0.0) / _BATCH_GREW
    as_busy = (t for t, rate in view.tps.points.items() if rate >= least and t not in slow)
    before, now = running.only(as_busy).median, running.only(times).median
    return now is not None and before is not None and now >= _BATCH_GREW * max(before, 1.0)


def _levels(view: VariantView, times: list[datetime], *metrics: str) -> Iterator[str]:
    """How much waited, ran and was cached meanwhile, on the fullest instance."""
    words = {WAITING: "waiting", RUNNING: "running", KV_CACHE: "% of the KV cache in use"}
    parts = [
        f"{readable(round(value) if metric == KV_CACHE else value, 3)} {words[metric]}"
        for metric in metrics
        if (value := _median(view, metric, times)) is not None
    ]
    if parts:
        yield f"requests: {', '.join(parts)} (medians of the fullest instance)"


def _host_apart(view: VariantView, metric: str, times: list[datetime]) -> str | None:
    """The one instance whose tokens are late while the others' are not."""
    found = {
        host: value
        for host, series in view.variant.hosts.items()
        if (value := series.get((metric, _JUDGED), Series()).only(times).median) is not None
    }
    if len(found) < 2:
        return None
    slowest = max(found, key=lambda host: found[host])
    others = median(value for host, value in found.items() if host != slowest)
    if not others or found[slowest] < _APART * others:
        return None
    return (
        f"instance {slowest}: {metric} {_JUDGED} {milliseconds(found[slowest])}, the "
        f"other{'s' if len(found) > 2 else ''} {milliseconds(others)}"
    )
