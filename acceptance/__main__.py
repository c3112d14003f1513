"""``python -m acceptance run`` and ``sweep``; `make accept` and `make accept-sweep` call these."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from low_latency_endpoint.hugging_face import HUB

from .estimate import estimate, prices_of
from .evidence import FOLDER
from .hub_model import HubModel
from .run import NotThisRun, run_steps
from .steps import CHOICES, Pace, steps_of
from .sweep import sweep
from .world import ONE_TRY, ROOT, CdkCli, World, target_of

_BUILD = ROOT / "build" / "acceptance"


class Refused(Exception):
    """Nothing was started, and why."""


def _account(text: str) -> str:
    if len(text) != 12 or not text.isdigit():
        raise argparse.ArgumentTypeError(f"twelve digits, not {text!r}")
    return text


def _region(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("a Region, such as us-east-2")
    return text


def _arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m acceptance", description="Prove the library's claims in an AWS account."
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="deploy, update, break and destroy two small endpoints")
    run.add_argument("--budget", type=float, required=True, help="US dollars it may cost at most")
    run.add_argument("--yes", action="store_true", help="start: without it, only say what it costs")
    run.add_argument("--long", action="store_true", help="with the optional steps")
    told = "of the Hugging Face Hub (HF_ENDPOINT): docs/reference/seen-on-aws.md says which"
    run.add_argument("--hub-model", required=True, metavar="MODEL", help=told)
    told = "two of its commits, tags or branches: the first is deployed, the second is its update"
    names = ("FIRST", "SECOND")
    run.add_argument("--hub-revisions", required=True, nargs=2, metavar=names, help=told)
    told = "of the steps between deploy and destroy only this; may be repeated"
    steps = [step.name for step in CHOICES]
    run.add_argument("--only", action="append", default=[], choices=steps, help=told)
    run.add_argument("--keep", action="store_true", help="sweep nothing when a step fails")
    told, path = "what remembers the run (build/acceptance/state.json)", _BUILD / "state.json"
    run.add_argument("--state", type=Path, default=path, help=told)
    for name, value in vars(Pace()).items():
        option, told = f"--{name.replace('_', '-')}-minutes", f"by default {value:g}"
        run.add_argument(option, type=float, default=value, help=told)
    clean = verbs.add_parser("sweep", help="delete by tag what runs have left")
    clean.add_argument("--suffix", help="of one run; by default of all in account and Region")
    for each in (run, clean):
        each.add_argument("--account", type=_account, required=True, help="that of the credentials")
        each.add_argument("--region", type=_region, required=True)
        each.add_argument(
            "--clock-speed", type=float, default=1.0, help="of a local AWS's clock; refused at AWS"
        )
    return parser.parse_args(given)


def _world(given: argparse.Namespace) -> World:
    """The account, if it is the one that was named."""
    session = boto3.Session(region_name=given.region)
    clients: dict[str, Any] = {}

    def client(service: str) -> Any:
        if service not in clients:
            config = ONE_TRY if service == "sagemaker-runtime" else None
            clients[service] = session.client(service, config=config)
        return clients[service]

    target = target_of(client("sts"))
    if target == "aws" and given.clock_speed != 1:
        raise Refused("AWS's clock has one speed: leave out --clock-speed.")
    try:
        found = client("sts").get_caller_identity()["Account"]
    except (BotoCoreError, ClientError) as error:
        raise Refused(f"no credentials that work: {error}") from None
    if found != given.account:
        raise Refused(f"the credentials are account {found}'s, not {given.account}'s.")
    hub = None
    if given.verb == "run":
        (first, second), mirror = given.hub_revisions, os.environ.get("HF_ENDPOINT")
        hub = HubModel(given.hub_model, (first, second), mirror or HUB, str(_BUILD))
    deployer = CdkCli(found, given.region, _BUILD, hub)
    return World(client, found, given.region, target, deployer, given.clock_speed, hub)


def _run(given: argparse.Namespace) -> int:
    world = _world(given)
    steps = steps_of(long=given.long, only=given.only)
    prices = prices_of(boto3.client("pricing", region_name="us-east-1"), given.region)
    told = estimate(steps, prices)
    print(
        f"account {world.account}, {world.region} ({world.target}): about {told.hours:.1f} h, "
        f"{told.dollars:.2f} USD"
    )
    for line in (*told.lines, *(f"{s.name:<13} {s.minutes:>3.0f} min  {s.asserts}" for s in steps)):
        print(f"  {line}")
    if told.dollars > given.budget:
        raise Refused(f"{told.dollars:.2f} USD are above the budget of {given.budget:.2f} USD.")
    if not given.yes:
        raise Refused("add --yes to start.")
    pace = Pace(**{name: getattr(given, f"{name}_minutes") for name in vars(Pace())})
    folder = FOLDER if world.target == "aws" else _BUILD / "evidence"
    try:
        return run_steps(
            world,
            given.state,
            steps,
            pace=pace,
            evidence_folder=folder,
            keep=given.keep,
            say=lambda text: print(text, flush=True),
        )
    except NotThisRun as error:
        raise Refused(str(error)) from None


def main(given: list[str] | None = None) -> int:
    """Run one verb; 0 when all went as it should, 2 when nothing was started."""
    arguments = _arguments(given)
    try:
        if arguments.verb == "run":
            return _run(arguments)
        left = sweep(_world(arguments), arguments.suffix, print)
    except Refused as refused:
        print(f"Not started: {refused}", file=sys.stderr)
        return 2
    except (BotoCoreError, ClientError) as error:
        print(f"{error}\nThe same command goes on; `sweep` deletes all.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted. The same command goes on; `sweep` deletes all.", file=sys.stderr)
        return 130
    for line in left:
        print(f"left: {line}")
    print("Nothing is left." if not left else f"{len(left)} are left: sweep again later.")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
