"""Alarms of the local AWS are judged as CloudWatch's documentation says."""

from __future__ import annotations

import itertools
import json
import math
import time
import urllib.error
from datetime import UTC, datetime, timedelta
from typing import Any

import botocore.exceptions
import pytest
from alarms_under_test import (
    MINUTE,
    NOON,
    TOPIC,
    described,
    dimensions,
    set_state,
    state,
    subscribed,
)
from alarms_under_test import put_alarm as alarm
from waiting import wait_for

from local_sagemaker import LocalAws
from local_sagemaker.admission import TOKEN_VARIABLE
from local_sagemaker.cloudwatch.evaluation import Evaluator
from local_sagemaker.connections import ask

_numbers = itertools.count(1)


def put(
    client: Any,
    name: str,
    *values: float | None,
    first: datetime = NOON,
    period: timedelta = MINUTE,
    **more: Any,
) -> None:
    """One datum per period; None is a missing one."""
    data = [
        {"MetricName": name, "Timestamp": first + number * period, "Value": value, **more}
        for number, value in enumerate(values)
        if value is not None
    ]
    for start in range(0, len(data), 500):
        client.put_metric_data(Namespace="Test", MetricData=data[start : start + 500])


# "Configuring how CloudWatch alarms treat missing data": both tables, the newest datapoint on the
# right; states in the order of TREATMENTS, None for "Retain current state".
TREATMENTS = ("missing", "ignore", "breaching", "notBreaching")
NO_DATA, A = "INSUFFICIENT_DATA", "ALARM"
THREE_OF_THREE = {
    "0 - X - X": ("OK", "OK", "OK", "OK"),
    "0 - - - -": ("OK", "OK", "OK", "OK"),
    "- - - - -": (NO_DATA, None, A, "OK"),
    "0 X X - X": (A, A, A, A),
    "- - X - -": (A, None, A, "OK"),
}
TWO_OF_THREE = {
    "0 - X - X": (A, A, A, A),
    "0 0 X 0 X": (A, A, A, A),
    "0 - X - -": ("OK", "OK", A, "OK"),
    "- - - - 0": ("OK", "OK", A, "OK"),
    "- - - X -": (A, None, A, "OK"),
}
# "Avoiding premature transitions": not yet in ALARM. That the state is kept is our reading.
NOT_YET = {"- - - - X": (None, None, A, "OK"), "- - - X -": (None, None, A, "OK")}


@pytest.mark.parametrize("before", ["OK", "ALARM"])
@pytest.mark.parametrize(
    ("needed", "table"),
    [(3, THREE_OF_THREE), (2, TWO_OF_THREE), (3, NOT_YET)],
    ids=["3 of 3", "2 of 3", "premature"],
)
def test_missing_data_by_aws_tables(aws, cloudwatch, needed, table, before):
    five = timedelta(minutes=5)
    for row, (points, _) in enumerate(table.items()):
        values = [{"0": 0.0, "X": 1.0, "-": None}[point] for point in points.split()]
        put(cloudwatch, f"row{row}", *values, period=five)
        for treatment in TREATMENTS:
            alarm(
                cloudwatch,
                f"{row}-{treatment}",
                f"row{row}",
                Period=300,
                EvaluationPeriods=3,
                DatapointsToAlarm=needed,
                TreatMissingData=treatment,
            )
            set_state(cloudwatch, f"{row}-{treatment}", before)
    aws.evaluate_alarms(NOON + 5 * five)
    for row, (points, expected) in enumerate(table.items()):
        found = tuple(state(cloudwatch, f"{row}-{treatment}") for treatment in TREATMENTS)
        assert found == tuple(value or before for value in expected), points


@pytest.mark.parametrize(
    ("operator", "breaching"),
    [
        ("GreaterThanThreshold", [6]),
        ("GreaterThanOrEqualToThreshold", [5, 6]),
        ("LessThanThreshold", [4]),
        ("LessThanOrEqualToThreshold", [4, 5]),
    ],
)
def test_comparison(aws, cloudwatch, operator, breaching):
    for value in (4, 5, 6):
        put(cloudwatch, f"m{value}", value)
        alarm(cloudwatch, f"a{value}", f"m{value}", Threshold=5, ComparisonOperator=operator)
    aws.evaluate_alarms(NOON + MINUTE)
    assert [v for v in (4, 5, 6) if state(cloudwatch, f"a{v}") == "ALARM"] == breaching


