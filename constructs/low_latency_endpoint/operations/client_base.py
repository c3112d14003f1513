"""What the two clients of our own have in common: everything but how they wait."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import boto3

from .call_attempts import CallRules
from .client_timing import (
    CLIENT_CONCURRENCY,
    CLIENT_CREDENTIALS,
    CLIENT_REGION,
    CallTiming,
    ClientCounts,
    call_timing,
    socket_options,
)
from .client_zone import ClientZone
from .hedging import Hedging, HedgingState
from .runtime_wire import Wire
from .sigv4 import CredentialsSource, Sigv4Signer
from .tls_trust import tls_context, trusted_authorities
from .zonal_route import ZonalRoute, checked_origin, client_route

__all__ = ["IDLE", "ClientBase"]

#: A connection unused for so long is closed here, before PrivateLink drops it at 350 s.
IDLE = timedelta(seconds=300)


class ClientBase:
    """Checked options, credentials, requests and rules of a client; opens nothing by itself."""

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
        allow_plain_http: bool = False,
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
        self._regional = checked_origin(url or probe.meta.endpoint_url, "url",
                                        allow_plain_http=allow_plain_http)
        headers = {"User-Agent": probe.meta.config.user_agent}
        probe.close()
        self._credentials = session.get_credentials()
        if self._credentials is None:
            raise CLIENT_CREDENTIALS.error(got="none", allowed="credentials of any kind")
        self._wire = Wire(Sigv4Signer(self._signing_credentials(), region=region), headers)
        self.exceptions: Any = self._wire.exceptions
        self.counts = ClientCounts()
        self.zone: ClientZone | None = None
        self.route: ZonalRoute | None = None
        self._route_arguments = (zonal_urls, zone, zone_timeout, allow_plain_http)
        self._rules = CallRules(self.timing, self.counts, self._regional)
        self._hedging = HedgingState(hedging, latency_target, self.counts) if hedging else None
        ca_file = os.fspath(ca_bundle) if ca_bundle is not None else trusted_authorities(session)
        self._tls: ssl.SSLContext = tls_context(ca_file)
        self._begin()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._regional!r})"

    def _begin(self) -> None:
        """What the kind of client needs beside, at the end of its construction."""
        raise NotImplementedError

    def _signing_credentials(self) -> CredentialsSource:
        """What the signer asks, once per second."""
        found: CredentialsSource = self._credentials
        return found

    def _find_route(self) -> None:
        """Look for the caller's zone, which may ask the network."""
        zonal_urls, zone, zone_timeout, plain_http = self._route_arguments
        self.zone, zonal = client_route(zonal_urls, zone, zone_timeout,
                                        allow_plain_http=plain_http)
        self.route = ZonalRoute(zonal, self._regional, self.counts) if zonal else None
        self._rules.route = self.route
