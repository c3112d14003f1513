"""The API operations on metric data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from moto.cloudwatch.exceptions import (
    InvalidParameterCombination,
    InvalidParameterValue,
    ValidationError,
)
from moto.cloudwatch.models import cloudwatch_backends

from .limits import problems_of_queries
from .metric_math import ExpressionError, MathSeries
from .metric_store import (
    SIMPLE,
    MetricStore,
    as_moment,
    as_seconds,
    compute,
    metric_key,
    parse_statistic,
)
from .queries import Queries, TooManyDatapoints, Window, by_period
from .state import CloudWatchState, now

Request = dict[str, Any]
_PAGE = 500
_MOST_QUERIES = 500
_MOST_VALUES = 150
_MOST_DATAPOINTS = 1440
_MOST_DATAPOINTS_OF_QUERIES = 100_800
"""Source: API reference, GetMetricData."""


def put_metric_data(state: CloudWatchState, namespace: str, data: list[dict[str, Any]]) -> None:
    """PutMetricData, by itself or from within moto; all of it is accepted or none."""
    for number, datum in enumerate(data, start=1):
        given = (datum.get(name) for name in ("Value", "Values", "StatisticValues"))
        if sum(value not in (None, []) for value in given) != 1:
            raise InvalidParameterCombination(
                f"MetricData.member.{number} must have one of Value, Values and StatisticValues"
            )
        if len(set(datum.get("Values") or ())) > _MOST_VALUES:
            raise InvalidParameterValue(
                f"MetricData.member.{number}.Values can have {_MOST_VALUES} unique values"
            )
    put_service_data(state, namespace, data)


def put_service_data(state: CloudWatchState, namespace: str, data: list[dict[str, Any]]) -> None:
    """Put what a service of AWS's publishes, for which the limits of PutMetricData do not stand."""
    with state.lock:
        for datum in data:
            state.metrics.put(namespace, datum, now())


def _with_services(state: CloudWatchState) -> MetricStore:
    """Give all metrics, those that moto's services compute on the fly (S3's sizes) among them."""
    backend = cloudwatch_backends[state.account][state.region]
    computed = backend.aws_metric_data
    if not computed:
        return state.metrics
    store = MetricStore()
    for datum in computed:
        dimensions = [{"Name": d.name, "Value": d.value} for d in datum.dimensions]
        store.put(
            datum.namespace,
            {
                "MetricName": datum.name,
                "Dimensions": dimensions,
                "Timestamp": datum.timestamp,
                "Unit": datum.unit,
                "Value": datum.value,
            },
            now(),
        )
    return MetricStore({**store.samples, **state.metrics.samples})


def get_metric_data(state: CloudWatchState, request: Request) -> dict[str, Any]:
    """GetMetricData: metrics and metric math."""
    start, end = as_seconds(request["StartTime"]), as_seconds(request["EndTime"])
    if start > end:
        raise ValidationError("The parameter EndTime must be greater than StartTime.")
    if start == end:
        raise ValidationError("The parameter StartTime must not equal parameter EndTime.")
    metric_data_queries = request.get("MetricDataQueries", [])
    for number, query in enumerate(metric_data_queries, start=1):
        if "MetricStat" not in query and "Expression" not in query:
            raise ValidationError(
                f"The parameter MetricDataQueries.member.{number}.MetricStat is required.\n"
            )
    if len(metric_data_queries) > _MOST_QUERIES:
        raise ValidationError(
            f"The collection MetricDataQueries must not have a size greater than {_MOST_QUERIES}."
        )
    for problem in problems_of_queries(metric_data_queries):
        raise ValidationError(problem)
    with state.lock:
        queries = Queries(_with_services(state), metric_data_queries, _MOST_DATAPOINTS_OF_QUERIES)
        results: list[dict[str, Any]] = []
        for query in metric_data_queries:
            if not query.get("ReturnData", True):
                continue
            try:
                window = Window(_rounded(start, queries.period(query)), end)
                result = queries.result(query["Id"], window)
            except ExpressionError as error:
                raise ValidationError(f"Error in expression '{query['Id']}': {error}") from error
            except TooManyDatapoints:
                raise ValidationError(
                    "The request asks for more than the "
                    f"{_MOST_DATAPOINTS_OF_QUERIES:,} datapoints that it can have"
                ) from None
            if isinstance(result, float):
                raise ValidationError(
                    f"Error in expression '{query['Id']}': The result must be a time series or an "
                    "array of time series, not a number"
                )
            for series in result if isinstance(result, list) else [result]:
                label = query.get("Label") or series.label or query["Id"]
                if isinstance(result, list):
                    label = f"{query['Label']} {series.label}" if query.get("Label") else label
                results.append(_answer(query["Id"], label, series, request.get("ScanBy")))
    return {"MetricDataResults": results, "Messages": []}


