"""Stacks as CloudFormation has them, piece by piece: one refusal hides only its own piece."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from ..errors import rule
from ..plan.decisions import PLAN_METADATA, values_in_template
from ..plan.launched_names import OWN_NAME, as_named
from .calls import Account
from .sessions import Unreadable

STACK_EXISTS = rule(
    "LLA103",
    "the stack does not exist in this account and region",
    fix="`low-latency list` shows the stacks. --region and --profile choose another account.",
)
ENDPOINT_TYPE = "AWS::SageMaker::Endpoint"
_RESOURCES = ("cloudformation", "list_stack_resources", "StackResourceSummaries")
_OWNER = ("cloudformation", "describe_stack_resources")
_MOST_DESCRIBED = 100  # resources that DescribeStackResources tells

_Resource = TypeVar("_Resource")


@dataclass(frozen=True, slots=True)
class StackEndpoint:
    logical_id: str
    name: str  # the endpoint's name, in the case it was created with
    arn: str  # its ARN; empty while CloudFormation has not created it
    properties: Mapping[str, Any]  # as the template states them
    # values of the plan in the template's metadata; empty without one. Of several variants it is
    # the first one's
    plan: Mapping[str, Any]
    # the same of the variants beside the first, by their names
    further_plans: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def plan_of(self, variant: str) -> Mapping[str, Any]:
        """The plan of a variant: the first one's for what has none of its own."""
        return self.further_plans.get(variant, self.plan)


def stack_description(account: Account, name: str) -> dict[str, Any] | None:
    """What DescribeStacks says; ``None`` when there is no such stack."""
    # CloudFormation has no code of its own for a missing stack: it is a ValidationError.
    answer = account.read("cloudformation", "describe_stacks", ("ValidationError",), StackName=name)
    stacks = (answer or {}).get("Stacks") or [None]
    stack = stacks[0]
    return None if stack is None or stack["StackStatus"] == "DELETE_COMPLETE" else stack


def stack_resources(account: Account, name: str) -> Iterator[tuple[str, str, str]]:
    """Logical ID, type and physical ID of each live resource; nested stacks included."""
    found = account.every(*_RESOURCES, ("ValidationError",), StackName=name)
    for resource in found:
        if resource["ResourceStatus"] == "DELETE_COMPLETE":
            continue
        physical = resource.get("PhysicalResourceId", "")
        yield resource["LogicalResourceId"], resource["ResourceType"], physical
        if resource["ResourceType"] == "AWS::CloudFormation::Stack" and physical:
            yield from stack_resources(account, physical)


class FailedResource(NamedTuple):
    """A resource of a stack that CloudFormation could not change, or bring back."""

    type: str
    reason: str  # CloudFormation's; empty where it gives none


def failed_resources(account: Account, name: str) -> dict[str, FailedResource]:
    """Logical ID to what is ``UPDATE_FAILED`` of the stack itself; a nested stack is one resource."""
    return {
        resource["LogicalResourceId"]: FailedResource(
            resource["ResourceType"], resource.get("ResourceStatusReason", "")
        )
        for resource in account.every(*_RESOURCES, ("ValidationError",), StackName=name)
        if resource["ResourceStatus"] == "UPDATE_FAILED"
    }


def stack_ids(account: Account, name: str, kind: str) -> dict[str, str]:
    """Logical ID to physical ID of the stack's resources of a type."""
    return {
        logical: physical
        for logical, each, physical in stack_resources(account, name)
        if each == kind and physical
    }


def made_at(path: str, resources: Mapping[str, _Resource]) -> _Resource | None:
    """Of a stack's resources, by logical ID, the one that a construct's path makes, if any.

    CDK begins the logical ID with the path, in letters and digits, and ends it with a hash of
    eight. What else is the stack's is made by something else, and not by what has this path.

    >>> made_at("PrivateLink/Endpoint", {"PrivateLinkEndpointAB1FEE43": "vpce-1", "Api": "vpce-2"})
    'vpce-1'
    """
    form = re.compile(rf"{re.sub('[^A-Za-z0-9]', '', path)}[0-9A-F]{{8}}")
    return next((resource for name, resource in resources.items() if form.fullmatch(name)), None)


