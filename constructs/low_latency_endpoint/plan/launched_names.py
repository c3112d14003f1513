"""Names of resources in a template that several stacks may be launched from, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

OWN_NAME = "OwnStackName"
"""The condition that the stack is launched under the name that the app gives it."""

_LONGEST = 63
_ID = 8
"""Characters of the stack's ID at the end: the first group of its UUID, which is the time."""
_HASH = len("-05046abe")


def beginning_elsewhere(name: str) -> str:
    """What is left of a name in a stack that is launched under another: its ID follows.

    >>> beginning_elsewhere("serving-ranking-endpoint-05046abe")
    'serving-ranking-endpoint-05046abe'
    >>> len(beginning_elsewhere("a-very-long-name-of-a-stack" * 2 + "-05046abe"))
    54
    """
    longest = _LONGEST - _ID - len("-")
    if len(name) <= longest:
        return name
    return f"{name[: longest - _HASH].rstrip('-')}{name[-_HASH:]}"


def as_named(value: Any) -> Any:
    """A part of a template as it is in the stack that has the app's own name.

    >>> as_named({"Fn::Join": ["", ["endpoint/", {"Fn::If": ["OwnStackName", "a", "b"]}]]})
    'endpoint/a'
    """
    if isinstance(value, list):
        return [as_named(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    chosen = value.get("Fn::If")
    if chosen and chosen[0] == OWN_NAME:
        return as_named(chosen[1])
    resolved = {key: as_named(item) for key, item in value.items()}
    return _joined(resolved) if resolved != value else resolved


def _joined(value: dict[str, Any]) -> Any:
    """A join as CDK writes it: texts beside each other are one, and one text alone is no join."""
    if set(value) != {"Fn::Join"} or value["Fn::Join"][0] != "":
        return value
    parts: list[Any] = []
    for is_text, run in groupby(value["Fn::Join"][1], lambda part: isinstance(part, str)):
        alike = list(run)
        parts += ["".join(alike)] if is_text else alike
    if len(parts) == 1 and isinstance(parts[0], str):
        return parts[0]
    return {"Fn::Join": ["", parts]}
