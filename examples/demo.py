"""The whole life of the stack in a local AWS: deploy, read back, call, diagnose, change, destroy.

Run it with ``make demo``. It needs no AWS account and can reach none: the CDK CLI, its app and
boto3 get an environment that knows only the local AWS, with credentials that no account has. The
CLI is the one of ``package-lock.json``, unmodified; ``make deploy`` runs the same against AWS.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import FrameType
from urllib.error import URLError
from urllib.request import urlopen

from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from low_latency_endpoint.errors import LowLatencyEndpointError, SettingsError
from low_latency_endpoint.local_aws import LocalAws, LocalAwsError
from low_latency_endpoint.local_aws.model_servers.service_times import ServiceTime
from low_latency_endpoint.local_aws.model_servers.specifications import SimulatedModelServer
from low_latency_endpoint.local_aws.runtime.options import RuntimeOptions
from low_latency_endpoint.operations.dashboard_picture import draw_dashboard, read_dashboard_body
from low_latency_endpoint.operations.deployed import DeployedStack, read_deployed
from low_latency_endpoint.operations.deployed_tables import changes, changes_table, tables
from low_latency_endpoint.settings import load_settings

ROOT = Path(__file__).resolve().parents[1]
CDK = ROOT / "node_modules" / ".bin" / "cdk"
STEPS = 8

# The model of the demo: fast, so that the whole life takes a minute or two, with as many workers
# as the instance type has vCPUs. The fault: fifteen times slower, and one request at a time.
HEALTHY = SimulatedModelServer(
    service_time=ServiceTime.lognormal(p50=0.010, p99=0.025), concurrency=48, cpu_busy=4800,
    memory=40,
)
FAULTY = replace(
    HEALTHY, service_time=ServiceTime.lognormal(p50=0.150, p99=0.250), concurrency=1
)
NAMED = ("LLD102", "LLD107")  # saturated at the maximum, or before the scaling target
# The runtime's clock runs so many times faster, and began in the past, where reports look.
CLOCK_SPEED = 30
TRAFFIC_SECONDS = 14  # seven minutes by that clock
CALLERS = 16
PICTURE = ROOT / "build" / "demo-dashboard.png"

# The setting that the update changes: its line in the settings file, and the new value.
CHANGED_SETTING = re.compile(r"^(?P<key>\s*safety_factor:\s*)(?P<value>[\d.]+)", re.MULTILINE)
NEW_VALUE = "0.5"

# What the CLI says about its own work, and the outputs, which the tables show better.
NOISE = re.compile(
    r"start: (Building|Publishing)|success: (Built|Published)|Synthesis time|Total time"
    r"|creating CloudFormation|Stack ARN|^arn:aws:cloudformation|Deployment time|Using default"
    r"|^Including dependency|deploying\.\.\.|destroying\.\.\.|Number of stacks|Hold on while"
    r"|^Outputs:|^[\w-]+\.\w+ = |^Trusted accounts"
)
LOGICAL_ID = re.compile(r"^(\[.\] AWS::\S+ \S+) \S+")
WIDTH = 128

LONGEST = 110  # a dashboard's body is one line of 8,000 characters

console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH + 6)


class StepFailed(Exception):
    """A step of the demo did not do what it should."""

    def __init__(self, what: str, output: list[str], advice: str) -> None:
        super().__init__(what)
        self.what, self.output, self.advice = what, output, advice


@contextlib.contextmanager
def step(number: int, title: str) -> Iterator[None]:
    """A heading before, the elapsed seconds after."""
    console.print(f"\n[{number}/{STEPS}] {title}", style="bold", markup=False)
    started = time.monotonic()
    yield
    console.print(f"      [dim]{time.monotonic() - started:.1f} s[/dim]")


def say(text: str, style: str | None = None) -> None:
    """Text under a heading, indented."""
    for line in textwrap.wrap(text, min(WIDTH, console.width - 6), subsequent_indent="    ",
                              drop_whitespace=False, replace_whitespace=False):
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
    if outcome != "COMPLETE":
        return ""
    done = {"CREATE": "created", "UPDATE": "updated", "DELETE": "deleted"}.get(verb, verb.lower())
    return f"{count:>5}  {done:<9}  {kind:<44} {re.sub(r' [(].*', '', name)}"


def deployed_stacks(aws: LocalAws) -> list[str]:
    """Names of the stacks that are there, without the CDK's own."""
    answer = aws.client("cloudformation").describe_stacks()["Stacks"]
    return sorted(s["StackName"] for s in answer if s["StackName"] != "CDKToolkit")


