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
    "CloudWatch has no such evaluation interval",
    fix="Use 10, 20 or 30 seconds, or whole minutes.",
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
    "LLE995", "the use of the KV cache", 0, 1, whole=False, fix="Give a share, such as 0.95."
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
    "LLE997",
    "the alarms have nothing to watch",
    fix="Set ttft, itl, waiting_requests or kv_cache_use.",
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
    metrics = (ContainerMetric(**row) for row in rows("container_metrics"))
    return MappingProxyType({(metric.server, metric.meaning): metric for metric in metrics})


@cache
def promql_regions() -> frozenset[str]:
    """The Regions in which CloudWatch answers PromQL, as far as AWS lists them."""
    return frozenset(row["region"] for row in rows("promql_regions"))


def container_metric(server: str, meaning: str, where: str = "") -> ContainerMetric:
    """The metric of a server that means something."""
    container_metric = container_metrics().get((server, meaning))
    if container_metric is None:
        servers = sorted({metric.server for metric in container_metrics().values()})
        raise METRICS_SERVER.error(got=repr(server), allowed=", ".join(servers), where=where)
    return container_metric


def server_of(images: Iterable[str]) -> str | None:
    """The server whose metrics these images' containers publish; ``None`` for another."""
    names = [image.rpartition("/")[2].partition(":")[0].lower() for image in images]
    servers = dict.fromkeys(metric.server for metric in container_metrics().values())
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
        selector = _selector(name, endpoint, variant)
        return f"histogram_quantile({share:g}, sum{whole}(rate({selector}[{window_seconds}s])))"

    def explicit(name: str) -> str:
        selector = _selector(f"{name}_bucket", endpoint, variant)
        return f"histogram_quantile({share:g}, sum by {of_buckets} (rate({selector}[{window_seconds}s])))"

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
        selector = _selector(name, endpoint, variant)
        return f"histogram_count(sum(increase({selector}[{window_seconds}s])))"

    def explicit(name: str) -> str:
        selector = _selector(f"{name}_count", endpoint, variant)
        return f"sum(increase({selector}[{window_seconds}s]))"

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


class WatchedMetric(NamedTuple):
    """What an alarm on a container's metric watches."""

    meaning: str  # as in ``container_metrics``
    percentile: str  # such as ``p95``; empty for a gauge
    threshold: float  # in the metric's unit: seconds, requests, or a share


def watched_metric(query: str) -> WatchedMetric | None:
    """The metric that a query compares with a threshold; ``None`` where that cannot be told."""
    data = data_part(query)
    names = set(metric_names_in(data or ""))  # further conditions may ask for other metrics
    container_metric = next(
        (
            metric
            for metric in container_metrics().values()
            if names & {form for name in metric.names for form in (name, f"{name}_bucket")}
        ),
        None,
    )
    if container_metric is None or data is None:
        return None
    compared = _THRESHOLD.match(query[query.index(data) + len(data) :].lstrip(") "))
    if compared is None:
        return None
    threshold = float(compared[1])
    if container_metric.type != "histogram":
        return WatchedMetric(container_metric.meaning, "", threshold)
    share = _QUANTILE.search(data)
    if share is None:
        return None
    return WatchedMetric(container_metric.meaning, f"p{100 * float(share[1]):.6g}", threshold)


_THRESHOLD = re.compile(r">=?\s*([0-9.]+)")
_QUANTILE = re.compile(r"histogram_quantile\(\s*([0-9.]+)")


def data_part(query: str) -> str | None:
    """What an alarm's query compares; None but for one comparison outside parentheses."""
    parts = _at_top(query)
    comparisons = [at for at, text in parts if text in _COMPARISONS]
    words = [text for _, text in parts if text in ("and", "or", "unless")]
    if not comparisons or (len(comparisons) > 1 and words != ["and"]) or set(words) - {"and"}:
        return None
    data = query[: comparisons[0]].strip()
    if data.startswith("(") and _closes(data) == len(data) - 1:
        data = data[1:-1].strip()
    return data or None


def metric_names_in(query: str) -> tuple[str, ...]:
    """The metrics that a query selects by a quoted name, in the order of their first mention."""
    return tuple(dict.fromkeys(re.findall(r'\{\s*"([^"]+)"\s*[,}]', query)))


def label_in(query: str, label: str) -> str:
    """The value that a query's selectors want of a label; empty when they want none."""
    found = re.search(rf"""["']{re.escape(label)}["']\s*=\s*"([^"]*)\"""", query)
    return found[1] if found else ""


_COMPARISONS = (">=", "<=", "==", "!=", ">", "<")
_WORD = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")


def _at_top(query: str) -> list[tuple[int, str]]:
    """Comparisons and words of a query outside of brackets and quotes, with their places."""
    found = []
    depth, at = 0, 0
    while at < len(query):
        character = query[at]
        if character in "\"'`":
            at = _after_quote(query, at)
            continue
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif depth == 0:
            token = next(
                (comparison for comparison in _COMPARISONS if query.startswith(comparison, at)), ""
            )
            word = _WORD.match(query, at)
            token = token or (word[0] if word else "")
            if token:
                found.append((at, token))
                at += len(token)
                continue
        at += 1
    return found


def _after_quote(query: str, at: int) -> int:
    quote, at = query[at], at + 1
    while at < len(query) and query[at] != quote:
        at += 2 if query[at] == "\\" and quote != "`" else 1
    return at + 1


def _closes(text: str) -> int:
    """Where the parenthesis closes that the text begins with."""
    depth, at = 0, 0
    while at < len(text):
        if text[at] in "\"'`":
            at = _after_quote(text, at)
            continue
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
        at += 1
    return -1
