"""What logs, parameters, targets and destinations are refused for, by AWS's API references."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from stacks_under_test import function

DAY = 24 * 3600 * 1000
QUEUE = "arn:aws:sqs:us-east-1:123456789012:letters"
TARGET = {"Id": "1", "Arn": QUEUE}


def refused(call: Any, words: str, **given: Any) -> None:
    with pytest.raises(ClientError, match=words):
        call(**given)


def test_logs(aws):
    """CloudWatch Logs: CreateLogGroup, PutLogEvents, MetricTransformation."""
    logs, kms = aws.client("logs"), aws.client("kms")
    key = kms.create_key()["KeyMetadata"]["Arn"]
    logs.create_log_group(logGroupName="kept", kmsKeyId=key)
    logs.create_log_stream(logGroupName="kept", logStreamName="s")
    kms.disable_key(KeyId=key.rpartition("/")[2])
    unknown = f"{key[:-12]}000000000000"
    for bad in (key, unknown):
        refused(logs.create_log_group, "InvalidParameter", logGroupName="new", kmsKeyId=bad)
    batch = {"logGroupName": "kept", "logStreamName": "s"}
    now = 1_790_000_000_000
    events = [{"timestamp": time, "message": "m"} for time in (now, now + DAY + 1)]
    refused(logs.put_log_events, "24 hours", **batch, logEvents=events)
    transformation = {"metricName": "m", "metricNamespace": "n", "metricValue": "1"}
    dimensions = {name: f"$.{name}" for name in "abcd"}
    refused(
        logs.put_metric_filter,
        "as many as three dimensions",
        logGroupName="kept",
        filterName="f",
        filterPattern="{$.a=*}",
        metricTransformations=[{**transformation, "dimensions": dimensions}],
    )
    logs.delete_log_group(logGroupName="kept")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"Value": "abc", "AllowedPattern": "^[0-9]+$"}, "allowedPattern"),
        ({"AllowedPattern": "("}, "allowedPattern"),
        ({"Value": "a" * 45 + "!", "AllowedPattern": "^(a+)+$"}, "allowedPattern"),
    ],
)
def test_parameters(aws, given, words):
    """Systems Manager, PutParameter: Name, Value, AllowedPattern."""
    ssm = aws.client("ssm")
    stated = {"Name": "/team/p", "Value": "1", "Type": "String", **given}
    refused(ssm.put_parameter, words, **stated)


def test_a_parameter_stays_advanced(aws):
    """Systems Manager, PutParameter, Tier."""
    ssm = aws.client("ssm")
    stated = {"Name": "/team/p", "Type": "String"}
    ssm.put_parameter(**stated, Value="x" * 8192, Tier="Advanced")
    refused(ssm.put_parameter, "downgrade", **stated, Value="x", Tier="Standard", Overwrite=True)
    ssm.delete_parameter(Name="/team/p")


def test_targets(aws):
    """EventBridge, PutTargets: five of a rule, one input, which is JSON."""
    events = aws.client("events")
    events.put_rule(Name="r", EventPattern='{"source": ["a"]}')
    both = {**TARGET, "Input": "{}", "InputPath": "$.a"}
    refused(events.put_targets, "mutually exclusive", Rule="r", Targets=[both])
    refused(events.put_targets, "Valid JSON", Rule="r", Targets=[{**TARGET, "Input": "{oops"}])
    deep = {**TARGET, "Input": '{"a":' * 1500 + "1" + "}" * 1500}
    refused(events.put_targets, "Valid JSON|length", Rule="r", Targets=[deep])
    ids = [str(number) for number in range(6)]
    events.put_targets(Rule="r", Targets=[{**TARGET, "Id": each} for each in ids[:5]])
    refused(events.put_targets, "LimitExceeded", Rule="r", Targets=[{**TARGET, "Id": ids[5]}])
    events.remove_targets(Rule="r", Ids=ids)
    events.delete_rule(Name="r")


@pytest.mark.parametrize(
    ("outcome", "arn"), [("OnFailure", f"{QUEUE}.fifo"), ("OnSuccess", "arn:aws:s3:::bucket")]
)
def test_destinations(aws, stack, role, outcome, arn):
    """Lambda, DestinationConfig: standard queues, and buckets for what failed."""
    made = stack.deploy("AWS::Lambda::Function", function("x = 1"), Role=role)
    refused(
        aws.client("lambda").put_function_event_invoke_config,
        "InvalidParameterValue",
        FunctionName=made.ref,
        DestinationConfig={outcome: {"Destination": arn}},
    )


VARIABLES = {"Environment": {"Variables": {"AWS_REGION": "x"}}}
LAYERS = ["arn:aws:lambda:us-east-1:123456789012:layer:l:1"] * 6
SUBSCRIPTION = {
    "TopicArn": "arn:aws:sns:us-east-1:123456789012:pages",
    "Endpoint": "http://a.example",
}


@pytest.mark.parametrize(
    ("service", "operation", "given", "words"),
    [
        ("iam", "update_role", {"RoleName": "r", "MaxSessionDuration": 43_201}, "43200"),
        ("kms", "create_alias", {"AliasName": "alias/aws/x", "TargetKeyId": "k"}, "pattern"),
        ("kms", "schedule_key_deletion", {"KeyId": "k", "PendingWindowInDays": 6}, "7"),
        ("kms", "schedule_key_deletion", {"KeyId": "k", "PendingWindowInDays": 31}, "30"),
        ("lambda", "update_function_configuration", VARIABLES, "AWS_REGION"),
        ("lambda", "update_function_configuration", {"Timeout": 901}, "900"),
        ("lambda", "update_function_configuration", {"MemorySize": 10_241}, "10240"),
        ("lambda", "update_function_configuration", {"Layers": LAYERS}, "count: 5"),
        ("sns", "publish", {"TopicArn": "t", "Message": ""}, "pattern"),
        ("sns", "subscribe", {**SUBSCRIPTION, "Protocol": "fax"}, "enum"),
        ("sns", "subscribe", {**SUBSCRIPTION, "Protocol": "https"}, "InvalidParameter"),
        ("sns", "subscribe", {**SUBSCRIPTION, "Protocol": "email"}, "InvalidParameter"),
        ("sqs", "create_queue", {"QueueName": "q", "Attributes": {"Nope": "1"}}, "enum"),
    ],
)
def test_what_the_text_of_a_request_may_not_be(aws, service, operation, given, words):
    """IAM, KMS, Lambda, SNS, SQS: the operation's page; Lambda's quotas."""
    more = {"FunctionName": "f"} if service == "lambda" else {}
    refused(getattr(aws.client(service), operation), words, **given, **more)


@pytest.mark.parametrize(
    ("attribute", "least", "most"),
    [
        ("DelaySeconds", 0, 900),
        ("KmsDataKeyReusePeriodSeconds", 60, 86_400),
        ("MaximumMessageSize", 1024, 1_048_576),
        ("MessageRetentionPeriod", 60, 1_209_600),
        ("ReceiveMessageWaitTimeSeconds", 0, 20),
        ("VisibilityTimeout", 0, 43_200),
    ],
)
def test_a_queue_s_attribute_has_a_range(aws, attribute, least, most):
    """SQS: SetQueueAttributes."""
    sqs = aws.client("sqs")
    queue = {"QueueUrl": sqs.create_queue(QueueName="ranges")["QueueUrl"]}
    for value in (least, most):
        sqs.set_queue_attributes(**queue, Attributes={attribute: str(value)})
    for wrong in (least - 1, most + 1, "x"):
        given = {"Attributes": {attribute: str(wrong)}}
        refused(sqs.set_queue_attributes, attribute, **queue, **given)
