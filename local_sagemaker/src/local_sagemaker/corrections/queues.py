"""SQS and SNS: moto gives a deleted queue's name away at once, and a topic's to another topic.

And any queue may be another's dead-letter queue.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from flask import request
from moto.sns.exceptions import InvalidParameterValue
from moto.sns.models import SNSBackend
from moto.sqs.exceptions import SQSException
from moto.sqs.models import Queue, SQSBackend

from ..admission import runtime_at
from .replacing import around

_SECONDS = 60
"""How long a deleted queue's name is taken. Source: API reference, CreateQueue."""


@around(SQSBackend)
def delete_queue(original: Callable[..., Any], self: Any, queue_name: str) -> Any:
    """Note when the queue went."""
    original(self, queue_name)
    vars(self).setdefault("deleted_at", {})[queue_name] = _now()


@around(SQSBackend)
def create_queue(
    original: Callable[..., Any], self: Any, name: str, *given: Any, **named: Any
) -> Any:
    """Refuse the name of a queue that is just gone."""
    gone = vars(self).get("deleted_at", {}).get(name)
    if gone is not None and _now() < gone + _SECONDS:
        raise SQSException(
            "QueueDeletedRecently",
            f"You must wait {_SECONDS} seconds after deleting a queue before you can create another "
            "with the same name.",
        )
    return original(self, name, *given, **named)


@around(Queue)
def _setup_dlq(original: Callable[..., None], self: Any, policy: Any) -> None:
    """Refuse a dead-letter queue that does not let this one in; a refusal changes nothing.

    API reference, SetQueueAttributes, RedriveAllowPolicy. AWS's words for it were never seen.
    """
    before = (getattr(self, "redrive_policy", None), self.dead_letter_queue)
    try:
        original(self, policy)
        allowing = getattr(self.dead_letter_queue, "redrive_allow_policy", None)
        if allowing and not _lets_in(json.loads(allowing), self.queue_arn):
            raise SQSException(
                "InvalidParameterValue",
                f"Value {policy} for parameter RedrivePolicy is invalid. Reason: The dead-letter "
                "queue's RedriveAllowPolicy does not allow this source queue.",
            )
    except SQSException:
        self.redrive_policy, self.dead_letter_queue = before
        raise


def _lets_in(policy: dict[str, Any], queue: str) -> bool:
    permission = policy.get("redrivePermission", "allowAll")
    return permission == "allowAll" or queue in policy.get("sourceQueueArns", ())


@around(SNSBackend)
def create_topic(
    original: Callable[..., Any],
    self: Any,
    name: str,
    attributes: dict[str, str] | None = None,
    tags: dict[str, str] | None = None,
) -> Any:
    """Refuse the name of a topic that has other tags; source: localstack/localstack#2405."""
    known = [*self.topics]
    topic = original(self, name, attributes, tags)
    if topic.arn in known and tags and topic._tags != tags:
        raise InvalidParameterValue(
            "Invalid parameter: Tags Reason: Topic already exists with different tags"
        )
    return topic


def _now() -> float:
    """Give the time by the runtime's clock, which tests advance."""
    runtime = runtime_at(f"http://{request.host}")
    return runtime.clock.now() if runtime is not None else time.time()
