"""What an option says of itself, and what follows from it for all options alike."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from datetime import timedelta
from inspect import get_annotations
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from ..errors.findings import Finding, Place, breaches, located, path_of
from ..plan.durations import DURATION, is_duration, is_unresolved, milliseconds_of
from ..plan.limits import Limit
from ..plan.token_values import is_token
from .effects import Touched

if TYPE_CHECKING:
    from aws_cdk import Duration

    Lasting = Duration | timedelta | str
else:

    class _AnyDuration(type):
        __jsii_type__ = "aws-cdk-lib.Duration"

        def __instancecheck__(cls, value: Any) -> bool:
            return is_duration(value)

    #: A CDK ``Duration``, a ``timedelta``, or a text such as ``200ms``.
    Lasting = _AnyDuration("Duration", (), {})


class Option(NamedTuple):
    """What a field says of its option beside name, kind and default, in ``Annotated``.

    The option's text is its line in the class's ``Args`` section, where editors look for it. What
    follows "In Python" in a text is left out where settings files are documented.
    """

    limit: Limit | None = None
    example: Any = None  # in YAML's terms; by default none, as for true and false
    billed: tuple[int, ...] = ()  # metrics that CloudWatch bills for, a number for each alarm
    known: bool = False  # whether a CDK token is refused: CloudFormation does not calculate
    schema: Mapping[str, Any] | None = None  # where JSON schema can say more than the kind does
    touches: Touched | None = None  # by default what the group around it touches


class Declared(NamedTuple):
    """One option of a group."""

    name: str
    kind: Any
    default: Any
    text: str
    option: Option | None  # None where a settings file cannot state it
    lasting: bool  # whether the value is a duration, or holds some

    @property
    def text_in_file(self) -> str:
        """The text without what is of Python alone."""
        return self.text.partition(" In Python ")[0]


_Group = TypeVar("_Group", bound="Options")


class Options:
    """A group of options: a frozen dataclass whose fields are ``Annotated`` with an ``Option``.

    Texts become durations, and every limit and rule is checked, whoever makes the object.
    """

    #: Options with another value by default than the class it extends says, in words.
    inherited: ClassVar[Mapping[str, str]] = {}
    #: Of options that take a word, or a group in its place.
    other_forms: ClassVar[Mapping[str, type[Options]]] = {}

    def __post_init__(self) -> None:
        self._settle_durations()
        for place, error in self._findings():
            raise located(error, f"{type(self).__name__}, {path_of(place)}")

    def _findings(self) -> Iterator[Finding]:
        """Each limit and rule that does not hold, with the place of the value."""
        for each in options_of(type(self)):
            value = getattr(self, each.name)
            if each.option is None or each.option.limit is None or value is each.default:
                continue
            for place, leaf in _leaves((each.name,), value):
                yield from breaches(place, _check, each.option, leaf)
        yield from self._rules()

    def _rules(self) -> Iterator[Finding]:
        """What does not hold between the values."""
        yield from ()

    def _settle_durations(self) -> None:
        for each in options_of(type(self)):
            if each.lasting:
                settled = _settled(getattr(self, each.name))
                object.__setattr__(self, each.name, settled)


def read(group: type[_Group], values: Mapping[str, Any]) -> tuple[_Group, list[Finding]]:
    """The object that a file's values make, sound or not, and all that is wrong with it."""
    made = object.__new__(group)
    for each in options_of(group):
        object.__setattr__(made, each.name, values.get(each.name, each.default))
    made._settle_durations()
    return made, list(made._findings())


def _check(option: Option, value: Any) -> None:
    limit: Any = option.limit
    if isinstance(value, timedelta):
        unit = "milliseconds" if getattr(limit, "unit", "") == "milliseconds" else "seconds"
        number = value / timedelta(**{unit: 1})
        limit.check(int(number) if number == int(number) else number)
    elif option.known and is_unresolved(value):
        raise DURATION.error(
            got="a token",
            allowed="a duration known at synth: AWS wants it in another unit, and CloudFormation "
            "cannot convert",
        )
    elif isinstance(value, (int, float, str)) and (option.known or not is_token(value)):
        limit.check(value)


def _settled(value: Any) -> Any:
    """Durations as ``timedelta``, but for a token: reading a ``Duration`` is a call to Node.js."""
    if isinstance(value, Mapping):
        return {name: _settled(each) for name, each in value.items()}
    if value is None or isinstance(value, timedelta) or not is_duration(value):
        return value
    if is_unresolved(value):
        return value
    fractions = getattr(value, "to_milliseconds", None)
    exact = fractions(integral=False) if fractions else milliseconds_of(value)
    return timedelta(milliseconds=exact)


def _leaves(place: Place, value: Any) -> Iterator[tuple[Place, Any]]:
    """The values in a mapping or list, each with its place; any other value itself."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _leaves((*place, name), each)
    elif isinstance(value, (list, tuple)):
        for index, each in enumerate(value):
            yield from _leaves((*place, index), each)
    else:
        yield place, value


def _default(of: Field[Any]) -> Any:
    return of.default if of.default_factory is MISSING else of.default_factory()


def options_of(group: type[Options]) -> tuple[Declared, ...]:
    """The options of a group, in the order of its fields."""
    return _OPTIONS.get(group) or _OPTIONS.setdefault(group, _options_of(group))


_OPTIONS: dict[type[Options], tuple[Declared, ...]] = {}


def _options_of(group: Any) -> tuple[Declared, ...]:
    texts = texts_of(group)
    found = []
    own = get_annotations(group)
    for each in sorted(fields(group), key=lambda each: each.name not in own):
        kind, option = _kind_of(group, each.name), None
        if get_origin(kind) is Annotated:
            kind, *notes = get_args(kind)
            option = next((note for note in notes if isinstance(note, Option)), None)
        found.append(
            Declared(
                each.name,
                kind,
                _default(each),
                texts.get(each.name, ""),
                option,
                Lasting in _parts_of(kind),
            )
        )
    return tuple(found)


def texts_of(group: type) -> dict[str, str]:
    """The text of each option: its line in the ``Args`` of the class or of one that it extends."""
    found: dict[str, str] = {}
    for each in reversed(group.__mro__):
        _, _, args = (each.__doc__ or "").partition("\n    Args:\n")
        for line in args.splitlines():
            if not line.startswith("        "):
                break
            name, _, text = line.strip().partition(": ")
            if not text.startswith("As for "):
                found[name] = text
    for name, default in getattr(group, "inherited", {}).items():
        found[name] = f"{found[name].partition(' Default: ')[0]} Default: {default}."
    return found


def groups_in(kind: Any) -> list[type[Options]]:
    """The groups of options of which a kind is made."""
    return [
        each for each in _parts_of(kind) if isinstance(each, type) and issubclass(each, Options)
    ]


def alternatives(kind: Any) -> tuple[Any, ...]:
    """The kinds of a union; of any other kind itself."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _parts_of(kind: Any) -> list[Any]:
    """A kind, and all of which it is made."""
    return [kind, *(below for part in get_args(kind) for below in _parts_of(part))]


def _kind_of(group: type, name: str) -> Any:
    """The annotation of a field, with CDK's names unresolved: no settings file needs them."""
    home = next(each for each in group.__mro__ if name in get_annotations(each))
    written = get_annotations(home)[name]
    if not isinstance(written, str):
        return written
    return eval(written, {}, _Names(vars(sys.modules[home.__module__])))


class _OfCdk(type):
    """Stands for a class of CDK's, which nobody has loaded."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls


class _CdkClass(metaclass=_OfCdk):
    pass


class _Names(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, _CdkClass)
