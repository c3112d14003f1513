"""A boto3 ``sagemaker-runtime`` client for callers that need every millisecond, and its connections.

:func:`runtime_client` returns boto3's own client, prepared mostly by botocore's public events: a
pool as large as the callers need, keep-alive that PrivateLink does not outlast, one TLS context,
timeouts and retries that fit the latency target, the User-Agent built once, connections open
before the first call, the caller's own zone with the Region as its fallback, and, on request,
hedged calls. Behind an HTTP proxy boto3's own transport stays in place.

Needs the ``operations`` extra (boto3).

boto3 reads the bundle of certificate authorities again for every new connection (about 20 ms of
processor time). Here one context with the bundle serves all.
"""

from __future__ import annotations

import io
import logging
import ssl
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass
from typing import Any, cast
from urllib.parse import urlsplit

import botocore
from botocore.config import Config
from botocore.exceptions import ConnectionError as NoConnectionError
from botocore.exceptions import HTTPClientError, SSLError
from botocore.httpsession import URLLib3Session
from botocore.response import StreamingBody
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3 import exceptions as urllib3_errors
from urllib3.connection import HTTPSConnection

from .call_attempts import Attempts, CallRules, is_idempotent
from .client_base import ClientOptions, Fields, is_proxied, opened_ahead
from .client_timing import CLIENT_CLOSED, CallTiming, ClientCounts
from .client_zone import ClientZone, ZonalRoute, checked_origin
from .event_loops import run_without_loop, start_anew_after_fork
from .hedging import Claim, HedgingState, ThreadRace, hedged
from .runtime_wire import check_header_values
from .tls_trust import only_tickets_came


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


_log = logging.getLogger(__name__)
_SERVICE = "sagemaker-runtime"
_CREATING = threading.Lock()


class Boto3RuntimeClient:
    """What :func:`runtime_client` adds to boto3's client, which this is as well.

    All of boto3's methods and attributes work as ever (``invoke_endpoint``,
    ``invoke_endpoint_with_response_stream``, ``exceptions``, ``meta``, ``close``). Calls take one
    parameter more: ``Idempotent=False`` for a call that must not be served twice; it is then
    neither hedged nor, once sent, retried. Calls with a ``SessionId``, and those whose body has a
    field of language models, are taken as such unless they say otherwise.
    """

    timing: CallTiming  # timeouts and retries in force
    counts: ClientCounts  # retries, failovers, hedges so far
    zone: ClientZone | None  # the caller's zone, if given or found
    route: ZonalRoute | None  # where calls go; ``None`` when only one URL is known
    meta: Any
    exceptions: Any
    _handlers: Handlers

    def invoke_endpoint(self, **parameters: Any) -> dict[str, Any]:
        """boto3's ``invoke_endpoint``, and ``Idempotent``."""
        raise NotImplementedError  # boto3's generated method stands before this one

    def invoke_endpoint_with_response_stream(self, **parameters: Any) -> dict[str, Any]:
        """boto3's ``invoke_endpoint_with_response_stream``, and ``Idempotent``."""
        raise NotImplementedError  # boto3's generated method stands before this one

    def preconnect(self, connections: int) -> int:
        """Open connections now, to the zone and to the Region; returns how many are open.

        Returns 0 behind a proxy, where boto3 keeps its own connections.
        """
        return self._handlers.preconnect(connections)

    def close(self) -> None:
        """Close all connections, for good."""
        self._handlers.close()
        cast(Any, super()).close()


@dataclass(frozen=True)
class _Options(ClientOptions):
    _: KW_ONLY
    concurrency: int = 50  # threads that boto3 serves well
    config: Config | None = None


def _spelled_out(
    make: Callable[[_Options], Boto3RuntimeClient], options: Callable[Fields, _Options]
) -> Callable[Fields, Boto3RuntimeClient]:
    def runtime_client(*fields: Fields.args, **named: Fields.kwargs) -> Boto3RuntimeClient:
        """A boto3 client for ``InvokeEndpoint``, fit to a latency target.

        Examples
        --------
        >>> from datetime import timedelta
        >>> client = runtime_client("us-east-1", latency_target=timedelta(milliseconds=200),
        ...                         preconnect=0)
        >>> client.timing.read_timeout.total_seconds()
        2.0
        >>> client.meta.config.max_pool_connections
        50
        >>> client.close()
        """
        return make(options(*fields, **named))

    return runtime_client


