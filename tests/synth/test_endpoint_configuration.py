"""The endpoint configuration and its shadow variant."""

from __future__ import annotations

import json

import pytest
from aws_cdk import Duration
from aws_cdk import aws_cloudwatch_actions as cloudwatch_actions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns

from low_latency_endpoint import (
    ContainerImage,
    DataCapture,
    DeploymentPolicy,
    InferenceAmi,
    InstancePool,
    InstanceType,
    LatencyDashboard,
    MetricsPublishing,
    ShadowAlarms,
)
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.plan.launched_names import as_named
from tests.refusals import refused

from .conftest import alarms_on, name_at_synth, warnings_in

KEY = "arn:aws:kms:us-east-1:123456789012:key/0123abcd-0000-0000-0000-000000000000"


@pytest.fixture
def key(stack):
    return kms.Key.from_key_arn(stack, "Key", KEY)


@pytest.fixture
def synthesised(stack, parts, template_of):
    def synthesise(**given):
        parts.configuration(stack, **given)
        return template_of(stack).only("AWS::SageMaker::EndpointConfig")

    return synthesise


def test_holds_nothing_that_was_not_asked_for(synthesised):
    # No name either: CloudFormation replaces the configuration on every change, and a fixed name
    # would be taken.
    assert set(synthesised()) == {"ProductionVariants"}


def test_several_variants_in_order(stack, parts, synthesised):
    names = ["primary", "challenger", "dark"]
    config = synthesised(variants=[parts.variant(stack, name=name) for name in names])
    assert [variant["VariantName"] for variant in config["ProductionVariants"]] == names


def test_a_key_for_the_storage_volumes(synthesised, key):
    assert synthesised(encryption_key=key)["KmsKeyId"] == KEY


def test_a_key_with_local_storage_is_the_users_to_decide(stack, parts, key, template_of):
    variants = [parts.variant(stack, instance_type=InstanceType("ml.g5.xlarge"))]
    with refused("LLE424", "250 GB"):
        parts.configuration(stack, "Refused", variants=variants, encryption_key=key)
    parts.configuration(
        stack, variants=variants, encryption_key=key, kms_key_with_local_storage=True
    )
    configs = template_of(stack).of_type("AWS::SageMaker::EndpointConfig").values()
    assert [config.get("KmsKeyId") for config in configs] == [KEY]


def test_data_capture(synthesised, key):
    stated = {"sampling_percentage": 3, "capture": ["input"], "csv_content_types": ["text/csv"]}
    config = synthesised(data_capture=DataCapture(s3="s3://captured/sentiment", key=key, **stated))
    assert config["DataCaptureConfig"] == {
        "EnableCapture": True,
        "InitialSamplingPercentage": 3,
        "DestinationS3Uri": "s3://captured/sentiment",
        "KmsKeyId": KEY,
        "CaptureOptions": [{"CaptureMode": "Input"}],
        "CaptureContentTypeHeader": {"CsvContentTypes": ["text/csv"]},
    }


def test_data_capture_by_default_and_a_key_by_its_arn(synthesised):
    capture = synthesised(data_capture=DataCapture(s3="s3://captured", kms_key_arn=KEY))
    assert capture["DataCaptureConfig"] == {
        "EnableCapture": True,
        "InitialSamplingPercentage": 10,
        "DestinationS3Uri": "s3://captured",
        "KmsKeyId": KEY,
        "CaptureOptions": [{"CaptureMode": "Input"}, {"CaptureMode": "Output"}],
    }


def test_metrics(synthesised):
    metrics = MetricsPublishing(enhanced=True, publish_frequency=Duration.seconds(10))
    assert synthesised(metrics=metrics)["MetricsConfig"] == {
        "EnableEnhancedMetrics": True,
        "EnableDetailedObservability": True,
        "MetricPublishFrequencyInSeconds": 10,
    }


def with_image(stack, parts, repository, tag, type, ami=None):
    image = ContainerImage.from_dlc(repository, tag)
    model = parts.serving(stack, image=image)
    variant = parts.variant(
        stack,
        model=model,
        instance_type=InstanceType(type),
        inference_ami=InferenceAmi(ami) if ami else None,
    )
    return parts.configuration(stack, variants=[variant])


def test_an_image_that_fits_is_no_finding(stack, parts):
    configuration = with_image(
        stack,
        parts,
        "pytorch-inference",
        "2.6.0-gpu-py312-cu124-ubuntu22.04-sagemaker",
        "ml.g5.xlarge",
        "al2-ami-sagemaker-inference-gpu-3-1",
    )
    assert warnings_in(configuration) == []


