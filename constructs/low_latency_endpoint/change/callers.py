"""What callers lose by an update: names, addresses and rights by which they reach the endpoints."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .resource_changes import ResourceEffect, Template
from .stack_update import CONFIGURATION, MODEL, StackUpdate, key_of, of_type

_LINK = "AWS::EC2::VPCEndpoint"
_OF_ZONE = "For callers in "  # how the description of a zonal URL begins
_GROUP_RULES = ("AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupIngress")


def lost_by_callers(update: StackUpdate) -> list[str]:
    """What callers can no longer use, each with what they see of it.

    None where the VPC goes: that says it all.
    """
    if update.goes("AWS::EC2::VPC"):
        return []
    left = dict(_ways_in(update.after))
    lost = [text for use, text in _ways_in(update.before) if use not in left]
    for change in update.changes.values():
        if change.kind != _LINK or change.effect is not ResourceEffect.UPDATED:
            continue
        old, new = update.former(change)["Properties"], update.later(change)["Properties"]
        rights = _lost_rights(old, new)
        if rights:
            path = change.path.partition("/")[2]
            lost.append(f"rights in the policy of {path}: whoever needs {', '.join(rights)} fails")
    return list(dict.fromkeys(lost))


def _lost_rights(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The rights of a VPC endpoint's former policy that its later one does not have, in words.

    Of single resources only their actions count: what becomes of an endpoint of the stack, its
    outcome says. So do those of models' folders, which the policy of a gateway keeps meanwhile.
    """
    rights = list(_rights(new))
    is_gateway = old.get("VpcEndpointType") == "Gateway"
    lost = []
    for action, resource in _rights(old):
        is_pattern = resource == "*" if is_gateway else "*" in resource
        named = resource if is_pattern else ""
        has = any(
            _covers(allowed, action) and (not named or _covers(pattern, named))
            for allowed, pattern in rights
        )
        if not has:
            lost.append(f"{action} on {named}" if named else action)
    return list(dict.fromkeys(lost))


def _rights(properties: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each action that a VPC endpoint's policy allows, with a resource; all without a policy."""
    document = properties.get("PolicyDocument")
    if document is None:
        yield "*", "*"
        return
    for statement in document["Statement"]:
        if statement["Effect"] != "Allow":
            continue
        for action in _listed(statement.get("Action", "*")):
            for resource in _listed(statement.get("Resource", "*")):
                yield action, _arn(resource)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _arn(resource: Any) -> str:
    """The text of an ARN, in which what CloudFormation puts in stands as a name."""
    if isinstance(resource, str):
        return resource
    if "Fn::Join" in resource:
        return "".join(map(_arn, resource["Fn::Join"][1]))
    if "Ref" in resource:
        return f"${{{resource['Ref']}}}"
    return json.dumps(resource, sort_keys=True).replace("*", "")


def _covers(pattern: str, text: str) -> bool:
    """Whether an IAM pattern means all that the text, maybe a pattern too, means."""
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), text) is not None


def _ways_in(template: Template) -> Iterator[tuple[tuple[str, ...], str]]:
    """How callers reach the endpoints, each with what is said where it goes."""
    for output in template.get("Outputs", {}).values():
        of_zone = output.get("Description", "").partition(":")[0]
        if of_zone.startswith(_OF_ZONE):
            zone = of_zone.removeprefix(_OF_ZONE)
            text = (
                f"the zonal URL of {zone}: callers that use it fail, and others there cross zones"
            )
            yield ("zone", zone), text
    for _, resource in of_type(template, _LINK):
        yield from _by_private_dns(resource["Properties"])
    for path, resource in of_type(template, CONFIGURATION):
        yield from _by_variant(key_of(path), resource["Properties"])
    for path, resource in of_type(template, MODEL):
        if path.split("/")[2:3] == ["Model"]:  # the first variant's
            yield from _by_container(key_of(path), resource["Properties"])
    for _, resource in of_type(template, "AWS::Route53::HostedZone"):
        for vpc in resource["Properties"]["VPCs"]:
            vpc_id = vpc["VPCId"] if isinstance(vpc["VPCId"], str) else "the stack's VPC"
            text = f"the private hosted zone: callers in {vpc_id} lose the name"
            yield ("hosted zone", vpc_id), text
    for _, resource in of_type(template, *_GROUP_RULES):
        yield from _by_rules(resource["Properties"])


def _by_private_dns(properties: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    if not properties.get("PrivateDnsEnabled"):
        return
    service = "runtime" if "runtime" in str(properties["ServiceName"]) else "API"
    name = "SageMaker Runtime's" if service == "runtime" else "the SageMaker API's"
    yield (
        ("private DNS", service),
        f"private DNS: callers that use {name} own name no longer reach it, and need the zonal URLs",
    )


def _by_variant(owner: str, properties: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The variants that callers can name; nobody names the only one."""
    variants = properties["ProductionVariants"]
    for name in [variant["VariantName"] for variant in variants if len(variants) > 1]:
        text = f"the variant {name} of {owner}: callers that name it as TargetVariant fail"
        yield ("variant", owner, name), text


def _by_container(
    owner: str, properties: Mapping[str, Any]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """The containers that callers name, as each answers by itself."""
    if properties.get("InferenceExecutionConfig", {}).get("Mode") != "Direct":
        return
    for container in properties["Containers"]:
        name = container["ContainerHostname"]
        text = f"the container {name} of {owner}: callers that name it fail"
        yield ("container", owner, name), text


def _by_rules(properties: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The rules that let callers' addresses in."""
    stated = properties.get("GroupId")
    group = stated if isinstance(stated, str) else "the stack's group"
    for ingress in (properties, *properties.get("SecurityGroupIngress", ())):
        if "CidrIp" not in ingress:
            continue
        source = ingress["CidrIp"] if isinstance(ingress["CidrIp"], str) else "the VPC's range"
        port = str(ingress["FromPort"])
        text = f"the rule of {group} for port {port}: callers in {source} can no longer connect"
        yield ("rule", group, source, port), text
