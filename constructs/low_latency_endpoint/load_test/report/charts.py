"""The page's charts: throughput and latency, everything over time, percentiles, send lag."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ..judging import quantile_bounds
from ..latencies import LatencyHistogram
from ..measured_steps import MeasuredStep
from ..result_file import LoadTestReport
from ..steps import Progress

__all__ = ["over_time", "percentiles", "send_lag", "throughput_and_latency"]

# Okabe and Ito's colours, told apart by people with colour blindness too
_BLUE, _ORANGE, _RED, _GREEN, _GREY = "#0072B2", "#E69F00", "#D55E00", "#009E73", "#6b7280"
_SKY, _PURPLE, _YELLOW, _BLACK = "#56B4E9", "#CC79A7", "#F0E442", "#1f2937"
_SYMBOLS = {"held": "circle", "unclear": "circle-open", "broken": "x", "client-bound": "diamond"}
_ROW = 165
_LINES = 8  # lines of one chart that can still be told apart
_NINES = 6
_LOGARITHMIC = {"type": "log", "tickvals": [
    digit * 10.0 ** power for power in range(-3, 7) for digit in (1, 2, 5)]}


@dataclass(frozen=True)
class _Line:
    name: str
    x: Sequence[datetime]
    y: Sequence[float | None]
    colour: str
    fill: bool = False
    dots: bool = False


@dataclass(frozen=True)
class _Panel:
    title: str
    unit: str
    lines: list[_Line]
    limits: list[tuple[str, float]]
    logarithmic: bool = False


def throughput_and_latency(report: LoadTestReport) -> Any:
    """Each step's rate and its latencies with their intervals, the target and the limit.

    The rate is the one that was offered: past the limit, answers are no more than before.
    """
    steps = [each for each in report.run.steps if each.result.latency.count]
    if not steps:
        return None
    made = go.Figure()
    highest = 0.0
    for name, quantile, colour in (("p99", 0.99, _RED), ("p90", 0.9, _ORANGE), ("p50", 0.5, _BLUE)):
        ordered = sorted(steps, key=_load)
        bounds = [quantile_bounds(each.result.latency, quantile) for each in ordered]
        up = [1000 * (min(b.high, each.result.latency.max) - b.value)
              for b, each in zip(bounds, ordered, strict=True)]
        made.add_trace(go.Scatter(
            x=[_load(each) for each in ordered], y=[1000 * b.value for b in bounds],
            error_y={"type": "data", "array": up, "symmetric": False, "thickness": 1.2, "width": 3,
                     "arrayminus": [1000 * (b.value - b.low) for b in bounds]},
            name=name, mode="lines+markers", line={"color": colour, "width": 1.4},
            marker={"size": 8, "symbol": [_SYMBOLS[each.judgement.outcome] for each in ordered]},
            text=[f"{each.result.step.name}: {each.judgement.outcome}, "
                  f"{each.result.rate:,.4g} answered a second" for each in ordered],
            hovertemplate="%{text}<br>%{y:,.4~g} ms"))
        highest = max([highest, *(1000 * b.value + u for b, u in zip(bounds, up, strict=True))])
    highest = max([highest, *(1000 * each for each in report.run.goal.targets.values())])
    limit = report.run.limit
    if limit is not None and limit.rate:
        made.add_vline(x=limit.rate, line={"color": _GREEN, "dash": "dot", "width": 1.5},
                       annotation={"text": f"limit {limit.rate:,.4g}", "font": {"color": _GREEN}},
                       annotation_position="top right")
    # A step far over the limit must not press the others flat.
    lowest = min(1000 * each.result.latency.percentile(50) for each in steps)
    logarithmic = highest > 30 * lowest
    for name, seconds in report.run.goal.targets.items():
        _horizontal(made, f"{name} target {1000 * seconds:g} ms", 1000 * seconds, logarithmic)
    made.update_yaxes(title="Latency, ms", gridcolor="#eceff3", zeroline=False,
                      **(_LOGARITHMIC if logarithmic else {"range": [0, 1.1 * highest]}))
    made.update_xaxes(title="Requests a second (of waiting callers: answers)",
                      rangemode="tozero", gridcolor="#eceff3")
    return _dressed(made, 420)


def over_time(report: LoadTestReport) -> Any:
    """The client's seconds and CloudWatch's minutes on one time axis, the steps shaded."""
    steps = [each for each in report.run.steps if each.timeline]
    panels = [panel for panel in (*_client_panels(report, steps), *_cloudwatch_panels(report))
              if any(any(v is not None for v in line.y) for line in panel.lines)]
    if not panels:
        return None
    made = make_subplots(rows=len(panels), cols=1, shared_xaxes=True,
                         vertical_spacing=0.24 / max(len(panels), 2),
                         subplot_titles=[panel.title for panel in panels])
    for row, panel in enumerate(panels, 1):
        for line in panel.lines:
            made.add_trace(_trace(line, panel, row), row=row, col=1)
        for label, value in panel.limits:
            _horizontal(made, label, value, panel.logarithmic, row)
        made.update_yaxes(row=row, col=1, ticksuffix=panel.unit, gridcolor="#eceff3",
                          zeroline=False,
                          **(_LOGARITHMIC if panel.logarithmic else
                             {"rangemode": "tozero", "nticks": 5}))
    # All at once, over all rows: add_vrect copies the layout for each step and row.
    made.layout.shapes += tuple(
        {"type": "rect", "x0": _begin(each), "x1": _time(each.result.ended_at), "y0": 0, "y1": 1,
         "yref": "paper", "line": {"width": 0}, "layer": "below", "opacity": 0.06,
         "fillcolor": "#0072B2" if number % 2 else "#6b7280"}
        for number, each in enumerate(report.run.steps))
    made.update_xaxes(gridcolor="#eceff3", showline=True, linecolor="#c9ced6")
    legends = {}
    for row in range(1, len(panels) + 1):
        axis = made.layout["yaxis" if row == 1 else f"yaxis{row}"]
        legends["legend" if row == 1 else f"legend{row}"] = {
            "x": 1.01, "xanchor": "left", "y": axis.domain[1], "yanchor": "top",
            "font": {"size": 11}, "tracegroupgap": 0, "bgcolor": "rgba(0,0,0,0)"}
    for title in made.layout.annotations[:len(panels)]:
        title.update(x=0, xanchor="left", font={"size": 13, "color": _BLACK})
    _dressed(made, 90 + _ROW * len(panels))
    return made.update_layout(hovermode="x unified", margin={"r": 170, "t": 56}, **legends)


def percentiles(report: LoadTestReport) -> Any:
    """Latency by percentile, each further nine as wide as the one before."""
    steps = _chosen([each for each in report.run.steps if each.result.latency.count])
    if not steps:
        return None
    made = go.Figure()
    for colour, each in zip(_palette(), steps, strict=False):
        shares = list(_shares(each.result.latency))
        values = each.result.latency.quantiles(shares)
        made.add_trace(go.Scatter(
            x=[1 / (1 - share) for share in shares], y=[1000 * value for value in values],
            name=f"{each.result.step.name} ({each.shown})" if each.shown else each.result.step.name,
            mode="lines",
            line={"color": colour, "width": 1.8,
                  "dash": "solid" if each.shown in ("held", "") else "dash"},
            text=[f"p{100 * share:.6g}" for share in shares],
            hovertemplate="%{text}: %{y:,.4~g} ms"))
    for name, seconds in report.run.goal.targets.items():
        _horizontal(made, f"{name} target {1000 * seconds:g} ms", 1000 * seconds, True)
    ticks = list(range(_NINES))
    made.update_xaxes(
        title="Percentile", type="log", gridcolor="#eceff3", tickvals=[1, 2, *(10 ** n for n in
                                                                              ticks[1:])],
        ticktext=["p0", "p50", *(f"p{100 - 100 / 10 ** n:.{max(0, n - 2)}f}" for n in ticks[1:])])
    made.update_yaxes(title="Latency, ms", gridcolor="#eceff3", **_LOGARITHMIC)
    return _dressed(made, 420)


def send_lag(report: LoadTestReport) -> Any:
    """How late the generator itself was, beside the latency it measured: per step."""
    steps = [each for each in report.run.steps if each.result.send_lag.count
             and each.result.latency.count]
    if not steps:
        return None
    names = [f"{number}. {each.result.step.name}" for number, each in enumerate(steps, 1)]
    made = go.Figure()
    for name, colour, pick in (("send lag p50", _SKY, 0.5), ("send lag p99", _BLUE, 0.99)):
        made.add_trace(go.Bar(x=names, name=name, marker_color=colour, y=[
            1000 * each.result.send_lag.quantiles((pick,))[0] for each in steps],
            hovertemplate="%{y:,.4~g} ms"))
    made.add_trace(go.Scatter(
        x=names, y=[10 * each.result.latency.percentile(50) for each in steps],
        name="1 % of the median latency", mode="markers",
        marker={"color": _RED, "symbol": "line-ew-open", "size": 18, "line": {"width": 2}},
        hovertemplate="%{y:,.4~g} ms"))
    made.update_yaxes(title="ms", rangemode="tozero", gridcolor="#eceff3")
    return _dressed(made, 320).update_layout(barmode="group")


def _client_panels(report: LoadTestReport, steps: list[MeasuredStep]) -> Iterator[_Panel]:
    seconds = list(_seconds(steps))
    at = [time for time, _ in seconds]
    targets = [(f"{name} {1000 * value:g} ms", 1000 * value)
               for name, value in report.run.goal.targets.items()]

    streams = any(each.result.first_byte is not None for each in steps)

    def line(name: str, attribute: str, colour: str, factor: float = 1.0,
             fill: bool = False) -> _Line:
        return _Line(name, at, [None if each is None else _finite(factor * getattr(each, attribute))
                                for _, each in seconds], colour, fill)

    yield _Panel("Requests a second", "", [line("sent", "sent", _GREY),
                                           line("answered", "completed", _BLUE, fill=True)], [])
    yield _Panel("Client latency, from the intended start", " ms", [
        line("p99", "p99", _RED, 1000), line("p50", "p50", _BLUE, 1000),
        *([line("first byte p99", "first_byte_p99", _GREEN, 1000)] if streams else [])], targets,
        logarithmic=True)
    if any(each is not None and each.failed for _, each in seconds):
        yield _Panel("Failed requests a second", "", [line("failed", "failed", _RED)], [])
    yield _Panel("Send lag of the generator", " ms", [
        line("p99", "send_lag_p99", _PURPLE, 1000)], [])
    yield _Panel("Processor of the busiest generator process", " %", [
        line("of one core", "cpu_share", _GREY, 100)], [])


def _cloudwatch_panels(report: LoadTestReport) -> Iterator[_Panel]:
    series = report.metrics.series

    def line(name: str, metric: str, statistic: str, colour: str) -> _Line:
        points = series.get((metric, statistic))
        times = points.times if points else []
        # By the clock of the other panels.
        walls = [_time(report.metrics.clock.wall(at.timestamp())) for at in times]
        return _Line(name, walls, [points.points[at] for at in times] if points else [], colour,
                     dots=True)

    yield _Panel("CloudWatch: ModelLatency", " ms", [
        line("p99", "ModelLatency", "p99", _RED), line("p50", "ModelLatency", "p50", _BLUE)], [])
    yield _Panel("CloudWatch: OverheadLatency", " ms", [
        line("average", "OverheadLatency", "Average", _BLUE)], [])
    yield _Panel("CloudWatch: invocations per instance and minute", "", [
        line("invocations", "InvocationsPerInstance", "Sum", _BLUE)], [])
    yield _Panel("CloudWatch: utilization of the whole instance", " %", [
        line("CPU", "CPUUtilization", "Average", _BLUE),
        line("GPU", "GPUUtilization", "Average", _GREEN),
        line("memory", "MemoryUtilization", "Average", _PURPLE)], [("70 %", 70.0)])
    errors = [line("4XX", "Invocation4XXErrors", "Sum", _ORANGE),
              line("5XX", "Invocation5XXErrors", "Sum", _RED)]
    if any(value for each in errors for value in each.y):
        yield _Panel("CloudWatch: errors a minute", "", errors, [])


def _trace(line: _Line, panel: _Panel, row: int) -> Any:
    return go.Scatter(
        x=line.x, y=line.y, name=line.name, mode="lines+markers" if line.dots else "lines",
        line={"color": line.colour, "width": 1.6}, marker={"size": 5},
        fill="tozeroy" if line.fill else None, fillcolor="rgba(0, 114, 178, 0.15)",
        showlegend=len(panel.lines) > 1, legend="legend" if row == 1 else f"legend{row}",
        hovertemplate=f"%{{y:,.4~g}}{panel.unit}", connectgaps=False)


def _seconds(steps: list[MeasuredStep]) -> Iterator[tuple[datetime, Progress | None]]:
    """All seconds of all steps; ``None`` between two steps, where a line must not go on."""
    for each in steps:
        begin = each.result.started_at - each.result.step.settle_seconds
        for second in each.timeline:
            yield _time(begin + second.seconds), second
        if each.timeline:
            yield _time(begin + each.timeline[-1].seconds + 0.5), None


def _chosen(steps: list[MeasuredStep]) -> list[MeasuredStep]:
    """No more steps than can be told apart, over the whole range of rates; lowest rate first."""
    ordered = sorted(steps, key=_load)
    if len(ordered) <= _LINES:
        return ordered
    picked = {round(number * (len(ordered) - 1) / (_LINES - 1)) for number in range(_LINES)}
    return [each for number, each in enumerate(ordered) if number in picked]


def _shares(latencies: LatencyHistogram) -> Iterator[float]:
    """Ranks evenly on the axis of nines, up to the last sample but one."""
    most = min(float(_NINES - 1), math.log10(max(latencies.count, 2)))
    for number in range(161):
        yield 1 - 10 ** (-most * number / 160)


def _palette() -> tuple[str, ...]:
    return (_BLUE, _ORANGE, _GREEN, _PURPLE, _SKY, _RED, _YELLOW, _BLACK)


def _horizontal(made: Any, label: str, value: float, logarithmic: bool, row: int = 1) -> None:
    """A dotted line with its name. On a logarithmic axis plotly wants the exponent for the name."""
    axis = "y" if row == 1 else f"y{row}"
    across = "x domain" if row == 1 else f"x{row} domain"
    made.add_shape(type="line", x0=0, x1=1, xref=across, y0=value, y1=value, yref=axis,
                   line={"color": _RED, "dash": "dot", "width": 1})
    made.add_annotation(text=label, x=0, xref=across, xanchor="left", yanchor="bottom", yref=axis,
                        y=math.log10(value) if logarithmic else value, showarrow=False,
                        font={"size": 11, "color": _RED})


def _dressed(made: Any, height: int) -> Any:
    return made.update_layout(
        height=height, template="plotly_white", margin={"l": 70, "r": 30, "t": 40, "b": 50},
        font={"family": "system-ui, sans-serif", "size": 12},
        legend={"bgcolor": "rgba(0,0,0,0)"})


def _load(each: MeasuredStep) -> float:
    return each.result.rate if each.offered is None else each.offered


def _begin(each: MeasuredStep) -> datetime:
    return _time(each.result.started_at - each.result.step.settle_seconds)


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
