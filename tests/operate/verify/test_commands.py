"""The two commands against the shipped stack: output, exit status, and nothing but reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import NoCredentialsError
from docs.command_rights import PREFLIGHT, VERIFY
from typer.testing import CliRunner, Result

from examples.demo_surroundings import model_uris, stand_ins_for_images, uploaded
from local_sagemaker import LocalAws
from low_latency_endpoint.account import sessions
from low_latency_endpoint.account.calls import Account
from low_latency_endpoint.account.sessions import iam_action
from low_latency_endpoint.cli import app
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.operate.verify import run_verification
from low_latency_endpoint.settings import load_settings
from tests.operate.conftest import NAME, ROOT, STACK
from tests.operate.preflight import cases
from tests.operate.verify import test_verification_checks
from tests.operate.verify.tampered import Tampered

READS = re.compile(r"BatchGet|Describe|Filter|Get|Head|List|Simulate")


@pytest.fixture
def asked(shipped: LocalAws, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, str]]]:
    """The commands ask the local AWS; every operation that they call is noted."""
    for name, value in shipped.exports().items():
        monkeypatch.setenv(name, value)
    calls: list[tuple[str, str]] = []
    registered: list[tuple[Any, Any]] = []

    def note(model: Any, **_: Any) -> None:
        calls.append((model.service_model.service_name, model.name))

    def opened(profile: str | None = None, region: str | None = None) -> Any:
        assert profile is None
        session = _session(shipped.url, region)
        session.events.register("before-call", note)
        registered.append((session, note))
        return session

    monkeypatch.setattr(sessions, "open_session", opened)
    yield calls
    for session, handler in registered:
        session.events.unregister("before-call", handler)


@cache
def _session(url: str, region: str | None) -> Any:
    """One session per local AWS and region: it keeps the services' large models."""
    return boto3.Session(region_name=region)


@pytest.fixture(scope="module")
def settings(shipped: LocalAws) -> Iterator[Path]:
    """The shipped settings, with an image and a model that are there."""
    path = ROOT / "endpoint.yaml"
    stated = load_settings(path)
    list(stand_ins_for_images(shipped, stated))
    with uploaded(shipped, model_uris(stated), stated.alarm_topic_arn):
        yield path


def run(*arguments: str, columns: int = 120) -> Result:
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": str(columns)})


@cache
def said(*arguments: str, columns: int = 120) -> Result:
    """What a command says of the stack and the settings that no test changes: it is run once."""
    return run(*arguments, columns=columns)


def test_preflight_of_the_deployed_stack(asked: list[Any], settings: Path) -> None:
    result = said("preflight", "--settings", str(settings), "--json")
    report = json.loads(result.stdout)
    found = {(each["id"], each["status"]) for each in report["results"]}
    assert {status for _, status in found} == {"pass"}, result.stdout
    passing = {check for check, status in found if status == "pass"}
    assert {"LLP104", "LLP401", "LLP402", "LLP403", "LLP601", "LLP602"} <= passing
    assert report["account"] == "123456789012"
    assert report["zones"]["us-east-1b"] == "use1-az1"
    assert result.exit_code == 0
    assert run("preflight", "--settings", str(settings), "--strict").exit_code == 0


