"""AWS::SNS::*, AWS::SQS::*, AWS::Events::*."""

from __future__ import annotations

import contextlib
import itertools
import json
from typing import Any

import pytest
from botocore.exceptions import ClientError
from roles_under_test import allow, document, give_role
from signed_requests import refusal
from stacks_under_test import FUNCTION, function, resource_of, zip_of

from local_sagemaker import LocalAws

ALLOW = document(allow("*", Sid="mine", Principal="*"))


@pytest.fixture(autouse=True)
def nothing_left(aws):
    """Other tests list queues and subscriptions."""
    yield
    aws.reset()


def test_a_topic_counts_its_subscriptions_and_an_address_waits_for_its_owner(aws):
    sns = aws.client("sns")
    topic, other = (sns.create_topic(Name=name)["TopicArn"] for name in ("pages", "other"))

    def counts(arn: str) -> tuple[str, str]:
        attributes = sns.get_topic_attributes(TopicArn=arn)["Attributes"]
        return attributes["SubscriptionsConfirmed"], attributes["SubscriptionsPending"]

    assert counts(topic) == ("0", "0")
    sns.subscribe(TopicArn=topic, Protocol="email", Endpoint="a@example.com")
    queue = topic.replace(":sns:", ":sqs:")
    subscribed = sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue)["SubscriptionArn"]
    assert (counts(topic), counts(other)) == (("1", "1"), ("0", "0"))
    sns.unsubscribe(SubscriptionArn=subscribed)
    assert counts(topic) == ("0", "1")


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


ACCOUNT = "123456789012"
NUMBERS = itertools.count()


class Receiver:
    """A queue, and who may send to it."""

    def __init__(self, aws: LocalAws, **attributes: str) -> None:
        self.sqs = aws.client("sqs")
        name = f"receiver-{next(NUMBERS)}{'.fifo' if 'FifoQueue' in attributes else ''}"
        self.url = self.sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        self.arn = f"arn:aws:sqs:us-east-1:{ACCOUNT}:{name}"

    def let_in(self, service: str, source: str, key: str = "aws:SourceArn") -> None:
        condition = {"ArnLike": {key: source}}
        principal = {"Service": f"{service}.amazonaws.com"}
        policy = document(
            allow("sqs:SendMessage", self.arn, Principal=principal, Condition=condition)
        )
        self.sqs.set_queue_attributes(QueueUrl=self.url, Attributes={"Policy": json.dumps(policy)})

    def received(self) -> int:
        answer = self.sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10)
        return len(answer.get("Messages", []))


def test_a_topic_delivers_to_a_queue_that_lets_it_in(aws):
    """SNS developer guide, "Subscribing an Amazon SQS queue to an Amazon SNS topic"."""
    sns, receiver = aws.client("sns"), Receiver(aws)
    topic, other = (sns.create_topic(Name=name)["TopicArn"] for name in ("one", "other"))
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=receiver.arn)

    def delivered() -> int:
        sns.publish(TopicArn=topic, Message="m")
        return receiver.received()

    assert delivered() == 0
    receiver.let_in("sns", other)
    assert delivered() == 0
    receiver.let_in("s3", topic)
    assert delivered() == 0
    receiver.let_in("sns", topic, "aws:Unknown")
    assert refusal(sns.publish, TopicArn=topic, Message="m")[0] == "NotEmulated"
    receiver.let_in("sns", topic)
    assert delivered() == 1


@pytest.mark.parametrize("managed", [True, False])
def test_a_topic_delivers_to_a_queue_whose_key_lets_it_in(aws, managed):
    """SNS developer guide, "Configuring Amazon SNS encryption with an encrypted Amazon SQS queue"."""
    kms, sns = aws.client("kms"), aws.client("sns")
    key = "alias/aws/sqs" if managed else kms.create_key()["KeyMetadata"]["KeyId"]
    receiver = Receiver(aws, KmsMasterKeyId=key)
    topic = sns.create_topic(Name="to-encrypted")["TopicArn"]
    receiver.let_in("sns", topic)
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=receiver.arn)
    sns.publish(TopicArn=topic, Message="m")
    assert receiver.received() == 0
    if managed:
        return  # "the AWS managed key doesn't let": its policy is not changed
    root = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
    service = {"Service": "sns.amazonaws.com"}
    policy = document(
        allow("kms:*", Principal=root),
        allow(["kms:GenerateDataKey*", "kms:Decrypt"], Principal=service),
    )
    kms.put_key_policy(KeyId=key, PolicyName="default", Policy=json.dumps(policy))
    sns.publish(TopicArn=topic, Message="m")
    assert receiver.received() == 1


