"""The default security group is emptied: the resource, its permissions, and its code at work."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from .inline_functions import loaded

ANY = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
SELF = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": "sg-default"}]}]
CUSTOM_RESOURCE = "Custom::ClosedDefaultSecurityGroup"


def test_concerns_the_vpcs_default_group(smallest):
    template = smallest("network")
    rules = template.only(CUSTOM_RESOURCE)
    assert rules["SecurityGroupId"] == {
        "Fn::GetAtt": [template.only_id("AWS::EC2::VPC"), "DefaultSecurityGroup"]
    }
    assert "Removes the rules" in template.function_of(CUSTOM_RESOURCE)["Code"]["ZipFile"]


def test_may_revoke_rules_of_that_group_only(smallest):
    template = smallest("network")
    function = template.function_of(CUSTOM_RESOURCE)
    role = template["Resources"][function["Role"]["Fn::GetAtt"][0]]["Properties"]
    assert "ManagedPolicyArns" not in role
    (policy,) = role["Policies"]
    resources = {
        action: statement["Resource"]
        for statement in policy["PolicyDocument"]["Statement"]
        for action in statement["Action"]
    }
    group = {"Fn::GetAtt": [template.only_id("AWS::EC2::VPC"), "DefaultSecurityGroup"]}
    for action in ("ec2:RevokeSecurityGroupIngress", "ec2:RevokeSecurityGroupEgress"):
        assert resources.pop(action)["Fn::Join"][1][-2:] == [":security-group/", group]
    logs = {"Fn::GetAtt": [function["LoggingConfig"]["LogGroup"]["Ref"], "Arn"]}
    assert resources == {
        "ec2:DescribeSecurityGroups": "*",  # takes no resource
        "logs:CreateLogStream": logs,
        "logs:PutLogEvents": logs,
    }


def test_its_code_needs_no_asset(smallest):
    function = smallest("network").function_of(CUSTOM_RESOURCE)
    assert len(function["Code"]["ZipFile"]) < 4096  # Lambda's limit for inline code
    assert function["Runtime"].startswith("python3.")
    assert function["Handler"] == "index.handler"


class FakeEc2:
    """The three calls that the handler makes, with a group in memory."""

    def __init__(self, ingress, egress, failure=None, failures=sys.maxsize):
        self.rules = {"ingress": ingress, "egress": egress}
        self.failure, self.failures = failure, failures
        self.calls = []

    def describe_security_groups(self, *, GroupIds):
        self.calls.append("describe")
        if self.failure and self.failures:
            self.failures -= 1
            raise self.failure
        return {
            "SecurityGroups": [
                {
                    "GroupId": GroupIds[0],
                    "IpPermissions": self.rules["ingress"],
                    "IpPermissionsEgress": self.rules["egress"],
                }
            ]
        }

    def _revoke(self, side, group_id, permissions):
        assert group_id == "sg-default"
        assert permissions == self.rules[side], "AWS refuses to revoke a rule that is not there"
        assert permissions, "AWS refuses an empty list"
        self.calls.append(side)
        self.rules[side] = []

    def revoke_security_group_ingress(self, *, GroupId, IpPermissions):
        self._revoke("ingress", GroupId, IpPermissions)

    def revoke_security_group_egress(self, *, GroupId, IpPermissions):
        self._revoke("egress", GroupId, IpPermissions)


@pytest.fixture
def run(smallest, monkeypatch):
    """Run the handler as it stands in the template; returns what it sent to CloudFormation."""
    source = smallest("network").function_of(CUSTOM_RESOURCE)["Code"]["ZipFile"]

    def run(request_type, ec2):
        slept = []  # the clock passes by sleeping alone
        clock = SimpleNamespace(monotonic=lambda: sum(slept), sleep=slept.append)
        handler, answers = loaded(source, {"ec2": ec2}, clock, monkeypatch)
        group = {"SecurityGroupId": "sg-default"}
        handler({"RequestType": request_type, "ResourceProperties": group}, object())
        (answer,) = answers  # exactly one, or CloudFormation waits for an hour
        return answer

    return run


@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_revokes_every_rule(run, request_type):
    ec2 = FakeEc2(SELF, ANY)
    assert run(request_type, ec2) == ("SUCCESS", "sg-default", None)
    assert ec2.rules == {"ingress": [], "egress": []}


@pytest.mark.parametrize(
    ("ingress", "egress", "calls"),
    [
        ([], [], ["describe"]),
        (SELF, [], ["describe", "ingress"]),
        ([], ANY, ["describe", "egress"]),
    ],
)
def test_a_group_that_is_closed_already_stays_so(run, ingress, egress, calls):
    ec2 = FakeEc2(ingress, egress)
    assert run("Create", ec2)[0] == "SUCCESS"
    assert ec2.calls == calls


def test_waits_for_rights_that_are_new(run):
    ec2 = FakeEc2(SELF, ANY, failure=RuntimeError("UnauthorizedOperation"), failures=3)
    assert run("Create", ec2)[0] == "SUCCESS"
    assert ec2.calls == ["describe"] * 4 + ["ingress", "egress"]
    assert ec2.rules == {"ingress": [], "egress": []}


def test_fails_at_once_for_anything_else(run):
    ec2 = FakeEc2(SELF, ANY, failure=RuntimeError("InvalidGroup.NotFound"), failures=3)
    assert run("Create", ec2) == ("FAILED", "sg-default", "InvalidGroup.NotFound")
    assert ec2.calls == ["describe"]


def test_delete_touches_nothing(run):
    ec2 = FakeEc2(SELF, ANY)
    assert run("Delete", ec2) == ("SUCCESS", "sg-default", None)
    assert ec2.calls == []


def test_a_refusal_reaches_cloudformation(run):
    ec2 = FakeEc2(SELF, ANY, failure=RuntimeError("UnauthorizedOperation"))
    assert run("Create", ec2) == ("FAILED", "sg-default", "UnauthorizedOperation")
