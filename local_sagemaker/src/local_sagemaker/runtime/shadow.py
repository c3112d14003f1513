"""Copies of requests for a shadow variant, whose answers nobody gets.

AWS: the shadow variant "receives a percentage of the incoming requests, replicated from the
production variant, but does not return any responses" (SageMaker developer guide, "Create a shadow
test"). How weights make that percentage it does not write down; its one example has equal weights
("Testing models with shadow variants"). Here it is the shadow's weight over the production
variant's.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from dataclasses import dataclass

from .fleet import Variant


@dataclass(frozen=True, slots=True)
class Nobody:
    """Where a shadow's answers go: it takes them like a caller's connection, and drops them."""

    number: int  # the router's, as the connection has it whose request was copied

    def send(self, status: int, headers: Iterable[tuple[str, str]], body: bytes = b"") -> None:
        """Drop a whole answer."""

    def start_stream(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """Drop the beginning of a stream."""

    async def send_chunk(self, chunk: bytes) -> None:
        """Drop a part of a stream; others have their turn, as a slow reader would let them."""
        await asyncio.sleep(0)

    def end_stream(self) -> None:
        """Drop the end of a stream."""


def is_copied(production: Variant, shadow: Variant, generator: random.Random) -> bool:
    """Choose by weight whether a request is copied."""
    if shadow.weight >= production.weight:
        return shadow.weight > 0
    return generator.random() * production.weight < shadow.weight
