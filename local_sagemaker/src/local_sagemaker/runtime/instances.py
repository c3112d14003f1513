"""One instance of a variant: its model server, whether it is healthy, what is under way on it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import sys
import time
from typing import Any
from urllib.parse import urlsplit

from ..model_servers import tasks
from ..model_servers.specifications import (
    CommandModelServer,
    ModelServer,
    UrlModelServer,
    to_document,
)
from ..processes import SupervisedProcess
from .clock import Clock
from .containers import Container, ServerOutput, with_places
from .http_client import Broken, Connections, OutOfFiles, Response, Unreachable
from .http_server import LOOPBACK, Listener

logger = logging.getLogger(__name__)

PING_TIMEOUT = 2.0  # seconds. Source: SageMaker developer guide, "How containers serve requests".
_PING_PAUSE = 0.02
_KILL_AFTER = 30.0  # seconds from SIGTERM to SIGKILL. Same source.
_TOLD = 500
"""Characters of a server's output in a FailureReason, which has 1024 at most (API reference)."""


class StartupFailed(Exception):
    """The container did not answer `/ping` with 200 in time, or ended; the message says which."""


class Instance:
    """An instance with its model server."""

    def __init__(
        self,
        server: ModelServer,
        place: int,
        zone: str,
        container: Container,
        clock: Clock,
        routers: int,
    ) -> None:
        self.id = container.instance
        self.place = place
        self.zone = zone
        self.in_service = False
        self.outstanding = [0] * routers
        self.peak = 0
        """The most requests under way at a time since the last report."""
        self._server = server
        self._container = container
        self._clock = clock
        self._connections: Connections | None = None
        self._task: tasks.Task | None = None
        self._listener: Listener | None = None
        self._process: SupervisedProcess | None = None
        self._output: ServerOutput | None = None
        self._tells_utilization = True
        self._recovering: asyncio.Task[None] | None = None
        self._stopped = False

    # ------------------------------------------------------------------------------------- life

    async def start(self, timeout: float) -> None:
        """Start the model server and wait until it is healthy."""
        await self._launch()
        now = self._clock.now if self._server.in_process else time.monotonic
        deadline = now() + timeout
        while not await self._healthy():
            if self._process is not None and (code := self._process.exit_code) is not None:
                raise StartupFailed(await self._words(f"Its process ended with exit code {code}."))
            if now() >= deadline or self._stopped:
                raise StartupFailed(await self._words(""))
            await asyncio.sleep(_PING_PAUSE)
        self.in_service = True

    async def _words(self, what: str) -> str:
        """Add what the server wrote last, and where all of it is."""
        if self._output is None:
            return what
        if self._process is not None and self._process.exit_code is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._output.settle)
        ending = self._output.ending(_TOLD)
        told = (
            f"It wrote last, and all of it to {self._output.path}: {ending}"
            if ending
            else ("It wrote nothing.")
        )
        return f"{what} {told}".strip()

    async def _launch(self) -> None:
        host, port = LOOPBACK, 0
        server = self._server
        if isinstance(server, UrlModelServer):
            parts = urlsplit(server.url)
            host, port = parts.hostname or LOOPBACK, parts.port or 80
        elif server.in_process and (task := tasks.task_of(server, self.place, self._clock.sleep)):
            self._task = task
            self._listener = await tasks.serve(task)
            port = self._listener.port
        else:
            port = _free_port()
            loop = asyncio.get_running_loop()
            try:
                self._process = await loop.run_in_executor(None, self._spawn, server, port)
            except (OSError, ValueError) as error:  # no such folder, a variable with a NUL
                raise StartupFailed(f"It cannot be started: {error}") from None
            if self._stopped:
                self._process.hang_up()
        self._tells_utilization = True
        self._connections = Connections(host, port)

    def _spawn(self, server: ModelServer, port: int) -> SupervisedProcess:
        if self._output is None:
            self._output = self._container.output()
            self._container.load(lambda: self._stopped)
        directory = None
        if isinstance(server, CommandModelServer):
            variables = self._container.variables(port, self.place, server.environment)
            command = [with_places(argument, variables) for argument in server.command]
            directory = server.directory
        else:
            command = [sys.executable, "-m", tasks.__name__]
            own = {tasks.SETTINGS: json.dumps(to_document(server))}
            variables = self._container.variables(port, self.place, own)
        process = SupervisedProcess(command, variables, directory)
        self._output.follow(process.output)
        return process

    async def _healthy(self) -> bool:
        if self._process is not None and self._process.exit_code is not None:
            return False
        try:
            response = await asyncio.wait_for(self.request("/ping"), PING_TIMEOUT)
        except OutOfFiles:
            return self.in_service  # as before: nobody was asked
        except (TimeoutError, Broken, Unreachable):
            return False
        return response.status == 200

    def change(self, server: ModelServer) -> bool:
        """Behave as other settings say from now on; gives False for a process, which stays."""
        return self._task is not None and tasks.change(self._task, server)

    def recover(self, *, doubted: bool = False) -> None:
        """Take it out of service until it is healthy again; a process that died is restarted."""
        self.in_service = doubted and self.in_service
        if self._stopped or self._recovering is not None:
            return
        self._recovering = asyncio.get_running_loop().create_task(self._recover())

    async def _recover(self) -> None:
        while not self._stopped and not await self._healthy():
            if self.in_service:
                logger.warning("instance %s is out of service", self.id)
                self.in_service = False
            if self._process is not None and self._process.exit_code is not None:
                if self._connections is not None:
                    self._connections.close()
                self._process.hang_up()
                with contextlib.suppress(StartupFailed):  # tried again, as long as it is wanted
                    await self._launch()
            await asyncio.sleep(0.2)
        self.in_service = not self._stopped
        self._recovering = None

    def stop(self) -> None:
        """Stop it: tasks at once, a process with SIGTERM and, 30 s later, SIGKILL."""
        self._stopped, self.in_service = True, False
        if self._recovering is not None:
            self._recovering.cancel()
        if self._connections is not None:
            self._connections.close()
        if self._task is not None:
            self._task.stop()
        if self._listener is not None:
            self._listener.close()
        if self._process is not None:
            self._process.terminate()

    def wait_stopped(self, timeout: float = _KILL_AFTER) -> None:
        """Wait for the end of its process and of all that came of it."""
        if self._process is not None:
            self._process.end(timeout)
        if self._output is not None:
            self._container.remove()

    # ------------------------------------------------------------------------------------ requests

    @property
    def under_way(self) -> int:
        """Requests under way, of all routers."""
        return sum(self.outstanding)

    def begin(self, router: int) -> None:
        self.outstanding[router] += 1
        self.peak = max(self.peak, self.under_way)

    def end(self, router: int) -> None:
        self.outstanding[router] -= 1

    async def request(
        self,
        path: str,
        headers: list[tuple[str, str]] | None = None,
        body: bytes | None = None,
        *,
        streaming: bool = False,
    ) -> Response:
        """Ask the model server; with a body it is a POST."""
        if self._connections is None:
            raise Unreachable("not started")
        method = "GET" if body is None else "POST"
        return await self._connections.request(
            method, path, headers or (), body or b"", streaming=streaming
        )

    async def utilization(self) -> dict[str, float]:
        """Ask the server for its utilisation, until it has no such page, to spare its log."""
        if not self._tells_utilization:
            return {}
        with contextlib.suppress(TimeoutError, Broken, Unreachable, ValueError):
            response = await asyncio.wait_for(self.request("/utilization"), PING_TIMEOUT)
            self._tells_utilization = response.status < 400 or response.status >= 500
            if response.status == 200:
                told: dict[str, Any] = json.loads(response.body)
                return {name: float(value) for name, value in told.items()}
        return {}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
