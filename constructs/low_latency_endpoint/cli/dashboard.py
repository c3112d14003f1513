"""``low-latency dashboard``: the dashboard as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import Profile, Region
from .output import progress_on_terminal


def dashboard(
    name: Annotated[str, typer.Argument(help="The dashboard's name.", show_default=False)],
    picture: Annotated[
        Path, typer.Argument(help="File to write: .svg, .png or .pdf.", show_default=False)
    ],
    hours: Annotated[float, typer.Option(help="How far back, in hours.", min=0.1, max=72)] = 3,
    profile: Profile = None,
    region: Region = None,
) -> None:
    """Draw a CloudWatch dashboard with its data into a file.

    \b
    Examples:
      low-latency dashboard LowLatencyEndpoint-sentimentDashboard last-night.png --hours 12
    """
    from datetime import timedelta

    from ..account.calls import Account
    from ..account.clock import account_now
    from ..account.sessions import aws_errors_in_words, open_clients
    from ..operate.dashboard_data import read_dashboard_body
    from ..operate.dashboard_picture import draw_dashboard

    with aws_errors_in_words(), progress_on_terminal(f"Reading and drawing {name}"):
        account = Account(*open_clients(profile, region))
        end = account_now()
        draw_dashboard(
            account,
            read_dashboard_body(account, name),
            picture,
            start=end - timedelta(hours=hours),
            end=end,
        )
    typer.echo(f"wrote {picture}")
