"""One instance of a variant: its model server, whether it is healthy, what is under way on it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ..model_servers.simulated import Simulation, serve
from ..model_servers.specifications import (
    CommandModelServer,
    ModelServer,
    SimulatedModelServer,
    UrlModelServer,
    to_document,
)
from .clock import Clock
from .http_client import Broken, Connections, Response, Unreachable
from .http_server import LOOPBACK, Listener

__all__ = ["Instance", "StartupFailed"]

logger = logging.getLogger(__name__)

PING_TIMEOUT = 2.0
"""Seconds. Source: SageMaker developer guide, "How containers serve requests"."""
_PING_PAUSE = 0.02
_KILL_AFTER = 30.0
"""Seconds from SIGTERM to SIGKILL. Same source."""


class StartupFailed(Exception):
    """The container did not answer `/ping` with 200 in time, or ended; the message says which."""


class Instance:
    """An instance with its model server.

    Parameters
    ----------
    server
        What runs on it.
    place
        Its place in its variant, from 0.
    zone
        The name of its Availability Zone.
    environment
        The container's environment variables.
    clock
        The runtime's.
    routers
        How many routers count their own requests on it.
    """

    def __init__(
        self,
        server: ModelServer,
        place: int,
        zone: str,
        environment: Mapping[str, str],
        clock: Clock,
        routers: int,
    ) -> None:
        self.id = f"i-0{secrets.token_hex(8)}"
        self.place = place
        self.zone = zone
        self.in_service = False
        self.outstanding = [0] * routers
        self.peak = 0
        """The most requests under way at a time since the last report."""
        self._server = server
        self._environment = environment
        self._clock = clock
        self._connections: Connections | None = None
        self._simulation: Simulation | None = None
        self._listener: Listener | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._recovering: asyncio.Task[None] | None = None
        self._stopped = False

    # ------------------------------------------------------------------------------------- life

    async def start(self, timeout: float) -> None:
        """Start the model server and wait until it is healthy.

        Parameters
        ----------
        timeout
            Seconds: of the clock for a task, real ones for a process, whose start takes what it
            takes.

        Raises
        ------
        StartupFailed
            When `/ping` does not answer 200 in time, or the process has ended.
        """
        await self._launch()
        now = self._clock.now if self._server.in_process else time.monotonic
        deadline = now() + timeout
        while not await self._healthy():
            if self._process is not None and (code := self._process.poll()) is not None:
                raise StartupFailed(f"Its process ended with exit code {code}; what it wrote went "
                                    "to the local AWS's standard error.")
            if now() >= deadline or self._stopped:
                raise StartupFailed("")
            await asyncio.sleep(_PING_PAUSE)
        self.in_service = True

    async def _launch(self) -> None:
        host, port = LOOPBACK, 0
        server = self._server
        if isinstance(server, UrlModelServer):
            parts = urlsplit(server.url)
            host, port = parts.hostname or LOOPBACK, parts.port or 80
        elif isinstance(server, SimulatedModelServer) and server.in_process:
            self._simulation = Simulation(server, self.place, self._clock.sleep)
            self._listener = await serve(self._simulation)
            port = self._listener.port
        else:
            port = _free_port()
            loop = asyncio.get_running_loop()
            self._process = await loop.run_in_executor(None, self._spawn, server, port)
            if self._stopped:
                self._process.terminate()
        self._connections = Connections(host, port)

    def _spawn(self, server: ModelServer, port: int) -> subprocess.Popen[bytes]:
        environment = {name: v for name, v in os.environ.items() if not name.startswith("AWS_")}
        environment |= self._environment
        if isinstance(server, CommandModelServer):
            command = list(server.command)
            environment |= server.environment
        else:
            command = [sys.executable, "-m", Simulation.__module__]
            environment["LOCAL_SIMULATION"] = json.dumps(to_document(server))
        environment["SAGEMAKER_BIND_TO_PORT"] = str(port)
        environment["LOCAL_INSTANCE_PLACE"] = str(self.place)
        return subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )

    async def _healthy(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            return False
        try:
            response = await asyncio.wait_for(self._request("GET", "/ping"), PING_TIMEOUT)
        except (TimeoutError, Broken, Unreachable):
            return False
        return response.status == 200

    def change(self, server: ModelServer) -> None:
        """Behave as another simulated server from now on; any other server stays as it is."""
        if self._simulation is not None and isinstance(server, SimulatedModelServer):
            self._simulation.change(server)

    def recover(self) -> None:
        """Take it out of service until it is healthy again; a process that died is restarted."""
        if self._stopped or self._recovering is not None:
            return
        self.in_service = False
        self._recovering = asyncio.get_running_loop().create_task(self._recover())

    async def _recover(self) -> None:
        logger.warning("instance %s is out of service", self.id)
        while not self._stopped and not await self._healthy():
            if self._process is not None and self._process.poll() is not None:
                self._hang_up()
                await self._launch()
            await asyncio.sleep(0.2)
        self.in_service = not self._stopped
        self._recovering = None

    def stop(self) -> None:
        """Stop it: tasks at once, a process with SIGTERM and, 30 s later, SIGKILL."""
        self._stopped, self.in_service = True, False
        if self._recovering is not None:
            self._recovering.cancel()
        self._hang_up()
        if self._simulation is not None:
            self._simulation.stop()
        if self._listener is not None:
            self._listener.close()
        if self._process is not None:
            self._process.terminate()

    def _hang_up(self) -> None:
        if self._connections is not None:
            self._connections.close()
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def wait_stopped(self, timeout: float = _KILL_AFTER) -> None:
        """Wait for the end of its process."""
        if self._process is None:
            return
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    # ------------------------------------------------------------------------------------ requests

    @property
    def under_way(self) -> int:
        """Requests under way, of all routers."""
        return sum(self.outstanding)

    def begin(self, router: int) -> None:
        """Count a request in."""
        self.outstanding[router] += 1
        self.peak = max(self.peak, self.under_way)

    def end(self, router: int) -> None:
        """Count a request out."""
        self.outstanding[router] -= 1

    async def _request(self, method: str, path: str) -> Response:
        if self._connections is None:
            raise Unreachable("not started")
        return await self._connections.request(method, path)

    async def invoke(
        self, headers: list[tuple[str, str]], body: bytes, *, streaming: bool
    ) -> Response:
        """Call `/invocations`.

        Raises
        ------
        Unreachable, Broken
            As `Connections.request`.
        """
        if self._connections is None:
            raise Unreachable("not started")
        return await self._connections.request(
            "POST", "/invocations", headers, body, streaming=streaming
        )

    async def utilization(self) -> dict[str, float]:
        """Ask the model server for its utilisation; empty when it does not tell."""
        with contextlib.suppress(TimeoutError, Broken, Unreachable, ValueError):
            response = await asyncio.wait_for(self._request("GET", "/utilization"), PING_TIMEOUT)
            if response.status == 200:
                told: dict[str, Any] = json.loads(response.body)
                return {name: float(value) for name, value in told.items()}
        return {}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
