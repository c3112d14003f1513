"""The comparison as one self-contained HTML page.

Needs plotly, of the ``load-test`` extra.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..planning.simulation.charts import page
from ..planning.simulation.published import PUBLISHED_P99_CUT, PUBLISHED_THROUGHPUT_GAIN
from .compare_routing_published import PublishedComparison
from .compare_routing_report import RoutingComparison
from .comparison import STATISTICS
from .result_file import write_text

__all__ = ["comparison_page", "published_page", "write_page"]

# Okabe and Ito's colours, told apart by people with colour blindness too
_COLOURS = ("#D55E00", "#0072B2")
_INK, _BAND = "#1f2937", "rgba(0, 158, 115, 0.18)"
_POINTS, _MOST_NINES = 160, 4.0


def comparison_page(report: RoutingComparison) -> str:
    """The page of one comparison; it loads nothing from anywhere."""
    plan = report.plan
    charts = [_changes(report), _pairs(report), _percentiles(report)] if report.changes else []
    sides = [("Sides", ["", "Variant", "Instances", "Type", "Routing"], [
        [label, side.name, str(side.fleet.instances or "?"), side.fleet.instance_type or "?",
         side.fleet.routing or "?"]
        for label, side in zip(report.sides.labels, report.sides, strict=True)])]
    return page(
        f"Routing of {' and '.join(dict.fromkeys(side.endpoint for side in report.sides))}",
        [report.sentence, *(f"Careful: {each}" for each in report.warnings)],
        [("All blocks of each side together", *report.table()), *sides], charts,
        [f"{len(report.pairs)} pairs of blocks of {plan['block_seconds']:g} s, each after "
         f"{plan['settle_seconds']:g} s that do not count; the order turns from pair to pair",
         f"{report.load}; payload: {report.payload or 'unknown'}",
         "neighbouring blocks are independent: they are much longer than requests queue",
         f"each interval holds with {plan['confidence'] * 100:g} % on its own (Student's law over "
         "the pairs, each left out once)",
         "would have seen: a difference of this size is found in four of five such tests",
         *(f"unknown: {each}" for each in report.sides.unknown)])


def published_page(report: PublishedComparison) -> str:
    """The page of the published sizes."""
    rows = [(f"{size} instance{'s' if size > 1 else ''} on each side", *one.table())
            for size, one in report.rows]
    return page(
        "The published comparison of routing strategies, measured",
        [report.sentence, *(f"Careful: {each}" for each in report.warnings)],
        [("By size", *report.table()), *rows], [_by_size(report)] if report.rows else [],
        ["four users for each instance, as published", "the published figures are AWS's, of "
         "CodeGen2-7B on ml.g5.24xlarge"])


def write_page(report: RoutingComparison | PublishedComparison, path: Path) -> None:
    """Write the page.

    Raises
    ------
    ConfigurationError
        ``LLE957`` when the file cannot be written.
    """
    write_text(path, published_page(report) if isinstance(report, PublishedComparison)
               else comparison_page(report))


def _figure(title: str, **layout: Any) -> Any:
    import plotly.graph_objects as go

    return go.Figure().update_layout(
        title={"text": title, "x": 0, "xref": "paper", "font": {"size": 16}},
        template="plotly_white", margin={"l": 90, "r": 30, "t": 60, "b": 60},
        legend={"orientation": "h", "y": -0.2}, font={"family": "system-ui, sans-serif"},
        **{"height": 400, **layout})


def _changes(report: RoutingComparison) -> Any:
    """Each statistic's change with its interval, beside no change at all."""
    base, other = report.sides.labels
    figure = _figure(f"{other} against {base}", height=320, xaxis_title="change in %")
    names = [name for name in reversed(STATISTICS) if name in report.changes]
    found = [report.changes[name] for name in names]
    figure.add_scatter(
        x=[100 * each.change for each in found], y=names, mode="markers", showlegend=False,
        marker={"size": 10, "color": [_COLOURS[1] if each.found else "#9ca3af" for each in found]},
        error_x={"type": "data", "symmetric": False, "thickness": 2, "width": 6,
                 "color": _INK,
                 "array": [100 * (each.high - each.change) for each in found],
                 "arrayminus": [100 * (each.change - each.low) for each in found]},
        hovertemplate="%{y}: %{x:+.1f} %<extra></extra>")
    figure.add_vline(0, line_color=_INK, line_width=1)
    return figure


