"""Every number of an endpoint, as constructs and commands read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

from ..errors import rule
from ..errors.frozen import dataclass
from ..errors.impossible import out_of_range, refuse
from ..options.scaling import ScalingSchedule, fewest_scheduled, most_scheduled
from ..options.throughput import HeldTps, MeasuredThroughput, instances_for, tps_held
from .alarm_thresholds import AlarmThreshold
from .daily_peaks import DailyPeak, lead_minutes, standing_names
from .decisions import IMPOSSIBLE, Decision, Explanation
from .endpoint_request import EndpointRequest
from .fleet_size import SizedFleet
from .fleet_under_load import Fleet, FleetUnderLoad
from .routing import RoutingRecommendation
from .scaling_policy import ScalingPolicy
from .standing_ranges import CapacityRange, StandingRanges
from .token_plan import TokenPlan, TokenThreshold

KEEPALIVE_SECONDS = 60

PLAN_OF_ANOTHER = rule(
    "LLE808",
    "the plan was made for another request",
    fix="Leave plan= out, or pass the result of make_plan() for the same arguments.",
)


class ServedPeak(NamedTuple):
    """Another peak of the day than the usual one."""

    label: str  # its name and its times
    tps: float
    instances: int  # that serve it


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Every number of an endpoint; :attr:`explanation` says why."""

    request: EndpointRequest  # what it was made from
    explained_by: Callable[[Plan], Explanation] = field(compare=False, repr=False)
    instances: SizedFleet
    addresses: Decision[int]  # of each client zone's subnet
    subnet_size: Decision[str]
    routing: str
    routing_advice: RoutingRecommendation  # what the rule gives, whatever was chosen
    inference_ami: Decision[str] | None  # None for SageMaker's own
    scaling: ScalingPolicy | None  # None where the number of instances stays
    scaling_decisions: tuple[Decision[Any], ...]  # that it is made of; without it the metric's
    alarms: tuple[AlarmThreshold, ...]  # on whole calls; empty without such a target
    warm_up: Decision[int]
    # in flight at the peak, over all callers; None without a target or a throughput
    connections: Decision[int] | None
    schedule: tuple[ScalingSchedule, ...] = ()  # of the scalable target: stated, or of other peaks
    peaks: tuple[DailyPeak, ...] = ()  # beside the usual one
    # of a language model that streams: its capacity in tokens, requests in flight, and the limits
    # of the alarms on tokens
    tokens: TokenPlan | None = None

    def __post_init__(self) -> None:
        refuse(IMPOSSIBLE, "plan", self._problems())

    def _problems(self) -> Iterator[str]:
        for alarm in self.alarms:
            threshold = {f"threshold on {alarm.metric} {alarm.statistic}": alarm.milliseconds}
            yield from out_of_range(threshold, high=alarm.target)
        if self.tokens is not None:
            yield from self.tokens.problems()

    @cached_property
    def fleet(self) -> Fleet:
        """The numbers of instances without their reasons."""
        return self.instances.numbers

    @property
    def warm_up_requests(self) -> int:
        """The fewest requests of a warm-up."""
        return self.warm_up.value

    @property
    def caller_connections(self) -> int | None:
        """Connections of all callers at the peak; ``None`` without a target or a throughput."""
        return None if self.connections is None else self.connections.value

    def needed_for(self, measured: MeasuredThroughput | None) -> int | None:
        """Instances that a load alone needs at its peak; ``None`` without a throughput."""
        return needed_at_peak(measured, self.held_tps)

    @property
    def room(self) -> int | None:
        """Requests that the KV cache of an instance has room for; ``None`` where not known."""
        return self.tokens.room if self.tokens else None

    @property
    def watched_thresholds(self) -> tuple[TokenThreshold, ...]:
        """The limits on tokens that alarms can watch: those whose metrics are known."""
        if self.tokens is None or self.request.server_of_metrics is None:
            return ()
        return self.tokens.thresholds

    @property
    def held_tps(self) -> HeldTps | None:
        """What one instance holds, and is kept at by scaling; ``None`` without a throughput."""
        return held_by_instance(self.request, self.room)

    @cached_property
    def standing_ranges(self) -> StandingRanges:
        """The usual range, and those that the schedule brings; all are the same if nothing scales."""
        usual = CapacityRange(self.fleet.minimum, self.fleet.maximum)
        return StandingRanges(usual, self.schedule if self.scaling else ())

    @cached_property
    def standing_peaks(self) -> list[DailyPeak]:
        """The other peaks whose range stands in some minute of the day."""
        lead = lead_minutes(self.request.start_seconds) if self.scaling else 0
        names = self.names_of_peaks(lead)
        return [peak for peak in self.peaks if peak.name in names]

    def names_of_peaks(self, lead: int) -> set[str]:
        """The peaks that count in some minute, where ranges rise so many minutes ahead."""
        usual = self.request.throughput
        return standing_names(self.peaks, usual.peak_tps, lead) if usual else set()

    @property
    def scheduled_ranges(self) -> list[str]:
        """Each scheduled action with the range that it brings and its time, in words."""
        texts = []
        for action in self.schedule:
            brought = self.standing_ranges.brought_by(action)
            ranges = " or ".join(capacity.text for capacity in brought)
            texts.append(f"{action.name}: {ranges} {action.when}")
        return texts

    @cached_property
    def under_load(self) -> list[FleetUnderLoad]:
        """Each range that can stand with the load that it has to hold, the usual one first."""
        measured = self.request.throughput
        if not self.peaks:
            return [
                self._under(
                    standing.name, standing.times, self.fleet.within(standing.range), measured
                )
                for standing in self.standing_ranges.all
            ]
        loads = [self._under("", "", self.fleet, measured)]
        for peak in self.standing_peaks:
            fleet = replace(self.fleet, at_peak=peak.at_peak)
            if self.scaling is not None:
                fleet = fleet.within(peak.range)
            loads.append(self._under(peak.name, peak.peak.text, fleet, peak.measured))
        return loads

    def _under(
        self, name: str, times: str, fleet: Fleet, measured: MeasuredThroughput | None
    ) -> FleetUnderLoad:
        zones = len(self.request.client_zones)
        scales = self.scaling is not None
        return FleetUnderLoad(name, times, fleet, measured, zones, self.held_tps, scales)

    @property
    def other_peaks(self) -> list[ServedPeak]:
        """The other peaks of the day, with the instances that serve each."""
        return [
            ServedPeak(load.label, load.measured.peak_tps, load.serving_at_peak)
            for load in self.under_load[1:]
            if self.peaks and load.measured
        ]

    @property
    def usual(self) -> FleetUnderLoad:
        """The usual range with its load."""
        return self.under_load[0]

    @property
    def fewest(self) -> int:
        """The fewest instances outside of updates: the least minimum, or the fixed number."""
        if self.scaling is None:
            return self.fleet.initial
        return fewest_scheduled(self.schedule, self.fleet.minimum)

    @property
    def most(self) -> int:
        """The most instances outside of updates that the maximum or a schedule allows."""
        return most_scheduled(self.schedule, self.fleet.maximum)

    @property
    def largest_fleet(self) -> int:
        """The most instances outside of updates: the highest maximum, or the fixed number."""
        return self.fleet.initial if self.scaling is None else self.most

    @property
    def fleet_with_addresses(self) -> int:
        """How many instances the subnets are made for: the maximum, which a load test may bring."""
        return self.most if self.request.scaling.enabled else self.fleet.initial

    def checked_for(self, request: EndpointRequest, where: str = "") -> Plan:
        """This plan, where it is that of the request."""
        if self.request != request:
            names = _differing(self.request, request) - {"serving"}
            names |= _differing(self.request.serving, request.serving)
            raise PLAN_OF_ANOTHER.error(
                got=f"another {', '.join(sorted(names))}",
                allowed="the plan of these arguments, or none",
                where=where,
            )
        return self

    def thresholds(self, metric: str) -> dict[str, float]:
        """Alarm thresholds on a metric by statistic, in milliseconds."""
        return {
            alarm.statistic: alarm.milliseconds for alarm in self.alarms if alarm.metric == metric
        }

    @cached_property
    def explanation(self) -> Explanation:
        """The decisions for people, each with its rule and source, and the warnings."""
        return self.explained_by(self)


def _differing(one: Any, other: Any) -> set[str]:
    return {
        each.name for each in fields(one) if getattr(one, each.name) != getattr(other, each.name)
    }


def held_by_instance(request: EndpointRequest, room: int | None) -> HeldTps | None:
    """What one instance of a request holds, at all peaks alike; ``None`` without a throughput.

    ``room`` is for how many requests the KV cache of one has room; ``None`` where not known.
    """
    if request.throughput is None:
        return None
    return tps_held(request.throughput, room, request.scaling)


def needed_at_peak(measured: MeasuredThroughput | None, held: HeldTps | None) -> int | None:
    """Instances that the load alone needs at the peak; ``None`` without a throughput."""
    if measured is None or held is None:
        return None
    return instances_for(measured.peak_tps, held.planned)
