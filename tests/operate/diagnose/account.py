"""An AWS account in memory: botocore's own shapes check every request and every answer.

No call leaves it: each request is validated against the service's model in botocore, answered by a
function of this module, and the answer validated in turn. Answers come in small pages, so that
every reader must follow ``NextToken``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import boto3
from botocore.exceptions import ClientError
from botocore.validate import validate_parameters

MINUTE = timedelta(minutes=1)
Dimensions = frozenset[tuple[str, str]]
Samples = list[tuple[float, float]]  # value and how many requests had it


@cache
def _client(service: str) -> Any:
    """The real client, made once: loading a service's model takes longer than a test."""
    # A session of its own: boto3's default one may be a test's.
    session = boto3.session.Session(aws_access_key_id="testing", aws_secret_access_key="testing")
    return session.client(service, region_name="us-east-1")


class _Client:
    """The real client's methods and paginators, answered by an account."""

    def __init__(self, real: Any, call: Callable[..., Any]) -> None:
        self._real, self._call = real, call
        self.meta, self.can_paginate = real.meta, real.can_paginate

    def __getattr__(self, method: str) -> Callable[..., Any]:
        operation = self.meta.method_to_api_mapping[method]
        return lambda **request: self._call(operation, request)

    def get_paginator(self, method: str) -> Any:
        paginator = self._real.get_paginator(method)
        paginator._method = getattr(self, method)
        return paginator


