"""What is simulated: instances, routers, zones, traffic, scaling, and what befalls them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from ..errors import rule
from ..plan.limits import Choice, number_range
from ..plan.rules import MIN_ABOVE_MAX, PREFIX_SETTINGS
from .fleet_changes import (
    ROUTERS,
    SIMULATED_INSTANCES,
    InstanceFailure,
    Rollout,
    ScheduledAction,
    StepScaling,
    TargetTracking,
    ZoneOutage,
)
from .service_laws import MEAN_SECONDS, SECONDS, SHARE, VARIATION, ServiceLaw
from .traffic import RATE, ArrivalTrace, OpenLoop, ShapedLoop, Traffic

ROUTINGS = ("RANDOM", "LEAST_OUTSTANDING_REQUESTS", "PREFIX_AWARE", "POWER_OF_TWO")
CONCURRENCY = number_range(
    "LLS104",
    "the concurrency of a simulated instance",
    1,
    4096,
    fix="Give the requests that it works on at once: its workers, or its largest batch.",
)
SLOPE = number_range(
    "LLS105",
    "the slope of a batching instance",
    0,
    10,
    whole=False,
    fix="Give by how much each neighbour in the batch lengthens a request: 0 for separate "
    "workers, 1 for one shared processor.",
)
SIMULATED_ROUTING = Choice(
    rule(
        "LLS108",
        "the routing strategy cannot be simulated",
        fix="POWER_OF_TWO is for comparison only; SageMaker lacks it.",
    ),
    "a simulated routing strategy",
    ROUTINGS,
)
PREFIXES = number_range("LLS114", "the number of prefixes", 1, 100_000)
SCHEDULE = rule(
    "LLS135", "a schedule needs a scaling policy", fix="Add scaling, or leave the schedule out."
)
OUTAGE = rule(
    "LLS129",
    "a failure names a zone or instances that do not exist",
    fix="Name a zone of the scenario, or at most its instances.",
)


@dataclass(frozen=True, slots=True)
class Zones:
    """Availability Zones, and what a hop costs.

    Parameters
    ----------
    count : int
        Number of zones; instances are spread over them in turn, callers evenly. By default 1.
    hop_seconds : float
        Added to a request whose instance is in the caller's zone, there and back. By default 0.
    cross_zone_seconds : float
        Added on top when the instance is in another zone. By default 0.
    local_routing : bool
        Whether routers send requests only to instances of the caller's zone while it has any, as
        the interface endpoint's private DNS aims at. Each zone then has its own routers. By
        default no: AWS does not say whether routing strategies honour zones.
    caller_shares : tuple of float, optional
        Share of the callers in each zone. By default equal.
    """

    count: int = 1
    hop_seconds: float = 0.0
    cross_zone_seconds: float = 0.0
    local_routing: bool = False
    caller_shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        ROUTERS.check(self.count, "zones.count")
        SECONDS.check(self.hop_seconds, "zones.hop_seconds")
        SECONDS.check(self.cross_zone_seconds, "zones.cross_zone_seconds")
        shares = self.caller_shares
        for each in shares:
            SHARE.check(each, "zones.caller_shares")
        if shares and (len(shares) != self.count or abs(sum(shares) - 1) > 1e-9):
            raise SHARE.rule.error(
                got=str(shares),
                where="zones.caller_shares",
                allowed=f"{self.count} shares that sum to 1",
            )


@dataclass(frozen=True, slots=True)
class PrefixCache:
    """Requests that begin alike, and instances that remember beginnings.

    An instance remembers a beginning until it has served ``remembered`` requests since it last met
    it. Every routing strategy meets the cache; PREFIX_AWARE alone routes by it.

    Parameters
    ----------
    prefixes : int
        Number of different beginnings.
    popularity : float
        Exponent of Zipf's law: 0 for equally popular ones. By default 1.
    saved_share : float
        Share of the service time that a remembered beginning saves. By default 0.5.
    remembered : int
        Requests after which an instance has forgotten. By default 1000.
    """

    prefixes: int
    popularity: float = 1.0
    saved_share: float = 0.5
    remembered: int = 1000

    def __post_init__(self) -> None:
        PREFIXES.check(self.prefixes, "prefixes")
        VARIATION.check(self.popularity, "popularity")
        SHARE.check(self.saved_share, "saved_share")
        PREFIXES.check(self.remembered, "remembered")


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
        ``RANDOM``, ``LEAST_OUTSTANDING_REQUESTS``, ``PREFIX_AWARE``, or ``POWER_OF_TWO`` (the less
        busy of two drawn at random; not SageMaker's, a yardstick). By default ``RANDOM``, as AWS.
    routers : int
        Independent routers, one drawn for each request, each of which sees only the outstanding
        requests it sent itself. By default 1.
    concurrency_threshold : int, optional
        Outstanding requests at which ``PREFIX_AWARE`` sends elsewhere; only with that.
    zones : Zones
        By default one zone without hops.
    prefix_cache : PrefixCache, optional
        By default requests have nothing in common.
    scaling : TargetTracking or StepScaling, optional
        By default the fleet stays as it is.
    schedule : tuple of ScheduledAction
        New limits of the scaling at their times; only with scaling. By default none.
    deployment : Rollout, optional
    latency_target : float, optional
        Seconds; the results count what is slower.
    retry_seconds : float
        After how long a user of a closed loop tries again when the call fails. By default 1.
        Requests of an open loop are lost.

    Raises
    ------
    ConfigurationError
        ``LLS103`` to ``LLS135`` for numbers out of range, ``LLE423``, ``LLE621``, ``LLS129`` and
        ``LLS135`` for parts that do not fit together.
    """

    service: ServiceLaw
    traffic: Traffic
    instances: int = 1
    concurrency: int = 1
    slope: float = 0.0
    routing: str = "RANDOM"
    routers: int = 1
    concurrency_threshold: int | None = None
    zones: Zones = field(default_factory=Zones)
    prefix_cache: PrefixCache | None = None
    scaling: TargetTracking | StepScaling | None = None
    schedule: tuple[ScheduledAction, ...] = ()
    deployment: Rollout | None = None
    faults: tuple[InstanceFailure | ZoneOutage, ...] = ()
    latency_target: float | None = None
    retry_seconds: float = 1.0

    def __post_init__(self) -> None:
        SIMULATED_INSTANCES.check(self.instances, "instances")
        CONCURRENCY.check(self.concurrency, "concurrency")
        SLOPE.check(self.slope, "slope")
        SIMULATED_ROUTING.check(self.routing, "routing")
        ROUTERS.check(self.routers, "routers")
        SECONDS.check(self.retry_seconds, "retry_seconds")
        if self.latency_target is not None:
            SECONDS.check(self.latency_target, "latency_target")
        aware = self.routing == "PREFIX_AWARE"
        if aware != (self.concurrency_threshold is not None) or (
            aware and self.prefix_cache is None
        ):
            raise PREFIX_SETTINGS.error(
                got=f"{self.routing}, threshold {self.concurrency_threshold}, "
                f"{'a' if self.prefix_cache else 'no'} prefix cache",
                allowed="PREFIX_AWARE with threshold and prefix cache; no threshold otherwise",
                fix="Give concurrency_threshold and prefix_cache with PREFIX_AWARE.",
                where="routing",
            )
        if self.concurrency_threshold is not None:
            CONCURRENCY.check(self.concurrency_threshold, "concurrency_threshold")
        if self.scaling and not self.scaling.minimum <= self.instances <= self.scaling.maximum:
            raise MIN_ABOVE_MAX.error(
                got=f"{self.instances} instances, scaling {self.scaling.minimum} to "
                f"{self.scaling.maximum}",
                allowed="a start within the scaling range",
                what="the simulation starts outside the scaling range",
                where="instances",
                fix="Start with a number from minimum to maximum.",
            )
        if self.schedule and not self.scaling:
            raise SCHEDULE.error(
                got=f"{len(self.schedule)} scheduled actions without scaling",
                allowed="scheduled actions beside a scaling policy",
                where="schedule",
            )
        most = self.most_instances
        for fault in self.faults:
            if isinstance(fault, ZoneOutage):
                if not 0 <= fault.zone < self.zones.count:
                    raise OUTAGE.error(
                        got=f"zone {fault.zone}",
                        where="faults",
                        allowed=f"0 to {self.zones.count - 1}",
                    )
            elif fault.instances > most:
                raise OUTAGE.error(
                    got=f"{fault.instances} instances", where="faults", allowed=f"1 to {most}"
                )
        MEAN_SECONDS.check(self.service.mean_seconds, "service")
        RATE.check(self.peak_service_rate, "service")

    @property
    def most_instances(self) -> int:
        """The most that serve at once: at the start, by the scaling, or by its schedule."""
        scheduled = (max(each.minimum or 0, each.maximum or 0) for each in self.schedule)
        return max((self.instances, self.scaling.maximum if self.scaling else 0, *scheduled))

    @property
    def instance_rate(self) -> float:
        """Requests per second that one instance serves when it is never idle."""
        n = self.concurrency
        return max(1.0, n / (1 + self.slope * (n - 1))) / self.service.mean_seconds

    @property
    def peak_service_rate(self) -> float:
        """Requests per second that the fleet at the start serves when it is never idle."""
        return self.instances * self.instance_rate

    @property
    def offered_load(self) -> float | None:
        """Share of the fleet's rate that arrives at the peak; ``None`` for closed loops."""
        if isinstance(self.traffic, OpenLoop):
            return self.traffic.rate / self.peak_service_rate
        if isinstance(self.traffic, ShapedLoop):
            share = max(level for _, level in self.traffic.shape.levels)
            return self.traffic.peak_rate * share / self.peak_service_rate
        if isinstance(self.traffic, ArrivalTrace):
            times = self.traffic.seconds
            return len(times) / max(times[-1] - times[0], 1e-9) / self.peak_service_rate
        return None

    def with_(self, **changes: Any) -> Scenario:
        """A copy with some parts changed."""
        return replace(self, **changes)


def cumulated(shares: tuple[float, ...]) -> tuple[float, ...]:
    """Sums of shares, the last exactly 1."""
    sums, total = [], 0.0
    for each in shares:
        total += each
        sums.append(total)
    sums[-1] = 1.0
    assert all(later >= earlier for earlier, later in pairwise(sums))
    return tuple(sums)
