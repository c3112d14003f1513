"""The dashboard's graphs ask for the right numbers: the local AWS answers their queries.

``UPDATE_DOCS=1 pytest tests/monitoring/test_dashboard_numbers.py`` draws docs/images/dashboard.svg anew, of the
endpoint of the endpoint.yaml that ships: README shows its plan beside the picture.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from local_sagemaker import LocalAws
from low_latency_endpoint.facts.instance_types import instance_facts
from low_latency_endpoint.monitoring.dashboard_body import DashboardVariant, dashboard_body
from low_latency_endpoint.plan.plan import Plan
from low_latency_endpoint.report.charts import PALETTE, Chart, Line, Panel
from low_latency_endpoint.report.document import Document
from low_latency_endpoint.settings import load_settings
from low_latency_endpoint.settings.variant_plans import plan_endpoint
from tests.pictures import picture, texts

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "images" / "dashboard.svg"
DRAWN = ("Is the target met?", "Where does the time go?", "Traffic", "Instances")
END = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
START = END - timedelta(hours=3)
MINUTES = 180
SCALING_IN = 15  # minutes for which target tracking's low alarm has to be on
ZONES = ("us-east-1b", "us-east-1c")
AT_ONCE = 1000  # data that PutMetricData takes
DIMENSIONS = {"EndpointName": "sentiment", "VariantName": "primary"}


Graphs = dict[str, dict[str, list[float]]]


@pytest.fixture(scope="module")
def plan() -> Plan:
    """Of the endpoint that ships."""
    return plan_endpoint(load_settings(ROOT / "endpoint.yaml"), "sentiment")


@pytest.fixture(scope="module")
def body(plan: Plan) -> dict[str, Any]:
    facts, latency = instance_facts(plan.request.serving.instance_type), plan.request.latency
    assert facts is not None
    assert latency is not None
    assert plan.scaling is not None
    return dashboard_body(
        endpoint_name="sentiment",
        region="us-east-1",
        thresholds=plan.thresholds("ModelLatency"),
        targets=latency.milliseconds,
        variants=[
            DashboardVariant(
                name="primary",
                vcpus=facts.vcpus,
                max_instances=plan.fleet.maximum,
                scaling_target=plan.scaling.target,
                utilization_limits={"CPU": 85, "memory": 85},
                zones=True,
            )
        ],
    )


@pytest.fixture(scope="module")
def graphs(body: dict[str, Any], plan: Plan) -> Graphs:
    """Values by graph and label: each minute of three hours."""
    with LocalAws.in_process(region="us-east-1") as aws:
        cloudwatch = aws.client("cloudwatch")
        _put_three_hours(cloudwatch, plan)
        return {
            widget["properties"]["title"]: dict(_asked(cloudwatch, widget["properties"]["metrics"]))
            for widget in body["widgets"]
            if widget["type"] == "metric"
        }


def _asked(cloudwatch: Any, metrics: list[list[Any]]) -> Iterator[tuple[str, list[float]]]:
    """What a graph's queries answer, by label."""
    queries: list[dict[str, Any]] = []
    for number, (*names, options) in enumerate(metrics):
        query = {
            "Id": options.get("id", f"row{number}"),
            "ReturnData": options.get("visible", True),
        }
        if "label" in options:
            query["Label"] = options["label"]
        if names:
            namespace, metric, *rest = names
            dimensions = _dimensions(dict(zip(rest[::2], rest[1::2], strict=True)))
            query["MetricStat"] = {
                "Metric": {"Namespace": namespace, "MetricName": metric, "Dimensions": dimensions},
                "Period": 60,
                "Stat": options["stat"],
            }
        else:
            query |= {"Expression": options["expression"], "Period": 60}
        queries.append(query)
    for answer in cloudwatch.get_paginator("get_metric_data").paginate(
        MetricDataQueries=queries, StartTime=START, EndTime=END, ScanBy="TimestampAscending"
    ):
        for result in answer["MetricDataResults"]:
            yield result["Label"], result["Values"]


