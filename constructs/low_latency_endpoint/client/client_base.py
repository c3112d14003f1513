"""What the clients have in common before they call: options, credentials, zone, rules."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import Any, Concatenate, ParamSpec, TypeVar

import boto3
from botocore.utils import get_environ_proxies

from .call_attempts import CallRules, is_idempotent
from .client_timing import (
    AHEAD_TIMEOUT,
    CLIENT_CONCURRENCY,
    CLIENT_CREDENTIALS,
    CLIENT_PROXY,
    CLIENT_REGION,
    CallTiming,
    ClientCounts,
    call_timing,
    socket_options,
)
from .client_zone import (
    ClientZone,
    ZonalRoute,
    checked_origin,
    find_client_zone,
    is_this_machine,
    zonal_url_for,
)
from .hedging import Hedging, HedgingState
from .runtime_wire import Wire, body_bytes
from .signing import RenewedCredentials, Sigv4Signer
from .tls_trust import name_of, tls_context, trusted_authorities

_log = logging.getLogger(__name__)
Owner = TypeVar("Owner")
Options = TypeVar("Options")
Fields = ParamSpec("Fields")


@dataclass(frozen=True)
class ClientOptions:
    """Options of both clients.

    Parameters
    ----------
    region : str, optional
        By default the session's.
    latency_target : timedelta
        Client latency that most calls must hold, such as the p99. Timeouts follow from it.
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
        :func:`~low_latency_endpoint.client.client_zone.find_client_zone`, only when
        ``zonal_urls`` are given.
    zone_timeout : timedelta, optional
        Longest wait for the zone to be found; 500 ms by default.
    connect_timeout, read_timeout, retries : optional
        See :func:`~low_latency_endpoint.client.client_timing.call_timing`.
    keepalive : timedelta, optional
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

    Raises
    ------
    ConfigurationError
        ``LLC101`` to ``LLC104`` and ``LLC108``.
    """

    region: str | None = None
    _: KW_ONLY
    latency_target: timedelta
    concurrency: int = 100
    url: str | None = None
    zonal_urls: Mapping[str, str] | None = None
    zone: str | None = None
    zone_timeout: timedelta = timedelta(milliseconds=500)
    connect_timeout: timedelta | None = None
    read_timeout: timedelta | None = None
    retries: int = 1
    keepalive: timedelta = timedelta(seconds=60)
    preconnect: int | None = None
    hedging: Hedging | None = None
    session: boto3.Session | None = None
    ca_bundle: str | os.PathLike[str] | None = None
    allow_plain_http: bool = False

    @cached_property
    def timing(self) -> CallTiming:
        """Timeouts and retries."""
        return call_timing(
            self.latency_target,
            connect_timeout=self.connect_timeout,
            read_timeout=self.read_timeout,
            retries=self.retries,
        )

    @property
    def connections(self) -> int:
        """Most connections kept per origin; of the asyncio client, most in use at a moment."""
        return self.concurrency * (2 if self.hedging else 1)

    def checked(self) -> ClientOptions:
        """The options as they will be used: session, Region and ``preconnect`` filled in."""
        timing = self.timing
        CLIENT_CONCURRENCY.check(self.concurrency, "concurrency")
        ahead = min(self.concurrency, 20) if self.preconnect is None else self.preconnect
        if ahead != 0:
            CLIENT_CONCURRENCY.check(ahead, "preconnect")
        socket_options(self.keepalive, timing.connect_timeout)
        session = self.session or boto3.Session()
        region = self.region or session.region_name
        if not region:
            raise CLIENT_REGION.error(got="none", allowed="the name of a Region")
        return replace(self, session=session, region=region, preconnect=ahead)

    @cached_property
    def tls(self) -> ssl.SSLContext:
        """For ``https``; the certificate authorities are read once."""
        if self.ca_bundle is not None:
            return tls_context(os.fspath(self.ca_bundle))
        return tls_context(trusted_authorities(self.session or boto3.Session()))

    @cached_property
    def sockets(self) -> list[tuple[int, int, int]]:
        """Socket options of every connection."""
        return socket_options(self.keepalive, self.timing.connect_timeout)

    @property
    def ahead_seconds(self) -> float:
        """How long a connection may take that is opened before it is needed."""
        return max(self.timing.connect_timeout, AHEAD_TIMEOUT).total_seconds()

    def find_route(self) -> tuple[ClientZone | None, str | None]:
        """The caller's zone and its URL, each ``None`` when there is none; may ask the network."""
        own = ClientZone.of(self.zone) or ClientZone(name=self.zone) if self.zone else None
        if not self.zonal_urls:
            return own, None
        checked = {
            key: checked_origin(url, f"zonal_urls {key}", allow_plain_http=self.allow_plain_http)
            for key, url in self.zonal_urls.items()
        }
        own = own or find_client_zone(self.zone_timeout)
        url = zonal_url_for(own, checked) if own else None
        if url is None:
            _log.warning(
                "the caller's zone (%s) is none of %s; calls go to the regional name",
                own or "unknown",
                ", ".join(sorted(checked)),
            )
        return own, url

    def hedging_state(self, counts: ClientCounts) -> HedgingState | None:
        """What hedging remembers; ``None`` without it."""
        return HedgingState(self.hedging, self.latency_target, counts) if self.hedging else None


