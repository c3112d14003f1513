"""``low-latency verify``: is the deployed stack as planned?"""

from __future__ import annotations

from typing import Annotated

import typer

from .checks import CheckOptions, with_progress
from .options import OptionalSettings, Region, grouped


@grouped
def verify(
    options: CheckOptions,
    stack: Annotated[
        str | None,
        typer.Argument(
            metavar="STACK",
            help="Name of the CloudFormation stack, or of an endpoint in it. Default: the stack of "
            "the settings file.",
        ),
    ] = None,
    settings: OptionalSettings = None,
    region: Region = None,
) -> None:
    """Check a deployed stack against its plan: zones, DNS, TLS, policy, scaling, alarms.

    Changes nothing. DNS names and TLS can be checked only from inside the VPC: run it there, once
    in each client zone. From outside they are "unknown".

    \b
    Exit codes:
      0  nothing fails; there may be warnings and unknown results
      1  something fails; with --strict also a warning or an unknown result
      2  the stack does not exist, or AWS cannot be reached

    \b
    Examples:
      low-latency verify
      low-latency verify LowLatencyEndpoint --region us-east-1 --strict --json
    """
    from ..account.sessions import open_clients
    from ..operate.verify import run_verification

    if stack is None or settings is not None:
        from ..settings import load_settings
        from .chosen_endpoints import usual_settings

        loaded = load_settings(
            settings or usual_settings("verify", options.profile, region, stacks=True)
        )
        stack, region = stack or loaded.stack_name, region or loaded.region
    name = stack
    client, chosen = open_clients(options.profile, region)
    report = with_progress(
        lambda on_check: run_verification(name, client, chosen, on_check=on_check)
    )
    options.finish(report)
