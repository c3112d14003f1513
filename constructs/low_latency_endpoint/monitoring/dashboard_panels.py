"""Panels of the dashboard, those of tokens, of a shadow variant and of a canary among them.

CloudWatch draws PromQL in widgets of the type ``chart`` (`Dashboard Body Structure and Syntax
<https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-Dashboard-Body-Structure.html>`_,
"Properties of a Chart Widget Object"); not seen on AWS yet.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import cycle
from typing import Any

from ..errors.frozen import dataclass
from ..facts.canary_metrics import ANSWER, CONNECT, DIMENSIONS, NAMESPACE
from ..facts.container_metrics import container_metric, fullest_query, percentile_query
from ..facts.metrics import MICROSECONDS_PER_MILLISECOND, metric_facts
from ..report.numbers import milliseconds

PERIOD = 60
_LIMIT = "#d62728"
TARGET = "#2ca02c"  # what callers must see, beside the red of what alarms
_ZONES = ("#2171b5", "#fd8d3c", "#9467bd", "#e377c2", "#8c564b", "#7f7f7f")


@dataclasses.dataclass
class DashboardPanel:
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
        namespace: str | None = None,
    ) -> None:
        """A metric as it is."""
        options: dict[str, Any] = {"stat": statistic, "label": label, "yAxis": axis}
        if color:
            options["color"] = color
        namespace = namespace or metric_facts(name).namespace
        self.metrics.append([namespace, name, *dimensions, options])

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

    def latency(
        self,
        dimensions: Sequence[str],
        name: str,
        statistic: str,
        key: str,
        label: str,
        color: str = "",
    ) -> None:
        """A latency in milliseconds."""
        self.raw(dimensions, name, statistic, f"{key}_us")
        self.formula(f"{key}_us / {MICROSECONDS_PER_MILLISECOND}", key, label, color)

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


@dataclass(frozen=True, kw_only=True)
class CanaryPanels:
    """What to draw of a canary's metrics."""

    zones: Sequence[str]
    longest_connect: float  # in milliseconds, above which an alarm is on

    def graphs(
        self, endpoint: str, region: str, targets: Mapping[str, float]
    ) -> list[dict[str, Any]]:
        """What callers in each zone see, and the path that they take."""
        answers = DashboardPanel("What do callers in each zone see?", region, "answer p50 in ms")
        paths = DashboardPanel("Is a zone's path slow?", region, "time to connect in ms")
        for zone, color in zip(self.zones, cycle(_ZONES), strict=False):
            dimensions = (DIMENSIONS[0], endpoint, DIMENSIONS[1], zone)
            answers.shown(dimensions, ANSWER, "p50", zone, color, namespace=NAMESPACE)
            paths.shown(dimensions, CONNECT, "Maximum", zone, color, namespace=NAMESPACE)
        for statistic, value in targets.items():
            answers.line(value, f"callers' target: {statistic} {milliseconds(value, 6)}", TARGET)
        paths.line(self.longest_connect, f"alarm: above {milliseconds(self.longest_connect, 6)}")
        return [answers.properties(), paths.properties()]


_PERCENTILES = (0.5, 0.95, 0.99)


