"""What time it is in the account that commands look at.

AWS goes by the wall clock. A local AWS may go faster, and ahead; its metrics carry its own time, so
whoever asks for "the last hour" must ask for the last hour of it. It is asked where the variables
that it printed are set: ``AWS_ENDPOINT_URL`` on loopback, and its token.
"""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPException
from ipaddress import ip_address
from urllib.parse import urlsplit

from .sessions import AwsUnavailable

TOKEN_VARIABLE = "LOCAL_SAGEMAKER_TOKEN"
TOKEN_HEADER = "X-Local-Aws-Token"
_SECONDS = 10.0


@dataclass(frozen=True)
class Reading:
    """One moment by two clocks, in epoch seconds."""

    wall: float
    account: float


@dataclass(frozen=True)
class AccountClock:
    """How the account's time went beside the wall clock's, from one reading to another.

    >>> clock = AccountClock(Reading(100, 1000), Reading(110, 1600))
    >>> clock.speed, clock.account(105), clock.wall(1300)
    (60.0, 1300.0, 105.0)
    """

    begun: Reading = Reading(0.0, 0.0)
    ended: Reading = Reading(1.0, 1.0)

    @property
    def speed(self) -> float:
        """Seconds of the account in one of the wall clock; at least one, as metrics need."""
        passed = self.ended.wall - self.begun.wall
        return max((self.ended.account - self.begun.account) / passed, 1.0) if passed > 0 else 1.0

    def account(self, wall: float) -> float:
        return self.begun.account + (wall - self.begun.wall) * self.speed

    def wall(self, account: float) -> float:
        """A moment of the account by the wall clock."""
        return self.begun.wall + (account - self.begun.account) / self.speed


#: Where the account has no time of its own.
WALL_CLOCK = AccountClock()


def account_now() -> datetime:
    return datetime.fromtimestamp(read_clock().account, UTC)


def read_clock() -> Reading:
    """Now, by the wall clock and by the account's."""
    url = _local_aws()
    now = time.time()
    if url is None:
        return Reading(now, now)
    request = urllib.request.Request(
        f"{url}/_local/runtime/time",
        method="POST",
        headers={TOKEN_HEADER: os.environ[TOKEN_VARIABLE]},
    )
    # Nothing on loopback is behind a proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=_SECONDS) as answer:
            return Reading(now, float(json.load(answer)["time"]))
    except urllib.error.HTTPError as error:
        another = f": is {TOKEN_VARIABLE} of another one?" if error.code in (401, 403) else ""
        reason = f"it answers {error.code}{another}"
    except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
        reason = str(getattr(error, "reason", error))
    raise AwsUnavailable(f"The local AWS at {url} does not tell its time: {reason}")


def keeps_own_time() -> bool:
    """Whether the account's clock may be another than the wall's."""
    return _local_aws() is not None


def _local_aws() -> str | None:
    url = os.environ.get("AWS_ENDPOINT_URL", "").rstrip("/")
    if not os.environ.get(TOKEN_VARIABLE) or not url:
        return None
    try:
        host = urlsplit(url).hostname or ""
        loopback = (
            host == "localhost" or host.endswith(".localhost") or ip_address(host).is_loopback
        )
    except ValueError:
        return None
    return url if loopback else None
