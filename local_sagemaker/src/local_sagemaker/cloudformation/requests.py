"""What the requests about stacks and about change sets have in common."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from ..admission import Session
from ..application import Caller
from ..connections import local_client
from ..permissions.principals import NotAssumable, check_trust, credentials_of, service_session
from ..protocols import ServiceError
from ..resources.resource_type import Place
from . import descriptions
from .dependencies import check_references
from .engine import StackOperation
from .stacks import Stack, StackStore, store
from .template import ParameterValue, Submission, parse_template, read_parameters

logger = logging.getLogger(__name__)

_UPDATABLE = (
    "CREATE_COMPLETE",
    "UPDATE_COMPLETE",
    "UPDATE_ROLLBACK_COMPLETE",
    "UPDATE_FAILED",
    "IMPORT_COMPLETE",
)


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
    template = parse_template(body)
    check_references(template)
    _check_capabilities(request, template)
    tags = before.tags
    if "Tags" in request:
        tags = {tag["Key"]: tag["Value"] for tag in request["Tags"]}
    parameters = _parameters(caller, request, template, before.parameters)
    return Submission(body, template, parameters, tags, request.get("Capabilities", []))


def template_body(caller: Caller, request: dict[str, Any]) -> str:
    """Give the request's template, from the request itself or from S3."""
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
    previous: dict[str, ParameterValue],
) -> dict[str, ParameterValue]:
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


def new_stack(caller: Caller, request: dict[str, Any], status: str, submitted: Submission) -> Stack:
    name = request["StackName"]
    stack = Stack(
        name,
        f"arn:aws:cloudformation:{caller.region}:{caller.account}:stack/{name}/{uuid.uuid4()}",
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
    stack.status = status
    operation = StackOperation(place_of(caller, stack), stacks_of(caller), stack)

    def guarded() -> None:
        try:
            work(operation)
        except Exception as error:
            # The stack must never hang in IN_PROGRESS because of a mistake of ours.
            logger.exception("operation on stack %s", stack.name)
            verb = stack.status.split("_")[0]
            stack.set_status(f"{verb}_FAILED", f"local AWS internal error: {error!r}")

    threading.Thread(target=guarded, name=f"stack-{stack.name}", daemon=True).start()
    return {"StackId": stack.id}


def check_updatable(stack: Stack) -> None:
    if stack.status not in _UPDATABLE:
        raise ServiceError(f"Stack:{stack.id} is in {stack.status} state and can not be updated.")
