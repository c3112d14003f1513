"""Whole stacks before three judges: cfn-lint, cdk-nag's AwsSolutions and CDK's own rules."""

from __future__ import annotations

import json
from pathlib import Path

import aws_cdk as cdk
import cdk_nag
import pytest
from aws_cdk import aws_s3 as s3
from cfnlint.api import lint
from cfnlint.core import get_rules

REGION = "us-east-1"
IGNORED = {
    "W3010": "the zones are the point: the user states them",
}


def judged(stack):
    cdk.Validations.of(cdk.App.of(stack)).add_plugins(
        cdk_nag.AwsSolutionsChecks(cdk.App.of(stack))
    )
    return stack


def cfn_lint(template):
    """Errors and warnings; informational findings are left out, they are matters of taste."""
    findings = lint(template, get_rules([], list(IGNORED), ["W"], {}, False), [REGION])
    return [str(finding) for finding in findings]


@pytest.fixture(params=[REGION, None], ids=["region", "agnostic"])
def filled(request, new_stack, fill, whole_stack_name):
    stack = judged(new_stack(region=request.param))
    fill(stack, whole_stack_name)
    return stack


def test_nothing_to_find(filled):
    assembly = cdk.App.of(filled).synth()  # raises on any finding of CDK's rules and of cdk-nag
    template = (Path(assembly.directory) / "Serving.template.json").read_text()
    assert len(json.loads(template)["Resources"]) > 2
    assert cfn_lint(template) == []


@pytest.mark.parametrize("name", ["network-by-zone-id", "models", "two-patterns"])
def test_findings_are_acknowledged_one_by_one_and_with_a_reason(new_stack, fill, name):
    stack = new_stack()
    fill(stack, name)
    acknowledged = {
        (construct.node.path, rule): reason
        for construct in stack.node.find_all()
        for entry in construct.node.metadata
        if entry.type == "aws:cdk:acknowledged-rules"
        for rule, reason in entry.data.items()
    }
    assert acknowledged
    for (path, rule), reason in acknowledged.items():
        assert len(reason.split()) >= 4, f"{path}: why is {rule} acknowledged?"
        # Only wildcards in resources, each by name, on the one construct that has it.
        assert "AwsSolutions-IAM5[Resource::" in rule
        assert path != "Serving"


def test_the_judges_are_awake(new_stack):
    stack = judged(new_stack())
    s3.Bucket(stack, "Open")
    cdk.CfnResource(stack, "Broken", type="AWS::S3::Bucket", properties={"BucketNam": "b"})
    with pytest.raises(RuntimeError) as raised:
        cdk.App.of(stack).synth()
    assert "AwsSolutions-S1" in str(raised.value)
    assert "CloudFormation Validate" in str(raised.value)
    for kind, name in (("AWS::S3::Bucket", "BucketNam"), ("AWS::EC2::Subnet", "Zone")):
        resource = {"Type": kind, "Properties": {name: "x"}}
        assert cfn_lint(json.dumps({"Resources": {"R": resource}}))
