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
    CoreDump,
    DataCapture,
    DeploymentPolicy,
    InferenceAmi,
    InstancePool,
    InstanceType,
    LatencyDashboard,
    MeasuredThroughput,
    MetricsPublishing,
    ModelData,
    RoutingStrategy,
    ScalingOptions,
    VariantOptions,
)
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.hosting.scaling import ScalingStep
from tests.depth import sampled
from tests.refusals import refused

from .conftest import alarms_on, warnings_in
from .iam_decisions import text as text_of


def text(stack):
    return cdk.CfnParameter(stack, "Given").value_as_string


def number(stack):
    return cdk.CfnParameter(stack, "Given", type="Number").value_as_number


def listed(stack):
    return cdk.Token.as_string(cdk.Fn.select(0, cdk.Token.as_list({"Ref": "Given"})))


# What a value goes into, with arguments: a function among them makes one of the value.


def model(stack, parts, **given):
    parts.model(stack, **given)


def container(stack, parts, **given):
    parts.serving(stack, **given)


def variant(stack, parts, **given):
    given.setdefault("model", parts.model(stack))
    if "instance_pools" in given:
        given.setdefault("instance_type", None)
    parts.configuration(stack, variants=[parts.variant(stack, **given)])


def configuration(stack, parts, **given):
    parts.configuration(stack, **given)


def endpoint(stack, parts, **given):
    parts.endpoint(stack, **given)


def scale(stack, parts, **given):
    bounds = {"min_instances": 2, "max_instances": 4} | given
    return parts.endpoint(stack).scale("primary", **bounds)


def track_invocations(stack, parts, **given):
    scale(stack, parts).track_invocations(**given)


def track_concurrency(stack, parts, **given):
    scale(stack, parts).track_concurrency(**given)


def on_schedule(stack, parts, **given):
    hourly = appscaling.Schedule.cron(hour="1")
    stated = {"name": "night", "schedule": hourly, "min_instances": 2, "max_instances": 4}
    scale(stack, parts).on_schedule(**stated | given)


def step_on_metric(stack, parts, **given):
    metric = cloudwatch.Metric(namespace="Shop", metric_name="Orders")
    stated = {"metric": metric, "threshold": 1, "steps": [ScalingStep(lower=0, change=1)]}
    scale(stack, parts).step_on_metric("S", **stated | given)


def alarms(stack, parts, **given):
    alarms_on(stack, parts.endpoint(stack), error_rate=0.01, **given)


def made_of(value, stack, parts, make, given):
    arguments = {name: wrap(value) if callable(wrap) else wrap for name, wrap in given.items()}
    make(stack, parts, **arguments)


def same(value):
    return value