def test_what_is_only_suspicious_is_a_warning(stack, parts):
    configuration = with_image(
        stack, parts, "pytorch-inference", "2.6.0-cpu-py312-ubuntu22.04-sagemaker", "ml.g5.xlarge"
    )
    (warning,) = warnings_in(configuration)
    assert "would stand idle" in warning
    assert "low-latency-endpoint:image:primary" in warning  # the ID to acknowledge it by


def test_an_image_that_cannot_run_is_an_error_with_its_place(stack, parts):
    with refused("LLE336", where="Serving/Configuration, variant primary"):
        with_image(
            stack,
            parts,
            "pytorch-inference",
            "2.6.0-gpu-py312-cu124-ubuntu22.04-sagemaker",
            "ml.m5.xlarge",
        )


VLLM = "0.30.0-gpu-py312-cu130-ubuntu24.04-sagemaker"
CUDA_13_AMI = "al2023-ami-sagemaker-inference-gpu-4-1"


class TestCuda13:
    """SageMaker's SDK gives such images an AMI on these families; see facts/images.py."""

    @pytest.mark.parametrize(
        ("tag", "type", "given", "there"),
        [
            (VLLM, "ml.g6e.12xlarge", None, CUDA_13_AMI),
            (VLLM, "ml.g6e.12xlarge", CUDA_13_AMI, CUDA_13_AMI),
            (VLLM, "ml.g7.2xlarge", None, None),
            ("0.9.0-gpu-py312-cu128-ubuntu24.04", "ml.g6e.12xlarge", None, None),
        ],
    )
    def test_the_ami_of_a_variant(self, stack, parts, template_of, tag, type, given, there):
        with_image(stack, parts, "vllm", tag, type, given)
        variant = template_of(stack).variant
        assert variant.get("InferenceAmiVersion") == there

    def test_a_choice_wins_where_it_may(self, stack, parts, template_of):
        model = parts.serving(stack, image=ContainerImage.from_dlc("vllm", VLLM))
        variant = parts.variant(
            stack,
            model=model,
            instance_type=InstanceType("ml.g6e.xlarge"),
            inference_ami=InferenceAmi.custom("al2030-gpu-9"),
        )
        assert variant.inference_ami_version == "al2030-gpu-9"

    def test_other_families_only_warn(self, stack, parts):
        (warning,) = warnings_in(with_image(stack, parts, "vllm", VLLM, "ml.g7.2xlarge"))
        assert "stays Creating" in warning
        assert "low-latency-endpoint:image:primary" in warning

    def test_pools_take_one_ami_if_it_fits_all(self, stack, parts):
        model = parts.serving(stack, image=ContainerImage.from_dlc("vllm", VLLM))
        neuron = parts.serving(
            stack,
            "Neuron",
            image=ContainerImage.from_dlc("djl-inference", "0.29.0-neuronx-sdk2.19.1"),
        )
        g6e, g7e, inf2 = (
            InstanceType(f"ml.{name}") for name in ("g6e.2xlarge", "g7e.2xlarge", "inf2.xlarge")
        )
        fitting = parts.variant(
            stack,
            model=model,
            instance_type=None,
            instance_pools=[InstancePool(g7e, 1), InstancePool(g6e, 2)],
        )
        assert fitting.inference_ami_version == CUDA_13_AMI
        mixed = parts.variant(
            stack,
            model=model,
            instance_type=None,
            instance_pools=[InstancePool(g6e, 1), InstancePool(inf2, 2, model=neuron)],
        )
        configuration = parts.configuration(stack, variants=[mixed])
        assert mixed.inference_ami_version is None
        assert ["stays Creating" in text for text in warnings_in(configuration)] == [True]


CONFIGURATION = "AWS::SageMaker::EndpointConfig"
ALARM = "AWS::CloudWatch::Alarm"


@pytest.fixture
def shadowed(stack, parts):
    """An endpoint with a candidate in the shadow of its variant."""

    def make(*, shadow=None, endpoint=None, **configuration):
        configuration = {
            "variants": [parts.variant(stack)],
            "shadow": parts.variant(stack, name="candidate", **(shadow or {})),
            **configuration,
        }
        return parts.endpoint(
            stack, configuration=parts.configuration(stack, **configuration), **(endpoint or {})
        )

    return make


def variant_names(resource):
    """The variants that an alarm's metrics are of."""
    metrics = [
        query["MetricStat"]["Metric"]
        for query in resource.get("Metrics", [])
        if "MetricStat" in query
    ] or [resource]
    return {
        dimension["Value"]
        for metric in metrics
        for dimension in metric["Dimensions"]
        if dimension["Name"] == "VariantName"
    }