def test_the_window_slides_by_the_minute_whatever_the_period(aws, cloudwatch):
    """A period of 5 minutes: "at the end of minute 6 ... data from minute 2 to minute 6"."""
    put(cloudwatch, "m", 1, first=NOON)
    put(cloudwatch, "m", 0, 0, 0, 0, 0, first=NOON + MINUTE)
    alarm(cloudwatch, "a", Period=300)
    aws.evaluate_alarms(NOON + 5 * MINUTE)
    assert state(cloudwatch, "a") == "ALARM"
    aws.evaluate_alarms(NOON + 6 * MINUTE)
    assert state(cloudwatch, "a") == "OK"


def test_a_minute_that_is_not_over_is_not_judged(aws, cloudwatch):
    put(cloudwatch, "m", 0, 1)
    alarm(cloudwatch, "a")
    aws.evaluate_alarms(NOON + 1.9 * MINUTE)
    assert state(cloudwatch, "a") == "OK"
    aws.evaluate_alarms(NOON + 2 * MINUTE)
    assert state(cloudwatch, "a") == "ALARM"


def test_high_resolution_alarms_see_ten_seconds(aws, cloudwatch):
    ten = timedelta(seconds=10)
    for resolution, name in ((1, "fine"), (60, "coarse")):
        put(cloudwatch, name, 0, 0, 1, period=ten, StorageResolution=resolution)
        alarm(cloudwatch, name, name, Period=10, TreatMissingData="notBreaching")
    aws.evaluate_alarms(NOON + 2 * ten)
    assert state(cloudwatch, "fine") == "OK"
    aws.evaluate_alarms(NOON + 3 * ten)
    assert state(cloudwatch, "fine") == "ALARM"
    # Kept by the minute: all of it counts for the minute's first ten seconds.
    assert state(cloudwatch, "coarse") == "ALARM"


@pytest.mark.parametrize(("samples", "expected"), [(999, "OK"), (1000, "ALARM")])
def test_a_percentile_of_few_samples_is_not_judged(aws, cloudwatch, samples, expected):
    """Ten over one minus the percentile: 1000 for p99."""
    cloudwatch.put_metric_data(
        Namespace="Test",
        MetricData=[{"MetricName": "m", "Timestamp": NOON, "Values": [1.0], "Counts": [samples]}],
    )
    common = {"Statistic": None, "ExtendedStatistic": "p99"}
    alarm(cloudwatch, "waits", **common, EvaluateLowSampleCountPercentile="ignore")
    alarm(cloudwatch, "judges", **common, EvaluateLowSampleCountPercentile="evaluate")
    set_state(cloudwatch, "waits", "OK")
    aws.evaluate_alarms(NOON + MINUTE)
    assert state(cloudwatch, "waits") == expected
    assert state(cloudwatch, "judges") == "ALARM"


def test_a_unit_selects_the_data(aws, cloudwatch):
    put(cloudwatch, "m", 1, Unit="Seconds")
    alarm(cloudwatch, "seconds", Unit="Seconds")
    alarm(cloudwatch, "bytes", Unit="Bytes")
    aws.evaluate_alarms(NOON + MINUTE)
    assert (state(cloudwatch, "seconds"), state(cloudwatch, "bytes")) == (A, NO_DATA)


BOTH = "LessThanLowerOrGreaterThanUpperThreshold"
UPPER, LOWER = "GreaterThanUpperThreshold", "LessThanLowerThreshold"


