"""Response streams for asyncio: boto3's events as they come."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

from botocore.eventstream import EventStreamBuffer

from .async_connection import Answer
from .runtime_wire import Wire

__all__ = ["AsyncResponseStream"]


class AsyncResponseStream:
    """Events of a response stream, as they come: ``{"PayloadPart": {"Bytes": b"..."}}``.

    Iterate once, to the end or inside ``async with``, so that the connection is free again.

    Attributes
    ----------
    time_to_first_byte : timedelta or None
        From the call to the first event; ``None`` until it came.
    """

    def __init__(self, answer: Answer, wire: Wire, started: float) -> None:
        self._answer = answer
        self._wire = wire
        self._started = started
        self.time_to_first_byte: timedelta | None = None

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        buffer = EventStreamBuffer()
        try:
            while data := await self._answer.part():
                for event in self._wire.events(buffer, data):
                    if self.time_to_first_byte is None:
                        self.time_to_first_byte = timedelta(
                            seconds=time.perf_counter() - self._started
                        )
                    yield event
        finally:
            self.close()

    def close(self) -> None:
        """Give the connection back, or close it when the stream was not read to its end."""
        self._answer.close()

    async def __aenter__(self) -> AsyncResponseStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
