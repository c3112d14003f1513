"""What CloudFormation does with the resources of a stack in an update, read from its two templates.

Start with :func:`changes_of`. Which property cannot be updated stands in AWS's own schemas:
``createOnlyProperties``, and ``conditionalCreateOnlyProperties`` where it depends on the value. A
resource that is replaced is another one for whatever refers to it.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-update-behaviors.html
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from typing import Any

from ..errors.frozen import dataclass
from .resource_types import ResourceSchema, is_custom, schema_of

CDK_METADATA = "AWS::CDK::Metadata"  # which constructs there are; nothing is made of it
_POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"
_TARGET = ("ResourceId", "ScalableDimension", "ScalingTargetId", "ServiceNamespace")
_TRACKING = "TargetTrackingScalingPolicyConfiguration"
_METRICS = ("PredefinedMetricSpecification", "CustomizedMetricSpecification")
_IN_TEXT = re.compile(r"\$\{([^!}.][^}.]*)")
Resource = Mapping[str, Any]
Template = Mapping[str, Any]


class ResourceEffect(StrEnum):
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
    effect: ResourceEffect
    properties: frozenset[str] = frozenset()
    """The top-level ones that change: in themselves, or as what they refer to is replaced."""
    because: tuple[str, ...] = ()
    """Those of them, or of their parts, that decide the effect."""
    retained: bool = False
    """Whether the old resource stays in the account when it leaves the stack."""


def changes_of(before: Template, after: Template) -> dict[str, ResourceChange]:
    """Say what an update does to each resource of either template, by logical ID."""
    old, new = _resources(before), _resources(after)
    changed = _changed_parameters(before, after)
    replaced = _replaced(old, new, changed)
    changed |= replaced.keys()
    names = [*new, *(name for name in old if name not in new)]
    return {
        name: _change(name, old.get(name), new.get(name), changed, replaced.get(name, ()))
        for name in names
    }


def references(value: Any) -> Iterator[str]:
    """Every name that a piece of a template refers to: resources and parameters alike."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    if not isinstance(value, Mapping):
        return
    for key, item in value.items():
        if key == "Ref" and isinstance(item, str):
            yield item
        elif key == "Fn::GetAtt":
            yield item.partition(".")[0] if isinstance(item, str) else item[0]
        elif key == "Fn::Sub":
            yield from _IN_TEXT.findall(item if isinstance(item, str) else item[0])
            yield from references(item)
        else:
            yield from references(item)


def _resources(template: Template) -> dict[str, Resource]:
    return {
        name: resource
        for name, resource in template["Resources"].items()
        if resource["Type"] != CDK_METADATA
    }


def _changed_parameters(before: Template, after: Template) -> set[str]:
    """The parameters with another default: what refers to them changes, though its text does not."""
    was, now = before.get("Parameters", {}), after.get("Parameters", {})
    return {name for name in now if was.get(name, {}).get("Default") != now[name].get("Default")}


def _replaced(
    old: Mapping[str, Resource], new: Mapping[str, Resource], parameters: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """The resources that are replaced, each with the properties that decide it."""
    replaced: dict[str, tuple[str, ...]] = {}
    left = [name for name in new if name in old]
    size = -1
    while size != len(replaced):  # a replaced resource may replace what refers to it
        size = len(replaced)
        changed = {*parameters, *replaced}
        for name in left:
            because = _replacing(old[name], new[name], changed)
            if because:
                replaced[name] = because
    return replaced


def _change(
    name: str,
    old: Resource | None,
    new: Resource | None,
    changed: Collection[str],
    replacing: tuple[str, ...],
) -> ResourceChange:
    """The change of one resource, of which one of the two templates may have none."""
    present = new or old or {}
    path = present.get("Metadata", {}).get("aws:cdk:path", name)
    path = path.removesuffix("/Resource").removesuffix("/Default")
    kind = present["Type"]
    if old is None:
        return ResourceChange(name, kind, path, ResourceEffect.ADDED)
    if new is None:
        retained = _is_retained(old, "DeletionPolicy")
        return ResourceChange(name, kind, path, ResourceEffect.DELETED, retained=retained)
    # Metadata and the order of making are no update.
    names = {*old.get("Properties", {}), *new.get("Properties", {})}
    properties = frozenset(_changed_paths(names, old, new, changed))
    because = tuple(sorted(properties))
    if replacing:
        effect = ResourceEffect.REPLACED
        if _keeps_name(old, new, changed) or _tracks_same_metric(old, new, changed):
            effect = ResourceEffect.REFUSED
        retained = _is_retained(old, "UpdateReplacePolicy")
        return ResourceChange(name, kind, path, effect, properties, replacing, retained)
    conditional = _conditionally_replacing(old, new, changed, because)
    if conditional:
        effect = ResourceEffect.MAY_BE_REPLACED
        return ResourceChange(name, kind, path, effect, properties, conditional)
    effect = ResourceEffect.UPDATED if properties else ResourceEffect.LEFT
    return ResourceChange(name, kind, path, effect, properties, because)


def _is_retained(resource: Resource, policy: str) -> bool:
    return str(resource.get(policy, "")).startswith("Retain")


def _replacing(old: Resource, new: Resource, changed: Collection[str]) -> tuple[str, ...]:
    """Why a resource is replaced; nothing, if it is not."""
    if old["Type"] != new["Type"]:
        return (f"the type was {old['Type']}",)
    return _changed_paths(_schema(new).create_only, old, new, changed)


def _conditionally_replacing(
    old: Resource, new: Resource, changed: Collection[str], properties: tuple[str, ...]
) -> tuple[str, ...]:
    """Why a resource may be replaced; nothing, if it cannot be."""
    # The function behind a custom resource decides: another physical ID is another resource.
    if is_custom(new["Type"]):
        return properties
    return _changed_paths(_schema(new).conditional, old, new, changed)


def _changed_paths(
    paths: Collection[str], old: Resource, new: Resource, changed: Collection[str]
) -> tuple[str, ...]:
    """The paths at which another value stands, or a reference to what has another one."""
    different = []
    for path in sorted(paths):
        parts = path.split("/")
        was = _value(old.get("Properties", {}), parts)
        now = _value(new.get("Properties", {}), parts)
        if was != now or not set(references(now)).isdisjoint(changed):
            different.append(path)
    return tuple(different)


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


def _keeps_name(old: Resource, new: Resource, changed: Collection[str]) -> bool:
    """Whether the new one would have the old one's name, which CloudFormation refuses."""
    names = _schema(new).name
    if old["Type"] != new["Type"] or not names:
        return False
    if any(name not in new.get("Properties", {}) for name in names):
        return False
    within = _TARGET if new["Type"] == _POLICY else ()
    return not _changed_paths((*names, *within), old, new, changed)


def _tracks_same_metric(old: Resource, new: Resource, changed: Collection[str]) -> bool:
    """Whether a policy would track the old one's metric on the old one's target.

    A target takes one such policy only, so that its name cannot change:
    cdklabs/cdk-ecs-service-extensions#35.
    """
    if not old["Type"] == new["Type"] == _POLICY or _changed_paths(_TARGET, old, new, changed):
        return False
    was, now = (resource["Properties"].get(_TRACKING, {}) for resource in (old, new))
    return any(name in now and was.get(name) == now[name] for name in _METRICS)


def _schema(resource: Resource) -> ResourceSchema:
    return schema_of(resource["Type"])
