"""A model's role writes the logs of its own endpoints, where their names are stated, and no others."""

from __future__ import annotations

import copy
import json
from collections import defaultdict
from itertools import pairwise
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam

from low_latency_endpoint import EndpointOptions, FurtherVariant, ModelOptions
from low_latency_endpoint.settings import load_settings
from tests.depth import sampled
from tools.fuzzing.agreement import synthesised, text_of
from tools.fuzzing.cases import bases

from .iam_decisions import ACCOUNT, REGION, allows, text
from .names_and_rights import narrowed

ROLES = "arn:aws:iam::123456789012:role/"
GROUPS = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/aws/sagemaker/Endpoints/"
WRITING = (
    "logs:CreateLogGroup",
    "logs:CreateLogStream",
    "logs:DescribeLogStreams",
    "logs:PutLogEvents",
)


def logs_by_role(template: dict[str, Any]) -> dict[str, set[str]]:
    """Role -> what its policies say of endpoints' log groups, behind what all of them begin with."""
    logs = defaultdict(set)
    for policy in template["Resources"].values():
        if policy["Type"] != "AWS::IAM::Policy":
            continue
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            found = statement["Resource"]
            names = [text(each) for each in (found if isinstance(found, list) else [found])]
            for role in policy["Properties"]["Roles"]:
                logs[text(role)] |= {
                    name.removeprefix(GROUPS) for name in names if name.startswith(GROUPS)
                }
    return {role: names for role, names in logs.items() if names}


def of_endpoints(*names: str) -> set[str]:
    """Their log groups and streams."""
    return {f"{name}{end}" for name in names for end in ("", ":*")}


def named(values: dict[str, Any], *, role: str | None = None) -> dict[str, Any]:
    """The settings with a name for each endpoint and a second endpoint, maybe all on one role."""
    values.pop("parameters", None)  # which name the endpoints
    first = next(iter(values["endpoints"].values()))
    values["endpoints"].setdefault("another", copy.deepcopy(first))
    for number, endpoint in enumerate(values["endpoints"].values()):
        # The one begins with the other: a wildcard behind a name is another endpoint's.
        endpoint["endpoint_name"] = "ranking" + number * "-v2"
        if role is not None:
            endpoint["role_arn"] = role
    return values


@pytest.mark.parametrize("role", [None, f"{ROLES}models"], ids=["own roles", "a stated role"])
@pytest.mark.parametrize("number", sampled(range(len(bases())), 4))
def test_only_the_stated_names_stand_in_the_roles_of_any_settings(folder, number, role):
    path = folder / "settings.yaml"
    path.write_text(text_of(named(bases()[number], role=role)), encoding="utf-8")
    settings = load_settings(path)
    names = [endpoint.endpoint_name for endpoint in settings.endpoints.values()]
    template = synthesised(settings)
    by_role = logs_by_role(template)
    if role is None:
        assert len(by_role) >= len(names)
        assert all(logs in [of_endpoints(name) for name in names] for logs in by_role.values())
        assert set().union(*by_role.values()) == of_endpoints(*names)
    else:
        assert by_role == {"models": of_endpoints(*names)}


def with_variants(stack, parts, endpoint: EndpointOptions, **given: Any) -> None:
    further = [FurtherVariant(name=name, containers=[parts.container()]) for name in ("b", "c")]
    parts.pattern(stack, endpoint=endpoint, variants=further, **given)


def with_shadow(stack, parts, endpoint: EndpointOptions, **given: Any) -> None:
    shadow = FurtherVariant(name="shadow", containers=[parts.container()])
    parts.pattern(stack, endpoint=endpoint, shadow=shadow, **given)


@pytest.mark.parametrize(
    ("make", "models"), [(with_variants, 3), (with_shadow, 2)], ids=["variants", "shadow"]
)
def test_each_model_of_an_endpoint_writes_its_logs_alone(stack, parts, template_of, make, models):
    make(stack, parts, EndpointOptions(endpoint_name="ranking"))
    by_role = logs_by_role(template_of(stack))
    assert len(by_role) == models
    assert all(logs == of_endpoints("ranking") for logs in by_role.values())


@pytest.mark.parametrize("make", [with_variants, with_shadow], ids=["variants", "shadow"])
def test_a_stated_role_has_the_name_once(stack, parts, template_of, make):
    role = iam.Role.from_role_arn(stack, "Own", f"{ROLES}models")
    make(stack, parts, EndpointOptions(endpoint_name="ranking"), model=ModelOptions(role=role))
    template = template_of(stack)
    assert logs_by_role(template) == {"models": of_endpoints("ranking")}
    assert json.dumps(template).count(":log-group:/aws/sagemaker/Endpoints/ranking:*") == 1


def test_named_endpoints_on_a_role_have_the_rest_in_common(stack, parts, template_of):
    role = iam.Role.from_role_arn(stack, "Own", f"{ROLES}models")
    for name in ("ranking", "search", "search"):
        parts.model(stack, f"Model{len(stack.node.children)}", role=role, endpoint_names=[name])
    template = template_of(stack)
    assert logs_by_role(template) == {"models": of_endpoints("ranking", "search")}
    # The logs of each name; hosting, interfaces, image and data of all.
    policies = template.of_type("AWS::IAM::Policy").values()
    assert sum(each["Roles"] == ["models"] for each in policies) == 2 + 4


def test_a_model_may_serve_several_endpoints(stack, parts, template_of):
    parts.model(stack, endpoint_names=["ranking", "search"])
    (logs,) = logs_by_role(template_of(stack)).values()
    assert logs == of_endpoints("ranking", "search")


def test_a_name_that_is_known_when_it_is_deployed(stack, parts, template_of):
    name = cdk.CfnParameter(stack, "Name").value_as_string
    with_variants(stack, parts, EndpointOptions(endpoint_name=name))
    assert set().union(*logs_by_role(template_of(stack)).values()) == of_endpoints("<Name>")


def test_what_iam_decides_of_a_name(stack, parts, template_of):
    parts.pattern(stack, endpoint=EndpointOptions(endpoint_name="ranking"))
    documents = [each["PolicyDocument"] for each in template_of(stack).model_policies.values()]
    for group, expected in (("ranking", True), ("ranking-v2", False), ("rank", False)):
        for resource in (f"{GROUPS}{group}", f"{GROUPS}{group}:log-stream:primary/i-1"):
            for action in WRITING:
                allowed = any(allows(document, action, resource) for document in documents)
                assert allowed is expected, (action, resource)


@pytest.mark.parametrize("role", [None, f"{ROLES}models"], ids=["own role", "a stated role"])
def test_no_right_goes_before_the_clean_up_when_a_name_is_stated_changed_and_left_out(
    new_stack, parts, template_of, role
):
    templates = []
    for name in (None, "ranking", "ranking-v2", None):
        stack = new_stack()
        given = role and iam.Role.from_role_arn(stack, "Own", role)
        parts.pattern(
            stack, endpoint=EndpointOptions(endpoint_name=name), model=ModelOptions(role=given)
        )
        templates.append(template_of(stack))
    for before, after in pairwise(templates):
        assert not narrowed(before, after)
        # So that the policy with the former name is one that goes: in the clean-up.
        changed = before.model_policies.keys() ^ after.model_policies.keys()
        assert len(changed) >= 2
