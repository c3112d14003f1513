"""The CloudFormation API: the operations that the CDK CLI and boto3 users call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

import yaml

from ..application import Caller, Operation, OwnService
from ..protocols import ServiceError
from .change_sets import (
    compute_changes,
    create_change_set,
    delete_change_set,
    describe_change_set,
    execute_change_set,
    find_change_set,
    has_other_changes,
    new_stack,
    read_template,
    stacks_of,
    start,
    submission,
    template_body,
)
from .stacks import (
    Stack,
    described_change_sets,
    described_events,
    described_resource,
    described_resource_summaries,
    described_stack,
    template_of,
    template_summary,
)
from .template import Submission

_MOST_DESCRIBED = 100  # resources in one answer: whoever has more must list them


def create_stack(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    stacks, submitted = stacks_of(caller), submission(caller, request, Submission())
    with stacks.lock:
        if request["StackName"] in stacks.alive:
            raise ServiceError(
                f"Stack [{request['StackName']}] already exists", "AlreadyExistsException"
            )
        stack = new_stack(caller, request, "CREATE_IN_PROGRESS", submitted)
    on_failure = request.get("OnFailure", "ROLLBACK")
    return start(caller, request, stack, stack.status, lambda it: it.create(on_failure=on_failure))


def update_stack(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    stack = stacks_of(caller).find(request["StackName"])
    stack.check_status("UpdateStack")
    submitted = submission(caller, request, stack.submitted)
    changes = compute_changes(caller, stack, submitted)
    if not changes and not has_other_changes(stack, submitted):
        raise ServiceError("No updates are to be performed.")
    return start(caller, request, stack, "UPDATE_IN_PROGRESS", lambda it: it.update(submitted))


def delete_stack(caller: Caller, request: dict[str, Any]) -> None:
    """DeleteStack; deleting what does not exist succeeds, as at AWS."""
    stacks = stacks_of(caller)
    try:
        stack = stacks.find(request["StackName"])
    except ServiceError:
        return
    if stack.root.termination_protection and not stack.root.status.endswith("IN_PROGRESS"):
        raise ServiceError(
            f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled"
        )
    stack.check_status("DeleteStack")
    retain = request.get("RetainResources", [])
    if retain and stack.status != "DELETE_FAILED":
        raise ServiceError(
            f"Invalid operation on stack [{stack.id}]. When you delete a stack, specify which "
            "resources to retain only when the stack is in the DELETE_FAILED state."
        )
    if stack.status == "DELETE_IN_PROGRESS":
        return
    for output in stack.outputs:
        users = [n for n in stacks.importers(output.export or "") if n != stack.name]
        if output.export and users:
            raise ServiceError(
                f"Export {output.export} cannot be deleted as it is in use by {', '.join(users)}"
            )
    start(caller, request, stack, "DELETE_IN_PROGRESS", lambda it: it.delete(retain))


def set_termination_protection(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """UpdateTerminationProtection, of a stack that is not nested; the refusal's words are ours.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_UpdateTerminationProtection.html
    """
    stack = stacks_of(caller).find(request["StackName"])
    if stack.parent:
        raise ServiceError(
            f"Termination protection of the nested stack [{stack.name}] is set on its root stack "
            f"[{stack.root.name}]"
        )
    stack.termination_protection = bool(request["EnableTerminationProtection"])
    return {"StackId": stack.id}


def get_template_summary(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    if request.get("StackName"):
        return template_summary(
            stacks_of(caller).find(request["StackName"], or_deleted=True).submitted.template
        )
    return template_summary(read_template(template_body(caller, request)))


def _read(view: Callable[[Stack], dict[str, Any]]) -> Callable[[Caller, dict[str, Any]], Any]:
    """Make an operation out of a description of one stack."""

    def operation(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
        return view(stacks_of(caller).find(request["StackName"], or_deleted=True))

    return operation


def describe_stacks(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    return {"Stacks": [*map(described_stack, stacks_of(caller).named(request.get("StackName")))]}


def list_stacks(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    stacks = stacks_of(caller)
    wanted = set(request.get("StackStatusFilter", []))
    found = [*stacks.alive.values(), *stacks.deleted.values()]
    return {
        "StackSummaries": [
            described_stack(s) | {"TemplateDescription": s.submitted.template.get("Description")}
            for s in found
            if not wanted or s.status in wanted
        ]
    }


def list_exports(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    return {
        "Exports": [
            {"ExportingStackId": stack.id, "Name": name, "Value": output.value}
            for name, (stack, output) in stacks_of(caller).exports().items()
        ]
    }


def describe_stack_resource(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    stack = stacks_of(caller).find(request["StackName"], or_deleted=True)
    resource = stack.resources.get(request["LogicalResourceId"])
    if resource is None:
        raise ServiceError(
            f"Resource {request['LogicalResourceId']} does not exist for stack {stack.name}"
        )
    return {"StackResourceDetail": described_resource(stack, resource)}


def describe_stack_resources(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """DescribeStackResources: the first hundred of a stack, or of the one that has a resource.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStackResources.html
    """
    stacks = stacks_of(caller).named(request.get("StackName"))
    if wanted_id := request.get("PhysicalResourceId"):
        stacks = [stack for stack in stacks if _has(stack, wanted_id)]
        if not stacks:
            raise ServiceError(f"Stack for {wanted_id} does not exist")
    resources = [
        described_resource(stack, resource)
        for stack in stacks
        for resource in stack.resources.values()
        if request.get("LogicalResourceId") in (None, resource.logical_id)
    ]
    return {"StackResources": resources[:_MOST_DESCRIBED]}


def _has(stack: Stack, physical_id: str) -> bool:
    return any(resource.physical_id == physical_id for resource in stack.resources.values())


def continue_update_rollback(caller: Caller, request: dict[str, Any]) -> None:
    """ContinueUpdateRollback: another try, without the resources to skip."""
    stack = stacks_of(caller).find(request["StackName"])
    stack.check_status("ContinueUpdateRollback")
    skipped = request.get("ResourcesToSkip", [])
    if wrong := [name for name in skipped if name not in stack.unrolled]:
        raise ServiceError(f"Stack resources that cannot be skipped: [{', '.join(wrong)}]")
    # The failed rollback has left it.
    work = cast(Callable[[Iterable[str]], None], stack.continue_rollback)
    start(caller, request, stack, "UPDATE_ROLLBACK_IN_PROGRESS", lambda it: work(skipped))


def _not_now(operation: str) -> Operation:
    """Make an operation that no stack takes here, and most stacks take nowhere."""

    def refuse(caller: Caller, request: dict[str, Any]) -> None:
        stacks_of(caller).find(request["StackName"]).check_status(operation)
        raise ServiceError(f"{operation} is not emulated by the local AWS", "InvalidAction")

    return refuse


def validate_template(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    return template_summary(read_template(template_body(caller, request)))


def get_template(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    if request.get("ChangeSetName"):
        return template_of(find_change_set(caller, request)[1].submitted)
    name = request.get("StackName", "")
    return template_of(stacks_of(caller).find(name, or_deleted=True).submitted)


_INPUTS = yaml.safe_load(Path(__file__).with_name("inputs.yaml").read_text())


def _judged(name: str, operation: Operation) -> Operation:
    """Let an operation refuse the inputs that it would drop."""

    def judged(caller: Caller, request: dict[str, Any]) -> dict[str, Any] | None:
        refused = [key for key in _INPUTS["refused"].get(name, ()) if request.get(key)]
        stated = [key for key in refused if request[key] != _INPUTS["default"].get(key)]
        if stated:
            raise ServiceError(f"{name} with {', '.join(stated)} is not emulated by the local AWS")
        return operation(caller, request)

    return judged


_OPERATIONS: dict[str, Operation] = {
    "CancelUpdateStack": _not_now("CancelUpdateStack"),
    "RollbackStack": _not_now("RollbackStack"),
    "ValidateTemplate": validate_template,
    "CreateStack": create_stack,
    "UpdateStack": update_stack,
    "DeleteStack": delete_stack,
    "CreateChangeSet": create_change_set,
    "DescribeChangeSet": describe_change_set,
    "ExecuteChangeSet": execute_change_set,
    "DeleteChangeSet": delete_change_set,
    "ListChangeSets": _read(described_change_sets),
    "DescribeStacks": describe_stacks,
    "ListStacks": list_stacks,
    "DescribeStackEvents": _read(described_events),
    "DescribeStackResource": describe_stack_resource,
    "DescribeStackResources": describe_stack_resources,
    "ListStackResources": _read(described_resource_summaries),
    "GetTemplate": get_template,
    "GetTemplateSummary": get_template_summary,
    "GetStackPolicy": _read(lambda stack: {}),
    "UpdateTerminationProtection": set_termination_protection,
    "ContinueUpdateRollback": continue_update_rollback,
    "ListExports": list_exports,
}

CLOUDFORMATION = OwnService(
    "cloudformation",
    {name: _judged(name, operation) for name, operation in _OPERATIONS.items()},
    complete=True,
)
