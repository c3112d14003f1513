"""Change sets: what a new template would change; and what requests about stacks have in common."""

from __future__ import annotations

import logging
import re
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from botocore.exceptions import ClientError

from ..admission import Session
from ..application import Caller
from ..connections import ACCOUNT, local_client
from ..permissions.principals import NotAssumable, check_trust, credentials_of, service_session
from ..protocols import ServiceError
from ..resources.calls import as_text
from ..resources.resource_type import Place
from ..resources.table import find_type
from ..schemas import schema_of
from .engine import ResourceWork, StackOperation
from .evaluation import PENDING, Evaluation, check_references
from .resource_order import references
from .stacks import (
    ChangeSet,
    DeployedResource,
    Stack,
    StackStore,
    bucket_and_key,
    described_change_set,
    store,
)
from .template import ParameterValue, Submission, parse_template, read_parameters

logger = logging.getLogger(__name__)


def stacks_of(caller: Caller) -> StackStore:
    return store(caller.account, caller.region)


def place_of(caller: Caller, stack: Stack) -> Place:
    return Place(
        caller.account,
        caller.region,
        caller.url,
        stack.name,
        stack.id,
        "",
        "",
        caller.runtime.clock,
        caller.runtime.options,
        session=_session(caller, stack),
    )


def _session(caller: Caller, stack: Stack) -> Session | None:
    """Give the session by which a stack's resources are made; None for the administrator's."""
    # Source: CloudFormation user guide, "CloudFormation service role": the role's, also for later
    # operations that name none, or else one of the caller's.
    if caller.runtime.options.permissions == "ignored":
        return None
    if not stack.role_arn:
        return None if caller.who.administrator else credentials_of(str(caller.key))
    try:
        check_trust(stack.role_arn, "cloudformation.amazonaws.com")
    except NotAssumable:
        raise ServiceError(f"Role {stack.role_arn} is invalid or cannot be assumed") from None
    return service_session(stack.role_arn, "AWSCloudFormation")


def submission(caller: Caller, request: dict[str, Any], before: Submission) -> Submission:
    """Read what a request wants a stack to be, and refuse what AWS refuses at once."""
    previous = request.get("UsePreviousTemplate") and before.body
    body = before.body if previous else template_body(caller, request)
    template = read_template(body)
    _check_capabilities(request, template)
    tags = before.tags
    if "Tags" in request:
        tags = {tag["Key"]: tag["Value"] for tag in request["Tags"]}
    parameters = _parameters(caller, request, template, before.parameters)
    submitted = Submission(body, template, parameters, tags, request.get("Capabilities", []))
    name = request["StackName"]
    _foresee(caller, Stack(name, _new_stack_id(caller, name), "", submitted))
    return submitted


def _new_stack_id(caller: Caller, name: str) -> str:
    return f"arn:aws:cloudformation:{caller.region}:{caller.account}:stack/{name}/{uuid.uuid4()}"


def read_template(body: str) -> dict[str, Any]:
    """Read a template, and refuse what can be seen without its parameters."""
    template = parse_template(body)
    check_references(template)
    return template


def _foresee(caller: Caller, stack: Stack) -> None:
    """Refuse a template that cannot be evaluated with these parameters."""
    names = stack.submitted.template["Resources"]
    try:
        Evaluation(
            place_of(caller, stack), stacks_of(caller), stack, stack.submitted, names, asks=()
        ).foresee()
    except RecursionError:
        raise ServiceError("Template format error: it refers to itself too deeply") from None


# Source: CloudFormation user guide, "CloudFormation quotas": 51,200 bytes, and 1 MB in S3.
_LARGEST_BODY = 51_200
_LARGEST_OBJECT = 1_000_000


