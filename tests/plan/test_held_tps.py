"""What one instance of a language model holds is one value: all of the plan counts with it."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.options.latency_target import LatencyTarget
from low_latency_endpoint.options.load import TokenLengths, TokenTraffic
from low_latency_endpoint.options.scaling import InstanceCounts, ScalingOptions
from low_latency_endpoint.options.throughput import MeasuredThroughput, PeakAtTime
from low_latency_endpoint.plan.hub_serving import HubModel, hub_serving
from low_latency_endpoint.plan.plan import Plan
from low_latency_endpoint.plan.scaling_policy import CONCURRENCY_METRIC

from .pinned_models import GPT_OSS_20B, MISTRAL_7B
from .test_token_plan import QWEN3_8B, chat, ms, served, warned

RISES: tuple[dict[str, float], ...] = ({}, {"from_tps": 1.0}, {"rise_tps_per_minute": 0.3})
HELD = Fraction(9, 10)  # of a limit that counts as held
SERVED = (
    (MISTRAL_7B, "ml.g5.xlarge"),
    (MISTRAL_7B, "ml.g6e.xlarge"),
    (QWEN3_8B, "ml.g5.xlarge"),
    (QWEN3_8B, "ml.g6.xlarge"),
    (QWEN3_8B, "ml.g6e.12xlarge"),
    (GPT_OSS_20B, "ml.g6.2xlarge"),
)


def exact(number: float) -> Fraction:
    return Fraction(str(number))


def up(number: Fraction) -> int:
    return math.ceil(number)


class Naive:
    """The same numbers by division of what was drawn, with the cache's room as the plan shows it."""

    def __init__(self, plan: Plan, measured: MeasuredThroughput) -> None:
        tps = exact(measured.tps_per_instance)
        in_flight = exact(measured.concurrency_per_instance or 0)
        room = plan.explanation["requests_in_kv_cache"].value
        call_seconds = in_flight / tps
        self.limit = min(tps, room / call_seconds)
        self.planned = min(self.limit, tps * exact(measured.safety_factor))
        self.zones = len(plan.request.client_zones)
        self.lag = exact(plan.request.rise_seconds) / 60

    def at_peak(self, peak: float) -> int:
        return max(up(exact(peak) / self.planned), self.zones)

    def minimum(self, measured: MeasuredThroughput) -> int:
        peak = exact(measured.peak_tps)
        jump = up(peak / (self.limit * HELD))
        if measured.from_tps is not None:
            kept = up(exact(measured.from_tps) / self.planned)
            return max(self.zones, 1 if kept >= jump else jump)
        if measured.rise_tps_per_minute is None:
            return self.zones
        reserve = self.limit - self.planned
        if not reserve:
            return max(self.zones, jump)
        comes = exact(measured.rise_tps_per_minute) * self.lag
        return max(self.zones, min(jump, up(comes / reserve)))


LOADS = st.builds(
    lambda **numbers: MeasuredThroughput(**numbers.pop("rise"), **numbers),
    peak_tps=st.integers(2, 90).map(float),
    tps_per_instance=st.integers(5, 200).map(lambda tenths: tenths / 10),
    safety_factor=st.integers(10, 100).map(lambda hundredths: hundredths / 100),
    concurrency_per_instance=st.integers(1, 256).map(float),
    rise=st.sampled_from(RISES),
    peaks=st.sampled_from([{}, {"night": PeakAtTime(tps=120, start="22:00", end="06:00")}]),
)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(
    measured=LOADS,
    kind=st.sampled_from(SERVED),
    tokens=st.builds(TokenTraffic, input=st.integers(1, 5000), output=st.integers(1, 2000)),
    by_invocations=st.booleans(),
)
def test_all_that_counts_instances_reads_one_value(
    measured: MeasuredThroughput, kind: Any, tokens: TokenTraffic, by_invocations: bool
) -> None:
    model, instance_type = kind
    scaling = ScalingOptions(metric="invocations") if by_invocations else ScalingOptions()
    try:
        plan = chat(
            hub=served(model, instance_type),
            images=[],
            instance_type=instance_type,
            tokens=tokens,
            throughput=measured,
            scaling=scaling,
            latency=LatencyTarget(ttft_p95=ms(1000)),  # no target that the floor refuses
        )
    except ConfigurationError as error:
        assume(error.code != "LLE113")  # more instances than a subnet can hold
        raise
    naive = Naive(plan, measured)
    assert plan.held_tps is not None
    assert (plan.held_tps.limit, plan.held_tps.planned) == (naive.limit, naive.planned)
    assert plan.fleet.at_peak == naive.at_peak(measured.peak_tps)
    assert plan.fleet.minimum == naive.minimum(measured)
    for standing in plan.under_load:
        assert standing.measured
        peak = standing.measured.peak_tps
        assert standing.fleet.at_peak == naive.at_peak(peak)
        left = standing.left_by_zone_outage(standing.serving_at_peak)
        outage = standing.zone_outage(standing.serving_at_peak)
        assert (outage.held if outage else 0) == naive.limit * left
        if standing.label and plan.scaling:
            there_before = max(naive.at_peak(peak), naive.minimum(standing.measured))
            assert standing.fleet.minimum == there_before
        if left and exact(peak) > HELD * naive.limit * left:
            assert warned(plan, "zone-outage")
    jumps = [
        exact(standing.measured.peak_tps) > HELD * naive.limit * standing.fleet.minimum
        for standing in plan.under_load
        if standing.measured and not standing.measured.states_rises
    ]
    assert (warned(plan, "jumps-unknown") is not None) == (any(jumps) and plan.scaling is not None)
    assert (warned(plan, "no-reserve") is not None) == (naive.planned > HELD * naive.limit)
    if plan.scaling and plan.scaling.metric == CONCURRENCY_METRIC:
        in_flight = exact(measured.concurrency_per_instance or 0)
        call_seconds = in_flight / exact(measured.tps_per_instance)
        assert exact(plan.scaling.target) == pytest.approx(naive.planned * call_seconds)
    elif plan.scaling:
        assert plan.scaling.target == pytest.approx(60 * naive.planned)


