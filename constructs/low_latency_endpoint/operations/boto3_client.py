"""A boto3 ``sagemaker-runtime`` client for callers that need every millisecond.

:func:`runtime_client` returns boto3's own client, prepared mostly by botocore's public events: a
pool as large as the callers need, keep-alive that PrivateLink does not outlast, one TLS context,
timeouts and retries that fit the latency target, the User-Agent built once, connections open
before the first call, the caller's own zone with the Region as its fallback, and, on request,
hedged calls. Behind an HTTP proxy boto3's own transport stays in place.

Needs the ``operations`` extra (boto3).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, cast
from urllib.parse import urlsplit

import boto3
import botocore
from botocore.config import Config
from botocore.utils import get_environ_proxies

from .boto3_connections import Connections
from .boto3_events import Handlers
from .client_timing import (
    CLIENT_CONCURRENCY,
    CLIENT_REGION,
    CallTiming,
    ClientCounts,
    call_timing,
    socket_options,
)
from .client_zone import ClientZone
from .hedging import Hedging, HedgingState
from .tls_trust import trusted_authorities
from .zonal_route import ZonalRoute, checked_origin, client_route

__all__ = ["Boto3RuntimeClient", "runtime_client"]

_SERVICE = "sagemaker-runtime"
_CREATING = threading.Lock()


class Boto3RuntimeClient:
    """What :func:`runtime_client` adds to boto3's client, which this is as well.

    All of boto3's methods and attributes work as ever (``invoke_endpoint``,
    ``invoke_endpoint_with_response_stream``, ``exceptions``, ``meta``, ``close``). Calls take one
    parameter more: ``Idempotent=False`` for a call that must not be served twice; it is then
    neither hedged nor, once sent, retried. Calls with a ``SessionId`` are taken as such unless
    they say otherwise.

    Attributes
    ----------
    timing : CallTiming
        Timeouts and retries in force.
    counts : ClientCounts
        Retries, failovers, hedges so far.
    zone : ClientZone or None
        The caller's zone, if given or found.
    route : ZonalRoute or None
        Where calls go; ``None`` when only one URL is known.
    """

    timing: CallTiming
    counts: ClientCounts
    zone: ClientZone | None
    route: ZonalRoute | None
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


def runtime_client(
    region: str | None = None,
    *,
    latency_target: timedelta,
    concurrency: int = 50,
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
    config: Config | None = None,
    allow_plain_http: bool = False,
) -> Boto3RuntimeClient:
    """A boto3 client for ``InvokeEndpoint``, fit to a latency target.

    Parameters
    ----------
    region : str, optional
        By default the session's.
    latency_target : timedelta
        Client latency that most calls must hold, such as the p99. Timeouts follow from it.
    concurrency : int, optional
        Most calls at the same moment, such as the number of threads; 50 by default. The pool holds
        as many connections (twice as many with hedging).
    url : str, optional
        The regional endpoint's URL; by default AWS's own name, which private DNS answers with the
        interface endpoint. Stack output ``RegionalUrl``.
    zonal_urls : mapping of str to str, optional
        Zone (ID or name) to URL: the stack's outputs ``ZonalUrl-...``. The caller's own zone is
        used, with fallback to the regional URL after connection errors.
    zone : str, optional
        The caller's zone, as ID or name; by default found by
        :func:`~low_latency_endpoint.operations.client_zone.find_client_zone`, only when
        ``zonal_urls`` are given.
    zone_timeout : timedelta, optional
        Longest wait for the zone to be found; 500 ms by default.
    connect_timeout, read_timeout, retries : optional
        See :func:`~low_latency_endpoint.operations.client_timing.call_timing`.
    keepalive : timedelta, optional
        Silence after which TCP probes the connection; 60 s by default. PrivateLink drops
        connections after 350 s.
    preconnect : int, optional
        Connections to open before this function returns; by default as many as ``concurrency``, at
        most 20. They go where calls go, and one to the other name. 0 for none. Failures are
        logged, not raised.
    hedging : Hedging, optional
        Send slow calls of ``invoke_endpoint`` a second time; off by default.
    session : boto3.Session, optional
        Credentials, profile, Region; a new one by default.
    ca_bundle : path, optional
        Certificate authorities to trust; by default as boto3 chooses.
    config : botocore.config.Config, optional
        More settings for boto3, such as ``user_agent_appid``. What this function decides wins.
    allow_plain_http : bool, optional
        Whether ``http://`` may lead to another machine, where requests, answers and session
        tokens can be read on the way; by default only to this one.

    Returns
    -------
    Boto3RuntimeClient
        Safe across threads, as boto3's clients are. Close it, or leave it to the process's end.

    Raises
    ------
    ConfigurationError
        ``LLE571`` to ``LLE578``, ``LLE590``; calls after ``close()``: ``LLE593``.

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
    timing = call_timing(latency_target, connect_timeout=connect_timeout,
                         read_timeout=read_timeout, retries=retries)
    CLIENT_CONCURRENCY.check(concurrency, "concurrency")
    if preconnect is None:
        preconnect = min(concurrency, 20)
    elif preconnect != 0:
        CLIENT_CONCURRENCY.check(preconnect, "preconnect")
    options = socket_options(keepalive, timing.connect_timeout)
    session = session or boto3.Session()
    region = region or session.region_name
    if not region:
        raise CLIENT_REGION.error(got="none", allowed="the name of a Region")
    if url is not None:
        url = checked_origin(url, "url", allow_plain_http=allow_plain_http)
    counts = ClientCounts()
    own_zone, zonal = client_route(zonal_urls, zone, zone_timeout,
                                   allow_plain_http=allow_plain_http)
    pool = 2 * concurrency if hedging else concurrency
    settings = Config(
        max_pool_connections=pool,
        tcp_keepalive=True,
        connect_timeout=timing.connect_timeout.total_seconds(),
        read_timeout=timing.read_timeout.total_seconds(),
        # Handlers decides, before botocore; more than its attempts, so that botocore never adds
        # to an error that they were used up.
        retries={"mode": "standard", "total_max_attempts": retries + 3},
    )
    settings = config.merge(settings) if config else settings
    ca_file = os.fspath(ca_bundle) if ca_bundle is not None else None
    client = _create(session, region, url, ca_file, settings)
    regional = client.meta.endpoint_url
    # From the environment or the profile, where boto3 takes a path as well.
    parts = urlsplit(regional)
    checked_origin(f"{parts.scheme}://{parts.netloc}", "endpoint_url of the configuration",
                   allow_plain_http=allow_plain_http)
    client.timing, client.counts, client.zone = timing, counts, own_zone
    client.route = ZonalRoute(zonal, regional, counts) if zonal else None
    connections = None
    if not _proxied(regional, client.meta.config.proxies):
        connections = Connections(
            size=pool, connect_timeout=timing.connect_timeout, read_timeout=timing.read_timeout,
            options=options, ca_file=ca_file or trusted_authorities(session),
        )
    state = HedgingState(hedging, latency_target, counts) if hedging else None
    client._handlers = Handlers(client, connections, state, 2 * concurrency)
    if preconnect:
        client.preconnect(preconnect)
    return client


