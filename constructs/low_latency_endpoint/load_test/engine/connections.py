"""One HTTP/1.1 connection of a load generator: gevent's socket, geventhttpclient's parser."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from functools import cache, partial
from typing import Any

import gevent
import gevent.socket
import gevent.ssl
from gevent.hub import get_hub
from gevent.monkey import get_original
from geventhttpclient.response import HTTPParseError, HTTPResponse

from low_latency_client.timing import socket_options
from low_latency_client.tls_trust import connected, name_of

CONNECT_SECONDS = 3.0
"""For the name, TCP and TLS together; a busy generator and a far Region have room in it."""
_BLOCK = 64 * 1024
_READ = 1  # libev's EV_READ
_OPTIONS = socket_options(timedelta(seconds=60), timedelta(seconds=CONNECT_SECONDS))
_poll = get_original("select", "poll")  # Locust puts gevent's in its place, which is slow
#: Where ``struct tcp_info`` of linux/tcp.h has tcpi_bytes_acked, tcpi_bytes_sent (since 4.19) and,
#: next to it, tcpi_bytes_retrans.
_BYTES_ACKED, _BYTES_SENT = 120, 200
_TCP_INFO: int | None = getattr(socket, "TCP_INFO", None)  # Linux only
#: SO_TIMESTAMPNS of asm-generic/socket.h, which Python has no name for, and what it tells.
_STAMPED = 35 if sys.platform == "linux" else None
_STAMP = struct.Struct("@ll")
#: More than the alert that TLS sends when the other side's end surprises it; a request's head alone
#: is longer.
_NO_REQUEST = 64


class _Parser(HTTPResponse):
    """The library's response without its headers, for one answer after the other."""

    # llhttp calls these by name for every header, and takes anything true that they return for a
    # failure. ``().count`` is a function in C that takes one value and returns 0.

    _on_status = _on_header_field = _on_header_value = ().count  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__("POST")
        self.complete = self.headed = False
        self.parts: list[bytearray] = []
        self._on_body = self.parts.append  # type: ignore[method-assign, assignment]

    def _on_message_begin(self) -> None:
        self.complete = self.headed = False  # after an interim answer, the real one

    def _on_headers_complete(self) -> None:
        self.headed = True

    def _on_message_complete(self) -> None:
        self.complete = True


