"""One key, one log retention and given roles reach everything that a stack makes."""

from __future__ import annotations

from itertools import chain

import aws_cdk as cdk
import jsii
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_

from low_latency_endpoint import (
    AlarmTopic,
    CanaryOptions,
    ConfigurationOptions,
    CoreDump,
    DataCapture,
    InstanceType,
    KeepWarmOptions,
    Safeguards,
    VariantOptions,
    WarmUpOptions,
    WarmUpPayload,
)
from tests.cdk_features import needs_cdk
from tests.refusals import refused

from .iam_decisions import ACCOUNT, allows, text

KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
OWN = "arn:aws:kms:us-east-1:123456789012:key/99999999-12ab-34cd-56ef-1234567890ab"
VIA_LOGS = {"kms_ViaService": "logs.us-east-1.amazonaws.com"}


def fill(stack, parts, instance_type="ml.m5.xlarge", key=None, encryption_key=None, **given):
    pattern = parts.pattern(
        stack,
        instance_type=InstanceType(instance_type),
        configuration=ConfigurationOptions(
            encryption_key=encryption_key,
            data_capture=DataCapture(s3="s3://archive/captured", key=key),
        ),
        variant=VariantOptions(core_dump=CoreDump(s3="s3://archive/cores", key=key)),
        warm_up=WarmUpOptions(payload=WarmUpPayload(data={"a": 1}), keep_warm=KeepWarmOptions()),
        **given,
    )
    linked = {"network": pattern.network, "private_link": pattern.private_link}
    parts.fleet(stack, **linked, endpoint=pattern.endpoint)
    AlarmTopic(stack, "OnCall")
    return pattern


@pytest.fixture
def guarded(stack, parts, template_of):
    def build(key=KEY, **given):
        imported = kms.Key.from_key_arn(stack, "Key", key) if isinstance(key, str) else key(stack)
        Safeguards(encryption_key=imported, log_retention_days=365).apply_to(stack)
        fill(stack, parts, **given)
        return template_of(stack)

    return build


def test_one_key_encrypts_everything(guarded):
    template = guarded()
    groups = template.of_type("AWS::Logs::LogGroup").values()
    # default group, former names, drain, check, sender, controller, flow log, fleet
    assert len(groups) == 8
    assert {group["KmsKeyId"] for group in groups} == {KEY}
    assert {group["RetentionInDays"] for group in groups} == {365}
    queue = template.only("AWS::SQS::Queue")
    assert queue["KmsMasterKeyId"] == KEY
    assert "SqsManagedSseEnabled" not in queue  # SQS takes one of the two
    assert template.only("AWS::SNS::Topic")["KmsMasterKeyId"] == KEY
    (rule,) = template.only("AWS::S3::Bucket")["BucketEncryption"][
        "ServerSideEncryptionConfiguration"
    ]
    assert rule["ServerSideEncryptionByDefault"] == {
        "KMSMasterKeyID": KEY,
        "SSEAlgorithm": "aws:kms",
    }
    configuration = template.only("AWS::SageMaker::EndpointConfig")
    assert configuration["KmsKeyId"] == KEY
    assert configuration["DataCaptureConfig"]["KmsKeyId"] == KEY
    (variant,) = configuration["ProductionVariants"]
    assert variant["CoreDumpConfig"]["KmsKeyId"] == KEY
    with_environment = [
        each for each in template.of_type("AWS::Lambda::Function").values() if "Environment" in each
    ]
    assert [each["KmsKeyArn"] for each in with_environment] == [KEY, KEY]
    assert not template.of_type("AWS::KMS::Key")  # none of its own beside it


def policies_of(template, role_id):
    """All that a role of the template may do."""
    return {"Statement": template.rights_of(role_id)}


def test_who_writes_logs_may_use_the_key(guarded):
    template = guarded()
    functions = template.of_type("AWS::Lambda::Function").values()
    roles = {function["Role"]["Fn::GetAtt"][0] for function in functions}
    roles.add(template.only("AWS::EC2::FlowLog")["DeliverLogsPermissionArn"]["Fn::GetAtt"][0])
    roles |= {
        task["ExecutionRoleArn"]["Fn::GetAtt"][0]
        for task in template.of_type("AWS::ECS::TaskDefinition").values()
    }
    assert len(roles) == 8
    for role in roles:
        assert allows(policies_of(template, role), "kms:GenerateDataKey", KEY, **VIA_LOGS), role


