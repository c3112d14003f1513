"""The CloudFormation API: the operations that the CDK CLI and boto3 users call."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from ..application import Caller, OwnService
from ..connections import local_client
from ..protocols import ServiceError
from ..resources.resource_type import Place
from . import descriptions
from .changes import compute_changes, has_other_changes
from .dependencies import check_references
from .engine import StackOperation
from .stacks import ChangeSet, Stack, StackStore, store
from .template import Parameter, parse_template, read_parameters

logger = logging.getLogger(__name__)

_NO_CHANGES = (
    "The submitted information didn't contain changes. "
    "Submit different information to create a change set."
)
_UPDATABLE = (
    "CREATE_COMPLETE",
    "UPDATE_COMPLETE",
    "UPDATE_ROLLBACK_COMPLETE",
    "UPDATE_FAILED",
    "IMPORT_COMPLETE",
)


def _stacks(caller: Caller) -> StackStore:
    return store(caller.account, caller.region)


def _place(caller: Caller, stack: Stack) -> Place:
    return Place(caller.account, caller.region, caller.url, stack.name, stack.id, "", "")


def _template_body(caller: Caller, request: dict[str, Any]) -> str:
    if request.get("TemplateBody"):
        return str(request["TemplateBody"])
    if not request.get("TemplateURL"):
        raise ServiceError("Either Template URL or Template Body must be specified.")
    bucket, key = descriptions.bucket_and_key(request["TemplateURL"])
    try:
        s3 = local_client("s3", caller.region, caller.url)
        return str(s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode())
    except ClientError as error:
        raise ServiceError(f"S3 error: {error.response['Error']['Message']}") from error


def _parameters(
    caller: Caller,
    request: dict[str, Any],
    template: dict[str, Any],
    previous: dict[str, Parameter],
) -> dict[str, Parameter]:
    given = {
        entry["ParameterKey"]: None
        if entry.get("UsePreviousValue")
        else entry.get("ParameterValue", "")
        for entry in request.get("Parameters", [])
    }

    def read_ssm(name: str) -> str:
        ssm = local_client("ssm", caller.region, caller.url)
        try:
            return str(ssm.get_parameter(Name=name)["Parameter"]["Value"])
        except ClientError as error:
            raise ServiceError(
                f"Unable to fetch parameters [{name}] from parameter store for this account."
            ) from error

    return read_parameters(template, given, previous, read_ssm)


def _tags(request: dict[str, Any], before: dict[str, str]) -> dict[str, str]:
    if "Tags" not in request:
        return dict(before)
    return {tag["Key"]: tag["Value"] for tag in request["Tags"]}


def _check_capabilities(request: dict[str, Any], template: dict[str, Any]) -> None:
    """Ask for the IAM acknowledgement as AWS does, so that a script without it fails here too."""
    given = set(request.get("Capabilities") or [])
    iam = [
        r for r in template["Resources"].values() if str(r.get("Type", "")).startswith("AWS::IAM::")
    ]
    named = {"RoleName", "ManagedPolicyName", "UserName", "GroupName", "InstanceProfileName"}
    needs_named = any(named & set(r.get("Properties") or {}) for r in iam)
    if needs_named and "CAPABILITY_NAMED_IAM" not in given:
        raise ServiceError(
            "Requires capabilities : [CAPABILITY_NAMED_IAM]", "InsufficientCapabilitiesException"
        )
    if iam and not given & {"CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"}:
        raise ServiceError(
            "Requires capabilities : [CAPABILITY_IAM]", "InsufficientCapabilitiesException"
        )


def _new_stack(caller: Caller, request: dict[str, Any], status: str) -> Stack:
    name = request["StackName"]
    stack_id = f"arn:aws:cloudformation:{caller.region}:{caller.account}:stack/{name}/{uuid.uuid4()}"
    return Stack(
        name,
        stack_id,
        status,
        role_arn=request.get("RoleARN"),
        notification_arns=request.get("NotificationARNs", []),
        termination_protection=bool(request.get("EnableTerminationProtection")),
    )


def _start(work: Callable[[], None], stack: Stack) -> None:
    """Run an operation beside the request, as AWS does: callers poll."""

    def guarded() -> None:
        try:
            work()
        except Exception as error:
            # The stack must never hang in IN_PROGRESS because of a mistake of ours.
            logger.exception("operation on stack %s", stack.name)
            verb = stack.status.split("_")[0]
            stack.set_status(f"{verb}_FAILED", f"local AWS internal error: {error!r}")

    threading.Thread(target=guarded, name=f"stack-{stack.name}", daemon=True).start()


def create_stack(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """CreateStack."""
    stacks = _stacks(caller)
    body = _template_body(caller, request)
    template = parse_template(body)
    check_references(template)
    _check_capabilities(request, template)
    with stacks.lock:
        if request["StackName"] in stacks.alive:
            raise ServiceError(
                f"Stack [{request['StackName']}] already exists", "AlreadyExistsException"
            )
        stack = _new_stack(caller, request, "CREATE_IN_PROGRESS")
        stack.body, stack.template = body, template
        stack.parameters = _parameters(caller, request, template, {})
        stack.tags = _tags(request, {})
        stack.capabilities = request.get("Capabilities", [])
        stack.description = template.get("Description")
        stack.token = request.get("ClientRequestToken")
        stacks.alive[stack.name] = stack
    on_failure = request.get("OnFailure", "ROLLBACK")
    if request.get("DisableRollback"):
        on_failure = "DO_NOTHING"
    operation = StackOperation(_place(caller, stack), stacks, stack)
    _start(lambda: operation.create(on_failure=on_failure), stack)
    return {"StackId": stack.id}


def update_stack(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """UpdateStack."""
    stacks = _stacks(caller)
    stack = stacks.find(request["StackName"])
    _check_updatable(stack)
    body = stack.body if request.get("UsePreviousTemplate") else _template_body(caller, request)
    template = parse_template(body)
    check_references(template)
    _check_capabilities(request, template)
    parameters = _parameters(caller, request, template, stack.parameters)
    tags = _tags(request, stack.tags)
    place = _place(caller, stack)
    if not compute_changes(
        place, stacks, stack, template, parameters, tags
    ) and not has_other_changes(stack, template, tags):
        raise ServiceError("No updates are to be performed.")
    stack.token = request.get("ClientRequestToken")
    stack.disable_rollback = bool(request.get("DisableRollback"))
    stack.status = "UPDATE_IN_PROGRESS"
    operation = StackOperation(place, stacks, stack)
    _start(lambda: operation.update(body, template, parameters, tags), stack)
    return {"StackId": stack.id}


def _check_updatable(stack: Stack) -> None:
    if stack.status not in _UPDATABLE:
        raise ServiceError(
            f"Stack:{stack.id} is in {stack.status} state and can not be updated."
        )


def delete_stack(caller: Caller, request: dict[str, Any]) -> None:
    """DeleteStack; deleting what does not exist succeeds, as at AWS."""
    stacks = _stacks(caller)
    try:
        stack = stacks.find(request["StackName"])
    except ServiceError:
        return
    if stack.termination_protection:
        raise ServiceError(
            f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled"
        )
    if stack.busy:
        raise ServiceError(f"Stack:{stack.id} is in {stack.status} state and can not be deleted.")
    for output in stack.outputs:
        users = [n for n in stacks.importers(output.export or "") if n != stack.name]
        if output.export and users:
            raise ServiceError(
                f"Export {output.export} cannot be deleted as it is in use by {', '.join(users)}"
            )
    stack.token = request.get("ClientRequestToken")
    stack.status = "DELETE_IN_PROGRESS"
    operation = StackOperation(_place(caller, stack), stacks, stack)
    retain = request.get("RetainResources", [])
    _start(lambda: operation.delete(retain), stack)


def create_change_set(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """CreateChangeSet."""
    stacks = _stacks(caller)
    kind = request.get("ChangeSetType", "UPDATE")
    if kind == "IMPORT":
        raise ServiceError("Change sets of type IMPORT are not emulated by the local AWS")
    with stacks.lock:
        stack = _stack_for_change_set(caller, stacks, request, kind)
    previous = request.get("UsePreviousTemplate") and stack.body
    body = stack.body if previous else _template_body(caller, request)
    template = parse_template(body)
    check_references(template)
    _check_capabilities(request, template)
    parameters = _parameters(caller, request, template, stack.parameters)
    tags = _tags(request, stack.tags)
    place = _place(caller, stack)
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
        _check_updatable(stack)
        return stack
    existing = stacks.alive.get(name)
    if existing is None:
        stacks.alive[name] = _new_stack(caller, request, "REVIEW_IN_PROGRESS")
        stacks.alive[name].set_status("REVIEW_IN_PROGRESS", "User Initiated")
    elif existing.status != "REVIEW_IN_PROGRESS":
        raise ServiceError(
            f"Stack [{name}] already exists and cannot be created again with the changeSet "
            f"[{request['ChangeSetName']}]."
        )
    return stacks.alive[name]


def _find_change_set(caller: Caller, request: dict[str, Any]) -> tuple[Stack, ChangeSet]:
    """Find a change set by its id, or by its name within its stack (two stacks may share a name)."""
    wanted = request["ChangeSetName"]
    stacks = _stacks(caller)
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
    stacks = _stacks(caller)
    stack.token = request.get("ClientRequestToken")
    stack.disable_rollback = bool(request.get("DisableRollback"))
    stack.capabilities = change_set.capabilities
    stack.last_change_set = change_set.id
    # AWS deletes a stack's other change sets when one is executed.
    stack.change_sets.clear()
    operation = StackOperation(_place(caller, stack), stacks, stack)
    if change_set.kind == "CREATE":
        stack.body, stack.template = change_set.body, change_set.template
        stack.parameters, stack.tags = change_set.parameters, change_set.tags
        stack.description = change_set.template.get("Description")
        stack.status = "CREATE_IN_PROGRESS"
        on_failure = change_set.on_failure or "ROLLBACK"
        _start(lambda: operation.create(on_failure=on_failure), stack)
        return
    stack.status = "UPDATE_IN_PROGRESS"
    _start(
        lambda: operation.update(
            change_set.body, change_set.template, change_set.parameters, change_set.tags
        ),
        stack,
    )


def set_termination_protection(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """UpdateTerminationProtection."""
    stack = _stacks(caller).find(request["StackName"])
    stack.termination_protection = bool(request["EnableTerminationProtection"])
    return {"StackId": stack.id}


def validate_template(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """ValidateTemplate."""
    template = parse_template(_template_body(caller, request))
    check_references(template)
    return descriptions.template_summary(template)


def get_template_summary(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """GetTemplateSummary."""
    if request.get("StackName"):
        return descriptions.template_summary(
            _stacks(caller).find(request["StackName"], or_deleted=True).template
        )
    return descriptions.template_summary(parse_template(_template_body(caller, request)))


def _read(view: Callable[[Stack], dict[str, Any]]) -> Callable[[Caller, dict[str, Any]], Any]:
    """Make an operation out of a description of one stack."""

    def operation(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
        return view(_stacks(caller).find(request["StackName"], or_deleted=True))

    return operation


def describe_stacks(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """DescribeStacks."""
    stacks = _stacks(caller)
    if request.get("StackName"):
        return {"Stacks": [descriptions.stack(stacks.find(request["StackName"], or_deleted=True))]}
    return {"Stacks": [descriptions.stack(stack) for stack in stacks.alive.values()]}


def list_stacks(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """ListStacks."""
    stacks = _stacks(caller)
    wanted = set(request.get("StackStatusFilter", []))
    found = [*stacks.alive.values(), *stacks.deleted.values()]
    return {
        "StackSummaries": [
            descriptions.stack(s) | {"TemplateDescription": s.description}
            for s in found
            if not wanted or s.status in wanted
        ]
    }


def list_exports(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """ListExports."""
    return {
        "Exports": [
            {"ExportingStackId": stack.id, "Name": name, "Value": output.value}
            for name, (stack, output) in _stacks(caller).exports().items()
        ]
    }


def list_imports(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """ListImports."""
    users = _stacks(caller).importers(request["ExportName"])
    if not users:
        raise ServiceError(f"Export '{request['ExportName']}' is not imported by any stack.")
    return {"Imports": users}


def describe_stack_resource(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """DescribeStackResource."""
    stack = _stacks(caller).find(request["StackName"], or_deleted=True)
    resource = stack.resources.get(request["LogicalResourceId"])
    if resource is None:
        raise ServiceError(
            f"Resource {request['LogicalResourceId']} does not exist for stack {stack.name}"
        )
    return {"StackResourceDetail": descriptions.resource(stack, resource)}


def describe_stack_resources(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """DescribeStackResources."""
    stacks = _stacks(caller)
    wanted_id = request.get("PhysicalResourceId")
    found = (
        [stacks.find(request["StackName"], or_deleted=True)]
        if request.get("StackName")
        else list(stacks.alive.values())
    )
    return {
        "StackResources": [
            descriptions.resource(stack, resource)
            for stack in found
            for resource in stack.resources.values()
            if request.get("LogicalResourceId") in (None, resource.logical_id)
            and wanted_id in (None, resource.physical_id)
        ]
    }


def continue_update_rollback(caller: Caller, request: dict[str, Any]) -> None:
    """ContinueUpdateRollback: refused, there is no state to continue from here."""
    raise ServiceError("ContinueUpdateRollback is not emulated by the local AWS")


CLOUDFORMATION = OwnService(
    "cloudformation",
    {
        "CreateStack": create_stack,
        "UpdateStack": update_stack,
        "DeleteStack": delete_stack,
        "CreateChangeSet": create_change_set,
        "DescribeChangeSet": describe_change_set,
        "ExecuteChangeSet": execute_change_set,
        "DeleteChangeSet": delete_change_set,
        "ListChangeSets": _read(descriptions.change_sets),
        "DescribeStacks": describe_stacks,
        "ListStacks": list_stacks,
        "DescribeStackEvents": _read(descriptions.events),
        "DescribeStackResource": describe_stack_resource,
        "DescribeStackResources": describe_stack_resources,
        "ListStackResources": _read(descriptions.resource_summaries),
        "GetTemplate": _read(descriptions.template_of),
        "GetTemplateSummary": get_template_summary,
        "ValidateTemplate": validate_template,
        "GetStackPolicy": _read(lambda stack: {}),
        "UpdateTerminationProtection": set_termination_protection,
        "ContinueUpdateRollback": continue_update_rollback,
        "ListExports": list_exports,
        "ListImports": list_imports,
    },
    complete=True,
)
