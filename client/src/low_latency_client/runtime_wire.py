"""Requests and answers of SageMaker Runtime, without the HTTP between them.

botocore's own service model, serializer and parsers do the work, once per distinct set of
parameters: what follows for each further call is a dictionary look-up and a signature.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import botocore.session
from botocore.awsrequest import HeadersDict
from botocore.errorfactory import ClientExceptionsFactory
from botocore.eventstream import EventStreamBuffer
from botocore.exceptions import EventStreamError, ParamValidationError, ResponseStreamingError
from botocore.model import OperationModel, ServiceModel
from botocore.parsers import EventStreamJSONParser, create_parser
from botocore.serialize import create_serializer

from .signing import PreparedRequest, Sigv4Signer, host_of

# Parameters that change from call to call would fill the cache; it starts anew when full.
MOST_PREPARED = 512
MOST_SHOWN = 60  # bytes of an answer that is none
#: AWS: the model's whole answer within 8 minutes.
LONGEST_STREAM = timedelta(minutes=8)
_EVENT_STREAM = "application/vnd.amazon.eventstream"
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Prepared:
    """One request but for its body: first line and headers, signature to come."""

    head: bytes
    request: PreparedRequest

    def signed(self, body: bytes) -> bytes:
        """The whole request for this body, now."""
        return b"%bContent-Length: %d\r\n%b\r\n%b" % (
            self.head,
            len(body),
            self.request.sign(body),
            body,
        )


class Operation:
    """One operation of the service: how its requests and answers look."""

    def __init__(self, model: OperationModel) -> None:
        self.model = model
        self.name: str = model.name
        self.headers = {
            shape.serialization["name"].lower(): member
            for member, shape in model.output_shape.members.items()
            if shape.serialization.get("location") == "header"
        }


@functools.cache
def _service_model() -> ServiceModel:
    """What botocore knows of the service, read once for all clients."""
    model: ServiceModel = botocore.session.get_session().get_service_model("sagemaker-runtime")
    return model


class Wire:
    """Serializes, signs and parses for one client."""

    def __init__(self, signer: Sigv4Signer, headers: Mapping[str, str]) -> None:
        service = _service_model()
        protocol = service.resolved_protocol
        self._service = service
        self._serializer = create_serializer(protocol, include_validation=True)
        self._parser = create_parser(protocol)
        self._event_parser = EventStreamJSONParser()
        self._signer = signer
        self._headers = dict(headers)
        self._prepared: dict[tuple[Any, ...], Prepared] = {}
        self.exceptions = ClientExceptionsFactory().create_client_exceptions(service)
        self.invoke = Operation(service.operation_model("InvokeEndpoint"))
        self.stream = Operation(service.operation_model("InvokeEndpointWithResponseStream"))

    def prepare(self, origin: str, operation: Operation, parameters: dict[str, Any]) -> Prepared:
        """Everything but the body, from the cache where the same was asked before."""
        try:
            key = (origin, operation.name, *parameters.items())
            known = self._prepared.get(key)
        except TypeError:  # an unhashable value: the serializer says what is wrong with it
            key, known = (), None
        if known is None:
            known = self._prepare(origin, operation, parameters)
            if len(self._prepared) >= MOST_PREPARED:
                self._prepared.clear()
            self._prepared[key] = known
        return known

    def _prepare(self, origin: str, operation: Operation, parameters: dict[str, Any]) -> Prepared:
        serialized = self._serializer.serialize_to_request(
            {**parameters, "Body": b""}, operation.model
        )
        headers = {**self._headers, **serialized["headers"]}
        check_header_values(headers)
        url = origin + serialized["url_path"]
        parts = urlsplit(url)
        lines = [
            f"{serialized['method']} {parts.path} HTTP/1.1",
            f"Host: {host_of(url)}",
            "Accept-Encoding: identity",
            *(f"{key}: {text}" for key, text in headers.items()),
        ]
        return Prepared(
            head="".join(f"{line}\r\n" for line in lines).encode(),
            request=PreparedRequest(self._signer, serialized["method"], url, headers),
        )

    def answer(
        self,
        operation: Operation,
        status: int,
        headers: Mapping[str, str],
        body: Any,
        attempts: int,
    ) -> dict[str, Any]:
        """Return boto3's dictionary for a good answer; names of ``headers`` are in lower case."""
        answer: dict[str, Any] = {
            "ResponseMetadata": {
                "RequestId": headers.get("x-amzn-requestid"),
                "HTTPStatusCode": status,
                "HTTPHeaders": headers,
                "RetryAttempts": attempts - 1,
            },
            "Body": body,
        }
        for name, member in operation.headers.items():
            value = headers.get(name)
            if value is not None:
                answer[member] = value
        return answer

    def error(
        self,
        operation: Operation,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
        attempts: int,
    ) -> Any:
        """The ``ClientError`` that boto3 raises for this answer."""
        response = {
            "status_code": status,
            "headers": HeadersDict(headers),
            "body": body,
            "context": {"operation_name": operation.name},
        }
        try:
            parsed, code = self._parsed(operation, response)
        except Exception:  # botocore's parsers raise many for JSON of another form
            parsed, code = self._parsed(operation, {**response, "body": b""})
        parsed["ResponseMetadata"]["RetryAttempts"] = attempts - 1
        return self.exceptions.from_code(code)(parsed, operation.name)

    def _parsed(self, operation: Operation, response: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        parsed = self._parser.parse(response, operation.model.output_shape)
        code = parsed.get("Error", {}).get("Code")
        shape = self._service.shape_for_error_code(code) if code else None
        if shape is not None:
            parsed.update(self._parser.parse(response, shape))
        return parsed, code

    def events(self, buffer: EventBuffer, data: bytes) -> Iterator[dict[str, Any]]:
        """boto3's events that are complete with these bytes."""
        shape = self.stream.model.get_event_stream_output()
        buffer.add_data(data)
        try:
            for message in buffer:
                response = message.to_response_dict()
                parsed = self._event_parser.parse(response, shape)
                if response["status_code"] != 200:
                    raise EventStreamError(parsed, self.stream.name)
                if parsed:
                    yield parsed
        except EventStreamError:
            raise
        except Exception as error:  # botocore's parsers raise many
            raise buffer.error(f"{type(error).__name__}: {error}") from error


class EventBuffer(EventStreamBuffer):  # type: ignore[misc]  # untyped botocore
    """botocore's, which knows whether it is inside an event."""

    def __init__(self, headers: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.unread = 0
        self._first = b""
        self._kind = (headers or {}).get("content-type", _EVENT_STREAM)
        self.is_stream = self._kind.startswith(_EVENT_STREAM)

    def add_data(self, data: bytes) -> None:
        """As botocore's."""
        self.unread += len(data)
        if len(self._first) < MOST_SHOWN:
            self._first += data[:MOST_SHOWN]
        super().add_data(data)

    def next(self) -> Any:
        """As botocore's."""
        message = super().next()
        self.unread -= message.prelude.total_length
        return message

    def error(self, problem: str) -> ResponseStreamingError:
        """What is wrong, or that this is no response stream at all."""
        if not self.is_stream:
            problem = f"an answer of another form, {self._kind}: {self._first[:MOST_SHOWN]!r}"
        return ResponseStreamingError(error=problem)

    def check_end(self) -> None:
        """Take the end of the body, which is the end of an event."""
        if self.unread or not (self.is_stream or self._first):
            raise self.error(
                f"the answer ended inside an event, {self.unread} bytes after its start"
            )


def check_header_values(headers: Mapping[str, Any]) -> None:
    """Refuse what a header cannot carry (RFC 9110, 5.5): line ends, NUL, other control characters."""
    for name, value in headers.items():
        if not isinstance(value, str) or _CONTROL.search(value):
            raise ParamValidationError(report=f"header {name} may hold one line of text only")


def body_bytes(body: Any) -> bytes:
    """The body as bytes; text as UTF-8."""
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, (bytearray, memoryview)):
        return bytes(body)
    kind = "missing" if body is None else f"of type {type(body).__name__}"
    raise ParamValidationError(report=f"Body is {kind}; valid: bytes, bytearray, memoryview, str")
