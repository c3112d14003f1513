"""CloudWatch Logs: moto takes any name of a log group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.logs.exceptions import InvalidParameterException
from moto.logs.models import LogsBackend

from .replacing import around


@around(LogsBackend)
def create_log_group(
    original: Callable[..., Any], self: Any, log_group_name: str, *given: Any, **more: Any
) -> Any:
    """Refuse a name that is AWS's own: API reference, CreateLogGroup."""
    if log_group_name.startswith("aws/"):
        raise InvalidParameterException("Log group names can't start with the string aws/.")
    return original(self, log_group_name, *given, **more)
