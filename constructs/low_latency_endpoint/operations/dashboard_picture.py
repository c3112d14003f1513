"""A dashboard drawn as a picture, for reports, pull requests and terminals without a browser.

Needs the ``charts`` extra (matplotlib).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ..account.alarms import alarms_named
from ..account.calls import Account
from .dashboard_data import Graph, GraphSeries, read_dashboard_body, read_graphs

__all__ = ["draw_dashboard", "read_dashboard_body"]

_COLUMNS = 24
_INCHES_PER_ROW = 0.52
_INCHES_WIDE = 15.0
_STATES = {"OK": "#2ca02c", "ALARM": "#d62728", "INSUFFICIENT_DATA": "#9e9e9e"}
_GREY = "#5f6b7a"


def draw_dashboard(account: Account, body: dict[str, Any], path: str | Path, *, start: datetime,
                   end: datetime) -> list[Graph]:
    """Draw a dashboard's body with the data of a window into an SVG, PNG or PDF file.

    Parameters
    ----------
    account : Account
        Needs ``cloudwatch:GetMetricData`` and ``cloudwatch:DescribeAlarms``.
    body : dict
        As :func:`read_dashboard_body` returns it.
    path : str or Path
        The file; its ending decides the format.
    start, end : datetime
        The window.

    Returns
    -------
    list of Graph
        What was drawn.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    graphs = read_graphs(account, body, start=start, end=end)
    rows = max(widget["y"] + widget["height"] for widget in body["widgets"])
    with rc_context({"font.size": 9, "font.family": "DejaVu Sans", "svg.hashsalt": "dashboard",
                     "axes.spines.top": False}):
        figure = Figure(figsize=(_INCHES_WIDE, rows * _INCHES_PER_ROW), facecolor="white")
        for widget in body["widgets"]:
            if widget["type"] == "text":
                _text(figure, _box(widget, rows), widget["properties"]["markdown"])
            elif widget["type"] == "alarm":
                _alarms(figure, _box(widget, rows), _states(account, widget["properties"]))
        for graph in graphs:
            x, y, width, height = graph.place
            place = {"x": x, "y": y, "width": width, "height": height}
            _draw(figure, _box(place, rows, margin=True), graph, start, end)
        figure.savefig(path, metadata={"Date": None} if str(path).endswith(".svg") else None,
                       dpi=110)
    return graphs


def _box(widget: dict[str, Any], rows: int, *,
         margin: bool = False) -> tuple[float, float, float, float]:
    """Left, bottom, width, height as shares of the figure."""
    left, width = widget["x"] / _COLUMNS, widget["width"] / _COLUMNS
    top, height = widget["y"] / rows, widget["height"] / rows
    if margin:  # room for title, axes and legend
        left, width = left + 0.045, width - 0.09
        top, height = top + 0.75 / rows, height - 2.1 / rows
    return left, 1 - top - height, width, height


def _text(figure: Any, box: tuple[float, float, float, float], markdown: str) -> None:
    left, bottom, _, height = box
    lines = [line for line in markdown.splitlines() if line.strip()]
    for index, line in enumerate(lines):
        heading = line.startswith("# ")
        figure.text(
            left + 0.012, bottom + height * (1 - (index + 0.6) / max(len(lines), 1)),
            re.sub(r"[*`]|^# ", "", line), va="center",
            fontsize=15 if heading else 10, weight="bold" if heading else "normal",
            color="#16191f" if heading else _GREY,
        )


def _states(account: Account, properties: dict[str, Any]) -> list[tuple[str, str]]:
    names = [arn.split(":alarm:")[-1] for arn in properties["alarms"]]
    found = {**alarms_named(account, names), **alarms_named(account, names, composite=True)}
    return [(name, found.get(name, {}).get("StateValue", "INSUFFICIENT_DATA")) for name in names]


