"""The function behind the custom resources of a staged model.

Three kinds, one after another: ``Custom::HubModelUse`` notes that the stack uses the commit and, at
its end, removes what nobody uses; ``Custom::HubModelFiles`` copies some of the files;
``Custom::HubModelCheck`` confirms that all are there. Each may be run again at any time: Lambda
does so when a function was killed.
"""

from __future__ import annotations

import hashlib
import json
import time
import urllib.request
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import boto3
from botocore.config import Config

from .addresses import StagingFailed
from .bucket import Bucket, Commit, File
from .hub import Hub

USE, FILES, CHECK = "Custom::HubModelUse", "Custom::HubModelFiles", "Custom::HubModelCheck"
MARGIN = 45.0
"""Seconds for what is written to S3, and for the answer."""
_REASON_LIMIT = 1500  # bytes, of the 4,096 that CloudFormation takes
_ANSWER_TRIES = 5


def handler(event: Mapping[str, Any], context: Any) -> None:
    """Do what CloudFormation asks, and answer."""
    properties = event["ResourceProperties"]
    commit = Commit(properties["Model"], properties["Commit"], properties["FileList"])
    problem = ""
    try:
        said = _act(event, properties, commit, context)
    except StagingFailed as failed:
        said = problem = str(failed)
    except Exception as error:  # AWS's, which name no tokens; CloudFormation must hear of it
        said = problem = f"{type(error).__name__}: {error}"
    _log({"request": event["RequestType"], "type": event["ResourceType"], "said": said})
    log = f" (log: {context.log_group_name} {context.log_stream_name})"
    reason = _shortened(problem) + log if problem else ""
    _answer(event, _identity(event, problem), reason)


def _shortened(reason: str) -> str:
    """Cut a reason to its limit in bytes of JSON, where a letter such as "é" takes six."""
    while (size := len(json.dumps(reason))) > _REASON_LIMIT:
        reason = reason[: len(reason) * _REASON_LIMIT // size]
    return reason


def _identity(event: Mapping[str, Any], problem: str = "") -> str:
    """The resource's physical ID.

    Another commit, or bucket, is another resource, whose former one CloudFormation deletes after
    the update. An update that fails makes no other one.
    """
    if "PhysicalResourceId" in event and (problem or event["RequestType"] == "Delete"):
        return str(event["PhysicalResourceId"])
    properties = event["ResourceProperties"]
    commit = Commit(properties["Model"], properties["Commit"], properties["FileList"])
    return f"{properties['Bucket']}/{commit.prefix}{properties.get('Part', '')}"


def user_of(stack_id: str, logical_id: str) -> str:
    """The name of the note that a stack uses a commit."""
    return hashlib.sha256(f"{stack_id}\n{logical_id}".encode()).hexdigest()


def _act(
    event: Mapping[str, Any], properties: Mapping[str, Any], commit: Commit, context: Any
) -> str:
    kind, ends = event["ResourceType"], event["RequestType"] == "Delete"
    if ends and kind != USE:
        return "nothing to do"
    bucket = Bucket(_client("s3"), properties["Bucket"], go_on=partial(_check_time, context))
    user = user_of(event["StackId"], event["LogicalResourceId"])
    if ends:
        return bucket.release(commit, user)
    bucket.await_rights(commit)
    if kind == USE:
        # First the note, then the look: from here on no other stack removes what is there.
        bucket.use(commit, user, f"{event['StackId']} {event['LogicalResourceId']}")
        try:
            there = bucket.found(commit, properties["Paths"])
        except StagingFailed:
            if event.get("PhysicalResourceId") != _identity(event):
                bucket.no_use(commit, user)  # of what was in use before, the note stays
            raise
        return f"{len(there)} files are there already"
    if kind == CHECK:
        bucket.confirm(commit, properties["Paths"])
        return "all files are there"
    if kind == FILES:
        return copy_files(bucket, commit, properties, context)
    raise ValueError(f"{kind} is none of a staged model's resources")


def copy_files(bucket: Bucket, commit: Commit, properties: Mapping[str, Any], context: Any) -> str:
    """Copy what is not there, and say how quickly."""
    began, copied = time.monotonic(), 0
    hub: Hub | None = None

    def left() -> float:
        seconds: float = context.get_remaining_time_in_millis() / 1000 - MARGIN
        if seconds <= 0:
            raise StagingFailed("LLE352", f"the function's time is over: {rate()}. {_WAY_OUT}")
        return seconds

    def rate() -> str:
        seconds = max(time.monotonic() - began, 0.001)
        return f"{copied} bytes in {seconds:.1f} s, {copied / seconds / 1e6:.1f} MB/s"

    for file in map(file_of, properties["Files"]):
        if bucket.has(commit, file):
            continue
        if file.size > int(properties["LargestFile"]):
            raise StagingFailed("LLE352", f"{file.path}: {file.size} bytes. {_WAY_OUT}")
        hub = hub or Hub(properties["HubEndpoint"], _token(properties), left=left)

        def read(file: File = file, hub: Hub = hub) -> Any:
            nonlocal copied
            for piece in hub.pieces(commit.model, commit.commit, file.path, file.size):
                copied += len(piece)
                yield piece

        bucket.put(commit, file, read)
        _log({"file": file.path, "bytes": file.size, "so far": rate()})
    return rate() if hub else "all files are there already"


def _check_time(context: Any) -> None:
    """Read back no further than the function's time allows."""
    if context.get_remaining_time_in_millis() / 1000 <= MARGIN:
        raise StagingFailed(
            "LLE352", "the function's time is over before it has read back what is there already"
        )


_WAY_OUT = "Stage the model before the deployment: low-latency stage"


def file_of(line: str) -> File:
    """A file as a resource's property has it: hash, size and path."""
    sha256, size, path = line.split(" ", 2)
    return File(path, int(size), sha256)


def _token(properties: Mapping[str, Any]) -> str:
    secret = properties.get("TokenSecretArn")
    if not secret:
        return ""
    value = _client("secretsmanager").get_secret_value(SecretId=secret).get("SecretString", "")
    return str(value).strip()


def _client(service: str) -> Any:
    return boto3.client(service, config=Config(retries={"mode": "standard", "max_attempts": 5}))


def _log(line: Mapping[str, Any]) -> None:
    print(json.dumps(line))


def _answer(
    event: Mapping[str, Any],
    identity: str,
    problem: str,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """PUT the answer, as CloudFormation waits for it.

    See https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-responses.html
    """
    answer = {
        "Status": "FAILED" if problem else "SUCCESS",
        "Reason": problem,
        "PhysicalResourceId": identity,
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        "Data": {"Bucket": event["ResourceProperties"]["Bucket"]},
    }
    request = urllib.request.Request(
        event["ResponseURL"],
        data=json.dumps(answer).encode(),
        method="PUT",
        headers={"Content-Type": ""},
    )
    for attempt in range(_ANSWER_TRIES):
        try:
            with urllib.request.urlopen(request, timeout=10):
                return
        except OSError as error:
            # Without the answer the function has failed: Lambda runs it again.
            if attempt == _ANSWER_TRIES - 1:
                raise RuntimeError(f"not answered: {type(error).__name__}") from None
            sleep(2.0**attempt)
