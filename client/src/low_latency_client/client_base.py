"""What both clients do alike: from options and credentials to calls and their retries.

:class:`ClientBase` is written once for threads and asyncio; see ``event_loops``.
"""

from __future__ import annotations

import inspect
import logging
import os
import ssl
import time
import weakref
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

import boto3
from botocore.exceptions import ConnectionError as NoConnectionError
from botocore.exceptions import HTTPClientError, ReadTimeoutError
from botocore.utils import get_environ_proxies

from .arguments import CLIENT_ARGUMENT, check_kind, checked, duration
from .call_attempts import Attempts, CallRules, is_idempotent, stated_idempotent
from .call_records import CallRecord, recorded
from .generation_requests import (
    NEW_SESSION,
    NOT_TWICE,
    OPENED_BY_STREAM,
    generation_body,
    with_conversation,
)
from .generations import Limits
from .hedging import Claim, Hedging, HedgingState, TaskRace, ThreadRace, hedged, raced
from .http_connections import Connection, Pool
from .region import check_region_of_url, region_of, warn_of_unknown_region
from .response_streams import EventStream, GenerationStream
from .runtime_wire import Operation, Prepared, Wire, body_bytes
from .signing import CredentialsEnded, RenewedCredentials, Sigv4Signer
from .timing import (
    CLIENT_CONCURRENCY,
    CLIENT_CREDENTIALS,
    CLIENT_PRECONNECT,
    CLIENT_PROXY,
    CallTiming,
    ClientCounts,
    call_timing,
    socket_options,
)
from .tls_trust import name_of, tls_context, trusted_authorities
from .zone import (
    ZONE_WITHOUT_URLS,
    ClientZone,
    ZonalRoute,
    checked_origin,
    find_client_zone,
    is_this_machine,
    zonal_url_for,
)

_log = logging.getLogger(__name__)
Streamed = TypeVar("Streamed", bound=GenerationStream)


