"""Slow for as long as the account's alarm wants is a finding; a period less is none of that alarm."""

from __future__ import annotations

from typing import Any

import pytest

from low_latency_endpoint.operate.diagnose import Diagnosis
from low_latency_endpoint.operate.diagnose.document import document
from low_latency_endpoint.options.alarms import DEFAULT_DATAPOINTS, DEFAULT_EVALUATION_PERIODS

from .account import MINUTE, FakeAccount
from .conftest import Run
from .scenarios import END, ENDPOINT, VARIANT, Scenario

#: Datapoints to alarm, and evaluation periods; without any it is the library's default.
_SHAPES = [(2, 3), (5, 5), (1, 1), (3, 5), (3, 3), None]
_FIRST = 30


def _window(shape: tuple[int, int] | None) -> dict[str, int]:
    if shape is None:
        return {}
    return {"Period": 60, "DatapointsToAlarm": shape[0], "EvaluationPeriods": shape[1]}


def _late(shape: tuple[int, int] | None, fewer: int = 0) -> list[set[int]]:
    """So many late minutes within the alarm's window: all at its end, and as far apart as may be."""
    least, of = shape or (DEFAULT_DATAPOINTS, DEFAULT_EVALUATION_PERIODS)
    number = least - fewer
    together = {_FIRST + n for n in range(number)}
    apart = {_FIRST + n for n in range(number - 1)} | {_FIRST + of - 1} if number > 1 else together
    return [together, apart]


def _endpoint(metric: str, late: set[int], shape: tuple[int, int] | None) -> Scenario:
    """What is late in these minutes, with an alarm on it."""
    values: dict[str, dict[str, Any]] = {
        "ModelLatency": {"latency": lambda m, i: 400 if m in late else 40},
        "OverheadLatency": {"overhead": lambda m: 90 if m in late else 6},
        "CPUUtilization": {"cpu": lambda m: 97 if m in late else 45, "thresholds": {}},
        "Errors": {"errors": {"Invocation5XXErrors": lambda m: 0.02 if m in late else 0}},
    }
    return Scenario(minutes=60, planned=None, alarm=_window(shape), **values[metric])


def _account(metric: str, late: set[int], shape: tuple[int, int] | None) -> FakeAccount:
    account = _endpoint(metric, late, shape).account()
    dimensions = [
        {"Name": "EndpointName", "Value": ENDPOINT},
        {"Name": "VariantName", "Value": VARIANT},
    ]
    common = {"StateValue": "OK", "ComparisonOperator": "GreaterThanThreshold", **_window(shape)}
    if metric == "CPUUtilization":
        alarm = {
            "MetricName": metric,
            "Statistic": "Average",
            "Namespace": "/aws/sagemaker/Endpoints",
        }
        account.alarms.append(
            {"AlarmName": "cpu", "Threshold": 4080.0, "Dimensions": dimensions, **alarm, **common}
        )
    if metric == "Errors":
        stats = [
            {
                "Id": name.lower(),
                "MetricStat": {
                    "Metric": {
                        "Namespace": "AWS/SageMaker",
                        "MetricName": name,
                        "Dimensions": dimensions,
                    },
                    "Period": 60,
                    "Stat": "Sum",
                },
                "ReturnData": False,
            }
            for name in ("Invocation5XXErrors", "Invocations")
        ]
        rate = {"Id": "rate", "Expression": "invocation5xxerrors/invocations", "ReturnData": True}
        account.alarms.append(
            {"AlarmName": "errors", "Threshold": 0.01, "Metrics": [*stats, rate], **common}
        )
    return account


def _ids(made: Diagnosis) -> list[str]:
    return [finding.id for finding in made.findings]


@pytest.mark.parametrize("shape", _SHAPES, ids=str)
@pytest.mark.parametrize("metric", ["ModelLatency", "OverheadLatency", "CPUUtilization", "Errors"])
def test_as_many_late_periods_as_the_alarm_wants_are_a_finding(
    metric: str, shape: tuple[int, int] | None, run: Run
) -> None:
    for late in _late(shape):
        made = run(_account(metric, late, shape))
        assert _ids(made), late
        assert made.healthy is False