#: Two of job 13, by hand: Qwen3-8B with 2,098 tokens a request has room for 13 on a g5. 30 in flight
#: at 2.5 a second are calls of 12 s, so 13 in flight are 13 / 12 = 1.083 a second.
JOB = MeasuredThroughput(
    peak_tps=18, tps_per_instance=2.5, safety_factor=0.7, concurrency_per_instance=30
)
REQUESTS = TokenTraffic(input=1569, output=529)


def job(**stated: Any) -> Plan:
    hub = served(QWEN3_8B, "ml.g5.xlarge")
    return chat(**{"hub": hub, "images": [], "tokens": REQUESTS, "throughput": JOB, **stated})


def test_a_zone_outage_leaves_what_the_cache_holds() -> None:
    plan = job()
    assert plan.room == 13
    # 18 x 12 = 216 in flight / 13 = 16.6; of 17 the fuller zone has 9, and 8 x 13 / 12 = 8.67.
    assert plan.fleet.at_peak == 17
    text = str(warned(plan, "zone-outage"))
    assert "8 of 17 instances remain (8.66" in text
    assert "208%" in text  # 216 of 8 x 13


def test_a_target_that_fills_the_cache_leaves_no_reserve_for_a_rise() -> None:
    rising = MeasuredThroughput(
        peak_tps=18,
        tps_per_instance=2.5,
        safety_factor=0.7,
        concurrency_per_instance=30,
        rise_tps_per_minute=0.3,
    )
    # Nothing is in reserve, so as for a jump: 18 / (0.9 x 13 / 12) = 18.5.
    assert job(throughput=rising).fleet.minimum == 19
    # 0.9 x 13 / 30 = 0.39
    text = str(warned(job(), "no-reserve"))
    assert "100% of the requests" in text
    assert "13; only 90% is safe. Lower the safety factor to 0.39" in text


def test_a_maximum_is_compared_with_what_the_cache_needs() -> None:
    plan = job(instances=InstanceCounts(max=16), scaling=ScalingOptions(metric="invocations"))
    text = str(warned(plan, "maximum-below-peak"))
    assert "the maximum of 16 instances is below the 17" in text
    assert plan.scaling.target == 65  # 60 x 13 / 12


# --- numbers that no memory is fast enough for


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(
    tps=st.integers(1, 200).map(lambda tenths: tenths / 10),
    in_flight=st.integers(1, 256).map(float),
    types=st.sampled_from(
        [("ml.g6.xlarge",), ("ml.g5.xlarge", "ml.g6e.xlarge"), ("ml.g6e.12xlarge",)]
    ),
    tokens=st.builds(TokenTraffic, input=st.integers(1, 3000), output=st.integers(1, 2000)),
)
def test_measured_calls_below_a_floor_are_told(
    tps: float, in_flight: float, types: tuple[str, ...], tokens: TokenTraffic
) -> None:
    model = HubModel(pinned=replace(QWEN3_8B, license="mit"))
    measured = MeasuredThroughput(
        peak_tps=18, tps_per_instance=tps, concurrency_per_instance=in_flight
    )
    plan = chat(
        hub=hub_serving(model, types),
        images=[],
        instance_type=types[0],
        tokens=tokens,
        throughput=measured,
        latency=LatencyTarget(ttft_p95=ms(1000)),
    )
    # Of two bytes each: 8,190,735,360 parameters without an embedding of 151,936 x 4,096.
    read = 2 * (8_190_735_360 - 151_936 * 4096)
    bandwidth = {
        "ml.g6.xlarge": 300,
        "ml.g5.xlarge": 600,
        "ml.g6e.xlarge": 864,
        "ml.g6e.12xlarge": 3456,
    }
    call_seconds = in_flight / tps
    least = {name: (tokens.output - 1) * read / bandwidth[name] / 1e9 for name in types}
    below = [name for name in types if least[name] > call_seconds]
    warning = warned(plan, "contradiction-floor")
    assert (warning is not None) == bool(below)
    if below:
        assert all((f"on {name}" in str(warning)) == (name in below) for name in types)
        assert plan.tokens
        at_once = min(in_flight * 0.5, plan.tokens.room or math.inf)
        needed = math.ceil(18 * max(least[name] for name in below) / at_once)
        assert f"needs at least {needed:,} instance" in str(warning)


def test_the_numbers_of_a_faster_type_are_told_with_what_this_one_needs() -> None:
    plan = job(
        hub=served(QWEN3_8B, "ml.g6.xlarge"),
        instance_type="ml.g6.xlarge",
        latency=LatencyTarget(itl_p95=ms(60)),
        tokens=TokenTraffic(input=1569, output=TokenLengths(p50=250, p95=800)),
    )
    # 12 s for 320 gaps are 37.5 ms; 15.14 GB / 300 GB/s are 50.5. 13 at once of 16.2 s are 0.804 a
    # second, and 18 / 0.804 = 22.4.
    text = str(plan.explanation.warnings[0])
    assert "12 s a call" in text
    assert "37.5 ms a token" in text
    assert "50.5 ms on ml.g6.xlarge" in text
    assert "a peak of 18 TPS needs at least 23 instances" in text
