"""What a container answers, on its way to the caller: at once, in AWS's event stream, or as it comes.

Sources: SageMaker Runtime API reference, InvokeEndpoint and InvokeEndpointWithResponseStream;
SageMaker developer guide, "Invoke endpoints with OpenAI-compatible APIs", for which the container's
bytes go to the caller as they come.

Source: "Amazon Transcribe streaming: event stream encoding"; botocore's `eventstream` reads it.
"""

from __future__ import annotations

import asyncio
import binascii
import json
import struct
import time
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Literal, cast

from .clock import Clock
from .endpoints import RuntimeEndpoint
from .fleet import Fleet, Variant
from .http_client import Broken, Response
from .http_server import Connection, Nobody, Request
from .instances import Instance
from .meter import INVOCATIONS, Dimensions, Meter
from .options import RuntimeOptions
from .refusals import PREFIX, ModelFailed, Refusal, forwarded

_STRING = 7


def _message(kind: str, name: str, content_type: str, payload: bytes) -> bytes:
    headers = {":message-type": kind, f":{kind}-type": name, ":content-type": content_type}
    encoded = b"".join(
        struct.pack("!B", len(key))
        + key.encode()
        + struct.pack("!BH", _STRING, len(value))
        + value.encode()
        for key, value in headers.items()
    )
    prelude = struct.pack("!II", 16 + len(encoded) + len(payload), len(encoded))
    message = prelude + struct.pack("!I", binascii.crc32(prelude)) + encoded + payload
    return message + struct.pack("!I", binascii.crc32(message))


def payload_part(data: bytes) -> bytes:
    """Write one part of the model's answer."""
    return _message("event", "PayloadPart", "application/octet-stream", data)


def exception_event(name: str, document: bytes) -> bytes:
    """Write the exception that ends a stream, such as ModelStreamError."""
    return _message("exception", name, "application/json", document)


_STREAM_TYPE = "application/vnd.amazon.eventstream"

Kind = Literal["whole", "events", "openai"]
"""An answer at once, in AWS's event stream, or as the container sends it."""


@dataclass(slots=True)
class RuntimeCall:
    """A request on its way: what came, by which zone's listener, and who is to answer it."""

    request: Request
    connection: Connection | Nobody
    zone: str | None
    kind: Kind
    endpoint: RuntimeEndpoint
    fleet: Fleet
    variant: Variant
    session: Instance | None  # the instance of the session that it belongs to

    @property
    def model(self) -> str | None:
        """The model of a multi-model endpoint that it is for."""
        return self.request.headers.get(PREFIX + "target-model")

    @property
    def dimensions(self) -> list[Dimensions]:
        return self.endpoint.dimensions(self.fleet, self.variant)


