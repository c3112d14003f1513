"""Nothing is dropped silently: what is not emulated makes the stack fail, and says why."""

from __future__ import annotations

import pytest
from signed_requests import refusal
from stacks_under_test import TRUST

from local_sagemaker.resources.calls import PropertyNotEmulated, agrees, coerce
from local_sagemaker.resources.table import TYPES

SMALLEST = "TransitionDefaultMinimumObjectSize"
EXPIRES = {"Status": "Enabled", "ExpirationInDays": 1}
KEYS = {"TargetObjectKeyFormat": {"SimplePrefix": {}}}
SIZES = {"Rules": [EXPIRES], SMALLEST: "varies_by_storage_class"}
MOVES = {"Rules": [{"Status": "Enabled", "Transitions": [{"StorageClass": "GLACIER"}]}]}
REGISTRY = {"LifecyclePolicyText": "{}", "RegistryId": "123456789012"}


@pytest.mark.parametrize("type_name", sorted(TYPES))
def test_every_type_refuses_a_property_it_does_not_honour(type_name):
    kind = TYPES[type_name]
    # Every property of a custom resource goes to its function.
    takes_all = type_name == "AWS::CloudFormation::CustomResource"
    assert kind.honours("NoSuchProperty") is takes_all
    tags = {"Tags"} if kind.tagged is not None else set()
    assert kind.replaces | {kind.name} - {None} | tags <= kind.properties


@pytest.mark.parametrize(
    ("type_name", "properties", "named"),
    [
        ("AWS::SNS::Topic", {"DisplayNam": "x"}, "DisplayNam"),
        ("AWS::EC2::VPCEndpoint", {"DnsOptions": {}}, "DnsOptions"),
        ("AWS::S3::Bucket", {"WebsiteConfiguration": {}}, "WebsiteConfiguration"),
    ],
)
def test_an_unknown_property_fails_the_stack_and_is_named(aws, stack, type_name, properties, named):
    topic = {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": "never-made"}}
    reason = stack.refusal(type_name, properties, Before=topic)
    assert f"{type_name}: property {named} is not emulated by the local AWS" in reason
    # Found before anything is created.
    assert "never-made" not in str(aws.client("sns").list_topics()["Topics"])


@pytest.mark.parametrize(
    ("type_name", "path", "value"),
    [
        ("AWS::S3::Bucket", "LoggingConfiguration.TargetObjectKeyFormat", KEYS),
        ("AWS::S3::Bucket", f"LifecycleConfiguration.{SMALLEST}", SIZES),
        ("AWS::S3::Bucket", "LifecycleConfiguration.Rules.Transitions", MOVES),
        ("AWS::ECR::Repository", "LifecyclePolicy.RegistryId", REGISTRY),
    ],
)
def test_a_property_that_would_get_lost_fails_the_stack(stack, type_name, path, value):
    reason = stack.refusal(type_name, {path.partition(".")[0]: value})
    assert f"{type_name}: property {path} is not emulated by the local AWS" in reason


def test_what_was_made_before_a_later_step_failed_goes_with_the_rollback(aws, stack):
    """As CloudFormation deletes what has a primary identifier."""
    nowhere = "arn:aws:iam::aws:policy/NoSuchPolicy"
    stack.refusal("AWS::ECR::Repository", {"RepositoryName": "half", "LifecyclePolicy": REGISTRY})
    stack.delete()
    stack.refusal("AWS::S3::Bucket", {"BucketName": "half", "LoggingConfiguration": {"X": "y"}})
    stack.delete()
    half = {"RoleName": "half", "AssumeRolePolicyDocument": TRUST}
    stack.refusal("AWS::IAM::Role", {**half, "ManagedPolicyArns": [nowhere]})
    repositories = aws.client("ecr").describe_repositories()["repositories"]
    assert "half" not in [each["repositoryName"] for each in repositories]
    assert "half" not in [each["Name"] for each in aws.client("s3").list_buckets()["Buckets"]]
    assert "half" not in [each["RoleName"] for each in aws.client("iam").list_roles()["Roles"]]


@pytest.mark.parametrize(
    "type_name", ["AWS::DynamoDB::Table", "AWS::EC2::Instance", "My::Own::Type"]
)
def test_an_unknown_type_fails_the_stack_and_is_named(stack, type_name):
    """Also one that moto's own CloudFormation knows: it would drop properties."""
    assert f"{type_name} is not emulated by the local AWS" in stack.refusal(type_name, {})


def test_an_unknown_property_in_an_update_changes_nothing(aws, stack):
    made = stack.deploy("AWS::SNS::Topic", {"DisplayName": "before"})
    stack.refusal("AWS::SNS::Topic", {"DisplayName": "after", "Nope": 1})
    found = aws.client("sns").get_topic_attributes(TopicArn=made.ref)["Attributes"]
    assert found["DisplayName"] == "before"


def test_policies_of_the_resource_itself_that_are_not_emulated_are_refused(stack):
    resource = {"Type": "AWS::SNS::Topic", "UpdatePolicy": {"AutoScalingRollingUpdate": {}}}
    failed = stack.template({"Resources": {"T": resource}}, expect_failure=True)
    assert "UpdatePolicy is not emulated" in failed.failure_reason


def test_coercion_names_the_whole_path(aws):
    shape = aws.client("sagemaker").meta.service_model.shape_for("CreateEndpointConfigInput")
    properties = {"ProductionVariants": [{"VariantName": "v", "RoutingConfig": {"Way": "x"}}]}
    with pytest.raises(PropertyNotEmulated) as refused:
        coerce(shape, properties, "")
    assert refused.value.path == "ProductionVariants.RoutingConfig.Way"


def test_coercion_gives_the_apis_types_and_spelling(aws):
    shape = aws.client("ecs").meta.service_model.shape_for("RegisterTaskDefinitionRequest")
    properties = {"Family": "f", "Cpu": 256, "ContainerDefinitions": [{"Essential": "true"}]}
    assert coerce(shape, properties, "") == {
        "family": "f",
        "cpu": "256",
        "containerDefinitions": [{"essential": True}],
    }


@pytest.mark.parametrize(
    ("service", "operation", "request_"),
    [
        ("service-quotas", "list_requested_service_quota_change_history", {}),
        ("iam", "list_service_specific_credentials", {}),
        ("sagemaker", "list_workteams", {}),
    ],
    ids=["json", "query", "ours beside moto's"],
)
def test_an_operation_that_is_not_there_is_refused_in_the_service_s_words(
    aws, service, operation, request_, capfd
):
    client = aws.client(service)
    name = client.meta.method_to_api_mapping[operation]
    code, message = refusal(getattr(client, operation), **request_)
    assert code == "InvalidAction"
    assert message.endswith(f":{name} is not emulated by the local AWS")
    assert "Traceback" not in capfd.readouterr().err


def test_an_operation_that_moto_stumbles_over_is_a_failure_that_an_sdk_can_read(aws):
    code, message = refusal(aws.client("ssm").describe_parameters, NextToken="abc")
    assert code == "InternalFailure"
    assert message.startswith("local AWS internal error: ValueError: invalid literal")


@pytest.mark.parametrize(
    ("stated", "found", "agree"),
    [
        *[("007", "7", False), ("1e3", "1000", False), (30, "30", True), ("30", 30.0, True)],
        *[(10, "1_0", False), (10**400, "1", False), (2**53 + 1, str(2**53), False)],
    ],
)
def test_drift_compares_text_as_text(stated: object, found: object, *, agree: bool) -> None:
    """A service may write a number as text; two texts are one or not."""
    assert agrees({"Name": stated}, {"Name": found, "More": 1}) is agree
