"""What AWS takes of one stack, counted in its template: to the last one, and refused by the endpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.options.option import changed
from low_latency_endpoint.plan.launched_names import as_named
from low_latency_endpoint.settings import load_settings, parse_settings
from low_latency_endpoint.synthesis import stack_limits
from low_latency_endpoint.synthesis.stack_limits import StackLimits, synthesised
from tests.depth import sampled
from tests.refusals import refused
from tools.fuzzing.agreement import synthesised as template_of_settings
from tools.fuzzing.agreement import text_of
from tools.fuzzing.cases import bases

from .names_and_rights import Launched

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    ROOT / name for name in ("endpoint.yaml", "tests/sentiment.yaml", "examples/regulated.yaml")
]


# --- the same as in the template ------------------------------------------------------------------


class Counted:
    """Stands for a limit, and takes all."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def holds(self, count: int) -> bool:
        self.counts.append(count)
        return True


@pytest.fixture
def counted(monkeypatch) -> dict[str, list[int]]:
    """What was counted for each limit."""
    limits = {
        name: Counted() for name in vars(stack_limits) if name.endswith(("RCES", "UTS", "GTH"))
    }
    assert len(limits) == 5
    for name, limit in limits.items():
        monkeypatch.setattr(stack_limits, name, limit)
    return {name: limit.counts for name, limit in limits.items()}


def compare(counted: dict[str, list[int]], launched: Launched) -> None:
    template = launched.template
    assert counted["RESOURCES"][-1] == len(template["Resources"])
    assert counted["OUTPUTS"][-1] == len(template.get("Outputs", {}))
    for name, lengths in (
        ("ROLE_POLICIES_LENGTH", launched.inline_policies()),
        ("COMPOSITE_RULE_LENGTH", launched.alarm_rules()),
        ("ENDPOINT_POLICY_LENGTH", launched.endpoint_policies()),
    ):
        last = counted[name][-len(lengths) :]  # of the last synthesis, after a lookup
        assert sorted(last) == sorted(lengths.values())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_settings_file_counts_as_its_template(counted, path):
    settings = load_settings(path)
    settings = changed(settings, region="us-east-1", account="123456789012")
    compare(counted, Launched(template_of_settings(settings), settings.stack_name))


@pytest.mark.parametrize("number", sampled(range(len(bases())), 4))
def test_any_settings_count_as_their_template(counted, folder, number):
    path = folder / "settings.yaml"
    path.write_text(text_of(bases()[number]), encoding="utf-8")
    settings = load_settings(path)
    compare(counted, Launched(template_of_settings(settings), settings.stack_name))


def test_constructs_in_an_app_count_as_their_template(counted, stack, fill, whole_stack_name):
    fill(stack, whole_stack_name)
    StackLimits.hold(stack)
    template = cdk.App.of(stack).synth().get_stack_by_name(stack.stack_name).template
    compare(counted, Launched(as_named(template), stack.stack_name))


# --- one below the limit, and one above -----------------------------------------------------------


def resources(stack: cdk.Stack, count: int) -> None:
    for number in range(count):
        cdk.CfnResource(stack, f"Topic{number}", type="AWS::SNS::Topic")


def outputs(stack: cdk.Stack, count: int) -> None:
    resources(stack, 1)
    for number in range(count):
        cdk.CfnOutput(stack, f"Output{number}", value="x")


def document(length: int) -> dict[str, Any]:
    """A policy of so many characters."""
    allowed: dict[str, Any] = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": ""}
    begun = '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:GetObject","Resource":""}]}'
    allowed["Resource"] = "r" * (length - len(begun))
    return {"Version": "2012-10-17", "Statement": [allowed]}


def policies(stack: cdk.Stack, length: int) -> None:
    """In the role, and beside it."""
    role = iam.CfnRole(
        stack,
        "Role",
        assume_role_policy_document={},
        policies=[iam.CfnRole.PolicyProperty(policy_name="own", policy_document=document(4_000))],
    )
    iam.CfnPolicy(
        stack,
        "Beside",
        policy_name="beside",
        roles=[role.ref],
        policy_document=document(length - 4_000),
    )


