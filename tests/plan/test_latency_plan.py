"""Worked plans, overrides, and mistakes caught before the deploy."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest

from low_latency_endpoint.options.latency_target import LatencyTarget
from low_latency_endpoint.options.throughput import MeasuredThroughput
from low_latency_endpoint.options.variant import RoutingStrategy
from low_latency_endpoint.plan.decisions import Explanation
from low_latency_endpoint.plan.plan import Plan
from tests.refusals import refused

from .conftest import planned

ZONES = ("use1-az1", "use1-az2")
CPU_IMAGE = "huggingface-pytorch-inference:2.6.0-transformers4.49.0-cpu-py312-ubuntu22.04"
CUDA_13_AMI = "al2023-ami-sagemaker-inference-gpu-4-1"
LLM_IMAGE = "vllm:0.30.0-gpu-py312-cu130-ubuntu24.04-sagemaker"


def ms(value: float) -> timedelta:
    return timedelta(milliseconds=value)


def distilbert(**changes: Any) -> Plan:
    settings: dict[str, Any] = {
        "client_zones": ZONES,
        "instance_type": "ml.m5.12xlarge",
        "images": [CPU_IMAGE],
        "latency": LatencyTarget(p99=ms(200)),
        "throughput": MeasuredThroughput(
            peak_tps=1000, tps_per_instance=200, safety_factor=0.65, rise_tps_per_minute=10
        ),
    }
    return planned(**(settings | changes))


def explained(**changes: Any) -> Explanation:
    return distilbert(**changes).explanation


def test_the_article_with_reserve() -> None:
    plan = explained()
    values = {decision.name: decision.value for decision in plan}
    assert values == {
        "subnets": ["use1-az1", "use1-az2"],
        "addresses_per_subnet": 2 * 16 * 2 + 5 + 1 + 16,
        "subnet_size": "/24",
        "zone_hops_caller_to_interface_endpoint": "0 to 1",  # AWS's pages disagree
        "zone_hops_interface_endpoint_to_instance": "0 to 1",
        "instance_type": "ml.m5.12xlarge",
        "routing_strategy": "LEAST_OUTSTANDING_REQUESTS",
        "instances_at_peak": 8,
        "min_instances": 2,
        "initial_instances": 8,
        "max_instances": 16,  # a lost zone is half of the fleet: twice 8
        "instances_left_by_zone_outage": 4,
        "scaling_metric": "SageMakerVariantInvocationsPerInstance",
        "scaling_target": 7800,
        "scale_out_cooldown": 60,
        "scale_in_cooldown": 300,
        "alarm_model_latency_p99": 160,
        "alarm_overhead_latency_average": 40,
        "alarm_error_rate": 1.0,
        "warm_up_requests": 4938,  # 384 workers: 384 x ln(384,000)
        "caller_keepalive": 60,
        "caller_connections": 200,  # 1000 TPS x 0.2 s
        "payload_limit": 6_291_456,
        "response_time_limit": 60,
    }


def test_the_article_at_saturation() -> None:
    plan = explained(
        throughput=MeasuredThroughput(peak_tps=1000, tps_per_instance=200, safety_factor=1.0)
    )
    assert plan["instances_at_peak"].value == 5
    assert plan["scaling_target"].value == 12000


def test_alarm_thresholds_are_in_both_units_and_part_the_target() -> None:
    plan = distilbert(latency=LatencyTarget(p50=ms(33.3), p99=ms(200), overhead_share=0.1))
    assert plan.thresholds("ModelLatency") == {"p50": 29.97, "p99": 180.0}
    assert plan.thresholds("OverheadLatency") == {"Average": 3.33}
    assert [each.microseconds for each in plan.alarms] == [29_970, 180_000, 3_330]
    decision = plan.explanation["alarm_model_latency_p50"]
    assert decision.inputs["threshold in microseconds"] == 29_970
    assert decision.overridden


def test_a_lost_zone_of_three_needs_half_as_many_again() -> None:
    plan = explained(client_zones=[*ZONES, "use1-az4"])
    assert plan["instances_at_peak"].value == 8
    assert plan["max_instances"].value == 12
    assert plan["instances_left_by_zone_outage"].value == 5  # 3 + 3 + 2, less 3


def test_the_maximum_is_at_least_half_as_many_again() -> None:
    plan = explained(client_zones=[*ZONES, "use1-az3", "use1-az4"])
    assert plan["instances_at_peak"].value == 8
    assert plan["max_instances"].value == 12  # a lost zone of four would need 11


@pytest.mark.parametrize("milliseconds", [1, 8, 99, 100, 2000])
def test_routing_is_one_answer_at_every_target(milliseconds: int) -> None:
    plan = distilbert(latency=LatencyTarget(p99=ms(milliseconds)))
    assert plan.routing == "LEAST_OUTSTANDING_REQUESTS"
    assert "low-latency compare-routing measures" in plan.explanation["routing_strategy"].note


SMALL = MeasuredThroughput(peak_tps=2, tps_per_instance=200)
AWS_DOUBTS = "responses up to hundreds of milliseconds may benefit more from RANDOM"


@pytest.mark.parametrize("milliseconds", [5, 9, 12, 30, 90, 200, 900])
def test_the_short_plan_says_up_to_where_aws_doubts_the_default(milliseconds: int) -> None:
    """AWS's line, "up to hundreds of milliseconds"; no warning has another."""
    plan = distilbert(latency=LatencyTarget(p99=ms(milliseconds)))
    assert AWS_DOUBTS in _assumed(plan)
    assert not [each for each in plan.explanation.warnings if "RANDOM" in each]