class GeneratorConnection:
    """A connection, and one exchange on it at a time."""

    __slots__ = (
        "_parser",
        "_peek",
        "_poll",
        "_readable",
        "_receive",
        "_socket",
        "_timer",
        "_wait",
        "came_at",
        "expired",
        "finished",
        "received",
        "status",
        "used_at",
    )

    def __init__(self, url: str, timeout_seconds: float, ca_file: str) -> None:
        self._socket = _connected(url, min(timeout_seconds, CONNECT_SECONDS), ca_file)
        self._receive: Callable[[int], bytes] = self._socket.recv
        if isinstance(self._socket, gevent.ssl.SSLSocket):
            self._receive = self._receive_tls
        self._parser = _Parser()
        hub = get_hub()
        self._wait = hub.wait
        self.came_at = 0.0  # when what was read last of a stream had come
        self._peek: Callable[[], Any] | None = None
        self._readable = hub.loop.io(self._socket.fileno(), _READ)
        self._timer = hub.loop.timer(timeout_seconds, timeout_seconds)
        looking = _poll()
        looking.register(self._socket.fileno(), select.POLLIN)
        self._poll = looking.poll
        self.expired = False  # by the timeout
        self.finished = False  # by the other side, in order, while an answer was waited for
        self.received = b""  # of an answer that is not, or not yet known to be, a good one
        self.status = 0
        self.used_at = 0.0  # the end of the last exchange

    def exchange(
        self, request: bytes, on_part: Callable[[bytes], None] | None = None
    ) -> list[bytearray]:
        """Send a request and read its answer to the end; the parts of its body."""
        parser, receive = self._parser, self._receive
        parts = parser.parts
        parts.clear()
        parser.complete = parser.headed = False  # of the answer before
        self.received = b""
        self.status = 0
        if on_part is not None:
            receive = self._receive_of_stream
            self._tell_times()
            self.came_at = time.perf_counter()
        # One timer per connection, started anew: gevent's Timeout would be made for each request.
        self._timer.again(self._expire)
        try:
            try:
                sent = self._socket.send(request)  # mostly all of it, in half sendall()'s time
                if sent < len(request):
                    self._socket.sendall(memoryview(request)[sent:])
            except (BrokenPipeError, ConnectionResetError):
                # The answer may have come before the request was read to its end.
                if not self._feed(receive(_BLOCK)):
                    raise
            else:
                if on_part is None:
                    self._wait(self._readable)  # the answer is never there yet; asking costs 2 us
                self._feed(receive(_BLOCK))
            while True:
                if on_part is not None and 200 <= self.status < 300:
                    for part in parts:
                        on_part(bytes(part))
                    parts.clear()
                if parser.complete and self.status >= 200:
                    return parts
                self._feed(receive(_BLOCK))
        finally:
            self._timer.stop()
            self.used_at = time.perf_counter()

    def _receive_tls(self, most: int) -> bytes:
        """As a plain socket has it: no bytes at the end, with TLS's farewell or without it."""
        # A reset is an ``SSLEOFError``, too, but one of the system and not of OpenSSL (since 3.0).
        try:
            return self._socket.recv(most)  # type: ignore[no-any-return]
        except ssl.SSLEOFError as error:
            if error.reason != "UNEXPECTED_EOF_WHILE_READING":
                raise
            return b""

    def _tell_times(self) -> None:
        """Have the kernel note when each segment comes: whoever reads many is late."""
        if self._peek is None and _STAMPED is not None:
            with contextlib.suppress(OSError):  # kernels of others' making may know none
                self._socket.setsockopt(socket.SOL_SOCKET, _STAMPED, 1)
            # The plain socket's, below TLS: what is only looked at is still there for OpenSSL.
            self._peek = partial(
                gevent.socket.socket.recvmsg,
                self._socket,
                _BLOCK,
                socket.CMSG_SPACE(_STAMP.size),
                socket.MSG_PEEK,
            )

    def _receive_of_stream(self, most: int) -> bytes:
        """The next bytes, and in ``came_at`` when they had come."""
        while True:
            self._wait(self._readable)
            came_at = self._arrival()
            try:
                data = self._receive_at_once(most)
            except (BlockingIOError, ssl.SSLWantReadError):
                continue  # nothing after all, part of a TLS record, or one of TLS's own
            self.came_at = came_at
            return data

    def _receive_at_once(self, most: int) -> bytes:
        self._socket.settimeout(0.0)
        try:
            return self._receive(most)
        finally:
            self._socket.settimeout(None)

    def _arrival(self) -> float:
        """When the newest of what there is to read came, by the kernel; else, now."""
        told = () if self._peek is None else self._peek()[1]
        # The wall clock is read first, so that a pause between the two readings makes the arrival
        # later: none may seem to have come before it was sent.
        wall, now = time.time_ns(), time.perf_counter()
        for _, kind, data in told:
            if kind == _STAMPED and len(data) == _STAMP.size:
                seconds, nanoseconds = _STAMP.unpack(data)
                age: float = 1e-9 * (wall - 1_000_000_000 * seconds - nanoseconds)
                # What is read now came after what was read before, whatever the clock was set to.
                return min(now, max(self.came_at, now - age))
        return now

    def _feed(self, data: bytes) -> bytes:
        """Parse what came; nothing is the connection's end."""
        parser = self._parser
        if data:
            parser.feed(data)
        else:
            self.finished = True
            with contextlib.suppress(HTTPParseError):  # it is no end
                parser.feed(data)
            if not parser.complete:
                raise ConnectionResetError("closed before the end of the answer")
        self.status = status = parser.get_code() if parser.headed else 0
        if not 200 <= status < 300:
            self.received += data
        return data

    def headers(self) -> dict[str, str]:
        """Headers of an answer that is no good one, names in lower case."""
        # The library's own response reads its bytes a second time.
        response = HTTPResponse("POST")
        response.feed(self.received)
        return {name.lower(): value for name, value in response.items()}

    def forget(self) -> None:
        """Keep no answer on a connection that waits for its next request."""
        self._parser.parts.clear()

    def reusable(self) -> bool:
        """Whether another exchange may follow."""
        return not self.expired and bool(self._parser.should_keep_alive())

    def ended(self) -> bool:
        """Whether there is something to read on this idle connection: its end, or nothing good."""
        # It costs 0.8 us; a peek, which fails with an exception while all is well, costs 3.
        return bool(self._poll(0))

    def unheard(self) -> bool:
        """Whether the other side had closed it before the whole request reached it."""
        # The segment that ends a connection acknowledges all that had come until then. Where it leaves
        # part of the request out, nobody has read the request, and sending it again does nothing twice.
        if not self.finished or self.received or _TCP_INFO is None:
            return False
        told = self._socket.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, 256)
        if len(told) < _BYTES_SENT + 16:  # an older kernel
            return False
        (acknowledged,) = struct.unpack_from("=Q", told, _BYTES_ACKED)
        sent, again = struct.unpack_from("=QQ", told, _BYTES_SENT)
        # The first that is acknowledged is that of the connection itself.
        return bool(sent - again - (acknowledged - 1) > _NO_REQUEST)

    def close(self) -> None:
        """Close at once."""
        for watcher in (self._readable, self._timer):
            watcher.stop()
            watcher.close()
        self._socket.close()

    def _expire(self) -> None:
        """In gevent's loop: end the connection, which wakes the greenlet that waits for it."""
        self.expired = True
        with contextlib.suppress(OSError):  # it is gone already
            # Not the TLS socket's: the greenlet that is woken still needs its TLS state.
            gevent.socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


@cache
def _tls_context(ca_file: str) -> ssl.SSLContext:
    """One per process: reading the authorities takes 20 ms of processor time."""
    # create_default_context() makes the standard library's own, which would stop all greenlets.
    made: ssl.SSLContext = gevent.ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.load_verify_locations(cafile=ca_file)
    made.hostname_checks_common_name = False
    return made


def _connected(url: str, seconds: float, ca_file: str) -> Any:
    host, port, secure = name_of(url)
    with gevent.Timeout(seconds, TimeoutError("no connection in time")):
        return connected(
            gevent.socket.socket,
            gevent.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM),
            _OPTIONS,
            partial(
                _tls_context(ca_file).wrap_socket, server_hostname=host, suppress_ragged_eofs=False
            )
            if secure
            else None,
            lambda: None,
        )


#: The first that fits.
_ERRORS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str], ...] = (
    (ConnectionRefusedError, "refused"),
    (ssl.SSLCertVerificationError, "not trusted"),
    (TimeoutError, "timeout"),
    (socket.gaierror, "name unknown"),
    # A peer that goes without a farewell: TCP's end, a reset, TLS's end, an answer cut short.
    ((ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError), "closed"),
    (HTTPParseError, "malformed answer"),
)


def connection_error(error: BaseException) -> str | None:
    """The kind of error that a failed connection is; ``None`` for anything else."""
    for kinds, said in _ERRORS:
        if isinstance(error, kinds):
            return f"connection {said}"
    if isinstance(error, OSError):
        return f"connection {error.strerror or type(error).__name__}".rstrip()
    return None
