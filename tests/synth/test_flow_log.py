"""The VPC's flow log: what it records, where to, and what its role may."""

from __future__ import annotations

import pytest
from aws_cdk import aws_ec2 as ec2


@pytest.mark.parametrize(
    ("given", "recorded"),
    [
        ({}, "REJECT"),
        ({"flow_logs": ec2.FlowLogTrafficType.REJECT}, "REJECT"),
        ({"flow_logs": ec2.FlowLogTrafficType.ACCEPT}, "ACCEPT"),
        ({"flow_logs": ec2.FlowLogTrafficType.ALL}, "ALL"),
    ],
)
def test_records_the_traffic_asked_for(stack, parts, template_of, given, recorded):
    parts.network(stack, **given)
    template = template_of(stack)
    log = template.only("AWS::EC2::FlowLog")
    assert log["TrafficType"] == recorded
    assert log["ResourceType"] == "VPC"
    assert log["ResourceId"] == {"Ref": template.only_id("AWS::EC2::VPC")}
    assert log["LogDestinationType"] == "cloud-watch-logs"


def test_can_be_left_out(stack, parts, template_of):
    parts.network(stack, flow_logs=None)
    template = template_of(stack)
    assert "AWS::EC2::FlowLog" not in template.types
    principals = {
        role["AssumeRolePolicyDocument"]["Statement"][0]["Principal"]["Service"]
        for role in template.of_type("AWS::IAM::Role").values()
    }
    assert principals == {"lambda.amazonaws.com"}


def test_writes_into_its_own_log_group_only(smallest):
    template = smallest("network")
    log = template.only("AWS::EC2::FlowLog")
    group_id = log["LogGroupName"]["Ref"]
    group = template["Resources"][group_id]
    assert group["Properties"] == {"RetentionInDays": 30}
    assert group["DeletionPolicy"] == group["UpdateReplacePolicy"] == "Delete"
    role = template["Resources"][log["DeliverLogsPermissionArn"]["Fn::GetAtt"][0]]["Properties"]
    trust = role["AssumeRolePolicyDocument"]["Statement"]
    assert [statement["Principal"] for statement in trust] == [
        {"Service": "vpc-flow-logs.amazonaws.com"}
    ]
    (policy,) = role["Policies"]
    resources = {
        action: statement["Resource"]
        for statement in policy["PolicyDocument"]["Statement"]
        for action in statement["Action"]
    }
    own = {"Fn::GetAtt": [group_id, "Arn"]}
    # The set that AWS's guide asks for, without CreateLogGroup: the group is there.
    assert resources == {
        "logs:CreateLogStream": own,
        "logs:PutLogEvents": own,
        "logs:DescribeLogStreams": own,
        "logs:DescribeLogGroups": "*",
    }
