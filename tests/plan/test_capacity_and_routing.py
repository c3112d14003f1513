"""Worked numbers of capacity, measured throughput, routing strategies, guardrail exclusions."""

from __future__ import annotations

from dataclasses import fields
from decimal import Decimal
from fractions import Fraction

import botocore.session
import pytest
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.facts.deployments import takes_guardrails
from low_latency_endpoint.facts.limits import (
    ROUTING_STRATEGY,
    SAFETY_FACTOR,
    SCALING_TARGET,
    TPS_PER_INSTANCE,
)
from low_latency_endpoint.options.throughput import (
    MeasuredThroughput,
    PeakAtTime,
    instances_at_peak,
    invocations_target,
)
from low_latency_endpoint.options.variant import RoutingStrategy
from low_latency_endpoint.plan.routing import recommend_routing
from tests.refusals import refused


@pytest.mark.parametrize(
    ("peak", "tps", "factor", "zones", "instances"),
    [
        (1000, 200, 1.0, 2, 5),  # the load-testing article: 200 TPS on one ml.m5.12xlarge
        (1000, 200, 0.65, 2, 8),  # 7.69, never rounded down
        (1000, 200, 0.5, 2, 10),
        (130, 200, 0.65, 2, 2),
        (131, 200, 0.65, 1, 2),  # 1.008 rounds up to 2
        (1, 200, 0.5, 2, 2),
        (1, 200, 0.5, 1, 2),  # at least two, in one zone too
        (1, 200, 0.5, 4, 4),  # at least one per zone
        (2.1, 0.7, 1.0, 2, 3),  # 3.0000000000000004 in floating point: one instance too many
        (63, 3, 0.7, 2, 30),  # 30.000000000000004
        (420, 3, 0.7, 2, 200),  # 200.00000000000003
        (0.3, 0.1, 1.0, 2, 3),  # 2.9999999999999996
    ],
)
def test_instances_at_peak(
    peak: float, tps: float, factor: float, zones: int, instances: int
) -> None:
    assert instances_at_peak(peak, tps, factor, zones) == instances


@given(
    st.decimals("0.01", "5000", places=2),
    st.decimals("0.01", "500", places=2),
    st.decimals("0.01", "1", places=2),
)
def test_instances_are_exactly_enough(peak, tps, factor):
    instances = instances_at_peak(float(peak), float(tps), float(factor), 2)
    each = Fraction(tps) * Fraction(factor)
    assert instances * each >= Fraction(peak)
    assert instances == 2 or (instances - 1) * each < Fraction(peak)


@pytest.mark.parametrize(
    ("tps", "factor", "target"),
    [(200, 1.0, 12000), (200, 0.65, 7800), (0.5, 0.7, 21), (33.3, 0.1, 199.8)],
)
def test_invocations_target(tps: float, factor: float, target: float) -> None:
    assert invocations_target(tps, factor) == target
    assert float(Decimal(str(tps)) * Decimal(str(factor)) * 60) == target


def test_client_zones_to_count_with() -> None:
    assert instances_at_peak(1, 200, 0.5, 16) == 16
    with refused("LLE365"):
        instances_at_peak(1, 200, 0.5, 17)


def test_zones_by_name_count_as_well() -> None:
    assert (
        MeasuredThroughput(peak_tps=1, tps_per_instance=200).instances_at_peak(["a", "b", "c"]) == 3
    )


def test_measured_throughput_of_the_article() -> None:
    measured = MeasuredThroughput(peak_tps=1000, tps_per_instance=200, safety_factor=0.65)
    assert measured.target_invocations_per_instance == 7800
    assert measured.instances_at_peak(2) == 8
    assert MeasuredThroughput(peak_tps=1000, tps_per_instance=200).safety_factor == 0.5


@pytest.mark.parametrize(
    ("from_tps", "peak"),
    [(0, 1000), (0.5, 1000), (999.5, 1000), (1000, 1000), (1000, float("1e3"))],
)
def test_traffic_jumps_to_the_peak_from_any_rate_up_to_it(from_tps: float, peak: float) -> None:
    measured = MeasuredThroughput(peak_tps=peak, tps_per_instance=200, from_tps=from_tps)
    assert measured.from_tps == from_tps
    assert measured.states_rises


