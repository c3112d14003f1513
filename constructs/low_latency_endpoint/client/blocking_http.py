"""HTTP/1.1 on blocking sockets, for many threads: the twin of ``async_http``."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ReadTimeoutError,
    SSLError,
)
from botocore.exceptions import ConnectionError as NoConnectionError

from .call_attempts import Attempts, StaleConnectionError, no_answer
from .client_base import ClientOptions
from .client_timing import CLIENT_CLOSED
from .http_answers import AnswerReader, MalformedAnswer
from .kept_connections import KeptConnections, peer_watch
from .runtime_wire import Prepared
from .tls_trust import connected, name_of

_BLOCK = 64 * 1024
_NEVER = float("inf")
# The peer's farewell or its reset, before a byte of an answer.
_ENDS = (
    MalformedAnswer,
    ConnectionResetError,
    BrokenPipeError,
    ssl.SSLEOFError,
    ssl.SSLZeroReturnError,
)


class BlockingConnection:
    """One connection, one exchange at a time, in one thread at a time."""

    def __init__(self, pool: BlockingPool, origin: str, sock: socket.socket) -> None:
        self.origin = origin
        self.idle_since = 0.0
        self.reader = AnswerReader()
        self._pool = pool
        self._socket = sock
        self._receive = sock.recv
        self._heard = peer_watch(sock)
        self._read_seconds = self._timeout = pool.read_seconds
        self._deadline = _NEVER
        self._reused = False
        sock.settimeout(self._timeout)

    def ended(self) -> bool:
        """Whether the peer has ended it, or sent what nobody asked for."""
        if not self._heard():
            return False
        if not isinstance(self._socket, ssl.SSLSocket):
            return True
        try:
            self._socket.settimeout(0)
            self._socket.recv(1)
        except ssl.SSLWantReadError:
            self._socket.settimeout(self._timeout)
            return False  # TLS's session tickets, which are read now
        except OSError:
            return True
        return True

    def exchange(
        self,
        data: bytes,
        deadline: float,
        *,
        stream: bool,
        reused: bool,
        silence: float | None = None,
    ) -> None:
        """Send a request and read its answer: to its end, or the head of a stream's."""
        reader = self.reader
        reader.expect(stream=stream)
        self._deadline, self._reused = deadline, reused
        self._read_seconds = self._pool.read_seconds if silence is None else silence
        try:
            sent = True
            try:
                self._send(data)
            except (BrokenPipeError, ConnectionResetError):
                sent = False  # an answer may have come before
            while not reader.complete:
                self._read()
                if stream and 0 < reader.status < 300:
                    self._deadline = _NEVER  # from here on only silence counts
                    break
            reader.keep = reader.keep and sent
        except BaseException as error:  # a signal's too: half an answer is no use to anybody
            self.abort()
            if isinstance(error, OSError | MalformedAnswer):
                raise self._said(error) from error
            raise

    def part(self, deadline: float = _NEVER) -> bytes:
        """The next bytes of a stream's body; empty at its end."""
        reader = self.reader
        self._deadline = deadline
        try:
            while not reader.parts and not reader.complete:
                self._read()
        except BaseException as error:
            self.abort()
            if isinstance(error, OSError | MalformedAnswer):
                raise self._said(error) from error
            raise
        data = b"".join(reader.parts)
        reader.parts.clear()
        return data

    def abort(self) -> None:
        """Close at once."""
        self._pool.lost(self)
        self._socket.close()

    def interrupt(self) -> None:
        """End it from another thread, which wakes the one that waits for an answer."""
        with suppress(OSError):  # it is gone already
            # Not the TLS socket's: the thread that is woken still needs its TLS state.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close_here(self) -> None:
        """Close this process's copy, without a word to the peer."""
        self._socket.close()

    def _send(self, data: bytes) -> None:
        self._set_time()
        sent = self._socket.send(data)  # mostly all of it
        while sent < len(data):
            self._set_time()
            sent += self._socket.send(memoryview(data)[sent:])

    def _read(self) -> None:
        self._set_time()
        data = self._receive(_BLOCK)
        if data:
            self.reader.feed(data)
        else:
            self.reader.end()

    def _set_time(self) -> None:
        """Let the socket wait for the read timeout, but not beyond the call's deadline."""
        seconds = min(self._read_seconds, self._deadline - time.monotonic())
        if seconds != self._timeout:
            if seconds <= 0:
                raise TimeoutError("the call's deadline")
            self._socket.settimeout(seconds)
            self._timeout = seconds

    def _said(self, error: Exception) -> HTTPClientError:
        """botocore's error for what went wrong after the request went out."""
        made: HTTPClientError
        # The kernel's own time-out has a number: nobody acknowledges what was sent.
        if isinstance(error, TimeoutError) and error.errno is None:
            made = ReadTimeoutError(endpoint_url=self.origin, error=error)
            return made
        stale = self._reused and not self.reader.started and isinstance(error, _ENDS)
        if stale:
            made = StaleConnectionError(endpoint_url=self.origin, error=error, request=None)
            return made
        return no_answer(error, self.origin)


