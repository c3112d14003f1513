"""What calls take and answer, for type checkers and editors: boto3's names, no work at run time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, Required, TypedDict

from botocore.response import StreamingBody

from .response_streams import AsyncResponseStream, ResponseStream

RequestBody = bytes | bytearray | memoryview | str


class _Call(TypedDict, total=False):
    EndpointName: Required[str]
    ContentType: str
    Accept: str
    CustomAttributes: str
    TargetVariant: str
    TargetContainerHostname: str
    InferenceId: str
    InferenceComponentName: str
    PrefixAwareId: str
    Idempotent: bool | None


class InvokeParameters(_Call, total=False):
    """Of ``invoke_endpoint``."""

    Body: Required[RequestBody]
    TargetModel: str
    EnableExplanations: str
    SessionId: str


class EventsParameters(_Call, total=False):
    """Of ``invoke_endpoint_with_response_stream``."""

    Body: Required[RequestBody]
    SessionId: str


class GenerationParameters(_Call, total=False):
    """Of ``stream``."""

    Body: Required[RequestBody | Mapping[str, Any]]
    SessionId: str


class SessionParameters(_Call, total=False):
    """Of ``open_session`` and ``close_session``."""

    Body: RequestBody
    TargetModel: str
    EnableExplanations: str


class _AnswerHead(TypedDict):
    ResponseMetadata: dict[str, Any]
    ContentType: NotRequired[str]
    InvokedProductionVariant: NotRequired[str]
    CustomAttributes: NotRequired[str]
    NewSessionId: NotRequired[str]
    ClosedSessionId: NotRequired[str]


class InvokeAnswer(_AnswerHead):
    """Of :class:`~low_latency_client.blocking_client.RuntimeClient`."""

    Body: StreamingBody


class AsyncInvokeAnswer(_AnswerHead):
    """Of :class:`~low_latency_client.async_client.AsyncRuntimeClient`."""

    Body: bytes


class EventsAnswer(_AnswerHead):
    """A response stream for threads."""

    Body: ResponseStream


class AsyncEventsAnswer(_AnswerHead):
    """A response stream for asyncio."""

    Body: AsyncResponseStream
