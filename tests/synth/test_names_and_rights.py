"""No two things share a name, no sum exceeds what AWS takes, and rights are there in time.

That no update takes a right away too early, test_updates.py holds of every setting.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml
from aws_cdk import Duration
from aws_cdk import aws_iam as iam

from low_latency_endpoint import ModelData, Safeguards
from low_latency_endpoint.plan.launched_names import as_named
from low_latency_endpoint.settings import load_settings
from low_latency_endpoint.synthesis.stack_limits import synthesised
from tests.depth import sampled
from tests.refusals import refused
from tools.fuzzing.agreement import synthesised as template_of_settings
from tools.fuzzing.agreement import template_of
from tools.fuzzing.cases import bases

from .conftest import FLAGS, Synthesised, alarms_on
from .names_and_rights import (
    Launched,
    names_of,
    narrowed,
    shared_between,
    shared_by_an_update,
    shared_in,
)

ROLES = "arn:aws:iam::123456789012:role/"


# --- names and sums of all templates that there are -----------------------------------------------


def made(values: dict[str, Any], folder: Path) -> dict[str, Any]:
    path = folder / "settings.yaml"
    path.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    return template_of_settings(load_settings(path))


def on_stated_roles(values: dict[str, Any]) -> dict[str, Any]:
    """The settings, with one role for all models, one for all functions, and no stated names."""
    values["safeguards"] = {
        **values.get("safeguards", {}),
        "function_role_arn": f"{ROLES}functions",
    }
    if "vpc_id" not in values.get("network", {}):
        values["safeguards"]["flow_log_role_arn"] = f"{ROLES}flow-logs"
    for endpoint in values["endpoints"].values():
        endpoint["role_arn"] = f"{ROLES}models"
        endpoint.pop("endpoint_name", None)
    return values


@pytest.mark.parametrize("number", sampled(range(len(bases())), 4))
def test_two_stacks_of_any_settings_share_no_name_on_stated_roles(number, folder):
    templates = []
    for name in ("Dev", "Prod"):
        values = on_stated_roles(bases()[number])
        values.pop("parameters", None)  # which the settings name
        templates.append(made({**values, "stack_name": name}, folder))
        assert not shared_in(templates[-1])
    assert shared_between(*templates) == set()


def test_any_two_stacks_of_an_app_share_no_name(fill, whole_stack_name):
    """Whose stacks' names are not their paths': an app that takes the stack's name, deployed twice."""
    templates = []
    for name in ("Dev", "Prod"):
        app = cdk.App(analytics_reporting=False, context=FLAGS)
        env = cdk.Environment(account="123456789012", region="us-east-1")
        stack = cdk.Stack(app, "Serving", stack_name=name, env=env)
        fill(stack, whole_stack_name)
        templates.append(Synthesised(as_named(app.synth().stacks[0].template)))
        assert not shared_in(templates[-1])
    stated = {name for name in shared_between(*templates) if name[2] in ("sentiment", "ranker")}
    assert shared_between(*templates) == stated


def differ_by_launch(template: dict[str, Any]) -> None:
    """Two stacks of one template share no name: CloudFormation makes it, or the stack is in it."""
    stated = {"sentiment", "ranker", "models", "functions"}  # named by whoever wrote the app
    assert {name[2] for name in shared_between(template, template)} <= stated
    for names in names_of(template).values():
        for on, _, name in names:
            of_own = '"Ref"' in on or on.startswith("AWS::Route53::")  # private zones
            assert of_own or "AWS::StackId" in name or name in stated, name


@pytest.mark.parametrize("number", sampled(range(len(bases())), 4))
def test_no_two_stacks_of_a_template_share_a_name_on_stated_roles(number, folder):
    values = on_stated_roles(bases()[number])
    values.pop("parameters", None)
    path = folder / "settings.yaml"
    path.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    differ_by_launch(template_of(load_settings(path)))


def test_no_two_stacks_of_a_template_share_a_name(stack, fill, whole_stack_name):
    fill(stack, whole_stack_name)
    differ_by_launch(cdk.App.of(stack).synth().stacks[0].template)


