"""Odd templates: each is refused before a resource begins, or every function in it has its value."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from signed_requests import refusal
from stacks_under_test import resource_of
from waiting import until

from local_sagemaker import delete_stack

ROWS = yaml.safe_load(Path(__file__).with_name("template_rows.yaml").read_text())
YAML_TAGS = ("timestamp", "int", "float", "bool", "binary", "omap", "pairs", "set", "seq", "map")
KNOWN: dict[str, Any] = {
    "Parameters": {
        "Attribute": {"Type": "String", "Default": "Value"},
        "List": {"Type": "CommaDelimitedList", "Default": "a,b"},
        "Name": {"Type": "String", "Default": "x"},
    },
    "Mappings": {"M": {"a": {"b": "c"}}},
    "Conditions": {"Yes": {"Fn::Equals": [{"Ref": "Name"}, "x"]}},
    "Resources": {"P": resource_of("AWS::SSM::Parameter", Type="String", Value="p")},
}


def merged(part: dict[str, Any]) -> dict[str, Any]:
    """Give the known template with the members of this one."""
    whole = dict(KNOWN)
    for section, members in part.items():
        both = isinstance(members, dict) and section in KNOWN
        whole[section] = {**KNOWN[section], **members} if both else members
    return whole


def with_value(value: Any) -> dict[str, Any]:
    return merged(
        {"Resources": {"It": resource_of("AWS::SSM::Parameter", Type="String", Value=value)}}
    )


def refused(aws: Any, name: str, template: dict[str, Any]) -> str:
    """Create a stack that is refused; gives the words."""
    client = aws.client("cloudformation")
    code, words = refusal(client.create_stack, StackName=name, TemplateBody=json.dumps(template))
    assert code == "ValidationError"
    assert refusal(client.describe_stacks, StackName=name)[0] == "ValidationError"
    return words


@pytest.mark.parametrize("row", [row for row in ROWS["values"] if "words" in row], ids=json.dumps)
def test_what_is_no_value_is_refused_before_there_is_a_stack(aws, stack, row):
    assert row["words"] in refused(aws, stack.name, with_value(row["value"]))


@pytest.mark.parametrize("row", [row for row in ROWS["values"] if "gives" in row], ids=json.dumps)
def test_a_function_has_the_value_of_its_page(stack, row):
    deployed = stack.template(with_value(row["value"]), expect_failure=row["gives"] is None)
    if row["gives"] is not None:
        assert (
            stack.aws.client("ssm").get_parameter(Name=deployed.resources["It"])["Parameter"][
                "Value"
            ]
            == row["gives"]
        )
    assert "internal error" not in str(deployed.failure_reason)


def nested(function: Callable[[Any], Any]) -> Any:
    """Write a function that is its own argument eight times: 700 bytes for 1 GB."""
    value: Any = "x" * 10
    for _ in range(8):
        value = function(value)
    return value


MULTIPLYING = {
    "Fn::Sub": nested(lambda value: {"Fn::Sub": ["${a}" * 10, {"a": value}]}),
    "Fn::Join": {"Fn::Join": ["x" * 20_000, {"Fn::Split": [",", "," * 9_000]}]},
    "Fn::Split": {"Fn::Select": [0, {"Fn::Split": [",", "," * 20_000]}]},
    "template's functions": [
        {"Fn::Sub": ["${a}" * 10, {"a": {"Fn::Sub": ["${a}" * 200, {"a": "x" * 500}]}}]}
    ]
    * 20,
}


@pytest.mark.parametrize("function", MULTIPLYING)
def test_a_function_gives_no_more_than_a_template_may_have(aws, stack, function):
    template = with_value(MULTIPLYING[function])
    begun = time.process_time()
    words = refused(aws, stack.name, template)
    assert f"{function.strip()} " in words
    assert "longer than" in words
    assert time.process_time() - begun < 5


def test_long_results_within_the_limit_are_given(stack):
    """A thousand texts of a kilobyte, of which one is chosen, in each of twenty properties."""
    text = {"Fn::Select": [0, {"Fn::Split": [",", {"Fn::Join": [",", ["x" * 900] * 900]}]}]}
    tags = {f"t{number}": {"Fn::Sub": ["${a}", {"a": f"v{number}"}]} for number in range(20)}
    resource = resource_of("AWS::SSM::Parameter", Type="String", Value=text, Tags=tags)
    deployed = stack.template(merged({"Resources": {"It": resource}}))
    assert not deployed.failure_reason


@pytest.mark.parametrize("row", ROWS["quotas"], ids=lambda row: row["words"])
def test_a_quota_refuses_the_template(aws, stack, row):
    """CloudFormation user guide, "CloudFormation quotas"."""
    assert row["words"] in refused(aws, stack.name, merged(multiplied(row["part"])))


def multiplied(part: Any) -> Any:
    """Write out the members and texts that a part has so many times."""
    if not isinstance(part, dict):
        return part
    if "text" in part:
        return part["text"] * part["times"]
    if "member" in part:
        return {f"N{number}": part["member"] for number in range(part["times"])}
    return {key: multiplied(item) for key, item in part.items()}


@pytest.mark.parametrize("row", ROWS["templates"], ids=json.dumps)
def test_a_section_out_of_order_is_refused_before_there_is_a_stack(aws, stack, row):
    if "gives" in row:
        assert stack.template(merged(row["part"])).status == "CREATE_COMPLETE"
    else:
        assert row["words"] in refused(aws, stack.name, merged(row["part"]))


FUNCTIONS = ["Ref", "Condition", *(f"Fn::{name}" for name in ROWS["functions"])]
plain = st.one_of(
    st.sampled_from(
        ["", "a", "0", "-1", "P", "P.Value", "List", "Yes", "M", "${P}", "${", "10.0.0.0/8"]
    ),
    st.sampled_from(
        [0, 1, -1, 1.5, 8, 10**400, float("nan"), True, None, "\ud800", "{{resolve:ssm:x}}"]
    ),
    st.text(max_size=4),
)
odd = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(["a", "b", "DefaultValue"]), inner, max_size=2),
        st.tuples(st.sampled_from(FUNCTIONS), inner).map(lambda pair: dict([pair])),
    ),
    max_leaves=12,
)
PLACES = {
    "Conditions": {"C": ...},
    "Mappings": {"N": {"a": {"b": ...}}},
    "Outputs": {"o": {"Value": ...}},
    "Parameters": {"q": {"Type": "String", "Default": ...}},
    "Resources": {"It": resource_of("AWS::SSM::Parameter", Type="String", Value=...)},
    "Rules": {"r": {"Assertions": [{"Assert": ...}]}},
}
ATTRIBUTES = ["", "Condition", "DeletionPolicy", "DependsOn", "Metadata", "Properties", "Type"]


def put(place: Any, value: Any) -> Any:
    """Put a value where the dots are."""
    if place is ...:
        return value
    if isinstance(place, dict):
        return {key: put(item, value) for key, item in place.items()}
    return [put(item, value) for item in place] if isinstance(place, list) else place


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    section=st.sampled_from([*PLACES]),
    attribute=st.sampled_from(ATTRIBUTES),
    value=odd,
    whole=st.booleans(),
)
def test_nothing_that_a_template_says_is_an_internal_error(aws, section, attribute, value, whole):
    part = {section: value} if whole and not attribute else put({section: PLACES[section]}, value)
    if attribute and whole:
        part = {"Resources": {"It": value}}
    elif attribute:
        part = {"Resources": {"It": {"Type": "AWS::SNS::Topic", attribute: value}}}
    told = aws.client("cloudformation")
    given = {"StackName": "Odd", "TemplateBody": json.dumps(merged(part))}
    try:
        stack_id = told.create_stack(**given)["StackId"]
    except told.exceptions.ClientError:
        assert refusal(told.create_stack, **given)[0] == "ValidationError"
        return
    until(
        lambda: told.describe_stacks(StackName=stack_id)["Stacks"][0]["StackStatus"],
        lambda status: not status.endswith("_IN_PROGRESS"),
    )
    delete_stack(aws, "Odd")
    events = told.describe_stack_events(StackName=stack_id)["StackEvents"]
    assert "internal error" not in json.dumps(events, default=str)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("[" * 5000, "Template format error"),
        ('{"a":' * 5000, "Template format error"),
        (json.dumps({"Resources": {"P": json.loads("[" * 150 + "]" * 150)}}), "nested deeper"),
        ("9" * 5000, "Template format error"),
        ("Resources: {P: &a {Type: x}, Q: *a}", "YAML aliases are not allowed"),
        ("Resources: {5: {Type: x}}", "[/Resources/5] the key is no string"),
        ("Resources: {P: {Type: !!binary aGk=}}", "is no text or number of JSON"),
        ("Resources: {P: {Type: x, Metadata: {a: .nan}}}", "is no text or number of JSON"),
        *((f"Resources: {{P: !!{tag} x}}", "Template format error") for tag in YAML_TAGS),
        ("Resources: {P: {<<: {Type: x}}}", "tag:yaml.org,2002:merge"),
        ("Resources: {P: !Nope x}", "/Resources/P"),
        ("- a", "At least one Resources member"),
        ("\0", "Template format error"),
    ],
)
def test_what_is_no_template_is_refused(aws, stack, body, words):
    told = refusal(
        aws.client("cloudformation").create_stack, StackName=stack.name, TemplateBody=body
    )
    assert told[0] == "ValidationError"
    assert words in told[1]