@pytest.mark.parametrize(
    "changes",
    [
        {"latency": LatencyTarget(p99=ms(1000))},
        {"streaming": True, "images": [LLM_IMAGE], "instance_type": "ml.g6e.2xlarge"},
        {"min_instances": 1, "max_instances": 1, "throughput": SMALL},
        {"routing": RoutingStrategy.RANDOM},
        {"routing": RoutingStrategy.LEAST_OUTSTANDING_REQUESTS},
    ],
    ids=["a second", "generated", "one instance", "chosen against it", "chosen"],
)
def test_the_short_plan_says_it_only_where_it_is_assumed(changes: dict[str, Any]) -> None:
    assert AWS_DOUBTS not in _assumed(distilbert(**changes))


def _assumed(plan: Plan) -> str:
    return next(line.text for line in plan.explanation.summary if line.title == "Assumed")


def test_one_instance_is_planned_and_said_to_be_no_reserve() -> None:
    """Two requests a second, 200 per instance; half of one instance would do."""
    small = MeasuredThroughput(peak_tps=2, tps_per_instance=200)
    plan = distilbert(throughput=small, min_instances=1, max_instances=1)
    assert (plan.fleet.at_peak, plan.fleet.minimum, plan.fleet.initial, plan.fleet.maximum) == (
        1,
        1,
        1,
        1,
    )
    assert plan.scaling is None
    assert "any strategy" in plan.routing_advice.reason
    [one] = [each for each in plan.explanation.warnings if "instance" in each.id]
    assert one.id == "one-instance"
    assert one.startswith("one instance: no other zone has one, so an outage of the instance")


@pytest.mark.parametrize("name", ["min_instances", "initial_instances", "max_instances"])
def test_a_stated_one_is_enough_to_begin_with_one(name: str) -> None:
    plan = distilbert(
        throughput=MeasuredThroughput(peak_tps=300, tps_per_instance=200, safety_factor=0.65),
        **{name: 1},
    )
    assert plan.fleet.minimum == 1
    # 300 / 130 = 2.3: the load needs three, whatever the floor is.
    assert plan.fleet.at_peak == 3
    ids = {each.id for each in plan.explanation.warnings}
    assert "one-instance" in ids
    assert ("maximum-below-peak" in ids) == (name == "max_instances")


def test_down_to_one_instance_where_it_scales() -> None:
    [text] = [
        str(each) for each in explained(min_instances=1).warnings if each.id == "one-instance"
    ]
    assert text.startswith("down to one instance at quiet hours")
    assert not [each for each in explained().warnings if each.id == "one-instance"]


def test_fewer_instances_than_zones_cost_a_hop() -> None:
    three = [*ZONES, "use1-az3"]
    ids = [each.id for each in explained(client_zones=three, min_instances=2).warnings]
    assert "zones-without-instance" in ids
    assert "zones-without-instance" not in {
        each.id for each in explained(client_zones=three).warnings
    }


def test_connections_of_all_callers_by_littles_law() -> None:
    found = distilbert(
        throughput=MeasuredThroughput(peak_tps=10_000, tps_per_instance=200, safety_factor=0.65)
    )
    assert found.caller_connections == 2000  # 10,000 a second, 200 ms each


