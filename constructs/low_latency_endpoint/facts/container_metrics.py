"""What language models' servers tell at their ``/metrics``, and PromQL queries over it.

SageMaker scrapes the page (detailed observability, on by default for new configurations) and
CloudWatch answers PromQL over it. Its metrics say what a caller cannot: times inside the server,
without network and SageMaker; what waits; how full the KV cache is.

**AWS's pages contradict each other on names and forms.** SageMaker's guide has
``vllm:time_to_first_token_seconds`` on one page and ``vllm_time_to_first_token_seconds_bucket`` with
``by (le)`` on another; CloudWatch's guide says that such histograms become exponential ones at
ingestion, to be asked for without ``_bucket``. Which of them returns data was not seen. So every
query here asks for both names, and a percentile for both kinds of histogram, joined with ``or``:
what exists is used, and what does not adds nothing. ``low-latency verify`` looks whether any does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from ..errors import rule
from .limit_kinds import USE_AN_ALLOWED_VALUE, Choice, number_range
from .tables import rows

_QUERYING = "/AmazonCloudWatch/latest/monitoring/CloudWatch-PromQL-Querying.html"
_OBSERVABILITY = "/sagemaker/latest/dg/monitoring-detailed-observability-promql.html"
_ALARM = "/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html"
_CRITERIA = "/AmazonCloudWatch/latest/APIReference/API_AlarmPromQLCriteria.html"

EVALUATION_INTERVAL = rule(
    "LLE990",
    "the evaluation interval is none that CloudWatch takes",
    fix="Use 10, 20, 30 or whole minutes.",
    source=_ALARM,
)
ALARM_WAIT_SECONDS = number_range(
    "LLE991", "the pending or recovery period", 0, 86_400, unit="seconds", source=_CRITERIA
)
PERCENTILE_NAME = rule(
    "LLE992",
    "a histogram has no statistic of this name",
    fix="Use a percentile such as p95.",
    source=_QUERYING,
)
QUERY_WINDOW_SECONDS = number_range(
    "LLE993",
    "the window of a query",
    60,
    86_400,
    unit="seconds",
    fix="Give at least twice the metric publish frequency: a rate needs two values.",
)
WAITING_REQUESTS = number_range("LLE994", "the number of requests that wait", 0, None, whole=False)
KV_CACHE_USE = number_range(
    "LLE995",
    "the use of the KV cache",
    0,
    1,
    whole=False,
    fix="Give a share: 0.95 is all but a twentieth of it.",
)
METRICS_SERVER = rule(
    "LLE996",
    "the metrics of this server are not known",
    fix=USE_AN_ALLOWED_VALUE,
    source=_OBSERVABILITY,
)
METRICS_OF_SERVER = Choice(
    METRICS_SERVER, "the server whose metrics the container publishes", ("vllm", "sglang")
)
NOTHING_WATCHED = rule(
    "LLE997", "there is nothing to watch", fix="State ttft, itl, waiting_requests or kv_cache_use."
)

LONGEST_QUERY = 10_000
"""Characters of a PromQL alarm's query. Source: CloudWatch API reference, AlarmPromQLCriteria."""

ENDPOINT_LABEL = "aws.sagemaker.endpoint.name"
VARIANT_LABEL = "aws.sagemaker.variant.name"

_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,5})?)", re.ASCII)


class ContainerMetric(NamedTuple):
    """One row of ``data/container_metrics.csv``."""

    server: str
    meaning: str
    metric: str  # the server's own name, with a colon
    type: str  # ``histogram`` or ``gauge``
    unit: str  # ``seconds``, ``requests`` or ``share``
    source: str  # where the name stands, and when it was read
    read: str

    @property
    def names(self) -> tuple[str, str]:
        """The names that AWS's pages have for it: the server's own, and with underscores."""
        return self.metric, self.metric.replace(":", "_")


@cache
def container_metrics() -> Mapping[tuple[str, str], ContainerMetric]:
    """All metrics by server and meaning."""
    found = (ContainerMetric(**row) for row in rows("container_metrics"))
    return MappingProxyType({(each.server, each.meaning): each for each in found})


@cache
def promql_regions() -> frozenset[str]:
    """The Regions in which CloudWatch answers PromQL, as far as AWS lists them."""
    return frozenset(row["region"] for row in rows("promql_regions"))


