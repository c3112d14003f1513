"""Settings of SageMaker Inference Recommender: what ``low-latency recommend`` asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any

from pydantic import Field

from ..errors.findings import Finding, finding
from ..options.rules import EXCLUDES_ANOTHER, NEEDS_ANOTHER
from ..plan import limits
from ..plan.recommendation_limits import (
    MAX_TYPES,
    PHASE_SPAWN_RATE,
    PHASE_USERS,
    STAIR_STEPS,
    STAIR_USERS,
    TRAFFIC_SECONDS,
    TYPES_TO_TRY,
)
from .fields import Limited
from .model_base import SettingsModel, items_of, optional

Length = Annotated[timedelta, Limited(TRAFFIC_SECONDS)]


class PhaseSettings(SettingsModel):
    """One phase of the traffic: users that call, wait for the answer and call again."""

    users: Annotated[int, Limited(PHASE_USERS)] = Field(
        examples=[1], description="Users that it starts with."
    )
    spawn_rate: Annotated[int, Limited(PHASE_SPAWN_RATE)] = Field(
        examples=[3], description="Users added each minute."
    )
    duration: Length = Field(examples=["10m"], description="How long, 2m to 1h.")


class StairsSettings(SettingsModel):
    """Traffic that grows in steps."""

    steps: Annotated[int, Limited(STAIR_STEPS)] = Field(
        examples=[5], description="Number of steps."
    )
    users_per_step: Annotated[int, Limited(STAIR_USERS)] = Field(
        examples=[3], description="Users added at each step."
    )
    duration: Length = Field(examples=["10m"], description="All steps together, 2m to 1h.")


class RecommendationSettings(SettingsModel):
    """What ``low-latency recommend`` tries where its options say nothing else."""

    instance_types: tuple[Annotated[str, Limited(limits.INSTANCE_TYPE)], ...] | None = optional(
        "Instance types to try, up to ten (--instance-type). Default: AWS chooses them.",
        example=["ml.c6i.4xlarge", "ml.g5.xlarge"],
        strict=False,
    )
    phases: tuple[PhaseSettings, ...] | None = optional(
        "Traffic in phases, one after the other (--phase). Default: one user, three "
        "more each minute for 10m.",
        example=[{"users": 1, "spawn_rate": 3, "duration": "10m"}],
        strict=False,
    )
    stairs: StairsSettings | None = optional(
        "Traffic in steps (--stairs), instead of phases. Default: phases.",
        example={"steps": 5, "users_per_step": 3, "duration": "10m"},
    )

    @classmethod
    def cross_checks(cls, given: Mapping[str, Any]) -> Iterator[Finding]:
        """Traffic is of one kind, and of a test of types that are named, once each."""
        types = items_of(given, "instance_types")
        traffic = [name for name in ("phases", "stairs") if name in given]
        if len(traffic) > 1:
            yield finding(
                EXCLUDES_ANOTHER, "stairs", got="stairs beside phases", allowed="one of the two"
            )
        if traffic and "instance_types" not in given:
            yield finding(
                NEEDS_ANOTHER,
                traffic[0],
                got=f"{traffic[0]} without instance_types",
                allowed="instance_types beside it: where AWS chooses the types, the "
                "traffic is AWS's too",
            )
        if "instance_types" in given and not 1 <= len(types) <= MAX_TYPES:
            yield finding(
                TYPES_TO_TRY,
                "instance_types",
                got=f"{len(types)} types",
                allowed=f"1 to {MAX_TYPES}",
            )
        for name, count in Counter(each for each in types if isinstance(each, str)).items():
            if count > 1:
                yield finding(
                    TYPES_TO_TRY, "instance_types", got=f"{name} twice", allowed="each type once"
                )
        if "phases" in given and not items_of(given, "phases"):
            yield finding(NEEDS_ANOTHER, "phases", got="no phase", allowed="one phase at least")
