"""What is simulated: instances, routing, zones, traffic, scaling, and what befalls them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..errors import rule
from ..facts.limit_kinds import USE_AN_ALLOWED_VALUE, Choice, number_range
from ..facts.rules import MIN_ABOVE_MAX
from ..plan.traffic_shapes import SECONDS, Shape
from .fleet_changes import COUNT, SIMULATED_INSTANCES, Rollout, TargetTracking, ZoneOutage
from .service_laws import MEAN_SECONDS, ServiceLaw
from .traffic import RATE, ShapedLoop, Traffic

CONCURRENCY = number_range(
    "LLS104",
    "the concurrency of a simulated instance",
    1,
    4096,
    fix="Give the requests that it serves at once: its workers or largest batch.",
)
SLOPE = number_range(
    "LLS105",
    "the slope of a batching instance",
    0,
    10,
    whole=False,
    fix="Give the slowdown per further request in a batch: 0 for separate workers, 1 for "
    "one shared processor.",
)
SIMULATED_ROUTING = Choice(
    rule("LLS108", "the routing strategy cannot be simulated", fix=USE_AN_ALLOWED_VALUE),
    "a simulated routing strategy",
    ("RANDOM", "LEAST_OUTSTANDING_REQUESTS"),
)
OUTAGE = rule(
    "LLS129", "an outage names a zone that does not exist", fix="Name a zone of the scenario."
)
SHAPE_EVENT = rule(
    "LLS170",
    "the traffic's shape has an event that the scenario does not",
    fix="Add the deployment or the outage to the scenario, or leave its time out of the shape.",
)


def busy_rate(concurrency: int, slope: float, mean_seconds: float) -> float:
    """Requests per second of an instance that always works on as many as it takes at once.

    Each of them takes ``slope`` longer for every other one: above 1, more at once are served slower.
    """
    return concurrency / (1 + slope * (concurrency - 1)) / mean_seconds


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """An endpoint and its traffic.

    Parameters
    ----------
    service : ServiceLaw
        Time of a request on an instance that has nothing else to do.
    traffic : Traffic
        Who sends requests.
    instances : int
        Instances at the start. By default 1.
    concurrency : int
        Requests that one instance works on at the same time: its workers, or its largest batch;
        the others wait in line. By default 1.
    slope : float
        By how much each neighbour at work lengthens a request: with *n* at work each takes
        1 + slope x (n - 1) times as long. By default 0: workers of their own.
    routing : str
        ``RANDOM`` or ``LEAST_OUTSTANDING_REQUESTS``; one router sees all requests. By default
        ``RANDOM``, as AWS.
    zones : int
        Availability Zones, over which instances are spread in turn. By default 1.
    scaling : TargetTracking, optional
        By default the fleet stays as it is.
    deployment : Rollout, optional
        A new version while requests run. By default none.
    faults : tuple of ZoneOutage
        By default none.
    latency_target : float, optional
        Seconds; the results count what is slower.

    Raises
    ------
    ConfigurationError
        ``LLS103`` to ``LLS111`` for numbers out of range, ``LLE621``, ``LLS129`` and ``LLS170`` for
        parts that do not fit together.
    """

    service: ServiceLaw
    traffic: Traffic
    instances: int = 1
    concurrency: int = 1
    slope: float = 0.0
    routing: str = "RANDOM"
    zones: int = 1
    scaling: TargetTracking | None = None
    deployment: Rollout | None = None
    faults: tuple[ZoneOutage, ...] = ()
    latency_target: float | None = None

    def __post_init__(self) -> None:
        SIMULATED_INSTANCES.check(self.instances, "instances")
        CONCURRENCY.check(self.concurrency, "concurrency")
        SLOPE.check(self.slope, "slope")
        SIMULATED_ROUTING.check(self.routing, "routing")
        COUNT.check(self.zones, "zones")
        if self.latency_target is not None:
            SECONDS.check(self.latency_target, "latency_target")
        if self.scaling and not self.scaling.minimum <= self.instances <= self.scaling.maximum:
            raise MIN_ABOVE_MAX.error(
                got=f"{self.instances} instances, scaling {self.scaling.minimum} to "
                f"{self.scaling.maximum}",
                allowed="a start within the scaling range",
                what="the simulation starts outside the scaling range",
                where="instances",
                fix="Start with a number from minimum to maximum.",
            )
        for fault in self.faults:
            if not 0 <= fault.zone < self.zones:
                raise OUTAGE.error(
                    got=f"zone {fault.zone}", where="faults", allowed=f"0 to {self.zones - 1}"
                )
        if isinstance(self.traffic, ShapedLoop):
            self._check_events(self.traffic.shape)
        MEAN_SECONDS.check(self.service.mean_seconds, "service")
        RATE.check(self.peak_service_rate, "service")

    def _check_events(self, shape: Shape) -> None:
        """Raise where a shape says when something happens that this scenario has not."""
        for name, event in (("deploy_at", self.deployment), ("zone_lost_at", self.faults)):
            if getattr(shape, name) is not None and not event:
                needed = "deployment" if name == "deploy_at" else "faults"
                raise SHAPE_EVENT.error(
                    got=f"{name} of the shape {shape.name}, and no {needed}",
                    allowed=f"{needed} beside it",
                    where=needed,
                )

    @property
    def instance_rate(self) -> float:
        """Requests per second that one instance serves when it is never idle."""
        return busy_rate(self.concurrency, self.slope, self.service.mean_seconds)

    @property
    def peak_service_rate(self) -> float:
        """Requests per second that the fleet at the start serves when it is never idle."""
        return self.instances * self.instance_rate

    def with_(self, **changes: Any) -> Scenario:
        """A copy with some parts changed."""
        return replace(self, **changes)
