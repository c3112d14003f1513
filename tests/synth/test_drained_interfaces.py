"""What waits for SageMaker's interfaces: when it goes, what it may do, and its code at work."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from aws_cdk import aws_ec2 as ec2

from .conftest import by_action
from .inline_functions import loaded

DRAIN = "Custom::DrainedInterfaces"


def code(smallest):
    template = smallest("model")
    token = next(iter(template.of_type(DRAIN).values()))["ServiceToken"]
    return template, template.of_type("AWS::Lambda::Function")[token["Fn::GetAtt"][0]]


def test_it_goes_between_the_model_and_what_the_interfaces_hold_or_need(smallest):
    template = smallest("model")
    drain = template.only_id(DRAIN)
    assert drain in template.depends_on(template.only_id("AWS::SageMaker::Model"))
    model = template.only("AWS::SageMaker::Model")
    role = model["ExecutionRoleArn"]["Fn::GetAtt"][0]
    policies = [
        name
        for name, policy in template.of_type("AWS::IAM::Policy").items()
        if policy["Roles"] == [{"Ref": role}]
    ]
    held = [group["Fn::GetAtt"][0] for group in model["VpcConfig"]["SecurityGroupIds"]]
    held += [subnet["Ref"] for subnet in model["VpcConfig"]["Subnets"]]
    assert len(policies) == 2
    assert template.needs(drain) >= {role, *policies, *held}


def test_subnets_of_an_existing_vpc_in_the_same_stack_wait_too(stack, parts, template_of):
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-east-1a", "us-east-1b"])
    parts.model(stack, network=parts.network_in(stack, vpc))
    template = template_of(stack)
    subnets = {s["Ref"] for s in template.only("AWS::SageMaker::Model")["VpcConfig"]["Subnets"]}
    assert template.needs(template.only_id(DRAIN)) >= subnets


def test_groups_that_go_with_the_stack(stack, parts, template_of):
    network = parts.network(stack)
    foreign = ec2.SecurityGroup.from_security_group_id(stack, "Foreign", "sg-0123456789abcdef0")
    own = ec2.SecurityGroup(stack, "Own", vpc=network.vpc)
    parts.model(stack, "Alone", network=network, security_groups=[own, foreign])
    parts.model(stack, "First", network=network)
    parts.model(stack, "Second", network=network)
    parts.model(stack, "Foreigner", network=network, security_groups=[foreign])
    template = template_of(stack)
    found = {name[:5]: drain["OwnGroupIds"] for name, drain in template.of_type(DRAIN).items()}
    shared = stack.resolve(network.model_security_group.security_group_id)
    assert found == {
        "Alone": [stack.resolve(own.security_group_id)],
        "First": [shared],
        "Secon": [shared],
        "Forei": [],
    }
    functions = template.of_type("AWS::Lambda::Function").values()
    assert sum("SageMaker's network interfaces" in each["Description"] for each in functions) == 1


def test_the_groups_of_one_model_are_its_own(stack, parts, template_of):
    network = parts.network(stack)
    parts.model(stack, network=network)
    (drain,) = template_of(stack).of_type(DRAIN).values()
    group = stack.resolve(network.model_security_group.security_group_id)
    assert drain["GroupIds"] == drain["OwnGroupIds"] == [group]


def test_may_look_and_go_on_and_nothing_else(smallest):
    template, function = code(smallest)
    role = function["Role"]["Fn::GetAtt"][0]
    found = {
        action: each["Resource"] for action, each in by_action(template.rights_of(role)).items()
    }
    logs = {"Fn::GetAtt": [function["LoggingConfig"]["LogGroup"]["Ref"], "Arn"]}
    (drain,) = template.of_type(DRAIN).values()
    assert found == {
        "ec2:DescribeNetworkInterfaces": "*",
        "cloudformation:DescribeStacks": {"Ref": "AWS::StackId"},
        "lambda:InvokeFunction": drain["ServiceToken"],
        "logs:CreateLogStream": logs,
        "logs:PutLogEvents": logs,
    }


def test_its_times_are_lambdas_and_cloudformations(smallest):
    template, function = code(smallest)
    assert len(function["Code"]["ZipFile"]) < 4096
    assert function["Timeout"] == 900
    (drain,) = template.of_type(DRAIN).values()
    assert int(drain["ServiceTimeout"]) == 3600


class Account:
    """Interfaces, a stack's status and time, without waiting."""

    def __init__(self, leave_after: float, status: str = "DELETE_IN_PROGRESS") -> None:
        self.now = 1_000_000.0
        self.started, self.run_started = self.now, self.now
        self.leave_after, self.status = leave_after, status
        self.looks: list[float] = []
        self.runs = 1
        self.event: dict | None = None
        self.refused = False
        self.throttled = 0

    def describe_network_interfaces(self, *, Filters):
        assert Filters == [{"Name": "group-id", "Values": ["sg-own"]}]
        if self.refused:
            raise RuntimeError("UnauthorizedOperation")
        if self.throttled:
            self.throttled -= 1
            raise RuntimeError("RequestLimitExceeded")
        self.looks.append(self.now - self.started)
        there = self.now - self.started < self.leave_after
        return {"NetworkInterfaces": [{"NetworkInterfaceId": "eni-1"}] if there else []}

    def describe_stacks(self, *, StackName):
        assert StackName == "the-stack"
        return {"Stacks": [{"StackStatus": self.status}]}

    def invoke(self, *, FunctionName, InvocationType, Payload):
        assert (FunctionName, InvocationType) == ("arn:itself", "Event")
        self.event = json.loads(Payload)

    def get_remaining_time_in_millis(self) -> float:
        return (900 - (self.now - self.run_started)) * 1000

    invoked_function_arn = "arn:itself"


