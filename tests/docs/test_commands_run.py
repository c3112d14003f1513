"""The console blocks of README and docs, run as they are printed: page by page, in one shell.

What a page's reader has before the first command is in `readers.py`; single commands that are run
elsewhere, or cannot be run here, are below with their reason.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .console_blocks import PAGES, ROOT, Command, commands, shows
from .readers import READERS, at_desk
from .typed_commands import typed

#: Commands by their beginning: the test that runs them, or why nothing here can.
ELSEWHERE = {
    "make setup": ".ci/run",  # it installs what runs these tests
    "source .venv/bin/activate": "tests/docs/typed_commands.py",
    "make demo": "tests/packaging/test_demo.py",
    "make bootstrap": "tests/packaging/test_make_deploy.py",
    "make deploy": "tests/packaging/test_make_deploy.py",
    "make destroy": "tests/packaging/test_make_deploy.py",
    "make synth": "tests/packaging/test_make_deploy.py",
    "make diff": "tests/packaging/test_make_deploy.py",
    "make wheel": "tests/packaging/test_wheel.py",
    "pip install": "tests/packaging/test_wheel.py",
    "make test": ".ci/run",
    "make pr": ".github/workflows/ci.yml",
    "make nightly": ".github/workflows/nightly.yml",
    "make bench": "tools/benchmarks/nightly.py",
    "make snapshots": "tests/synth/test_snapshots.py",
    # An app of one's own, in a folder and a virtual environment of its own.
    "python3 -m venv ../my-endpoint": "tests/packaging/test_init.py",
    "source ../my-endpoint": "tests/packaging/test_init.py",
    "cd ../my-endpoint": "tests/packaging/test_init.py",
    "low-latency init --region": "tests/packaging/test_init.py",
    "npx aws-cdk@": "tests/synth/test_examples.py",
    # A language model, which this page's reader has not.
    "low-latency load-test chat": "tests/load_test/test_token_command.py",
    # Asks AWS's Price List.
    "low-latency prices": "tests/operate/prices/test_price_list.py",
    # Ask the Hub, or copy gigabytes from it.
    "low-latency pin Qwen": "tests/hugging_face/test_pinning.py",
    "low-latency pin --check": "tests/hugging_face/test_pinning.py",
    "low-latency stage": "tests/cli/test_stage.py",
    # The policies are of an account; a role with their statements deploys there.
    "npx cdk bootstrap --cloudformation-execution-policies": "tests/deploy/test_deploying_role.py",
    # The image is built by Docker, which is not here.
    "cdk deploy --all -c load-test-fleet=true": "tests/deploy/test_load_test_fleet.py",
    "cdk destroy LowLatencyEndpoint-LoadTestFleet": "tests/deploy/test_load_test_fleet.py",
}
#: Commands that nothing here can run, and why.
NOT_HERE = {
    "aws cloudformation continue-update-rollback": "a stack that AWS failed to roll back",
    "aws cloudwatch put-alarm-mute-rule": "the local AWS has no such rules",
    "aws sagemaker describe-hub-content": "JumpStart's hub is AWS's alone",
    "aws logs associate-kms-key": "the local AWS's logs have no keys",
    "low-latency recommend": "the local AWS has no such jobs; tests/operate/sagemaker_jobs has",
    "low-latency optimize": "the local AWS has no such jobs; tests/operate/sagemaker_jobs has",
    **{
        f"aws sagemaker {verb}-{job}": "the local AWS has no such jobs"
        for verb in ("create", "describe", "list", "stop")
        for job in ("inference-recommendations-job", "optimization-job")
    },
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


def _elsewhere(command: Command) -> bool:
    return command.text.startswith((*ELSEWHERE, *NOT_HERE))


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
        assert any(text.startswith(beginning) for text in texts), beginning
    for name in (*ELSEWHERE.values(), *OWN_TEST, *OWN_TEST.values(), *READERS):
        assert (ROOT / name).exists(), name
