"""The diagnosis as one self-contained HTML page.

Needs the ``report`` extra (Jinja2).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...report.pages import Code, FindingCard, Listed, Part, Section, Soft
from ...report.pages import page as page_of
from .breakdown import breakdown
from .charts import chart
from .diagnosis import Diagnosis
from .findings import Finding
from .measurements import Measurements, VariantReading
from .options import PAGE_WRITTEN
from .terminal import (
    CLOUDWATCH_LACKS,
    alarms_text,
    breakdown_table,
    events_table,
    evidence_text,
    split_table,
    variant_line,
    verdict,
    window_text,
)

_TONES = {"high": "bad", "medium": "careful", "low": "soft"}


def page(diagnosis: Diagnosis) -> str:
    """The page's text; it loads nothing from anywhere."""
    m = diagnosis.measurements
    found = [_finding(each, m) for each in diagnosis.findings]
    parts: list[Part] = [Section("Findings", found)] if found else []
    parts += [_variant(diagnosis, each) for each in m.variants]
    if diagnosis.events:
        parts.append(Section("What happened", [events_table(diagnosis.events, "%Y-%m-%d %H:%M")]))
    parts.append(
        Section(
            "What was looked at",
            [
                Listed([f"Unknown: {each.what} ({each.why})" for each in m.unknown]),
                Listed(
                    [*(f"No data: {text}" for text in m.absent), *_looked_at(m), CLOUDWATCH_LACKS],
                    soft=True,
                ),
            ],
        )
    )
    said = verdict(diagnosis)
    minutes = m.period.total_seconds() / 60
    return page_of(
        f"{m.endpoint}: {said}",
        parts,
        head=m.endpoint,
        verdict=said,
        under=", ".join(
            filter(None, (m.region, m.status, window_text(m), f"periods of {minutes:g} min"))
        ),
        tone="good" if diagnosis.healthy else "bad",
    )


def write_page(diagnosis: Diagnosis, path: Path) -> None:
    """Write the page."""
    text = page(diagnosis)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PAGE_WRITTEN.error(
            got=f"{path}: {error.strerror or error}", allowed="a file"
        ) from error


def _finding(finding: Finding, m: Measurements) -> FindingCard:
    shown = [" ".join(filter(None, evidence_text(each, m))) for each in finding.evidence]
    parts: list[Part] = [
        Soft(" > ".join(filter(None, (finding.variant, *finding.path)))),
        Listed(shown),
    ]
    if finding.changes:
        parts += ["In endpoint.yaml:", Code([(each.text, each.why) for each in finding.changes])]
    if finding.besides:
        parts.append(finding.besides)
    return FindingCard(
        f"{finding.id} {finding.kind.title}",
        finding.id,
        "careful" if finding.risk else "bad",
        parts,
        [
            (f"confidence {finding.confidence}", _TONES[finding.confidence]),
            *([("risk", "careful")] if finding.risk else []),
        ],
        finding.kind.source,
    )


def _variant(diagnosis: Diagnosis, variant: VariantReading) -> Section:
    m = diagnosis.measurements
    parts: list[Part] = ["No request in the window."]
    if variant.get("Invocations", "Sum").sum:
        parts = [
            split_table(m, variant),
            Soft(
                "Percentiles are means over the periods, weighted by requests; CloudWatch has none for "
                "OverheadLatency."
            ),
        ]
        parts += [
            breakdown_table(word, breakdown(of))
            for word, of in (("zone", variant.zones), ("instance", variant.instances))
            if of
        ]
    made = chart(diagnosis, variant)
    return Section(variant_line(variant, m.period), [*parts, *([made] if made else [])])


def _looked_at(m: Measurements) -> Iterator[str]:
    yield from alarms_text(m)
    if m.plan:
        peak = f" for {m.plan.peak_tps:,.0f} requests a second" if m.plan.peak_tps else ""
        yield f"Planned by stack {m.plan.stack}{peak}"