@dataclass(frozen=True, kw_only=True)
class TokenPanels:
    """What to draw of one variant's tokens."""

    server: str  # vllm or sglang: whose metrics they are
    variant: str
    # where an alarm starts, in milliseconds by percentile, of time_to_first_token and
    # inter_token_latency
    limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    waiting: float | None = None  # requests that wait, above which an alarm is on
    kv_cache_use: float | None = None  # the share above which one is

    def charts(self, endpoint: str, region: str, suffix: str = "") -> list[dict[str, Any]]:
        """The properties of the graphs, each a widget of the type ``chart``."""

        def percentiles(title: str, meaning: str) -> dict[str, Any]:
            metric = container_metric(self.server, meaning)
            queries = {
                f"p{share * 100:g}": percentile_query(
                    metric, share, endpoint=endpoint, variant=self.variant
                )
                for share in _PERCENTILES
            }
            lines = [(label, f"1000 * ({query})") for label, query in queries.items()]
            limits = [
                (f"alarm: {name} above {milliseconds(value, 6)}", value)
                for name, value in self.limits.get(meaning, {}).items()
            ]
            return _chart(title + suffix, region, "ms, in the server", lines, limits)

        def fullest(meaning: str, factor: str = "") -> str:
            metric = container_metric(self.server, meaning)
            return f"{factor}({fullest_query(metric, endpoint=endpoint, variant=self.variant)})"

        waiting = [] if self.waiting is None else [("alarm: waiting", self.waiting)]
        cache = [] if self.kv_cache_use is None else [("alarm", self.kv_cache_use * 100)]
        return [
            percentiles("How long until the first token?", "time_to_first_token"),
            percentiles("How long between two tokens?", "inter_token_latency"),
            _chart(
                f"What runs, and what waits?{suffix}",
                region,
                "requests on the fullest instance",
                [
                    ("running", fullest("requests_running")),
                    ("waiting", fullest("requests_waiting")),
                ],
                waiting,
            ),
            _chart(
                f"How full is the KV cache?{suffix}",
                region,
                "% on the fullest instance",
                [("in use", fullest("kv_cache_use", "100 * "))],
                cache,
            ),
        ]


def _chart(
    title: str,
    region: str,
    axis: str,
    lines: Sequence[tuple[str, str]],
    limits: Sequence[tuple[str, float]],
) -> dict[str, Any]:
    options: dict[str, Any] = {
        "legend": {"position": "bottom", "show": True},
        "yAxis": [{"min": 0, "title": axis}],
    }
    if limits:
        options["annotations"] = {
            "horizontal": [
                {"type": "static", "label": label, "value": value, "color": _LIMIT}
                for label, value in limits
            ]
        }
    queries = [
        {
            "id": f"q{number}",
            "type": "cloudwatch-metrics",
            "language": "PromQL",
            "query": query,
            "label": label,
        }
        for number, (label, query) in enumerate(lines, 1)
    ]
    return {
        "view": "line",
        "title": title,
        "region": region,
        "data": {"queries": queries},
        "plotOptions": options,
    }


# Production as everywhere, from light to dark; the shadow in greens.
_COLORS = {
    "production": {"p50": "#9ecae1", "p99": "#084594"},
    "shadow": {"p50": "#a1d99b", "p99": "#006d2c"},
}


def shadow_panels(
    endpoint_name: str, region: str, production: str, shadow: str
) -> list[dict[str, Any]]:
    """ModelLatency of both in one graph, and the share of requests that fail on each."""
    roles = {"production": production, "shadow": shadow}
    return [
        _latencies(endpoint_name, region, roles).properties(),
        _failures(endpoint_name, region, roles).properties(),
    ]


def _latencies(endpoint_name: str, region: str, roles: dict[str, str]) -> DashboardPanel:
    title = f"Is the shadow {roles['shadow']} as fast as {roles['production']}?"
    panel = DashboardPanel(title, region, "ModelLatency in ms")
    for role, variant in roles.items():
        dimensions = ("EndpointName", endpoint_name, "VariantName", variant)
        for statistic, color in _COLORS[role].items():
            key, label = f"{role}_{statistic}", f"{variant} {statistic}"
            panel.latency(dimensions, "ModelLatency", statistic, key, label, color)
    return panel


def _failures(endpoint_name: str, region: str, roles: dict[str, str]) -> DashboardPanel:
    title = f"Does the shadow {roles['shadow']} fail more often?"
    panel = DashboardPanel(title, region, "percent of requests", right_label="requests per second")
    for role, variant in roles.items():
        dimensions = ("EndpointName", endpoint_name, "VariantName", variant)
        panel.raw(dimensions, "InvocationModelErrors", "Sum", f"{role}_errors")
        panel.raw(dimensions, "Invocations", "Sum", f"{role}_all")
        panel.formula(
            f"IF({role}_all > 0, 100 * {role}_errors / {role}_all, 0)",
            f"{role}_failed",
            f"{variant} model errors",
            _COLORS[role]["p99"],
        )
        panel.formula(
            f"{role}_all / PERIOD({role}_all)",
            f"{role}_tps",
            f"{variant} requests per second",
            _COLORS[role]["p50"],
            "right",
        )
    return panel
