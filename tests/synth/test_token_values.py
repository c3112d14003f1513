"""Values that are known at deployment only pass every check and reach CloudFormation whole."""

from __future__ import annotations

import json

import aws_cdk as cdk
import pytest
from aws_cdk import Duration
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from low_latency_endpoint import (
    ContainerImage,
    DataCapture,
    DeploymentPolicy,
    InferenceAmi,
    InstancePool,
    InstanceType,
    LatencyAlarms,
    LatencyDashboard,
    MeasuredThroughput,
    MetricsPublishing,
    ModelData,
    RoutingStrategy,
    ScalingOptions,
    VariantOptions,
)
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.hosting.scaling_policies import ScalingStep
from low_latency_endpoint.hosting.variant import CoreDump
from tests.refusals import refused

from .conftest import warnings_in
from .iam_decisions import text as text_of


def text(stack):
    return cdk.CfnParameter(stack, "Given").value_as_string


def number(stack):
    return cdk.CfnParameter(stack, "Given", type="Number").value_as_number


def listed(stack):
    return cdk.Token.as_string(cdk.Fn.select(0, cdk.Token.as_list({"Ref": "Given"})))


def variant(**build):
    def make(stack, parts, value):
        given = {name: wrap(value) for name, wrap in build.items()}
        if "instance_pools" in given:
            given.setdefault("instance_type", None)
        parts.configuration(stack, variants=[parts.variant(stack, **given)])

    return make


def container(**build):
    def make(stack, parts, value):
        given = {name: wrap(value) for name, wrap in build.items()}
        parts.serving(stack, **given)

    return make


def endpoint(**build):
    def make(stack, parts, value):
        parts.endpoint(stack, **{name: wrap(value) for name, wrap in build.items()})

    return make


def scaled(use, **bounds):
    def make(stack, parts, value):
        given = {"min_instances": 2, "max_instances": 4}
        given |= {name: wrap(value) for name, wrap in bounds.items()}
        use(parts.endpoint(stack).scale("primary", **given), value)

    return make


def alarms(**build):
    def make(stack, parts, value):
        LatencyAlarms(
            stack,
            "Alarms",
            endpoint=parts.endpoint(stack),
            error_rate=0.01,
            **{name: wrap(value) for name, wrap in build.items()},
        )

    return make


def same(value):
    return value


