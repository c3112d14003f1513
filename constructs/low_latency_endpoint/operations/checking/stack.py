"""A deployed stack, read piece by piece, so that one refusal hides only its own piece.

:func:`low_latency_endpoint.operations.deployed.read_deployed` reads all or nothing; checks need
to say which piece is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .account import Account, Unreadable

__all__ = ["ReadEndpoint", "StackEndpoint", "read_endpoint", "scaled_variants",
           "stack_description", "stack_endpoints", "stack_ids", "stack_resources",
           "template_resources"]

PLAN_METADATA = "LowLatencyEndpoint::Plan"
ENDPOINT_TYPE = "AWS::SageMaker::Endpoint"
NO_ENDPOINT = ("ValidationException", "ResourceNotFound", "ResourceNotFoundException")


@dataclass(frozen=True, slots=True)
class StackEndpoint:
    """One endpoint of a stack's template.

    Attributes
    ----------
    logical_id : str
    name : str
        The endpoint's name, in the case it was created with.
    arn : str
        Its ARN; empty while CloudFormation has not created it.
    properties : mapping
        As the template states them.
    plan : mapping of str to mapping
        Decisions of the plan in the template's metadata by name; empty without one.
    """

    logical_id: str
    name: str
    arn: str
    properties: Mapping[str, Any]
    plan: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class ReadEndpoint:
    """An endpoint and its configuration as SageMaker describes them."""

    name: str
    description: Mapping[str, Any]
    configuration: Mapping[str, Any]

    @property
    def status(self) -> str:
        """SageMaker's EndpointStatus."""
        return str(self.description["EndpointStatus"])

    @property
    def variants(self) -> dict[str, Mapping[str, Any]]:
        """Configured production variants by name."""
        return {each["VariantName"]: each for each in self.configuration["ProductionVariants"]}

    @property
    def running(self) -> dict[str, Mapping[str, Any]]:
        """Running production variants by name."""
        return {each["VariantName"]: each
                for each in self.description.get("ProductionVariants", ())}


def stack_description(account: Account, name: str) -> dict[str, Any] | None:
    """What DescribeStacks says; ``None`` when there is no such stack."""
    # CloudFormation has no code of its own for a missing stack: it is a ValidationError.
    answer = account.read("cloudformation", "describe_stacks", ("ValidationError",),
                          StackName=name)
    stacks = (answer or {}).get("Stacks") or [None]
    stack = stacks[0]
    return None if stack is None or stack["StackStatus"] == "DELETE_COMPLETE" else stack


def stack_resources(account: Account, name: str) -> Iterator[tuple[str, str, str]]:
    """Logical ID, type and physical ID of each live resource; nested stacks included."""
    found = account.every("cloudformation", "list_stack_resources", "StackResourceSummaries",
                          ("ValidationError",), StackName=name)
    for resource in found or ():
        if resource["ResourceStatus"] == "DELETE_COMPLETE":
            continue
        physical = resource.get("PhysicalResourceId", "")
        yield resource["LogicalResourceId"], resource["ResourceType"], physical
        if resource["ResourceType"] == "AWS::CloudFormation::Stack" and physical:
            yield from stack_resources(account, physical)


def stack_ids(account: Account, name: str, kind: str) -> dict[str, str]:
    """Logical ID to physical ID of the stack's resources of a type."""
    return {logical: physical for logical, each, physical in stack_resources(account, name)
            if each == kind and physical}


def template_resources(account: Account, name: str) -> dict[str, Mapping[str, Any]]:
    """The resources of the stack's template, and of its nested stacks' templates, by logical ID.

    Raises
    ------
    Unreadable
        Also for a template that is not JSON: CDK writes JSON only.
    """
    resources: dict[str, Mapping[str, Any]] = {}
    for stack in [name, *stack_ids(account, name, "AWS::CloudFormation::Stack").values()]:
        body = account.read("cloudformation", "get_template", StackName=stack)["TemplateBody"]
        if isinstance(body, str):
            try:
                body = json.loads(body)
            except ValueError:
                raise Unreadable(f"the template of {stack} is not JSON") from None
        resources |= dict(body.get("Resources") or {})
    return resources


def stack_endpoints(account: Account, name: str) -> list[StackEndpoint]:
    """The endpoints of the stack, by logical ID."""
    arns = stack_ids(account, name, ENDPOINT_TYPE)
    found = []
    for logical_id, resource in sorted(template_resources(account, name).items()):
        if resource.get("Type") != ENDPOINT_TYPE:
            continue
        properties = resource.get("Properties") or {}
        arn = arns.get(logical_id, "")
        stated = properties.get("EndpointName")
        plan = (resource.get("Metadata") or {}).get(PLAN_METADATA) or {}
        found.append(StackEndpoint(
            logical_id=logical_id,
            name=stated if isinstance(stated, str) else arn.rpartition("/")[2],
            arn=arn,
            properties=properties,
            plan={decision["name"]: decision for decision in plan.get("decisions", ())},
        ))
    return found


def read_endpoint(account: Account, name: str) -> ReadEndpoint | None:
    """The endpoint and its configuration; ``None`` when there is no such endpoint.

    Raises
    ------
    Unreadable
        Also when its configuration is deleted, which SageMaker lets happen.
    """
    description = account.read("sagemaker", "describe_endpoint", NO_ENDPOINT, EndpointName=name)
    if description is None:
        return None
    serving = description["EndpointConfigName"]
    configuration = account.read("sagemaker", "describe_endpoint_config", NO_ENDPOINT,
                                 EndpointConfigName=serving)
    if configuration is None:
        raise Unreadable(f"{serving}, the configuration that serves, is deleted")
    return ReadEndpoint(str(description["EndpointName"]), description, configuration)


def scaled_variants(account: Account, endpoint: ReadEndpoint) -> dict[str, Mapping[str, Any]]:
    """Variant name to its scalable target, for the variants that scale."""
    ids = {f"endpoint/{endpoint.name}/variant/{name}": name for name in endpoint.variants}
    found = account.every("application-autoscaling", "describe_scalable_targets",
                          "ScalableTargets", ServiceNamespace="sagemaker",
                          ResourceIds=sorted(ids))
    return {ids[target["ResourceId"]]: target for target in found
            if target["ResourceId"] in ids}
