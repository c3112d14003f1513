"""Asks a custom resource's function to create, update or delete.

It PUTs its answer to a URL; here that is a one-shot listener on loopback.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
import uuid
from collections.abc import Mapping
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
_LARGEST_ANSWER = 4096
_LARGEST_ID = 1024
"""Bytes, both:
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-responses.html"""
_LARGEST_BODY = 1024 * 1024
_VERBATIM = ("RequestId", "StackId", "LogicalResourceId")
_PAUSE = 0.02
_ENDING = 10.0
_CANCELLED = 1.0
"""Seconds that a request gets whose resource is cancelled; the function goes on after that."""
_RETRY_PAUSES = (0.1, 0.2)
"""Seconds before Lambda runs a function again that failed, here instead of one and two minutes:
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html"""


class CustomResource(ResourceType):
    """A resource that a function of the stack looks after."""

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


class ProviderAnswer:
    """What a function answered to one request."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._request = request
        self.document: dict[str, Any] = {}
        self.problem = ""
        """Why the resource fails, whatever the document says."""
        self.passed_over = ""
        """What was wrong with an answer that was not taken for one to this request."""
        self.taken = False
        """Whether CloudFormation waits no longer."""

    @property
    def physical_id(self) -> str:
        """The physical ID; empty where none was given that is valid."""
        identity = self.document.get("PhysicalResourceId")
        valid = isinstance(identity, str) and len(identity.encode()) <= _LARGEST_ID
        return str(identity) if valid else ""

    def put(self, body: bytes) -> None:
        """Judge what was put at the URL; the first answer to the request counts."""
        if self.taken:
            return
        if len(body) > _LARGEST_ANSWER:
            self.problem, self.taken = "Response object is too long.", True
            return
        try:
            document = json.loads(body)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            self.passed_over = "an answer that is no JSON object was not taken"
            return
        wrong = [name for name in _VERBATIM if document.get(name) != self._request[name]]
        if wrong:
            self.passed_over = f"an answer with another {', '.join(wrong)} was not taken"
            return
        self.document = document
        self.problem = self._problem()
        self.taken = True

    def _problem(self) -> str:
        """Say what is wrong with the answer, or that it is a failure."""
        status, reason = (self.document.get(name, "") for name in ("Status", "Reason"))
        if not self.physical_id:
            return "Invalid PhysicalResourceId"
        if not isinstance(reason, str):
            return "Invalid Response object: Value of property Reason must be of type String"
        if not isinstance(self.document.get("Data") or {}, dict):
            return (
                "Value of property Data must be an object with String (or simple type) properties"
            )
        if status == "SUCCESS":
            return ""
        if status != "FAILED":
            return "Invalid Response object: Status must be SUCCESS or FAILED"
        return (
            "Received response status [FAILED] from custom resource. Message returned: "
            f"{reason} (RequestId: {self._request['RequestId']})"
        )


def _send(
    at: Place, kind: str, properties: Properties, existing: Existing | None = None, **more: Any
) -> Created:
    """Send a request (Create, Update or Delete) to the resource's function and wait for the answer.

    A Create that fails is followed by a Delete with the answered ID, or one that CloudFormation
    makes up: https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/1814. A
    failed Update's ID counts, too: https://github.com/aws/aws-cdk/issues/13527.
    """
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
    answer = _answer(at, _invoked(at, token), event)
    made_up = existing.physical_id if existing else at.generated_name()
    if at.cancelled:
        at.begin(made_up)
        raise ServiceError("Resource creation cancelled")
    created = at.begin(answer.physical_id or made_up, answer.document.get("Data") or {})
    if answer.problem:
        raise ServiceError(answer.problem)
    return created


def _invoked(at: Place, arn: str) -> Any:
    """Find the function of a service token, which CloudFormation invokes with the stack's rights."""
    if not arn.startswith("arn:aws:lambda:"):
        raise ServiceError(f"A ServiceToken other than a function's is not emulated: {arn}")
    try:
        function = get_backend(at.account, at.region).get_function(arn)
    except UnknownFunctionException as error:
        raise ServiceError(f"Function not found: {arn}") from error
    if not str(function.run_time).startswith("python"):
        name = function.function_name
        raise ServiceError(
            f"the local AWS runs Python functions only; {name} is {function.run_time}"
        )
    if at.session is not None:
        try:
            who, right = identify(at.session.access_key), Right("lambda:InvokeFunction", arn, {})
            check(who, [right], "lambda", at.region)
        except Denied as denied:
            raise ServiceError(str(denied), "AccessDenied") from None
    return function


def _answer(at: Place, function: Any, event: dict[str, Any]) -> ProviderAnswer:
    """Ask the function, and give its answer, or why there is none."""
    answer = ProviderAnswer(event)
    # As at AWS whoever has the URL may answer, and it cannot be guessed.
    path = f"/{secrets.token_urlsafe(24)}"

    async def take(request: Request, connection: Connection) -> None:
        ours = request.method == "PUT" and request.target == path
        if ours:
            answer.put(request.body)
        # Like S3 it takes whatever is put there.
        connection.send(200 if ours else 403, (), b"")

    with listening(take, limits=Limits(largest_body=_LARGEST_BODY, chunked=True)) as listener:
        url = f"http://{LOOPBACK}:{listener.port}{path}"
        outcomes = _asked(at, function, {**event, "ResponseURL": url}, answer)
    if not answer.taken:
        last = outcomes[-1].error or outcomes[-1].log[-500:] if outcomes else ""
        answer.problem = (
            "CloudFormation did not receive a response from your Custom Resource: "
            f"{answer.passed_over or last or 'the function ended without one'}"
        )
    return answer


def _asked(
    at: Place, found: Any, event: dict[str, Any], answer: ProviderAnswer
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
    timeout = float(event["ResourceProperties"].get("ServiceTimeout") or _SERVICE_TIMEOUT)
    patience = float(found.timeout or 3)
    if at.cancelled:
        timeout, patience = 0.0, _CANCELLED
    deadline, begun = at.clock.now() + timeout, [time.monotonic()]
    over = threading.Event()

    def invoke() -> None:
        for pause in (*_RETRY_PAUSES, None):
            begun.append(time.monotonic())
            outcomes.append(run(found, at.url, event))
            if not outcomes[-1].failed or answer.taken or pause is None or over.wait(pause):
                return

    lambda_runner.in_background(arn, invoke)
    while (
        not answer.taken
        and lambda_runner.is_running()
        and (at.clock.now() < deadline or time.monotonic() < begun[-1] + patience)
    ):
        time.sleep(_PAUSE)
    over.set()
    ends = time.monotonic() + _ENDING
    while answer.taken and lambda_runner.is_running(arn) and time.monotonic() < ends:
        time.sleep(_PAUSE)
    return outcomes