def read_and_show(aws: LocalAws) -> dict[str, DeployedStack]:
    """Read every stack back through boto3 and print its tables."""
    found = {}
    for name in deployed_stacks(aws):
        found[name] = stack = read_deployed(aws.client, name)
        say(f"{name}: {stack.status}, {stack.resources} resources")
        for table in tables(stack):
            show(table)
    if not found:
        raise StepFailed("no stack was created", [], f"The local AWS's log: {aws.log_path}")
    return found


def traffic(aws: LocalAws, seconds: float) -> int:
    """Call every endpoint for some seconds, as fast as so many callers can; count the answers."""
    names = [e["EndpointName"] for e in aws.client("sagemaker").list_endpoints()["Endpoints"]]
    ends = time.monotonic() + seconds

    def call(number: int) -> int:
        client = aws.client("sagemaker-runtime")
        answers = 0
        while time.monotonic() < ends:
            client.invoke_endpoint(
                EndpointName=names[number % len(names)], ContentType="application/json",
                Body=b'{"inputs": "I am super happy right now."}',
            )
            answers += 1
        return answers

    with ThreadPoolExecutor(CALLERS) as callers:
        total = sum(callers.map(call, range(CALLERS)))
    aws.flush_metrics()
    return total


def low_latency(aws: LocalAws, *arguments: str) -> str:
    """Run the command line against the local AWS and show what it says; give that back."""
    console.print(f"      $ low-latency {' '.join(arguments)}", style="cyan", markup=False)
    done = subprocess.run(
        [str(Path(sys.executable).with_name("low-latency")), *arguments],
        env={**aws.environment(), "COLUMNS": "120"}, capture_output=True, text=True, check=False,
    )
    if done.returncode not in (0, 1):  # 1: it found something
        raise StepFailed(f"low-latency {arguments[0]} ended with status {done.returncode}",
                         done.stderr.splitlines(), f"The local AWS's log: {aws.log_path}")
    for line in done.stdout.splitlines():
        say(line)
    return done.stdout


