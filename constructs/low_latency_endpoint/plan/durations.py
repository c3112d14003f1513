"""Durations as callers give them: CDK's ``Duration`` or a ``timedelta``, never a bare number."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ..errors import rule
from .token_values import PLAN_NEEDS_VALUES

DURATION = rule(
    "LLE801",
    "a duration has no unit",
    fix="Give Duration.millis(200) from aws_cdk, or datetime.timedelta(milliseconds=200).",
)


def milliseconds_of(value: Any, where: str = "") -> float:
    """Milliseconds of anything with ``to_milliseconds()``, or of a ``timedelta``."""
    if isinstance(value, timedelta):
        return value / timedelta(milliseconds=1)
    convert = getattr(value, "to_milliseconds", None)
    if convert is None:
        raise DURATION.error(got=repr(value), allowed="a Duration or a timedelta", where=where)
    unresolved = getattr(value, "is_unresolved", None)
    if unresolved and unresolved():
        raise PLAN_NEEDS_VALUES.error(
            what="the plan calculates with a duration, and a token has no value at synth",
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
