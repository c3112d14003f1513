"""An endpoint for inference components, and short words for them."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hosting_site import Site
from roles_under_test import give_hosting_role
from waiting import until

ROLE = "arn:aws:iam::123456789012:role/models"
MANAGED = {"Status": "ENABLED", "MinInstanceCount": 0, "MaxInstanceCount": 2}
NEEDS = {"MinMemoryRequiredInMb": 1024, "NumberOfAcceleratorDevicesRequired": 1}
_numbers = itertools.count(1)


@dataclass
class Components:
    """An endpoint for inference components, and short words for them."""

    here: Site
    endpoint: str

    @property
    def sagemaker(self) -> Any:
        return self.here.aws.client("sagemaker")

    def create(self, copies: int = 1, *, wait: bool = True, **specification: Any) -> str:
        name = f"component-{next(_numbers)}"
        given = {"ModelName": self.here.model(), "ComputeResourceRequirements": NEEDS}
        if "Container" in specification:
            del given["ModelName"]
        self.sagemaker.create_inference_component(
            InferenceComponentName=name,
            EndpointName=self.endpoint,
            VariantName="primary",
            Specification={**given, **specification},
            RuntimeConfig={"CopyCount": copies},
        )
        if wait:
            assert self.settled(name)["InferenceComponentStatus"] == "InService"
        return name

    def described(self, name: str) -> dict[str, Any]:
        return self.sagemaker.describe_inference_component(InferenceComponentName=name)

    def settled(self, name: str) -> dict[str, Any]:
        done = ("InService", "Failed")
        return until(
            lambda: self.described(name), lambda it: it["InferenceComponentStatus"] in done
        )

    def copies(self, name: str, count: int | None = None) -> int:
        """The copies that a component has, after it was told to have so many."""
        if count is not None:
            self.sagemaker.update_inference_component_runtime_config(
                InferenceComponentName=name, DesiredRuntimeConfig={"CopyCount": count}
            )
        return self.settled(name)["RuntimeConfig"]["CurrentCopyCount"]

    def instances(self) -> int:
        (variant,) = self.here.described(self.endpoint)["ProductionVariants"]
        return variant["CurrentInstanceCount"]

    def delete(self, name: str) -> None:
        """Delete a component and what scaled it."""
        scaling = self.here.aws.client("application-autoscaling")
        with contextlib.suppress(ClientError):
            scaling.deregister_scalable_target(
                ServiceNamespace="sagemaker",
                ScalableDimension="sagemaker:inference-component:DesiredCopyCount",
                ResourceId=f"inference-component/{name}",
            )
        self.settled(name)
        self.sagemaker.delete_inference_component(InferenceComponentName=name)
        self.gone(name)

    def gone(self, name: str) -> None:
        until(lambda: self.listed(NameContains=name), lambda found: not found)

    def listed(self, **by: str) -> list[str]:
        found = self.sagemaker.list_inference_components(**by)["InferenceComponents"]
        return [component["InferenceComponentName"] for component in found]

    def invoke(self, name: str, body: bytes = b"{}", **more: Any) -> dict[str, Any]:
        return self.here.invoke(self.endpoint, body, InferenceComponentName=name, **more)

    def sum(self, name: str, metric: str) -> float | None:
        """The sum of a metric of a component over the last hours."""
        self.here.aws.flush_metrics()
        now = self.here.aws.runtime_time().timestamp()
        points = self.here.aws.client("cloudwatch").get_metric_statistics(
            Namespace="AWS/SageMaker",
            MetricName=metric,
            StartTime=now - 12 * 3600,
            EndTime=now + 60,
            Period=24 * 3600,
            Dimensions=[{"Name": "InferenceComponentName", "Value": name}],
            Statistics=["Sum"],
        )["Datapoints"]
        return sum(point["Sum"] for point in points) if points else None


def component_endpoint(here: Site, managed: dict[str, Any] | None = MANAGED, **more: Any) -> str:
    """Create an endpoint without a model, on instances with a GPU each."""
    name = f"shared-{next(_numbers)}"
    variant = {
        "VariantName": "primary",
        "InstanceType": "ml.g5.xlarge",
        "InitialInstanceCount": 1,
        **({"ManagedInstanceScaling": managed} if managed else {}),
    }
    sagemaker = here.aws.client("sagemaker")
    give_hosting_role(here.aws)
    sagemaker.create_endpoint_config(
        EndpointConfigName=name, ExecutionRoleArn=ROLE, ProductionVariants=[variant], **more
    )
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    here.made.append(name)
    assert here.settled(name)["EndpointStatus"] == "InService"
    return name


def refused(word: str, operation: Any, **request: Any) -> str:
    with pytest.raises(ClientError, match=word) as caught:
        operation(**request)
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    return caught.value.response["Error"]["Code"]
