"""CloudWatch Logs: moto takes any key of a log group, and any batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.kms.models import kms_backends
from moto.logs.exceptions import InvalidParameterException
from moto.logs.models import LogsBackend

from .replacing import around

_DAY = 24 * 3600 * 1000


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
    """Refuse a batch of more than a day: API reference, PutLogEvents."""
    times = [event["timestamp"] for event in events]
    if times and max(times) - min(times) > _DAY:
        raise InvalidParameterException(
            "The batch of log events in a single PutLogEvents request cannot span more than 24 hours."
        )
    return original(self, log_group_name, stream, events)
