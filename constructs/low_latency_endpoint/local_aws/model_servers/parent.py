"""Model servers of ours end with the local AWS that started them, however it ends."""

from __future__ import annotations

import asyncio
import os
import sys

__all__ = ["until_parent_ends"]


async def until_parent_ends() -> None:
    """Wait until our standard input, a pipe from the local AWS, is closed; else for ever."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    if "LOCAL_INSTANCE_PLACE" in os.environ:

        def readable() -> None:
            if not os.read(sys.stdin.fileno(), 1024):
                ended.set()

        loop.add_reader(sys.stdin.fileno(), readable)
    await ended.wait()