def _rounded(start: float, period: int) -> float:
    """Round a start time as AWS does: to the minute, to the period when that is shorter."""
    return start - start % (period if period < 60 else 60)


def _answer(id: str, label: str, series: MathSeries, scan_by: str | None) -> dict[str, Any]:
    times = sorted(series.values, reverse=scan_by != "TimestampAscending")
    return {
        "Id": id,
        "Label": label,
        "Timestamps": [as_moment(time) for time in times],
        "Values": [series.values[time] for time in times],
        "StatusCode": "Complete",
    }


def get_metric_statistics(state: CloudWatchState, request: Request) -> dict[str, Any]:
    """GetMetricStatistics: statistics and extended statistics of one metric."""
    simple, extended = request.get("Statistics") or [], request.get("ExtendedStatistics") or []
    if not simple and not extended:
        raise InvalidParameterCombination("Must specify either Statistics or ExtendedStatistics")
    start, end = as_seconds(request["StartTime"]), as_seconds(request["EndTime"])
    if start >= end:
        raise InvalidParameterValue(
            "The parameter StartTime must be less than the parameter EndTime."
        )
    parsed = {name: parse_statistic(name) for name in [*simple, *extended]}
    for name, statistic in parsed.items():
        if statistic is None or (name in simple) != (name in SIMPLE):
            raise InvalidParameterValue(f"The value {name} is not a valid statistic here")
    period = int(request["Period"])
    datapoint_count = math.ceil((end - start) / period)
    if datapoint_count > _MOST_DATAPOINTS:
        raise InvalidParameterCombination(
            f"You have requested up to {datapoint_count:,} datapoints, which exceeds the limit of "
            f"{_MOST_DATAPOINTS:,}. You may reduce the datapoints requested by increasing Period, "
            "or decreasing the time range."
        )
    key = metric_key(request["Namespace"], request["MetricName"], request.get("Dimensions") or ())
    datapoints = []
    with state.lock:
        found = by_period(
            _with_services(state),
            key,
            period,
            Window(_rounded(start, period), end),
            request.get("Unit"),
        )
    for time, samples in sorted(found.items()):
        values = {name: compute(s, samples) for name, s in parsed.items() if s is not None}
        point: dict[str, Any] = {
            "Timestamp": as_moment(time),
            "Unit": samples[0].unit,
            **{name: values[name] for name in simple if values[name] is not None},
        }
        known = {name: values[name] for name in extended if values[name] is not None}
        if known:
            point["ExtendedStatistics"] = known
        if known or simple:
            datapoints.append(point)
    return {"Label": request["MetricName"], "Datapoints": datapoints}


def list_metrics(state: CloudWatchState, request: Request) -> dict[str, Any]:
    """ListMetrics, by namespace, name and dimensions."""
    with state.lock:
        found = list(_matching(_with_services(state), request))
    page, token = paged(found, request, _PAGE)
    return {"Metrics": page, "NextToken": token}


def paged(found: list[Any], request: Request, size: int) -> tuple[list[Any], str | None]:
    start = int(request.get("NextToken") or 0)
    end = start + int(request.get("MaxRecords") or size)
    return found[start:end], str(end) if end < len(found) else None


def _matching(store: MetricStore, request: Request) -> Iterator[dict[str, Any]]:
    filters = request.get("Dimensions") or []
    for (namespace, name, dimensions), samples in store.samples.items():
        known = dict(dimensions)
        if (
            samples
            and request.get("Namespace") in (None, namespace)
            and request.get("MetricName") in (None, name)
            and all(
                f["Name"] in known and f.get("Value") in (None, known[f["Name"]]) for f in filters
            )
        ):
            yield {
                "Namespace": namespace,
                "MetricName": name,
                "Dimensions": [{"Name": n, "Value": v} for n, v in sorted(dimensions)],
            }
