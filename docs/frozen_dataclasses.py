"""For the site: our dataclass decorator is the standard library's, as type checkers see it."""

from __future__ import annotations

from typing import Any

from griffe import Class, ExprCall, ExprName, Extension

_OURS = "low_latency_endpoint.errors.frozen.dataclass"


class FrozenDataclasses(Extension):
    """Name the standard library's, so that the site shows the parameters of a group with types."""

    def on_class_instance(self, *, cls: Class, **_: Any) -> None:
        """Before griffe makes their constructors."""
        for decorator in cls.decorators:
            called = decorator.value
            if isinstance(called, ExprCall) and called.canonical_path == _OURS:
                called.function = ExprName("dataclasses.dataclass")
