"""AWS::SNS::* and AWS::SQS::*."""

from __future__ import annotations

from .properties import Tagging, as_text, tag_list, tag_map
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated

_TOPIC_ATTRIBUTES = ("DisplayName", "KmsMasterKeyId", "SignatureVersion", "TracingConfig")
_SUBSCRIPTION_ATTRIBUTES = (
    "DeliveryPolicy",
    "FilterPolicy",
    "FilterPolicyScope",
    "RawMessageDelivery",
    "RedrivePolicy",
)


@emulated
class Topic(ResourceType):
    """A topic; its inline subscriptions go with it."""

    type_name = "AWS::SNS::Topic"
    name_property = "TopicName"
    tags_by = Tagging("sns", "tag_resource", "untag_resource", "ResourceArn")

    def create(self, at: Place, properties: Properties) -> Created:
        sns, name = at.client("sns"), self.name(at, properties, longest=256)
        names = (*_TOPIC_ATTRIBUTES, "FifoTopic", "ContentBasedDeduplication")
        attributes = {n: as_text(properties[n]) for n in names if properties.get(n) is not None}
        arn = sns.create_topic(
            Name=name, Attributes=attributes, Tags=tag_list(properties.get("Tags"))
        )["TopicArn"]
        at.begin(arn)
        for subscription in properties.get("Subscription") or []:
            sns.subscribe(TopicArn=arn, **subscription)
        return Created(arn, {"TopicArn": arn, "TopicName": name})

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        sns, arn, old = at.client("sns"), existing.physical_id, existing.properties
        for name in (*_TOPIC_ATTRIBUTES, "ContentBasedDeduplication"):
            if properties.get(name) != old.get(name):
                value = as_text(properties[name]) if properties.get(name) is not None else ""
                sns.set_topic_attributes(TopicArn=arn, AttributeName=name, AttributeValue=value)
        self._subscriptions(at, arn, old, properties)

    @staticmethod
    def _subscriptions(at: Place, arn: str, old: Properties, new: Properties) -> None:
        sns = at.client("sns")
        wanted, had = new.get("Subscription") or [], old.get("Subscription") or []
        for subscription in sns.list_subscriptions_by_topic(TopicArn=arn)["Subscriptions"]:
            key = {"Protocol": subscription["Protocol"], "Endpoint": subscription["Endpoint"]}
            if key in had and key not in wanted:
                sns.unsubscribe(SubscriptionArn=subscription["SubscriptionArn"])
        for subscription in wanted:
            if subscription not in had:
                sns.subscribe(TopicArn=arn, **subscription)

    def delete(self, at: Place, existing: Existing) -> None:
        sns, arn = at.client("sns"), existing.physical_id
        for subscription in sns.list_subscriptions_by_topic(TopicArn=arn)["Subscriptions"]:
            sns.unsubscribe(SubscriptionArn=subscription["SubscriptionArn"])
        sns.delete_topic(TopicArn=arn)


@emulated
class TopicPolicy(ResourceType):
    """The policy of one or more topics."""

    type_name = "AWS::SNS::TopicPolicy"

    def create(self, at: Place, properties: Properties) -> Created:
        for topic in properties["Topics"]:
            at.client("sns").set_topic_attributes(
                TopicArn=topic,
                AttributeName="Policy",
                AttributeValue=as_text(properties["PolicyDocument"]),
            )
        name = at.generated_name()
        return Created(name, {"Id": name})

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        self.create(at, properties)
        gone = set(existing.properties["Topics"]) - set(properties["Topics"])
        self._reset(at, gone)

    def delete(self, at: Place, existing: Existing) -> None:
        self._reset(at, set(existing.properties["Topics"]))

    @staticmethod
    def _reset(at: Place, topics: set[str]) -> None:
        """Give topics AWS's default policy again: the owner may do everything."""
        for topic in topics:
            statement = {
                "Effect": "Allow",
                "Principal": {"AWS": "*"},
                "Action": ["SNS:Publish", "SNS:Subscribe", "SNS:GetTopicAttributes"],
                "Resource": topic,
                "Condition": {"StringEquals": {"AWS:SourceOwner": at.account}},
            }
            at.client("sns").set_topic_attributes(
                TopicArn=topic,
                AttributeName="Policy",
                AttributeValue=as_text({"Version": "2008-10-17", "Statement": [statement]}),
            )


