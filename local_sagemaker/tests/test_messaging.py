"""AWS::SNS::*, AWS::SQS::*, AWS::Events::*."""

from __future__ import annotations

import json
from typing import Any

import pytest
from roles_under_test import allow, document
from stacks_under_test import resource_of

ALLOW = document(allow("*", Sid="mine", Principal="*"))


def test_topic_with_inline_subscriptions(aws, stack):
    sns = aws.client("sns")

    def subscribers(arn: str) -> list[str]:
        found = sns.list_subscriptions_by_topic(TopicArn=arn)["Subscriptions"]
        return [subscription["Endpoint"] for subscription in found]

    def subscription(address: str) -> list[dict[str, str]]:
        return [{"Protocol": "email", "Endpoint": address}]

    properties = {"DisplayName": "one", "Subscription": subscription("a@example.com")}
    made = stack.deploy("AWS::SNS::Topic", properties, ("TopicArn", "TopicName"))
    assert made.ref == made.attributes["TopicArn"]
    assert made.ref.endswith(":" + made.attributes["TopicName"])
    assert subscribers(made.ref) == ["a@example.com"]
    tags = [{"Key": "k", "Value": "v"}]
    properties = {"Subscription": subscription("b@example.com"), "Tags": tags}
    assert stack.deploy("AWS::SNS::Topic", properties).ref == made.ref
    assert subscribers(made.ref) == ["b@example.com"]
    assert sns.get_topic_attributes(TopicArn=made.ref)["Attributes"]["DisplayName"] == ""
    assert sns.list_tags_for_resource(ResourceArn=made.ref)["Tags"] == tags
    stack.delete()
    assert sns.list_subscriptions()["Subscriptions"] == []


def test_topic_policy(aws, stack):
    sns = aws.client("sns")
    topic = resource_of("AWS::SNS::Topic")

    def policy(arn: str) -> dict[str, Any]:
        return json.loads(sns.get_topic_attributes(TopicArn=arn)["Attributes"]["Policy"])

    properties = {"PolicyDocument": ALLOW, "Topics": [{"Ref": "A"}]}
    made = stack.deploy("AWS::SNS::TopicPolicy", properties, A=topic, B=topic)
    a, b = made.stack.resources["A"], made.stack.resources["B"]
    assert policy(a) == ALLOW
    properties["Topics"] = [{"Ref": "B"}]
    stack.deploy("AWS::SNS::TopicPolicy", properties, A=topic, B=topic)
    assert policy(b) == ALLOW
    assert policy(a) != ALLOW


def test_subscription(aws, stack):
    sns = aws.client("sns")
    others = {"Topic": resource_of("AWS::SNS::Topic"), "Queue": resource_of("AWS::SQS::Queue")}
    properties = {
        "TopicArn": {"Ref": "Topic"},
        "Protocol": "sqs",
        "Endpoint": {"Fn::GetAtt": ["Queue", "Arn"]},
        "FilterPolicy": {"a": ["b"]},
        "RawMessageDelivery": True,
    }

    def deploy(**more: Any) -> tuple[str, dict[str, str]]:
        made = stack.deploy("AWS::SNS::Subscription", {**properties, **more}, **others).ref
        return made, sns.get_subscription_attributes(SubscriptionArn=made)["Attributes"]

    first, found = deploy()
    assert found["RawMessageDelivery"] == "true"
    assert json.loads(found["FilterPolicy"]) == {"a": ["b"]}
    changed, found = deploy(FilterPolicy={"a": ["c"]})
    assert changed == first
    assert json.loads(found["FilterPolicy"]) == {"a": ["c"]}
    assert deploy(Protocol="email", Endpoint="a@b.c")[0] != first


def test_queue_and_its_policy(aws, stack):
    sqs = aws.client("sqs")

    def attributes(url: str) -> dict[str, str]:
        return sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]

    policy = resource_of("AWS::SQS::QueuePolicy", Queues=[{"Ref": "It"}], PolicyDocument=ALLOW)
    properties = {"VisibilityTimeout": 60, "DelaySeconds": 5}
    made = stack.deploy(
        "AWS::SQS::Queue", properties, ("Arn", "QueueName", "QueueUrl"), Policy=policy
    )
    found = attributes(made.ref)
    assert made.attributes["Arn"] == found["QueueArn"]
    assert made.attributes["QueueUrl"] == made.ref
    assert (found["VisibilityTimeout"], found["DelaySeconds"]) == ("60", "5")
    assert json.loads(found["Policy"]) == ALLOW
    changed = stack.deploy("AWS::SQS::Queue", {"VisibilityTimeout": 90})
    found = attributes(made.ref)
    assert changed.ref == made.ref
    assert (found["VisibilityTimeout"], found["DelaySeconds"]) == ("90", "0")
    assert not found.get("Policy")
    renamed = stack.deploy("AWS::SQS::Queue", {"QueueName": "named"})
    assert renamed.ref.endswith("/named")
    assert sqs.list_queues().get("QueueUrls") == [renamed.ref]


def test_rule(aws, stack):
    events = aws.client("events")
    topic = resource_of("AWS::SNS::Topic")

    def target(number: int) -> dict[str, Any]:
        return {"Id": f"t{number}", "Arn": {"Ref": "Topic"}, "Input": json.dumps({"n": number})}

    properties = {"ScheduleExpression": "rate(5 minutes)", "Targets": [target(1), target(2)]}
    made = stack.deploy("AWS::Events::Rule", properties, ("Arn",), Topic=topic)
    found = events.describe_rule(Name=made.ref)
    assert (found["Arn"], found["State"]) == (made.attributes["Arn"], "ENABLED")
    assert found["ScheduleExpression"] == "rate(5 minutes)"
    other = {"EventPattern": {"source": ["aws.sagemaker"]}, "State": "DISABLED"}
    changed = stack.deploy("AWS::Events::Rule", {**other, "Targets": [target(2)]}, Topic=topic)
    assert changed.ref == made.ref
    found = events.describe_rule(Name=made.ref)
    assert json.loads(found["EventPattern"]) == {"source": ["aws.sagemaker"]}
    assert found["State"] == "DISABLED"
    targets = events.list_targets_by_rule(Rule=made.ref)["Targets"]
    assert [(t["Id"], t["Input"]) for t in targets] == [("t2", '{"n": 2}')]
    assert stack.deploy("AWS::Events::Rule", {**properties, "Name": "n"}, Topic=topic).ref == "n"
    with pytest.raises(events.exceptions.ResourceNotFoundException):
        events.describe_rule(Name=made.ref)
