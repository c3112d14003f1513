"""The shipped stack's dashboard, drawn from metric data of the local AWS.

``UPDATE_DOCS=1 pytest tests/operate/test_dashboard_picture.py`` renews docs/dashboard.png.
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
from low_latency_endpoint.account.calls import Account
from low_latency_endpoint.operate.dashboard_data import Graph
from low_latency_endpoint.operate.dashboard_picture import draw_dashboard
from low_latency_endpoint.plan.dashboard import DashboardVariant, dashboard_body

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "dashboard.png"
END = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
START = END - timedelta(hours=3)
MINUTES = 180
BEFORE, AFTER = 8, 10  # instances, before and after the deployment at half time
ZONES = ("us-east-1b", "us-east-1c")
ALARMS = {"p99": ("ModelLatency", "p99", 160_000), "overhead": ("OverheadLatency", "Average", 1)}
AT_ONCE = 1000  # data that PutMetricData takes
DIMENSIONS = {"EndpointName": "sentiment", "VariantName": "primary"}


@pytest.fixture(scope="module")
def cloudwatch() -> Iterator[Any]:
    with LocalAws.in_process(region="us-east-1") as aws:
        client = aws.client("cloudwatch")
        for name, (metric, statistic, threshold) in ALARMS.items():
            kind = "ExtendedStatistic" if statistic.startswith("p") else "Statistic"
            client.put_metric_alarm(
                AlarmName=name,
                Namespace="AWS/SageMaker",
                MetricName=metric,
                Period=60,
                Dimensions=_dimensions(DIMENSIONS),
                Threshold=threshold,
                EvaluationPeriods=3,
                ComparisonOperator="GreaterThanThreshold",
                **{kind: statistic},
            )
        _put_three_hours(client)
        client.set_alarm_state(AlarmName="p99", StateValue="OK", StateReason="by hand")
        client.set_alarm_state(AlarmName="overhead", StateValue="ALARM", StateReason="by hand")
        yield client


@pytest.fixture(scope="module")
def graphs(cloudwatch: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Graph]:
    body = dashboard_body(
        endpoint_name="sentiment",
        region="us-east-1",
        thresholds={"p99": 160},
        targets={"p99": 200},
        variants=[
            DashboardVariant(
                name="primary",
                vcpus=48,
                max_instances=16,
                scaling_target=7800,
                utilization_limits={"CPU": 85, "memory": 85},
                zones=True,
            )
        ],
        alarm_arns=[f"arn:aws:cloudwatch:us-east-1:123456789012:alarm:{name}" for name in ALARMS],
    )
    path = PICTURE if os.environ.get("UPDATE_DOCS") else tmp_path_factory.mktemp("a") / "a.png"
    drawn = draw_dashboard(Account(lambda service: cloudwatch), body, path, start=START, end=END)
    assert path.read_bytes().startswith(b"\x89PNG")
    return {graph.title: graph for graph in drawn}


def test_latency_is_drawn_in_milliseconds(graphs):
    series = {each.label: each.values for each in graphs["Is the target met?"].series}
    assert list(series) == ["p50", "p90", "p99"]
    assert all(len(values) == MINUTES for values in series.values())
    assert 30 < sum(series["p50"]) / MINUTES < 50  # put as 38,000 microseconds
    assert all(a <= b <= c for a, b, c in zip(*series.values(), strict=True))


def test_model_and_overhead_stack_to_the_whole(graphs):
    model, overhead = graphs["Where does the time go?"].series
    assert graphs["Where does the time go?"].stacked
    assert overhead.values[7] == pytest.approx(model.values[7] / 10)


def test_traffic_is_per_second_and_instances_follow_from_it(graphs):
    (per_second, _) = graphs["Traffic"].series
    assert per_second.values[0] == pytest.approx(_per_second(0))
    (load,) = graphs["What does each instance get?"].series
    (instances,) = graphs["Instances"].series
    assert instances.values[0] == pytest.approx(BEFORE)
    assert instances.values[-1] == pytest.approx(AFTER)
    assert load.values[0] == pytest.approx(_per_second(0) * 60 / BEFORE)


def test_utilization_is_of_the_whole_instance(graphs):
    cpu, memory = graphs["Utilization of the instance"].series
    assert cpu.values[0] == pytest.approx(_per_second(0) / 1600 * 100)
    assert set(memory.values) == {41.0}


def test_zones_are_found_by_their_dimension(graphs):
    assert [each.label for each in graphs["Zones"].series] == list(ZONES)


def test_the_picture_in_the_docs_is_there():
    assert PICTURE.stat().st_size > 50_000


def _per_second(minute: int) -> float:
    return 600 + 350 * math.sin(minute / 50)


def _dimensions(values: dict[str, str]) -> list[dict[str, str]]:
    return [{"Name": name, "Value": value} for name, value in values.items()]


def _put_three_hours(client: Any) -> None:
    """A wave of traffic, and a deployment at half time that adds two instances."""
    chance = random.Random(20)
    requests: list[dict[str, Any]] = []
    utilization: list[dict[str, Any]] = []
    for minute in range(MINUTES):
        time = START + timedelta(minutes=minute)
        invocations = _per_second(minute) * 60
        instances = BEFORE if minute < MINUTES // 2 else AFTER
        slower = 2.2 if MINUTES // 2 <= minute < MINUTES // 2 + 6 else 1  # the new fleet is cold
        latencies = [slower * chance.lognormvariate(math.log(38_000), 0.42) for _ in range(120)]
        values: dict[str, Any] = {
            "Invocations": [invocations],
            "InvocationsPerInstance": [invocations / instances],
            "ModelLatency": latencies,
            "OverheadLatency": [latency / 10 for latency in latencies],
            "Invocation5XXErrors": [chance.choice([0, 0, 0, 0, 3])],
            "Invocation4XXErrors": [1],
            "InvocationModelErrors": [0],
            "ConcurrentRequestsPerModel": [3 + invocations / 12_000],
        }
        requests += [
            {
                "MetricName": name,
                "Dimensions": _dimensions(DIMENSIONS),
                "Timestamp": time,
                "Values": numbers,
            }
            for name, numbers in values.items()
        ]
        for zone, share in zip(ZONES, (0.55, 0.45), strict=True):
            by_zone = {
                **DIMENSIONS,
                "Region": "us-east-1",
                "AvailabilityZone": zone,
                "InstanceType": "ml.m5.12xlarge",
            }
            requests.append(
                {
                    "MetricName": "Invocations",
                    "Dimensions": _dimensions(by_zone),
                    "Timestamp": time,
                    "Values": [invocations * share],
                }
            )
        utilization += [
            {
                "MetricName": name,
                "Dimensions": _dimensions(DIMENSIONS),
                "Timestamp": time,
                "Value": value,
            }
            for name, value in (
                ("CPUUtilization", 4800 * _per_second(minute) / 1600),
                ("MemoryUtilization", 41.0),
            )
        ]
    for namespace, data in (("AWS/SageMaker", requests), ("/aws/sagemaker/Endpoints", utilization)):
        for first in range(0, len(data), AT_ONCE):
            client.put_metric_data(Namespace=namespace, MetricData=data[first : first + AT_ONCE])
