"""What is read: thresholds, units, pages; and that what may not be read is unknown, never fine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from low_latency_endpoint.account.alarms import AlarmReading
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.operate.diagnose import diagnose
from low_latency_endpoint.operate.diagnose.document import alarms_text, verdict
from low_latency_endpoint.operate.diagnose.measurements import Threshold

from .account import MINUTE, FakeAccount
from .conftest import Run
from .faults.endpoints import saturated
from .faults.fault import from_minute
from .scenarios import CONFIGURATION, END, ENDPOINT, VARIANT, PerMinute, Scaled, Scenario, constant
from .steady_faults import FAULTS


def _denied(scenario: Scenario, operation: str, code: str = "AccessDenied") -> FakeAccount:
    account = scenario.account()
    account.denied = {operation: code}
    return account


def test_latency_is_in_milliseconds_and_utilization_of_the_whole_instance(run: Run) -> None:
    scenario = Scenario(spread=0.0, overhead=constant(6), cpu=constant(45))
    variant = run(scenario).measurements.variants[0]
    assert variant.get("ModelLatency", "p50").mean == pytest.approx(40, rel=0.03)
    assert variant.get("OverheadLatency", "Average").mean == pytest.approx(6, rel=0.05)
    # ml.m5.12xlarge publishes up to 4800 percent for its 48 vCPUs.
    assert variant.get("CPUUtilization", "Average").mean == pytest.approx(45, rel=0.03)
    assert len(variant.get("Invocations", "Sum")) == 60
    assert variant.get("Invocations", "Sum").sum == pytest.approx(600 * 3600)


@pytest.mark.parametrize(
    ("options", "thresholds", "expected"),
    [
        ({}, None, Threshold(160, "an alarm's threshold")),
        ({}, {}, Threshold(160, "the plan's threshold")),
        ({"targets": {"p99": 100.0}}, None, Threshold(80, "80% of the target 100 ms")),
    ],
)
def test_whose_threshold(
    run: Run, options: dict[str, object], thresholds: dict[str, float] | None, expected: Threshold
) -> None:
    """The command line's target first, then the alarms', then the plan's."""
    scenario = Scenario()
    if thresholds is not None:
        scenario.thresholds = {}
    found = run(scenario, **options).measurements.variants[0].thresholds
    assert found["ModelLatency", "p99"] == expected


OF_SETTINGS = {"p99": 300.0}


@pytest.mark.parametrize(
    ("options", "thresholds", "planned", "expected"),
    [
        ({}, {}, None, Threshold(240.0, "80% of the target 300 ms from the settings file")),
        ({"targets": {"p99": 200.0}}, {}, None, Threshold(160.0, "80% of the target 200 ms")),
        ({}, {("ModelLatency", "p99"): 100.0}, None, Threshold(100.0, "an alarm's threshold")),
        ({}, {}, {"peak_tps": 1000}, Threshold(160.0, "the plan's threshold")),
    ],
)
def test_a_settings_file_states_the_target_where_nothing_else_does(
    run: Run,
    options: dict[str, Any],
    thresholds: dict[tuple[str, str], float],
    planned: dict[str, float] | None,
    expected: Threshold,
) -> None:
    scenario = Scenario(thresholds=thresholds, planned=planned)
    made = run(scenario, settings_targets=OF_SETTINGS, **options)
    assert made.measurements.variants[0].thresholds["ModelLatency", "p99"] == expected
    assert not made.unjudged


def test_targets_of_tokens_come_from_a_settings_file_too(run: Run) -> None:
    made = run(Scenario(thresholds={}, planned=None), settings_targets={"ttft-p95": 500.0})
    assert made.measurements.variants[0].thresholds["TimeToFirstToken", "p95"] == Threshold(
        500.0, "the target from the settings file"
    )


def test_the_statistics_of_a_target_are_read(run: Run) -> None:
    variant = run(Scenario(), targets={"p99.9": 300.0}).measurements.variants[0]
    assert len(variant.get("ModelLatency", "p99.9")) == 60


