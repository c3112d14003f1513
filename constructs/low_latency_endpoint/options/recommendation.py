"""What SageMaker Inference Recommender tries, and under which traffic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated

from ..errors.findings import Finding, finding
from ..errors.frozen import dataclass
from ..facts import limits
from ..facts.limits import (
    MAX_TYPES,
    PHASE_SPAWN_RATE,
    PHASE_USERS,
    STAIR_STEPS,
    STAIR_USERS,
    TRAFFIC_SECONDS,
    TYPES_TO_TRY,
)
from .option import Lasting, Option, Options
from .rules import EXCLUDES_ANOTHER, NEEDS_ANOTHER


@dataclass(frozen=True, kw_only=True)
class TrafficPhase(Options):
    """One phase of the traffic: users call, wait for the answer and call again.

    Args:
        users: Users at the start.
        spawn_rate: Users added each minute.
        duration: How long, 2m to 1h.
    """

    users: Annotated[int, Option(PHASE_USERS, 1)]
    spawn_rate: Annotated[int, Option(PHASE_SPAWN_RATE, 3)]
    duration: Annotated[Lasting, Option(TRAFFIC_SECONDS, "10m")]


@dataclass(frozen=True, kw_only=True)
class TrafficStairs(Options):
    """Traffic that grows in steps.

    Args:
        steps: Number of steps.
        users_per_step: Users added at each step.
        duration: Duration of all steps together, 2m to 1h.
    """

    steps: Annotated[int, Option(STAIR_STEPS, 5)]
    users_per_step: Annotated[int, Option(STAIR_USERS, 3)]
    duration: Annotated[Lasting, Option(TRAFFIC_SECONDS, "10m")]


@dataclass(frozen=True, kw_only=True)
class RecommendationOptions(Options):
    """Tests for ``low-latency recommend``; options of the command override them.

    Args:
        instance_types: Instance types to try, up to ten (--instance-type). Default: AWS chooses them.
        phases: Traffic in consecutive phases (--phase). Default: one user, three more each minute for 10m.
        stairs: Traffic in steps (--stairs), instead of phases. Default: phases.
    """

    instance_types: Annotated[
        Sequence[str] | None, Option(limits.INSTANCE_TYPE, ["ml.c6i.4xlarge", "ml.g5.xlarge"])
    ] = None
    phases: Annotated[
        Sequence[TrafficPhase] | None,
        Option(example=[{"users": 1, "spawn_rate": 3, "duration": "10m"}]),
    ] = None
    stairs: Annotated[
        TrafficStairs | None, Option(example={"steps": 5, "users_per_step": 3, "duration": "10m"})
    ] = None

    def _rules_of_traffic(self) -> Iterator[Finding]:
        """Traffic is of one kind, and of a test of types that are named."""
        stated = [name for name in ("phases", "stairs") if self._states(name)]
        if len(stated) > 1:
            yield finding(
                EXCLUDES_ANOTHER, "stairs", got="stairs beside phases", allowed="one of the two"
            )
        if stated and not self._states("instance_types"):
            yield finding(
                NEEDS_ANOTHER,
                stated[0],
                got=f"{stated[0]} without instance_types",
                allowed="instance_types beside it: where AWS chooses the types, the "
                "traffic is AWS's too",
            )

    def _rules_of_types(self) -> Iterator[Finding]:
        """One to ten types, each once."""
        types = self.instance_types
        if types is not None and not 1 <= len(types) <= MAX_TYPES:
            yield finding(
                TYPES_TO_TRY,
                "instance_types",
                got=f"{len(types)} types",
                allowed=f"1 to {MAX_TYPES}",
            )
        for name, count in Counter(types or ()).items():
            if count > 1:
                yield finding(
                    TYPES_TO_TRY, "instance_types", got=f"{name} twice", allowed="each type once"
                )

    def _rules_of_phases(self) -> Iterator[Finding]:
        if self.phases == ():
            yield finding(NEEDS_ANOTHER, "phases", got="no phase", allowed="one phase at least")
