"""The whole life of the stack in a local AWS: check, deploy, call, diagnose, change, destroy.

Run it with ``make demo``. It needs no AWS account and can reach none: the CDK CLI, its app and
boto3 get an environment that knows only the local AWS, with credentials that no account has. The
CLI is the one of ``package-lock.json``, unmodified; ``make deploy`` runs the same against AWS.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from urllib.error import URLError
from urllib.request import urlopen

from examples.demo_state import State, changes_table, state
from examples.demo_surroundings import (
    changed_settings,
    model_uris,
    refuse_what_only_your_account_has,
    region_of,
    stand_ins_for_images,
    uploaded,
)
from examples.demo_terminal import (
    ROOT,
    CdkCli,
    StepFailed,
    console,
    low_latency,
    report,
    say,
    show,
    step,
)
from examples.demo_traffic import (
    CLOCK_SPEED,
    FULL,
    HEALTHY,
    ONE_SLOW,
    STEADY,
    TRAFFIC_SECONDS,
    diagnose,
    endpoint_names,
    lower_the_maximum,
    traffic,
    warm_up_reports,
)
from local_sagemaker import LocalAws, LocalAwsError
from local_sagemaker.connections import ACCOUNT
from local_sagemaker.runtime.options import RuntimeOptions
from low_latency_endpoint.errors import LowLatencyEndpointError, SettingsError
from low_latency_endpoint.settings import load_settings

LOAD_TEST_PAGE = ROOT / "build" / "demo-load-test.html"

STEPS = 12
CLOCK_SPEED_OF_DEPLOYS = 300
"""20 minutes are four seconds, which is what one can watch."""


@contextlib.contextmanager
def faster(aws: LocalAws) -> Iterator[None]:
    """While instances start and old ones bake, of which there is nothing to see."""
    aws.set_clock_speed(CLOCK_SPEED_OF_DEPLOYS)
    try:
        yield
    finally:
        aws.set_clock_speed(CLOCK_SPEED)


def deployed_stacks(aws: LocalAws) -> list[str]:
    """Names of the stacks that are there, without the CDK's own."""
    answer = aws.client("cloudformation").describe_stacks()["Stacks"]
    return sorted(s["StackName"] for s in answer if s["StackName"] != "CDKToolkit")


def waits_for_interfaces(aws: LocalAws, stack_ids: dict[str, str]) -> list[str]:
    """How long each deleted stack waited for SageMaker's network interfaces."""
    found = []
    for name, stack_id in stack_ids.items():
        events = aws.client("cloudformation").describe_stack_events(StackName=stack_id)
        moments = [
            event["Timestamp"]
            for event in events["StackEvents"]
            if event["ResourceType"] == "Custom::DrainedInterfaces"
            and event["ResourceStatus"].startswith("DELETE")
        ]
        minutes = (max(moments) - min(moments)).total_seconds() * CLOCK_SPEED_OF_DEPLOYS / 60
        found.append(f"{name} waited {minutes:.0f} minutes for network interfaces")
    return found


def show_changes(before: dict[str, State], after: dict[str, State]) -> None:
    """Print every deployed value that the update changed; none is a failure."""
    table = changes_table(before, after)
    if not table.row_count:
        raise StepFailed("the update changed nothing that is deployed", [], "See cdk diff above.")
    show(table)