def test_latency_is_in_milliseconds(graphs: Graphs) -> None:
    series = graphs["Is the target met?"]
    assert list(series) == ["p50", "p90", "p99"]
    assert all(len(values) == MINUTES for values in series.values())
    assert 30 < sum(series["p50"]) / MINUTES < 50  # put as 38,000 microseconds
    assert all(a <= b <= c for a, b, c in zip(*series.values(), strict=True))


def test_model_and_overhead_stack_to_the_whole(body: dict[str, Any], graphs: Graphs) -> None:
    model, overhead = graphs["Where does the time go?"].values()
    [stacked] = [w["properties"] for w in body["widgets"] if w["properties"].get("stacked")]
    assert stacked["title"] == "Where does the time go?"
    assert overhead[7] == pytest.approx(model[7] / 10)


def test_traffic_is_per_second_and_instances_follow_from_it(graphs: Graphs, plan: Plan) -> None:
    (per_second, _) = graphs["Traffic"].values()
    assert per_second[0] == pytest.approx(_per_second(0))
    (load,) = graphs["What does each instance get?"].values()
    (instances,) = graphs["Instances"].values()
    # 600 a second need seven instances of 90, which is 45 % of 200; the wave's top is the plan's peak.
    assert (instances[0], max(instances)) == (pytest.approx(7), pytest.approx(12))
    assert plan.request.throughput is not None
    assert max(per_second) == pytest.approx(plan.request.throughput.peak_tps, rel=1e-3)
    assert max(instances) == pytest.approx(plan.fleet.at_peak)
    assert plan.fleet.minimum <= min(instances) <= max(instances) <= plan.fleet.maximum
    assert load[0] == pytest.approx(_per_second(0) * 60 / 7)


def test_utilization_is_of_the_whole_instance(graphs: Graphs) -> None:
    cpu, memory = graphs["Utilization of the instance"].values()
    assert cpu[0] == pytest.approx(_per_second(0) / 1600 * 100)
    assert set(memory) == {41.0}


def test_zones_are_found_by_their_dimension(graphs: Graphs) -> None:
    assert list(graphs["Zones"]) == list(ZONES)


def test_the_picture_in_the_docs_shows_these_graphs(body: dict[str, Any], graphs: Graphs) -> None:
    drawn = _picture(body, graphs)
    if os.environ.get("UPDATE_DOCS"):
        PICTURE.write_text(drawn, "utf-8")
    shown = texts(PICTURE.read_text("utf-8"))
    assert shown == texts(drawn), f"run: UPDATE_DOCS=1 pytest {Path(__file__).relative_to(ROOT)}"
    assert {*DRAWN, "alarm: p99 above 160 ms", "maximum, as deployed: 24"} <= set(shown)


def _picture(body: dict[str, Any], graphs: Graphs) -> str:
    """The graphs of `DRAWN` as a page's chart."""
    minutes = [START + timedelta(minutes=minute) for minute in range(MINUTES)]
    panels = []
    for widget in body["widgets"]:
        drawn = widget["properties"]
        if (title := drawn.get("title")) not in DRAWN:
            continue
        right = {
            row[-1].get("label") for row in drawn["metrics"] if row[-1].get("yAxis") == "right"
        }
        left = {label: y for label, y in graphs[title].items() if label not in right}
        panels.append(
            Panel(
                title,
                [
                    Line(label, minutes, y, colour)
                    for (label, y), colour in zip(left.items(), PALETTE, strict=False)
                ],
                unit=" ms" if drawn["yAxis"]["left"]["label"].endswith("in ms") else "",
                limits=[
                    (line["label"], line["value"])
                    for line in drawn.get("annotations", {}).get("horizontal", ())
                ],
            )
        )
    return picture(Document("Dashboard of sentiment", [Chart("dashboard", panels, "time")]))


