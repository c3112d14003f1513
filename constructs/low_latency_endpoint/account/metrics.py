"""Metrics of a variant, of its instances and of its zones, as CloudWatch has them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median_high
from typing import Any

from ..errors.impossible import falling, out_of_range
from ..facts.metrics import metric_facts, metrics
from ..plan.published_metrics import highest_utilization
from .calls import Account, Unknown

_INVOCATIONS, _INSTANCES = "AWS/SageMaker", "/aws/sagemaker/Endpoints"
_BATCH = 500  # MetricDataQueries of one GetMetricData
#: Share by which a percentile may be below a lower one: AWS does not say how exact its own are.
INEXACT = 0.1

_VARIANT = (
    ("ModelLatency", ("p50", "p90", "p99", "Average", "Maximum", "SampleCount")),
    ("OverheadLatency", ("Average", "Maximum")),
    ("Invocations", ("Sum",)),
    ("InvocationsPerInstance", ("Sum",)),
    ("Invocation4XXErrors", ("Sum",)),
    ("Invocation5XXErrors", ("Sum",)),
    ("InvocationModelErrors", ("Sum",)),
    ("MidStreamErrors", ("Sum",)),
    ("ConcurrentRequestsPerModel", ("Maximum",)),
    ("ModelCacheHit", ("Average", "SampleCount")),
    ("ModelLoadingWaitTime", ("Average", "SampleCount")),
    ("ModelDownloadingTime", ("Average", "SampleCount")),
    ("ModelLoadingTime", ("Average", "SampleCount")),
    ("ModelUnloadingTime", ("SampleCount",)),
    ("LoadedModelCount", ("Average",)),
    ("CPUUtilization", ("Average", "Maximum")),
    ("MemoryUtilization", ("Average",)),
    ("DiskUtilization", ("Average",)),
    ("GPUUtilization", ("Average",)),
    ("GPUMemoryUtilization", ("Average",)),
)
_PART = {
    "ModelLatency": ("p99", "Average"),
    "OverheadLatency": ("Average",),
    "Invocations": ("Sum",),
    "Invocation5XXErrors": ("Sum",),
    "CPUUtilization": ("Average",),
}

_REQUESTS = {"Invocations": ("Sum",)}
#: The kind of part that a deployment's fleet is.
CONFIGURATION = "configuration"

Dimensions = tuple[tuple[str, str], ...]
#: By metric and statistic.
MetricSeries = Mapping[tuple[str, str], "Series"]


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one statistic by the start of their period; a period without data is absent.

    >>> start = datetime(2026, 11, 20, 3, 0)
    >>> series = Series({start: 2.0, start + timedelta(minutes=1): 4.0})
    >>> series.sum, series.mean, series.max, len(series.only([start]))
    (6.0, 3.0, 4.0, 1)
    """

    points: Mapping[datetime, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.points)

    def __bool__(self) -> bool:
        return bool(self.points)

    @property
    def times(self) -> list[datetime]:
        return sorted(self.points)

    @property
    def sum(self) -> float:
        """Sum of the values; 0 without data."""
        return sum(self.points.values())

    @property
    def mean(self) -> float | None:
        """Mean of the values, each period counting alike."""
        return self.sum / len(self.points) if self.points else None

    @property
    def max(self) -> float | None:
        return max(self.points.values()) if self.points else None

    @property
    def median(self) -> float | None:
        return median(self.points.values())

    def only(self, times: Iterable[datetime]) -> Series:
        """The same at these periods only."""
        return Series({time: self.points[time] for time in times if time in self.points})

    def without(self, times: Collection[datetime]) -> Series:
        """The same but for these periods."""
        return Series({time: v for time, v in self.points.items() if time not in times})

    def per(self, other: Series) -> Series:
        """Each value over the other's of its period."""
        both = self.points.keys() & other.points.keys()
        return Series({time: self.points[time] / other.points[time] for time in sorted(both)})

    def between(self, start: datetime, end: datetime) -> Series:
        """The same from ``start`` (included) to ``end`` (not)."""
        return Series({time: v for time, v in self.points.items() if start <= time < end})

    def weighted_mean(self, weights: Series) -> float | None:
        """Mean in which each period counts by its weight, such as its number of requests."""
        common = [time for time in self.points if weights.points.get(time, 0) > 0]
        total = sum(weights.points[time] for time in common)
        if not total:
            return self.mean
        return sum(self.points[time] * weights.points[time] for time in common) / total

    def weighted_percentile(self, weights: Series, share: float) -> float | None:
        """The smallest value that this share of the weight does not exceed."""
        common = [time for time in self.points if weights.points.get(time, 0) > 0]
        total = sum(weights.points[time] for time in common)
        counted = 0.0
        for time in sorted(common, key=self.points.__getitem__):
            counted += weights.points[time]
            if counted >= share * total:
                return self.points[time]
        return self.max


def statistic_of(series: MetricSeries, metric: str, statistic: str) -> Series:
    """Empty without data."""
    return series.get((metric, statistic), Series())


def median(values: Iterable[float]) -> float | None:
    """Value in the middle, the upper of two; ``None`` of nothing."""
    known = list(values)
    return median_high(known) if known else None


