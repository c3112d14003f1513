"""Coded errors carried through pydantic, several at a time and each with its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..errors import ConfigurationError, ErrorRule

Place = tuple[str | int, ...]
Finding = tuple[Place, ConfigurationError]


class BreachError(ValueError):
    """Coded errors of one value, kept by pydantic in the ``ctx`` of its own error."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = list(findings)
        super().__init__("\n".join(str(error) for _, error in self.findings))

    @classmethod
    def of(cls, error: ConfigurationError, *place: str | int) -> BreachError:
        """One error at a place below the value."""
        return cls([(place, error)])


def finding(
    rule: ErrorRule, *place: str | int, got: object, allowed: object, what: str = "", fix: str = ""
) -> Finding:
    """One breach of a rule at a place."""
    return place, rule.error(got=shown(got), allowed=allowed, what=what, fix=fix)


def breaches(place: Place, check: Callable[..., object], *values: Any) -> Iterator[Finding]:
    """What a check of planning raises over values, at a place."""
    try:
        check(*values)
    except ConfigurationError as error:
        yield place, error


def shown(value: object) -> str:
    """The value as a reader of YAML knows it, shortened."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, bool):
        text = "true" if value else "false"
    elif value is None:
        text = "nothing"
    elif isinstance(value, dict):
        text = "a mapping with " + ", ".join(map(str, value)) if value else "an empty mapping"
    elif isinstance(value, (list, tuple)):
        text = f"a list of {len(value)}"
    else:
        text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."


def path_of(place: Place) -> str:
    """A place as text."""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