def takes(
    options: Callable[Fields, Options],
) -> Callable[[Callable[[Owner, Options], None]], Callable[Concatenate[Owner, Fields], None]]:
    """Let an ``__init__`` of options be called with their fields, as typed as those are."""

    def decorated(
        make: Callable[[Owner, Options], None],
    ) -> Callable[Concatenate[Owner, Fields], None]:
        def called(self: Owner, /, *fields: Fields.args, **named: Fields.kwargs) -> None:
            make(self, options(*fields, **named))

        return called

    return decorated


class ClientBase:
    """Checked options, credentials, requests and rules of a client; opens nothing by itself.

    Attributes
    ----------
    options : ClientOptions
        As they are used: with session, Region and number of connections filled in.
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
    """

    @takes(ClientOptions)
    def __init__(self, given: ClientOptions) -> None:
        self.options = options = given.checked()
        self.timing: CallTiming = options.timing
        session = options.session
        assert session is not None
        # boto3's own client says which URL and which User-Agent it would use.
        probe = session.client("sagemaker-runtime", region_name=options.region)
        self._regional = checked_origin(
            options.url or probe.meta.endpoint_url, "url", allow_plain_http=options.allow_plain_http
        )
        self._proxies = probe.meta.config.proxies
        self._check_proxy(self._regional)
        headers = {"User-Agent": probe.meta.config.user_agent}
        probe.close()
        found = session.get_credentials()
        if found is None:
            raise CLIENT_CREDENTIALS.error(got="none", allowed="any AWS credentials")
        self._credentials = RenewedCredentials(found)
        self._wire = Wire(Sigv4Signer(self._credentials, region=str(options.region)), headers)
        self.exceptions: Any = self._wire.exceptions
        self.counts = ClientCounts()
        self.zone: ClientZone | None = None
        self.route: ZonalRoute | None = None
        self._rules = CallRules(self.timing, self.counts, self._regional)
        self._hedging = options.hedging_state(self.counts)
        # Its own: times to the first token are no latencies of whole calls.
        self._generation_hedging = options.hedging_state(self.counts)
        _, _, secure = name_of(self._regional)
        # Read now: a bundle that is missing is an error here, not of the first call.
        self._tls = options.tls if secure else None
        self._begin()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._regional!r})"

    def _begin(self) -> None:
        """What the kind of client needs beside, at the end of its construction."""
        raise NotImplementedError

    @staticmethod
    def _taken_apart(parameters: dict[str, Any]) -> tuple[bool, bytes]:
        """Whether the call may be served twice, and its body; the rest is for the serializer."""
        idempotent = is_idempotent(parameters)
        parameters.pop("Idempotent", None)
        return idempotent, body_bytes(parameters.pop("Body", None))

    def _check_proxy(self, url: str) -> None:
        """Refuse one that would be passed by; to this machine there is no need of any.

        As in boto3, proxies of the configuration replace those of the environment.
        """
        proxies = get_environ_proxies(url) if self._proxies is None else self._proxies
        if proxies.get(url.split(":")[0]) and not is_this_machine(name_of(url)[0]):
            raise CLIENT_PROXY.error(got=f"a proxy for {url}", allowed="a direct connection")

    def _find_route(self) -> None:
        """Look for the caller's zone, which may ask the network."""
        self.zone, zonal = self.options.find_route()
        if zonal is not None:
            self._check_proxy(zonal)
        self.route = ZonalRoute(zonal, self._regional, self.counts) if zonal else None
        self._rules.route = self.route
