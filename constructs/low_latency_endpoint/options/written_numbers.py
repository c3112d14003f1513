"""Numbers of a settings file that remember how they were written: a tag ``1.10`` stays ``1.10``."""

from __future__ import annotations

from typing import Any


class WrittenInt(int):
    """A whole number that remembers how it was written."""

    written: str


class WrittenFloat(float):
    """A number that remembers how it was written."""

    written: str


def as_written(value: Any) -> Any:
    """The text of a number as the file has it; other values as they are."""
    return value.written if isinstance(value, (WrittenInt, WrittenFloat)) else value