def test_a_large_fleet_is_not_warmed_up_for_ever() -> None:
    found = distilbert(
        throughput=MeasuredThroughput(peak_tps=100_000, tps_per_instance=200, safety_factor=0.65)
    )
    assert found.warm_up_requests == 10_000


def test_the_largest_fleet_outside_of_updates() -> None:
    assert (distilbert().largest_fleet, distilbert(enabled=False).largest_fleet) == (16, 8)


def test_a_plan_of_other_arguments_is_refused() -> None:
    plan = distilbert()
    assert plan.checked_for(distilbert().request) is plan
    with refused("LLE808", got="another instance_type", where="Stack/Endpoint"):
        plan.checked_for(distilbert(instance_type="ml.m5.4xlarge").request, "Stack/Endpoint")


@pytest.mark.parametrize(
    ("zones", "measured", "left", "said"),
    [
        (2, (1000, 200, 0.65), 4, r"800 of 1,000 TPS\) .* at 125% of .* to 0.45, for 12 instances"),
        (
            2,
            (1000, 200, 0.5),
            5,
            r"1,000 of 1,000 TPS\) .* at 100% of .* to 0.45, for 12 instances",
        ),
        (2, (1000, 200, 0.45), 6, None),  # 1,000 of 1,200
        (
            3,
            (3000, 250, 0.65),
            12,
            r"3,000 of 3,000 TPS\) .* at 100% of .* to 0.56, for 22 instances",
        ),
        (3, (3000, 250, 0.6), 13, r"3,250 of 3,000 TPS\) .* at 92% of .* to 0.58, for 21"),
        (3, (3000, 250, 0.59), 14, None),
        (3, (3000, 250, 0.5), 16, None),
        (2, (900, 200, 0.46), 5, None),  # 90 % exactly
        (6, (1250, 250, 0.85), 5, r"1,250 of 1,250 TPS\) .* at 100% of .* to 0.71, for 8"),
    ],
)
def test_a_zone_outage_leaves_a_tenth_in_reserve_or_is_a_warning(zones, measured, left, said):
    ids = [f"use1-az{number}" for number in range(1, zones + 1)]
    peak, tps, factor = measured
    found = MeasuredThroughput(peak_tps=peak, tps_per_instance=tps, safety_factor=factor)
    # The peak's instances at all hours. With a lower factor they are the minimum of a larger fleet:
    # of 19 in three zones 12 are left, 0.9 x 12 / 19 = 0.568; of 20 13, 0.585; of 8 in 6 6, and 5 / 7 = 0.714.
    at_peak = found.instances_at_peak(zones)
    plan = explained(client_zones=ids, throughput=found, min_instances=at_peak)
    assert plan["instances_left_by_zone_outage"].value == left
    found = [str(each) for each in plan.warnings if each.id == "zone-outage"]
    assert (len(found), bool(said and re.search(said, found[0]))) == (bool(said), bool(said)), found


def test_a_peak_at_the_limit_itself_is_a_warning() -> None:
    for factor, warned in ((1.0, True), (0.9, False)):
        plan = explained(
            throughput=MeasuredThroughput(peak_tps=1000, tps_per_instance=200, safety_factor=factor)
        )
        assert any(each.id == "no-reserve" for each in plan.warnings) is warned


def test_without_throughput_the_fleet_is_assumed_and_does_not_scale() -> None:
    plan = explained(throughput=None)
    assert plan["instances_at_peak"].value == plan["min_instances"].value == 2
    assert plan["scaling_metric"].value is None
    assert "scaling_target" not in plan
    assert any("no measured throughput" in warning for warning in plan.warnings)


def test_without_target_there_are_no_alarms() -> None:
    plan = explained(latency=None)
    assert distilbert(latency=None).alarms == ()
    assert any("no latency target" in warning for warning in plan.warnings)


def test_overrides_are_marked_and_keep_the_rule_beside_them() -> None:
    plan = explained(
        min_instances=4,
        initial_instances=6,
        max_instances=20,
        routing=RoutingStrategy.RANDOM,
        scale_out_cooldown=timedelta(seconds=30),
        warm_up_requests=0,
    )
    assert {decision.name for decision in plan if decision.overridden} == {
        "instance_type",
        "min_instances",
        "initial_instances",
        "max_instances",
        "routing_strategy",
        "scale_out_cooldown",
        "warm_up_requests",
    }
    assert [
        plan[name].value
        for name in (
            "min_instances",
            "initial_instances",
            "max_instances",
            "scale_out_cooldown",
            "warm_up_requests",
        )
    ] == [4, 6, 20, 30, 0]
    assert "the rule would give LEAST_OUTSTANDING_REQUESTS" in plan["routing_strategy"].note
    assert not any(
        decision.overridden for decision in explained() if decision.name != "instance_type"
    )


