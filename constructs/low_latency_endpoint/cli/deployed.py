"""``low-latency list``."""

from __future__ import annotations

import typer

from .options import Json, Markdown, Profile, Region
from .output import print_json, print_parts, progress_on_terminal


def list_(
    json: Json = False, markdown: Markdown = False, profile: Profile = None, region: Region = None
) -> None:
    """List the endpoints that this library has deployed in a Region, with their dashboards.

    Reads only. An endpoint is listed if its stack's template holds a plan of this library.

    \b
    Exit codes:
      0  listed
      2  usage, or AWS could not be read

    \b
    Examples:
      low-latency list
      low-latency list --region eu-west-1 --json
    """
    from ..account.calls import Account
    from ..account.deployed_endpoints import deployed_endpoints
    from ..account.sessions import aws_errors_in_words, open_clients
    from ..report.tables import Table

    client, found_in = open_clients(profile, region)
    with aws_errors_in_words(), progress_on_terminal(f"Reading {found_in}"):
        found = deployed_endpoints(Account(client, found_in))
    if json:
        print_json({"region": found_in, "endpoints": [each.to_dict() for each in found]})
        return
    if not found:
        typer.echo(f"This library has deployed no endpoint in {found_in}.")
        return
    rows = [(each.endpoint, each.status, "\n".join(each.variants), each.stack) for each in found]
    # Names that CloudFormation made are long: below the table they stay whole.
    dashboards = [
        f"Dashboard of {each.endpoint}: {each.dashboard_url or each.dashboard or 'none'}"
        for each in found
    ]
    table = Table(("Endpoint", "Status", "Instances", "Stack"), rows, align="l")
    print_parts(table, *(dashboards if markdown else ()), markdown=markdown)
    if not markdown:
        typer.echo("\n".join(dashboards))
        typer.echo(f"Next: low-latency diagnose {found[0].endpoint}")