METRIC = cloudwatch.Metric(namespace="Shop", metric_name="Orders")
TEXTS = {
    "image uri": container(image=ContainerImage.from_uri),
    "image tag": container(image=lambda v: ContainerImage.from_dlc("pytorch-inference", v)),
    "model data uri": container(data=ModelData.from_uri),
    "container hostname": container(hostname=same),
    "environment value": container(environment=lambda v: {"KEY": v}),
    "model package": container(model_package=same),
    "role": lambda stack, parts, v: parts.model(
        stack, role=iam.Role.from_role_arn(stack, "Role", v)
    ),
    "variant name": lambda stack, parts, v: parts.configuration(
        stack, variants=[parts.variant(stack, name=v, model=parts.model(stack))]
    ),
    "instance type": variant(instance_type=InstanceType),
    "instance pool type": variant(instance_pools=lambda v: [InstancePool(InstanceType(v), 1)]),
    "inference ami": variant(inference_ami=InferenceAmi),
    "routing strategy": variant(routing=RoutingStrategy),
    "capacity reservation": variant(capacity_reservation_arn=same),
    "core dump": variant(core_dump=CoreDump),
    "data capture": lambda stack, parts, v: parts.configuration(
        stack, data_capture=DataCapture(destination=v)
    ),
    "endpoint name": endpoint(endpoint_name=same),
    "tag": endpoint(tags=lambda v: {"team": v}),
    "tag of a model": lambda stack, parts, v: parts.model(stack, tags={"team": v}),
    "tag of a configuration": lambda stack, parts, v: parts.configuration(stack, tags={"team": v}),
}
NUMBERS = {
    "initial instance count": variant(initial_instance_count=same),
    "weight": variant(weight=same),
    "volume size": variant(volume_size_gib=same),
    "pool priority": variant(
        instance_pools=lambda v: [InstancePool(InstanceType("ml.m5.xlarge"), v)]
    ),
    "prefix length": variant(
        routing=lambda v: RoutingStrategy.prefix_aware(prefix_length=v, concurrency_threshold=8)
    ),
    "concurrency threshold": variant(
        routing=lambda v: RoutingStrategy.prefix_aware(prefix_length=2048, concurrency_threshold=v)
    ),
    "startup timeout": variant(startup_health_check_timeout=Duration.seconds),
    "download timeout": variant(model_data_download_timeout=Duration.seconds),
    "provision timeout": variant(instance_provision_timeout=Duration.seconds),
    "sampling": lambda stack, parts, v: parts.configuration(
        stack, data_capture=DataCapture(destination="s3://captured", sampling_percentage=v)
    ),
    "metric frequency": lambda stack, parts, v: parts.configuration(
        stack, metrics=MetricsPublishing(frequency=Duration.seconds(v))
    ),
    "canary size": endpoint(deployment=lambda v: DeploymentPolicy.canary(size_percent=v)),
    "canary wait": endpoint(deployment=lambda v: DeploymentPolicy.canary(wait=Duration.seconds(v))),
    "linear step": endpoint(deployment=lambda v: DeploymentPolicy.linear(step_percent=v)),
    "linear step with a longest time": endpoint(
        deployment=lambda v: DeploymentPolicy.linear(
            step_percent=v, maximum_execution=Duration.hours(2)
        )
    ),
    "rolling batch": endpoint(deployment=lambda v: DeploymentPolicy.rolling(batch_percent=v)),
    "termination wait": endpoint(
        deployment=lambda v: DeploymentPolicy.canary(
            termination_wait=Duration.seconds(v), maximum_execution=Duration.minutes(30)
        )
    ),
    "longest deployment": endpoint(
        deployment=lambda v: DeploymentPolicy.canary(maximum_execution=Duration.seconds(v))
    ),
    "min instances": scaled(lambda scaling, v: None, min_instances=same),
    "max instances": scaled(lambda scaling, v: None, max_instances=same),
    "concurrency target": scaled(
        lambda scaling, v: scaling.track_concurrency(max_concurrency_per_instance=v)
    ),
    "cooldown": scaled(
        lambda scaling, v: scaling.track_concurrency(
            max_concurrency_per_instance=4, scale_in_cooldown=Duration.seconds(v)
        )
    ),
    "scheduled minimum": scaled(
        lambda scaling, v: scaling.on_schedule(
            "night", schedule=appscaling.Schedule.cron(hour="1"), min_instances=v, max_instances=4
        )
    ),
    "step periods": scaled(
        lambda scaling, v: scaling.step_on_metric(
            "S",
            metric=METRIC,
            threshold=1,
            steps=[ScalingStep(lower=0, change=1)],
            evaluation_periods=v,
        )
    ),
    "scheduled maximum": scaled(
        lambda scaling, v: scaling.on_schedule(
            "night", schedule=appscaling.Schedule.cron(hour="1"), min_instances=2, max_instances=v
        )
    ),
    "step change": scaled(
        lambda scaling, v: scaling.step_on_metric(
            "S", metric=METRIC, threshold=1, steps=[ScalingStep(lower=0, change=v)]
        )
    ),
    "step bound": scaled(
        lambda scaling, v: scaling.step_on_metric(
            "S",
            metric=METRIC,
            threshold=1,
            steps=[ScalingStep(lower=0, upper=v, change=1), ScalingStep(lower=v, change=2)],
        )
    ),
    "step threshold": scaled(
        lambda scaling, v: scaling.step_on_metric(
            "S", metric=METRIC, threshold=v, steps=[ScalingStep(lower=0, change=1)]
        )
    ),
    "rate of errors": alarms(client_error_rate=same),
    "least invocations": alarms(minimum_invocations=same),
    "imbalance": alarms(zone_imbalance=same),
    "evaluation periods": alarms(evaluation_periods=same),
    "datapoints": alarms(datapoints_to_alarm=same),
}
CASES = [
    *(pytest.param(make, text, id=name) for name, make in TEXTS.items()),
    *(pytest.param(make, listed, id=f"{name} of a list") for name, make in TEXTS.items()),
    *(pytest.param(make, number, id=name) for name, make in NUMBERS.items()),
]


