"""Settings of what changes the number of instances beside target tracking: set times and steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from ..errors.findings import Finding, breaches, finding
from ..plan import limits
from ..plan.rules import CAPACITY_CHANGE, MIN_ABOVE_MAX
from ..plan.scaling_changes import (
    SCHEDULE_EXPRESSION,
    SCHEDULE_NAME,
    STEP_ADDS,
    STEP_PERIODS,
    STEP_THRESHOLD,
    ScalingSchedule,
    ScalingSteps,
    check_adds,
    check_time_zone,
)
from .fields import Limited, as_written
from .model_base import SettingsModel, items_of, optional


class ScheduleSettings(SettingsModel):
    """Another range of instances from a set time on, until another one changes it."""

    exactly_one_of: ClassVar[tuple[str, ...]] = ("cron", "at", "rate")

    name: Annotated[str, Limited(SCHEDULE_NAME)] = Field(
        examples=["morning"], description="Name of its own among the endpoint's."
    )
    cron: str | None = optional(
        "Minutes, hours, day of month, month, day of week, year.", example="45 7 ? * MON-FRI *"
    )
    at: str | None = optional("Once, at this time.", example="2026-11-27T08:00:00")
    rate: str | None = optional("Again and again, so often.", example="1 day")
    time_zone: str | None = optional(
        "With cron and at: the zone of the IANA database. Default: UTC.", example="Europe/Berlin"
    )
    min: Annotated[int, Limited(limits.MIN_CAPACITY)] | None = optional(
        "Fewest instances from then on. Default: as before.", example=8
    )
    max: Annotated[int, Limited(limits.MAX_INSTANCES)] | None = optional(
        "Most instances from then on. Default: as before.", example=20
    )

    @classmethod
    def cross_checks(cls, given: Mapping[str, Any]) -> Iterator[Finding]:
        """When and how many, as Application Auto Scaling takes it."""
        stated = [name for name in cls.exactly_one_of if given.get(name) is not None]
        for name in stated:
            yield from breaches((name,), SCHEDULE_EXPRESSION.check, _expression(name, given[name]))
        zone = given.get("time_zone")
        if len(stated) == 1 and isinstance(zone, str):
            yield from breaches(("time_zone",), check_time_zone, zone, f"{stated[0]}()")
        low, high = given.get("min"), given.get("max")
        if low is None and high is None:
            yield finding(
                CAPACITY_CHANGE, got="neither", allowed="min, max or both", fix="Add one."
            )
        elif isinstance(low, int) and isinstance(high, int) and low > high:
            yield finding(
                MIN_ABOVE_MAX,
                "min",
                got=f"min {low}, max {high}",
                allowed=f"at most {high}",
                fix="Lower min or raise max.",
            )

    @property
    def planned(self) -> ScalingSchedule:
        """The schedule as the plan takes it."""
        expressions = ((name, getattr(self, name)) for name in self.exactly_one_of)
        return ScalingSchedule(
            name=self.name,
            expression=next(_expression(name, text) for name, text in expressions if text),
            time_zone=self.time_zone,
            min_instances=self.min,
            max_instances=self.max,
        )


class StepSettings(SettingsModel):
    """One step."""

    requests: Annotated[float, Limited(STEP_THRESHOLD)] = Field(
        examples=[8],
        description="Requests in flight, or per minute, of one instance from which on it acts.",
    )
    add: Annotated[int, Limited(STEP_ADDS)] = Field(
        examples=[2], description="Instances to add; more than the step below it."
    )


class StepsSettings(SettingsModel):
    """Instances to add at once when a metric jumps, beside target tracking."""

    metric: Literal["concurrency", "invocations"] = optional(
        "Requests in flight on the busiest instance, every ten seconds, or invocations per "
        "instance and minute. Default: concurrency.",
        default="concurrency",
    )
    adds: tuple[StepSettings, ...] = Field(
        strict=False,
        examples=[[{"requests": 8, "add": 2}, {"requests": 16, "add": 4}]],
        description="The steps.",
    )
    periods: Annotated[int, Limited(STEP_PERIODS)] = optional(
        "Periods of the metric in a row until it acts. Default: 1.", example=1, default=1
    )
    cooldown: Annotated[timedelta, Limited(limits.COOLDOWN_SECONDS)] | None = optional(
        "In it a larger step adds the difference. Default: 5m.", example="2m"
    )

    @classmethod
    def cross_checks(cls, given: Mapping[str, Any]) -> Iterator[Finding]:
        """Steps rise."""
        if not isinstance(given.get("adds"), (list, tuple)):
            return
        stated = [each for each in items_of(given, "adds") if isinstance(each, Mapping)]
        pairs = [(each.get("requests"), each.get("add")) for each in stated]
        if all(STEP_THRESHOLD.holds(at) and STEP_ADDS.holds(add) for at, add in pairs):
            yield from breaches(("adds",), check_adds, pairs)

    @property
    def planned(self) -> ScalingSteps:
        """The steps as the plan takes them."""
        return ScalingSteps(
            metric=self.metric,
            adds={each.requests: each.add for each in self.adds},
            periods=self.periods,
            cooldown=self.cooldown,
        )


def _expression(name: str, text: Any) -> str:
    return f"{name}({as_written(text)})"
