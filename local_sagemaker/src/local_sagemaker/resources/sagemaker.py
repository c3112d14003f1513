"""AWS::SageMaker::*: model, endpoint configuration, endpoint, inference component."""

from __future__ import annotations

import time
from typing import Any

from botocore.exceptions import ClientError

from ..protocols import ServiceError
from .properties import Tagging, call, only, without
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated

_ENDPOINT_TIMEOUT = 600.0


_TAGS = Tagging("sagemaker", "add_tags", "delete_tags", "ResourceArn")


@emulated
class Model(ResourceType):
    """A model: everything but its tags is fixed once it exists."""

    type_name = "AWS::SageMaker::Model"
    deletes_by = ("sagemaker", "delete_model", {"ModelName": "ModelName"})
    name_property = "ModelName"
    tags_by = _TAGS

    def create(self, at: Place, properties: Properties) -> Created:
        name = self.name(at, properties, longest=63)
        arn = call(at.client("sagemaker"), "create_model", {**properties, "ModelName": name})[
            "ModelArn"
        ]
        return Created(arn, {"ModelName": name, "ModelArn": arn, "Id": arn})


@emulated
class EndpointConfig(ResourceType):
    """An endpoint configuration: everything but its tags is fixed once it exists."""

    type_name = "AWS::SageMaker::EndpointConfig"
    deletes_by = (
        "sagemaker",
        "delete_endpoint_config",
        {"EndpointConfigName": "EndpointConfigName"},
    )
    name_property = "EndpointConfigName"
    tags_by = _TAGS

    def create(self, at: Place, properties: Properties) -> Created:
        name = self.name(at, properties, longest=63)
        arn = call(
            at.client("sagemaker"),
            "create_endpoint_config",
            {**properties, "EndpointConfigName": name},
        )["EndpointConfigArn"]
        return Created(arn, {"EndpointConfigName": name, "Id": arn})


@emulated
class Endpoint(ResourceType):
    """An endpoint, updated with UpdateEndpoint."""

    type_name = "AWS::SageMaker::Endpoint"
    deletes_by = ("sagemaker", "delete_endpoint", {"EndpointName": "EndpointName"})
    name_property = "EndpointName"
    tags_by = _TAGS

    def create(self, at: Place, properties: Properties) -> Created:
        name = self.name(at, properties, longest=63)
        # The other properties only say how to update.
        arguments = only(properties, "DeploymentConfig", "EndpointConfigName", "Tags")
        arn = call(at.client("sagemaker"), "create_endpoint", {**arguments, "EndpointName": name})[
            "EndpointArn"
        ]
        created = at.begin(arn, {"EndpointName": name, "EndpointArn": arn, "Id": arn})
        self._wait(at, name, properties["EndpointConfigName"])
        return created

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        """Call UpdateEndpoint for whatever changed but the tags.

        Also for what only says how to update (RetainAllVariantProperties and its kind): whether
        AWS's handler leaves those out is not known.
        """
        name = existing.attributes["EndpointName"]
        arguments = {k: v for k, v in properties.items() if k not in ("EndpointName", "Tags")}
        if any(
            properties.get(key) != existing.properties.get(key)
            for key in self.properties - {"EndpointName", "Tags"}
        ):
            call(at.client("sagemaker"), "update_endpoint", {**arguments, "EndpointName": name})
            self._wait(at, name, properties["EndpointConfigName"])

    @staticmethod
    def _wait(at: Place, name: str, config: str) -> None:
        deadline = time.monotonic() + _ENDPOINT_TIMEOUT
        found: dict[str, Any] = {}
        while time.monotonic() < deadline:
            found = at.client("sagemaker").describe_endpoint(EndpointName=name)
            if found["EndpointStatus"] == "InService":
                # One that SageMaker rolled back is in service too, with its old configuration.
                if at.options.endpoint_handler == "waits" or found["EndpointConfigName"] == config:
                    return
                break
            if found["EndpointStatus"] in ("Failed", "UpdateRollbackFailed", "OutOfService"):
                break
            time.sleep(0.1)
        raise ServiceError(
            f"Endpoint {name} is {found.get('EndpointStatus')}: {found.get('FailureReason', '')}"
        )


@emulated
class InferenceComponent(ResourceType):
    """An inference component, updated with UpdateInferenceComponent."""

    type_name = "AWS::SageMaker::InferenceComponent"
    name_property = "InferenceComponentName"
    tags_by = _TAGS
    _FIXED = ("EndpointName", "InferenceComponentName", "VariantName")

    def create(self, at: Place, properties: Properties) -> Created:
        name = self.name(at, properties, longest=63)
        arn = call(
            at.client("sagemaker"),
            "create_inference_component",
            {**without(properties, "DeploymentConfig"), "InferenceComponentName": name},
        )["InferenceComponentArn"]
        attributes = {"InferenceComponentName": name, "InferenceComponentArn": arn}
        created = at.begin(arn, attributes)
        self._wait(at, name)
        return created

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        """Call UpdateInferenceComponent, also when only the way of updating changed.

        The schema has no property whose change needs a new component, and the API changes neither
        name nor place: that such an update fails is ours.
        """
        fixed = [p for p in self._FIXED if properties.get(p) != existing.properties.get(p)]
        if fixed:
            raise ServiceError(f"An inference component's {', '.join(fixed)} cannot be updated")
        own = {"InferenceComponentName", "Tags"}
        if without(properties, *own) == without(existing.properties, *own):
            return
        name = existing.attributes["InferenceComponentName"]
        arguments = only(properties, "DeploymentConfig", "RuntimeConfig", "Specification")
        call(
            at.client("sagemaker"),
            "update_inference_component",
            {**arguments, "InferenceComponentName": name},
        )
        self._wait(at, name)

    def delete(self, at: Place, existing: Existing) -> None:
        """Delete it, and wait until it is gone: until then its endpoint cannot be deleted."""
        name = existing.attributes["InferenceComponentName"]
        at.client("sagemaker").delete_inference_component(InferenceComponentName=name)
        deadline = time.monotonic() + _ENDPOINT_TIMEOUT
        while time.monotonic() < deadline:
            try:
                at.client("sagemaker").describe_inference_component(InferenceComponentName=name)
            except ClientError:
                return
            time.sleep(0.05)
        raise ServiceError(f"Inference component {name} is still there")

    @staticmethod
    def _wait(at: Place, name: str) -> None:
        """Wait for InService, which one whose update failed has too; see `endpoint_handler`."""
        deadline = time.monotonic() + _ENDPOINT_TIMEOUT
        found: dict[str, Any] = {}
        while time.monotonic() < deadline:
            found = at.client("sagemaker").describe_inference_component(InferenceComponentName=name)
            status, reason = found["InferenceComponentStatus"], found.get("FailureReason")
            if status == "InService" and not (reason and at.options.endpoint_handler == "compares"):
                return
            if status in ("Failed", "InService"):
                break
            time.sleep(0.05)
        raise ServiceError(
            f"Inference component {name} is {found.get('InferenceComponentStatus')}: "
            f"{found.get('FailureReason', '')}"
        )