def test_verify_of_the_deployed_stack(asked: list[Any]) -> None:
    result = said("verify", STACK, "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == 0, result.stdout
    unknowns = {each["id"] for each in report["results"] if each["status"] == "unknown"}
    assert unknowns == {"LLV301", "LLV302"}
    assert run("verify", STACK, "--strict").exit_code == 1


@pytest.mark.parametrize("command", ["preflight", "verify"])
def test_the_table_keeps_its_width_and_cuts_nothing(
    asked: list[Any], settings: Path, command: str
) -> None:
    target = ["--settings", str(settings)] if command == "preflight" else [STACK]
    data = json.loads(said(command, *target, "--json").stdout)
    commands = {
        one for each in data["results"] for one in re.findall("`([^`]+ [^`]+)`", each["fix"])
    }
    for columns in (80, 120):
        table = said(command, *target, "--verbose", columns=columns).stdout
        words = [word for each in data["results"] for word in each["evidence"].split()]
        whole = {*commands, *words, *(each["source"] for each in data["results"])}
        long = [line.strip() for line in table.splitlines() if len(line) > columns]
        assert set(long) <= whole, "only what is to be copied sticks out"
        assert commands <= {line.strip() for line in table.splitlines()}
        assert "…" not in table
        letters = re.sub(r"\s", "", table)
        for each in data["results"]:
            assert each["id"] in letters
            assert re.sub(r"[\s`]", "", each["evidence"]) in letters
        order = ("fail", "warn", "unknown", "pass")
        counts = ", ".join(f"{data['counts'][status]} {status}" for status in order)
        assert counts in table.splitlines()[1]
        shown = re.findall("^(FAIL|WARN|UNKNOWN|PASS)", table, re.MULTILINE)
        assert shown == sorted(shown, key=lambda each: order.index(each.lower()))


@pytest.mark.parametrize("command", ["preflight", "verify"])
def test_quiet_leaves_out_what_passes_and_counts_it(
    asked: list[Any], settings: Path, command: str
) -> None:
    target = ["--settings", str(settings)] if command == "preflight" else [STACK]
    results = json.loads(said(command, *target, "--json").stdout)["results"]
    passing = {each["id"] for each in results if each["status"] == "pass"}
    others = {each["id"] for each in results if each["status"] != "pass"}
    assert passing
    assert bool(others) == (command == "verify")  # what preflight asks the local AWS knows
    quiet = run(command, *target, "--quiet")
    assert set(re.findall(r"^[A-Z]+ +(LL[PV]\d+)", quiet.stdout, re.MULTILINE)) == others
    count = sum(each["status"] == "pass" for each in results)
    assert f" {count} pass" in quiet.stdout
    assert "us-east-1f" not in quiet.stdout, "the zones"
    assert quiet.exit_code == said(command, *target).exit_code


def test_the_commands_only_read(asked: list[tuple[str, str]], settings: Path) -> None:
    run("preflight", "--settings", str(settings))
    run("verify", STACK)
    assert len(asked) > 20
    assert [each for each in asked if not READS.match(each[1])] == []


def test_what_is_no_read_cannot_be_asked(shipped: LocalAws) -> None:
    with pytest.raises(ValueError, match="not a read"):
        Account(shipped.client, "us-east-1").read("ec2", "delete_vpc", VpcId="vpc-1")


def actions(asked: set[str]) -> set[str]:
    """What IAM calls the operations; to ask who one is needs no permission."""
    return {iam_action(*each.split(".")) for each in asked} - {"sts:GetCallerIdentity"}


def test_the_page_of_permissions_has_exactly_what_is_used(shipped: LocalAws) -> None:
    used = set()
    for case in cases.CASES:
        used |= set(cases.run(case)[1].asked)
    assert set(PREFLIGHT.actions) == actions(used)
    inside = test_verification_checks.inside("", "", at=[])
    used = set(test_verification_checks.run(shipped, inside)[1].asked)
    # CloudTrail is asked who changed something.
    changed = test_verification_checks.SLOWER
    drifted = test_verification_checks.case("", "", DescribeAlarms=changed)
    used |= set(test_verification_checks.run(shipped, drifted)[1].asked)
    # An endpoint's name may stand for its stack's.
    named = Tampered(shipped)
    run_verification(NAME, named, "us-east-1", machine=test_verification_checks.OUTSIDE)
    used |= set(named.asked)
    # PromQL is no operation of boto3's. Source: CloudWatch user guide, "IAM permissions for PromQL".
    used |= {"cloudwatch.GetMetricData", "cloudwatch.ListMetrics"}
    # The stack has no alarms on tokens.
    assert set(VERIFY.actions) == actions(used) | {"cloudwatch:GetOTelEnrichment"}


def test_a_stack_that_is_not_there_is_no_traceback(asked: list[Any]) -> None:
    result = run("verify", "NoSuchStack")
    assert isinstance(result.exception, ConfigurationError)  # main() prints it and exits with 2
    assert result.exception.code == "LLA103"


def test_without_credentials_nothing_is_checked(
    settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Session:
        region_name = "us-east-1"

        def client(self, service: str, **_: Any) -> Any:
            raise NoCredentialsError

    monkeypatch.setattr(sessions, "open_session", lambda *_: Session())
    for arguments in (("preflight", "--settings", str(settings)), ("verify", STACK)):
        result = run(*arguments)
        assert isinstance(result.exception, ConfigurationError)
        assert result.exception.code == "LLA102"
        assert "aws configure" in str(result.exception)
