"""Every alarm that LatencyAlarms makes, deployed and judged on data on both sides of its threshold.

Data goes in as SageMaker publishes it, states come back through DescribeAlarms. A row states the
numbers in SageMaker's units, worked out from the options in conftest.py, not from the construct.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from low_latency_endpoint import AlarmOptions

from .conftest import MINUTE

# Options that change how alarms are made, not which: tests/synth has them.
NOT_AN_ALARM = {
    "minimum_failures",
    "minimum_invocations",
    "period",
    "evaluation_periods",
    "datapoints_to_alarm",
    "actions",
    "quiet_during_deployments",
    "service_level_objective",
    "tokens",  # alarms of another construct
}
ENDPOINTS = ("single", "gpu", "multi", "rollback")


def spread(*pairs: tuple[float, int]) -> dict[str, Any]:
    """Values with their counts."""
    return {"Values": [float(v) for v, _ in pairs], "Counts": [float(c) for _, c in pairs]}


def slow(percent: float) -> dict[str, Any]:
    """1000 latencies, a share of them above 200 ms."""
    count = round(percent * 10)
    return {"ModelLatency": spread((50_000, 1000 - count), (200_001, count))}


def errors(metric: str, count: int, invocations: int) -> dict[str, Any]:
    """Each request counts, with 1 or with 0."""
    return {
        metric: spread((1, count), (0, invocations - count)),
        "Invocations": spread((1, invocations)),
    }


def value(metric: str, number: float) -> dict[str, Any]:
    return {metric: {"Value": number}}


def zones(first: int, second: int) -> dict[str, Any]:
    return {"Invocations@zone0": {"Value": first}, "Invocations@zone1": {"Value": second}}


def instances(per_instance: float) -> dict[str, Any]:
    return {"Invocations": {"Value": 400}, "InvocationsPerInstance": {"Value": per_instance}}


@dataclass(frozen=True)
class Row:
    """Data of a minute, repeated, that leaves an alarm OK, and that raises it."""

    option: str
    ok: list[dict[str, Any]]
    alarm: list[dict[str, Any]]
    minutes: int = 3
    history: list[dict[str, Any]] = field(default_factory=list)


def above(option: str, metric: str, ok: float, alarm: float) -> Row:
    """Values on both sides of a threshold."""
    return Row(option, [value(metric, ok)], [value(metric, alarm)])


def share(option: str, metric: str, ok: int, alarm: int) -> Row:
    """Errors in a thousand requests, on both sides."""
    return Row(option, [errors(metric, ok, 1000)], [errors(metric, alarm, 1000)])


LATENCY_TAIL = spread((50_000, 985), (900_000, 5), (60_000, 10))  # half a percent is slow
COMMON: dict[str, Row] = {
    "OverheadLatency/Average": above("overhead_latency", "OverheadLatency", 19_900, 20_100),
    "Invocation5XXErrors/Rate": Row(
        # Two failures are no alarm, though all requests fail; three are.
        "error_rate",
        [errors("Invocation5XXErrors", 10, 1000), errors("Invocation5XXErrors", 2, 2)],
        [errors("Invocation5XXErrors", 11, 1000), errors("Invocation5XXErrors", 3, 3)],
    ),
    "Invocation4XXErrors/Rate": share("client_error_rate", "Invocation4XXErrors", 50, 51),
    "InvocationModelErrors/Rate": share("model_error_rate", "InvocationModelErrors", 20, 21),
    # The budget is 1 %: 14.4 and 6 times as fast.
    "ModelLatency/BurnRateFast/Long": Row("slow_requests", [slow(14.4)], [slow(14.5)], 60),
    "ModelLatency/BurnRateFast/Short": Row("slow_requests", [slow(14.4)], [slow(14.5)], 5),
    "ModelLatency/BurnRateSlow/Long": Row("slow_requests", [slow(6)], [slow(6.1)], 360),
    "ModelLatency/BurnRateSlow/Short": Row("slow_requests", [slow(6)], [slow(6.1)], 30),
    "MemoryUtilization/Average": above("memory_utilization", "MemoryUtilization", 80, 81),
    "DiskUtilization/Average": above("disk_utilization", "DiskUtilization", 85, 86),
    "Invocations/Silence": Row("expect_traffic", [value("Invocations", 1)], [{}], 5),
}
_ONE_TYPE = {
    "ModelLatency/p50": above("model_latency", "ModelLatency", 50_000, 50_001),
    "ModelLatency/p99": Row(
        "model_latency",
        [value("ModelLatency", 200_000), {"ModelLatency": LATENCY_TAIL}],
        [value("ModelLatency", 200_001), {"ModelLatency": spread((50_000, 98), (900_000, 2))}],
    ),
    "CPUUtilization/Average": above("cpu_utilization", "CPUUtilization", 280, 281),  # of 4 vCPUs
}
ROWS: dict[str, dict[str, Row]] = {
    "single": {
        **COMMON,
        **_ONE_TYPE,
        # 400 requests at 400/3 per instance: 3 instances; at 100: all 4.
        "Instances/Maximum": Row(
            "capacity_at_maximum", [instances(400 / 3)], [instances(100)], minutes=5
        ),
        "Invocations/ZoneImbalance": Row("zone_imbalance", [zones(75, 25)], [zones(76, 24)]),
        "Invocations-Sum-Anomaly": Row(
            "anomalies",
            [value("Invocations", 119), value("Invocations", 81)],
            [value("Invocations", 130), value("Invocations", 70)],
            history=[value("Invocations", 90), value("Invocations", 110)] * 20,
        ),
    },
    "gpu": {
        **COMMON,
        "ModelLatency/p99/Warning": above("model_latency", "ModelLatency", 150_000, 150_001),
        "ModelLatency/p99/Critical": above("model_latency", "ModelLatency", 300_000, 300_001),
        "CPUUtilization/Average": above("cpu_utilization", "CPUUtilization", 3360, 3361),
        "GPUUtilization/Average": above("gpu_utilization", "GPUUtilization", 340, 341),
        "GPUMemoryUtilization/Average": above(
            "gpu_memory_utilization", "GPUMemoryUtilization", 360, 361
        ),
    },
    "multi": {
        **COMMON,
        **_ONE_TYPE,
        "ModelCacheHit/Average": Row(
            "cache_miss_rate",
            [{"ModelCacheHit": spread((1, 950), (0, 50))}],
            [{"ModelCacheHit": spread((1, 949), (0, 51))}],
        ),
        "ModelLoadingWaitTime/Average": above(
            "model_loading_wait", "ModelLoadingWaitTime", 500_000, 500_001
        ),
    },
}

# ------------------------------------------------------------------------------------ each alarm


SHAPES = tuple(ROWS)
CASES = [(shape, key) for shape in SHAPES for key in ROWS[shape]]


@pytest.mark.parametrize(("shape", "key"), CASES, ids=["-".join(case) for case in CASES])
def test_both_sides_of_the_threshold(world, shape, key):
    row = ROWS[shape][key]
    for expected, data in [*(("OK", d) for d in row.ok), *(("ALARM", d) for d in row.alarm)]:
        start = next(world.times)
        # The band comes from before the evaluation range, which is two datapoints longer.
        before = len(row.history) + 2
        past = [(start + (n - before) * MINUTE, old) for n, old in enumerate(row.history)]
        step = max(row.minutes // 5, 1)
        present = [(start + n * MINUTE, data) for n in range(0, row.minutes, step)]
        world.publish(shape, *past, *present)
        world.aws.evaluate_alarms(start + row.minutes * MINUTE)
        assert world.states(shape)[key] == expected, data


@pytest.mark.parametrize("shape", SHAPES)
def test_every_alarm_has_a_row(world, shape):
    made = {key for key in world.names[shape] if not key.startswith("Composite")}
    assert made == set(ROWS[shape])


def test_every_option_has_a_row():
    options = {row.option for rows in ROWS.values() for row in rows.values()}
    assert options == set(AlarmOptions.__annotations__) - NOT_AN_ALARM


def test_missing_data_alarms_only_where_silence_is_the_fault(world):
    world.aws.evaluate_alarms(next(world.times))
    for shape in SHAPES:
        on = {key for key, state in world.states(shape).items() if state == "ALARM"}
        assert on == {"Invocations/Silence", "Composite"}


def test_silence_after_traffic(world):
    """Five of five minutes without data; real ones of the evaluation range count for longer."""
    start = next(world.times)
    traffic = value("Invocations", 50)
    world.publish("single", *((start + n * MINUTE, traffic) for n in range(10)))
    seen = []
    for minute in range(10, 20):
        world.aws.evaluate_alarms(start + minute * MINUTE)
        seen.append(world.states("single")["Invocations/Silence"])
    assert seen == ["OK"] * 7 + ["ALARM"] * 3


def test_the_objective_is_the_tightest_threshold_of_the_alarms(world):
    summaries = world.aws.client("cloudformation").list_stack_resources(StackName="Alarms")
    (arn,) = (
        each["PhysicalResourceId"]
        for each in summaries["StackResourceSummaries"]
        if each["ResourceType"] == "AWS::ApplicationSignals::ServiceLevelObjective"
    )
    found = world.aws.client("application-signals").get_service_level_objective(Id=arn)["Slo"]
    assert found["Sli"]["MetricThreshold"] == 50_000  # p50, which stands before p99 at 200 ms
    assert found["Goal"]["AttainmentGoal"] == 99


def test_rollback_alarms_see_the_new_fleet_only(world):
    old_and_new = {True: "ALARM", False: "OK"}
    keys = ("ModelLatency/p99", "Invocation5XXErrors/Rate")
    assert set(world.names["rollback"]) == set(keys)  # and no composite
    bad = {**value("ModelLatency", 900_000), **errors("Invocation5XXErrors", 500, 1000)}
    for new, expected in old_and_new.items():
        start = next(world.times)
        data = {f"{name}@new" if new else name: datum for name, datum in bad.items()}
        world.publish("rollback", *((start + n * MINUTE, data) for n in range(3)))
        world.aws.evaluate_alarms(start + 3 * MINUTE)
        assert {key: world.states("rollback")[key] for key in keys} == dict.fromkeys(keys, expected)


def test_rollback_alarms_follow_a_series_that_lasts(world):
    """From create or from a deployment on, for good: on in an incident, off after it."""
    start = next(world.times)
    bad = errors("Invocation5XXErrors@new", 500, 1000)
    good = errors("Invocation5XXErrors@new", 0, 1000)
    for minute in range(40):
        data = bad if 20 <= minute < 25 else good
        data = {**data, "Invocations@new": data["Invocations"]} if minute < 30 else {}
        world.publish("rollback", (start + minute * MINUTE, data))
    seen = []
    for minute in range(1, 41):
        world.aws.evaluate_alarms(start + minute * MINUTE)
        seen.append(world.states("rollback")["Invocation5XXErrors/Rate"])
    # Two of three: on after minutes 20 and 21, off when one of 24 to 26 is bad; silence is fine.
    assert seen == ["OK"] * 21 + ["ALARM"] * 5 + ["OK"] * 14
