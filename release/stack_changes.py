"""What CloudFormation does with the resources of a stack in an update, read from its two templates.

Which property cannot be updated stands in AWS's own schemas, as cfn-lint brings them:
`createOnlyProperties`, and `conditionalCreateOnlyProperties` where it depends on the value. A
resource that is replaced is another one for whatever refers to it.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-update-behaviors.html
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

CDK_METADATA = "AWS::CDK::Metadata"  # which constructs there are; nothing is made of it

_IN_TEXT = re.compile(r"\$\{([A-Za-z0-9]+)[.}]")


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
    """What an update does to one resource.

    Parameters
    ----------
    kind
        Its type, such as ``AWS::SageMaker::Endpoint``.
    path
        Its construct's path in the app; its logical ID where the template does not say it.
    properties
        Which top-level properties change: in themselves, or as what they refer to is replaced.
    because
        Those of them, or of their parts, that decide the effect.
    retained
        Whether the old resource stays in the account when it leaves the stack.
    """

    logical_id: str
    kind: str
    path: str
    effect: Effect
    properties: frozenset[str] = frozenset()
    because: tuple[str, ...] = ()
    retained: bool = False


@dataclass(frozen=True)
class _Rules:
    """What the schema of a type says about changes."""

    fixed: frozenset[str]
    sometimes_fixed: frozenset[str]
    name: str | None


def changes_of(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, ResourceChange]:
    """Say what an update does to each resource of either template, by logical ID."""
    old, new = _resources(before), _resources(after)
    both = [name for name in new if name in old]
    # Whatever has another value though its text is the same: replaced resources, parameters.
    other = _changed_parameters(before, after)
    replaced: dict[str, tuple[str, ...]] = {}
    while True:
        found = {
            name: why
            for name in both
            if name not in replaced and (why := _replaces(old[name], new[name], other))
        }
        if not found:
            break
        replaced |= found
        other |= set(found)
    changes = {}
    for name in [*new, *(name for name in old if name not in new)]:
        was, now = old.get(name), new.get(name)
        if was is None or now is None:
            there = was or now or {}
            effect = Effect.ADDED if was is None else Effect.DELETED
            kept = was is not None and _kept(was, "DeletionPolicy")
            changes[name] = _change(name, there, effect, retained=kept)
            continue
        properties = frozenset(_changed(was, now, other))
        if name in replaced:
            effect = Effect.REFUSED if _same_name(was, now, other) else Effect.REPLACED
            because = replaced[name]
        else:
            because = _maybe_replaces(was, now, other, properties)
            effect = Effect.MAY_BE_REPLACED if because else Effect.UPDATED
            effect = effect if properties else Effect.LEFT
        kept = name in replaced and _kept(was, "UpdateReplacePolicy")
        changes[name] = _change(
            name, now, effect, properties, because or tuple(sorted(properties)), retained=kept
        )
    return changes


def _resources(template: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: each for name, each in template["Resources"].items() if each["Type"] != CDK_METADATA
    }


def _change(
    name: str,
    resource: Mapping[str, Any],
    effect: Effect,
    properties: frozenset[str] = frozenset(),
    because: tuple[str, ...] = (),
    *,
    retained: bool = False,
) -> ResourceChange:
    path = resource.get("Metadata", {}).get("aws:cdk:path", name)
    path = path.removesuffix("/Resource").removesuffix("/Default")
    return ResourceChange(name, resource["Type"], path, effect, properties, because, retained)


def _kept(resource: Mapping[str, Any], policy: str) -> bool:
    return str(resource.get(policy, "")).startswith("Retain")


def _changed_parameters(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    was, now = before.get("Parameters", {}), after.get("Parameters", {})
    return {name for name in now if was.get(name, {}).get("Default") != now[name].get("Default")}


def _changed(was: Mapping[str, Any], now: Mapping[str, Any], other: set[str]) -> set[str]:
    """Top-level properties with another value; metadata and order of making are no update."""
    old, new = was.get("Properties", {}), now.get("Properties", {})
    return {key for key in {*old, *new} if _differs(old.get(key), new.get(key), other)}


def _differs(old: Any, new: Any, other: set[str]) -> bool:
    return bool(old != new or _references(new) & other)


def _replaces(was: Mapping[str, Any], now: Mapping[str, Any], other: set[str]) -> tuple[str, ...]:
    """Why a resource is replaced; nothing, if it is not."""
    if was["Type"] != now["Type"]:
        return (f"the type was {was['Type']}",)
    return _at(_rules(now["Type"]).fixed, was, now, other)


def _maybe_replaces(
    was: Mapping[str, Any], now: Mapping[str, Any], other: set[str], properties: frozenset[str]
) -> tuple[str, ...]:
    # The function behind a custom resource decides: another physical ID is another resource.
    if now["Type"].startswith("Custom::") or now["Type"] == "AWS::CloudFormation::CustomResource":
        return tuple(sorted(properties))
    return _at(_rules(now["Type"]).sometimes_fixed, was, now, other)


def _at(
    paths: frozenset[str], was: Mapping[str, Any], now: Mapping[str, Any], other: set[str]
) -> tuple[str, ...]:
    old, new = was.get("Properties", {}), now.get("Properties", {})
    return tuple(
        sorted(
            path
            for path in paths
            if _differs(_value(old, path.split("/")), _value(new, path.split("/")), other)
        )
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


def _same_name(was: Mapping[str, Any], now: Mapping[str, Any], other: set[str]) -> bool:
    """Whether the new one would have the old one's name, which CloudFormation refuses."""
    name = _rules(now["Type"]).name
    return bool(
        was["Type"] == now["Type"]
        and name is not None
        and name in now.get("Properties", {})
        and not _at(frozenset({name}), was, now, other)
    )


@functools.cache
def _rules(kind: str) -> _Rules:
    # A custom resource of another provider is another resource.
    if kind.startswith("Custom::") or kind == "AWS::CloudFormation::CustomResource":
        return _Rules(frozenset({"ServiceToken"}), frozenset(), None)
    from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema

    def paths(key: str) -> frozenset[str]:
        return frozenset(path.removeprefix("/properties/") for path in schema.get(key, []))

    return _Rules(
        paths("createOnlyProperties"), paths("conditionalCreateOnlyProperties"), _name_of(kind)
    )


def _name_of(kind: str) -> str | None:
    """The property that names a resource, as no schema says; the local AWS knows it."""
    from local_sagemaker.resources.table import find_type

    known = find_type(kind)
    return known.name if known else None


def _references(value: Any) -> set[str]:
    """The logical IDs that a value refers to."""
    return set(_found_references(value))


def _found_references(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _found_references(item)
    elif isinstance(value, Mapping):
        if set(value) == {"Ref"}:
            yield value["Ref"]
        elif set(value) == {"Fn::GetAtt"}:
            got = value["Fn::GetAtt"]
            yield got[0] if isinstance(got, list) else got.partition(".")[0]
        elif set(value) == {"Fn::Sub"}:
            parts = value["Fn::Sub"] if isinstance(value["Fn::Sub"], list) else [value["Fn::Sub"]]
            yield from _IN_TEXT.findall(parts[0])
            yield from _found_references(parts[1:])
        else:
            for item in value.values():
                yield from _found_references(item)