def test_a_topic_runs_a_function_that_lets_it_in(aws, stack, role):
    """Lambda developer guide, "Invoking Lambda functions with Amazon SNS notifications"."""
    sns, lambda_, logs = aws.client("sns"), aws.client("lambda"), aws.client("logs")
    code = "def handler(event, context):\n    print('it ran')\n"
    name = stack.deploy(FUNCTION, function(code), Role=role).ref
    arn = lambda_.get_function(FunctionName=name)["Configuration"]["FunctionArn"]
    topic = sns.create_topic(Name="runs")["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="lambda", Endpoint=arn)

    def runs() -> int:
        sns.publish(TopicArn=topic, Message="m")
        if not logs.describe_log_groups(logGroupNamePrefix=f"/aws/lambda/{name}")["logGroups"]:
            return 0
        found = logs.filter_log_events(logGroupName=f"/aws/lambda/{name}", filterPattern="ran")
        return len(found["events"])

    assert runs() == 0
    lambda_.add_permission(
        FunctionName=name,
        StatementId="topic",
        Action="lambda:InvokeFunction",
        Principal="sns.amazonaws.com",
        SourceArn=topic,
    )
    assert runs() == 1


def test_a_bucket_notifies_a_queue_that_lets_it_in(aws):
    """S3 user guide, "Granting permissions to publish event notification messages"."""
    s3, receiver = aws.client("s3"), Receiver(aws)
    for name in ("notifying", "silent"):
        s3.create_bucket(Bucket=name)

    def configured(part: str, name: str, arn: str) -> tuple[str, str]:
        entry = {name: arn, "Events": ["s3:ObjectCreated:*"]}
        put = s3.put_bucket_notification_configuration
        return refusal(put, Bucket="notifying", NotificationConfiguration={part: [entry]})

    nobody = ("InvalidArgument", "Unable to validate the following destination configurations")
    topic = aws.client("sns").create_topic(Name="of-default-policy")["TopicArn"]
    function_arn = f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:absent"
    assert configured("TopicConfigurations", "TopicArn", topic) == nobody
    assert configured("LambdaFunctionConfigurations", "LambdaFunctionArn", function_arn) == nobody
    assert configured("QueueConfigurations", "QueueArn", f"{receiver.arn}-absent") == nobody
    assert configured("QueueConfigurations", "QueueArn", receiver.arn) == nobody
    receiver.let_in("s3", "arn:aws:s3:::silent")
    assert configured("QueueConfigurations", "QueueArn", receiver.arn) == nobody
    receiver.let_in("s3", "arn:aws:s3:::notifying")
    entry = {"QueueArn": receiver.arn, "Events": ["s3:ObjectCreated:*"]}
    s3.put_bucket_notification_configuration(
        Bucket="notifying", NotificationConfiguration={"QueueConfigurations": [entry]}
    )
    assert receiver.received() == 1  # s3:TestEvent
    s3.put_object(Bucket="notifying", Key="k", Body=b"")
    assert receiver.received() == 1
    receiver.let_in("s3", "arn:aws:s3:::silent")
    s3.put_object(Bucket="notifying", Key="k", Body=b"")
    assert receiver.received() == 0


def test_a_rule_sends_to_a_queue_that_lets_it_in(aws):
    """EventBridge user guide, "Using resource-based policies for Amazon EventBridge"."""
    events, receiver = aws.client("events"), Receiver(aws)
    rule = events.put_rule(Name="sends", EventPattern='{"source": ["team"]}')["RuleArn"]
    events.put_targets(Rule="sends", Targets=[{"Id": "1", "Arn": receiver.arn}])
    entry = {"Source": "team", "DetailType": "d", "Detail": "{}"}
    events.put_events(Entries=[entry])
    assert receiver.received() == 0
    receiver.let_in("events", rule)
    events.put_events(Entries=[entry])
    assert receiver.received() == 1


@pytest.mark.timeout(60)
def test_a_rule_of_many_stars_takes_no_time(aws):
    """EventBridge user guide, "Wildcard matching"; a backslash makes a letter of a star."""
    events, receiver = aws.client("events"), Receiver(aws)
    for number, pattern in enumerate(["*a" * 12 + "b", r"*\*b"]):
        name = f"stars-{number}"
        told = json.dumps({"source": [{"wildcard": pattern}]})
        receiver.let_in("events", events.put_rule(Name=name, EventPattern=told)["RuleArn"])
        events.put_targets(Rule=name, Targets=[{"Id": "1", "Arn": receiver.arn}])
        for source, sent in (("a" * 250, 0), ("a" * 249 + "b", 1 - number), ("a*b", number)):
            events.put_events(Entries=[{"Source": source, "DetailType": "d", "Detail": "{}"}])
            assert receiver.received() == sent
        events.remove_targets(Rule=name, Ids=["1"])


READS = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]


