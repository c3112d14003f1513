"""`deploy_template` with a cloud assembly, and what is left afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from stacks_under_test import FUNCTION, function, resource_of

from local_sagemaker import DeploymentFailed, delete_stack, deploy_template

BUCKET = "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"


def assembly(folder: Path, template: dict[str, Any]) -> Path:
    """Write a cloud assembly with one stack and one zipped file asset, as CDK does."""
    (folder / "asset.1").mkdir(parents=True)
    (folder / "asset.1" / "index.py").write_text("def handler(event, context):\n    return 7\n")
    (folder / "App.template.json").write_text(json.dumps(template))
    files = {
        key: {
            "source": {"path": path, "packaging": packaging},
            "destinations": {"current": {"bucketName": BUCKET, "objectKey": key}},
        }
        for key, path, packaging in (
            ("1.zip", "asset.1", "zip"),
            ("2.json", "App.template.json", "file"),
        )
    }
    (folder / "App.assets.json").write_text(json.dumps({"version": "36.0.0", "files": files}))
    manifest = {
        "version": "36.0.0",
        "artifacts": {
            "App.assets": {"type": "cdk:asset-manifest", "properties": {"file": "App.assets.json"}},
            "App": {
                "type": "aws:cloudformation:stack",
                "environment": "aws://unknown-account/unknown-region",
                "properties": {"templateFile": "App.template.json"},
                "dependencies": ["App.assets"],
            },
        },
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.fixture
def template(role) -> dict[str, Any]:
    """A template that uses the asset and CDK's version rule."""
    version = {
        "Type": "AWS::SSM::Parameter::Value<String>",
        "Default": "/cdk-bootstrap/hnb659fds/version",
    }
    code = {"S3Bucket": {"Fn::Sub": BUCKET}, "S3Key": "1.zip"}
    return {
        "Parameters": {"BootstrapVersion": version},
        "Resources": {"Role": role, "Fn": resource_of(FUNCTION, **function(Code=code))},
        "Outputs": {"Fn": {"Value": {"Ref": "Fn"}}},
        "Rules": {"CheckBootstrapVersion": {"Assertions": []}},
    }


def test_a_cloud_assembly_with_assets(aws, tmp_path, template):
    stack = deploy_template(aws, assembly(tmp_path / "cdk.out", template), "App")
    assert stack.status == "CREATE_COMPLETE"
    answer = aws.client("lambda").invoke(FunctionName=stack.outputs["Fn"])
    assert answer["Payload"].read() == b"7"
    assert any("App" in line for line in aws.leftovers())
    delete_stack(aws, "App")
    assert not any("App" in line for line in aws.leftovers())


def test_the_result_of_a_failure(aws, stack):
    template = {"Resources": {"T": {"Type": "No::Such::Type"}}}
    failed = stack.template(template, expect_failure=True)
    assert failed.status == "ROLLBACK_COMPLETE"
    assert failed.outputs == {}
    assert failed.events[0]["ResourceStatus"] == "CREATE_IN_PROGRESS"
    assert failed.failure_reason.startswith("T: No::Such::Type")
    with pytest.raises(DeploymentFailed) as raised:
        stack.template(template)  # the failed stack is deleted and created anew
    assert raised.value.reason == failed.failure_reason


def test_the_result_of_a_failure_with_more_events_than_a_page_has(stack):
    topics = {f"T{n}": {"Type": "AWS::SNS::Topic"} for n in range(30)}
    bad = {**resource_of("AWS::SNS::Topic", TopicName="a b"), "DependsOn": [*topics]}
    failed = stack.of(**topics, Bad=bad, expect_failure=True)
    assert len(failed.events) > 100
    assert failed.failure_reason.startswith("Bad: ")


def test_a_missing_parameter_is_refused(stack):
    template = {
        "Parameters": {"P": {"Type": "String"}},
        "Resources": {"T": {"Type": "AWS::SNS::Topic"}},
    }
    with pytest.raises(DeploymentFailed, match=r"Parameters: \[P\] must have values"):
        stack.template(template)
    with pytest.raises(DeploymentFailed, match=r"Parameters: \[Q\] do not exist"):
        stack.template(template, parameters={"P": "1", "Q": "2"})
