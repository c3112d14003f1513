"""What SageMaker and EC2 refuse of an update that CloudFormation would begin."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any

from .resource_changes import ResourceChange, ResourceEffect, Template

_SUBNET = "AWS::EC2::Subnet"
_GOES = (ResourceEffect.REPLACED, ResourceEffect.REFUSED, ResourceEffect.DELETED)
_COMES = (ResourceEffect.ADDED, ResourceEffect.REPLACED, ResourceEffect.REFUSED)


def taken_name(before: Template, name: str) -> str:
    """Why an endpoint of this name cannot be made; empty where no endpoint has it before."""
    names = {
        str(resource["Properties"]["EndpointName"]).lower()
        for resource in before["Resources"].values()
        if resource["Type"] == "AWS::SageMaker::Endpoint"
    }
    if name.lower() not in names:
        return ""
    return (
        f"SageMaker refuses a second endpoint {name}: CloudFormation makes the new one before it "
        "deletes the old one; take another name, or delete first and deploy again"
    )


def refused_variants(own: Iterable[str], before: Template, after: Template) -> str:
    """Why UpdateEndpoint refuses other variants; empty where it does not.

    A variant that is registered as a scalable target keeps its name and its instance types.
    https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-scaling-update.html
    """
    resources = [before["Resources"][name] for name in own if name in before["Resources"]]
    later = [after["Resources"][name] for name in own if name in after["Resources"]]
    old, new = _types_of_variants(resources), _types_of_variants(later)
    for name in _scaled(resources):
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
            f"{off} first (docs/explanation/updates.md)"
        )
    return ""


def overlapping_subnets(
    before: Template, after: Template, changes: Mapping[str, ResourceChange]
) -> str:
    """Why EC2 refuses new subnets in a VPC that stays; empty where it takes them."""
    going = {change.kind for change in changes.values() if change.effect in _GOES}
    if "AWS::EC2::VPC" in going:
        return ""
    there = [
        resource["Properties"]
        for resource in before["Resources"].values()
        if resource["Type"] == _SUBNET
    ]
    for name, change in changes.items():
        if change.kind != _SUBNET or change.effect not in _COMES:
            continue
        subnet = after["Resources"][name]["Properties"]
        for other in there:
            if _block(subnet).overlaps(_block(other)):
                return (
                    "EC2 refuses the new subnets: CloudFormation makes them before it deletes the "
                    f"old ones, and {_block(subnet)} of {_zone(subnet)} overlaps {_block(other)} of "
                    f"{_zone(other)}; deploy it as another stack"
                )
    return ""


def _block(subnet: Mapping[str, Any]) -> ipaddress.IPv4Network:
    return ipaddress.IPv4Network(subnet["CidrBlock"])


def _zone(subnet: Mapping[str, Any]) -> str:
    return str(subnet.get("AvailabilityZoneId") or subnet["AvailabilityZone"])


def _scaled(resources: Iterable[Mapping[str, Any]]) -> list[str]:
    """The names of the variants that are scalable targets."""
    return [
        resource["Properties"]["ResourceId"]["Fn::Join"][1][-1].rpartition("/")[2]
        for resource in resources
        if resource["Type"] == "AWS::ApplicationAutoScaling::ScalableTarget"
    ]


def _types_of_variants(resources: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The instance types of each variant, the first variant first."""
    types: dict[str, list[str]] = {}
    for resource in resources:
        if resource["Type"] != "AWS::SageMaker::EndpointConfig":
            continue
        properties = resource["Properties"]
        variants = properties.get("ProductionVariants", [])
        for variant in [*variants, *properties.get("ShadowProductionVariants", [])]:
            pools = variant.get("InstancePools", [variant])
            types[variant["VariantName"]] = sorted(pool["InstanceType"] for pool in pools)
    return types