def test_a_queue_is_mapped_to_a_function_that_it_fits(aws):
    """Lambda developer guide, "Creating and configuring an Amazon SQS event source mapping"."""
    lambda_, queue, fifo = aws.client("lambda"), Receiver(aws), Receiver(aws, FifoQueue="true")
    name = f"reads-{next(NUMBERS)}"
    code = {"ZipFile": zip_of("def handler(event, context):\n    return 1\n")}
    role = give_role(aws, name, allow(READS[1:]), services=("lambda",))
    settings = {"Runtime": "python3.12", "Handler": "index.handler", "Role": role}
    lambda_.create_function(FunctionName=name, Code=code, Timeout=60, **settings)

    def told(receiver: Receiver = queue, **more: Any) -> str:
        create = lambda_.create_event_source_mapping
        given = {"FunctionName": name, "EventSourceArn": receiver.arn, **more}
        return ": ".join(refusal(create, **given))

    invalid = "InvalidParameterValueException: "
    assert told() == (
        f"{invalid}Queue visibility timeout: 30 seconds is less than Function timeout: 60 seconds"
    )
    lambda_.update_function_configuration(FunctionName=name, Timeout=30)
    lacks = "The provided execution role does not have permissions to call ReceiveMessage on SQS"
    assert told() == invalid + lacks
    give_role(aws, name, allow(READS), services=("lambda",))
    assert told(BatchSize=11).startswith(invalid)
    assert told(fifo, BatchSize=11, MaximumBatchingWindowInSeconds=1).startswith(invalid)
    mapped = {"FunctionName": name, "EventSourceArn": queue.arn}
    made = lambda_.create_event_source_mapping(
        **mapped, BatchSize=11, MaximumBatchingWindowInSeconds=1
    )
    assert told().startswith("ResourceConflictException: ")
    assert made["UUID"] in told()
    update = lambda_.update_event_source_mapping
    code, _ = refusal(update, UUID=made["UUID"], MaximumBatchingWindowInSeconds=0)
    assert code == "InvalidParameterValueException"
    lambda_.delete_event_source_mapping(UUID=made["UUID"])
    queue.sqs.send_message(QueueUrl=queue.url, MessageBody="m")
    assert queue.received() == 1  # nobody else has read it
    again = lambda_.create_event_source_mapping(**mapped)
    lambda_.delete_event_source_mapping(UUID=again["UUID"])


def test_a_queue_that_sqs_does_not_make(stack):
    """API reference, CreateQueue (FifoQueue) and SetQueueAttributes (SqsManagedSseEnabled)."""
    fifo, encrypted = {"QueueName": "first.fifo"}, {"KmsMasterKeyId": "alias/aws/sqs"}
    managed = {"SqsManagedSseEnabled": True}
    for properties in ({**encrypted, **managed}, fifo, {**fifo, "FifoQueue": False}):
        assert "InvalidParameterValue" in stack.refusal("AWS::SQS::Queue", properties)
        stack.delete()
    for properties in ({**fifo, "FifoQueue": True}, encrypted, managed):
        stack.deploy("AWS::SQS::Queue", properties)


def test_a_dead_letter_queue_lets_its_sources_in(aws):
    """API reference, SetQueueAttributes, RedriveAllowPolicy."""
    dead, source = Receiver(aws), Receiver(aws)
    redrive = {"deadLetterTargetArn": dead.arn, "maxReceiveCount": 2}

    def refused(**allowing: Any) -> bool:
        policy = {"RedriveAllowPolicy": json.dumps(allowing)}
        dead.sqs.set_queue_attributes(QueueUrl=dead.url, Attributes=policy)
        with contextlib.suppress(ClientError):
            attributes = {"RedrivePolicy": json.dumps(redrive)}
            source.sqs.set_queue_attributes(QueueUrl=source.url, Attributes=attributes)
        names = ["RedrivePolicy"]
        found = source.sqs.get_queue_attributes(QueueUrl=source.url, AttributeNames=names)
        return "RedrivePolicy" not in found.get("Attributes", {})

    assert refused(redrivePermission="denyAll")
    assert refused(redrivePermission="byQueue", sourceQueueArns=[f"{source.arn}-other"])
    assert not refused(redrivePermission="byQueue", sourceQueueArns=[source.arn])
    assert not refused(redrivePermission="allowAll")
