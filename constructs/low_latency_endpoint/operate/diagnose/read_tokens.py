"""What a language model's server tells of its tokens, read by PromQL.

Read is what ``plan.container_metrics`` knows of vLLM and SGLang, where an alarm, the plan or a target
says how late a token may be. The values are those of the server: network and
SageMaker's own time come on top for callers.

Permissions beside those of ``reading``: ``cloudwatch:GetMetricData`` and ``cloudwatch:ListMetrics``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from ...account.alarms import Alarm, alarm_query
from ...account.calls import Account
from ...account.metrics import Series
from ...account.queries import query_range
from ...plan.container_metrics import (
    ENDPOINT_LABEL,
    VARIANT_LABEL,
    container_metric,
    fullest_query,
    percentile_query,
    percentile_share,
)
from ...plan.query_reading import label_in, watched_metric
from .measurements import AlarmReading, Threshold
from .tokens import FIRST_TOKEN, FULLEST, INTER_TOKEN, KV_CACHE, RUNNING, WAITING

#: By what the container's metrics mean; with the factor that brings their unit into the findings'.
_TIMES = {"time_to_first_token": FIRST_TOKEN, "inter_token_latency": INTER_TOKEN}
_LEVELS = {
    "requests_waiting": (WAITING, 1.0),
    "requests_running": (RUNNING, 1.0),
    "kv_cache_use": (KV_CACHE, 100.0),
}
#: What ``--target`` and load tests put before a percentile.
PREFIXES = {"ttft-": FIRST_TOKEN, "itl-": INTER_TOKEN}
_PERCENTILES = ("p50", "p90", "p95", "p99")
#: Whose metrics are asked for where the image says nothing: vLLM's are the most copied.
DEFAULT_SERVER = "vllm"
_MILLISECONDS = 1000.0
#: A rate needs two values in its window, and a scrape may fail.
_SCRAPES, _SCRAPE_SECONDS = 3, 60
_HOST = "@resource.host.id"

Readings = dict[tuple[str, str], Series]


def read_tokens(
    account: Account,
    endpoint: str,
    variant: str,
    server: str,
    start: datetime,
    end: datetime,
    period: timedelta,
    *,
    publish_seconds: int = _SCRAPE_SECONDS,
    statistics: Iterable[str] = (),
) -> Readings:
    """A variant's token times in milliseconds, and its fullest instance, by period.

    Parameters
    ----------
    publish_seconds : int
        How often SageMaker reads the container's metrics. By default once a minute.
    statistics : iterable of str
        Percentiles beside p50, p90, p95 and p99.

    Raises
    ------
    Unreadable
        For a refusal, and where CloudWatch cannot be reached.
    """
    window = int(max(period.total_seconds(), _SCRAPES * publish_seconds))
    found: Readings = {}
    for meaning, name in _TIMES.items():
        metric = container_metric(server, meaning)
        for statistic in dict.fromkeys((*_PERCENTILES, *statistics)):
            query = percentile_query(
                metric,
                percentile_share(statistic),
                endpoint=endpoint,
                variant=variant,
                window_seconds=window,
            )
            found[name, statistic] = _one(account, query, start, end, period, _MILLISECONDS)
    for meaning, (name, factor) in _LEVELS.items():
        query = fullest_query(
            container_metric(server, meaning),
            endpoint=endpoint,
            variant=variant,
            window_seconds=int(period.total_seconds()),
        )
        found[name, FULLEST] = _one(account, query, start, end, period, factor)
    return {key: series for key, series in found.items() if series}


def read_hosts(
    account: Account,
    endpoint: str,
    variant: str,
    server: str,
    start: datetime,
    end: datetime,
    period: timedelta,
    *,
    publish_seconds: int = _SCRAPE_SECONDS,
) -> dict[str, Readings]:
    """The p95 of both token times of each instance.

    Raises
    ------
    Unreadable
        As :func:`read_tokens`.
    """
    window = int(max(period.total_seconds(), _SCRAPES * publish_seconds))
    found: dict[str, Readings] = {}
    for meaning, name in _TIMES.items():
        query = percentile_query(
            container_metric(server, meaning),
            0.95,
            endpoint=endpoint,
            variant=variant,
            window_seconds=window,
            by=_HOST,
        )
        for labels, values in query_range(account, query, start + period, end, period):
            if host := labels.get(_HOST):
                series = _series(values, period, _MILLISECONDS)
                found.setdefault(host, {})[name, "p95"] = series
    return found


def _one(
    account: Account, query: str, start: datetime, end: datetime, period: timedelta, factor: float
) -> Series:
    """A query's only series; a moment tells of the period that ends with it."""
    rows = query_range(account, query, start + period, end, period)
    return _series(rows[0][1], period, factor) if rows else Series()


def _series(values: Mapping[datetime, float], period: timedelta, factor: float) -> Series:
    return Series({time - period: factor * value for time, value in values.items()})


def token_alarms(alarms: Iterable[Alarm], endpoint: str) -> Iterator[AlarmReading]:
    """The alarms on queries that watch an endpoint's tokens, of those that can be read."""
    for alarm in alarms:
        query = alarm_query(alarm)
        if not query or label_in(query, ENDPOINT_LABEL) != endpoint:
            continue
        watched = watched_metric(query)
        if watched is None:
            continue
        if (time := _TIMES.get(watched.meaning)) is not None:
            metric, statistic, factor, unit = time, watched.percentile, _MILLISECONDS, "ms"
        else:
            metric, factor = _LEVELS[watched.meaning]
            statistic, unit = FULLEST, ""
        yield AlarmReading(
            name=alarm["AlarmName"],
            metric=metric,
            statistic=statistic,
            threshold=factor * watched.threshold,
            unit=unit,
            state=alarm.get("StateValue", "INSUFFICIENT_DATA"),
            since=alarm.get("StateUpdatedTimestamp"),
            variant=label_in(query, VARIANT_LABEL),
            reason=alarm.get("StateReason", ""),
        )


def token_targets(targets: Mapping[str, float]) -> dict[tuple[str, str], Threshold]:
    """Targets on tokens as ``ttft-p95`` and ``itl-p95`` state them, in milliseconds.

    Examples
    --------
    >>> token_targets({"p99": 200.0, "itl-p95": 50.0})
    {('InterTokenLatency', 'p95'): Threshold(value=50.0, source='the target')}
    """
    return {
        (metric, name.removeprefix(prefix)): Threshold(value, "the target")
        for name, value in targets.items()
        for prefix, metric in PREFIXES.items()
        if name.startswith(prefix)
    }
