"""A boto3 ``sagemaker-runtime`` client with settings for low latency.

:func:`runtime_client` is for callers that need boto3 itself: an HTTP proxy, boto3's events and
mocks, its other methods.
"""

from __future__ import annotations

import functools
import logging
import os
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config

from .arguments import checked
from .region import check_region_of_url, region_of, warn_of_unknown_region
from .timing import CLIENT_CONCURRENCY, call_timing, socket_options
from .zone import checked_origin

_log = logging.getLogger(__name__)


@checked
def runtime_client(
    region: str | None = None,
    *,
    latency_target: timedelta | str,
    concurrency: int = 50,
    url: str | None = None,
    connect_timeout: timedelta | str | None = None,
    read_timeout: timedelta | str | None = None,
    retries: int = 1,
    keepalive: timedelta | str = timedelta(seconds=60),
    session: boto3.Session | None = None,
    ca_bundle: str | os.PathLike[str] | None = None,
    allow_plain_http: bool = False,
    config: Config | None = None,
) -> Any:
    """Create boto3's own client with timeouts, connections and TLS for a latency target.

    Zones, hedging and retries within the latency target are in
    :class:`~low_latency_client.blocking_client.RuntimeClient`. Create the client after a
    fork: boto3's clients do not support one.

    Parameters
    ----------
    region : str, optional
        By default the session's.
    latency_target : timedelta or str
        Client latency that most calls must hold, such as the p99. Timeouts follow from it.
        This and all other times are ``timedelta`` or text such as ``200ms``, ``30s`` or ``5m``.
    concurrency : int, optional
        Number of threads that call at the same time. As many connections are kept.
    url : str, optional
        The endpoint's URL; by default AWS's own name, which private DNS answers with the interface
        endpoint. Stack outputs ``RegionalUrl`` and ``ZonalUrl-...``.
    connect_timeout : timedelta or str, optional
        Longest wait for a connection, name resolution and TLS included; by default twice the latency
        target, at least 250 ms and at most 3 s.
    read_timeout : timedelta or str, optional
        Longest silence of the endpoint once the request was sent; by default ten times the latency
        target, at least 1 s and at most 70 s.
    retries : int, optional
        Further attempts in botocore's standard mode: also after a read timeout, and after a wait of
        up to a second. 0 for calls that must not be served twice.
    keepalive : timedelta or str, optional
        Silence after which TCP probes the connection; 60 s by default. PrivateLink drops
        connections after 350 s.
    session : boto3.Session, optional
        Credentials, profile, Region; a new one by default.
    ca_bundle : path, optional
        Certificate authorities to trust; by default as boto3 chooses.
    allow_plain_http : bool, optional
        Whether ``http://`` may lead to another machine; by default only to this one.
    config : botocore.config.Config, optional
        Other settings. The arguments above take precedence.

    Returns
    -------
    botocore.client.BaseClient
        boto3's client, with all of its methods.

    Raises
    ------
    ConfigurationError
        ``LLC101`` to ``LLC104``, ``LLC107``, ``LLC108``, ``LLC110``, ``LLC120`` to ``LLC122``;
        ``LLC125`` for what is no duration, ``LLC124`` for what is no Region.

    Examples
    --------
    >>> from datetime import timedelta
    >>> client = runtime_client("us-east-1", latency_target=timedelta(milliseconds=200))
    >>> client.meta.config.read_timeout
    2.0
    >>> client.meta.config.max_pool_connections
    50
    >>> client.close()
    """
    timing = call_timing(
        latency_target, connect_timeout=connect_timeout, read_timeout=read_timeout, retries=retries
    )
    CLIENT_CONCURRENCY.check(concurrency, "concurrency")
    sockets = socket_options(keepalive, timing.connect_timeout)
    session = session or boto3.Session()
    region = region_of(session, region)
    if url is None:
        warn_of_unknown_region(session, region)
    else:
        url = checked_origin(url, "url", allow_plain_http=allow_plain_http)
    settings = Config(
        max_pool_connections=concurrency,
        tcp_keepalive=True,
        connect_timeout=timing.connect_timeout.total_seconds(),
        read_timeout=timing.read_timeout.total_seconds(),
        retries={"mode": "standard", "total_max_attempts": retries + 1},
    )
    client = session.client(
        "sagemaker-runtime",
        region_name=region,
        endpoint_url=url,
        verify=None if ca_bundle is None else os.fspath(ca_bundle),
        config=config.merge(settings) if config else settings,
    )
    # From the environment or the profile, where boto3 takes a path as well.
    parts = urlsplit(client.meta.endpoint_url)
    checked_origin(
        f"{parts.scheme}://{parts.netloc}",
        "endpoint_url of the configuration",
        allow_plain_http=allow_plain_http,
    )
    check_region_of_url(client.meta.endpoint_url, region, "url")
    set_up_connections(client, sockets)
    return client


def set_up_connections(client: Any, sockets: list[tuple[int, int, int]]) -> None:
    """Read the certificate authorities once for all connections, and set their socket options.

    urllib3 reads the bundle into the client's one TLS context again for each new connection, which
    takes about 20 ms of processor time. ``Config(tcp_keepalive=True)`` turns probes on, but Linux
    sends the first after two hours. botocore has no option for either.

    This relies on two private attributes of botocore, ``_endpoint`` of a client and ``_manager`` of
    its HTTP session: the only way to urllib3's public ``PoolManager.connection_pool_kw``, the
    arguments of each new pool. Where they are gone, the client works as boto3 made it.
    """
    endpoint = getattr(client, "_endpoint", None)
    manager = getattr(getattr(endpoint, "http_session", None), "_manager", None)
    pool_arguments = getattr(manager, "connection_pool_kw", {})
    context = pool_arguments.get("ssl_context")
    if context is None:
        _log.warning("this botocore sets up its connections otherwise: new ones will be slow")
        return
    context.load_verify_locations = functools.cache(context.load_verify_locations)
    context.hostname_checks_common_name = False  # names stand in subjectAltName (RFC 9110, 4.3.4)
    pool_arguments["socket_options"] = sockets
