"""What changes a fleet while requests run: scaling, deployments, failures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..errors import rule
from ..plan.limits import MIN_CAPACITY, SCALING_TARGET, Choice, number_range
from ..plan.rules import MIN_ABOVE_MAX
from .service_laws import SECONDS, SHARE

SIMULATED_INSTANCES = number_range(
    "LLS103",
    "the number of simulated instances",
    1,
    1_000_000,
    fix="Give a number of instances in the allowed range.",
)
ROUTERS = number_range("LLS110", "the number of routers", 1, 1000, fix="Give at least one router.")
SCALING_METRIC = Choice(
    rule(
        "LLS118",
        "a scaling metric is not one that can be simulated",
        fix="Choose one of the metrics; TargetTracking.on_concurrency makes the second.",
    ),
    "a scaling metric",
    ("invocations", "concurrency"),
)
SCALING_PERIOD = number_range(
    "LLS119",
    "the period of a scaling metric",
    1,
    3600,
    unit="seconds",
    whole=False,
    fix="Give seconds: 60 for invocations, 10 for the metric of high resolution.",
)


@dataclass(frozen=True, slots=True)
class TargetTracking:
    """Application Auto Scaling with CloudWatch's delays, on invocations per instance or, made by
    :meth:`on_concurrency`, on requests in flight.

    Parameters
    ----------
    target : float
        Invocations per instance and minute, or requests in flight per instance.
    minimum, maximum : int
        Numbers of instances between which it moves.
    scale_out_cooldown, scale_in_cooldown : float
        Seconds. By default 300 both, AWS's defaults.
    metric_delay : float
        Seconds from the end of a period until its value can be seen. By default 60.
    out_datapoints, in_datapoints : int
        Periods in a row above the target, or below 90 % of it, before capacity changes. By
        default 3 and 15, as the alarms are that target tracking creates.
    instance_seconds : float
        From the decision to the new instance's first request: launch, image, model, health
        checks. By default 300. Meanwhile nothing else is scaled: the endpoint is updating.
    metric : str
        ``invocations`` or ``concurrency``: the mean number of requests in flight, those that wait
        in line included. By default ``invocations``.
    period : float
        Seconds over which the metric is taken. By default 60.
    """

    target: float
    minimum: int
    maximum: int
    scale_out_cooldown: float = 300.0
    scale_in_cooldown: float = 300.0
    metric_delay: float = 60.0
    out_datapoints: int = 3
    in_datapoints: int = 15
    instance_seconds: float = 300.0
    metric: str = "invocations"
    period: float = 60.0

    @classmethod
    def on_concurrency(
        cls, target: float, minimum: int, maximum: int, **changes: Any
    ) -> TargetTracking:
        """Scaling on SageMaker's concurrency metric of high resolution.

        It has a value every 10 seconds: three make a scale-out; scale-in takes 15 minutes as with
        invocations. AWS does not say how soon a value can be seen: 10 seconds here.

        Examples
        --------
        >>> policy = TargetTracking.on_concurrency(4.0, 2, 10)
        >>> policy.period * policy.out_datapoints, policy.period * policy.in_datapoints
        (30.0, 900.0)
        """
        parts: dict[str, Any] = {
            "metric": "concurrency",
            "period": 10.0,
            "metric_delay": 10.0,
            "in_datapoints": 90,
        }
        return cls(target, minimum, maximum, **(parts | changes))

    def __post_init__(self) -> None:
        SCALING_METRIC.check(self.metric, "scaling.metric")
        SCALING_PERIOD.check(self.period, "scaling.period")
        SCALING_TARGET.check(self.target, "scaling.target")
        MIN_CAPACITY.check(self.minimum, "scaling.minimum")
        MIN_CAPACITY.check(self.maximum, "scaling.maximum")
        if self.minimum > self.maximum:
            raise MIN_ABOVE_MAX.error(
                got=f"{self.minimum} above {self.maximum}",
                allowed="a minimum up to the maximum",
                where="scaling",
            )
        for name in ("scale_out_cooldown", "scale_in_cooldown", "metric_delay", "instance_seconds"):
            SECONDS.check(getattr(self, name), f"scaling.{name}")
        ROUTERS.check(self.out_datapoints, "scaling.out_datapoints")
        ROUTERS.check(self.in_datapoints, "scaling.in_datapoints")


@dataclass(frozen=True, slots=True)
class Rollout:
    """A new version of the endpoint while requests run. Scaling stands still meanwhile.

    Parameters
    ----------
    at : float
        When it starts, in seconds.
    kind : str
        ``all_at_once`` and ``canary`` bring up a second fleet and shift traffic to it, ``linear``
        in equal steps; ``rolling`` replaces batches. By default ``all_at_once``.
    step_share : float
        Share of the fleet in the canary, in each linear step, or in each rolling batch. By
        default 0.5, the largest that AWS takes.
    wait_seconds : float
        Between two steps. By default 300.
    bake_seconds : float
        After all traffic has moved, before the old fleet is deleted. By default 0.
    instance_seconds : float
        From launch to the first request. By default 300.
    """

    at: float
    kind: str = "all_at_once"
    step_share: float = 0.5
    wait_seconds: float = 300.0
    bake_seconds: float = 0.0
    instance_seconds: float = 300.0

    def step(self, fleet: int) -> int:
        """Instances in the canary, in each linear step, or in each batch, of a fleet."""
        return max(1, min(fleet, round(fleet * self.step_share)))

    def seconds(self, fleet: int) -> float:
        """How long it takes for a fleet when nothing fails.

        Examples
        --------
        >>> Rollout(at=0.0, kind="rolling", step_share=0.25, wait_seconds=60.0).seconds(8)
        1380.0
        """
        steps = math.ceil(fleet / self.step(fleet))
        if self.kind == "rolling":
            return steps * self.instance_seconds + (steps - 1) * self.wait_seconds
        waits = {"all_at_once": 0, "canary": min(1, steps - 1)}.get(self.kind, steps - 1)
        return self.instance_seconds + waits * self.wait_seconds + self.bake_seconds

    def __post_init__(self) -> None:
        for name in ("at", "wait_seconds", "bake_seconds", "instance_seconds"):
            SECONDS.check(getattr(self, name), f"deployment.{name}")
        SHARE.check(self.step_share, "deployment.step_share")
        kinds = ("all_at_once", "canary", "linear", "rolling")
        if self.kind not in kinds or not self.step_share:
            raise SHARE.rule.error(
                got=f"{self.kind!r} with a share of {self.step_share}",
                where="deployment",
                what="a deployment is of one of four kinds, its steps above zero",
                allowed=", ".join(kinds),
                fix="Choose one of the kinds and a share above 0.",
            )


@dataclass(frozen=True, slots=True)
class InstanceFailure:
    """Instances that die with the requests they hold.

    Parameters
    ----------
    at : float
        When, in seconds.
    instances : int
        How many of those that serve, the longest serving first; all, when fewer serve. By default
        1.
    detection_seconds : float
        How long routers go on sending to them, and those requests hang. By default 10; AWS
        states no number.
    replacement_seconds : float or None
        From detection until as many new ones serve. By default 300; ``None`` for never: then the
        fleet does without them until scaling or a deployment makes new ones.
    """

    at: float
    instances: int = 1
    detection_seconds: float = 10.0
    replacement_seconds: float | None = 300.0

    def __post_init__(self) -> None:
        SECONDS.check(self.at, "failure.at")
        SECONDS.check(self.detection_seconds, "failure.detection_seconds")
        if self.replacement_seconds is not None:
            SECONDS.check(self.replacement_seconds, "failure.replacement_seconds")
        SIMULATED_INSTANCES.check(self.instances, "failure.instances")


@dataclass(frozen=True, slots=True)
class ZoneOutage:
    """All instances of a zone die; callers of that zone go on calling.

    Parameters
    ----------
    at : float
        When, in seconds.
    zone : int
        Which, from 0. By default the first.
    detection_seconds, replacement_seconds
        As for :class:`InstanceFailure`; replacements start in the other zones.
    """

    at: float
    zone: int = 0
    detection_seconds: float = 10.0
    replacement_seconds: float | None = 300.0

    def __post_init__(self) -> None:
        SECONDS.check(self.at, "outage.at")
        SECONDS.check(self.detection_seconds, "outage.detection_seconds")
        if self.replacement_seconds is not None:
            SECONDS.check(self.replacement_seconds, "outage.replacement_seconds")
