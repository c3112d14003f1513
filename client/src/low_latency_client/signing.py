"""AWS Signature Version 4 with a cached signing key, and credentials renewed beside the calls.

botocore asks the provider inside the call that finds them old, 15 minutes before their end.

botocore derives the signing key (four HMACs) and canonicalises every header anew for each request.
A caller of one endpoint sends the same method, path and headers every time, so here both happen
once: what is left per request is the hash of the body, the hash of the canonical request and one
HMAC. Covered is what SageMaker Runtime's requests have: no query, each header once, no date of the
caller's.

The credentials are asked at most once per second, so refreshable ones (instance roles, containers,
SSO) are followed; the state of a second is published as one object, so threads never see a mixture
of two.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable
from urllib.parse import quote, urlsplit

from botocore.auth import SIGNED_HEADERS_BLACKLIST
from botocore.credentials import Credentials
from botocore.exceptions import CredentialRetrievalError
from botocore.utils import normalize_url_path

from .daemon_threads import start_daemon

_sha256 = hashlib.sha256
_hmac_digest = hmac.digest
_INNER = bytes(byte ^ 0x36 for byte in range(256))  # HMAC's two pads (RFC 2104)
_OUTER = bytes(byte ^ 0x5C for byte in range(256))
_DEFAULT_PORTS = {"http": 80, "https": 443}
_SERVICE = "sagemaker"


@runtime_checkable
class CredentialsSource(Protocol):
    """Anything that hands out credentials as botocore's ``Credentials`` do."""

    def get_frozen_credentials(self) -> Any:
        """``access_key``, ``secret_key`` and ``token`` that belong together."""


class _SigningKey(NamedTuple):
    """Derived once per day and credentials."""

    day: str
    credentials: tuple[str, str, str | None]
    key: bytes
    scope: str


class _Second(NamedTuple):
    """Everything that stays the same for one request during one second; never changed in place."""

    second: int
    canonical: Any  # SHA-256 of the canonical request up to the body's hash
    inner: Any  # SHA-256 of HMAC's inner pad and the string to sign, up to the canonical hash
    outer: Any  # SHA-256 of HMAC's outer pad
    lines: bytes  # of the request, Authorization last, up to the signature


class Sigv4Signer:
    """Credentials of one Region, and the signing key that they make."""

    __slots__ = ("_credentials", "_key", "region")

    def __init__(self, credentials: CredentialsSource, *, region: str) -> None:
        self._credentials = credentials
        self.region = region
        self._key: _SigningKey | None = None

    def __repr__(self) -> str:
        return f"Sigv4Signer(region={self.region!r})"

    def signing_key(self, day: str) -> _SigningKey:
        """The key of the day for the credentials as they are now."""
        frozen = self._credentials.get_frozen_credentials()
        credentials = (frozen.access_key, frozen.secret_key, frozen.token)
        known = self._key
        if known is not None and known.day == day and known.credentials == credentials:
            return known
        key = _hmac_digest(f"AWS4{frozen.secret_key}".encode(), day.encode(), "sha256")
        for part in (self.region, _SERVICE, "aws4_request"):
            key = _hmac_digest(key, part.encode(), "sha256")
        scope = f"{day}/{self.region}/{_SERVICE}/aws4_request"
        signing_key = _SigningKey(day, credentials, key, scope)
        self._key = signing_key
        return signing_key


class PreparedRequest:
    """One request to be signed again and again with different bodies.

    Safe across threads without a lock.
    """

    def __init__(
        self, signer: Sigv4Signer, method: str, url: str, headers: Mapping[str, str]
    ) -> None:
        named = {name.lower(): _canonical_value(value) for name, value in headers.items()}
        self._fixed = {
            name: value for name, value in named.items() if name not in SIGNED_HEADERS_BLACKLIST
        }
        self._fixed["host"] = host_of(url)
        self._signer = signer
        path = quote(normalize_url_path(urlsplit(url).path), safe="/~")
        self._head = f"{method}\n{path}\n\n"
        self._second: _Second | None = None

    def __repr__(self) -> str:
        method, path, *_ = self._head.split("\n")
        return f"PreparedRequest({method} {path})"

    def sign(self, body: bytes, now: float | None = None) -> bytes:
        """The headers to add to the prepared ones, as lines of a request with the last one's end."""
        second = int(time.time() if now is None else now)
        state = self._second
        if state is None or state.second != second:
            state = self._state_of(second)
            self._second = state  # one assignment of a complete object: threads see old or new
        canonical = state.canonical.copy()
        canonical.update(_sha256(body).hexdigest().encode())
        inner = state.inner.copy()
        inner.update(canonical.hexdigest().encode())
        outer = state.outer.copy()
        outer.update(inner.digest())
        return b"%b%b\r\n" % (state.lines, outer.hexdigest().encode())

    def _state_of(self, second: int) -> _Second:
        broken_down = time.gmtime(second)
        stamp = "{:04d}{:02d}{:02d}T{:02d}{:02d}{:02d}Z".format(*broken_down[:6])
        signing_key = self._signer.signing_key(stamp[:8])
        access_key, _, token = signing_key.credentials
        written = {"X-Amz-Date": stamp}
        if token:
            written["X-Amz-Security-Token"] = token
        headers = self._fixed | {
            name.lower(): _canonical_value(value) for name, value in written.items()
        }
        names = sorted(headers)
        lines = "\n".join(f"{name}:{headers[name]}" for name in names)
        signed = ";".join(names)
        written["Authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={access_key}/{signing_key.scope}, "
            f"SignedHeaders={signed}, Signature="
        )
        pad = signing_key.key.ljust(_sha256().block_size, b"\0")
        to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{signing_key.scope}\n".encode()
        return _Second(
            second=second,
            canonical=_sha256(f"{self._head}{lines}\n\n{signed}\n".encode()),
            inner=_sha256(pad.translate(_INNER) + to_sign),
            outer=_sha256(pad.translate(_OUTER)),
            lines="\r\n".join(f"{name}: {value}" for name, value in written.items()).encode(),
        )


