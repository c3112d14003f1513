"""PromQL alarms of the local AWS: pending and recovery, and nothing is OK."""

from __future__ import annotations

from typing import Any

import pytest
from alarms_under_test import MINUTE, NOON, TOPIC, described, put_alarm, subscribed
from alarms_under_test import state as state_of
from signed_requests import refusal

from local_sagemaker.cloudwatch.state import CloudWatchState, state_at

ALARM = "AWS::CloudWatch::Alarm"
QUERY = '(max(avg_over_time({"vllm:num_requests_waiting"}[60s]))) > 10'


@pytest.fixture
def cloudwatch(cloudwatch, aws) -> Any:
    """One whose queries are answered."""
    aws.client("observabilityadmin").start_telemetry_enrichment()
    cloudwatch.start_otel_enrichment()
    return cloudwatch


@pytest.fixture
def state(cloudwatch, aws) -> CloudWatchState:
    return state_at((aws.account, aws.region))


def criteria(query: str = QUERY, **periods: int) -> dict[str, Any]:
    return {"PromQLCriteria": {"Query": query, **periods}}


def put(client: Any, name: str = "waiting", interval: int = 60, **more: Any) -> None:
    query = more.pop("query", QUERY)
    periods = {key: more.pop(key) for key in ("PendingPeriod", "RecoveryPeriod") if key in more}
    client.put_metric_alarm(
        AlarmName=name,
        EvaluationCriteria=criteria(query, **periods),
        EvaluationInterval=interval,
        **more,
    )


def states(aws: Any, state: CloudWatchState, waiting: list[dict[str, float]]) -> list[str]:
    """The alarm's state after each of these minutes, which tell each host's waiting requests."""
    found = []
    for number, values in enumerate(waiting):
        at = NOON + number * MINUTE
        for host, value in values.items():
            state.series.put("vllm:num_requests_waiting", {"host": host}, at.timestamp(), value)
        aws.evaluate_alarms(at)
        found.append(state_of(aws.client("cloudwatch"), "waiting"))
    return found


def test_it_starts_as_ok_and_is_described_as_it_was_put(cloudwatch):
    put(cloudwatch, PendingPeriod=120, RecoveryPeriod=300, AlarmActions=[TOPIC])
    found = described(cloudwatch, "waiting")
    assert found["StateValue"] == "OK"
    assert found["EvaluationCriteria"] == criteria(PendingPeriod=120, RecoveryPeriod=300)
    assert found["EvaluationInterval"] == 60
    assert not {"MetricName", "Namespace", "Threshold", "EvaluationPeriods"} & set(found)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"EvaluationInterval": 45}, "10, 20, 30 or a multiple of 60"),
        ({"EvaluationInterval": 3660}, "3600"),
        ({"EvaluationInterval": None}, "required"),
        ({"Threshold": 1.0}, "Threshold cannot be specified"),
        ({"MetricName": "m", "Namespace": "n"}, "Namespace cannot be specified"),
        ({"EvaluationPeriods": 3}, "EvaluationPeriods cannot be specified"),
        ({"EvaluationCriteria": criteria(PendingPeriod=86_401)}, "86400"),
        ({"EvaluationCriteria": criteria("sum(")}, "not valid"),
        ({"EvaluationCriteria": criteria("topk(1, x)")}, "topk"),
        ({"EvaluationCriteria": criteria(QUERY[1:-6])}, "all that a query finds"),
    ],
)
def test_refusals(cloudwatch, changed, told):
    request = {"AlarmName": "a", "EvaluationCriteria": criteria(), "EvaluationInterval": 60}
    wanted = {name: value for name, value in {**request, **changed}.items() if value is not None}
    assert told in refusal(cloudwatch.put_metric_alarm, **wanted)[1]
    assert cloudwatch.describe_alarms()["MetricAlarms"] == []


@pytest.mark.parametrize("interval", [10, 20, 30, 60, 3600])
def test_intervals_that_the_api_takes(cloudwatch, interval):
    put(cloudwatch, interval=interval)
    assert described(cloudwatch, "waiting")["EvaluationInterval"] == interval


def test_an_interval_goes_with_a_query_only(cloudwatch):
    _, message = refusal(put_alarm, client=cloudwatch, name="a", EvaluationInterval=60)
    assert "EvaluationCriteria" in message