@emulated
class Subscription(ResourceType):
    """A subscription of its own."""

    type_name = "AWS::SNS::Subscription"
    deletes_by = ("sns", "unsubscribe", "SubscriptionArn")

    def create(self, at: Place, properties: Properties) -> Created:
        attributes = {
            name: as_text(properties[name])
            for name in _SUBSCRIPTION_ATTRIBUTES
            if properties.get(name) is not None
        }
        arn = at.client("sns").subscribe(
            TopicArn=properties["TopicArn"],
            Protocol=properties["Protocol"],
            Endpoint=properties["Endpoint"],
            Attributes=attributes,
            ReturnSubscriptionArn=True,
        )["SubscriptionArn"]
        return Created(arn, {"Arn": arn})

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        for name in _SUBSCRIPTION_ATTRIBUTES:
            if properties.get(name) != existing.properties.get(name):
                value = properties.get(name)
                at.client("sns").set_subscription_attributes(
                    SubscriptionArn=existing.physical_id,
                    AttributeName=name,
                    AttributeValue=as_text(value) if value is not None else "{}",
                )


_ATTRIBUTES = (
    "ContentBasedDeduplication",
    "DelaySeconds",
    "FifoQueue",
    "KmsDataKeyReusePeriodSeconds",
    "KmsMasterKeyId",
    "MaximumMessageSize",
    "MessageRetentionPeriod",
    "ReceiveMessageWaitTimeSeconds",
    "RedrivePolicy",
    "SqsManagedSseEnabled",
    "VisibilityTimeout",
)
# What an attribute goes back to when the template does not mention it any more.
_DEFAULTS = {
    "DelaySeconds": "0",
    "KmsDataKeyReusePeriodSeconds": "300",
    "MaximumMessageSize": "262144",
    "MessageRetentionPeriod": "345600",
    "ReceiveMessageWaitTimeSeconds": "0",
    "VisibilityTimeout": "30",
}


@emulated
class Queue(ResourceType):
    """A queue."""

    type_name = "AWS::SQS::Queue"
    deletes_by = ("sqs", "delete_queue", "QueueUrl")
    name_property = "QueueName"
    tags_by = Tagging("sqs", "tag_queue", "untag_queue", "QueueUrl", spelt=tag_map)

    def create(self, at: Place, properties: Properties) -> Created:
        name = self.name(at, properties, longest=80)
        url = at.client("sqs").create_queue(
            QueueName=name,
            Attributes={n: as_text(properties[n]) for n in _ATTRIBUTES if n in properties},
            tags=tag_map(properties.get("Tags")),
        )["QueueUrl"]
        return Created(url, {"Arn": at.arn("sqs", name), "QueueName": name, "QueueUrl": url})

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        sqs, url, old = at.client("sqs"), existing.physical_id, existing.properties
        changed = {
            name: as_text(properties.get(name, _DEFAULTS.get(name, "")))
            for name in _ATTRIBUTES
            if properties.get(name) != old.get(name)
        }
        if changed:
            sqs.set_queue_attributes(QueueUrl=url, Attributes=changed)


@emulated
class QueuePolicy(ResourceType):
    """The policy of one or more queues."""

    type_name = "AWS::SQS::QueuePolicy"

    def create(self, at: Place, properties: Properties) -> Created:
        self._set(at, set(properties["Queues"]), as_text(properties["PolicyDocument"]))
        name = at.generated_name()
        return Created(name, {"Id": name})

    @staticmethod
    def _set(at: Place, queues: set[str], policy: str) -> None:
        for url in queues:
            at.client("sqs").set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        queues = set(properties["Queues"])
        self._set(at, queues, as_text(properties["PolicyDocument"]))
        self._set(at, set(existing.properties["Queues"]) - queues, "")

    def delete(self, at: Place, existing: Existing) -> None:
        self._set(at, set(existing.properties["Queues"]), "")
