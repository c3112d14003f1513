"""A CloudWatch dashboard's body as a dashboard of Grafana, with Grafana's CloudWatch data source.

The queries are CloudWatch's own, formulas included, so both draw the same numbers. Names and values
of the JSON: `Grafana's schema of a CloudWatch query
<https://github.com/grafana/grafana/blob/main/public/app/plugins/datasource/cloudwatch/dataquery.cue>`_.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .dashboard_data import metric_rows

_SOURCE = {"type": "cloudwatch", "uid": "${datasource}"}
# Grafana's MetricQueryType "search", and its MetricEditorMode "builder" and "code". Grafana takes a
# query without them for one of a form that knew no formulas.
_SEARCH, _BUILDER, _CODE = 0, 0, 1
_ROW = 1.5  # Grafana's row is 38 pixels, CloudWatch's some 50, and a panel holds its own legend


def grafana_dashboard(
    body: Mapping[str, Any], title: str, *, since: str = "now-3h", until: str = "now"
) -> dict[str, Any]:
    """Grafana's twin of a CloudWatch dashboard, ready for JSON.

    Parameters
    ----------
    body : mapping
        As ``read_dashboard_body`` or ``dashboard_body`` return it.
    title : str
    since, until : str
        The window it opens with, in Grafana's form (``"now-3h"``) or as ISO 8601 times.

    Returns
    -------
    dict
        One panel for each text and each graph, at the same place, with the same queries, hidden
        inputs of formulas included. A horizontal line is a formula of its own
        (``TIME_SERIES(160)``), since a threshold of Grafana has no name. Grafana has no panel for
        CloudWatch's alarms: their row is left out. Viewers choose the data source at the top.

    Examples
    --------
    >>> from low_latency_endpoint.plan.dashboard import DashboardVariant, dashboard_body
    >>> body = dashboard_body(endpoint_name="sentiment", region="us-east-1",
    ...                       variants=[DashboardVariant(name="primary")], thresholds={"p99": 160})
    >>> panel = grafana_dashboard(body, "sentiment")["panels"][1]
    >>> panel["title"], panel["targets"][-1]["expression"], panel["targets"][-1]["label"]
    ('Is the target met?', 'TIME_SERIES(160)', 'alarm: p99 above 160 ms')
    """
    panels = {"text": _text, "metric": _graph}
    return {
        "title": title,
        "tags": ["low-latency-endpoint"],
        "schemaVersion": 39,  # Grafana 11; newer ones migrate it
        "time": {"from": since, "to": until},
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "label": "CloudWatch",
                    "type": "datasource",
                    "query": "cloudwatch",
                }
            ]
        },
        "panels": [
            {
                "id": number,
                "gridPos": _place(widget),
                **panels[widget["type"]](widget["properties"]),
            }
            for number, widget in enumerate(body["widgets"], 1)
            if widget["type"] in panels
        ],
    }


def _place(widget: Mapping[str, Any]) -> dict[str, int]:
    top, bottom = (round(y * _ROW) for y in (widget["y"], widget["y"] + widget["height"]))
    return {"x": widget["x"], "y": top, "w": widget["width"], "h": bottom - top}


def _text(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "text",
        "title": "",
        "options": {"mode": "markdown", "content": properties["markdown"]},
    }


def _graph(properties: Mapping[str, Any]) -> dict[str, Any]:
    targets, overrides = [], []

    def add(query: Mapping[str, Any], look: Mapping[str, Any]) -> None:
        target = {
            "refId": query["id"],
            "datasource": _SOURCE,
            "queryMode": "Metrics",
            "metricQueryType": _SEARCH,
            "metricEditorMode": _CODE,
            "region": properties["region"],
            "namespace": "",
            "period": str(properties["period"]),
            **query,
        }
        targets.append(target)
        if look:
            overrides.append(
                {
                    "matcher": {"id": "byFrameRefID", "options": query["id"]},
                    "properties": [{"id": name, "value": value} for name, value in look.items()],
                }
            )

    axes = properties.get("yAxis", {})
    for row in metric_rows(properties["metrics"]):
        query: dict[str, Any] = {
            "id": row.id,
            "label": row.label,
            "hide": not row.visible,
            "expression": row.expression,
        }
        look: dict[str, Any] = {}
        if row.color:
            look["color"] = _fixed(row.color)
        if row.right:
            look["custom.axisPlacement"] = "right"
            look["custom.axisLabel"] = axes.get("right", {}).get("label", "")
        if not row.expression:
            query |= {
                "metricEditorMode": _BUILDER,
                "namespace": row.namespace,
                "metricName": row.metric,
                "dimensions": dict(row.dimensions),
                "matchExact": True,
                "statistic": row.statistic,
            }
        add(query, look)
    for number, line in enumerate(properties.get("annotations", {}).get("horizontal", ())):
        add(
            {
                "id": f"line{number}",
                "label": line.get("label", ""),
                "hide": False,
                "expression": f"TIME_SERIES({line['value']:.15g})",
            },
            {
                **({"color": _fixed(line["color"])} if line.get("color") else {}),
                "custom.lineStyle": {"fill": "dash", "dash": [10, 6]},
                "custom.fillOpacity": 0,
                "custom.stacking": {"mode": "none", "group": "line"},
            },
        )
    stacked = bool(properties.get("stacked"))
    return {
        "type": "timeseries",
        "title": properties.get("title", ""),
        "datasource": _SOURCE,
        "targets": targets,
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "none"},
        },
        "fieldConfig": {
            "defaults": {
                "min": 0,
                "custom": {
                    "axisLabel": axes.get("left", {}).get("label", ""),
                    "fillOpacity": 40 if stacked else 0,
                    "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
                },
            },
            "overrides": overrides,
        },
    }


def _fixed(color: str) -> dict[str, str]:
    return {"mode": "fixed", "fixedColor": color}
