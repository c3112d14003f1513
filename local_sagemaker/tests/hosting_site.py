"""A local AWS with model servers behind its endpoints, and short words for it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from alarms_under_test import dimensions
from botocore.exceptions import ClientError
from roles_under_test import give_hosting_role
from waiting import until

from local_sagemaker import LocalAws
from local_sagemaker.model_servers import ServiceTime, SimulatedModelServer

IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/{}:1"
_numbers = itertools.count(1)


def canary(wait: int = 300, **policy: Any) -> dict[str, Any]:
    """A blue/green policy that gives half of the traffic first."""
    routing = {
        "Type": "CANARY",
        "CanarySize": {"Type": "CAPACITY_PERCENT", "Value": 50},
        "WaitIntervalInSeconds": wait,
    }
    return {"BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": routing, **policy}}


def rolling(batch: int, back: int | None = None, wait: int = 300) -> dict[str, Any]:
    """A rolling policy with batches of so many instances, and so many on the way back."""
    sizes = {"MaximumBatchSize": batch} | ({"RollbackMaximumBatchSize": back} if back else {})
    return {
        "RollingUpdatePolicy": {
            "WaitIntervalInSeconds": wait,
            **{name: {"Type": "INSTANCE_COUNT", "Value": value} for name, value in sizes.items()},
        }
    }


def taking(seconds: float, **more: Any) -> SimulatedModelServer:
    """A model server that takes so long for each request."""
    return SimulatedModelServer(service_time=ServiceTime.constant(seconds), **more)


@dataclass
class Site:
    """A local AWS and short words for what the tests do with it."""

    aws: LocalAws
    made: list[str] = field(default_factory=list)

    def model(self, server: str = "model", **container: Any) -> str:
        """Create a model whose image selects a model server."""
        name = f"model-{next(_numbers)}"
        self.aws.client("sagemaker").create_model(
            ModelName=name,
            ExecutionRoleArn=give_hosting_role(self.aws),
            PrimaryContainer={"Image": IMAGE.format(server), **container},
        )
        return name

    def config(self, *variants: Mapping[str, Any], **more: Any) -> str:
        """Create an endpoint configuration; a variant needs no more than what is special."""
        name = f"config-{next(_numbers)}"
        defaults = {
            "VariantName": "primary",
            "InstanceType": "ml.c7i.xlarge",
            "InitialInstanceCount": 1,
        }
        self.aws.client("sagemaker").create_endpoint_config(
            EndpointConfigName=name,
            ProductionVariants=[
                {**defaults, **variant, "ModelName": variant.get("ModelName") or self.model()}
                for variant in variants or ({},)
            ],
            **more,
        )
        return name

    def endpoint(
        self, *variants: Mapping[str, Any], wait: bool = True, name: str = "", **more: Any
    ) -> str:
        """Create an endpoint, in service when this returns."""
        name = name or f"endpoint-{next(_numbers)}"
        config = self.config(*variants, **more)
        self.aws.client("sagemaker").create_endpoint(EndpointName=name, EndpointConfigName=config)
        self.made.append(name)
        if wait:
            assert self.settled(name)["EndpointStatus"] == "InService"
        return name

    def described(self, name: str) -> dict[str, Any]:
        """DescribeEndpoint."""
        return self.aws.client("sagemaker").describe_endpoint(EndpointName=name)

    def settled(self, name: str, seconds: float = 60) -> dict[str, Any]:
        """Wait until nothing is being done to an endpoint."""
        return self.until(
            name,
            lambda d: d["EndpointStatus"] not in ("Creating", "Updating", "RollingBack"),
            seconds,
        )

    def settle(self, name: str) -> None:
        """Wait until nothing is being done to an endpoint, by a clock that stands still otherwise."""

        def settled(described: dict[str, Any]) -> bool:
            busy = described["EndpointStatus"] in ("Creating", "Updating", "RollingBack")
            if busy:
                self.aws.advance(5)
            return not busy

        self.until(name, settled)

    def until(
        self, name: str, test: Callable[[dict[str, Any]], bool], seconds: float = 60
    ) -> dict[str, Any]:
        """Wait for something in an endpoint's description."""
        return until(lambda: self.described(name), test, seconds)

    def scale(self, name: str, count: int, variant: str = "primary") -> None:
        """Give a variant so many instances by hand."""
        change = {"VariantName": variant, "DesiredInstanceCount": count}
        self.aws.client("sagemaker").update_endpoint_weights_and_capacities(
            EndpointName=name, DesiredWeightsAndCapacities=[change]
        )

    def update(self, name: str, config: str, **deployment: Any) -> None:
        """UpdateEndpoint, by a policy if one is given."""
        more = {"DeploymentConfig": deployment} if deployment else {}
        self.aws.client("sagemaker").update_endpoint(
            EndpointName=name, EndpointConfigName=config, **more
        )

    def invoke(self, name: str, body: bytes = b"{}", **more: Any) -> dict[str, Any]:
        """InvokeEndpoint; the answer with its body read."""
        answer = self.aws.client("sagemaker-runtime").invoke_endpoint(
            EndpointName=name, Body=body, **more
        )
        return {**answer, "Body": answer["Body"].read()}

    def invoke_many(self, name: str, count: int, at_once: int = 1, **more: Any) -> None:
        """InvokeEndpoint many times, so many at a time."""
        self.aws.client("sagemaker-runtime")
        with ThreadPoolExecutor(at_once) as pool:
            for done in [pool.submit(self.invoke, name, **more) for _ in range(count)]:
                done.result()

    def statistics(
        self,
        name: str,
        metric: str,
        *statistics: str,
        namespace: str = "AWS/SageMaker",
        **more: str,
    ) -> dict[str, float]:
        """Statistics of a metric of one variant over the last hours, in one datapoint."""
        self.aws.flush_metrics()
        now = self.aws.runtime_time()
        wanted = {"EndpointName": name, "VariantName": "primary", **more}
        simple = [s for s in statistics if not s.startswith("p")]
        extended = [s for s in statistics if s.startswith("p")]
        start = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=23)
        points = self.aws.client("cloudwatch").get_metric_statistics(
            Namespace=namespace,
            MetricName=metric,
            StartTime=start,
            EndTime=start + timedelta(hours=24),
            Period=86400,
            Dimensions=dimensions(**wanted),
            **({"Statistics": simple} if simple else {}),
            **({"ExtendedStatistics": extended} if extended else {}),
        )["Datapoints"]
        if not points:
            return {}
        (point,) = points
        return {**{s: point[s] for s in simple}, **point.get("ExtendedStatistics", {})}

    def by_instance(self, name: str) -> list[float]:
        """How many requests each instance answered, in order; needs enhanced metrics."""
        self.aws.flush_metrics()
        found = self.aws.client("cloudwatch").list_metrics(
            Namespace="AWS/SageMaker",
            MetricName="Invocations",
            Dimensions=[{"Name": "EndpointName", "Value": name}, {"Name": "InstanceId"}],
        )["Metrics"]
        ids = [d["Value"] for m in found for d in m["Dimensions"] if d["Name"] == "InstanceId"]
        return sorted(
            self.statistics(name, "Invocations", "Sum", InstanceId=one)["Sum"] for one in ids
        )

    def to_full_minute(self) -> None:
        """Advance the clock to the start of the next minute, where alarms are judged."""
        self.aws.advance(60.001 - self.aws.runtime_time().timestamp() % 60)

    def minutes(self, name: str, metric: str, statistic: str, count: int) -> list[float | None]:
        """A statistic of the last full minutes, the oldest first; None where there is no data."""
        self.aws.flush_metrics()
        now = self.aws.runtime_time().timestamp()
        end = now - now % 60
        stat = {
            "Metric": {
                "Namespace": "AWS/SageMaker",
                "MetricName": metric,
                "Dimensions": dimensions(EndpointName=name, VariantName="primary"),
            },
            "Period": 60,
            "Stat": statistic,
        }
        (result,) = self.aws.client("cloudwatch").get_metric_data(
            MetricDataQueries=[{"Id": "m", "MetricStat": stat}],
            StartTime=end - 60 * count,
            EndTime=end,
        )["MetricDataResults"]
        pairs = zip(result["Timestamps"], result["Values"], strict=True)
        found = {moment.timestamp(): value for moment, value in pairs}
        return [found.get(end - 60 * age) for age in range(count, 0, -1)]

    def delete(self) -> None:
        """Delete the endpoints that are still there, and what scaled them."""
        scaling = self.aws.client("application-autoscaling")
        targets = scaling.describe_scalable_targets(ServiceNamespace="sagemaker")
        for target in targets["ScalableTargets"]:
            if target["ResourceId"].split("/")[1] in self.made:
                keys = ("ServiceNamespace", "ResourceId", "ScalableDimension")
                scaling.deregister_scalable_target(**{key: target[key] for key in keys})
        for name in self.made:
            with contextlib.suppress(ClientError):
                self.settled(name)
                self.aws.client("sagemaker").delete_endpoint(EndpointName=name)


