"""What ``low-latency preflight`` and ``low-latency verify`` share: progress, output, exit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from .output import print_json, print_parts, progress_on_terminal

if TYPE_CHECKING:
    from ..operate.checking.results import Report

OnCheck = Callable[[str, int, int], None]


def with_progress(run: Callable[[OnCheck], Report]) -> Report:
    """Run checks; on a terminal, a line on standard error says which one is running."""
    with progress_on_terminal("Asking AWS") as progress:
        return run(lambda title, done, count: progress(f"{done}/{count} {title}"))


def finish(report: Report, *, json: bool, quiet: bool, strict: bool, verbose: bool) -> None:
    """Print the report and leave with its exit status."""
    if json:
        print_json(report.to_dict())
    else:
        from ..operate.checking.tables import report_table

        print_parts(*report_table(report, quiet=quiet, verbose=verbose))
    raise typer.Exit(report.exit_status(strict=strict))
