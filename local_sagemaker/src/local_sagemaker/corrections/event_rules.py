"""EventBridge: moto takes any schedule of a rule, and any number and input of targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moto.core.exceptions import JsonRESTError
from moto.events.exceptions import ValidationException
from moto.events.models import EventsBackend

from ..protocols import read_json
from ..runtime.scheduled_actions import is_schedule
from .replacing import around

_MOST_TARGETS = 5
"""Of a rule; source: API reference, PutTargets."""


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


@around(EventsBackend)
def put_targets(
    original: Callable[..., Any],
    self: Any,
    name: str,
    event_bus_arn: str | None,
    targets: list[dict[str, Any]],
) -> Any:
    """Refuse more targets than a rule has, and inputs that exclude each other or are no JSON."""
    for target in targets:
        _check_input(target)
    bus = self._get_event_bus(self._normalize_event_bus_arn(event_bus_arn))
    rule = bus.rules.get(name)
    ids = {target["Id"] for target in [*(rule.targets if rule else ()), *targets]}
    if len(ids) > _MOST_TARGETS:
        raise JsonRESTError(
            "LimitExceededException", "The requested resource exceeds the maximum number allowed."
        )
    return original(self, name, event_bus_arn, targets)


def _check_input(target: Mapping[str, Any]) -> None:
    inputs = {"Input", "InputPath", "InputTransformer"} & target.keys()
    if len(inputs) > 1:
        raise ValidationException(
            "Only one of Input, InputPath, or InputTransformer must be provided for target "
            f"{target['Id']}."
        )
    try:
        read_json(target.get("Input", "{}"))
    except (ValueError, RecursionError):
        raise ValidationException(f"JSON syntax error in input for target {target['Id']}") from None
