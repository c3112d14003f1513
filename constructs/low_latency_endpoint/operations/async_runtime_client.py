"""``InvokeEndpoint`` for asyncio: boto3's parameters and errors at a sixth of its processor time.

The twin of :func:`~low_latency_endpoint.operations.runtime_client.runtime_client` on
:mod:`~low_latency_endpoint.operations.async_http` and
:mod:`~low_latency_endpoint.operations.sigv4`: same timeouts, retries, zones and hedging.

Needs the ``operations`` extra (boto3). Runs on any asyncio event loop; on uvloop's, which the
``async-client`` extra brings, it needs still less. HTTP proxies are not supported.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import ssl
import time
from collections.abc import Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any

import boto3
from botocore.credentials import Credentials
from botocore.exceptions import ConnectionError as NoConnectionError
from botocore.exceptions import HTTPClientError, ReadTimeoutError

from .async_connection import Answer
from .async_http import HttpPool
from .async_stream import AsyncResponseStream
from .async_wire import Operation, Wire, body_bytes
from .client_timing import (
    CLIENT_CONCURRENCY,
    CLIENT_CREDENTIALS,
    CLIENT_REGION,
    RETRY_SHARE,
    Budget,
    CallTiming,
    ClientCounts,
    call_timing,
    may_retry,
    socket_options,
)
from .client_zone import ClientZone
from .hedging import Hedging, HedgingState, hedged_in_tasks
from .runtime_client import client_route, trusted_authorities
from .runtime_events import is_idempotent
from .sigv4 import Sigv4Signer
from .tls_connections import tls_context
from .zonal_route import ZonalRoute, checked_origin

__all__ = ["AsyncResponseStream", "AsyncRuntimeClient"]

_log = logging.getLogger(__name__)
# A connection unused for so long is closed here, before PrivateLink drops it at 350 s.
_IDLE = timedelta(seconds=300)
_CREDENTIALS_EVERY_SECONDS = 30.0
# Calls wait for new credentials when the old ones end so soon, as after a long pause; botocore
# renews earlier than that, which then happens beside the calls.
_CREDENTIALS_END_SECONDS = 60


class AsyncRuntimeClient:
    """Invokes SageMaker endpoints from one event loop.

    Parameters
    ----------
    region, latency_target, concurrency, url, zonal_urls, zone, zone_timeout, connect_timeout, \
