"""``low-latency dashboard``."""

from __future__ import annotations

from datetime import timedelta
from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from .options import Json, Profile, Region, Since, Until
from .output import print_json, progress_on_terminal


def dashboard(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Of an endpoint, a stack or a dashboard.", show_default=False
        ),
    ],
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="To write: .svg, .png or .pdf, or .json for Grafana.",
            show_default=False,
        ),
    ],
    since: Since = "3h",
    until: Until = None,
    json: Json = False,
    profile: Profile = None,
    region: Region = None,
) -> None:
    """Draw a CloudWatch dashboard with its data into a file, or write it for Grafana.

    \b
    Exit codes:
      0  written
      2  usage, there is no such dashboard, or AWS could not be read

    \b
    Examples:
      low-latency dashboard sentiment last-night.png --since 12h
      low-latency dashboard sentiment night.svg --since 2h --until 2026-11-20T03:30Z
      low-latency dashboard sentiment grafana.json
    """
    from ..account.calls import Account
    from ..account.clock import account_now
    from ..account.deployed_endpoints import dashboard_named
    from ..account.sessions import aws_errors_in_words, open_clients
    from ..operate.dashboard_data import read_dashboard_body
    from ..operate.dashboard_picture import draw_dashboard
    from ..operate.diagnose.options import parse_window
    from ..operate.grafana import grafana_dashboard

    with aws_errors_in_words(), progress_on_terminal(f"Reading {name}"):
        account = Account(*open_clients(profile, region))
        start, end = parse_window(since, until, account_now())
        found = dashboard_named(account, name)
        body = read_dashboard_body(account, found)
        if file.suffix == ".json":
            window = (
                (start.isoformat(), end.isoformat())
                if until
                else (f"now-{(end - start) // timedelta(minutes=1)}m", "now")
            )
            twin = grafana_dashboard(body, found, since=window[0], until=window[1])
            file.write_text(dumps(twin, indent=2) + "\n")
        else:
            draw_dashboard(account, body, file, start=start, end=end)
    if json:
        print_json({"dashboard": found, "file": str(file)})
    else:
        typer.echo(f"wrote {file}")
