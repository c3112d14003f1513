"""The page of an upgrade: from a made-up old wheel to this library."""

from __future__ import annotations

import zipfile

import pytest

from release.building import build
from release.repository import LIBRARY, clone
from release.stack_changes import Effect, ResourceChange
from release.synthesis import apps_of
from release.upgrade import AppUpgrade, first_release, page, upgrade_page

#: A library of one construct: {kms}, {topic} and {argument} differ between its versions.
CODE = """
from aws_cdk import CfnOutput, Environment, Stack, aws_sagemaker as sagemaker, aws_sns as sns

def serve(stack, *, {argument}):
    variant = sagemaker.CfnEndpointConfig.ProductionVariantProperty(
        initial_variant_weight=1, model_name="m", variant_name="v")
    configuration = sagemaker.CfnEndpointConfig(
        stack, "Configuration", production_variants=[variant], kms_key_id={kms!r})
    sagemaker.CfnEndpoint(stack, "Endpoint", endpoint_name={argument},
        endpoint_config_name=configuration.attr_endpoint_config_name)
    sns.Topic(stack, {topic!r})

class LowLatencyEndpointStack(Stack):
    @classmethod
    def from_settings(cls, app, path):
        stack = cls(app, "FromSettings")
        serve(stack, {argument}=open(path).read().strip())
        return stack
"""
APP = """
from aws_cdk import App, Stack
from low_latency_endpoint import serve

app = App()
serve(Stack(app, "Mine"), name="sentiment")
app.synth()
"""
OLD = {"kms": "old-key", "topic": "Alarms", "argument": "name"}


def wheel(folder, version, **differing):
    made = folder / f"cdk_low_latency_endpoint-{version}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("low_latency_endpoint/__init__.py", CODE.format(**OLD | differing))
        archive.writestr(
            f"cdk_low_latency_endpoint-{version}.dist-info/METADATA",
            f"Metadata-Version: 2.4\nName: {LIBRARY.name}\nVersion: {version}\n",
        )
    return made


@pytest.fixture
def checkouts(tmp_path):
    """What users had with the old version, and what the new one's examples are."""
    for name in ("old", "new"):
        examples = tmp_path / name / "examples"
        examples.mkdir(parents=True)
        (examples / "app.py").write_text(APP, encoding="utf-8")
        (examples / "no_app.py").write_text("raise SystemExit('never run')", encoding="utf-8")
        (tmp_path / name / "endpoint.yaml").write_text("shipped", encoding="utf-8")
    return tmp_path / "old", tmp_path / "new"


def rows(text, app):
    """The rows of one app's resources: what, type, what changed."""
    part = text.partition(f"## {app}\n")[2].partition("\n## ")[0]
    cells = [line[2:-2].split(" | ") for line in part.splitlines() if line.startswith("| ")]
    return {(row[0], row[2], row[4]) for row in cells[1:]}


def test_what_an_upgrade_does_is_read_from_both_wheels_templates(tmp_path, checkouts):
    """Another key makes another configuration; another ID another topic; the endpoint stays."""
    old = wheel(tmp_path, "0.1.0")
    new = wheel(tmp_path, "0.2.0", kms="new-key", topic="Alerts")
    text = upgrade_page(old, new, *checkouts)
    assert text.startswith("# Upgrade from 0.1.0 to 0.2.0\n")
    assert "2 resources are replaced (in 2 of 2 apps); 2 resources are deleted (in 2 of 2" in text
    for app in ("endpoint.yaml", "examples/app.py"):
        assert rows(text, app) == {
            ("replaced", "AWS::SageMaker::EndpointConfig", "`KmsKeyId`"),
            ("updated in place", "AWS::SageMaker::Endpoint", "`EndpointConfigName`"),
            ("deleted", "AWS::SNS::Topic", ""),
            ("added", "AWS::SNS::Topic", ""),
        }
    assert "| Mine/Alarms | AWS::SNS::Topic | `Alarms" in text
    assert "no_app" not in text


