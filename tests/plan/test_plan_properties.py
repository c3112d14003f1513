"""Whatever the input: a plan whose invariants hold, or a coded error; nothing else."""

from __future__ import annotations

import inspect
import json
import math
from datetime import timedelta

from hypothesis import event, given, settings
from hypothesis import strategies as st

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.facts.instance_types import instance_types
from low_latency_endpoint.options.latency_target import LatencyTarget
from low_latency_endpoint.options.throughput import MeasuredThroughput
from low_latency_endpoint.options.variant import RoutingStrategy
from low_latency_endpoint.plan.endpoint_request import EndpointRequest
from low_latency_endpoint.plan.plan import Plan
from tests.depth import examples

from .conftest import planned

EXAMPLES = examples(300)

garbage = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.just([]),
    st.binary(max_size=3),
)
zones = st.lists(st.integers(1, 6).map("use1-az{}".format), min_size=2, max_size=6, unique=True)
durations = st.floats(0.01, 120_000).map(lambda value: timedelta(milliseconds=value))
tps = st.one_of(st.integers(1, 5000), st.floats(0.01, 5000))
counts = st.none() | st.integers(2, 60)
images = st.lists(
    st.sampled_from(
        [
            "pytorch-inference:2.6.0-cpu-py312-ubuntu22.04",
            "pytorch-inference:2.6.0-gpu-py312-cu124-ubuntu22.04",
            "djl-inference:0.29.0-neuronx-sdk2.19.1",
            "pytorch-inference-arm64:2.6.0-cpu-py312-ubuntu22.04",
            "vllm:0.30.0-gpu-py312-cu130-ubuntu24.04-sagemaker",
            "my/own:1",
        ]
    ),
    max_size=2,
)
STATISTICS = ["p50", "p90", "p95", "p99", "p99_9", "average"]


@st.composite
def latency_targets(draw):
    names = sorted(draw(st.sets(st.sampled_from(STATISTICS), min_size=1)), key=STATISTICS.index)
    times = sorted(draw(st.lists(durations, min_size=len(names), max_size=len(names))))
    share = draw(st.none() | st.floats(0.01, 0.9))
    return LatencyTarget(**dict(zip(names, times, strict=True)), overhead_share=share)


plausible = st.fixed_dictionaries(
    {
        "client_zones": zones,
        "instance_type": st.one_of(
            st.sampled_from(sorted(instance_types())), st.just("ml.new9.xlarge")
        ),
        "latency": st.none() | latency_targets(),
        "throughput": st.none()
        | st.builds(
            MeasuredThroughput, peak_tps=tps, tps_per_instance=tps, safety_factor=st.floats(0.01, 1)
        ),
    },
    optional={
        "images": images,
        "routing": st.sampled_from(
            [None, RoutingStrategy.RANDOM, RoutingStrategy.LEAST_OUTSTANDING_REQUESTS]
        ),
        "min_instances": counts,
        "initial_instances": counts,
        "max_instances": counts,
        "scale_out_cooldown": st.none()
        | st.integers(0, 900).map(lambda seconds: timedelta(seconds=seconds)),
        "warm_up_requests": st.none() | st.integers(0, 10**6),
        "payload_bytes": st.none() | st.integers(0, 26_214_400),
        "streaming": st.booleans(),
    },
)
LEFT_OUT = {*("scaling", "tokens", "metrics_server", "share", "serving", "streaming", "instances")}
arguments = sorted(
    inspect.signature(EndpointRequest).parameters.keys() - LEFT_OUT
    | {"instance_type", "images", "inference_ami"}
    | {"min_instances", "initial_instances", "max_instances"}
    | {"scale_out_cooldown", "scale_in_cooldown"}
)


def attempt(**chosen) -> Plan | ConfigurationError:
    """The plan, or the error with a code; any other exception fails the test."""
    try:
        made = planned(**chosen)
    except ConfigurationError as error:
        event(error.code)
        return error
    event("a plan")
    return made


def check_invariants(plan: Plan, given_: dict) -> None:
    why = plan.explanation
    value = {decision.name: decision.value for decision in why}
    zone_count = len(given_["client_zones"])
    low, first, high = (value[f"{name}_instances"] for name in ("min", "initial", "max"))

    stated_counts = [
        count
        for name in ("min_instances", "initial_instances", "max_instances")
        if (count := given_.get(name)) is not None
    ]
    assert min([max(zone_count, 2), *stated_counts]) <= low <= first <= high
    assert value["addresses_per_subnet"] >= 2 * high * 2 + 5 + 1
    assert 2 ** (32 - int(value["subnet_size"][1:])) >= value["addresses_per_subnet"]
    assert 0 <= value["instances_left_by_zone_outage"] < high
    assert 0 < value["caller_keepalive"] < 350
    assert len(value["subnets"]) == zone_count

    latency, measured = given_["latency"], given_["throughput"]
    if latency is None or plan.request.is_rare:
        assert plan.alarms == ()
    else:
        for statistic, target in latency.milliseconds.items():
            assert 0 < plan.thresholds("ModelLatency")[statistic] <= target
        assert 0 < plan.thresholds("OverheadLatency")["Average"] <= latency.tightest[1]
    for decision in why:
        if "metric" in decision.inputs:
            microseconds = decision.inputs["threshold in microseconds"]
            assert math.isclose(microseconds, decision.value * 1000, rel_tol=1e-12)
    if measured is not None:
        assert value["instances_at_peak"] * measured.tps_per_instance * measured.safety_factor >= (
            measured.peak_tps * (1 - 1e-12)
        )
        if value["scaling_metric"]:
            assert low < high
            assert 0 < value["scaling_target"] <= measured.tps_per_instance * 60 * (1 + 1e-12)
    assert len({warning.id for warning in why.warnings}) == len(why.warnings)
    assert json.loads(why.to_json()) == why.to_dict()
    rows = [line for line in why.to_markdown().splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + len(why)


@given(plausible)
@settings(max_examples=EXAMPLES)
def test_a_plan_holds_or_an_error_has_a_code(chosen):
    made = attempt(**chosen)
    if isinstance(made, Plan):
        check_invariants(made, chosen)
    else:
        images_on_types = {f"LLE{number}" for number in range(330, 337)}
        counts = {"LLE113", "LLE621", "LLE624", "LLE625"}
        assert made.code in images_on_types | counts, str(made)


@given(plausible, st.dictionaries(st.sampled_from(arguments), garbage, min_size=1, max_size=3))
@settings(max_examples=EXAMPLES)
def test_garbage_gives_a_coded_error_or_a_plan(chosen, changes):
    made = attempt(**(chosen | changes))
    if isinstance(made, Plan):
        check_invariants(made, chosen | changes)
    else:
        assert made.code.startswith("LL")
        assert made.fix


@given(plausible)
@settings(max_examples=examples(100))
def test_the_same_input_gives_the_same_plan(chosen):
    first, second = attempt(**chosen), attempt(**chosen)
    if isinstance(first, Plan):
        assert first == second
        assert first.explanation.to_json() == second.explanation.to_json()
    else:
        assert str(first) == str(second)