def policies_of_a_model(stack, parts) -> set[str]:
    """The names of the policies that a model's stack gives a role that is stated."""
    parts.model(stack, role=iam.Role.from_role_arn(stack, "Own", f"{ROLES}models"))
    template = Synthesised(as_named(cdk.App.of(stack).synth().stacks[0].template))
    policies = template.of_type("AWS::IAM::Policy").values()
    return {each["PolicyName"] for each in policies if each["Roles"] == ["models"]}


def test_a_role_is_its_accounts_in_all_regions(new_stack, parts):
    """So stacks of the same name in two Regions meet on it."""
    found = [
        policies_of_a_model(new_stack(region=region), parts)
        for region in ("us-east-1", "eu-west-1")
    ]
    assert len(found[0]) == len(found[1]) == 4
    assert not found[0] & found[1]


def test_a_long_name_of_a_stack_leaves_policies_names_that_iam_takes(new_stack, parts):
    found = [
        policies_of_a_model(new_stack(name="S" * 127 + number), parts) for number in ("0", "1")
    ]
    assert max(len(name) for names in found for name in names) <= 128
    assert not found[0] & found[1]


# --- sums that are counted ------------------------------------------------------------------------


def models_on_a_role(stack, parts) -> Iterator[Any]:
    """One model more on the same role with each that is asked for."""
    role = iam.Role.from_role_arn(stack, "Own", f"{ROLES}models")
    network = parts.network(stack, max_instances=500)
    for number in count():
        data = ModelData.from_uri(f"s3://team-models/{'x' * 100}{number:02}/model.tar.gz")
        yield parts.model(
            stack,
            f"Model{number}",
            network=network,
            role=role,
            containers=[parts.container(data=data)],
        )


def with_models(new_stack, parts, models: int) -> cdk.Stack:
    stack = new_stack()
    for _ in islice(models_on_a_role(stack, parts), models):
        pass
    return stack


def on_the_role(stack: cdk.Stack) -> int:
    """Characters on the role of its models, in IAM's count."""
    template = cdk.App.of(stack).synth().stacks[0].template
    return Launched(as_named(template)).inline_policies()["models"]


def test_what_does_not_fit_on_a_role_is_refused_with_the_number_that_fits(new_stack, parts):
    one, two = (on_the_role(with_models(new_stack, parts, models)) for models in (1, 2))
    most = 1 + (10_240 - one) // (two - one)
    assert on_the_role(with_models(new_stack, parts, most)) <= 10_240
    with refused("LLE378", f" {most} of these endpoints fit") as error:
        synthesised(cdk.App.of(with_models(new_stack, parts, most + 2)))
    assert f"for {most + 2} endpoints" in error.value.got
    assert error.value.where == f"Serving/Model{most}"  # counted from 0


def test_what_is_the_same_for_all_stands_once_on_a_role(stack, parts, template_of):
    role = iam.Role.from_role_arn(stack, "Own", f"{ROLES}models")
    for number in range(3):
        data = ModelData.from_uri(f"s3://team-models/{number}/model.tar.gz")
        parts.model(stack, f"Model{number}", role=role, containers=[parts.container(data=data)])
    template = template_of(stack)
    policies = [
        each
        for each in template.of_type("AWS::IAM::Policy").values()
        if each["Roles"] == ["models"]
    ]
    # Hosting, interfaces and image for all, and the data of each.
    assert len(policies) == 3 + 3


def alarmed(stack, parts, variants):
    endpoint = parts.endpoint(
        stack, variants=[parts.variant(stack, name=f"variant{n}") for n in range(variants)]
    )
    alarms_on(
        stack,
        endpoint,
        model_latency={f"p{n}": Duration.millis(200 + n) for n in (50, 80, 90, 95, 98, 99)},
    )


