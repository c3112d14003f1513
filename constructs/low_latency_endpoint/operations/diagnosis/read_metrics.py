"""Metrics of a variant, of its instances and of its zones through ListMetrics and GetMetricData."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ...planning.metrics import metric_facts
from ...planning.utilization import highest_utilization
from .asking import Account
from .measurements import Series

__all__ = ["Query", "Target", "by_dimension", "period_for", "read_queries", "variant_queries"]

_INVOCATIONS, _INSTANCES = "AWS/SageMaker", "/aws/sagemaker/Endpoints"
_BATCH = 500  # MetricDataQueries of one GetMetricData

_VARIANT = (
    ("ModelLatency", ("p50", "p90", "p99", "Average", "Maximum", "SampleCount")),
    ("OverheadLatency", ("Average", "Maximum")),
    ("Invocations", ("Sum",)), ("InvocationsPerInstance", ("Sum",)),
    ("Invocation4XXErrors", ("Sum",)), ("Invocation5XXErrors", ("Sum",)),
    ("InvocationModelErrors", ("Sum",)), ("MidStreamErrors", ("Sum",)),
    ("ConcurrentRequestsPerModel", ("Maximum",)),
    ("ModelCacheHit", ("Average", "SampleCount")),
    ("ModelLoadingWaitTime", ("Average", "SampleCount")),
    ("ModelDownloadingTime", ("Average",)), ("ModelLoadingTime", ("Average",)),
    ("ModelUnloadingTime", ("SampleCount",)), ("LoadedModelCount", ("Average",)),
    ("CPUUtilization", ("Average", "Maximum")), ("MemoryUtilization", ("Average",)),
    ("DiskUtilization", ("Average",)), ("GPUUtilization", ("Average",)),
    ("GPUMemoryUtilization", ("Average",)),
)
_MEMBER = (
    ("ModelLatency", ("p99", "Average")), ("OverheadLatency", ("Average",)),
    ("Invocations", ("Sum",)),
    ("Invocation5XXErrors", ("Sum",)), ("CPUUtilization", ("Average",)),
)

Dimensions = tuple[tuple[str, str], ...]
#: What a query belongs to: variant, then ``""``, ``instance`` or ``zone`` with its name.
Target = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Query:
    """One statistic to ask for; ``divisor`` brings it into the unit of the measurements."""

    target: Target
    metric: str
    statistic: str
    dimensions: Dimensions
    divisor: float = 1.0


def period_for(start: datetime, end: datetime, now: datetime) -> timedelta:
    """Finest period that CloudWatch still has and a page can show.

    Minutes for 15 days, five minutes for 63, hours for 455:
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html

    Examples
    --------
    >>> now = datetime(2026, 11, 20, 3, 0)
    >>> hours = timedelta(hours=1)
    >>> [str(period_for(now - n * hours, now, now)) for n in (72, 24 * 7, 24 * 20)]
    ['0:01:00', '0:05:00', '1:00:00']
    """
    age, length = now - start, end - start
    if age < timedelta(days=15) and length <= timedelta(days=3):
        return timedelta(minutes=1)
    if age < timedelta(days=63) and length <= timedelta(days=15):
        return timedelta(minutes=5)
    return timedelta(hours=1)


def variant_queries(endpoint: str, variant: str, instance_type: str,
                    statistics: Iterable[tuple[str, str]] = ()) -> Iterator[Query]:
    """The queries of one whole variant, and of further statistics that a target names."""
    base = (("EndpointName", endpoint), ("VariantName", variant))
    wanted = [(metric, s) for metric, all_ in _VARIANT for s in all_]
    wanted += [each for each in statistics if each not in wanted]
    for metric, statistic in wanted:
        divisor = _divisor(metric, statistic, instance_type)
        if divisor:
            yield Query((variant, "", ""), metric, statistic, base, divisor)


def by_dimension(account: Account, endpoint: str, variants: dict[str, str]
                 ) -> tuple[list[Query], dict[str, Dimensions]] | None:
    """Queries of each instance and zone with metrics; and each configuration's dimensions.

    ``None`` when metrics may not be listed. ListMetrics knows what had data in two weeks.
    """
    queries: dict[tuple[Target, str, str, Dimensions], Query] = {}
    configurations: dict[str, Dimensions] = {}
    for namespace in (_INVOCATIONS, _INSTANCES):
        listed = account.pages("metrics per instance and zone", "cloudwatch", "list_metrics",
                               "Metrics", Namespace=namespace,
                               Dimensions=[{"Name": "EndpointName", "Value": endpoint}])
        if listed is None:
            return None
        for metric in listed:
            dimensions = {d["Name"]: d["Value"] for d in metric["Dimensions"]}
            variant = dimensions.get("VariantName", "")
            key = tuple((d["Name"], d["Value"]) for d in metric["Dimensions"])
            if metric["MetricName"] == "Invocations" and set(dimensions) == {
                    "EndpointName", "VariantName", "EndpointConfigName"}:
                configurations[dimensions["EndpointConfigName"]] = key
            member = _member(dimensions)
            if variant not in variants or member is None:
                continue
            for name, statistics in _MEMBER:
                if name != metric["MetricName"]:
                    continue
                for statistic in statistics:
                    divisor = _divisor(name, statistic, variants[variant])
                    if divisor:
                        target = (variant, *member)
                        queries[target, name, statistic, key] = Query(
                            target, name, statistic, key, divisor)
    return list(queries.values()), configurations


def _member(dimensions: dict[str, str]) -> tuple[str, str] | None:
    names = set(dimensions) - {"EndpointName", "VariantName"}
    if names == {"InstanceId"}:
        return "instance", dimensions["InstanceId"]
    if "AvailabilityZone" in names and names <= {"AvailabilityZone", "Region", "InstanceType"}:
        return "zone", dimensions["AvailabilityZone"]
    return None


def _divisor(metric: str, statistic: str, instance_type: str) -> float | None:
    """What the published value is divided by; ``None`` where nobody can say."""
    facts = metric_facts(metric)
    if statistic == "SampleCount":
        return 1.0
    if facts.unit == "Microseconds":
        return 1000.0
    if facts.per_vcpu or facts.per_gpu:
        highest = highest_utilization(metric, instance_type)
        return highest / 100 if highest else None
    return 1.0


def read_queries(account: Account, queries: list[Query], start: datetime, end: datetime,
                 period: timedelta) -> dict[Query, Series]:
    """Values of all queries, in as few requests as CloudWatch allows.

    Raises
    ------
    ConfigurationError
        ``LLE582`` when CloudWatch does not answer.
    """
    found: dict[Query, dict[datetime, float]] = {query: {} for query in queries}
    batches = [queries[at:at + _BATCH] for at in range(0, len(queries), _BATCH)]
    for number, batch in enumerate(batches, 1):
        account.progress(f"Metrics {number} of {len(batches)}" if len(batches) > 1 else "Metrics")
        ids = {f"q{index}": query for index, query in enumerate(batch)}
        request = {
            "MetricDataQueries": [_query(key, query, period) for key, query in ids.items()],
            "StartTime": start, "EndTime": end, "ScanBy": "TimestampAscending",
        }
        token = None
        while True:
            answer = account.must("cloudwatch", "get_metric_data", **request,
                                  **({"NextToken": token} if token else {}))
            for result in answer["MetricDataResults"]:
                query = ids[result["Id"]]
                for time, value in zip(result["Timestamps"], result["Values"], strict=True):
                    found[query][time] = value / query.divisor
            token = answer.get("NextToken")
            if not token:
                break
    return {query: Series(points) for query, points in found.items()}


def _query(id: str, query: Query, period: timedelta) -> dict[str, Any]:
    facts = metric_facts(query.metric)
    return {
        "Id": id,
        "ReturnData": True,
        "MetricStat": {
            "Metric": {
                "Namespace": facts.namespace,
                "MetricName": query.metric,
                "Dimensions": [{"Name": n, "Value": v} for n, v in query.dimensions],
            },
            "Period": int(period.total_seconds()),
            "Stat": query.statistic,
        },
    }
