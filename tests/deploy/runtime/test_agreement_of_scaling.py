"""Simulator, plan and local AWS scale alike: the same requests, and the same count in every minute.

Both programs have the rules of `scaling_rules.py`, a copy each. Here the simulator runs whole. Of the
local AWS run its metrics, alarms, policies and limits; only the start of an instance is a timer, so
that an hour takes a tenth of a second. `test_the_running_local_aws_scales_alike` has its endpoint,
its HTTP requests and its clock as well.

What is set alike on both sides, as no source states it: a metric can be seen as soon as its period
ends (the local AWS has no delay; the simulator's is 60 s unless told otherwise), and how long an
update takes that starts instances, or takes them away. Starts end between two ticks of the local
AWS's clock, which are ten seconds apart, and no count of requests meets a target exactly.
"""

from __future__ import annotations

import heapq
import inspect
import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hosting_site import Scaled, Site, taking
from hypothesis import given, settings
from hypothesis import strategies as st

from local_sagemaker import LocalAws, RuntimeOptions
from local_sagemaker.cloudwatch import evaluation
from local_sagemaker.cloudwatch.metric_store import as_moment
from local_sagemaker.hosting import hosting, scaling
from local_sagemaker.runtime import scaling as local_scaling
from local_sagemaker.runtime import scaling_rules as local_rules
from local_sagemaker.runtime.meter import INVOCATIONS, Meter
from low_latency_endpoint.facts import scaling_rules
from low_latency_endpoint.plan.scaling_pace import METRIC_DELAY_SECONDS, jump_seconds, rise_seconds
from low_latency_endpoint.simulate import (
    ArrivalTrace,
    CapacityLimits,
    Constant,
    Scenario,
    TargetTracking,
)
from low_latency_endpoint.simulate.compilation import loops
from low_latency_endpoint.simulate.replication import RunLength, _Run
from tests.depth import examples

MINUTE = 60.0
TICK = 10.0
TARGET = 6.07  # of a minute and instance: no number of requests over up to 99 instances meets it
POLICY = TargetTracking(
    TARGET, minimum=1, maximum=12, metric_delay=0.0, instance_seconds=295.0, scale_in_seconds=115.0
)
BURSTS = (17.0, 47.0)  # seconds of a minute at which its requests come


def arrivals(minutes: Iterable[int]) -> list[float]:
    """The times of so many requests in each minute, half of them in each of its halves."""
    times = []
    for number, requests in enumerate(minutes):
        first = requests // 2
        times += [number * MINUTE + BURSTS[0]] * first
        times += [number * MINUTE + BURSTS[1]] * (requests - first)
    return times


# --- the simulator ------------------------------------------------------------------------------


@dataclass
class Counts:
    """The instances desired and serving in the middle of each minute."""

    desired: list[int] = field(default_factory=list)
    serving: list[int] = field(default_factory=list)


def simulated(minutes: list[int], policy: TargetTracking, instances: int = 1) -> Counts:
    scenario = Scenario(
        service=Constant(0.001),
        traffic=ArrivalTrace(tuple(arrivals(minutes))),
        instances=instances,
        scaling=policy,
    )
    end = len(minutes) * MINUTE
    run = _Run(scenario, RunLength(None, end, 0.0, None), loops(False), 1, 0)
    counts = Counts()
    for number in range(len(minutes)):
        run._run_to(number * MINUTE + 32.0)
        counts.desired.append(run.control.desired)
        counts.serving.append(len(run.world.serving))
    return counts


# --- the local AWS ------------------------------------------------------------------------------

_numbers = itertools.count(1)