def test_the_rule_of_ten_variants_fits_a_composite_alarm(new_stack, parts):
    stack = new_stack(name="TextClassificationProduction")
    alarmed(stack, parts, 10)
    template = cdk.App.of(stack).synth().stacks[0].template
    launched = Launched(template, "TextClassificationProduction")
    assert 3_000 < max(launched.alarm_rules().values()) <= 10_240


def test_a_rule_that_is_too_long_is_refused(new_stack, parts):
    stack = new_stack(name="S" * 128)
    alarmed(stack, parts, 10)
    with refused("LLE736") as error:
        synthesised(cdk.App.of(stack))
    assert int(error.value.got.split()[0].replace(",", "")) > 10_240


# --- rights that others give ----------------------------------------------------------------------


def reading(bucket: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=["s3:GetObject"], resources=[f"arn:aws:s3:::{bucket}/*"])


def test_separate_policies_on_a_role_that_is_given_are_waited_for(stack, parts, template_of):
    role = iam.Role(stack, "Own", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    iam.Policy(stack, "Before", roles=[role], statements=[reading("before")])
    parts.model(stack, role=role)
    iam.ManagedPolicy(stack, "After", roles=[role], statements=[reading("after")])
    other = iam.Role(stack, "Other", assumed_by=iam.AnyPrincipal())
    iam.Policy(stack, "Elsewhere", roles=[other], statements=[reading("elsewhere")])
    template = template_of(stack)
    waited = template.depends_on(template.only_id("AWS::SageMaker::Model"))
    beginnings = [
        name
        for name in ("Before", "After", "Elsewhere", "Own")
        if any(each.startswith(name) for each in waited)
    ]
    assert beginnings == ["Before", "After", "Own"]


def test_a_policy_that_needs_the_model_itself_makes_no_circle(stack, parts, template_of):
    role = iam.Role(stack, "Own", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    model = parts.model(stack, role=role)
    describing = iam.PolicyStatement(
        actions=["sagemaker:DescribeModel"], resources=[model.model_arn]
    )
    iam.Policy(stack, "Describing", roles=[role], statements=[describing])
    template = template_of(stack)
    waited = template.depends_on(template.only_id("AWS::SageMaker::Model"))
    assert not [name for name in waited if name.startswith("Describing")]


def test_functions_and_the_flow_log_wait_for_what_their_role_is_given(stack, parts, template_of):
    role = iam.Role(stack, "Own", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    Safeguards(function_role=role, flow_log_role=role).apply_to(stack)
    parts.network(stack)
    iam.Policy(stack, "Extra", roles=[role], statements=[reading("extra")])
    template = template_of(stack)
    for kind in ("AWS::Lambda::Function", "AWS::EC2::FlowLog"):
        for name in template.of_type(kind):
            assert [each for each in template.depends_on(name) if each.startswith("Extra")], name


# --- the questions themselves ---------------------------------------------------------------------


def policy(*resources: str, name: str = "a", action: str = "s3:GetObject") -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": [action], "Resource": list(resources)}
    return {
        "Type": "AWS::IAM::Policy",
        "Properties": {
            "PolicyName": name,
            "Roles": ["shared"],
            "PolicyDocument": {"Version": "2012-10-17", "Statement": [statement]},
        },
    }


def test_what_is_narrowed_is_seen():
    before, after = ({"Resources": {"It": policy(*names)}} for names in (("a", "b"), ("a",)))
    assert [right[-1] for right in narrowed(before, after)] == ["b"]
    assert not narrowed(after, before)
    assert not narrowed(before, {"Resources": {"It": policy("*", action="s3:*")}})
    # A policy that goes, goes in the clean-up.
    assert not narrowed(before, {"Resources": {"Other": policy("a")}})


def test_names_that_are_shared_are_seen():
    one = {"Resources": {"It": policy("a")}}
    both = {"Resources": {"It": policy("a"), "Other": policy("b")}}
    moved = {"Resources": {"Other": policy("a")}}
    assert shared_in(both)
    assert not shared_in(one)
    assert shared_between(one, moved)
    assert shared_by_an_update(one, moved)
    assert not shared_by_an_update(one, {"Resources": {"Other": policy("a", name="b")}})
