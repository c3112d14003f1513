"""One graph of the dashboard, as CloudWatch takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..facts.metrics import metric_facts

PERIOD = 60
_LIMIT = "#d62728"


@dataclass
class Panel:
    """One graph: metrics in CloudWatch's array form, with hidden inputs of its formulas."""

    title: str
    region: str
    left_label: str
    stacked: bool = False
    right_label: str = ""
    metrics: list[Any] = field(default_factory=list)
    annotations: list[dict[str, Any]] = field(default_factory=list)

    def raw(self, dimensions: Sequence[str], name: str, statistic: str, id: str) -> None:
        """A metric that only feeds formulas."""
        namespace = metric_facts(name).namespace
        self.metrics.append(
            [namespace, name, *dimensions, {"id": id, "stat": statistic, "visible": False}]
        )

    def shown(
        self,
        dimensions: Sequence[str],
        name: str,
        statistic: str,
        label: str,
        color: str = "",
        axis: str = "left",
    ) -> None:
        """A metric as it is."""
        options: dict[str, Any] = {"stat": statistic, "label": label, "yAxis": axis}
        if color:
            options["color"] = color
        self.metrics.append([metric_facts(name).namespace, name, *dimensions, options])

    def formula(
        self, expression: str, id: str, label: str, color: str = "", axis: str = "left"
    ) -> None:
        """A formula over the metrics above."""
        options: dict[str, Any] = {
            "expression": expression,
            "id": id,
            "label": label,
            "yAxis": axis,
        }
        if color:
            options["color"] = color
        self.metrics.append([options])

    def line(self, value: float, label: str, color: str = _LIMIT) -> None:
        """A horizontal line."""
        self.annotations.append({"value": value, "label": label, "color": color})

    def limits(self, percents: Mapping[str, float]) -> None:
        """One line for each percentage, with all that alarm above it."""
        quantities: dict[float, list[str]] = {}
        for quantity, percent in percents.items():
            quantities.setdefault(percent, []).append(quantity)
        for percent, names in quantities.items():
            self.line(percent, f"alarm: {', '.join(names)} above {percent:g} %")

    def properties(self) -> dict[str, Any]:
        """The widget's properties."""
        axes: dict[str, Any] = {"left": {"min": 0, "label": self.left_label, "showUnits": False}}
        if self.right_label:
            axes["right"] = {"min": 0, "label": self.right_label, "showUnits": False}
        properties: dict[str, Any] = {
            "title": self.title,
            "view": "timeSeries",
            "stacked": self.stacked,
            "region": self.region,
            "period": PERIOD,
            "metrics": self.metrics,
            "yAxis": axes,
        }
        if self.annotations:
            properties["annotations"] = {"horizontal": self.annotations}
        return properties