def _pairs(report: RoutingComparison) -> Any:
    """p99 of each block in the order of time: what drifted, and what one pair says."""
    figure = _figure("p99, block by block", xaxis_title="minutes", yaxis_title="milliseconds")
    start = min(each.started_at for pair in report.pairs for each in pair.results)
    for at, label in enumerate(report.sides.labels):
        results = [pair.results[at] for pair in report.pairs]
        figure.add_scatter(
            x=[((each.started_at + each.ended_at) / 2 - start) / 60 for each in results],
            y=[1000 * each.latency.percentile(99) if each.latency.count else None
               for each in results],
            name=label, mode="lines+markers", line={"color": _COLOURS[at], "width": 1.5},
            hovertemplate="%{y:,.4~g} ms<extra>" + label + "</extra>")
    return figure.update_yaxes(rangemode="tozero")


def _percentiles(report: RoutingComparison) -> Any:
    """Latency by percentile, the rarer the wider."""
    ticks = [(0.0, "0"), (math.log10(2), "p50"), (1.0, "p90"), (2.0, "p99"), (3.0, "p99.9"),
             (4.0, "p99.99")]
    figure = _figure("Latency by percentile", yaxis_title="milliseconds")
    figure.update_xaxes(tickvals=[at for at, _ in ticks], ticktext=[name for _, name in ticks])
    for at, label in enumerate(report.sides.labels):
        latencies = report.pooled(at)
        nines = list(_nines(latencies.count))
        values = latencies.quantiles(1 - 10 ** -each for each in nines)
        figure.add_scatter(
            x=nines, y=[1000 * each for each in values], name=label, mode="lines",
            line={"color": _COLOURS[at], "width": 2},
            text=[f"p{100 * (1 - 10 ** -each):.4g}" for each in nines],
            hovertemplate="%{text}: %{y:,.4~g} ms<extra>" + label + "</extra>")
    return figure


def _nines(count: int) -> Iterator[float]:
    """Ranks evenly on the axis of nines, up to the last sample but one."""
    most = min(_MOST_NINES, math.log10(max(count, 2)))
    return (most * number / _POINTS for number in range(_POINTS + 1))


def _by_size(report: PublishedComparison) -> Any:
    """Both gains by the number of instances, over what was published."""
    figure = _figure("Gain of the other routing by instances of each side",
                     xaxis_title="instances of each side", yaxis_title="gain in %", height=460)
    for low, high, name in ((*PUBLISHED_P99_CUT, "p99 shorter, published"),
                            (*PUBLISHED_THROUGHPUT_GAIN, "throughput, published")):
        figure.add_hrect(y0=100 * low, y1=100 * high, fillcolor=_BAND, line_width=0,
                         annotation_text=name, annotation_position="top left")
    for at, (name, statistic, sign) in enumerate((("p99 shorter", "p99", -1),
                                                  ("more throughput", "throughput", 1))):
        found = [(size, one.changes[statistic]) for size, one in report.rows
                 if statistic in one.changes]
        upper = [100 * (max(sign * each.low, sign * each.high) - sign * each.change)
                 for _, each in found]
        lower = [100 * (sign * each.change - min(sign * each.low, sign * each.high))
                 for _, each in found]
        figure.add_scatter(
            x=[size for size, _ in found], y=[100 * sign * each.change for _, each in found],
            name=name, mode="lines+markers", line={"color": _COLOURS[at]},
            error_y={"type": "data", "symmetric": False, "array": upper, "arrayminus": lower},
            hovertemplate="%{x} instances: %{y:.1f} %<extra>" + name + "</extra>")
    return figure.update_yaxes(rangemode="tozero")
