"""PromQL over an account's metrics: CloudWatch's API, and what model servers tell of their tokens.

boto3 has no operations for it: the requests are signed and sent by its CloudWatch client, so that
its credentials, endpoint, certificates and proxies hold for them too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError, ClientError

from ..errors.given_files import json_value
from ..facts.container_metrics import (
    container_metric,
    fullest_query,
    percentile_query,
    percentile_share,
)
from ..facts.prices import OTEL_METRICS_USD
from .calls import Account
from .metrics import Series
from .sessions import Unreadable

_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_RIGHTS = "cloudwatch:GetMetricData and cloudwatch:ListMetrics"
"""CloudWatch's guide; SageMaker's lists cloudwatch:QueryMetrics and DescribeMetrics besides."""


class QuerySample(NamedTuple):
    """One series that a query returned, with its value; NaN where there is none."""

    labels: Mapping[str, str]
    value: float


def query_samples(account: Account, query: str, at: datetime) -> list[QuerySample]:
    """What a query returns at a moment: a vector, or a scalar as one series without labels."""
    data = _ask(account, "query", {"query": query, "time": f"{at.timestamp():.3f}"})
    if data["resultType"] == "scalar":
        return [QuerySample({}, float(data["result"][1]))]
    if data["resultType"] != "vector":
        raise Unreadable(f"the query returns a {data['resultType']}, and no instant vector")
    # An exponential histogram has no value of its own; that there is one is what counts.
    return [
        QuerySample(row["metric"], float(row["value"][1] if "value" in row else "nan"))
        for row in data["result"]
    ]


def label_values(
    account: Account, label: str, start: datetime, end: datetime, *, metric: str = ""
) -> list[str]:
    """The values of a label among the series with data in a time window."""
    fields = {"start": f"{start.timestamp():.0f}", "end": f"{end.timestamp():.0f}"}
    if metric:
        fields["match[]"] = f'{{"{metric}"}}'
    return [str(each) for each in _ask(account, f"label/{quote(label, safe='')}/values", fields)]


START_ENRICHMENT = (
    "`aws observabilityadmin start-telemetry-enrichment`, then `aws cloudwatch "
    "start-otel-enrichment`, once for the account and Region. From then on CloudWatch bills each GB "
    f"of metrics that it enriches ({OTEL_METRICS_USD:.2f} USD by AWS's launch post), those of the "
    "account's other services too."
)
"""How it is started: "before calling this operation, you must enable resource tags on telemetry"."""


def enrichment_status(account: Account) -> str:
    """Whether CloudWatch's OTel enrichment is ``Running`` or ``Stopped`` in the account's Region."""
    if not hasattr(account.client("cloudwatch"), "get_otel_enrichment"):
        raise Unreadable("this boto3 does not know GetOTelEnrichment", "Upgrade boto3.")
    return str(account.read("cloudwatch", "get_otel_enrichment")["Status"])


def _ask(account: Account, path: str, fields: Mapping[str, str]) -> Any:
    client = account.client("cloudwatch")
    url, form = f"{client.meta.endpoint_url.rstrip('/')}/api/v1/{path}", urlencode(fields)
    if path.startswith("label/"):  # takes no POST
        request = AWSRequest("GET", f"{url}?{form}")
    else:
        request = AWSRequest("POST", url, data=form, headers=_FORM)
    try:
        client._request_signer.sign("QueryMetrics", request)
        answer = client._endpoint.http_session.send(request.prepare())
    except (ClientError, BotoCoreError) as error:
        raise Unreadable.of("cloudwatch", "QueryMetrics", error) from error
    try:
        document = json_value(answer.content)
        if answer.status_code == 200:
            return document["data"]
        said = str(document.get("error") or document.get("message") or document)[:200]
    except (ValueError, AttributeError, KeyError):
        said = "no document of the API"
    if answer.status_code in (401, 403):
        raise Unreadable(
            f"these credentials may not query metrics: {said}",
            f"Allow {_RIGHTS} to these credentials, or ask somebody who may.",
        )
    raise Unreadable(f"CloudWatch answered a PromQL query with {answer.status_code}: {said}")


def query_range(
    account: Account, query: str, start: datetime, end: datetime, step: timedelta
) -> list[tuple[Mapping[str, str], dict[datetime, float]]]:
    """What a query returns from ``start`` to ``end``, both included; NaN is left out."""
    data = _ask(
        account,
        "query_range",
        {
            "query": query,
            "start": f"{start.timestamp():.3f}",
            "end": f"{end.timestamp():.3f}",
            "step": f"{step.total_seconds():g}",
        },
    )
    return [
        (
            row["metric"],
            {
                datetime.fromtimestamp(float(at), UTC): float(value)
                for at, value in row.get("values", ())
                if not math.isnan(float(value))
            },
        )
        for row in data["result"]
    ]


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
            (labels, Series({time - self.period: factor * value for time, value in values.items()}))
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
    tokens: Readings = {}
    for key, (query, factor) in queries.items():
        for _, series in window.rows(account, query, factor)[:1]:
            if series:
                tokens[key] = series
    return tokens


def read_hosts(account: Account, window: TokenWindow) -> dict[str, Readings]:
    """The p95 of both token times of each instance."""
    hosts: dict[str, Readings] = {}
    for meaning, name in TIMES.items():
        query = window.percentile(meaning, 0.95, by=_HOST)
        for labels, series in window.rows(account, query, MILLISECONDS):
            if host := labels.get(_HOST):
                hosts.setdefault(host, {})[name, "p95"] = series
    return hosts
