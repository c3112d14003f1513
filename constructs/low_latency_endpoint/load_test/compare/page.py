"""The comparison as one self-contained HTML page.

Needs Jinja2, of the ``load-test`` extra.
"""

from __future__ import annotations

from pathlib import Path

from ...plan.capacity import counted_instances
from ...report.charts import Chart, Line, Panel, nines
from ...report.pages import Listed, Part, Section, page
from ...report.tables import Table
from ..search.result_file import write_text
from .comparison import STATISTICS
from .published import PublishedComparison
from .report import RoutingComparison

_COLOURS = ("red", "blue")


def comparison_page(report: RoutingComparison) -> str:
    """The page of one comparison; it loads nothing from anywhere."""
    plan = report.plan
    parts: list[Part] = []
    if report.changes:
        parts = [
            Section(title, [chart])
            for title, chart in (
                (f"{report.sides.labels[1]} against {report.sides.labels[0]}", _changes(report)),
                ("p99, block by block", _pairs(report)),
                ("Latency by percentile", _percentiles(report)),
            )
        ]
    sides = Table(
        ["", "Variant", "Instances", "Type", "Routing"],
        [
            [
                label,
                side.name,
                str(side.fleet.instances or "?"),
                side.fleet.instance_type or "?",
                side.fleet.routing or "?",
            ]
            for label, side in zip(report.sides.labels, report.sides, strict=True)
        ],
        align="l",
    )
    parts += [
        Section("All blocks of each side together", [report.table()]),
        Section("Sides", [sides]),
        Section(
            "Assumed",
            [
                Listed(
                    [
                        f"{len(report.pairs)} pairs of blocks of {plan['block_seconds']:g} s, each after "
                        f"{plan['settle_seconds']:g} s that do not count; the order turns from pair to pair",
                        f"{report.load}; payload: {report.payload or 'unknown'}",
                        "neighbouring blocks are independent: they are much longer than requests queue",
                        f"each interval holds with {plan['confidence'] * 100:g} % on its own (Student's law "
                        "over the pairs, each left out once)",
                        "would have seen: a difference of this size is found in four of five such tests",
                        *(f"unknown: {each}" for each in report.sides.unknown),
                    ],
                    soft=True,
                )
            ],
        ),
    ]
    return _page(
        f"Routing of {' and '.join(dict.fromkeys(s.endpoint for s in report.sides))}", report, parts
    )


def published_page(report: PublishedComparison) -> str:
    """The page of the published sizes."""
    parts: list[Part] = [Section("By size", [report.table()])]
    parts += [
        Section(f"{counted_instances(size)} on each side", [one.table()])
        for size, one in report.rows
    ]
    parts.append(
        Section(
            "Assumed",
            [
                Listed(
                    [
                        "four users for each instance, as published",
                        "the published figures are AWS's, of CodeGen2-7B on ml.g5.24xlarge",
                    ],
                    soft=True,
                )
            ],
        )
    )
    return _page("The published comparison of routing strategies, measured", report, parts)


def write_page(report: RoutingComparison | PublishedComparison, path: Path) -> None:
    """Write the page.

    Raises
    ------
    ConfigurationError
        ``LLT115`` when the file cannot be written.
    """
    write_text(
        path,
        published_page(report)
        if isinstance(report, PublishedComparison)
        else comparison_page(report),
    )


def _page(title: str, report: RoutingComparison | PublishedComparison, parts: list[Part]) -> str:
    return page(
        title,
        [*(f"Careful: {each}" for each in report.warnings), *parts],
        verdict=report.sentence,
        tone="none" if report.valid else "bad",
    )


def _changes(report: RoutingComparison) -> Chart:
    """Each statistic's change with its interval, beside no change at all."""
    names = [name for name in STATISTICS if name in report.changes]
    found = [report.changes[name] for name in names]
    return Chart(
        "changes",
        [
            Panel(
                "Change",
                [
                    Line(
                        "change",
                        names,
                        [100 * each.change for each in found],
                        "blue",
                        "marks",
                        marks=["●" if each.found else "○" for each in found],
                        notes=[
                            f"{name}: {100 * each.change:+.1f} %"
                            for name, each in zip(names, found, strict=True)
                        ],
                        low=[100 * each.low for each in found],
                        high=[100 * each.high for each in found],
                    )
                ],
                " %",
                [("", 0.0)],
            )
        ],
        "names",
        "A ring: no difference that this test can tell",
        240,
    )


def _pairs(report: RoutingComparison) -> Chart:
    """p99 of each block in the order of time: what drifted, and what one pair says."""
    start = min(each.started_at for pair in report.pairs for each in pair.results)
    lines = []
    for at, label in enumerate(report.sides.labels):
        results = [pair.results[at] for pair in report.pairs]
        lines.append(
            Line(
                label,
                [((each.started_at + each.ended_at) / 2 - start) / 60 for each in results],
                [
                    1000 * each.latency.percentile(99) if each.latency.count else None
                    for each in results
                ],
                _COLOURS[at],
                marks=["●"] * len(results),
            )
        )
    return Chart("pairs", [Panel("p99", lines, " ms")], title="minutes", height=240)


def _percentiles(report: RoutingComparison) -> Chart:
    """Latency by percentile, the rarer the wider."""
    lines = []
    for at, label in enumerate(report.sides.labels):
        latencies = report.pooled(at)
        ranks = nines(latencies.count, 4.0)
        values = latencies.quantiles([1 - 10**-each for each in ranks])
        lines.append(Line(label, ranks, [1000 * each for each in values], _COLOURS[at]))
    return Chart("percentiles", [Panel("Latency", lines, " ms")], "nines", "Percentile", 240)
