"""Charts of a variant: one time axis for traffic, latency, utilization, errors and events."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ...account.metrics import Series
from .diagnosis import Diagnosis
from .measurements import VariantReading
from .view import VariantView

__all__ = ["figure"]

# Okabe and Ito's colours, told apart by people with colour blindness too
_BLUE, _ORANGE, _RED, _GREEN, _GREY = "#0072B2", "#E69F00", "#D55E00", "#009E73", "#6b7280"
_SKY, _PURPLE = "#56B4E9", "#CC79A7"
_EVENT_COLOURS = {"deployment": _PURPLE, "scaling": _GREEN, "alarm": _RED}
_MEMBERS = 12  # lines of one panel that can still be told apart
_ROW = 165


@dataclass(frozen=True)
class _Line:
    name: str
    series: Series
    colour: str
    fill: bool = False
    dash: str = "solid"


@dataclass(frozen=True)
class _Panel:
    title: str
    unit: str
    lines: list[_Line]
    limits: list[tuple[str, float]]


def figure(diagnosis: Diagnosis, variant: VariantReading) -> Any:
    """All panels of one variant that have data, as a plotly figure.

    Findings are shaded from their first evidence to their last; events are vertical lines.
    """
    panels = [panel for panel in _panels(diagnosis, variant) if any(p.series for p in panel.lines)]
    if not panels:
        return None
    made = make_subplots(rows=len(panels), cols=1, shared_xaxes=True, vertical_spacing=0.24 /
                         max(len(panels), 2), subplot_titles=[p.title for p in panels])
    for row, panel in enumerate(panels, 1):
        for line in panel.lines:
            if line.series:
                made.add_trace(_trace(line, panel, row), row=row, col=1)
        for label, value in panel.limits:
            made.add_hline(y=value, row=row, col=1, line={"color": _RED, "dash": "dot", "width": 1},
                           annotation={"text": label, "font": {"size": 10, "color": _RED},
                                       "showarrow": False}, annotation_position="top left")
        highest = max([line.series.max or 0 for line in panel.lines]
                      + [value for _, value in panel.limits])
        made.update_yaxes(row=row, col=1, range=[0, 1.12 * highest or 1], ticksuffix=panel.unit,
                          gridcolor="#eceff3", zeroline=False, nticks=5)
    _events(made, diagnosis, len(panels))
    _spans(made, diagnosis, variant.name)
    m = diagnosis.measurements
    made.update_xaxes(range=[m.start, m.end], gridcolor="#eceff3", showline=True,
                      linecolor="#c9ced6")
    legends = {}
    for row in range(1, len(panels) + 1):
        axis = made.layout["yaxis" if row == 1 else f"yaxis{row}"]
        legends["legend" if row == 1 else f"legend{row}"] = {
            "x": 1.01, "xanchor": "left", "y": axis.domain[1], "yanchor": "top",
            "font": {"size": 11}, "tracegroupgap": 0, "bgcolor": "rgba(0,0,0,0)"}
    made.update_layout(
        height=90 + _ROW * len(panels), hovermode="x unified", template="plotly_white",
        margin={"l": 60, "r": 170, "t": 56, "b": 30}, font={"family": "system-ui, sans-serif",
                                                           "size": 12}, **legends)
    made.update_annotations(selector={"xref": "paper"}, font={"size": 12})
    for each in made.layout.annotations[:len(panels)]:
        each.update(x=0, xanchor="left", font={"size": 13, "color": "#1f2937"})
    return made


def _trace(line: _Line, panel: _Panel, row: int) -> Any:
    times = line.series.times
    return go.Scatter(
        x=times, y=[line.series.points[t] for t in times], name=line.name, mode="lines",
        line={"color": line.colour, "width": 1.6, "dash": line.dash},
        fill="tozeroy" if line.fill else None, fillcolor="rgba(0, 114, 178, 0.15)",
        showlegend=len(panel.lines) > 1 or panel.title == "Errors",
        legend="legend" if row == 1 else f"legend{row}",
        hovertemplate=f"%{{y:,.4~g}}{panel.unit}", connectgaps=False,
    )


def _panels(diagnosis: Diagnosis, variant: VariantReading) -> list[_Panel]:
    view = VariantView(diagnosis.measurements, variant)
    get = variant.get
    limits = {
        metric: [(f"{statistic} {limit.value:g} ms", limit.value)
                 for (name, statistic), limit in variant.thresholds.items() if name == metric]
        for metric in ("ModelLatency", "OverheadLatency")
    }
    scaling = variant.scaling
    most = [("maximum", float(scaling.maximum))] if scaling and scaling.maximum else []
    target = [("scaling target", view.load_target)] if view.load_target else []
    in_flight = [("scaling target", view.concurrency_target)] if view.concurrency_target else []
    errors = {"4XX": "Invocation4XXErrors", "5XX": "Invocation5XXErrors",
              "model": "InvocationModelErrors"}
    return [
        _Panel("Requests a second", "", [_Line("requests", view.tps, _BLUE, fill=True)], []),
        _Panel("ModelLatency", " ms", [
            _Line("p99", get("ModelLatency", "p99"), _RED),
            _Line("p90", get("ModelLatency", "p90"), _ORANGE),
            _Line("p50", get("ModelLatency", "p50"), _BLUE)], limits["ModelLatency"]),
        _Panel("ModelLatency by instance, average", " ms",
               _members(variant.instances, "ModelLatency", "Average"), []),
        _Panel("ModelLatency by Availability Zone, average", " ms",
               _members(variant.zones, "ModelLatency", "Average"), []),
        _Panel("OverheadLatency", " ms", [
            _Line("average", get("OverheadLatency", "Average"), _BLUE)],
            limits["OverheadLatency"]),
        _Panel("Utilization of the whole instance", " %", [
            _Line("CPU", get("CPUUtilization", "Average"), _BLUE),
            _Line("CPU, fullest", get("CPUUtilization", "Maximum"), _SKY, dash="dot"),
            _Line("GPU", get("GPUUtilization", "Average"), _GREEN),
            _Line("memory", get("MemoryUtilization", "Average"), _PURPLE),
            _Line("disk", get("DiskUtilization", "Average"), _GREY)], []),
        _Panel("Instances that serve", "", [_Line("instances", view.instances, _GREEN)], most),
        _Panel("Invocations per instance and minute", "", [
            _Line("invocations", view.load, _BLUE)], target),
        _Panel("Requests in flight on an instance", "", [
            _Line("maximum", view.in_flight, _BLUE)], in_flight),
        _Panel("Errors", "", [
            _Line(name, series, colour)
            for (name, metric), colour in zip(errors.items(), (_ORANGE, _RED, _PURPLE),
                                              strict=True)
            if (series := get(metric, "Sum")).sum], []),
        _Panel("Multi-model: requests whose model was loaded", "", [
            _Line("share", get("ModelCacheHit", "Average"), _BLUE)], []),
    ]


def _members(members: Any, metric: str, statistic: str) -> list[_Line]:
    """One line for each member, the slowest ones when there are many."""
    found = [(name, series.get((metric, statistic), Series())) for name, series in members.items()]
    slowest = sorted(found, key=lambda item: -(item[1].max or 0))[:_MEMBERS]
    colours = (_RED, _BLUE, _ORANGE, _GREEN, _PURPLE, _SKY, _GREY)
    return [_Line(name, series, colours[n % len(colours)], dash="solid" if n < 7 else "dot")
            for n, (name, series) in enumerate(slowest)]


def _events(made: Any, diagnosis: Diagnosis, rows: int) -> None:
    for event in diagnosis.events:
        colour = _EVENT_COLOURS[event.kind]
        made.add_shape(type="line", x0=event.time, x1=event.time, y0=0, y1=1, xref="x",
                       yref="paper", line={"color": colour, "width": 1, "dash": "dash"})
    shown: dict[str, list[tuple[datetime, str]]] = {}
    for event in diagnosis.events:
        shown.setdefault(event.kind, []).append((event.time, event.text))
    # Markers at the top of the first panel carry the words: lines alone would say nothing.
    made.update_layout({f"yaxis{rows + 1}": {
        "overlaying": "y", "anchor": "x", "visible": False, "range": [0, 1], "fixedrange": True}})
    for kind, each in shown.items():
        made.add_trace(go.Scatter(
            x=[time for time, _ in each], y=[1] * len(each), yaxis=f"y{rows + 1}", xaxis="x",
            mode="markers", name=kind, text=[_wrapped(text) for _, text in each],
            marker={"symbol": "triangle-down", "size": 11, "color": _EVENT_COLOURS[kind]},
            cliponaxis=False, legend="legend", hovertemplate="%{text}<extra></extra>"))


def _wrapped(text: str) -> str:
    import html
    import textwrap

    return "<br>".join(html.escape(line) for line in textwrap.wrap(text, 70))


def _spans(made: Any, diagnosis: Diagnosis, variant: str) -> None:
    drawn: set[tuple[datetime, datetime]] = set()
    for finding in diagnosis.findings:
        if finding.variant not in ("", variant) or finding.span is None or finding.span in drawn:
            continue
        drawn.add(finding.span)
        made.add_shape(type="rect", x0=finding.span[0], x1=finding.span[1], y0=0, y1=1, xref="x",
                       yref="paper", fillcolor=_RED, opacity=0.05, line_width=0, layer="below")
