"""HTTP/1.1 for one purpose: small POSTs on kept connections, with as little work as Python allows.

General clients spend most of their time on what SageMaker Runtime never asks for (cookies,
redirects, form data, proxies). This does the rest: pooling, timeouts, streams, botocore's errors.
How bytes are sent and waited for is up to ``async_http`` and ``blocking_http``.

A server may close a connection after an answer without having said so: its farewell then follows
the answer by the time that the server needs, and a request sent in between is lost. Whoever looks
at the socket before each use (as urllib3, and so boto3, does) sees every farewell that has come.
For those still on their way this prefers connections that have rested; boto3 gets that rest from
its own slowness.

A peer that freezes or vanishes says nothing at all, and takes all connections to its address along.
So what one connection learns is used for the others: see ``Peer``.
"""

from __future__ import annotations

import errno
import select
import socket
import ssl
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ReadTimeoutError,
    ResponseStreamingError,
    SSLError,
)

from .call_attempts import Attempts, StaleConnectionError, UnreachedPeerError
from .http_answers import AnswerReader, MalformedAnswer, OversizedAnswer
from .runtime_wire import Prepared
from .timing import AHEAD_TIMEOUT, CLIENT_CLOSED, CallTiming

#: PrivateLink drops a connection at 350 s without a word.
IDLE_SECONDS = 300.0
#: How long a connection rests after an answer before it counts as one that the peer keeps open.
REST_SECONDS = 0.005
#: How long at least before a call that cannot be repeated goes on it, of a peer that has not
#: ended connections so: what a farewell takes that was sent right behind the answer.
SURE_SECONDS = 0.0005
#: A connection that ends so soon after an answer was not ended for its idleness.
SOON_SECONDS = 1.0
#: How long after such an end all calls choose as those do that have to be sure, and those choose
#: connections that have rested longer.
WARY_SECONDS = 10.0
LONG_REST_SECONDS = 0.02


C = TypeVar("C", bound="Connection")


class Peer:
    """An address, and what its connections know of it together; times are ``time.monotonic()``'s.

    In doubt from a silence until its next byte on any connection. Only a byte clears it: a frozen
    process still accepts connections.
    """

    __slots__ = ("__weakref__", "doubted", "heard")

    def __init__(self, now: float) -> None:
        self.heard = now
        self.doubted = 0.0

    @property
    def in_doubt(self) -> bool:
        """Whether its kept connections have to wait for a sign of life."""
        return self.heard <= self.doubted


