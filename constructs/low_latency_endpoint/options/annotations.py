"""What annotations say, read without the CDK: its classes are loaded when they are needed."""

from __future__ import annotations

import builtins
import sys
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from inspect import get_annotations
from types import UnionType
from typing import Any, Union, get_args, get_origin

LASTING = "Duration | timedelta | str"
"""How a signature says that it takes a duration: editors show an alias by its name alone."""

_PACKAGE = __name__.partition(".")[0]


class AnyDuration:
    """Stands for that union: a CDK ``Duration``, a ``timedelta``, or a text such as ``200ms``."""


def evaluated(annotation: Any, module: str) -> Any:
    """What an annotation in a module says; where it says ``LASTING`` word for word, ``AnyDuration``."""
    if not isinstance(annotation, str):
        return annotation
    names = _Names(vars(sys.modules[module]))
    names["AnyDuration"] = AnyDuration
    return eval(annotation.replace(LASTING, "AnyDuration"), {}, names)


def alternatives(annotation: Any) -> tuple[Any, ...]:
    """The kinds of a union; of any other annotation itself."""
    is_union = get_origin(annotation) in (Union, UnionType)
    return get_args(annotation) if is_union else (annotation,)


def parts_of(annotation: Any) -> list[Any]:
    """An annotation, and all of which it is made."""
    parts = [annotation]
    for part in get_args(annotation):
        parts += parts_of(part)
    return parts


def module_of(cls: type, name: str) -> str:
    """Where the annotation of a field was written, which may be in a class that another extends."""
    if is_dataclass(cls):
        for base in cls.__mro__:
            if name in get_annotations(base):
                return base.__module__
    return cls.__module__


def loaded(annotation: type) -> type:
    """The class for which an annotation stands."""
    if not isinstance(annotation, _Unloaded):
        return annotation
    first, *path = annotation.__name__.split(".")
    target: Any = _imported(first)
    for name in path:
        target = getattr(target, name)
    return target  # type: ignore[no-any-return]


class _Unloaded(type):
    """Stands for a class that a module imports for type checkers alone."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _unloaded(f"{cls.__name__}.{name}")


@cache
def _unloaded(name: str) -> type:
    return _Unloaded(name, (), {})


class _Names(dict[str, Any]):
    """A module's names, and those that it imports for type checkers alone."""

    def __missing__(self, name: str) -> Any:
        if name.startswith("__"):  # which a debugger and pytest look for in every frame
            raise KeyError(name)
        return getattr(builtins, name, None) or _unloaded(name)


def _imported(name: str) -> Any:
    """What modules import for type checkers: our public names, or a module of the CDK."""
    package = import_module(_PACKAGE)
    if name in package.__all__:
        return getattr(package, name)
    if name.endswith("Settings"):
        return getattr(import_module(f"{_PACKAGE}.settings"), name)
    if name == "Construct":
        return import_module("constructs").Construct
    return import_module(f"aws_cdk.aws_{name.removesuffix('_')}")
