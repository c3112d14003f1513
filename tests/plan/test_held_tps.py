"""What one instance of a language model holds is one value: all of the plan counts with it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from low_latency_endpoint.options.latency_target import LatencyTarget
from low_latency_endpoint.options.load import TokenTraffic
from low_latency_endpoint.options.scaling import InstanceCounts, ScalingOptions
from low_latency_endpoint.options.throughput import MeasuredThroughput, PeakAtTime
from low_latency_endpoint.plan.plan import CONCURRENCY_METRIC, Plan

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
    plan = chat(
        hub=served(model, instance_type),
        images=[],
        instance_type=instance_type,
        tokens=tokens,
        throughput=measured,
        scaling=scaling,
        latency=LatencyTarget(ttft_p95=ms(1000)),  # no target that the floor between tokens refuses
    )
    naive = Naive(plan, measured)
    assert plan.held_tps == (naive.limit, naive.planned)
    assert plan.fleet.at_peak == naive.at_peak(measured.peak_tps)
    assert plan.fleet.minimum == naive.minimum(measured)
    for standing in plan.under_load:
        assert standing.measured
        peak = standing.measured.peak_tps
        assert standing.fleet.at_peak == naive.at_peak(peak)
        assert standing.tps_after_zone_outage == naive.limit * standing.left_by_zone_outage
        if standing.label and plan.scaling:
            assert standing.fleet.minimum == naive.minimum(standing.measured)
        if exact(peak) > HELD * naive.limit * standing.left_by_zone_outage:
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
