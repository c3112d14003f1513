"""Kinds of arguments, held against the annotations in the signatures, once for everything public.

jsii brings typeguard, which looks at what goes into CDK only, after half of a construct is made,
and takes True for a number, text for a list of text, and anything for an interface, since jsii's
are protocols that ``isinstance`` refuses. Pydantic and beartype stumble over those protocols too.

Numbers are held to be finite numbers; which ones, and whether whole, is for the limits, whose
errors say more. CDK's tokens are text, numbers and lists already.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from types import FunctionType
from typing import Any, TypeVar

from ..errors import ConfigurationError, did_you_mean, rule
from ..errors.findings import located
from ..errors.given_files import is_finite
from ..facts.durations import DURATION, DURATION_KINDS
from ..facts.limit_kinds import Choice
from ..facts.limits import limits
from ..facts.rules import ARGUMENT_KIND, UNKNOWN_ARGUMENT
from .annotations import module_of
from .argument_examples import (
    examples_of,
    first_example,
    is_options,
    is_ours,
    kind_of_field,
    needed_fields,
    ready_made,
)
from .compound_kinds import ClassKind, ListKind, class_name, kind_of_argument
from .kind import ChoiceKind, DurationKind, Kind, Misfit, NumberKind

OPTIONS = rule(
    "LLE360",
    "options are given as a mapping",
    fix="Write the options' class with keywords instead.",
)
MISSING_ARGUMENT = rule(
    "LLE812",
    "a required argument is missing",
    fix="Pass it by its name, such as instance_type='ml.m5.xlarge'.",
)
ARGUMENT_BY_PLACE = rule(
    "LLE813",
    "an argument is given without its name",
    fix="Write its name, such as Container(image=...).",
)

_Class = TypeVar("_Class", bound=type)
_PACKAGE = __name__.partition(".")[0]


def checked_arguments(cls: _Class) -> _Class:
    """Check the arguments of a class's constructor and of its public methods.

    Put it above all other decorators. What a parameter takes is its annotation; whatever is
    passed and does not fit is refused before the function runs, so nothing is half made.

    Examples
    --------
    >>> @checked_arguments
    ... class Greeting:
    ...     def __init__(self, name: str, *, times: int | None = None) -> None: ...
    >>> try:
    ...     Greeting("Ada", times="twice")
    ... except ConfigurationError as error:
    ...     print(error.where, "|", error.got, "|", error.allowed)
    Greeting, times | text | a whole number or None
    """
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, (classmethod, staticmethod)):
            setattr(cls, name, type(member)(_checked(member.__func__, cls)))
        elif isinstance(member, FunctionType):
            setattr(cls, name, _checked(member, cls))
    if type(cls) is not type and "__init__" in vars(cls):
        cls.__signature__ = _Signature()  # type: ignore[attr-defined]
    return cls


class _Signature:
    """The constructor's signature, which jsii's metaclass hides; worked out when asked for."""

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        made_by: Any = next(
            vars(each)["__init__"] for each in owner.__mro__ if "__init__" in vars(each)
        )
        signature = inspect.signature(made_by)
        _, *parameters = signature.parameters.values()
        return signature.replace(parameters=parameters, return_annotation=signature.empty)


def _checked(function: Any, cls: type) -> Callable[..., Any]:
    parameters = _Parameters(function, cls)

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(parameters.places, args, strict=False)), **kwargs}
        parameters.check(args, given)
        try:
            return function(*args, **kwargs)
        except ConfigurationError as error:
            if error.where:
                raise
            raise located(error, parameters.owner(given)) from error.__cause__

    return checked


class _Parameters:
    """The parameters of a function, with the kind of each, which is made with its first value."""

    def __init__(self, function: Any, cls: type) -> None:
        code = function.__code__  # inspect.signature would cost each import
        self.function = function
        self.cls = cls
        self.annotations: dict[str, Any] = function.__annotations__
        count = code.co_argcount + code.co_kwonlyargcount
        self.names = code.co_varnames[:count]
        self.places = code.co_varnames[: code.co_argcount]
        self.rest = code.co_varnames[count] if code.co_flags & inspect.CO_VARARGS else ""
        self.takes_all = bool(code.co_flags & inspect.CO_VARKEYWORDS)
        self._kinds: dict[str, Kind] = {}

    @functools.cached_property
    def required(self) -> list[str]:
        """The parameters without a default."""
        defaults = self.function.__defaults__ or ()
        optional = {*self.places[len(self.places) - len(defaults) :]}
        optional.update(self.function.__kwdefaults__ or ())
        names = [name for name in self.names if name in self.annotations]
        return [name for name in names if name not in optional]

    def kind(self, name: str) -> Kind:
        """The kind of a parameter."""
        if name not in self._kinds:
            module = module_of(self.cls, name)
            self._kinds[name] = kind_of_argument(self.annotations[name], module)
        return self._kinds[name]

    def kinds(self) -> dict[str, Kind]:
        """The kind of each parameter."""
        return {name: self.kind(name) for name in self.names if name in self.annotations}

    def check(self, args: Sequence[Any], given: Mapping[str, Any]) -> None:
        """Raise the error of the first argument that does not fit, or is not there."""
        for name, value in given.items():
            if name not in self.names and not self.takes_all:
                raise _unknown(name, self.kinds(), self.owner(given))
            self._check_kind(name, value, "", given)
        if len(args) > len(self.places) and not self.rest:
            raise _by_place(args[len(self.places)], self.kinds(), self.owner(given))
        missing = {name: self.kind(name) for name in self.required if name not in given}
        if missing:
            raise _missing(missing, self.owner(given))
        if self.rest:
            for index, value in enumerate(args[len(self.places) :]):
                self._check_kind(self.rest, value, f"[{index}]", given)

    def owner(self, given: Mapping[str, Any]) -> str:
        """The path of the construct that is being made, else the name of what was called."""
        if self.function.__name__ != "__init__":
            return f"{self.cls.__name__}.{self.function.__name__}"
        if "scope" not in given:
            return self.cls.__name__
        path = getattr(getattr(given["scope"], "node", None), "path", "")
        return f"{path}/{given.get('id')}".lstrip("/")

    def _check_kind(self, name: str, value: Any, path: str, given: Mapping[str, Any]) -> None:
        annotation = self.annotations.get(name)
        if annotation is None or (value is None and str(annotation).endswith("| None")):
            return
        kind = self.kind(name)
        misfit = kind.misfit(value)
        if misfit is None:
            return
        owner = self.owner(given)
        fix = ""
        if name == self.rest and _is_list_of(kind, value):
            fix = f"Unpack the list: {owner}(*{name})."
        raise _misfit_error(misfit, owner, name + path, fix)


def _misfit_error(misfit: Misfit, owner: str, name: str, fix: str = "") -> ConfigurationError:
    """The error of an argument that is not of its kind."""
    value, kind, path = misfit
    where = f"{owner}, {name}{path}"
    kinds = kind.alternatives
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if any(isinstance(of, DurationKind) for of in kinds) and (is_number or isinstance(value, str)):
        got = "text" if isinstance(value, str) else repr(value)
        return DURATION.error(got=got, allowed=DURATION_KINDS, where=where)
    choice = next(filter(None, map(_limit_of, kinds)), None)
    if choice is not None and isinstance(value, str):
        return choice.error(value, where)
    options = next((of for of in kinds if is_options(of)), None)
    if isinstance(value, Mapping) and isinstance(options, ClassKind):
        return _mapping_for_options(value, options, name, where)
    # Values in mappings may be secrets: environments, build arguments, headers.
    return ARGUMENT_KIND.error(
        got=_described(value, shown=not path),
        allowed=_with_package(kind.words, value),
        where=where,
        fix=fix or _with_package(_fix(value, kinds, name + path), value),
    )


def _with_package(text: str, value: Any) -> str:
    """Our class by its package where the value's class has the same name: InstanceType."""
    name = type(value).__name__
    if is_ours(type(value)) or name not in import_module(_PACKAGE).__all__:
        return text
    return re.sub(rf"(?<!\.)\b{name}\(", f"low_latency_endpoint.{name}(", text)