class FakeAccount:
    """Services by what the test put into them; ``denied`` operations are refused."""

    def __init__(self, *, page: int = 7) -> None:
        self.data: dict[tuple[str, str, Dimensions], dict[datetime, Samples]] = {}
        self.endpoint: dict[str, Any] = {}
        self.configuration: dict[str, Any] = {}
        self.model: dict[str, Any] = {}
        self.targets: list[dict[str, Any]] = []
        self.policies: list[dict[str, Any]] = []
        self.activities: list[dict[str, Any]] = []
        self.alarms: list[dict[str, Any]] = []
        self.history: list[dict[str, Any]] = []
        self.log_groups: list[str] = []
        self.template: dict[str, Any] | None = None
        self.denied: dict[str, str] = {}
        self.calls: list[str] = []
        self._page = page

    # ------------------------------------------------------------------------------- clients

    def client(self, service: str) -> Any:
        """What stands for a boto3 client of this account."""
        model = _client(service).meta.service_model

        def call(operation: str, request: dict[str, Any]) -> Any:
            self.calls.append(operation)
            shapes = model.operation_model(operation)
            if shapes.input_shape is not None:
                validate_parameters(request, shapes.input_shape)
            if operation in self.denied:
                code = self.denied[operation]
                raise ClientError(
                    {"Error": {"Code": code, "Message": f"refused {operation}"}}, operation
                )
            answer = self._operations()[operation](request)
            if shapes.output_shape is not None:
                validate_parameters(answer, shapes.output_shape)
            return answer

        return _Client(_client(service), call)

    def _operations(self) -> dict[str, Callable[[dict[str, Any]], dict[str, Any]]]:
        return {
            "DescribeEndpoint": self._describe_endpoint,
            "DescribeEndpointConfig": lambda request: self.configuration,
            "DescribeModel": lambda request: self.model,
            "DescribeScalableTargets": self._paged("ScalableTargets", lambda: self.targets),
            "DescribeScalingPolicies": self._paged("ScalingPolicies", lambda: self.policies),
            "DescribeScalingActivities": self._paged("ScalingActivities", lambda: self.activities),
            "DescribeAlarms": self._paged("MetricAlarms", lambda: self.alarms),
            "DescribeAlarmHistory": self._history,
            "DescribeLogGroups": lambda request: {
                "logGroups": [
                    {"logGroupName": name}
                    for name in self.log_groups
                    if name.startswith(request["logGroupNamePrefix"])
                ]
            },
            "ListMetrics": self._list_metrics,
            "GetMetricData": self._get_metric_data,
            "DescribeStackResources": self._stack_resources,
            "GetTemplate": lambda request: {"TemplateBody": json.dumps(self.template)},
        }

    def _paged(
        self, key: str, items: Callable[[], list[Any]]
    ) -> Callable[[dict[str, Any]], dict[str, Any]]:
        return lambda request: self._slice(key, items(), request)

    def _slice(self, key: str, items: list[Any], request: dict[str, Any]) -> dict[str, Any]:
        at = int(request.get("NextToken", 0))
        more = {"NextToken": str(at + self._page)} if at + self._page < len(items) else {}
        return {key: items[at : at + self._page], **more}

    # ------------------------------------------------------------------------------ services

    def _describe_endpoint(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["EndpointName"] != self.endpoint["EndpointName"]:
            raise ClientError(
                {
                    "Error": {
                        "Code": "ValidationException",
                        "Message": f'Could not find endpoint "{request["EndpointName"]}".',
                    }
                },
                "DescribeEndpoint",
            )
        return self.endpoint

    def _stack_resources(self, request: dict[str, Any]) -> dict[str, Any]:
        if self.template is None:
            raise ClientError(
                {
                    "Error": {
                        "Code": "ValidationError",
                        "Message": f"Stack for {request['PhysicalResourceId']} does not exist",
                    }
                },
                "DescribeStackResources",
            )
        return {
            "StackResources": [
                {
                    "StackName": "Sentiment",
                    "LogicalResourceId": "Endpoint",
                    "PhysicalResourceId": request["PhysicalResourceId"],
                    "ResourceType": "AWS::SageMaker::Endpoint",
                    "Timestamp": datetime(2026, 1, 1, tzinfo=UTC),
                    "ResourceStatus": "CREATE_COMPLETE",
                }
            ]
        }

    def _history(self, request: dict[str, Any]) -> dict[str, Any]:
        found = [item for item in self.history if item["AlarmName"] == request["AlarmName"]]
        return self._slice("AlarmHistoryItems", found, request)

    def _list_metrics(self, request: dict[str, Any]) -> dict[str, Any]:
        wanted = {(d["Name"], d["Value"]) for d in request.get("Dimensions", [])}
        found = [
            {
                "Namespace": namespace,
                "MetricName": name,
                "Dimensions": [{"Name": n, "Value": v} for n, v in sorted(dimensions)],
            }
            for namespace, name, dimensions in self.data
            if namespace == request["Namespace"] and wanted <= dimensions
        ]
        return self._slice("Metrics", found, request)

    def _get_metric_data(self, request: dict[str, Any]) -> dict[str, Any]:
        assert len(request["MetricDataQueries"]) <= 500
        page = self._slice("MetricDataResults", request["MetricDataQueries"], request)
        window = request["StartTime"], request["EndTime"]
        periods: dict[Any, dict[datetime, Samples]] = {}
        results = []
        for query in page["MetricDataResults"]:
            stat = query["MetricStat"]
            metric = stat["Metric"]
            key = (
                metric["Namespace"],
                metric["MetricName"],
                frozenset((d["Name"], d["Value"]) for d in metric["Dimensions"]),
            )
            if (key, stat["Period"]) not in periods:
                data = self.data.get(key, {})
                periods[key, stat["Period"]] = by_period(data, stat["Period"], *window)
            found = periods[key, stat["Period"]]
            results.append(
                {
                    "Id": query["Id"],
                    "Label": query["Id"],
                    "StatusCode": "Complete",
                    "Timestamps": list(found),
                    "Values": [_statistic(samples, stat["Stat"]) for samples in found.values()],
                }
            )
        return {**page, "MetricDataResults": results}


def by_period(
    data: dict[datetime, Samples], period: int, start: datetime, end: datetime
) -> dict[datetime, Samples]:
    """What CloudWatch computes its statistics of: the samples of each period, by their values."""
    periods: dict[datetime, Samples] = {}
    for time, samples in data.items():
        if start <= time < end:
            begin = time - timedelta(seconds=time.timestamp() % period)
            periods.setdefault(begin, []).extend(samples)
    return {time: sorted(periods[time]) for time in sorted(periods)}


def _statistic(samples: Samples, statistic: str) -> float:
    count = sum(weight for _, weight in samples)
    if statistic == "SampleCount":
        return count
    if statistic == "Sum":
        return sum(value * weight for value, weight in samples)
    if statistic == "Average":
        return sum(value * weight for value, weight in samples) / count
    if statistic == "Maximum":
        return max(value for value, _ in samples)
    assert statistic.startswith("p"), statistic
    wanted, seen = float(statistic[1:]) / 100 * count, 0.0
    for value, weight in samples:
        seen += weight
        if seen >= wanted - 1e-9:
            return value
    return samples[-1][0]
