"""What a language model's server tells of its tokens, read by PromQL.

Times are the server's own: network and SageMaker's time come on top for callers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from ..facts.container_metrics import (
    container_metric,
    fullest_query,
    percentile_query,
    percentile_share,
)
from .calls import Account
from .metrics import Series
from .queries import query_range

#: Names of what is read; times in milliseconds, the cache's use in percent, requests on the fullest
#: instance.
FIRST_TOKEN, INTER_TOKEN = "TimeToFirstToken", "InterTokenLatency"
TOKEN_TIMES = (FIRST_TOKEN, INTER_TOKEN)
WAITING, RUNNING, KV_CACHE = "RequestsWaiting", "RequestsRunning", "KvCacheUse"
FULLEST = "Maximum"

#: By what the container's metrics mean, as ``facts.container_metrics`` calls it; with the factor that
#: brings a level into the unit above.
TIMES = {"time_to_first_token": FIRST_TOKEN, "inter_token_latency": INTER_TOKEN}
LEVELS = {
    "requests_waiting": (WAITING, 1.0),
    "requests_running": (RUNNING, 1.0),
    "kv_cache_use": (KV_CACHE, 100.0),
}
#: What ``--target`` and load tests put before a percentile.
PREFIXES = {"ttft-": FIRST_TOKEN, "itl-": INTER_TOKEN}
_PERCENTILES = ("p50", "p90", "p95", "p99")
#: Whose metrics are asked for where the image says nothing: vLLM's are the most copied.
DEFAULT_SERVER = "vllm"
MILLISECONDS = 1000.0
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
        (name, statistic): (window.percentile(meaning, percentile_share(statistic)), MILLISECONDS)
        for meaning, name in TIMES.items()
        for statistic in dict.fromkeys((*_PERCENTILES, *statistics))
    }
    for meaning, (name, factor) in LEVELS.items():
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
    for meaning, name in TIMES.items():
        query = window.percentile(meaning, 0.95, by=_HOST)
        for labels, series in window.rows(account, query, MILLISECONDS):
            if host := labels.get(_HOST):
                found.setdefault(host, {})[name, "p95"] = series
    return found
