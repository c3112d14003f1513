"""Resources keep their properties in another scope, as `cdk refactor` needs to move them."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import aws_cdk as cdk
import pytest
from constructs import Construct

from low_latency_endpoint.hosting import endpoint, inference_component

STACK_REFACTORING = (
    "https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/stack-refactoring.html"
)
REFERENCES = ("Ref", "Fn::GetAtt")


class Group(Construct):
    """A scope between the stack and its constructs."""

    def __init__(self, scope: cdk.Stack, id: str) -> None:
        super().__init__(scope, id)
        self.region = scope.region
        self.account = scope.account
        self.url_suffix = scope.url_suffix


@pytest.fixture(autouse=True)
def stated_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Endpoints and components as if their names were stated: a default name follows the path."""
    for module in (endpoint, inference_component):
        monkeypatch.setattr(module, "launched_name_of", stated_name)


def stated_name(construct: Construct) -> str:
    return f"stated-{construct.node.id}"


def test_properties_are_the_same_in_another_scope(new_stack, template_of, fill, whole_stack_name):
    """AWS moves a resource whose configuration does not change (``STACK_REFACTORING``).

    `cdk refactor` pairs resources by type, properties and metadata, with references left out
    (its `computeResourceDigests`).
    """
    below_stack = new_stack()
    fill(below_stack, whole_stack_name)
    below_group = new_stack()
    fill(Group(below_group, "Group"), whole_stack_name)
    assert shapes(template_of(below_group)) == shapes(template_of(below_stack))


def shapes(template: dict[str, Any]) -> Counter[str]:
    """How often each type stands in the template with each set of properties."""
    counted: Counter[str] = Counter()
    for logical_id, resource in template["Resources"].items():
        if not follows_path(logical_id, resource):
            counted[json.dumps(without_references(resource), sort_keys=True)] += 1
    return counted


def follows_path(logical_id: str, resource: dict[str, Any]) -> bool:
    """Whether the how-to says that `cdk refactor` leaves the resource out."""
    if resource["Type"] == "AWS::SSM::Parameter":  # the fleet's, found by its name
        return True
    if resource["Type"] != "AWS::IAM::Policy":
        return False
    # CDK's own policies are named by their logical IDs; on a role that the app names, ours are
    # named by the path of what they are about, as two endpoints may share the role.
    own_role = "Ref" in resource["Properties"]["Roles"][0]
    return "DefaultPolicy" in logical_id or not own_role


def without_references(value: Any) -> Any:
    """The value as the CDK CLI compares it: no logical IDs, no path of the construct."""
    if isinstance(value, list):
        return [without_references(item) for item in value]
    if not isinstance(value, dict):
        return value
    if any(reference in value for reference in REFERENCES):
        return "<reference>"
    return {
        key: without_references(item)
        for key, item in value.items()
        if key not in {"DependsOn", "aws:cdk:path"}
    }
