"""How one protocol core serves threads and event loops, and how clients start anew in a forked child.

Retries, the pool, an exchange and the reading of streams are written once, as coroutines, with
``await`` wherever a client may have to wait. ``AsyncRuntimeClient`` awaits them in an event loop;
``async_http`` is where they suspend. ``RuntimeClient`` runs each to its end with
:func:`run_without_loop`; there ``blocking_http`` waits inside the socket, so that no ``await``
suspends. That costs a tenth of a microsecond for each coroutine and saves the second half of the
code, or a program that generates it.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Coroutine
from typing import Any, TypeVar

_of_this_process: weakref.WeakSet[Any] = weakref.WeakSet()


def start_anew_after_fork(one: Any) -> None:
    """Have ``one.start_anew()`` called in each child that is forked while ``one`` lives."""
    _of_this_process.add(one)


def _start_all_anew() -> None:
    for one in list(_of_this_process):
        one.start_anew()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_start_all_anew)


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
