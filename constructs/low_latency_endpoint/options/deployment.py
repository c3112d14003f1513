"""How a new version of an endpoint takes over from the old one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from ..errors.findings import Finding, finding
from ..errors.frozen import dataclass
from ..facts import limits
from ..facts.deployments import instances_in_update, takes_guardrails
from ..facts.rules import EXECUTION_TIME_TOO_SHORT
from ..facts.token_values import is_token
from ..report.numbers import readable
from .argument_kinds import checked_arguments
from .option import Option, Options, Unsound

if TYPE_CHECKING:
    from aws_cdk import Duration

_FIVE_MINUTES = timedelta(minutes=5)
_WAIT = Option(limits.TRAFFIC_WAIT_SECONDS, "5m")


@dataclass(frozen=True, kw_only=True)
class Canary(Options):
    """First a part of the new fleet, then all of it."""

    size_percent: Annotated[int, Option(limits.CANARY_PERCENT, 10)] = 10
    """Part that takes traffic first, at least one instance. Default: 10."""
    wait: Annotated[Duration | timedelta | str, _WAIT] = _FIVE_MINUTES
    """How long the alarms watch that part. Default: 5m."""


@dataclass(frozen=True, kw_only=True)
class Linear(Options):
    """The new fleet in equal steps."""

    step_percent: Annotated[int, Option(limits.LINEAR_STEP_PERCENT, 25)] = 25
    """Part that takes traffic with each step. Default: 25."""
    wait: Annotated[Duration | timedelta | str, _WAIT] = _FIVE_MINUTES
    """How long the alarms watch each step. Default: 5m."""


@dataclass(frozen=True, kw_only=True)
class AllAtOnce(Options):
    """The whole new fleet at once: ``all_at_once: {}``."""

    wait: Annotated[Duration | timedelta | str, _WAIT] = timedelta()
    """How long the alarms watch it before the old fleet ends. Default: 0s."""


@dataclass(frozen=True, kw_only=True)
class Rolling(Options):
    """Instances in batches, without a second fleet."""

    batch_percent: Annotated[int, Option(limits.ROLLING_BATCH_PERCENT, 25)] = 25
    """Share of the instances in each batch, also in a rollback. Default: 25."""
    wait: Annotated[Duration | timedelta | str, _WAIT] = _FIVE_MINUTES
    """How long the alarms watch each batch. Default: 5m."""


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class Deployment(Options):
    """The options of :class:`DeploymentPolicy`, whose methods have the names of some."""

    exactly_one_of: ClassVar[tuple[str, ...]] = ("canary", "linear", "all_at_once", "rolling")

    canary: Annotated[Canary | None, Option(example={"size_percent": 10, "wait": "5m"})] = None
    """Blue/green: first part of the new fleet takes traffic, then all of it."""
    linear: Annotated[Linear | None, Option(example={"step_percent": 25, "wait": "5m"})] = None
    """Blue/green: the new fleet takes traffic in equal steps."""
    all_at_once: Annotated[AllAtOnce | None, Option(example={})] = None
    """Blue/green: the whole new fleet at once."""
    rolling: Annotated[Rolling | None, Option(example={"batch_percent": 25, "wait": "5m"})] = None
    """Batches of instances, without a second fleet; for scarce capacity."""
    termination_wait: Annotated[
        Duration | timedelta | str | None, Option(limits.TERMINATION_WAIT_SECONDS, "2m")
    ] = None
    """How long the old fleet stays after the new one has all traffic; blue/green only."""
    maximum_execution: Annotated[
        Duration | timedelta | str | None, Option(limits.MAXIMUM_EXECUTION_SECONDS, "1h")
    ] = None
    """Time limit of a deployment, 10m to 8h; longer than all waits together."""
    rollback_on_alarms: Annotated[bool | None, Option()] = None
    """Roll back if the new fleet misses the latency target or fails. Default: true, except on Inf1.
    """

    @property
    def _way(self) -> tuple[str, Any]:
        """The one that is stated, by its name; nothing follows from several, or from none."""
        if len(self.ways) != 1:
            raise Unsound
        [name] = self.ways
        return name, getattr(self, name)

    @property
    def kind(self) -> Literal["CANARY", "LINEAR", "ALL_AT_ONCE", "ROLLING"]:
        """The way as SageMaker calls it."""
        return self._way[0].upper()  # type: ignore[return-value]

    @property
    def percent(self) -> int:
        """The size of the first part, or of each step or batch."""
        shares = ("size_percent", "step_percent", "batch_percent")
        return next((v for name in shares if (v := getattr(self._way[1], name, None))), 100)

    @property
    def rolling_percent(self) -> int | None:
        """The size of a rolling update's batches, as far as it is known."""
        return self.percent if self.kind == "ROLLING" and not is_token(self.percent) else None

    @property
    def wait(self) -> Duration | timedelta | str:
        """How long the alarms watch each part."""
        wait: Duration | timedelta | str = self._way[1].wait
        return wait

    @property
    def waits(self) -> timedelta | None:
        """The time that all waits take together; None where a token hides it."""
        wait, termination = self.wait, self.termination_wait or timedelta()
        if not (isinstance(wait, timedelta) and isinstance(termination, timedelta)):
            return None
        if self.kind not in ("LINEAR", "ROLLING"):
            return wait + termination
        return (
            None if is_token(self.percent) else wait * math.ceil(100 / self.percent) + termination
        )

    def instances_in_update(self, instances: int) -> int:
        """The most instances of a fleet in an update: one batch more, or a second fleet."""
        if not is_token(instances):
            limits.MAX_INSTANCES.check(instances)
        return instances_in_update(instances, self.rolling_percent)

    def _rules_of_rolling(self) -> Iterator[Finding]:
        yield from self._excludes(
            "rolling", ("termination_wait",), "a rolling update keeps no old fleet that could wait"
        )

    def _rules_of_waits(self) -> Iterator[Finding]:
        """The waits end in time."""
        waits = self.waits if len(self.ways) == 1 else None
        if waits is None:
            return
        most = timedelta(seconds=limits.MAXIMUM_EXECUTION_SECONDS.maximum or 0)
        if waits >= most:  # whatever maximum_execution is, or is by default
            yield finding(
                EXECUTION_TIME_TOO_SHORT,
                got=f"waits of {readable(waits.total_seconds())} seconds together",
                allowed=f"less than {readable(most.total_seconds())} seconds",
                fix="Shorten the waits, or take larger steps.",
            )
        elif isinstance(self.maximum_execution, timedelta) and waits >= self.maximum_execution:
            yield finding(
                EXECUTION_TIME_TOO_SHORT,
                "maximum_execution",
                got=f"{readable(self.maximum_execution.total_seconds())} seconds",
                allowed=f"more than the waits' {readable(waits.total_seconds())} seconds",
            )


