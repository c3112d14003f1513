"""AWS::SQS::*."""

from __future__ import annotations

from .properties import as_text, retag, tag_map
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated

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
        retag(old, properties, sqs.tag_queue, sqs.untag_queue, spelt=tag_map, QueueUrl=url)


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
