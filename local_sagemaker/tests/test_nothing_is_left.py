"""A local AWS leaves no file and no process, however it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import python
from signed_requests import is_open
from stacks_under_test import FUNCTION, TRUST, function, resource_of, zip_of
from waiting import alive, wait_for

from local_sagemaker import LocalAws, LocalAwsError, delete_stack, deploy_template, lambda_runner

pytestmark = pytest.mark.realtime

# A custom resource: its function is unpacked and run.
CUSTOM = {
    "Resources": {
        "Role": resource_of("AWS::IAM::Role", AssumeRolePolicyDocument=TRUST),
        "Function": resource_of(
            FUNCTION,
            **function(
                "import cfnresponse\n"
                "def handler(event, context):\n"
                "    cfnresponse.send(event, context, 'SUCCESS', {}, 'it')\n"
            ),
        ),
        "It": resource_of(
            "AWS::CloudFormation::CustomResource", ServiceToken={"Fn::GetAtt": ["Function", "Arn"]}
        ),
    }
}


@contextlib.contextmanager
def custom(aws: LocalAws) -> Iterator[None]:
    """The stack with the custom resource, until the block ends."""
    deploy_template(aws, CUSTOM, "Leaves")
    yield
    delete_stack(aws, "Leaves")


def kinds(paths: Iterable[Path]) -> list[str]:
    """The names of what lies there, without the random part."""
    return sorted(path.name.rpartition("-")[0] for path in paths)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of all temporary files of this process and those that it starts."""
    lambda_runner.forget()  # what other tests unpacked, in the usual folder
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield tmp_path
    lambda_runner.forget()


@pytest.mark.parametrize("start", [LocalAws.start, LocalAws.in_process])
def test_a_stopped_one_leaves_no_file(temporary: Path, start: Callable[..., LocalAws]) -> None:
    for _ in range(2):
        with start() as aws, custom(aws):
            assert {*kinds(temporary.rglob("local-*"))} == {"local-aws", "local-lambda-code"}
        # In-process servers of other tests' fixtures may live: what is unpacked is theirs too.
        assert {*kinds(temporary.iterdir())} <= {"local-lambda-code"}
    lambda_runner.forget()
    assert list(temporary.iterdir()) == []


def test_the_last_one_in_a_process_takes_the_unpacked_code_with_it(temporary: Path) -> None:
    code = (
        "import os, tempfile\n"
        "from local_sagemaker import LocalAws, deploy_template\n"
        "with LocalAws.in_process() as aws:\n"
        f"    deploy_template(aws, {CUSTOM}, 'Leaves')\n"
        "    with LocalAws.in_process():\n"
        "        pass\n"
        "    print(len(os.listdir(tempfile.gettempdir())))\n"
        "print(os.listdir(tempfile.gettempdir()))\n"
    )
    done = python("-c", code)
    assert done.stdout.splitlines() == ["2", "[]"]


def test_a_reset_takes_the_unpacked_code_with_it(temporary: Path) -> None:
    with LocalAws.in_process() as aws:
        deploy_template(aws, CUSTOM, "Leaves")
        assert list(temporary.glob("local-lambda-code-*"))
        aws.reset()
        assert not list(temporary.glob("local-lambda-code-*"))
        with custom(aws):  # it is unpacked again when it is needed
            pass


def test_the_log_stays_where_the_caller_wants_it(temporary: Path, tmp_path: Path) -> None:
    wanted = tmp_path / "mine.log"
    for start in (LocalAws.start, LocalAws.in_process):
        with start(log_path=wanted) as aws:
            assert aws.log_path == wanted
            aws.client("sts").get_caller_identity()
        assert "POST / -> 200" in wanted.read_text()
        wanted.unlink()
    assert list(temporary.iterdir()) == []


def test_one_that_could_not_start_leaves_no_file(temporary: Path, aws: LocalAws) -> None:
    for start in (LocalAws.start, LocalAws.in_process):
        with pytest.raises(LocalAwsError, match=r"in use"):
            start(port=aws.port)
        assert list(temporary.iterdir()) == []