def _made(given: _Options) -> Boto3RuntimeClient:
    options = given.checked()
    url, config = options.url, given.config
    if url is not None:
        url = checked_origin(url, "url", allow_plain_http=options.allow_plain_http)
    counts = ClientCounts()
    own_zone, zonal = options.find_route()
    settings = Config(
        max_pool_connections=options.connections,
        tcp_keepalive=True,
        connect_timeout=options.timing.connect_timeout.total_seconds(),
        read_timeout=options.timing.read_timeout.total_seconds(),
        # Handlers decides, before botocore; more than its attempts, so that botocore never adds
        # to an error that they were used up.
        retries={"mode": "standard", "total_max_attempts": options.retries + 3},
    )
    client = _create(options, url, config.merge(settings) if config else settings)
    regional = client.meta.endpoint_url
    # From the environment or the profile, where boto3 takes a path as well.
    parts = urlsplit(regional)
    checked_origin(
        f"{parts.scheme}://{parts.netloc}",
        "endpoint_url of the configuration",
        allow_plain_http=options.allow_plain_http,
    )
    client.timing, client.counts, client.zone = options.timing, counts, own_zone
    client.route = ZonalRoute(zonal, regional, counts) if zonal else None
    connections = None
    if not is_proxied(regional, client.meta.config.proxies):
        connections = Urllib3Connections(options)
    client._handlers = Handlers(client, connections, options.hedging_state(counts))
    if options.preconnect:
        client.preconnect(options.preconnect)
    return client


runtime_client = _spelled_out(_made, _Options)


def _create(options: ClientOptions, url: str | None, config: Config) -> Boto3RuntimeClient:
    """boto3's client with :class:`Boto3RuntimeClient` among its bases and the User-Agent fixed."""
    session, region, fixed = options.session, options.region, config
    assert session is not None
    ca_file = None if options.ca_bundle is None else options.ca_file
    if not config.user_agent:
        # boto3 assembles this text twice per call. Said once it stays the same; botocore appends
        # the extra parts again, so they are taken off.
        plain_client = session.client(_SERVICE, region_name=region, endpoint_url=url, config=config)
        extra = f" {config.user_agent_extra}" if config.user_agent_extra else ""
        agent = plain_client.meta.config.user_agent.removesuffix(
            f" Botocore/{botocore.__version__}{extra}"
        )
        fixed = config.merge(Config(user_agent=agent))
        plain_client.close()

    def add_base(base_classes: list[type], **_: Any) -> None:
        base_classes.insert(0, Boto3RuntimeClient)

    event = f"creating-client-class.{_SERVICE}"
    with _CREATING:
        session.events.register(event, add_base, unique_id="low-latency-runtime-client")
        try:
            client = session.client(
                _SERVICE, region_name=region, endpoint_url=url, verify=ca_file, config=fixed
            )
        finally:
            session.events.unregister(event, unique_id="low-latency-runtime-client")
    return cast(Boto3RuntimeClient, client)


