"""Timeouts, retries and TCP keep-alive of a runtime client, derived from its latency target.

Nothing is hidden: :class:`CallTiming` holds every number, and the caller can set each.
"""

from __future__ import annotations

import socket
import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from .arguments import milliseconds
from .errors import rule
from .limits import Range

#: PrivateLink (and every NLB) drops a connection that was idle for this long, without a word.
PRIVATE_LINK_IDLE_SECONDS = 350
KEEPALIVE_PROBES = 3
#: Share of calls that may be retried: an endpoint in need must not be asked twice by everybody.
RETRY_SHARE = 0.1
# Whatever their status: what is sent again within a tenth of a second is throttled as well.
THROTTLES = frozenset({"ThrottlingException", "Throttling", "TooManyRequestsException"})
#: For a connection that is opened ahead: nobody waits for an answer yet, and the process is busy.
AHEAD_TIMEOUT = timedelta(seconds=3)

_IDLE_PAGE = "/vpc/latest/privatelink/privatelink-access-aws-services.html"
_INVOKE_PAGE = "/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html"

CLIENT_DURATION = Range(
    rule(
        "LLC101",
        "a duration of the runtime client is out of range",
        fix="Give a time in that range. A model may take 60 s. Above 50 s, AWS asks for a client "
        "timeout of 70 s.",
        source=_INVOKE_PAGE,
    ),
    1,
    900_000,
    "milliseconds",
    whole=False,
)
CLIENT_CONCURRENCY = Range(
    rule(
        "LLC102",
        "the number of concurrent calls of the runtime client is out of range",
        fix="Give the number of threads or tasks that call at the same time.",
    ),
    1,
    10_000,
)
CLIENT_PRECONNECT = Range(
    CLIENT_CONCURRENCY.rule._replace(
        title="the number of connections opened ahead is out of range",
        fix="Give the number of connections to open before the first call, 0 for none.",
    ),
    0,
    10_000,
)
CLIENT_KEEPALIVE = Range(
    rule(
        "LLC103",
        "TCP keep-alive comes too late for PrivateLink",
        fix="Give a shorter time, such as timedelta(seconds=60): PrivateLink drops idle "
        "connections after 350 s.",
        source=_IDLE_PAGE,
    ),
    1,
    PRIVATE_LINK_IDLE_SECONDS - 50,
    "seconds",
    whole=False,
)
CLIENT_RETRIES = Range(
    rule(
        "LLC104",
        "the number of retries of the runtime client is out of range",
        fix="Give 0 to 5 further attempts.",
    ),
    0,
    5,
)
HEDGE_SHARE = Range(
    rule(
        "LLC105",
        "the budget of hedged requests is out of range",
        fix="Give the share of requests that may be sent twice, such as 0.05.",
    ),
    0.0001,
    0.5,
    whole=False,
)
HEDGE_PERCENTILE = Range(
    rule(
        "LLC106",
        "the percentile after which requests are hedged is out of range",
        fix="Give a percentile such as 95, which hedges one request in twenty.",
    ),
    50,
    99.9,
    whole=False,
)
CLIENT_URL = rule(
    "LLC107",
    "an endpoint URL of the runtime client cannot be used",
    fix="Give scheme and host, as in the stack's output ZonalUrl-use1-az1: "
    "https://vpce-0a1b-2c3d-us-east-1a.runtime.sagemaker.us-east-1.vpce.amazonaws.com.",
    source="/vpc/latest/privatelink/privatelink-access-aws-services.html",
)
CLIENT_REGION = rule(
    "LLC108",
    "the runtime client has no Region",
    fix="Pass region='us-east-1' or a session that has a Region, or set AWS_DEFAULT_REGION.",
)
CLIENT_CREDENTIALS = rule(
    "LLC109",
    "the runtime client finds no credentials",
    fix="Pass a session with credentials, or configure credentials as for the AWS CLI. "
    "Check with `aws sts get-caller-identity`.",
)

CLIENT_PLAIN_HTTP = rule(
    "LLC110",
    "requests would leave this machine in clear text",
    fix="Use https://. If the network is trusted, pass allow_plain_http=True: anybody on it can "
    "then read requests, answers and session tokens.",
    source="/general/latest/gr/sagemaker.html",
)
CLIENT_PROXY = rule(
    "LLC119",
    "calls would bypass the configured HTTP proxy",
    fix="Call runtime_client(), which uses the proxy. Or add the host to NO_PROXY: PrivateLink "
    "needs no proxy.",
)
CLIENT_CLOSED = rule(
    "LLC111",
    "the runtime client is closed",
    fix="Make a new client, or enter an AsyncRuntimeClient again (async with).",
)
CLIENT_LOOP = rule(
    "LLC112",
    "the runtime client was not entered in this event loop",
    fix="Use `async with AsyncRuntimeClient(...) as client:` in the event loop that calls.",
)


