"""Settings of how a new version takes over."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any, ClassVar

from ..errors.findings import Finding, finding
from ..plan import limits
from ..plan.rules import EXECUTION_TIME_TOO_SHORT
from ..report.numbers import readable
from .fields import Limited, duration_of
from .model_base import SettingsModel, excludes, mapping_of, optional

Wait = Annotated[timedelta, Limited(limits.TRAFFIC_WAIT_SECONDS)]


class CanarySettings(SettingsModel):
    """First a part of the new fleet, then all of it."""

    size_percent: Annotated[int, Limited(limits.CANARY_PERCENT)] = optional(
        "Part that takes traffic first. Default: 10.", example=10, default=10
    )
    wait: Wait = optional(
        "How long the alarms watch that part. Default: 5m.",
        example="5m",
        default=timedelta(minutes=5),
    )


class LinearSettings(SettingsModel):
    """The new fleet in equal steps."""

    step_percent: Annotated[int, Limited(limits.LINEAR_STEP_PERCENT)] = optional(
        "Part that takes traffic with each step. Default: 25.", example=25, default=25
    )
    wait: Wait = optional(
        "How long the alarms watch each step. Default: 5m.",
        example="5m",
        default=timedelta(minutes=5),
    )


class AllAtOnceSettings(SettingsModel):
    """The whole new fleet at once: ``all_at_once: {}``."""

    wait: Wait = optional(
        "How long the alarms watch it before the old fleet ends. Default: 0s.",
        example="5m",
        default=timedelta(),
    )


class RollingSettings(SettingsModel):
    """Instances in batches, without a second fleet."""

    batch_percent: Annotated[int, Limited(limits.ROLLING_BATCH_PERCENT)] = optional(
        "Part of the instances in each batch, in a rollback too. Default: 25.",
        example=25,
        default=25,
    )
    wait: Wait = optional(
        "How long the alarms watch each batch. Default: 5m.",
        example="5m",
        default=timedelta(minutes=5),
    )


class DeploymentSettings(SettingsModel):
    """How a new version takes over: exactly one of canary, linear, all_at_once, rolling."""

    exactly_one_of: ClassVar[tuple[str, ...]] = ("canary", "linear", "all_at_once", "rolling")

    canary: CanarySettings | None = optional(
        "Blue/green: first a part of the new fleet, then all of it.",
        example={"size_percent": 10, "wait": "5m"},
    )
    linear: LinearSettings | None = optional(
        "Blue/green: the new fleet in equal steps.", example={"step_percent": 25, "wait": "5m"}
    )
    all_at_once: AllAtOnceSettings | None = optional(
        "Blue/green: the whole new fleet at once.", example={}
    )
    rolling: RollingSettings | None = optional(
        "Batches of instances, without a second fleet; for scarce capacity.",
        example={"batch_percent": 25, "wait": "5m"},
    )
    termination_wait: Annotated[timedelta, Limited(limits.TERMINATION_WAIT_SECONDS)] | None = (
        optional(
            "How long the old fleet stays after the new one has all traffic; blue/green only.",
            example="2m",
        )
    )
    maximum_execution: Annotated[timedelta, Limited(limits.MAXIMUM_EXECUTION_SECONDS)] | None = (
        optional(
            "Longest time of a deployment, 10m to 8h; longer than all waits together.", example="1h"
        )
    )
    rollback_on_alarms: bool | None = optional(
        "Go back to the old version when the new fleet misses the latency target or fails. "
        "Default: true, except on Inf1."
    )

    @property
    def waits(self) -> timedelta:
        """The time that the waits take together."""
        return _waits({name: getattr(self, name) for name in self.model_fields_set})

    @classmethod
    def cross_checks(cls, given: Mapping[str, Any]) -> Iterator[Finding]:
        """A rolling update keeps no old fleet, and the waits end in time."""
        yield from excludes(
            given,
            "rolling",
            ("termination_wait",),
            "a rolling update keeps no old fleet that could wait",
        )
        longest = duration_of(given.get("maximum_execution"))
        waits = _waits(given)
        most = timedelta(seconds=limits.MAXIMUM_EXECUTION_SECONDS.maximum or 0)
        if waits >= most:  # whatever maximum_execution is, or is by default
            yield finding(
                EXECUTION_TIME_TOO_SHORT,
                got=f"waits of {readable(waits.total_seconds())} seconds together",
                allowed=f"less than {readable(most.total_seconds())} seconds",
                fix="Shorten the waits, or take larger steps.",
            )
        elif longest is not None and waits >= longest:
            yield finding(
                EXECUTION_TIME_TOO_SHORT,
                "maximum_execution",
                got=given["maximum_execution"],
                allowed=f"more than the waits' {readable(waits.total_seconds())} seconds",
            )


def _waits(given: Mapping[str, Any]) -> timedelta:
    """The time that the waits of a deployment take together."""
    total = duration_of(given.get("termination_wait")) or timedelta()
    kinds: tuple[tuple[str, type[SettingsModel], str], ...] = (
        ("canary", CanarySettings, ""),
        ("linear", LinearSettings, "step_percent"),
        ("rolling", RollingSettings, "batch_percent"),
        ("all_at_once", AllAtOnceSettings, ""),
    )
    for kind, model, share in kinds:
        if kind in given:
            group = mapping_of(given, kind)
            wait = duration_of(group.get("wait", model.model_fields["wait"].default))
            percent = group.get(share, model.model_fields[share].default) if share else 100
            whole = isinstance(percent, int) and 0 < percent <= 100
            total += (wait or timedelta()) * (math.ceil(100 / percent) if whole else 1)
    return total