class LocalScaling:
    """The local AWS's metrics, alarms and policies, by a clock that jumps from event to event."""

    def __init__(self, policy: TargetTracking, instances: int) -> None:
        name = f"endpoint-{next(_numbers)}"
        self.place = ("123456789012", "us-east-1")
        self.dimensions = ((("EndpointName", name), ("VariantName", "primary")),)
        self.policy = policy
        self.now = 0.0
        self.serving = instances
        self.meter = Meter()
        self.agenda: list[tuple[float, int, Callable[[], None]]] = []
        self.tracking = local_scaling.TargetTracking(self.move, lambda: self.now)
        self.variant = {"VariantName": "primary", "DesiredInstanceCount": instances}
        self.endpoint = {"EndpointStatus": "InService", "ProductionVariants": [self.variant]}
        hosting(*self.place).endpoints[name] = self.endpoint
        resource = f"endpoint/{name}/variant/primary"
        self.key = ("sagemaker", resource, "sagemaker:variant:DesiredInstanceCount")
        self.limit(policy.minimum, policy.maximum)
        self.put_policy()

    def put_policy(self) -> None:
        metric = {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}
        record: dict[str, Any] = {
            "PolicyName": "track",
            "PolicyARN": f"arn:{self.key[1]}",
            "ResourceId": self.key[1],
            "TargetTrackingScalingPolicyConfiguration": {
                "TargetValue": self.policy.target,
                "PredefinedMetricSpecification": metric,
                "ScaleOutCooldown": self.policy.scale_out_cooldown,
                "ScaleInCooldown": self.policy.scale_in_cooldown,
            },
        }
        record["Alarms"] = local_scaling.make_alarms(self.place, record)
        scaling(*self.place).policies[self.key, "track"] = record

    def limit(self, minimum: int, maximum: int) -> None:
        scaling(*self.place).targets[self.key] = {
            "MinCapacity": minimum,
            "MaxCapacity": maximum,
            "SuspendedState": {
                "DynamicScalingInSuspended": False,
                "DynamicScalingOutSuspended": False,
                "ScheduledScalingSuspended": False,
            },
        }

    def schedule(self, limits: CapacityLimits) -> None:
        """Put a scheduled action; its clock begins in 1970."""
        time = datetime.fromtimestamp(limits.at, UTC)
        scaling(*self.place).actions[self.key, f"at {limits.at}"] = {
            "Schedule": f"at({time:%Y-%m-%dT%H:%M:%S})",
            "ScalableTargetAction": {"MinCapacity": limits.minimum, "MaxCapacity": limits.maximum},
        }

    def move(
        self, place: Any, resource: str, count: int, ended: Callable[[str | None], None]
    ) -> bool:
        """Take instances away at once, and let new ones serve at the end of the update."""
        self.variant["DesiredInstanceCount"] = count
        self.endpoint["EndpointStatus"] = "Updating"
        out = count > self.serving
        if not out:
            self.serving = count

        def end() -> None:
            self.serving = count
            self.endpoint["EndpointStatus"] = "InService"
            ended(None)

        takes = self.policy.instance_seconds if out else self.policy.scale_in_seconds
        self.at(self.now + takes, end)
        return True

    def at(self, time: float, action: Callable[[], None]) -> None:
        heapq.heappush(self.agenda, (time, next(_numbers), action))

    def request(self) -> None:
        self.meter.count(self.place, self.dimensions, self.now, self.serving, 200, 1000, 0)

    def tick(self) -> None:
        """What the runtime does every ten seconds: silence, metrics, alarms, policies."""
        if self.now % MINUTE == 0:
            zeros = [
                {"MetricName": name, "Unit": "None", "Value": 0.0}
                for name in ("Invocations", "InvocationsPerInstance")
            ]
            begin = self.now - MINUTE
            self.meter.put(self.place, INVOCATIONS, self.dimensions[0], begin, zeros)
            self.meter.flush()
            evaluation.evaluate(as_moment(self.now))
        self.tracking.act(self.place, self.now)
        self.at(self.now + TICK, self.tick)

    def run_to(self, time: float) -> None:
        while self.agenda[0][0] <= time:
            self.now, _, action = heapq.heappop(self.agenda)
            action()
        self.now = time

    def remove(self) -> None:
        state = scaling(*self.place)
        local_scaling.drop_alarms(self.place, state.policies.pop((self.key, "track")))
        del state.targets[self.key]
        state.actions.clear()
        del hosting(*self.place).endpoints[self.key[1].split("/")[1]]


def emulated(minutes: list[int], policy: TargetTracking, instances: int = 1) -> Counts:
    local = LocalScaling(policy, instances)
    for limits in policy.limits:
        local.schedule(limits)
    for time in arrivals(minutes):
        local.at(time, local.request)
    local.at(TICK, local.tick)
    counts = Counts()
    for number in range(len(minutes)):
        local.run_to(number * MINUTE + 32.0)
        counts.desired.append(local.variant["DesiredInstanceCount"])
        counts.serving.append(local.serving)
    local.remove()
    return counts