PARENT = f"""
import sys, threading
from local_sagemaker import LocalAws, deploy_template
aws = LocalAws.start()
deploy_template(aws, {CUSTOM}, "Leaves")
print(aws.port, flush=True)
threading.Event().wait(60)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_when_the_parent_is_killed_the_child_removes_its_files(
    temporary: Path, number: int
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as parent:
        assert parent.stdout is not None
        port = int(parent.stdout.readline())
        assert is_open(port)
        assert list(temporary.iterdir())
        if number == signal.SIGINT:
            os.killpg(parent.pid, number)  # Ctrl-C goes to all of a terminal
        else:
            parent.send_signal(number)
        parent.wait(timeout=60)
    wait_for(lambda: not list(temporary.iterdir()))
    wait_for(lambda: not is_open(port))


@pytest.mark.parametrize(
    ("number", "early"),
    [
        (signal.SIGINT, False),
        (signal.SIGHUP, False),
        (signal.SIGTERM, False),
        (signal.SIGTERM, True),
    ],
    ids=["interrupted", "terminal closed", "terminated", "terminated while it starts"],
)
def test_the_command_leaves_nothing_when_it_is_stopped(
    temporary: Path, number: int, early: bool
) -> None:
    command, pipe = [sys.executable, "-m", "local_sagemaker"], subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        if early:
            wait_for(lambda: any(temporary.iterdir()))
        else:
            assert process.stdout.readline().startswith("export AWS_ENDPOINT_URL=")
            assert list(temporary.iterdir())
        process.send_signal(number)
        assert process.wait(timeout=60) == 0
    assert list(temporary.iterdir()) == []


def test_a_function_that_still_runs_goes_with_the_last_local_aws(temporary: Path) -> None:
    told = temporary / "process"
    code = (
        "import os, pathlib, time\n"
        "def handle(event, context):\n"
        f"    pathlib.Path({str(told)!r}).write_text(str(os.getpid()))\n"
        "    time.sleep(60)\n"
    )
    script = (
        "import threading, time, pathlib\n"
        "from local_sagemaker import LocalAws, lambda_runner\n"
        "function = lambda_runner.PythonFunction('f', 'arn', 'python3.12', 'index.handle',\n"
        f"    {zip_of(code)!r}, 60, 128, {{}}, 'us-east-1', 'http://localhost:1')\n"
        "with LocalAws.in_process():\n"
        "    threading.Thread(target=lambda_runner.run, args=[function, {}], daemon=True).start()\n"
        f"    while not pathlib.Path({str(told)!r}).exists(): time.sleep(0.05)\n"
    )
    assert python("-c", script).returncode == 0
    wait_for(lambda: not alive(int(told.read_text())))


def test_a_hook_of_a_user_changes_only_the_user_s_requests() -> None:
    """The engine once worked with the clients it gave away: a hook that answered answered it."""

    def answer(**_: Any) -> None:
        raise RuntimeError("the user's hook")

    with LocalAws.in_process() as aws:
        sns = aws.client("sns")
        assert aws.client("sns") is sns
        sns.meta.events.register("before-call", answer)
        deployed = deploy_template(aws, {"Resources": {"T": {"Type": "AWS::SNS::Topic"}}}, "Hooked")
        assert deployed.status == "CREATE_COMPLETE"
        with pytest.raises(RuntimeError, match="the user's hook"):
            sns.list_topics()
        delete_stack(aws, "Hooked")


def test_the_next_one_removes_at_once_what_a_killed_process_left(temporary: Path) -> None:
    """By its locks, not by its age: it took a minute until anything went."""
    script = (
        "import os, signal\n"
        "from local_sagemaker import LocalAws, deploy_template\n"
        "aws = LocalAws.in_process()\n"
        f"deploy_template(aws, {CUSTOM}, 'Leaves')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with LocalAws.in_process() as aws, custom(aws):
        mine = set(temporary.iterdir())
        other = temporary / "local-aws-of-somebody.txt"
        other.write_text("no folder")
        python("-c", script)
        left = set(temporary.iterdir()) - mine - {other}
        assert kinds(left) == ["local-aws", "local-lambda-code"]
        with LocalAws.in_process():
            assert not any(each.exists() for each in left)
            assert mine < set(temporary.iterdir()), "a folder that is held stays"
        assert other.exists()


def test_a_folder_is_held_from_its_first_moment(temporary: Path) -> None:
    """Processes that start at the same time do not take each other's folders for abandoned."""
    code = (
        "from local_sagemaker.processes import HeldFolder\n"
        "for _ in range(300):\n"
        "    folder = HeldFolder('local-aws-')\n"
        "    assert folder.path.is_dir()\n"
        "    (folder.path / 'kept').touch()\n"
        "    folder.remove()\n"
    )
    script = [sys.executable, "-c", code]
    with contextlib.ExitStack() as stack:
        started = [stack.enter_context(subprocess.Popen(script)) for _ in range(3)]
        assert [process.wait(60) for process in started] == [0, 0, 0]
    assert list(temporary.iterdir()) == []