def test_dead_letters_and_results_can_be_written(guarded):
    template = guarded()
    for function in template.of_type("AWS::Lambda::Function").values():
        if "DeadLetterConfig" in function:
            rights = policies_of(template, function["Role"]["Fn::GetAtt"][0])
            assert allows(rights, "kms:GenerateDataKey", KEY)
    tasks = template.of_type("AWS::ECS::TaskDefinition")
    rights = {
        name.partition("Fleet")[2][:6]: policies_of(template, task["TaskRoleArn"]["Fn::GetAtt"][0])
        for name, task in tasks.items()
    }
    assert allows(rights["Master"], "kms:GenerateDataKey", KEY)
    assert allows(rights["Worker"], "kms:Decrypt", KEY)
    assert not allows(rights["Worker"], "kms:GenerateDataKey", KEY)


def test_a_key_made_in_the_app_knows_who_uses_it(guarded):
    template = guarded(key=lambda stack: kms.Key(stack, "Key"))
    policy = template.only("AWS::KMS::Key")["KeyPolicy"]
    services = {
        text(each["Principal"]["Service"]): each
        for each in policy["Statement"]
        if "Service" in each["Principal"]
    }
    logs = {"Statement": [services["logs.us-east-1.amazonaws.com"]]}
    for account, allowed in ((ACCOUNT, True), ("999999999999", False)):
        context = f"arn:aws:logs:us-east-1:{account}:log-group:any"
        assert (
            allows(
                logs, "kms:GenerateDataKey", "*", **{"kms_EncryptionContext:aws:logs:arn": context}
            )
            is allowed
        )
    alarms = {"Statement": [services["cloudwatch.amazonaws.com"]]}
    assert allows(alarms, "kms:GenerateDataKey", "*", aws_SourceAccount=ACCOUNT)


def test_a_key_of_its_own_stays(guarded, stack):
    own = kms.Key.from_key_arn(stack, "Own", OWN)
    configuration = guarded(key=KEY, encryption_key=own).only("AWS::SageMaker::EndpointConfig")
    assert configuration["KmsKeyId"] == OWN


def test_volumes_of_types_with_local_storage_keep_awss_key(guarded):
    """AWS's pages disagree whether SageMaker takes a key for them (LLE424)."""
    configuration = guarded(instance_type="ml.g5.xlarge").only("AWS::SageMaker::EndpointConfig")
    assert "KmsKeyId" not in configuration
    assert configuration["DataCaptureConfig"]["KmsKeyId"] == KEY


@pytest.mark.parametrize("mutable", [True, False])
def test_roles_that_are_given_run_everything(stack, parts, template_of, mutable):
    def role(name):
        return iam.Role.from_role_arn(
            stack, name, f"arn:aws:iam::{ACCOUNT}:role/{name}", mutable=mutable
        )

    fill(
        stack,
        parts,
        safeguards=Safeguards(function_role=role("functions"), flow_log_role=role("flow-logs")),
    )
    template = template_of(stack)
    functions = template.of_type("AWS::Lambda::Function").values()
    assert len(functions) == 6
    assert {each["Role"] for each in functions} == {f"arn:aws:iam::{ACCOUNT}:role/functions"}
    assert template.only("AWS::EC2::FlowLog")["DeliverLogsPermissionArn"] == (
        f"arn:aws:iam::{ACCOUNT}:role/flow-logs"
    )
    attached = [
        each
        for each in template.of_type("AWS::IAM::Policy").values()
        if each["Roles"] == ["functions"]
    ]
    rights = {"Statement": [s for p in attached for s in p["PolicyDocument"]["Statement"]]}
    actions = {s["Action"] for s in rights["Statement"] if isinstance(s["Action"], str)}
    needed = {"sagemaker:InvokeEndpoint", "sagemaker:DescribeEndpoint", "lambda:InvokeFunction"}
    assert needed & actions == (needed if mutable else set())
    assert bool(attached) is mutable
    # A function that runs before its role may do what it does fails its deployment.
    if mutable:
        for name, function in template.of_type("AWS::Lambda::Function").items():
            assert any("Rights" in each for each in template.depends_on(name)), function
    # Left are SageMaker's own and the tasks'.
    services = {
        str(each["AssumeRolePolicyDocument"]["Statement"][0]["Principal"]["Service"])
        for each in template.of_type("AWS::IAM::Role").values()
    }
    assert services == {"sagemaker.amazonaws.com", "ecs-tasks.amazonaws.com"}


def test_the_nearest_scope_wins(stack, parts, template_of):
    Safeguards(log_retention_days=90).apply_to(stack)
    fill(stack, parts, safeguards=Safeguards(log_retention_days=365))
    kept = {
        name: group["RetentionInDays"]
        for name, group in template_of(stack).of_type("AWS::Logs::LogGroup").items()
    }
    assert {days for name, days in kept.items() if not name.startswith("Fleet")} == {365}
    assert [days for name, days in kept.items() if name.startswith("Fleet")] == [90]


def test_nothing_changes_without_them(new_stack, parts, template_of):
    stacks = [new_stack(), new_stack()]
    Safeguards().apply_to(stacks[1])
    for stack in stacks:
        fill(stack, parts)
    assert template_of(stacks[0]) == template_of(stacks[1])