# --- the same in every minute -------------------------------------------------------------------

#: Requests in each minute. The first minutes fit the instance that is there.
SHAPES = {
    "step": [5] * 5 + [30] * 25 + [5] * 30,
    "silence": [5] * 5 + [40] * 15 + [0] * 30,
    "ramp": [5] * 5 + [5 + 2 * minute for minute in range(35)] + [75] * 15,
    "wave": [20, 26, 32, 38, 42, 46, 42, 38, 32, 26, 20, 14, 9, 5, 3, 2, 3, 5, 9, 14] * 3,
    "spike": [5] * 5 + [42] * 4 + [5] * 40,
    "double step": [5] * 5 + [20] * 12 + [60] * 42,
    "double step of equal size": [5] * 5 + [24] * 12 + [42] * 43,
    "down and up": [60] * 25 + [20] * 22 + [60] * 25,
}
COOLDOWNS = (0.0, 60.0, 300.0, 1200.0)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("cooldown", COOLDOWNS)
def test_the_simulator_and_the_local_aws_scale_alike(shape: str, cooldown: float) -> None:
    policy = replace(POLICY, scale_out_cooldown=cooldown)
    paper = simulated(SHAPES[shape], policy)
    local = emulated(SHAPES[shape], policy)
    assert paper == local
    assert len(set(paper.desired)) > 1, "it scales at all"


#: What a scheduled action sets at a time: above what the load needs, below it, and back.
SCHEDULE = (
    CapacityLimits(at=600.0, minimum=8, maximum=12),
    CapacityLimits(at=1500.0, minimum=1, maximum=2),
    CapacityLimits(at=2400.0, minimum=1, maximum=12),
)


@pytest.mark.parametrize("cooldown", COOLDOWNS)
def test_limits_move_both_at_once(cooldown: float) -> None:
    policy = replace(POLICY, scale_out_cooldown=cooldown, limits=SCHEDULE)
    minutes = [25] * 60
    paper = simulated(minutes, policy, instances=5)
    assert paper == emulated(minutes, policy, instances=5)
    assert paper.desired[9] == 5
    assert paper.desired[10] == 8  # at 600 s, whatever the load says
    assert paper.desired[25] == 2


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[int], TargetTracking, int]:
    levels = draw(
        st.lists(st.tuples(st.integers(0, 80), st.integers(1, 18)), min_size=2, max_size=6)
    )
    minutes = [requests for requests, length in levels for _ in range(length)]
    minutes += [draw(st.integers(0, 80)) for _ in range(draw(st.integers(0, 15)))]
    instances = draw(st.integers(1, 4))
    # No update, nor one after the other, ends in the moment of a tick: who comes first is open then.
    starts = st.integers(0, 60).map(lambda number: 10.0 * number + 5.137)
    times = draw(st.lists(st.integers(1, 50), max_size=3, unique=True))
    limits = []
    for time in sorted(times):
        minimum = draw(st.integers(1, 6))
        maximum = minimum + draw(st.integers(0, 8))
        limits.append(CapacityLimits(60.0 * time, minimum, maximum))
    policy = replace(
        POLICY,
        maximum=draw(st.integers(4, 16)),
        scale_out_cooldown=draw(st.sampled_from([0.0, 60.0, 130.0, 300.0, 1200.0])),
        scale_in_cooldown=draw(st.sampled_from([0.0, 60.0, 300.0, 1200.0])),
        instance_seconds=draw(starts),
        scale_in_seconds=draw(starts),
        limits=tuple(limits),
    )
    return [*minutes, 1, 1], policy, instances


@settings(max_examples=examples(60))
@given(cases())
def test_any_traffic_is_followed_alike(case: tuple[list[int], TargetTracking, int]) -> None:
    minutes, policy, instances = case
    assert simulated(minutes, policy, instances) == emulated(minutes, policy, instances)


# --- the whole local AWS ------------------------------------------------------------------------


