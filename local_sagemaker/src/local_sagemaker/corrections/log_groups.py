"""CloudWatch Logs: moto takes any name and key of a log group, any batch and any dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.kms.models import kms_backends
from moto.logs.exceptions import InvalidParameterException
from moto.logs.models import LogsBackend

from .replacing import around

_DAY = 24 * 3600 * 1000
_MOST_DIMENSIONS = 3


@around(LogsBackend)
def create_log_group(
    original: Callable[..., Any], self: Any, log_group_name: str, *given: Any, **more: Any
) -> Any:
    """Refuse a name that is AWS's own, and a key that is disabled: API reference, CreateLogGroup."""
    if log_group_name.startswith("aws/"):
        raise InvalidParameterException("Log group names can't start with the string aws/.")
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


@around(LogsBackend)
def put_metric_filter(original: Callable[..., Any], self: Any, *given: Any, **more: Any) -> Any:
    """Refuse a fourth dimension: API reference, MetricTransformation."""
    transformations = more.get("metric_transformations") or given[3]
    if any(len(each.get("dimensions") or {}) > _MOST_DIMENSIONS for each in transformations):
        raise InvalidParameterException(
            f"A metric transformation has at most {_MOST_DIMENSIONS} dimensions."
        )
    return original(self, *given, **more)
