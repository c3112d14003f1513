"""Several instance pools: each type is watched and drawn with its own vCPUs and GPUs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from aws_cdk import CfnParameter, Duration

from low_latency_endpoint import (
    AlarmOptions,
    InstancePool,
    InstanceType,
    LatencyAlarms,
    LatencyDashboard,
)

G5, M5 = "ml.g5.12xlarge", "ml.m5.2xlarge"  # 48 vCPUs and 4 GPUs; 8 vCPUs


@pytest.fixture
def pooled(stack, parts):
    """An endpoint whose variant may run on these types, tried in this order."""

    def make(*types):
        variant = parts.variant(
            stack,
            instance_pools=[
                InstancePool(InstanceType(name), number) for number, name in enumerate(types, 1)
            ],
        )
        return parts.endpoint(stack, variants=[variant])

    return make


def watched(stack, template_of, alarms):
    """Key -> threshold and instance type of the metric."""
    found = {}
    for key, alarm in template_of(stack).made_of(alarms.alarms).items():
        types = [d["Value"] for d in alarm["Dimensions"] if d["Name"] == "InstanceType"]
        found[key] = (alarm["Threshold"], *types)
    return found


def test_each_type_has_a_threshold_of_its_own(stack, pooled, template_of):
    alarms = LatencyAlarms(
        stack,
        "Alarms",
        endpoint=pooled(G5, M5),
        options=replace(
            AlarmOptions.none(), cpu_utilization=85, memory_utilization=90, gpu_utilization=80
        ),
    )
    assert watched(stack, template_of, alarms) == {
        f"primary/CPUUtilization/Average/{G5}": (0.85 * 4800, G5),
        f"primary/CPUUtilization/Average/{M5}": (0.85 * 800, M5),
        f"primary/MemoryUtilization/Average/{G5}": (90, G5),
        f"primary/MemoryUtilization/Average/{M5}": (90, M5),
        f"primary/GPUUtilization/Average/{G5}": (0.8 * 400, G5),
    }


def test_latency_is_watched_as_a_whole_and_by_type(stack, pooled, template_of):
    alarms = LatencyAlarms(
        stack,
        "Alarms",
        endpoint=pooled(G5, M5),
        options=replace(AlarmOptions.none(), model_latency={"p99": Duration.millis(200)}),
    )
    assert watched(stack, template_of, alarms) == {
        "primary/ModelLatency/p99": (200_000,),
        f"primary/ModelLatency/p99/{G5}": (200_000, G5),
        f"primary/ModelLatency/p99/{M5}": (200_000, M5),
    }


def test_severities_stay_apart(stack, pooled):
    alarms = LatencyAlarms(
        stack,
        "Alarms",
        endpoint=pooled(G5, M5),
        options=replace(
            AlarmOptions.none(), model_latency={"Warning": {"p99": Duration.millis(100)}}
        ),
    )
    assert set(alarms.composites) == {"Warning"}
    assert f"primary/ModelLatency/p99/{M5}/Warning" in alarms.alarms


def test_the_page_names_every_type(stack, pooled, template_of):
    LatencyAlarms(
        stack,
        "Alarms",
        endpoint=pooled(G5, M5),
        options=replace(AlarmOptions.none(), cpu_utilization=85),
    )
    composite = template_of(stack).only("AWS::CloudWatch::CompositeAlarm")
    assert str(composite["AlarmRule"]).count("'Ref'") == 2


def test_rollback_alarms_watch_the_new_fleet_as_a_whole(stack, pooled, template_of):
    alarms = LatencyAlarms(
        stack,
        "Alarms",
        endpoint=pooled(G5, M5),
        new_fleet_only=True,
        options=replace(AlarmOptions.none(), model_latency={"p99": Duration.millis(200)}),
    )
    assert watched(stack, template_of, alarms) == {"primary/ModelLatency/p99": (200_000,)}


def test_one_pool_is_watched_like_a_type(stack, pooled, template_of):
    alarms = LatencyAlarms(
        stack,
        "Alarms",
        endpoint=pooled(M5),
        options=replace(AlarmOptions.none(), cpu_utilization=85),
    )
    assert watched(stack, template_of, alarms) == {"primary/CPUUtilization/Average": (680,)}


def test_a_type_that_is_a_parameter_leaves_one_alarm(stack, pooled):
    unknown = CfnParameter(stack, "Type").value_as_string
    alarms = LatencyAlarms(
        stack,
        "Alarms",
        endpoint=pooled(unknown, M5),
        options=replace(AlarmOptions.none(), memory_utilization=90),
    )
    assert list(alarms.alarms) == ["primary/MemoryUtilization/Average"]


def graphs_of(body):
    return {
        widget["properties"]["title"]: widget["properties"]
        for widget in body["widgets"]
        if widget["type"] == "metric"
    }


def test_the_dashboard_draws_each_type(stack, pooled):
    body = LatencyDashboard(
        stack, "Dashboard", endpoint=pooled(G5, M5), model_latency={"p99": Duration.millis(160)}
    ).body
    graphs = graphs_of(body)
    formulas = [
        row[0]["expression"]
        for row in graphs["Utilization of the instance"]["metrics"]
        if len(row) == 1
    ]
    assert formulas == ["cpu0_raw / 48", "gpu0_raw / 4", "cpu1_raw / 8"]
    latency = graphs["How fast is each instance type?"]
    assert [row[7] for row in latency["metrics"] if len(row) > 1] == [G5, M5]
    assert latency["annotations"]["horizontal"][0]["value"] == 160
    shares = graphs["Which instance types serve?"]
    assert [row[7] for row in shares["metrics"]] == [G5, M5]
    assert shares["stacked"] is True


def test_one_type_has_no_such_graphs(stack, parts):
    body = LatencyDashboard(stack, "Dashboard", endpoint=parts.endpoint(stack)).body
    assert "How fast is each instance type?" not in graphs_of(body)
