"""Endpoints, models and configurations of other stacks, apps and pipelines, taken into this one."""

from __future__ import annotations

import json

import aws_cdk as cdk
import pytest
from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sagemaker as sagemaker

from low_latency_endpoint import (
    Container,
    ContainerImage,
    DataCapture,
    Endpoint,
    EndpointConfiguration,
    InstanceType,
    LatencyDashboard,
    Model,
    ModelData,
    RuntimePrivateLink,
    VariantAttributes,
    WarmUp,
    WarmUpOptions,
    WarmUpPayload,
)
from low_latency_endpoint.errors import ConfigurationError

from .conftest import alarms_on, warnings_in

ARN = "arn:aws:sagemaker:eu-west-1:210987654321:endpoint/sentiment"
PACKAGE = "arn:aws:sagemaker:us-east-1:123456789012:model-package/fraud/7"


def all_traffic(**given):
    return VariantAttributes(
        name="AllTraffic", **{"instance_types": [InstanceType("ml.g5.2xlarge")], **given}
    )


def imported(stack, **given):
    given.setdefault("endpoint_name", "sentiment")
    given.setdefault("variants", [all_traffic()])
    return Endpoint.from_endpoint_attributes(stack, "Imported", **given)


def caller_of(stack):
    return iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))


def evaluated(value, imports):
    """What CloudFormation makes of Select, Split and ImportValue."""
    if not isinstance(value, dict):
        return value
    ((function, given),) = value.items()
    if function == "Fn::ImportValue":
        return imports[given]
    if function == "Fn::Split":
        return evaluated(given[1], imports).split(given[0])
    assert function == "Fn::Select"
    return evaluated(given[1], imports)[given[0]]


# --- endpoints -----------------------------------------------------------------------------------


def test_an_endpoint_by_name_is_called_with_a_grant_on_its_arn(stack, template_of):
    endpoint = Endpoint.from_endpoint_name(stack, "Imported", "Sentiment")
    endpoint.grant_invoke(caller_of(stack))
    resource = template_of(stack).granted["sagemaker:InvokeEndpoint"]
    assert "endpoint/sentiment" in json.dumps(resource)  # ARNs are in lower case
    assert endpoint.name_in(stack) == "Sentiment"


def test_an_endpoint_by_arn_says_its_account_and_region(stack, template_of):
    endpoint = Endpoint.from_endpoint_arn(stack, "Imported", ARN)
    endpoint.grant(caller_of(stack), "sagemaker:DescribeEndpoint")
    assert endpoint.endpoint_name == "sentiment"
    assert (endpoint.env.region, endpoint.env.account) == ("eu-west-1", "210987654321")
    assert endpoint.stack is stack
    granted = template_of(stack).granted
    assert {action: each["Resource"] for action, each in granted.items()} == {
        "sagemaker:DescribeEndpoint": ARN
    }


def test_an_arn_that_is_known_at_deployment_gives_a_name_known_then(stack, template_of):
    endpoint = Endpoint.from_endpoint_arn(stack, "Imported", cdk.Fn.import_value("EndpointArn"))
    cdk.CfnOutput(stack, "Name", value=endpoint.endpoint_name)
    name = template_of(stack)["Outputs"]["Name"]["Value"]
    assert evaluated(name, {"EndpointArn": ARN}) == "sentiment"


def test_metrics_of_an_endpoint_by_name_need_the_variants_name_alone(new_stack):
    endpoint = Endpoint.from_endpoint_name(new_stack(), "Imported", "sentiment")
    metric = endpoint.variant("AllTraffic").metric_model_latency("p99")
    assert metric.dimensions == {"EndpointName": "sentiment", "VariantName": "AllTraffic"}
    assert endpoint.variant("AllTraffic").metric_gpu_utilization().statistic == "Average"


def test_variants_that_were_stated_are_all_there_are(new_stack):
    with pytest.raises(ConfigurationError, match="LLE622"):
        imported(new_stack()).variant("primary")


