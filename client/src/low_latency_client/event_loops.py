"""How one protocol core serves threads and event loops.

Retries, the pool, an exchange and the reading of streams are written once, as coroutines, with
``await`` wherever a client may have to wait. ``AsyncRuntimeClient`` awaits them in an event loop;
``async_http`` is where they suspend. ``RuntimeClient`` runs each to its end with
:func:`run_without_loop`; there ``blocking_http`` waits inside the socket, so that no ``await``
suspends. That costs a tenth of a microsecond for each coroutine and saves the second half of the
code, or a program that generates it.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_without_loop(call: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits by blocking this thread."""
    try:
        call.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    call.close()
    raise RuntimeError("a coroutine of the synchronous client suspended")
