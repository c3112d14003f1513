"""An account of many endpoints of this library, beside alarms of others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from low_latency_endpoint.plan.decisions import PLAN_METADATA
from tests.fake_aws import ACCOUNT, REGION, FakeAws, Refused, page_of

NOW = datetime(2026, 11, 20, 4, 0, tzinfo=UTC)
_ARN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:"
INSTANCES = "sagemaker:variant:DesiredInstanceCount"
_SCALES = "AWS::ApplicationAutoScaling::Scal"
_VARIANT, _ALARMS_EACH = "primary", 8
Asked = Mapping[str, Any]
#: What there is nothing of, by the operation that lists it.
_NOTHING = {
    "application-autoscaling.DescribeScalingActivities": "ScalingActivities",
    "cloudtrail.LookupEvents": "Events",
    "cloudwatch.DescribeAlarmHistory": "AlarmHistoryItems",
    "cloudwatch.ListMetrics": "Metrics",
    "ec2.DescribeAvailabilityZones": "AvailabilityZones",
    "ec2.DescribeSubnets": "Subnets",
    "ec2.DescribeVpcEndpoints": "VpcEndpoints",
    "logs.DescribeLogGroups": "logGroups",
}


class Fleet(FakeAws):
    """So many endpoints, some of them in each stack, each as its template states it.

    ``throttled`` tells of an operation and its request whether it is refused for good.
    """

    def __init__(self, endpoints: int, *, in_stack: int = 1, alarms_of_others: int = 0) -> None:
        self.names = [f"model-{number:03}" for number in range(endpoints)]
        self.in_stack = in_stack
        self.alarms = [_alarm(f"other-{number}", "other") for number in range(alarms_of_others)]
        for name in self.names:
            self.alarms += [_alarm(f"{name}-{n}", name) for n in range(_ALARMS_EACH)]
        self.targets = {name: {"MinCapacity": 2, "MaxCapacity": 8} for name in self.names}
        self.endpoints = {name: _endpoint(name) for name in self.names}
        self.deleted: set[str] = set()
        self.throttled: Callable[[str, Asked], bool] = lambda operation, asked: False
        autoscaling = "application-autoscaling.DescribeScal"
        super().__init__(
            {
                "sts.GetCallerIdentity": {"Account": ACCOUNT, "Arn": f"arn:aws:iam::{ACCOUNT}:u"},
                "sagemaker.ListEndpoints": self._list,
                "sagemaker.DescribeEndpoint": self._describe,
                "sagemaker.DescribeEndpointConfig": self._configuration,
                "sagemaker.DescribeModel": lambda asked: self._there(asked["ModelName"], {}),
                "cloudformation.DescribeStackResources": self._owner,
                "cloudformation.ListStackResources": lambda asked: page_of(
                    "StackResourceSummaries", list(self._resources(asked["StackName"])), asked, 100
                ),
                "cloudformation.GetTemplate": lambda asked: {
                    "TemplateBody": json.dumps({"Resources": self._template(asked["StackName"])})
                },
                "cloudformation.DescribeStacks": self._stack,
                f"{autoscaling}ableTargets": lambda asked: page_of(
                    "ScalableTargets", list(self._targets(asked)), asked, 50
                ),
                f"{autoscaling}ingPolicies": lambda asked: page_of(
                    "ScalingPolicies", list(self._policies(asked)), asked, 10
                ),
                "cloudwatch.DescribeAlarms": self._alarms,
                "cloudwatch.GetMetricData": self._data,
                **{operation: {key: []} for operation, key in _NOTHING.items()},
            }
        )

    def answer(self, name: str, model: Any, params: Asked) -> tuple[Any, Any]:
        if self.throttled(name, params):
            self.requests.append((name, params))
            return Refused("ThrottlingException", "Rate exceeded", 400).answer()
        return super().answer(name, model, params)

    # ------------------------------------------------------------------------------------ stacks

    def stack_of(self, name: str) -> str:
        return f"Stack{self.names.index(name) // self.in_stack:03}"

    def _members(self, stack: str) -> list[str]:
        first = int(stack.removeprefix("Stack")) * self.in_stack
        return self.names[first : first + self.in_stack]

    def _resources(self, stack: str) -> Iterator[dict[str, Any]]:
        for logical, resource in self._template(stack).items():
            kind, name = resource["Type"].rpartition("::")[2], resource["Physical"]
            physical = name if kind == "Alarm" else f"{_ARN}{kind.lower()}/{name}"
            yield {
                "LogicalResourceId": logical,
                "PhysicalResourceId": physical,
                "ResourceType": resource["Type"],
                "ResourceStatus": "CREATE_COMPLETE",
            }

    def _owner(self, asked: Asked) -> Any:
        stack = self.stack_of(asked["PhysicalResourceId"].rpartition("/")[2])
        more = {"StackName": stack, "Timestamp": NOW}
        return {"StackResources": [each | more for each in self._resources(stack)][:100]}

    def _stack(self, asked: Asked) -> Any:
        name = asked["StackName"]
        if name in self.names:
            return Refused("ValidationError", f"Stack with id {name} does not exist", 400)
        return {"Stacks": [{"StackName": name, "StackStatus": "UPDATE_COMPLETE"}]}

    def _template(self, stack: str) -> dict[str, Any]:
        resources: dict[str, Any] = {}
        for number, name in enumerate(self._members(stack)):
            of_variant = f"endpoint/{name}/variant/{_VARIANT}"
            resources |= {
                f"Config{number}": {
                    "Type": "AWS::SageMaker::EndpointConfig",
                    "Physical": f"{name}-c",
                    "Properties": {"ProductionVariants": [{"VariantName": _VARIANT}]},
                },
                f"Endpoint{number}": {
                    "Type": "AWS::SageMaker::Endpoint",
                    "Physical": name,
                    "Metadata": {PLAN_METADATA: {"decisions": []}},
                    "Properties": {
                        "EndpointName": name,
                        "EndpointConfigName": {"Ref": f"Config{number}"},
                    },
                },
                f"Target{number}": {
                    "Type": f"{_SCALES}ableTarget",
                    "Physical": of_variant,
                    "Properties": {"ResourceId": of_variant, "MinCapacity": 2, "MaxCapacity": 8},
                },
                f"Policy{number}": {
                    "Type": f"{_SCALES}ingPolicy",
                    "Physical": f"{name}-p",
                    "Properties": {
                        "ScalingTargetId": {"Ref": f"Target{number}"},
                        "PolicyName": f"{name}-p",
                        "TargetTrackingScalingPolicyConfiguration": {"TargetValue": 100},
                    },
                },
            }
            for n in range(_ALARMS_EACH):
                resources[f"Alarm{number}x{n}"] = {
                    "Type": "AWS::CloudWatch::Alarm",
                    "Physical": f"{name}-{n}",
                    "Properties": {"Threshold": 1000},
                }
        return resources

    # --------------------------------------------------------------------------------- endpoints

    def _list(self, asked: Asked) -> Any:
        listed = [
            {"EndpointName": name, "EndpointArn": each["EndpointArn"], "EndpointStatus": "Updating"}
            for name, each in self.endpoints.items()
        ]
        return page_of("Endpoints", listed, asked, asked.get("MaxResults", 10))

    def _describe(self, asked: Asked) -> Any:
        return self.endpoints[asked["EndpointName"]]

    def _configuration(self, asked: Asked) -> Any:
        name = asked["EndpointConfigName"]
        model = name.removesuffix("-c") + "-m"
        variant = {"VariantName": _VARIANT, "ModelName": model, "InstanceType": "ml.m5.large"}
        return self._there(name, {"ProductionVariants": [variant]})

    def _there(self, name: str, answer: dict[str, Any]) -> Any:
        if name in self.deleted:
            return Refused("ValidationException", f'Could not find "{name}".', 400)
        return answer

    # ------------------------------------------------------------------------ scaling and metrics

    def _targets(self, asked: Asked) -> Iterator[dict[str, Any]]:
        assert "ResourceIds" in asked or "ScalableDimension" not in asked  # AWS refuses one alone
        for name, limits in self.targets.items():
            resource = f"endpoint/{name}/variant/{_VARIANT}"
            if resource in asked.get("ResourceIds", [resource]):
                yield {**limits, "ResourceId": resource, "ScalableDimension": INSTANCES}

    def _policies(self, asked: Asked) -> Iterator[dict[str, Any]]:
        assert "ResourceId" in asked or "ScalableDimension" not in asked
        for name in self.names:
            resource = f"endpoint/{name}/variant/{_VARIANT}"
            if asked.get("ResourceId", resource) == resource:
                yield {
                    "PolicyName": f"{name}-p",
                    "ResourceId": resource,
                    "ScalableDimension": INSTANCES,
                    "TargetTrackingScalingPolicyConfiguration": {"TargetValue": 100.0},
                }

    def _alarms(self, asked: Asked) -> Any:
        kind = asked["AlarmTypes"][0]
        names = asked.get("AlarmNames")
        found = [
            alarm
            for alarm in (self.alarms if kind == "MetricAlarm" else [])
            if names is None or alarm["AlarmName"] in names
        ]
        return page_of(f"{kind}s", found, asked, 100)

    def _data(self, asked: Asked) -> Any:
        assert len(asked["MetricDataQueries"]) <= 500
        return {
            "MetricDataResults": [
                {
                    "Id": query["Id"],
                    "Label": "",
                    "StatusCode": "Complete",
                    "Timestamps": [NOW - timedelta(minutes=minute) for minute in (2, 1)],
                    "Values": [100.0, 50.0] if _metric(query) == "Invocations" else [3.0, 0.0],
                }
                for query in asked["MetricDataQueries"]
            ]
        }


def _metric(query: Asked) -> str:
    return str(query["MetricStat"]["Metric"]["MetricName"])


def _endpoint(name: str) -> dict[str, Any]:
    variant = {"VariantName": _VARIANT, "CurrentInstanceCount": 3, "DesiredInstanceCount": 3}
    return {
        "EndpointName": name,
        "EndpointArn": f"{_ARN}endpoint/{name}",
        "EndpointConfigName": f"{name}-c",
        "EndpointStatus": "InService",
        "CreationTime": NOW - timedelta(days=30),
        "LastModifiedTime": NOW - timedelta(days=30),
        "ProductionVariants": [variant],
    }


def _alarm(name: str, endpoint: str) -> dict[str, Any]:
    return {
        "AlarmName": name,
        "Namespace": "AWS/SageMaker",
        "MetricName": "OverheadLatency",
        "Statistic": "Average",
        "Period": 60,
        "Dimensions": [
            {"Name": "EndpointName", "Value": endpoint},
            {"Name": "VariantName", "Value": _VARIANT},
        ],
        "Threshold": 1000.0,
        "ComparisonOperator": "GreaterThanThreshold",
        "StateValue": "OK",
        "StateUpdatedTimestamp": NOW - timedelta(days=30),
        "ActionsEnabled": True,
    }
