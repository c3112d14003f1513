"""A report: what fails comes first, with its fix; what passes is named, and told with ``-v``."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from ...report.tables import Hanging
from .checks import Report, Result, Status

_STYLES = {
    Status.FAIL: "bold red",
    Status.WARN: "yellow",
    Status.UNKNOWN: "magenta",
    Status.PASS: "green",
}
_INDENT = 8


def report_table(
    report: Report, *, quiet: bool = False, verbose: bool = False
) -> list[RenderableType]:
    """How many of each there are, failures, warnings, what is unknown, and what passes."""
    place = ", ".join(filter(None, (report.what, report.account, report.region)))
    parts: list[RenderableType] = [Text(place, style="bold"), _summary(report)]
    passing: dict[str, None] = {}
    wrong = {each.id for each in report.results if each.status is not Status.PASS}
    for status in _STYLES:
        for each in (one for one in report.results if one.status is status):
            if status is not Status.PASS or (verbose and not quiet):
                parts += [Text(""), *_told(each, verbose)]
            elif not quiet and each.id not in wrong:
                passing[f"{each.id} {each.title}"] = None
    if passing:
        style = _STYLES[Status.PASS]
        parts += [Text(""), *(Hanging(name, "PASS", style, _INDENT) for name in passing)]
    if report.zones and not quiet:
        named = ", ".join(f"{name} {zone_id}" for name, zone_id in sorted(report.zones.items()))
        parts += [Text(""), Text(f"Zones of this account: {named}", style="dim")]
    return parts


def _told(result: Result, verbose: bool) -> Iterator[RenderableType]:
    title = f"{result.id} {result.title}" + (f": {result.subject}" if result.subject else "")
    yield Hanging(title, result.status.upper(), _STYLES[result.status], _INDENT)
    yield Hanging(result.evidence, indent=_INDENT)
    if result.fix:
        yield Hanging(f"Fix: {result.fix}", indent=_INDENT)
    if result.source and verbose:
        yield Hanging(result.source, indent=_INDENT)


def _summary(report: Report) -> Text:
    text = Text()
    for number, status in enumerate(_STYLES):
        count = report.counts[status]
        text.append(", " if number else "")
        text.append(f"{count} {status}", style=_STYLES[status] if count else "dim")
    bad = [each.id for each in report.results if each.status is Status.FAIL]
    if bad:
        text.append(f": fix {', '.join(dict.fromkeys(bad))}")
    return text
