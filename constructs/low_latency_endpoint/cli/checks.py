"""What ``low-latency preflight`` and ``low-latency verify`` share: progress, output, exit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from .options import Json, Markdown, Profile, Quiet, Strict, flag
from .output import print_document, print_json, progress_on_terminal

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
    quiet: Quiet = False
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
