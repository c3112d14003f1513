"""Coded errors carried through pydantic, several at a time and each with its place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import ConfigurationError
from ..errors.findings import Finding


class BreachError(ValueError):
    """Coded errors of one value, kept by pydantic in the ``ctx`` of its own error."""

    def __init__(self, findings: Iterable[Finding], sound_part: Any = None) -> None:
        self.findings = list(findings)
        self.sound_part = sound_part  # options without the values that are wrong
        super().__init__("\n".join(str(error) for _, error in self.findings))

    @classmethod
    def of(cls, error: ConfigurationError, *place: str | int) -> BreachError:
        """One error at a place below the value."""
        return cls([(place, error)])
