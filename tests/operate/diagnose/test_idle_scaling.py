"""A full fleet that nothing was added to is never said to scale slowly, whatever scales it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from low_latency_endpoint.operate.diagnose import Diagnosis

from .account import FakeAccount
from .faults.fault import between, from_minute, slow, up_to
from .scenarios import Scaled, Scenario

Run = Callable[..., Diagnosis]

#: What keeps a fleet from growing, and what is found of it.
SILENT = {"LLD106", "LLD110", "LLD144", "LLD145"}
CONCURRENCY = {"metric": "SageMakerVariantConcurrentRequestsPerModelHighResolution"}

#: The scaling of 8 instances whose load rises to so many times the target of one.
METRICS: dict[str, Callable[[float], dict[str, Any]]] = {
    "invocations": lambda times: {
        "tps": from_minute(20, 520, 1040 * times),  # 8 x 7,800 / 60 are 1,040
        "scaling": up_to(16),
    },
    "concurrency": lambda times: {
        "in_flight": from_minute(20, 6, 20 * times),
        "scaling": up_to(16, 20.0) | CONCURRENCY,
    },
    "steps": lambda times: {"scaling": up_to(16) | {"policy": "StepScaling"}},
    "no policy": lambda times: {"scaling": up_to(16) | {"policy": None}},
}
#: What is known of scaling besides: none of it is a scale-out for this load.
BESIDES: dict[str, Callable[[], dict[str, Any]]] = {
    "nothing": dict,
    "an earlier scale-out": lambda: {"activities": [Scaled(1, 8)]},
    "an earlier scale-in": lambda: {"activities": [Scaled(1, 8, cause="AlarmLow")]},
    "suspended": lambda: {"suspended": True},
    "updating": lambda: {"status": "Updating", "deployed": 22},
}
PROCESSORS: dict[str, dict[str, Any]] = {
    "GPU": {"instance_type": "ml.g5.xlarge", "gpu": from_minute(20, 60, 100)},
    "CPU": {"cpu": from_minute(20, 45, 97)},
}


def full(metric: str, besides: str, processor: str, times: float, **more: Any) -> Scenario:
    """Full and slow from minute 20 on, for 40 minutes."""
    values = {
        "latency": slow(20, 60, 300),
        "planned": None,
        **PROCESSORS[processor],
        **METRICS[metric](times),
        **BESIDES[besides](),
    }
    return Scenario(**(values | more))


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize(
    ("metric", "besides", "times"), [*itertools.product(METRICS, BESIDES, (1.1, 2.0, 4.0))]
)
def test_nothing_was_added(
    metric: str, besides: str, times: float, processor: str, run: Run
) -> None:
    found = {finding.id for finding in run(full(metric, besides, processor, times)).findings}
    assert found & SILENT, found
    assert "LLD104" not in found
    if besides == "suspended":
        assert found & SILENT == {"LLD106"}
    elif metric == "no policy":
        assert found & SILENT == {"LLD145"}
    else:
        assert found & SILENT == {"LLD144" if besides == "updating" else "LLD110"}


@pytest.mark.parametrize("metric", ["invocations", "concurrency", "steps"])
@pytest.mark.parametrize("minute", [22, 30, 45])
def test_what_was_added_late_is_slow_and_not_idle(metric: str, minute: int, run: Run) -> None:
    scenario = full(metric, "nothing", "GPU", 2.0, activities=[Scaled(minute, 12)])
    found = {finding.id for finding in run(scenario).findings}
    assert "LLD104" in found
    assert not found & SILENT


@pytest.mark.parametrize("metric", ["invocations", "concurrency", "steps"])
def test_ten_minutes_are_too_few_to_call_scaling_idle(metric: str, run: Run) -> None:
    spike = {"gpu": between(40, 50, 100, 60), "latency": slow(40, 50, 300)}
    if metric == "invocations":
        spike["tps"] = between(40, 50, 2080, 520)
    elif metric == "concurrency":
        spike["in_flight"] = between(40, 50, 40, 6)
    found = {finding.id for finding in run(full(metric, "nothing", "GPU", 2.0, **spike)).findings}
    assert not found & SILENT


def test_a_target_that_was_not_reached_gives_scaling_no_reason(run: Run) -> None:
    scenario = full("invocations", "nothing", "GPU", 0.9)
    assert [finding.id for finding in run(scenario).findings] == ["LLD107"]


@pytest.mark.parametrize("operation", ["DescribeScalingActivities", "DescribeScalingPolicies"])
def test_what_may_not_be_read_is_not_taken_for_nothing(operation: str, run: Run) -> None:
    account = full("invocations", "nothing", "GPU", 2.0).account()
    account.denied[operation] = "AccessDeniedException"
    (finding,) = run(account).findings
    assert (finding.id, finding.confidence) == ("LLD110", "medium")
    assert "may not be read" in finding.evidence[-1].text


def test_components_scale_by_copies_which_are_not_read(run: Run) -> None:
    account = full("invocations", "nothing", "GPU", 2.0, scaling=None).account()
    del account.configuration["ProductionVariants"][0]["ModelName"]
    assert [finding.id for finding in run(account).findings] == ["LLD101"]


def _alarm(account: FakeAccount, state: str) -> None:
    dimensions = {"EndpointName": "sentiment", "VariantName": "primary"}
    account.alarms.append(
        {
            "AlarmName": "TargetTracking-endpoint/sentiment/variant/primary-AlarmHigh-1",
            "Namespace": "AWS/SageMaker",
            "MetricName": "InvocationsPerInstance",
            "Statistic": "Sum",
            "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions.items()],
            "Threshold": 7800.0,
            "ComparisonOperator": "GreaterThanThreshold",
            "StateValue": state,
        }
    )


@pytest.mark.parametrize(
    ("state", "step"),
    [
        (None, "AlarmHigh is missing"),
        ("ALARM", "may the service-linked role change the endpoint"),
        ("OK", "is OK: compare its threshold"),
        ("INSUFFICIENT_DATA", "is INSUFFICIENT_DATA: compare its threshold"),
    ],
)
def test_the_next_step_follows_from_the_policys_alarm(
    state: str | None, step: str, run: Run
) -> None:
    account = full("invocations", "nothing", "GPU", 2.0).account()
    if state is not None:
        _alarm(account, state)
    (finding,) = run(account).findings
    assert step in finding.besides