@pytest.mark.parametrize(("make", "token"), CASES)
def test_reaches_cloudformation_whole(new_stack, parts, template_of, make, token):
    # Some rules of cfn-lint mistake a parameter for its missing default.
    stack = new_stack(context={"@aws-cdk/core:validateAgainstDefaultRules": False})
    make(stack, parts, token(stack))
    template = template_of(stack)
    resources = json.dumps(template["Resources"])
    assert '"Ref": "Given"' in resources
    assert "Token[" not in resources
    assert "e+2" not in resources  # a number that stood for a token, calculated with


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(
            scaled(lambda scaling, v: scaling.track_invocations(max_tps_per_instance=v)),
            id="throughput",
        ),
        pytest.param(
            scaled(
                lambda scaling, v: scaling.track_invocations(
                    max_tps_per_instance=1, safety_factor=v
                )
            ),
            id="safety factor",
        ),
        pytest.param(
            alarms(model_latency=lambda v: {"p99": Duration.millis(v)}), id="milliseconds"
        ),
        pytest.param(alarms(model_latency=lambda v: {"p99": Duration.seconds(v)}), id="seconds"),
        pytest.param(variant(startup_health_check_timeout=Duration.minutes), id="minutes"),
        pytest.param(
            endpoint(deployment=lambda v: DeploymentPolicy.canary(wait=Duration.minutes(v))),
            id="wait in minutes",
        ),
    ],
)
def test_what_cloudformation_would_have_to_calculate_is_refused(stack, parts, make):
    with pytest.raises(ConfigurationError) as raised:
        make(stack, parts, number(stack))
    assert raised.value.code in ("LLE603", "LLE801")
    assert "token" in raised.value.got


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(lambda v: {"variant": VariantOptions(volume_size_gib=v)}, id="volume size"),
        pytest.param(
            lambda v: {
                "variant": VariantOptions(
                    routing=RoutingStrategy.prefix_aware(prefix_length=v, concurrency_threshold=v)
                )
            },
            id="routing",
        ),
        pytest.param(
            lambda v: {"scaling": ScalingOptions(max_concurrency_per_instance=v)}, id="concurrency"
        ),
    ],
)
def test_the_pattern_hands_on_what_its_plan_does_not_calculate_with(
    new_stack, parts, template_of, given
):
    stack = new_stack(context={"@aws-cdk/core:validateAgainstDefaultRules": False})
    parts.pattern(
        stack,
        throughput=MeasuredThroughput(peak_tps=100, tps_per_instance=50),
        **given(number(stack)),
    )
    resources = json.dumps(template_of(stack)["Resources"])
    assert '"Ref": "Given"' in resources
    assert "e+2" not in resources


def test_numbers_of_instances_and_their_type_as_parameters(new_stack, parts, template_of):
    """The parts, where the pattern needs values: alarms and dashboard take them too."""
    stack = new_stack(context={"@aws-cdk/core:validateAgainstDefaultRules": False})

    def parameter(name):
        return cdk.CfnParameter(stack, name, type="Number").value_as_number

    kind = cdk.CfnParameter(stack, "Kind").value_as_string
    variant = parts.variant(
        stack, instance_type=InstanceType(kind), initial_instance_count=parameter("Initial")
    )
    endpoint = parts.endpoint(stack, variants=[variant])
    endpoint.scale(
        "primary", min_instances=parameter("Least"), max_instances=parameter("Most")
    ).track_invocations(max_tps_per_instance=50)
    LatencyAlarms(stack, "Alarms", endpoint=endpoint, error_rate=0.01, capacity_at_maximum=True)
    LatencyDashboard(stack, "Dashboard", endpoint=endpoint)
    template = template_of(stack)
    assert "e+2" not in json.dumps(template["Resources"])
    made = template.variant
    assert (made["InstanceType"], made["InitialInstanceCount"]) == (
        {"Ref": "Kind"},
        {"Ref": "Initial"},
    )
    target = template.only("AWS::ApplicationAutoScaling::ScalableTarget")
    assert (target["MinCapacity"], target["MaxCapacity"]) == ({"Ref": "Least"}, {"Ref": "Most"})


@pytest.mark.parametrize(("serving", "fires"), [(7, False), (8, True)])
def test_the_alarm_on_the_last_instance_knows_a_maximum_that_is_a_parameter(
    stack, parts, template_of, serving, fires
):
    """CloudFormation does not subtract: half an instance below the maximum is added instead."""
    endpoint = parts.endpoint(stack)
    endpoint.scale("primary", min_instances=2, max_instances=number(stack))
    LatencyAlarms(stack, "Alarms", endpoint=endpoint, capacity_at_maximum=True)
    (alarm,) = (
        properties
        for properties in template_of(stack).of_type("AWS::CloudWatch::Alarm").values()
        if "Threshold" in properties and properties["Threshold"] == {"Ref": "Given"}
    )
    (expression,) = (each["Expression"] for each in alarm["Metrics"] if "Expression" in each)
    left = expression.replace("IF(per_instance > 0, invocations / per_instance, 0)", str(serving))
    assert alarm["ComparisonOperator"] == "GreaterThanThreshold"
    most = 8
    assert (sum(map(float, left.split("+"))) > most) == fires


def test_cloudformation_has_no_keys_that_it_computes(stack, parts):
    with refused("LLE306"):
        parts.container(environment={text(stack): "1"})


def capture(destination):
    return lambda stack, parts, value: parts.configuration(
        stack, data_capture=DataCapture(destination=destination(value))
    )