def _fix(value: Any, kinds: Sequence[Kind], name: str) -> str:
    """What to pass: by the value where that can be told, else a value of each kind."""
    for kind in kinds:
        if isinstance(kind, ListKind) and kind.item.misfit(value) is None:
            return f"Pass a list, even of one: {name}=[...]."
        meant = _meant_by_text(value, kind, name) if isinstance(value, str) else ""
        if meant:
            return f"Pass {meant}."
    for kind in kinds:
        if option := _option_for(value, kind):
            return f"Pass {class_name(kind.of)}({option}=...) as {name}."  # type: ignore[attr-defined]
    examples = [example for kind in kinds for example in examples_of(kind, value)]
    return f"Pass {' or '.join(dict.fromkeys(examples))} as {name}."


def _meant_by_text(text: str, kind: Kind, name: str) -> str:
    """The value of a kind that a text says, and as which argument; empty if it says none."""
    from difflib import get_close_matches

    values = ready_made(kind)
    meant = get_close_matches(text.upper().replace("-", "_"), values, n=1)
    if meant:
        return f"{values[meant[0]]} as {name}"
    if isinstance(kind, NumberKind) and re.fullmatch(r"-?\d+(\.\d+)?", text):
        return f"{kind.words} as {name}, without quotes"
    return ""


class UnknownArgument(ConfigurationError, TypeError):
    """Unknown or missing arguments. Also a ``TypeError``, as Python itself would raise."""


