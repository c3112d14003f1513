"""What must be confirmed before a run starts: whose account it is, and what the run may cost."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from low_latency_endpoint.hugging_face import HUB

from .estimate import estimate, prices_of
from .hub_model import HubModel
from .steps import Step
from .world import BUILD, ONE_TRY, CdkCli, World, target_of

_NEEDED = ("account", "region", "budget", "hub_model", "hub_revisions")


class NotConfirmed(Exception):
    """Why the run does not start."""


def named_world(options: argparse.Namespace) -> World:
    """Return the account of the credentials, if it is the one that the options name.

    The first request of a run asks STS whose account it is.
    """
    for name in _NEEDED:
        if getattr(options, name) is None:
            raise NotConfirmed(f"--{name.replace('_', '-')} is missing.")
    session = boto3.Session(region_name=options.region)
    sts = session.client("sts")
    target = target_of(sts)
    if target == "aws" and options.clock_speed != 1:
        raise NotConfirmed("AWS's clock has one speed: leave out --clock-speed.")
    if target == "aws" and "CI" in os.environ:
        raise NotConfirmed("the environment has CI: no CI job runs this at AWS.")
    try:
        account = sts.get_caller_identity()["Account"]
    except (BotoCoreError, ClientError) as error:
        raise NotConfirmed(f"no credentials that work: {error}") from None
    if account != options.account:
        raise NotConfirmed(f"the credentials are account {account}'s, not {options.account}'s.")
    deployer = CdkCli(account, options.region, BUILD, named_hub_model(options))
    speed = options.clock_speed
    return World(_clients(session), account, options.region, target, deployer, speed)


def named_hub_model(options: argparse.Namespace) -> HubModel:
    """Return the model of the Hub that the options name."""
    endpoint = os.environ.get("HF_ENDPOINT") or HUB
    return HubModel(options.hub_model, options.hub_revisions, endpoint, str(BUILD))


def confirm_cost(options: argparse.Namespace, world: World, steps: Iterable[Step]) -> None:
    """Print what the steps cost; refuse it above the budget, and without ``--yes``."""
    steps = list(steps)
    prices = prices_of(boto3.client("pricing", region_name="us-east-1"), world.region)
    cost = estimate(steps, prices)
    print(
        f"\naccount {world.account}, {world.region} ({world.target}): about {cost.hours:.1f} h, "
        f"{cost.dollars:.2f} USD"
    )
    for line in cost.lines:
        print(f"  {line}")
    for step in steps:
        print(f"  {step.name:<13} {step.minutes:>3.0f} min")
    if cost.dollars > options.budget:
        told = f"{cost.dollars:.2f} USD are above the budget of {options.budget:.2f} USD."
        raise NotConfirmed(told)
    if not options.yes:
        raise NotConfirmed("add --yes to start.")


def _clients(session: boto3.Session) -> Callable[[str], Any]:
    """Return a function that makes one client for each service."""
    clients: dict[str, Any] = {}

    def client(service: str) -> Any:
        if service not in clients:
            config = ONE_TRY if service == "sagemaker-runtime" else None
            clients[service] = session.client(service, config=config)
        return clients[service]

    return client
