"""A boto3 ``sagemaker-runtime`` client for callers that need every millisecond.

:func:`runtime_client` returns boto3's own client, prepared mostly by botocore's public events: a
pool as large as the callers need, keep-alive that PrivateLink does not outlast, one TLS context,
timeouts and retries that fit the latency target, the User-Agent built once, connections open
before the first call, the caller's own zone with the Region as its fallback, and, on request,
hedged calls. Behind an HTTP proxy boto3's own transport stays in place.

Needs the ``operations`` extra (boto3).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, cast
from urllib.parse import urlsplit

import botocore
from botocore.config import Config
from botocore.utils import get_environ_proxies

from .boto3_connections import Urllib3Connections
from .boto3_events import Handlers
from .client_base import ClientOptions, Fields
from .client_timing import CallTiming, ClientCounts
from .client_zone import ClientZone
from .zonal_route import ZonalRoute, checked_origin

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

        Parameters
        ----------
        region, **options
            See :class:`~low_latency_endpoint.client.client_base.ClientOptions`; ``concurrency``
            is 50 by default.
        config : botocore.config.Config, optional
            More settings for boto3, such as ``user_agent_appid``. What this function decides wins.

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
    if not _proxied(regional, client.meta.config.proxies):
        connections = Urllib3Connections(options.for_connections())
    client._handlers = Handlers(
        client, connections, options.hedging_state(counts), 2 * options.concurrency
    )
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
            client = session.client(
                _SERVICE, region_name=region, endpoint_url=url, verify=ca_file, config=fixed
            )
        finally:
            session.events.unregister(event, unique_id="low-latency-runtime-client")
    return cast(Boto3RuntimeClient, client)


def _proxied(url: str, proxies: Mapping[str, str] | None) -> bool:
    scheme = urlsplit(url).scheme
    return bool((get_environ_proxies(url) if proxies is None else proxies).get(scheme))
