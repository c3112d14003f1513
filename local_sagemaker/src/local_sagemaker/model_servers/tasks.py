"""The servers that compute nothing, as tasks of the local AWS or processes of their own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import cast

from ..runtime.http_server import Listener, listen
from .language_model import LanguageModel
from .simulated import Simulation
from .specifications import LanguageModelServer, ModelServer, SimulatedModelServer, from_document

Task = Simulation | LanguageModel
SETTINGS = "LOCAL_SIMULATION"  # the variable with the settings of one that is a process of its own


def task_of(
    server: ModelServer, place: int, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> Task | None:
    """Give what behaves as a server's settings say; None for one that is a program."""
    if isinstance(server, SimulatedModelServer):
        return Simulation(server, place, sleep)
    if isinstance(server, LanguageModelServer):
        return LanguageModel(server, place, sleep)
    return None


def change(task: Task, server: ModelServer) -> bool:
    """Have it behave as other settings of its kind say; gives False where they are of another."""
    match task, server:
        case Simulation(), SimulatedModelServer():
            task.change(server)
        case LanguageModel(), LanguageModelServer():
            task.change(server)
        case _:
            return False
    return True


async def serve(task: Task, port: int = 0) -> Listener:
    listener = await listen(task, port=port)
    task.start()
    return listener


async def _run() -> None:
    place = int(os.environ.get("LOCAL_INSTANCE_PLACE", "0"))
    task = task_of(from_document(json.loads(os.environ[SETTINGS])), place)
    await serve(cast(Task, task), int(os.environ["SAGEMAKER_BIND_TO_PORT"]))
    await asyncio.Event().wait()  # its supervisor ends it


if __name__ == "__main__":
    try:
        asyncio.run(_run())
    except KeyboardInterrupt:
        sys.exit(0)