@checked_arguments
class DeploymentPolicy(Deployment):
    """How a new version takes over: exactly one of canary, linear, all_at_once, rolling.

    Call the method of that name.

    Raises:
        ConfigurationError: LLE502 to LLE507 for values out of range, LLE521 when the waits exceed
            the longest time.

    Examples:
        >>> from low_latency_endpoint import DeploymentPolicy
        >>> DeploymentPolicy.canary(size_percent=10, wait="5m").kind
        'CANARY'
    """

    @classmethod
    def canary(  # type: ignore[override]
        cls,
        *,
        size_percent: int = 10,
        wait: Duration | timedelta | str = _FIVE_MINUTES,
        termination_wait: Duration | timedelta | str | None = None,
        maximum_execution: Duration | timedelta | str | None = None,
        rollback_on_alarms: bool | None = None,
    ) -> DeploymentPolicy:
        """A small share of the new fleet first, the rest after ``wait`` without an alarm.

        Args:
            size_percent: Part that takes traffic first, at least one instance. Default: 10.
            wait: How long the alarms watch that part. Default: 5m.
            termination_wait: How long the old fleet stays after the new one has all traffic; blue/green only.
            maximum_execution: Time limit of a deployment, 10m to 8h; longer than all waits together.
            rollback_on_alarms: Roll back if the new fleet misses the latency target or fails. Default: true, except on Inf1.
        """
        return cls(
            canary=Canary(size_percent=size_percent, wait=wait),
            termination_wait=termination_wait,
            maximum_execution=maximum_execution,
            rollback_on_alarms=rollback_on_alarms,
        )

    @classmethod
    def linear(  # type: ignore[override]
        cls,
        *,
        step_percent: int = 25,
        wait: Duration | timedelta | str = _FIVE_MINUTES,
        termination_wait: Duration | timedelta | str | None = None,
        maximum_execution: Duration | timedelta | str | None = None,
        rollback_on_alarms: bool | None = None,
    ) -> DeploymentPolicy:
        """Equal steps of the new fleet, with ``wait`` between them.

        Args:
            step_percent: Part that takes traffic with each step. Default: 25.
            wait: How long the alarms watch each step. Default: 5m.
            termination_wait: How long the old fleet stays after the new one has all traffic; blue/green only.
            maximum_execution: Time limit of a deployment, 10m to 8h; longer than all waits together.
            rollback_on_alarms: Roll back if the new fleet misses the latency target or fails. Default: true, except on Inf1.
        """
        return cls(
            linear=Linear(step_percent=step_percent, wait=wait),
            termination_wait=termination_wait,
            maximum_execution=maximum_execution,
            rollback_on_alarms=rollback_on_alarms,
        )

    @classmethod
    def all_at_once(  # type: ignore[override]
        cls,
        *,
        wait: Duration | timedelta | str = timedelta(),
        termination_wait: Duration | timedelta | str | None = None,
        maximum_execution: Duration | timedelta | str | None = None,
        rollback_on_alarms: bool | None = None,
    ) -> DeploymentPolicy:
        """All traffic in one step; ``wait`` is how long alarms are watched.

        Args:
            wait: How long the alarms watch it before the old fleet ends. Default: 0s.
            termination_wait: How long the old fleet stays after the new one has all traffic; blue/green only.
            maximum_execution: Time limit of a deployment, 10m to 8h; longer than all waits together.
            rollback_on_alarms: Roll back if the new fleet misses the latency target or fails. Default: true, except on Inf1.
        """
        return cls(
            all_at_once=AllAtOnce(wait=wait),
            termination_wait=termination_wait,
            maximum_execution=maximum_execution,
            rollback_on_alarms=rollback_on_alarms,
        )

    @classmethod
    def rolling(  # type: ignore[override]
        cls,
        *,
        batch_percent: int = 25,
        wait: Duration | timedelta | str = _FIVE_MINUTES,
        maximum_execution: Duration | timedelta | str | None = None,
        rollback_on_alarms: bool | None = None,
    ) -> DeploymentPolicy:
        """Batches, old instances ending as new ones serve: for endpoints with one variant.

        It needs room for one batch only, where blue/green needs a second fleet. A rollback goes
        back in batches of the same size. SageMaker's own default would bring up the whole old
        fleet at once, for which there may be no instances and no addresses; an endpoint whose
        rollback fails stays a mixture of both.

        Args:
            batch_percent: Share of the instances in each batch, also in a rollback. Default: 25.
            wait: How long the alarms watch each batch. Default: 5m.
            maximum_execution: Time limit of a deployment, 10m to 8h; longer than all waits together.
            rollback_on_alarms: Roll back if the new fleet misses the latency target or fails. Default: true, except on Inf1.
        """
        return cls(
            rolling=Rolling(batch_percent=batch_percent, wait=wait),
            maximum_execution=maximum_execution,
            rollback_on_alarms=rollback_on_alarms,
        )


def default_deployment(instance_types: Iterable[str]) -> DeploymentPolicy:
    """A canary, but all at once on Inf1, which AWS excludes from guarded deployments."""
    guarded = all(map(takes_guardrails, instance_types))
    return DeploymentPolicy.canary() if guarded else DeploymentPolicy.all_at_once()
