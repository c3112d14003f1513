"""`deploy_template` with a cloud assembly, the CDK CLI, and what is left afterwards."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from stacks_under_test import resource_of

from local_sagemaker import DeploymentFailed, LocalAws, delete_stack, deploy_template

ROOT = Path(__file__).resolve().parents[2]
CDK = ROOT / "node_modules" / ".bin" / "cdk"


def assembly(folder: Path, template: dict[str, Any]) -> Path:
    """Write a cloud assembly with one stack and one zipped file asset, as CDK does."""
    (folder / "asset.1").mkdir(parents=True)
    (folder / "asset.1" / "index.py").write_text("def handler(event, context):\n    return 7\n")
    (folder / "App.template.json").write_text(json.dumps(template))

    def destination(key: str) -> dict[str, Any]:
        bucket = "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"
        return {"current": {"bucketName": bucket, "objectKey": key}}

    files = {
        "1": {
            "source": {"path": "asset.1", "packaging": "zip"},
            "destinations": destination("1.zip"),
        },
        "2": {
            "source": {"path": "App.template.json", "packaging": "file"},
            "destinations": destination("2.json"),
        },
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
    return {
        "Parameters": {
            "BootstrapVersion": {
                "Type": "AWS::SSM::Parameter::Value<String>",
                "Default": "/cdk-bootstrap/hnb659fds/version",
            }
        },
        "Resources": {
            "Role": role,
            "Fn": resource_of(
                "AWS::Lambda::Function",
                Code={
                    "S3Bucket": {
                        "Fn::Sub": "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"
                    },
                    "S3Key": "1.zip",
                },
                Handler="index.handler",
                Runtime="python3.12",
                Role={"Fn::GetAtt": ["Role", "Arn"]},
            ),
        },
        "Outputs": {"Fn": {"Value": {"Ref": "Fn"}}},
        "Rules": {"CheckBootstrapVersion": {"Assertions": []}},
    }


def test_a_cloud_assembly_with_assets(aws, tmp_path, template):
    folder = assembly(tmp_path / "cdk.out", template)
    stack = deploy_template(aws, folder, "App")
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


def test_a_missing_parameter_is_refused(stack):
    template = {
        "Parameters": {"P": {"Type": "String"}},
        "Resources": {"T": {"Type": "AWS::SNS::Topic"}},
    }
    with pytest.raises(DeploymentFailed, match=r"Parameters: \[P\] must have values"):
        stack.template(template)
    with pytest.raises(DeploymentFailed, match=r"Parameters: \[Q\] do not exist"):
        stack.template(template, parameters={"P": "1", "Q": "2"})


@pytest.mark.realtime
def test_the_real_cdk_cli_bootstraps_deploys_and_destroys(tmp_path, template):
    if not CDK.exists():
        pytest.fail(f"{CDK} is missing: run `make setup`")
    folder = assembly(tmp_path / "cdk.out", template)

    def cdk(*arguments: str) -> str:
        done = subprocess.run(
            [str(CDK), *arguments, "--no-notices", "--app", str(folder)],
            env=aws.environment(),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    with LocalAws.start(region="eu-west-1") as aws:
        cdk("bootstrap", f"aws://{aws.account}/{aws.region}")
        assert aws.leftovers() == []
        cdk("deploy", "--require-approval", "never", "App")
        (found,) = aws.client("lambda").list_functions()["Functions"]
        assert found["Runtime"] == "python3.12"
        assert "no differences" in cdk("diff", "App")
        cdk("destroy", "--force", "App")
        assert aws.leftovers() == []
        assert " -> 500" not in aws.log_path.read_text()
