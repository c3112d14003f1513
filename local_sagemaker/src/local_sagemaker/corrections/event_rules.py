"""EventBridge: moto takes any schedule of a rule, and any number of targets and bytes.

Its patterns with several stars take for ever.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from moto.core.exceptions import JsonRESTError
from moto.events.exceptions import ValidationException
from moto.events.models import EventPattern, EventsBackend

from ..runtime.scheduled_actions import is_schedule
from ..wildcards import ANY, matches
from .replacing import around

_MOST_TARGETS = 5
"""Of a rule; source: API reference, PutTargets."""
_BYTES_OF_TIME = 14
_TOO_MANY_BYTES = 1024 * 1024
"""Of all entries; source: API reference, PutEvents."""


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
    """Refuse more targets than a rule has."""
    bus = self._get_event_bus(self._normalize_event_bus_arn(event_bus_arn))
    rule = bus.rules.get(name)
    ids = {target["Id"] for target in [*(rule.targets if rule else ()), *targets]}
    if len(ids) > _MOST_TARGETS:
        raise JsonRESTError(
            "LimitExceededException", "The requested resource exceeds the maximum number allowed."
        )
    return original(self, name, event_bus_arn, targets)


@around(EventsBackend)
def put_events(original: Callable[..., Any], self: Any, events: list[dict[str, Any]]) -> Any:
    """Refuse entries that are too large together."""
    if sum(size for event in events for size in _sizes(event)) >= _TOO_MANY_BYTES:
        raise ValidationException("Total size of the entries in the request is over the limit.")
    return original(self, events)


def _sizes(event: Mapping[str, Any]) -> Iterator[int]:
    # https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevent-size.html
    yield _BYTES_OF_TIME if event.get("Time") else 0
    for name in ("Source", "DetailType", "Detail"):
        yield len((event.get(name) or "").encode())
    for resource in event.get("Resources") or ():
        yield len(resource.encode())


_PART = re.compile(r"\\[*\\]|.", re.DOTALL)


def _wildcard_match(item: Any, pattern: str) -> bool:
    """Match a star to any letters; after a backslash, it and a backslash are letters."""
    parts = [ANY if part == "*" else part[-1] for part in _PART.findall(pattern)]
    return isinstance(item, str) and matches(tuple(parts), item)


EventPattern._wildcard_match = staticmethod(_wildcard_match)
