"""A runtime on loopback whose streams do what a test says, step by step, and which sees hang-ups.

One script per request, in the order of the requests: bytes are sent as one HTTP chunk, a number
waits so many seconds, ``CUT`` ends the connection, ``HANG`` waits for the client's end, ``BOTH``
until two requests have come, ``SEEN`` until a client has hung up.
"""

from __future__ import annotations

import asyncio
import binascii
import json
import struct
import time
from collections.abc import Iterable, Sequence
from typing import Any

from .threaded_server import ThreadedServer, read_request

CUT, HANG, BOTH, SEEN = "cut", "hang", "both", "seen"
Step = bytes | float | str


def event(kind: str, name: str, payload: bytes) -> bytes:
    """One message of AWS's event stream: lengths and CRC-32 as its specification says."""
    fields = {f":{kind}-type": name, ":message-type": kind}
    headers = b"".join(
        bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(text)) + text.encode()
        for key, text in fields.items()
    )
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack(">I", binascii.crc32(prelude)) + headers + payload
    return message + struct.pack(">I", binascii.crc32(message))


def part(payload: bytes) -> bytes:
    """A ``PayloadPart``."""
    return event("event", "PayloadPart", payload)


def sse(*chunks: Any) -> bytes:
    """Server-sent events with these chunks; text goes out as it is."""
    return b"".join(
        b"data: " + (one if isinstance(one, str) else json.dumps(one)).encode() + b"\n\n"
        for one in chunks
    )


def word(text: str, reason: str | None = None) -> dict[str, Any]:
    """A chunk with content."""
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}]}


ROLE = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}
STOP = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
USAGE = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 7}}


def whole(*words: str) -> list[Step]:
    """A script that streams as vLLM does."""
    return [
        part(sse(ROLE)),
        *(part(sse(word(one))) for one in words),
        part(sse(STOP, USAGE, "[DONE]")),
    ]


class ModelStreamServer(ThreadedServer):
    """Serves one script per request; the last one again and again."""

    def __init__(self, *scripts: Sequence[Any] | int) -> None:
        super().__init__()
        self.scripts = list(scripts)
        self.requests: list[tuple[bytes, bytes]] = []  # heads and bodies
        self.connections = 0
        self.finished = 0
        self.hung_up: list[float] = []  # when clients ended connections in the middle of a script

    def wait_for_hang_ups(self, number: int) -> None:
        """Until so many clients have ended a connection in the middle; fails after 20 s."""
        ends = time.monotonic() + 20
        while len(self.hung_up) < number:
            assert time.monotonic() < ends, f"{len(self.hung_up)} of {number} hang-ups seen"
            time.sleep(0.005)

    def _came(self, step: Step) -> bool:
        return len(self.requests) > 1 if step == BOTH else bool(self.hung_up)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head, body = await read_request(reader)
                script = self.scripts[min(len(self.requests), len(self.scripts) - 1)]
                self.requests.append((head, body))
                if isinstance(script, int):
                    writer.write(b"HTTP/1.1 %d X\r\nContent-Length: 2\r\n\r\n{}" % script)
                elif not await self._play(script, reader, writer, openai=b"/openai/v1/" in head):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return  # between two requests
        finally:
            writer.close()

    async def _play(
        self,
        script: Iterable[Step],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        openai: bool,
    ) -> bool:
        """Send a script; returns whether the connection goes on."""
        gone = asyncio.ensure_future(reader.read(1))  # a client's end; it sends nothing meanwhile
        headed = False
        for step in script:
            if isinstance(step, bytes):
                if not headed:
                    headed = True
                    kind = b"text/event-stream" if openai else b"application/vnd.amazon.eventstream"
                    writer.write(
                        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                        b"Content-Type: %b\r\n"
                        b"x-Amzn-SageMaker-Content-Type: text/event-stream\r\n\r\n" % kind
                    )
                writer.write(b"%x\r\n%b\r\n" % (len(step), step))
            elif step == CUT:
                writer.transport.abort()
                gone.cancel()
                return False
            elif step in (BOTH, SEEN):
                while not gone.done() and not self._came(step):
                    await asyncio.sleep(0.005)
            else:
                seconds = 60.0 if step == HANG else float(step)
                await asyncio.wait((gone,), timeout=seconds)
            if gone.done():
                self.hung_up.append(time.monotonic())
                gone.exception()
                return False
        self.finished += 1
        writer.write(b"0\r\n\r\n")
        gone.cancel()
        try:
            await gone
        except asyncio.CancelledError:
            return True
        except ConnectionError:
            return False
        return False
