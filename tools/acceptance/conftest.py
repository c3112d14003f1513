"""Fixtures of a run, and what must be confirmed before it starts.

Nothing here starts without `--account`: plain `pytest tools/acceptance` skips every test.
"""

from __future__ import annotations

import argparse
import json
import secrets
import subprocess
from collections.abc import Callable, Generator, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from low_latency_endpoint import __version__

from .clean_up import clean_up
from .confirmation import NotConfirmed, confirm_cost, named_hub_model, named_world
from .observations import Document
from .steps import NEEDED, STEPS, NotReached, Run, Step
from .world import BUILD, ROOT, World

_WORLD = pytest.StashKey[World]()


def _account(text: str) -> str:
    if len(text) != 12 or not text.isdigit():
        raise argparse.ArgumentTypeError(f"twelve digits, not {text!r}")
    return text


def _region(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("a Region, such as us-east-2")
    return text


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what a run must be told. `make accept` passes the first three."""
    group = parser.getgroup("acceptance")
    group.addoption("--account", type=_account, help="the account of the credentials")
    group.addoption("--region", type=_region, help="where to deploy")
    group.addoption("--budget", type=float, help="US dollars that the run may cost at most")
    group.addoption("--yes", action="store_true", help="start; without it, only say what it costs")
    told = "of the Hugging Face Hub (HF_ENDPOINT): docs/reference/seen-on-aws.md says which"
    group.addoption("--hub-model", metavar="MODEL", help=told)
    told = "two of its commits, tags or branches: the first is deployed, the second is its update"
    group.addoption("--hub-revisions", nargs=2, metavar=("FIRST", "SECOND"), help=told)
    told = "of a local AWS's clock; refused at AWS"
    group.addoption("--clock-speed", type=float, default=1.0, help=told)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Skip what needs an account where none is named; else start nothing that is not confirmed."""
    config = session.config
    tests = [item for item in session.items if item.get_closest_marker("aws")]
    if not tests or config.option.collectonly:
        return
    # In a worker of pytest-xdist the steps would be done twice.
    if config.getoption("--account", None) is None or hasattr(config, "workerinput"):
        for test in tests:
            test.add_marker(pytest.mark.skip("needs an account: make accept"))
        return
    try:
        world = named_world(config.option)
        confirm_cost(config.option, world, _steps_of(tests))
    except NotConfirmed as reason:
        pytest.exit(f"Not started: {reason}", returncode=2)
    config.stash[_WORLD] = world


def _steps_of(tests: list[pytest.Item]) -> list[Step]:
    """Return the steps that the tests need, in their order."""
    chosen = [test.callspec.params["saw"] for test in tests if isinstance(test, pytest.Function)]
    return [step for step in STEPS if step in (*NEEDED, *chosen)]


@pytest.fixture(scope="session")
def run(
    pytestconfig: pytest.Config, record_testsuite_property: Callable[[str, object], None]
) -> Iterator[Run]:
    """Give a run with names of its own; delete what it created, also after a failed step."""
    world = pytestconfig.stash[_WORLD]
    for name, value in _versions().items():
        record_testsuite_property(name, value)
    record_testsuite_property("target", world.target)
    record_testsuite_property("region", world.region)
    run = Run(world, named_hub_model(pytestconfig.option), secrets.token_hex(4))
    yield run
    left = clean_up(world, run.suffix)
    for line in left:
        print(f"left: {line}")
    if left:
        pytest.fail(f"{len(left)} resources of the run are left", pytrace=False)


@pytest.fixture(scope="session")
def saw(request: pytest.FixtureRequest, run: Run) -> Document:
    """Do the step of the test's claim, once for all of its claims; give what the step saw."""
    step: Step = request.param
    print(f"\n{step.name}: about {step.minutes:.0f} minutes at AWS", flush=True)
    try:
        seen = run.do(step)
    except NotReached as reason:
        pytest.skip(f"not reached: {reason}")
    path = BUILD / run.suffix / f"{step.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(seen, indent=1, default=str), "utf-8")
    return seen


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep what errors say of the account out of the report: it is printed instead.

    The report has only messages that this package writes, and the kinds of other errors.
    """
    report = yield
    error = call.excinfo
    ours = (pytest.fail.Exception, pytest.skip.Exception)
    if error is None or not item.get_closest_marker("aws") or isinstance(error.value, ours):
        return report
    print(error.getrepr(), flush=True)
    kind = type(error.value).__name__
    if isinstance(error.value, ClientError):
        kind += f" {error.value.response['Error']['Code']} of {error.value.operation_name}"
    report.longrepr = f"{kind}: its text is in the output, not in this report"
    report.sections.clear()
    return report


def _versions() -> dict[str, str]:
    """Return what the run is made with, and the day."""

    def printed(*command: str) -> str:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    lock = json.loads(Path(ROOT, "package-lock.json").read_text("utf-8"))
    commit = printed("git", "rev-parse", "--short", "HEAD") or "unknown"
    changed = printed("git", "status", "--porcelain", "--untracked-files=no")
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "library": __version__,
        "commit": f"{commit}-dirty" if changed else commit,
        "cdk_cli": lock["packages"]["node_modules/aws-cdk"]["version"],
        "aws_cdk_lib": version("aws-cdk-lib"),
        "boto3": version("boto3"),
    }
