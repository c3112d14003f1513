"""What SageMaker and EC2 refuse of an update that CloudFormation would begin."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from .resource_changes import Resource, Template
from .stack_update import COMES, CONFIGURATION, ENDPOINT, StackUpdate, of_type

_SUBNET = "AWS::EC2::Subnet"


def taken_name(before: Template, name: str) -> str:
    """Why an endpoint of this name cannot be made; empty where no endpoint has it before."""
    if name.lower() not in endpoint_names(before):
        return ""
    return (
        f"SageMaker refuses a second endpoint {name}: CloudFormation makes the new one before it "
        "deletes the old one; take another name, or delete first and deploy again"
    )


def endpoint_names(template: Template) -> set[str]:
    """The names of a stack's endpoints, as SageMaker compares them."""
    endpoints = of_type(template, ENDPOINT)
    return {str(resource["Properties"]["EndpointName"]).lower() for _, resource in endpoints}


def refused_variants(update: StackUpdate, key: str) -> str:
    """Why UpdateEndpoint refuses other variants; empty where it does not.

    A variant that is registered as a scalable target keeps its name and its instance types.
    https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-scaling-update.html
    """
    own = update.changes_for(key)
    former = [update.former(change) for change in own]
    old = _types_of_variants(former)
    new = _types_of_variants(update.later(change) for change in own)
    for name in _scaled(former):
        if old.get(name) == new.get(name):
            continue
        what = "to change the instance type of" if name in new else "to remove"
        first = name == next(iter(old))
        if name not in new and first:
            what = "to change the name of"
        elif name not in new and new.keys() - old.keys():
            what = "to change the name of, or remove,"
        off = "its scaling: {enabled: false}"
        if first:
            off = "scaling: {enabled: false, keep_counts: true}"
        return (
            f"UpdateEndpoint refuses {what} a variant that scales ({name}); in two deployments: "
            f"{off} first (docs/how-to/everyday-changes.md)"
        )
    return ""


def overlapping_subnets(update: StackUpdate) -> str:
    """Why EC2 refuses new subnets in a VPC that stays; empty where it takes them."""
    if update.goes("AWS::EC2::VPC"):
        return ""
    former = [resource["Properties"] for _, resource in of_type(update.before, _SUBNET)]
    for change in update.changes.values():
        if change.kind != _SUBNET or change.effect not in COMES:
            continue
        subnet = update.later(change)["Properties"]
        for other in former:
            if _block(subnet).overlaps(_block(other)):
                return (
                    "EC2 refuses the new subnets: CloudFormation makes them before it deletes the "
                    f"old ones, and {_block(subnet)} of {_zone(subnet)} overlaps {_block(other)} of "
                    f"{_zone(other)}; deploy it as another stack"
                )
    return ""


def _block(subnet: Resource) -> ipaddress.IPv4Network:
    return ipaddress.IPv4Network(subnet["CidrBlock"])


def _zone(subnet: Resource) -> str:
    return str(subnet.get("AvailabilityZoneId") or subnet["AvailabilityZone"])


def _scaled(resources: Iterable[Resource]) -> list[str]:
    """The names of the variants that are scalable targets."""
    return [
        resource["Properties"]["ResourceId"]["Fn::Join"][1][-1].rpartition("/")[2]
        for resource in resources
        if resource.get("Type") == "AWS::ApplicationAutoScaling::ScalableTarget"
    ]


def _types_of_variants(resources: Iterable[Resource]) -> dict[str, list[str]]:
    """The instance types of each variant, the first variant first."""
    types: dict[str, list[str]] = {}
    for resource in resources:
        if resource.get("Type") != CONFIGURATION:
            continue
        properties = resource["Properties"]
        variants = properties.get("ProductionVariants", [])
        for variant in [*variants, *properties.get("ShadowProductionVariants", [])]:
            pools = variant.get("InstancePools", [variant])
            types[variant["VariantName"]] = sorted(pool["InstanceType"] for pool in pools)
    return types
