"""Arguments of another kind than their annotation has: refused at once, and never converted."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin


def check_kinds(kinds: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Raise `TypeError` for the first value that is not of the kind by its name.

    Examples
    --------
    >>> check_kinds({"port": int}, {"port": "80"})
    Traceback (most recent call last):
    TypeError: port is '80', where int is needed
    """
    for name, value in values.items():
        if not _is_of(value, kinds[name]):
            raise TypeError(f"{name} is {_short(value)}, where {_words(kinds[name])} is needed")


def _is_of(value: Any, kind: Any) -> bool:
    if get_origin(kind) in (Union, UnionType):
        return any(_is_of(value, each) for each in get_args(kind))
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if get_origin(kind) is Mapping:
        return isinstance(value, Mapping) and all(_is_entry(item, kind) for item in value.items())
    if isinstance(value, bool):  # Python takes it for a number
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def _is_entry(item: tuple[Any, Any], kind: Any) -> bool:
    of_key, of_value = get_args(kind)
    return _is_of(item[0], of_key) and _is_of(item[1], of_value)


def _words(kind: Any) -> str:
    """Write a kind as its annotation does, without the modules."""
    if get_origin(kind) in (Union, UnionType):
        return " | ".join(map(_words, get_args(kind)))
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    if get_origin(kind) is Mapping:
        return f"a mapping of {_words(get_args(kind)[0])} to {_words(get_args(kind)[1])}"
    return "None" if kind is NoneType else str(kind.__name__)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."