def test_a_retention_that_cloudwatch_logs_does_not_have():
    with refused("LLE564"):
        Safeguards(log_retention_days=100)


def test_a_token_is_left_to_the_deployment(stack):
    days = cdk.CfnParameter(stack, "Days", type="Number").value_as_number
    assert Safeguards(log_retention_days=days).log_retention_days == days


SIGNING = "arn:aws:lambda:us-east-1:123456789012:code-signing-config:csc-0123456789abcdef0"


@pytest.mark.parametrize("of_app", [False, True], ids=["by ID", "of the app"])
@pytest.mark.parametrize("given_role", [False, True], ids=["own roles", "given role"])
def test_every_function_is_in_a_vpc_and_signed(stack, parts, template_of, of_app, given_role):
    """For accounts whose guardrails refuse a function without VpcConfig, or without a signature.

    Lambda developer guide, "Giving Lambda functions access to resources in an Amazon VPC": the role
    must be able to create, describe and delete network interfaces.
    """
    subnet, group = "subnet-0123456789abcdef9", "sg-0123456789abcdef9"
    placed = {"function_subnet_ids": [subnet], "function_security_group_ids": [group]}
    if of_app:
        placed = {
            "function_subnets": [ec2.Subnet.from_subnet_id(stack, "Shared", subnet)],
            "function_security_groups": [
                ec2.SecurityGroup.from_security_group_id(stack, "Functions", group)
            ],
        }
    role = {"function_role_arn": f"arn:aws:iam::{ACCOUNT}:role/functions"} if given_role else {}
    Safeguards(code_signing_config_arn=SIGNING, **placed, **role).apply_to(stack)
    fill(stack, parts, canary=CanaryOptions(payload=WarmUpPayload(data={"a": 1})))
    template = template_of(stack)
    functions = template.of_type("AWS::Lambda::Function")
    # default group, former names, drain, check, controller; sender and two zones of the canary
    assert len(functions) == 8
    subnets = [str(function["VpcConfig"]["SubnetIds"]) for function in functions.values()]
    assert subnets.count(str([subnet])) == 5
    assert {function["CodeSigningConfigArn"] for function in functions.values()} == {SIGNING}
    policies = [template.of_type(f"AWS::IAM::{kind}").values() for kind in ("Policy", "Role")]
    creating = [each for each in chain(*policies) if "ec2:CreateNetworkInterface'" in str(each)]
    of_model = 1  # the model's role makes interfaces too
    # On one role the right, and the denial to code, stand once, in a policy each.
    assert len(creating) == of_model + (2 if given_role else 8)


@jsii.implements(cdk.IAspect)
class Traced:
    def visit(self, node):
        if isinstance(node, lambda_.CfnFunction):
            node.tracing_config = lambda_.CfnFunction.TracingConfigProperty(mode="Active")


@needs_cdk("PropertyInjectors")
def test_an_aspect_reaches_our_functions_and_a_property_injector_does_not(
    stack, parts, template_of
):
    """As docs/how-to/regulated-account.md says to platform teams."""

    @jsii.implements(cdk.IPropertyInjector)
    class Small:
        @property
        @jsii.member(jsii_name="constructUniqueId")
        def construct_unique_id(self):
            return lambda_.Function.PROPERTY_INJECTION_ID

        @jsii.member(jsii_name="inject")
        def inject(self, original_props, *, scope, id):
            return {**original_props, "memorySize": 512}

    cdk.PropertyInjectors.of(stack).add(Small())
    cdk.Aspects.of(stack).add(Traced())
    lambda_.Function(
        stack,
        "Own",
        runtime=lambda_.Runtime.PYTHON_3_13,
        handler="index.handler",
        code=lambda_.Code.from_inline("def handler(event, context): pass"),
    )
    fill(stack, parts)
    functions = template_of(stack).of_type("AWS::Lambda::Function")
    assert len(functions) == 7
    assert {each["TracingConfig"]["Mode"] for each in functions.values()} == {"Active"}
    (injected,) = [name for name, each in functions.items() if each["MemorySize"] == 512]
    assert injected.startswith("Own")


def test_a_stack_need_not_wait_for_interfaces(stack, parts, template_of):
    Safeguards(wait_for_interfaces=False).apply_to(stack)
    fill(stack, parts)
    template = template_of(stack)
    assert not template.of_type("Custom::DrainedInterfaces")
    assert not [name for name in template.of_type("AWS::Lambda::Function") if "Drain" in name]


@pytest.mark.parametrize(
    "stated",
    [
        {"function_subnet_ids": ["subnet-0123456789abcdef9"]},
        {"function_security_group_ids": ["sg-0123456789abcdef9"]},
    ],
)
def test_subnets_and_security_groups_go_together(stated):
    with refused("LLE928"):
        Safeguards(**stated)
