"""Asks a custom resource's function to create, update or delete.

It PUTs its answer to a URL; here that is a one-shot listener on loopback.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
import uuid
from typing import Any

from moto.awslambda.exceptions import UnknownFunctionException
from moto.awslambda.utils import get_backend

from .. import lambda_runner
from ..corrections.lambda_functions import run
from ..permissions.judge import Denied, check
from ..permissions.principals import identify
from ..permissions.requests import Right
from ..protocols import ServiceError
from ..runtime.http_server import LOOPBACK, Connection, Limits, Request, listening
from .calls import as_text
from .resource_type import Created, Existing, Place, Properties, ResourceType

_SERVICE_TIMEOUT = 3600
"""Seconds, unless the resource says otherwise:
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudformation-customresource.html"""
_LARGEST_ANSWER = 1024 * 1024
_PAUSE = 0.02
_ENDING = 10.0
_RETRY_PAUSES = (0.1, 0.2)
"""Seconds before Lambda runs a function again that failed, here instead of one and two minutes:
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html"""


def _send(
    at: Place, kind: str, properties: Properties, existing: Existing | None = None, **more: Any
) -> Created:
    """Send a request (Create, Update or Delete) to the resource's function and wait for the answer."""
    token = as_text(properties["ServiceToken"])
    event = {
        "RequestType": kind,
        "ServiceToken": token,
        "ResponseURL": "",
        "StackId": at.stack_id,
        "RequestId": str(uuid.uuid4()),
        "LogicalResourceId": at.logical_id,
        "ResourceType": at.type_name,
        "ResourceProperties": _texts(properties),
        **({"PhysicalResourceId": existing.physical_id} if existing else {}),
        **more,
    }
    return _answer(at, _invoked(at, token), event)


def _invoked(at: Place, arn: str) -> Any:
    """Find the function of a service token, which CloudFormation invokes with the stack's rights."""
    if not arn.startswith("arn:aws:lambda:"):
        raise ServiceError(f"A ServiceToken other than a function's is not emulated: {arn}")
    try:
        function = get_backend(at.account, at.region).get_function(arn)
    except UnknownFunctionException as error:
        raise ServiceError(f"Function not found: {arn}") from error
    if at.session is not None:
        try:
            who, right = identify(at.session.access_key), Right("lambda:InvokeFunction", arn, {})
            check(who, [right], "lambda", at.region)
        except Denied as denied:
            raise ServiceError(str(denied), "AccessDenied") from None
    return function


def _answer(at: Place, found: Any, event: dict[str, Any]) -> Created:
    received: dict[str, Any] = {}
    # As at AWS whoever has the URL may answer, and it cannot be guessed.
    path = f"/{secrets.token_urlsafe(24)}"

    async def take(request: Request, connection: Connection) -> None:
        if request.method != "PUT" or request.target != path:
            connection.send(403, (), b"")
            return
        try:
            answer = json.loads(request.body)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            connection.send(400, (), b"")
            return
        received.update(answer)
        connection.send(200, (), b"")

    service_timeout = (event.get("ResourceProperties") or {}).get("ServiceTimeout")
    timeout = float(service_timeout or _SERVICE_TIMEOUT)
    with listening(take, limits=Limits(largest_body=_LARGEST_ANSWER, chunked=True)) as listener:
        url = f"http://{LOOPBACK}:{listener.port}{path}"
        outcomes = _asked(at, found, {**event, "ResponseURL": url}, received, timeout)
    if not received:
        said = outcomes[-1].error or outcomes[-1].log[-500:] if outcomes else ""
        raise ServiceError(
            "CloudFormation did not receive a response from your Custom Resource: "
            f"{said or 'the function ended without one'}"
        )
    if received.get("Status") != "SUCCESS":
        raise ServiceError(
            f"Received response status [FAILED] from custom resource. Message returned: "
            f"{received.get('Reason', '')}"
        )
    if not received.get("PhysicalResourceId"):
        raise ServiceError("Invalid PhysicalResourceId in the custom resource's response")
    return Created(str(received["PhysicalResourceId"]), received.get("Data") or {})


def _asked(
    at: Place, found: Any, event: dict[str, Any], received: dict[str, Any], timeout: float
) -> list[lambda_runner.InvocationResult]:
    """Ask a function, and wait until it, or whoever it has told, answers.

    The time is by the clock, and no shorter than the function's own by a real one: functions run
    in real time. CloudFormation waits for all of it; here nobody waits when no function runs any
    more that could answer. One that has answered may end: its log is still to be written.

    CloudFormation invokes asynchronously, so Lambda runs a function that fails, by an error, its
    timeout or an end of its process, twice more; here only while nobody has answered.
    """
    outcomes: list[lambda_runner.InvocationResult] = []
    arn = str(found.function_arn)
    deadline, begun = at.clock.now() + timeout, [time.monotonic()]
    over = threading.Event()

    def invoke() -> None:
        for pause in (*_RETRY_PAUSES, None):
            begun.append(time.monotonic())
            outcomes.append(run(found, at.url, event))
            if not outcomes[-1].failed or received or pause is None or over.wait(pause):
                return

    lambda_runner.in_background(arn, invoke)
    while (
        not received
        and lambda_runner.is_running()
        and (at.clock.now() < deadline or time.monotonic() < begun[-1] + int(found.timeout or 3))
    ):
        time.sleep(_PAUSE)
    over.set()
    ends = time.monotonic() + _ENDING
    while received and lambda_runner.is_running(arn) and time.monotonic() < ends:
        time.sleep(_PAUSE)
    return outcomes


class CustomResource(ResourceType):
    """A resource that a function of the stack looks after."""

    properties = frozenset({"ServiceToken"})
    replaces = frozenset({"ServiceToken"})

    def honours(self, name: str) -> bool:
        """Every property is honoured: all of them go to the function."""
        return True

    def create(self, at: Place, properties: Properties) -> Created:
        return _send(at, "Create", properties)

    def update(self, at: Place, existing: Existing, properties: Properties) -> Created:
        old = _texts(existing.properties)
        return _send(at, "Update", properties, existing, OldResourceProperties=old)

    def delete(self, at: Place, existing: Existing) -> None:
        _send(at, "Delete", existing.properties, existing)


def _texts(value: Any) -> Any:
    """CloudFormation hands every scalar to the function as text."""
    if isinstance(value, dict):
        return {key: _texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_texts(item) for item in value]
    return as_text(value)
