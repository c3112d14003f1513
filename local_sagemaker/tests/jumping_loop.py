"""A clock that jumps: minutes of the local runtime in seconds, and the same ones every time."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from local_sagemaker import LocalAws
from local_sagemaker.runtime import http_server

__all__ = ["JumpingLoop", "run_jumping"]


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose time stands still while a socket is ready, and else jumps ahead."""

    def __init__(self) -> None:
        super().__init__(_JumpingSelector(self))
        self.jumps = False
        self.jumped = 0.0

    def become_the_runtimes(self, aws: LocalAws) -> None:
        """Be the loop in which a local AWS of this process, not yet asked, runs its endpoints."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(http_server.asyncio, "new_event_loop", lambda: self)
            aws.runtime_url()  # the runtime's thread starts with the first question for it
        assert self.is_running(), "the runtime's thread had been started before"

    def time(self) -> float:
        return self.jumped if self.jumps else super().time() + self.jumped

    def jump_from_now_on(self, jumps: bool) -> None:
        now = self.time()
        self.jumps = jumps
        self.jumped = now if jumps else now - super().time()


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop: JumpingLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        if not self._loop.jumps or timeout is None or timeout <= 0:
            return super().select(timeout)
        # What was written to a loopback socket can be read at once; twice, to be safe.
        ready = super().select(0) or super().select(0)
        if not ready:
            self._loop.jumped += timeout
        return ready


def run_jumping(main: Callable[[JumpingLoop], Coroutine[Any, Any, Any]]) -> Any:
    """Run something on a clock that jumps, from moment 0 on."""
    loop = JumpingLoop()
    loop.jump_from_now_on(True)
    loop.jumped = 0.0
    try:
        return loop.run_until_complete(main(loop))
    finally:
        loop.close()
