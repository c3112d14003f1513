"""SQS and SNS: moto gives a deleted queue's name away at once, and a topic's to another topic."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from flask import request
from moto.sns.exceptions import InvalidParameterValue
from moto.sns.models import SNSBackend
from moto.sqs.exceptions import SQSException
from moto.sqs.models import SQSBackend

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
