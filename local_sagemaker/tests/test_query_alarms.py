"""PromQL alarms of the local AWS: pending and recovery, and nothing is OK."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_sagemaker.cloudwatch.state import CloudWatchState, state_at

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TOPIC = "arn:aws:sns:us-east-1:123456789012:pages"
ALARM = "AWS::CloudWatch::Alarm"
QUERY = '(max(avg_over_time({"vllm:num_requests_waiting"}[60s]))) > 10'


@pytest.fixture
def cloudwatch(aws) -> Any:
    aws.reset()
    aws.client("sns").create_topic(Name="pages")
    client = aws.client("cloudwatch")
    aws.client("observabilityadmin").start_telemetry_enrichment()
    client.start_otel_enrichment()
    yield client
    aws.reset()


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


def tell(state: CloudWatchState, at: datetime, **waiting: float) -> None:
    """Each host's waiting requests."""
    for host, value in waiting.items():
        state.series.put("vllm:num_requests_waiting", {"host": host}, at.timestamp(), value)


def alarm(client: Any, name: str = "waiting") -> dict[str, Any]:
    (found,) = client.describe_alarms(AlarmNames=[name])["MetricAlarms"]
    return found


def states(aws: Any, state: CloudWatchState, waiting: list[dict[str, float]]) -> list[str]:
    """The alarm's state after each of these minutes."""
    found = []
    for number, values in enumerate(waiting):
        at = NOON + number * MINUTE
        tell(state, at, **values)
        aws.evaluate_alarms(at)
        found.append(alarm(aws.client("cloudwatch"))["StateValue"])
    return found


def test_it_starts_as_ok_and_is_described_as_it_was_put(cloudwatch):
    put(cloudwatch, PendingPeriod=120, RecoveryPeriod=300, AlarmActions=[TOPIC])
    found = alarm(cloudwatch)
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
    with pytest.raises(ClientError, match=told):
        cloudwatch.put_metric_alarm(**wanted)
    assert cloudwatch.describe_alarms()["MetricAlarms"] == []


@pytest.mark.parametrize("interval", [10, 20, 30, 60, 3600])
def test_intervals_that_the_api_takes(cloudwatch, interval):
    put(cloudwatch, interval=interval)
    assert alarm(cloudwatch)["EvaluationInterval"] == interval


def test_an_interval_goes_with_a_query_only(cloudwatch):
    with pytest.raises(ClientError, match="EvaluationCriteria"):
        cloudwatch.put_metric_alarm(
            AlarmName="a",
            Namespace="n",
            MetricName="m",
            Statistic="Sum",
            Period=60,
            EvaluationPeriods=1,
            Threshold=1,
            ComparisonOperator="GreaterThanThreshold",
            EvaluationInterval=60,
        )


def test_any_series_over_the_threshold_alarms_and_none_is_ok(aws, cloudwatch, state):
    put(cloudwatch)
    minutes = [{"a": 3, "b": 4}, {"a": 3, "b": 11}, {"a": 12, "b": 5}, {"a": 1, "b": 1}]
    assert states(aws, state, minutes) == ["OK", "ALARM", "ALARM", "OK"]
    assert alarm(cloudwatch)["StateReason"] == "0 time series evaluated to ALARM"


def test_a_name_that_does_not_exist_never_alarms(aws, cloudwatch, state):
    put(cloudwatch, query=QUERY.replace("num_", ""))
    assert states(aws, state, [{"a": 99}] * 3) == ["OK"] * 3


def test_without_enrichment_nothing_alarms(aws, cloudwatch, state):
    cloudwatch.stop_otel_enrichment()
    put(cloudwatch)
    assert states(aws, state, [{"a": 99}] * 3) == ["OK"] * 3


def test_no_data_is_ok_again(aws, cloudwatch, state):
    put(cloudwatch)
    assert states(aws, state, [{"a": 99}, {}, {}]) == ["ALARM", "OK", "OK"]


def test_pending_counts_from_the_first_breach_without_a_break(aws, cloudwatch, state):
    put(cloudwatch, PendingPeriod=120)
    over, under = {"a": 11}, {"a": 9}
    found = states(aws, state, [over, over, under, over, over, over, over])
    assert found == ["OK", "OK", "OK", "OK", "OK", "ALARM", "ALARM"]


def test_recovery_counts_from_the_last_breach(aws, cloudwatch, state):
    put(cloudwatch, RecoveryPeriod=120)
    over, under = {"a": 11}, {"a": 9}
    found = states(aws, state, [over, under, under, over, under, under, under])
    assert found == ["ALARM", "ALARM", "ALARM", "ALARM", "ALARM", "ALARM", "OK"]


