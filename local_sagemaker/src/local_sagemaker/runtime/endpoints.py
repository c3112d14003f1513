"""An endpoint as requests see it: its fleets, and the share of traffic that each takes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..hosting import Hosting
from .fleet import Fleet, Variant
from .instances import Instance
from .meter import Dimensions, Place
from .room import Room
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
        assert self.fleet is not None
        new = self.new_fleet
        if new is not None and self.new_share and generator.random() < self.new_share:
            return new
        return self.fleet

    def choose_variant(
        self, fleet: Fleet, wanted: str | None, generator: random.Random
    ) -> Variant | None:
        """Give the variant that the caller names, else one by weight; None when there is none."""
        variants = fleet.production
        if wanted is not None:
            return next((each for each in variants if each.name == wanted), None)
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
