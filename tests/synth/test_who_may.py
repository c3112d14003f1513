"""For whom roles may be assumed, and how far what they may do reaches."""

from __future__ import annotations

import pytest
from aws_cdk import aws_ec2 as ec2

from .iam_decisions import ACCOUNT, allows, text

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