def _canonical_value(value: str) -> str:
    return " ".join(value.split())


def host_of(url: str) -> str:
    """The ``Host`` header that HTTP clients send: no user, no default port."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    if parts.port is not None and parts.port != _DEFAULT_PORTS.get(parts.scheme):
        host = f"{host}:{parts.port}"
    return host


_log = logging.getLogger(__name__)
_LOOK_SECONDS = 30.0  # botocore decides at each look whether it is time
_POLL_SECONDS = 0.01


class CredentialsEnded(Exception):
    """None are valid now; see :meth:`RenewedCredentials.waits`."""


def held_credentials(source: Any) -> tuple[Any, float]:
    """What a source holds, and when that ends by ``time.time()``, without asking its provider.

    botocore's ``get_frozen_credentials`` asks the provider from 15 minutes before the end on, and
    in the last 10 minutes raises what it raises. Nothing is ``(None, 0.0)``.
    """
    ends = getattr(source, "_expiry_time", None)
    frozen = getattr(source, "_frozen_credentials", None)
    # Whoever renews them meanwhile writes the token first, then in either order the other two.
    if ends is None or frozen is None or frozen.token != getattr(source, "_token", None):
        return None, 0.0
    return frozen, ends.timestamp()


class RenewedCredentials:
    """The last credentials known, for a signer that must not wait; static ones need no thread."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._current: Any = None
        self._ends = 0.0  # of time.time()
        self._tries = 0
        self._failure: Exception | None = None
        self.wake = threading.Event()
        self._process = 0  # whose thread it is; a forked child has none

    def start(self) -> None:
        """Begin to renew, in this process."""
        forked = self._process not in (0, os.getpid())
        self.close()
        self._process = os.getpid()
        if type(self._source) is Credentials:
            self.look()
            return
        self._take_held()
        if forked and hasattr(self._source, "_refresh_lock"):
            self._source._refresh_lock = threading.Lock()  # the parent's thread may have held it
        if not start_daemon(partial(_renew, weakref.ref(self), self.wake), "credentials"):
            self.look()

    def close(self) -> None:
        """End the thread, once the provider lets it."""
        ended, self.wake = self.wake, threading.Event()
        if self._process == os.getpid():  # else the parent's thread may have held its lock
            ended.set()

    def get_frozen_credentials(self) -> Any:
        """As botocore's, at once; raises :class:`CredentialsEnded`."""
        if self._process != os.getpid():
            self.start()
        if time.time() >= self._ends and not self._take_held():
            raise CredentialsEnded
        return self._current

    def _take_held(self) -> bool:
        """Whether the source holds credentials that are valid, which are ours from now on."""
        credentials, ends = held_credentials(self._source)
        if ends <= time.time():
            return False
        self._current = credentials
        self._ends = ends
        return True

    def waits(self, deadline: float) -> Iterator[float]:
        """Pauses for the caller to make until credentials are valid, by ``time.monotonic()``."""
        tries = self._tries
        while time.time() >= self._ends and not self._take_held():
            if self._tries != tries or time.monotonic() >= deadline:
                source, why = type(self._source).__name__, self._failure or "none came in time"
                raise CredentialRetrievalError(provider=source, error_msg=why) from self._failure
            self.wake.set()
            yield _POLL_SECONDS

    def look(self) -> float:
        """Renew if it is time; seconds until the next look, unless a call asks."""
        try:
            renewed = self._source.get_frozen_credentials()
            if getattr(self._source, "_expiry_time", None) is None:
                self._current, self._ends = renewed, float("inf")
            self._failure = None
        except Exception as error:  # of any provider; the old ones are good until they end
            self._failure = error
            _log.warning("credentials were not renewed: %s", type(error).__name__)
        self._take_held()
        self._tries += 1
        left = self._ends - time.time()
        return min(_LOOK_SECONDS, max(1.0, left / 4)) if left > 0 else _LOOK_SECONDS


def _renew(of: weakref.ref[RenewedCredentials], wake: threading.Event) -> None:
    """Until the client ends, closed or not."""
    while (credentials := of()) is not None and credentials.wake is wake:
        pause = credentials.look()
        del credentials  # while this waits, nothing keeps the client
        wake.wait(pause)
        wake.clear()
