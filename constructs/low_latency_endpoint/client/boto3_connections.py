"""Connections of the boto3 client: one pool, one TLS context, opened before the first call.

boto3 reads the bundle of certificate authorities again for every new connection (about 20 ms of
processor time). Here one context with the bundle serves all.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from botocore.httpsession import URLLib3Session
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3 import exceptions as urllib3_errors
from urllib3.connection import HTTPSConnection

from .client_base import ClientOptions
from .tls_trust import only_tickets_came

_log = logging.getLogger(__name__)


class _TlsConnection(HTTPSConnection):
    """A connection that is not taken for dropped because TLS 1.3 sent session tickets.

    Tickets follow the handshake and wait unread on a connection that was opened ahead; urllib3
    takes any unread byte for the peer's farewell, and would open the connection again.
    """

    @property
    def is_connected(self) -> bool:
        """Whether the next request can use it."""
        if super().is_connected:
            return True
        return isinstance(self.sock, ssl.SSLSocket) and only_tickets_came(self.sock)


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class Urllib3Connections(URLLib3Session):  # type: ignore[misc]  # untyped botocore
    """What botocore's ``Endpoint`` sends with: its own session, with one TLS context."""

    def __init__(self, options: ClientOptions) -> None:
        self._options = options
        self._start()

    def _start(self) -> None:
        options = self._options
        super().__init__(
            proxies={},
            timeout=(
                options.timing.connect_timeout.total_seconds(),
                options.timing.read_timeout.total_seconds(),
            ),
            max_pool_connections=options.connections,
            socket_options=options.sockets,
        )
        self._manager.pool_classes_by_scheme = {"http": HTTPConnectionPool, "https": _TlsPool}
        self._pools: dict[str, HTTPConnectionPool] = {}

    def _get_ssl_context(self) -> ssl.SSLContext:
        return self._options.tls

    def _setup_ssl_cert(self, conn: Any, url: str, verify: Any) -> None:
        """Nothing is to be read: the context has the authorities."""

    def _get_connection_manager(self, url: str, proxy_url: str | None = None) -> Any:
        return self  # for connection_from_url()

    def connection_from_url(self, url: str) -> HTTPConnectionPool:
        """The pool of a URL's origin; urllib3's own look-up costs as much as a signature."""
        parts = urlsplit(url)  # cached by the standard library
        origin = f"{parts.scheme}://{parts.netloc}"
        pool = self._pools.get(origin)
        if pool is None:
            self._pools[origin] = pool = self._manager.connection_from_url(origin)
        return pool

    async def open(self, origin: str, number: int) -> int:
        """Open connections and put them into the pool; returns how many are open.

        Uses two methods that urllib3 keeps for its own subclasses; where they are gone, nothing is
        opened ahead and calls open their connections themselves.
        """
        pool = self.connection_from_url(origin)
        take: Callable[[], Any] | None = getattr(pool, "_get_conn", None)
        put: Callable[[Any], None] | None = getattr(pool, "_put_conn", None)
        if take is None or put is None:
            _log.warning("this urllib3 opens no connections ahead of the first call")
            return 0

        def connect(connection: Any) -> bool:
            try:
                if not connection.is_connected:
                    connection.timeout = self._options.ahead_seconds
                    connection.connect()
            except (OSError, urllib3_errors.HTTPError) as error:
                _log.warning("%s: %s", origin, type(error).__name__)
                connection.close()
                return False
            return True

        taken = [take() for _ in range(number)]
        # Few threads: the handshakes compete for this process's one interpreter lock anyway.
        with ThreadPoolExecutor(min(number, 8), "open-connections") as threads:
            opened = sum(threads.map(connect, taken))
        for connection in taken:
            put(connection)
        return opened

    def close(self) -> None:
        """Close all connections."""
        self._pools.clear()
        super().close()

    def leave_to_parent(self) -> None:
        """In a forked child: open connections anew; those of the parent stay the parent's.

        Two processes on one connection would read each other's answers.
        """
        # Kept, and without urllib3's own close(): its locks may be held by a thread of the parent
        # that is not here.
        self._parents = (self._manager, self._pools)
        for pool in self._pools.values():
            for connection in getattr(pool.pool, "queue", ()):
                if (sock := getattr(connection, "sock", None)) is not None:
                    sock.close()  # this process's copy: says nothing to the peer
        self._start()