def test_the_shadow_is_a_list_of_one_beside_the_production_variant(stack, shadowed, template_of):
    shadowed(
        shadow={
            "instance_type": InstanceType("ml.c7i.xlarge"),
            "initial_instance_count": 3,
            "weight": 0.25,
        }
    )
    made = template_of(stack).only(CONFIGURATION)
    assert [variant["VariantName"] for variant in made["ProductionVariants"]] == ["primary"]
    (shadow,) = made["ShadowProductionVariants"]
    assert (shadow["VariantName"], shadow["InstanceType"]) == ("candidate", "ml.c7i.xlarge")
    assert (shadow["InitialInstanceCount"], shadow["InitialVariantWeight"]) == (3, 0.25)
    assert shadow["ModelName"] != made["ProductionVariants"][0]["ModelName"]


def test_without_a_shadow_nothing_is_said_of_one(smallest):
    assert "ShadowProductionVariants" not in smallest("endpoint").only(CONFIGURATION)


def test_the_shadow_has_metrics_of_its_own(stack, shadowed):
    endpoint = shadowed()
    metric = endpoint.variant("candidate").metric_model_latency("p99")
    assert as_named(stack.resolve(metric.dimensions)) == {
        "EndpointName": name_at_synth(endpoint),
        "VariantName": "candidate",
    }
    assert endpoint.variant().name == "primary"


def test_the_shadow_scales_by_its_own_name(stack, shadowed, template_of):
    shadowed().scale("candidate", min_instances=2, max_instances=6).track_invocations(
        max_tps_per_instance=100
    )
    target = template_of(stack).only("AWS::ApplicationAutoScaling::ScalableTarget")
    assert target["ResourceId"]["Fn::Join"][1][-1] == "/variant/candidate"
    assert target["MaxCapacity"] == 6


def test_the_shadows_model_may_write_what_is_captured_and_use_the_keys(
    stack, shadowed, template_of
):
    key = kms.Key(stack, "Key")
    shadowed(encryption_key=key, data_capture=DataCapture(s3="s3://captured/here"))
    policies = template_of(stack).model_policies.values()
    for wanted in ("s3:PutObject", "kms:CreateGrant"):
        holders = {
            role["Ref"]
            for policy in policies
            if wanted in json.dumps(policy["PolicyDocument"])
            for role in policy["Roles"]
        }
        assert len(holders) == 2, wanted


def test_an_image_that_cannot_run_on_the_shadows_type_is_refused(stack, shadowed):
    with pytest.raises(ConfigurationError, match="LLE33"):
        shadowed(shadow={"instance_type": InstanceType("ml.c7g.xlarge")})


def test_a_key_on_local_storage_of_the_shadow_is_refused(stack, shadowed):
    with pytest.raises(ConfigurationError, match="LLE424"):
        shadowed(
            shadow={"instance_type": InstanceType("ml.m5d.xlarge")},
            encryption_key=kms.Key(stack, "Key"),
        )


def test_the_shadow_takes_room_in_the_subnets(stack, parts):
    vpc = ec2.Vpc(
        stack,
        "Vpc",
        availability_zones=["us-east-1a", "us-east-1b"],
        subnet_configuration=[
            ec2.SubnetConfiguration(
                name="isolated", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED, cidr_mask=28
            )
        ],
    )
    network = parts.network_in(stack, vpc)

    def configured(id, production, shadow):
        return parts.configuration(
            stack,
            id,
            variants=[
                parts.variant(
                    stack,
                    model=parts.model(stack, f"{id}M", network=network),
                    initial_instance_count=production,
                )
            ],
            shadow=parts.variant(
                stack,
                name="candidate",
                model=parts.model(stack, f"{id}S", network=network),
                initial_instance_count=shadow,
            )
            if shadow
            else None,
        )

    # Two subnets of 11 addresses hold 11 instances of two addresses, and no more.
    parts.endpoint(stack, "Fits", configuration=configured("A", 5, None))
    with pytest.raises(ConfigurationError, match="LLE157"):
        parts.endpoint(stack, "Full", configuration=configured("B", 3, 4))


def test_an_inf1_shadow_has_no_guarded_deployment(stack, parts, shadowed, template_of):
    from low_latency_endpoint import ContainerImage

    neuron = parts.serving(stack, "Neuron", image=ContainerImage.from_uri("1.dkr.ecr.x/neuron:1"))
    shadow = {"model": neuron, "instance_type": InstanceType("ml.inf1.xlarge")}
    shadowed(shadow=shadow)
    deployment = template_of(stack).deployment
    routing = deployment["BlueGreenUpdatePolicy"]["TrafficRoutingConfiguration"]
    assert routing["Type"] == "ALL_AT_ONCE"
    assert len(warnings_in(stack, "shadowExclusion:Inf1")) == 1