def test_alarms_and_dashboard_watch_an_imported_endpoint(stack, template_of):
    endpoint = imported(stack)
    alarms = alarms_on(
        stack,
        endpoint,
        model_latency={"p99": Duration.millis(200)},
        cpu_utilization=50,
        error_rate=0.01,
    )
    LatencyDashboard(stack, "Dashboard", endpoint=endpoint, alarms=alarms)
    template = template_of(stack)
    assert template.types == {
        "AWS::CloudWatch::Alarm",
        "AWS::CloudWatch::CompositeAlarm",
        "AWS::CloudWatch::Dashboard",
    }
    thresholds = {
        each["MetricName"]: each["Threshold"]
        for each in template.of_type("AWS::CloudWatch::Alarm").values()
        if "MetricName" in each
    }
    # 200 ms are 200,000 microseconds; half of the eight vCPUs of an ml.g5.2xlarge are 400 percent.
    assert thresholds == {"ModelLatency": 200_000, "CPUUtilization": 400}


def test_an_imported_variant_of_unknown_type_is_alarmed_on_as_one_vcpu(stack, template_of):
    endpoint = imported(stack, variants=[VariantAttributes(name="AllTraffic")])
    alarms_on(stack, endpoint, cpu_utilization=50)
    assert template_of(stack).only("AWS::CloudWatch::Alarm")["Threshold"] == 50


def test_an_imported_endpoint_scales(stack, template_of):
    scaling = imported(stack).scale("AllTraffic", min_instances=2, max_instances=6)
    scaling.track_invocations(max_tps_per_instance=10, safety_factor=0.5)
    template = template_of(stack)
    target = template.only("AWS::ApplicationAutoScaling::ScalableTarget")
    assert target["ResourceId"] == "endpoint/sentiment/variant/AllTraffic"
    policy = template.only("AWS::ApplicationAutoScaling::ScalingPolicy")
    configuration = policy["TargetTrackingScalingPolicyConfiguration"]
    assert configuration["TargetValue"] == 10 * 0.5 * 60


def test_an_imported_fleet_is_held_against_the_room_where_it_is_known(new_stack, parts):
    stack = new_stack()
    network = parts.network(stack, max_instances=2)
    endpoint = imported(stack, variants=[all_traffic(network=network)])
    with pytest.raises(ConfigurationError, match="LLE157"):
        endpoint.scale("AllTraffic", min_instances=1, max_instances=100)
    with pytest.raises(ConfigurationError, match="LLE625"):
        imported(new_stack(), variants=[all_traffic(instance_count=9)]).scale(
            "AllTraffic", min_instances=1, max_instances=2
        )


def test_an_imported_endpoint_is_warmed_up_and_load_tested(stack, parts, template_of):
    network = parts.network(stack)
    link = RuntimePrivateLink(stack, "Link", network=network)
    endpoint = imported(stack, endpoint_config_name="sentiment-7")
    WarmUp(
        stack,
        "WarmUp",
        endpoint=endpoint,
        private_link=link,
        network=network,
        options=WarmUpOptions(payload=WarmUpPayload(data={"inputs": "I like you."})),
    )
    parts.fleet(stack, endpoint=endpoint, private_link=link, network=network)
    template = template_of(stack)
    warmed = template.only("Custom::WarmUp")
    assert warmed["EndpointName"] == "sentiment"
    assert warmed["EndpointConfigName"] == "sentiment-7"  # another one is warmed up again
    assert "AWS::SageMaker::Endpoint" not in template.types


# --- models and configurations -------------------------------------------------------------------


def test_a_variant_serves_a_model_by_its_name(stack, parts, template_of):
    model = Model.from_model_name(stack, "Approved", "fraud-2026-11-20")
    endpoint = parts.endpoint(stack, variants=[parts.variant(stack, model=model)])
    endpoint.scale("primary", min_instances=2, max_instances=4)
    template = template_of(stack)
    variant = template.variant
    assert variant["ModelName"] == "fraud-2026-11-20"
    assert "AWS::SageMaker::Model" not in template.types


def foreign_model(stack, **given):
    given.setdefault(
        "primary_container",
        sagemaker.CfnModel.ContainerDefinitionProperty(
            image="763104351884.dkr.ecr.us-east-1.amazonaws.com/"
            "huggingface-pytorch-inference:2.6.0-transformers4.51.3-gpu-py312-cu124-ubuntu22.04"
        ),
    )
    return sagemaker.CfnModel(
        stack, "Foreign", execution_role_arn="arn:aws:iam::123456789012:role/hosting", **given
    )


