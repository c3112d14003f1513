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
from ..report.colours import COLOURS
from .dashboard_data import Graph, read_graphs

_COLUMNS, _ALARMS_PER_ROW = 24, 3
_INCHES_PER_ROW, _INCHES_WIDE = 0.52, 15.0
_STATES = {"OK": "green", "ALARM": "red", "INSUFFICIENT_DATA": "grey"}
_INK, _GREY = COLOURS["ink"][0], COLOURS["grey"][0]
_Box = tuple[float, float, float, float]


def draw_dashboard(
    account: Account, body: dict[str, Any], path: str | Path, *, start: datetime, end: datetime
) -> list[Graph]:
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
    # Charts ask PromQL, and are not drawn here.
    drawn = [widget for widget in body["widgets"] if widget["type"] != "chart"]
    rows = max(widget["y"] + widget["height"] for widget in drawn)

    def box(x: int, y: int, width: int, height: int) -> _Box:
        """Left, bottom, width, height as shares of the figure."""
        return x / _COLUMNS, 1 - (y + height) / rows, width / _COLUMNS, height / rows

    with rc_context(
        {
            "font.size": 9,
            "font.family": "DejaVu Sans",
            "svg.hashsalt": "dashboard",
            "axes.spines.top": False,
            "axes.edgecolor": "#d5dbdb",
            "axes.labelcolor": _GREY,
            "axes.titlecolor": _INK,
            "xtick.color": _GREY,
            "ytick.color": _GREY,
            "text.color": _INK,
        }
    ):
        figure = Figure(figsize=(_INCHES_WIDE, rows * _INCHES_PER_ROW), facecolor="white")
        for widget in body["widgets"]:
            place = box(widget["x"], widget["y"], widget["width"], widget["height"])
            if widget["type"] == "text":
                _text(figure, place, widget["properties"]["markdown"])
            elif widget["type"] == "alarm":
                _alarms(figure, place, _states(account, widget["properties"]))
        for graph in graphs:
            left, bottom, width, height = box(*graph.place)
            # room for axes, legend and title
            axes = figure.add_axes(
                (left + 0.045, bottom + 1.35 / rows, width - 0.09, height - 2.1 / rows)
            )
            _draw(axes, graph, start, end)
        figure.savefig(
            path, metadata={"Date": None} if str(path).endswith(".svg") else None, dpi=110
        )
    return graphs


def _text(figure: Any, box: _Box, markdown: str) -> None:
    left, bottom, _, height = box
    lines = [line for line in markdown.splitlines() if line.strip()]
    for index, line in enumerate(lines):
        heading = line.startswith("# ")
        figure.text(
            left + 0.012,
            bottom + height * (1 - (index + 0.6) / len(lines)),
            re.sub(r"[*`]|^# ", "", line),
            va="center",
            fontsize=15 if heading else 10,
            weight="bold" if heading else "normal",
            color=_INK if heading else _GREY,
        )


def _states(account: Account, properties: dict[str, Any]) -> list[tuple[str, str]]:
    names = [arn.split(":alarm:")[-1] for arn in properties["alarms"]]
    found = {**alarms_named(account, names), **alarms_named(account, names, composite=True)}
    return [(name, found.get(name, {}).get("StateValue", "INSUFFICIENT_DATA")) for name in names]


def _alarms(figure: Any, box: _Box, states: Sequence[tuple[str, str]]) -> None:
    left, bottom, width, height = box
    rows = -(-len(states) // _ALARMS_PER_ROW)
    for index, (name, state) in enumerate(states):
        row, column = divmod(index, _ALARMS_PER_ROW)
        x = left + 0.012 + column * (width - 0.02) / _ALARMS_PER_ROW
        y = bottom + height * (1 - (row + 0.5) / rows)
        colour = COLOURS[_STATES[state]][0]
        figure.text(
            x,
            y,
            f"{_short(name)}: {state.replace('_', ' ').lower()}",
            va="center",
            weight="bold",
            color=colour,
            bbox={"boxstyle": "round,pad=0.6", "facecolor": "#f7f8f9", "edgecolor": colour},
        )


def _short(name: str) -> str:
    """The telling part of a name that CloudFormation made: stack, logical ID, hash, random."""
    part = name.split("-")[-2] if name.count("-") >= 2 else name
    part = re.sub(r"^.*?Alarms|[0-9A-F]{8}$", "", part)
    return part if len(part) <= 34 else f"{part[:33]}…"


def _draw(axes: Any, graph: Graph, start: datetime, end: datetime) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.ticker import MaxNLocator

    axes.set_title(graph.title, loc="left", fontsize=11, weight="bold")
    both = {False: axes}
    if graph.right_label:
        both[True] = axes.twinx()
        both[True].set_ylabel(graph.right_label)
    axes.set_ylabel(graph.left_label)
    drawn = [series for series in graph.series if series.values]
    if graph.stacked and drawn:
        times = sorted({time for each in drawn for time in each.times})
        values = [dict(zip(each.times, each.values, strict=True)) for each in drawn]
        axes.stackplot(
            times,
            [[each.get(time, 0.0) for time in times] for each in values],
            labels=[each.label for each in drawn],
            colors=[each.color or None for each in drawn],
            alpha=0.85,
        )
    else:
        for each in drawn:
            both.get(each.right, axes).plot(
                each.times,
                each.values,
                label=each.label,
                color=each.color or None,
                linewidth=1.5,
                linestyle=(0, (2, 1.5)) if each.right else "-",
            )
    for number, line in enumerate(sorted(graph.lines, key=lambda line: float(line["value"]))):
        right, color = line.get("yAxis") == "right", line.get("color", "#d62728")
        target, value = both.get(right, axes), float(line["value"])
        target.axhline(value, color=color, linewidth=1.1, linestyle=(0, (5, 3)))
        # Every second label is at the left end, so that two close ones stay readable.
        at_left = number % 2 == 1
        target.annotate(
            line.get("label", ""),
            (0 if at_left else 1, value),
            xycoords=("axes fraction", "data"),
            xytext=(3 if at_left else -3, 3),
            textcoords="offset points",
            ha="left" if at_left else "right",
            fontsize=8,
            color=color,
        )
    for on_right, each in both.items():
        shown = [value for one in drawn if one.right is on_right for value in one.values]
        # Nothing but zeros has an axis to 1, whole numbers have no tick between two.
        each.set_ylim(bottom=0, top=each.get_ylim()[1] * 1.12 if any(shown) else 1)
        if all(value == round(value) for value in shown):
            each.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        each.tick_params(length=0)
    axes.set_xlim(start, end)
    locator = AutoDateLocator(maxticks=8)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    formatter = ConciseDateFormatter(locator, show_offset=False)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_formatter(formatter)
    axes.annotate(
        "UTC",
        (1, 0),
        xycoords="axes fraction",
        xytext=(0, -14),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=8,
        color=_GREY,
    )
    axes.grid(axis="y", color="#eaeded", linewidth=0.8)
    axes.set_axisbelow(True)
    if not drawn:
        axes.text(
            0.5, 0.5, "no data in this window", transform=axes.transAxes, ha="center", color=_GREY
        )
        return
    handles = [handle for each in both.values() for handle in each.get_legend_handles_labels()[0]]
    axes.legend(
        handles=handles,
        loc="upper left",
        ncols=4,
        frameon=False,
        fontsize=8.5,
        bbox_to_anchor=(-0.02, -0.12),
        handlelength=1.4,
        columnspacing=1.4,
    )
