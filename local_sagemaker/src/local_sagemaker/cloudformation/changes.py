"""What a change set would do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..resources.resource_type import Place, find_type
from .dependencies import references
from .evaluation import PENDING, Evaluation
from .stacks import DeployedResource, Stack, StackStore
from .template import Parameter


def compute_changes(
    place: Place,
    stacks: StackStore,
    stack: Stack,
    template: Mapping[str, Any],
    parameters: Mapping[str, Parameter],
    tags: Mapping[str, str],
) -> list[dict[str, Any]]:
    """List the resource changes between a stack and a new template, as DescribeChangeSet does."""
    replaced: set[str] = set()
    while True:
        # Replacing one resource changes the references to it, which may replace others:
        # look again until nothing new turns up.
        changes, found = _pass(place, stacks, stack, template, parameters, tags, replaced)
        if found == replaced:
            return changes
        replaced = found


def _pass(
    place: Place,
    stacks: StackStore,
    stack: Stack,
    template: Mapping[str, Any],
    parameters: Mapping[str, Parameter],
    tags: Mapping[str, str],
    replaced: set[str],
) -> tuple[list[dict[str, Any]], set[str]]:
    added = set(template["Resources"]) - set(stack.resources)
    evaluation = Evaluation(
        place, stacks, stack, template, parameters, tags, stack.resources, added | replaced
    )
    changes, found = [], set(replaced)
    for logical_id in evaluation.order:
        declared = evaluation.resources[logical_id]
        old = stack.resources.get(logical_id)
        if old is None:
            changes.append(_change("Add", logical_id, declared["Type"]))
            continue
        change = _modification(old, declared, evaluation.properties(logical_id))
        if change is not None:
            changes.append(change)
            if change["ResourceChange"]["Replacement"] == "True":
                found.add(logical_id)
    for logical_id, old in stack.resources.items():
        if logical_id not in evaluation.resources:
            retained = old.declaration.get("DeletionPolicy") in ("Retain", "RetainExceptOnCreate")
            policy = {"PolicyAction": "Retain" if retained else "Delete"}
            changes.append(_change("Remove", logical_id, old.type, old.physical_id, **policy))
    return changes, found


def _modification(
    old: DeployedResource, declared: Mapping[str, Any], properties: Mapping[str, Any]
) -> dict[str, Any] | None:
    names = set(properties) | set(old.properties)
    changed = sorted(n for n in names if properties.get(n) != old.properties.get(n))
    if not changed:
        return None
    kind = find_type(declared["Type"])
    details, certain, possible = [], False, False
    for name in changed:
        recreates = kind is not None and kind.needs_replacement({name})
        causes = _causes(properties.get(name))
        certain = certain or (recreates and not causes)
        possible = possible or recreates
        target = {
            "Attribute": "Properties",
            "Name": name,
            "RequiresRecreation": "Always" if recreates else "Never",
        }
        if not causes:
            details.append(
                {"Target": target, "Evaluation": "Static", "ChangeSource": "DirectModification"}
            )
        for cause in causes:
            details.append(
                {
                    "Target": target,
                    "Evaluation": "Dynamic",
                    "ChangeSource": "ResourceAttribute" if "." in cause else "ResourceReference",
                    "CausingEntity": cause,
                }
            )
    # A reference to something that is replaced always changes here, so "possible" is certain too.
    replacement = "True" if certain or possible else "False"
    return _change(
        "Modify",
        old.logical_id,
        old.type,
        old.physical_id,
        Replacement=replacement,
        Scope=["Properties"],
        Details=details,
        **({"PolicyAction": "ReplaceAndDelete"} if replacement == "True" else {}),
    )


def _causes(value: Any) -> list[str]:
    """Name the not yet existing things that a resolved value mentions."""
    if isinstance(value, str):
        return [part.split("\0")[0] for part in value.split(PENDING)[1:]]
    if isinstance(value, list):
        return [cause for item in value for cause in _causes(item)]
    if isinstance(value, dict):
        return [cause for item in value.values() for cause in _causes(item)]
    return []


def _change(
    action: str, logical_id: str, type_name: str, physical_id: str | None = None, **more: Any
) -> dict[str, Any]:
    change = {
        "Action": action,
        "LogicalResourceId": logical_id,
        "PhysicalResourceId": physical_id,
        "ResourceType": type_name,
        **more,
    }
    return {"Type": "Resource", "ResourceChange": change}


def has_other_changes(stack: Stack, template: Mapping[str, Any], tags: Mapping[str, str]) -> bool:
    """Say whether outputs, tags or policies differ although no resource does."""
    if (template.get("Outputs") or {}) != (stack.template.get("Outputs") or {}):
        return True
    if dict(tags) != stack.tags:
        return True
    for name, declared in template["Resources"].items():
        old = stack.template["Resources"].get(name, {})
        for key in ("DeletionPolicy", "UpdateReplacePolicy", "Metadata"):
            if declared.get(key) != old.get(key):
                return True
    return set(references(template.get("Conditions"))) != set(
        references(stack.template.get("Conditions"))
    )
