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
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import timedelta
from importlib import import_module
from types import FunctionType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, cast, get_args, get_origin

from ..errors import ConfigurationError, did_you_mean, rule
from ..errors.findings import located
from ..facts.durations import DURATION, DURATION_KINDS
from ..facts.limit_kinds import Choice
from ..facts.limits import limits
from ..facts.rules import ARGUMENT_KIND, UNKNOWN_ARGUMENT
from .argument_examples import (
    WORDS,
    examples_of,
    in_words,
    is_duration_kind,
    is_ours,
    items_of,
    kind_of_annotation,
    module_of,
    name_of,
    ready_made,
)
from .option import alternatives

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
_TEXTS = (str, bytes, bytearray)


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
    annotations = function.__annotations__
    code = function.__code__  # inspect.signature would cost each import
    places = code.co_varnames[: code.co_argcount]
    rest = (
        code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
        if code.co_flags & inspect.CO_VARARGS
        else ""
    )
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    takes_all = bool(code.co_flags & inspect.CO_VARKEYWORDS)
    with_default = {
        *places[len(places) - len(function.__defaults__ or ()) :],
        *(function.__kwdefaults__ or ()),
    }
    required = [name for name in known if name not in with_default and name in annotations]
    kinds: dict[str, Any] = {}

    def kind_of(name: str) -> Any:
        if name not in kinds:
            kinds[name] = kind_of_annotation(annotations[name], module_of(cls, name))
        return kinds[name]

    def check(name: str, value: Any, path: str, given: Mapping[str, Any]) -> None:
        annotation = annotations.get(name)
        if annotation is None or (value is None and str(annotation).endswith("| None")):
            return
        misfit = _misfit(value, kind_of(name))
        if misfit is None:
            return
        owner = _owner(cls, function, given)
        if name == rest and _fits_list(value, kind_of(name)):
            raise misfit.error(owner, name + path, f"Unpack the list: {owner}(*{name}).")
        raise misfit.error(owner, name + path)

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(places, args, strict=False)), **kwargs}
        for name, value in given.items():
            if name not in known and not takes_all:
                groups = {each: kind_of(each) for each in known if each in annotations}
                raise _unknown(name, groups, _owner(cls, function, given))
            check(name, value, "", given)
        if len(args) > len(places) and not rest:
            groups = {each: kind_of(each) for each in known if each in annotations}
            raise _by_place(args[len(places)], groups, _owner(cls, function, given))
        if missing := {name: kind_of(name) for name in required if name not in given}:
            raise _missing(missing, _owner(cls, function, given))
        if rest:
            for index, value in enumerate(args[len(places) :]):
                check(rest, value, f"[{index}]", given)
        try:
            return function(*args, **kwargs)
        except ConfigurationError as error:
            if error.where:
                raise
            raise located(error, _owner(cls, function, given)) from error.__cause__

    return checked


class _Misfit(NamedTuple):
    """A value, what it should be, and where it is inside the argument."""

    value: Any
    kind: Any
    path: str = ""

    def inside(self, path: str) -> _Misfit:
        return _Misfit(self.value, self.kind, path + self.path)

    def error(self, owner: str, name: str, fix: str = "") -> ConfigurationError:
        where = f"{owner}, {name}{self.path}"
        kinds = alternatives(self.kind)
        if (
            any(map(is_duration_kind, kinds))
            and isinstance(self.value, (int, float, str))
            and (not isinstance(self.value, bool))
        ):
            got = "text" if isinstance(self.value, str) else repr(self.value)
            return DURATION.error(got=got, allowed=DURATION_KINDS, where=where)
        choice = next((limit for limit in map(_limit_of, kinds) if limit), None)
        if choice is not None and isinstance(self.value, str):
            return choice.error(self.value, where)
        options = next((kind for kind in kinds if is_dataclass(kind)), None)
        if isinstance(self.value, Mapping) and options is not None:
            return _mapping_for_options(self.value, options, name, where)
        # Values in mappings may be secrets: environments, build arguments, headers.
        return ARGUMENT_KIND.error(
            got=_described(self.value, shown=not self.path),
            allowed=self._ours(in_words(self.kind)),
            where=where,
            fix=fix or self._ours(self._fix(name + self.path, kinds)),
        )

    def _ours(self, text: str) -> str:
        """Our class by its package where the value's class has the same name: InstanceType."""
        name = type(self.value).__name__
        if is_ours(type(self.value)) or name not in import_module(_PACKAGE).__all__:
            return text
        return re.sub(rf"(?<!\.)\b{name}\(", f"low_latency_endpoint.{name}(", text)

    def _fix(self, name: str, kinds: Sequence[Any]) -> str:
        """From the value where that can be told, else a value of each kind."""
        from difflib import get_close_matches

        for kind in kinds:
            if (items := items_of(kind)) and _misfit(self.value, items[0]) is None:
                return f"Pass a list, even of one: {name}=[...]."
            if isinstance(self.value, str):
                made = ready_made(kind)
                meant = get_close_matches(self.value.upper().replace("-", "_"), made, n=1)
                if meant:
                    return f"Pass {made[meant[0]]} as {name}."
                if kind in (int, float) and re.fullmatch(r"-?\d+(\.\d+)?", self.value):
                    return f"Pass {WORDS[kind]} as {name}, without quotes."
        for kind in kinds:
            if option := _option_for(self.value, kind):
                return f"Pass {kind.__name__}({option}=...) as {name}."
        examples = [example for kind in kinds for example in examples_of(kind, self.value)]
        return f"Pass {' or '.join(dict.fromkeys(examples))} as {name}."