class BlockingPool:
    """Kept connections by origin; safe across threads. More than are kept can be in use."""

    def __init__(self, options: ClientOptions) -> None:
        self.read_seconds = options.timing.read_timeout.total_seconds()
        self.closed = False
        self._connect_seconds = options.timing.connect_timeout.total_seconds()
        self._options = options
        self._start()

    def _start(self) -> None:
        self._lock = threading.RLock()  # KeptConnections closes some, which comes back here
        self._kept: KeptConnections[BlockingConnection] = KeptConnections(self._options.connections)
        self._all: set[BlockingConnection] = set()

    def exchange(
        self, prepared: Prepared, body: bytes, attempts: Attempts, *, stream: bool = False
    ) -> BlockingConnection:
        """Send a request and get its answer, in the connection's reader; then ``give_back()`` it.

        It is signed when the connection is there.
        """
        origin = prepared.origin
        connection = None if attempts.fresh else self._take(origin, attempts)
        reused = connection is not None
        if connection is None:
            left = attempts.deadline - time.monotonic()
            connection = self._connect(origin, min(self._connect_seconds, left))
        try:
            data = prepared.signed(body)
            attempts.sending(connection)
            connection.exchange(
                data, attempts.deadline, stream=stream, reused=reused, silence=attempts.silence
            )
        except StaleConnectionError:
            with self._lock:
                self._kept.beware(origin, time.monotonic())
            raise
        except BaseException:
            connection.abort()  # once more does nothing
            raise
        return connection

    def give_back(self, connection: BlockingConnection) -> None:
        """Take a connection whose exchange is over."""
        reader = connection.reader
        if reader.complete and reader.keep:
            with self._lock:
                if not self.closed:
                    self._kept.put(connection.origin, connection, time.monotonic())
                    return
        connection.abort()

    def open(self, origin: str, number: int) -> int:
        """Open connections ahead; returns how many are open. Failures are not raised."""

        def connect(_: int) -> BlockingConnection | None:
            try:
                return self._connect(origin, self._options.ahead_seconds)
            except (HTTPClientError, NoConnectionError):
                return None

        # Few threads: the handshakes compete for this process's one interpreter lock anyway.
        with ThreadPoolExecutor(min(number, 8), "open-connections") as threads:
            made = [one for one in threads.map(connect, range(number)) if one is not None]
        for connection in made:
            connection.reader.complete = True  # no answer is awaited
            self.give_back(connection)
        return len(made)

    def lost(self, connection: BlockingConnection) -> None:
        """Forget a connection that has ended."""
        with self._lock:
            self._all.discard(connection)

    def close(self) -> None:
        """Close all connections, for good; what is under way ends with an error."""
        with self._lock:
            self.closed = True
            for connection in self._all:
                connection.interrupt()
            self._kept.close()

    def leave_to_parent(self) -> None:
        """In a forked child: open connections anew; those of the parent stay the parent's.

        Two processes on one connection would read each other's answers.
        """
        for connection in self._all:
            connection.close_here()
        self._start()

    def _take(self, origin: str, attempts: Attempts) -> BlockingConnection | None:
        """A kept connection that the peer has not ended; ``None`` for a new one."""
        while not self.closed:
            with self._lock:
                connection, pause = self._kept.take(origin, time.monotonic(), sure=attempts.sure)
            if connection is None:
                if not pause:
                    return None
                time.sleep(pause)
            elif connection.ended():
                connection.abort()
                with self._lock:
                    self._kept.ended(origin, connection, time.monotonic())
            else:
                return connection
        return None

    def _connect(self, origin: str, seconds: float) -> BlockingConnection:
        if self.closed:
            raise CLIENT_CLOSED.error(got="a call after close()", allowed="calls before it")
        try:
            made = self._connected(origin, time.monotonic() + seconds)
        except ssl.SSLError as error:
            raise SSLError(endpoint_url=origin, error=error) from error
        except TimeoutError as error:
            raise ConnectTimeoutError(endpoint_url=origin, error=error) from error
        except OSError as error:
            raise EndpointConnectionError(endpoint_url=origin, error=error) from error
        connection = BlockingConnection(self, origin, made)
        with self._lock:
            if not self.closed:
                self._all.add(connection)
                return connection
        connection.close_here()  # closed meanwhile
        raise ConnectionClosedError(endpoint_url=origin, request=None)

    def _connected(self, origin: str, deadline: float) -> socket.socket:
        host, port, secure = name_of(origin)
        made: socket.socket = connected(
            socket.socket,
            _resolved(host, port, deadline),
            self._options.sockets,
            partial(self._options.tls.wrap_socket, server_hostname=host) if secure else None,
            lambda: _left(deadline),
        )
        return made


def _left(deadline: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("no connection in time")
    return seconds


def _resolved(host: str, port: int, deadline: float) -> list[Any]:
    """The host's addresses; in a thread, as the system's resolver knows no time limit."""
    found: list[Any] = []

    def resolve() -> None:
        try:
            found.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except OSError as error:
            found.append(error)

    thread = threading.Thread(target=resolve, name="resolve", daemon=True)
    thread.start()
    thread.join(_left(deadline))
    if not found:
        raise TimeoutError(f"no address of {host} in time")
    if isinstance(found[0], OSError):
        raise found[0]
    return list(found[0])
