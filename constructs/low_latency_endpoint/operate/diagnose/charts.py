"""The chart of a variant: one time axis for traffic, latency, utilization, errors and events."""

from __future__ import annotations

from collections.abc import Mapping

from ...account.metrics import MetricSeries, Series
from ...report.charts import Chart, Line, Panel
from ...report.colours import PALETTE
from .diagnosis import Diagnosis
from .measurements import VariantReading
from .view import VariantView

_EVENT_COLOURS = {"deployment": "purple", "scaling": "green", "alarm": "red"}
_ROWS = 12  # lines of one panel that can still be told apart


def chart(diagnosis: Diagnosis, variant: VariantReading) -> Chart:
    """All panels of one variant that have data.

    Findings are shaded from their first evidence to their last; events are vertical lines.
    """
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
            (f"{statistic} {limit.value:g} ms", limit.value)
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