TEXTS = [
    (container, {"image": ContainerImage.from_uri}),
    (container, {"image": lambda v: ContainerImage.from_dlc("pytorch-inference", v)}),
    (container, {"data": ModelData.from_uri}),
    (container, {"hostname": same}),
    (container, {"environment": lambda v: {"KEY": v}}),
    (container, {"model_package": same}),
    (model, {"tags": lambda v: {"team": v}}),
    (model, {"endpoint_names": lambda v: [v]}),
    (variant, {"name": same}),
    (variant, {"instance_type": InstanceType}),
    (variant, {"instance_pools": lambda v: [InstancePool(InstanceType(v), 1)]}),
    (variant, {"inference_ami": InferenceAmi}),
    (variant, {"routing": RoutingStrategy}),
    (variant, {"capacity_reservation_arn": same}),
    (variant, {"core_dump": lambda v: CoreDump(s3=v)}),
    (configuration, {"data_capture": lambda v: DataCapture(s3=v)}),
    (configuration, {"tags": lambda v: {"team": v}}),
    (endpoint, {"endpoint_name": same}),
    (endpoint, {"tags": lambda v: {"team": v}}),
]
CANARY, LINEAR = DeploymentPolicy.canary, DeploymentPolicy.linear
PREFIX = {"prefix_length": 2048, "concurrency_threshold": 8}
SAMPLED = {"s3": "s3://captured"}
NUMBERS = [
    (variant, {"initial_instance_count": same}),
    (variant, {"weight": same}),
    (variant, {"volume_size_gib": same}),
    (variant, {"instance_pools": lambda v: [InstancePool(InstanceType("ml.m5.xlarge"), v)]}),
    *(
        (
            variant,
            {"routing": lambda v, name=name: RoutingStrategy.prefix_aware(**PREFIX | {name: v})},
        )
        for name in PREFIX
    ),
    (variant, {"startup_health_check_timeout": Duration.seconds}),
    (variant, {"model_data_download_timeout": Duration.seconds}),
    (variant, {"instance_provision_timeout": Duration.seconds}),
    (configuration, {"data_capture": lambda v: DataCapture(**SAMPLED, sampling_percentage=v)}),
    (
        configuration,
        {"metrics": lambda v: MetricsPublishing(publish_frequency=Duration.seconds(v))},
    ),
    (endpoint, {"deployment": lambda v: CANARY(size_percent=v)}),
    (endpoint, {"deployment": lambda v: CANARY(wait=Duration.seconds(v))}),
    (endpoint, {"deployment": lambda v: LINEAR(step_percent=v)}),
    (
        endpoint,
        {"deployment": lambda v: LINEAR(step_percent=v, maximum_execution=Duration.hours(2))},
    ),
    (endpoint, {"deployment": lambda v: DeploymentPolicy.rolling(batch_percent=v)}),
    (
        endpoint,
        {
            "deployment": lambda v: CANARY(
                termination_wait=Duration.seconds(v), maximum_execution=Duration.minutes(30)
            )
        },
    ),
    (endpoint, {"deployment": lambda v: CANARY(maximum_execution=Duration.seconds(v))}),
    (scale, {"min_instances": same}),
    (scale, {"max_instances": same}),
    (track_concurrency, {"max_concurrency_per_instance": same}),
    (track_concurrency, {"max_concurrency_per_instance": 4, "scale_in_cooldown": Duration.seconds}),
    (on_schedule, {"min_instances": same}),
    (on_schedule, {"max_instances": same}),
    (step_on_metric, {"evaluation_periods": same}),
    (step_on_metric, {"threshold": same}),
    (step_on_metric, {"steps": lambda v: [ScalingStep(lower=0, change=v)]}),
    (
        step_on_metric,
        {
            "steps": lambda v: [
                ScalingStep(lower=0, upper=v, change=1),
                ScalingStep(lower=v, change=2),
            ]
        },
    ),
    (alarms, {"client_error_rate": same}),
    (alarms, {"minimum_failures": same}),
    (alarms, {"minimum_invocations": same, "zone_imbalance": lambda _: 1.5}),
    (alarms, {"zone_imbalance": same}),
    (alarms, {"evaluation_periods": same}),
    (alarms, {"datapoints_to_alarm": same}),
]
CASES = [
    (make, given, token)
    for cases, tokens in ((TEXTS, (text, listed)), (NUMBERS, (number,)))
    for token in tokens
    for make, given in cases
]
NAMES = [f"{token.__name__}-{make.__name__}-{','.join(given)}" for make, given, token in CASES]


@pytest.mark.parametrize(("make", "given", "token"), sampled(CASES, 2), ids=NAMES)
def test_reaches_cloudformation_whole(new_stack, parts, template_of, make, given, token):
    # Some rules of cfn-lint mistake a parameter for its missing default.
    stack = new_stack(context={"@aws-cdk/core:validateAgainstDefaultRules": False})
    made_of(token(stack), stack, parts, make, given)
    resources = json.dumps(template_of(stack)["Resources"])
    assert '"Ref": "Given"' in resources
    assert "Token[" not in resources
    assert "e+2" not in resources  # a number that stood for a token, calculated with


@pytest.mark.parametrize(
    ("make", "given"),
    [
        (track_invocations, {"max_tps_per_instance": same}),
        (track_invocations, {"max_tps_per_instance": 1, "safety_factor": same}),
        (alarms, {"model_latency": lambda v: {"p99": Duration.millis(v)}}),
        (alarms, {"model_latency": lambda v: {"p99": Duration.seconds(v)}}),
        (variant, {"startup_health_check_timeout": Duration.minutes}),
        (endpoint, {"deployment": lambda v: CANARY(wait=Duration.minutes(v))}),
    ],
)
def test_what_cloudformation_would_have_to_calculate_is_refused(stack, parts, make, given):
    with pytest.raises(ConfigurationError) as raised:
        made_of(number(stack), stack, parts, make, given)
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
            lambda v: {"scaling": ScalingOptions(metric="concurrency", concurrency_target=v)},
            id="concurrency",
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
    alarms_on(stack, endpoint, error_rate=0.01, capacity_at_maximum=True)
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
    alarms_on(stack, endpoint, capacity_at_maximum=True)
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