def container_metric(server: str, meaning: str, where: str = "") -> ContainerMetric:
    """The metric of a server that means something."""
    found = container_metrics().get((server, meaning))
    if found is None:
        servers = sorted({each.server for each in container_metrics().values()})
        raise METRICS_SERVER.error(got=repr(server), allowed=", ".join(servers), where=where)
    return found


def server_of(images: Iterable[str]) -> str | None:
    """The server whose metrics these images' containers publish; ``None`` for another."""
    names = [each.rpartition("/")[2].partition(":")[0].lower() for each in images]
    servers = dict.fromkeys(each.server for each in container_metrics().values())
    return next((each for each in servers if any(each in name for name in names)), None)


def percentile_share(name: str, where: str = "") -> float:
    """The share that a percentile's name says."""
    match = _PERCENTILE.fullmatch(name) if isinstance(name, str) else None
    share = float(match[1]) / 100 if match else 0.0
    if not 0 < share < 1:
        raise PERCENTILE_NAME.error(got=repr(name), allowed="p50, p90, p95, p99", where=where)
    return round(share, 9)


def percentile_query(
    metric: ContainerMetric,
    share: float,
    *,
    endpoint: str,
    variant: str,
    window_seconds: int = 300,
    by: str = "",
) -> str:
    """A percentile over the requests of all of a variant's instances in the last minutes.

    In the unit of the metric, as one series without labels. NaN when nothing was measured in the
    window, nothing when there is no such metric.

    AWS does not say consistently what the metric is called and which kind of histogram it is: the
    query asks for either name in either form, and takes what there is. Percentiles of exponential
    histograms are estimates; within a wide bucket of the server's, such as vLLM's from 250 to
    500 ms, so are the others.
    """
    own, underscored = metric.names
    whole, of_buckets = (f' by ("{by}") ', f'(le, "{by}")') if by else ("", "(le)")

    def exponential(name: str) -> str:
        found = _selector(name, endpoint, variant)
        return f"histogram_quantile({share:g}, sum{whole}(rate({found}[{window_seconds}s])))"

    def explicit(name: str) -> str:
        found = _selector(f"{name}_bucket", endpoint, variant)
        return (
            f"histogram_quantile({share:g}, sum by {of_buckets} (rate({found}[{window_seconds}s])))"
        )

    return " or ".join(
        (exponential(own), explicit(underscored), exponential(underscored), explicit(own))
    )


def count_query(
    metric: ContainerMetric, *, endpoint: str, variant: str, window_seconds: int = 300
) -> str:
    """How many measurements a histogram took in the last minutes, of all of a variant's instances.

    Either name, either form, as :func:`percentile_query`.
    """
    own, underscored = metric.names

    def exponential(name: str) -> str:
        found = _selector(name, endpoint, variant)
        return f"histogram_count(sum(increase({found}[{window_seconds}s])))"

    def explicit(name: str) -> str:
        found = _selector(f"{name}_count", endpoint, variant)
        return f"sum(increase({found}[{window_seconds}s]))"

    return " or ".join(
        (exponential(own), explicit(underscored), exponential(underscored), explicit(own))
    )


def fullest_query(
    metric: ContainerMetric, *, endpoint: str, variant: str, window_seconds: int = 300
) -> str:
    """A gauge's average over the last minutes, on the instance where it is highest.

    Either name, as :func:`percentile_query`.
    """
    return " or ".join(
        f"max(avg_over_time({_selector(name, endpoint, variant)}[{window_seconds}s]))"
        for name in metric.names
    )


def above(data: str, threshold: float, *, least: tuple[str, float] | None = None) -> str:
    """The query of an alarm: what breaches, and nothing otherwise."""
    compared = f"({data}) > {_plain(threshold)}"
    return f"{compared} and ({least[0]}) >= {_plain(least[1])}" if least else compared


def _selector(name: str, endpoint: str, variant: str) -> str:
    return f'{{"{name}", "{ENDPOINT_LABEL}"="{endpoint}", "{VARIANT_LABEL}"="{variant}"}}'


def _plain(number: float) -> str:
    """A number without an exponent, as far as one has no more than nine decimals."""
    return f"{number:.9f}".rstrip("0").rstrip(".")


def check_interval(seconds: float, where: str = "") -> int:
    """An alarm's evaluation interval in seconds."""
    if seconds not in (10, 20, 30) and (seconds % 60 or not 60 <= seconds <= 3600):
        raise EVALUATION_INTERVAL.error(
            got=f"{seconds:g} seconds",
            allowed="10, 20, 30 seconds, or whole minutes up to an hour",
            where=where,
        )
    return int(seconds)
