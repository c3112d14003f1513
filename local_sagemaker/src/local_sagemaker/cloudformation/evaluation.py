"""A template evaluated for one stack: conditions settled, properties resolved."""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import Any

from ..connections import local_client
from ..protocols import ServiceError
from ..resources.resource_type import Place
from ..resources.table import TYPES, find_type
from ..schemas import violations
from .dependencies import creation_order
from .intrinsics import NO_VALUE, Resolver
from .stacks import DeployedResource, Output, Stack, StackStore
from .stacks import store as stack_store
from .template import Submission

PENDING = "\0known after deployment:"
"""Marks a value that a change set cannot know: it belongs to a resource that is yet to be made."""


class Evaluation(Resolver):
    """A template with its parameters, evaluated for a stack.

    Parameters
    ----------
    stack
        The stack; only its names and resources are read.
    submitted
        What it is to be.
    pending
        Resources that will exist only after the deployment; others that are asked for must exist
        by now.
    """

    def __init__(
        self,
        place: Place,
        stacks: StackStore,
        stack: Stack,
        submitted: Submission,
        pending: Collection[str] = (),
    ) -> None:
        self._place = place
        self._stacks = stacks
        self._existing = stack.resources
        self._pending = pending
        self._tags = submitted.tags
        self.imports: set[str] = set()
        values = {name: parameter.value for name, parameter in submitted.parameters.items()}
        values |= {
            "AWS::AccountId": place.account,
            "AWS::Region": place.region,
            "AWS::StackName": stack.name,
            "AWS::StackId": stack.id,
            "AWS::Partition": "aws",
            "AWS::URLSuffix": "amazonaws.com",
            "AWS::NotificationARNs": stack.notification_arns,
        }
        super().__init__(submitted.template, values)
        self.resources: dict[str, dict[str, Any]] = {
            name: resource
            for name, resource in self.template["Resources"].items()
            if "Condition" not in resource or self.condition(resource["Condition"])
        }
        self.order = creation_order(self.resources)

    def properties(self, logical_id: str) -> dict[str, Any]:
        """Resolve a resource's properties, and add the stack's tags where the type takes them."""
        declared = self.resources[logical_id].get("Properties") or {}
        resolved = self.resolve(copy.deepcopy(declared))
        return self._with_stack_tags(self.resources[logical_id]["Type"], resolved)

    def _with_stack_tags(self, type_name: str, properties: dict[str, Any]) -> dict[str, Any]:
        kind = TYPES.get(type_name)
        if kind is None or kind.tagged is None or not self._tags:
            return properties
        own = properties.get("Tags")
        if kind.tagged == "map":
            return {**properties, "Tags": {**self._tags, **(own or {})}}
        named = {tag["Key"] for tag in own or []}
        added = [{"Key": k, "Value": v} for k, v in self._tags.items() if k not in named]
        return {**properties, "Tags": [*(own or []), *added]}

    def outputs(self) -> list[Output]:
        """Resolve the outputs.

        Raises
        ------
        ServiceError
            When an output names what does not exist.
        """
        result = []
        for key, declared in (self.template.get("Outputs") or {}).items():
            if "Condition" in declared and not self.condition(declared["Condition"]):
                continue
            value = self.resolve(declared["Value"])
            if value is NO_VALUE or isinstance(value, (dict, list)):
                raise ServiceError(
                    f"Template format error: Output {key} is malformed: its value is no string"
                )
            export = declared.get("Export")
            result.append(
                Output(
                    key,
                    str(value).lower() if isinstance(value, bool) else str(value),
                    declared.get("Description"),
                    str(self.resolve(export["Name"])) if export else None,
                )
            )
        return result

    def refusals(self) -> dict[str, str]:
        """Find the resources that CloudFormation or this emulation refuses, each with the reason.

        Done before anything is created: a stack with something unknown in it must not half exist.
        """
        result = {}
        for logical_id in self.order:
            declared = self.resources[logical_id]
            kind = find_type(declared["Type"])
            if kind is None:
                result[logical_id] = f"{declared['Type']} is not emulated by the local AWS"
                continue
            names = [n for n in declared.get("Properties") or {} if not kind.honours(n)]
            if names:
                result[logical_id] = not_emulated(declared["Type"], ", ".join(names))
            elif wrong := violations(declared["Type"], declared.get("Properties") or {}):
                result[logical_id] = invalid(logical_id, wrong)
            unknown = set(declared) - _RESOURCE_KEYS
            if unknown:
                result[logical_id] = (
                    f"{declared['Type']}: {', '.join(sorted(unknown))} is not emulated"
                )
        return result

    def ref(self, logical_id: str) -> str:
        if logical_id in self._pending:
            return f"{PENDING}{logical_id}\0"
        return self._found(logical_id).physical_id

    def attribute(self, logical_id: str, name: str) -> Any:
        if logical_id in self._pending:
            return f"{PENDING}{logical_id}.{name}\0"
        resource = self._found(logical_id)
        if name in resource.attributes:
            return resource.attributes[name]
        if resource.type.startswith("Custom::") or resource.type.endswith("::CustomResource"):
            raise ServiceError(
                "CustomResource attribute error: Vendor response doesn't contain "
                f"{name} attribute in object {resource.physical_id}"
            )
        raise ServiceError(
            f"Template error: resource {logical_id} does not support attribute type {name} in "
            f"Fn::GetAtt. {resource.type} has: {', '.join(sorted(resource.attributes)) or 'none'}"
        )

    def _found(self, logical_id: str) -> DeployedResource:
        if logical_id not in self._existing:
            raise ServiceError(f"Template error: resource {logical_id} does not exist")
        return self._existing[logical_id]

    def import_value(self, name: str) -> str:
        exports = self._stacks.exports()
        if name not in exports:
            raise ServiceError(f"No export named {name} found.")
        self.imports.add(name)
        return exports[name][1].value

    def stack_output(self, region: str | None, stack: str, output: str) -> str:
        """Read another stack's output; unlike an import, this does not hold it there."""
        store = self._stacks
        if region not in (None, self._place.region):
            store = stack_store(self._place.account, str(region))
        with store.lock:
            found = store.alive.get(stack)
            outputs = {each.key: each.value for each in found.outputs} if found else {}
        if output not in outputs:
            raise ServiceError(
                f"Template error: stack {stack} has no output {output}, or does not exist"
            )
        return outputs[output]

    def zones(self, region: str) -> list[str]:
        answer = local_client("ec2", region, self._place.url).describe_availability_zones()
        return [zone["ZoneName"] for zone in answer["AvailabilityZones"]]

    def dynamic(self, service: str, reference: str) -> str:
        if service != "ssm":
            raise ServiceError(f"Dynamic references to {service} are not emulated")
        name = reference.split(":")[0]
        return str(self._place.client("ssm").get_parameter(Name=name)["Parameter"]["Value"])


_RESOURCE_KEYS = {
    "Type",
    "Properties",
    "DependsOn",
    "Condition",
    "Metadata",
    "DeletionPolicy",
    "UpdateReplacePolicy",
}


def not_emulated(type_name: str, path: str) -> str:
    """Word the refusal of a property."""
    return f"{type_name}: property {path} is not emulated by the local AWS"


def invalid(logical_id: str, wrong: list[str]) -> str:
    """Word the refusal of properties that CloudFormation's schema does not allow."""
    return f"Properties validation failed for resource {logical_id} with message:\n" + "\n".join(
        wrong
    )
