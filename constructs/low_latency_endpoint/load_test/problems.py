"""Errors on their way from one process to another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import ConfigurationError
from .rules import GENERATOR

__all__ = ["error_of", "problem_of"]

_PARTS = ("code", "what", "got", "allowed", "mend", "source", "where")


def problem_of(problem: BaseException) -> dict[str, Any]:
    """A problem as plain JSON; coded ones keep their code.

    Examples
    --------
    >>> print(error_of(problem_of(KeyError("x"))).got)
    KeyError: 'x'
    """
    if isinstance(problem, ConfigurationError):
        return {name: getattr(problem, name) for name in _PARTS}
    return {"message": f"{type(problem).__name__}: {problem}"}


def error_of(content: Mapping[str, Any]) -> ConfigurationError:
    """The error that :func:`problem_of` described."""
    if "code" in content:
        return ConfigurationError(**content)
    return GENERATOR.error(got=content["message"], allowed="a generator that runs")
