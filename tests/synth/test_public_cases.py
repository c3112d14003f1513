"""Public CDK apps that serve models with SageMaker, each as this library says it.

What they were (listed in the review of other apps): fourteen cases found on GitHub. Each is our own
version, and none reaches for a ``cfn_*`` property. Two are not here, since nothing in them has low
latency: an asynchronous endpoint and a serverless one; docs/explanation/which-service.md says where to go.
"""

from __future__ import annotations

from dataclasses import replace

import aws_cdk as cdk
import pytest
from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_ssm as ssm

from low_latency_endpoint import (
    AlarmOptions,
    ClientZones,
    ComponentHost,
    ConfigurationOptions,
    Container,
    ContainerImage,
    DataCapture,
    Endpoint,
    EndpointConfiguration,
    EndpointOptions,
    InferenceComponent,
    InstanceCounts,
    InstanceType,
    LatencyAlarms,
    LatencyTarget,
    LowLatencyEndpoint,
    MeasuredThroughput,
    Model,
    ModelData,
    ModelOptions,
    ProductionVariant,
    RoutingStrategy,
    RuntimePrivateLink,
    ScalingOptions,
    VariantOptions,
    ZoneAlignedNetwork,
)
from tests.cdk_features import needs_cdk

CPU = ("huggingface-pytorch-inference", "2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04")
GPU = ("huggingface-pytorch-inference", "2.6.0-transformers4.51.3-gpu-py312-cu124-ubuntu22.04")
ZONES = ["use1-az1", "use1-az2"]


def only_variant(template):
    (variant,) = template.only("AWS::SageMaker::EndpointConfig")["ProductionVariants"]
    return variant


def test_triton_on_a_gpu_of_one_instance(new_stack, template_of):
    stack = new_stack(region="eu-west-1")
    bucket = s3.Bucket.from_bucket_name(stack, "Models", "triton-mnist")
    LowLatencyEndpoint(
        stack,
        "Mnist",
        client_zones=["euw1-az1", "euw1-az2"],
        containers=[
            Container.from_uri(
                "763104351884.dkr.ecr.eu-west-1.amazonaws.com/sagemaker-tritonserver:25.04-py3",
                data=ModelData.from_s3(bucket, "mnist/model.tar.gz"),
                environment={"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "mnist"},
            )
        ],
        instance_type="ml.g4dn.xlarge",
        instances=InstanceCounts(initial=1),
        scaling=ScalingOptions(enabled=False, keep_counts=False),
    )
    variant = only_variant(template_of(stack))
    assert (variant["InstanceType"], variant["InitialInstanceCount"]) == ("ml.g4dn.xlarge", 1)


@needs_cdk("RemovalPolicies")
def test_yolo_from_ecr_in_the_default_vpc_kept_when_the_stack_goes(new_stack, template_of):
    stack = new_stack()
    # A default VPC has public subnets only; who takes them says so.
    vpc = ec2.Vpc.from_vpc_attributes(
        stack,
        "Default",
        vpc_id="vpc-0123456789abcdef0",
        availability_zones=["us-east-1a", "us-east-1b"],
        public_subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    )
    endpoint = LowLatencyEndpoint(
        stack,
        "Yolo",
        vpc=vpc,
        client_zones=["us-east-1a", "us-east-1b"],
        subnet_selection=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PUBLIC),
        private_dns=True,
        containers=[
            Container(
                image=ContainerImage.from_ecr_repository(
                    ecr.Repository.from_repository_name(stack, "Repository", "yolov11"), "8.3.0"
                )
            )
        ],
        instance_type="ml.g4dn.xlarge",
    )
    cdk.RemovalPolicies.of(endpoint).retain()
    template = template_of(stack)
    kept = [each["Type"] for each in template["Resources"].values() if "DeletionPolicy" in each]
    assert {"AWS::SageMaker::Model", "AWS::SageMaker::Endpoint"} <= set(kept)
    assert template.only("AWS::SageMaker::Model")["VpcConfig"]["Subnets"] == [
        "subnet-0123456789abcdef0",
        "subnet-0123456789abcdef1",
    ]


def test_the_newest_approved_version_of_the_model_registry(new_stack, template_of):
    stack = new_stack()
    package = cdk.CfnParameter(stack, "ModelPackage").value_as_string
    LowLatencyEndpoint(
        stack,
        "Fraud",
        client_zones=ZONES,
        containers=[
            Container(
                model_package=package,
                image=ContainerImage.from_dlc(*CPU),
                data="s3://approved-models/fraud/",
            )
        ],
        instance_type="ml.m5.xlarge",
    )
    template = template_of(stack)
    container = template.only("AWS::SageMaker::Model")["PrimaryContainer"]
    assert container == {"ModelPackageName": {"Ref": "ModelPackage"}}
    assert "approved-models" in str(template.model_rights)


