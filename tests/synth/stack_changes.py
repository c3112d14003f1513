"""What an update does to each endpoint of a stack, read from its two templates.

What it does to each resource is `tools.release.stack_changes`, by AWS's own schemas.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from tools.release.stack_changes import Effect, ResourceChange, changes_of

ENDPOINT = "AWS::SageMaker::Endpoint"
Changes = dict[str, ResourceChange]


def those(changes: Changes, *effects: Effect) -> dict[str, str]:
    """Logical IDs and types of what has one of the effects."""
    return {name: each.kind for name, each in changes.items() if each.effect in effects}


#: What a stack has of its own beside endpoints, and callers or operators know; all else (rules,
#: policies, roles, alarms, functions) is updated without anybody's notice, however it is done.
KNOWN = (
    "AWS::EC2::VPC",
    "AWS::EC2::Subnet",
    "AWS::EC2::FlowLog",
    "AWS::EC2::VPCEndpoint",
    "AWS::Route53::HostedZone",
    "AWS::SSM::Parameter",
)
#: What CloudFormation sends with the configuration that serves already.
WITH_THE_SAME_CONFIGURATION = {
    "DeploymentConfig",
    "RetainAllVariantProperties",
    "ExcludeRetainedVariantProperties",
}
RANK = ("NOTHING", "IN_PLACE", "NEW", "DEPLOYMENT", "NOT_KNOWN", "REPLACED", "DELETED", "REFUSED")


def effects_of(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """The greatest effect on the stack, and on each endpoint by the key that its ID begins with."""
    changes = changes_of(before, after)
    found = ["IN_PLACE" if len(those(changes, Effect.LEFT)) < len(changes) else "NOTHING"]
    for effect, effects in (
        ("NEW", (Effect.ADDED,)),
        ("REPLACED", (Effect.REPLACED, Effect.REFUSED)),
        ("DELETED", (Effect.DELETED,)),
    ):
        resources = those(changes, *effects)
        # A subnet more in a zone more, and one less, is what models and callers notice by theirs.
        kinds = [kind for kind in KNOWN if kind != "AWS::EC2::Subnet" or effect == "REPLACED"]
        found += [effect for kind in resources.values() if kind in kinds]
    if "AWS::EC2::VPC" not in those(changes, Effect.REPLACED, Effect.DELETED).values():
        found += ["DELETED" for _ in ways_in(before) - ways_in(after)]
    if _overlapping(before, after, changes):
        found.append("REFUSED")
    endpoints = _endpoints(before, after, changes)
    if "REFUSED" in found:
        endpoints = {
            key: "REFUSED" if effect != "NEW" else effect for key, effect in endpoints.items()
        }
    return max([*found, *endpoints.values()], key=RANK.index), endpoints


def ways_in(template: dict[str, Any]) -> set[str]:
    """How callers reach the endpoints: zonal names, private DNS, ranges, VPCs of a hosted zone."""
    ways = {f"output {name}" for name in template.get("Outputs", {}) if "ZonalUrl" in name}
    for each in template["Resources"].values():
        properties = each.get("Properties", {})
        if properties.get("PrivateDnsEnabled"):
            ways.add(f"private DNS {'of the runtime' * ('runtime' in str(properties))}")
        if each["Type"] == "AWS::Route53::HostedZone":
            ways |= {f"hosted zone in {vpc['VPCId']}" for vpc in properties["VPCs"]}
        group = properties.get("GroupId")
        of = group if isinstance(group, str) else "the stack's group"
        for ingress in (properties, *properties.get("SecurityGroupIngress", ())):
            if "CidrIp" in ingress:
                ways.add(f"{of} from {ingress['CidrIp']} to {ingress['FromPort']}")
    return ways


def _endpoints(before: dict[str, Any], after: dict[str, Any], changes: Changes) -> dict[str, str]:
    old, new = before["Resources"], after["Resources"]
    names = {
        each["Properties"]["EndpointName"].lower()
        for each in old.values()
        if each["Type"] == ENDPOINT
    }
    effects = {}
    for name in [*old, *(name for name in new if name not in old)]:
        if (old.get(name) or new[name])["Type"] != ENDPOINT:
            continue
        key = name[: name.index("Endpoint")]
        effects[key] = _endpoint(name, key, names, old, new, changes)
    return effects


def _endpoint(
    name: str, key: str, names: set[str], old: dict[str, Any], new: dict[str, Any], changes: Changes
) -> str:
    effect, replaced = changes[name].effect, those(changes, Effect.REPLACED, Effect.REFUSED)
    if effect is Effect.DELETED:
        return "DELETED"
    if effect is Effect.ADDED or name in replaced:
        if new[name]["Properties"]["EndpointName"].lower() in names:
            return "REFUSED"  # a second endpoint of that name
        return "NEW" if effect is Effect.ADDED else "REPLACED"
    if any(each.startswith(f"{key}Configuration") for each in replaced):
        return "REFUSED" if _refused(key, old, new) else "DEPLOYMENT"
    if changes[name].properties & WITH_THE_SAME_CONFIGURATION:
        return "NOT_KNOWN"
    touched = {each for each, change in changes.items() if change.effect is not Effect.LEFT}
    own = any(each.startswith(key) for each in touched)
    return "IN_PLACE" if own or _waited_for(key, old, new) & touched else "NOTHING"


def _waited_for(key: str, *templates: dict[str, Any]) -> set[str]:
    """What the endpoint's models wait for, such as what several have on one role."""
    return {
        name
        for resources in templates
        for model, each in resources.items()
        if model.startswith(key) and each["Type"] == "AWS::SageMaker::Model"
        for name in each.get("DependsOn", ())
    }


def _refused(key: str, old: dict[str, Any], new: dict[str, Any]) -> bool:
    """A change of type or name of a variant that is registered as a scalable target.

    https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-scaling-update.html
    """
    scaled = {
        each["Properties"]["ResourceId"]["Fn::Join"][1][-1].rpartition("/")[2]
        for name, each in old.items()
        if name.startswith(key) and each["Type"] == "AWS::ApplicationAutoScaling::ScalableTarget"
    }
    was, now = (
        {
            variant["VariantName"]: sorted(
                pool["InstanceType"] for pool in variant.get("InstancePools", [variant])
            )
            for name, each in resources.items()
            if name.startswith(key) and each["Type"] == "AWS::SageMaker::EndpointConfig"
            for kind in ("ProductionVariants", "ShadowProductionVariants")
            for variant in each["Properties"].get(kind, ())
        }
        for resources in (old, new)
    )
    return any(was[name] != now.get(name) for name in scaled)


def _overlapping(before: dict[str, Any], after: dict[str, Any], changes: Changes) -> bool:
    """Whether a subnet is made in a VPC that stays while another one has its addresses."""
    old, new = before["Resources"], after["Resources"]
    going = those(changes, Effect.REPLACED, Effect.REFUSED, Effect.DELETED)
    coming = those(changes, Effect.ADDED, Effect.REPLACED, Effect.REFUSED)
    if "AWS::EC2::VPC" in going.values():
        return False
    there = [
        ipaddress.IPv4Network(each["Properties"]["CidrBlock"])
        for each in old.values()
        if each["Type"] == "AWS::EC2::Subnet"
    ]
    return any(
        ipaddress.IPv4Network(new[name]["Properties"]["CidrBlock"]).overlaps(block)
        for name, kind in coming.items()
        if kind == "AWS::EC2::Subnet"
        for block in there
    )
