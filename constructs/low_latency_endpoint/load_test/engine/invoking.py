"""``InvokeEndpoint`` for load generators: many at once in one process, for little of its time."""

from __future__ import annotations

import http.client
import re
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, EventStreamError, ResponseStreamingError
from gevent import GreenletExit

from low_latency_client.bearer_tokens import BearerTokens, openai_base_url
from low_latency_client.runtime_wire import (
    MOST_PREPARED,
    EventBuffer,
    Prepared,
    Wire,
    check_header_values,
)
from low_latency_client.signing import Sigv4Signer, host_of
from low_latency_client.timing import CLIENT_CREDENTIALS
from low_latency_client.tls_trust import trusted_authorities
from low_latency_client.zone import checked_origin

from ...report.numbers import readable
from .client_errors import translated_client_errors
from .connections import GeneratorConnection, connection_error
from .measurement import CHECK_FAILED, Invocation, brief
from .target import INVOKE, OPENAI, TARGET_API, Target
from .token_streams import TokenReader, TokenTimes

PAUSE_SECONDS = 5.0
"""How long a URL is left alone after no connection to it could be made."""
STALE_SECONDS = 1.0
"""A kept connection unused for longer may have been forgotten on its way: a load balancer, say."""

_OPENAI_HEADERS = {
    "PrefixAwareId": "X-Amzn-SageMaker-Prefix-Aware-Id",
    "SessionId": "X-Amzn-SageMaker-Session-Id",
}


