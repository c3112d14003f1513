"""Credentials that are renewed beside the calls which they sign.

botocore asks the provider inside the call that finds them old, 15 minutes before their end.
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
        self.wake = threading.Event()
        self._process = 0  # whose thread it is; a forked child has none

    def start(self) -> None:
        """Begin to renew, in this process."""
        self.close()
        forked, self._process = self._process not in (0, os.getpid()), os.getpid()
        if type(self._source) is Credentials:
            self.look()
            return
        if forked and hasattr(self._source, "_refresh_lock"):
            self._source._refresh_lock = threading.Lock()  # the parent's thread may have held it
        threading.Thread(
            target=_renew, args=(weakref.ref(self), self.wake), name="credentials", daemon=True
        ).start()

    def close(self) -> None:
        """End the thread, once the provider lets it."""
        ended, self.wake = self.wake, threading.Event()
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
                source, why = type(self._source).__name__, self._failure or "none came in time"
                raise CredentialRetrievalError(provider=source, error_msg=why) from self._failure
            self.wake.set()
            yield _POLL_SECONDS

    def look(self) -> float:
        """Renew if it is time; seconds until the next look, unless a call asks."""
        try:
            self._current = self._source.get_frozen_credentials()
            ends = getattr(self._source, "_expiry_time", None)
            self._ends = float("inf") if ends is None else ends.timestamp()
            self._failure = None
        except Exception as error:  # of any provider; the old ones are good until they end
            self._failure = error
            _log.warning("credentials were not renewed: %s", type(error).__name__)
        self._tries += 1
        left = self._ends - time.time()
        return min(_LOOK_SECONDS, max(1.0, left / 4)) if left > 0 else _LOOK_SECONDS


def _renew(of: weakref.ref[RenewedCredentials], wake: threading.Event) -> None:
    """Until the client ends, closed or not."""
    while (one := of()) is not None and one.wake is wake:
        pause = one.look()
        del one
        wake.wait(pause)
        wake.clear()