@pytest.fixture
def ask(smallest, monkeypatch):
    """Ask the function as it stands in the template, until it answers."""
    _, function = code(smallest)

    def ask(account, kind="Delete", own=("sg-own",), groups=("sg-own",)):
        def sleep(seconds):
            account.now += seconds

        clock = SimpleNamespace(time=lambda: account.now, sleep=sleep)
        clients = dict.fromkeys(["ec2", "cloudformation", "lambda"], account)
        handler, sent = loaded(function["Code"]["ZipFile"], clients, clock, monkeypatch)
        account.event = {
            "RequestType": kind,
            "StackId": "the-stack",
            "LogicalResourceId": "It",
            "ResourceProperties": {"GroupIds": list(groups), "OwnGroupIds": list(own)},
        }
        while account.event is not None:
            event, account.event, account.run_started = account.event, None, account.now
            handler(event, account)
            assert account.now - account.run_started < 900, "Lambda would have stopped it"
            account.runs += account.event is not None
        (answer,) = sent
        return answer

    return ask


def test_it_answers_when_the_last_has_gone(ask):
    account = Account(leave_after=40)
    assert ask(account) == ("SUCCESS", "It/sg-own", None)
    assert account.looks == [0, 1, 3, 7, 15, 30, 45]


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_it_answers_at_once_while_the_stack_lives(ask, kind):
    account = Account(leave_after=40)
    assert ask(account, kind) == ("SUCCESS", "It/sg-own", None)
    assert account.looks == []


@pytest.mark.parametrize("status", ["DELETE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS"])
def test_it_gives_up_before_cloudformation_does_and_says_what_to_do(ask, status):
    account = Account(leave_after=float("inf"), status=status)
    answer, _, reason = ask(account)
    assert answer == "FAILED"
    assert "eni-1" in reason
    assert "Delete the stack again later" in reason
    assert 55 * 60 < account.now - account.started < 3600 - 60
    assert account.runs <= 5, "Lambda stops chains of about 16"


def test_it_goes_on_where_another_invocation_left_off(ask):
    account = Account(leave_after=2000)
    assert ask(account)[0] == "SUCCESS"
    assert account.runs == 3
    assert 2000 <= account.looks[-1] < 2035


@pytest.mark.parametrize(
    ("status", "own"),
    [("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", ["sg-own"]), ("DELETE_IN_PROGRESS", [])],
)
def test_interfaces_that_may_be_of_others_are_waited_for_twenty_minutes(ask, status, own):
    account = Account(leave_after=float("inf"), status=status)
    assert ask(account, own=own)[0] == "SUCCESS"
    assert 1200 <= account.now - account.started < 1220


def test_of_several_groups_its_own_are_looked_at(ask):
    answer = ask(Account(leave_after=0), groups=["sg-own", "sg-of-others"])
    assert answer == ("SUCCESS", "It/sg-own,sg-of-others", None)


def test_who_cannot_look_does_not_hold_the_stack(ask):
    account = Account(leave_after=0)
    account.refused = True
    assert ask(account)[0] == "SUCCESS"


def test_one_look_that_fails_does_not_end_the_wait(ask):
    account = Account(leave_after=40)
    account.throttled = 3
    assert ask(account)[0] == "SUCCESS"
    assert account.looks == [7, 15, 30, 45]
