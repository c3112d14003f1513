"""Limits applied to values that may be CDK tokens: what is not known yet passes."""

from __future__ import annotations

from typing import Any

from ..facts.durations import DURATION, milliseconds_of, seconds_of
from ..facts.limit_kinds import Limit
from ..facts.token_values import is_token
from .asked_once import kept

__all__ = ["check", "check_milliseconds", "check_seconds", "in_seconds", "is_token"]


def check(limit: Limit, value: Any, where: str = "") -> Any:
    """Return the value; raise the limit's error when it is known and outside the limit."""
    return value if value is None or is_token(value) else limit.check(value, where)


def check_seconds(limit: Limit, duration: Any, where: str = "") -> int | None:
    """Whole seconds of a CDK ``Duration`` within a limit; ``None`` and tokens pass.

    The limit of the API is in seconds; callers always say ``Duration``. A token passes as
    ``Duration.seconds(token)`` only: CloudFormation cannot convert units.
    """
    return None if duration is None else int(check(limit, in_seconds(duration, where), where))


def in_seconds(duration: Any, where: str = "") -> float:
    """Seconds of a duration; of a token a token."""
    if not _unresolved(duration):
        seconds = seconds_of(duration, where)
        return int(seconds) if seconds == int(seconds) else seconds
    try:
        return int(duration.to_seconds())
    except RuntimeError as problem:  # what jsii makes of CDK's refusal to convert
        raise DURATION.error(
            got="a token in another unit", allowed="Duration.seconds(token)", where=where
        ) from problem


def check_milliseconds(limit: Limit, duration: Any, where: str = "") -> float:
    """Milliseconds of a duration that must be known at synth, within a limit."""
    if not hasattr(duration, "to_milliseconds"):
        return float(limit.check(milliseconds_of(duration, where), where))
    # The same duration is the limit of several alarms, and lines of a dashboard.
    milliseconds = kept(
        duration,
        "milliseconds",
        lambda: None if duration.is_unresolved() else duration.to_milliseconds(integral=False),
    )
    if milliseconds is None:
        raise DURATION.error(
            got="a token",
            allowed="a duration known at synth: AWS wants it in microseconds, and "
            "CloudFormation cannot convert",
            where=where,
        )
    return float(limit.check(milliseconds, where))


def _unresolved(duration: Any) -> bool:
    ask = getattr(duration, "is_unresolved", None)
    return bool(ask and ask())