@pytest.mark.parametrize(
    ("value", "alarming"),
    [
        # Before: 90 and 110 by turns, so mean 100 and standard deviation 10: from 80 to 120.
        (119, set()),
        (121, {BOTH, UPPER}),
        (81, set()),
        (79, {BOTH, LOWER}),
    ],
)
def test_anomaly_bands(aws, cloudwatch, value, alarming):
    # The evaluation range is three datapoints, the band comes from what is before them.
    put(cloudwatch, "m", *[90, 110] * 20, 100, 100, value)
    stat = {"Metric": {"Namespace": "Test", "MetricName": "m"}, "Period": 60, "Stat": "Average"}
    band = {"Id": "band", "Expression": "ANOMALY_DETECTION_BAND(m, 2)", "ReturnData": True}
    for operator in (BOTH, UPPER, LOWER):
        cloudwatch.put_metric_alarm(
            AlarmName=operator,
            ComparisonOperator=operator,
            EvaluationPeriods=1,
            ThresholdMetricId="band",
            TreatMissingData="ignore",
            Metrics=[{"Id": "m", "MetricStat": stat, "ReturnData": True}, band],
        )
        set_state(cloudwatch, operator, "OK")
    aws.evaluate_alarms(NOON + 43 * MINUTE)
    assert {n for n in (BOTH, UPPER, LOWER) if state(cloudwatch, n) == "ALARM"} == alarming


# ----------------------------------------------------------------------- states, reasons, actions


@pytest.fixture
def pages(aws, cloudwatch) -> Any:
    """What a subscriber got since the last question."""
    return subscribed(aws)


def test_an_action_is_taken_once_per_change(aws, cloudwatch, pages):
    words = {"AlarmDescription": "look here", "AlarmActions": [TOPIC], "OKActions": [TOPIC]}
    alarm(cloudwatch, "a", **words, EvaluationPeriods=3, DatapointsToAlarm=2)
    put(cloudwatch, "m", 0, 0, 1, 1, 1, 1, 0, 0)
    aws.evaluate_alarms(NOON + 8 * MINUTE, since=NOON + 2 * MINUTE)
    first, second, third = pages()
    assert [m["NewStateValue"] for m in (first, second, third)] == ["OK", "ALARM", "OK"]
    assert second["AlarmDescription"] == "look here"
    assert second["StateChangeTime"] == "2026-03-02T12:04:00.000+0000"
    assert second["Subject"] == 'ALARM: "a" in us-east-1'
    assert second["NewStateReason"] == (
        "Threshold Crossed: 2 out of the last 3 datapoints [1.0 (02/03/26 12:03:00), "
        "1.0 (02/03/26 12:02:00)] were greater than the threshold (0.5) "
        "(minimum 2 datapoints for OK -> ALARM transition)."
    )
    history = cloudwatch.describe_alarm_history(AlarmName="a")["AlarmHistoryItems"]
    kinds = [item["HistoryItemType"] for item in history]
    assert sorted(kinds) == ["Action"] * 3 + ["ConfigurationUpdate"] + ["StateUpdate"] * 3
    assert "Alarm updated from OK to ALARM" in [item["HistorySummary"] for item in history]


def test_disabled_actions_are_not_taken(aws, cloudwatch, pages):
    alarm(cloudwatch, "a", AlarmActions=[TOPIC])
    cloudwatch.disable_alarm_actions(AlarmNames=["a"])
    set_state(cloudwatch, "a", "ALARM")
    assert (state(cloudwatch, "a"), pages()) == ("ALARM", [])
    set_state(cloudwatch, "a", "OK")
    cloudwatch.enable_alarm_actions(AlarmNames=["a"])
    set_state(cloudwatch, "a", "ALARM")
    assert len(pages()) == 1


def test_an_action_that_fails_is_recorded(aws, cloudwatch):
    alarm(cloudwatch, "a", AlarmActions=[f"{TOPIC}-nowhere"])
    set_state(cloudwatch, "a", "ALARM")
    (entry,) = aws.alarm_actions()
    assert entry["Action"] == f"{TOPIC}-nowhere"
    assert entry["Problem"] == "the topic does not exist"


def test_what_was_set_lasts_until_the_next_evaluation(aws, cloudwatch):
    put(cloudwatch, "m", 0)
    alarm(cloudwatch, "a")
    set_state(cloudwatch, "a", "ALARM")
    assert described(cloudwatch, "a")["StateReason"] == "test"
    aws.evaluate_alarms(NOON + MINUTE)
    assert state(cloudwatch, "a") == "OK"


