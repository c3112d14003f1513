"""The pattern: its plan, its pools and its variants."""

from __future__ import annotations

import json
import math
from difflib import ndiff
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import CfnParameter, Duration, Stage
from aws_cdk.assertions import Template

from low_latency_endpoint import (
    AlarmOptions,
    Container,
    ContainerImage,
    FurtherVariant,
    InferenceAmi,
    InstanceCounts,
    InstancePool,
    InstanceType,
    LatencyTarget,
    LowLatencyEndpoint,
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
from low_latency_endpoint.plan.decisions import values_in_template
from tests.refusals import refused

from .conftest import make_stack, make_template, warnings_in

METRIC = "PredefinedMetricSpecification"


@pytest.fixture
def pattern(stack, parts):
    measured = MeasuredThroughput(peak_tps=1000, tps_per_instance=200, safety_factor=0.65)
    stated = {"throughput": measured, "instance_type": InstanceType("ml.m5.12xlarge")}
    return lambda **given: parts.pattern(stack, **stated | given)


def tracked(template):
    return [
        (
            policy[METRIC]["PredefinedMetricType"],
            policy["TargetValue"],
            policy["ScaleOutCooldown"],
            policy["ScaleInCooldown"],
        )
        for policy in (
            given["TargetTrackingScalingPolicyConfiguration"]
            for given in template.of_type("AWS::ApplicationAutoScaling::ScalingPolicy").values()
        )
    ]


def explained(stack):
    """The explanations beside the template, once it is made: by endpoint and variant."""
    return json.loads(Path(Stage.of(stack).outdir, f"{stack.node.id}.plan.json").read_text())


def planned(stack):
    """The values of the one plan in a stack; the CDK leaves nulls out."""
    ((plan,),) = (of.values() for of in explained(stack).values())
    return {decision["name"]: decision.get("value") for decision in plan["decisions"]}


def in_metadata(template):
    """The plan as the endpoint's metadata has it: what commands read from an account."""
    endpoint = template["Resources"][template.only_id("AWS::SageMaker::Endpoint")]
    return endpoint["Metadata"]["LowLatencyEndpoint::Plan"]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"scaling": ScalingOptions(metric="concurrency", concurrency_target=3)},
        {"scaling": ScalingOptions(invocations_target=70)},
        {"scaling": ScalingOptions(metric="concurrency", concurrency_target=3), "throughput": None},
        {
            "scaling": ScalingOptions(
                scale_in_cooldown=Duration.minutes(9), metric="concurrency", concurrency_target=2.5
            )
        },
    ],
)
def test_metric_target_cooldowns_and_range_are_those_deployed(pattern, stack, template_of, given):
    pattern(**given)
    template = template_of(stack)
    plan = planned(stack)
    assert tracked(template) == [
        (
            plan["scaling_metric"],
            plan["scaling_target"],
            plan["scale_out_cooldown"],
            plan["scale_in_cooldown"],
        )
    ]
    target = template.only("AWS::ApplicationAutoScaling::ScalableTarget")
    assert (target["MinCapacity"], target["MaxCapacity"]) == (
        plan["min_instances"],
        plan["max_instances"],
    )


def test_rollback_alarms_count_as_few_failures_as_the_others(pattern, stack, template_of):
    pattern(alarms=AlarmOptions(minimum_failures=1))
    rates = [
        metric["Expression"]
        for alarm in template_of(stack).of_type("AWS::CloudWatch::Alarm").values()
        for metric in alarm.get("Metrics", ())
        if "errors /" in metric.get("Expression", "")
    ]
    assert rates == ["IF(errors >= 1, errors / invocations, 0)"] * 2


def test_without_scaling_no_policy_is_planned_and_none_is_made(pattern, stack, template_of):
    made = pattern(scaling=ScalingOptions(enabled=False))
    template = template_of(stack)
    plan = planned(stack)
    assert made.scaling is None
    assert tracked(template) == []
    assert plan["scaling_metric"] is None
    assert "scaling_target" not in plan
    variant = template.variant
    assert {plan["min_instances"], plan["max_instances"]} == {variant["InitialInstanceCount"]}


def test_a_concurrency_that_is_a_parameter(pattern, stack, template_of):
    given = CfnParameter(stack, "InFlight", type="Number").value_as_number
    pattern(scaling=ScalingOptions(metric="concurrency", concurrency_target=given))
    template = template_of(stack)
    assert tracked(template)[0][1] == planned(stack)["scaling_target"] == {"Ref": "InFlight"}
    assert in_metadata(template)["scaling_target"] == {"Ref": "InFlight"}


@pytest.mark.parametrize("given", [None, InferenceAmi("al2023-ami-sagemaker-inference-gpu-4-1")])
def test_the_ami_that_is_planned_is_deployed(pattern, parts, stack, template_of, given):
    image = ContainerImage.from_dlc("vllm", "0.30.0-gpu-py312-cu130-ubuntu24.04-sagemaker")
    pattern(
        instance_type=InstanceType("ml.g6e.12xlarge"),
        variant=VariantOptions(inference_ami=given),
        containers=[parts.container(image=image)],
    )
    template = template_of(stack)
    variant = template.variant
    assert variant["InferenceAmiVersion"] == planned(stack)["inference_ami"]
    assert variant["InferenceAmiVersion"] == "al2023-ami-sagemaker-inference-gpu-4-1"