def _per_second(minute: int) -> float:
    return 600 + 400 * math.sin(minute / 50)


def _dimensions(values: dict[str, str]) -> list[dict[str, str]]:
    return [{"Name": name, "Value": value} for name, value in values.items()]


def _instances(minute: int, plan: Plan) -> int:
    """As many as scaling keeps: for the highest load of the minutes in which it does not scale in."""
    assert plan.scaling is not None
    recent = [_per_second(max(0, minute - ago)) for ago in range(SCALING_IN)]
    wanted = math.ceil(max(recent) * 60 / plan.scaling.target)
    return min(max(wanted, plan.fleet.minimum), plan.fleet.maximum)


def _put_three_hours(client: Any, plan: Plan) -> None:
    """A wave of traffic, instances that follow it, and a deployment at half time."""
    chance = random.Random(20)
    requests: list[dict[str, Any]] = []
    utilization: list[dict[str, Any]] = []
    for minute in range(MINUTES):
        invocations = _per_second(minute) * 60
        instances = _instances(minute, plan)
        slower = 2.2 if MINUTES // 2 <= minute < MINUTES // 2 + 6 else 1  # the new fleet is cold
        latencies = [slower * chance.lognormvariate(math.log(38_000), 0.42) for _ in range(120)]

        def put(metric: str, *values: float, minute: int = minute, **more: str) -> dict[str, Any]:
            return {
                "MetricName": metric,
                "Dimensions": _dimensions({**DIMENSIONS, **more}),
                "Timestamp": START + timedelta(minutes=minute),
                "Values": values,
            }

        requests += [
            put("Invocations", invocations),
            put("InvocationsPerInstance", invocations / instances),
            put("ModelLatency", *latencies),
            put("OverheadLatency", *(latency / 10 for latency in latencies)),
            put("Invocation5XXErrors", chance.choice([0, 0, 0, 0, 3])),
            put("Invocation4XXErrors", 1),
            put("InvocationModelErrors", 0),
            put("ConcurrentRequestsPerModel", 3 + invocations / 12_000),
        ]
        for zone, share in zip(ZONES, (0.55, 0.45), strict=True):
            placed = {"Region": "us-east-1", "AvailabilityZone": zone}
            placed["InstanceType"] = "ml.m5.12xlarge"
            requests.append(put("Invocations", invocations * share, **placed))
        utilization += [
            put("CPUUtilization", 4800 * _per_second(minute) / 1600),
            put("MemoryUtilization", 41.0),
        ]
    for namespace, data in (("AWS/SageMaker", requests), ("/aws/sagemaker/Endpoints", utilization)):
        for first in range(0, len(data), AT_ONCE):
            client.put_metric_data(Namespace=namespace, MetricData=data[first : first + AT_ONCE])


def test_minutes_without_requests_are_a_gap_and_no_outage(body: dict[str, Any]) -> None:
    shown = next(
        w["properties"] for w in body["widgets"] if w["properties"].get("title") == "Instances"
    )
    with LocalAws.in_process(region="us-east-1") as aws:
        aws.reset()
        aws.reset()
        cloudwatch = aws.client("cloudwatch")
        cloudwatch.put_metric_data(
            Namespace="AWS/SageMaker",
            MetricData=[
                {
                    "MetricName": name,
                    "Dimensions": _dimensions(DIMENSIONS),
                    "Timestamp": END - timedelta(minutes=minutes),
                    "Value": value,
                }
                for name, values in (("Invocations", (80, 0)), ("InvocationsPerInstance", (10, 0)))
                for minutes, value in zip((9, 5), values, strict=True)
            ],
        )
        assert dict(_asked(cloudwatch, shown["metrics"])) == {"instances that serve": [8.0]}
    assert shown["annotations"]["horizontal"][0]["label"] == "maximum, as deployed: 24"