def test_any_series_over_the_threshold_alarms_and_none_is_ok(aws, cloudwatch, state):
    put(cloudwatch)
    minutes = [{"a": 3, "b": 4}, {"a": 3, "b": 11}, {"a": 12, "b": 5}, {"a": 1, "b": 1}]
    assert states(aws, state, minutes) == ["OK", "ALARM", "ALARM", "OK"]
    assert described(cloudwatch, "waiting")["StateReason"] == "0 time series evaluated to ALARM"


def test_without_enrichment_nothing_alarms(aws, cloudwatch, state):
    cloudwatch.stop_otel_enrichment()
    put(cloudwatch)
    assert states(aws, state, [{"a": 99}] * 3) == ["OK"] * 3


OVER, UNDER, NONE = {"a": 99}, {"a": 1}, {}
YES, NO = "ALARM", "OK"


@pytest.mark.parametrize(
    ("settings", "minutes", "expected"),
    [
        ({}, [OVER, NONE, NONE], [YES, NO, NO]),
        ({"query": QUERY.replace("num_", "")}, [OVER] * 3, [NO] * 3),
        # From the first breach, without a break; from the last one on.
        ({"PendingPeriod": 120}, [OVER] * 2 + [UNDER] + [OVER] * 4, [NO] * 5 + [YES] * 2),
        ({"RecoveryPeriod": 120}, [OVER, UNDER, UNDER, OVER] + [UNDER] * 3, [YES] * 6 + [NO]),
        ({"interval": 180}, [UNDER] + [OVER] * 3 + [UNDER] * 3, [NO] * 3 + [YES] * 3 + [NO]),
    ],
    ids=["no data is OK again", "no such name", "pending", "recovery", "once an interval"],
)
def test_minute_by_minute(aws, cloudwatch, state, settings, minutes, expected):
    put(cloudwatch, **settings)
    assert states(aws, state, minutes) == expected


def test_sns_hears_of_it(aws, cloudwatch, state):
    messages = subscribed(aws)
    put(cloudwatch, AlarmActions=[TOPIC])
    states(aws, state, [{"a": 11, "b": 12}])
    (message,) = messages()
    assert (message["OldStateValue"], message["NewStateValue"]) == ("OK", "ALARM")
    assert message["Trigger"]["EvaluationCriteria"] == criteria()


def test_a_composite_sees_it(aws, cloudwatch, state):
    put(cloudwatch)
    cloudwatch.put_composite_alarm(
        AlarmName="page", AlarmRule='ALARM("waiting")', AlarmActions=[TOPIC]
    )
    states(aws, state, [{"a": 11}])
    assert described(cloudwatch, "page")["StateValue"] == "ALARM"
    assert [one["AlarmName"] for one in aws.alarm_actions()] == ["page"]


def test_another_query_forgets_what_the_former_saw_and_the_state_stays(aws, cloudwatch, state):
    put(cloudwatch, RecoveryPeriod=3600)
    states(aws, state, [{"a": 11}])
    put(cloudwatch, query=QUERY.replace("10", "20"), RecoveryPeriod=3600)
    assert described(cloudwatch, "waiting")["StateValue"] == "ALARM"
    aws.evaluate_alarms(NOON + MINUTE)
    assert described(cloudwatch, "waiting")["StateValue"] == "OK"


def test_cloudformation_makes_changes_and_deletes_it(aws, stack):
    wanted = {
        "AlarmName": "tokens",
        "EvaluationCriteria": criteria(PendingPeriod=60, RecoveryPeriod=120),
        "EvaluationInterval": 60,
        "AlarmActions": [TOPIC],
    }
    made = stack.deploy(ALARM, wanted, ("Arn",))
    found = described(aws.client("cloudwatch"), "tokens")
    assert made.attributes["Arn"] == found["AlarmArn"]
    assert found["EvaluationCriteria"] == wanted["EvaluationCriteria"]
    assert stack.deploy(ALARM, {**wanted, "EvaluationInterval": 20}).ref == made.ref
    assert described(aws.client("cloudwatch"), "tokens")["EvaluationInterval"] == 20
    assert stack.deploy(ALARM, {**wanted, "AlarmName": "others"}).ref == "others"
    assert aws.client("cloudwatch").describe_alarms(AlarmNames=["tokens"])["MetricAlarms"] == []


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"EvaluationCriteria": criteria(), "EvaluationInterval": 45}, "10, 20, 30"),
        ({"EvaluationCriteria": {"PromQLCriteria": {"Query": QUERY, "Pending": 1}}}, "Pending"),
    ],
)
def test_cloudformation_refuses_what_the_schema_or_the_api_does(stack, properties, told):
    assert told in stack.refusal(ALARM, properties)