def near(path: Path) -> str:
    """A path as one would type it in the project's folder."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def life_of_the_stack(settings: Path, folder: Path) -> None:
    """The steps."""
    assembly = str(folder / "cdk.out")
    # Mistakes in the file show up at once, not after the bootstrap.
    loaded = load_settings(settings)
    refuse_what_only_your_account_has(loaded, ACCOUNT)
    changed = changed_settings(settings, folder)
    numbers = itertools.count(1)

    def next_step(title: str) -> contextlib.AbstractContextManager[None]:
        return step(next(numbers), STEPS, title)

    with contextlib.ExitStack() as stopped_at_the_end:
        with next_step("Start the local AWS"):
            aws = stopped_at_the_end.enter_context(
                LocalAws.start(
                    region=region_of(loaded),
                    model_servers={"*": HEALTHY},
                    runtime=RuntimeOptions(
                        clock_start=time.time() - 24 * 3600, clock_speed=CLOCK_SPEED
                    ),
                    log_path=folder / "local-aws.log",
                )
            )
            say(f"{aws.url}  account {aws.account}  region {aws.region}")
            say(f"log: {aws.log_path}")
            for uri in stand_ins_for_images(aws, loaded):
                say(f"in the registry, where AWS has it: {uri}")
        cdk = CdkCli(aws, folder)
        with next_step("Prepare the account, then preflight: would it deploy, and work?"):
            model = contextlib.ExitStack()
            model.enter_context(uploaded(aws, model_uris(loaded), loaded.alarm_topic_arn))
            for uri in model_uris(loaded):
                say(f"uploaded, for the model: {uri}")
            if loaded.alarm_topic_arn:
                say(f"created, for the alarms: {loaded.alarm_topic_arn}")
            # Outside the project, bootstrapping needs no synthesis.
            cdk.run("bootstrap", f"aws://{aws.account}/{aws.region}", cwd=folder)
            low_latency(aws, "preflight", "--settings", near(settings), "--quiet", expected=0)
        with next_step("Deploy with the CDK CLI"), faster(aws):
            cdk.run(
                "deploy",
                "--all",
                "--require-approval",
                "never",
                "--output",
                assembly,
                "-c",
                f"settings={near(settings)}",
            )
            for warm_up in warm_up_reports(aws):
                first, last = (
                    max(zone[part]["p99"] for zone in warm_up["zones"].values())
                    for part in ("first", "last")
                )
                say(
                    f"warm-up of {warm_up['endpoint']} before the stack was complete: "
                    f"{warm_up['requests']} requests, p99 {first:.0f} ms at first, {last:.0f} ms "
                    "at last"
                )
        with next_step("What is deployed"):
            before = {name: state(aws, name) for name in deployed_stacks(aws)}
            low_latency(aws, "list")
            say(
                "It starts with the instances that the peak needs, and scaling has gone down to the "
                "fewest since: nobody calls yet."
            )
        with next_step("Traffic, then: is it as planned, is it well?"):
            sent = traffic(aws, TRAFFIC_SECONDS)
            say(
                f"{sent.requests} requests in {TRAFFIC_SECONDS} s, which are "
                f"{TRAFFIC_SECONDS * CLOCK_SPEED // 60} minutes by the local AWS's clock"
            )
            low_latency(aws, "verify", *before, "--quiet", expected=0)
            diagnose(aws, sent.until, "Nothing found")
        with next_step("A load test in two steps"):
            (name, *_) = endpoint_names(aws)
            LOAD_TEST_PAGE.parent.mkdir(exist_ok=True)
            aws.set_model_servers({"*": STEADY})
            low_latency(
                aws,
                "load-test",
                name,
                "--settings",
                near(settings),
                "--tps",
                "20",
                "--tps",
                "40",
                "--duration",
                "8s",
                "--target",
                "p50=100ms",  # seconds are too short to judge the p99 of the settings
                "--alone",
                "0s",
                "--metrics-wait",
                "0s",
                "--html",
                str(LOAD_TEST_PAGE.relative_to(ROOT)),
            )
            aws.set_model_servers({"*": HEALTHY})
            say(f"its page: {LOAD_TEST_PAGE.relative_to(ROOT)}")
            say("Without CloudWatch's side, whose clock runs faster here than the load test's.")
        with next_step("Fault: the fleet is full, and somebody has set its maximum by hand"):
            say(
                f"the model takes fifteen times as long, one request at a time; the maximum is now "
                f"{lower_the_maximum(aws)} instances"
            )
            aws.set_model_servers({"*": FULL})
            sent = traffic(aws, TRAFFIC_SECONDS)
            say(f"{sent.requests} requests")
            diagnose(aws, sent.until, "1. LLD704")
            aws.set_model_servers({"*": HEALTHY})
            say("as the diagnosis says: a deployment that puts back what was changed by hand")
            with faster(aws):
                cdk.run(
                    "deploy",
                    "--all",
                    "--revert-drift",
                    "--require-approval",
                    "never",
                    "--app",
                    assembly,
                )
            low_latency(aws, "verify", *before, "--quiet", expected=0)
        with next_step("Change two settings, see the difference, deploy it"):
            say(f"routing: random, metrics.enhanced: true; in a copy of {settings.name}")
            cdk.run("diff", "--output", assembly, "-c", f"settings={changed}")
            # Deploys exactly what the diff has shown.
            with faster(aws):
                cdk.run("deploy", "--all", "--require-approval", "never", "--app", assembly)
            after = {name: state(aws, name) for name in before}
            show_changes(before, after)
        with next_step("Fault: one instance is slow, and routing is RANDOM"):
            aws.set_model_servers({"*": ONE_SLOW})
            sent = traffic(aws, TRAFFIC_SECONDS)
            say(f"{sent.requests} requests")
            diagnose(aws, sent.until, "LLD501")
            aws.set_model_servers({"*": HEALTHY})
        with next_step("What preflight finds: we remove model and alarm topic on purpose"):
            model.close()
            low_latency(aws, "preflight", "--settings", near(settings), "--quiet", expected=1)
        with next_step("Destroy"):
            aws.set_clock_speed(CLOCK_SPEED_OF_DEPLOYS)
            say(
                "SageMaker's network interfaces outlive the endpoint, and the stack waits for "
                "them: here they stay for 20 minutes, by a clock that now runs "
                f"{CLOCK_SPEED_OF_DEPLOYS} times faster; on AWS nobody has timed it yet"
            )
            described = aws.client("cloudformation").describe_stacks()["Stacks"]
            ids = {s["StackName"]: s["StackId"] for s in described if s["StackName"] in before}
            begun = aws.runtime_time()
            cdk.run("destroy", "--all", "--force", "--app", assembly)
            minutes = (aws.runtime_time() - begun).total_seconds() / 60
            say(
                f"destroyed after {minutes:.0f} minutes by the local AWS's clock; "
                f"{', '.join(waits_for_interfaces(aws, ids))}"
            )
            if left := [*deployed_stacks(aws), *aws.leftovers()]:
                raise StepFailed("resources are left", left, f"The log: {aws.log_path}")
            say("Nothing is left: no stack, no resource.")
    with next_step("Stop the local AWS"):
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
        return report(f"{settings.name} has mistakes", str(error).splitlines(), "Fix the file.")
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
        "The same on your AWS account: make bootstrap, make deploy, make diff, make destroy."
    )
    return 0


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
