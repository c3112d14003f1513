"""An endpoint as requests see it, and how an update replaces its fleet.

Source: SageMaker developer guide, "Deployment guardrails".
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from ..hosting import Hosting
from .blueprints import desired_counts
from .clock import Clock
from .fleet import Fleet, FleetFailed, Room, Variant
from .instances import Instance
from .meter import Dimensions, Place
from .routing import choose_weighted


@dataclass(eq=False)
class RuntimeEndpoint:
    place: Place
    name: str
    hosting: Hosting
    live: bool
    enhanced: bool = False
    detailed: bool = True
    frequency: int = 60
    fleet: Fleet | None = None
    new_fleet: Fleet | None = None
    new_share: float = 0.0
    work: asyncio.Task[None] | None = None
    components: dict[str, Fleet] = field(default_factory=dict)
    rooms: dict[str, tuple[str, Room, int]] = field(default_factory=dict)
    moves: set[asyncio.Task[None]] = field(default_factory=set)
    seen: object = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def record(self) -> dict[str, Any] | None:
        """The endpoint as DescribeEndpoint gives it; None once it is deleted."""
        return self.hosting.endpoints.get(self.name)

    def move(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin something with a component; runs in the loop."""
        task = asyncio.get_running_loop().create_task(work)
        self.moves.add(task)
        task.add_done_callback(self.moves.discard)

    def take_metrics_config(self, config: Mapping[str, Any]) -> None:
        """Read the MetricsConfig of an endpoint configuration."""
        settings = config.get("MetricsConfig") or {}
        self.enhanced = bool(settings.get("EnableEnhancedMetrics", False))
        # "The default value for new endpoint configurations is True" (API reference).
        self.detailed = bool(settings.get("EnableDetailedObservability", True))
        self.frequency = int(settings.get("MetricPublishFrequencyInSeconds", 60))

    @property
    def fleets(self) -> list[Fleet]:
        return [fleet for fleet in (self.fleet, self.new_fleet) if fleet is not None]

    @property
    def all_fleets(self) -> list[Fleet]:
        """The fleets there are, and those of inference components."""
        return [*self.fleets, *self.components.values()]

    @property
    def in_service(self) -> bool:
        """Whether InvokeEndpoint finds it: from its first service on, also while it is updated."""
        return self.fleet is not None

    def choose_fleet(self, generator: random.Random) -> Fleet:
        """Choose by the share that a deployment has shifted so far."""
        new = self.new_fleet
        if new is not None and self.new_share and generator.random() < self.new_share:
            return new
        return cast(Fleet, self.fleet)

    def choose_variant(
        self, fleet: Fleet, wanted: str | None, generator: random.Random
    ) -> Variant | None:
        """Give the variant that the caller names, else one by weight; None when there is none."""
        variants = fleet.production
        if wanted is not None:
            return next((variant for variant in variants if variant.name == wanted), None)
        if len(variants) == 1:
            return variants[0]
        return choose_weighted(variants, lambda variant: variant.weight, generator)

    def session(self, session_id: str) -> tuple[Fleet, Variant, Instance] | None:
        """Find where a session lives."""
        for fleet in self.all_fleets:
            for variant in fleet.production:
                instance = variant.sessions.get(session_id)
                if instance is not None and instance.in_service:
                    return fleet, variant, instance
        return None

    def dimensions(self, fleet: Fleet, variant: Variant) -> list[Dimensions]:
        """Give the dimensions that a request counts into, but for those of its instance.

        A fleet that a deployment brought in has its own, with EndpointConfigName, so that an alarm
        can watch it alone: from its first traffic on, for good. All requests count into those
        without. Source: SageMaker developer guide, "Auto-Rollback Configuration and Monitoring";
        see `RuntimeOptions.configuration_metrics_from_create` for the first fleet.
        """
        found = list(variant.invocation_dimensions)
        if fleet.own_metrics:
            found.append((*found[0], ("EndpointConfigName", fleet.config_name)))
        return found

    def stop(self) -> None:
        """Stop whatever is under way, and every instance."""
        if self.work is not None:
            self.work.cancel()
        for move in self.moves:
            move.cancel()
        for fleet in self.all_fleets:
            fleet.stop()
        self.fleet = self.new_fleet = None
        self.components.clear()