class KeptConnections(Generic[C]):
    """Idle connections by origin, those used last at the end; safe across threads."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._by_origin: dict[str, list[C]] = {}
        self._peers: weakref.WeakValueDictionary[Any, Peer] = weakref.WeakValueDictionary()
        self._wary_until: dict[str, float] = {}
        self._lock = threading.RLock()  # abort() of a connection comes back here
        self._closed = False

    def put(self, origin: str, connection: C, now: float) -> None:
        """Keep a connection whose exchange is over."""
        with self._lock:
            kept = self._by_origin.get(origin)
            if kept is None:
                self._by_origin[origin] = kept = []
            if self._closed or (self._most is not None and not self._has_room(kept)):
                connection.abort()
                return
            connection.idle_since = now
            kept.append(connection)

    def _has_room(self, kept: list[C]) -> bool:
        """Whether one more may be kept, in place of one whose peer is in doubt if need be."""
        if len(kept) < (self._most or 0):
            return True
        place = next((n for n, one in enumerate(kept) if one.peer.in_doubt), None)
        if place is None:
            return False
        kept.pop(place).abort()
        return True

    def peer(self, address: Any, now: float) -> Peer:
        """What is known of an address."""
        with self._lock:
            return self._peers.setdefault(address, Peer(now))

    def drop(self, peer: Peer, since: float) -> None:
        """Close those to a peer that were kept before a moment, from which on it was silent."""
        with self._lock:
            for kept in self._by_origin.values():
                suspects = [one for one in kept if one.peer is peer and one.idle_since <= since]
                for connection in suspects:
                    kept.remove(connection)
                    connection.abort()

    def take(self, origin: str, now: float, *, sure: bool) -> tuple[C | None, float]:
        """A connection for the next request, to a peer that is not in doubt.

        The one used last among those that have rested: the others may grow old and go. When none
        has, the one that has rested longest; for a call that has to be ``sure`` not before half a
        millisecond, and none while the peer is known to end connections without a word.
        """
        with self._lock:
            return self._taken(origin, now, sure)

    def _taken(self, origin: str, now: float, sure: bool) -> tuple[C | None, float]:
        kept = self._by_origin.get(origin)
        if not kept:
            return None, 0.0
        while kept and now - kept[0].idle_since > IDLE_SECONDS:
            kept.pop(0).abort()
        wary = now < self._wary_until.get(origin, 0.0)
        rested = now - (LONG_REST_SECONDS if wary and sure else REST_SECONDS)
        oldest = -1
        for place in range(len(kept) - 1, -1, -1):
            connection = kept[place]
            peer = connection.peer
            if peer.heard <= peer.doubted:  # in_doubt, without a call for each
                continue
            if connection.idle_since <= rested:
                return kept.pop(place), 0.0
            oldest = place
        if oldest < 0:
            return None, 0.0
        if sure and not wary:
            rested = now - SURE_SECONDS
        if (sure or wary) and kept[oldest].idle_since > rested:
            return None, kept[oldest].idle_since - rested
        return kept.pop(oldest), 0.0

    def beware(self, origin: str, now: float) -> None:
        """Take note of a peer that ends connections without a word."""
        self._wary_until[origin] = now + WARY_SECONDS

    def ended(self, origin: str, connection: C, now: float) -> None:
        """Take note that the peer ended a kept connection, or sent what nobody asked for."""
        if now - connection.idle_since < SOON_SECONDS:
            self.beware(origin, now)

    def lost(self, origin: str, connection: C, now: float) -> None:
        """Drop a connection that has ended, if it is kept."""
        with self._lock:
            kept = self._by_origin.get(origin, [])
            if connection in kept:
                kept.remove(connection)
                self.ended(origin, connection, now)

    def close(self) -> None:
        """Close all that are kept, and those that come later."""
        with self._lock:
            self._closed = True
            for kept in self._by_origin.values():
                while kept:
                    kept.pop().abort()


def peer_watch(sock: socket.socket) -> Callable[[], bool]:
    """A function that says whether anything came on a socket: bytes, its end, an error."""
    if not hasattr(select, "poll"):  # Windows
        return lambda: bool(select.select((sock,), (), (), 0)[0])
    watch = select.poll()
    watch.register(sock, select.POLLIN)
    return lambda: bool(watch.poll(0))


NEVER = float("inf")
# The peer's farewell or its reset, before a byte of an answer.
_ENDS = (MalformedAnswer, ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)
# The kernel's word that nobody acknowledges what was sent, or that no way leads there.
_UNREACHED = frozenset(
    getattr(errno, name)
    for name in ("ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH", "EHOSTDOWN", "ENETDOWN")
    if hasattr(errno, name)
)
Prepare = Callable[[str], Prepared]  # of an origin


class Connection(ABC):
    """One connection, one exchange at a time; the answer is in its reader."""

    peer: Peer

    def __init__(self, pool: Pool[Any], origin: str) -> None:
        self.origin = origin
        self.idle_since = 0.0
        self.silent_since = 0.0  # from the wait's begin or the last byte, while one waits
        self.closed = False
        self.reader = AnswerReader()
        self._pool = pool
        self._read_seconds = pool.read_seconds
        self._deadline = NEVER
        self._reused = False
        self._ended_here = False

    async def exchange(
        self, data: bytes, attempts: Attempts, *, stream: bool, reused: bool
    ) -> None:
        """Send a request and read its answer: to its end, or the head of a good stream."""
        reader = self.reader
        reader.expect(stream=stream)
        self._deadline, self._reused = attempts.deadline, reused
        silence = attempts.silence
        self._read_seconds = self._pool.read_seconds if silence is None else silence
        try:
            sent = await self._send(data)
            while not reader.complete and not (stream and 0 < reader.status < 300):
                await self._read()
        except (OSError, MalformedAnswer) as error:
            raise self._said(error) from error
        except BaseException:  # a caller that waits no longer
            self.doubt()
            raise
        reader.keep = reader.keep and sent

    async def part(self, deadline: float) -> bytes:
        """The next bytes of a stream's body, all that are there; empty at its end."""
        reader = self.reader
        self._deadline = deadline
        try:
            while not reader.parts and not reader.complete:
                await self._read()
        except (OSError, MalformedAnswer) as error:
            raise self._said(error) from error
        except BaseException:
            self.doubt()
            raise
        data = b"".join(reader.parts)
        reader.parts.clear()
        return data

    def give_back(self) -> None:
        """Its exchange is over, or is left in the middle."""
        self._pool.give_back(self)

    def doubt(self) -> None:
        """Use no other connection to a peer that, since it was asked, has said nothing on any.

        For a caller who waits no longer. After as long as a new connection may take, close them.
        """
        now = time.monotonic()
        if self._is_silent(now) and self.peer.heard <= self.silent_since:
            self.peer.doubted = now
            if now - self.silent_since >= self._pool.connect_seconds:
                self._pool.drop(self.peer, self.silent_since)

    def _said(self, error: Exception) -> HTTPClientError:
        """botocore's error for what went wrong after the request went out.

        What ends without a byte says something of the connections kept meanwhile, too.
        """
        number = error.errno if isinstance(error, OSError) else None
        kind: type[HTTPClientError] = ConnectionClosedError
        if isinstance(error, OversizedAnswer):
            return ResponseStreamingError(endpoint_url=self.origin, error=error)
        if number in _UNREACHED:
            self._fell_silent()
            if self._reused and not self.reader.started:
                kind = UnreachedPeerError
        elif isinstance(error, TimeoutError):
            if self._is_silent(time.monotonic()):
                self._fell_silent()
            return ReadTimeoutError(endpoint_url=self.origin, error=error)
        elif (
            self._reused
            and not self._ended_here  # which says nothing of the peer
            and not self.reader.started
            and isinstance(error, _ENDS)
        ):
            self._pool.drop(self.peer, self.silent_since)
            kind = StaleConnectionError
        return kind(endpoint_url=self.origin, error=error, request=None)

    def _is_silent(self, now: float) -> bool:
        """Whether no byte of the answer has come, or none for long: a trickle is life."""
        return not self.reader.started or now - self.silent_since >= self._pool.read_seconds / 2

    def _fell_silent(self) -> None:
        """Close what was kept before, and have the rest wait for the peer's next sign of life."""
        self.peer.doubted = time.monotonic()
        self._pool.drop(self.peer, self.silent_since)

    @abstractmethod
    async def _send(self, data: bytes) -> bool:
        """Send a request; false when the peer ended the connection before it had read all."""

    @abstractmethod
    async def _read(self) -> None:
        """Wait until more of the answer is in the reader, or raise what came in its place."""

    @abstractmethod
    def heard(self) -> bool:
        """Whether something came on an idle connection."""

    @abstractmethod
    async def ended(self) -> bool:
        """Whether that was the peer's end, or what nobody asked for."""

    def interrupt(self) -> None:
        """End it from outside, which wakes whoever waits for an answer."""
        self._ended_here = True
        self._interrupt()

    @abstractmethod
    def _interrupt(self) -> None:
        """End it and wake whoever waits."""

    @abstractmethod
    def abort(self) -> None:
        """Close at once; once more does nothing."""

    @abstractmethod
    def forsake(self) -> None:
        """End an exchange that nobody reads any more; for the garbage collector, in any thread."""

    @abstractmethod
    def leave_to_parent(self) -> None:
        """In a forked child: have nothing more to do with it, and say nothing to the peer."""


