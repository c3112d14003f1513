"""Forked children: clients start their connections, threads and locks anew there."""

from __future__ import annotations

import os
import weakref
from typing import Any

_of_this_process: weakref.WeakSet[Any] = weakref.WeakSet()


def start_anew_after_fork(one: Any) -> None:
    """Have ``one.start_anew()`` called in each child that is forked while ``one`` lives."""
    _of_this_process.add(one)


def _start_all_anew() -> None:
    for one in list(_of_this_process):
        one.start_anew()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_start_all_anew)