def test_a_jumpstart_embedding_model_with_a_role_that_exists(new_stack, template_of):
    stack = new_stack()
    role = iam.Role.from_role_arn(stack, "Role", "arn:aws:iam::123456789012:role/jumpstart")
    LowLatencyEndpoint(
        stack,
        "GptJ",
        client_zones=ZONES,
        containers=[
            Container.from_dlc(
                *GPU,
                data=f"s3://jumpstart-cache-prod-{cdk.Aws.REGION}/huggingface-infer/gpt-j.tar.gz",
                environment={"SAGEMAKER_PROGRAM": "inference.py"},
            )
        ],
        instance_type="ml.g5.24xlarge",
        model=ModelOptions(role=role),
    )
    model = template_of(stack).only("AWS::SageMaker::Model")
    assert model["ExecutionRoleArn"] == "arn:aws:iam::123456789012:role/jumpstart"


def test_an_uncompressed_model_and_its_name_as_a_parameter(new_stack, template_of):
    stack = new_stack()
    endpoint = LowLatencyEndpoint(
        stack,
        "Text",
        client_zones=ZONES,
        containers=[Container.from_dlc(*GPU, data="s3://models/flan-t5/")],
        instance_type="ml.g5.2xlarge",
        variant=VariantOptions(startup_health_check_timeout=Duration.minutes(10)),
    )
    ssm.StringParameter(
        stack, "Name", parameter_name="/text/endpoint", string_value=endpoint.endpoint.endpoint_name
    )
    template = template_of(stack)
    source = template.only("AWS::SageMaker::Model")["PrimaryContainer"]["ModelDataSource"]
    assert source["S3DataSource"]["CompressionType"] == "None"
    value = template.only("AWS::SSM::Parameter")["Value"]
    assert value["Fn::GetAtt"][0] == template.only_id("AWS::SageMaker::Endpoint")


def test_instance_type_and_counts_as_parameters(new_stack, template_of):
    """By the parts: a plan cannot count with a number that is known at deployment."""
    stack = new_stack()
    type_ = cdk.CfnParameter(stack, "InstanceType", default="ml.m5.xlarge")
    count = cdk.CfnParameter(stack, "Count", type="Number", default=2)
    most = cdk.CfnParameter(stack, "Most", type="Number", default=4)
    network = ZoneAlignedNetwork(stack, "Network", client_zones=zones_of_ids(), max_instances=20)
    model = Model(
        stack,
        "Model",
        network=network,
        containers=[Container.from_dlc(*CPU, environment={"HF_MODEL_ID": "distilbert"})],
    )
    endpoint = Endpoint(
        stack,
        "Endpoint",
        configuration=EndpointConfiguration(
            stack,
            "Configuration",
            variants=[
                ProductionVariant(
                    model=model,
                    instance_type=InstanceType(type_.value_as_string),
                    initial_instance_count=count.value_as_number,
                )
            ],
        ),
    )
    scaling = endpoint.scale(
        "primary", min_instances=count.value_as_number, max_instances=most.value_as_number
    )
    scaling.track_invocations(target_invocations_per_instance=500)
    template = template_of(stack)
    variant = only_variant(template)
    assert variant["InstanceType"] == {"Ref": "InstanceType"}
    assert variant["InitialInstanceCount"] == {"Ref": "Count"}
    target = template.only("AWS::ApplicationAutoScaling::ScalableTarget")
    assert (target["MinCapacity"], target["MaxCapacity"]) == ({"Ref": "Count"}, {"Ref": "Most"})
    policy = template.only("AWS::ApplicationAutoScaling::ScalingPolicy")
    configuration = policy["TargetTrackingScalingPolicyConfiguration"]
    assert configuration["TargetValue"] == 500


def zones_of_ids():
    from low_latency_endpoint import ClientZones

    return ClientZones.of_ids(*ZONES)


def test_gpt2_with_capture_an_alarm_of_its_own_and_a_scaling_target_of_seventy(
    new_stack, template_of
):
    stack = new_stack()

    def parameter(name: str) -> str:
        return ssm.StringParameter.value_for_string_parameter(stack, f"/gpt2/{name}")

    endpoint = LowLatencyEndpoint(
        stack,
        "Gpt2",
        client_zones=ZONES,
        containers=[Container.from_dlc(*GPU, data=f"s3://{parameter('bucket')}/gpt2/model.tar.gz")],
        instance_type="ml.g4dn.xlarge",
        instances=InstanceCounts(min=1, initial=1, max=4),
        scaling=ScalingOptions(invocations_target=70),
        model=ModelOptions(role=iam.Role.from_role_arn(stack, "Role", parameter("role"))),
        configuration=ConfigurationOptions(
            data_capture=DataCapture(s3="s3://captured/gpt2", sampling_percentage=100)
        ),
        endpoint=EndpointOptions(endpoint_name="gpt2"),
    )
    cloudwatch.Alarm(
        stack,
        "Errors",
        metric=endpoint.metric_invocation_5xx_errors("Sum"),
        threshold=0,
        evaluation_periods=1,
    )
    template = template_of(stack)
    policy = template.only("AWS::ApplicationAutoScaling::ScalingPolicy")
    assert policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 70
    target = template.only("AWS::ApplicationAutoScaling::ScalableTarget")
    assert (target["MinCapacity"], target["MaxCapacity"]) == (1, 4)


