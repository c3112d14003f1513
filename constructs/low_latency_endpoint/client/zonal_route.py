"""Which name a call goes to: the caller's own zone, or the Region when the zone fails."""

from __future__ import annotations

import ipaddress
import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from datetime import timedelta

from .client_timing import CLIENT_PLAIN_HTTP, CLIENT_URL, ClientCounts
from .client_zone import ClientZone, find_client_zone

_log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 60.0


# Scheme, host and port, and nothing else: no user, path, blank or control character, which
# urlsplit() would drop without a word and so make one host of two.
_ORIGIN = re.compile(
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?P<port>:[0-9]{1,5})?/?",
    re.IGNORECASE,
)


def checked_origin(url: str, where: str, *, allow_plain_http: bool = False) -> str:
    """Scheme, host and port of a URL without a path."""
    found = _ORIGIN.fullmatch(url) if isinstance(url, str) else None
    if found is None or not _exists(found["host"], found["port"]):
        raise CLIENT_URL.error(
            got=repr(url), allowed="https://host or https://host:port", where=where
        )
    scheme = found["scheme"].lower()
    if scheme == "http" and not allow_plain_http and not is_this_machine(found["host"]):
        raise CLIENT_PLAIN_HTTP.error(
            got=repr(url),
            allowed="https://, or http:// to localhost, 127.0.0.1 or [::1]",
            where=where,
        )
    return f"{scheme}://{found['host']}{found['port'] or ''}"


def _exists(host: str, port: str | None) -> bool:
    if port and not 1 <= int(port[1:]) <= 65_535:
        return False
    if not host.startswith("["):
        return bool(host.strip(".")) and ".." not in host
    try:
        return ipaddress.ip_address(host[1:-1]).version == 6
    except ValueError:
        return False


def is_this_machine(host: str) -> bool:
    """Loopback by its address, or by the name that RFC 6761 keeps for it."""
    name = host.lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def client_route(
    zonal_urls: Mapping[str, str] | None,
    zone: str | None,
    zone_timeout: timedelta,
    *,
    allow_plain_http: bool = False,
) -> tuple[ClientZone | None, str | None]:
    """The caller's zone and its URL, each ``None`` when there is none."""
    own = ClientZone.of(zone) or ClientZone(name=zone) if zone else None
    if not zonal_urls:
        return own, None
    checked = {
        key: checked_origin(one, f"zonal_urls {key}", allow_plain_http=allow_plain_http)
        for key, one in zonal_urls.items()
    }
    if own is None:
        own = find_client_zone(zone_timeout)
    url = zonal_url_for(own, checked) if own else None
    if url is None:
        _log.warning(
            "the caller's zone (%s) is none of %s; calls go to the regional name",
            own or "unknown",
            ", ".join(sorted(checked)),
        )
    return own, url


def zonal_url_for(zone: ClientZone, zonal_urls: Mapping[str, str]) -> str | None:
    """The zone's URL; by its ID, its name, or its name inside PrivateLink's own host name.

    ECS tells tasks only the zone's name, and stacks list zones by ID: the zonal host name, which
    ends in the zone's name, joins the two without a call to EC2.
    """
    for key in (zone.zone_id, zone.name):
        if key and key in zonal_urls:
            return zonal_urls[key]
    if zone.name:
        in_host = re.compile(rf"//vpce-[^./]*-{re.escape(zone.name)}\.")
        for url in zonal_urls.values():
            if in_host.search(url):
                return url
    return None


class ZonalRoute:
    """Sends calls to the zone's name, and to the regional one while the zone's fails.

    A connection error closes the zone for 5 s, then 10 s, at most 60 s. After each pause one call,
    not all, tries the zone again; when it gets any answer, the zone is open again. An answer of
    the endpoint, even an error, never closes the zone: the model behind both names is the same.
    """

    def __init__(
        self,
        zonal: str,
        regional: str,
        counts: ClientCounts,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.zonal = zonal
        self.regional = regional
        self._counts = counts
        self._clock = clock
        self._lock = threading.Lock()
        self._closed = False
        self._retry_at = 0.0
        self._pause = FIRST_PAUSE_SECONDS
        self._trying = False

    def start_anew(self) -> None:
        """In a forked child: a thread of the parent's may have held the lock."""
        self._lock = threading.Lock()

    @property
    def zone_is_open(self) -> bool:
        """Whether calls go to the zone's name."""
        return not self._closed

    def choose(self) -> str:
        """The origin for the next attempt."""
        if not self._closed:
            return self.zonal
        with self._lock:
            now = self._clock()
            if now >= self._retry_at:
                self._retry_at = now + self._pause  # this call tries; the others stay away
                self._trying = True
                return self.zonal
        return self.regional

    def failed(self, origin: str) -> bool:
        """Report a connection error; returns whether the regional name is worth an attempt."""
        if origin != self.zonal:
            return False
        with self._lock:
            if not self._closed:
                self._pause = FIRST_PAUSE_SECONDS
                self._retry_at = self._clock() + self._pause
                _log.warning("%s does not answer; calls go to %s", origin, self.regional)
            elif self._trying:  # not the many that were under way when the zone failed
                self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
                self._retry_at = self._clock() + self._pause
            self._trying = False
            self._closed = True
        self._counts.add("failovers")
        return True

    def answered(self, origin: str) -> None:
        """Report any answer."""
        if not self._closed or origin != self.zonal:
            return
        with self._lock:
            if not self._closed:
                return
            self._closed = self._trying = False
        self._counts.add("recoveries")
        _log.warning("%s answers again; calls go there", origin)
