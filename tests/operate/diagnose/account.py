"""An account with one endpoint, whose metrics are what a test put into it."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from itertools import accumulate
from operator import mul
from typing import Any

from tests.fake_aws import FakeAws, Refused, page_of

MINUTE = timedelta(minutes=1)
Dimensions = frozenset[tuple[str, str]]
Samples = list[tuple[float, float]]  # value and how many requests had it
Request = Mapping[str, Any]


class FakeAccount(FakeAws):
    """Services by what the test put into them; ``start`` is when the endpoint's window begins."""

    def __init__(self, start: datetime) -> None:
        self.start = start
        self.data: dict[tuple[str, str, Dimensions], dict[datetime, Samples]] = {}
        self.endpoint: dict[str, Any] = {}
        self.configuration: dict[str, Any] = {}
        self.model: dict[str, Any] = {}
        self.coming: dict[str, dict[str, Any]] = {}  # an update's configuration and model, by name
        self.targets: list[dict[str, Any]] = []
        self.policies: list[dict[str, Any]] = []
        self.activities: list[dict[str, Any]] = []
        self.alarms: list[dict[str, Any]] = []
        self.history: list[dict[str, Any]] = []
        self.log_groups: list[str] = []
        self.template: dict[str, Any] | None = None
        self.links: dict[str, dict[str, Any]] = {}  # interface endpoints by their IDs
        self.let_in: list[dict[str, Any]] = []  # what their security groups let in
        self.stack_status = "UPDATE_COMPLETE"
        self.physical: dict[str, str] = {}
        self.events: list[dict[str, Any]] = []

        def paged(key: str, items: Callable[[], list[Any]]) -> Callable[[Request], Any]:
            return lambda request: page_of(key, items(), request)

        scaling = "application-autoscaling.DescribeScal"
        super().__init__(
            {
                "sagemaker.DescribeEndpoint": self._describe_endpoint,
                "sagemaker.DescribeEndpointConfig": lambda request: self.coming.get(
                    request["EndpointConfigName"], self.configuration
                ),
                "sagemaker.DescribeModel": lambda request: self.coming.get(
                    request["ModelName"], self.model
                ),
                f"{scaling}ableTargets": paged("ScalableTargets", lambda: self.targets),
                f"{scaling}ingPolicies": paged("ScalingPolicies", lambda: self.policies),
                f"{scaling}ingActivities": paged("ScalingActivities", lambda: self.activities),
                "cloudwatch.DescribeAlarms": self._describe_alarms,
                "cloudwatch.DescribeAlarmHistory": self._history,
                "cloudwatch.ListMetrics": self._list_metrics,
                "cloudwatch.GetMetricData": self._get_metric_data,
                "logs.DescribeLogGroups": lambda request: {
                    "logGroups": [
                        {"logGroupName": name}
                        for name in self.log_groups
                        if name.startswith(request["logGroupNamePrefix"])
                    ]
                },
                "cloudformation.DescribeStackResources": self._stack_resources,
                "cloudformation.ListStackResources": paged(
                    "StackResourceSummaries", self._resources
                ),
                "ec2.DescribeVpcEndpoints": lambda request: {
                    "VpcEndpoints": [self.links[each] for each in request["VpcEndpointIds"]]
                },
                "ec2.DescribeSecurityGroups": paged(
                    "SecurityGroups", lambda: [{"IpPermissions": self.let_in}]
                ),
                "cloudformation.GetTemplate": lambda _: {"TemplateBody": json.dumps(self.template)},
                "cloudformation.DescribeStacks": lambda _: {
                    "Stacks": [{"StackName": "Sentiment", "StackStatus": self.stack_status}]
                },
                "cloudtrail.LookupEvents": lambda request: {
                    "Events": [
                        each
                        for each in self.events
                        if each["EventName"] == request["LookupAttributes"][0]["AttributeValue"]
                    ]
                },
            }
        )

    def _describe_endpoint(self, request: Request) -> Any:
        name = request["EndpointName"]
        if name != self.endpoint["EndpointName"]:
            return Refused("ValidationException", f'Could not find endpoint "{name}".', 400)
        return {"EndpointArn": self._arn, **self.endpoint}

    @property
    def _arn(self) -> str:
        return f"arn:aws:x:y/{self.endpoint['EndpointName']}"

    def _describe_alarms(self, request: Request) -> Any:
        names = request.get("AlarmNames")
        found = [each for each in self.alarms if names is None or each["AlarmName"] in names]
        kind = request["AlarmTypes"][0]
        return page_of(f"{kind}s", found if kind == "MetricAlarm" else [], request)

    def _stack_resources(self, request: Request) -> Any:
        if self.template is None:
            message = f"Stack for {request['PhysicalResourceId']} does not exist"
            return Refused("ValidationError", message, 400)
        described = {"StackName": "Sentiment", "Timestamp": self.start}
        return {"StackResources": [each | described for each in self._resources()[:100]]}

    def _resources(self) -> list[Any]:
        physical = {"Link": next(iter(self.links), "")} | self.physical
        return [
            {
                "LogicalResourceId": name,
                "ResourceType": each["Type"],
                "ResourceStatus": "UPDATE_COMPLETE",
                "PhysicalResourceId": physical.get(name, self._arn),
            }
            for name, each in (self.template or {}).get("Resources", {}).items()
        ]

    def _history(self, request: Request) -> Any:
        found = [item for item in self.history if item["AlarmName"] == request["AlarmName"]]
        return page_of("AlarmHistoryItems", found, request)

    def _list_metrics(self, request: Request) -> Any:
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
        return page_of("Metrics", found, request)

    def _get_metric_data(self, request: Request) -> Any:
        assert len(request["MetricDataQueries"]) <= 500
        page = page_of("MetricDataResults", request["MetricDataQueries"], request)
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
    values, weights = zip(*samples, strict=True)
    if statistic == "SampleCount":
        return sum(weights)
    if statistic in ("Sum", "Average"):
        whole = sum(map(mul, values, weights))
        return whole / sum(weights) if statistic == "Average" else whole
    if statistic == "Maximum":
        return max(values)
    assert statistic.startswith("p"), statistic
    seen = list(accumulate(weights))
    wanted = float(statistic[1:]) / 100 * seen[-1]
    return values[min(bisect_left(seen, wanted - 1e-9), len(values) - 1)]