class UnknownArgument(ConfigurationError, TypeError):
    """Arguments that no call has, or too few of them: also Python's own error for it."""


def _missing(kinds: Mapping[str, Any], owner: str) -> ConfigurationError:
    """Of arguments that have no default, with an example of each."""
    examples = {name: examples_of(alternatives(kind)[0], None)[0] for name, kind in kinds.items()}
    passed = ", and ".join(f"{example} as {name}" for name, example in examples.items())
    error = MISSING_ARGUMENT.error(
        got="nothing",
        allowed=", ".join(f"{name}=..." for name in kinds),
        what=f"required: {', '.join(kinds)}",
        where=owner,
        fix=f"Pass {passed}.",
    )
    return UnknownArgument(**vars(error))


def _by_place(value: Any, kinds: Mapping[str, Any], owner: str) -> ConfigurationError:
    """Of a value without a name, which may be meant for those that take its kind."""
    fitting = [name for name, kind in kinds.items() if _misfit(value, kind) is None]
    error = ARGUMENT_BY_PLACE.error(
        got=_described(value, shown=False),
        allowed=", ".join(f"{name}=..." for name in fitting or kinds),
        where=owner,
        fix=f"Write its name: {fitting[0]}=..." if len(fitting) == 1 else "",
    )
    return UnknownArgument(**vars(error))


def _unknown(name: str, groups: Mapping[str, Any], owner: str) -> ConfigurationError:
    """Names the group of options that has it, of these arguments or another, else what is near."""
    package = import_module(_PACKAGE)
    public = {each: getattr(package, each) for each in package.__all__}
    places = [
        f"{parameter}={kind.__name__}({name}=...)"
        for parameter, of in groups.items()
        for kind in alternatives(of)
        if kind in public.values() and name in _options(kind)
    ]
    near = "" if places else did_you_mean(name, groups)
    if not places and not near:
        places = [each for each, kind in public.items() if name in _options(kind)]
    error = UNKNOWN_ARGUMENT.error(
        got=name,
        allowed=", ".join(groups) or "values without a keyword",
        where=owner,
        fix=f"It belongs in {' or '.join(places)}." if places else near,
    )
    return UnknownArgument(**vars(error))


def _options(kind: Any) -> Sequence[str]:
    return [field.name for field in fields(kind) if field.init] if is_dataclass(kind) else ()


def _option_for(value: Any, kind: Any) -> str:
    """The option of a class that a value is meant for: the plain one, else the only that takes it.

    None, which is empty text, where the class needs more than that option.
    """
    if not is_dataclass(kind) or not value:
        return ""
    plain = getattr(kind, "plain_value", "")
    taking, needed = set(), set()
    for field in fields(kind):
        of = kind_of_annotation(field.type, module_of(cast(type, kind), field.name))
        lasting = field.name != plain and any(map(is_duration_kind, alternatives(of)))
        meant = field.init and not lasting and plain in ("", field.name)
        if meant and _misfit(value, of) is None:
            taking.add(field.name)
        if field.init and field.default is MISSING and field.default_factory is MISSING:
            needed.add(field.name)
    if len(taking) != 1 or not needed <= taking:
        return ""
    (option,) = taking
    return option if _suffices(kind, option, value) else ""


def _suffices(kind: Any, option: str, value: Any) -> bool:
    """Whether the class can be made of the option alone; its limits may want another value."""
    try:
        kind(**{option: value})
    except ConfigurationError as error:
        return error.where == f"{kind.__name__}, {option}"
    return True


def _fits_list(value: Any, kind: Any) -> bool:
    """Whether it is a list of what each of several arguments may be."""
    return isinstance(value, (list, tuple)) and all(_misfit(item, kind) is None for item in value)


