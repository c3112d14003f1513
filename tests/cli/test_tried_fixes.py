"""What an error says to do is done here, and the error goes.

A fix that names a command, an option of one, or a variable has a row: the command that ends with the
error, and the command or the variable that the fix names. Another error may come then.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import boto3
import pytest
from typer.testing import CliRunner

from low_latency_endpoint.account.sessions import aws_errors_in_words
from low_latency_endpoint.cli import app
from low_latency_endpoint.cli.errors import all_codes
from low_latency_endpoint.errors import ConfigurationError, rules

all_codes()  # registers them
COMMAND = r"\b(?:low-latency [a-z]|aws [a-z]|cdk [a-z]|git [a-z]+ --|hf auth)"
OPTION = r"(?<![\w-])--[a-z][a-z-]+"
VARIABLE = r"\b(?:AWS|HF|NO|SAGEMAKER)_[A-Z_]+\b"
NAMED = re.compile(f"{COMMAND}|{OPTION}|{VARIABLE}")

SETTINGS = """\
region: us-east-1
client_zones: {ids: [use1-az1, use1-az2]}
endpoints:
  sentiment:
    containers: [{image: {uri: example/image:1}}]
    instance_type: ml.m5.xlarge
    latency: {p99: 200ms}
"""
MEASURED = SETTINGS + "    throughput: {peak_tps: 100, tps_per_instance: 20}\n"
FILES = {"bare.yaml": SETTINGS, "endpoint.yaml": MEASURED, "old.yaml": MEASURED}
FILES |= {"other.yaml": MEASURED.replace("sentiment", "mood")}
FILES |= {"variants.yaml": MEASURED + "    variants: {b: {weight: 1}}\n", "bad.csv": "a\n"}
FILES |= {"times.csv": "time\n2026-01-01T00:00:00Z\n2026-01-01T00:00:05Z\n"}
FILES |= {"counts.csv": "time,count\n2026-01-01T00:00:00Z,60\n2026-01-01T00:01:00Z,60\n"}
BARE = "simulate --settings bare.yaml --requests 2000 --replications 2"
SIMULATED = "simulate --settings endpoint.yaml --requests 2000 --replications 2"
LOAD = "load-test sentiment --region us-east-1"


class Try(NamedTuple):
    """A command that ends with an error, and the same as the fix says."""

    before: str
    after: str


TRIED = {
    "LLE884": [Try("plan --price ml.g5.xlarge", "plan --price ml.g5.xlarge=1.00")],
    "LLE901": [
        Try("plan --settings missing.yaml", "plan --settings endpoint.yaml"),
        Try("plan --settings missing.yaml", "plan --settings bare.yaml"),
    ],
    "LLE933": [
        Try("plan mood", "plan sentiment"),
        Try("plan mood", "plan mood --settings other.yaml"),
    ],
    "LLE980": [Try("plan --against origin/main", "plan --against old.yaml")],
    "LLS125": [
        Try(BARE, f"{BARE} --service-time 20ms"),  # and then how many requests come
        Try(f"{BARE} --service-time 20ms", f"{BARE} --service-time 20ms --tps 9"),
        Try(BARE, SIMULATED),
    ],
    "LLE438": [Try("simulate --settings variants.yaml", SIMULATED)],
    "LLS130": [Try("simulate --traffic-from bad.csv", "simulate --traffic-from counts.csv")],
    "LLS160": [
        Try("simulate --traffic-from times.csv --tps 9", "simulate --traffic-from times.csv"),
        Try(
            "simulate --traffic-from times.csv --tps 9",
            "simulate --traffic-from counts.csv --tps 9",
        ),
    ],
    "LLT108": [
        Try(f"{LOAD} --payload {{}}", f"{LOAD} --payload {{}} {kind}")
        for kind in ("--tps 1", "--users 2", "--find-limit --target p99=1s", "--confirm")
    ],
    "LLT109": [
        Try(f"{LOAD} --tps 1", f"{LOAD} --tps 1 --payload {{}}"),
        Try(f"{LOAD} --tps 1", f"{LOAD} --tps 1 --payload counts.csv"),
    ],
    "LLA102": [Try("list", "list --region us-east-1 --profile mine")],
}


def sts_client() -> object:
    """What every command that reads an account makes first, and signs with."""
    with aws_errors_in_words():
        client = boto3.Session().client("sts")
        client.generate_presigned_url("get_caller_identity")
        return client


class Variables(NamedTuple):
    """What ends with an error until these are set."""

    call: Callable[[], object]
    set: dict[str, str]


TRIED_IN_PYTHON = {
    "LLA102": Variables(sts_client, {"AWS_PROFILE": "mine", "AWS_DEFAULT_REGION": "us-east-1"})
}
_HUB = "the Hub answers, or its lock file: tests/hugging_face"
_ACCOUNT = "an account with endpoints answers: tests/operate, tests/account"
_LOAD_TEST = "a load test has to run first: tests/load_test"
_AMBIENT = "names what one can look at, and no remedy that ends it"
#: Fixes that nobody tries here, and why.
NOT_TRIED = {
    **dict.fromkeys(("LLE319", "LLE343", "LLE344", "LLE345", "LLE347", "LLE349"), _HUB),
    **dict.fromkeys(("LLE350", "LLE352", "LLE358", "LLE399"), _HUB),
    **dict.fromkeys(("LLA101", "LLA103", "LLA104", "LLD901", "LLD907", "LLR107"), _ACCOUNT),
    **dict.fromkeys(("LLT105", "LLT118", "LLT123", "LLT136", "LLT137", "LLT140"), _ACCOUNT),
    **dict.fromkeys(("LLT110", "LLT113", "LLT114", "LLT138", "LLT139", "LLT163"), _LOAD_TEST),
    **dict.fromkeys(("LLT169", "LLT180"), _LOAD_TEST),
    **dict.fromkeys(
        ("LLE890", "LLE891", "LLE892"), "AWS's price list answers: tests/operate/prices"
    ),
    **dict.fromkeys(("LLE610", "LLR111", "LLS147"), _AMBIENT),
    "LLE570": "a form, whose edges tests/synth/test_limits_of_arguments.py tries",
    "LLD906": "an endpoint is diagnosed first: tests/operate/diagnose",
    "LLE160": "CDK looks up a VPC in an account: tests/synth/test_pending_lookup.py",
    "LLE227": "what the CDK refuses, it refuses in cdk synth too: tests/review/test_context.py",
    "LLE228": "CDK looks up a VPC in an account: tests/review/test_context.py",
    "LLE156": "CDK looks up a VPC in an account: tests/synth/looked_up_vpc.py",
}


def test_every_fix_that_names_something_is_tried() -> None:
    named = {rule.code for rule in rules() if NAMED.search(rule.fix)}
    assert named == {*TRIED, *TRIED_IN_PYTHON, *NOT_TRIED}, (
        "add a row to TRIED: a command that ends with the error, and the one that its fix names"
    )


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with settings, and no variables but those of a row."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "config").write_text(
        "[profile mine]\naws_access_key_id = made-up\naws_secret_access_key = made-up\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    # Nothing reaches an account.
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")


def said(command: str) -> str:
    done = CliRunner().invoke(app, command.split())
    return f"{done.output}\n{done.exception}"


ROWS = [(code, row) for code, rows in TRIED.items() for row in rows]


@pytest.mark.parametrize(("code", "row"), ROWS, ids=[f"{code}: {row.after}" for code, row in ROWS])
def test_the_error_goes(code: str, row: Try) -> None:
    [error] = re.findall(rf"{code}: .+", said(row.before))[:1]
    assert error not in said(row.after)


@pytest.mark.parametrize("code", TRIED_IN_PYTHON)
def test_the_error_goes_once_the_variables_of_its_fix_are_set(
    code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = TRIED_IN_PYTHON[code]
    [fix] = [rule.fix for rule in rules() if rule.code == code]
    assert set(re.findall(VARIABLE, fix)) == set(row.set)
    with pytest.raises(ConfigurationError) as caught:
        row.call()
    assert caught.value.code == code
    for name, value in row.set.items():
        monkeypatch.setenv(name, value)
    assert row.call()