def template_body(caller: Caller, request: dict[str, Any]) -> str:
    """Give the request's template, from the request itself or from S3."""
    if body := request.get("TemplateBody"):
        if len(body.encode()) > _LARGEST_BODY:
            raise ServiceError(
                "1 validation error detected: Value at 'templateBody' failed to satisfy constraint: "
                f"Member must have length less than or equal to {_LARGEST_BODY}"
            )
        return str(body)
    if not request.get("TemplateURL"):
        raise ServiceError("Either Template URL or Template Body must be specified.")
    bucket, key = bucket_and_key(request["TemplateURL"])
    try:
        s3 = local_client("s3", caller.region, caller.url)
        body = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        if len(body) > _LARGEST_OBJECT:
            raise ServiceError(f"Template may not exceed {_LARGEST_OBJECT} bytes in size.")
        return str(body.decode())
    except ClientError as error:
        raise ServiceError(f"S3 error: {error.response['Error']['Message']}") from error
    except UnicodeDecodeError as error:
        raise ServiceError(f"Template format error: {error}") from None


def _parameters(
    caller: Caller,
    request: dict[str, Any],
    template: dict[str, Any],
    previous: dict[str, ParameterValue],
) -> dict[str, ParameterValue]:
    given = {
        entry["ParameterKey"]: None
        if entry.get("UsePreviousValue")
        else entry.get("ParameterValue", "")
        for entry in request.get("Parameters", [])
    }

    def read_ssm(name: str) -> str:
        elsewhere = None if caller.account == ACCOUNT else credentials_of(str(caller.key))
        ssm = local_client("ssm", caller.region, caller.url, elsewhere)
        try:
            return str(ssm.get_parameter(Name=name)["Parameter"]["Value"])
        except ClientError as error:
            raise ServiceError(
                f"Unable to fetch parameters [{name}] from parameter store for this account."
            ) from error

    return read_parameters(template, given, previous, read_ssm)


def _check_capabilities(request: dict[str, Any], template: dict[str, Any]) -> None:
    """Ask for the IAM acknowledgement as AWS does, so that a script without it fails here too."""
    given = set(request.get("Capabilities") or [])
    iam = [
        r for r in template["Resources"].values() if str(r.get("Type", "")).startswith("AWS::IAM::")
    ]
    named = {"RoleName", "ManagedPolicyName", "UserName", "GroupName", "InstanceProfileName"}
    enough = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"]
    if any(named & set(r.get("Properties") or {}) for r in iam):
        enough = enough[1:]
    if iam and not given.intersection(enough):
        code = "InsufficientCapabilitiesException"
        raise ServiceError(f"Requires capabilities : [{enough[0]}]", code)


def new_stack(caller: Caller, request: dict[str, Any], status: str, submitted: Submission) -> Stack:
    name = request["StackName"]
    if not re.fullmatch("[a-zA-Z][-a-zA-Z0-9]{0,127}", name):
        raise ServiceError(
            f"1 validation error detected: Value '{name}' at 'stackName' failed to satisfy "
            "constraint: Member must satisfy regular expression pattern: [a-zA-Z][-a-zA-Z0-9]*, and "
            "have length less than or equal to 128"
        )
    stack = Stack(
        name,
        _new_stack_id(caller, name),
        status,
        submitted,
        role_arn=request.get("RoleARN"),
        notification_arns=request.get("NotificationARNs", []),
        termination_protection=bool(request.get("EnableTerminationProtection")),
    )
    stacks_of(caller).alive[name] = stack
    return stack


