"""The commands together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from .. import __version__
from . import (
    checks,
    compare_routing,
    deployed,
    diagnose,
    errors,
    init,
    load_test,
    local_aws,
    pin,
    plan,
    prices,
    sagemaker_jobs,
    simulate,
    stage,
)
from .options import Command, Commands
from .output import say
from .process import interruptible

app = typer.Typer(
    name="low-latency",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: readable at any width and when piped, and quicker
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS: dict[str, Callable[..., None]] = {
    "init": init.init,
    "plan": plan.plan,
    "prices": prices.prices,
    "pin": pin.pin,
    "preflight": checks.preflight,
    "verify": checks.verify,
    "simulate": simulate.simulate,
    "load-test": load_test.load_test,
    "compare-routing": compare_routing.compare_routing,
    "recommend": sagemaker_jobs.recommend,
    "optimize": sagemaker_jobs.optimize,
    "stage": stage.stage,
    "schema": init.schema,
    "errors": errors.errors,
    "diagnose": diagnose.diagnose,
    "list": deployed.list_,
}
for name, command in COMMANDS.items():
    app.command(name, cls=Command)(command)
app.command(
    "local-aws",
    context_settings={
        "allow_extra_args": True,
        "allow_interspersed_args": False,
        "ignore_unknown_options": True,
    },
)(local_aws.local_aws)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"low-latency {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Plan, check, load-test and diagnose low-latency Amazon SageMaker endpoints.

    \b
    Examples:
      low-latency init                         # start a CDK app, or add to one
      low-latency plan                         # what the stack will be, and why
      low-latency plan --against old.yaml      # what a change of settings does
      low-latency plan --against main          # what a branch changes
      low-latency preflight                    # would it deploy in this account?
      low-latency verify                       # does the stack match its plan?
      low-latency list                         # what is deployed, and dashboards
      low-latency diagnose sentiment           # why is it slow, what to change?
      low-latency load-test sentiment --tps 9  # load it, and find what limits it
      low-latency simulate                     # predict another fleet or routing
      low-latency errors LLE604                # explain a code
      low-latency local-aws                    # run a local AWS to deploy into

    Commands read endpoint.yaml; --settings FILE names another settings file.
    """
    interruptible()
