"""What a run refuses before it starts, and one by the CDK CLI in the local AWS."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from local_sagemaker import LocalAws
from tests.fake_aws import FakeAws
from tests.hub_of_files import FakeHub
from tools.acceptance.confirmation import NotConfirmed, confirm_cost, named_world
from tools.acceptance.estimate import PRICES, REGION_MARGIN, prices_of
from tools.acceptance.steps import STEPS
from tools.acceptance.world import ROOT, World

from .conftest import HUB_MODEL, REGION, SPEED, started, two_commits

ACCOUNT = "123456789012"
PYTEST = (sys.executable, "-m", "pytest", "-m", "aws", "-p", "no:xdist")
TESTS = "tools/acceptance/test_claims.py"
NAMED = (f"--account={ACCOUNT}", f"--region={REGION}", "--budget=5")


def options(**changed: Any) -> Namespace:
    """The options of a run that may start, but for these."""
    named: dict[str, Any] = {
        "account": ACCOUNT,
        "region": REGION,
        "budget": 5.0,
        "yes": True,
        "hub_model": HUB_MODEL,
        "hub_revisions": ["first", "second"],
        "clock_speed": 1.0,
    }
    return Namespace(**{**named, **changed})


@pytest.fixture
def at(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalAws]:
    """The local AWS as the account of this process's environment."""
    for key, value in aws.exports().items():
        monkeypatch.setenv(key, value)
    yield aws
    assert aws.leftovers() == []


@pytest.fixture
def no_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on somebody's own machine."""
    monkeypatch.delenv("CI", raising=False)


def run_pytest(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of the claims in a process of its own."""
    return subprocess.run(
        [*PYTEST, *arguments, TESTS],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("missing", ["region", "budget", "hub_model", "hub_revisions"])
def test_what_is_left_out_is_asked_for(missing: str) -> None:
    with pytest.raises(NotConfirmed, match=f"--{missing.replace('_', '-')} is missing"):
        named_world(options(**{missing: None}))


@pytest.mark.parametrize(
    ("empty", "words"),  # as `make accept` passes a variable that is not set
    [("account", "twelve digits"), ("region", "a Region"), ("budget", "invalid float")],
)
def test_what_is_empty_is_asked_for(empty: str, words: str) -> None:
    done = run_pytest(*NAMED, f"--{empty}=", "--yes")
    assert done.returncode == 4
    assert f"--{empty}: " in done.stderr
    assert words in done.stderr


@pytest.mark.usefixtures("at")
def test_another_account_than_the_one_that_was_named_is_refused() -> None:
    with pytest.raises(NotConfirmed, match="account 123456789012's, not 999999999999's"):
        named_world(options(account="999999999999"))


@pytest.mark.usefixtures("at")
@pytest.mark.parametrize(
    ("changed", "words"),
    [({"budget": 0.5}, "above the budget of 0.50 USD"), ({"yes": False}, "add --yes to start")],
)
def test_nothing_starts_above_the_budget_or_without_yes(
    changed: dict[str, Any], words: str, world: World
) -> None:
    with pytest.raises(NotConfirmed, match=words):
        confirm_cost(options(**changed), world, STEPS)


@pytest.mark.usefixtures("at")
def test_it_says_hours_dollars_prices_and_steps_before_it_starts(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    confirm_cost(options(), world, STEPS)
    told = capsys.readouterr().out
    assert "about 5.9 h, 3.19 USD" in told
    for price in PRICES.values():
        assert price.source in told
    for step in STEPS:
        assert f"  {step.name} " in told


@pytest.mark.usefixtures("no_ci")
def test_aws_asks_for_credentials_and_has_one_speed() -> None:
    with pytest.raises(NotConfirmed, match="no credentials"):
        named_world(options())
    with pytest.raises(NotConfirmed, match="one speed"):
        named_world(options(clock_speed=60.0))


def test_no_ci_job_starts_it_at_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(NotConfirmed, match="CI"):
        named_world(options())
    scripts = [ROOT / ".ci" / "run", *(ROOT / ".github" / "workflows").glob("*.yml")]
    assert [path.name for path in scripts if "accept" in path.read_text("utf-8")] == []


def test_pytest_alone_skips_every_claim_and_the_suite_does_not_collect_them() -> None:
    done = run_pytest("-rs")
    assert done.returncode == 0
    assert re.search(r"\n\d+ skipped in ", done.stdout)
    assert "needs an account: make accept" in done.stdout
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    folders = [ROOT / path for path in settings["tool"]["pytest"]["ini_options"]["testpaths"]]
    assert [path for path in folders if (ROOT / TESTS).is_relative_to(path)] == []


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


@pytest.fixture
def fresh() -> Iterator[LocalAws]:
    """A local AWS of its own, bootstrapped: the CDK CLI takes those roles."""
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


def run_in(
    aws: LocalAws, hub: FakeHub, folder: Path, *arguments: str
) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run some claims in a local AWS; return what was printed, and the report."""
    report = folder / "report.xml"
    model = ("--hub-model", HUB_MODEL, "--hub-revisions", *two_commits(hub))
    speed = ("--yes", f"--clock-speed={SPEED}", f"--junitxml={report}")
    environment = {**aws.environment(), "HF_ENDPOINT": hub.endpoint}
    done = run_pytest("-s", *NAMED, *model, *speed, *arguments, **environment)
    return done, report.read_text("utf-8")


def outcomes(report: str) -> dict[str, str]:
    """How each claim's test ended, by the claim's id."""
    found = {}
    for case in ElementTree.fromstring(report).iter("testcase"):
        ends = [child.tag for child in case if child.tag != "properties"]
        found[case.attrib["name"]] = ends[0] if ends else "passed"
    return found


@pytest.mark.realtime
@pytest.mark.timeout(600)
def test_a_run_with_the_cdk_cli_shows_its_claims_and_deletes_everything(
    fresh: LocalAws, hub: FakeHub, tmp_path: Path
) -> None:
    which = "deploy-create or deploy-warm-up or update-update or destroy-delete"
    done, report = run_in(fresh, hub, tmp_path, "-k", which)
    assert done.returncode == 0, done.stdout + done.stderr
    assert outcomes(report) == {f"test_claim[{name}]": "passed" for name in which.split(" or ")}
    assert '<property name="claim" value="create"' in report
    assert '<property name="stack_status" value="UPDATE_COMPLETE"' in report
    assert '<property name="target" value="local"' in report
    assert fresh.leftovers() == []


@pytest.mark.realtime
@pytest.mark.timeout(600)
def test_after_a_failed_step_it_deletes_everything_and_the_report_names_nothing(
    fresh: LocalAws, hub: FakeHub, tmp_path: Path
) -> None:
    which = "deploy-create or update-update or page-pages"
    broken = ("-p", "tests.acceptance.broken_update")
    done, report = run_in(fresh, hub, tmp_path, "-k", which, *broken)
    assert done.returncode == 1, done.stdout + done.stderr
    assert outcomes(report) == {
        "test_claim[deploy-create]": "passed",
        "test_claim[update-update]": "error",
        "test_claim[page-pages]": "skipped",
    }
    assert "not reached: the step update failed" in report
    assert "ClientError AccessDenied of DescribeStacks" in report
    assert ACCOUNT in done.stdout  # the whole error is printed, and stays out of the report
    assert ACCOUNT not in report
    assert "llee-accept-" not in report
    assert fresh.leftovers() == []
