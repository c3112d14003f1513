"""A request a minute from each client zone."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from ..errors import ConfigurationError
from ..errors.frozen import dataclass
from ..facts import limits
from ..facts.canary_metrics import LONGEST_CONNECT_MS
from .argument_kinds import checked_arguments
from .option import EXCLUDES_ANOTHER, Option, Options
from .warm_up import WarmUpOptions, WarmUpPayload

if TYPE_CHECKING:
    from aws_cdk import Duration


def silence_beside(sender: str, got: str, where: str = "") -> ConfigurationError:
    """An alarm on silence that would never go off beside what sends requests of its own."""
    return EXCLUDES_ANOTHER.error(
        got=got,
        allowed="one of the two",
        what=f"the requests of {sender} are traffic: an alarm on silence never goes off beside them",
        fix=f"Remove alarms.expect_traffic or {sender}: a canary tells when callers get no answer, and "
        "nothing can tell that callers are silent while other requests come.",
        where=where,
    )


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class CanaryOptions(Options):
    """A request a minute from each client zone measures the path that its callers take.

    Raises:
        ConfigurationError: LLE701 for times out of range, LLE801 and LLE807 for values of another
            kind.

    Examples:
        >>> from low_latency_endpoint import CanaryOptions, WarmUpPayload
        >>> CanaryOptions(payload=WarmUpPayload(data={"inputs": "I like you."})).longest_connect
        datetime.timedelta(microseconds=10000)
    """

    payload: Annotated[
        WarmUpPayload | None, Option(example={"data": {"inputs": "I like you."}})
    ] = None
    """The request, like those of your callers. Default: the first payload of warm_up."""
    longest_connect: Annotated[
        Duration | timedelta | str, Option(limits.ALARM_THRESHOLD_MILLISECONDS, "10ms", known=True)
    ] = timedelta(milliseconds=LONGEST_CONNECT_MS)
    """Longest time to open a connection from a zone. Two minutes above it are a path fault: zones
    of a Region are single-digit milliseconds apart, and a path within a zone is shorter. Default:
    10ms."""
    zone_difference: Annotated[
        Duration | timedelta | str | None,
        Option(limits.ALARM_THRESHOLD_MILLISECONDS, "20ms", billed=(1,), known=True),
    ] = None
    """Longest time by which callers in the slowest zone may wait longer than those in the fastest,
    by medians of five minutes. Default: the latency target's share for overhead; without a target
    no alarm."""


def canary_payload(canary: CanaryOptions, warm_up: WarmUpOptions | None) -> WarmUpPayload | None:
    """What a canary sends: its own payload, or the warm-up's first."""
    if canary.payload is None and warm_up is not None:
        return warm_up.payloads[0]
    return canary.payload


def canary_bytes(canary: CanaryOptions | None, warm_up: WarmUpOptions | None) -> int | None:
    """The size of what a canary sends; None if it is not known, or there is no canary."""
    payload = canary and canary_payload(canary, warm_up)
    return payload.size if payload else None