def test_warnings_can_be_acknowledged_by_id() -> None:
    ids = [warning.id for warning in explained().warnings]
    assert ids == ["zone-outage", "zone-outage-at-minimum"]
    assert [warning.id for warning in explained(throughput=None, latency=None).warnings] == [
        "no-latency-target",
        "no-throughput",
    ]


def test_every_decision_has_a_rule_and_json_safe_parts() -> None:
    plan = explained()
    for decision in plan:
        assert decision.rule, decision.name
        assert decision.source == "" or decision.source.startswith("https://"), decision.name
    assert json.loads(plan.to_json()) == plan.to_dict()
    assert plan.to_dict()["warnings"] == list(plan.warnings)
    assert len(plan.warnings) == 2
    assert [item["name"] for item in plan.to_dict()["decisions"]] == [item.name for item in plan]
    assert explained().to_json() == plan.to_json()


def test_markdown_is_one_table_and_the_warnings() -> None:
    plan = explained()
    lines = plan.to_markdown().splitlines()
    rows = [line for line in lines if line.startswith("| ")]
    assert len(rows) == len(plan) + 1
    assert all(line.count("|") == 7 for line in rows)
    assert [line for line in lines[:6] if line.startswith("- ")] == lines[:6]
    assert len([line for line in lines[6:] if line.startswith("- ")]) == len(plan.warnings) == 2
    assert "TPS per instance x safety factor x 60" in plan.to_markdown()


def test_plan_by_name() -> None:
    plan = explained()
    assert "subnets" in plan
    assert "colour" not in plan
    with pytest.raises(KeyError):
        plan["colour"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"client_zones": ["use1-az1"]}, "LLE103"),
        ({"client_zones": ["use1-az1", "euw1-az2"]}, "LLE110"),
        ({"client_zones": ["use1-az1", "use1-az1"]}, "LLE107"),
        ({"client_zones": ["use1-az1", "somewhere"]}, "LLE101"),
        ({"client_zones": ["use1-az1", 2]}, "LLE807"),
        ({"client_zones": "use1-az1"}, "LLE807"),
        ({"images": CPU_IMAGE}, "LLE807"),
        ({"instance_type": "m5.large"}, "LLE405"),
        ({"instance_type": None}, "LLE807"),
        ({"instance_type": "ml.inf2.xlarge", "images": [LLM_IMAGE]}, "LLE330"),
        ({"instance_type": "ml.m6g.xlarge"}, "LLE334"),
        ({"images": ["has space"]}, "LLE302"),
        ({"min_instances": 20, "max_instances": 10}, "LLE621"),
        ({"initial_instances": 2, "min_instances": 4}, "LLE625"),
        ({"initial_instances": 12, "max_instances": 10}, "LLE625"),
        ({"max_instances": 20_000}, "LLE113"),
        ({"throughput": MeasuredThroughput(peak_tps=1e9, tps_per_instance=1)}, "LLE113"),
        ({"instance_type": "ml.t2.large", "min_instances": 2, "max_instances": 4}, "LLE624"),
        ({"latency": 200}, "LLE807"),
        ({"throughput": 200}, "LLE807"),
        ({"scale_in_cooldown": 300}, "LLE801"),
        ({"scale_in_cooldown": timedelta(seconds=-1)}, "LLE605"),
        ({"payload_bytes": 30_000_000}, "LLE820"),
        ({"warm_up_requests": -1}, "LLE822"),
    ],
)
def test_mistakes(changes: dict[str, Any], code: str) -> None:
    with refused(code):
        distilbert(**changes)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"latency": LatencyTarget(p99=ms(8))}, "leaves little time beside the model"),
        ({"latency": LatencyTarget(p99=timedelta(seconds=90))}, "after which SageMaker ends"),
        ({"max_instances": 4}, "below the 8 that the peak needs"),
        ({"min_instances": 8, "max_instances": 8}, "never scales"),
        ({"instance_type": "ml.m99.large"}, "not in this version's table"),
        ({"instance_type": "ml.p6e-gb200.36xlarge", "images": []}, "less certain"),
        ({"instance_type": "ml.g5.xlarge"}, "stand idle"),
        ({"instance_type": "ml.t2.large"}, "burstable"),
        ({"instance_type": "ml.inf1.xlarge", "images": []}, "deployment guardrails"),
        ({"payload_bytes": 7_000_000}, "developer guide"),
        ({"streaming": True}, "first token"),
        ({"inference_ami": "ami-of-2031"}, "not in this version's list"),
        ({"instance_type": "ml.g7.2xlarge", "images": [LLM_IMAGE]}, "stays Creating"),
        (
            {
                "instance_type": "ml.g6.2xlarge",
                "inference_ami": CUDA_13_AMI,
                "images": ["ray:2.0-gpu-py312-cu129-ubuntu24.04"],
            },
            "6187",
        ),
        (
            {
                "latency": LatencyTarget(p99_9=ms(200)),
                "throughput": MeasuredThroughput(peak_tps=0.3, tps_per_instance=2),
            },
            "only 6.5 requests are slower than p99.9 in 6 hours",  # 0.3 x 21,600 x 0.001
        ),
        ({"routing": RoutingStrategy("PREFIX_AWARE", 4096, 8)}, "do not say that these do"),
    ],
)
def test_doubts_are_warnings(changes: dict[str, Any], says: str) -> None:
    before = explained().warnings
    new = [warning for warning in explained(**changes).warnings if warning not in before]
    assert any(says in warning for warning in new), new


