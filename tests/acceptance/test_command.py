"""``python -m acceptance``: what it refuses, and one run with the CDK CLI that is killed midway."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acceptance.__main__ import main
from acceptance.claims import CLAIMS, Verdict, judge
from acceptance.estimate import PRICES, REGION_MARGIN, prices_of
from acceptance.evidence import FOLDER, evidence_files
from acceptance.run import NotThisRun, read_state
from acceptance.world import ROOT, World
from local_sagemaker import LocalAws
from tests.fake_aws import FakeAws
from tests.hub_of_files import FakeHub

from .conftest import HUB_MODEL, REGION, SPEED, started, two_commits

ACCOUNT = "123456789012"
RUN = ("run", "--account", ACCOUNT, "--region", REGION, "--budget", "5")
HUB = ("--hub-model", HUB_MODEL, "--hub-revisions", "first", "second")


@pytest.fixture
def at(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalAws]:
    """The local AWS as the account of this process's environment."""
    for key, value in aws.exports().items():
        monkeypatch.setenv(key, value)
    yield aws
    assert aws.leftovers() == []


ASKED_FOR = ("--account", "--region", "--budget")


@pytest.mark.parametrize("missing", [*ASKED_FOR, "--hub-model", "--hub-revisions"])
def test_what_is_left_out_is_asked_for(missing: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = [*RUN, *HUB]
    place = given.index(missing)
    del given[place : place + (3 if missing == "--hub-revisions" else 2)]
    with pytest.raises(SystemExit) as ended:
        main([*given, "--yes"])
    assert ended.value.code == 2
    assert missing in capsys.readouterr().err


@pytest.mark.parametrize("empty", ASKED_FOR)  # as `make accept` passes a variable that is not set
def test_what_is_empty_is_asked_for(empty: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = [*RUN, *HUB]
    given[given.index(empty) + 1] = ""
    with pytest.raises(SystemExit) as ended:
        main([*given, "--yes"])
    assert ended.value.code == 2
    assert empty in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"--account": "999999999999"}, "account 123456789012's, not 999999999999's"),
        ({"--budget": "0.5"}, "above the budget of 0.50 USD"),
        ({}, "add --yes to start"),
    ],
)
def test_nothing_starts_with(
    changed: dict[str, str],
    words: str,
    at: LocalAws,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = dict(zip(RUN[1::2], RUN[2::2], strict=True)) | changed
    arguments = [each for pair in given.items() for each in pair]
    yes = ["--yes"] if changed else []
    assert main(["run", *arguments, *HUB, *yes, "--state", str(tmp_path / "state.json")]) == 2
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_it_says_hours_dollars_prices_and_steps_before_it_starts(
    at: LocalAws, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RUN, *HUB]) == 2
    told = capsys.readouterr().out
    assert "about 5.0 h, 2.65 USD" in told
    for price in PRICES.values():
        assert price.source in told
    assert "destroy" in told


def test_aws_asks_for_credentials_and_has_one_speed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, *HUB, "--yes"]) == 2
    assert "no credentials" in capsys.readouterr().err
    assert main([*RUN, *HUB, "--yes", "--clock-speed", "60"]) == 2
    assert "one speed" in capsys.readouterr().err


def test_the_account_s_price_list_goes_before_ours() -> None:
    def read(region: str, *dollars: str) -> Any:
        """As a Price List is read that answers with one product, or has none."""
        prices = (
            {"A": {"priceDimensions": {"B": {"pricePerUnit": {"USD": usd}}}}} for usd in dollars
        )
        about = {"publicationDate": "2026-11-01T00:00:00Z"}
        listed = [json.dumps({**about, "terms": {"OnDemand": each}}) for each in prices]
        aws = FakeAws({"pricing.GetProducts": {"PriceList": listed}})
        found = prices_of(aws("pricing"), region)
        filters = aws.sent("pricing.GetProducts")[0]["Filters"]
        assert {"Type": "TERM_MATCH", "Field": "component", "Value": "Hosting"} in filters
        return found

    instance = read("eu-west-1", "0.134")["instance"]
    assert instance.usd_per_hour == 0.134
    assert instance.source == "AWS Price List, eu-west-1, 2026-11-01"
    assert read("us-east-1") == PRICES
    dearer = read("eu-west-1", "1", "2")["instance"]
    assert dearer.usd_per_hour == PRICES["instance"].usd_per_hour * REGION_MARGIN
    assert "unverified" in dearer.source


def test_the_state_of_a_run_elsewhere_is_not_gone_on_with(world: World, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    mine = read_state(path, world)
    for key, value in (("account", "999999999999"), ("region", "eu-west-1"), ("target", "aws")):
        path.write_text(json.dumps({**mine, key: value}), "utf-8")
        with pytest.raises(NotThisRun, match=mine["region"] if key != "region" else value):
            read_state(path, world)
    path.write_text(json.dumps({**mine, "target": "aws", "finished": True}), "utf-8")
    assert read_state(path, world)["suffix"] != mine["suffix"]


@pytest.fixture
def fresh() -> Iterator[LocalAws]:
    """A local AWS that lives longer than the run, bootstrapped: the CDK CLI takes those roles."""
    with started() as running:
        subprocess.run(
            [
                str(ROOT / "node_modules" / ".bin" / "cdk"),
                "bootstrap",
                "--no-notices",
                f"aws://{running.account}/{running.region}",
            ],
            cwd=ROOT.parent,  # outside the project it needs no synthesis
            env=running.environment(),
            capture_output=True,
            check=True,
        )
        yield running


@pytest.mark.realtime
def test_killed_while_it_updates_it_goes_on_to_its_end(
    fresh: LocalAws, hub: FakeHub, tmp_path: Path
) -> None:
    environment = {**fresh.environment(), "HF_ENDPOINT": hub.endpoint}
    committed = set(FOLDER.glob("*"))
    acceptance, speed = (sys.executable, "-m", "acceptance"), ("--clock-speed", str(SPEED))
    model = ("--hub-model", HUB_MODEL, "--hub-revisions", *two_commits(hub))
    which = ("--state", str(tmp_path / "state.json"), "--only", "update")
    command = [*acceptance, *RUN, *model, "--yes", *speed, *which]
    at_root: Any = {"cwd": ROOT, "env": environment, "text": True}
    process = subprocess.Popen(command, **at_root, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("update:"):
            break
    cloudformation = fresh.client("cloudformation")
    state = json.loads((tmp_path / "state.json").read_text("utf-8"))
    stack = f"llee-accept-{state['suffix']}"
    ends = time.monotonic() + 200
    while time.monotonic() < ends:
        (found,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
        if found["StackStatus"] == "UPDATE_IN_PROGRESS":
            break
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert found["StackStatus"] == "UPDATE_IN_PROGRESS"

    done = subprocess.run(command, **at_root, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("deploy:")] == []
    (told,) = [line for line in lines if line.startswith("evidence: ")]
    path = Path(told.removeprefix("evidence: "))
    assert set(FOLDER.glob("*")) == committed  # evidence of a local AWS is not kept with AWS's
    seen = evidence_files(path.parent)[path.name]
    assert seen["target"] == "local"
    verdicts = {name: judge(claim, seen) for name, claim in CLAIMS.items()}
    for claim in ("create", "warm-up", "update", "delete"):
        assert verdicts[claim] is Verdict.SEEN, claim
    path.unlink()

    command = [*acceptance, "sweep", *RUN[1:5], *speed]
    swept = subprocess.run(command, **at_root, capture_output=True, check=False)
    assert (swept.returncode, swept.stdout) == (0, "Nothing is left.\n")
    assert fresh.leftovers() == []