def diagnose(aws: LocalAws, *expected: str) -> None:
    """Diagnose every endpoint over the traffic just sent; it must say what is the case."""
    until = aws.runtime_time()
    minutes = TRAFFIC_SECONDS * CLOCK_SPEED // 60
    for endpoint in aws.client("sagemaker").list_endpoints()["Endpoints"]:
        said = low_latency(
            aws, "diagnose", endpoint["EndpointName"], "--since", f"{minutes}m",
            "--until", until.strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
        if not any(words in said for words in expected):
            raise StepFailed("the diagnosis does not say what was the case",
                             said.splitlines(), f"Expected: {' or '.join(expected)}.")


def draw(aws: LocalAws) -> str:
    """Draw the dashboard with the data of the runtime's last hour; give the file's name."""
    cloudwatch = aws.client("cloudwatch")
    (entry, *_) = cloudwatch.list_dashboards()["DashboardEntries"]
    PICTURE.parent.mkdir(exist_ok=True)
    end = aws.runtime_time()
    draw_dashboard(
        cloudwatch, read_dashboard_body(cloudwatch, entry["DashboardName"]), PICTURE,
        start=end - timedelta(minutes=20), end=end,
    )
    return str(PICTURE.relative_to(ROOT))


def show_changes(before: dict[str, DeployedStack], after: dict[str, DeployedStack]) -> None:
    """Print every deployed value that the update changed; none is a failure."""
    found = [change for name in before for change in changes(before[name], after[name])]
    if not found:
        raise StepFailed("the update changed nothing that is deployed", [], "See cdk diff above.")
    show(changes_table(found))


def changed_settings(settings: Path, folder: Path) -> tuple[Path, str]:
    """A copy of the settings with one value changed, and the change in words."""
    text = settings.read_text(encoding="utf-8")
    match = CHANGED_SETTING.search(text)
    if match is None or match["value"] == NEW_VALUE:
        raise StepFailed(
            f"{settings.name} has no safety_factor other than {NEW_VALUE} to change",
            [],
            "Run the demo with the endpoint.yaml that ships.",
        )
    copy = folder / settings.name
    copy.write_text(
        text[: match.start()] + match["key"] + NEW_VALUE + text[match.end() :], encoding="utf-8"
    )
    return copy, f"safety_factor: {match['value']} -> {NEW_VALUE}"


def life_of_the_stack(settings: Path, folder: Path) -> None:
    """The eight steps."""
    assembly = str(folder / "cdk.out")
    # Mistakes in the file show up at once, not after the bootstrap.
    load_settings(settings)
    changed, words = changed_settings(settings, folder)
    with contextlib.ExitStack() as stopped_at_the_end:
        with step(1, "Start the local AWS"):
            aws = stopped_at_the_end.enter_context(
                LocalAws.start(
                    region="us-east-1",
                    model_servers={"*": HEALTHY},
                    runtime=RuntimeOptions(
                        clock_start=time.time() - 3 * 3600, clock_speed=CLOCK_SPEED
                    ),
                )
            )
            say(f"{aws.url}  account {aws.account}  region {aws.region}")
            say(f"log: {aws.log_path}")
        cdk = CdkCli(aws, folder)
        with step(2, "Bootstrap and deploy with the CDK CLI"):
            # Outside the project, bootstrapping needs no synthesis.
            cdk.run("bootstrap", f"aws://{aws.account}/{aws.region}", cwd=folder)
            cdk.run("deploy", "--all", "--require-approval", "never", "--output", assembly,
                    "-c", f"settings={settings}")
        with step(3, "Read back through boto3 what was created"):
            before = read_and_show(aws)
        with step(4, "Traffic, then: is it as planned, is it well?"):
            say(f"{traffic(aws, TRAFFIC_SECONDS)} requests in {TRAFFIC_SECONDS} s, which are "
                f"{TRAFFIC_SECONDS * CLOCK_SPEED // 60} minutes by the local AWS's clock")
            low_latency(aws, "verify", *before)
            diagnose(aws, "Nothing found")
            say(f"dashboard: {draw(aws)}")
        with step(5, "Inject a fault: a model fifteen times slower that works one by one"):
            aws.set_model_servers({"*": FAULTY})
            say(f"{traffic(aws, TRAFFIC_SECONDS)} requests")
            diagnose(aws, *NAMED)
            aws.set_model_servers({"*": HEALTHY})
        with step(6, "Change one setting, see the difference, deploy it"):
            say(f"{words}, in a copy of {settings.name}")
            cdk.run("diff", "--output", assembly, "-c", f"settings={changed}")
            # Deploys exactly what the diff has shown.
            cdk.run("deploy", "--all", "--require-approval", "never", "--app", assembly)
            after = {name: read_deployed(aws.client, name) for name in before}
            show_changes(before, after)
        with step(7, "Destroy"):
            cdk.run("destroy", "--all", "--force", "--app", assembly)
            if left := [*deployed_stacks(aws), *aws.leftovers()]:
                raise StepFailed("resources are left", left, f"The log: {aws.log_path}")
            say("Nothing is left: no stack, no resource.")
    with step(8, "Stop the local AWS"):
        if answers(aws.url) or cdk.still_running():
            raise StepFailed("a process is left", [aws.url, *map(str, cdk.still_running())], "")
        say("No process is left.")


def answers(url: str) -> bool:
    """Whether something still listens there."""
    try:
        urlopen(url, timeout=2).close()
    except URLError as error:
        return not isinstance(error.reason, ConnectionRefusedError)
    return True


def main() -> int:
    """Run the demo; the exit status is 0 only when every step did what it should."""
    parser = argparse.ArgumentParser(description="Deploy, change and destroy in a local AWS.")
    parser.add_argument("--settings", type=Path, default=ROOT / "endpoint.yaml")
    settings = parser.parse_args().settings.resolve()
    signal.signal(signal.SIGTERM, _interrupt)
    started = time.monotonic()
    folder = tempfile.mkdtemp(prefix="low-latency-demo-")
    # Every temporary file of every process below goes there, and goes with it.
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    keep = False
    try:
        life_of_the_stack(settings, Path(folder))
    except StepFailed as failure:
        keep = True  # for the log, which the advice names
        return report(failure.what, failure.output[-8:], failure.advice)
    except SettingsError as error:
        return report(f"{settings.name} has mistakes", str(error).splitlines(), "Mend the file.")
    except (LocalAwsError, LowLatencyEndpointError) as error:
        return report("the step above did not work", str(error).splitlines(), "")
    except FileNotFoundError as error:
        return report(f"{error.filename} is missing", [], "`make setup` installs the tools.")
    except KeyboardInterrupt:
        console.print("\nInterrupted. Nothing is left running.")
        return 130
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    console.print(
        f"\n[bold]Done in {time.monotonic() - started:.0f} s.[/bold] "
        "The same on your AWS account: make deploy, make diff, make destroy."
    )
    return 0


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


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
