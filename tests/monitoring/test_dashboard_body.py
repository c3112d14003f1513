"""The dashboard's body: order, units, and only the panels that apply."""

from __future__ import annotations

import re

import pytest

from low_latency_endpoint.facts.metrics import metric_facts, metrics
from low_latency_endpoint.monitoring.dashboard_body import DashboardVariant, dashboard_body


def _body(**variant):
    return dashboard_body(
        endpoint_name="sentiment",
        region="us-east-1",
        variants=[DashboardVariant(name="primary", **variant)],
        thresholds={"p99": 160.0, "p99.9": 400.0},
        targets={"p99": 200.0},
        alarm_arns=["arn:aws:cloudwatch:::alarm:a"],
    )


def _graphs(body):
    return {
        widget["properties"]["title"]: widget["properties"]
        for widget in body["widgets"]
        if widget["type"] == "metric"
    }


def test_panels_answer_the_questions_in_order():
    assert list(_graphs(_body())) == [
        "Is the target met?",
        "Where does the time go?",
        "Traffic",
        "Errors",
        "Utilization of the instance",
        "What does each instance get?",
        "Instances",
    ]


def test_every_latency_is_divided_into_milliseconds():
    """No panel shows a metric in microseconds: each is hidden and divided by 1000."""
    for properties in _graphs(_body(multi_model=True)).values():
        formulas = " ".join(row[0]["expression"] for row in properties["metrics"] if len(row) == 1)
        for row in properties["metrics"]:
            if len(row) > 1 and metric_facts(row[1]).unit == "Microseconds":
                assert row[-1]["visible"] is False
                assert f"{row[-1]['id']} / 1000" in formulas


def test_the_callers_target_stands_beside_what_alarms():
    target = _graphs(_body())["Is the target met?"]
    assert [(line["value"], line["label"]) for line in target["annotations"]["horizontal"]] == [
        (160.0, "alarm: p99 above 160 ms"),
        (400.0, "alarm: p99.9 above 400 ms"),
        (200.0, "callers' target of the whole call: p99 200 ms"),
    ]
    shown = [row[0]["label"] for row in target["metrics"] if len(row) == 1]
    assert shown == ["p50", "p90", "p99", "p99.9"]


def test_every_severity_has_a_line_of_its_own():
    body = dashboard_body(
        endpoint_name="sentiment",
        region="us-east-1",
        variants=[DashboardVariant(name="primary")],
        thresholds={"page": {"p99": 300}, "ticket": {"p99": 160, "p50": 50}},
    )
    assert [
        line["label"] for line in _graphs(body)["Is the target met?"]["annotations"]["horizontal"]
    ] == [
        "page alarm: p99 above 300 ms",
        "ticket alarm: p99 above 160 ms",
        "ticket alarm: p50 above 50 ms",
    ]
    assert "page p99 300 ms, ticket p99 160 ms" in body["widgets"][0]["properties"]["markdown"]


def test_errors_are_shares_beside_their_alarms():
    errors = _graphs(_body(error_limits={"Invocation5XXErrors": 0.01}))["Errors"]
    assert "IF(invocations > 0, 100 * errors1 / invocations, 0)" in [
        row[0].get("expression") for row in errors["metrics"] if len(row) == 1
    ]
    (line,) = errors["annotations"]["horizontal"]
    assert (line["value"], line["label"]) == (1, "alarm: Invocation5XXErrors above 1 %")


def test_model_and_overhead_are_stacked():
    split = _graphs(_body())["Where does the time go?"]
    assert split["stacked"] is True
    assert [row[0]["label"] for row in split["metrics"] if len(row) == 1] == [
        "ModelLatency",
        "OverheadLatency",
    ]


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        ({"vcpus": 48}, ["cpu_raw / 48", "memory_raw / 1"]),
        (
            {"vcpus": 4, "gpus": 1},
            ["cpu_raw / 4", "memory_raw / 1", "gpu_raw / 1", "gpu_memory_raw / 1"],
        ),
        ({}, ["cpu_raw / 1", "memory_raw / 1"]),
    ],
)
def test_utilization_is_of_the_whole_instance(variant, expected):
    panel = _graphs(_body(**variant))["Utilization of the instance"]
    assert [row[0]["expression"] for row in panel["metrics"] if len(row) == 1] == expected


def test_scaling_lines_appear_where_the_variant_scales():
    graphs = _graphs(_body(max_instances=16, scaling_target=7800.0))
    for title, value in (("What does each instance get?", 7800.0), ("Instances", 16)):
        (line,) = graphs[title]["annotations"]["horizontal"]
        assert line["value"] == value
        assert "annotations" not in _graphs(_body())[title]


def test_lines_of_utilization_are_the_alarms_one_for_each_percentage():
    limits = {"CPU": 85, "memory": 85, "GPU": 95, "GPU memory": 90}

    def lines(**variant):
        panel = _graphs(_body(**variant))["Utilization of the instance"]
        return [
            (line["value"], line["label"])
            for line in panel.get("annotations", {}).get("horizontal", [])
        ]

    assert lines(utilization_limits=limits) == [(85, "alarm: CPU, memory above 85 %")]
    assert lines(utilization_limits=limits, gpus=1)[1:] == [
        (95, "alarm: GPU above 95 %"),
        (90, "alarm: GPU memory above 90 %"),
    ]
    assert lines() == []


@pytest.mark.parametrize(
    ("variant", "title"),
    [({"zones": True}, "Zones"), ({"multi_model": True}, "Models loaded on demand")],
)
def test_panels_only_where_they_apply(variant, title):
    assert title not in _graphs(_body())
    assert title in _graphs(_body(**variant))


def test_formulas_use_only_ids_of_their_own_panel():
    for properties in _graphs(_body(multi_model=True, gpus=4, vcpus=48)).values():
        ids = {row[-1].get("id") for row in properties["metrics"]}
        for row in properties["metrics"]:
            expression = row[-1].get("expression", "")
            if expression.startswith("SEARCH"):
                continue
            used = set(re.findall(r"\b[a-z][a-z0-9_]*\b", expression))
            assert used <= ids, expression


def test_every_metric_exists_in_its_namespace():
    known = {(facts.namespace, facts.name) for facts in metrics()}
    for properties in _graphs(_body(multi_model=True, gpus=1)).values():
        for row in properties["metrics"]:
            if len(row) > 1:
                assert (row[0], row[1]) in known