class Handlers:
    """One client's decisions at botocore's events: which host, whether again, whether twice."""

    def __init__(
        self, client: Any, connections: Urllib3Connections | None, hedging: HedgingState | None
    ) -> None:
        self._counts: ClientCounts = client.counts
        self._route: ZonalRoute | None = client.route
        self._regional: str = client.meta.endpoint_url
        self._connections = connections
        self._hedging = hedging
        self._rules = CallRules(client.timing, client.counts, self._regional, client.route)
        self._closed = False
        self._race = ThreadRace()
        # botocore names events after the service's ID; clients know theirs.
        service = client.meta.service_model.service_id.hyphenize()
        events = client.meta.events
        events.register_first(f"provide-client-params.{service}", self.take_idempotent)
        events.register_first(f"needs-retry.{service}", self.decide_on_retry)
        events.register_first(f"before-call.{service}", self.check_headers)
        if self._route is not None:
            # Before the request is signed: the signature covers the host.
            events.register_first(f"request-created.{service}", self.choose_host)
        if connections is not None and not _take_over(client, connections):
            self._connections = None
        if hedging is not None:
            plain = client.invoke_endpoint
            client.invoke_endpoint = lambda **parameters: self._invoke(plain, parameters)
        start_anew_after_fork(self)

    def start_anew(self) -> None:
        """In a forked child, where neither the parent's threads nor its connections are ours."""
        if self._connections is not None:
            self._connections.leave_to_parent()
        if self._hedging is not None:
            self._hedging.start_anew()
        self._race = ThreadRace()
        self._rules.start_anew()

    def preconnect(self, number: int) -> int:
        """Open connections ahead of the first call; returns how many are open."""
        if self._closed:
            raise CLIENT_CLOSED.error(got="preconnect() after close()", allowed="before it")
        if self._connections is None:
            return 0
        ahead = opened_ahead(
            self._connections.open, self._route, self._regional, number, self._counts
        )
        return run_without_loop(ahead)

    def close(self) -> None:
        self._closed = True
        if self._connections is not None:
            self._connections.close()
        self._race.close()

    def take_idempotent(
        self, params: Mapping[str, Any], context: dict[str, Any], **_: Any
    ) -> Mapping[str, Any] | None:
        """Handle ``provide-client-params``: our parameter is not for AWS."""
        if self._closed:
            raise CLIENT_CLOSED.error(got="a call after close()", allowed="calls before close()")
        context["low_latency_attempts"] = Attempts(self._rules, is_idempotent(params))
        if "Idempotent" not in params:
            return None
        return {name: value for name, value in params.items() if name != "Idempotent"}

    def check_headers(self, params: Mapping[str, Any], **_: Any) -> None:
        """Handle ``before-call``: the standard library would send a NUL."""
        check_header_values(params["headers"])

    def choose_host(self, request: Any, **_: Any) -> None:
        """Handle ``request-created``: the zone's host, or the Region's."""
        origin = request.context["low_latency_attempts"].choose()
        if origin != self._regional and request.url.startswith(self._regional):
            request.url = origin + request.url[len(self._regional) :]

    def decide_on_retry(
        self, response: Any, caught_exception: Any, request_dict: dict[str, Any], **_: Any
    ) -> float | bool | None:
        """Handle ``needs-retry``: seconds to wait, or ``False`` for no further attempt."""
        attempts: Attempts = request_dict["context"]["low_latency_attempts"]
        if response is not None:
            status = response[0].status_code
            pause = attempts.answered(status, str(response[1].get("Error", {}).get("Code")))
            if status < 300:
                return None  # as most calls: nothing to decide
        elif isinstance(caught_exception, (HTTPClientError, NoConnectionError)):
            # urllib3 does not tell TLS's errors of the handshake from those of the answer.
            sent = True if isinstance(caught_exception, SSLError) else None
            pause = attempts.failed(caught_exception, sent=sent)
        else:
            return False  # a mistake in the call, not on the way
        return False if pause is None else pause

    def _invoke(self, plain: Callable[..., Any], parameters: dict[str, Any]) -> Any:
        if self._closed or not is_idempotent(parameters):
            return plain(**parameters)
        assert self._hedging is not None

        async def call(claim: Claim) -> Any:
            claim.watch(self)  # urllib3 does not say when the connection is there
            return _read(plain(**parameters))

        return run_without_loop(hedged(call, self._hedging, self._race, lambda: False))


def _take_over(client: Any, connections: Urllib3Connections) -> bool:
    """Put our connections in the place of botocore's; returns whether there was such a place.

    botocore's public ``before-send`` event would do too, but calls every handler: a client under
    moto's mock would still send each request. This way a mock's answer keeps it from being sent.
    """
    endpoint = getattr(client, "_endpoint", None)
    session = getattr(endpoint, "http_session", None)
    if endpoint is None or session is None:
        _log.warning("this botocore keeps its own connections; new ones will be slow")
        return False
    session.close()
    endpoint.http_session = connections
    return True


def _read(response: dict[str, Any]) -> dict[str, Any]:
    """The whole answer, so that its connection is free again whoever wins."""
    body = response["Body"].read()
    response["Body"] = StreamingBody(io.BytesIO(body), len(body))
    return response
