"""Who may do what: rights on request, functions' partitions, tags and shared resources."""

from __future__ import annotations

import json
import re

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from low_latency_endpoint import ContainerImage, CoreDump, DataCapture
from low_latency_endpoint.synthesis.rights import literal, reading

from .conftest import by_action
from .iam_decisions import ACCOUNT, allows, text

KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"


@pytest.fixture
def actions(new_stack, parts, template_of):
    """The statements by their actions, for a configuration's keyword arguments."""

    def build(core_dump=None, **options):
        stack = new_stack()
        dump = core_dump(stack) if callable(core_dump) else core_dump
        made = {name: make(stack) if callable(make) else make for name, make in options.items()}
        parts.configuration(stack, variants=[parts.variant(stack, core_dump=dump)], **made)
        return template_of(stack).granted

    return build


def test_nothing_may_be_written_by_default(actions):
    assert not [action for action in actions() if action.startswith(("s3:Put", "kms:"))]


def test_data_capture_may_write_to_its_destination_only(actions):
    statement = actions(data_capture=DataCapture(s3="s3://captured/sentiment"))["s3:PutObject"]
    assert json.dumps(statement["Resource"]).count("s3:::captured/sentiment/*") == 1


KEYS = ("*.tar.gz", "*/", "a?b/", "${*}m.tar.gz", "a$b", "v?${aws:username}/m*.tar.gz")


@pytest.mark.parametrize("key", KEYS)
def test_a_letter_of_an_s3_key_is_no_wildcard_of_a_policy(key):
    """S3 takes these letters as they are, and a policy would let the model read all of a bucket."""
    statements = reading("arn:aws:s3:::models", key)
    granted = [statement["Resource"] for statement in statements]
    granted += [statement["Condition"]["StringLike"]["s3:prefix"] for statement in statements[1:]]
    for resource in granted:
        stated = resource.removesuffix("*") if key.endswith("/") else resource
        letters = re.sub(r"\$\{([*?$])\}", "", stated)
        assert not set("*?$") & set(letters)
    assert re.sub(r"\$\{([*?$])\}", r"\1", granted[0]).startswith(f"arn:aws:s3:::models/{key}")


def test_a_letter_of_a_repository_is_no_wildcard_either(new_stack):
    image = ContainerImage.from_uri("123456789012.dkr.ecr.us-east-1.amazonaws.com/*:x")
    _, (statement,) = image.bind(new_stack())
    assert statement["Resource"].endswith(":repository/${*}")


def test_a_token_in_an_s3_key_stays():
    token = cdk.Token.as_string({"Ref": "Version"})
    assert literal(f"a*/{token}/m?") == f"a${{*}}/{token}/m${{?}}"


def test_what_is_written_below_a_prefix_has_no_wildcard_of_it(actions):
    statement = actions(data_capture=DataCapture(s3="s3://captured/a*"))["s3:PutObject"]
    assert "s3:::captured/a${*}/*" in json.dumps(statement["Resource"])


def test_core_dumps_may_be_written_to_their_bucket(actions):
    statement = actions(core_dump=CoreDump(s3="s3://dumps"))["s3:PutObject"]
    assert "s3:::dumps/*" in json.dumps(statement["Resource"])


def test_the_volume_key_may_be_used_for_the_instances_only(actions):
    found = actions(encryption_key=lambda stack: kms.Key.from_key_arn(stack, "Key", KEY))
    assert found["kms:CreateGrant"]["Condition"] == {"Bool": {"kms:GrantIsForAWSResource": "true"}}
    assert "Condition" not in found["kms:DescribeKey"]
    assert all(found[action]["Resource"] == KEY for action in found if action.startswith("kms:"))


CAPTURED = "s3://captured/sentiment"


def key_of(stack):
    return kms.Key.from_key_arn(stack, "Key", KEY)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ({"encryption_key": key_of}, {"kms:CreateGrant", "kms:DescribeKey"}),
        (
            {"data_capture": lambda stack: DataCapture(s3=CAPTURED, key=key_of(stack))},
            {"kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey"},
        ),
        (
            {"core_dump": lambda stack: CoreDump(s3="s3://dumps", key=key_of(stack))},
            {"kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey"},
        ),
    ],
)
def test_each_use_of_a_key_has_its_own_actions_and_no_wildcards(actions, made, expected):
    found = actions(**made)
    assert {action for action in found if action.startswith("kms:")} == expected
    assert all(found[action]["Resource"] == KEY for action in expected)


@pytest.mark.parametrize("imported_role", [False, True], ids=["own role", "imported role"])
def test_nothing_uses_a_key_before_the_role_may(stack, parts, template_of, imported_role):
    key = kms.Key(stack, "Key", enable_key_rotation=True)
    role = iam.Role.from_role_arn(stack, "Own", "arn:aws:iam::123456789012:role/hosting")
    model = parts.model(stack, role=role if imported_role else None)
    variant = parts.variant(stack, model=model, core_dump=CoreDump(s3="s3://dumps", key=key))
    parts.endpoint(
        stack,
        confirm_updates=False,
        configuration=parts.configuration(
            stack,
            variants=[variant],
            encryption_key=key,
            data_capture=DataCapture(s3=CAPTURED, key=key),
        ),
    )
    template = template_of(stack)
    # Policies before the model, whose name the configuration takes; the endpoint takes its.
    made = template.only_id("AWS::SageMaker::Model")
    configuration = template.only("AWS::SageMaker::EndpointConfig")
    assert configuration["ProductionVariants"][0]["ModelName"] == {
        "Fn::GetAtt": [made, "ModelName"]
    }
    arn = stack.resolve(key.key_arn)
    assert by_action(each for each in template.model_rights if each["Resource"] == arn).keys() == {
        "kms:CreateGrant",
        "kms:Decrypt",
        "kms:DescribeKey",
        "kms:Encrypt",
        "kms:GenerateDataKey",
    }


