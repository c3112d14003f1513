"""How one protocol core serves threads and event loops, and how clients start anew in a forked child."""

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