def rule(stack: cdk.Stack, length: int) -> None:
    cloudwatch.CfnCompositeAlarm(stack, "Alarm", alarm_rule="A" * length)


def endpoint_policy(stack: cdk.Stack, length: int) -> None:
    ec2.CfnVPCEndpoint(
        stack, "S3", vpc_id="vpc-1", service_name="s3", policy_document=document(length)
    )


@pytest.mark.parametrize(
    ("fill_up", "most", "code", "where"),
    [
        (resources, 500, "LLE384", "Plain"),
        (outputs, 200, "LLE385", "Plain"),
        (policies, 10_240, "LLE378", "Plain/Beside"),
        (rule, 10_240, "LLE736", "Plain/Alarm"),
        (endpoint_policy, 20_480, "LLE217", "Plain/S3"),
    ],
)
def test_the_last_that_fits_and_the_first_that_does_not(
    fill_up: Callable[[cdk.Stack, int], None], most: int, code: str, where: str
) -> None:
    for count in (most, most + 1):
        app = cdk.App(analytics_reporting=False)
        stack = cdk.Stack(app, "Plain")
        StackLimits.hold(stack)
        fill_up(stack, count)
        if count == most:
            synthesised(app)
        else:
            with pytest.raises(ConfigurationError) as raised:
                synthesised(app)
            assert (raised.value.code, raised.value.where) == (code, where)
            assert raised.value.got.startswith(f"{count:,} ")


# --- what is told ---------------------------------------------------------------------------------


def endpoints(stack: cdk.Stack, *sizes: int) -> None:
    """So many resources for each endpoint, and two of the stack's own."""
    resources(stack, 2)
    for number, size in enumerate(sizes):
        part = Construct(stack, f"e{number}")
        sagemaker.CfnEndpoint(part, "Resource", endpoint_config_name="x")
        for each in range(size - 1):
            cdk.CfnResource(part, f"Topic{each}", type="AWS::SNS::Topic")


def test_the_first_endpoint_that_does_not_fit_is_named():
    app = cdk.App(analytics_reporting=False)
    stack = cdk.Stack(app, "Plain")
    StackLimits.hold(stack)
    endpoints(stack, 200, 298, 1, 10)
    with refused("LLE384", "e2 is the first that does not fit, the 2 before it have 500") as error:
        synthesised(app)
    assert error.value.where == "Plain/e2"


def test_what_stacks_nested_in_it_have_counts_for_them():
    app = cdk.App(analytics_reporting=False)
    stack = cdk.Stack(app, "Plain")
    StackLimits.hold(stack)
    resources(stack, 499)  # and the nested stack
    resources(cdk.NestedStack(stack, "Nested"), 100)
    synthesised(app)


def test_an_app_of_its_own_is_told_by_the_cdk_before_its_own_count():
    app = cdk.App(analytics_reporting=False)
    stack = cdk.Stack(app, "Plain")
    StackLimits.hold(stack)
    resources(stack, 501)
    with pytest.raises(RuntimeError, match="LLE384: the stack has more resources"):
        app.synth()


def many_endpoints(count: int, zones: int) -> dict[str, Any]:
    values = yaml.safe_load((ROOT / "endpoint.yaml").read_text(encoding="utf-8"))
    del values["region"]
    values["client_zones"] = {"ids": [f"new1-az{number}" for number in range(1, zones + 1)]}
    (endpoint,) = values["endpoints"].values()
    values["endpoints"] = {
        f"e{number}": {**endpoint, "endpoint_name": f"e{number}"} for number in range(count)
    }
    return values


def test_a_settings_file_is_told_which_endpoint_is_too_many():
    """Sixteen zones have a URL each for every endpoint: 19 outputs, so eleven are too many."""
    settings = parse_settings(text_of(many_endpoints(11, zones=16)))
    with refused("LLE385", "209 outputs: e10 is the first") as error:
        template_of_settings(settings)
    assert error.value.where == f"{settings.stack_name}/e10"
