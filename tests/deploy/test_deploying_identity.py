"""The identity with the page's policy "Deploy" runs `cdk deploy`; without one of its roles it does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local_sagemaker import LocalAws
from tests.deploy.small_stacks import ACCOUNT, REGION

pytestmark = [pytest.mark.nightly, pytest.mark.realtime]
ROOT = Path(__file__).parents[2]
CLI = ROOT / "node_modules/.bin/cdk"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/pipeline"
APP = """\
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_s3_assets as assets
from aws_cdk import aws_sns as sns

app = App(analytics_reporting=False)
stack = Stack(app, "Tiny", env=Environment(account="ACCOUNT", region="REGION"))
assets.Asset(stack, "Asset", path="app.py")
sns.Topic(stack, "Topic")
app.synth()
"""


def roles() -> list[str]:
    """The roles of the page's policy."""
    page = (ROOT / "docs/reference/permissions.md").read_text("utf-8")
    section = page.partition("\n## Deploy\n")[2]
    text = section.partition("```json\n")[2].partition("```")[0]
    statement = json.loads(text.replace("ACCOUNT", ACCOUNT).replace("REGION", REGION))["Statement"][
        0
    ]
    found: list[str] = statement["Resource"]
    return found


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    """A local AWS that is bootstrapped, with a role that the account's identities may assume."""
    folder = tmp_path_factory.mktemp("bootstrap")
    trusted = {
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
        "Action": "sts:AssumeRole",
    }
    document = {"Version": "2012-10-17", "Statement": [trusted]}
    with LocalAws.start(region=REGION) as started:
        command = [str(CLI), "bootstrap", f"aws://{ACCOUNT}/{REGION}"]
        subprocess.run(command, cwd=folder, env=started.environment(), check=True)
        iam = started.client("iam")
        iam.create_role(RoleName="pipeline", AssumeRolePolicyDocument=json.dumps(document))
        yield started


def deploy(aws: LocalAws, folder: Path, allowed: list[str]) -> subprocess.CompletedProcess[str]:
    """Run `cdk deploy` as the role, which may assume these roles and nothing else."""
    app = folder / "app.py"
    app.write_text(APP.replace("ACCOUNT", ACCOUNT).replace("REGION", REGION), "utf-8")
    statement: dict[str, Any] = {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": allowed}
    aws.client("iam").put_role_policy(
        RoleName="pipeline",
        PolicyName="page",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
    )
    answer = aws.client("sts").assume_role(RoleArn=ROLE, RoleSessionName="me")["Credentials"]
    environment = {
        **aws.environment(),
        "PATH": os.environ["PATH"],
        "AWS_ACCESS_KEY_ID": answer["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": answer["SecretAccessKey"],
        "AWS_SESSION_TOKEN": answer["SessionToken"],
    }
    command = [str(CLI), "deploy", "--require-approval", "never", "--app"]
    return subprocess.run(
        [*command, f"{sys.executable} app.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_policy_is_enough_and_both_roles_are_needed(aws: LocalAws, tmp_path: Path) -> None:
    for needed in ("file-publishing-role", "deploy-role"):
        others = [role for role in roles() if needed not in role]
        assert len(others) == 3
        assert deploy(aws, tmp_path, others).returncode != 0, needed
    done = deploy(aws, tmp_path, roles())
    assert done.returncode == 0, done.stderr