def test_a_rolling_update_with_a_shadow_is_doubted(stack, shadowed):
    shadowed(endpoint={"deployment": DeploymentPolicy.rolling()})
    assert len(warnings_in(stack, "rollingWithShadow")) == 1


@pytest.mark.parametrize(("weight", "doubted"), [(1, 0), (0.1, 0), (0, 1), (2, 1)])
def test_a_weight_that_is_no_share_is_doubted(stack, shadowed, weight, doubted):
    shadowed(shadow={"weight": weight})
    assert len(warnings_in(stack, "shadowWeight:candidate")) == doubted


def test_no_alarm_of_the_endpoint_and_no_rollback_alarm_watches_the_shadow(
    stack, shadowed, template_of
):
    endpoint = shadowed()
    rollback = alarms_on(
        stack,
        endpoint,
        "Rollback",
        new_fleet_only=True,
        model_latency={"p99": Duration.millis(200)},
    )
    endpoint.roll_back_on(*rollback.alarms.values())
    alarms_on(
        stack,
        endpoint,
        model_latency={"p99": Duration.millis(200)},
        overhead_latency={"Average": Duration.millis(20)},
        error_rate=0.01,
        cpu_utilization=85,
        expect_traffic=True,
        anomalies={"Invocations": "Sum"},
        quiet_during_deployments=True,
    )
    alarms = template_of(stack).of_type(ALARM).values()
    assert len(alarms) > 6
    for alarm in alarms:
        assert variant_names(alarm) == {"primary"}


def test_the_comparison_divides_the_shadows_latency_by_productions(stack, shadowed, template_of):
    alarms = ShadowAlarms(
        stack,
        "Candidate",
        endpoint=shadowed(),
        latency_ratio={"p99": 1.2, "Average": 1.1},
        error_rate=0.02,
    )
    assert list(alarms.alarms) == [
        "ModelLatency/p99",
        "ModelLatency/Average",
        "InvocationModelErrors/Rate",
    ]
    template = template_of(stack)
    p99, _, errors = template.of_type(ALARM).values()
    assert (p99["Threshold"], errors["Threshold"]) == (1.2, 0.02)
    by_id = {query["Id"]: query["MetricStat"] for query in p99["Metrics"] if "MetricStat" in query}
    of = {
        key: (
            stat["Metric"]["MetricName"],
            stat["Stat"],
            next(d["Value"] for d in stat["Metric"]["Dimensions"] if d["Name"] == "VariantName"),
        )
        for key, stat in by_id.items()
    }
    assert of == {
        "shadow": ("ModelLatency", "p99", "candidate"),
        "production": ("ModelLatency", "p99", "primary"),
        "copied": ("Invocations", "Sum", "candidate"),
        "invocations": ("Invocations", "Sum", "primary"),
    }
    (expression,) = [q["Expression"] for q in p99["Metrics"] if "Expression" in q]
    assert expression.endswith("shadow / production, 0)")
    assert variant_names(errors) == {"candidate"}
    assert all(alarm["TreatMissingData"] == "notBreaching" for alarm in (p99, errors))
    assert not template.of_type("AWS::CloudWatch::CompositeAlarm")


def test_the_comparison_tells_whom_it_is_told_to_tell(stack, shadowed, template_of):
    action = cloudwatch_actions.SnsAction(sns.Topic(stack, "Team"))
    ShadowAlarms(stack, "Told", endpoint=shadowed(), error_rate=0.02, actions=[action])
    (alarm,) = template_of(stack).of_type(ALARM).values()
    assert len(alarm["AlarmActions"]) == 1


def test_the_dashboard_draws_both_latencies_in_one_graph(stack, shadowed):
    endpoint = shadowed(shadow={"instance_type": InstanceType("ml.m5.4xlarge")})
    body = LatencyDashboard(stack, "Dashboard", endpoint=endpoint).body
    graphs = {
        widget["properties"]["title"]: widget["properties"]
        for widget in body["widgets"]
        if widget["type"] == "metric"
    }
    both = graphs["Is the shadow candidate as fast as primary?"]["metrics"]
    variants = [row[5] for row in both if len(row) > 1]
    assert sorted(variants) == ["candidate", "candidate", "primary", "primary"]
    assert all(row[1] == "ModelLatency" for row in both if len(row) > 1)
    utilization = graphs["Utilization of the instance · shadow candidate"]["metrics"]
    assert utilization[1][0]["expression"] == "cpu_raw / 16"
    assert "Is the target met? · shadow candidate" not in graphs


def test_without_a_shadow_the_dashboard_compares_nothing(stack, parts):
    body = LatencyDashboard(stack, "Dashboard", endpoint=parts.endpoint(stack)).body
    assert "shadow" not in json.dumps([w["properties"].get("title") for w in body["widgets"]])
