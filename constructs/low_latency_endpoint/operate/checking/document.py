"""A report: what fails comes first, with its fix; what passes is named, and told with ``-v``."""

from __future__ import annotations

from ...report.document import Document, Entry, Part, Section, Sentence, Tone
from .checks import Report, Result, Status

_TONES: dict[Status, Tone] = {
    Status.FAIL: "bad",
    Status.WARN: "careful",
    Status.UNKNOWN: "other",
    Status.PASS: "good",
}


def document(report: Report, *, quiet: bool = False, verbose: bool = False) -> Document:
    """How many of each there are, failures, warnings, what is unknown, and what passes."""
    parts: list[Part] = []
    passing: dict[str, None] = {}
    wrong = {result.id for result in report.results if result.status is not Status.PASS}
    for status in _TONES:
        for each in (result for result in report.results if result.status is status):
            if status is not Status.PASS or (verbose and not quiet):
                parts.append(_told(each, verbose))
            elif not quiet and each.id not in wrong:
                passing[f"{each.id} {each.title}"] = None
    if passing:
        parts.append(Section("", [Entry("PASS", "good", name) for name in passing]))
    if report.zones and not quiet:
        names = ", ".join(f"{name} {zone_id}" for name, zone_id in sorted(report.zones.items()))
        parts.append(Section("", [Sentence(f"Zones of this account: {names}", "soft")]))
    worst = next((status for status in _TONES if report.counts[status]), Status.PASS)
    return Document(
        report.what,
        parts,
        ", ".join(filter(None, (report.account, report.region))),
        _summary(report),
        _TONES[worst],
    )


def _told(result: Result, verbose: bool) -> Entry:
    title = f"{result.id} {result.title}" + (f": {result.subject}" if result.subject else "")
    fix = f"Fix: {result.fix}" if result.fix else ""
    lines = (result.evidence, fix, result.source if verbose else "")
    return Entry(
        result.status.upper(), _TONES[result.status], title, [line for line in lines if line]
    )


def _summary(report: Report) -> str:
    text = ", ".join(f"{report.counts[status]} {status}" for status in _TONES)
    bad = [result.id for result in report.results if result.status is Status.FAIL]
    return f"{text}: fix {', '.join(dict.fromkeys(bad))}" if bad else text
