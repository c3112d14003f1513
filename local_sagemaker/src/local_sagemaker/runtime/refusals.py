"""Refusals in AWS's words, and what a request's headers must be."""

from __future__ import annotations

import json
import uuid

from ..signatures import region_of_token
from .endpoints import RuntimeEndpoint
from .http_server import Connection, Nobody


class Refusal(Exception):
    """An answer that is an error of SageMaker Runtime."""

    def __init__(self, status: int, code: str, message: str | None, **fields: object) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.document = {"Message": message, **fields}


def invalid(message: str) -> Refusal:
    return Refusal(400, "ValidationError", message)


class ModelFailed(Exception):
    """The model was reached and did not answer with 2xx."""

    def __init__(self, status: int, refusal: Refusal) -> None:
        super().__init__(str(refusal))
        self.status = status
        self.refusal = refusal

    @classmethod
    def of(cls, endpoint: RuntimeEndpoint, status: int, message: str) -> ModelFailed:
        """Make the ModelError of a status and a message."""
        account, region = endpoint.place
        side = "client" if 400 <= status <= 499 else "server"
        group = f"/aws/sagemaker/Endpoints/{endpoint.name}"
        text = (
            f'Received {side} error ({status}) from primary with message "{message}". See '
            f"https://{region}.console.aws.amazon.com/cloudwatch/home?region={region}"
            f"#logEventViewer:group={group} in account {account} for more information."
        )
        refusal = Refusal(
            424,
            "ModelError",
            text,
            OriginalStatusCode=status,
            OriginalMessage=message,
            LogStreamArn=f"arn:aws:logs:{region}:{account}:log-group:{group}",
        )
        return cls(status, refusal)


def refuse(connection: Connection | Nobody, refusal: Refusal) -> None:
    connection.send(
        refusal.status,
        [
            ("content-type", "application/json"),
            ("x-amzn-requestid", str(uuid.uuid4())),
            ("x-amzn-errortype", refusal.code),
        ],
        json.dumps(refusal.document).encode(),
    )


COMPONENT_REQUIRED = (
    "Inference Component Name header is required for endpoints to which you plan to deploy "
    "inference components. Please include Inference Component Name header or consider using "
    "SageMaker models."
)
COMPONENT_NOT_ALLOWED = (
    "Inference Component Name header is not allowed for endpoints to which you dont plan to deploy "
    "inference components. Please remove the Inference Component Name header and try again."
)
NO_COPY = (
    "Inference Component has no capacity to process this request. ApplicationAutoScaling may be "
    "in-progress (if configured) or try to increase the capacity by invoking "
    "UpdateInferenceComponentRuntimeConfig API."
)
"""All three as users report them."""

PREFIX = "x-amzn-sagemaker-"
#: By header: the member of InvokeEndpoint, and its longest value.
_LENGTHS = {
    "custom-attributes": ("customAttributes", 1024),
    "target-model": ("targetModel", 1024),
    "target-variant": ("targetVariant", 63),
    "target-container-hostname": ("targetContainerHostname", 63),
    "inference-id": ("inferenceId", 64),
    "inference-component": ("inferenceComponentName", 63),
    "session-id": ("sessionId", 256),
    "prefix-aware-id": ("prefixAwareId", 64),
}


def check_lengths(headers: dict[str, str]) -> None:
    """Refuse headers that are longer than they may be."""
    for name, (member, longest) in _LENGTHS.items():
        value = headers.get(PREFIX + name, "")
        if len(value) > longest:
            raise invalid(
                f"1 validation error detected: Value '{value}' at '{member}' failed to satisfy "
                f"constraint: Member must have length less than or equal to {longest}"
            )


def check_stream_session(headers: dict[str, str]) -> None:
    """Refuse to open a session with a stream: it "can't create a stateful session" (API reference)."""
    if headers.get(PREFIX + "session-id") == "NEW_SESSION":
        raise invalid(
            "1 validation error detected: Value 'NEW_SESSION' at 'sessionId' failed to satisfy "
            "constraint: Member must satisfy regular expression pattern: "
            "^[a-zA-Z0-9](-*[a-zA-Z0-9])*$"
        )


def region_of(authorization: str) -> str | None:
    """Read the Region from a signature's credential scope, or a bearer token's."""
    if authorization[:7].lower() == "bearer ":
        return region_of_token(authorization)
    scope = authorization.partition("Credential=")[2].split("/", 4)
    return scope[2] if len(scope) > 3 else None


def forwarded(headers: dict[str, str], streaming: bool) -> list[tuple[str, str]]:
    """Give the headers that reach the container: all others are stripped, as at AWS."""
    accept = headers.get(f"{PREFIX}accept") if streaming else headers.get("accept")
    found = [(name, headers[name]) for name in ("content-type",) if name in headers]
    if accept:
        found.append(("accept", accept))
    found += [
        (name, value)
        for name, value in headers.items()
        if name.startswith(PREFIX) and name != f"{PREFIX}accept"
    ]
    return found
