"""How an endpoint is warmed up and kept warm, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from aws_cdk import Duration

from ..plan.argument_kinds import checked_arguments
from .payload import WarmUpPayload


class WarmUpMiss(Enum):
    """What becomes of a deployment whose warm-up misses the target, or is refused."""

    FAIL = "FAIL"
    """CloudFormation fails and rolls back."""
    WARN = "WARN"
    """The deployment succeeds; the log and the attributes tell."""


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class KeepWarmOptions:
    """How :class:`LowLatencyEndpoint` is kept warm: arguments of :meth:`WarmUp.keep_warm`.

    Args:
        every: Whole minutes; by default 1 minute.
        requests_per_zone: By default 1.
        below_tps: By default 1, or twice what keep-warm itself sends.
        window: Whole minutes; by default 5 minutes.

    Raises:
        ConfigurationError: LLE801 and LLE807 for values of another kind; LLE549 to
            LLE555 when it is used.
    """

    every: Duration | None = None
    requests_per_zone: int = 1
    below_tps: float | None = None
    window: Duration | None = None


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class WarmUpOptions:
    """The warm-up of :class:`LowLatencyEndpoint`: what is sent, and what becomes of a miss.

    :class:`WarmUp` says what each option means.

    Args:
        payload: What is sent; several in turn.
        requests: By default the plan's: what reaches every worker of the fleet.
        concurrency_per_zone: By default 4.
        last: By default the last 50 requests of each zone are judged.
        timeout: By default 10 minutes.
        on_miss: By default the deployment fails, and rolls back.
        during_deployments: By default requests are sent while a deployment bakes, too.
        metrics: By default no metrics are published.
        reserved_concurrency: By default none is reserved.
        keep_warm: By default the endpoint is not kept warm.

    Raises:
        ConfigurationError: LLE801 and LLE807 for values of another kind, LLE360 for a
            mapping as ``keep_warm``; what :class:`WarmUp` refuses, it refuses when it
            is made.

    Examples:
        >>> from low_latency_endpoint import KeepWarmOptions, WarmUpOptions, WarmUpPayload
        >>> WarmUpOptions(payload=WarmUpPayload.from_json({"inputs": "I like you."}),
        ...               keep_warm=KeepWarmOptions(requests_per_zone=2)).on_miss
        <WarmUpMiss.FAIL: 'FAIL'>
    """

    payload: WarmUpPayload | Sequence[WarmUpPayload]
    requests: int | None = None
    concurrency_per_zone: int = 4
    last: int = 50
    timeout: Duration | None = None
    on_miss: WarmUpMiss = WarmUpMiss.FAIL
    during_deployments: bool = True
    metrics: bool = False
    reserved_concurrency: int | None = None
    keep_warm: KeepWarmOptions | None = None
