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
    rows = list(metric_rows(properties["metrics"]))
    period = _period(int(properties.get("period", 60)), end - start)
    found: dict[str, list[Mapping[str, Any]]] = {}
    queries = [_query(index, row, period) for index, row in enumerate(rows)]
    for result in metric_data(account, queries, start, end):
        found.setdefault(result["Id"], []).append(result)
    axes = properties.get("yAxis", {})
    return Graph(
        title=properties.get("title", ""),
        place=(widget["x"], widget["y"], widget["width"], widget["height"]),
        left_label=axes.get("left", {}).get("label", ""),
        right_label=axes.get("right", {}).get("label", ""),
        stacked=bool(properties.get("stacked")),
        series=tuple(_series(rows, queries, found)),
        lines=tuple(properties.get("annotations", {}).get("horizontal", ())),
    )


def metric_rows(metrics: Iterable[Sequence[Any]]) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """Names and options of each row of a widget's ``metrics``, written out.

    CloudWatch's console shortens what it saves: ``"."`` repeats the row before at that place,
    ``"..."`` all before the rest (`Dashboard Body Structure and Syntax
    <https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html#CloudWatch-Dashboard-Properties-Metrics-Array-Format>`_).

    Examples
    --------
    >>> rows = [["AWS/SageMaker", "Invocations", "EndpointName", "a"], ["...", "b"], [".", "CPU"]]
    >>> for names, _ in metric_rows(rows):
    ...     print(*names)
    AWS/SageMaker Invocations EndpointName a
    AWS/SageMaker Invocations EndpointName b
    AWS/SageMaker CPU
    """
    before: list[str] = []
    for row in metrics:
        options = row[-1] if row and isinstance(row[-1], dict) else {}
        names = [part for part in row if not isinstance(part, dict)]
        if names and names[0] == "...":
            rest = names[1:]
            names = before[: len(before) - len(rest)] + rest
        names = [before[place] if name == "." else name for place, name in enumerate(names)]
        yield names, options
        before = names or before


def _query(index: int, row: tuple[list[str], dict[str, Any]], period: int) -> dict[str, Any]:
    names, options = row
    query: dict[str, Any] = {
        "Id": options.get("id", f"row{index}"),
        "ReturnData": options.get("visible", True),
    }
    if options.get("label"):
        query["Label"] = options["label"]
    if "expression" in options:
        return {**query, "Expression": options["expression"], "Period": period}
    namespace, metric, *dimensions = names
    return {
        **query,
        "MetricStat": {
            "Metric": {
                "Namespace": namespace,
                "MetricName": metric,
                "Dimensions": [
                    {"Name": name, "Value": value}
                    for name, value in zip(dimensions[::2], dimensions[1::2], strict=True)
                ],
            },
            "Period": period,
            "Stat": options.get("stat", "Average"),
        },
    }


def _series(
    rows: Sequence[tuple[list[str], dict[str, Any]]],
    queries: Sequence[dict[str, Any]],
    found: Mapping[str, list[Mapping[str, Any]]],
) -> Iterator[GraphSeries]:
    for (_, options), query in zip(rows, queries, strict=True):
        if not query["ReturnData"]:
            continue
        by_label: dict[str, list[tuple[datetime, float]]] = {}
        for result in found.get(query["Id"], []):
            points = by_label.setdefault(result.get("Label") or query.get("Label", ""), [])
            points += zip(result["Timestamps"], result["Values"], strict=True)
        for label, points in by_label.items():
            points.sort()
            yield GraphSeries(
                label=label,
                color=options.get("color", ""),
                right=options.get("yAxis") == "right",
                times=tuple(time.astimezone(UTC) for time, _ in points),
                values=tuple(value for _, value in points),
            )


def _period(stated: int, window: timedelta) -> int:
    """The stated period, or the next that keeps a graph under some 700 points."""
    for period in (stated, 300, 3600, 86400):
        if period >= stated and window / timedelta(seconds=period) <= 700:
            return period
    return 86400
