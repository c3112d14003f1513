# ruff: noqa: RUF009  # the functions that are defaults hold no state
"""Endpoints minute by minute: what happens in them, and so what CloudWatch holds."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from statistics import NormalDist
from typing import Any, Literal

from low_latency_endpoint.facts.instance_types import instance_facts
from tests.fake_aws import Refused

from .account import MINUTE, FakeAccount

END = datetime(2026, 11, 20, 4, 0, tzinfo=UTC)
ENDPOINT, VARIANT, CONFIGURATION = "sentiment", "primary", "sentiment-config-2"
NEW = "sentiment-config-3"
LONG_AGO = END - timedelta(days=30)
QUANTILES = 60
ERRORS = ("Invocation4XXErrors", "Invocation5XXErrors", "InvocationModelErrors")

PerMinute = Callable[[int], float]


def constant(value: float) -> PerMinute:
    """The same in every minute."""
    return lambda minute: value


@dataclass(frozen=True)
class Scaled:
    """A scaling activity that began in a minute of the window."""

    minute: float
    to: int
    status: str = "Successful"
    message: str = ""
    cause: str = "monitor alarm TargetTracking-AlarmHigh was in state ALARM"
    reasons: tuple[str, ...] = ()
    took: float = 5


@dataclass(frozen=True)
class Update:
    """A new fleet beside the scenario's: what it does, and what AWS says of it.

    It is ``asked`` from a minute on; with ``ended`` it is gone from that minute on, rolled back.
    ``apart`` is whether CloudWatch has series of each configuration, or of the ``new`` one alone.
    """

    begun: float = 15
    asked: int = 20
    ended: int | None = None
    share: PerMinute = constant(0.5)
    instances: PerMinute = constant(8)
    latency: Callable[[int, int], float] = lambda minute, instance: 40.0
    errors: dict[str, PerMinute] = field(default_factory=dict)
    apart: Literal["both", "new", ""] = "both"
    status: str = "Updating"
    stage: str = "Baking"
    told: bool = True  # whether DescribeEndpoint has a PendingDeploymentSummary
    configuration: str = NEW
    variant: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    image: str = "pytorch-inference:2.7.0-cpu"
    alarms: tuple[str, ...] = ()

    def serves(self, minute: int) -> bool:
        """Whether requests reach the new fleet in a minute."""
        return self.asked <= minute < (self.ended or minute + 1)


@dataclass
class Scenario:
    """One variant under load; every field that is a function takes the minute of the window.

    ``latency`` gives the median of one instance's ModelLatency in ms and ``spread`` the sigma of
    its log-normal law, so that p99 is about ``exp(2.33 * spread)`` times the median.
    ``stated`` is what the template says of scaling where it is not as it runs; without it there is
    nothing in the template but the plan. ``arrives`` is the minute in which an instance took another's place; ``alarm`` is what the
    alarms on thresholds have besides.
    """

    minutes: int = 60
    instance_type: str = "ml.m5.12xlarge"
    routing: str | None = "LEAST_OUTSTANDING_REQUESTS"
    tps: PerMinute = constant(600)
    instances: PerMinute = constant(8)
    latency: Callable[[int, int], float] = lambda minute, instance: 40.0
    spread: float = 0.3
    overhead: PerMinute = constant(6)
    cpu: PerMinute = constant(45)
    gpu: PerMinute | None = None
    memory: PerMinute = constant(40)
    disk: PerMinute = constant(20)
    in_flight: PerMinute = constant(24)
    errors: dict[str, PerMinute] = field(default_factory=dict)
    multi_model: dict[str, PerMinute] = field(default_factory=dict)
    longest_ms: PerMinute | None = None
    enhanced: bool = False
    arrives: dict[int, int] = field(default_factory=dict)
    zones: tuple[str, ...] = ()
    status: str = "InService"
    failure: str = ""
    scaling: dict[str, Any] | None = field(
        default_factory=lambda: {"min": 2, "max": 16, "target": 7800.0}
    )
    suspended: bool = False
    activities: Sequence[Scaled] = ()
    deployed: int | None = None
    update: Update | None = None
    environment: dict[str, str] = field(default_factory=dict)
    thresholds: dict[tuple[str, str], float] = field(
        default_factory=lambda: {
            ("ModelLatency", "p99"): 160.0,
            ("OverheadLatency", "Average"): 40.0,
        }
    )
    alarm: dict[str, Any] = field(default_factory=dict)
    silence_alarm: bool = False
    planned: dict[str, float] | None = field(
        default_factory=lambda: {
            "peak TPS": 1600.0,
            "TPS per instance": 200.0,
            "safety factor": 0.65,
        }
    )
    stated: dict[str, Any] | None = None
    deleted: str = ""  # of what serves: EndpointConfig or Model
    data_capture: int = 0
    image: str = "pytorch-inference:2.6.0-cpu"
    inference_ami: str | None = None
    created: float | None = None
    log_group: bool = True
    # what the canary in each zone publishes, by metric
    canary: dict[str, dict[str, Callable[[int], float | None]]] = field(default_factory=dict)

    @property
    def start(self) -> datetime:
        return END - self.minutes * MINUTE

    def at(self, minute: float) -> datetime:
        """The time of a minute of the window."""
        return self.start + minute * MINUTE

    # --------------------------------------------------------------------------------- account

    def account(self) -> FakeAccount:
        """An account that holds this endpoint and its metrics."""
        account = FakeAccount(self.start)
        count = round(self.instances(self.minutes - 1))
        created = self.at(self.deployed) if self.deployed is not None else LONG_AGO
        account.endpoint = {
            "EndpointName": ENDPOINT,
            "EndpointConfigName": CONFIGURATION,
            "EndpointStatus": self.status,
            "CreationTime": LONG_AGO if self.created is None else self.at(self.created),
            "LastModifiedTime": created + 4 * MINUTE,
            "ProductionVariants": [
                {
                    "VariantName": VARIANT,
                    "CurrentInstanceCount": count,
                    "DesiredInstanceCount": count,
                }
            ],
            **({"FailureReason": self.failure} if self.failure else {}),
        }
        if self.created is not None:  # users show descriptions without them
            del account.endpoint["ProductionVariants"]
        if self.data_capture:
            account.endpoint["DataCaptureConfig"] = {
                "EnableCapture": True,
                "CurrentSamplingPercentage": self.data_capture,
            }
        account.configuration = {
            "EndpointConfigName": CONFIGURATION,
            "CreationTime": created,
            "ProductionVariants": [
                {
                    "VariantName": VARIANT,
                    "ModelName": "sentiment-model",
                    "InstanceType": self.instance_type,
                    **(
                        {"RoutingConfig": {"RoutingStrategy": self.routing}} if self.routing else {}
                    ),
                    **({"InferenceAmiVersion": self.inference_ami} if self.inference_ami else {}),
                }
            ],
        }
        # Another endpoint's group begins with the same name.
        account.log_groups = [f"/aws/sagemaker/Endpoints/{ENDPOINT}-2"]
        if self.log_group:
            account.log_groups.append(f"/aws/sagemaker/Endpoints/{ENDPOINT}")
        account.model = {
            "PrimaryContainer": {
                "Image": f"763104351884.dkr.ecr.us-east-1.amazonaws.com/{self.image}",
                "Environment": self.environment,
            }
        }
        if self.update:
            wanted = round(self.instances(0))
            account.endpoint["ProductionVariants"][0]["DesiredInstanceCount"] = wanted
            self._update(account, self.update, wanted)
        self._scaling(account)
        self._alarms(account)
        self._template(account)
        if self.deleted:
            gone = Refused("ValidationException", f"Could not find {self.deleted}", 400)
            account.answers[f"sagemaker.Describe{self.deleted}"] = gone
        for minute in range(self.minutes):
            self._minute(account, minute)
        return account

    def _update(self, account: FakeAccount, update: Update, wanted: int) -> None:
        (variant,) = account.configuration["ProductionVariants"]
        if update.configuration != CONFIGURATION:
            account.coming[update.configuration] = {
                "EndpointConfigName": update.configuration,
                "CreationTime": self.at(update.begun - 1),
                "ProductionVariants": [{**variant, "ModelName": "new-model", **update.variant}],
            }
        (of_now,) = account.model.values()
        image = f"763104351884.dkr.ecr.us-east-1.amazonaws.com/{update.image}"
        container = {**of_now, "Image": image, "Environment": update.environment}
        account.coming["new-model"] = {"PrimaryContainer": container}
        if update.ended is not None:
            return
        account.endpoint["EndpointStatus"] = update.status
        account.endpoint["LastModifiedTime"] = self.at(update.begun)
        if update.alarms:
            alarms = {"Alarms": [{"AlarmName": name} for name in update.alarms]}
            account.endpoint["LastDeploymentConfig"] = {"AutoRollbackConfiguration": alarms}
        if not update.told:
            return
        count = round(update.instances(self.minutes - 1))
        status = {"Status": update.stage, "StartTime": self.at(update.asked)}
        account.endpoint["PendingDeploymentSummary"] = {
            "EndpointConfigName": update.configuration,
            "StartTime": self.at(update.begun),
            "ProductionVariants": [
                {
                    "VariantName": VARIANT,
                    "CurrentInstanceCount": count,
                    "DesiredInstanceCount": wanted,
                    "VariantStatus": [status],
                }
            ],
        }

    def _scaling(self, account: FakeAccount) -> None:
        if self.scaling is None:
            return
        resource = {
            "ServiceNamespace": "sagemaker",
            "ResourceId": f"endpoint/{ENDPOINT}/variant/{VARIANT}",
            "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
        }
        account.targets = [
            {
                **resource,
                "MinCapacity": self.scaling["min"],
                "MaxCapacity": self.scaling["max"],
                "SuspendedState": {"DynamicScalingOutSuspended": self.suspended},
            }
        ]
        account.policies = [
            {
                **resource,
                "PolicyType": "TargetTrackingScaling",
                "TargetTrackingScalingPolicyConfiguration": {
                    "TargetValue": self.scaling["target"],
                    "ScaleOutCooldown": self.scaling.get("cooldown", 60),
                    **(
                        {"CustomizedMetricSpecification": self.scaling["custom"]}
                        if "custom" in self.scaling
                        else {
                            "PredefinedMetricSpecification": {
                                "PredefinedMetricType": self.scaling.get(
                                    "metric", "SageMakerVariantInvocationsPerInstance"
                                )
                            }
                        }
                    ),
                },
            }
        ]
        if "policy" in self.scaling:  # another kind than target tracking, or none
            kind = self.scaling["policy"]
            steps = {**resource, "PolicyType": kind, "StepScalingPolicyConfiguration": {}}
            account.policies = [steps] if kind else []
        account.activities = [
            {
                **resource,
                "Description": f"Setting desired instance count to {each.to}.",
                "Cause": each.cause,
                "StartTime": self.at(each.minute),
                "EndTime": self.at(each.minute + each.took),
                "StatusCode": each.status,
                "StatusMessage": each.message,
                "NotScaledReasons": [{"Code": code} for code in each.reasons],
            }
            for each in self.activities
        ]

    def _alarms(self, account: FakeAccount) -> None:
        dimensions = [
            {"Name": "EndpointName", "Value": ENDPOINT},
            {"Name": "VariantName", "Value": VARIANT},
        ]
        for (metric, statistic), milliseconds in self.thresholds.items():
            kind = "ExtendedStatistic" if statistic.startswith("p") else "Statistic"
            account.alarms.append(
                {
                    "AlarmName": f"{metric}-{statistic}",
                    "Namespace": "AWS/SageMaker",
                    "MetricName": metric,
                    kind: statistic,
                    "Dimensions": dimensions,
                    "Threshold": milliseconds * 1000,
                    "ComparisonOperator": "GreaterThanThreshold",
                    "StateValue": "OK",
                    **self.alarm,
                }
            )
        # Another endpoint's alarm: never this one's threshold.
        account.alarms += [
            {
                "AlarmName": f"other-{n}",
                "Namespace": "AWS/SageMaker",
                "MetricName": "ModelLatency",
                "ExtendedStatistic": "p99",
                "Threshold": 1.0,
                "StateValue": "ALARM",
                "Dimensions": [{"Name": "EndpointName", "Value": "other"}],
                "ComparisonOperator": "GreaterThanThreshold",
            }
            for n in range(9)
        ]
        if self.silence_alarm:
            account.alarms.append(
                {
                    "AlarmName": "silence",
                    "Namespace": "AWS/SageMaker",
                    "MetricName": "Invocations",
                    "Statistic": "Sum",
                    "Dimensions": dimensions,
                    "Threshold": 1.0,
                    "ComparisonOperator": "LessThanThreshold",
                    "StateValue": "ALARM",
                }
            )

    def _template(self, account: FakeAccount) -> None:
        if self.planned is None:
            return
        target = {"metric": "ModelLatency", "statistic": "p99", "target in ms": 200.0}
        decisions = [
            {"name": "instances_at_peak", "value": 8, "inputs": dict(self.planned)},
            {"name": "alarm_model_latency_p99", "value": 160.0, "inputs": target},
        ]
        plan = {"LowLatencyEndpoint::Plan": {"warnings": [], "decisions": decisions}}
        endpoint = {"Type": "AWS::SageMaker::Endpoint", "Metadata": plan}
        account.template = {"Resources": {"Endpoint": endpoint, **self._stated(account)}}
        if self.stated is not None:
            named = {"EndpointName": ENDPOINT, "EndpointConfigName": {"Ref": "Configuration"}}
            endpoint["Properties"] = {**named, "RetainAllVariantProperties": True}

    def _stated(self, account: FakeAccount) -> dict[str, Any]:
        """What the template states of the scenario's fleet: as it is, or as ``stated`` has it."""
        if self.stated is None:
            return {}
        policy = "TargetTrackingScalingPolicyConfiguration"
        scaling = {**(self.scaling or {}), **self.stated}
        tracking = {
            "TargetValue": scaling["target"],
            "ScaleOutCooldown": scaling.get("cooldown", 60),
            "PredefinedMetricSpecification": {
                "PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"
            },
        }
        resource = f"endpoint/{ENDPOINT}/variant/{VARIANT}"
        alarm = {"Threshold": 160000, "ComparisonOperator": "GreaterThanThreshold"}
        account.physical = {
            "Configuration": f"arn:aws:x:y/{CONFIGURATION}",
            "P99": "ModelLatency-p99",
        }
        variant = {"VariantName": VARIANT, "InitialVariantWeight": 1, "InitialInstanceCount": 2}
        scales = "AWS::ApplicationAutoScaling::Scal"
        return {
            "Configuration": {
                "Type": "AWS::SageMaker::EndpointConfig",
                "Properties": {
                    "ProductionVariants": [
                        {**variant, "RoutingConfig": {"RoutingStrategy": str(self.routing)}}
                    ]
                },
            },
            "Target": {
                "Type": f"{scales}ableTarget",
                "Properties": {
                    "ResourceId": resource,
                    "MinCapacity": scaling["min"],
                    "MaxCapacity": scaling["max"],
                },
            },
            "Policy": {
                "Type": f"{scales}ingPolicy",
                "Properties": {
                    "PolicyName": "Invocations",
                    "PolicyType": "TargetTrackingScaling",
                    "ScalingTargetId": {"Ref": "Target"},
                    policy: tracking,
                },
            },
            "P99": {"Type": "AWS::CloudWatch::Alarm", "Properties": alarm},
        }

    # --------------------------------------------------------------------------------- metrics

    def _minute(self, account: FakeAccount, minute: int) -> None:
        requests = self.tps(minute) * 60
        count = round(self.instances(minute))
        time = self.at(minute)
        noise = random.Random(minute)

        def put(
            namespace: str, metric: str, samples: list[tuple[float, float]], **more: str
        ) -> None:
            dimensions = {"EndpointName": ENDPOINT, "VariantName": VARIANT, **more}
            key = (namespace, metric, frozenset(dimensions.items()))
            account.data.setdefault(key, {}).setdefault(time, []).extend(samples)

        runtime, hosts = "AWS/SageMaker", "/aws/sagemaker/Endpoints"
        facts = instance_facts(self.instance_type)
        assert facts is not None
        assert facts.vcpus is not None
        update = self.update if self.update and self.update.serves(minute) else None
        share = update.share(minute) if update else 0.0
        # Each fleet: its requests, instances, the number of its first one, latency and errors.
        fleets = [(CONFIGURATION, requests * (1 - share), count, 0, self.latency, self.errors)]
        if update:
            new = round(update.instances(minute)), count, update.latency, update.errors
            fleets.append((update.configuration, requests * share, *new))
        for configuration, of_fleet, size, first, latency, errors in fleets:
            if not of_fleet:
                continue
            each = of_fleet / size
            own: list[dict[str, str]] = [{"EndpointConfigName": configuration}]
            told = self.update.apart if self.update else ""
            if not told or (told == "new" and configuration == CONFIGURATION):
                own = []
            for instance in range(size):
                median = latency(minute, instance) * noise.uniform(0.97, 1.03)
                drawn = self._drawn(median, each)
                samples = [(value * 1000, weight) for value, weight in drawn]
                member: list[dict[str, str]] = [{}, *own]
                if self.enhanced:
                    member.append({"InstanceId": self._name(first + instance, minute)})
                if self.zones:
                    member.append(
                        {
                            "Region": "us-east-1",
                            "InstanceType": self.instance_type,
                            "AvailabilityZone": self.zones[instance % len(self.zones)],
                        }
                    )
                for more in member:
                    put(runtime, "ModelLatency", samples, **more)
                    put(runtime, "Invocations", [(1.0, each)], **more)
                    if more:
                        added = [(1000 * self.overhead(minute), each)]
                        put(runtime, "OverheadLatency", added, **more)
            for more in ({}, *own):
                put(runtime, "InvocationsPerInstance", [(1 / size, of_fleet)], **more)
                for metric in ERRORS:
                    failed = round(errors.get(metric, constant(0))(minute) * of_fleet)
                    put(runtime, metric, [(1.0, failed)] if failed else [(0.0, 1)], **more)
        if requests:
            put(
                runtime,
                "OverheadLatency",
                [(1000 * self.overhead(minute) * noise.uniform(0.95, 1.05), requests)],
            )
            put(runtime, "ConcurrentRequestsPerModel", [(round(self.in_flight(minute)), 1)])
            if self.longest_ms and (longest := self.longest_ms(minute)):
                put(runtime, "ModelLatency", [(1000 * longest, 1)])
        for instance in range(count):
            wobble = noise.uniform(0.97, 1.03)
            more = [{}] + ([{"InstanceId": self._name(instance, minute)}] if self.enhanced else [])
            for dimensions in more:
                put(
                    hosts,
                    "CPUUtilization",
                    [(self.cpu(minute) * facts.vcpus * wobble, 1)],
                    **dimensions,
                )
            put(hosts, "MemoryUtilization", [(self.memory(minute) * wobble, 1)])
            put(hosts, "DiskUtilization", [(self.disk(minute), 1)])
            if self.gpu:
                put(
                    hosts,
                    "GPUUtilization",
                    [(self.gpu(minute) * (facts.accelerator_count or 1), 1)],
                )
        for zone, seen in self.canary.items():
            for metric, of_canary in seen.items():
                if (value := of_canary(minute)) is None:
                    continue
                of_zone = frozenset({("EndpointName", ENDPOINT), ("Zone", zone)})
                key = ("LowLatencyEndpoint", metric, of_zone)
                account.data.setdefault(key, {})[time] = [(value, 1)]
        for metric, function in self.multi_model.items():
            value, weight = function(minute), max(requests, 1)
            if metric == "ModelCacheHit":
                put(runtime, metric, [(1.0, value * weight), (0.0, (1 - value) * weight)])
            elif metric == "LoadedModelCount":
                put(hosts, metric, [(value, 1)])
            elif value:
                put(runtime, metric, [(1000 * value, weight / 20)])

    def _name(self, instance: int, minute: int) -> str:
        return f"i-{instance}" + ("-gone" if minute < self.arrives.get(instance, 0) else "")

    def _drawn(self, median: float, requests: float) -> list[tuple[float, float]]:
        """Quantiles of a log-normal law with the weight of the instance's requests."""
        count = max(1, min(QUANTILES, math.floor(requests)))
        sigma, weight = self.spread or 1e-9, requests / count
        return [(median * math.exp(sigma * z), weight) for z in _quantiles(count)]


@cache
def _quantiles(count: int) -> list[float]:
    """Of the standard normal law, evenly."""
    return [NormalDist().inv_cdf((n + 0.5) / count) for n in range(count)]
