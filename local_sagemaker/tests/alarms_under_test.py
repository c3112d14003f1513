"""Alarms of a CloudWatch that knows nothing else, and short words for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from roles_under_test import allow, document

from local_sagemaker import LocalAws

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TOPIC = "arn:aws:sns:us-east-1:123456789012:pages"


def dimensions(**named: str) -> list[dict[str, str]]:
    return [{"Name": name, "Value": value} for name, value in named.items()]


def put_alarm(client: Any, name: str, metric: str = "m", **more: Any) -> None:
    """Put an alarm on a metric of `Test`; what is None is left out."""
    settings: dict[str, Any] = {
        "AlarmName": name,
        "Namespace": "Test",
        "MetricName": metric,
        "Statistic": "Maximum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 0.5,
        "ComparisonOperator": "GreaterThanThreshold",
        **more,
    }
    client.put_metric_alarm(**{k: v for k, v in settings.items() if v is not None})


def described(client: Any, name: str) -> dict[str, Any]:
    found = client.describe_alarms(AlarmNames=[name], AlarmTypes=["MetricAlarm", "CompositeAlarm"])
    (only,) = found["MetricAlarms"] + found["CompositeAlarms"]
    return only


def state(client: Any, name: str) -> str:
    return described(client, name)["StateValue"]


def set_state(client: Any, name: str, value: str) -> None:
    client.set_alarm_state(AlarmName=name, StateValue=value, StateReason="test")


def subscribed(aws: LocalAws) -> Callable[[], list[dict[str, Any]]]:
    """Subscribe to the topic; gives what was received since the last question."""
    sqs = aws.client("sqs")
    arn = TOPIC.replace(":sns:", ":sqs:")
    statement = allow("sqs:SendMessage", arn, Principal={"Service": "sns.amazonaws.com"})
    policy = {"Policy": json.dumps(document(statement))}
    queue = sqs.create_queue(QueueName="pages", Attributes=policy)["QueueUrl"]
    aws.client("sns").subscribe(TopicArn=TOPIC, Protocol="sqs", Endpoint=arn)

    def received() -> list[dict[str, Any]]:
        got = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", [])
        for message in got:
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
        bodies = [json.loads(message["Body"]) for message in got]
        return [{**json.loads(body["Message"]), "Subject": body["Subject"]} for body in bodies]

    return received
