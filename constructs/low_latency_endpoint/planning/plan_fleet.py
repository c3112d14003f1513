"""Decisions about the fleet: how many instances, what scaling aims at, what an outage leaves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..errors import AWS_DOCS, rule
from .capacity import FEWEST_INSTANCES, instances_at_peak, stated
from .decisions import Decision, PlanWarning
from .limits import INITIAL_INSTANCE_COUNT, MAX_INSTANCES, MIN_CAPACITY
from .plan_inputs import PlanInputs
from .rules import BURSTABLE, INITIAL_OUTSIDE_RANGE, MIN_ABOVE_MAX

__all__ = ["Fleet", "decide_fleet", "outage_decision", "scaling_decisions"]

INVOCATIONS_METRIC = "SageMakerVariantInvocationsPerInstance"
INVOCATIONS_UNIT = "invocations per instance per minute"
CONCURRENCY_METRIC = "SageMakerVariantConcurrentRequestsPerModelHighResolution"
SCALE_OUT_SECONDS = 60
SCALE_IN_SECONDS = 300
HEADROOM = Fraction(3, 2)

_LOAD_TEST = AWS_DOCS + "/sagemaker/latest/dg/endpoint-scaling-loadtest.html"
_POLICY = AWS_DOCS + "/sagemaker/latest/dg/endpoint-auto-scaling-policy.html"
_CONCURRENCY = AWS_DOCS + "/sagemaker/latest/dg/endpoint-auto-scaling-add-code-define.html"
_PRACTICES = AWS_DOCS + "/sagemaker/latest/dg/deployment-best-practices.html"
_ZONES = AWS_DOCS + "/sagemaker/latest/dg/realtime-endpoints-privatelink.html"

ZONES_WITHOUT_INSTANCE = rule(
    "LLE810", "there are more client zones than instances",
    mend="Raise the number of instances, or name fewer client zones: a zone without an instance "
         "sends its requests to another zone.",
    source="/sagemaker/latest/dg/realtime-endpoints-privatelink.html",
)


@dataclass(frozen=True)
class Fleet:
    """Numbers of instances that hold together, and the decisions that say why."""

    at_peak: int
    minimum: int
    initial: int
    maximum: int
    decisions: tuple[Decision, ...]
    warnings: tuple[PlanWarning, ...]

    @property
    def serving_at_peak(self) -> int:
        """Instances in service at the peak: those needed, as far as the maximum lets them."""
        return min(max(self.at_peak, self.minimum), self.maximum)


def decide_fleet(inputs: PlanInputs) -> Fleet:
    """Minimum, initial and maximum instances, checked against each other.

    Raises
    ------
    ConfigurationError
        ``LLE106``, ``LLE403``, ``LLE601`` for numbers out of range; ``LLE621`` for a minimum above
        the maximum; ``LLE625`` for an initial count outside the two; ``LLE624`` for scaling a
        burstable type; ``LLE810`` for fewer instances than client zones.
    """
    zones = len(inputs.zones)
    floor = max(zones, FEWEST_INSTANCES)
    measured = inputs.throughput
    at_peak = measured.instances_at_peak(zones) if measured else floor
    fixed = bool(inputs.facts and inputs.facts.burstable)

    minimum = _counted(MIN_CAPACITY, inputs.min_instances, "min_instances")
    initial = _counted(INITIAL_INSTANCE_COUNT, inputs.initial_instances, "initial_instances")
    maximum = _counted(MAX_INSTANCES, inputs.max_instances, "max_instances")
    for name, count in (("min_instances", minimum), ("initial_instances", initial),
                        ("max_instances", maximum)):
        if count is not None and count < zones:
            raise ZONES_WITHOUT_INSTANCE.error(
                got=f"{count} for {zones} client zones", allowed=f"at least {zones}", where=name
            )
    if fixed:  # burstable types do not scale: one number for all three
        size = maximum or initial or minimum or at_peak
        minimum, maximum = minimum or size, maximum or size
        if maximum > minimum:
            raise BURSTABLE.error(
                got=f"{inputs.instance_type} from {minimum} to {maximum} instances",
                allowed="the same minimum and maximum", where="instance_type",
            )
    smallest = floor if minimum is None else minimum
    needed = max(at_peak, smallest, initial or 0)
    largest = _maximum(needed, zones) if maximum is None else maximum
    if smallest > largest:
        raise MIN_ABOVE_MAX.error(got=f"{smallest} above {largest}", allowed=f"at most {largest}",
                                  where="min_instances")
    first = min(max(at_peak, smallest), largest) if initial is None else initial
    if not smallest <= first <= largest:
        raise INITIAL_OUTSIDE_RANGE.error(got=str(first), allowed=f"{smallest} to {largest}",
                                          where="initial_instances")
    if not inputs.scaling:  # what is not stated stays at the number that it starts with
        smallest = first if minimum is None else smallest
        largest = first if maximum is None else largest
    fleet = Fleet(at_peak, smallest, first, largest, (), ())
    return Fleet(at_peak, smallest, first, largest,
                 tuple(_fleet_decisions(inputs, fleet, fixed)),
                 tuple(_fleet_warnings(inputs, fleet, fixed)))


def _counted(limit: Any, value: int | None, where: str) -> int | None:
    return None if value is None else int(limit.check(value, where))


def _maximum(needed: int, zones: int) -> int:
    """Half as much again, and enough to hold the peak while a lost zone still counts."""
    return max(math.ceil(needed * HEADROOM), math.ceil(Fraction(needed * zones, zones - 1)))


def _fleet_decisions(inputs: PlanInputs, fleet: Fleet, fixed: bool) -> Iterator[Decision]:
    zones = len(inputs.zones)
    measured = inputs.throughput
    if measured:
        saturated = instances_at_peak(measured.peak_tps, measured.tps_per_instance, 1, zones)
        yield Decision(
            name="instances_at_peak", value=fleet.at_peak, unit="instances",
            rule="peak TPS / (TPS per instance x safety factor), rounded up; at least one per "
                 "client zone and at least two",
            inputs={"peak TPS": measured.peak_tps, "TPS per instance": measured.tps_per_instance,
                    "safety factor": measured.safety_factor, "client zones": zones},
            source=_LOAD_TEST,
            note=f"at saturation, with nothing in reserve, {saturated:,} would do",
        )
    else:
        yield Decision(
            name="instances_at_peak", value=fleet.at_peak, unit="instances",
            rule="without a measured throughput: one per client zone and at least two",
            inputs={"client zones": zones}, source=_ZONES,
            note="assumed, not derived: load-test one instance and state the throughput",
        )
    unscaled = "" if inputs.scaling else "scaling is off: nothing changes the number of instances"
    yield Decision(
        name="min_instances", value=fleet.minimum, unit="instances",
        rule="one per client zone and at least two, so that no zone is without at quiet hours"
             if inputs.scaling else "the initial instances",
        inputs={"client zones": zones}, source=_PRACTICES,
        overridden=inputs.min_instances is not None,
        note=unscaled or ("" if fixed else "new instances take minutes: raise it, or schedule it, "
                                           "where traffic jumps faster than that"),
    )
    yield Decision(
        name="initial_instances", value=fleet.initial, unit="instances",
        rule="the instances at peak, so that the first traffic meets a fleet that holds it"
             + ("; scaling takes away what is not needed" if inputs.scaling else ""),
        inputs={"instances at peak": fleet.at_peak, "maximum": fleet.maximum},
        overridden=inputs.initial_instances is not None,
    )
    yield Decision(
        name="max_instances", value=fleet.maximum, unit="instances",
        rule="no more than the minimum: burstable types do not scale" if fixed else
             "the initial instances" if unscaled else
             "half as many again as the peak needs, and at least enough to hold the peak while the "
             "instances of a failed zone still count",
        inputs={"instances at peak": fleet.at_peak, "minimum": fleet.minimum,
                "client zones": zones},
        overridden=inputs.max_instances is not None,
        note="; ".join(filter(None, (unscaled, "your account's quota for the type must allow "
                                     "twice this during a blue/green update"))),
    )


def _fleet_warnings(inputs: PlanInputs, fleet: Fleet, fixed: bool) -> Iterator[PlanWarning]:
    if inputs.throughput is None:
        yield PlanWarning(
            "no-throughput",
            f"no measured throughput: the fleet of {fleet.initial} is assumed to hold the peak"
            + (", and no scaling policy is set" if _metric(inputs, fleet) is None else "")
            + "; load-test one instance and state the result",
        )
    elif fleet.maximum < fleet.at_peak:
        yield PlanWarning(
            "maximum-below-peak",
            f"the maximum of {fleet.maximum} instances is below the {fleet.at_peak} that the peak "
            "needs with this safety factor",
        )
    elif fleet.minimum == fleet.maximum and not fixed and inputs.scaling:
        yield PlanWarning(
            "fleet-never-scales",
            f"minimum and maximum are both {fleet.minimum}: the fleet never scales",
        )
    if fixed:
        yield PlanWarning(
            "burstable",
            f"{inputs.instance_type} is burstable: it does not scale, and its latency rises when "
            "the CPU credits are used up; choose another type for a latency target",
        )


def scaling_decisions(inputs: PlanInputs, fleet: Fleet) -> Iterator[Decision]:
    """Scaling metric, target and cooldowns; the metric is None, and no more, without a policy."""
    metric = _metric(inputs, fleet)
    by_concurrency = inputs.max_concurrency is not None
    if not inputs.scaling:
        why = "none: scaling is off, your choice"
    elif by_concurrency:
        why = "target tracking on requests in flight per instance, every 10 s, because you state " \
              "how many one instance holds"
    else:
        why = "target tracking on invocations per instance, once one instance's throughput is " \
              "measured"
    yield Decision(
        name="scaling_metric", value=metric, rule=why,
        inputs={"throughput": "measured" if inputs.throughput else "not measured",
                "minimum": fleet.minimum, "maximum": fleet.maximum},
        source=_POLICY, overridden=by_concurrency or not inputs.scaling,
        note=_concurrency_note(inputs) if metric == INVOCATIONS_METRIC else "",
    )
    if metric is None:
        return
    yield _concurrency_target(inputs) if by_concurrency else _invocations_target(inputs)
    yield Decision(
        name="scale_out_cooldown", unit="seconds",
        value=SCALE_OUT_SECONDS if inputs.scale_out_seconds is None else inputs.scale_out_seconds,
        rule="one period of the metric: an instance too early costs little, one too late costs "
             "latency",
        inputs={"metric period in seconds": 60, "AWS's default": 300},
        overridden=inputs.scale_out_seconds is not None,
    )
    yield Decision(
        name="scale_in_cooldown", unit="seconds",
        value=SCALE_IN_SECONDS if inputs.scale_in_seconds is None else inputs.scale_in_seconds,
        rule="AWS's default, slower than scaling out, so that a lull does not cost instances",
        inputs={}, source=_POLICY, overridden=inputs.scale_in_seconds is not None,
    )


def _wants_to_scale(inputs: PlanInputs) -> bool:
    """Whether something says what scaling would aim at, and nothing that it shall not."""
    return inputs.scaling and (inputs.throughput or inputs.max_concurrency) is not None


def _metric(inputs: PlanInputs, fleet: Fleet) -> str | None:
    """What the scaling policy tracks; None without a policy."""
    if not _wants_to_scale(inputs) or fleet.minimum == fleet.maximum:
        return None
    return INVOCATIONS_METRIC if inputs.max_concurrency is None else CONCURRENCY_METRIC


def _invocations_target(inputs: PlanInputs) -> Decision:
    measured = inputs.throughput
    assert measured is not None
    return Decision(
        name="scaling_target", value=measured.target_invocations_per_instance,
        unit=INVOCATIONS_UNIT,
        rule="TPS per instance x safety factor x 60",
        inputs={"TPS per instance": measured.tps_per_instance,
                "safety factor": measured.safety_factor},
        source=_LOAD_TEST,
        note="at saturation the target would be "
             f"{float(stated(measured.tps_per_instance) * 60):,.6g}",
    )


def _concurrency_target(inputs: PlanInputs) -> Decision:
    estimate = _by_littles_law(inputs)
    return Decision(
        name="scaling_target", value=inputs.max_concurrency,
        unit="requests in flight per instance",
        rule="your number: the requests in flight that scaling keeps one instance at",
        source=_CONCURRENCY, overridden=True,
        note=f"by Little's law it would be about {estimate[0]} ({estimate[1]})" if estimate else "",
    )


def _by_littles_law(inputs: PlanInputs) -> tuple[int, str] | None:
    """Requests in flight at the measured throughput with its safety factor, and how they follow."""
    measured = inputs.throughput
    if not (inputs.latency and measured):
        return None
    statistic, milliseconds = inputs.latency.typical
    concurrent = math.floor(
        stated(measured.tps_per_instance) * stated(measured.safety_factor)
        * stated(milliseconds) / 1000
    )
    return max(concurrent, 1), (
        f"TPS per instance x safety factor x {statistic} of {milliseconds / 1000:g} s"
    )


def _concurrency_note(inputs: PlanInputs) -> str:
    """For answers of uneven length: what the concurrency metric would aim at."""
    estimate = _by_littles_law(inputs)
    if not (inputs.generative and estimate):
        return ""
    return (
        "answers differ in length, so requests in flight say more than requests per minute: try "
        f"{CONCURRENCY_METRIC} (every 10 s, counts what queues "
        f"in the container) with a target of about {estimate[0]} ({estimate[1]})"
    )


def outage_decision(inputs: PlanInputs, fleet: Fleet) -> tuple[Decision, list[PlanWarning]]:
    """What is left at the peak when the zone with the most instances fails."""
    zones = len(inputs.zones)
    serving = fleet.serving_at_peak
    lost = -(-serving // zones)
    left = serving - lost
    measured = inputs.throughput
    note = ""
    warnings: list[PlanWarning] = []
    if measured:
        held = float(stated(measured.tps_per_instance) * left)
        note = f"they hold {held:,.6g} of {measured.peak_tps:,.6g} TPS at the measured limit"
        if held < measured.peak_tps:
            replaced = "scaling replaces the others" if inputs.scaling else "they are replaced"
            warnings.append(PlanWarning(
                "zone-outage",
                f"a zone outage at peak leaves {left} of {serving} instances, {held:,.6g} TPS of "
                f"{measured.peak_tps:,.6g}, until {replaced}; lower the safety "
                "factor, raise the minimum, or serve from more zones",
            ))
    return Decision(
        name="instances_left_by_zone_outage", value=left, unit="instances",
        rule="the instances at peak, less those of the fullest zone when they are spread evenly",
        inputs={"instances at peak": serving, "client zones": zones, "lost": lost},
        source=_PRACTICES, note=note,
    ), warnings
