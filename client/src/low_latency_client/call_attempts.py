"""Whether, where and when a call is tried again: one decision for all clients for callers.

It sends nothing and waits for nothing. A client asks where the next attempt goes, reports what
became of it, and gets the seconds until the next, or ``None`` when there is none.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ConnectionClosedError, ReadTimeoutError, ResponseStreamingError
from botocore.exceptions import ConnectionError as NoConnectionError

from .arguments import check_kind
from .timing import RETRY_SHARE, THROTTLES, Budget, CallTiming, ClientCounts
from .zone import ZonalRoute

# Answers that say "not now" rather than "not this": the request was not, or not fully, served.
_RETRYABLE_STATUS = frozenset({500, 502, 503, 504, 530})
# Fields of the requests that language models take (OpenAI's chat, completions and responses, TGI's
# and DJL's).
_GENERATIVE = (
    b'"messages"',
    b'"prompt"',
    b'"max_tokens"',
    b'"max_new_tokens"',
    b'"max_completion_tokens"',
    b'"max_output_tokens"',
    b'"do_sample"',
)


class StaleConnectionError(ConnectionClosedError):  # type: ignore[misc]  # untyped botocore
    """A kept connection that the peer had closed, or closed without a byte of an answer."""


class UnreachedPeerError(StaleConnectionError):
    """A kept connection whose peer acknowledges nothing any more, without a byte of an answer."""


def may_retry(*, sent: bool, status: int | None, timed_out: bool, idempotent: bool) -> bool:
    """Whether a failed attempt may be made again."""
    if not sent:
        return True
    if timed_out or not idempotent:
        return False
    return status is None or status in _RETRYABLE_STATUS


def is_idempotent(parameters: Mapping[str, Any], body: bytes) -> bool:
    """What the call says itself. By default not with a session, which has a state, nor when it asks
    for a generation, whose second copy takes an accelerator's time as the first does."""
    stated = parameters.get("Idempotent")
    if stated is not None:
        return stated_idempotent(stated)
    return not parameters.get("SessionId") and not is_generation(body)


def stated_idempotent(stated: Any) -> bool:
    """What a call says of itself, if it is no other value than True or False."""
    check_kind(stated, bool, "Idempotent")
    return bool(stated)


def is_generation(body: bytes) -> bool:
    """Whether a request's body has a field that only language models take; by a look, not parsed."""
    return any(field in body for field in _GENERATIVE)


class CallRules:
    """What the calls of one client have in common; safe across threads."""

    def __init__(self, timing: CallTiming, counts: ClientCounts, regional: str) -> None:
        self.timing = timing
        self.counts = counts
        self.regional = regional
        self.route: ZonalRoute | None = None  # once it is known
        self.budget = Budget(RETRY_SHARE)
        self.longest_seconds = timing.longest_call.total_seconds()
        self.delay_seconds = timing.retry_delay.total_seconds()

    def start_anew(self) -> None:
        """In a forked child: a thread of the parent's may have held a lock."""
        self.budget = Budget(RETRY_SHARE)
        self.counts.start_anew()
        if self.route is not None:
            self.route.start_anew()


class Attempts:
    """The attempts of one call; times are those of ``time.monotonic()``."""

    def __init__(self, rules: CallRules, idempotent: bool) -> None:
        rules.budget.earn()
        self._rules = rules
        self._idempotent = idempotent
        self._failed_over = False
        self.deadline = time.monotonic() + rules.longest_seconds  # of the whole call
        self.origin = rules.regional  # where the attempt goes that was chosen last
        self.made = 0  # attempts that came to their end
        self.sent = 0.0  # when the first request went out; 0 until then
        self.first_token: float | None = None  # seconds from then, which are the deadline then
        self.fresh = False  # the next attempt needs a new connection: a kept one failed
        # The next attempt must not meet a closed connection: none may follow it.
        self.sure = not idempotent or not rules.timing.retries
        self.silence: float | None = None  # the endpoint's longest; None for the read timeout
        # Told of each connection before the request goes out on it, and None when that connection
        # is no longer this call's.
        self.watch: Callable[[Any], None] | None = None

    def choose(self) -> str:
        """Where the next attempt goes; to be asked when it can go out."""
        route = self._rules.route
        if route is not None:
            self.origin = route.choose()
        return self.origin

    def sending(self, connection: Any) -> None:
        """The connection is there: the clocks of the answer start."""
        if not self.sent:
            self.sent = time.monotonic()
            if self.first_token is not None:
                self.deadline = self.sent + self.first_token
        if self.watch is not None:
            self.watch(connection)

    def answered(self, status: int, code: str | None = None) -> float | None:
        """Report an answer; an error with its code, which is judged before its status."""
        self.made += 1
        route = self._rules.route
        if route is not None:
            route.answered(self.origin)
        if status < 300 or code in THROTTLES:
            return None
        return self._again(sent=True, status=status, timed_out=False)

    def failed(self, error: Exception) -> float | None:
        """Report an attempt without an answer."""
        self.made += 1
        rules = self._rules
        timed_out = isinstance(error, ReadTimeoutError | ResponseStreamingError)
        sent = not isinstance(error, NoConnectionError)
        if isinstance(error, UnreachedPeerError) and self._leaves_zone(sent=True):
            return 0.0
        if isinstance(error, StaleConnectionError):
            # Says nothing of the zone and nothing of the endpoint's health, so it spends nothing
            # of what protects them. RFC 9112 (9.5) and RFC 9110 (9.2.2) leave the repetition to
            # idempotent requests.
            if not self._idempotent or not self._has_left() or not self._in_time(0.0):
                return None
            self.fresh = self.sure = True
            rules.counts.add("retries")
            rules.counts.add("reconnects")
            return 0.0
        if not timed_out and self._leaves_zone(sent=sent):
            return 0.0
        return self._again(sent=sent, status=None, timed_out=timed_out)

    def _leaves_zone(self, *, sent: bool) -> bool:
        """Whether the next attempt goes to the regional name: once, on top of the retries."""
        route = self._rules.route
        if route is None or not route.failed(self.origin) or self._failed_over:
            return False
        self._failed_over = (not sent or self._idempotent) and self._in_time(0.0)
        return self._failed_over

    def _again(self, *, sent: bool, status: int | None, timed_out: bool) -> float | None:
        rules = self._rules
        if not self._has_left() or not may_retry(
            sent=sent, status=status, timed_out=timed_out, idempotent=self._idempotent
        ):
            return None
        pause = random.uniform(0, rules.delay_seconds)
        if not self._in_time(pause) or not rules.budget.spend():
            return None
        rules.counts.add("retries")
        self.sure = not self._idempotent or self.made - self._failed_over >= rules.timing.retries
        return pause

    def _has_left(self) -> bool:
        """Whether the retries allow one more attempt."""
        return self.made - self._failed_over <= self._rules.timing.retries

    def _in_time(self, pause: float) -> bool:
        return time.monotonic() + pause < self.deadline
