"""In which order a stack's resources begin: what a template leaves out shows."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from stacks_under_test import TestStack

from local_sagemaker import LocalAws, RuntimeOptions
from local_sagemaker.cloudformation.resource_order import creation_order, dependencies

CASES = yaml.safe_load(Path(__file__).with_name("creation_orders.yaml").read_text())
KINDS = ["Custom::It", "AWS::SNS::Topic", "AWS::IAM::Policy", "AWS::EC2::VPCGatewayAttachment"]


@pytest.mark.parametrize("case", CASES["orders"], ids=lambda case: case["what"])
@pytest.mark.parametrize("order", ["late", "late-reversed"])
def test_what_begins_when(case, order):
    resources = {
        name: {"Type": kind, "DependsOn": needs} for name, (kind, *needs) in case["written"].items()
    }
    assert " ".join(creation_order(resources, order)) == case[order]


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 255)), max_size=8))
def test_every_order_keeps_to_the_graph(drawn):
    resources = {
        f"R{n}": {"Type": kind, "DependsOn": [f"R{m}" for m in range(n) if needs >> m & 1]}
        for n, (kind, needs) in enumerate(drawn)
    }
    for order in ("late", "late-reversed"):
        begun: set[str] = set()
        for name in creation_order(resources, order):
            assert dependencies(resources[name], set(resources)) <= begun
            begun.add(name)
        assert begun == set(resources)


@pytest.mark.parametrize("case", CASES["missing"], ids=lambda case: case["what"])
@pytest.mark.parametrize("update", [False, True], ids=["create", "update"])
def test_a_missing_depends_on_shows(stack, case, update):
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-dependson.html"""
    if update:
        stack.of(First={"Type": "AWS::SNS::Topic"})
    failed = stack.of(**case["resources"], expect_failure=True)
    assert "ROLLBACK_COMPLETE" in failed.status
    assert case["words"] in (failed.failure_reason or "")
    stated = {**case["resources"]["It"], "DependsOn": case["needs"]}
    stack.of(**{**case["resources"], "It": stated})


def test_the_order_can_be_chosen():
    topic = {"Type": "AWS::SNS::Topic"}
    options = RuntimeOptions(creation_order="late-reversed")
    with LocalAws.in_process(region="us-east-1", runtime=options) as aws:
        events = TestStack(aws, "Reversed").of(A=topic, B=topic).events
    begun = [e["LogicalResourceId"] for e in events if e["ResourceStatus"] == "CREATE_IN_PROGRESS"]
    assert begun == ["Reversed", "B", "A"]
