"""Further variants and a shadow in the pattern: a plan, a fleet and a model for each of them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from aws_cdk import Duration, Stage

from low_latency_endpoint import (
    FurtherVariant,
    InstanceCounts,
    InstancePool,
    InstanceType,
    MeasuredThroughput,
    ModelOptions,
    RoutingStrategy,
    ScalingOptions,
    ScalingSchedule,
    VariantOptions,
    WarmUpOptions,
    WarmUpPayload,
)
from low_latency_endpoint.errors import ConfigurationError
from tests.refusals import refused

from .conftest import warnings_in

TYPE, OTHER = "ml.m5.2xlarge", "ml.c7i.2xlarge"


@pytest.fixture
def endpoint_of(stack, parts):
    """The pattern at 1000 TPS, 100 an instance at half of what it holds: 20 instances in all."""

    def make(*variants, weight=9.0, shadow=None, **given):
        stated = {
            "instance_type": TYPE,
            "throughput": MeasuredThroughput(peak_tps=1000, tps_per_instance=100),
            "variant": VariantOptions(weight=weight),
        }
        return parts.pattern(stack, variants=variants, shadow=shadow, **stated | given)

    return make


def deployed(template, kind="ProductionVariants"):
    configuration = template.only("AWS::SageMaker::EndpointConfig")
    return {each["VariantName"]: each for each in configuration.get(kind, [])}


def test_each_variant_is_planned_for_its_part_of_the_peak(stack, endpoint_of, template_of):
    endpoint = endpoint_of(FurtherVariant(name="challenger", weight=1))
    # 900 of 1000 TPS at 50 each, and 100 at 50.
    assert {name: plan.fleet.at_peak for name, plan in endpoint.plans.items()} == {
        "primary": 18,
        "challenger": 2,
    }
    assert endpoint.plan is endpoint.plans["primary"]
    found = deployed(template_of(stack))
    assert [
        (each["InitialVariantWeight"], each["InitialInstanceCount"]) for each in found.values()
    ] == [(9, 18), (1, 2)]
    ranges = {
        each["ResourceId"]["Fn::Join"][1][-1].rpartition("/")[2]: (
            each["MinCapacity"],
            each["MaxCapacity"],
        )
        for each in template_of(stack)
        .of_type("AWS::ApplicationAutoScaling::ScalableTarget")
        .values()
    }
    assert ranges["primary"][1] > ranges["challenger"][1] >= 2


def test_a_variant_without_containers_serves_the_first_ones_model(stack, endpoint_of, template_of):
    endpoint_of(FurtherVariant(name="challenger", routing=RoutingStrategy.RANDOM))
    template = template_of(stack)
    first, other = deployed(template).values()
    assert first["ModelName"] == other["ModelName"]
    assert len(template.of_type("AWS::SageMaker::Model")) == 1
    assert other["RoutingConfig"]["RoutingStrategy"] == "RANDOM"
    assert first["RoutingConfig"]["RoutingStrategy"] == "LEAST_OUTSTANDING_REQUESTS"


def test_containers_make_a_model_of_its_own(stack, parts, endpoint_of, template_of):
    endpoint_of(
        FurtherVariant(
            name="challenger",
            containers=[parts.container()],
            model=ModelOptions(network_isolation=True),
        )
    )
    isolated = [
        each.get("EnableNetworkIsolation", False)
        for each in template_of(stack).of_type("AWS::SageMaker::Model").values()
    ]
    assert sorted(isolated) == [False, True]


def test_what_a_variant_leaves_out_is_the_first_ones(stack, endpoint_of, template_of):
    endpoint_of(
        FurtherVariant(name="same"),
        FurtherVariant(name="elsewhere", instance_type=OTHER, tps_per_instance=100),
        variant=VariantOptions(
            startup_health_check_timeout=Duration.minutes(7),
            volume_size_gib=64,
            routing=RoutingStrategy.RANDOM,
        ),
    )
    found = deployed(template_of(stack))
    for name, volume, runs_on in (("same", 64, TYPE), ("elsewhere", None, OTHER)):
        assert found[name]["ContainerStartupHealthCheckTimeoutInSeconds"] == 420
        assert found[name]["RoutingConfig"]["RoutingStrategy"] == "RANDOM"
        assert found[name].get("VolumeSizeInGB") == volume
        assert found[name]["InstanceType"] == runs_on


def test_its_own_throughput_sizes_its_fleet(endpoint_of):
    endpoint = endpoint_of(
        FurtherVariant(
            name="challenger", weight=1, instance_type=OTHER, tps_per_instance=40, safety_factor=0.8
        ),
        weight=1,
    )
    # Half of 1000 TPS; 50 an instance, and 32.
    assert [plan.fleet.at_peak for plan in endpoint.plans.values()] == [10, 16]
    assert endpoint.scalings["challenger"].target_invocations == 40 * 0.8 * 60


def test_a_type_that_was_not_measured_is_said_to_be_assumed(stack, endpoint_of):
    endpoint_of(FurtherVariant(name="challenger", instance_type=OTHER))
    said = f"challenger on {OTHER} is assumed to hold what an instance of {TYPE} does"
    assert warnings_in(stack, said)


def test_pools_of_a_variant_are_planned_for_the_slowest(stack, endpoint_of, template_of):
    pools = [
        InstancePool(InstanceType(OTHER), 1, tps_per_instance=200),
        InstancePool(InstanceType(TYPE), 2, tps_per_instance=50),
    ]
    endpoint = endpoint_of(FurtherVariant(name="challenger", instance_type=pools), weight=1)
    assert endpoint.plans["challenger"].fleet.at_peak == 500 / 25
    found = deployed(template_of(stack))["challenger"]
    assert [each["InstanceType"] for each in found["InstancePools"]] == [OTHER, TYPE]


def test_jumps_are_shared_too(endpoint_of):
    endpoint = endpoint_of(
        FurtherVariant(name="challenger", weight=1),
        throughput=MeasuredThroughput(peak_tps=1000, tps_per_instance=100, from_tps=500),
    )
    measured = endpoint.plans["challenger"].request.throughput
    assert (measured.peak_tps, measured.from_tps) == (100, 50)


def test_it_scales_as_the_first_one_does_with_numbers_of_its_own(endpoint_of):
    endpoint = endpoint_of(
        FurtherVariant(name="challenger", weight=1),
        FurtherVariant(name="fixed", weight=1, scaling=ScalingOptions(enabled=False)),
        instances=InstanceCounts(min=12, max=40),
        scaling=ScalingOptions(
            scale_in_cooldown=Duration.minutes(9),
            schedule=[ScalingSchedule(name="day", cron="0 8 * * ? *", min=20)],
        ),
    )
    plan = endpoint.plans["challenger"]
    assert plan.fleet.minimum == 2
    assert plan.scaling.scale_in_seconds == 540
    assert plan.request.scaling.schedule == ()
    assert endpoint.scalings["fixed"] is None


def test_set_times_of_a_variant_are_its_own(stack, endpoint_of, template_of):
    endpoint_of(
        FurtherVariant(
            name="challenger",
            scaling=ScalingOptions(
                schedule=[ScalingSchedule(name="day", cron="0 8 * * ? *", min=4)]
            ),
        )
    )
    targets = template_of(stack).of_type("AWS::ApplicationAutoScaling::ScalableTarget").values()
    assert sorted(len(each.get("ScheduledActions", [])) for each in targets) == [0, 1]


def test_the_subnets_have_room_for_all_fleets(stack, endpoint_of, template_of):
    many = InstanceCounts(max=400)
    endpoint_of(FurtherVariant(name="challenger", instances=many), instances=many)
    # Two addresses for each of 800 instances, twice: 3200, for which a /21 is too small.
    subnets = template_of(stack).of_type("AWS::EC2::Subnet").values()
    assert {each["CidrBlock"].rpartition("/")[2] for each in subnets} == {"20"}


def test_the_warm_up_reaches_the_variant_with_the_smallest_share(stack, endpoint_of, template_of):
    endpoint = endpoint_of(
        FurtherVariant(name="challenger", weight=1),
        warm_up=WarmUpOptions(payload=WarmUpPayload(data={"inputs": "a"})),
        throughput=MeasuredThroughput(peak_tps=100, tps_per_instance=50),
    )
    # Two instances with 8 vCPUs each; one request in ten goes there.
    needed = math.ceil(16 * math.log(16 * 1000) / 0.1)
    assert endpoint.plans["challenger"].warm_up_requests == needed
    assert endpoint.plan.warm_up_requests < needed
    (warm_up,) = template_of(stack).of_type("Custom::WarmUp").values()
    assert warm_up["RequestsPerZone"] == math.ceil(needed / 2)


def test_callers_connections_are_those_of_the_whole_endpoint(endpoint_of):
    endpoint = endpoint_of(FurtherVariant(name="challenger", weight=1))
    assert {plan.caller_connections for plan in endpoint.plans.values()} == {200}


def test_the_alarm_on_capacity_watches_those_that_scale(endpoint_of):
    endpoint = endpoint_of(
        FurtherVariant(name="fixed", scaling=ScalingOptions(enabled=False)),
        FurtherVariant(name="scaled"),
    )
    alarms = [key.partition("/") for key in endpoint.alarms.alarms]
    assert {name for name, _, _ in alarms} == {"primary", "fixed", "scaled"}
    assert {name for name, _, of in alarms if of == "Instances/Maximum"} == {"primary", "scaled"}


def test_each_plan_is_in_the_metadata_and_its_explanation_says_the_share(
    stack, endpoint_of, template_of
):
    made = endpoint_of(FurtherVariant(name="challenger", weight=1))
    template = template_of(stack)
    resource = template["Resources"][template.only_id("AWS::SageMaker::Endpoint")]
    plans = {key for key in resource["Metadata"] if key.startswith("LowLatencyEndpoint::Plan")}
    assert plans == {"LowLatencyEndpoint::Plan", "LowLatencyEndpoint::Plan::challenger"}
    told = json.loads(Path(Stage.of(stack).outdir, "Serving.plan.json").read_text())
    assert {
        name: decision["value"]
        for name, plan in told[made.node.path].items()
        for decision in plan["decisions"]
        if decision["name"] == "share_of_requests"
    } == {"primary": 90, "challenger": 10}


def test_a_variant_of_weight_zero_gets_no_request_and_says_so(stack, endpoint_of, template_of):
    endpoint = endpoint_of(FurtherVariant(name="canary", weight=0))
    assert endpoint.plans["canary"].fleet.initial == 2
    assert endpoint.plans["canary"].warm_up_requests == 0
    assert endpoint.plan.fleet.at_peak == 20
    assert deployed(template_of(stack))["canary"]["InitialVariantWeight"] == 0
    assert warnings_in(stack, "canary gets none of the requests")


def test_a_shadow_is_planned_for_what_is_copied(stack, endpoint_of, template_of):
    endpoint = endpoint_of(weight=1, shadow=FurtherVariant(name="candidate", weight=0.5))
    assert [plan.fleet.at_peak for plan in endpoint.plans.values()] == [20, 10]
    template = template_of(stack)
    assert list(deployed(template)) == ["primary"]
    shadow = deployed(template, "ShadowProductionVariants")["candidate"]
    assert (shadow["InitialVariantWeight"], shadow["InitialInstanceCount"]) == (0.5, 10)
    assert "candidate" in endpoint.scalings
    assert set(endpoint.shadow_alarms.alarms) == {"ModelLatency/p99", "InvocationModelErrors/Rate"}


def test_more_than_all_requests_are_not_copied(endpoint_of):
    endpoint = endpoint_of(weight=1, shadow=FurtherVariant(name="candidate", weight=3))
    assert endpoint.plans["candidate"].fleet.at_peak == 20


def test_an_endpoint_of_one_variant_has_no_share(endpoint_of):
    endpoint = endpoint_of(weight=1)
    assert "share_of_requests" not in endpoint.plan.explanation
    assert endpoint.shadow_alarms is None
    assert list(endpoint.plans) == list(endpoint.scalings) == ["primary"]


@pytest.mark.parametrize(
    ("code", "variants", "given"),
    [
        ("LLE421", [{"name": "primary"}], {}),
        ("LLE421", [{"name": "b"}, {"name": "b"}], {}),
        ("LLE426", [{"name": "b", "weight": 0}], {"weight": 0}),
        ("LLE431", [{"name": "b"}], {"shadow": FurtherVariant(name="c")}),
        ("LLE432", [{"name": "b", "instance_type": [InstancePool(InstanceType(TYPE), 1)]}], {}),
        ("LLE434", [{"name": "b", "tps_per_instance": 5}], {"throughput": None}),
        ("LLE435", [{"name": "b", "scaling": ScalingOptions(keep_counts=True)}], {}),
    ],
)
def test_what_does_not_go_together_is_refused(endpoint_of, code, variants, given):
    with pytest.raises(ConfigurationError, match=code):
        endpoint_of(*(FurtherVariant(**each) for each in variants), **given)


def test_options_of_a_model_that_is_not_its_own_are_refused():
    with refused("LLE436"):
        FurtherVariant(name="b", model=ModelOptions())
