"""Replacing methods of moto's by functions that know what they replace."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

Replacement = TypeVar("Replacement", bound=Callable[..., Any])


def around(owner: type, *names: str) -> Callable[[Replacement], Replacement]:
    """Put a function around the method of its name, or of these: it gets the original first."""

    def put(function: Replacement) -> Replacement:
        for name in names or (function.__name__,):
            setattr(owner, name, _method(function, getattr(owner, name)))
        return function

    return put


def _method(function: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def method(self: Any, *given: Any, **named: Any) -> Any:
        return function(original, self, *given, **named)

    return method