class _BearerRequest:
    """A request on SageMaker's OpenAI-compatible path but for its body and the minute's token."""

    __slots__ = ("_head", "_tokens")

    def __init__(
        self,
        url: str,
        target: Target,
        overrides: Mapping[str, Any],
        tokens: BearerTokens,
        user_agent: str,
    ) -> None:
        if unknown := sorted(set(overrides) - set(_OPENAI_HEADERS)):
            raise TARGET_API.error(got=", ".join(unknown), allowed=", ".join(_OPENAI_HEADERS))
        base = openai_base_url(
            target.endpoint_name,
            url=url,
            inference_component=target.inference_component,
            allow_plain_http=target.allow_plain_http,
        )
        headers = {
            "Host": host_of(url),
            "User-Agent": user_agent,
            "Accept-Encoding": "identity",
            "Content-Type": target.content_type,
            "Accept": target.accept or "text/event-stream",
            **{_OPENAI_HEADERS[name]: str(value) for name, value in overrides.items()},
        }
        check_header_values(headers)
        lines = [f"POST {base.removeprefix(url)}/chat/completions HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._head = "".join(f"{line}\r\n" for line in lines).encode()
        self._tokens = tokens

    def signed(self, body: bytes) -> bytes:
        """The whole request for this body, now."""
        return b"%bContent-Length: %d\r\nAuthorization: Bearer %b\r\n\r\n%b" % (
            self._head,
            len(body),
            self._tokens().encode(),
            body,
        )


class _Destination:
    """One base URL: the request prepared for it, and its kept connections."""

    __slots__ = ("closed_until", "idle", "prepared", "url")

    def __init__(self, url: str, prepared: Prepared | _BearerRequest) -> None:
        self.url = url
        self.prepared = prepared
        self.idle: list[GeneratorConnection] = []
        self.closed_until = 0.0


class SageMakerInvoker:
    """Invokes one endpoint from any number of greenlets, each on a connection of its own."""

    # Requests are sent once: errors are results here, and retries would hide them. Two exceptions:
    # when no connection to a URL can be made, the next one is tried at once; and a request that the
    # endpoint cannot have read, as its kept connection was closed before, is sent once on a new one.

    @translated_client_errors()
    def __init__(self, target: Target, *, session: boto3.Session) -> None:
        credentials = session.get_credentials()
        if credentials is None:
            raise CLIENT_CREDENTIALS.error(got="none", allowed="any AWS credentials")
        # boto3's own client says which URL and which User-Agent it would use.
        probe = session.client("sagemaker-runtime", region_name=target.region)
        self.target = target
        self.urls = target.endpoint_urls or (
            checked_origin(
                probe.meta.endpoint_url, "url", allow_plain_http=target.allow_plain_http
            ),
        )
        self._wire = Wire(
            Sigv4Signer(credentials, region=target.region),
            {"User-Agent": probe.meta.config.user_agent},
        )
        probe.close()
        self._operation = self._wire.stream if target.streaming else self._wire.invoke
        self._parameters = _parameters(target)
        self._user_agent = probe.meta.config.user_agent
        self._bearer = BearerTokens(session, target.region) if target.api == OPENAI else None
        self._bearer_requests: dict[tuple[Any, ...], _BearerRequest] = {}
        self._ca_file = trusted_authorities(session)
        self._destinations = [_Destination(url, self._prepare(url, None)) for url in self.urls]
        self._turn = 0
        self._expected = re.compile(target.expected.encode()) if target.expected else None
        self.connections = self.failovers = self.reconnects = 0

    def __repr__(self) -> str:
        return f"SageMakerInvoker({self.target.endpoint_name!r}, {', '.join(self.urls)})"

    def invoke(self, body: bytes, overrides: Mapping[str, Any] | None = None) -> Invocation:
        """Send one request and wait for the whole answer; errors are returned, not raised."""
        started = time.perf_counter()
        destination = self._next()
        untried = len(self._destinations) - 1
        while True:
            prepared = destination.prepared
            if overrides:
                prepared = self._prepare(destination.url, overrides)
            try:
                request = prepared.signed(body)
            except BotoCoreError as error:  # credentials that cannot be refreshed
                return self._failed(
                    f"credentials {type(error).__name__}", str(error), started, destination
                )
            try:
                connection = self._connection(destination)
            except Exception as error:
                kind = connection_error(error)
                if kind is None:
                    raise
                destination.closed_until = time.perf_counter() + PAUSE_SECONDS
                if not untried:
                    return self._failed(kind, str(error), started, destination)
                untried -= 1
                self.failovers += 1
                destination = self._next()
                continue
            return self._exchange(destination, connection, request, started)

    def close(self) -> None:
        """Close the kept connections; requests under way close theirs when they end."""
        for destination in self._destinations:
            while destination.idle:
                destination.idle.pop().close()

    def _prepare(self, url: str, overrides: Mapping[str, Any] | None) -> Prepared | _BearerRequest:
        if self._bearer is not None:
            return self._prepare_bearer(url, overrides or {}, self._bearer)
        parameters = {**self._parameters, **(overrides or {})}
        return self._wire.prepare(
            url,
            self._operation,
            {name: value for name, value in parameters.items() if value is not None},
        )

    def _prepare_bearer(
        self, url: str, overrides: Mapping[str, Any], tokens: BearerTokens
    ) -> _BearerRequest:
        """Once for each set of overrides, such as a prefix's name, as the wire does with the others."""
        key = (url, *overrides.items())
        bearer_request = self._bearer_requests.get(key)
        if bearer_request is None:
            bearer_request = _BearerRequest(url, self.target, overrides, tokens, self._user_agent)
            if len(self._bearer_requests) >= MOST_PREPARED:
                self._bearer_requests.clear()
            self._bearer_requests[key] = bearer_request
        return bearer_request

    def _next(self) -> _Destination:
        """The URL whose turn it is; one that failed lately only when all did."""
        destinations = self._destinations
        if len(destinations) == 1:
            return destinations[0]
        now = time.perf_counter()
        for _ in destinations:
            self._turn = turn = (self._turn + 1) % len(destinations)
            if destinations[turn].closed_until <= now:
                break
        return destinations[turn]

    def _connection(self, destination: _Destination) -> GeneratorConnection:
        """The connection used last, so that the others may grow old; or a new one."""
        idle = destination.idle
        while idle:
            connection = idle.pop()
            if not connection.ended():
                return connection
            connection.close()
        return self._connect(destination)

    def _connect(self, destination: _Destination) -> GeneratorConnection:
        self.connections += 1
        return GeneratorConnection(destination.url, self.target.timeout_seconds, self._ca_file)

    def _exchange(
        self,
        destination: _Destination,
        connection: GeneratorConnection,
        request: bytes,
        started: float,
    ) -> Invocation:
        stream = (
            _AnswerStream(self._wire, self.target, connection) if self.target.streaming else None
        )
        used_at = connection.used_at
        parts: Sequence[bytes | bytearray]
        try:
            parts = connection.exchange(request, stream.feed if stream else None)
        except BaseException as error:
            unheard = bool(used_at) and connection.unheard()
            connection.close()
            if isinstance(error, GreenletExit):
                # For whoever records it.
                error.args = (stream.first_byte, stream.tokens) if stream else (None, None)
                raise
            if isinstance(error, (EventStreamError, ResponseStreamingError)):
                return self._failed(*_stream_error(error), started, destination, connection.status)
            if connection.expired:
                return self._failed(
                    "timeout",
                    f"no whole answer in {readable(self.target.timeout_seconds)} s",
                    started,
                    destination,
                    stream=stream,
                )
            broken = connection_error(error)
            if broken is None:
                raise
            forgotten = (
                used_at
                and started - used_at >= STALE_SECONDS
                and not connection.received
                and not connection.finished
            )
            if unheard or forgotten:
                return self._again(destination, request, started)
            return self._failed(broken, str(error), started, destination)
        status, message = connection.status, ""
        kind: str | None = None
        if stream is not None and status < 300:
            parts = stream.parts
        body = bytes(parts[0]) if len(parts) == 1 else b"".join(parts)
        connection.forget()
        if status >= 300:
            kind, message = self._service_error(connection, body)
        elif stream is not None and (problem := stream.problem()) is not None:
            kind, message = problem
        elif self._expected is not None and not self._expected.search(body):
            kind = CHECK_FAILED
            message = f"the answer does not match {self.target.expected!r}"
        if connection.reusable():
            destination.idle.append(connection)
        else:
            connection.close()
        return Invocation(
            status,
            len(body),
            kind,
            started,
            connection.came_at if stream else connection.used_at,
            stream.first_byte if stream else None,
            body,
            message,
            destination.url,
            stream.tokens if stream else None,
        )

    def _again(self, destination: _Destination, request: bytes, started: float) -> Invocation:
        """Repeat a request that nobody has read, on a connection that nobody can have closed."""
        self.reconnects += 1
        try:
            connection = self._connect(destination)
        except Exception as error:
            kind = connection_error(error)
            if kind is None:
                raise
            return self._failed(kind, str(error), started, destination)
        return self._exchange(destination, connection, request, started)

    def _failed(
        self,
        kind: str,
        message: str,
        started: float,
        destination: _Destination,
        status: int = 0,
        stream: _AnswerStream | None = None,
    ) -> Invocation:
        seen = (stream.first_byte, stream.tokens) if stream else ()
        failed = Invocation.given_up(kind, started, *seen)
        return failed._replace(status=status, message=message, url=destination.url)

    def _service_error(self, connection: GeneratorConnection, body: bytes) -> tuple[str, str]:
        """Kind and message of an answer that is none of the model's."""
        status = connection.status
        error: Any = self._wire.error(self._operation, status, connection.headers(), body, 1)
        found = error.response.get("Error", {})
        code = brief(str(found.get("Code") or ""))
        if not code or code == str(status):  # not AWS's own: a proxy's page, say
            code = http.client.responses.get(status, "")
        message = found.get("Message")
        if (original := error.response.get("OriginalStatusCode")) is not None:
            code, message = f"{code} {original}", error.response.get("OriginalMessage") or message
        return f"{status} {code}".rstrip(), str(message or "")


def _parameters(target: Target) -> dict[str, Any]:
    """The target by boto3's names."""
    return {
        "EndpointName": target.endpoint_name,
        "ContentType": target.content_type,
        "Accept": target.accept,
        "TargetVariant": target.target_variant,
        "TargetModel": target.target_model,
        "InferenceComponentName": target.inference_component,
    }


class _AnswerStream:
    """Puts the parts of a response stream together, and reads the tokens in them."""

    def __init__(self, wire: Wire, target: Target, connection: GeneratorConnection) -> None:
        self._connection = connection
        self._events, self._buffer = wire.events, EventBuffer()
        self._parts_of = EventParts(self._other_event) if target.api == INVOKE else None
        self._reader = TokenReader() if target.tokens is not None else None
        self.first_byte: float | None = None
        self.parts: list[bytes] = []

    def feed(self, data: bytes) -> None:
        """Take bytes of the body; raises what the stream reports."""
        now = self._connection.came_at
        for part in (data,) if self._parts_of is None else self._parts_of.feed(data):
            if self.first_byte is None:
                self.first_byte = now
            self.parts.append(part)
            if self._reader is not None:
                self._reader.feed(part, now)

    def _other_event(self, event: bytes) -> Iterator[bytes]:
        for found in self._events(self._buffer, event):
            part = found.get("PayloadPart", {}).get("Bytes")
            if part is not None:
                yield part

    def problem(self) -> tuple[str, str] | None:
        """What the model's own stream says is wrong, or shows by its end."""
        if self._parts_of is not None and self._parts_of.unfinished:
            return "stream malformed", "the answer ended inside an event"
        return None if self._reader is None else self._reader.end()

    @property
    def tokens(self) -> TokenTimes | None:
        """When its tokens came, so far."""
        return None if self._reader is None else self._reader.times()


def _stream_error(error: EventStreamError | ResponseStreamingError) -> tuple[str, str]:
    """Kind and message of an error that SageMaker reports in the stream, or of a damaged one."""
    if isinstance(error, EventStreamError):
        found = error.response.get("Error", {})
        return f"stream {found.get('Code') or 'error'}", str(found.get("Message") or error)
    return "stream malformed", str(error)


class EventParts:
    """Payload parts out of SageMaker's event stream, for a tenth of botocore's processor time."""

    # An event whose headers are, byte for byte, those of a payload part is taken here, its checksum
    # checked; what is anything else is left to botocore.

    __slots__ = ("_other", "_rest")

    def __init__(self, other: Callable[[bytes], Iterable[bytes]]) -> None:
        self._other = other
        self._rest = b""

    @property
    def unfinished(self) -> bool:
        """Whether an event has begun that is not at its end."""
        return bool(self._rest)

    def feed(self, data: bytes) -> list[bytes]:
        """The parts that are complete with these bytes."""
        data = self._rest + data if self._rest else data
        at, size = 0, len(data)
        found: list[bytes] = []
        while size - at >= _PRELUDE:
            length = int.from_bytes(data[at : at + 4], "big")
            if not _SMALLEST <= length <= _LARGEST:
                found.extend(self._other(data[at:]))  # no event; botocore says so
                break
            if size - at < length:
                break
            event = data[at : at + length]
            at += length
            if _is_part(event):
                found.append(event[_PART_HEAD:-4])
            else:
                found.extend(self._other(event))
        self._rest = data[at:]
        return found


_PRELUDE, _SMALLEST, _LARGEST = 12, 16, 24 * 1024 * 1024


def _header(name: bytes, value: bytes) -> bytes:
    """A header of type 7, a text."""
    return bytes([len(name)]) + name + b"\x07" + len(value).to_bytes(2, "big") + value


#: The order of headers is nobody's promise.
_PART_HEADERS = frozenset(
    b"".join(headers)
    for headers in permutations(
        (
            _header(b":event-type", b"PayloadPart"),
            _header(b":content-type", b"application/octet-stream"),
            _header(b":message-type", b"event"),
        )
    )
)
_PART_HEAD = _PRELUDE + len(next(iter(_PART_HEADERS)))


def _is_part(event: bytes) -> bool:
    return (
        event[_PRELUDE:_PART_HEAD] in _PART_HEADERS
        and int.from_bytes(event[4:8], "big") == _PART_HEAD - _PRELUDE
        and zlib.crc32(event[:-4]) == int.from_bytes(event[-4:], "big")
        and zlib.crc32(event[:8]) == int.from_bytes(event[8:12], "big")
    )