def test_a_variant_serves_a_model_of_other_code(stack, parts, template_of):
    model = Model.from_cfn_model(foreign_model(stack))
    on_gpu = parts.variant(stack, model=model, instance_type=InstanceType("ml.g5.xlarge"))
    parts.configuration(stack, variants=[on_gpu])
    template = template_of(stack)
    variant = template.variant
    assert variant["ModelName"] == {"Fn::GetAtt": ["Foreign", "ModelName"]}


def test_the_image_of_other_codes_model_is_held_against_the_type(stack, parts):
    model = Model.from_cfn_model(foreign_model(stack))
    with pytest.raises(ConfigurationError, match="LLE33"):
        parts.configuration(stack, variants=[parts.variant(stack, model=model)])


def test_a_pipeline_of_other_code_is_known_as_one(stack):
    containers = [
        {"image": "registry/first:1"},
        sagemaker.CfnModel.ContainerDefinitionProperty(image=cdk.Fn.ref("Second")),
    ]
    model = Model.from_cfn_model(
        foreign_model(stack, primary_container=None, containers=containers)
    )
    assert model.shape == "pipeline"
    assert [image.reference for image in model.images] == ["registry/first:1"]
    assert Model.from_cfn_model(model.node.scope) is model  # once, however often it is asked for


@pytest.mark.parametrize("known", [True, False])
def test_what_an_imported_models_role_needs_is_allowed_or_said(stack, parts, template_of, known):
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    model = Model.from_model_attributes(
        stack, "Approved", model_name="fraud", role=role if known else None
    )
    parts.configuration(
        stack,
        variants=[parts.variant(stack, model=model)],
        encryption_key=kms.Key.from_key_arn(
            stack, "Key", "arn:aws:kms:us-east-1:123456789012:key/a"
        ),
        data_capture=DataCapture(s3="s3://captured/fraud"),
    )
    warned = warnings_in(model, "importedModelRights")
    template = template_of(stack)
    if known:
        assert not warned
        assert template.granted["s3:PutObject"]
        assert "kms:CreateGrant" in template.granted
    else:
        assert warned
        assert "AWS::IAM::Policy" not in template.types


def test_an_endpoint_here_runs_a_configuration_of_a_pipeline(stack, template_of):
    configuration = EndpointConfiguration.from_endpoint_config_name(
        stack, "Approved", "fraud-7", variants=[all_traffic(instance_count=2)]
    )
    endpoint = Endpoint(stack, "Endpoint", configuration=configuration, endpoint_name="fraud")
    endpoint.scale("AllTraffic", min_instances=2, max_instances=4)
    template = template_of(stack)
    made = template.only("AWS::SageMaker::Endpoint")
    assert made["EndpointConfigName"] == "fraud-7"
    assert made["RetainAllVariantProperties"] is True
    with pytest.raises(ConfigurationError, match="LLE401"):
        EndpointConfiguration.from_endpoint_config_name(stack, "None", "fraud-7", variants=[])


# --- containers ----------------------------------------------------------------------------------


def test_a_model_package_is_named_and_its_contents_are_allowed(stack, parts, template_of):
    model = parts.serving(
        stack,
        model_package=PACKAGE,
        image=ContainerImage.from_uri("123456789012.dkr.ecr.us-east-1.amazonaws.com/fraud:7"),
        data="s3://approved/fraud/7/model.tar.gz",
        environment={"LOG_LEVEL": "warn"},
    )
    assert not warnings_in(model, "modelPackageRights")
    template = template_of(stack)
    assert template.container == {"ModelPackageName": PACKAGE, "Environment": {"LOG_LEVEL": "warn"}}
    rights = json.dumps(template.model_rights)
    assert "repository/fraud" in rights
    assert "approved/fraud/7/model.tar.gz" in rights


def test_a_model_package_of_unknown_contents_says_what_the_role_needs(new_stack, parts):
    model = parts.serving(new_stack(), model_package=PACKAGE, image=None, data=None)
    (warning,) = warnings_in(model, "modelPackageRights")
    assert "ecr:BatchGetImage" in warning
    assert "s3:GetObject" in warning


