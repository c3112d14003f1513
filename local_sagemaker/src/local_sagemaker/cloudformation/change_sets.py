"""Change sets: what a new template would change, and the operations on them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..application import Caller
from ..protocols import ServiceError
from ..resources.properties import as_text
from ..resources.table import find_type
from . import descriptions
from .dependencies import references
from .engine import StackOperation
from .evaluation import PENDING, Evaluation
from .requests import check_updatable, new_stack, place_of, stacks_of, start, submission
from .resource_work import ResourceWork
from .stacks import ChangeSet, DeployedResource, Stack, StackStore
from .template import Submission


def compute_changes(caller: Caller, stack: Stack, submitted: Submission) -> list[dict[str, Any]]:
    """List the resource changes between a stack and a new template, as DescribeChangeSet does."""
    replaced: set[str] = set()
    while True:
        # Replacing one resource changes the references to it, which may replace others:
        # look again until nothing new turns up.
        changes, found = _pass(caller, stack, submitted, replaced)
        if found == replaced:
            return changes
        replaced = found


def _pass(
    caller: Caller, stack: Stack, submitted: Submission, replaced: set[str]
) -> tuple[list[dict[str, Any]], set[str]]:
    added = set(submitted.template["Resources"]) - set(stack.resources)
    place, stacks = place_of(caller, stack), stacks_of(caller)
    evaluation = Evaluation(place, stacks, stack, submitted, added | replaced)
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
    details, replaced = [], False
    for name in changed:
        recreates = kind is not None and name in kind.replaces
        causes = _causes(properties.get(name))
        # A reference to something that is replaced always changes here.
        replaced = replaced or recreates
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
    return _change(
        "Modify",
        old.logical_id,
        old.type,
        old.physical_id,
        Replacement=str(replaced),
        Scope=["Properties"],
        Details=details,
        **({"PolicyAction": "ReplaceAndDelete"} if replaced else {}),
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


def has_other_changes(stack: Stack, submitted: Submission) -> bool:
    """Say whether outputs, tags or policies differ although no resource does."""
    template, former = submitted.template, stack.submitted.template
    if (template.get("Outputs") or {}) != (former.get("Outputs") or {}):
        return True
    if submitted.tags != stack.submitted.tags:
        return True
    for name, declared in template["Resources"].items():
        old = former["Resources"].get(name, {})
        for key in ("DeletionPolicy", "UpdateReplacePolicy", "Metadata"):
            if declared.get(key) != old.get(key):
                return True
    return set(references(template.get("Conditions"))) != set(references(former.get("Conditions")))


_NO_CHANGES = (
    "The submitted information didn't contain changes. "
    "Submit different information to create a change set."
)


def create_change_set(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    stacks = stacks_of(caller)
    kind = request.get("ChangeSetType", "UPDATE")
    if kind == "IMPORT":
        raise ServiceError("Change sets of type IMPORT are not emulated by the local AWS")
    with stacks.lock:
        stack = _stack_for_change_set(caller, stacks, request, kind)
    submitted = submission(caller, request, stack.submitted)
    drift = None
    if request.get("DeploymentMode") == "REVERT_DRIFT":
        live = replace(stack, resources=ResourceWork(place_of(caller, stack), stack).live())
        changes = compute_changes(caller, live, submitted)
        drift = _note_drift(changes, stack, live)
    else:
        changes = compute_changes(caller, stack, submitted)
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
        submitted=submitted,
        description=request.get("Description"),
        on_failure=request.get("OnStackFailure"),
        include_nested=bool(request.get("IncludeNestedStacks")),
        changes=changes,
        drift_status=drift,
    )
    if kind == "UPDATE" and not changes and not has_other_changes(stack, submitted):
        change_set.status, change_set.execution_status = "FAILED", "UNAVAILABLE"
        change_set.reason = _NO_CHANGES
    stack.change_sets[change_set.id] = change_set
    return {"Id": change_set.id, "StackId": stack.id}


def _note_drift(changes: list[dict[str, Any]], stack: Stack, live: Stack) -> str:
    """Say in the changes what drifted; gives the drift status of the stack."""
    was = {name: each.properties for name, each in stack.resources.items()}
    found = {name: each.properties for name, each in live.resources.items()}
    for each in (change["ResourceChange"] for change in changes):
        name = each["LogicalResourceId"]
        if name not in was:
            continue
        each["PhysicalResourceId"] = stack.resources[name].physical_id
        if (kind := find_type(stack.resources[name].type)) is None or kind.drift is None:
            each["ResourceDriftStatus"] = "UNSUPPORTED"
            continue
        same = "IN_SYNC" if found.get(name) == was[name] else "MODIFIED"
        each["ResourceDriftStatus"] = same if name in found else "DELETED"
        for detail in each.get("Details", ()):
            target = detail["Target"]
            values = {
                "BeforeValue": found[name].get(target["Name"]),
                "BeforeValueFrom": "ACTUAL_STATE",
            }
            target |= {key: as_text(value) for key, value in values.items()}
            target["AfterValueFrom"] = "TEMPLATE"
    return "IN_SYNC" if found == was else "DRIFTED"


def _stack_for_change_set(
    caller: Caller, stacks: StackStore, request: dict[str, Any], kind: str
) -> Stack:
    name = request["StackName"]
    if kind == "UPDATE":
        stack = stacks.find(name)
        check_updatable(stack)
        stack.role_arn = request.get("RoleARN") or stack.role_arn
        return stack
    existing = stacks.alive.get(name)
    if existing is None:
        existing = new_stack(caller, request, "REVIEW_IN_PROGRESS", Submission())
        existing.set_status("REVIEW_IN_PROGRESS", "User Initiated")
    elif existing.status != "REVIEW_IN_PROGRESS":
        raise ServiceError(
            f"Stack [{name}] already exists and cannot be created again with the changeSet "
            f"[{request['ChangeSetName']}]."
        )
    return existing


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
    stack, change_set = _find_change_set(caller, request)
    if change_set.execution_status != "AVAILABLE":
        raise ServiceError(
            f"ChangeSet [{change_set.id}] cannot be executed in its current status of "
            f"[{change_set.status}]",
            "InvalidChangeSetStatus",
        )
    stack.last_change_set = change_set.id
    # AWS deletes a stack's other change sets when one is executed.
    stack.change_sets.clear()
    submitted, on_failure = change_set.submitted, change_set.on_failure or "ROLLBACK"
    if change_set.kind == "CREATE":
        stack.submitted = submitted

    def work(operation: StackOperation) -> None:
        if change_set.kind == "CREATE":
            operation.create(on_failure=on_failure)
        else:
            operation.update(submitted, reverts=change_set.drift_status is not None)

    start(caller, request, stack, f"{change_set.kind}_IN_PROGRESS", work)