class Answers:
    """Asks containers, and answers callers."""

    def __init__(self, meter: Meter, clock: Clock, options: RuntimeOptions) -> None:
        self._meter = meter
        self._clock = clock
        self._options = options
        self._loaded: set[tuple[str, str]] = set()
        self._by_kind = {
            "whole": self._answer_at_once,
            "events": self._answer_in_parts,
            "openai": self._pass_on,
        }

    async def answer(self, call: RuntimeCall, instance: Instance) -> tuple[int, float]:
        """Ask an instance and answer; gives the status and when the model had ended."""
        return await self._by_kind[call.kind](call, instance)

    async def _ask(self, call: RuntimeCall, instance: Instance) -> Response:
        """Call the container; what is not 2xx becomes a ModelError."""
        endpoint, streaming = call.endpoint, call.kind != "whole"
        headers = forwarded(call.request.headers, call.kind == "events")
        path = "/v1/chat/completions" if call.kind == "openai" else "/invocations"
        limit = self._options.invocation_timeout
        try:
            async with asyncio.timeout(limit):
                response = await instance.request(
                    path, headers, call.request.body, streaming=streaming
                )
        except TimeoutError:
            raise self._timed_out(call, instance) from None
        except Broken:
            instance.recover(doubted=True)
            raise ModelFailed.of(
                endpoint, 0, "The connection to the container was closed before it answered."
            ) from None
        if not 200 <= response.status <= 299:
            raw = response.body
            if response.chunks is not None:
                raw = b"".join([chunk async for chunk in response.chunks])
            raise ModelFailed.of(endpoint, response.status, raw.decode("utf-8", "replace"))
        return response

    def _timed_out(self, call: RuntimeCall, instance: Instance) -> ModelFailed:
        model = call.model
        if model is not None and (instance.id, model) not in self._loaded:
            # Source: SageMaker developer guide, "Invoke a multi-model endpoint".
            return ModelFailed(
                0, Refusal(429, "ModelNotReadyException", f"Model {model} is still being loaded.")
            )
        return ModelFailed.of(
            call.endpoint,
            0,
            "Your invocation timed out while waiting for a response from container primary. Review "
            "the latency metrics for each container in Amazon CloudWatch, resolve the issue, and "
            "try again.",
        )

    async def _answer_at_once(self, call: RuntimeCall, instance: Instance) -> tuple[int, float]:
        response = await self._ask(call, instance)
        ended = time.perf_counter()
        content_type = response.headers.get("content-type", "application/octet-stream")
        headers = [("content-type", content_type), *self._returned(call, instance, response)]
        call.connection.send(200, headers, response.body)
        return response.status, ended

    async def _answer_in_parts(self, call: RuntimeCall, instance: Instance) -> tuple[int, float]:
        response, connection = await self._ask(call, instance), call.connection
        content_type = response.headers.get("content-type", "application/octet-stream")
        connection.start_stream(
            200,
            [
                ("content-type", _STREAM_TYPE),
                (f"{PREFIX}content-type", content_type),
                *self._returned(call, instance, response),
            ],
        )
        problem = await self._relay(response, connection, payload_part)
        ended = time.perf_counter()
        if problem:
            document = json.dumps({"Message": problem[1], "ErrorCode": problem[0]}).encode()
            await connection.send_chunk(exception_event("ModelStreamError", document))
        self._count_stream_errors(call, bool(problem))
        connection.end_stream()
        return 0 if problem else response.status, ended

    async def _relay(
        self, response: Response, connection: Connection | Nobody, write: Callable[[bytes], bytes]
    ) -> tuple[str, str] | None:
        """Pass the parts of an answer on as they come; gives what went wrong, code and words."""
        chunks = cast(AsyncIterator[bytes], response.chunks)
        if self._options.hang_up_reaches_model and isinstance(connection, Connection):
            connection.lost = response.hang_up
        try:
            async with asyncio.timeout(self._options.stream_timeout):
                async for chunk in chunks:
                    await connection.send_chunk(write(chunk))
        except TimeoutError:
            if response.hang_up is not None:
                response.hang_up()
            return (
                "ModelInvocationTimeExceeded",
                "The model did not finish sending its response in time.",
            )
        except Broken:
            if isinstance(connection, Connection) and not connection.is_open:
                return None  # it was the caller who hung up
            return "StreamBroken", "The connection to the model was closed."
        return None

    async def _pass_on(self, call: RuntimeCall, instance: Instance) -> tuple[int, float]:
        """Give the container's bytes to the caller: in parts when they come so, else at once."""
        response, connection = await self._ask(call, instance), call.connection
        content_type = response.headers.get("content-type", "application/json")
        headers = [("content-type", content_type), *self._returned(call, instance, response)]
        if "content-length" in response.headers:
            chunks = cast(AsyncIterator[bytes], response.chunks)
            try:
                body = b"".join([chunk async for chunk in chunks])
            except Broken:
                raise ModelFailed.of(
                    call.endpoint, 0, "The connection to the container was closed."
                ) from None
            ended = time.perf_counter()
            connection.send(200, headers, body)
            return response.status, ended
        connection.start_stream(200, headers)
        problem = await self._relay(response, connection, bytes)
        ended = time.perf_counter()
        self._count_stream_errors(call, bool(problem))
        if problem and isinstance(connection, Connection):
            connection.close()  # without the last chunk: a cut stream is no whole one
        else:
            connection.end_stream()
        return 0 if problem else response.status, ended

    def _count_stream_errors(self, call: RuntimeCall, broken: bool) -> None:
        for dimensions in call.dimensions:
            self._meter.put(
                call.endpoint.place,
                INVOCATIONS,
                dimensions,
                self._clock.now(),
                [{"MetricName": "MidStreamErrors", "Unit": "None", "Value": float(broken)}],
            )

    def _returned(
        self, call: RuntimeCall, instance: Instance, response: Response
    ) -> list[tuple[str, str]]:
        """Give the headers that go back to the caller, and follow the container's sessions."""
        found = [
            ("x-amzn-requestid", str(uuid.uuid4())),
            ("x-amzn-invoked-production-variant", call.variant.settings["VariantName"]),
        ]
        for name in ("custom-attributes", "new-session-id", "closed-session-id"):
            value = response.headers.get(PREFIX + name)
            if value is None:
                continue
            found.append((PREFIX + name, value))
            session_id = value.partition(";")[0].strip()
            if name == "new-session-id":
                call.variant.sessions[session_id] = instance
            elif name == "closed-session-id":
                call.variant.sessions.pop(session_id, None)
        if call.model is not None:
            self._loaded.add((instance.id, call.model))
        return found