def test_an_image_of_a_registry_in_the_vpc_is_pulled_through_it(stack, parts, template_of):
    credentials = lambda_.Function.from_function_arn(
        stack, "Login", "arn:aws:lambda:us-east-1:123456789012:function:login"
    )
    image = ContainerImage.from_private_registry(
        "registry.example.com/fraud:7", credentials=credentials
    )
    parts.serving(stack, image=image)
    template = template_of(stack)
    container = template.container
    assert container["Image"] == "registry.example.com/fraud:7"
    assert container["ImageConfig"] == {
        "RepositoryAccessMode": "Vpc",
        "RepositoryAuthConfig": {"RepositoryCredentialsProviderArn": credentials.function_arn},
    }
    invoking = [each for each in template.model_rights if "lambda:" in str(each["Action"])]
    assert [each["Resource"] for each in invoking] == [credentials.function_arn]


def test_models_that_are_each_called_rarely_are_not_kept(stack, parts, template_of):
    image = ContainerImage.from_uri("123456789012.dkr.ecr.us-east-1.amazonaws.com/many:1")
    parts.serving(stack, image=image, data="s3://models/all/", multi_model=True, model_cache=False)
    container = template_of(stack).container
    assert container["MultiModelConfig"] == {"ModelCacheSetting": "Disabled"}
    assert container["Mode"] == "MultiModel"


def test_the_short_forms_of_a_container_say_the_same(new_stack):
    image = ("huggingface-pytorch-inference", "2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04")
    data = "s3://models/distilbert/model.tar.gz"
    short = Container.from_dlc(*image, data=data, environment={"HF_TASK": "text-classification"})
    long = Container(
        image=ContainerImage.from_dlc(*image),
        data=ModelData.from_uri(data),
        environment={"HF_TASK": "text-classification"},
    )
    assert short.image == long.image
    assert short.model_data == long.model_data
    assert short.environment == long.environment
    uri = "123456789012.dkr.ecr.us-east-1.amazonaws.com/fraud:7"
    assert Container.from_uri(uri) == Container(image=ContainerImage.from_uri(uri))


# --- CDK's conventions ---------------------------------------------------------------------------


def test_resources_take_removal_policies(stack, parts, template_of):
    endpoint = parts.endpoint(stack)
    for each in (endpoint, endpoint.configuration, endpoint.configuration.variants[0].model):
        each.apply_removal_policy(cdk.RemovalPolicy.RETAIN)
        assert each.env.region == "us-east-1"
        assert each.stack is stack
    template = template_of(stack)
    retained = {
        resource["Type"]
        for resource in template["Resources"].values()
        if resource.get("DeletionPolicy") == "Retain"
    }
    assert retained == {
        "AWS::SageMaker::Endpoint",
        "AWS::SageMaker::EndpointConfig",
        "AWS::SageMaker::Model",
    }


def test_constructs_of_one_resource_have_it_as_default_child(stack, parts):
    endpoint = parts.endpoint(stack)
    network = endpoint.configuration.variants[0].model.network
    link = RuntimePrivateLink(stack, "Link", network=network)
    scaling = endpoint.scale("primary", min_instances=2, max_instances=4)
    alarms = alarms_on(stack, endpoint, error_rate=0.1)
    types = {
        type(each).__name__: each.node.default_child.cfn_resource_type
        for each in (
            network,
            link,
            endpoint.configuration.variants[0].model,
            endpoint.configuration,
            endpoint,
            scaling,
            alarms,
            LatencyDashboard(stack, "Dashboard", endpoint=endpoint),
        )
    }
    assert types == {
        "ZoneAlignedNetwork": "AWS::EC2::VPC",
        "RuntimePrivateLink": "AWS::EC2::VPCEndpoint",
        "Model": "AWS::SageMaker::Model",
        "EndpointConfiguration": "AWS::SageMaker::EndpointConfig",
        "Endpoint": "AWS::SageMaker::Endpoint",
        "InvocationScaling": "AWS::ApplicationAutoScaling::ScalableTarget",
        "LatencyAlarms": "AWS::CloudWatch::CompositeAlarm",
        "LatencyDashboard": "AWS::CloudWatch::Dashboard",
    }


def test_an_override_of_a_default_child_reaches_the_template(stack, parts, template_of):
    link = RuntimePrivateLink(stack, "Link", network=parts.network(stack))
    link.node.default_child.add_property_override("DnsOptions.DnsRecordIpType", "ipv4")
    found = [
        each
        for each in template_of(stack).of_type("AWS::EC2::VPCEndpoint").values()
        if "DnsOptions" in each
    ]
    assert [each["VpcEndpointType"] for each in found] == ["Interface"]