@pytest.mark.parametrize(
    ("make", "action", "tail"),
    [
        (capture(lambda b: f"s3://{b.bucket_name}/captured"), "s3:PutObject", "/captured/*"),
        (capture(lambda b: b.s3_url_for_object("captured/")), "s3:PutObject", "/captured/*"),
        (capture(lambda b: f"s3://{b.bucket_name}"), "s3:PutObject", "/*"),
        (
            variant(core_dump=lambda b: CoreDump(f"s3://{b.bucket_name}/cores")),
            "s3:PutObject",
            "/cores/*",
        ),
        (
            container(data=lambda b: ModelData.from_uri(f"s3://{b.bucket_name}/a.tar.gz")),
            "s3:GetObject",
            "/a.tar.gz",
        ),
        (
            container(data=lambda b: ModelData.from_uri(f"s3://{b.bucket_name}/llama/")),
            "s3:GetObject",
            "/llama/*",
        ),
    ],
    ids=["capture", "by the bucket's method", "whole bucket", "core dump", "archive", "prefix"],
)
def test_the_role_may_use_a_bucket_of_the_app_that_a_uri_names(
    stack, parts, template_of, make, action, tail
):
    make(stack, parts, s3.Bucket(stack, "Bucket", enforce_ssl=True))
    assert not warnings_in(stack, "Rights")
    template = template_of(stack)
    made = template.only_id("AWS::S3::Bucket")
    assert text_of(template.granted[action]["Resource"]) == f"arn:aws:s3:::<{made}>{tail}"


def test_a_prefix_may_be_a_token_too(stack, parts, template_of):
    given = text(stack)
    parts.configuration(stack, data_capture=DataCapture(destination=f"s3://captured/{given}/raw"))
    written = template_of(stack).granted["s3:PutObject"]["Resource"]
    assert text_of(written) == "arn:aws:s3:::captured/<Given>/raw/*"


REPOSITORY = [
    pytest.param(
        lambda stack: f"{stack.account}.dkr.ecr.{stack.region}.amazonaws.com/team/x:1",
        id="account and region",
    ),
    pytest.param(
        lambda stack: (
            f"{stack.account}.dkr.ecr.{stack.region}.{stack.url_suffix}/team/x@sha256:{'0' * 64}"
        ),
        id="suffix and digest",
    ),
    pytest.param(
        lambda stack: f"{stack.account}.dkr.ecr-fips.{stack.region}.{stack.url_suffix}/team/x",
        id="fips, no tag",
    ),
]


@pytest.mark.parametrize("uri", REPOSITORY)
def test_the_role_may_pull_from_a_registry_of_tokens(new_stack, parts, template_of, uri):
    stack = new_stack(region=None)
    container(image=lambda value: ContainerImage.from_uri(uri(stack)))(stack, parts, None)
    assert not warnings_in(stack, "Rights")
    pulled = template_of(stack).granted["ecr:BatchGetImage"]["Resource"]
    assert text_of(pulled) == "arn:aws:ecr:us-east-1:123456789012:repository/team/x"


def test_the_role_may_pull_from_the_uri_of_a_repository(stack, parts, template_of):
    repository = ecr.Repository(stack, "Images", image_tag_mutability=ecr.TagMutability.IMMUTABLE)
    image = ContainerImage.from_uri(repository.repository_uri_for_tag("7"))
    container(image=lambda value: image)(stack, parts, None)
    resource = template_of(stack).granted["ecr:BatchGetImage"]["Resource"]
    assert resource["Fn::Join"][1][-2] == ":repository/"
    assert resource["Fn::Join"][1][-1]["Ref"].startswith("Images")


@pytest.mark.parametrize(
    ("make", "id", "says"),
    [
        (TEXTS["image uri"], "imageRights", "ecr:BatchGetImage"),
        (TEXTS["model data uri"], "modelDataRights", "s3:GetObject"),
        (
            container(data=lambda v: ModelData.from_uri(f"s3://{v}")),
            "modelDataRights",
            "s3:GetObject",
        ),
        (TEXTS["data capture"], "writeRights", "s3:PutObject"),
        (TEXTS["core dump"], "writeRights", "s3:PutObject"),
    ],
)
def test_what_a_token_hides_is_said_to_be_allowed_by_the_user(stack, parts, make, id, says):
    make(stack, parts, text(stack))
    (message,) = warnings_in(stack, f"low-latency-endpoint:{id}")
    assert says in message


def test_a_key_is_granted_even_where_the_bucket_is_hidden(stack, parts, template_of):
    key = kms.Key(stack, "Key")
    capture = DataCapture(destination=text(stack), key=key)
    parts.configuration(stack, data_capture=capture)
    template = template_of(stack)
    assert template.granted["kms:GenerateDataKey"]["Resource"] == {
        "Fn::GetAtt": [template.only_id("AWS::KMS::Key"), "Arn"]
    }
