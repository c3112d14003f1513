"""EventBridge: moto takes any cron expression, and rates whose unit does not fit their number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.events.exceptions import ValidationException
from moto.events.models import EventsBackend

from ..runtime.scheduled_actions import is_schedule
from .replacing import around


@around(EventsBackend)
def put_rule(
    original: Callable[..., Any],
    self: Any,
    name: str,
    *,
    scheduled_expression: str | None = None,
    **more: Any,
) -> Any:
    """Refuse what is no schedule."""
    if scheduled_expression and not is_schedule(scheduled_expression, "cron", "rate"):
        raise ValidationException("Parameter ScheduleExpression is not valid.")
    return original(self, name, scheduled_expression=scheduled_expression, **more)
