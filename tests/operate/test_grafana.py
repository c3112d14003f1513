"""Grafana's twin of the dashboard: the same queries and limits, in Grafana's own schema.

No Grafana runs here. What Grafana publishes of its schema, grafana-foundation-sdk, reads the JSON
and writes it back: a field it does not know would be lost.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.cloudwatch import CloudWatchMetricsQuery
from grafana_foundation_sdk.models.dashboard import Dashboard, Panel

from low_latency_endpoint.operate.grafana import grafana_dashboard
from low_latency_endpoint.plan.dashboard import DashboardVariant, PoolType, dashboard_body


def _body(alarms: int) -> dict[str, Any]:
    return dashboard_body(
        endpoint_name="sentiment",
        region="eu-central-1",
        thresholds={"page": {"p99": 300}, "ticket": {"p99": 160}},
        targets={"p99": 200},
        variants=[
            DashboardVariant(
                name="primary",
                vcpus=4,
                gpus=1,
                multi_model=True,
                max_instances=16,
                scaling_target=1234567.5,
                pools=(PoolType("ml.g5.xlarge", 4, 1), PoolType("ml.g6.xlarge", 4, 1)),
                utilization_limits={"CPU": 85, "GPU": 90},
                error_limits={"Invocation5XXErrors": 0.001},
                zones=True,
            )
        ],
        alarm_arns=["arn:aws:cloudwatch:eu-central-1:123456789012:alarm:a"] * alarms,
        shadow=DashboardVariant(name="next", vcpus=4),
    )


BODY = _body(alarms=1)
GRAPHS = [each["properties"] for each in BODY["widgets"] if each["type"] == "metric"]


@pytest.fixture(scope="module")
def twin() -> dict[str, Any]:
    return grafana_dashboard(BODY, "sentiment")


@pytest.fixture(scope="module")
def panels(twin: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {panel["title"]: panel for panel in twin["panels"] if panel["type"] == "timeseries"}


def test_grafanas_schema_knows_every_field(twin: dict[str, Any]) -> None:
    register_default_plugins()
    read = Dashboard.from_json(twin)
    written = json.loads(json.dumps(read, cls=JSONEncoder))
    assert _lost(twin, written) == []
    graphs = [panel for panel in read.panels or [] if isinstance(panel, Panel) and panel.targets]
    assert len(graphs) == len(GRAPHS)
    assert all(
        isinstance(target, CloudWatchMetricsQuery)
        for panel in graphs
        for target in panel.targets or []
    )


def _lost(stated: Any, read: Any, where: str = "") -> list[str]:
    """Paths of what is in one and not, or otherwise, in the other."""
    if isinstance(stated, dict):
        return [
            loss
            for key, value in stated.items()
            for loss in (
                _lost(value, read[key], f"{where}.{key}") if key in read else [f"{where}.{key}"]
            )
        ]
    if isinstance(stated, list):
        return [
            loss
            for number, (one, other) in enumerate(zip(stated, read, strict=True))
            for loss in _lost(one, other, f"{where}[{number}]")
        ]
    return [] if stated == read else [where]


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph["title"])
def test_a_graph_asks_the_same_of_cloudwatch(
    graph: dict[str, Any], panels: dict[str, dict[str, Any]]
) -> None:
    targets = {target["id"]: target for target in panels[graph["title"]]["targets"]}
    assert len(targets) == len(panels[graph["title"]]["targets"])
    for number, row in enumerate(graph["metrics"]):
        *names, options = row
        target = targets.pop(options.get("id", f"row{number}"))
        assert (target["region"], target["period"]) == ("eu-central-1", "60")
        assert target["hide"] is not options.get("visible", True)
        assert target["label"] == options.get("label", "")
        if "expression" in options:
            assert (target["expression"], target["metricEditorMode"]) == (options["expression"], 1)
            continue
        dimensions = [part for pair in target["dimensions"].items() for part in pair]
        assert [target["namespace"], target["metricName"], *dimensions] == names
        assert (target["statistic"], target["metricEditorMode"]) == (options["stat"], 0)
        assert target["expression"] == ""
    lines = graph.get("annotations", {}).get("horizontal", [])
    values = [
        float(target["expression"].removeprefix("TIME_SERIES(").removesuffix(")"))
        for target in targets.values()
    ]
    assert values == [line["value"] for line in lines]
    assert [target["label"] for target in targets.values()] == [line["label"] for line in lines]


def test_colours_and_the_right_axis_are_kept(panels: dict[str, dict[str, Any]]) -> None:
    def look(title: str, id: str) -> dict[str, Any]:
        (override,) = (
            each
            for each in panels[title]["fieldConfig"]["overrides"]
            if each["matcher"] == {"id": "byFrameRefID", "options": id}
        )
        return {each["id"]: each["value"] for each in override["properties"]}

    assert look("Is the target met?", "line0")["color"]["fixedColor"] == "#d62728"  # alarms, red
    assert look("Is the target met?", "line2")["color"]["fixedColor"] == "#2ca02c"  # the callers'
    assert look("Traffic", "row2")["custom.axisPlacement"] == "right"
    assert look("Traffic", "row2")["custom.axisLabel"] == "in flight"
    stacks = panels["Where does the time go?"]["fieldConfig"]["defaults"]["custom"]["stacking"]
    assert stacks["mode"] == "normal"


@pytest.mark.parametrize("alarms", range(0, 16, 3))
def test_panels_do_not_overlap_and_the_alarms_row_is_left_out(alarms: int) -> None:
    panels = grafana_dashboard(_body(alarms), "sentiment")["panels"]
    assert [panel["type"] for panel in panels] == ["text"] + ["timeseries"] * len(GRAPHS)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])
        }
        assert not cells & taken
        assert place["x"] + place["w"] <= 24
        taken |= cells
