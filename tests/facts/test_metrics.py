"""The metric table, statistics and the one unit conversion."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.facts.metrics import (
    check_statistic,
    metric_facts,
    metrics,
    microseconds_from_milliseconds,
    milliseconds_from_microseconds,
)
from low_latency_endpoint.plan.published_metrics import highest_utilization
from tests.refusals import refused

NAMESPACES = {"AWS/SageMaker", "/aws/sagemaker/Endpoints", "/aws/sagemaker/InferenceComponents"}


def test_each_metric_stands_once_per_namespace() -> None:
    keys = [(facts.namespace, facts.name) for facts in metrics()]
    assert len(keys) == len(set(keys))
    assert {namespace for namespace, _ in keys} == NAMESPACES


def test_latencies_are_in_microseconds() -> None:
    for facts in metrics():
        timed = facts.name.endswith(("Latency", "Time"))
        assert (facts.unit == "Microseconds") == timed, facts.name


def test_every_metric_has_dimensions_source_and_period() -> None:
    for facts in metrics():
        assert facts.dimensions[0] in (
            ("EndpointName", "VariantName"),
            ("InferenceComponentName",),
        ), facts.name
        assert facts.source.startswith("https://docs.aws.amazon.com/sagemaker/")
        assert facts.period_seconds == (10 if facts.name.startswith("Concurrent") else 60)
        assert facts.shapes


def test_namespaces_that_people_mix_up() -> None:
    assert metric_facts("ModelLatency").namespace == "AWS/SageMaker"
    assert metric_facts("CPUUtilization").namespace == "/aws/sagemaker/Endpoints"
    assert metric_facts("LoadedModelCount").namespace == "/aws/sagemaker/Endpoints"
    assert metric_facts("CPUUtilizationNormalized").namespace == "/aws/sagemaker/Endpoints"
    components = "/aws/sagemaker/InferenceComponents"
    assert metric_facts("CPUUtilizationNormalized", components).namespace == components


def test_serving_in_the_callers_zone_can_be_proved() -> None:
    zonal = ("EndpointName", "VariantName", "Region", "AvailabilityZone", "InstanceType")
    assert zonal in metric_facts("ModelLatency").dimensions


@pytest.mark.parametrize(
    ("metric", "statistic"),
    [
        ("ModelLatency", "p99"),
        ("ModelLatency", "p50"),
        ("ModelLatency", "p99.9"),
        ("ModelLatency", "p100"),
        ("ModelLatency", "Average"),
        ("ModelLatency", "tm99"),
        ("ModelLatency", "TM(10%:90%)"),
        ("ModelLatency", "PR(:300000)"),
        ("ModelLatency", "IQM"),
        ("OverheadLatency", "Average"),
        ("OverheadLatency", "Maximum"),
        ("Invocations", "Sum"),
        ("ConcurrentRequestsPerModel", "Maximum"),
        ("CPUUtilization", "p90"),
        ("CPUUtilization", "Average"),
    ],
)
def test_valid_statistics(metric: str, statistic: str) -> None:
    assert check_statistic(metric, statistic) == statistic


@pytest.mark.parametrize(
    ("metric", "statistic", "code"),
    [
        ("OverheadLatency", "p99", "LLE732"),
        ("OverheadLatency", "tm99", "LLE732"),
        ("OverheadLatency", "IQM", "LLE732"),
        ("Invocations", "Average", "LLE732"),
        ("Invocation5XXErrors", "p50", "LLE732"),
        ("ConcurrentRequestsPerModel", "Average", "LLE732"),
        ("ModelLatency", "P99", "LLE731"),
        ("ModelLatency", "average", "LLE731"),
        ("ModelLatency", "p101", "LLE731"),
        ("ModelLatency", "mean", "LLE731"),
        ("ModelLatency", "", "LLE731"),
        ("ModelLatency", "p", "LLE731"),
        ("ModelLatency", "TM99", "LLE731"),
        ("ModelLatency", 99, "LLE731"),
        ("TimeToFirstByte", "p99", "LLE730"),
        ("modellatency", "p99", "LLE730"),
    ],
)
def test_refused_statistics(metric: str, statistic: str, code: str) -> None:
    with refused(code):
        check_statistic(metric, statistic, "alarm")


def test_an_error_names_what_is_valid() -> None:
    with refused(
        "LLE732", allowed="Average, Sum, Minimum, Maximum, SampleCount", where="Stack/Alarms"
    ):
        check_statistic("OverheadLatency", "p99", "Stack/Alarms")


@pytest.mark.parametrize(
    ("milliseconds", "microseconds"),
    [(200, 200_000), (0.1, 100), (33.3, 33_300), (1.1, 1100), (0.001, 1), (8.7, 8700)],
)
def test_conversion_keeps_the_decimals(milliseconds: float, microseconds: float) -> None:
    assert microseconds_from_milliseconds(milliseconds) == microseconds
    assert milliseconds_from_microseconds(microseconds) == milliseconds


@given(st.decimals("0.000001", "100000000", places=6).map(float))
def test_conversion_is_undone(milliseconds: float) -> None:
    there = microseconds_from_milliseconds(milliseconds)
    assert milliseconds_from_microseconds(there) == milliseconds


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_conversion_of_no_number(value: float) -> None:
    with refused("LLE733"):
        microseconds_from_milliseconds(value)


def test_utilization_runs_to_a_hundred_per_unit() -> None:
    assert highest_utilization("CPUUtilization", "ml.g5.12xlarge") == 4800
    assert highest_utilization("GPUUtilization", "ml.g5.12xlarge") == 400
    assert highest_utilization("CPUUtilizationNormalized", "ml.g5.12xlarge") == 100
    assert highest_utilization("CPUUtilization", "ml.x9.large") is None