class Pool(ABC, Generic[C]):
    """Kept connections by origin. More than ``most`` can be in use, but are not kept."""

    owner: ClassVar[str]  # the client, as errors name it

    def __init__(
        self,
        timing: CallTiming,
        sockets: list[tuple[int, int, int]],
        tls: ssl.SSLContext | None,
        most: int | None,
    ) -> None:
        self.read_seconds = timing.read_timeout.total_seconds()
        self.sockets = sockets
        self.closed = False
        self.connect_seconds = timing.connect_timeout.total_seconds()
        self._ahead_seconds = max(timing.connect_timeout, AHEAD_TIMEOUT).total_seconds()
        self._tls = tls
        self._most = most
        self._start()

    def _start(self) -> None:
        self._kept: KeptConnections[C] = KeptConnections(self._most)
        self._all: set[C] = set()  # its methods, and list() of it, are atomic across threads

    async def exchange(
        self, prepare: Prepare, body: bytes, attempts: Attempts, *, stream: bool = False
    ) -> C:
        """Send a request and get its answer; then ``give_back()`` the connection.

        The request is signed when the connection is there.
        """
        origin = attempts.choose()
        prepared = prepare(origin)
        connection = None if attempts.fresh else await self._take(origin, attempts)
        reused = connection is not None
        if connection is None:
            left = attempts.deadline - time.monotonic()
            connection = await self._connect(origin, min(self.connect_seconds, left))
        try:
            data = prepared.signed(body)
            attempts.sending(connection)
            await connection.exchange(data, attempts, stream=stream, reused=reused)
        except BaseException as error:  # a signal's, a cancellation: half an answer is no use
            connection.abort()
            if type(error) is StaleConnectionError:
                self._kept.beware(origin, time.monotonic())
            raise
        return connection

    def give_back(self, connection: C) -> None:
        """Take a connection whose exchange is over, or is left in the middle."""
        if connection.reader.complete and connection.reader.keep and not connection.closed:
            self._kept.put(connection.origin, connection, time.monotonic())
        else:
            connection.abort()

    async def open(self, origin: str, number: int) -> int:
        """Open connections ahead and return how many are open. Failures are not raised.

        All of them together take no longer than one may: a peer that says nothing would otherwise
        hold the constructor up once for each.
        """
        deadline = time.monotonic() + self._ahead_seconds
        outcomes = await self._together(partial(self._open_one, origin, deadline), number)
        return sum(1 for outcome in outcomes if not isinstance(outcome, BaseException))

    async def _open_one(self, origin: str, deadline: float) -> C:
        """Return a connection that is kept, also when the others are not waited for."""
        connection = await self._connect(origin, max(0.0, deadline - time.monotonic()))
        self._kept.put(origin, connection, time.monotonic())
        return connection

    def peer(self, address: Any) -> Peer:
        """What is known of a connection's other end."""
        return self._kept.peer(address, time.monotonic())

    def drop(self, peer: Peer, since: float) -> None:
        """Close the idle connections to a peer that were kept before a moment."""
        self._kept.drop(peer, since)

    def lost(self, connection: C) -> None:
        """Forget a connection that has ended."""
        self._all.discard(connection)
        self._kept.lost(connection.origin, connection, time.monotonic())

    def check_open(self) -> None:
        """Raise LLC111 after :meth:`close`."""
        if self.closed:
            raise CLIENT_CLOSED.error(
                got="a call after close()", allowed="calls before close()", where=self.owner
            )

    def close(self) -> None:
        """Close all connections, for good; what is under way ends with an error."""
        self.closed = True
        self._kept.close()
        for connection in list(self._all):
            connection.interrupt()

    def leave_to_parent(self) -> None:
        """In a forked child: open connections anew; those of the parent stay the parent's.

        Two processes on one connection would read each other's answers.
        """
        for connection in self._all:
            connection.leave_to_parent()
        self._start()

    def forsake(self) -> None:
        """Keep no connection more; those in use serve to their end. For the garbage collector."""
        self._kept.close()

    async def _take(self, origin: str, attempts: Attempts) -> C | None:
        """A kept connection that the peer has not ended; ``None`` for a new one."""
        while not self.closed:
            connection, pause = self._kept.take(origin, time.monotonic(), sure=attempts.sure)
            if connection is None:
                if not pause:
                    return None
                await self.sleep(pause)
            elif not connection.heard() or not await connection.ended():
                return connection
            else:
                connection.abort()
                self._kept.ended(origin, connection, time.monotonic())
        return None

    async def _connect(self, origin: str, seconds: float) -> C:
        self.check_open()
        try:
            connection = await self._connected(origin, seconds)
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

    @staticmethod
    @abstractmethod
    async def sleep(seconds: float) -> None:
        """Wait."""

    @abstractmethod
    def is_full(self) -> bool:
        """Whether a request would have to wait for its turn."""

    @abstractmethod
    async def _connected(self, origin: str, seconds: float) -> C:
        """A new connection; raises what the system does."""

    @abstractmethod
    async def _together(
        self, start: Callable[[], Coroutine[Any, Any, C]], number: int
    ) -> list[C | BaseException]:
        """Results of so many at once."""
