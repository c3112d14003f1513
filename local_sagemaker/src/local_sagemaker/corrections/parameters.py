"""SSM's parameters: moto takes values and changes of a tier that Parameter Store refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.ssm.exceptions import ValidationException
from moto.ssm.models import SimpleSystemManagerBackend

from ..patterns import match_all
from .replacing import around


@around(SimpleSystemManagerBackend)
def put_parameter(
    original: Callable[..., Any],
    self: Any,
    name: str,
    description: str,
    value: str,
    parameter_type: str,
    allowed_pattern: str,
    *given: Any,
    tier: str | None = None,
    **more: Any,
) -> Any:
    """Refuse a value that its pattern excludes, and a lower tier: API reference, PutParameter."""
    if allowed_pattern and not _matches(allowed_pattern, value or ""):
        raise ValidationException(
            f"Parameter value, cannot be validated against allowedPattern: {allowed_pattern}"
        )
    former = self._parameters.get(name)
    if tier == "Standard" and former and former[-1].tier == "Advanced":
        raise ValidationException(
            "This parameter uses the advanced-parameter tier. You can't downgrade a parameter from "
            "the advanced-parameter tier to the standard-parameter tier."
        )
    return original(
        self, name, description, value, parameter_type, allowed_pattern, *given, tier=tier, **more
    )


def _matches(pattern: str, value: str) -> bool:
    try:
        return match_all(pattern, [value], "search")
    except ValueError:
        return False
