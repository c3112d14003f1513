"""What CloudFormation does with the resources of a stack in an update, read from its two templates.

Which property cannot be updated stands in AWS's own schemas, as cfn-lint brings them:
`createOnlyProperties`, and `conditionalCreateOnlyProperties` where it depends on the value. A
resource that is replaced is another one for whatever refers to it.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-update-behaviors.html
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from local_sagemaker.cloudformation.resource_order import references
from local_sagemaker.resources.table import find_type, is_custom
from local_sagemaker.scaling_api import track_one_metric

CDK_METADATA = "AWS::CDK::Metadata"  # which constructs there are; nothing is made of it
_POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"
_TRACKING = "TargetTrackingScalingPolicyConfiguration"
Resource = Mapping[str, Any]


class Effect(StrEnum):
    """What happens to a resource, the worst first."""

    REFUSED = "refused"
    REPLACED = "replaced"
    DELETED = "deleted"
    MAY_BE_REPLACED = "may be replaced"
    UPDATED = "updated in place"
    ADDED = "added"
    LEFT = "left as it is"


@dataclass(frozen=True)
class ResourceChange:
    """What an update does to one resource, whose path is its construct's or its logical ID."""

    logical_id: str
    kind: str
    path: str
    effect: Effect
    properties: frozenset[str] = frozenset()
    """The top-level ones that change: in themselves, or as what they refer to is replaced."""
    because: tuple[str, ...] = ()
    """Those of them, or of their parts, that decide the effect."""
    retained: bool = False
    """Whether the old resource stays in the account when it leaves the stack."""


def changes_of(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, ResourceChange]:
    """Say what an update does to each resource of either template, by logical ID."""
    old, new = (
        {name: each for name, each in template["Resources"].items() if each["Type"] != CDK_METADATA}
        for template in (before, after)
    )
    was, now = before.get("Parameters", {}), after.get("Parameters", {})
    # Whatever has another value though its text is the same: parameters, replaced resources.
    other = {n for n in now if was.get(n, {}).get("Default") != now[n].get("Default")}
    replaced: dict[str, tuple[str, ...]] = {}
    while found := {
        name: why
        for name in new
        if name in old and name not in replaced and (why := _replaces(old[name], new[name], other))
    }:
        replaced |= found
        other |= set(found)
    return {
        name: _change(name, old.get(name), new.get(name), other, replaced.get(name, ()))
        for name in [*new, *(name for name in old if name not in new)]
    }


def _change(
    name: str, old: Resource | None, new: Resource | None, other: set[str], why: tuple[str, ...]
) -> ResourceChange:
    there = new or old or {}
    path = there.get("Metadata", {}).get("aws:cdk:path", name)
    path = path.removesuffix("/Resource").removesuffix("/Default")
    properties: frozenset[str] = frozenset()
    policy = "DeletionPolicy"
    if old is None or new is None:
        effect = Effect.ADDED if old is None else Effect.DELETED
    else:
        # Metadata and the order of making are no update.
        keys = {*old.get("Properties", {}), *new.get("Properties", {})}
        properties = frozenset(_at(keys, old, new, other))
        effect = Effect.UPDATED if properties else Effect.LEFT
        if why:
            refused = _same_name(old, new, other) or _same_metric(old, new, other)
            effect = Effect.REFUSED if refused else Effect.REPLACED
            policy = "UpdateReplacePolicy"
        elif why := _may_replace(old, new, other, properties):
            effect = Effect.MAY_BE_REPLACED
        why = why or tuple(sorted(properties))
    leaves = effect in (Effect.DELETED, Effect.REPLACED, Effect.REFUSED)
    retained = leaves and str((old or {}).get(policy, "")).startswith("Retain")
    return ResourceChange(name, there["Type"], path, effect, properties, why, retained)


def _replaces(old: Resource, new: Resource, other: set[str]) -> tuple[str, ...]:
    """Why a resource is replaced; nothing, if it is not."""
    if old["Type"] != new["Type"]:
        return (f"the type was {old['Type']}",)
    return _at(_fixed(new["Type"], "createOnlyProperties"), old, new, other)


def _may_replace(
    old: Resource, new: Resource, other: set[str], properties: frozenset[str]
) -> tuple[str, ...]:
    # The function behind a custom resource decides: another physical ID is another resource.
    if is_custom(new["Type"]):
        return tuple(sorted(properties))
    return _at(_fixed(new["Type"], "conditionalCreateOnlyProperties"), old, new, other)


def _at(paths: set[str], old: Resource, new: Resource, other: set[str]) -> tuple[str, ...]:
    """The paths at which another value stands, or a reference to what has another one."""
    values = {
        path: [_value(each.get("Properties", {}), path.split("/")) for each in (old, new)]
        for path in paths
    }
    return tuple(
        sorted(p for p, (was, now) in values.items() if was != now or other & set(references(now)))
    )


def _value(value: Any, parts: list[str]) -> Any:
    """What stands at a path; the whole of what is there where a function stands in its way."""
    if not parts:
        return value
    if parts[0] == "*" and isinstance(value, list):
        return [_value(item, parts[1:]) for item in value]
    if not isinstance(value, Mapping):
        return value
    if len(value) == 1 and next(iter(value)).startswith(("Fn::", "Ref")):
        return value
    return _value(value.get(parts[0]), parts[1:])


def _same_name(old: Resource, new: Resource, other: set[str]) -> bool:
    """Whether the new one would have the old one's name, which CloudFormation refuses."""
    known = None if is_custom(new["Type"]) else find_type(new["Type"])
    return (
        old["Type"] == new["Type"]
        and known is not None
        and known.name in new.get("Properties", {})
        and not _at({str(known.name), *known.named_within}, old, new, other)
    )


def _same_metric(old: Resource, new: Resource, other: set[str]) -> bool:
    """Whether a policy would track the old one's metric on the old one's target."""
    configurations = [resource.get("Properties", {}).get(_TRACKING, {}) for resource in (old, new)]
    kind = find_type(_POLICY)
    assert kind is not None
    return (
        old["Type"] == new["Type"] == _POLICY
        and track_one_metric(*configurations)
        and not _at(set(kind.named_within), old, new, other)
    )


@functools.cache
def _fixed(kind: str, key: str) -> set[str]:
    if is_custom(kind):  # of another provider it is another resource
        return {"ServiceToken"}
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
    return {path.removeprefix("/properties/") for path in schema.get(key, [])}
