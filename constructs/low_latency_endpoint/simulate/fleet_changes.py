"""What changes a fleet while requests run: scaling, deployments, failures."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from ..errors import rule
from ..facts.limit_kinds import USE_AN_ALLOWED_VALUE, Choice, number_range
from ..facts.limits import MIN_CAPACITY, SCALING_TARGET
from ..facts.rules import MIN_ABOVE_MAX
from ..facts.scaling_rules import DEFAULT_COOLDOWN, IN_MINUTES, IN_SHARE, OUT_DATAPOINTS
from ..plan.scaling_pace import INSTANCE_SECONDS, METRIC_DELAY_SECONDS, METRIC_PERIOD_SECONDS
from ..plan.traffic_shapes import SECONDS
from .service_laws import SHARE

SIMULATED_INSTANCES = number_range("LLS103", "the number of simulated instances", 1, 1_000_000)
COUNT = number_range("LLS110", "a number of zones or of metric periods", 1, 1000)
SCALING_METRIC = Choice(
    rule("LLS118", "the scaling metric cannot be simulated", fix=USE_AN_ALLOWED_VALUE),
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
    fix="Give 60 for invocations, 10 for the high-resolution metric.",
)


@dataclass(frozen=True, slots=True)
class InstanceStart:
    """What a new instance does until its first request: image and model are fetched together.

    Parameters
    ----------
    provision : float
        Seconds until the instance is there.
    image_pull : float
        Seconds to pull the container's image; 0 where SageMaker has it cached, which it does by
        itself on accelerator types once an endpoint runs.
    model_download : float
        Seconds to fetch the model's files meanwhile. The two share the network: without the pull
        it is quicker.
    container_start : float
        Seconds until the container has loaded the model and answers health checks.
    warm_up : float
        Seconds until it is as quick as the others. By default 0.

    Examples
    --------
    AWS's Qwen3-8B on ml.g6.2xlarge: 333 s of pull beside 168 s of download, 525 s in all; with the
    image cached 77 s of download, 258 s in all. The rest is the same within a few seconds.

    >>> pulled = InstanceStart(image_pull=333, model_download=168, container_start=187)
    >>> cached = InstanceStart(model_download=77, container_start=187)
    >>> pulled.seconds, cached.seconds
    (520.0, 264.0)
    """

    provision: float = 0.0
    image_pull: float = 0.0
    model_download: float = 0.0
    container_start: float = 0.0
    warm_up: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            SECONDS.check(getattr(self, field.name), f"start.{field.name}")

    @property
    def seconds(self) -> float:
        """All of it: the longer of pull and download counts."""
        fetched = max(self.image_pull, self.model_download)
        return self.provision + fetched + self.container_start + self.warm_up


START_PHASES = {
    "provision": "provision",
    "image": "image_pull",
    "model": "model_download",
    "container": "container_start",
    "warm": "warm_up",
}
"""The phases of an instance's start as the command line names them."""


@dataclass(frozen=True, slots=True)
class CapacityLimits:
    """Minimum and maximum from a time on, as a scheduled action sets them."""

    at: float  # seconds
    minimum: int  # instances
    maximum: int  # instances

    def __post_init__(self) -> None:
        SECONDS.check(self.at, "limits.at")
        _check_limits(self.minimum, self.maximum, "limits")


def _check_limits(minimum: int, maximum: int, where: str) -> None:
    MIN_CAPACITY.check(minimum, f"{where}.minimum")
    MIN_CAPACITY.check(maximum, f"{where}.maximum")
    if minimum > maximum:
        raise MIN_ABOVE_MAX.error(
            got=f"{minimum} above {maximum}",
            allowed="a minimum of at most the maximum",
            where=where,
        )


@dataclass(frozen=True, slots=True)
class TargetTracking:
    """Application Auto Scaling with CloudWatch's delays, on invocations or :meth:`on_concurrency`."""

    target: float  # invocations per instance and minute, or requests in flight per instance
    minimum: int  # instances
    maximum: int  # instances
    scale_out_cooldown: float = DEFAULT_COOLDOWN  # seconds
    scale_in_cooldown: float = DEFAULT_COOLDOWN  # seconds
    metric_delay: float = float(METRIC_DELAY_SECONDS)  # from a period's end until it is seen
    out_datapoints: int = OUT_DATAPOINTS  # periods in a row above the target
    in_datapoints: int = IN_MINUTES  # periods in a row below 90 % of it
    # From the decision to the first request; the endpoint is updating, nothing else is scaled.
    instance_seconds: float = float(INSTANCE_SECONDS)
    scale_in_seconds: float = 120.0  # of updating: paid for, without requests; AWS states no number
    # Or concurrency, at the instance that has most in flight or in line: CloudWatch has Maximum and
    # Minimum over the instances, and AWS does not say which of them scaling takes.
    metric: str = "invocations"
    period: float = float(METRIC_PERIOD_SECONDS)  # seconds over which the metric is taken
    limits: tuple[CapacityLimits, ...] = ()  # other limits later on

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
            "in_datapoints": IN_MINUTES * METRIC_PERIOD_SECONDS // 10,
        }
        return cls(target, minimum, maximum, **(parts | changes))

    def __post_init__(self) -> None:
        SCALING_METRIC.check(self.metric, "scaling.metric")
        SCALING_TARGET.check(self.target, "scaling.target")
        SCALING_PERIOD.check(self.period, "scaling.period")
        _check_limits(self.minimum, self.maximum, "scaling")
        for name in (
            *("scale_out_cooldown", "scale_in_cooldown"),
            *("metric_delay", "instance_seconds", "scale_in_seconds"),
        ):
            SECONDS.check(getattr(self, name), f"scaling.{name}")
        COUNT.check(self.out_datapoints, "scaling.out_datapoints")
        COUNT.check(self.in_datapoints, "scaling.in_datapoints")

    @property
    def in_below(self) -> float:
        """The value of the metric below which it scales in."""
        return IN_SHARE * self.target

    @property
    def most(self) -> int:
        """The largest maximum of all times."""
        return max([self.maximum, *(limits.maximum for limits in self.limits)])


@dataclass(frozen=True, slots=True)
class Rollout:
    """A new version of the endpoint while requests run. Scaling stands still meanwhile."""

    at: float  # seconds
    kind: str = "all_at_once"  # or canary, linear (a second fleet, in steps), rolling (batches)
    step_share: float = 0.5  # of the fleet, in each step; the largest that AWS takes
    wait_seconds: float = 300.0  # between two steps
    bake_seconds: float = 0.0  # after all traffic has moved, before the old fleet goes
    instance_seconds: float = float(INSTANCE_SECONDS)  # from launch to the first request

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
                what="the deployment's kind or its share per step is not valid",
                allowed=", ".join(kinds),
                fix="Choose an allowed kind and a share above 0.",
            )


@dataclass(frozen=True, slots=True)
class ZoneOutage:
    """All instances of a zone die, with the requests they hold."""

    at: float  # seconds
    zone: int = 0  # from 0
    detection_seconds: float = 10.0  # the router sends on, and calls hang; AWS states no number
    replacement_seconds: float = 300.0  # from detection until as many serve in other zones

    def __post_init__(self) -> None:
        SECONDS.check(self.at, "outage.at")
        SECONDS.check(self.detection_seconds, "outage.detection_seconds")
        SECONDS.check(self.replacement_seconds, "outage.replacement_seconds")
