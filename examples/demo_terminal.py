"""What `make demo` prints, and how it runs the CDK CLI and `low-latency`."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from local_sagemaker import LocalAws

ROOT = Path(__file__).resolve().parents[1]
CDK = ROOT / "node_modules" / ".bin" / "cdk"

# What the CLI says about its own work, and the outputs, which the tables show better.
NOISE = re.compile(
    r"start: (Building|Publishing)|success: (Built|Published)|Synthesis time|Total time"
    r"|creating CloudFormation|Stack ARN|^arn:aws:cloudformation|Deployment time|Using default"
    r"|^Including dependency|deploying\.\.\.|destroying\.\.\.|Number of stacks|Hold on while"
    r"|^Outputs:|^[\w-]+\.\w+ = |^Trusted accounts"
)
# Of the stack's resources, the ones that a newcomer has heard of.
TOLD = re.compile(
    r"::(VPC|VPCEndpoint|Endpoint|ScalingPolicy|CompositeAlarm|Dashboard|WarmUp|Stack)$"
)
LOGICAL_ID = re.compile(r"^(\[.\] AWS::\S+ \S+) \S+")
WIDTH = 128

LONGEST = 110  # a dashboard's body is one line of 8,000 characters

# In a pipe as wide as a table needs, unless COLUMNS says otherwise.
_STATED = sys.stdout.isatty() or "COLUMNS" in os.environ
console = Console(highlight=False, width=None if _STATED else WIDTH + 6)


class StepFailed(Exception):
    """A step of the demo did not do what it should."""

    def __init__(self, what: str, output: list[str], advice: str) -> None:
        super().__init__(what)
        self.what, self.output, self.advice = what, output, advice


@contextlib.contextmanager
def step(number: int, of: int, title: str) -> Iterator[None]:
    """A heading before, the elapsed seconds after."""
    console.print(f"\n[{number}/{of}] {title}", style="bold", markup=False)
    started = time.monotonic()
    yield
    console.print(f"      [dim]{time.monotonic() - started:.1f} s[/dim]")


def say(text: str, style: str | None = None) -> None:
    """Text under a heading, indented."""
    for line in textwrap.wrap(
        text,
        min(WIDTH, console.width - 6),
        subsequent_indent="    ",
        drop_whitespace=False,
        replace_whitespace=False,
    ):
        console.print(f"      {line}", style=style, markup=False, soft_wrap=True)


def show(table: Table) -> None:
    """A table under a heading, indented."""
    console.print(Padding(table, (0, 0, 0, 6)))


class CdkCli:
    """The CDK CLI with the local AWS as its only world; output shortened as it comes."""

    def __init__(self, aws: LocalAws, folder: Path) -> None:
        self._aws = aws
        self._folder = folder
        self._environment = {
            **aws.environment(),
            # This environment's Python and Node.js, in an activated environment or not.
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "JSII_RUNTIME_PACKAGE_CACHE": "enabled",
            "NODE_NO_WARNINGS": "1",
        }
        self.groups: list[int] = []

    def run(self, *arguments: str, cwd: Path = ROOT) -> None:
        """Run one command; a failure raises `StepFailed` with the end of the output."""
        shown = " ".join(argument.replace(str(self._folder), "$TMP") for argument in arguments)
        say(f"$ cdk {shown}", style="cyan")
        process = subprocess.Popen(
            [str(CDK), *arguments, "--no-notices", "--no-color"],
            cwd=cwd,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            # A group of its own, so that stopping it stops its app and the app's Node.js too.
            start_new_session=True,
        )
        self.groups.append(process.pid)
        tail: deque[str] = deque(maxlen=25)
        try:
            assert process.stdout is not None
            for line in process.stdout:
                tail.append(line.rstrip())
                if short := shortened(line):
                    say(short)
            status = process.wait()
        except BaseException:
            self._stop(process)
            raise
        if status:
            raise StepFailed(
                f"cdk {arguments[0]} ended with status {status}",
                [line for line in tail if line],
                f"The local AWS's log: {self._aws.log_path}",
            )

    @staticmethod
    def _stop(process: subprocess.Popen[str]) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=5)
                return

    def still_running(self) -> list[int]:
        """Process groups of finished commands in which something still lives."""
        alive = []
        for group in self.groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, 0)
                alive.append(group)
        return alive


def shortened(line: str) -> str:
    """A line of the CLI for a reader; empty when it only tells of the CLI's own work.

    >>> shortened("Shop | 3/9 | 10:11:12 AM | CREATE_COMPLETE | AWS::EC2::VPC | Network/Vpc (N1)")
    '  3/9  created    AWS::EC2::VPC                                Network/Vpc'
    >>> shortened("Shop: success: Published Shop Template (123456789012-us-east-1-1ab2c3d4)")
    ''
    """
    text = LOGICAL_ID.sub(r"\1", line.rstrip())
    if NOISE.search(text.strip()):
        return ""
    parts = [part.strip() for part in text.split("|", 5)]
    if len(parts) == 6 and re.fullmatch(r"\d+(/\d+)?", parts[1]):
        _, count, _, status, kind, name = parts
    elif len(parts) == 5 and re.fullmatch(r"[A-Z_]+", parts[2]):
        count, (_, _, status, kind, name) = "", parts
    else:
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    verb, _, outcome = status.partition("_")
    if outcome == "FAILED":
        return f"{count:>7}  FAILED     {kind:<44} {name}"
    if outcome != "COMPLETE" or not TOLD.search(kind):
        return ""
    done = {"CREATE": "created", "UPDATE": "updated", "DELETE": "deleted"}.get(verb, verb.lower())
    return f"{count:>5}  {done:<9}  {kind:<44} {re.sub(r' [(].*', '', name)}"


def low_latency(
    aws: LocalAws, *arguments: str, expected: int | None = None, shown: bool = True
) -> str:
    """Run the command line against the local AWS and show what it says; give that back.

    Any status but 0 and 1, which says that something was found, is a failure; so is another one
    than is ``expected``.
    """
    say(f"$ low-latency {' '.join(arguments)}", style="cyan")
    done = subprocess.run(
        [str(Path(sys.executable).with_name("low-latency")), *arguments],
        cwd=ROOT,
        env={**aws.environment(), "COLUMNS": str(min(120, console.width - 6))},
        capture_output=True,
        text=True,
        check=False,
    )
    for line in done.stdout.splitlines() if shown else ():
        console.print(f"      {line}", markup=False, soft_wrap=True)
    if done.returncode not in ((0, 1) if expected is None else (expected,)):
        raise StepFailed(
            f"low-latency {arguments[0]} ended with status {done.returncode}",
            done.stderr.splitlines(),
            f"The local AWS's log: {aws.log_path}",
        )
    return done.stdout


def report(what: str, output: list[str], advice: str) -> int:
    """Say what failed, how it ended, and what to do."""
    console.print("\nFailed: ", style="bold red", end="")
    console.print(what, markup=False)
    for line in output:
        say(line)
    if advice:
        console.print(advice, markup=False)
    console.print("Nothing is left running.")
    return 1