def test_the_ami_of_a_cuda_13_image_is_a_decision_with_its_source() -> None:
    plan = explained(instance_type="ml.g6e.12xlarge", images=[LLM_IMAGE])
    decision = plan["inference_ami"]
    assert (decision.value, decision.overridden) == (CUDA_13_AMI, False)
    assert decision.inputs == {"CUDA of the images": "13.0", "instance family": "g6e"}
    assert decision.source == "https://github.com/aws/sagemaker-python-sdk/pull/6281"
    assert "not seen on AWS yet" in decision.note
    assert not [text for text in plan.warnings if "CUDA" in text]


@pytest.mark.parametrize("ami", [CUDA_13_AMI, "al2030-ami-sagemaker-inference-gpu-9"])
def test_an_ami_that_is_given_wins(ami: str) -> None:
    plan = explained(instance_type="ml.g6e.12xlarge", images=[LLM_IMAGE], inference_ami=ami)
    assert (plan["inference_ami"].value, plan["inference_ami"].overridden) == (ami, True)
    assert (CUDA_13_AMI in plan["inference_ami"].note) == (ami != CUDA_13_AMI)


def test_without_need_or_choice_no_ami_is_decided() -> None:
    assert "inference_ami" not in explained()
    assert "inference_ami" not in explained(instance_type="ml.g7.2xlarge", images=[LLM_IMAGE])


@pytest.mark.parametrize(
    ("counts", "size"),
    [
        ({"min_instances": 4}, 4),
        ({"initial_instances": 3}, 3),
        ({"max_instances": 5}, 5),
        ({"initial_instances": 3, "max_instances": 3}, 3),
        ({}, 8),  # what the peak needs
    ],
)
def test_a_burstable_type_gets_a_fixed_fleet(counts: dict[str, int], size: int) -> None:
    plan = explained(instance_type="ml.t2.large", **counts)
    assert [
        plan[name].value
        for name in ("min_instances", "initial_instances", "max_instances", "scaling_metric")
    ] == [size, size, size, None]


def test_rare_calls_need_no_room_to_scale_unless_it_is_asked_for() -> None:
    """Less than a call a minute: two instances for two zones, and twice as many as a maximum."""
    rare = MeasuredThroughput(peak_tps=0.01, tps_per_instance=1)
    plan = distilbert(throughput=rare)
    assert (plan.fleet.minimum, plan.fleet.maximum, plan.scaling) == (2, 2, None)
    assert plan.alarms == ()
    asked = distilbert(throughput=rare, invocations_target=30)
    assert (asked.fleet.minimum, asked.fleet.maximum) == (2, 4)
    assert asked.scaling is not None
    assert asked.scaling.target == 30


