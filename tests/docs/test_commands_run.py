"""The console blocks of README and docs, run as they are printed: page by page, in one shell.

What a page's reader has before the first command is in `readers.py`; single commands that are run
elsewhere, or cannot be run here, are below with their reason.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from .console_blocks import PAGES, ROOT, Command, commands, shows
from .readers import READERS, at_desk
from .typed_commands import typed


class Tried(NamedTuple):
    """Where a command runs that is not run here, and the text that runs it there."""

    file: str
    text: str


_MAKE = "tests/packaging/test_make_deploy.py"
_APP = "tests/packaging/test_init.py"
#: Commands by their beginning, and where they run instead.
ELSEWHERE = {
    "make setup": Tried(".ci/run", "make setup"),  # it installs what runs these tests
    "source .venv/bin/activate": Tried("tests/docs/typed_commands.py", "source .venv/bin/activate"),
    "make demo": Tried("tests/packaging/test_demo.py", "make demo"),
    "make bootstrap": Tried(_MAKE, 'make(aws, "bootstrap"'),
    "make deploy": Tried(_MAKE, 'make(aws, "deploy"'),
    "make destroy": Tried(_MAKE, 'make(aws, "destroy"'),
    "make synth": Tried(_MAKE, 'make(None, "synth"'),
    "make diff": Tried(_MAKE, 'make(aws, "diff"'),
    "make test-client": Tried(".github/workflows/ci.yml", "make test-client"),
    "make test-realtime": Tried(".github/workflows/ci.yml", "make test-realtime"),
    "make test": Tried(".ci/run", "make test"),
    "make nightly": Tried(".github/workflows/nightly.yml", "make nightly"),
    "make bench": Tried("tools/benchmarks/nightly.py", '"make", "bench"'),
    "make snapshots": Tried("tests/synth/test_snapshots.py", "make snapshots"),
    "low-latency init --region": Tried(_APP, '"low-latency", "init"'),
    # A language model, which this page's reader has not.
    "low-latency load-test chat": Tried("tests/load_test/test_token_command.py", "load-test"),
    # Asks AWS's Price List.
    "low-latency prices": Tried("tests/operate/prices/test_price_list.py", '"prices"'),
    # Ask the Hub, or copy gigabytes from it.
    "low-latency pin Qwen": Tried("tests/hugging_face/test_pinning.py", '["pin"'),
    "low-latency pin --check": Tried("tests/hugging_face/test_pinning.py", '"--check"'),
    "low-latency stage": Tried("tests/cli/test_stage.py", '["stage"'),
    # A deployment that runs, and a stack whose rollback failed.
    "aws cloudwatch set-alarm-state": Tried(
        "tests/deploy/test_serving_check.py", "set_alarm_state("
    ),
    "npx cdk rollback": Tried("tests/deploy/test_serving_check.py", "cdk rollback"),
    "aws sagemaker update-endpoint-weights-and-capacities": Tried(
        "tests/deploy/test_everyday_changes.py", "update_endpoint_weights_and_capacities("
    ),
}
#: Commands that nothing here can run, and why; a path in it is of what is tried of them.
NOT_HERE = {
    "make wheel": "it writes into the checkout; tests/packaging/conftest.py builds the library's",
    "pip install ./dist/": "a registry; tests/packaging/conftest.py installs the wheel alone",
    "pip install './dist/": "a registry; tests/packaging/conftest.py installs the wheel alone",
    "pip install './cdk_low_latency_endpoint-": "a registry; tests/packaging/conftest.py installs the wheel alone",
    "pip install --target function": "a registry; tests/packaging/conftest.py installs the wheel alone",
    "pip install -r requirements.txt": "a registry, from which `make setup` installs as much",
    "npx aws-cdk@": "npm's registry; tests/synth/test_examples.py synthesizes the app",
    "make test-option": "a part of `make test`",
    "make test-fast": "a part of `make test`",
    "make pr": "it runs setup, lint, site, fuzz-smoke, test, test-realtime and bench-smoke",
    "python3 -m venv ../my-endpoint": "a folder beside the reader's; tests/packaging/test_init.py",
    "source ../my-endpoint": "a folder beside the reader's; tests/packaging/test_init.py",
    "cd ../my-endpoint": "a folder beside the reader's; tests/packaging/test_init.py",
    "pip install fastapi uvicorn": "it is installed where tests/docs/readers.py runs the server",
    "npx cdk bootstrap --cloudformation-execution-policies": (
        "policies of an account; tests/deploy/test_deploying_role.py deploys with their statements"
    ),
    "aws cloudwatch put-alarm-mute-rule": "the local AWS has no such rules",
    "aws sagemaker describe-hub-content": "JumpStart's hub is AWS's alone",
    "aws logs associate-kms-key": "the local AWS's logs have no keys",
    "low-latency recommend": "the local AWS has no such jobs; tests/operate/sagemaker_jobs has",
    "low-latency optimize": "the local AWS has no such jobs; tests/operate/sagemaker_jobs has",
    **{
        f"aws sagemaker {verb}-{job}": "the local AWS has no such jobs"
        for verb in ("create", "describe", "stop")
        for job in ("inference-recommendations-job", "optimization-job")
    },
    "aws sagemaker list-inference-recommendations-jobs": "the local AWS has no such jobs",
    "aws sagemaker list-optimization-jobs": "the local AWS has no such jobs",
    "make accept": "a real account, and money",
    "git diff tests/synth": "what `make snapshots` has changed",
}
#: Pages whose commands have a test of their own.
OWN_TEST = {"docs/explanation/scenarios.md": "tests/plan/test_scenarios_page.py"}
#: What is added to a command that takes too long as it is printed, or that asks.
ADDED = {
    # Long enough for the 2,995 requests that show at most 0.1 % of errors.
    "low-latency load-test --confirm": " --duration 45s --alone 1s --metrics-wait 0s",
    # Long enough for the confidence that `plan --from-load-test` asks for.
    "low-latency load-test --find-limit": " --duration 20s --alone 1s --metrics-wait 0s",
    "low-latency load-test": " --duration 2s --alone 1s --metrics-wait 0s",
    "low-latency compare-routing": " --pairs 4 --block 2s --settle 1s",
    "npx cdk destroy --all": " --force",
}
#: Exit codes that are right though they are not 0.
STATUS = {
    # Nobody subscribes to the topic of this page's reader: a warning, which --strict does not pass.
    "low-latency preflight --strict": 1,
    # The local AWS had no requests then: nothing to judge.
    "low-latency diagnose sentiment --since 2h --until 2026-11-20T03:30Z": 3,
}


def _begins(text: str, beginning: str) -> bool:
    """Whether a command begins so, with whole words."""
    return (
        re.match(rf"{re.escape(beginning)}(?<!\w)|{re.escape(beginning)}(?![\w-])", text)
        is not None
    )


def _elsewhere(command: Command) -> bool:
    return any(_begins(command.text, beginning) for beginning in (*ELSEWHERE, *NOT_HERE))


def _as_typed(text: str, stands_for: dict[str, str]) -> str:
    for written, meant in stands_for.items():
        text = text.replace(written, meant)
    for beginning, more in ADDED.items():
        if text.startswith(beginning) and " --duration " not in text:
            command, hash_sign, comment = text.partition(" #")
            text = command.rstrip() + more + hash_sign + comment
            break
    return text


@pytest.mark.realtime  # local AWSs, deployments, load: up to four minutes, on a busy machine more
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", READERS)
def test_each_command_does_what_the_page_says(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    steps = [
        each
        for each in commands((ROOT / name).read_text("utf-8"))
        if not _elsewhere(each)
        and not (reader.has_typed and each.text.startswith(reader.has_typed))
    ]
    assert steps, "nothing is run: the page needs no reader"
    texts = [_as_typed(each.text, reader.stands_for) for each in steps]
    with at_desk(reader, tmp_path) as desk:
        for step, done in zip(
            steps, typed(texts, tmp_path, desk.environment, timeout=840), strict=True
        ):
            expected = next((STATUS[each] for each in STATUS if step.text.startswith(each)), 0)
            said = f"{done.command}:\n{done.printed[-3000:]}"
            # A load test that a busy machine held up says so, and may miss its goal.
            delayed = "load-test" in step.text and "the generator fell behind" in done.printed
            assert done.status in ({expected, 1} if delayed else {expected}), said
            if step.shown:
                assert shows(step.shown, done.printed), said


def test_no_command_of_any_page_is_forgotten() -> None:
    """A page is run, or has a test of its own, or each of its commands is run elsewhere."""
    forgotten = {
        name: each.text
        for page in PAGES
        for name in (page.relative_to(ROOT).as_posix(),)
        for each in commands(page.read_text("utf-8"))
        if name not in READERS and name not in OWN_TEST and not _elsewhere(each)
    }
    assert forgotten == {}


def test_exceptions_are_of_commands_that_stand_somewhere() -> None:
    texts = [each.text for page in PAGES for each in commands(page.read_text("utf-8"))]
    for beginning in (*ELSEWHERE, *NOT_HERE, *ADDED, *STATUS):
        assert any(_begins(text, beginning) for text in texts), beginning
    for name in (*OWN_TEST, *OWN_TEST.values(), *READERS):
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("beginning", ELSEWHERE)
def test_what_runs_elsewhere_is_in_the_file_that_is_named(beginning: str) -> None:
    """The file has the text that runs the command, and the text names the command's part."""
    tried = ELSEWHERE[beginning]
    assert tried.text in (ROOT / tried.file).read_text("utf-8")


@pytest.mark.parametrize("beginning", NOT_HERE)
def test_what_a_reason_names_is_there(beginning: str) -> None:
    for path in re.findall(r"\btests/[\w/.]+\w", NOT_HERE[beginning]):
        assert (ROOT / path).exists(), path
