"""The diagnosis as one self-contained HTML page; needs the ``report`` extra (Jinja2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ...account.metrics import MetricSeries, Series
from ...report.charts import Chart, Line, Panel
from ...report.colours import PALETTE
from ...report.numbers import milliseconds, readable
from ...report.pages import Code, FindingCard, Listed, Part, Section, Soft, Tone
from ...report.pages import page as page_of
from .diagnosis import Diagnosis, breakdown
from .findings import Finding
from .measurements import Measurements, VariantReading
from .options import PAGE_WRITTEN
from .terminal import (
    CLOUDWATCH_LACKS,
    alarms_text,
    began,
    breakdown_table,
    events_table,
    evidence_text,
    split_table,
    variant_line,
    verdict,
    window_text,
)
from .view import VariantView

_EVENT_COLOURS = {"deployment": "purple", "scaling": "green", "alarm": "red"}
_ROWS = 12  # lines of one panel that can still be told apart


def chart(diagnosis: Diagnosis, variant: VariantReading) -> Chart:
    """All panels of one variant that have data; findings are shaded, events are vertical lines."""
    m = diagnosis.measurements
    spans = dict.fromkeys(
        finding.span
        for finding in diagnosis.findings
        if finding.span is not None and finding.variant in ("", variant.name)
    )
    return Chart(
        variant.name,
        [panel for panel in _panels(diagnosis, variant) if panel.lines],
        "time",
        ends=(m.start, m.end),
        spans=[(start, end, "red") for start, end in spans],
        events=[
            (each.time, _EVENT_COLOURS[each.kind], f"{m.clock(each.time)} {each.text}")
            for each in diagnosis.events
        ],
    )


def _panels(diagnosis: Diagnosis, variant: VariantReading) -> list[Panel]:
    view = VariantView(diagnosis.measurements, variant)
    get = variant.get

    def panel(
        title: str,
        unit: str,
        *lines: tuple[str, Series, str],
        limits: list[tuple[str, float]] | None = None,
        kind: str = "line",
    ) -> Panel:
        return Panel(
            title,
            [
                Line(
                    name,
                    series.times,
                    list(map(series.points.get, series.times)),
                    colour,
                    kind,
                    dash=name.endswith("fullest"),
                )
                for name, series, colour in lines
                if series
            ],
            unit,
            limits or (),
        )

    def thresholds(metric: str) -> list[tuple[str, float]]:
        return [
            (f"{statistic} {milliseconds(limit.value, 6)}", limit.value)
            for (name, statistic), limit in variant.thresholds.items()
            if name == metric
        ]

    scaling = variant.scaling
    return [
        panel("Requests a second", "", ("requests", view.tps, "blue"), kind="area"),
        panel(
            "ModelLatency",
            " ms",
            ("p99", get("ModelLatency", "p99"), "red"),
            ("p90", get("ModelLatency", "p90"), "orange"),
            ("p50", get("ModelLatency", "p50"), "blue"),
            limits=thresholds("ModelLatency"),
        ),
        panel("ModelLatency by instance, average", " ms", *_slowest(variant.instances)),
        panel("ModelLatency by Availability Zone, average", " ms", *_slowest(variant.zones)),
        panel(
            "OverheadLatency",
            " ms",
            ("average", get("OverheadLatency", "Average"), "blue"),
            limits=thresholds("OverheadLatency"),
        ),
        panel(
            "Utilization of the whole instance",
            " %",
            ("CPU", get("CPUUtilization", "Average"), "blue"),
            ("CPU, fullest", get("CPUUtilization", "Maximum"), "sky"),
            ("GPU", get("GPUUtilization", "Average"), "green"),
            ("memory", get("MemoryUtilization", "Average"), "purple"),
            ("disk", get("DiskUtilization", "Average"), "grey"),
        ),
        panel(
            "Instances that serve",
            "",
            ("instances", view.instances, "green"),
            kind="steps",
            limits=[("maximum", float(scaling.maximum))] if scaling and scaling.maximum else [],
        ),
        panel(
            "Invocations per instance and minute",
            "",
            ("invocations", view.load, "blue"),
            limits=[("scaling target", view.load_target)] if view.load_target else [],
        ),
        panel(
            "Requests in flight on an instance",
            "",
            ("maximum", view.in_flight, "blue"),
            limits=[("scaling target", view.concurrency_target)] if view.concurrency_target else [],
        ),
        panel(
            "Errors",
            "",
            *(
                (name, series, colour)
                for name, metric, colour in (
                    ("4XX", "Invocation4XXErrors", "orange"),
                    ("5XX", "Invocation5XXErrors", "red"),
                    ("model", "InvocationModelErrors", "purple"),
                )
                if (series := get(metric, "Sum")).sum
            ),
        ),
        panel(
            "Multi-model: requests whose model was loaded",
            "",
            ("share", get("ModelCacheHit", "Average"), "blue"),
        ),
    ]


def _slowest(parts: Mapping[str, MetricSeries]) -> list[tuple[str, Series, str]]:
    """One line for each of them, the slowest ones when there are many."""
    found = [
        (name, series.get(("ModelLatency", "Average"), Series())) for name, series in parts.items()
    ]
    slowest = sorted(found, key=lambda item: -(item[1].max or 0))[:_ROWS]
    colours = ("red", *(each for each in PALETTE if each != "red"))
    return [
        (name, series, colours[number % len(colours)])
        for number, (name, series) in enumerate(slowest)
    ]


_VERDICTS: dict[bool | None, Tone] = {True: "good", False: "bad", None: "careful"}
_TONES = {"high": "bad", "medium": "careful", "low": "soft"}


def page(diagnosis: Diagnosis) -> str:
    """The page's text; it loads nothing from anywhere."""
    m = diagnosis.measurements
    found = [_finding(each, m) for each in diagnosis.findings]
    parts: list[Part] = []
    for line in began(diagnosis):
        text, _, command = line.partition(" `")
        parts += [text, Code([(command.rstrip("`"), "")])] if command else [text]
    parts += [Section("Findings", found)] if found else []
    if diagnosis.events:
        parts.append(Section("What happened", [events_table(diagnosis.events, "%Y-%m-%d %H:%M")]))
    parts += [_variant(diagnosis, each) for each in m.variants]
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
            filter(
                None, (m.region, m.status, window_text(m), f"periods of {readable(minutes)} min")
            )
        ),
        tone=_VERDICTS[diagnosis.healthy],
    )


def write_page(diagnosis: Diagnosis, path: Path) -> None:
    text = page(diagnosis)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PAGE_WRITTEN.error(
            got=f"{path}: {error.strerror or error}", allowed="a file"
        ) from error


def _finding(finding: Finding, m: Measurements) -> FindingCard:
    shown = [" ".join(filter(None, evidence_text(each, m))) for each in finding.evidence]
    parts: list[Part] = []
    settings = [(each.text, each.why) for each in finding.changes if not each.command]
    commands = [(each.text, each.why) for each in finding.changes if each.command]
    parts += [Code(commands)] if commands else []
    parts += ["What to change in endpoint.yaml:", Code(settings)] if settings else []
    if finding.besides:
        parts.append(finding.besides)
    parts += [Soft(" > ".join(filter(None, (finding.variant, *finding.path)))), Listed(shown)]
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
