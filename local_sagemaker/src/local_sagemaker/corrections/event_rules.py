"""EventBridge: moto takes any state and cron expression, and rates of another unit than their number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.events.exceptions import ValidationException
from moto.events.models import EventsBackend

from ..protocols import service_model
from ..runtime.scheduled_actions import is_schedule
from .replacing import around


@around(EventsBackend)
def put_rule(
    original: Callable[..., Any],
    self: Any,
    name: str,
    *,
    scheduled_expression: str | None = None,
    state: str | None = None,
    **more: Any,
) -> Any:
    """Refuse what is no schedule."""
    if scheduled_expression and not is_schedule(scheduled_expression, "cron", "rate"):
        raise ValidationException("Parameter ScheduleExpression is not valid.")
    states = service_model("events").shape_for("RuleState").enum
    if state is not None and state not in states:
        raise ValidationException(
            f"1 validation error detected: Value '{state}' at 'state' failed to satisfy constraint: "
            f"Member must satisfy enum value set: [{', '.join(states)}]"
        )
    return original(self, name, scheduled_expression=scheduled_expression, state=state, **more)
