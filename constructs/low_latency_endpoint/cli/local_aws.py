"""``low-latency local-aws``: the command `local-sagemaker`, of the project in local_sagemaker/."""

from __future__ import annotations

import typer

from .output import say


def local_aws(context: typer.Context) -> None:
    """Run a local AWS until Ctrl-C; nothing leaves this machine.

    Runs the command `local-sagemaker` with the arguments that follow; `local-sagemaker --help`
    describes them.

    \b
    Examples:
      low-latency local-aws --port 5000
      low-latency local-aws --model-server '*=simulated' --clock-speed 60
      low-latency local-aws --model-server 'team/ranker=python serve.py --fast'
      low-latency local-aws add-model-server 'team/ranker=python serve.py'
      low-latency local-aws add-image \\
        123456789012.dkr.ecr.us-east-1.amazonaws.com/team/ranker:1
    """
    from local_sagemaker import cli

    cli.say = say
    # Its usage errors are raised, to be printed as those of all commands are.
    code = cli.app(context.args, prog_name="low-latency local-aws", standalone_mode=False)
    raise typer.Exit(code or 0)
