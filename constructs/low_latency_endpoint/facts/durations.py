"""Durations as callers give them: CDK's ``Duration``, a ``timedelta``, or a text with its unit."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from ..errors import rule
from .token_values import PLAN_NEEDS_VALUES

DURATION = rule(
    "LLE801",
    "a duration has no unit",
    fix='Give Duration.millis(200) from aws_cdk, datetime.timedelta(milliseconds=200), or "200ms".',
)
DURATION_KINDS = "a Duration, a timedelta, or a text such as 200ms"
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours"}
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
TEXT_PATTERN = rf"^{_NUMBER}(?:{'|'.join(_UNITS)})$"
"""Of a duration as text, for JSON schema."""


def duration_of_text(text: str) -> timedelta | None:
    """The duration that ``200ms``, ``30s``, ``5m`` or ``1h`` says; None for another text.

    Raises ``OverflowError`` for more than a clock can measure.
    """
    match = re.fullmatch(rf"({_NUMBER})({'|'.join(_UNITS)})", text)
    return timedelta(**{_UNITS[match[2]]: float(match[1])}) if match else None


def duration_text(duration: timedelta) -> str:
    """A duration as a settings file writes it, in the largest unit that keeps it whole."""
    for unit, name in (("h", "hours"), ("m", "minutes"), ("s", "seconds")):
        length = timedelta(**{name: 1})
        if duration and not duration % length:
            return f"{duration // length}{unit}"
    milliseconds = f"{duration / timedelta(milliseconds=1):.3f}"
    return milliseconds.rstrip("0").rstrip(".") + "ms"


def is_duration(value: Any) -> bool:
    """Whether a value is a duration of one of the three kinds."""
    if isinstance(value, str):
        try:
            return duration_of_text(value) is not None
        except OverflowError:
            return False
    if isinstance(value, type):
        return False
    return isinstance(value, timedelta) or hasattr(value, "to_milliseconds")


def in_unit_of(limit: Any, duration: timedelta) -> float:
    """The duration as its limit counts: in milliseconds, or else in seconds."""
    number = duration / duration_in_unit_of(limit, 1)
    return int(number) if number == int(number) else number


def duration_in_unit_of(limit: Any, number: float) -> timedelta:
    """The duration of a number in the unit of its limit."""
    unit = "milliseconds" if getattr(limit, "unit", "") == "milliseconds" else "seconds"
    return timedelta(**{unit: number})


def is_unresolved(value: Any) -> bool:
    """Whether a ``Duration`` holds a token."""
    ask = getattr(value, "is_unresolved", None)
    return bool(ask and ask())


def milliseconds_of(value: Any, where: str = "") -> float:
    """Milliseconds of anything with ``to_milliseconds()``, of a ``timedelta``, or of a text."""
    if is_duration(value) and isinstance(value, str):
        value = duration_of_text(value)
    if isinstance(value, timedelta):
        return value / timedelta(milliseconds=1)
    convert = getattr(value, "to_milliseconds", None)
    if convert is None:
        raise DURATION.error(got=repr(value), allowed=DURATION_KINDS, where=where)
    if is_unresolved(value):
        raise PLAN_NEEDS_VALUES.error(
            what="the plan needs a duration, but a token has no value at synth",
            got="a token",
            allowed="a duration known at synth",
            where=where,
        )
    try:
        return float(convert())
    except Exception as problem:  # jsii has its own: a token, or nanoseconds that do not divide
        raise DURATION.error(
            got=f"{value!r} ({problem})", allowed="a duration in whole milliseconds", where=where
        ) from problem


def seconds_of(value: Any, where: str = "") -> float:
    """Seconds of anything that :func:`milliseconds_of` takes."""
    return milliseconds_of(value, where) / 1000