STAT = {"Metric": {"Namespace": "Test", "MetricName": "m"}, "Period": 60, "Stat": "Sum"}
M1 = {"Id": "m1", "MetricStat": STAT, "ReturnData": True}
MATH: dict[str, Any] = {"Namespace": None, "MetricName": None, "Statistic": None, "Period": None}
BAND = {"Id": "band", "Expression": "ANOMALY_DETECTION_BAND(m1)"}
BANDED = {"Metrics": [M1, BAND], "ThresholdMetricId": "band", "Threshold": None}
BANDED |= {**MATH, "ComparisonOperator": UPPER}


# Source of all: API reference, PutMetricAlarm, MetricDataQuery, Dimension; lengths and enums as botocore
# has them; in AWS's words where somebody showed them.
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"DatapointsToAlarm": 2}, "less than or equal to the number of evaluation periods"),
        ({"ComparisonOperator": "GreaterThanUpperThreshold"}, "ThresholdMetricId"),
        ({"ComparisonOperator": "Above"}, "enum value set"),
        ({"ComparisonOperator": None}, "ComparisonOperator must be specified"),
        ({"EvaluationPeriods": None}, "EvaluationPeriods must be specified"),
        ({"Threshold": None}, "Threshold must be specified"),
        ({"Threshold": math.nan}, "threshold"),
        ({"MetricName": None}, "MetricName must be specified"),
        ({"Namespace": None}, "Namespace must be specified"),
        ({"Period": None}, "Period must be specified"),
        ({"MetricName": "m" * 256}, "length less than or equal to 255"),
        ({"AlarmDescription": "d" * 1025}, "length less than or equal to 1024"),
        ({"Statistic": None}, "One of Statistic and ExtendedStatistic"),
        ({"ExtendedStatistic": "p99"}, "One of Statistic and ExtendedStatistic"),
        ({"Statistic": "Mean"}, "enum value set"),
        ({"Statistic": None, "ExtendedStatistic": "p101"}, "value p101 for parameter"),
        ({"Statistic": None, "ExtendedStatistic": "99"}, "value 99 for parameter"),
        ({"Statistic": None, "ExtendedStatistic": "Maximum"}, "value Maximum for parameter"),
        ({"Unit": "ms"}, "enum value set"),
        ({"Period": 45}, "Period must be"),
        ({"Period": 90}, "Period must be"),
        ({"EvaluationPeriods": 1441}, r"more than a day .*86400\) for alarms using period < 3600"),
        ({"EvaluationPeriods": 169, "Period": 3600}, r"more than a week .*604800\)"),
        ({"TreatMissingData": "bad"}, "Option bad is not supported"),
        ({"EvaluateLowSampleCountPercentile": "bad"}, "are evaluate and ignore"),
        (
            {"Dimensions": dimensions(**{f"d{n}": "v" for n in range(31)})},
            "less than or equal to 30",
        ),
        ({"AlarmActions": [f"{TOPIC}{n}" for n in range(6)]}, "less than or equal to 5"),
        ({"Tags": [{"Key": f"k{n}", "Value": ""} for n in range(51)]}, "maximum item count: 50"),
        ({"EvaluationInterval": 60}, "EvaluationInterval can only"),
        ({"Metrics": [M1]}, "Namespace should not be set if list of Metrics is set"),
        ({**MATH, "Period": 60, "Metrics": [M1]}, "Period should not be set"),
        ({**MATH, "Unit": "Count", "Metrics": [M1]}, "Unit should not be set"),
        ({**MATH, "Metrics": [M1, M1]}, "unique"),
        ({**MATH, "Metrics": [M1, {**M1, "Id": "m2"}]}, "Exactly one element"),
        ({**MATH, "Metrics": [{**M1, "Id": "M1"}]}, r"does not match pattern \[a-z\]"),
        ({**MATH, "Metrics": [{**M1, "Expression": "1"}]}, r"one of \[Expression, MetricStat\]"),
        ({**MATH, "Metrics": [{"Id": "m1"}]}, r"one of \[Expression, MetricStat\]"),
        ({**MATH, "Metrics": [M1], "EvaluationPeriods": 1441}, "more than a day"),
        ({**BANDED, "ThresholdMetricId": "other"}, "Exactly one element"),
        ({**BANDED, "ThresholdMetricId": "m1"}, "does not give one time series"),
        (
            {**BANDED, "AlarmActions": ["arn:aws:autoscaling:us-east-1:1:scalingPolicy:x"]},
            "Scaling",
        ),
    ],
    ids=str,
)
def test_refused_alarms(cloudwatch, change, words):
    with pytest.raises(botocore.exceptions.ClientError, match=words):
        alarm(cloudwatch, "a", **change)


