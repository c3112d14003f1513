"""Credentials that are renewed beside the calls which they sign, by a thread of their own.

botocore asks a provider (instance role, container, process, SSO) inside the call that finds the
credentials old: from 15 minutes before their end, though they are good until then.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

from botocore.credentials import Credentials
from botocore.exceptions import CredentialRetrievalError

_log = logging.getLogger(__name__)
_LOOK_SECONDS = 30.0  # botocore decides at each look whether it is time
_POLL_SECONDS = 0.01


class CredentialsEnded(Exception):
    """None are valid now; see :meth:`RenewedCredentials.waits`."""


class RenewedCredentials:
    """The last credentials known, for a signer that must not wait; static ones need no thread."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._current: Any = None
        self._ends = 0.0  # of time.time()
        self._tries = 0
        self._failure: Exception | None = None
        self._wake = threading.Event()
        self._process = 0  # whose thread it is; a forked child has none

    def start(self) -> None:
        """Begin to renew, in this process."""
        self.close()
        forked, self._process = self._process not in (0, os.getpid()), os.getpid()
        if type(self._source) is Credentials:
            self._current, self._ends = self._source.get_frozen_credentials(), float("inf")
            return
        if forked and hasattr(self._source, "_refresh_lock"):
            self._source._refresh_lock = threading.Lock()  # the parent's thread may have held it
        threading.Thread(
            target=_renew, args=(weakref.ref(self), self._wake), name="credentials", daemon=True
        ).start()

    def close(self) -> None:
        """End the thread, once the provider lets it."""
        ended, self._wake = self._wake, threading.Event()
        ended.set()

    def get_frozen_credentials(self) -> Any:
        """As botocore's, at once; raises :class:`CredentialsEnded`."""
        if self._process != os.getpid():
            self.start()
        if time.time() >= self._ends:
            raise CredentialsEnded
        return self._current

    def waits(self, deadline: float) -> Iterator[float]:
        """Pauses for the caller to make until credentials are valid, by ``time.monotonic()``."""
        tries = self._tries
        while time.time() >= self._ends:
            if self._tries != tries or time.monotonic() >= deadline:
                raise CredentialRetrievalError(
                    provider=getattr(self._source, "method", type(self._source).__name__),
                    error_msg=self._failure or "none that are valid came in time",
                ) from self._failure
            self._wake.set()
            yield _POLL_SECONDS

    def goes_on(self, wake: threading.Event) -> bool:
        """Renew if it is time; returns whether the thread with this event is still the one."""
        try:
            frozen = self._source.get_frozen_credentials()
            ends = getattr(self._source, "_expiry_time", None)
            self._current, self._ends = frozen, float("inf") if ends is None else ends.timestamp()
            self._failure = None
        except Exception as error:  # of any provider; the old ones are good until they end
            self._failure = error
            _log.warning("credentials were not renewed: %s", type(error).__name__)
        self._tries += 1
        return self._wake is wake

    @property
    def pause(self) -> float:
        """Seconds until the next look, unless a call asks."""
        left = self._ends - time.time()
        return min(_LOOK_SECONDS, max(1.0, left / 4)) if left > 0 else _LOOK_SECONDS


def _renew(of: weakref.ref[RenewedCredentials], wake: threading.Event) -> None:
    """End with the client, closed or not."""
    while (one := of()) is not None and one.goes_on(wake):
        pause = one.pause
        del one
        wake.wait(pause)
        wake.clear()
