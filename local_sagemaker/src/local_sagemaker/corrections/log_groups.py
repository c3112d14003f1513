"""CloudWatch Logs: moto takes any key of a log group, and any batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.kms.models import kms_backends
from moto.logs.exceptions import InvalidParameterException
from moto.logs.models import LogsBackend

from .replacing import around

_DAY = 24 * 3600 * 1000
_MOST_BYTES = 1_048_576
_BYTES_OF_EVENT = 26  # beside those of its text


@around(LogsBackend)
def create_log_group(
    original: Callable[..., Any], self: Any, log_group_name: str, *given: Any, **more: Any
) -> Any:
    """Refuse a key that is disabled: API reference, CreateLogGroup."""
    key = more.get("kmsKeyId")
    if key and _of_this_account(self, key) and not _is_enabled(self, key):
        raise InvalidParameterException(
            f"The specified KMS key does not exist or is disabled: {key}"
        )
    return original(self, log_group_name, *given, **more)


def _of_this_account(backend: Any, key: str) -> bool:
    return f":{backend.region_name}:{backend.account_id}:" in key


def _is_enabled(backend: Any, key: str) -> bool:
    keys = kms_backends[backend.account_id][backend.region_name].keys
    described = keys.get(key.rpartition("/")[2])
    return described is not None and described.key_state == "Enabled"


@around(LogsBackend)
def put_log_events(
    original: Callable[..., Any], self: Any, log_group_name: str, stream: str, events: Any
) -> Any:
    """Refuse a batch that is too large, too long or in disorder: API reference, PutLogEvents."""
    size = sum(len(event["message"].encode()) + _BYTES_OF_EVENT for event in events)
    times = [event["timestamp"] for event in events]
    problem = None
    if size > _MOST_BYTES:
        problem = f"Upload too large: {size} bytes exceeds limit of {_MOST_BYTES}"
    elif times != sorted(times):
        problem = "Log events in a single PutLogEvents request must be in chronological order."
    elif times and times[-1] - times[0] > _DAY:
        problem = "The batch of log events in a single PutLogEvents request cannot span more than 24 hours."
    if problem:
        raise InvalidParameterException(problem)
    return original(self, log_group_name, stream, events)