@dataclass(frozen=True, slots=True)
class Query:
    """One statistic to ask for.

    ``divisor`` brings it into milliseconds, or percent of the whole instance. ``owner`` says what
    it is of: the variant, then ``""``, or ``instance``, ``zone`` or ``configuration`` with its name.
    """

    owner: tuple[str, str, str]
    metric: str
    statistic: str
    dimensions: Dimensions
    divisor: float = 1.0
    namespace: str = ""  # by default that of AWS's metric of this name


def period_for(start: datetime, end: datetime, now: datetime) -> timedelta:
    """Finest period that CloudWatch still has and a page can show.

    Minutes for 15 days, five minutes for 63, hours for 455:
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html

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


def variant_queries(
    endpoint: str, variant: str, instance_type: str, statistics: Iterable[tuple[str, str]] = ()
) -> Iterator[Query]:
    """The queries of one whole variant, and of further statistics that a target names."""
    wanted = [(metric, s) for metric, all_ in _VARIANT for s in all_]
    wanted += [statistic for statistic in statistics if statistic not in wanted]
    for metric, statistic in wanted:
        divisor = _divisor(metric, statistic, instance_type)
        if divisor:
            yield variant_query(endpoint, variant, metric, statistic, divisor)


#: What counts the requests that failed on SageMaker's side or the container's: the same ones, twice.
FAILURES = ("Invocation5XXErrors", "InvocationModelErrors")


def failed_requests(errors: Mapping[str, Series]) -> Series:
    """How many requests failed in each period, by what :data:`FAILURES` count."""
    times = {time for series in errors.values() for time in series.points}
    return Series(
        {time: max(series.points.get(time, 0) for series in errors.values()) for time in times}
    )


def variant_query(
    endpoint: str, variant: str, metric: str, statistic: str, divisor: float = 1.0
) -> Query:
    dimensions = (("EndpointName", endpoint), ("VariantName", variant))
    return Query((variant, "", ""), metric, statistic, dimensions, divisor)


def by_dimension(
    account: Account,
    endpoint: str,
    variants: Mapping[str, str],
    fleets: Collection[str] = (),
    statistics: Iterable[tuple[str, str]] = (),
) -> list[Query]:
    """Queries of each instance, zone and configuration with metrics in two weeks.

    Of the configurations in ``fleets`` all that a variant has, with further ``statistics``; of
    others their requests.
    """
    queries: dict[Query, None] = {}
    of_fleet = dict(_VARIANT)
    for metric, statistic in statistics:
        told = of_fleet.get(metric, ())
        of_fleet[metric] = (*told, statistic) if statistic not in told else told
    for namespace in (_INVOCATIONS, _INSTANCES):
        for name, key in metrics_of(account, namespace, endpoint):
            dimensions = dict(key)
            variant = dimensions.get("VariantName", "")
            part = _part(dimensions)
            if variant not in variants or part is None:
                continue
            wanted: Mapping[str, tuple[str, ...]] = _PART
            if part[0] == CONFIGURATION:
                wanted = of_fleet if part[1] in fleets else _REQUESTS
            for statistic in wanted.get(name, ()):
                if divisor := _divisor(name, statistic, variants[variant]):
                    queries[Query((variant, *part), name, statistic, key, divisor)] = None
    return list(queries)


def metrics_of(account: Account, namespace: str, endpoint: str) -> Iterator[tuple[str, Dimensions]]:
    """Names and dimensions of an endpoint's metrics that had data within the last two weeks."""
    for metric in account.every(
        "cloudwatch",
        "list_metrics",
        "Metrics",
        Namespace=namespace,
        Dimensions=[{"Name": "EndpointName", "Value": endpoint}],
    ):
        yield str(metric["MetricName"]), tuple(dimensions_of(metric).items())


def _part(dimensions: dict[str, str]) -> tuple[str, str] | None:
    names = set(dimensions) - {"EndpointName", "VariantName"}
    if names == {"EndpointConfigName"}:
        return CONFIGURATION, dimensions["EndpointConfigName"]
    if names == {"InstanceId"}:
        return "instance", dimensions["InstanceId"]
    if "AvailabilityZone" in names and names <= {"AvailabilityZone", "Region", "InstanceType"}:
        return "zone", dimensions["AvailabilityZone"]
    return None


def _divisor(metric: str, statistic: str, instance_type: str) -> float | None:
    """The divisor of the published value; ``None`` if it is unknown."""
    facts = metric_facts(metric)
    if statistic == "SampleCount":
        return 1.0
    if facts.unit == "Microseconds":
        return 1000.0
    if facts.per_vcpu or facts.per_gpu:
        highest = highest_utilization(metric, instance_type)
        return highest / 100 if highest else None
    return 1.0


