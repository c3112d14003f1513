"""Deploying without the CDK CLI: for tests, in a second or two."""

from __future__ import annotations

import hashlib
import io
import json
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from botocore.exceptions import ClientError

from .server import LocalAws

_CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"]
_LARGEST_BODY = 51_200  # bytes that CloudFormation takes inline
_BOOTSTRAP_VERSION = "/cdk-bootstrap/hnb659fds/version"


class DeploymentFailed(Exception):
    """A stack could not be deployed or deleted.

    Attributes
    ----------
    reason : str
        What CloudFormation said.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class DeployedStack:
    """A stack after a deployment."""

    name: str  # of the stack
    id: str  # its ARN
    status: str  # the final status, such as `CREATE_COMPLETE`
    outputs: dict[str, str] = field(default_factory=dict)  # output values by key
    resources: dict[str, str] = field(default_factory=dict)  # physical ids by logical id
    # the stack's whole history as DescribeStackEvents gives it, oldest first
    events: list[dict[str, Any]] = field(default_factory=list)
    failure_reason: str | None = None  # the first failure of this deployment, or None


def deploy_template(
    aws: LocalAws,
    source: str | Path | Mapping[str, Any],
    stack_name: str,
    parameters: Mapping[str, str] | None = None,
    *,
    expect_failure: bool = False,
    tags: Mapping[str, str] | None = None,
    role_arn: str | None = None,
    timeout: float = 120.0,
) -> DeployedStack:
    """Create a stack, or update it when it exists, and wait for the end.

    Parameters
    ----------
    aws : LocalAws
        Where to deploy.
    source : str, Path or mapping
        A template, or the folder of a synthesized app (``cdk.out``), whose file assets are published.
    stack_name : str
        The stack.
    parameters : mapping of str to str, optional
        The template's parameters; by default none.
    expect_failure : bool
        Return a failed deployment instead of raising; by default no.
    tags : mapping of str to str, optional
        Tags of the stack; by default none.
    role_arn : str, optional
        The role whose rights CloudFormation has, also when the stack is deleted; by default those of
        the caller.
    timeout : float
        Seconds to wait; by default 120.
    """
    cloudformation = aws.client("cloudformation")
    if isinstance(source, Mapping):
        body = json.dumps(source)
    else:
        body = _publish(aws, Path(source), stack_name)
    arguments: dict[str, Any] = {
        "StackName": stack_name,
        **_template(aws, body),
        "Capabilities": _CAPABILITIES,
        "Parameters": [
            {"ParameterKey": key, "ParameterValue": value}
            for key, value in (parameters or {}).items()
        ],
    }
    if tags is not None:
        arguments["Tags"] = [{"Key": key, "Value": value} for key, value in tags.items()]
    if role_arn is not None:
        arguments["RoleARN"] = role_arn
    before = _describe(cloudformation, stack_name)
    if before is not None and before["StackStatus"] == "ROLLBACK_COMPLETE":
        # A stack that failed at creation can only be deleted; the CDK CLI does the same.
        delete_stack(aws, stack_name)
        before = None
    seen = 0
    try:
        if before is None:
            stack_id = cloudformation.create_stack(**arguments)["StackId"]
        else:
            seen = len(_events(cloudformation, before["StackId"]))
            stack_id = cloudformation.update_stack(**arguments)["StackId"]
    except ClientError as error:
        message = error.response["Error"]["Message"]
        if before is not None and message == "No updates are to be performed.":
            return _result(cloudformation, before["StackId"], seen)
        if not expect_failure:
            raise DeploymentFailed(message) from error
        status = before["StackStatus"] if before else "REFUSED"
        return DeployedStack(stack_name, "", status, failure_reason=message)
    status = _wait(cloudformation, stack_id, timeout)
    result = _result(cloudformation, stack_id, seen)
    if status not in ("CREATE_COMPLETE", "UPDATE_COMPLETE") and not expect_failure:
        raise DeploymentFailed(result.failure_reason or status)
    return result


def delete_stack(aws: LocalAws, stack_name: str, *, timeout: float = 120.0) -> None:
    """Delete a stack and wait; one that does not exist is no error.

    Parameters
    ----------
    aws : LocalAws
        Where the stack is.
    stack_name : str
        The stack.
    timeout : float
        Seconds to wait; by default 120.
    """
    cloudformation = aws.client("cloudformation")
    stack = _describe(cloudformation, stack_name)
    if stack is None:
        return
    seen = len(_events(cloudformation, stack["StackId"]))
    try:
        cloudformation.delete_stack(StackName=stack_name)
    except ClientError as error:
        raise DeploymentFailed(error.response["Error"]["Message"]) from error
    if _wait(cloudformation, stack["StackId"], timeout) != "DELETE_COMPLETE":
        raise DeploymentFailed(
            _failure(_events(cloudformation, stack["StackId"])[seen:]) or "DELETE_FAILED"
        )


def _describe(cloudformation: Any, name: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    except ClientError as error:
        if "does not exist" in error.response["Error"]["Message"]:
            return None
        raise
    return found


def _wait(cloudformation: Any, stack_id: str, timeout: float) -> str:
    begun = time.monotonic()
    while (waited := time.monotonic() - begun) < timeout:
        # A deleted stack is still found by its ID.
        stack = cast(dict[str, Any], _describe(cloudformation, stack_id))
        status = str(stack["StackStatus"])
        if not status.endswith("_IN_PROGRESS"):
            return status
        # Asking takes the local AWS as long as creating a small resource: ask less and less often.
        time.sleep(min(0.5, max(0.05, 0.2 * waited)))
    raise DeploymentFailed(f"{stack_id} was still {status} after {timeout:.0f} s")


def _events(cloudformation: Any, stack_id: str) -> list[dict[str, Any]]:
    pages = cloudformation.get_paginator("describe_stack_events").paginate(StackName=stack_id)
    return list(reversed(pages.build_full_result()["StackEvents"]))


def _failure(events: list[dict[str, Any]]) -> str | None:
    for event in events:
        if event["ResourceStatus"].endswith("_FAILED"):
            return f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason', '')}"
    for event in events:
        if "ROLLBACK" in event["ResourceStatus"] and event.get("ResourceStatusReason"):
            return str(event["ResourceStatusReason"])
    return None


def _result(cloudformation: Any, stack_id: str, seen: int) -> DeployedStack:
    stack = cast(dict[str, Any], _describe(cloudformation, stack_id))
    # DescribeStackResources gives the first hundred.
    pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack_id)
    resources = [resource for page in pages for resource in page["StackResourceSummaries"]]
    events = _events(cloudformation, stack_id)
    return DeployedStack(
        name=stack["StackName"],
        id=stack_id,
        status=stack["StackStatus"],
        outputs={o["OutputKey"]: o["OutputValue"] for o in stack.get("Outputs", [])},
        resources={r["LogicalResourceId"]: r.get("PhysicalResourceId", "") for r in resources},
        events=events,
        failure_reason=_failure(events[seen:]),
    )


# ------------------------------------------------------------------------------------------ assets


def _template(aws: LocalAws, body: str) -> dict[str, str]:
    """Give a template as a request states it: a large one from S3, as the CDK CLI does."""
    data = body.encode()
    if len(data) <= _LARGEST_BODY:
        return {"TemplateBody": body}
    s3, bucket = aws.client("s3"), f"cdk-hnb659fds-assets-{aws.account}-{aws.region}"
    key = f"{hashlib.sha256(data).hexdigest()}.json"
    _ensure_bucket(s3, aws.region, bucket)
    s3.put_object(Bucket=bucket, Key=key, Body=data)
    return {"TemplateURL": f"https://s3.{aws.region}.amazonaws.com/{bucket}/{key}"}


def _publish(aws: LocalAws, folder: Path, stack_name: str) -> str:
    """Publish a cloud assembly's file assets; gives the stack's template."""
    manifest = json.loads((folder / "manifest.json").read_text())
    stacks = {
        artifact.get("properties", {}).get("stackName", name): artifact
        for name, artifact in manifest["artifacts"].items()
        if artifact["type"] == "aws:cloudformation:stack"
    }
    if stack_name not in stacks and len(stacks) == 1:
        artifact = next(iter(stacks.values()))
    elif stack_name in stacks:
        artifact = stacks[stack_name]
    else:
        raise DeploymentFailed(f"{folder} has the stacks {', '.join(stacks)} but no {stack_name}")
    for name in artifact.get("dependencies", []):
        dependency = manifest["artifacts"][name]
        if dependency["type"] == "cdk:asset-manifest":
            _publish_files(aws, folder, dependency["properties"]["file"])
    return (folder / artifact["properties"]["templateFile"]).read_text()


def _publish_files(aws: LocalAws, folder: Path, manifest_file: str) -> None:
    # CDK's bootstrap-version rule reads this parameter, bootstrapped or not.
    ssm = aws.client("ssm")
    try:
        ssm.get_parameter(Name=_BOOTSTRAP_VERSION)
    except ClientError:
        ssm.put_parameter(Name=_BOOTSTRAP_VERSION, Value="30", Type="String")
    manifest = json.loads((folder / manifest_file).read_text())
    s3 = aws.client("s3")
    for asset in manifest.get("files", {}).values():
        path = folder / asset["source"]["path"]
        data = _zipped(path) if asset["source"]["packaging"] == "zip" else path.read_bytes()
        for destination in asset["destinations"].values():
            bucket = _fill_in(aws, destination["bucketName"])
            _ensure_bucket(s3, aws.region, bucket)
            s3.put_object(Bucket=bucket, Key=_fill_in(aws, destination["objectKey"]), Body=data)


def _fill_in(aws: LocalAws, text: str) -> str:
    """Replace the place holders of an environment-agnostic assembly."""
    for name, value in (("AccountId", aws.account), ("Region", aws.region), ("Partition", "aws")):
        text = text.replace("${AWS::" + name + "}", value)
    return text


def _ensure_bucket(s3: Any, region: str, bucket: str) -> None:
    try:
        s3.head_bucket(Bucket=bucket)
    except ClientError:
        where = (
            {}
            if region == "us-east-1"
            else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        )
        s3.create_bucket(Bucket=bucket, **where)


def _zipped(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
    return buffer.getvalue()
