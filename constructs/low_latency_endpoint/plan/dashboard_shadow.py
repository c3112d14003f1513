"""The dashboard's panels of a shadow variant: what promoting it would do to callers."""

from __future__ import annotations

from typing import Any

from ..facts.metrics import MICROSECONDS_PER_MILLISECOND
from .dashboard_panel import Panel

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


def _latencies(endpoint_name: str, region: str, roles: dict[str, str]) -> Panel:
    title = f"Is the shadow {roles['shadow']} as fast as {roles['production']}?"
    panel = Panel(title, region, "ModelLatency in ms")
    for role, variant in roles.items():
        dimensions = ("EndpointName", endpoint_name, "VariantName", variant)
        for statistic, color in _COLORS[role].items():
            key = f"{role}_{statistic}"
            panel.raw(dimensions, "ModelLatency", statistic, f"{key}_us")
            panel.formula(
                f"{key}_us / {MICROSECONDS_PER_MILLISECOND}", key, f"{variant} {statistic}", color
            )
    return panel


def _failures(endpoint_name: str, region: str, roles: dict[str, str]) -> Panel:
    title = f"Does the shadow {roles['shadow']} fail more often?"
    panel = Panel(title, region, "percent of requests", right_label="requests per second")
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