def template(account: Account, stack: str) -> dict[str, Mapping[str, Any]]:
    body = account.read("cloudformation", "get_template", StackName=stack)["TemplateBody"]
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except ValueError:
            raise Unreadable(f"the template of {stack} is not JSON") from None
    resources = body.get("Resources") or {}
    # Of a stack that is launched under another name, the names are known when they are made.
    return dict(as_named(resources) if _has_own_name(body, stack) else resources)


def _has_own_name(body: Mapping[str, Any], stack: str) -> bool:
    """Whether the stack, by name or ARN, has the name that its app gives it."""
    condition = (body.get("Conditions") or {}).get(OWN_NAME) or {}
    _, own = condition.get("Fn::Equals") or ("", "")
    name = stack.split("/")[1] if stack.startswith("arn:") else stack
    return own == name


def template_resources(account: Account, name: str) -> dict[str, Mapping[str, Any]]:
    """The resources of the stack's template, and of its nested stacks' templates."""
    found = template(account, name)
    for nested in stack_ids(account, name, "AWS::CloudFormation::Stack").values():
        found |= template(account, nested)
    return found


def stack_endpoints(account: Account, name: str) -> list[StackEndpoint]:
    arns = stack_ids(account, name, ENDPOINT_TYPE)
    endpoints = []
    for logical_id, resource in sorted(template_resources(account, name).items()):
        if resource.get("Type") != ENDPOINT_TYPE:
            continue
        properties = resource.get("Properties") or {}
        arn = arns.get(logical_id, "")
        endpoint_name = properties.get("EndpointName")
        metadata = resource.get("Metadata") or {}
        endpoints.append(
            StackEndpoint(
                logical_id=logical_id,
                name=endpoint_name if isinstance(endpoint_name, str) else arn.rpartition("/")[2],
                arn=arn,
                properties=properties,
                plan=values_in_template(metadata.get(PLAN_METADATA) or {}),
                further_plans={
                    name.removeprefix(f"{PLAN_METADATA}::"): values_in_template(plan)
                    for name, plan in metadata.items()
                    if name.startswith(f"{PLAN_METADATA}::")
                },
            )
        )
    return endpoints


def owner_of(account: Account, physical_id: str) -> tuple[str, str] | None:
    """The stack that owns a resource, and its logical ID there; ``None`` without one.

    AWS tells the first hundred resources of that stack. Where these are all, they need not be asked
    for again; where the stack has more, the one asked for may not be among them.
    """
    answer = account.read(*_OWNER, ("ValidationError",), PhysicalResourceId=physical_id)
    resources = list((answer or {}).get("StackResources") or ())
    for resource in resources:
        if resource.get("PhysicalResourceId") == physical_id:
            stack = str(resource["StackName"])
            if 1 < len(resources) < _MOST_DESCRIBED:
                account.keep(resources, *_RESOURCES[:2], every=_RESOURCES[2], StackName=stack)
            return stack, str(resource["LogicalResourceId"])
    for stack in {str(resource["StackName"]) for resource in resources}:
        for logical_id, _, physical in stack_resources(account, stack):
            if physical == physical_id:
                return stack, logical_id
    return None


def keep_owner(account: Account, stack: str, endpoint: StackEndpoint) -> None:
    """Let :func:`owner_of` know whose an endpoint is, where the stack itself has it, none in it."""
    if not endpoint.arn or endpoint.logical_id not in template(account, stack):
        return
    resource = {
        "StackName": stack,
        "LogicalResourceId": endpoint.logical_id,
        "PhysicalResourceId": endpoint.arn,
    }
    account.keep({"StackResources": [resource]}, *_OWNER, PhysicalResourceId=endpoint.arn)
