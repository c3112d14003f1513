"""What ``low-latency preflight`` and ``low-latency verify`` share: progress, output, exit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from .output import print_json, print_parts, progress_on_terminal

if TYPE_CHECKING:
    from ..operations.checking.results import Report

__all__ = ["finish", "needs_operations", "with_progress"]

OnCheck = Callable[[str, int, int], None]


@contextmanager
def needs_operations() -> Iterator[None]:
    """Say which extra to install when boto3 is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("boto3", "botocore"):
            raise
        typer.echo(f"This command needs {package}, which is not installed: "
                   "pip install 'cdk-low-latency-endpoint[operations]'", err=True)
        raise typer.Exit(2) from None


def with_progress(run: Callable[[OnCheck], Report]) -> Report:
    """Run checks; on a terminal, a line on standard error says which one is running."""
    with progress_on_terminal("Asking AWS") as progress:
        return run(lambda title, done, count: progress(f"{done}/{count} {title}"))


def finish(report: Report, *, json: bool, quiet: bool, strict: bool, verbose: bool) -> None:
    """Print the report and leave with its exit status."""
    if json:
        print_json(report.to_dict())
    else:
        from ..operations.checking.tables import report_table

        print_parts(*report_table(report, quiet=quiet, verbose=verbose))
    raise typer.Exit(report.exit_status(strict=strict))