def test_traffic_does_not_jump_to_less() -> None:
    with refused("LLE607", got="1000.5 with a peak of 1000", allowed="0 to 1000"):
        MeasuredThroughput(peak_tps=1000, tps_per_instance=200, from_tps=1000.5)


NUMBERS = [each.name for each in fields(MeasuredThroughput) if each.name != "peaks"]


@pytest.mark.parametrize("name", NUMBERS)
def test_no_number_of_the_throughput_is_left_to_cloudformation(name: str) -> None:
    """The plan counts with each of them, so LLE825 as documented."""
    token = -1.8881545897087503e289  # as the CDK encodes numbers that CloudFormation knows
    with refused("LLE825"):
        MeasuredThroughput(**{"peak_tps": 1000, "tps_per_instance": 200, name: token})
    with refused("LLE825"):
        PeakAtTime(tps=token, start="22:00", end="06:00")


def test_a_rise_is_a_jump_or_so_much_a_minute() -> None:
    stated = {"peak_tps": 1000, "tps_per_instance": 200}
    assert not MeasuredThroughput(**stated).states_rises
    assert MeasuredThroughput(**stated, rise_tps_per_minute=0).states_rises
    with refused("LLE609", got="from_tps 1 and rise_tps_per_minute 2", allowed="one of the two"):
        MeasuredThroughput(**stated, from_tps=1, rise_tps_per_minute=2)


def test_scaling_takes_the_target_of_every_rate() -> None:
    rates, factors = TPS_PER_INSTANCE, SAFETY_FACTOR
    for rate, factor in ((rates.minimum, factors.minimum), (rates.maximum, factors.maximum)):
        assert SCALING_TARGET.holds(invocations_target(rate, factor))
    with refused("LLE603"):
        invocations_target(1e200, 1.0)


def test_strategies_are_those_of_the_api() -> None:
    model = botocore.session.get_session().get_service_model("sagemaker")
    # KV_AWARE is not in CloudFormation.
    assert {*ROUTING_STRATEGY.values, "KV_AWARE"} == set(model.shape_for("RoutingStrategy").enum)


@pytest.mark.parametrize(
    ("generative", "says"), [(False, "may benefit more from RANDOM"), (True, "behind long ones")]
)
def test_recommended_routing(generative: bool, says: str) -> None:
    advice = recommend_routing(generative=generative)
    assert advice.value == "LEAST_OUTSTANDING_REQUESTS"
    assert says in advice.reason
    assert advice.source.startswith("https://aws.amazon.com/")


@pytest.mark.parametrize(
    ("strategy", "settings", "code"),
    [
        ("FASTEST", {}, "LLE410"),
        ("KV_AWARE", {}, "LLE410"),
        ("PREFIX_AWARE", {}, "LLE423"),
        ("PREFIX_AWARE", {"prefix_length": 4096}, "LLE423"),
        ("RANDOM", {"prefix_length": 4096}, "LLE423"),
        ("PREFIX_AWARE", {"prefix_length": 100, "concurrency_threshold": 4}, "LLE411"),
        ("PREFIX_AWARE", {"prefix_length": 4096, "concurrency_threshold": 0}, "LLE412"),
    ],
)
def test_routing_that_cannot_be(strategy: str, settings: dict[str, int], code: str) -> None:
    with refused(code):
        RoutingStrategy(strategy, **settings)


def test_one_instance_has_nothing_to_choose() -> None:
    assert recommend_routing(instances=1).value == "LEAST_OUTSTANDING_REQUESTS"
    assert "one instance" in recommend_routing(instances=1).reason
    assert "one instance" not in recommend_routing(instances=2).reason


@pytest.mark.parametrize(
    ("instance_type", "takes"),
    [("ml.inf1.xlarge", False), ("ml.inf2.xlarge", True), ("ml.m5.xlarge", True)],
)
def test_guardrails_by_instance_type(instance_type: str, takes: bool) -> None:
    assert takes_guardrails(instance_type) is takes
