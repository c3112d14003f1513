"""AWS::CloudFormation::Stack, and the CDK's metadata."""

from __future__ import annotations

import time
from typing import Any

from botocore.exceptions import ClientError

from ..cloudformation.stacks import store
from ..protocols import ServiceError
from .calls import as_text, only, tag_list
from .resource_type import Created, Existing, Place, Properties, ResourceType

_TIMEOUT = 900.0


class Metadata(ResourceType):
    """CDK's own usage analytics: nothing to create, here as at AWS."""

    properties = frozenset({"Analytics"})


class NestedStack(ResourceType):
    def create(self, at: Place, properties: Properties) -> Created:
        answer = at.client("cloudformation").create_stack(
            StackName=at.generated_name(128), **self._arguments(properties)
        )
        at.begin(answer["StackId"])
        stacks = store(at.account, at.region)
        stacks.find(answer["StackId"]).parent = stacks.find(at.stack_id)
        return self._wait(at, answer["StackId"])

    @staticmethod
    def _arguments(properties: Properties) -> dict[str, Any]:
        parameters = [
            {
                "ParameterKey": key,
                "ParameterValue": ",".join(map(str, value))
                if isinstance(value, list)
                else as_text(value),
            }
            for key, value in (properties.get("Parameters") or {}).items()
        ]
        return {
            "TemplateURL": properties["TemplateURL"],
            "Parameters": parameters,
            "Capabilities": ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"],
            "Tags": tag_list(properties.get("Tags")),
            **only(properties, "NotificationARNs"),
        }

    @staticmethod
    def _wait(at: Place, stack_id: str) -> Created:
        cloudformation = at.client("cloudformation")
        deadline = time.monotonic() + _TIMEOUT
        while True:
            stack = cloudformation.describe_stacks(StackName=stack_id)["Stacks"][0]
            status = stack["StackStatus"]
            if not status.endswith("_IN_PROGRESS"):
                break
            if time.monotonic() > deadline:
                raise ServiceError(f"Embedded stack {stack_id} did not finish in {_TIMEOUT:.0f} s")
            time.sleep(0.02)
        if status not in ("CREATE_COMPLETE", "UPDATE_COMPLETE", "DELETE_COMPLETE"):
            pages = cloudformation.get_paginator("describe_stack_events")
            events = pages.paginate(StackName=stack_id).build_full_result()["StackEvents"]
            reasons = [
                f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason')}"
                for event in events
                if event["ResourceStatus"].endswith(("_FAILED", "ROLLBACK_IN_PROGRESS"))
            ]
            raise ServiceError(
                f"Embedded stack {stack_id} was not successfully created or updated: "
                f"{reasons[-1] if reasons else status}"
            )
        outputs = {
            f"Outputs.{output['OutputKey']}": output["OutputValue"]
            for output in stack.get("Outputs", [])
        }
        return Created(stack_id, outputs)

    def update(self, at: Place, existing: Existing, properties: Properties) -> Created:
        try:
            at.client("cloudformation").update_stack(
                StackName=existing.physical_id, **self._arguments(properties)
            )
        except ClientError as error:
            if "No updates are to be performed" not in str(error):
                raise
        return self._wait(at, existing.physical_id)

    def delete(self, at: Place, existing: Existing) -> None:
        try:
            at.client("cloudformation").delete_stack(StackName=existing.physical_id)
            self._wait(at, existing.physical_id)
        except ServiceError as error:
            raise ServiceError(f"Embedded stack was not deleted: {error}") from error