def _missing(kinds: Mapping[str, Kind], owner: str) -> ConfigurationError:
    """Of arguments that have no default, with an example of each."""
    passed: list[str] = []
    for name, kind in kinds.items():
        passed.append(f"{first_example(kind, None)} as {name}")
    error = MISSING_ARGUMENT.error(
        got="nothing",
        allowed=", ".join(f"{name}=..." for name in kinds),
        what=f"required: {', '.join(kinds)}",
        where=owner,
        fix=f"Pass {', and '.join(passed)}.",
    )
    return UnknownArgument(**vars(error))


def _by_place(value: Any, kinds: Mapping[str, Kind], owner: str) -> ConfigurationError:
    """Of a value without a name, which may be meant for those that take its kind."""
    fitting = [name for name, kind in kinds.items() if kind.misfit(value) is None]
    error = ARGUMENT_BY_PLACE.error(
        got=_described(value, shown=False),
        allowed=", ".join(f"{name}=..." for name in fitting or kinds),
        where=owner,
        fix=f"Write its name: {fitting[0]}=..." if len(fitting) == 1 else "",
    )
    return UnknownArgument(**vars(error))


def _unknown(name: str, kinds: Mapping[str, Kind], owner: str) -> ConfigurationError:
    """Names the group of options that has it, of these arguments or another, else what is near."""
    package = import_module(_PACKAGE)
    public = {own: getattr(package, own) for own in package.__all__}
    places: list[str] = []
    for parameter, kind in kinds.items():
        for part in kind.alternatives:
            of: Any = getattr(part, "of", None)
            if of in public.values() and name in _fields(of):
                places.append(f"{parameter}={of.__name__}({name}=...)")
    near = "" if places else did_you_mean(name, kinds)
    if not places and not near:
        places = [own for own, of in public.items() if name in _fields(of)]
    error = UNKNOWN_ARGUMENT.error(
        got=name,
        allowed=", ".join(kinds) or "values without a keyword",
        where=owner,
        fix=f"It belongs in {' or '.join(places)}." if places else near,
    )
    return UnknownArgument(**vars(error))


def _fields(of: Any) -> Sequence[str]:
    return [field.name for field in fields(of) if field.init] if is_dataclass(of) else ()


def _option_for(value: Any, kind: Kind) -> str:
    """The option of a class that a value is meant for: the plain one, else the only that takes it.

    None, which is empty text, where the class needs more than that option.
    """
    if not is_options(kind) or not value:
        return ""
    of = kind.of  # type: ignore[attr-defined]
    plain = getattr(of, "plain_value", "")
    needed = set(needed_fields(of))
    taking: set[str] = set()
    for name in _fields(of):
        if plain in ("", name) and _takes(of, name, value, is_plain=name == plain):
            taking.add(name)
    if len(taking) != 1 or not needed <= taking:
        return ""
    (option,) = taking
    return option if _suffices(of, option, value) else ""


def _takes(of: Any, name: str, value: Any, *, is_plain: bool) -> bool:
    """Whether a field takes a value; a duration only as the plain value of its class."""
    kind = kind_of_field(of, name)
    is_duration = any(isinstance(part, DurationKind) for part in kind.alternatives)
    return (is_plain or not is_duration) and kind.misfit(value) is None


def _suffices(of: Any, option: str, value: Any) -> bool:
    """Whether the class can be made of the option alone; its limits may want another value."""
    try:
        of(**{option: value})
    except ConfigurationError as error:
        return error.where == f"{of.__name__}, {option}"
    return True


def _is_list_of(kind: Kind, value: Any) -> bool:
    """Whether it is a list of what each of several arguments may be."""
    is_list = isinstance(value, (list, tuple))
    return is_list and all(kind.misfit(item) is None for item in value)


def _limit_of(kind: Kind) -> Choice | None:
    """The limit that states what a choice lists: settings files break it by the same code."""
    if not isinstance(kind, ChoiceKind):
        return None
    for limit in limits().values():
        if isinstance(limit, Choice) and limit.values == kind.choices:
            return limit
    return None


def _mapping_for_options(
    value: Mapping[Any, Any], options: ClassKind, name: str, where: str
) -> ConfigurationError:
    of = options.of
    known = _fields(of)
    unknown = [f"{key!r:.60}" for key in value if key not in known]
    got = "a mapping"
    if unknown:
        got += f" with no option of {of.__name__}'s: {', '.join(unknown[:10])}"
    stated = ", ".join(f"{key}=..." for key in value if key in known) or "..."
    parameter = name.partition("[")[0]
    return OPTIONS.error(
        got=got,
        where=where,
        allowed=f"{parameter}={of.__name__}({stated}), with {', '.join(known)}",
        fix=f"Pass {' or '.join(examples_of(options, value))} as {parameter}.",
    )


def _described(value: Any, *, shown: bool) -> str:
    """A value as an error shows it; only its kind where it may be a secret."""
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, (int, float)):
        shown = shown and (isinstance(value, float) or is_finite(value))
        return repr(value) if shown else "a number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, bytes):
        return "bytes"
    if isinstance(value, type):
        return f"the class {value.__name__}, not an instance"
    return f"a value of class {class_name(type(value))}"