def _create(session: boto3.Session, region: str, url: str | None, ca_file: str | None,
            config: Config) -> Boto3RuntimeClient:
    """boto3's client with :class:`Boto3RuntimeClient` among its bases and the User-Agent fixed."""
    fixed = config
    if not config.user_agent:
        # boto3 assembles this text twice per call. Said once it stays the same; botocore appends
        # the extra parts again, so they are taken off.
        made = session.client(_SERVICE, region_name=region, endpoint_url=url, config=config)
        extra = f" {config.user_agent_extra}" if config.user_agent_extra else ""
        agent = made.meta.config.user_agent.removesuffix(f" Botocore/{botocore.__version__}{extra}")
        fixed = config.merge(Config(user_agent=agent))
        made.close()

    def add_base(base_classes: list[type], **_: Any) -> None:
        base_classes.insert(0, Boto3RuntimeClient)

    event = f"creating-client-class.{_SERVICE}"
    with _CREATING:
        session.events.register(event, add_base, unique_id="low-latency-runtime-client")
        try:
            client = session.client(_SERVICE, region_name=region, endpoint_url=url,
                                    verify=ca_file, config=fixed)
        finally:
            session.events.unregister(event, unique_id="low-latency-runtime-client")
    return cast(Boto3RuntimeClient, client)


def _proxied(url: str, proxies: Mapping[str, str] | None) -> bool:
    scheme = urlsplit(url).scheme
    return bool((get_environ_proxies(url) if proxies is None else proxies).get(scheme))
