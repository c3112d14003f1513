"""The page of an upgrade: from one made-up library to another, and from an old commit of ours."""

from __future__ import annotations

import pytest

from low_latency_endpoint.change.resource_changes import ResourceChange, ResourceEffect
from tools.release.upgrade import APART, AppUpgrade, main, page, upgrade_page

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


def library(checkout, version, **differing):
    folder = checkout / "constructs" / "low_latency_endpoint"
    folder.mkdir(parents=True, exist_ok=True)
    code = CODE.format(**OLD | differing)
    (folder / "__init__.py").write_text(f'__version__ = "{version}"\n{code}', encoding="utf-8")


@pytest.fixture
def checkouts(tmp_path):
    """What users had with the old version, and what the new one's library and examples are."""
    for name in ("old", "new"):
        examples = tmp_path / name / "examples"
        examples.mkdir(parents=True)
        (examples / "app.py").write_text(APP, encoding="utf-8")
        (examples / "no_app.py").write_text("raise SystemExit('never run')", encoding="utf-8")
        (tmp_path / name / "endpoint.yaml").write_text("shipped", encoding="utf-8")
    library(tmp_path / "old", "0.1.0")
    return tmp_path / "old", tmp_path / "new"


def rows(text, app):
    """The rows of one app's resources: what, type, what changed."""
    part = text.partition(f"## {app}\n")[2].partition("\n## ")[0]
    cells = [line[2:-2].split(" | ") for line in part.splitlines() if line.startswith("| ")]
    return {(row[0], row[2], row[4]) for row in cells[1:]}


def test_what_an_upgrade_does_is_read_from_both_wheels_templates(checkouts):
    """Another key makes another configuration; another ID another topic; the endpoint stays."""
    library(checkouts[1], "0.2.0", kms="new-key", topic="Alerts")
    text = upgrade_page(*checkouts)
    assert text.startswith("# Upgrade from 0.1.0 to 0.2.0\n")
    assert "3 resources are replaced (in 3 of 3 apps); 3 resources are deleted (in 3 of 3" in text
    for app in ("endpoint.yaml", APART, "examples/app.py"):
        assert rows(text, app) == {
            ("replaced", "AWS::SageMaker::EndpointConfig", "`KmsKeyId`"),
            ("updated in place", "AWS::SageMaker::Endpoint", "`EndpointConfigName`"),
            ("deleted", "AWS::SNS::Topic", ""),
            ("added", "AWS::SNS::Topic", ""),
        }
    assert "| Mine/Alarms | AWS::SNS::Topic | `Alarms" in text
    assert "no_app" not in text


def test_the_same_library_leaves_everything(checkouts):
    library(checkouts[1], "0.1.1")
    text = upgrade_page(*checkouts)
    assert "**No resource is replaced or deleted.**" in text
    assert "| examples/app.py | 0 | 0 | 0 | 0 | 0 | 0 | 3 |" in text


def test_code_that_no_longer_works_is_said_and_the_new_code_compared(checkouts):
    """An argument has another name: users write it, and then the topic is another one."""
    library(checkouts[1], "0.2.0", topic="Alerts", argument="endpoint_name")
    example = checkouts[1] / "examples" / "app.py"
    example.write_text(APP.replace("name=", "endpoint_name="), encoding="utf-8")
    text = upgrade_page(*checkouts)
    assert "1 of 3 apps need other code" in text
    assert "unexpected keyword argument 'name'" in text
    assert rows(text, "examples/app.py") == {
        ("deleted", "AWS::SNS::Topic", ""), ("added", "AWS::SNS::Topic", ""),
    }  # fmt: skip


def test_names_that_follow_from_the_stack_and_not_from_its_path_are_compared(checkouts):
    """As in the change that let one template be launched under several names."""
    library(checkouts[1], "0.2.0")
    for checkout, name in zip(checkouts, ("node.path", "stack_name"), strict=True):
        code = checkout / "constructs" / "low_latency_endpoint" / "__init__.py"
        named = f"endpoint_name=f'{{stack.{name}}}-{{name}}'"
        code.write_text(code.read_text().replace("endpoint_name=name", named), encoding="utf-8")
    text = upgrade_page(*checkouts)
    assert "1 resource is replaced (in 1 of 3 apps)" in text
    assert rows(text, APART) == {("replaced", "AWS::SageMaker::Endpoint", "`EndpointName`")}
    assert "callers of the old name fail" in text


def test_what_cannot_be_compared_is_not_called_safe(checkouts):
    library(checkouts[1], "0.2.0", argument="endpoint_name")
    (checkouts[1] / "examples" / "app.py").unlink()
    text = upgrade_page(*checkouts)
    assert "1 of 3 apps could not be compared" in text
    assert "| examples/app.py | ? |" in text
    assert "No resource is replaced" not in text


@pytest.mark.realtime  # synthesises every example with two revisions: a minute
def test_an_old_commit_of_ours_can_be_compared(capfd):
    main("HEAD~50", "HEAD")
    text = capfd.readouterr().out
    assert "| endpoint.yaml | ? |" not in text
    assert "| examples/new_vpc.py |" in text
    assert "AWS::SageMaker::Endpoint |" not in "".join(
        line for line in text.splitlines() if line.startswith("| replaced")
    )


def change(effect, kind="AWS::SNS::Topic", **given):
    return ResourceChange("Topic1", kind, "Mine/Topic", effect, **given)


def test_the_verdict_counts_what_users_fear():
    upgrades = [
        AppUpgrade("a.py", (change(ResourceEffect.REPLACED), change(ResourceEffect.LEFT))),
        AppUpgrade(
            "b.py",
            (
                change(ResourceEffect.REPLACED),
                change(ResourceEffect.DELETED),
                change(ResourceEffect.ADDED),
            ),
        ),
        AppUpgrade("c.py", (change(ResourceEffect.UPDATED),)),
    ]
    text = page("0.1.0", "0.2.0", upgrades)
    assert "2 resources are replaced (in 2 of 3 apps); 1 resource is deleted (in 1 of 3" in text
    assert "| a.py | 0 | 1 | 0 | 0 | 0 | 0 | 1 |" in text


def test_what_callers_notice_and_what_stays_is_said():
    changes = (
        change(ResourceEffect.REPLACED, "AWS::SageMaker::Endpoint", because=("EndpointName",)),
        change(ResourceEffect.DELETED, "AWS::S3::Bucket", retained=True),
        change(ResourceEffect.REFUSED, "AWS::SageMaker::Model"),
    )
    text = page("0.1.0", "0.2.0", [AppUpgrade("a.py", changes)])
    assert "`EndpointName` | callers of the old name fail |" in text
    assert "the old one stays in the account" in text
    assert "the update is refused" in text