def read_queries(
    account: Account,
    queries: Sequence[Query],
    start: datetime,
    end: datetime,
    period: timedelta,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[Query, Series]:
    found: list[dict[datetime, float]] = [{} for _ in queries]
    asked = [
        {
            "Id": f"q{number}",
            "ReturnData": True,
            "MetricStat": {
                "Metric": {
                    "Namespace": each.namespace or metric_facts(each.metric).namespace,
                    "MetricName": each.metric,
                    "Dimensions": [{"Name": n, "Value": v} for n, v in each.dimensions],
                },
                "Period": int(period.total_seconds()),
                "Stat": each.statistic,
            },
        }
        for number, each in enumerate(queries)
    ]
    for result in metric_data(account, asked, start, end, progress):
        number = int(result["Id"][1:])
        for time, value in zip(result["Timestamps"], result["Values"], strict=True):
            found[number][time] = value / queries[number].divisor
    series = {query: Series(points) for query, points in zip(queries, found, strict=True)}
    return _without_impossible(account, series)


def _without_impossible(account: Account, series: Mapping[Query, Series]) -> dict[Query, Series]:
    """The series without periods whose values cannot be right; these become unknown."""
    metrics: dict[tuple[Any, ...], list[Query]] = {}
    for query in series:
        metrics.setdefault((query.owner, query.metric, query.dimensions), []).append(query)
    sound = {}
    for queries in metrics.values():
        values = {query.statistic: series[query] for query in queries}
        times = {time for statistic in values.values() for time in statistic.points}
        problems = {time: list(_problems(values, time)) for time in times}
        wrong = sorted(time for time in times if problems[time])
        for query in queries:
            sound[query] = series[query].without(wrong) if wrong else series[query]
        if wrong:
            name = " ".join(filter(None, (queries[0].metric, *queries[0].owner)))
            what = f"{name} in {len(wrong)} of {len(times)} periods"
            why = f"CloudWatch's values cannot be right: {'; '.join(problems[wrong[0]])}"
            account.unknown.append(Unknown(what, why))
    return sound


def _problems(statistics: Mapping[str, Series], time: datetime) -> Iterator[str]:
    """What the statistics of one metric in one period cannot be together."""
    values = {
        name: series.points[time] for name, series in statistics.items() if time in series.points
    }
    yield from out_of_range(values)
    ranks = sorted((name for name in values if name.startswith("p")), key=_rank)
    for names in ((*ranks, "Maximum"), ("Average", "Maximum")):
        yield from falling({name: values.get(name) for name in names}, INEXACT)


def _rank(percentile: str) -> float:
    return float(percentile[1:])


def metric_data(
    account: Account,
    queries: Sequence[Mapping[str, Any]],
    start: datetime,
    end: datetime,
    progress: Callable[[str], None] = lambda text: None,
) -> Iterator[Mapping[str, Any]]:
    """CloudWatch's results in few requests; one for each page, the earliest values first."""
    batches = [queries[at : at + _BATCH] for at in range(0, len(queries), _BATCH)]
    for number, batch in enumerate(batches, 1):
        progress(f"Metrics {number} of {len(batches)}" if len(batches) > 1 else "Metrics")
        yield from account.every(
            "cloudwatch",
            "get_metric_data",
            "MetricDataResults",
            MetricDataQueries=list(batch),
            StartTime=start,
            EndTime=end,
            ScanBy="TimestampAscending",
        )


def dimensions_of(metric: Mapping[str, Any]) -> dict[str, str]:
    return {each["Name"]: each["Value"] for each in metric.get("Dimensions", ())}


def why_unpublished(
    metric: Mapping[str, Any],
    statistic: str,
    names: Mapping[str, Collection[str]],
    unit: str = "",
    period: int = 60,
) -> str:
    """Why SageMaker publishes no such data of these endpoints and variants; empty where it does."""
    name, namespace = str(metric.get("MetricName")), str(metric.get("Namespace"))
    same = [metric for metric in metrics() if metric.name.casefold() == name.casefold()]
    facts = next((f for f in same if (f.name, f.namespace) == (name, namespace)), None)
    dimensions = dimensions_of(metric)
    if "sagemaker" not in namespace.casefold() or not same:
        return ""  # somebody's own metric, or a new one of AWS
    if facts is None:
        return f"{namespace} has no {name}; {same[0].namespace} has {same[0].name}"
    if not any(set(dimension) == dimensions.keys() for dimension in facts.dimensions):
        published, given = " and ".join(facts.dimensions[0]), " and ".join(dimensions) or "none"
        return f"{name} has the dimensions {published}, not {given}"
    for key, known in names.items():
        if key in dimensions and dimensions[key] not in known:
            return f"no {key} {dimensions[key]}; there is {', '.join(known)}"
    if unit not in ("", facts.unit):
        return f"{name} is published in {facts.unit}, not in {unit}"
    if statistic.startswith("p") and not facts.percentiles:
        return f"{name} has no percentiles ({facts.valid_statistics})"
    if facts.statistics == ("Sum",) and statistic in ("Average", "Minimum", "Maximum"):
        return f"the {statistic} of {name} is no number of requests: take the Sum"
    if name.endswith("Errors") and statistic == "Average" and metric.get("Threshold", 0) >= 1:
        return f"the Average of {name} is a share of the requests, 1 at most"
    if period < facts.period_seconds:
        return f"{name} comes every {facts.period_seconds} s, not every {period} s"
    return ""
