"""A report as one table, good at 80 and at 120 columns."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from .checks import Report, Result, Status

_STYLES = {
    Status.PASS: "green",
    Status.WARN: "yellow",
    Status.FAIL: "bold red",
    Status.UNKNOWN: "magenta",
}


def report_table(
    report: Report, *, quiet: bool = False, verbose: bool = False
) -> list[RenderableType]:
    """The rows in the order of the checks, and below them how many of each there are."""
    place = ", ".join(filter(None, (report.what, report.account, report.region)))
    table = Table(
        title=Text(place),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        expand=True,
    )  # ratios need expand
    table.add_column("Status", no_wrap=True)
    table.add_column("Check", ratio=3, overflow="fold")
    table.add_column("Found", ratio=5, overflow="fold")
    shown = [each for each in report.results if not quiet or each.status is not Status.PASS]
    for each in shown:
        styled = (each.status.upper(), _STYLES[each.status])
        status = Text.assemble(styled, "\n", (each.id, "dim"))
        table.add_row(status, _check(each), Text("\n").join(_found(each, verbose)))
    parts: list[RenderableType] = [table] if shown else [Text(place, style="bold")]
    if report.zones and not quiet:
        named = ", ".join(f"{name} {zone_id}" for name, zone_id in sorted(report.zones.items()))
        parts.append(Text(f"Zones of this account: {named}", style="dim"))
    parts.append(_summary(report))
    return parts


def _check(result: Result) -> Text:
    text = Text(result.title)
    if result.subject:
        text.append(f"\n{result.subject}", style="cyan")
    return text


def _found(result: Result, verbose: bool) -> Iterator[Text]:
    yield Text(result.evidence)
    if result.fix:
        yield Text.assemble(("Fix: ", "bold"), result.fix)
    if result.source and verbose:
        yield Text(result.source, style="dim")


def _summary(report: Report) -> Text:
    counts = report.counts
    text = Text("\n")
    for number, status in enumerate(Status):
        count = counts[status]
        text.append(", " if number else "")
        text.append(f"{count} {status}", style=_STYLES[status] if count else "dim")
    bad = [each.id for each in report.results if each.status is Status.FAIL]
    if bad:
        text.append(f": fix {', '.join(dict.fromkeys(bad))}")
    return text