@dataclass(frozen=True, kw_only=True)
class CallTiming:
    """How long one call may take, and what happens when it fails."""

    connect_timeout: timedelta  # for TCP and TLS together with the name's resolution
    # longest silence of the endpoint after the request went out. Never retried: the model may
    # still be computing.
    read_timeout: timedelta
    # further attempts after a failure that
    # :func:`~low_latency_client.call_attempts.may_retry` allows
    retries: int
    # longest wait before a retry; the actual one is random between zero and this
    retry_delay: timedelta

    @property
    def longest_call(self) -> timedelta:
        """The most that a call takes whatever fails, also when its answer trickles.

        ``RuntimeClient`` and ``AsyncRuntimeClient`` end a call then, with ``ReadTimeoutError`` once
        it was sent. Of response streams it is the time until the head of the answer. Not counted,
        and without a limit, is the wait of an ``AsyncRuntimeClient`` for one of its ``concurrency``
        connections: ``asyncio.timeout()`` around a call ends that as well.

        Examples
        --------
        >>> call_timing(timedelta(milliseconds=200)).longest_call
        datetime.timedelta(seconds=4, microseconds=900000)
        """
        attempts = self.retries + 1
        return (self.connect_timeout + self.read_timeout) * attempts + (
            self.retry_delay * self.retries
        )


def call_timing(
    latency_target: timedelta | str,
    *,
    connect_timeout: timedelta | str | None = None,
    read_timeout: timedelta | str | None = None,
    retries: int = 1,
) -> CallTiming:
    """Timing fit to a latency target."""
    target = _milliseconds(latency_target, "latency_target")
    CLIENT_RETRIES.check(retries, "retries")
    connect = min(max(2 * target, 250), 3_000)
    if connect_timeout is not None:
        connect = _milliseconds(connect_timeout, "connect_timeout")
    read = min(max(10 * target, 1_000), 70_000)
    if read_timeout is not None:
        read = _milliseconds(read_timeout, "read_timeout")
    return CallTiming(
        connect_timeout=timedelta(milliseconds=connect),
        read_timeout=timedelta(milliseconds=read),
        retries=retries,
        retry_delay=timedelta(milliseconds=min(target / 2, 100)),
    )


def _milliseconds(value: Any, where: str) -> float:
    return float(CLIENT_DURATION.check(milliseconds(value, where), where))


def socket_options(
    keepalive: timedelta | str, connect_timeout: timedelta
) -> list[tuple[int, int, int]]:
    """Socket options of every connection: no Nagle, early keep-alive, dead peers noticed.

    ``TCP_USER_TIMEOUT`` (Linux) turns data that nobody acknowledges into a connection error: a
    zone that vanished is told apart from a model that is slow.
    """
    seconds = milliseconds(keepalive, "keepalive") / 1000
    CLIENT_KEEPALIVE.check(seconds, "keepalive")
    idle = max(1, int(seconds))
    interval = max(1, min(15, (PRIVATE_LINK_IDLE_SECONDS - idle) // (KEEPALIVE_PROBES + 1)))
    options = [
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    ]
    user_timeout = max(1_000, int(connect_timeout / timedelta(milliseconds=1)))
    for name, value in (
        ("TCP_KEEPIDLE", idle),  # Linux, Windows
        ("TCP_KEEPALIVE", idle),  # macOS's name for the same
        ("TCP_KEEPINTVL", interval),
        ("TCP_KEEPCNT", KEEPALIVE_PROBES),
        ("TCP_USER_TIMEOUT", user_timeout),
    ):
        number = getattr(socket, name, None)
        if number is not None:
            options.append((socket.IPPROTO_TCP, number, value))
    return options


class Budget:
    """A share of all requests that may be spent on extra ones; safe across threads."""

    def __init__(self, share: float, reserve: float = 10) -> None:
        self._share = share
        self._most = max(reserve, 1.0)
        self._left = float(reserve)
        self._lock = threading.Lock()

    def earn(self) -> None:
        """Count one request of the caller's."""
        if self._left >= self._most:
            return  # as nearly always
        with self._lock:
            self._left = min(self._most, self._left + self._share)

    def spend(self) -> bool:
        """Take one extra request from the budget, if it has one."""
        with self._lock:
            if self._left < 1 - 1e-9:  # ten tenths are a little less than one
                return False
            self._left -= 1
            return True


class ClientCounts:
    """What a client did since it was made; safe across threads.

    Attributes
    ----------
    retries, reconnects, failovers, recoveries, hedges, hedges_won, generations_cancelled, \
connections_opened : int
        Attempts repeated; those of them because the peer had closed a kept connection, which
        spend nothing of the retries' budget; calls that left a failed zone for the regional name;
        returns to the zone; requests sent twice, and how often the second answered first;
        generations among them whose connection was closed because the other one's first token came
        first; connections opened ahead of the first call.
    """

    def __init__(self) -> None:
        self.retries = 0
        self.reconnects = 0
        self.failovers = 0
        self.recoveries = 0
        self.hedges = 0
        self.hedges_won = 0
        self.generations_cancelled = 0
        self.connections_opened = 0
        self._lock = threading.Lock()

    def start_anew(self) -> None:
        """In a forked child: a thread of the parent's may have held the lock."""
        self._lock = threading.Lock()

    def add(self, name: str, number: int = 1) -> None:
        """Count one more."""
        with self._lock:
            setattr(self, name, getattr(self, name) + number)

    def as_dict(self) -> dict[str, int]:
        """All counts by name, for a metrics system."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __repr__(self) -> str:
        return f"ClientCounts({self.as_dict()})"
