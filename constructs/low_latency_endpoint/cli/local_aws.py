"""``low-latency local-aws``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..local_aws import LocalAws


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("local-aws")(local_aws)


def local_aws(
    port: Annotated[int, typer.Option(
        min=0, max=65535, help="Port on loopback; 0 takes a free one.")] = 0,
    region: Annotated[str, typer.Option(help="Region of the AWS variables.")] = "us-east-1",
    model_server: Annotated[list[str] | None, typer.Option(
        metavar="IMAGE=SERVER", help="What answers for endpoints with that image (URI, repository, "
        "or with *): simulated, sentiment (scikit-learn), a URL on loopback, or a JSON file. May "
        "be repeated. Without it endpoints answer with the request itself, and are neither "
        "measured nor scaled.")] = None,
    clock_speed: Annotated[float, typer.Option(
        min=0, max=10_000, help="How many times faster than real time cold starts, cooldowns, "
        "alarms and deployments pass.")] = 1,
    behave: Annotated[list[str] | None, typer.Option(
        metavar="OPTION=VALUE", help="How AWS behaves where it leaves that open, as "
        "docs/local-aws.md lists it: endpoint_handler=compares. May be repeated. The defaults are "
        "the worst that AWS documents or its users report.")] = None,
) -> None:
    """Run a local AWS until Ctrl-C; nothing leaves this machine.

    Prints the variables that point the AWS CLI, boto3 and the CDK CLI at it, and to standard error
    the URL of each zone's interface endpoint.

    \b
    Examples:
      low-latency local-aws --port 5000
      low-latency local-aws --model-server '*=simulated' --clock-speed 60
      low-latency local-aws --model-server 'team/ranker=ranker.json'
      low-latency local-aws --behave unchanged_configuration=deployed --behave interfaces_stay=60
    """
    def announce(aws: LocalAws) -> None:
        for name, value in aws.exports().items():
            typer.echo(f"export {name}={value}")
        zones = aws.client("ec2").describe_availability_zones()["AvailabilityZones"]
        for zone in sorted(each["ZoneId"] for each in zones):
            typer.echo(f"# Callers in {zone}: {aws.runtime_url(zone)}", err=True)
        typer.echo(f"# Serving at {aws.url}, log in {aws.log_path}; "
                   "Ctrl-C stops it and forgets everything.", err=True)

    try:
        from ..local_aws import LocalAwsError, RuntimeOptions
        from ..local_aws.foreground import serve_until_stopped
        from ..local_aws.model_servers import parse_model_server

        try:
            servers = dict(parse_model_server(one) for one in model_server or ())
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--model-server") from None
        try:
            options = replace(RuntimeOptions.of_texts(behave or ()), model_servers=servers)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--behave") from None
        try:
            options = replace(options, clock_speed=clock_speed)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--clock-speed") from None
        try:
            serve_until_stopped(region, port, options, announce)
        except LocalAwsError as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(1) from None
    except ModuleNotFoundError as error:
        package = (error.name or "moto").partition(".")[0]
        if package == "sklearn":
            typer.echo(str(error), err=True)
            raise typer.Exit(2) from None
        typer.echo(f"The local AWS needs {package}, which is not installed: "
                   "pip install 'cdk-low-latency-endpoint[local]'", err=True)
        raise typer.Exit(2) from None
