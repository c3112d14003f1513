"""``low-latency preflight`` and ``low-latency verify``: would the settings file deploy, is the stack as planned?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    ENDPOINT_YAML,
    Json,
    Markdown,
    OptionalSettings,
    Profile,
    Region,
    SettingsFile,
    Strict,
    flag,
    grouped,
    option,
)
from .output import print_document, print_json, progress_on_terminal, say

if TYPE_CHECKING:
    from ..operate.checking.checks import OnCheck, Report


def with_progress(run: Callable[[OnCheck], Report]) -> Report:
    """Run checks; on a terminal, a line on standard error says which one is running."""
    with progress_on_terminal("Asking AWS") as progress:
        return run(lambda title, done, count: progress(f"{done}/{count} {title}"))


@dataclass
class CheckOptions:
    """How an account is asked, and how the report is shown."""

    json: Json = False
    markdown: Markdown = False
    quiet: bool = flag("Omit checks that pass.", short="-q")
    strict: Strict = False
    verbose: bool = flag(
        "Also list the checks that pass, and the source of each check.", short="-v"
    )
    profile: Profile = None

    def finish(self, report: Report) -> None:
        """Print the report and leave with its exit status."""
        if self.json:
            print_json(report.to_dict())
        else:
            from ..operate.checking.document import document

            told = document(report, quiet=self.quiet, verbose=self.verbose)
            print_document(told, markdown=self.markdown)
        raise typer.Exit(report.exit_status(strict=self.strict))


@dataclass
class PreflightOptions(CheckOptions):
    """The same, who deploys, and whether to wait."""

    region: Region = None
    deploying_role: str | None = option(
        "ARN of the role with which CloudFormation makes the stack. Default: the execution role of "
        "the CDK's bootstrap, or else your own identity.",
        metavar="ARN",
    )
    wait: str | None = option(
        "If the deployed endpoint is scaling or being updated, wait up to this long, such as "
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
            on_wait=lambda text: say(
                f"{text}: waiting up to {options.wait} for it to be InService", err=True
            ),
        )
    report = with_progress(
        lambda on_check: run_preflight(
            loaded,
            client,
            chosen,
            what=str(settings),
            deploying_role=options.deploying_role,
            on_check=on_check,
        )
    )
    options.finish(report)


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