read_timeout, retries, keepalive, preconnect, hedging, session, ca_bundle
        As for :func:`~low_latency_endpoint.operations.runtime_client.runtime_client`. Calls beyond
        ``concurrency`` wait for a connection.

    Attributes
    ----------
    timing : CallTiming
        Timeouts and retries in force.
    counts : ClientCounts
        Retries, failovers, hedges so far.
    zone : ClientZone or None
        The caller's zone, once entered, if given or found.
    route : ZonalRoute or None
        Where calls go, once entered; ``None`` when only one URL is known.
    exceptions
        boto3's error classes for this service, such as ``exceptions.ModelError``; all are
        ``botocore.exceptions.ClientError``.

    Raises
    ------
    ConfigurationError
        ``LLE571`` to ``LLE579``.

    Examples
    --------
    ::

        async with AsyncRuntimeClient("us-east-1", latency_target=timedelta(milliseconds=50)) as c:
            answer = await c.invoke_endpoint(
                EndpointName="sentiment", ContentType="application/json", Body=b'{"inputs": "x"}')
            print(answer["Body"])
    """

    def __init__(
        self,
        region: str | None = None,
        *,
        latency_target: timedelta,
        concurrency: int = 100,
        url: str | None = None,
        zonal_urls: Mapping[str, str] | None = None,
        zone: str | None = None,
        zone_timeout: timedelta = timedelta(milliseconds=500),
        connect_timeout: timedelta | None = None,
        read_timeout: timedelta | None = None,
        retries: int = 1,
        keepalive: timedelta = timedelta(seconds=60),
        preconnect: int | None = None,
        hedging: Hedging | None = None,
        session: boto3.Session | None = None,
        ca_bundle: str | os.PathLike[str] | None = None,
    ) -> None:
        self.timing: CallTiming = call_timing(
            latency_target, connect_timeout=connect_timeout, read_timeout=read_timeout,
            retries=retries,
        )
        self._concurrency = int(CLIENT_CONCURRENCY.check(concurrency, "concurrency"))
        if preconnect is not None and preconnect != 0:
            CLIENT_CONCURRENCY.check(preconnect, "preconnect")
        self._preconnect = min(concurrency, 20) if preconnect is None else preconnect
        self._options = socket_options(keepalive, self.timing.connect_timeout)
        session = session or boto3.Session()
        region = region or session.region_name
        if not region:
            raise CLIENT_REGION.error(got="none", allowed="the name of a Region")
        # boto3's own client says which URL and which User-Agent it would use.
        probe = session.client("sagemaker-runtime", region_name=region)
        self._regional = checked_origin(url or probe.meta.endpoint_url, "url")
        headers = {"User-Agent": probe.meta.config.user_agent}
        probe.close()
        self._credentials = session.get_credentials()
        if self._credentials is None:
            raise CLIENT_CREDENTIALS.error(got="none", allowed="credentials of any kind")
        self._frozen = _FrozenCredentials()
        self._wire = Wire(Sigv4Signer(self._frozen, region=region), headers)
        self.exceptions = self._wire.exceptions
        self.counts = ClientCounts()
        self.zone: ClientZone | None = None
        self.route: ZonalRoute | None = None
        self._route_arguments = (zonal_urls, zone, zone_timeout)
        self._hedging = HedgingState(hedging, latency_target, self.counts) if hedging else None
        ca_file = os.fspath(ca_bundle) if ca_bundle is not None else trusted_authorities(session)
        self._tls: ssl.SSLContext = tls_context(ca_file)
        self._retry_budget = Budget(RETRY_SHARE)
        self._pool: HttpPool | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._wait_for_credentials = False
        self._refresh_at = 0.0

    def __repr__(self) -> str:
        return f"AsyncRuntimeClient({self._regional!r})"

    async def __aenter__(self) -> AsyncRuntimeClient:
        await self._refresh_credentials()
        self.zone, zonal = await asyncio.to_thread(client_route, *self._route_arguments)
        if zonal:
            self.route = ZonalRoute(zonal, self._regional, self.counts)
        self._pool = HttpPool(
            limit=self._concurrency * (2 if self._hedging else 1),
            connect_timeout=self.timing.connect_timeout, read_timeout=self.timing.read_timeout,
            idle=_IDLE, options=self._options, tls=self._tls,
        )
        if self._preconnect:
            await self.preconnect(self._preconnect)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        if self._refreshing is not None:
            self._refreshing.cancel()
        if self._pool is not None:
            self._pool.close()
            await asyncio.sleep(0)  # so that the event loop sees the sockets go

    async def preconnect(self, connections: int) -> int:
        """Open connections now, to the zone and one to the Region; returns how many are open.
        """
        pool, opened = self._http(), 0
        if self.route is not None:
            opened += await pool.open(self.route.zonal, connections)
            connections = 1 if opened else connections
        opened += await pool.open(self._regional, connections)
        self.counts.add("connections_opened", opened)
        if not opened:
            _log.warning("no connection to %s could be opened", self._regional)
        return opened

    async def invoke_endpoint(self, **parameters: Any) -> dict[str, Any]:
        """Invoke an endpoint.

        Parameters
        ----------
        **parameters
            boto3's (``EndpointName``, ``Body``, ``ContentType``, ...), and ``Idempotent=False``
            for a call that must not be served twice.

        Returns
        -------
        dict
            As boto3's, but ``Body`` is ``bytes``.

        Raises
        ------
        botocore.exceptions.ClientError
            What AWS answers, as in boto3.
        botocore.exceptions.HTTPClientError
            ``EndpointConnectionError``, ``ConnectTimeoutError``, ``ReadTimeoutError``,
            ``ConnectionClosedError`` or ``SSLError``, as in boto3.
        """
        idempotent = is_idempotent(parameters)
        parameters.pop("Idempotent", None)
        body = body_bytes(parameters.pop("Body", None))

        async def call() -> dict[str, Any]:
            answer, attempts = await self._send(
                self._wire.invoke, parameters, body, idempotent, stream=False
            )
            content = await answer.read()
            answer.close()
            return self._wire.answer(
                self._wire.invoke, answer.status, answer.headers, content, attempts
            )

        if self._hedging is None or not idempotent:
            return await call()
        return await hedged_in_tasks(call, self._hedging)

    async def invoke_endpoint_with_response_stream(self, **parameters: Any) -> dict[str, Any]:
        """Invoke an endpoint and get its answer part by part; never hedged.

        Returns
        -------
        dict
            As boto3's; ``Body`` is an :class:`AsyncResponseStream`. Use it as a context manager,
            or read it to the end, so that its connection is free again.

        Raises
        ------
        botocore.exceptions.ClientError
            What AWS answers, as in boto3; while reading, its ``EventStreamError``.
        """
        idempotent = is_idempotent(parameters)
        parameters.pop("Idempotent", None)
        body = body_bytes(parameters.pop("Body", None))
        started = time.perf_counter()
        answer, attempts = await self._send(
            self._wire.stream, parameters, body, idempotent, stream=True
        )
        return self._wire.answer(
            self._wire.stream, answer.status, answer.headers,
            AsyncResponseStream(answer, self._wire, started), attempts,
        )

    async def _send(self, operation: Operation, parameters: dict[str, Any], body: bytes,
                    idempotent: bool, *, stream: bool) -> tuple[Answer, int]:
        """One call with its retries; an answer below 300 is returned as it is."""
        self._retry_budget.earn()
        if time.monotonic() >= self._refresh_at:
            self._refresh_soon()
        if self._wait_for_credentials and self._refreshing is not None:
            await asyncio.shield(self._refreshing)
        pool, attempts, failed_over = self._http(), 0, False
        while True:
            attempts += 1
            origin = self.route.choose() if self.route is not None else self._regional
            prepared = self._wire.prepare(origin, operation, parameters)
            status = None
            error: Exception
            try:
                answer = await pool.exchange(origin, prepared.signed(body), stream=stream)
                if self.route is not None:
                    self.route.answered(origin)
                if answer.status < 300:
                    return answer, attempts
                try:
                    content = await answer.read()
                finally:
                    answer.close()
                status = answer.status
                error = self._wire.error(operation, status, answer.headers, content, attempts)
            except (HTTPClientError, NoConnectionError) as problem:
                error = problem
            # No connection was made, so nothing was sent.
            sent = not isinstance(error, NoConnectionError)
            timed_out = isinstance(error, ReadTimeoutError)
            if (status is None and not timed_out and self.route is not None
                    and self.route.failed(origin) and not failed_over
                    and (not sent or idempotent)):
                failed_over = True  # on top of the retries, once
                continue
            if (attempts - failed_over > self.timing.retries
                    or not may_retry(sent=sent, status=status, timed_out=timed_out,
                                     idempotent=idempotent)
                    or not self._retry_budget.spend()):
                raise error
            self.counts.add("retries")
            await asyncio.sleep(random.uniform(0, self.timing.retry_delay.total_seconds()))

    def _http(self) -> HttpPool:
        if self._pool is None:
            raise RuntimeError("use the client as `async with AsyncRuntimeClient(...) as client:`")
        return self._pool

    def _refresh_soon(self) -> None:
        """In a thread: refreshable credentials ask the network and would stop the event loop."""
        self._refresh_at = time.monotonic() + _CREDENTIALS_EVERY_SECONDS
        # Plain credentials never change; botocore refreshes others 15 minutes before their end.
        if type(self._credentials) is not Credentials:
            ends = getattr(self._credentials, "refresh_needed", None)
            self._wait_for_credentials = ends is not None and ends(_CREDENTIALS_END_SECONDS)
            self._refreshing = asyncio.ensure_future(self._refresh_credentials())

    async def _refresh_credentials(self) -> None:
        try:
            frozen = await asyncio.to_thread(self._credentials.get_frozen_credentials)
        except Exception as error:  # of any provider; AWS refuses the old ones when they end
            if self._frozen.current is None:
                raise
            _log.warning("credentials were not refreshed: %s", type(error).__name__)
            return
        finally:
            self._wait_for_credentials = False
        self._frozen.current = frozen
        self._refresh_at = time.monotonic() + _CREDENTIALS_EVERY_SECONDS


class _FrozenCredentials:
    """The last credentials known, for the signer; refreshed behind its back."""

    current: Any = None

    def get_frozen_credentials(self) -> Any:
        return self.current
