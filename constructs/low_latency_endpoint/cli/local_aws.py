"""``low-latency local-aws``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..local_aws import LocalAws


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("local-aws")(local_aws)


def local_aws(
    port: Annotated[int, typer.Option(help="Port on loopback; 0 takes a free one.")] = 0,
    region: Annotated[str, typer.Option(help="Region of the AWS variables.")] = "us-east-1",
) -> None:
    """Run a local AWS until Ctrl-C; nothing leaves this machine.

    Prints the variables that point the AWS CLI, boto3 and the CDK CLI at it.

    \b
    Example:
      low-latency local-aws --port 5000
    """
    def announce(aws: LocalAws) -> None:
        for name, value in aws.exports().items():
            typer.echo(f"export {name}={value}")
        typer.echo(f"# Serving at {aws.url}, log in {aws.log_path}; "
                   "Ctrl-C stops it and forgets everything.", err=True)

    try:
        from ..local_aws import LocalAwsError
        from ..local_aws.foreground import serve_until_stopped

        try:
            serve_until_stopped(region, port, announce)
        except LocalAwsError as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(1) from None
    except ModuleNotFoundError as error:
        package = (error.name or "moto").partition(".")[0]
        typer.echo(f"The local AWS needs {package}, which is not installed: "
                   "pip install 'cdk-low-latency-endpoint[local]'", err=True)
        raise typer.Exit(2) from None