class ClientBase:
    """Checks options, finds credentials and the route, and makes calls over its pool.

    :class:`~low_latency_client.blocking_client.RuntimeClient` and
    :class:`~low_latency_client.async_client.AsyncRuntimeClient` each open the pool
    and run two copies of a call in their own way.

    Parameters
    ----------
    region : str, optional
        By default the session's.
    latency_target : timedelta or str
        Client latency that most calls must hold, such as the p99. Timeouts follow from it.
        This and all other times are ``timedelta`` or text such as ``200ms``, ``30s`` or ``5m``.
    concurrency : int, optional
        Most calls at the same moment, such as the number of threads; 100 by default. As many
        connections are kept (twice as many with hedging).
    url : str, optional
        The regional endpoint's URL; by default AWS's own name, which private DNS answers with the
        interface endpoint. Stack output ``RegionalUrl``.
    zonal_urls : mapping of str to str, optional
        Zone (ID or name) to URL: the stack's outputs ``ZonalUrl-...``. The caller's own zone is
        used, with fallback to the regional URL after connection errors.
    zone : str, optional
        The caller's zone, as ID or name; by default found by
        :func:`~low_latency_client.zone.find_client_zone`, only when
        ``zonal_urls`` are given, without which there is nothing to choose.
    zone_timeout : timedelta or str, optional
        Longest wait for the zone to be found; 500 ms by default.
    connect_timeout : timedelta or str, optional
        Longest wait for a connection, name resolution and TLS included; by default twice the latency
        target, at least 250 ms and at most 3 s.
    read_timeout : timedelta or str, optional
        Longest silence of the endpoint once the request was sent; by default ten times the latency
        target, at least 1 s and at most 70 s. It is never retried.
    retries : int, optional
        Further attempts after errors that allow one, such as a failed connection; 0 to 5, by default
        1.
    keepalive : timedelta or str, optional
        Silence after which TCP probes the connection; 60 s by default. PrivateLink drops
        connections after 350 s.
    preconnect : int, optional
        Connections to open before the first call; by default as many as ``concurrency``, at most
        20. They go where calls go, and one to the other name. 0 for none. Failures are logged, not
        raised.
    hedging : Hedging, optional
        Send slow calls of ``invoke_endpoint`` a second time, generations of ``stream()`` only where
        the call asks for it; off by default.
    session : boto3.Session, optional
        Credentials, profile, Region; a new one by default.
    ca_bundle : path, optional
        Certificate authorities to trust; by default as boto3 chooses.
    allow_plain_http : bool, optional
        Whether ``http://`` may lead to another machine, where requests, answers and session
        tokens can be read on the way; by default only to this one.
    on_call : callable, optional
        Called with a :class:`~low_latency_client.call_records.CallRecord` after each call, in the
        thread or task that made it, for metrics and traces. It must be quick, and what it raises
        is logged. By default nothing is called.

    Attributes
    ----------
    timing : CallTiming
        Timeouts and retries in force; ``timing.longest_call`` ends a call whatever happens.
    counts : ClientCounts
        Retries, failovers, hedges so far.
    zone : ClientZone or None
        The caller's zone, if given or found; of the asyncio client once it is entered.
    route : ZonalRoute or None
        Where calls go; ``None`` when only one URL is known.
    exceptions
        boto3's error classes for this service, such as ``exceptions.ModelError``; all are
        ``botocore.exceptions.ClientError``.

    Raises
    ------
    ConfigurationError
        ``LLC101`` to ``LLC104``, ``LLC107`` to ``LLC110``, ``LLC119`` to ``LLC123``; ``LLC125`` for
        what is no duration, ``LLC124`` for what is no Region.
    """

    _race: ThreadRace | TaskRace
    _pool: Pool[Any] | None = None

    def __init__(
        self,
        region: str | None = None,
        *,
        latency_target: timedelta | str,
        concurrency: int = 100,
        url: str | None = None,
        zonal_urls: Mapping[str, str] | None = None,
        zone: str | None = None,
        zone_timeout: timedelta | str = timedelta(milliseconds=500),
        connect_timeout: timedelta | str | None = None,
        read_timeout: timedelta | str | None = None,
        retries: int = 1,
        keepalive: timedelta | str = timedelta(seconds=60),
        preconnect: int | None = None,
        hedging: Hedging | None = None,
        session: boto3.Session | None = None,
        ca_bundle: str | os.PathLike[str] | None = None,
        allow_plain_http: bool = False,
        on_call: Callable[[CallRecord], None] | None = None,
    ) -> None:
        self.timing: CallTiming = call_timing(
            latency_target,
            connect_timeout=connect_timeout,
            read_timeout=read_timeout,
            retries=retries,
        )
        CLIENT_CONCURRENCY.check(concurrency, "concurrency")
        self._opened_ahead = min(concurrency, 20) if preconnect is None else preconnect
        CLIENT_PRECONNECT.check(self._opened_ahead, "preconnect")
        self._sockets = socket_options(keepalive, self.timing.connect_timeout)
        session = session or boto3.Session()
        region = region_of(session, region)
        if url is None:
            warn_of_unknown_region(session, region)
        if inspect.iscoroutinefunction(on_call):
            raise CLIENT_ARGUMENT.error(
                got="a coroutine function", allowed="a function or None", where="on_call"
            )

        # boto3's own client says which URL and which User-Agent it would use.
        probe = session.client("sagemaker-runtime", region_name=region)
        probe.close()
        self._regional = checked_origin(
            url or probe.meta.endpoint_url, "url", allow_plain_http=allow_plain_http
        )
        check_region_of_url(self._regional, region, "url")
        self._proxies = probe.meta.config.proxies
        self._check_proxy(self._regional, "url")
        source = session.get_credentials()
        if source is None:
            raise CLIENT_CREDENTIALS.error(
                got="none", allowed="any AWS credentials", where="session"
            )
        self._credentials = RenewedCredentials(source)
        self._wire = Wire(
            Sigv4Signer(self._credentials, region=region),
            {"User-Agent": probe.meta.config.user_agent},
        )
        self.exceptions: Any = self._wire.exceptions

        self.on_call = on_call
        self.counts = ClientCounts()
        self._rules = CallRules(self.timing, self.counts, self._regional)
        self._connections = concurrency
        self._hedging: HedgingState | None = None
        self._generation_hedging: HedgingState | None = None
        if hedging is not None:
            self._connections = 2 * concurrency
            target = duration(latency_target, "latency_target")
            self._hedging = HedgingState(hedging, target, self.counts)
            # Its own: times to the first token are no latencies of whole calls.
            self._generation_hedging = HedgingState(hedging, target, self.counts)

        self.zone: ClientZone | None = None
        self.route: ZonalRoute | None = None
        self._zone_option = zone
        self._zone_timeout = duration(zone_timeout, "zone_timeout")
        self._zonal_urls = {
            key: checked_origin(value, f"zonal_urls[{key!r}]", allow_plain_http=allow_plain_http)
            for key, value in (zonal_urls or {}).items()
        }
        for key, value in self._zonal_urls.items():
            check_region_of_url(value, region, f"zonal_urls[{key!r}]")
        if zone and not self._zonal_urls:
            raise ZONE_WITHOUT_URLS.error(
                got=f"zone={zone!r} without zonal_urls", allowed="both, or neither", where="zone"
            )

        origins = [self._regional, *self._zonal_urls.values()]
        self._tls: ssl.SSLContext | None = None
        if any(origin.startswith("https:") for origin in origins):
            authorities = trusted_authorities(session) if ca_bundle is None else ca_bundle
            # Read now: a bundle that is missing is an error here, not of the first call.
            self._tls = tls_context(os.fspath(authorities))
        self._begin()
        _clients.add(self)

    def __init_subclass__(cls) -> None:
        """Have the constructor checked, and its errors and help in the name of the class."""
        super().__init_subclass__()
        if ClientBase in cls.__bases__ and "__init__" not in vars(cls):
            constructor = checked(ClientBase.__init__, cls.__name__)
            constructor.__doc__ = inspect.getdoc(ClientBase)
            cls.__init__ = constructor  # type: ignore[method-assign]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._regional!r})"

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled: two clients would share connections and locks."""
        raise TypeError(f"{type(self).__name__} cannot be copied: create one client per process")

    def start_anew(self) -> None:
        """In a forked child, where neither the parent's threads nor its connections are ours."""
        self._rules.start_anew()
        for state in (self._hedging, self._generation_hedging):
            if state is not None:
                state.start_anew()

    def __del__(self) -> None:
        pool = self._pool
        if pool is not None:
            pool.forsake()

    def _begin(self) -> None:
        """Called last by the constructor, for what only one kind of client needs."""
        raise NotImplementedError

    def _open_pool(self) -> Pool[Any]:
        """The pool, or an error when calls cannot be made now."""
        raise NotImplementedError

    @recorded("InvokeEndpoint")
    async def _invoke(self, parameters: Any) -> Any:
        """boto3's answer to ``InvokeEndpoint``, of the call or of its second copy."""
        pool = self._open_pool()
        idempotent, body = self._taken_apart(parameters)
        if self._hedging is None or not idempotent:
            return await self._answer(Attempts(self._rules, idempotent), parameters, body)
        first: list[Attempts] = []

        async def copy(claim: Claim) -> dict[str, Any]:
            attempts = Attempts(self._rules, idempotent)
            attempts.watch = claim.watch
            if first:
                attempts.deadline = first[0].deadline
            first.append(attempts)
            return await self._answer(attempts, parameters, body)

        return await hedged(copy, self._hedging, self._race, pool.is_full)

    async def _answer(
        self, attempts: Attempts, parameters: dict[str, Any], body: bytes
    ) -> dict[str, Any]:
        """boto3's answer to ``InvokeEndpoint``."""
        operation = self._wire.invoke
        connection = await self._send(operation, parameters, body, attempts)
        reader = connection.reader
        status, headers, content = reader.status, reader.headers, b"".join(reader.parts)
        connection.give_back()
        return self._wire.answer(operation, status, headers, content, attempts.made)

    @recorded("InvokeEndpointWithResponseStream")
    async def _events(self, kind: type[EventStream], parameters: Any) -> Any:
        """boto3's answer to ``InvokeEndpointWithResponseStream``; its body is of this kind."""
        body = body_bytes(parameters.pop("Body", None))
        idempotent = _taken_statement(parameters)
        started = time.perf_counter()
        attempts = Attempts(self._rules, idempotent)
        operation = self._wire.stream
        connection = await self._send(operation, parameters, body, attempts)
        return self._wire.answer(
            operation,
            connection.reader.status,
            connection.reader.headers,
            kind(connection, self._wire, started),
            attempts.made,
        )

    @recorded("InvokeEndpointWithResponseStream")
    async def _generate(
        self,
        kind: type[Streamed],
        limits: Limits,
        conversation: str | None,
        hedge_generations: bool,
        parameters: Any,
    ) -> Streamed:
        """A generation of this kind whose first token is there, the call's or its second copy's."""
        pool = self._open_pool()
        request = {"ContentType": "application/json", **with_conversation(parameters, conversation)}
        body = generation_body(request.pop("Body", None))
        if request.get("SessionId") == NEW_SESSION:
            raise OPENED_BY_STREAM.error(
                got=NEW_SESSION, allowed="the ID of an open session", where="stream, SessionId"
            )
        stated = request.get("Idempotent")
        idempotent = _taken_statement(request)
        if hedge_generations is not False:
            check_kind(hedge_generations, bool, "stream, hedge_generations")
        hedging = self._generation_hedging if hedge_generations else None
        obstacle = ""
        if hedging is None:
            obstacle = "a client without hedging"
        elif request.get("SessionId"):
            obstacle = "a SessionId"
        elif stated is False:
            obstacle = "Idempotent=False"
        if hedge_generations and obstacle:
            raise NOT_TWICE.error(
                got=obstacle,
                allowed="a client with hedging=Hedging(...), a call without SessionId and without "
                "Idempotent=False",
                where="stream, hedge_generations",
            )

        async def begin(claim: Claim | None = None) -> Streamed:
            attempts = Attempts(self._rules, idempotent)
            attempts.first_token = limits.first
            attempts.silence = float("inf")  # the limits take its place
            attempts.watch = claim.watch if claim else None
            generation = kind(self._wire, limits)
            try:
                connection = await self._send(self._wire.stream, request, body, attempts)
            except ReadTimeoutError as error:
                raise generation.late(self._regional) from error
            await generation.begin(connection, attempts)
            return generation

        if hedging is None:
            return await begin()
        return await raced(begin, hedging, self._race, pool.is_full, self.counts)

    async def _send(
        self, operation: Operation, parameters: dict[str, Any], body: bytes, attempts: Attempts
    ) -> Connection:
        """One call with its retries; the connection holds an answer below 300."""
        pool = self._open_pool()
        stream = operation is self._wire.stream
        error: Any = None

        def prepare(origin: str) -> Prepared:
            return self._wire.prepare(origin, operation, parameters)

        while True:
            if error is not None and pool.closed:
                raise error
            try:
                connection: Connection = await pool.exchange(prepare, body, attempts, stream=stream)
            except CredentialsEnded:
                for seconds in self._credentials.waits(attempts.deadline):
                    await pool.sleep(seconds)
                continue
            except (HTTPClientError, NoConnectionError) as problem:
                pause = attempts.failed(problem)
                error = problem
            else:
                reader = connection.reader
                if reader.status < 300:
                    attempts.answered(reader.status)
                    return connection
                content = b"".join(reader.parts)
                error = self._wire.error(
                    operation, reader.status, reader.headers, content, attempts.made + 1
                )
                code = error.response.get("Error", {}).get("Code")
                pause = attempts.answered(reader.status, str(code))
                if attempts.watch is not None:
                    attempts.watch(None)
                connection.give_back()
            if pause is None:
                raise error
            await pool.sleep(pause)

    @staticmethod
    def _taken_apart(parameters: dict[str, Any]) -> tuple[bool, bytes]:
        """Whether the call may be served twice, and its body; the rest is for the serializer."""
        body = body_bytes(parameters.pop("Body", None))
        idempotent = is_idempotent(parameters, body)
        parameters.pop("Idempotent", None)
        return idempotent, body

    async def _preconnect(self, connections: int) -> int:
        """Open connections where calls go first, and one to the other name; returns how many."""
        CLIENT_PRECONNECT.check(connections, "preconnect, connections")
        pool = self._open_pool()
        opened = 0
        regional_connections = connections
        if self.route is not None:
            opened = await pool.open(self.route.zonal, connections)
            if opened:
                regional_connections = 1
        opened += await pool.open(self._regional, regional_connections)
        self.counts.add("connections_opened", opened)
        if connections and not opened:
            _log.warning("no connection to %s could be opened", self._regional)
        return opened

    def _check_proxy(self, url: str, where: str) -> None:
        """Refuse one that would be passed by; to this machine there is no need of any.

        As in boto3, proxies of the configuration replace those of the environment.
        """
        proxies = get_environ_proxies(url) if self._proxies is None else self._proxies
        if proxies.get(url.split(":")[0]) and not is_this_machine(name_of(url)[0]):
            raise CLIENT_PROXY.error(
                got=f"a proxy for {url}", allowed="a direct connection", where=where
            )

    def _find_route(self) -> None:
        """Look for the caller's zone, which may ask the network."""
        self.zone = None
        if self._zone_option:
            self.zone = ClientZone.of(self._zone_option) or ClientZone(name=self._zone_option)
        self.route = None
        if self._zonal_urls:
            self.zone = self.zone or find_client_zone(self._zone_timeout)
            self.route = self._zonal_route()
        self._rules.route = self.route

    def _zonal_route(self) -> ZonalRoute | None:
        """By the URL of the caller's zone; ``None`` when it has none."""
        url = zonal_url_for(self.zone, self._zonal_urls) if self.zone else None
        if url is None:
            _log.warning(
                "the caller's zone (%s) is none of %s; calls go to the regional name",
                self.zone or "unknown",
                ", ".join(sorted(self._zonal_urls)),
            )
            return None
        self._check_proxy(url, "zonal_urls")
        return ZonalRoute(url, self._regional, self.counts)


def _taken_statement(parameters: dict[str, Any]) -> bool:
    """Return whether a stream's caller says that it may be served twice; by default it may not."""
    stated = parameters.pop("Idempotent", None)
    return stated is not None and stated_idempotent(stated)


_clients: weakref.WeakSet[ClientBase] = weakref.WeakSet()  # of this process


def _start_all_anew() -> None:
    for client in list(_clients):
        client.start_anew()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_start_all_anew)
