"""HTTP/1.1 for one purpose: small POSTs on kept connections, with as little work as Python allows.

aiohttp spends about 90 microseconds of processor time on such a request, most of it on what
SageMaker Runtime never asks for (cookies, redirects, form data, proxies). This does the rest:
pooling, timeouts, TLS, ``Content-Length`` and chunked answers, and botocore's errors.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time

from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    SSLError,
)

from .async_connection import Answer, AsyncConnection
from .call_attempts import Attempts, StaleConnectionError
from .client_base import ConnectionOptions
from .client_timing import CLIENT_CLOSED
from .kept_connections import KeptConnections
from .tls_trust import name_of


class HttpPool:
    """Kept connections by origin; belongs to the running event loop.

    Requests beyond the options' ``size`` wait for their turn.
    """

    def __init__(self, options: ConnectionOptions) -> None:
        self.loop = asyncio.get_running_loop()
        self.read_seconds = options.read_timeout.total_seconds()
        self.closed = False
        self._connect_seconds = options.connect_timeout.total_seconds()
        self._options = options
        self._turns = asyncio.Semaphore(options.size)
        self._kept: KeptConnections[AsyncConnection] = KeptConnections(options.idle.total_seconds())
        self._all: set[AsyncConnection] = set()

    async def exchange(
        self, origin: str, data: bytes, attempts: Attempts, *, stream: bool = False
    ) -> Answer:
        """Send a request and get its answer; ``close()`` it when done.

        Parameters
        ----------
        origin : str
            Where to.
        data : bytes
            The whole request.
        attempts : Attempts
            Says until when, and on which kind of connection. The wait for a turn is not the
            call's own time: its deadline moves on by as much.
        stream : bool, optional
            Whether the answer is returned with its head.

        Raises
        ------
        botocore.exceptions.HTTPClientError, botocore.exceptions.ConnectionError
            As boto3 does.
        ConfigurationError
            ``LLE593``.
        """
        if self._turns.locked():
            began = time.monotonic()
            await self._turns.acquire()
            attempts.deadline += time.monotonic() - began
        else:
            await self._turns.acquire()  # does not wait
        try:
            connection = None if attempts.fresh else await self._take(origin, attempts)
            reused = connection is not None
            if connection is None:
                left = attempts.deadline - time.monotonic()
                connection = await self._connect(origin, min(self._connect_seconds, left))
        except BaseException:
            self._turns.release()
            raise
        waiter = connection.send(data, stream=stream, reused=reused, deadline=attempts.deadline)
        try:
            return await waiter
        except BaseException as error:  # the task's cancellation too
            connection.give_up()  # half an answer is no use to anybody
            if isinstance(error, StaleConnectionError):
                self._kept.beware(origin, time.monotonic())
            raise

    async def open(self, origin: str, number: int) -> int:
        """Open connections ahead; returns how many are open. Failures are not raised."""
        made = await asyncio.gather(
            *(self._connect(origin, self._options.ahead_seconds) for _ in range(number)),
            return_exceptions=True,
        )
        good = [one for one in made if isinstance(one, AsyncConnection)]
        for connection in good:
            self._keep(connection)
        return len(good)

    def give_back(self, connection: AsyncConnection) -> None:
        """Take a connection whose exchange is over."""
        self._turns.release()
        if not connection.closed:
            self._keep(connection)

    def lost(self, connection: AsyncConnection) -> None:
        """Forget a connection that has ended."""
        self._all.discard(connection)
        self._kept.lost(connection.url, connection, time.monotonic())

    def close(self) -> None:
        """Close all connections, for good; what is under way ends with an error."""
        self.closed = True
        self._kept.close()
        for connection in list(self._all):
            connection.abort()

    def _keep(self, connection: AsyncConnection) -> None:
        self._kept.put(connection.url, connection, time.monotonic())

    async def _take(self, origin: str, attempts: Attempts) -> AsyncConnection | None:
        """A kept connection that the peer has not ended; ``None`` for a new one."""
        while not self.closed:
            connection, pause = self._kept.take(origin, time.monotonic(), sure=attempts.sure)
            if connection is None:
                if not pause:
                    return None
                await asyncio.sleep(pause)
                continue
            if connection.usable and not connection.heard():
                return connection
            # Something came that the event loop has not read: TLS's session tickets after the
            # handshake, or the peer's end. Two turns of the loop tell.
            try:
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            except BaseException:
                connection.abort()
                raise
            if connection.usable and not connection.heard():
                return connection
            connection.abort()
            self._kept.ended(origin, connection, time.monotonic())
        return None

    async def _connect(self, origin: str, seconds: float) -> AsyncConnection:
        if self.closed:
            raise CLIENT_CLOSED.error(got="a call after close()", allowed="calls before it")
        host, port, secure = name_of(origin)
        try:
            async with asyncio.timeout(seconds):
                plain = await self._tcp(host, port)
                try:
                    _, connection = await self.loop.create_connection(
                        lambda: AsyncConnection(self, origin, plain),
                        sock=plain,
                        ssl=self._options.tls if secure else None,
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
        if self.closed:  # meanwhile
            connection.abort()
            raise ConnectionClosedError(endpoint_url=origin, request=None)
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
                for level, name, value in self._options.sockets:
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
