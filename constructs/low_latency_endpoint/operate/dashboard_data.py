"""The data behind a CloudWatch dashboard's graphs, read as CloudWatch's console reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from ..account.calls import Account
from ..account.metrics import metric_data


@dataclass(frozen=True)
class GraphSeries:
    """One line of a graph.

    Attributes
    ----------
    label : str
    color : str
        Empty when the dashboard names none.
    right : bool
        Whether it belongs to the right axis.
    times : tuple of datetime
    values : tuple of float
    """

    label: str
    color: str
    right: bool
    times: tuple[datetime, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Graph:
    """One graph of the dashboard, with its place in the grid of 24 columns.

    ``lines`` are its horizontal annotations, as the body has them.
    """

    title: str
    place: tuple[int, int, int, int]
    left_label: str
    right_label: str
    stacked: bool
    series: tuple[GraphSeries, ...]
    lines: tuple[Mapping[str, Any], ...]


def read_dashboard_body(account: Account, dashboard_name: str) -> dict[str, Any]:
    """The body of a dashboard, parsed; needs ``cloudwatch:GetDashboard``."""
    body: dict[str, Any] = json.loads(
        account.read("cloudwatch", "get_dashboard", DashboardName=dashboard_name)["DashboardBody"]
    )
    return body


def read_graphs(
    account: Account, body: dict[str, Any], *, start: datetime, end: datetime
) -> list[Graph]:
    """Read the data of every graph of a dashboard's body.

    Parameters
    ----------
    account : Account
        Needs ``cloudwatch:GetMetricData``.
    body : dict
        The dashboard's body, as ``GetDashboard`` returns it (parsed).
    start, end : datetime
        The window.
    """
    widgets = [widget for widget in body["widgets"] if widget["type"] == "metric"]
    return [_graph(account, widget, start, end) for widget in widgets]


def _graph(account: Account, widget: dict[str, Any], start: datetime, end: datetime) -> Graph:
    properties = widget["properties"]
    rows = metric_rows(properties["metrics"])
    period = _period(int(properties.get("period", 60)), end - start)
    found: dict[str, list[Mapping[str, Any]]] = {}
    queries = [_query(row, period) for row in rows]
    for result in metric_data(account, queries, start, end):
        found.setdefault(result["Id"], []).append(result)
    axes = properties.get("yAxis", {})
    return Graph(
        title=properties.get("title", ""),
        place=(widget["x"], widget["y"], widget["width"], widget["height"]),
        left_label=axes.get("left", {}).get("label", ""),
        right_label=axes.get("right", {}).get("label", ""),
        stacked=bool(properties.get("stacked")),
        series=tuple(_series(rows, found)),
        lines=tuple(properties.get("annotations", {}).get("horizontal", ())),
    )


@dataclass(frozen=True)
class MetricRow:
    """One row of a widget's ``metrics``: a metric, or an expression over others.

    ``expression`` is empty for a metric, ``namespace``, ``metric`` and ``dimensions`` are for an
    expression.
    """

    id: str
    label: str
    color: str
    visible: bool
    right: bool
    statistic: str
    expression: str
    namespace: str
    metric: str
    dimensions: Mapping[str, str]


def metric_rows(metrics: Iterable[Sequence[Any]]) -> list[MetricRow]:
    """The rows of a widget's ``metrics``, written out.

    CloudWatch's console shortens what it saves: ``"."`` repeats the row before at that place,
    ``"..."`` all before the rest (`Dashboard Body Structure and Syntax
    <https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html#CloudWatch-Dashboard-Properties-Metrics-Array-Format>`_).

    Examples
    --------
    >>> rows = [["AWS/SageMaker", "Invocations", "EndpointName", "a"], ["...", "b"],
    ...         [".", "CPUUtilization", ".", "."]]
    >>> for row in metric_rows(rows):
    ...     print(row.id, row.metric, row.dimensions)
    row0 Invocations {'EndpointName': 'a'}
    row1 Invocations {'EndpointName': 'b'}
    row2 CPUUtilization {'EndpointName': 'b'}
    """
    found = []
    before: list[str] = []
    for number, row in enumerate(metrics):
        options = row[-1] if row and isinstance(row[-1], dict) else {}
        names = [part for part in row if not isinstance(part, dict)]
        if names and names[0] == "...":
            rest = names[1:]
            names = before[: len(before) - len(rest)] + rest
        names = [before[place] if name == "." else name for place, name in enumerate(names)]
        before = names or before
        namespace, metric, *dimensions = names or ("", "")
        found.append(
            MetricRow(
                id=options.get("id", f"row{number}"),
                label=options.get("label", ""),
                color=options.get("color", ""),
                visible=options.get("visible", True),
                right=options.get("yAxis") == "right",
                statistic=options.get("stat", "Average"),
                expression=options.get("expression", ""),
                namespace=namespace,
                metric=metric,
                dimensions=dict(zip(dimensions[::2], dimensions[1::2], strict=True)),
            )
        )
    return found


def _query(row: MetricRow, period: int) -> dict[str, Any]:
    query: dict[str, Any] = {"Id": row.id, "ReturnData": row.visible}
    if row.label:
        query["Label"] = row.label
    if row.expression:
        return {**query, "Expression": row.expression, "Period": period}
    return {
        **query,
        "MetricStat": {
            "Metric": {
                "Namespace": row.namespace,
                "MetricName": row.metric,
                "Dimensions": [
                    {"Name": name, "Value": value} for name, value in row.dimensions.items()
                ],
            },
            "Period": period,
            "Stat": row.statistic,
        },
    }


def _series(
    rows: Sequence[MetricRow], found: Mapping[str, list[Mapping[str, Any]]]
) -> Iterator[GraphSeries]:
    for row in rows:
        if not row.visible:
            continue
        by_label: dict[str, list[tuple[datetime, float]]] = {}
        for result in found.get(row.id, []):
            points = by_label.setdefault(result.get("Label") or row.label, [])
            points += zip(result["Timestamps"], result["Values"], strict=True)
        for label, points in by_label.items():
            points.sort()
            yield GraphSeries(
                label=label,
                color=row.color,
                right=row.right,
                times=tuple(time.astimezone(UTC) for time, _ in points),
                values=tuple(value for _, value in points),
            )


def _period(stated: int, window: timedelta) -> int:
    """The stated period, or the next that keeps a graph under some 700 points."""
    for period in (stated, 300, 3600, 86400):
        if period >= stated and window / timedelta(seconds=period) <= 700:
            return period
    return 86400
