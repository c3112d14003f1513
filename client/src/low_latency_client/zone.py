"""In which Availability Zone this process runs, and by which name calls go: its zone's or the Region's.

Asked in this order; the first that knows, answers:

1. the environment variable ``LOW_LATENCY_CLIENT_ZONE`` (an ID or a name; on Kubernetes filled by
   the downward API);
2. AWS Lambda's metadata endpoint (``AWS_LAMBDA_METADATA_API``, since March 2026): the zone's ID;
3. the ECS task metadata endpoint, version 4 (``ECS_CONTAINER_METADATA_URI_V4``): the zone's name;
4. EC2's instance metadata service, version 2: ID and name. In a pod on EKS it answers only when
   the node's hop limit is 2 or more.

No network call leaves the machine, and nothing waits longer than the time given.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import os
import queue
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from .arguments import checked, checked_class, milliseconds
from .daemon_threads import start_daemon
from .errors import rule
from .timing import CLIENT_PLAIN_HTTP, CLIENT_URL, ClientCounts

_log = logging.getLogger(__name__)

ZONE_VARIABLE = "LOW_LATENCY_CLIENT_ZONE"
_EC2_ADDRESS = "http://169.254.169.254"
_ZONE_ID = re.compile(r"[a-z]{2,5}\d-(?:[a-z]{3}\d-)?az\d{1,2}")
_ZONE_NAME = re.compile(r"[a-z]{2,4}(?:-[a-z]+)+-\d(?:-[a-z]{3}-\d)?[a-z]")
_LARGEST_ANSWER = 64 * 1024

ZONE_WITHOUT_URLS = rule(
    "LLC123",
    "the caller's zone is given, but no URL of a zone",
    fix="Pass zonal_urls as well, the stack's outputs ZonalUrl-...: without them calls go to the "
    "regional name. Or leave zone out.",
)


@checked_class
@dataclass(frozen=True, kw_only=True)
class ClientZone:
    """A zone by ID, by name, or both, and who said so.

    Attributes
    ----------
    zone_id : str or None
        Such as ``use1-az4``.
    name : str or None
        Such as ``us-east-1a``.
    source : str
        Who said so, such as ``Amazon EC2``; by default ``given``.
    """

    zone_id: str | None = None
    name: str | None = None
    source: str = "given"

    @classmethod
    def of(cls, text: str, source: str = "given") -> ClientZone | None:
        """A zone from an ID or a name; ``None`` when the text is neither."""
        text = text.strip()
        if _ZONE_ID.fullmatch(text):
            return cls(zone_id=text, source=source)
        if _ZONE_NAME.fullmatch(text):
            return cls(name=text, source=source)
        return None

    def __str__(self) -> str:
        return " ".join(part for part in (self.zone_id, self.name) if part)


@checked
def find_client_zone(
    timeout: timedelta | str = timedelta(milliseconds=500),
    environment: Mapping[str, str] | None = None,
) -> ClientZone | None:
    """The zone of this process, or ``None`` when nobody says.

    Parameters
    ----------
    timeout : timedelta or str, optional
        Longest wait for an answer; 500 ms by default.
    environment : mapping of str to str, optional
        Environment variables; by default the process's.

    Examples
    --------
    >>> find_client_zone(environment={"LOW_LATENCY_CLIENT_ZONE": "use1-az4"}).zone_id
    'use1-az4'

    Notes
    -----
    Sources: `Lambda
    <https://docs.aws.amazon.com/lambda/latest/dg/configuration-metadata-endpoint.html>`_, `ECS
    <https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-metadata-endpoint-v4.html>`_,
    `EC2 <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-metadata.html>`_.
    """
    environment = os.environ if environment is None else environment
    seconds = milliseconds(timeout, "timeout") / 1000
    if given := environment.get(ZONE_VARIABLE):
        zone = ClientZone.of(given, ZONE_VARIABLE)
        if zone is not None:
            return zone
        _log.warning("%s=%r is neither the ID nor the name of a zone", ZONE_VARIABLE, given)
    # A thread, because a socket's timeout counts anew for each byte that trickles in.
    answers: queue.SimpleQueue[ClientZone | None] = queue.SimpleQueue()
    deadline = time.monotonic() + seconds
    asks = start_daemon(lambda: answers.put(_ask(dict(environment), deadline)), "find-client-zone")
    if not asks:
        return None
    try:
        return answers.get(timeout=max(0.0, deadline - time.monotonic()))
    except queue.Empty:
        return None


def _ask(environment: Mapping[str, str], deadline: float) -> ClientZone | None:
    for source in (_from_lambda, _from_ecs, _from_ec2):
        try:
            zone = source(environment, deadline)
        except (OSError, HTTPException, ValueError) as problem:
            _log.debug("%s: %s", source.__name__, type(problem).__name__)
            continue
        if zone is not None:
            return zone
    return None


def _from_lambda(environment: Mapping[str, str], deadline: float) -> ClientZone | None:
    address = environment.get("AWS_LAMBDA_METADATA_API")
    if not address:
        return None
    answer = _get(
        f"http://{address}/2026-01-15/metadata/execution-environment",
        deadline,
        {"Authorization": f"Bearer {environment.get('AWS_LAMBDA_METADATA_TOKEN', '')}"},
    )
    return ClientZone.of(str(_json_object(answer).get("AvailabilityZoneID", "")), "AWS Lambda")


def _from_ecs(environment: Mapping[str, str], deadline: float) -> ClientZone | None:
    address = environment.get("ECS_CONTAINER_METADATA_URI_V4")
    if not address:
        return None
    answer = _get(f"{address}/task", deadline)
    return ClientZone.of(str(_json_object(answer).get("AvailabilityZone", "")), "Amazon ECS")


def _from_ec2(environment: Mapping[str, str], deadline: float) -> ClientZone | None:
    if environment.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        return None
    address = environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", _EC2_ADDRESS).rstrip("/")
    lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    token = _get(f"{address}/latest/api/token", deadline, lifetime, "PUT")
    if not token:
        return None
    headers = {"X-aws-ec2-metadata-token": token}
    placement = f"{address}/latest/meta-data/placement/availability-zone"
    name = ClientZone.of(_get(placement, deadline, headers))
    zone_id = ClientZone.of(_get(f"{placement}-id", deadline, headers))
    if name is None and zone_id is None:
        return None
    return ClientZone(
        zone_id=zone_id.zone_id if zone_id else None,
        name=name.name if name else None,
        source="Amazon EC2",
    )


def _json_object(text: str) -> Mapping[str, object]:
    metadata = json.loads(text or "{}")
    return metadata if isinstance(metadata, dict) else {}


def _get(
    url: str, deadline: float, headers: Mapping[str, str] | None = None, method: str = "GET"
) -> str:
    """The body of a 200, else nothing; never through a proxy."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=left)
    try:
        connection.request(method, parts.path, headers=dict(headers or {}))
        response = connection.getresponse()
        body = response.read(_LARGEST_ANSWER)
        return body.decode("utf-8") if response.status == 200 else ""
    finally:
        connection.close()


FIRST_PAUSE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 60.0


# Scheme, host and port, and nothing else: no user, path, blank or control character, which
# urlsplit() would drop without a word and so make one host of two.
_ORIGIN = re.compile(
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?P<port>:[0-9]{1,5})?/?",
    re.IGNORECASE,
)


def checked_origin(url: str, where: str, *, allow_plain_http: bool = False) -> str:
    """Return scheme, host and port of a URL that has no path, or raise its error."""
    parts = _ORIGIN.fullmatch(url) if isinstance(url, str) else None
    if parts is None or not _exists(parts["host"], parts["port"]):
        raise CLIENT_URL.error(
            got=repr(url), allowed="https://host or https://host:port", where=where
        )
    scheme = parts["scheme"].lower()
    if scheme == "http" and not allow_plain_http and not is_this_machine(parts["host"]):
        raise CLIENT_PLAIN_HTTP.error(
            got=repr(url),
            allowed="https://, or http:// to localhost, 127.0.0.1 or [::1]",
            where=where,
        )
    return f"{scheme}://{parts['host']}{parts['port'] or ''}"


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