def capture(stack, parts, destination):
    parts.configuration(stack, data_capture=DataCapture(s3=destination))


def dump(stack, parts, destination):
    variant(stack, parts, core_dump=CoreDump(s3=destination))


def read(stack, parts, uri):
    parts.serving(stack, data=ModelData.from_uri(uri))


@pytest.mark.parametrize(
    ("use", "uri", "action", "tail"),
    [
        (capture, lambda b: f"s3://{b.bucket_name}/captured", "s3:PutObject", "/captured/*"),
        (capture, lambda b: b.s3_url_for_object("captured/"), "s3:PutObject", "/captured/*"),
        (capture, lambda b: f"s3://{b.bucket_name}", "s3:PutObject", "/*"),
        (dump, lambda b: f"s3://{b.bucket_name}/cores", "s3:PutObject", "/cores/*"),
        (read, lambda b: f"s3://{b.bucket_name}/a.tar.gz", "s3:GetObject", "/a.tar.gz"),
        (read, lambda b: f"s3://{b.bucket_name}/llama/", "s3:GetObject", "/llama/*"),
    ],
)
def test_the_role_may_use_a_bucket_of_the_app_that_a_uri_names(
    stack, parts, template_of, use, uri, action, tail
):
    use(stack, parts, uri(s3.Bucket(stack, "Bucket", enforce_ssl=True)))
    assert not warnings_in(stack, "Rights")
    template = template_of(stack)
    made = template.only_id("AWS::S3::Bucket")
    assert text_of(template.granted[action]["Resource"]) == f"arn:aws:s3:::<{made}>{tail}"


def test_a_prefix_may_be_a_token_too(stack, parts, template_of):
    given = text(stack)
    parts.configuration(stack, data_capture=DataCapture(s3=f"s3://captured/{given}/raw"))
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
    parts.serving(stack, image=ContainerImage.from_uri(uri(stack)))
    assert not warnings_in(stack, "Rights")
    pulled = template_of(stack).granted["ecr:BatchGetImage"]["Resource"]
    assert text_of(pulled) == "arn:aws:ecr:us-east-1:123456789012:repository/team/x"


def test_the_role_may_pull_from_the_uri_of_a_repository(stack, parts, template_of):
    repository = ecr.Repository(stack, "Images", image_tag_mutability=ecr.TagMutability.IMMUTABLE)
    parts.serving(stack, image=ContainerImage.from_uri(repository.repository_uri_for_tag("7")))
    resource = template_of(stack).granted["ecr:BatchGetImage"]["Resource"]
    assert resource["Fn::Join"][1][-2] == ":repository/"
    assert resource["Fn::Join"][1][-1]["Ref"].startswith("Images")


@pytest.mark.parametrize(
    ("use", "uri", "id", "says"),
    [
        (
            lambda stack, parts, uri: parts.serving(stack, image=ContainerImage.from_uri(uri)),
            "{}",
            "imageRights",
            "ecr:BatchGetImage",
        ),
        (read, "{}", "modelDataRights", "s3:GetObject"),
        (read, "s3://{}", "modelDataRights", "s3:GetObject"),
        (capture, "{}", "writeRights", "s3:PutObject"),
        (dump, "{}", "writeRights", "s3:PutObject"),
    ],
)
def test_what_a_token_hides_is_said_to_be_allowed_by_the_user(stack, parts, use, uri, id, says):
    use(stack, parts, uri.format(text(stack)))
    (message,) = warnings_in(stack, f"low-latency-endpoint:{id}")
    assert says in message


def test_a_role_may_be_a_token(stack, parts, template_of):
    parts.model(stack, role=iam.Role.from_role_arn(stack, "Role", text(stack)))
    model = template_of(stack).only("AWS::SageMaker::Model")
    assert model["ExecutionRoleArn"] == {"Ref": "Given"}


def test_a_key_is_granted_even_where_the_bucket_is_hidden(stack, parts, template_of):
    key = kms.Key(stack, "Key")
    capture = DataCapture(s3=text(stack), key=key)
    parts.configuration(stack, data_capture=capture)
    template = template_of(stack)
    assert template.granted["kms:GenerateDataKey"]["Resource"] == {
        "Fn::GetAtt": [template.only_id("AWS::KMS::Key"), "Arn"]
    }