def test_a_state_that_there_is_not_is_refused(cloudwatch):
    alarm(cloudwatch, "a")
    with pytest.raises(
        botocore.exceptions.ClientError, match=r"enum value set: .*INSUFFICIENT_DATA"
    ):
        set_state(cloudwatch, "a", "BAD")


@pytest.mark.parametrize(
    "change",
    [
        {"EvaluationPeriods": 1440},
        {"EvaluationPeriods": 168, "Period": 3600},
        {"EvaluationPeriods": 7, "Period": 86_400, "DatapointsToAlarm": 7},
        {"Period": 10, "Unit": "Milliseconds", "Threshold": 0.0},
        {"Statistic": None, "ExtendedStatistic": "tm99.5"},
        {"Dimensions": dimensions(**{f"d{n}": "v" for n in range(30)})},
        {"AlarmActions": [TOPIC] * 5, "Metrics": []},
        {**MATH, "Metrics": [M1]},
        BANDED,
    ],
    ids=str,
)
def test_alarms_at_the_limits_are_taken(cloudwatch, change):
    alarm(cloudwatch, "at its limits", **change)
    assert described(cloudwatch, "at its limits")["AlarmName"]


# --------------------------------------------------------------------------------- who evaluates


def test_the_background_evaluates_by_itself_until_it_is_stopped(cloudwatch):
    alarm(cloudwatch, "a", TreatMissingData="breaching")
    background = Evaluator(timedelta(milliseconds=20))
    assert state(cloudwatch, "a") == NO_DATA
    background.start()
    wait_for(lambda: state(cloudwatch, "a") == "ALARM")
    background.stop()
    set_state(cloudwatch, "a", "OK")
    time.sleep(0.1)
    assert (state(cloudwatch, "a"), background.running) == ("OK", False)


def test_a_server_of_its_own_process_evaluates_when_told_to():
    def background(aws: LocalAws, query: str) -> dict[str, Any]:
        token = aws.exports()[TOKEN_VARIABLE]
        return json.loads(ask(aws.url, token, f"/_local/cloudwatch/background?on={query}"))

    with LocalAws.start() as aws:
        client = aws.client("cloudwatch")
        put(client, "m", 1)
        alarm(client, "a")
        aws.evaluate_alarms(NOON + MINUTE)
        assert state(client, "a") == "ALARM"
        assert background(aws, "true") == {"running": True}
        assert background(aws, "false") == {"running": False}


@pytest.mark.parametrize("path", ["evaluate?at=soon", "nothing"])
def test_the_hook_refuses_what_it_cannot_read(aws, path):
    with pytest.raises(urllib.error.HTTPError, match=r"HTTP Error 40[04]"):
        ask(aws.url, aws.exports()[TOKEN_VARIABLE], f"/_local/cloudwatch/{path}")


def test_history_is_found_by_time_and_kind(cloudwatch):
    alarm(cloudwatch, "a")
    set_state(cloudwatch, "a", "OK")
    hour = timedelta(hours=1)
    (change,) = cloudwatch.describe_alarm_history(
        AlarmName="a",
        HistoryItemType="StateUpdate",
        AlarmTypes=["MetricAlarm"],
        StartDate=datetime.now(UTC) - hour,
        EndDate=datetime.now(UTC) + hour,
    )["AlarmHistoryItems"]
    assert change["HistorySummary"] == "Alarm updated from INSUFFICIENT_DATA to OK"
    before = cloudwatch.describe_alarm_history(AlarmName="a", EndDate=datetime.now(UTC) - hour)
    assert not before["AlarmHistoryItems"]
