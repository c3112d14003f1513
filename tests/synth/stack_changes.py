"""What CloudFormation does with an update of a stack, read from its two templates.

Which property cannot be updated is `createOnlyProperties` of AWS's own schemas, as cfn-lint brings
them (`local_sagemaker/schemas/resource_types.json`): the resource is replaced then, and with it
every reference to it becomes another value.
"""

from __future__ import annotations

import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SCHEMAS: dict[str, Any] = json.loads(
    (ROOT / "local_sagemaker/src/local_sagemaker/schemas/resource_types.json").read_text()
)
CDK_METADATA = "AWS::CDK::Metadata"  # which constructs there are; nothing is made of it
ENDPOINT = "AWS::SageMaker::Endpoint"


@dataclass(frozen=True)
class StackChanges:
    """Logical IDs and their types, by what happens to them."""

    added: dict[str, str]
    deleted: dict[str, str]
    replaced: dict[str, str]
    updated: dict[str, str]
    properties: dict[str, frozenset[str]]

    @property
    def any(self) -> bool:
        return bool(self.added or self.deleted or self.replaced or self.updated)


def changes_of(before: dict[str, Any], after: dict[str, Any]) -> StackChanges:
    old, new = (
        {name: each for name, each in one["Resources"].items() if each["Type"] != CDK_METADATA}
        for one in (before, after)
    )
    common = [name for name in new if name in old]
    properties = {name: _changed(old[name], new[name]) for name in common}
    replaced: dict[str, str] = {}
    while True:
        found = {
            name: new[name]["Type"]
            for name in common
            if name not in replaced
            and (
                old[name]["Type"] != new[name]["Type"]
                or properties[name] & _create_only(new[name]["Type"])
            )
        }
        if not found:
            break
        replaced |= found
        for name in common:
            properties[name] |= {
                key
                for key, value in new[name].get("Properties", {}).items()
                if _references(value) & set(found)
            }
    return StackChanges(
        added={name: new[name]["Type"] for name in new if name not in old},
        deleted={name: old[name]["Type"] for name in old if name not in new},
        replaced=replaced,
        updated={
            name: new[name]["Type"] for name in common if properties[name] and name not in replaced
        },
        properties={name: frozenset(found) for name, found in properties.items() if found},
    )


def _create_only(kind: str) -> set[str]:
    # A custom resource of another provider is another resource.
    if kind.startswith("Custom::"):
        return {"ServiceToken"}
    return set(SCHEMAS[kind].get("createOnly", ()))


def _changed(old: dict[str, Any], new: dict[str, Any]) -> set[str]:
    """Top-level properties with another value; metadata and order of making are no update."""
    was, now = old.get("Properties", {}), new.get("Properties", {})
    return {key for key in {*was, *now} if was.get(key) != now.get(key)}


def _references(value: Any) -> set[str]:
    if isinstance(value, list):
        return {name for item in value for name in _references(item)}
    if not isinstance(value, dict):
        return set()
    if set(value) == {"Ref"}:
        return {value["Ref"]}
    if set(value) == {"Fn::GetAtt"}:
        got = value["Fn::GetAtt"]
        return {got[0] if isinstance(got, list) else got.partition(".")[0]}
    return {name for item in value.values() for name in _references(item)}


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
    found = ["IN_PLACE" if changes.any else "NOTHING"]
    for effect, resources in (
        ("NEW", changes.added),
        ("REPLACED", changes.replaced),
        ("DELETED", changes.deleted),
    ):
        # A subnet more in a zone more, and one less, is what models and callers notice by theirs.
        kinds = [kind for kind in KNOWN if kind != "AWS::EC2::Subnet" or effect == "REPLACED"]
        found += [effect for kind in resources.values() if kind in kinds]
    if _overlapping(before, after, changes):
        found.append("REFUSED")
    endpoints = _endpoints(before, after, changes)
    if "REFUSED" in found:
        endpoints = {
            key: "REFUSED" if effect != "NEW" else effect for key, effect in endpoints.items()
        }
    return max([*found, *endpoints.values()], key=RANK.index), endpoints


def _endpoints(
    before: dict[str, Any], after: dict[str, Any], changes: StackChanges
) -> dict[str, str]:
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
    name: str,
    key: str,
    names: set[str],
    old: dict[str, Any],
    new: dict[str, Any],
    changes: StackChanges,
) -> str:
    if name in changes.deleted:
        return "DELETED"
    if name in changes.added or name in changes.replaced:
        if new[name]["Properties"]["EndpointName"].lower() in names:
            return "REFUSED"  # a second endpoint of that name
        return "NEW" if name in changes.added else "REPLACED"
    if any(each.startswith(f"{key}Configuration") for each in changes.replaced):
        return "REFUSED" if _refused(key, old, new) else "DEPLOYMENT"
    if changes.properties.get(name, frozenset()) & WITH_THE_SAME_CONFIGURATION:
        return "NOT_KNOWN"
    touched = {**changes.updated, **changes.added, **changes.deleted, **changes.replaced}
    return "IN_PLACE" if any(each.startswith(key) for each in touched) else "NOTHING"


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


def _overlapping(before: dict[str, Any], after: dict[str, Any], changes: StackChanges) -> bool:
    """Whether a subnet is made in a VPC that stays while another one has its addresses."""
    old, new = before["Resources"], after["Resources"]
    if any(kind == "AWS::EC2::VPC" for kind in {**changes.replaced, **changes.deleted}.values()):
        return False
    there = [
        ipaddress.IPv4Network(each["Properties"]["CidrBlock"])
        for each in old.values()
        if each["Type"] == "AWS::EC2::Subnet"
    ]
    return any(
        ipaddress.IPv4Network(new[name]["Properties"]["CidrBlock"]).overlaps(block)
        for name, kind in {**changes.added, **changes.replaced}.items()
        if kind == "AWS::EC2::Subnet"
        for block in there
    )
