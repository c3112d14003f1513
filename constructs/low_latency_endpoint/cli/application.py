"""The commands together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from .. import __version__
from . import (
    check_pull_request,
    compare_instance_types,
    compare_routing,
    dashboard,
    diagnose,
    errors,
    init,
    load_test,
    local_aws,
    optimize,
    package,
    pin,
    plan,
    preflight,
    prices,
    recommend,
    recommend_generative,
    schema,
    simulate,
    stage,
    verify,
)
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
    "check-pull-request": check_pull_request.check_pull_request,
    "prices": prices.prices,
    "pin": pin.pin,
    "preflight": preflight.preflight,
    "verify": verify.verify,
    "simulate": simulate.simulate,
    "load-test": load_test.load_test,
    "compare-routing": compare_routing.compare_routing,
    "compare-instance-types": compare_instance_types.compare_instance_types,
    "recommend": recommend.recommend,
    "recommend-generative": recommend_generative.recommend_generative,
    "optimize": optimize.optimize,
    "stage": stage.stage,
    "package": package.package,
    "schema": schema.schema,
    "errors": errors.errors,
    "dashboard": dashboard.dashboard,
    "diagnose": diagnose.diagnose,
}
for name, command in COMMANDS.items():
    app.command(name)(command)
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
      low-latency plan endpoint.yaml               every number of the stack, with its reason
      low-latency plan a.yaml --against b.yaml     what another settings file changes
      low-latency check-pull-request --post        the same as a comment that updates itself
      low-latency prices endpoint.yaml             AWS's prices, so that the plan says dollars
      low-latency pin Qwen/Qwen3-8B                a model of the Hugging Face Hub, by its commit
      low-latency preflight endpoint.yaml          would it deploy and work in this account?
      low-latency verify LowLatencyEndpoint        is what is deployed as planned?
      low-latency diagnose sentiment               slow? where the time goes, what to change
      low-latency simulate endpoint.yaml           what another strategy or fleet would do
      low-latency recommend endpoint.yaml          which instance type? Inference Recommender
      low-latency optimize endpoint.yaml --quantize fp8   a smaller model, by SageMaker's jobs
      low-latency load-test sentiment --rate 100   load it, and say what limits it
      low-latency compare-routing sentiment --users 20   random or least outstanding requests?
      low-latency compare-instance-types *.json    which is quick, which is cheap?
      low-latency stage Qwen/Qwen3-8B --bucket models    pinned models into S3
      low-latency package endpoint.yaml -o dist/   template and assets, without the CDK
      low-latency errors LLE604                    what an error code means
      low-latency local-aws                        a local AWS to deploy into
    """
    interruptible()