def test_a_loop_of_models_in_one_network(new_stack, template_of):
    stack = new_stack()
    network = ZoneAlignedNetwork(stack, "Network", client_zones=zones_of_ids(), max_instances=12)
    link = RuntimePrivateLink(stack, "Link", network=network)
    for name in ("sentiment", "toxicity", "language"):
        LowLatencyEndpoint(
            stack,
            name.capitalize(),
            network=network,
            private_link=link,
            containers=[Container.from_dlc(*CPU, data=f"s3://models/{name}.tar.gz")],
            instance_type="ml.c6i.large",
            endpoint=EndpointOptions(endpoint_name=name),
        )
    endpoints = template_of(stack).of_type("AWS::SageMaker::Endpoint").values()
    assert {each["EndpointName"] for each in endpoints} == {"sentiment", "toxicity", "language"}


def test_llama_as_an_inference_component_that_scales_to_none_and_back(new_stack, template_of):
    stack = new_stack()
    network = ZoneAlignedNetwork(stack, "Network", client_zones=ClientZones.of_ids(*ZONES))
    host = ComponentHost(stack, "Host", network=network, min_instances=0, max_instances=2)
    patience = {
        "startup_health_check_timeout": Duration.hours(1),
        "model_data_download_timeout": Duration.hours(1),
    }
    instance_type = cdk.CfnParameter(stack, "InstanceType", default="ml.g5.12xlarge")
    configuration = EndpointConfiguration(
        stack,
        "Configuration",
        variants=[
            ProductionVariant(
                name="variant-0",
                model=host,
                instance_type=instance_type.value_as_string,
                initial_instance_count=1,
                routing=RoutingStrategy.LEAST_OUTSTANDING_REQUESTS,
                **patience,
            )
        ],
    )
    llama = InferenceComponent(
        stack,
        "Llama",
        endpoint=Endpoint(stack, "Endpoint", configuration=configuration),
        model=Model(
            stack,
            "Model",
            network=network,
            role=host.role,
            containers=[
                Container.from_uri(
                    "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.31.0-lmi13.0.0-cu124",
                    data="s3://models/llama-3-8b/",
                    environment={"OPTION_TENSOR_PARALLEL_DEGREE": "4"},
                )
            ],
        ),
        component_name="llama-inference-component",
        accelerators=4,
        memory=cdk.Size.mebibytes(104096),
        copies=1,
        **patience,
    )
    scaling = llama.scale(min_copies=0, max_copies=2)
    scaling.track_invocations(target_invocations_per_copy=1).from_zero()
    template = template_of(stack)
    config = template.only("AWS::SageMaker::EndpointConfig")
    (variant,) = config["ProductionVariants"]
    assert "ModelName" not in variant
    assert variant["ManagedInstanceScaling"] == {
        "Status": "ENABLED",
        "MinInstanceCount": 0,
        "MaxInstanceCount": 2,
    }
    model = template.only("AWS::SageMaker::Model")
    assert config["ExecutionRoleArn"] == model["ExecutionRoleArn"]
    component = template.only("AWS::SageMaker::InferenceComponent")
    assert component["RuntimeConfig"] == {"CopyCount": 1}
    assert component["Specification"]["StartupParameters"] == {
        "ContainerStartupHealthCheckTimeoutInSeconds": 3600,
        "ModelDataDownloadTimeoutInSeconds": 3600,
    }
    target = template.only("AWS::ApplicationAutoScaling::ScalableTarget")
    assert target["ResourceId"] == "inference-component/llama-inference-component"
    assert (target["MinCapacity"], target["MaxCapacity"]) == (0, 2)
    tracked, stepped = sorted(
        template.of_type("AWS::ApplicationAutoScaling::ScalingPolicy").values(),
        key=lambda policy: policy["PolicyType"],
        reverse=True,
    )
    tracking = tracked["TargetTrackingScalingPolicyConfiguration"]
    assert tracking["TargetValue"] == 1
    step = stepped["StepScalingPolicyConfiguration"]["StepAdjustments"]
    assert step == [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}]
    alarm = template.only("AWS::CloudWatch::Alarm")
    assert (alarm["MetricName"], alarm["Statistic"]) == ("NoCapacityInvocationFailures", "Sum")
    assert alarm["Dimensions"] == [
        {"Name": "InferenceComponentName", "Value": "llama-inference-component"}
    ]