def test_no_target_known_is_said(run: Run) -> None:
    made = run(Scenario(thresholds={}, planned=None, latency=lambda m, i: 4000))
    assert made.healthy is None
    assert [each.why for each in made.unjudged] == ["no_latency_target"]
    assert verdict(made) == "Nothing found, but not everything could be judged."


def test_full_instances_are_found_without_a_target(run: Run) -> None:
    made = run(saturated(thresholds={}, planned=None))
    assert [finding.id for finding in made.findings] == ["LLD102"]


@pytest.mark.parametrize(
    ("action", "what"),
    [
        ("application-autoscaling:DescribeScalableTargets", "scaling of primary"),
        ("application-autoscaling:DescribeScalingActivities", "scaling activities of primary"),
        ("cloudwatch:DescribeAlarms", "alarms"),
        ("cloudwatch:ListMetrics", "metrics per instance and zone"),
        ("sagemaker:DescribeModel", "model sentiment-model"),
        ("cloudformation:DescribeStackResources", "the stack's plan"),
        ("cloudformation:GetTemplate", "the stack's plan"),
        ("application-autoscaling:DescribeScalingPolicies", "changes by hand of scaling"),
    ],
)
def test_what_may_not_be_read_is_unknown(action: str, what: str, run: Run) -> None:
    made = run(_denied(Scenario(stated={}), action.partition(":")[2]))
    unknown = [(u.what, u.why) for u in made.measurements.unknown]
    assert (what, f"{action}: not permitted") in unknown
    assert {why for _, why in unknown} == {f"{action}: not permitted"}
    assert made.healthy
    assert "unknown" in verdict(made)
    assert what in [each["what"] for each in made.to_dict()["unknown"]]


@pytest.mark.parametrize(
    ("operation", "resources"),
    # AWS tells the first hundred with the stack's name; the stack is asked for where it drifted.
    [("ListStackResources", 100), ("DescribeStacks", 0)],
)
def test_what_a_stack_denies_is_unknown(operation: str, resources: int, run: Run) -> None:
    account = _denied(Scenario(stated={"max": 20}), operation)
    assert account.template
    more = {f"Log{number}": {"Type": "AWS::Logs::LogGroup"} for number in range(resources)}
    account.template["Resources"].update(more)
    made = run(account)
    why = f"cloudformation:{operation}: not permitted"
    assert [(each.what, each.why) for each in made.measurements.unknown] == [
        ("what was changed by hand", why)
    ]
    assert made.findings == ()


def test_plan_and_drift_of_a_stack_of_many_resources(run: Run) -> None:
    """The endpoint is not among the hundred that DescribeStackResources tells."""
    account = Scenario(stated={"max": 20}).account()
    assert account.template
    before = {f"Log{number}": {"Type": "AWS::Logs::LogGroup"} for number in range(120)}
    account.template["Resources"] = before | account.template["Resources"]
    account.physical |= {name: name for name in before}
    made = run(account)
    assert [finding.id for finding in made.findings] == ["LLD704"]
    assert made.measurements.unknown == ()


def test_unknown_scaling_is_not_taken_for_none(run: Run) -> None:
    """A saturated fleet whose scaling may not be read: saturated, and no word on scaling."""
    made = run(_denied(saturated(), "DescribeScalableTargets"))
    assert [(f.id, f.confidence) for f in made.findings] == [("LLD101", "medium")]


def test_an_unknown_instance_type_leaves_utilization_unknown(run: Run) -> None:
    made = run(_denied(Scenario(), "DescribeEndpointConfig"))
    assert "CPU and GPU utilization of primary" in [u.what for u in made.measurements.unknown]
    assert not made.measurements.variants[0].get("CPUUtilization", "Average")