_STEP = 10.0  # seconds between two looks at the alarms


_EVERYTHING = {"Type": "CAPACITY_PERCENT", "Value": 100}


class RolledBack(Exception):
    """The deployment was given up and the old fleet serves again; the message says why."""


def canary_share(size: Mapping[str, Any], instances: int) -> float:
    """Give the share of capacity that a canary is.

    Examples
    --------
    >>> canary_share({"Type": "INSTANCE_COUNT", "Value": 1}, 4)
    0.25
    >>> canary_share({"Type": "CAPACITY_PERCENT", "Value": 30}, 4)
    0.3
    """
    if size["Type"] == "CAPACITY_PERCENT":
        return float(size["Value"]) / 100.0
    return min(1.0, float(size["Value"]) / max(1, instances))


def linear_shares(size: Mapping[str, Any], instances: int) -> list[float]:
    """Give the shares of traffic after each step, the last one being all of it.

    Examples
    --------
    >>> linear_shares({"Type": "CAPACITY_PERCENT", "Value": 40}, 5)
    [0.4, 0.8, 1.0]
    """
    step = canary_share(size, instances)
    count = max(1, math.ceil(1.0 / step - 1e-9))
    return [min(1.0, step * number) for number in range(1, count + 1)]


@dataclass
class Deployment:
    endpoint: RuntimeEndpoint
    new: Fleet
    counts: Mapping[str, int]
    policy: Mapping[str, Any]
    clock: Clock
    caught_up: Callable[[], Awaitable[None]]
    alarms_on: Callable[[list[str]], list[str]]
    show: Callable[[str], None]

    async def run(self) -> None:
        if self.endpoint.new_fleet is not None:  # of an UpdateRollbackFailed
            self.endpoint.new_fleet.stop()
        self.endpoint.new_fleet, self.endpoint.new_share = self.new, 0.0
        rolling = self.policy.get("RollingUpdatePolicy")
        blue_green = self.policy.get("BlueGreenUpdatePolicy") or {}
        settings = rolling or blue_green
        self._deadline = self.clock.now() + float(
            settings.get("MaximumExecutionTimeoutInSeconds", 28_800)
        )
        try:
            if rolling:
                await self._roll(rolling)
            else:
                await self._shift(blue_green)
        except (FleetFailed, _Alarmed) as error:
            await self._back(str(error), rolling)
        else:
            old, self.endpoint.fleet = self.endpoint.fleet, self.new
            self.endpoint.new_fleet, self.endpoint.new_share = None, 0.0
            if old is not None:
                old.stop()

    # ---------------------------------------------------------------------------------- blue/green

    async def _shift(self, policy: Mapping[str, Any]) -> None:
        self.show("Creating")
        await self.new.start(self.counts)
        self._check_alarms()
        routing = policy.get("TrafficRoutingConfiguration") or {"Type": "ALL_AT_ONCE"}
        wait = float(routing.get("WaitIntervalInSeconds", 0))
        total = self._production_count()
        shares = [1.0]
        if routing["Type"] == "CANARY":
            shares = [canary_share(routing["CanarySize"], total), 1.0]
        elif routing["Type"] == "LINEAR":
            shares = linear_shares(routing["LinearStepSize"], total)
        for share in shares:
            self.show("ActivatingTraffic")
            self._give(share)
            self.show("Baking")
            await self._bake(wait)
        await self._bake(float(policy.get("TerminationWaitInSeconds", 0)))
        self.show("Deleting")

    def _give(self, share: float) -> None:
        """Send a share of the requests to the same share of the new fleet."""
        for variant in self.new:
            count = self.counts[variant.name]
            variant.opened = None if share >= 1.0 else max(1, round(share * count))
        self._new_takes(share)

    def _new_takes(self, share: float) -> None:
        self.endpoint.new_share = share
        self.new.own_metrics = True

    # ------------------------------------------------------------------------------------- rolling

    async def _roll(self, policy: Mapping[str, Any]) -> None:
        old = cast(Fleet, self.endpoint.fleet)
        wait = float(policy.get("WaitIntervalInSeconds", 0))
        batch = _batch(policy["MaximumBatchSize"], self._production_count())
        self._check_alarms()
        while True:
            left = {
                variant.name: self.counts[variant.name] - len(variant.instances)
                for variant in self.new
            }
            if not any(missing > 0 for missing in left.values()):
                break
            self.show("Updating")
            for variant in self.new:
                count = min(batch, left[variant.name])
                if count > 0:
                    await self.new.scale(variant, len(variant.instances) + count)
            for variant in old:
                new_one = self.new.variants.get(variant.name)
                missing = left.get(variant.name, 0) - (batch if new_one else 0)
                await old.scale(variant, min(len(variant.instances), max(0, missing)))
            self._share_by_size(old)
            self.show("Baking")
            await self._bake(wait)

    def _share_by_size(self, old: Fleet) -> None:
        new = sum(len(variant.instances) for variant in self.new.production)
        total = new + sum(len(variant.instances) for variant in old.production)
        self._new_takes(new / total if total else 0.0)

    def _production_count(self) -> int:
        """What sizes are shares of: what callers reach. Of shadows AWS says nothing here."""
        return sum(self.counts[variant.name] for variant in self.new.production)

    # ----------------------------------------------------------------------------- baking, rollback

    async def _bake(self, seconds: float) -> None:
        """Wait, and give up as soon as an alarm is in ALARM."""
        end = self.clock.now() + seconds
        while True:
            await self.caught_up()
            self._check_alarms()
            left = end - self.clock.now()
            if left <= 0:
                return
            await self.clock.sleep(min(_STEP, left))

    def _check_alarms(self) -> None:
        rollback = self.policy.get("AutoRollbackConfiguration") or {}
        names = [alarm["AlarmName"] for alarm in rollback.get("Alarms") or []]
        on = self.alarms_on(names) if names else []
        if on:
            raise _Alarmed(
                f"The deployment was rolled back: alarm(s) [{', '.join(on)}] in ALARM state."
            )
        if self.clock.now() > self._deadline:
            raise _Alarmed("The deployment was rolled back: it took longer than it may.")

    async def _back(self, reason: str, rolling: Mapping[str, Any] | None) -> None:
        self.show("RollingBack")
        old = cast(Fleet, self.endpoint.fleet)
        if rolling:
            await self._roll_back(old, rolling)
        self.endpoint.new_share = 0.0
        self.endpoint.new_fleet = None
        self.new.stop()
        # What was sent to the new fleet is answered by it; nothing new gets there.
        await asyncio.sleep(0)
        raise RolledBack(reason)

    async def _roll_back(self, old: Fleet, policy: Mapping[str, Any]) -> None:
        """Bring the old fleet back, new instances ending as old ones serve."""
        # Without RollbackMaximumBatchSize all of it comes at once, before any new one ends. Source:
        # SageMaker API reference, "RollingUpdatePolicy".
        counts = desired_counts(self.endpoint.record or {})
        wanted = {variant.name: counts.get(variant.name, 1) for variant in old}
        total = sum(wanted[variant.name] for variant in old.production)
        batch = _batch(policy.get("RollbackMaximumBatchSize") or _EVERYTHING, total)
        while any(len(variant.instances) < wanted[variant.name] for variant in old):
            for variant in old:
                count = min(wanted[variant.name], len(variant.instances) + batch)
                await old.scale(variant, count)
                replaced = self.new.variants.get(variant.name)
                if replaced is not None:
                    left = min(len(replaced.instances), wanted[variant.name] - count)
                    await self.new.scale(replaced, left)
            self._share_by_size(old)


class _Alarmed(Exception):
    """An alarm, or the clock, ended the deployment."""


def _batch(size: Mapping[str, Any], total: int) -> int:
    return max(1, math.floor(canary_share(size, total) * total + 1e-9))