def test_it_is_judged_once_an_interval(aws, cloudwatch, state):
    put(cloudwatch, interval=180)
    minutes = [{"a": 1}, {"a": 99}, {"a": 99}, {"a": 99}, {"a": 1}, {"a": 1}, {"a": 1}]
    assert states(aws, state, minutes) == ["OK", "OK", "OK", "ALARM", "ALARM", "ALARM", "OK"]


def messages(aws: Any) -> list[dict[str, Any]]:
    queue = aws.client("sqs").get_queue_url(QueueName="pages")["QueueUrl"]
    got = aws.client("sqs").receive_message(QueueUrl=queue, MaxNumberOfMessages=10)
    for message in got.get("Messages", []):
        aws.client("sqs").delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    bodies = [json.loads(message["Body"]) for message in got.get("Messages", [])]
    return [json.loads(body["Message"]) for body in bodies]


def test_sns_hears_of_it(aws, cloudwatch, state):
    aws.client("sqs").create_queue(QueueName="pages")
    queue = TOPIC.replace(":sns:", ":sqs:")
    aws.client("sns").subscribe(TopicArn=TOPIC, Protocol="sqs", Endpoint=queue)
    put(cloudwatch, AlarmActions=[TOPIC])
    states(aws, state, [{"a": 11, "b": 12}])
    (message,) = messages(aws)
    assert (message["OldStateValue"], message["NewStateValue"]) == ("OK", "ALARM")
    assert message["Trigger"]["EvaluationCriteria"] == criteria()


def test_a_composite_sees_it(aws, cloudwatch, state):
    put(cloudwatch)
    cloudwatch.put_composite_alarm(
        AlarmName="page", AlarmRule='ALARM("waiting")', AlarmActions=[TOPIC]
    )
    states(aws, state, [{"a": 11}])
    found = cloudwatch.describe_alarms(AlarmNames=["page"], AlarmTypes=["CompositeAlarm"])
    assert found["CompositeAlarms"][0]["StateValue"] == "ALARM"
    assert [one["AlarmName"] for one in aws.alarm_actions()] == ["page"]


def test_another_query_forgets_what_the_former_saw_and_the_state_stays(aws, cloudwatch, state):
    put(cloudwatch, RecoveryPeriod=3600)
    states(aws, state, [{"a": 11}])
    put(cloudwatch, query=QUERY.replace("10", "20"), RecoveryPeriod=3600)
    assert alarm(cloudwatch)["StateValue"] == "ALARM"
    aws.evaluate_alarms(NOON + MINUTE)
    assert alarm(cloudwatch)["StateValue"] == "OK"


def test_cloudformation_makes_changes_and_deletes_it(aws, stack):
    wanted = {
        "AlarmName": "tokens",
        "EvaluationCriteria": criteria(PendingPeriod=60, RecoveryPeriod=120),
        "EvaluationInterval": 60,
        "AlarmActions": [TOPIC],
    }
    made = stack.deploy(ALARM, wanted, ("Arn",))
    found = alarm(aws.client("cloudwatch"), "tokens")
    assert made.attributes["Arn"] == found["AlarmArn"]
    assert found["EvaluationCriteria"] == wanted["EvaluationCriteria"]
    changed = stack.deploy(ALARM, {**wanted, "EvaluationInterval": 20})
    assert changed.ref == made.ref
    assert alarm(aws.client("cloudwatch"), "tokens")["EvaluationInterval"] == 20
    renamed = stack.deploy(ALARM, {**wanted, "AlarmName": "others"})
    assert renamed.ref == "others"
    described = aws.client("cloudwatch").describe_alarms(AlarmNames=["tokens"])
    assert described["MetricAlarms"] == []


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"EvaluationCriteria": criteria(), "EvaluationInterval": 45}, "10, 20, 30"),
        ({"EvaluationCriteria": criteria(), "EvaluationInterval": 5}, "EvaluationInterval"),
        ({"EvaluationCriteria": criteria()}, "EvaluationInterval is required"),
        ({"EvaluationCriteria": {"PromQLCriteria": {"Query": QUERY, "Pending": 1}}}, "Pending"),
        ({"EvaluationCriteria": criteria(), "MetricName": "m", "EvaluationInterval": 60}, "Metric"),
    ],
)
def test_cloudformation_refuses_what_the_schema_or_the_api_does(stack, properties, told):
    assert told in stack.refusal(ALARM, properties)
