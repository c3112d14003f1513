"""HTTP/1.1 for one purpose: small POSTs on kept connections, with as little work as Python allows.

aiohttp spends about 90 microseconds of processor time on such a request, most of it on what
SageMaker Runtime never asks for (cookies, redirects, form data, proxies). This does the rest:
pooling, timeouts, TLS, ``Content-Length`` and chunked answers, and botocore's errors.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from datetime import timedelta
from urllib.parse import urlsplit

from botocore.exceptions import (
    ConnectTimeoutError,
    EndpointConnectionError,
    SSLError,
)

from .async_connection import Answer, Connection
from .client_timing import AHEAD_TIMEOUT

__all__ = ["HttpPool"]


class HttpPool:
    """Kept connections by origin; belongs to the running event loop.

    Parameters
    ----------
    limit : int
        Most connections in use at the same moment; further requests wait.
    connect_timeout, read_timeout : timedelta
        For name, TCP and TLS together; for the longest silence after a request.
    idle : timedelta
        A connection unused for longer is not used again.
    options : list of tuple
        Socket options of every connection.
    tls : ssl.SSLContext
        For ``https`` origins.
    """

    def __init__(self, *, limit: int, connect_timeout: timedelta, read_timeout: timedelta,
                 idle: timedelta, options: list[tuple[int, int, int]],
                 tls: ssl.SSLContext) -> None:
        self.loop = asyncio.get_running_loop()
        self.read_seconds = read_timeout.total_seconds()
        self._connect_seconds = connect_timeout.total_seconds()
        self._ahead_seconds = max(connect_timeout, AHEAD_TIMEOUT).total_seconds()
        self._idle_seconds = idle.total_seconds()
        self._options = options
        self._tls = tls
        self._turns = asyncio.Semaphore(limit)
        self._idle: dict[str, list[Connection]] = {}
        self._all: set[Connection] = set()

    async def exchange(self, origin: str, data: bytes, *, stream: bool = False) -> Answer:
        """Send a request and get its answer; ``close()`` it when done.

        Raises
        ------
        botocore.exceptions.HTTPClientError, botocore.exceptions.ConnectionError
            As boto3 does.
        """
        await self._turns.acquire()
        try:
            connection = self._kept(origin)
            if connection is None:
                connection = await self._connect(origin, self._connect_seconds)
        except BaseException:
            self._turns.release()
            raise
        waiter = connection.send(data, stream=stream)
        try:
            return await waiter
        except BaseException:  # the task's cancellation too: half an answer is no use to anybody
            connection.give_up()
            raise

    async def open(self, origin: str, number: int) -> int:
        """Open connections ahead; returns how many are open. Failures are not raised."""
        made = await asyncio.gather(
            *(self._connect(origin, self._ahead_seconds) for _ in range(number)),
            return_exceptions=True,
        )
        good = [one for one in made if isinstance(one, Connection)]
        for connection in good:
            self._keep(connection)
        return len(good)

    def give_back(self, connection: Connection) -> None:
        """Take a connection whose exchange is over."""
        self._turns.release()
        if connection.closed:
            self._all.discard(connection)
        else:
            self._keep(connection)

    def close(self) -> None:
        """Close all connections."""
        for connection in list(self._all):
            connection.abort()
        self._all.clear()
        self._idle.clear()

    def _keep(self, connection: Connection) -> None:
        connection.idle_since = self.loop.time()
        self._idle.setdefault(connection.url, []).append(connection)

    def _kept(self, origin: str) -> Connection | None:
        kept = self._idle.get(origin)
        while kept:
            connection = kept.pop()  # the one used last: the others may grow old and go
            if connection.closed:
                self._all.discard(connection)
            elif self.loop.time() - connection.idle_since > self._idle_seconds:
                connection.abort()
                self._all.discard(connection)
            else:
                return connection
        return None

    async def _connect(self, origin: str, seconds: float) -> Connection:
        parts = urlsplit(origin)
        host, secure = parts.hostname or "", parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        try:
            async with asyncio.timeout(seconds):
                plain = await self._tcp(host, port)
                try:
                    _, connection = await self.loop.create_connection(
                        lambda: Connection(self, origin), sock=plain,
                        ssl=self._tls if secure else None,
                        server_hostname=host if secure else None,
                    )
                except BaseException:
                    plain.close()
                    raise
        except ssl.SSLError as error:
            raise SSLError(endpoint_url=origin, error=error) from error
        except TimeoutError as error:
            raise ConnectTimeoutError(endpoint_url=origin, error=error) from error
        except OSError as error:
            raise EndpointConnectionError(endpoint_url=origin, error=error) from error
        self._all.add(connection)
        return connection

    async def _tcp(self, host: str, port: int) -> socket.socket:
        """A connected socket with the options set; addresses one after the other."""
        failure: OSError | None = None
        for family, kind, protocol, _, address in await self.loop.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        ):
            made = socket.socket(family, kind, protocol)
            try:
                made.setblocking(False)
                for level, name, value in self._options:
                    made.setsockopt(level, name, value)
                await self.loop.sock_connect(made, address)
            except BaseException as error:
                made.close()
                if not isinstance(error, OSError) or isinstance(error, TimeoutError):
                    raise
                failure = error
            else:
                return made
        raise failure or OSError(f"{host} has no address")
