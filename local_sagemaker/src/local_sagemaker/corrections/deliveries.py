"""SNS, S3 and EventBridge: moto delivers to queues, topics and functions that do not let them in.

A topic counts its subscriptions here, which moto leaves at none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flask import has_request_context, request
from moto.events.models import Rule
from moto.s3.exceptions import S3ClientError
from moto.s3.models import FakeBucket, Notification
from moto.sns.models import Subscription, Topic, sns_backends

from ..permissions.gate import is_enforced
from ..permissions.judge import may_deliver
from .replacing import around


def _is_let_in(service: str, target: str, source: str) -> bool:
    return not is_enforced() or may_deliver(service, target, source)


@around(Subscription)
def publish(original: Callable[..., None], self: Any, *given: Any, **named: Any) -> None:
    """Lose a message for a queue or function that does not let the topic in, as SNS does."""
    judged = self.protocol in ("lambda", "sqs")
    if not judged or _is_let_in("sns", self.endpoint, self.topic.arn):
        original(self, *given, **named)


_WAITING = ("email", "email-json", "http", "https")
"""Protocols whose owner has to confirm. Source: SNS API reference, Subscribe; nobody can do so here."""


def _count(is_waiting: bool) -> property:
    """Count the subscriptions of a topic that wait for a confirmation, or those that do not."""

    def count(topic: Any) -> int:
        region = topic.arn.split(":")[3]
        known = list(sns_backends[topic.account_id][region].subscriptions.values())
        own = [subscription for subscription in known if subscription.topic is topic]
        return sum((subscription.protocol in _WAITING) == is_waiting for subscription in own)

    return property(count, lambda topic, zero: None)  # moto sets it to zero, once


Topic.subscriptions_confimed = _count(is_waiting=False)
Topic.subscriptions_pending = _count(is_waiting=True)


@around(Rule)
def _send_to_sqs_queue(
    original: Callable[..., None], self: Any, resource_id: str, *given: Any
) -> None:
    """Lose an event for a queue that does not let the rule in, as EventBridge does."""
    queue = f"arn:aws:sqs:{self.region_name}:{self.account_id}:{resource_id}"
    if _is_let_in("events", queue, self.arn):
        original(self, resource_id, *given)


_DESTINATIONS = {
    "topic": ("TopicConfiguration", "Topic"),
    "queue": ("QueueConfiguration", "Queue"),
    "cloud_function": ("CloudFunctionConfiguration", "CloudFunction"),
}
"""Of a notification configuration: where moto's object has a kind, and where the request has it."""


@around(FakeBucket)
def set_notification_configuration(
    original: Callable[..., None], self: Any, notification_config: Mapping[str, Any] | None
) -> None:
    """Refuse destinations that are not there or do not let the bucket in.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketNotificationConfiguration.html
    """
    skipped = has_request_context() and request.headers.get("x-amz-skip-destination-validation")
    for part, name in _DESTINATIONS.values():
        for destination in (notification_config or {}).get(part) or ():
            arn = destination[name]
            here = arn.split(":")[3] == self.region_name  # moto refuses those of other Regions
            if skipped != "true" and here and not _is_let_in("s3", arn, self.arn):
                raise S3ClientError(
                    "InvalidArgument", "Unable to validate the following destination configurations"
                )
    original(self, notification_config)
    for kind in _DESTINATIONS:
        for notification in getattr(self.notification_configuration, kind, ()):
            notification.source = self.arn


@around(Notification)
def matches(original: Callable[..., bool], self: Any, *given: Any) -> bool:
    """Lose an event for a destination that lets the bucket in no more."""
    return original(self, *given) and _is_let_in("s3", self.arn, self.source)