def test_a_language_model_is_known_by_its_image() -> None:
    plan = explained(
        instance_type="ml.g6.xlarge",
        images=[LLM_IMAGE],
        latency=LatencyTarget(p50=timedelta(seconds=3)),
        throughput=MeasuredThroughput(peak_tps=24, tps_per_instance=3, safety_factor=0.7),
    )
    assert plan["routing_strategy"].value == "LEAST_OUTSTANDING_REQUESTS"
    assert "PREFIX_AWARE" in plan["routing_strategy"].note
    assert "target of about 6" in plan["scaling_metric"].note  # 3 x 0.7 x 3 s = 6.3


def test_the_longest_response_with_and_without_streaming() -> None:
    assert explained(streaming=True)["response_time_limit"].value == 480
    slow = LatencyTarget(p99=timedelta(seconds=90))
    assert explained(latency=slow)["caller_connections"].value == 1000 * 60


def test_planning_starts_without_aws_libraries() -> None:
    script = (
        "import sys;"
        "from low_latency_endpoint.plan.endpoint_request import EndpointRequest;"
        "from low_latency_endpoint.plan.latency_plan import make_plan;"
        "from low_latency_endpoint.plan.serving import Serving;"
        "make_plan(EndpointRequest(client_zones=['use1-az1', 'use1-az2'],"
        "serving=Serving(instance_type='ml.g5.xlarge'))).explanation;"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert not {
        "aws_cdk",
        "boto3",
        "botocore",
        "constructs",
        "jsii",
        "moto",
        "pydantic",
        "yaml",
    } & set(done.stdout.split())


CONCURRENCY = "SageMakerVariantConcurrentRequestsPerModelHighResolution"


def test_a_stated_concurrency_is_what_scaling_tracks() -> None:
    plan = explained(concurrency_target=3)
    assert plan["scaling_metric"].value == CONCURRENCY
    target = plan["scaling_target"]
    assert (target.value, target.unit) == (3, "requests in flight per instance")
    assert plan["scaling_metric"].overridden
    assert target.overridden
    assert "26" in target.note  # 200 TPS x 0.65 x 0.2 s, by Little's law
    assert "TPS" not in target.rule


def test_a_stated_concurrency_scales_without_a_measured_throughput() -> None:
    plan = explained(throughput=None, concurrency_target=3)
    assert plan["scaling_target"].value == 3
    assert plan["max_instances"].value > plan["min_instances"].value
    assert not any("no scaling policy" in warning for warning in plan.warnings)


def test_without_scaling_there_is_neither_metric_nor_target_nor_range() -> None:
    plan = explained(enabled=False)
    assert plan["scaling_metric"].value is None
    assert not {"scaling_target", "scale_out_cooldown", "scale_in_cooldown"} & {
        decision.name for decision in plan
    }
    assert {plan[f"{which}_instances"].value for which in ("min", "initial", "max")} == {8}
    assert plan["addresses_per_subnet"].value == 2 * 8 * 2 + 5 + 1 + 16
    assert not any("scaling" in warning or "never scales" in warning for warning in plan.warnings)


def test_without_scaling_a_stated_number_of_instances_is_the_fleet() -> None:
    plan = explained(enabled=False, initial_instances=4)
    assert plan["max_instances"].value == 4
    assert plan["instances_left_by_zone_outage"].value == 2
    assert any("below the 8" in warning for warning in plan.warnings)


@pytest.mark.parametrize(
    "stated",
    [
        {"invocations_target": 3},
        {"scale_in_cooldown": timedelta(minutes=9)},
        {"scale_out_cooldown": timedelta(minutes=1)},
    ],
)
def test_without_scaling_nothing_may_say_how_to_scale(stated: dict[str, Any]) -> None:
    with refused("LLE629") as raised:
        distilbert(enabled=False, **stated)
    assert raised.value.where.removeprefix("ScalingOptions, ") in stated


@pytest.mark.parametrize(
    ("value", "code"), [(0, "LLE602"), (-1, "LLE602"), (1e200, "LLE602"), (float("nan"), "LLE807")]
)
def test_a_concurrency_out_of_range(value: float, code: str) -> None:
    with refused(code):
        distilbert(concurrency_target=value)


def test_a_concurrency_that_is_a_token_passes() -> None:
    token = -1.8881545897087503e289  # as the CDK encodes numbers that CloudFormation knows
    assert explained(concurrency_target=token)["scaling_target"].value == token


@pytest.mark.parametrize("share", [0, 1])
def test_some_of_the_target_is_overhead_and_some_the_models(share: float) -> None:
    with refused("LLE821"):
        LatencyTarget(p99=ms(200), overhead_share=share)
