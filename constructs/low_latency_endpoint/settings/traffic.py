"""Settings of the target and the load: latency, throughput, routing, instances, scaling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from ..errors.findings import Finding, finding
from ..options.rules import EXCLUDES_ANOTHER, NEEDS_ANOTHER, TARGET_ABOVE_ZERO
from ..plan import limits
from ..plan.rules import (
    COUNTS_OF_A_SCALED_FLEET,
    INITIAL_OUTSIDE_RANGE,
    MIN_ABOVE_MAX,
    SCALING_IS_OFF,
)
from .fields import Limited
from .model_base import SettingsModel, optional
from .scaling_changes import ScheduleSettings, StepsSettings


class InstanceCountSettings(SettingsModel):
    """How many instances there are; what is left out follows from the throughput."""

    min: Annotated[int, Limited(limits.MIN_CAPACITY)] | None = optional(
        "Fewest instances; 1 is possible, and no reserve. Default: one per client zone, at "
        "least two.",
        example=2,
    )
    initial: Annotated[int, Limited(limits.INITIAL_INSTANCE_COUNT)] | None = optional(
        "Instances that the first deployment starts. Default: the plan's.", example=4
    )
    max: Annotated[int, Limited(limits.MAX_INSTANCES)] | None = optional(
        "Most instances. Default: those that hold the peak, with the safety factor.", example=12
    )

    @classmethod
    def cross_checks(cls, given: Mapping[str, Any]) -> Iterator[Finding]:
        """min <= initial <= max."""
        low, start, high = (_count(given, name) for name in ("min", "initial", "max"))
        if low is not None and high is not None and low > high:
            yield finding(
                MIN_ABOVE_MAX,
                "min",
                got=f"min {low}, max {high}",
                allowed=f"at most {high}",
                fix="Lower min or raise max.",
            )
        elif start is not None and ((low or start) > start or (high or start) < start):
            allowed = [f"at least {low}"] * (low is not None) + [f"at most {high}"] * (
                high is not None
            )
            yield finding(
                INITIAL_OUTSIDE_RANGE,
                "initial",
                got=start,
                allowed=" and ".join(allowed),
                fix="Choose an initial number from min to max.",
            )


ScalingTarget = Annotated[
    float, Limited(limits.Range(TARGET_ABOVE_ZERO, "a scaling target", 1e-6, None, "", False))
]


class ScalingSettings(SettingsModel):
    """How the number of instances follows the load."""

    enabled: bool = optional(
        "Scale with the load; false keeps the initial number and takes no targets or cooldowns. "
        "Default: true.",
        default=True,
    )
    keep_counts: bool | None = optional(
        "Whether an update keeps the number of running instances. false, with enabled: false, is "
        "for fleets of a fixed size. Default: true, but not before throughput is measured.",
        example=True,
    )
    metric: Literal["invocations", "concurrency"] | None = optional(
        "What scaling tracks: invocations per instance and minute, or requests in flight every "
        "ten seconds. Default: invocations; of a language model requests in flight, once "
        "concurrency_per_instance is known.",
        example="invocations",
    )
    invocations_target: ScalingTarget | None = optional(
        "Invocations per instance and minute that scaling aims at; with metric: invocations. "
        "Default: TPS per instance x safety factor x 60.",
        example=500,
    )
    concurrency_target: ScalingTarget | None = optional(
        "Requests in flight per instance that scaling aims at; with metric: "
        "concurrency, and only then.",
        example=4,
    )
    scale_in_cooldown: Annotated[timedelta, Limited(limits.COOLDOWN_SECONDS)] | None = optional(
        "Rest after removing instances. Default: 5m.", example="5m"
    )
    scale_out_cooldown: Annotated[timedelta, Limited(limits.COOLDOWN_SECONDS)] | None = optional(
        "Rest after adding instances. Default: 60s.", example="60s"
    )
    instance_start: Annotated[timedelta, Limited(limits.INSTANCE_START_SECONDS)] | None = optional(
        "How long a new instance takes until it serves; when traffic rises, the minimum bridges "
        "this time. Default: 5m, assumed, and more for weights of the Hub above 37 GB.",
        example="12m",
    )
    schedule: tuple[ScheduleSettings, ...] = optional(
        "Other ranges of instances at set times. Default: none.",
        example=[{"name": "morning", "cron": "45 7 ? * MON-FRI *", "min": 8}],
        default=(),
        strict=False,
    )
    steps: StepsSettings | None = optional(
        "Instances to add at once on a jump, before target tracking acts. Default: none.",
        example={"metric": "concurrency", "adds": [{"requests": 8, "add": 2}]},
    )

    @classmethod
    def cross_checks(cls, given: Mapping[str, Any]) -> Iterator[Finding]:
        """The concurrency target belongs to the concurrency metric, and both to scaling."""
        by_concurrency = given.get("metric") == "concurrency"
        if by_concurrency and "concurrency_target" not in given:
            yield finding(
                NEEDS_ANOTHER,
                "metric",
                got="concurrency without concurrency_target",
                allowed="concurrency_target beside it",
                what="scaling on concurrency needs a target",
                fix="Add the requests in flight that one instance holds: concurrency_target: 4.",
            )
        if "concurrency_target" in given and not by_concurrency:
            yield finding(
                EXCLUDES_ANOTHER,
                "concurrency_target",
                got=f"metric: {given.get('metric', 'invocations')}",
                allowed="metric: concurrency",
                what="concurrency_target is for metric: concurrency",
                fix="Set metric: concurrency, or remove concurrency_target.",
            )
        if "invocations_target" in given and by_concurrency:
            yield finding(
                EXCLUDES_ANOTHER,
                "invocations_target",
                got="metric: concurrency",
                allowed="metric: invocations",
                what="invocations_target is for metric: invocations",
                fix="Set metric: invocations, or remove invocations_target.",
            )
        if given.get("keep_counts") is False and given.get("enabled", True) is True:
            yield finding(
                COUNTS_OF_A_SCALED_FLEET,
                "keep_counts",
                got="keep_counts: false without enabled: false",
                allowed="keep_counts: true, or enabled: false beside it",
            )
        if given.get("enabled") is False:
            for name in (
                "invocations_target",
                "concurrency_target",
                "scale_in_cooldown",
                "scale_out_cooldown",
                "instance_start",
                "schedule",
                "steps",
            ):
                if name in given:
                    yield finding(
                        SCALING_IS_OFF,
                        name,
                        got=f"enabled: false with {name}",
                        allowed=f"enabled: false without {name}",
                        fix=f"Remove {name}, or enabled: false.",
                    )


def _count(given: Mapping[str, Any], name: str) -> int | None:
    value = given.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
