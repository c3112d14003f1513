"""``low-latency diagnose``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Html, Json, Profile, Region, grouped, option
from .output import console_for_people, print_json, progress_on_terminal
from .process import check_packages

if TYPE_CHECKING:
    from ..operate.diagnose import Diagnosis


@dataclass
class DiagnosisOptions:
    """Which window, against which target, and what is written."""

    since: str = option("Length of the window: 30m, 1h, 2d.", "1h", metavar="TIME")
    until: str | None = option(
        "End of the window, such as 2026-11-20T03:30Z; now without it.", metavar="TIME"
    )
    target: list[str] | None = option(
        "How long callers may wait, such as p99=200ms. Default: the thresholds of the "
        "endpoint's alarms, or its stack's plan.",
        metavar="STAT=TIME",
    )
    client_latency: list[str] | None = option(
        "What callers measured, such as p99=240ms.", metavar="STAT=TIME"
    )
    html: Html = None
    json: Json = False
    profile: Profile = None
    region: Region = None


@grouped
def diagnose(
    endpoint: Annotated[str, typer.Argument(show_default=False, help="Name of the endpoint.")],
    options: DiagnosisOptions,
) -> None:
    """Explain why an endpoint is slow or failing. Reads only.

    Splits the time into client, overhead and model, walks AWS's decision tree, and says what to
    change in endpoint.yaml. What the credentials may not read is reported as unknown.

    Exit codes: 0 nothing found, 1 findings, 2 usage, or AWS could not be read.

    \b
    Examples:
      low-latency diagnose sentiment
      low-latency diagnose sentiment --since 2h --until 2026-11-20T03:30Z
      low-latency diagnose sentiment --target p99=200ms --client-latency p99=240ms
      low-latency diagnose sentiment --html report.html --profile production
    """
    if options.html is not None:
        check_packages("boto3", "jinja2")
        _writable(options.html)
    made = _diagnose(endpoint, options)
    if options.html is not None:
        from ..operate.diagnose.page import write_page

        with progress_on_terminal("Page"):
            write_page(made, options.html)
        typer.echo(f"wrote {options.html}", err=True)
    if options.json:
        print_json(made.to_dict())
    else:
        from ..operate.diagnose.terminal import print_report

        with console_for_people() as console:
            print_report(console, made)
    if not made.healthy:
        raise typer.Exit(1)


def _diagnose(endpoint: str, options: DiagnosisOptions) -> Diagnosis:
    from ..account.clock import account_now
    from ..account.sessions import open_clients
    from ..operate.diagnose import diagnose
    from ..operate.diagnose.options import (
        CLIENT_LATENCY_FORM,
        TARGET_FORM,
        parse_latencies,
        parse_window,
    )

    now = account_now()
    start, end = parse_window(options.since, options.until, now)
    targets = parse_latencies(options.target or (), TARGET_FORM)
    measured = parse_latencies(options.client_latency or (), CLIENT_LATENCY_FORM)
    client, region = open_clients(options.profile, options.region)
    with progress_on_terminal(f"Reading {endpoint}") as progress:
        return diagnose(
            client,
            endpoint,
            start=start,
            end=end,
            now=now,
            region=region,
            targets=targets,
            client_latency=measured,
            progress=progress,
        )


def _writable(path: Path) -> None:
    """Say before the reading that the page cannot be written."""
    if path.is_dir() or not path.parent.is_dir():
        typer.echo(
            f"{path} cannot be written: "
            + ("it is a folder" if path.is_dir() else f"{path.parent} is no folder"),
            err=True,
        )
        raise typer.Exit(2)
