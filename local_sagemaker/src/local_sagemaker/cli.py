"""The command ``local-sagemaker``."""

from __future__ import annotations

import contextlib
import shlex
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from . import __version__

if TYPE_CHECKING:
    from .server import LocalAws

_SERVER = (
    "Model server of endpoints with this image (URI, repository, or pattern with *): simulated, "
    "language-model (streams tokens), a URL on loopback, a command such as 'python serve.py', a "
    "script with SageMaker's model_fn, or a JSON file."
)

say: Callable[..., None] = typer.echo
"""How texts are printed; a command line that has this one within it may print in its own way."""

app = typer.Typer(
    name="local-sagemaker",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; the entry point of ``local-sagemaker``."""
    app()


def _version(wanted: bool) -> None:
    if wanted:
        say(f"local-sagemaker {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def serve(
    context: typer.Context,
    port: Annotated[
        int,
        typer.Option(
            min=0, max=65535, metavar="PORT", help="Port on loopback; 0 takes a free one."
        ),
    ] = 0,
    region: Annotated[
        str, typer.Option(metavar="REGION", help="Region of the AWS variables.")
    ] = "us-east-1",
    model_server: Annotated[
        list[str] | None,
        typer.Option(
            metavar="IMAGE=SERVER",
            help=f"{_SERVER} Can be repeated. Without it endpoints echo the request and are neither "
            "measured nor scaled.",
        ),
    ] = None,
    image: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URI",
            help="Container image in its registry (ECR), as if it had been pushed. Can be repeated.",
        ),
    ] = None,
    clock_speed: Annotated[
        float,
        typer.Option(
            min=0,
            max=10_000,
            metavar="FACTOR",
            help="How much faster than real time cold starts, cooldowns, alarms and deployments "
            "run.",
        ),
    ] = 1,
    behave: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OPTION=VALUE",
            help="Behaviour that AWS leaves open, such as endpoint_handler=compares; docs/limits.md "
            "lists all. Can be repeated. The defaults are the worst that AWS documents or its users "
            "report.",
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Run a local AWS until Ctrl-C; nothing leaves this machine.

    Prints the environment variables for the AWS CLI, boto3 and the CDK CLI, and to standard error
    the URL of the interface endpoint in each zone.

    \b
    Examples:
      local-sagemaker --port 5000
      local-sagemaker --model-server '*=simulated' --clock-speed 60
      local-sagemaker --model-server 'team/ranker=ranker.json'
      local-sagemaker --model-server 'team/ranker=python serve.py --fast'
      local-sagemaker --image \\
        123456789012.dkr.ecr.us-east-1.amazonaws.com/team/ranker:1
      local-sagemaker --behave unchanged_configuration=deployed
    """
    if context.invoked_subcommand is not None:
        return

    say("# Starting", err=True)
    with _explained():
        from .images import check_image
        from .model_servers import parse_model_server
        from .runtime.options import RuntimeOptions
        from .separate_process import serve_until
        from .server import LocalAwsError, check_region

        with _refusing("--region"):
            check_region(region)
        with _refusing("--model-server"):
            servers = dict(parse_model_server(one) for one in model_server or ())
        with _refusing("--image"):
            for uri in image or ():
                check_image(uri)
        with _refusing("--behave"):
            options = RuntimeOptions.of_texts(behave or ())
        with _refusing("--clock-speed"):
            options = replace(options, model_servers=servers, clock_speed=clock_speed)
        try:
            serve_until(
                _stopped_by_signals(), region, port, options, partial(_announce, image or ())
            )
        except LocalAwsError as error:
            say(str(error), err=True)
            raise typer.Exit(2) from None


def _announce(images: Sequence[str], aws: LocalAws) -> None:
    """Add the images, and print what clients of the local AWS need."""
    for uri in images:
        aws.add_image(uri)
    for name, value in aws.exports().items():
        say(f"export {name}={shlex.quote(value)}")
    zones = aws.client("ec2").describe_availability_zones()["AvailabilityZones"]
    for zone in sorted(zone["ZoneId"] for zone in zones):
        say(f"# Callers in {zone}: {aws.runtime_url(zone)}", err=True)
    say(
        f"# Serving at {aws.url}, log in {aws.log_path}, what model servers write in "
        f"{aws.model_server_folder}; Ctrl-C stops it and forgets everything.",
        err=True,
    )


def _stopped_by_signals() -> threading.Event:
    """Give what Ctrl-C, SIGTERM and SIGHUP set, from the seconds of the start on."""
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stopped.set())
    return stopped


@app.command("add-model-server")
def add_model_server(
    model_server: Annotated[list[str], typer.Argument(metavar="IMAGE=SERVER", hidden=True)],
) -> None:
    """Add model servers to a running local AWS.

    New instances have them. Simulated ones that run take other settings of their kind at once; what
    else runs stays until it is replaced. Says which endpoints change now, and which keep theirs.

    IMAGE=SERVER is the same as for --model-server. Set the variables that `local-sagemaker` printed
    first. Commands run in the current folder.

    \b
    Example:
      local-sagemaker add-model-server 'team/ranker=python serve.py'
    """
    with _explained():
        from .model_servers import parse_model_server

        with _refusing("IMAGE=SERVER"):
            servers = dict(parse_model_server(one) for one in model_server)
        with _running() as aws:
            told = aws.add_model_servers(servers)
    say(f"New instances with {', '.join(servers)} have this model server.", err=True)
    for name in told["changed"]:
        say(f"{name} has it from now on.", err=True)
    for name in told["kept"]:
        say(
            f"{name} keeps what runs until its instances are replaced: update the endpoint to "
            "another configuration, or create it anew.",
            err=True,
        )


@app.command("add-image")
def add_image(uri: Annotated[list[str], typer.Argument(metavar="URI", hidden=True)]) -> None:
    """Add images to the registry of a running local AWS, as if they had been pushed.

    URI is the image's URI in ECR. Set the variables that `local-sagemaker` printed first.

    \b
    Example:
      local-sagemaker add-image \\
        123456789012.dkr.ecr.us-east-1.amazonaws.com/team/ranker:1
    """
    with _explained():
        from .images import check_image

        with _refusing("URI"):
            for one in uri:
                check_image(one)
        with _running() as aws:
            for one in uri:
                aws.add_image(one)


@contextlib.contextmanager
def _running() -> Iterator[LocalAws]:
    """Give the local AWS of the environment; says so when there is none, or not any more."""
    from .server import LocalAws, LocalAwsError

    try:
        with LocalAws.of_environment() as aws:
            yield aws
    except LocalAwsError as error:
        say(str(error), err=True)
        raise typer.Exit(2) from None


@contextlib.contextmanager
def _refusing(what: str) -> Iterator[None]:
    """Say of which option or argument a value is wrong."""
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=what) from None


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Say which package is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "moto").partition(".")[0]
        say(
            f"The local AWS needs {package}, which its wheel brings: install it with its dependencies",
            err=True,
        )
        raise typer.Exit(2) from None