@pytest.mark.parametrize("shape", [s for s in _SHAPES if s != (1, 1)], ids=str)
@pytest.mark.parametrize("metric", ["ModelLatency", "OverheadLatency", "CPUUtilization", "Errors"])
def test_a_late_period_less_is_no_finding(
    metric: str, shape: tuple[int, int] | None, run: Run
) -> None:
    for late in _late(shape, fewer=1):
        assert not _ids(run(_account(metric, late, shape))), late


_FIVE_MINUTES = {"Period": 300, "DatapointsToAlarm": 1, "EvaluationPeriods": 1}


@pytest.mark.parametrize(
    ("scenario", "found"),
    [
        # A minute's p99 is late by one request in a hundred, of five minutes' by one in 500.
        ({"latency": lambda m, i: 100 if m == 30 else 40}, False),
        ({"latency": lambda m, i: 100 if 30 <= m < 35 else 40}, True),
        # Half of the requests of one minute in five, and more.
        ({"latency": lambda m, i: 400 if m == 30 else 40}, True),
        # (2 * 90 + 3 * 6) / 5 = 39.6 ms, and (3 * 90 + 2 * 6) / 5 = 56.4 ms; the limit is 40 ms.
        ({"overhead": lambda m: 90 if 30 <= m < 32 else 6}, False),
        ({"overhead": lambda m: 90 if 30 <= m < 33 else 6}, True),
    ],
)
def test_an_alarm_of_longer_periods_sees_their_requests_together(
    scenario: dict[str, Any], found: bool, run: Run
) -> None:
    made = run(Scenario(alarm=_FIVE_MINUTES, **scenario))
    assert bool(made.findings) is found


def test_the_looser_of_two_alarms_may_be_the_faster(run: Run) -> None:
    """Warning after five of five minutes above 160 ms, critical after one above 500 ms."""
    scenario = Scenario(
        latency=lambda m, i: 400 if m == 30 else 40,
        alarm={"EvaluationPeriods": 5, "DatapointsToAlarm": 5},
        planned=None,
    )
    account = scenario.account()
    assert not run(account).findings
    (tight, *_) = account.alarms
    critical = {"Threshold": 500_000.0, "EvaluationPeriods": 1, "DatapointsToAlarm": 1}
    account.alarms.append({**tight, "AlarmName": "critical", **critical})
    assert run(account).findings


@pytest.mark.parametrize("cpu", [45, 99])
@pytest.mark.parametrize("late", [{58, 59}, {20, 21}, {40, 42}])
def test_two_slow_minutes_beside_an_alarm_that_is_on_have_a_cause(
    cpu: float, late: set[int], run: Run
) -> None:
    scenario = Scenario(
        latency=lambda m, i: 400 if m in late else 40,
        cpu=lambda m: cpu if m in late else 45,
        alarm={"StateValue": "ALARM", "StateUpdatedTimestamp": END - MINUTE},
        thresholds={("ModelLatency", "p99"): 160.0},
    )
    made = run(scenario)
    assert made.state == "faulty"
    assert "LLD710" not in _ids(made)
    assert "Nothing found" not in str(document(made))


def test_a_target_is_judged_as_long_as_the_alarm_on_it(run: Run) -> None:
    scenario = _endpoint("ModelLatency", {30, 31}, (3, 5))
    assert not run(scenario, targets={"p99": 300.0}).findings
    assert run(_endpoint("ModelLatency", {30, 31, 33}, (3, 5)), targets={"p99": 300.0}).findings


def test_datapoints_that_are_not_stated_are_all_periods(run: Run) -> None:
    """As CloudWatch has it."""
    four = _endpoint("ModelLatency", {30, 31, 32, 33}, None)
    four.alarm = {"EvaluationPeriods": 5}
    assert not run(four).findings
    five = _endpoint("ModelLatency", set(range(30, 35)), None)
    five.alarm = {"EvaluationPeriods": 5}
    assert run(five).findings


def test_programs_read_the_window_of_each_alarm(run: Run) -> None:
    (alarm,) = run(_endpoint("ModelLatency", set(), (3, 5))).to_dict()["alarms"][:1]
    assert alarm["window"] == {"seconds": 60, "evaluation_periods": 5, "datapoints": 3}
