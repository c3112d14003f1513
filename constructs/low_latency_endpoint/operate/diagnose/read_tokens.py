"""What a language model's server tells of its tokens, read by PromQL.

Read is what ``facts.container_metrics`` knows of vLLM and SGLang, where an alarm, the plan or a target
says how late a token may be. The values are those of the server: network and
SageMaker's own time come on top for callers.

Permissions beside those of ``reading``: ``cloudwatch:GetMetricData`` and ``cloudwatch:ListMetrics``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from ...account.alarms import Alarm, alarm_query
from ...account.calls import Account
from ...account.metrics import Series
from ...account.queries import query_range
from ...facts.container_metrics import (
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


@dataclass(frozen=True)
class TokenWindow:
    """Whose tokens, and of when."""

    endpoint: str
    variant: str
    server: str  # what serves the model: ``vllm`` or ``sglang``
    start: datetime
    end: datetime
    period: timedelta
    # how often SageMaker reads the container's metrics. By default once a minute.
    publish_seconds: int = _SCRAPE_SECONDS

    def percentile(self, meaning: str, share: float, by: str = "") -> str:
        """A query for a percentile of one of the token times."""
        return percentile_query(
            container_metric(self.server, meaning),
            share,
            endpoint=self.endpoint,
            variant=self.variant,
            window_seconds=int(max(self.period.total_seconds(), _SCRAPES * self.publish_seconds)),
            by=by,
        )

    def rows(
        self, account: Account, query: str, factor: float
    ) -> list[tuple[Mapping[str, str], Series]]:
        """What a query finds; a moment tells of the period that ends with it."""
        found = query_range(account, query, self.start + self.period, self.end, self.period)
        return [
            (labels, Series({time - self.period: factor * one for time, one in values.items()}))
            for labels, values in found
        ]


def read_tokens(
    account: Account, window: TokenWindow, *, statistics: Iterable[str] = ()
) -> Readings:
    """A variant's token times in milliseconds, and its fullest instance, by period."""
    queries = {
        (name, statistic): (window.percentile(meaning, percentile_share(statistic)), _MILLISECONDS)
        for meaning, name in _TIMES.items()
        for statistic in dict.fromkeys((*_PERCENTILES, *statistics))
    }
    for meaning, (name, factor) in _LEVELS.items():
        query = fullest_query(
            container_metric(window.server, meaning),
            endpoint=window.endpoint,
            variant=window.variant,
            window_seconds=int(window.period.total_seconds()),
        )
        queries[name, FULLEST] = query, factor
    found: Readings = {}
    for key, (query, factor) in queries.items():
        for _, series in window.rows(account, query, factor)[:1]:
            if series:
                found[key] = series
    return found


def read_hosts(account: Account, window: TokenWindow) -> dict[str, Readings]:
    """The p95 of both token times of each instance."""
    found: dict[str, Readings] = {}
    for meaning, name in _TIMES.items():
        query = window.percentile(meaning, 0.95, by=_HOST)
        for labels, series in window.rows(account, query, _MILLISECONDS):
            if host := labels.get(_HOST):
                found.setdefault(host, {})[name, "p95"] = series
    return found


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
        )


def token_targets(targets: Mapping[str, float]) -> dict[tuple[str, str], Threshold]:
    """Targets on tokens as ``ttft-p95`` and ``itl-p95`` state them, in milliseconds.

    >>> token_targets({"p99": 200.0, "itl-p95": 50.0})
    {('InterTokenLatency', 'p95'): Threshold(value=50.0, source='the target')}
    """
    return {
        (metric, name.removeprefix(prefix)): Threshold(value, "the target")
        for name, value in targets.items()
        for prefix, metric in PREFIXES.items()
        if name.startswith(prefix)
    }
