"""Which kept connection a request goes on, so that it does not meet one that the peer has ended.

A server may close a connection after an answer without having said so: its farewell then follows
the answer by the time that the server needs, and a request sent in between is lost. Whoever looks
at the socket before each use (as urllib3, and so boto3, does) sees every farewell that has come.
For those still on their way this prefers connections that have rested; boto3 gets that rest from
its own slowness.
"""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

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


class Kept(Protocol):
    """A connection without a request under way."""

    idle_since: float

    def abort(self) -> None:
        """Close at once."""


C = TypeVar("C", bound=Kept)


class KeptConnections(Generic[C]):
    """Idle connections by origin, those used last at the end; safe across threads."""

    def __init__(self, most: int | None = None, idle_seconds: float = IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self._most = most
        self._by_origin: dict[str, list[C]] = {}
        self._wary_until: dict[str, float] = {}
        self._lock = threading.RLock()  # abort() of a connection comes back here
        self._closed = False

    def put(self, origin: str, connection: C, now: float) -> None:
        """Keep a connection whose exchange is over."""
        with self._lock:
            kept = self._by_origin.get(origin)
            if kept is None:
                self._by_origin[origin] = kept = []
            if self._closed or (self._most is not None and len(kept) >= self._most):
                connection.abort()
                return
            connection.idle_since = now
            kept.append(connection)

    def take(self, origin: str, now: float, *, sure: bool) -> tuple[C | None, float]:
        """A connection for the next request.

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
        while kept and now - kept[0].idle_since > self._idle_seconds:
            kept.pop(0).abort()
        wary = now < self._wary_until.get(origin, 0.0)
        rested = now - (LONG_REST_SECONDS if wary and sure else REST_SECONDS)
        for place in range(len(kept) - 1, -1, -1):
            if kept[place].idle_since <= rested:
                return kept.pop(place), 0.0
        if not kept:
            return None, 0.0
        if sure and not wary:
            rested = now - SURE_SECONDS
        if (sure or wary) and kept[0].idle_since > rested:
            return None, kept[0].idle_since - rested
        return kept.pop(0), 0.0

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
