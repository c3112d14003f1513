"""Connections on blocking sockets, for many threads."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, cast

from .daemon_threads import DaemonThreads, start_daemon
from .event_loops import run_without_loop
from .http_connections import Connection, Pool, peer_watch
from .tls_trust import connected, name_of, only_tickets_came

_BLOCK = 64 * 1024
T = TypeVar("T")


class BlockingConnection(Connection):
    """One connection, in one thread at a time."""

    def __init__(self, pool: BlockingPool, origin: str, sock: socket.socket) -> None:
        super().__init__(pool, origin)
        self.peer = pool.peer(sock.getpeername())
        self._socket = sock
        self._receive = sock.recv
        self._heard = peer_watch(sock)
        self._timeout = self._read_seconds
        sock.settimeout(self._timeout)

    def heard(self) -> bool:
        return self._heard()

    async def ended(self) -> bool:
        tls = self._socket
        return not (isinstance(tls, ssl.SSLSocket) and only_tickets_came(tls))

    def _interrupt(self) -> None:
        self.closed = True
        with suppress(OSError):  # it is gone already
            # Not the TLS socket's: the thread that is woken still needs its TLS state.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def abort(self) -> None:
        self.closed = True
        self._pool.lost(self)
        self._socket.close()

    def leave_to_parent(self) -> None:
        self.closed = True
        self._socket.close()  # this process's copy, without a word to the peer

    def forsake(self) -> None:
        self.abort()

    async def _send(self, data: bytes) -> bool:
        try:
            self._set_time()
            sent = self._socket.send(data)  # mostly all of it
            while sent < len(data):
                self._set_time()
                sent += self._socket.send(memoryview(data)[sent:])
        except (BrokenPipeError, ConnectionResetError):
            return False  # an answer may have come before
        return True

    async def _read(self) -> None:
        self._set_time()
        data = self._receive(_BLOCK)
        if data:
            self.peer.heard = time.monotonic()
            self.reader.feed(data)
        elif self.closed:
            raise ConnectionAbortedError("closed here")
        else:
            self.reader.end()

    def _set_time(self) -> None:
        """Let the socket wait for the read timeout, but not beyond the call's deadline."""
        self.silent_since = now = time.monotonic()
        seconds = min(self._read_seconds, self._deadline - now)
        if seconds != self._timeout:
            if seconds <= 0:
                raise TimeoutError("the call's deadline")
            self._socket.settimeout(seconds)
            self._timeout = seconds


class BlockingPool(Pool[BlockingConnection]):
    """Safe across threads."""

    owner = "RuntimeClient"

    @staticmethod
    async def sleep(seconds: float) -> None:
        time.sleep(seconds)

    def is_full(self) -> bool:
        return False

    async def _connected(self, origin: str, seconds: float) -> BlockingConnection:
        host, port, secure = name_of(origin)
        deadline = time.monotonic() + seconds
        wrap = None
        if secure:
            context = cast(ssl.SSLContext, self._tls)  # the client has one for https
            wrap = partial(context.wrap_socket, server_hostname=host)
        connection = connected(
            socket.socket,
            _resolved(host, port, deadline),
            self.sockets,
            wrap,
            lambda: _left(deadline),
        )
        return BlockingConnection(self, origin, connection)

    async def _together(
        self, start: Callable[[], Coroutine[Any, Any, BlockingConnection]], number: int
    ) -> list[BlockingConnection | BaseException]:
        # Few threads: the handshakes compete for this process's one interpreter lock anyway.
        threads = DaemonThreads("open-connections")
        shares = [len(range(first, number, 8)) for first in range(min(number, 8))]
        opened = [threads.submit(partial(_outcomes, start, share)) for share in shares]
        threads.close()
        return [outcome for share in opened for outcome in share.result()]


def _outcomes(start: Callable[[], Coroutine[Any, Any, T]], number: int) -> list[T | BaseException]:
    """Return what comes of so many, one after the other."""
    outcomes: list[T | BaseException] = []
    for _ in range(number):
        try:
            outcomes.append(run_without_loop(start()))
        except Exception as error:
            outcomes.append(error)
    return outcomes


def _left(deadline: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("no connection in time")
    return seconds


def _resolved(host: str, port: int, deadline: float) -> list[Any]:
    """The host's addresses; in a thread, as the system's resolver knows no time limit."""
    outcomes: list[Any] = []
    resolved = threading.Event()

    def resolve() -> None:
        try:
            outcomes.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except OSError as error:
            outcomes.append(error)
        finally:
            resolved.set()

    if start_daemon(resolve, "resolve"):
        resolved.wait(_left(deadline))
    else:
        resolve()
    if not outcomes:
        raise TimeoutError(f"no address of {host} in time")
    if isinstance(outcomes[0], OSError):
        raise outcomes[0]
    return list(outcomes[0])