@pytest.mark.parametrize(
    ("name", "rolls_back"), [("ml.inf1.xlarge", False), ("ml.inf2.xlarge", True)]
)
def test_inf1_takes_no_deployment_guardrails(stack, pattern, template_of, name, rolls_back):
    """https://docs.aws.amazon.com/sagemaker/latest/dg/deployment-guardrails-exclusions.html"""
    image = ContainerImage.from_uri("123456789012.dkr.ecr.us-east-1.amazonaws.com/own:1")
    pattern(instance_type=InstanceType(name), containers=[Container(image=image)])
    deployment = template_of(stack).deployment
    routing = deployment["BlueGreenUpdatePolicy"]["TrafficRoutingConfiguration"]["Type"]
    assert ("AutoRollbackConfiguration" in deployment) is rolls_back
    assert routing == ("CANARY" if rolls_back else "ALL_AT_ONCE")


@pytest.mark.parametrize("stage", [False, True])
def test_explanations_are_beside_the_template(parts, fill, stage):
    app = cdk.App(analytics_reporting=False)
    stack = cdk.Stack(Stage(app, "Prod") if stage else app, "Serving")
    fill(stack, "two-patterns")
    template = Template.from_stack(stack)
    file = Path(Stage.of(stack).outdir, stack.template_file.replace(".template.", ".plan."))
    assert file.parent.name.startswith("assembly-Prod" if stage else "cdk.out")
    made = [each for each in stack.node.children if isinstance(each, LowLatencyEndpoint)]
    assert len(made) == 2
    found = json.loads(file.read_text())
    assert list(found) == [each.node.path for each in made]
    for each in made:
        told = found[each.node.path]["primary"]
        why = each.plan.explanation
        assert [one["rule"] for one in told["decisions"]] == [one.rule for one in why]
        assert told["warnings"] == list(why.warnings)
        assert why["routing_strategy"].note not in json.dumps(template.to_json())


def test_changed_options_change_few_lines_of_metadata(parts):
    """Issue 40: of 298 lines that ``cdk diff`` showed of three options two thirds explained."""

    def metadata(name, p99, peak):
        stack = make_stack()
        parts.pattern(
            stack,
            instance_type=InstanceType(name),
            latency=LatencyTarget(p99=Duration.millis(p99)),
            throughput=MeasuredThroughput(peak_tps=peak, tps_per_instance=200),
        )
        return json.dumps(in_metadata(make_template(stack)), indent=1).splitlines()

    before = metadata("ml.m5.12xlarge", 200, 1000)
    changed = [
        line
        for line in ndiff(before, metadata("ml.c6i.12xlarge", 150, 2000))
        if line.startswith(("+", "-"))
    ]
    keys = {line[1:].partition(":")[0].strip(' "') for line in changed}
    assert keys == {
        "instance_type",
        "ModelLatency p99",
        "OverheadLatency Average",
        "peak_tps",
        "max_instances",  # follows from the peak
    }
    assert len(changed) == 2 * len(keys)
    assert len(before) < 25


def test_plans_in_templates_of_before_are_read_the_same(pattern, stack, template_of):
    made = pattern()
    now = in_metadata(template_of(stack))
    whole = json.loads(made.plan.explanation.to_json())
    assert values_in_template(whole) == values_in_template(now) == now


FAST, SLOW = "ml.c7i.2xlarge", "ml.m5.2xlarge"


@pytest.fixture
def pooled(stack, parts):
    """The pattern on these types, each with what an instance of it holds."""

    def make(types, *, tps=200, peak=1000, **given):
        return parts.pattern(
            stack,
            instance_type=[
                InstancePool(InstanceType(name), priority, tps_per_instance=held)
                for priority, (name, held) in enumerate(types, 1)
            ],
            throughput=tps
            and MeasuredThroughput(peak_tps=peak, tps_per_instance=tps, safety_factor=0.5),
            **given,
        )

    return make


def test_the_variant_has_all_pools_and_the_plan_the_slowest(stack, pooled, template_of):
    endpoint = pooled([(FAST, 300), (SLOW, 200)])
    variant = template_of(stack).variant
    assert variant["InstancePools"] == [
        {"InstanceType": FAST, "Priority": 1},
        {"InstanceType": SLOW, "Priority": 2},
    ]
    assert "InstanceType" not in variant
    # 1000 TPS at half of 200 each, not half of 300.
    assert endpoint.plan.fleet.at_peak == variant["InitialInstanceCount"] == 10
    assert endpoint.plan.scaling.target == 200 * 0.5 * 60


