"""Change sets: what a new template would change, and the operations on them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from ..application import Caller
from ..protocols import ServiceError
from ..resources.resource_type import Place, find_type
from . import descriptions
from .dependencies import check_references, references
from .engine import StackOperation
from .evaluation import PENDING, Evaluation
from .requests import (
    check_capabilities,
    check_updatable,
    new_stack,
    parameters_of,
    place_of,
    stacks_of,
    start,
    tags_of,
    template_body,
)
from .stacks import ChangeSet, DeployedResource, Stack, StackStore
from .template import Parameter, parse_template


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


_NO_CHANGES = (
    "The submitted information didn't contain changes. "
    "Submit different information to create a change set."
)


def create_change_set(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """CreateChangeSet."""
    stacks = stacks_of(caller)
    kind = request.get("ChangeSetType", "UPDATE")
    if kind == "IMPORT":
        raise ServiceError("Change sets of type IMPORT are not emulated by the local AWS")
    with stacks.lock:
        stack = _stack_for_change_set(caller, stacks, request, kind)
    previous = request.get("UsePreviousTemplate") and stack.body
    body = stack.body if previous else template_body(caller, request)
    template = parse_template(body)
    check_references(template)
    check_capabilities(request, template)
    parameters = parameters_of(caller, request, template, stack.parameters)
    tags = tags_of(request, stack.tags)
    place = place_of(caller, stack)
    changes = compute_changes(place, stacks, stack, template, parameters, tags)
    name = request["ChangeSetName"]
    if any(existing.name == name for existing in stack.change_sets.values()):
        raise ServiceError(
            f"ChangeSet {name} cannot be created due to a mismatch with existing attributes",
            "AlreadyExistsException",
        )
    change_set = ChangeSet(
        id=f"arn:aws:cloudformation:{caller.region}:{caller.account}:changeSet/{name}/{uuid.uuid4()}",
        name=name,
        kind=kind,
        body=body,
        template=template,
        parameters=parameters,
        tags=tags,
        capabilities=request.get("Capabilities", []),
        description=request.get("Description"),
        on_failure=request.get("OnStackFailure"),
        include_nested=bool(request.get("IncludeNestedStacks")),
        changes=changes,
    )
    if kind == "UPDATE" and not changes and not has_other_changes(stack, template, tags):
        change_set.status, change_set.execution_status = "FAILED", "UNAVAILABLE"
        change_set.reason = _NO_CHANGES
    stack.change_sets[change_set.id] = change_set
    return {"Id": change_set.id, "StackId": stack.id}


def _stack_for_change_set(
    caller: Caller, stacks: StackStore, request: dict[str, Any], kind: str
) -> Stack:
    name = request["StackName"]
    if kind == "UPDATE":
        stack = stacks.find(name)
        check_updatable(stack)
        return stack
    existing = stacks.alive.get(name)
    if existing is None:
        stacks.alive[name] = new_stack(caller, request, "REVIEW_IN_PROGRESS")
        stacks.alive[name].set_status("REVIEW_IN_PROGRESS", "User Initiated")
    elif existing.status != "REVIEW_IN_PROGRESS":
        raise ServiceError(
            f"Stack [{name}] already exists and cannot be created again with the changeSet "
            f"[{request['ChangeSetName']}]."
        )
    return stacks.alive[name]


def _find_change_set(caller: Caller, request: dict[str, Any]) -> tuple[Stack, ChangeSet]:
    """Find a change set by its id, or by its name within its stack: two stacks may share one."""
    wanted = request["ChangeSetName"]
    stacks = stacks_of(caller)
    candidates = (
        [stacks.find(request["StackName"], or_deleted=True)]
        if request.get("StackName")
        else list(stacks.alive.values())
    )
    for stack in candidates:
        for change_set in stack.change_sets.values():
            if wanted == change_set.id or (wanted == change_set.name and request.get("StackName")):
                return stack, change_set
    raise ServiceError(f"ChangeSet [{wanted}] does not exist", "ChangeSetNotFound", 404)


def describe_change_set(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """DescribeChangeSet."""
    return descriptions.change_set(*_find_change_set(caller, request))


def delete_change_set(caller: Caller, request: dict[str, Any]) -> None:
    """DeleteChangeSet; an absent change set is no error."""
    try:
        stack, change_set = _find_change_set(caller, request)
    except ServiceError as error:
        if error.code == "ChangeSetNotFound" or "does not exist" in error.message:
            return
        raise
    del stack.change_sets[change_set.id]


def execute_change_set(caller: Caller, request: dict[str, Any]) -> None:
    """ExecuteChangeSet."""
    stack, change_set = _find_change_set(caller, request)
    if change_set.execution_status != "AVAILABLE":
        raise ServiceError(
            f"ChangeSet [{change_set.id}] cannot be executed in its current status of "
            f"[{change_set.status}]",
            "InvalidChangeSetStatus",
        )
    stacks = stacks_of(caller)
    stack.token = request.get("ClientRequestToken")
    stack.disable_rollback = bool(request.get("DisableRollback"))
    stack.capabilities = change_set.capabilities
    stack.last_change_set = change_set.id
    # AWS deletes a stack's other change sets when one is executed.
    stack.change_sets.clear()
    operation = StackOperation(place_of(caller, stack), stacks, stack)
    if change_set.kind == "CREATE":
        stack.body, stack.template = change_set.body, change_set.template
        stack.parameters, stack.tags = change_set.parameters, change_set.tags
        stack.description = change_set.template.get("Description")
        stack.status = "CREATE_IN_PROGRESS"
        on_failure = change_set.on_failure or "ROLLBACK"
        start(lambda: operation.create(on_failure=on_failure), stack)
        return
    stack.status = "UPDATE_IN_PROGRESS"
    start(
        lambda: operation.update(
            change_set.body, change_set.template, change_set.parameters, change_set.tags
        ),
        stack,
    )
