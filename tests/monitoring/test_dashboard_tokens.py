"""The dashboard's graphs of tokens, as CloudWatch's guide describes its chart widgets."""

from __future__ import annotations

import itertools

import pytest

from local_sagemaker.promql.queries import parse
from local_sagemaker.promql.series import SeriesStore
from low_latency_endpoint.monitoring.dashboard_body import DashboardVariant, dashboard_body
from low_latency_endpoint.monitoring.dashboard_panels import TokenPanels

PANELS = TokenPanels(
    server="vllm",
    variant="primary",
    limits={"time_to_first_token": {"p95": 500.0}},
    waiting=8,
    kv_cache_use=0.95,
)
LABELS = {"aws.sagemaker.endpoint.name": "chat", "aws.sagemaker.variant.name": "primary"}


def body(**given):
    return dashboard_body(
        endpoint_name="chat",
        region="us-east-1",
        variants=[DashboardVariant(name="primary", multi_model=True, zones=True)],
        thresholds={"p99": 160},
        alarm_arns=["arn:aws:cloudwatch:::alarm:a"],
        **given,
    )


def charts(found):
    return [widget for widget in found["widgets"] if widget["type"] == "chart"]


def test_a_dashboard_without_tokens_has_no_charts():
    assert charts(body()) == []


def test_the_charts_lie_below_all_else_and_nothing_overlaps():
    found = body(tokens=[PANELS])
    others = [widget for widget in found["widgets"] if widget["type"] != "chart"]
    bottom = max(widget["y"] + widget["height"] for widget in others)
    assert len(charts(found)) == 4
    assert min(widget["y"] for widget in charts(found)) >= bottom
    assert found["widgets"][: len(others)] == body()["widgets"]
    places = set()
    for widget in found["widgets"]:
        columns = range(widget["x"], widget["x"] + widget["width"])
        rows = range(widget["y"], widget["y"] + widget["height"])
        taken = set(itertools.product(columns, rows))
        assert not places & taken
        assert max(columns) < 24
        places |= taken


def test_each_has_the_fields_that_a_chart_needs():
    for widget in charts(body(tokens=[PANELS])):
        properties = widget["properties"]
        assert properties["view"] == "line"
        queries = properties["data"]["queries"]
        assert len({query["id"] for query in queries}) == len(queries)
        for query in queries:
            assert query["type"] == "cloudwatch-metrics"
            assert query["language"] == "PromQL"
        for line in properties["plotOptions"].get("annotations", {}).get("horizontal", []):
            assert line["type"] == "static"


def test_lines_are_drawn_where_alarms_start():
    first, between, waiting, cache = charts(body(tokens=[PANELS]))
    lines = [
        [line["value"] for line in chart["properties"]["plotOptions"]["annotations"]["horizontal"]]
        for chart in (first, waiting, cache)
    ]
    assert lines == [[500.0], [8], [95.0]]
    assert "annotations" not in between["properties"]["plotOptions"]


def test_the_queries_give_milliseconds_requests_and_percent():
    store = SeriesStore()
    for minute, count in enumerate((0, 100)):
        page = f"""
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{{le="0.25"}} 0
vllm:time_to_first_token_seconds_bucket{{le="0.5"}} {count}
vllm:time_to_first_token_seconds_bucket{{le="+Inf"}} {count}
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running 12
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc 0.25
"""
        store.ingest(page, LABELS, minute * 60.0)
    first, _, requests, cache = charts(body(tokens=[PANELS]))

    def value(chart, number):
        query = chart["properties"]["data"]["queries"][number]["query"]
        (one,) = parse(query).evaluate(store, 60.0).values()
        return one

    assert 250 < value(first, 0) < value(first, 1) < 500
    assert value(requests, 0) == 12
    assert value(cache, 0) == pytest.approx(25)