OTHERS = "999999999999"


def trust_of(template, service):
    """The trust policies for a service, as documents with a resource, for `allows`."""
    found = []
    for role in template.of_type("AWS::IAM::Role").values():
        policy = role["AssumeRolePolicyDocument"]
        (statement,) = policy["Statement"]
        if text(statement["Principal"]["Service"]).startswith(service):
            found.append({"Statement": [{**statement, "Resource": "*"}]})
    assert found
    return found


def test_sagemaker_assumes_the_models_role_for_this_account_alone(smallest):
    """The template of AWS's page on confused deputies; the asterisk is what SageMaker sends."""
    for trust in trust_of(smallest("model"), "sagemaker."):
        for account, allowed in ((ACCOUNT, True), (OTHERS, False)):
            assert (
                allows(
                    trust,
                    "sts:AssumeRole",
                    "*",
                    aws_SourceArn=(f"arn:aws:sagemaker:us-east-1:{account}:*"),
                )
                is allowed
            )


def test_flow_logs_of_this_account_alone_are_delivered(smallest):
    for trust in trust_of(smallest("network"), "vpc-flow-logs."):
        for account, allowed in ((ACCOUNT, True), (OTHERS, False)):
            assert (
                allows(
                    trust,
                    "sts:AssumeRole",
                    "*",
                    aws_SourceAccount=account,
                    aws_SourceArn=f"arn:aws:ec2:us-east-1:{account}:vpc-flow-log/fl-1",
                )
                is allowed
            )


def test_services_that_document_no_source_are_not_asked_for_one(smallest):
    """A condition on a key that a service does not send locks it out."""
    for trust in trust_of(smallest("model"), "lambda."):
        assert allows(trust, "sts:AssumeRole", "*")


@pytest.fixture
def model_policy(stack, parts, template_of):
    parts.model(stack)
    template = template_of(stack)
    vpc = f"arn:aws:ec2:us-east-1:{ACCOUNT}:vpc/<{template.only_id('AWS::EC2::VPC')}>"
    return {"Statement": template.model_rights}, vpc


@pytest.mark.parametrize("action", ["CreateNetworkInterfacePermission", "DeleteNetworkInterface"])
def test_the_model_hands_over_and_deletes_interfaces_of_its_vpc_alone(model_policy, action):
    policy, vpc = model_policy
    interface = f"arn:aws:ec2:us-east-1:{ACCOUNT}:network-interface/eni-1"
    assert allows(policy, f"ec2:{action}", interface, ec2_Vpc=vpc)
    # A VPC that another account shares has that account's number.
    assert allows(policy, f"ec2:{action}", interface, ec2_Vpc=vpc.replace(ACCOUNT, OTHERS))
    assert not allows(
        policy,
        f"ec2:{action}",
        interface,
        ec2_Vpc=(f"arn:aws:ec2:us-east-1:{ACCOUNT}:vpc/vpc-0fedcba9876543210"),
    )


@pytest.fixture
def endpoints(stack, parts, template_of):
    """Service -> policy of the fleet's interface endpoints."""
    parts.fleet(stack)
    return {
        each["ServiceName"].partition("us-east-1.")[2]: each.get("PolicyDocument")
        for each in template_of(stack).of_type("AWS::EC2::VPCEndpoint").values()
        if each.get("VpcEndpointType") == "Interface"
    }


LOG = f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:fleet:log-stream:load-test/worker/1"


@pytest.mark.parametrize(
    ("service", "action", "resource", "passes"),
    [
        ("ecr.api", "ecr:GetAuthorizationToken", "*", True),
        ("ecr.dkr", "ecr:BatchGetImage", "arn:aws:ecr:us-east-1:1:repository/x", True),
        ("ecr.dkr", "ecr:PutImage", "arn:aws:ecr:us-east-1:1:repository/x", False),
        ("ecr.api", "ecr:CreateRepository", "arn:aws:ecr:us-east-1:1:repository/x", False),
        ("logs", "logs:PutLogEvents", LOG, True),
        ("logs", "logs:PutLogEvents", LOG.replace(ACCOUNT, OTHERS), False),
        ("logs", "logs:GetLogEvents", LOG, False),
    ],
)
def test_tasks_do_through_their_endpoints_what_they_need(
    endpoints, service, action, resource, passes
):
    assert allows(endpoints[service], action, resource, aws_PrincipalAccount=ACCOUNT) is passes
    assert not allows(endpoints[service], action, resource, aws_PrincipalAccount=OTHERS)


def test_tasks_reach_nothing_but_what_is_named_where_s3s_prefix_list_is_given(
    stack, parts, template_of
):
    network = parts.network(
        stack, s3_prefix_list=ec2.PrefixList.from_prefix_list_id(stack, "S3", "pl-63a5400a")
    )
    fleet = parts.fleet(stack, network=network)
    group = stack.resolve(fleet.connections.security_groups[0].security_group_id)
    template = template_of(stack)
    rules = [
        rule
        for rule in template.of_type("AWS::EC2::SecurityGroupEgress").values()
        if rule["GroupId"] == group
    ]
    by_https = [rule for rule in rules if rule["FromPort"] == 443]
    assert len(by_https) == 3  # S3, the private link, the endpoints
    assert not [rule for rule in rules if "CidrIp" in rule]
    inline = template.of_type("AWS::EC2::SecurityGroup")[group["Fn::GetAtt"][0]]
    assert {rule["CidrIp"] for rule in inline["SecurityGroupEgress"]} == {"255.255.255.255/32"}
