"""``low-latency preflight``: would this settings file deploy and work in this account?"""

from __future__ import annotations

from dataclasses import dataclass

import typer

from .checks import CheckOptions, with_progress
from .options import ENDPOINT_YAML, Region, SettingsFile, grouped, option


@dataclass
class PreflightOptions(CheckOptions):
    """The same, and whether to wait."""

    region: Region = None
    wait: str | None = option(
        "If a scaling action is running on the deployed endpoint, wait up to this long, such as "
        "15m. Default: do not wait.",
        metavar="TIME",
    )


@grouped
def preflight(options: PreflightOptions, settings: SettingsFile = ENDPOINT_YAML) -> None:
    """Check an account before a deploy: zones, network, quotas, image, model, permissions.

    Changes nothing. Checks that the credentials may not read are "unknown", never "pass".

    \b
    Exit codes:
      0  nothing fails; there may be warnings and unknown results
      1  something fails; with --strict also a warning or an unknown result
      2  invalid settings file, or AWS cannot be reached

    \b
    Examples:
      low-latency preflight --quiet
      low-latency preflight --settings production.yaml --profile production
      low-latency preflight --wait 15m
      low-latency preflight --json | jq '.results[] | select(.status == "fail")'
    """
    from ..settings import load_settings
    from .load_inputs import seconds_of

    longest = seconds_of(options.wait, "--wait") if options.wait is not None else 0.0
    loaded = load_settings(settings)
    from ..account.sessions import open_clients
    from ..operate.preflight import run_preflight
    from ..operate.preflight.update_checks import wait_for_endpoints

    client, chosen = open_clients(options.profile, options.region, loaded.region)
    if longest:
        wait_for_endpoints(
            loaded,
            client,
            chosen,
            seconds=longest,
            on_wait=lambda text: typer.echo(
                f"{text}: waiting up to {options.wait} for it to be InService", err=True
            ),
        )
    report = with_progress(
        lambda on_check: run_preflight(
            loaded, client, chosen, what=str(settings), on_check=on_check
        )
    )
    options.finish(report)