def test_the_same_library_leaves_everything(tmp_path, checkouts):
    text = upgrade_page(wheel(tmp_path, "0.1.0"), wheel(tmp_path, "0.1.1"), *checkouts)
    assert "**No resource is replaced or deleted.**" in text
    assert "| examples/app.py | 0 | 0 | 0 | 0 | 0 | 0 | 3 |" in text


def test_code_that_no_longer_works_is_said_and_the_new_code_compared(tmp_path, checkouts):
    """An argument has another name: users write it, and then the topic is another one."""
    old = wheel(tmp_path, "0.1.0")
    new = wheel(tmp_path, "0.2.0", topic="Alerts", argument="endpoint_name")
    example = checkouts[1] / "examples" / "app.py"
    example.write_text(APP.replace("name=", "endpoint_name="), encoding="utf-8")
    text = upgrade_page(old, new, *checkouts)
    assert "1 of 2 apps need other code" in text
    assert "unexpected keyword argument 'name'" in text
    assert rows(text, "examples/app.py") == {
        ("deleted", "AWS::SNS::Topic", ""), ("added", "AWS::SNS::Topic", ""),
    }  # fmt: skip


def test_what_cannot_be_compared_is_not_called_safe(tmp_path, checkouts):
    old = wheel(tmp_path, "0.1.0")
    new = wheel(tmp_path, "0.2.0", argument="endpoint_name")
    (checkouts[1] / "examples" / "app.py").unlink()
    text = upgrade_page(old, new, *checkouts)
    assert "1 of 2 apps could not be compared" in text
    assert "| examples/app.py | ? |" in text
    assert "No resource is replaced" not in text


@pytest.mark.realtime  # builds two real wheels and synthesises every example with both: a minute
def test_an_old_commit_of_ours_can_be_compared(tmp_path):
    folder = tmp_path / "dist"
    for name, commit in (("old", "HEAD~50"), ("new", "HEAD")):
        build(commit, folder / name)
        clone(commit, tmp_path / name)
    (old,), (new,) = ((folder / name / LIBRARY.name).glob("*.whl") for name in ("old", "new"))
    text = upgrade_page(old, new, tmp_path / "old", tmp_path / "new")
    assert set(apps_of(tmp_path / "old")) >= {"endpoint.yaml", "examples/new_vpc.py"}
    assert "| endpoint.yaml | ? |" not in text
    assert "AWS::SageMaker::Endpoint |" not in "".join(
        line for line in text.splitlines() if line.startswith("| replaced")
    )


def change(effect, kind="AWS::SNS::Topic", **given):
    return ResourceChange("Topic1", kind, "Mine/Topic", effect, **given)


def test_the_first_release_has_nothing_to_compare_with():
    assert "no version to upgrade from" in first_release("0.1.0")


def test_the_verdict_counts_what_users_fear():
    upgrades = [
        AppUpgrade("a.py", (change(Effect.REPLACED), change(Effect.LEFT))),
        AppUpgrade("b.py", (change(Effect.REPLACED), change(Effect.DELETED), change(Effect.ADDED))),
        AppUpgrade("c.py", (change(Effect.UPDATED),)),
    ]
    text = page("0.1.0", "0.2.0", upgrades)
    assert "2 resources are replaced (in 2 of 3 apps); 1 resource is deleted (in 1 of 3" in text
    assert "| a.py | 0 | 1 | 0 | 0 | 0 | 0 | 1 |" in text


def test_nothing_to_fear_is_said():
    text = page("0.1.0", "0.2.0", [AppUpgrade("a.py", (change(Effect.UPDATED),))])
    assert "**No resource is replaced or deleted.**" in text


def test_what_callers_notice_and_what_stays_is_said():
    changes = (
        change(Effect.REPLACED, "AWS::SageMaker::Endpoint", because=("EndpointName",)),
        change(Effect.DELETED, "AWS::S3::Bucket", retained=True),
        change(Effect.REFUSED, "AWS::SageMaker::Model"),
    )
    text = page("0.1.0", "0.2.0", [AppUpgrade("a.py", changes)])
    assert "`EndpointName` | callers of the old name fail |" in text
    assert "the old one stays in the account" in text
    assert "CloudFormation refuses the update" in text