@dataclass
class Scaled:
    """A variant or an inference component that Application Auto Scaling moves."""

    here: Site
    resource: str

    @property
    def key(self) -> dict[str, str]:
        copies = self.resource.startswith("inference-component/")
        moved = "inference-component:DesiredCopyCount" if copies else "variant:DesiredInstanceCount"
        return {
            "ServiceNamespace": "sagemaker",
            "ScalableDimension": f"sagemaker:{moved}",
            "ResourceId": self.resource,
        }

    @property
    def scaling(self) -> Any:
        return self.here.aws.client("application-autoscaling")

    @property
    def activities(self) -> list[dict[str, Any]]:
        return self.scaling.describe_scaling_activities(**self.key)["ScalingActivities"]

    def register(self, least: int, most: int) -> None:
        self.scaling.register_scalable_target(**self.key, MinCapacity=least, MaxCapacity=most)
        self.here.to_full_minute()

    def track(self, target: float, metric: str, **more: Any) -> dict[str, Any]:
        """Keep one of SageMaker's predefined metrics at a target."""
        kind = {"PredefinedMetricType": f"SageMaker{metric}"}
        return self.scaling.put_scaling_policy(
            **self.key,
            PolicyName="track",
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration={
                "TargetValue": target,
                "PredefinedMetricSpecification": kind,
                **more,
            },
        )

    def step(self, *steps: dict[str, int], **more: Any) -> str:
        """Change the capacity by steps; gives the ARN that alarms act on."""
        return self.scaling.put_scaling_policy(
            **self.key,
            PolicyName="steps",
            PolicyType="StepScaling",
            StepScalingPolicyConfiguration={
                "AdjustmentType": "ChangeInCapacity",
                "StepAdjustments": list(steps),
                **more,
            },
        )["PolicyARN"]
