"""Lambda: moto maps any queue to any function, twice too, and goes on when the mapping is gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flask import request
from moto.awslambda.exceptions import InvalidParameterValueException, LambdaClientError
from moto.awslambda.models import LambdaBackend
from moto.sqs.models import sqs_backends

from ..permissions import service_roles
from ..permissions.gate import is_enforced
from .replacing import around


class _Mapped(LambdaClientError):
    code = 409

    def __init__(self, queue: str, function: str, mapping: str) -> None:
        super().__init__(
            "ResourceConflictException",
            f'The event source arn (" {queue} ") and function (" {function} ") provided mapping '
            f"already exists. Please update or delete the existing mapping with UUID {mapping}",
        )


@around(LambdaBackend)
def create_event_source_mapping(
    original: Callable[..., Any], self: Any, spec: dict[str, Any]
) -> Any:
    """Refuse a queue that does not fit the function, or that is mapped to it already."""
    queue = _queue(self, spec.get("EventSourceArn"))
    if queue is not None:
        function = self.get_function(spec.get("FunctionName", ""))
        _check(self, queue, function, spec)
        if mapping := queue.lambda_event_source_mappings.get(function.function_arn):
            raise _Mapped(queue.queue_arn, function.function_name, mapping.uuid)
    return original(self, spec)


@around(LambdaBackend)
def update_event_source_mapping(
    original: Callable[..., Any], self: Any, uuid: str, spec: dict[str, Any]
) -> Any:
    """Refuse what the mapping could not be made with."""
    mapping = self.get_event_source_mapping(uuid)
    queue = _queue(self, mapping and mapping.event_source_arn)
    if queue is not None:
        now = {
            "BatchSize": mapping.batch_size,
            "MaximumBatchingWindowInSeconds": mapping.max_batch_window,
        }
        function = self.get_function(spec.get("FunctionName") or mapping.function_arn)
        _check(self, queue, function, {**now, **spec})
    return original(self, uuid, spec)


@around(LambdaBackend)
def delete_event_source_mapping(original: Callable[..., Any], self: Any, uuid: str) -> Any:
    """Run the function for no more messages."""
    mapping = original(self, uuid)
    queue = _queue(self, mapping and mapping.event_source_arn)
    if queue is not None:
        queue.lambda_event_source_mappings.pop(mapping.function_arn, None)
    return mapping


def _queue(backend: Any, arn: str | None) -> Any:
    queues = list(sqs_backends[backend.account_id][backend.region_name].queues.values())
    return next((queue for queue in queues if queue.queue_arn == arn), None)


_BATCH = 10
"""Messages of a FIFO queue at most, and of another without a window."""


def _check(backend: Any, queue: Any, function: Any, spec: Mapping[str, Any]) -> None:
    """Refuse a batch, a visibility timeout or a role with which Lambda does not read a queue.

    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html and
    https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html
    """
    size, window = spec.get("BatchSize") or _BATCH, spec.get("MaximumBatchingWindowInSeconds")
    if size > _BATCH and queue.fifo_queue:
        raise InvalidParameterValueException(f"BatchSize {size} exceeds the max of {_BATCH}")
    if size > _BATCH and not window:
        raise InvalidParameterValueException(
            f"Maximum batch window in seconds must be greater than 0 if maximum batch size is "
            f"greater than {_BATCH}"
        )
    timeout, visibility = int(function.timeout or 3), int(queue.visibility_timeout)
    if visibility < timeout:
        raise InvalidParameterValueException(
            f"Queue visibility timeout: {visibility} seconds is less than "
            f"Function timeout: {timeout} seconds"
        )
    if is_enforced(f"http://{request.host}"):
        try:
            service_roles.check_queue(backend.region_name, function, queue.queue_arn)
        except service_roles.FunctionRoleLacks as lacks:
            raise InvalidParameterValueException(str(lacks)) from None