def _alarms(figure: Any, box: tuple[float, float, float, float],
            states: Sequence[tuple[str, str]]) -> None:
    from matplotlib.patches import FancyBboxPatch

    left, bottom, width, height = box
    per_row = 3
    rows = -(-len(states) // per_row)
    cell_width, cell_height = (width - 0.02) / per_row, height / max(rows, 1)
    for index, (name, state) in enumerate(states):
        x = left + 0.01 + (index % per_row) * cell_width
        y = bottom + height - (index // per_row + 1) * cell_height
        figure.patches.append(FancyBboxPatch(
            (x + 0.003, y + cell_height * 0.15), cell_width - 0.006, cell_height * 0.7,
            boxstyle="round,pad=0,rounding_size=0.004", transform=figure.transFigure,
            facecolor="#f7f8f9", edgecolor=_STATES[state], linewidth=1.4, figure=figure,
        ))
        figure.text(x + 0.012, y + cell_height / 2, _short(name), va="center", fontsize=9)
        figure.text(x + cell_width - 0.012, y + cell_height / 2, state.replace("_", " ").lower(),
                    va="center", ha="right", fontsize=9, color=_STATES[state], weight="bold")


def _short(name: str) -> str:
    """The telling part of a name that CloudFormation made: stack, logical ID, hash, random."""
    part = name.split("-")[-2] if name.count("-") >= 2 else name
    part = re.sub(r"[0-9A-F]{8}$", "", part)
    part = re.sub(r"^.*?Alarms", "", part)
    return part if len(part) <= 34 else f"{part[:33]}…"


def _draw(figure: Any, box: tuple[float, float, float, float], graph: Graph, start: datetime,
          end: datetime) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    axes = figure.add_axes(box)
    axes.set_title(graph.title, loc="left", fontsize=11, weight="bold", color="#16191f")
    axes.set_ylabel(graph.left_label, color=_GREY)
    other = axes.twinx() if graph.right_label else None
    if other is not None:
        other.set_ylabel(graph.right_label, color=_GREY)
    drawn = [series for series in graph.series if series.values]
    _plot(axes, [series for series in drawn if not series.right], graph.stacked)
    if other is not None:
        _plot(other, [series for series in drawn if series.right], stacked=False, dashed=True)
    for line in graph.lines:
        target = other if line.right and other is not None else axes
        target.axhline(line.value, color=line.color, linewidth=1.1, linestyle=(0, (5, 3)))
        # Lines of the right axis are labelled on the left, so that two close ones stay readable.
        target.annotate(line.label, (0 if line.right else 1, line.value),
                        xycoords=("axes fraction", "data"), xytext=(3 if line.right else -3, 3),
                        textcoords="offset points", ha="left" if line.right else "right",
                        fontsize=8, color=line.color)
    for each in (axes, other):
        if each is not None:
            each.set_ylim(bottom=0, top=max(each.get_ylim()[1] * 1.12, 1e-9))
            each.tick_params(colors=_GREY, length=0)
            for spine in each.spines.values():
                spine.set_color("#d5dbdb")
    axes.set_xlim(start, end)
    locator = AutoDateLocator(maxticks=8)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    formatter = ConciseDateFormatter(locator, show_offset=False)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_formatter(formatter)
    axes.grid(axis="y", color="#eaeded", linewidth=0.8)
    axes.set_axisbelow(True)
    if not drawn:
        axes.text(0.5, 0.5, "no data in this window", transform=axes.transAxes, ha="center",
                  color=_GREY)
        return
    handles = [*axes.get_legend_handles_labels()[0],
               *(other.get_legend_handles_labels()[0] if other is not None else [])]
    figure.legend(handles=handles, loc="upper left", ncols=4, frameon=False, fontsize=8.5,
                  bbox_to_anchor=(box[0] - 0.01, box[1] - 0.018), handlelength=1.4,
                  columnspacing=1.4)


def _plot(axes: Any, series: Sequence[GraphSeries], stacked: bool, *, dashed: bool = False) -> None:
    if stacked and series:
        times = sorted({time for each in series for time in each.times})
        layers = [
            [dict(zip(each.times, each.values, strict=True)).get(time, 0.0) for time in times]
            for each in series
        ]
        axes.stackplot(times, layers, labels=[each.label for each in series],
                       colors=[each.color or None for each in series], alpha=0.85)
        return
    for each in series:
        axes.plot(each.times, each.values, label=each.label, color=each.color or None,
                  linewidth=1.5, linestyle=(0, (2, 1.5)) if dashed else "-")
