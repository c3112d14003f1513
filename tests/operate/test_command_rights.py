"""A role with the rights of ``docs/command_rights.py`` runs each command; without one it says so."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from docs.command_rights import (
    COMPARE_ROUTING,
    DIAGNOSE,
    LIST,
    LOAD_TEST,
    PLAN_FROM_CANARY,
    PREFLIGHT,
    STAGE,
    VERIFY,
    CommandRights,
    policy,
)
from typer.testing import CliRunner

from examples.demo_surroundings import model_uris, stand_ins_for_images, uploaded
from local_sagemaker import LocalAws
from low_latency_endpoint.account import sessions
from low_latency_endpoint.cli import app
from low_latency_endpoint.settings import load_settings
from tests.cli.test_stage import FILES, TOKEN, Machine
from tests.deploy.watched_rights import Watch, watching
from tests.depth import sampled
from tests.hub_of_files import FakeHub, FakeModel

from .conftest import NAME, ROOT, STACK

ROLE = "operator"
ROLE_ARN = f"arn:aws:iam::123456789012:role/{ROLE}"
REQUEST = ("--payload", '{"inputs": "I like you."}')
COMMANDS = {
    PREFLIGHT: ("preflight", "--settings", str(ROOT / "endpoint.yaml"), "--verbose"),
    VERIFY: ("verify", STACK, "--verbose"),
    LIST: ("list",),
    DIAGNOSE: ("diagnose", NAME),
    PLAN_FROM_CANARY: ("plan", "--from-canary"),
}
SENDING = {
    LOAD_TEST: ("load-test", NAME, "--tps", "5", "--duration", "2s", "--metrics-wait", "1s"),
    COMPARE_ROUTING: (
        "compare-routing",
        NAME,
        "other",
        "--tps",
        "40",
        "--block",
        "2s",
        "--pairs",
        "4",
    ),
}


@dataclass(frozen=True)
class Operator:
    """A role of the account, whose credentials the commands have."""

    iam: Any

    def holds(self, actions: list[str], bucket: str = "my-bucket") -> None:
        """Allow these actions, as the page's policy does, and nothing else."""
        text = json.dumps(policy(actions)).replace("BUCKET", bucket)
        filled = text.replace("ACCOUNT", "123456789012").replace("REGION", "us-east-1")
        self.iam.put_role_policy(RoleName=ROLE, PolicyName="page", PolicyDocument=filled)

    def run(self, *arguments: str) -> tuple[int, str]:
        """The exit code of a command, and what it said."""
        done = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
        return done.exit_code, f"{done.output}\n{done.exception or ''}"


@pytest.fixture(scope="module")
def operator(shipped: LocalAws, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    stated = load_settings(ROOT / "endpoint.yaml")
    list(stand_ins_for_images(shipped, stated))
    iam = shipped.client("iam")
    trusted = {
        "Effect": "Allow",
        "Principal": {"AWS": "arn:aws:iam::123456789012:root"},
        "Action": "sts:AssumeRole",
    }
    document = {"Version": "2012-10-17", "Statement": [trusted]}
    iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument=json.dumps(document))
    answer = shipped.client("sts").assume_role(RoleArn=ROLE_ARN, RoleSessionName="me")
    found = answer["Credentials"]
    names = ("AccessKeyId", "SecretAccessKey", "SessionToken")
    keys = dict(zip(("access_key_id", "secret_access_key", "session_token"), names, strict=True))
    with (
        pytest.MonkeyPatch.context() as patch,
        uploaded(shipped, model_uris(stated), stated.alarm_topic_arn),
    ):
        patch.chdir(tmp_path_factory.mktemp("settings"))
        data = yaml.safe_load((ROOT / "endpoint.yaml").read_text("utf-8"))
        data["endpoints"]["sentiment"]["endpoint_name"] = NAME
        Path("endpoint.yaml").write_text(yaml.safe_dump(data), "utf-8")
        for name, value in shipped.exports().items():
            patch.setenv(name, value)
        for name, key in keys.items():
            patch.setenv(f"AWS_{name.upper()}", found[key])
        session = boto3.Session(region_name="us-east-1")  # one, as it keeps the services' models
        patch.setattr(sessions, "open_session", lambda *_: session)
        yield Operator(iam)
    iam.delete_role_policy(RoleName=ROLE, PolicyName="page")
    iam.delete_role(RoleName=ROLE)


@pytest.fixture
def watch() -> Iterator[Watch]:
    with watching() as looking:
        yield looking


def needed(watch: Watch) -> set[str]:
    """Actions of the role without which a call had been denied."""
    return {action for role, _, action in watch.needed if role == ROLE_ARN}


@pytest.mark.parametrize("rights", COMMANDS, ids=lambda rights: rights.command)
def test_these_rights_are_enough_and_each_is_needed(
    rights: CommandRights, operator: Operator, watch: Watch
) -> None:
    operator.holds([*rights.always])
    _, said = operator.run(*COMMANDS[rights])
    assert watch.denied == set(), said
    assert needed(watch) == set(rights.always)


PAIRS = [(rights, action) for rights in COMMANDS for action in rights.always]


@pytest.mark.parametrize(("rights", "missing"), sampled(PAIRS, 12))
def test_without_one_the_command_names_it(
    rights: CommandRights, missing: str, operator: Operator
) -> None:
    operator.holds([action for action in rights.always if action != missing])
    _, said = operator.run(*COMMANDS[rights])
    if (rights, missing) == (VERIFY, "ec2:DescribeAvailabilityZones"):
        assert "Zones of this account" not in said  # these lines are all that is lost
    else:
        assert missing in re.sub(r"\s+", " ", said), said


def test_a_model_is_staged_with_these_rights(
    operator: Operator,
    watch: Watch,
    shipped: LocalAws,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = FakeModel(files=FILES, gated="manual", tokens=(TOKEN,))
    with FakeHub({"acme/tiny": model}, tokens=[TOKEN]) as hub:
        machine = Machine(shipped, hub, tmp_path / "models.lock.yaml")
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        operator.holds([*STAGE.always], machine.bucket)
        done = machine.stage("acme/tiny")
    assert done.exit_code == 0, done.output
    assert watch.denied == set()
    assert needed(watch) == set(STAGE.always)


@pytest.fixture
def other(shipped: LocalAws) -> Iterator[None]:
    """An endpoint with the model of the stack's, and another routing."""
    sagemaker = shipped.client("sagemaker")
    found = sagemaker.describe_endpoint(EndpointName=NAME)["EndpointConfigName"]
    variants = sagemaker.describe_endpoint_config(EndpointConfigName=found)["ProductionVariants"]
    routing = {"RoutingStrategy": "RANDOM"}
    sagemaker.create_endpoint_config(
        EndpointConfigName="other", ProductionVariants=[variants[0] | {"RoutingConfig": routing}]
    )
    sagemaker.create_endpoint(EndpointName="other", EndpointConfigName="other")
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName="other")
    yield
    sagemaker.delete_endpoint(EndpointName="other")
    sagemaker.delete_endpoint_config(EndpointConfigName="other")


@pytest.mark.nightly
@pytest.mark.parametrize("rights", SENDING, ids=lambda rights: rights.command)
@pytest.mark.usefixtures("other")
def test_these_rights_send(rights: CommandRights, operator: Operator, watch: Watch) -> None:
    operator.holds([*rights.always])
    _, said = operator.run(*SENDING[rights], *REQUEST)
    assert watch.denied == set(), said
    assert needed(watch) == set(rights.always), said