def test_falcon_in_the_vpc_of_a_chatbots_app_without_an_environment(new_stack, template_of):
    stack = new_stack(region=None)
    vpc = ec2.Vpc(stack, "Vpc", max_azs=2)
    LowLatencyEndpoint(
        stack,
        "Falcon",
        vpc=vpc,
        client_zones=ZONES,
        subnets=dict(zip(ZONES, vpc.private_subnets, strict=True)),
        private_dns=True,
        containers=[Container.from_dlc(*GPU, data="s3://models/falcon-lite/")],
        instance_type="ml.g5.12xlarge",
        callers=[ec2.Peer.ipv4(vpc.vpc_cidr_block)],
    )
    model = template_of(stack).only("AWS::SageMaker::Model")
    assert len(model["VpcConfig"]["Subnets"]) == 2


def test_two_variants_an_alarm_scaling_and_a_grant(new_stack, template_of):
    """The example of aws-cdk's alpha module for SageMaker."""
    stack = new_stack()
    network = ZoneAlignedNetwork(stack, "Network", client_zones=zones_of_ids(), max_instances=8)

    def variant(name: str, weight: float) -> ProductionVariant:
        model = Model(
            stack,
            f"Model-{name}",
            network=network,
            containers=[Container.from_dlc(*CPU, data=f"s3://models/{name}.tar.gz")],
        )
        return ProductionVariant(name=name, model=model, instance_type="ml.m5.large", weight=weight)

    endpoint = Endpoint(
        stack,
        "Endpoint",
        configuration=EndpointConfiguration(
            stack, "Configuration", variants=[variant("first", 2), variant("second", 1)]
        ),
    )
    LatencyAlarms(
        stack,
        "Alarms",
        endpoint=endpoint,
        options=replace(AlarmOptions.none(), model_latency={"p99": Duration.millis(100)}),
    )
    endpoint.scale("second", min_instances=2, max_instances=4).track_invocations(
        max_tps_per_instance=30
    )
    endpoint.grant_invoke(
        iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    )
    (configuration,) = template_of(stack).of_type("AWS::SageMaker::EndpointConfig").values()
    weights = {
        each["VariantName"]: each["InitialVariantWeight"]
        for each in configuration["ProductionVariants"]
    }
    assert weights == {"first": 2, "second": 1}


def test_a_function_in_the_vpc_that_calls(new_stack, template_of):
    """What aws-solutions-constructs' aws-lambda-sagemakerendpoint makes."""
    stack = new_stack()
    sentiment = LowLatencyEndpoint(
        stack,
        "Sentiment",
        client_zones=ZONES,
        containers=[Container.from_dlc(*CPU, data="s3://models/sentiment.tar.gz")],
        instance_type="ml.m5.xlarge",
        latency=LatencyTarget(p99=Duration.millis(200)),
        throughput=MeasuredThroughput(peak_tps=100, tps_per_instance=50),
    )
    function = lambda_.Function(
        stack,
        "Function",
        runtime=lambda_.Runtime.PYTHON_3_12,
        handler="index.handler",
        code=lambda_.Code.from_inline("def handler(event, context): ..."),
        vpc=sentiment.network.vpc,
        vpc_subnets=sentiment.network.subnet_selection,
        environment={"SAGEMAKER_ENDPOINT_NAME": sentiment.endpoint.endpoint_name},
    )
    sentiment.private_link.allow_from(function)
    sentiment.grant_invoke(function)
    template = template_of(stack)
    rules = template.of_type("AWS::EC2::SecurityGroupIngress").values()
    assert [each["FromPort"] for each in rules] == [443]
    policies = str(template.of_type("AWS::IAM::Policy"))
    assert "sagemaker:InvokeEndpoint" in policies


@pytest.mark.parametrize("endpoints", [3])
def test_what_a_team_has_not_measured_is_said_once_for_the_app(new_stack, endpoints):
    stack = new_stack()
    network = ZoneAlignedNetwork(stack, "Network", client_zones=zones_of_ids())
    link = RuntimePrivateLink(stack, "Link", network=network)
    for number in range(endpoints):
        LowLatencyEndpoint(
            stack,
            f"Endpoint{number}",
            network=network,
            private_link=link,
            containers=[Container.from_dlc(*CPU)],
            instance_type="ml.m5.large",
        )
    said = [
        str(entry.data)
        for construct in stack.node.find_all()
        for entry in construct.node.metadata
        if entry.type == "aws:cdk:warning"
    ]
    for warning in ("plan:no-latency-target", "plan:no-throughput"):
        assert len([each for each in said if warning in each]) == 1, warning