@pytest.mark.parametrize(
    ("operation", "code", "expected", "words"),
    [
        ("GetMetricData", "AccessDenied", "LLD901", "cloudwatch:GetMetricData: not permitted"),
        ("DescribeEndpoint", "AccessDeniedException", "LLD901", "sagemaker:DescribeEndpoint"),
        ("DescribeEndpoint", "ExpiredTokenException", "LLA102", "ExpiredTokenException"),
        ("GetMetricData", "InternalServiceFault", "LLD901", "refused GetMetricData"),
    ],
)
def test_what_it_cannot_do_without(
    operation: str, code: str, expected: str, words: str, run: Run
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        run(_denied(Scenario(), operation, code))
    assert refused.value.code == expected
    assert words in refused.value.got


def test_missing_dimensions_are_said_not_guessed(run: Run) -> None:
    absent = run(Scenario()).measurements.absent
    assert any("no metrics per instance" in text for text in absent)
    assert any("no metrics per Availability Zone" in text for text in absent)
    assert (
        run(Scenario(enhanced=True, zones=("us-east-1a", "us-east-1b"))).measurements.absent == ()
    )


def test_instances_that_are_missing(run: Run) -> None:
    account = Scenario().account()
    account.endpoint["ProductionVariants"][0]["CurrentInstanceCount"] = 5
    made = run(account)
    assert [(f.id, f.confidence) for f in made.findings] == [("LLD703", "medium")]
    assert "5 of 8 instances" in made.findings[0].evidence[0].text
    account.endpoint["EndpointStatus"] = "Updating"  # scaling brings the others
    assert run(account).findings == ()


def _put(
    account: FakeAccount, metric: str, value: float, minutes: range, **dimensions: str
) -> FakeAccount:
    """So many requests in each minute, in a series of its own."""
    named = {"EndpointName": ENDPOINT, "VariantName": VARIANT, **dimensions}
    key = ("AWS/SageMaker", metric, frozenset(named.items()))
    account.data[key] = {account.start + minute * MINUTE: [(1.0, value)] for minute in minutes}
    return account


def test_streams_that_break_off(run: Run) -> None:
    account = _put(Scenario().account(), "MidStreamErrors", 1200, range(60))
    assert [f.id for f in run(account).findings] == ["LLD406"]
    few = _put(Scenario().account(), "MidStreamErrors", 120, range(60))
    assert run(few).findings == ()


def test_failed_scaling_without_slow_requests_is_a_risk(run: Run) -> None:
    failed = Scaled(30, 9, "Failed", "Insufficient capacity")
    made = run(Scenario(activities=[failed]))
    assert [(f.id, f.risk) for f in made.findings] == [("LLD103", True)]


NEW_FLEET = {"EndpointConfigName": CONFIGURATION}


def _first_request() -> FakeAccount:
    return _put(Scenario(deployed=10).account(), "Invocations", 50, range(17, 30), **NEW_FLEET)


def _after_a_silence() -> FakeAccount:
    """The new fleet's series lasts, and so may start anew with the traffic."""
    account = Scenario(tps=from_minute(17, 0, 500)).account()
    return _put(account, "Invocations", 30_000, range(17, 30), **NEW_FLEET)


def _resolved_image() -> FakeAccount:
    account = Scenario().account()
    account.endpoint["ProductionVariants"][0]["DeployedImages"] = [
        {"SpecifiedImage": "model:1", "ResolutionTime": account.start + 20 * MINUTE}
    ]
    return account


def _modified(instances: PerMinute) -> FakeAccount:
    """Capacity set by hand changes the time at which the endpoint was modified last, too."""
    account = Scenario(instances=instances, tps=constant(500)).account()
    account.endpoint["LastModifiedTime"] = account.start + 27.2 * MINUTE
    account.configuration["CreationTime"] = account.start - 60 * MINUTE
    return account


def _served_before() -> FakeAccount:
    """An update that was given up, weights or a scale-in change that time, too."""
    return _put(_modified(constant(8)), "Invocations", 30_000, range(60), **NEW_FLEET)


@pytest.mark.parametrize(
    ("account", "found"),
    [
        (_first_request, [(17, "first request to the new fleet")]),
        (_after_a_silence, []),
        (_resolved_image, [(20, "when its image was resolved")]),
        (lambda: _modified(from_minute(27, 5, 8)), []),
        (lambda: _modified(constant(8)), [(27.2, "when the update ended")]),
        (_served_before, []),
    ],
    ids=[
        "first request",
        "after a silence",
        "resolved image",
        "capacity by hand",
        "update",
        "the same fleet before",
    ],
)
def test_what_dates_a_deployment(
    account: Callable[[], FakeAccount], found: list[tuple[float, str]], run: Run
) -> None:
    made = account()
    deployments = run(made).measurements.deployments
    assert [((d.time - made.start) / MINUTE, d.how) for d in deployments] == found


def test_longer_windows_take_longer_periods(run: Run) -> None:
    made = diagnose(Scenario().account(), ENDPOINT, start=END - timedelta(days=7), end=END, now=END)
    assert made.measurements.period == timedelta(minutes=5)
    assert len(made.measurements.variants[0].get("Invocations", "Sum")) == 12


@pytest.mark.parametrize("finding", ["LLD121", "LLD201"])
def test_what_began_before_the_window_still_explains_it(finding: str) -> None:
    """A scale-out begun a minute before the window: no request before it tells the old count."""
    fault = [fault for fault in FAULTS if fault.finding == finding][-1]
    assert [f.id for f in fault.diagnosed_over(38).findings] == [finding]


def test_an_activity_that_was_not_begun_did_not_fail(run: Run) -> None:
    tried = Scaled(20, 16, "Failed", "Attempting to scale", reasons=("AlreadyAtMaxCapacity",))
    made = run(Scenario(activities=[tried, replace(tried, minute=30)]))
    assert made.findings == ()
    assert "Not scaled: AlreadyAtMaxCapacity" in made.events[0].text


def test_only_alarms_that_limit_latency_are_thresholds(run: Run) -> None:
    """An alarm on too little latency, or on counts, says nothing about how fast it must be."""
    account = Scenario().account()
    first = account.alarms[0]
    account.alarms += [
        {**first, "AlarmName": "too-fast", "ComparisonOperator": "LessThanThreshold"},
        {**first, "AlarmName": "looser", "Threshold": 900_000.0},
        {**first, "AlarmName": "burn", "ExtendedStatistic": "PR(160000:)", "Threshold": 14.4},
    ]
    thresholds = run(account).measurements.variants[0].thresholds
    assert {key: limit.value for key, limit in thresholds.items()} == {
        ("ModelLatency", "p99"): 160.0,
        ("OverheadLatency", "Average"): 40.0,
    }


def test_the_rate_of_an_alarm_on_errors(run: Run) -> None:
    """The endpoint's own error rate, stated as a formula, replaces the default of one percent."""
    scenario = Scenario(errors={"Invocation5XXErrors": constant(0.03)})
    account = scenario.account()
    dimensions = account.alarms[0]["Dimensions"]
    parts = {"errors": "Invocation5XXErrors", "invocations": "Invocations"}
    metrics = {
        name: {"Namespace": "AWS/SageMaker", "MetricName": metric, "Dimensions": dimensions}
        for name, metric in parts.items()
    }
    account.alarms.append(
        {
            "AlarmName": "rate",
            "Threshold": 0.05,
            "ComparisonOperator": "GreaterThanThreshold",
            "StateValue": "OK",
            "Metrics": [
                {"Id": "rate", "Expression": "IF(invocations >= 20, errors / invocations, 0)"},
                *(
                    {"Id": name, "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Sum"}}
                    for name, metric in metrics.items()
                ),
            ],
        }
    )
    assert run(account).findings == ()
    assert [finding.id for finding in run(scenario).findings] == ["LLD402"]


def test_alarms_of_scaling_are_no_incident() -> None:
    """Application Auto Scaling's low alarm is on whenever it may scale in."""
    named = ("p99", "TargetTracking-endpoint/sentiment/variant/primary-AlarmLow-1")
    alarms = [AlarmReading(name, "ModelLatency", "p99", 1.0, "ms", "ALARM") for name in named]
    said = list(alarms_text(SimpleNamespace(alarms=alarms)))
    assert said == ["in ALARM now: ModelLatency p99", "  p99"]