def start(
    caller: Caller,
    request: dict[str, Any],
    stack: Stack,
    status: str,
    work: Callable[[StackOperation], None],
) -> dict[str, Any]:
    """Run an operation beside the request, as AWS does: callers poll."""
    stack.token = request.get("ClientRequestToken")
    stack.role_arn = request.get("RoleARN") or stack.role_arn
    stack.disable_rollback = bool(request.get("DisableRollback"))
    stack.retain_except_on_create = bool(request.get("RetainExceptOnCreate"))
    stack.notification_arns = request.get("NotificationARNs", stack.notification_arns)
    stack.status, former = status, stack.worker
    operation = StackOperation(place_of(caller, stack), stacks_of(caller), stack)

    def guarded() -> None:
        if former is not None:
            former.join()
        try:
            work(operation)
        except Exception as error:
            # The stack must never hang in IN_PROGRESS because of a mistake of ours.
            logger.exception("operation on stack %s", stack.name)
            verb = stack.status.split("_")[0]
            stack.set_status(f"{verb}_FAILED", f"local AWS internal error: {error!r}")

    stack.worker = threading.Thread(target=guarded, name=f"stack-{stack.name}", daemon=True)
    stack.worker.start()
    return {"StackId": stack.id}


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
    """Say whether outputs, tags or metadata differ although no resource does.

    `DeletionPolicy` and `UpdateReplacePolicy` alone are no update, as AWS users report until 2023
    (cloudformation-coverage-roadmap#1543, aws-cdk#11521). One account of 2026 took them for one
    (ministackorg/ministack#1646); who relies on that may be wrong, so it is refused here.
    """
    template, former = submitted.template, stack.submitted.template
    if (template.get("Outputs") or {}) != (former.get("Outputs") or {}):
        return True
    if submitted.tags != stack.submitted.tags:
        return True
    for name, declared in template["Resources"].items():
        old = former["Resources"].get(name, {})
        if declared.get("Metadata") != old.get("Metadata"):
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
    if request.get("ImportExistingResources"):
        _refuse_imports(changes, submitted.template)
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


def _refuse_imports(changes: list[dict[str, Any]], template: Mapping[str, Any]) -> None:
    """Refuse to pass over what CloudFormation would import, if it exists; the rest it creates.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/import-resources-automatically.html
    """
    added = [c["ResourceChange"] for c in changes if c["ResourceChange"]["Action"] == "Add"]
    ids = [change["LogicalResourceId"] for change in added]
    if names := [name for name in ids if _is_importable(template["Resources"][name])]:
        raise ServiceError(
            f"CreateChangeSet with ImportExistingResources would import [{', '.join(names)}] if they "
            "exist, which is not emulated by the local AWS"
        )


def _is_importable(declared: Mapping[str, Any]) -> bool:
    identifier = (schema_of(declared["Type"]) or {}).get("identifier", ())
    stated = declared.get("Properties", {})
    named = [isinstance(stated.get(name), str) for name in identifier]
    retained = declared.get("DeletionPolicy") in ("Retain", "RetainExceptOnCreate")
    return retained and bool(named) and all(named)


def _note_drift(changes: list[dict[str, Any]], stack: Stack, live: Stack) -> str:
    """Say in the changes what drifted; gives the drift status of the stack."""
    was = {name: resource.properties for name, resource in stack.resources.items()}
    found = {name: resource.properties for name, resource in live.resources.items()}
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
        stack.check_status("CreateChangeSet")
        stack.role_arn = request.get("RoleARN") or stack.role_arn
        stack.notification_arns = request.get("NotificationARNs", stack.notification_arns)
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


def find_change_set(caller: Caller, request: dict[str, Any]) -> tuple[Stack, ChangeSet]:
    """Find a change set by its ID, or by its name within its stack: two stacks may share one."""
    change_set_name = request["ChangeSetName"]
    for stack in stacks_of(caller).named(request.get("StackName")):
        for change_set in stack.change_sets.values():
            if change_set_name == change_set.id or (
                change_set_name == change_set.name and request.get("StackName")
            ):
                return stack, change_set
    raise ServiceError(f"ChangeSet [{change_set_name}] does not exist", "ChangeSetNotFound", 404)


def describe_change_set(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    return described_change_set(*find_change_set(caller, request))


def delete_change_set(caller: Caller, request: dict[str, Any]) -> None:
    """DeleteChangeSet; an absent change set is no error."""
    try:
        stack, change_set = find_change_set(caller, request)
    except ServiceError as error:
        if error.code == "ChangeSetNotFound" or "does not exist" in error.message:
            return
        raise
    del stack.change_sets[change_set.id]


def execute_change_set(caller: Caller, request: dict[str, Any]) -> None:
    stack, change_set = find_change_set(caller, request)
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