def served_by_the_local_aws(minutes: list[int], policy: TargetTracking) -> list[int]:
    """The instances desired in the middle of each minute, of an endpoint with real requests."""
    options = RuntimeOptions(clock_speed=0.0, provision_time=policy.instance_seconds, seed=1)
    with LocalAws.in_process(model_servers={"model": taking(0.0)}, runtime=options) as aws:
        site = Site(aws)
        name = site.endpoint(wait=False)
        aws.advance(policy.instance_seconds)
        site.settled(name)
        scaled = Scaled(site, f"endpoint/{name}/variant/primary")
        scaled.register(policy.minimum, policy.maximum)
        scaled.track(
            policy.target,
            "VariantInvocationsPerInstance",
            ScaleOutCooldown=int(policy.scale_out_cooldown),
            ScaleInCooldown=int(policy.scale_in_cooldown),
        )
        counts = [1]
        ends = -1  # the minute in which new instances come into service
        for number, requests in enumerate(minutes):
            aws.advance(BURSTS[0])
            site.invoke_many(name, requests // 2, at_once=2)
            aws.advance(BURSTS[1] - BURSTS[0])
            site.invoke_many(name, requests - requests // 2, at_once=2)
            aws.advance(TICK)
            if number == ends:
                site.settled(name)
            aws.advance(MINUTE - TICK - BURSTS[1])
            if number + 1 == len(minutes):
                break
            described = site.described(name)["ProductionVariants"][0]
            counts.append(described["DesiredInstanceCount"])
            if counts[-1] > counts[-2]:
                ends = number + math.ceil(policy.instance_seconds / MINUTE)
            elif counts[-1] < counts[-2]:
                site.settled(name)
        site.delete()
        return counts


@pytest.mark.parametrize("shape", ["ramp", "spike"])
def test_the_running_local_aws_scales_alike(shape: str) -> None:
    """There scale-in is no update that takes time."""
    minutes = SHAPES[shape][:40]
    policy = replace(POLICY, scale_out_cooldown=600.0, scale_in_seconds=0.0)
    assert served_by_the_local_aws(minutes, policy) == simulated(minutes, policy).desired


# --- the plan -----------------------------------------------------------------------------------


def followed(serving: list[int], minutes: list[int], lag: float) -> None:
    """In each minute serve as many as the load needed that long before."""
    for number, count in enumerate(serving):
        before = max(0, math.floor(number - lag / MINUTE))
        assert count * TARGET >= minutes[before], f"minute {number}: {count} for {minutes[before]}"


@settings(max_examples=examples(30))
@given(
    steps=st.lists(st.integers(0, 3), min_size=10, max_size=50),
    start=st.integers(1, 60).map(lambda number: 10 * number + 5),
    cooldown=st.sampled_from([0, 60, 130, 300, 600, 1200]),
)
def test_the_plans_lag_bounds_that_of_both_on_any_rise(
    steps: list[int], start: int, cooldown: int
) -> None:
    """Without a delay of the metric, as both are here: the plan counts one."""
    lag = rise_seconds(start, cooldown) - METRIC_DELAY_SECONDS
    minutes = [6] * 5
    for step in steps:
        minutes.append(minutes[-1] + step)
    policy = replace(
        POLICY, maximum=99, scale_out_cooldown=float(cooldown), instance_seconds=float(start)
    )
    followed(simulated(minutes, policy).serving, minutes, lag)
    followed(emulated(minutes, policy).serving, minutes, lag)


@pytest.mark.parametrize("cooldown", COOLDOWNS)
@pytest.mark.parametrize("load", [12, 30, 70])
def test_the_plans_jump_is_when_both_serve_it(load: int, cooldown: float) -> None:
    """A fleet at rest makes one scale-out of it, which no cooldown holds back."""
    start = 295
    minutes = [6] * 5 + [load] * 20
    policy = replace(POLICY, scale_out_cooldown=cooldown, instance_seconds=float(start))
    served = 5 * MINUTE + jump_seconds(start) - METRIC_DELAY_SECONDS
    for counts in (simulated(minutes, policy), emulated(minutes, policy)):
        enough = [number for number, count in enumerate(counts.serving) if count * TARGET >= load]
        first = enough[0] * MINUTE  # seen in the middle of the minute
        assert served - MINUTE <= first <= served + MINUTE


def test_both_programs_have_the_same_rules() -> None:
    assert inspect.getsource(scaling_rules) == inspect.getsource(local_rules)