def _misfit(value: Any, kind: Any) -> _Misfit | None:
    """What does not fit, as deep inside the value as it can be told; None if all does."""
    if kind is Any:
        return None
    origin = get_origin(kind)
    if origin is Annotated:
        return _misfit(value, get_args(kind)[0])
    if origin is None:
        return None if _is_a(value, kind) else _Misfit(value, kind)
    parts = get_args(kind)
    if origin in (Union, UnionType):
        return _misfit_of_all(value, kind)
    if origin is Literal:
        token = isinstance(value, str) and "${Token[" in value
        return (
            None
            if token
            or any(value is part or value == part for part in parts if (type(part) is type(value)))
            else _Misfit(value, kind)
        )
    if origin is Callable:
        return None if callable(value) else _Misfit(value, kind)
    if not isinstance(value, origin) or isinstance(value, _TEXTS):
        return _Misfit(value, kind)
    for path, item, wanted in _items(value, parts):
        misfit = _misfit(item, wanted)
        if misfit is not None:
            return misfit.inside(path if isinstance(path, str) else f"[{path}]")
    return None


def _misfit_of_all(value: Any, union: Any) -> _Misfit | None:
    deepest = _Misfit(value, union)
    for kind in get_args(union):
        misfit = _misfit(value, kind)
        if misfit is None:
            return None
        if misfit.path:
            deepest = misfit
    return deepest


def _items(value: Any, parts: tuple[Any, ...]) -> Iterator[tuple[Any, Any, Any]]:
    """Place, item and wanted kind of everything inside a mapping or a sequence."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield ", a key", key, parts[0]
            yield f"[{key!r:.60}]", item, parts[1]
    else:
        for index, item in enumerate(value):
            yield index, item, parts[0]


def _is_a(value: Any, kind: Any) -> bool:
    if kind in (int, float):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and _is_finite(value)  # jsii's process dies of others
    if getattr(kind, "_is_protocol", False):
        return _implements(value, kind)
    if isinstance(value, kind):
        return True
    if is_duration_kind(kind):
        return isinstance(value, timedelta)
    return any(isinstance(part, kind) for part in _delegates(value))


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # a whole number beyond all floats
        return False


def _delegates(value: Any) -> Sequence[Any]:
    """What stands behind an object of a class that CDK does not export."""
    if type(value).__name__ != "InterfaceDynamicProxy":
        return ()
    found: Sequence[Any] = vars(value)["_delegates"]
    return found


def _implements(value: Any, interface: Any) -> bool:
    """Whether a value is of an interface of jsii's.

    A class of Python's says so with ``@jsii.implements``. Of an object from Node.js the class may
    be known as something more general, so what counts is that it has all that the interface has.
    """
    classes = [type(part) for part in _delegates(value)] or [type(value)]
    bases = [base for each in classes for base in each.__mro__]
    for base in bases:
        if any(interface in declared.__mro__ for declared in vars(base).get("__jsii_ifaces__", ())):
            return True
    if not any("__jsii_type__" in vars(base) for base in bases):
        return False
    members = {
        name
        for each in interface.__mro__
        if getattr(each, "_is_protocol", False)
        for name in vars(each)
        if not name.startswith("_")
    }
    return all(any(name in vars(base) for base in bases) for name in members)


def _limit_of(kind: Any) -> Choice | None:
    """The limit that states what a ``Literal`` lists: settings files break it by the same code."""
    if get_origin(kind) is not Literal:
        return None
    return next(
        (
            limit
            for limit in limits().values()
            if isinstance(limit, Choice) and limit.values == get_args(kind)
        ),
        None,
    )


def _owner(cls: type, function: Callable[..., Any], given: Mapping[str, Any]) -> str:
    """The path of the construct that is being made, else the name of what was called."""
    if function.__name__ != "__init__":
        return f"{cls.__name__}.{function.__name__}"
    path = getattr(getattr(given.get("scope"), "node", None), "path", "")
    return f"{path}/{given.get('id')}".lstrip("/") if "scope" in given else cls.__name__


def _mapping_for_options(
    value: Mapping[Any, Any], options: Any, name: str, where: str
) -> ConfigurationError:
    known = [field.name for field in fields(options) if field.init]
    unknown = [f"{key!r:.60}" for key in value if key not in known]
    got = "a mapping" + (
        f" with no option of {options.__name__}'s: {', '.join(unknown[:10])}" if unknown else ""
    )
    stated = ", ".join(f"{key}=..." for key in value if key in known) or "..."
    parameter = name.partition("[")[0]
    return OPTIONS.error(
        got=got,
        where=where,
        allowed=f"{parameter}={options.__name__}({stated}), with {', '.join(known)}",
        fix=f"Pass {' or '.join(examples_of(options, value))} as {parameter}.",
    )


def _described(value: Any, *, shown: bool) -> str:
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, (int, float)):
        shown = shown and (isinstance(value, float) or _is_finite(value))
        return repr(value) if shown else "a number"
    if isinstance(value, type):
        return f"the class {value.__name__}, not an instance"
    return WORDS.get(type(value)) or f"a value of class {name_of(type(value))}"
