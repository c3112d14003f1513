"""Check the arguments of constructors and functions against the annotations in their signatures.

:func:`checked` is the decorator. Annotations may name text, numbers, durations, mappings of text,
and objects of a class. The arguments of a call are checked where they are used instead, so that a
call takes no longer.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from .errors import ConfigurationError, did_you_mean, located, rule
from .limits import duration_of_text

CLIENT_ARGUMENT = rule(
    "LLC120",
    "an argument of a client has the wrong type",
    fix="Pass a value of an allowed kind; the error has an example.",
)
CLIENT_CALL = rule(
    "LLC121",
    "an argument of a client is missing, unknown or given without its name",
    fix="Use the allowed names. Only the first argument needs no name.",
)

DURATION = rule(
    "LLC125",
    "a duration cannot be read",
    fix='Give datetime.timedelta(milliseconds=200), or a number with ms, s, m or h: "200ms".',
)

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Class = TypeVar("_Class", bound=type)
_MILLISECOND = timedelta(milliseconds=1)
_DURATION_WORDS = "a timedelta or a text such as 200ms"
_WORDS = {
    str: "text",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    timedelta: _DURATION_WORDS,
    NoneType: "None",
}
_CLASSES = {
    "Callable": "a function",
    "Config": "botocore.config.Config(...)",
    "CredentialsSource": "botocore.credentials.Credentials(...)",
    "Hedging": "Hedging()",
    "Iterable": "a list of messages",
    "Mapping": "a mapping",
    "PathLike": "a path",
    "Session": "boto3.Session(...)",
}


class MisnamedArgument(ConfigurationError, TypeError):
    """An argument that is missing, unknown or passed without its name; also a ``TypeError``."""


def checked(function: _Function, owner: str = "") -> _Function:
    """Decorate a function to refuse arguments of other kinds than its annotations.

    The errors name the owner, which is the class or function that was called; by default the
    function.

    Examples
    --------
    >>> @checked
    ... def greet(name: str, *, times: int | None = None) -> None: ...
    >>> try:
    ...     greet("Ada", times="twice")
    ... except ConfigurationError as error:
    ...     print(error.where, "|", error.got, "|", error.allowed)
    greet, times | text | a whole number or None
    """
    owner = owner or function.__name__
    kinds: dict[str, Any] = {}

    @functools.wraps(function)
    def with_checks(*args: Any, **kwargs: Any) -> Any:
        if not kinds:
            kinds.update(get_type_hints(function))
        try:
            for name, value in _bound(function, args, kwargs).items():
                check_kind(value, kinds.get(name, Any), name)
            return function(*args, **kwargs)
        except ConfigurationError as error:
            where = f"{owner}, {error.where}" if error.where else owner
            raise located(error, where) from error.__cause__

    is_constructor = function.__name__ == "__init__"
    with_checks.__qualname__ = f"{owner}.__init__" if is_constructor else owner
    return cast(_Function, with_checks)


def checked_class(cls: _Class) -> _Class:
    """Decorate a class to have its constructor :func:`checked`."""
    cls.__init__ = checked(cls.__init__, cls.__name__)  # type: ignore[misc]
    return cls


def check_kind(value: Any, kind: Any, where: str) -> None:
    """Raise an error if a value is not of the kind of an annotation."""
    misfit = _misfit(value, kind)
    if misfit is None:
        return
    kinds = _alternatives(misfit.kind)
    if timedelta in kinds:
        raise _no_duration(value, where)
    raise CLIENT_ARGUMENT.error(
        got=_described(misfit.value),
        allowed=" or ".join(map(_in_words, kinds)),
        where=where + misfit.path,
        fix=f"Pass {_in_words(kinds[0])} as {where.rpartition(', ')[2]}{misfit.path}.",
    )


def milliseconds(value: Any, where: str) -> float:
    """Return the milliseconds of a ``timedelta`` or of a text such as ``200ms``."""
    if isinstance(value, timedelta):
        return value / _MILLISECOND
    length = duration_of_text(value) if isinstance(value, str) else None
    if length is None:
        raise _no_duration(value, where)
    return length / _MILLISECOND


def duration(value: Any, where: str) -> timedelta:
    """Return a ``timedelta``, or the one that a text such as ``200ms`` says."""
    return timedelta(milliseconds=milliseconds(value, where))


class _WrongPart(NamedTuple):
    """A value, the kind that it should have, and its place inside the argument."""

    value: Any
    kind: Any
    path: str = ""


def _bound(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments by their names, or raise the error for a wrong call."""
    signature = inspect.signature(function)
    try:
        return signature.bind(*args, **kwargs).arguments
    except TypeError as problem:
        names = [name for name in signature.parameters if name != "self"]
        unknown = [name for name in kwargs if name not in names]
        error = CLIENT_CALL.error(
            got=str(problem),
            allowed=", ".join(names),
            fix=did_you_mean(unknown[0], names) if unknown else "",
        )
        raise MisnamedArgument(**vars(error)) from None


def _misfit(value: Any, kind: Any) -> _WrongPart | None:
    """Return the part of a value that is of the wrong kind, or the whole value; None if all is right."""
    kinds = _alternatives(kind)
    mappings = [option for option in kinds if get_origin(option) is Mapping]
    if not mappings or not isinstance(value, Mapping):
        fits = any(_fits(value, option) for option in kinds)
        return None if fits else _WrongPart(value, kind)
    of_key, of_item = get_args(mappings[0])
    parts = [_WrongPart(key, of_key, ", a key") for key in value]
    parts += [_WrongPart(item, of_item, f"[{key!r:.60}]") for key, item in value.items()]
    return next((part for part in parts if not _fits(part.value, part.kind)), None)


def _fits(value: Any, kind: Any) -> bool:
    """Return whether a value is of one kind. Limits check which numbers, and whether whole."""
    if kind is Any:
        return True
    if kind in (int, float):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is timedelta:
        return _is_duration(value)
    return isinstance(value, get_origin(kind) or kind) and not isinstance(value, type)


def _is_duration(value: Any) -> bool:
    if isinstance(value, str):
        return duration_of_text(value) is not None
    return isinstance(value, timedelta)


def _alternatives(kind: Any) -> tuple[Any, ...]:
    """Return the kinds of a union. A duration, which may be a text, is one kind."""
    parts = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return tuple(part for part in parts if part is not str or timedelta not in parts)


def _in_words(kind: Any) -> str:
    if get_origin(kind) is Mapping:
        key, item = get_args(kind)
        return f"a mapping of {_in_words(key)} to {_in_words(item)}"
    name = (get_origin(kind) or kind).__name__
    return _WORDS.get(kind) or _CLASSES.get(name, name)


def _described(value: Any) -> str:
    """Describe a value without its text, which may be secret."""
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    if isinstance(value, type):
        return f"the class {value.__name__}, not an instance"
    return "text" if isinstance(value, str) else f"a value of class {type(value).__name__}"


def _no_duration(value: Any, where: str) -> ConfigurationError:
    got = repr(value) if isinstance(value, str) else _described(value)
    return DURATION.error(got=got, allowed=_DURATION_WORDS, where=where)
