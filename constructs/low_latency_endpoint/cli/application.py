"""The commands together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from .. import __version__
from . import (
    compare_routing,
    deployed,
    diagnose,
    errors,
    init,
    load_test,
    local_aws,
    optimize,
    pin,
    plan,
    preflight,
    prices,
    recommend,
    schema,
    simulate,
    stage,
    verify,
)
from .options import Command
from .process import interruptible

app = typer.Typer(
    name="low-latency",
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
    "preflight": preflight.preflight,
    "verify": verify.verify,
    "simulate": simulate.simulate,
    "load-test": load_test.load_test,
    "compare-routing": compare_routing.compare_routing,
    "recommend": recommend.recommend,
    "optimize": optimize.optimize,
    "stage": stage.stage,
    "schema": schema.schema,
    "errors": errors.errors,
    "diagnose": diagnose.diagnose,
    "list": deployed.list_,
}
for name, command in COMMANDS.items():
    app.command(name, cls=Command)(command)
local_aws.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"low-latency {__version__}")
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
    """Low-latency Amazon SageMaker endpoints: plan them, explain them, try them out.

    \b
    Examples:
      low-latency init                             start a CDK app, or add to one
      low-latency plan                             every number of the stack, with its reason
      low-latency plan --against deployed.yaml     what a change of the settings does
      low-latency plan --against main              what the changes of a branch do
      low-latency preflight                        would it deploy and work in this account?
      low-latency verify                           is what is deployed as planned?
      low-latency list                             what is deployed, and its dashboards
      low-latency diagnose sentiment               slow? where the time goes, what to change
      low-latency load-test sentiment --tps 100    load it, and say what limits it
      low-latency simulate                         what another strategy or fleet would do
      low-latency errors LLE604                    what a code means
      low-latency local-aws                        a local AWS to deploy into

    Commands read endpoint.yaml; --settings FILE names another settings file.
    """
    interruptible()
