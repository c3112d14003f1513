"""Limits applied to values that may be CDK tokens: what is not known yet passes."""

from __future__ import annotations

from typing import Any

from .planning.limits import Limit

_NUMBER_TOKENS_BELOW = -1e280  # CDK encodes number tokens as doubles near -1.8881545897087503e+289


def is_token(value: Any) -> bool:
    """Whether CDK will resolve this value later (no call into jsii, so cheap).

    Examples
    --------
    >>> is_token("${Token[TOKEN.12]}"), is_token("us-east-1"), is_token(7)
    (True, False, False)
    """
    if isinstance(value, str):
        return "${Token[" in value or "#{Token[" in value
    if isinstance(value, (int, float)):
        return value < _NUMBER_TOKENS_BELOW
    if isinstance(value, list):
        return any(is_token(item) for item in value)
    return False


def check(limit: Limit, value: Any, where: str = "") -> Any:
    """Return the value; raise the limit's error when it is known and outside the limit."""
    return value if value is None or is_token(value) else limit.check(value, where)


def check_seconds(limit: Limit, duration: Any, where: str = "") -> int | None:
    """Whole seconds of a CDK ``Duration`` within a limit; ``None`` and tokens pass.

    The limit of the API is in seconds; callers always say ``Duration``.
    """
    if duration is None:
        return None
    if duration.is_unresolved():
        return int(duration.to_seconds())
    return int(check(limit, duration.to_milliseconds() / 1000, where))