def test_the_plan_names_the_slowest_and_says_why(pooled):
    plan = pooled([(FAST, 300), (SLOW, 200)]).plan
    decision = plan.explanation["instance_type"]
    assert decision.value == SLOW
    assert "the slowest of the instance pools" in decision.rule
    assert decision.inputs["pools"] == [f"{FAST} (300 TPS)", f"{SLOW} (200 TPS)"]
    assumed = next(line.text for line in plan.explanation.summary if line.title == "Assumed")
    assert f"every instance is an {SLOW}, the slowest of the pools" in assumed


def test_alarms_are_by_type(pooled):
    alarms = pooled([(FAST, 300), (SLOW, 200)]).alarms.alarms
    assert f"primary/CPUUtilization/Average/{FAST}" in alarms
    assert f"primary/CPUUtilization/Average/{SLOW}" in alarms


def test_without_throughput_the_first_one_is_named(pooled):
    plan = pooled([(FAST, None), (SLOW, None)], tps=None).plan
    assert plan.request.serving.instance_type == FAST
    assert plan.request.serving.types == (FAST, SLOW)


@pytest.mark.parametrize(
    ("types", "tps", "code"),
    [
        ([(FAST, 300), (SLOW, None)], 300, "LLE432"),
        ([(FAST, 300), (SLOW, 200)], 300, "LLE433"),
        ([(FAST, 300), (SLOW, 200)], 250, "LLE433"),
        ([(FAST, 0), (SLOW, 200)], 200, "LLE603"),
        ([], None, "LLE413"),
    ],
)
def test_what_cannot_be_planned_is_refused(pooled, types, tps, code):
    with pytest.raises(ConfigurationError, match=code):
        pooled(types, tps=tps)


def test_every_type_is_held_against_the_image(pooled):
    with pytest.raises(ConfigurationError, match="LLE33"):
        pooled([(SLOW, 200), ("ml.c7g.2xlarge", 300)])


def test_one_burstable_type_keeps_all_from_scaling(pooled):
    with pytest.raises(ConfigurationError, match=r"LLE624(.|\n)*ml\.t2\.medium"):
        pooled(
            [(FAST, 300), ("ml.t2.medium", 20)],
            tps=20,
            peak=20,
            instances=InstanceCounts(min=2, max=4),
        )


def test_one_inf1_type_keeps_all_from_rollback_alarms(stack, parts, pooled, template_of):
    image = ContainerImage.from_uri("123456789012.dkr.ecr.us-east-1.amazonaws.com/neuron:1")
    pooled(
        [("ml.inf2.xlarge", 300), ("ml.inf1.2xlarge", 200)],
        containers=[parts.container(image=image)],
    )
    deployment = template_of(stack).deployment
    assert "AutoRollbackConfiguration" not in deployment


def test_an_unknown_type_among_them_is_a_warning(pooled):
    warnings = pooled([(SLOW, 200), ("ml.z99.large", 300)]).plan.explanation.warnings
    assert "unknown-instance-type-ml.z99.large" in [warning.id for warning in warnings]


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
    said = f"an instance of challenger on {OTHER} is assumed to hold as much as one on {TYPE}"
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
    assert warnings_in(stack, "canary gets only requests that name it as TargetVariant")


def test_a_shadow_is_planned_for_what_is_copied(stack, endpoint_of, template_of):
    endpoint = endpoint_of(weight=1, shadow=FurtherVariant(name="candidate", weight=0.5))
    assert [plan.fleet.at_peak for plan in endpoint.plans.values()] == [20, 10]
    template = template_of(stack)
    assert list(deployed(template)) == ["primary"]
    shadow = deployed(template, "ShadowProductionVariants")["candidate"]
    assert (shadow["InitialVariantWeight"], shadow["InitialInstanceCount"]) == (0.5, 10)
    assert "candidate" in endpoint.scalings
    assert set(endpoint.shadow_alarms.alarms) == {"ModelLatency/p99", "InvocationModelErrors/Rate"}


def test_alarms_of_a_shadow_are_evaluated_as_those_of_production(stack, endpoint_of, template_of):
    endpoint = endpoint_of(
        weight=1,
        shadow=FurtherVariant(name="candidate", weight=0.5),
        alarms=AlarmOptions(
            minimum_failures=7,
            minimum_invocations=7,
            period=Duration.minutes(5),
            evaluation_periods=6,
            datapoints_to_alarm=4,
        ),
    )
    shadows = [stack.resolve(alarm.alarm_arn) for alarm in endpoint.shadow_alarms.alarms.values()]
    template = template_of(stack)
    for arn in shadows:
        alarm = template["Resources"][arn["Fn::GetAtt"][0]]["Properties"]
        assert (alarm["EvaluationPeriods"], alarm["DatapointsToAlarm"]) == (6, 4)
        periods = [
            each["MetricStat"]["Period"] for each in alarm["Metrics"] if "MetricStat" in each
        ]
        assert set(periods) == {300}
        assert any(">= 7" in each.get("Expression", "") for each in alarm["Metrics"])


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
