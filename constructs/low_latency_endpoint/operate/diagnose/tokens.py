"""A language model's tokens: why the first comes late, and why the next ones come slowly.

A server that batches is late for more work or for slower work, and each makes more of the other. So
load counts as the cause only where more requests arrive, and slow tokens explain late first ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from ...account.metrics import Series, median, statistic_of
from ...account.queries import FIRST_TOKEN, FULLEST, INTER_TOKEN, KV_CACHE, RUNNING, WAITING
from ...report.numbers import milliseconds, readable
from .findings import Finding
from .thresholds import DOUBLED, FULL_CACHE_PERCENT, MORE_ARRIVALS, PREEMPTING_PERCENT, SLOW_HOST
from .view import SlowPeriods, VariantView, times_of

#: As the plan's decisions call them.
MEASURES = {"time to first token": FIRST_TOKEN, "inter-token latency": INTER_TOKEN}
_JUDGED = "p95"


def token_times(view: VariantView) -> Iterator[Finding]:
    """What is wrong with the tokens of a variant; one cause for each kind of delay."""
    decode = view.slow_of(INTER_TOKEN)
    yield from _slow_tokens(view, decode) if decode else ()
    late = view.without(times_of(decode)).slow_of(FIRST_TOKEN)
    yield from _late_first_tokens(view, late) if late else ()


def _slow_tokens(view: VariantView, slow: tuple[SlowPeriods, ...]) -> Iterator[Finding]:
    times, shown = times_of(slow), view.slow_evidence(slow)
    cache = _median(view, KV_CACHE, times)
    if apart := _host_apart(view, INTER_TOKEN, times):
        root = ("inter-token latency high",)
        yield view.cause("LLD143", *shown, apart, times=times, root=root)
    elif more := _more_arrivals(view, times):
        yield view.cause("LLD140", *shown, more, *_levels(view, times, RUNNING), times=times)
    elif cache is not None and cache >= PREEMPTING_PERCENT:
        yield view.cause("LLD141", *shown, *_levels(view, times, KV_CACHE, RUNNING), times=times)
    else:
        yield view.cause("LLD142", *shown, *_levels(view, times, RUNNING, KV_CACHE), times=times)


def _late_first_tokens(view: VariantView, slow: tuple[SlowPeriods, ...]) -> Iterator[Finding]:
    times, shown = times_of(slow), view.slow_evidence(slow)
    if apart := _host_apart(view, FIRST_TOKEN, times):
        root = ("time to first token high",)
        yield view.cause("LLD143", *shown, apart, times=times, root=root)
        return
    waiting, cache = _median(view, WAITING, times), _median(view, KV_CACHE, times)
    more = _more_arrivals(view, times)
    words = [*_levels(view, times, WAITING, KV_CACHE, RUNNING), *filter(None, [more])]
    full = cache is not None and cache >= FULL_CACHE_PERCENT
    if waiting is not None and waiting >= 1 and (full or more or _more_run(view, times)):
        yield view.cause("LLD137" if full else "LLD138", *shown, *words, times=times)
    else:
        sure = "low" if waiting is None else "medium"
        yield view.cause("LLD139", *shown, *words, times=times, confidence=sure)


def _median(view: VariantView, metric: str, times: list[datetime]) -> float | None:
    return view.get(metric, FULLEST).only(times).median


def _more_arrivals(view: VariantView, times: list[datetime]) -> str:
    """That more requests arrived than while tokens came in time; empty when they did not."""
    slow = set(times)
    before = Series({t: v for t, v in view.tps.points.items() if t not in slow and v > 0}).median
    now = view.tps.only(times).median
    if before is None or now is None or now < MORE_ARRIVALS * before:
        return ""
    return f"{readable(now, 3)} requests a second, {readable(before, 3)} while tokens came on time"


def _more_run(view: VariantView, times: list[datetime]) -> bool:
    """Whether the batch is twice what it was in time, at as many requests (idle: no batch)."""
    running, slow = view.get(RUNNING, FULLEST), set(times)
    least = (view.tps.only(times).median or 0.0) / DOUBLED
    as_busy = (t for t, rate in view.tps.points.items() if rate >= least and t not in slow)
    before, now = running.only(as_busy).median, running.only(times).median
    return now is not None and before is not None and now >= DOUBLED * max(before, 1.0)


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


def _host_apart(view: VariantView, metric: str, times: list[datetime]) -> str:
    """The one instance whose tokens are late while the others' are not."""
    found = {
        host: value
        for host, series in view.variant.hosts.items()
        if (value := statistic_of(series, metric, _JUDGED).only(times).median) is not None
    }
    if len(found) < 2:
        return ""
    slowest = max(found, key=lambda host: found[host])
    others = median(value for host, value in found.items() if host != slowest)
    if not others or found[slowest] < SLOW_HOST * others:
        return ""
    return (
        f"instance {slowest}: {metric} {_JUDGED} {milliseconds(found[slowest])}, the "
        f"other{'s' if len(found) > 2 else ''} {milliseconds(others)}"
    )
