"""What an option says of itself, and what follows for all groups of options alike."""

from __future__ import annotations

import ast
import contextlib
import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import timedelta
from functools import cache
from inspect import cleandoc, get_annotations
from itertools import pairwise
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar, get_args, get_origin

from ..errors import BrokenRule, LowLatencyEndpointError, rule
from ..errors.findings import Finding, Place, breaches, finding, located, path_of
from ..facts.durations import DURATION, in_unit_of, is_duration, is_unresolved, milliseconds_of
from ..facts.limit_kinds import Limit, check_known
from ..facts.paths import check_below
from ..facts.token_values import is_token
from .annotations import AnyDuration, alternatives, evaluated, module_of, parts_of

EXACTLY_ONE = rule(
    "LLE927", "exactly one of several settings must be given", fix="Give exactly one of them."
)
NEEDS_ANOTHER = rule("LLE928", "a setting requires another setting", fix="Add the other setting.")
EXCLUDES_ANOTHER = rule("LLE929", "two settings exclude each other", fix="Remove one of the two.")


class Option(NamedTuple):
    """What a field says of its option beside name, kind and default, in ``Annotated``.

    The option's text stands below its field, where editors look for it. Its first paragraph is of
    settings files and of Python, what follows it of Python alone.
    """

    limit: Limit | None = None
    example: Any = None  # in YAML's terms; by default none, as for true and false
    billed: tuple[int, ...] = ()  # metrics that CloudWatch bills for, a number for each alarm
    known: bool = False  # whether a CDK token is refused: CloudFormation does not calculate
    planned: bool = False  # whether the plan calculates with it, which refuses a token by LLE825
    schema: Mapping[str, Any] | None = None  # where JSON schema can say more than the kind does
    keys: Limit | None = None  # of a mapping's keys
    entries: Limit | None = None  # of how many entries a list has
    as_text: bool = False  # whether a number without quotes counts as its text
    may_be_missing: bool = False  # of a path: a missing file is reported elsewhere
    passes: Callable[[Any], bool] | None = None  # what CDK puts in a value's place meanwhile
    # of a path: the option that names the folder it is taken from, and the file by default
    below: tuple[str, str] | None = None
    key: str = ""  # the name in a settings file, where Python has a keyword of that name


class Declared(NamedTuple):
    """One option of a group."""

    name: str
    kind: Any
    default: Any  # dataclasses.MISSING where it is required
    group: type[Options]
    option: Option | None  # None where a settings file cannot state it
    lasting: bool  # whether the value is a duration, or holds some
    notes: tuple[Any, ...] = ()  # what else the annotation says

    @property
    def key(self) -> str:
        """What a settings file calls it: its name, but for a keyword of Python."""
        return (self.option.key if self.option else "") or self.name

    @property
    def example(self) -> Any:
        """A value of it, in YAML's terms; None where it says none."""
        return self.option.example if self.option else None

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is MISSING

    @property
    def text(self) -> str:
        """What it means, in words; empty where the sources are not installed."""
        return texts_of(self.group).get(self.name, "")  # type: ignore[arg-type]

    @property
    def text_in_file(self) -> str:
        """The text without what is of Python alone, on one line."""
        return first_paragraph(self.text)


_Group = TypeVar("_Group", bound="Options")
_Made = TypeVar("_Made")


class Unsound(Exception):
    """A rule asked for a value that is wrong."""


@property  # type: ignore[misc]
def _unsound(_: Any) -> Any:
    raise Unsound


class Options:
    """A group of options: a frozen dataclass whose fields are ``Annotated`` with an ``Option``.

    Texts become durations, and every limit and rule is checked, whoever makes the object. A group's
    rules are its methods whose names begin with ``_rules``. A rule that reads a value which is
    wrong in the settings file ends there, and the others are asked all the same.
    """

    __slots__ = ("_stated",)  # the names that a file states, of an object that it makes

    #: Options with another value by default than the class it extends says, in words.
    inherited: ClassVar[Mapping[str, str]] = {}
    exactly_one_of: ClassVar[tuple[str, ...]] = ()
    plain_value: ClassVar[str] = ""  # the option that is meant where a plain value stands instead
    leads: ClassVar[bool] = False  # whether a group that extends it lists its own options later
    left_out: ClassVar[Mapping[str, str]] = {}  # what to do without a required option
    _group: ClassVar[type[Options]]  # the class that declares the options

    def __init_subclass__(cls) -> None:
        if "_group" not in vars(cls):
            cls._group = cls

    def __post_init__(self) -> None:
        self._settle()
        for place, error in self._findings():
            raise located(error, ", ".join(filter(None, (type(self).__name__, path_of(place)))))

    def _findings(self) -> Iterator[Finding]:
        """Each limit and rule that does not hold, with the place of the value."""
        for option in options_of(self._group):
            value = _read(self, option.name)
            if value is not Unsound and value is not option.default:
                yield from _breaches(option, value)
        for name in _rules_of(self._group):  # type: ignore[arg-type]
            with contextlib.suppress(Unsound):
                yield from self._found_by(name)

    def _found_by(self, name: str) -> Iterator[Finding]:
        """The findings of a rule; any other exception is a bug in the rule, not a user's mistake."""
        try:
            yield from getattr(self, name)()
        except (Unsound, LowLatencyEndpointError):
            raise
        except Exception as problem:
            raise BrokenRule(f"{type(self).__name__}.{name}", problem) from problem

    def _rules(self) -> Iterator[Finding]:
        """What does not hold between the values."""
        yield from ()

    @property
    def ways(self) -> list[str]:
        """Those of ``exactly_one_of`` that have a value: one, if the options are sound."""
        return [name for name in self.exactly_one_of if getattr(self, name) is not None]

    def _rules_of_alternatives(self) -> Iterator[Finding]:
        """One of several is stated, and no other."""
        found = [name for name in self.exactly_one_of if self._states(name)]
        if self.exactly_one_of and len(found) != 1:
            yield finding(
                EXACTLY_ONE,
                *found[1:2],
                got=" and ".join(found) or "none of them",
                allowed="one of " + ", ".join(self.exactly_one_of),
            )

    def _states(self, name: str) -> bool:
        """Whether a file states the option, right or wrong; in Python, something but the default."""
        if (stated := getattr(self, "_stated", None)) is not None:
            return name in stated
        [default] = [option.default for option in options_of(type(self)) if option.name == name]
        value = getattr(self, name)
        return value is not default and bool(value != default)

    def _needs(self, name: str, other: str, why: str) -> Iterator[Finding]:
        """The finding that ``name`` is stated without ``other``."""
        if self._states(name) and not self._states(other):
            yield finding(
                NEEDS_ANOTHER,
                name,
                got=f"{name} without {other}",
                allowed=f"{name} with {other}",
                what=why,
                fix=f"Add {other}.",
            )

    def _excludes(self, name: str, others: Iterable[str], why: str) -> Iterator[Finding]:
        """The findings that ``others`` are stated beside ``name``."""
        if not self._states(name):
            return
        for other in filter(self._states, others):
            yield finding(
                EXCLUDES_ANOTHER,
                other,
                got=f"{other} beside {name}",
                allowed=f"{name} without {other}",
                what=why,
                fix=f"Remove {other} or {name}.",
            )

    def _settle(self) -> None:
        """Durations are ``timedelta``, lists tuples, and 3.0 is 3."""
        for option in options_of(self._group):
            value = _read(self, option.name)
            if value is Unsound:
                continue
            if option.lasting:
                try:
                    value = _settled(value)
                except OverflowError:
                    raise DURATION.error(
                        what="a duration is longer than a clock can measure",
                        got="a Duration",
                        allowed=f"at most {timedelta.max.days} days",
                        where=f"{type(self).__name__}, {option.name}",
                        fix="Shorten it.",
                    ) from None
            elif isinstance(value, list) and not is_token(value):
                value = tuple(value)
            elif isinstance(value, Mapping):
                value = dict(value)  # whoever passed it may go on changing it
            elif isinstance(value, float) and float not in alternatives(option.kind):
                value = int(value) if value.is_integer() and not is_token(value) else value
            object.__setattr__(self, option.name, value)


def read(
    group: type[_Group], values: Mapping[str, Any], wrong: Collection[str] = ()
) -> tuple[_Group, list[Finding]]:
    """The object that a file's values make, sound or not, and what is wrong with it.

    Of the names in ``wrong`` the file has no value that holds.
    """
    options = object.__new__(_part_of(group, wrong) if wrong else group)
    for option in options_of(group):
        if option.name not in wrong:
            object.__setattr__(options, option.name, values.get(option.name, option.default))
    options._settle()
    object.__setattr__(options, "_stated", {*values, *wrong})
    return options, list(options._findings())


def _part_of(group: type[_Group], wrong: Iterable[str]) -> type[_Group]:
    """A class like the group, whose objects raise ``Unsound`` for an option that is wrong."""
    unsound = dict.fromkeys(wrong, _unsound)
    text = f"<{group.__name__}, wrong: {', '.join(wrong)}>"
    members = {**unsound, "_group": group, "__repr__": lambda _: text}
    return type(group.__name__, (group,), members)


def _read(options: Options, name: str) -> Any:
    try:
        return getattr(options, name)
    except Unsound:
        return Unsound


def made_at(where: str, group: type[_Group], **values: Any) -> _Group:
    """A group of a construct's keywords; what is wrong with it is said of the construct."""
    defaults = {option.name: option.default for option in options_of(group)}
    stated = {name: value for name, value in values.items() if value is not defaults[name]}
    made, found = read(group, stated)
    for _, error in found:
        raise located(error, where)
    return made


def taken(group: type[_Made], source: Any, **given: Any) -> _Made:
    """A group with what another object has under the same names, and what is given; None is left out."""
    names = [field.name for field in fields(group) if field.init]  # type: ignore[arg-type]
    values = {name: getattr(source, name, None) for name in names} | given
    return group(**{name: value for name, value in values.items() if value is not None})


def changed(options: _Group, **values: Any) -> _Group:
    """A copy with other values. Nothing is checked, as the values of a wrong file may be among them."""
    copy = object.__new__(type(options))
    for option in options_of(type(options)):
        value = values.get(option.name, getattr(options, option.name))
        object.__setattr__(copy, option.name, value)
    stated = getattr(options, "_stated", None)
    object.__setattr__(copy, "_stated", None if stated is None else {*stated, *values})
    return copy


@cache
def _rules_of(group: type[Options]) -> list[str]:
    return [name for name in dir(group) if name.startswith("_rules")]


def _breaches(declared: Declared, value: Any) -> Iterator[Finding]:
    """The limits of an option that its value does not keep."""
    option = declared.option or Option()
    place = (declared.name,)
    if option.entries:
        yield from breaches(place, option.entries.check, len(value))
    if option.below and isinstance(value, str):
        yield from breaches(place, check_below, value)
    if option.keys:
        of_keys = Option(option.keys, known=option.known)
        for key in value:
            yield from breaches((*place, key), _check, of_keys, key)
    if option.limit:
        for below, leaf in _leaves(place, value):
            yield from breaches(below, _check, option, leaf)


def _check(option: Option, value: Any) -> None:
    """Raise the error of the option's limit, unless CloudFormation or CDK fill the value in."""
    limit: Any = option.limit
    if isinstance(value, timedelta):
        limit.check(in_unit_of(limit, value))
    elif option.planned:
        if is_unresolved(value):
            milliseconds_of(value)  # which refuses it
        if isinstance(value, (int, float, str)):
            check_known(limit, value)
    elif option.known and is_unresolved(value):
        raise DURATION.error(
            got="a token",
            allowed="a duration known at synth: AWS wants it in another unit, and CloudFormation "
            "cannot convert",
        )
    elif option.passes is not None and option.passes(value):
        return
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


def with_a_home(options: Options, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """Each ARN and image in options and the groups below them, with its place in a file."""
    for each in options_of(options._group):
        if each.option is None:
            continue
        at_home = getattr(each.option.limit, "has_home", False)
        for below, leaf in _leaves((*place, each.name), _read(options, each.name)):
            if isinstance(leaf, Options):
                yield from with_a_home(leaf, below)
            elif at_home and isinstance(leaf, str):
                yield below, leaf


def _default(of: Field[Any]) -> Any:
    return of.default if of.default_factory is MISSING else of.default_factory()


def options_of(group: type[Options]) -> tuple[Declared, ...]:
    """The options of a group, in the order of its fields."""
    return _OPTIONS.get(group) or _OPTIONS.setdefault(group, _options_of(group))


_OPTIONS: dict[type[Options], tuple[Declared, ...]] = {}


def _options_of(group: Any) -> tuple[Declared, ...]:
    options = []
    own = [name for each in (group, *_leading(group)) for name in get_annotations(each)]
    for each in sorted(fields(group), key=lambda field: field.name not in own):
        home = module_of(group, each.name)
        kind = evaluated(_annotation(group, each.name), home)
        option = None
        notes: list[Any] = []
        if get_origin(kind) is Annotated:
            kind, *notes = get_args(kind)
            option = next((note for note in notes if isinstance(note, Option)), None)
        options.append(
            Declared(
                each.name,
                kind,
                _default(each),
                group,
                option,
                AnyDuration in parts_of(kind),
                tuple(note for note in notes if not isinstance(note, Option)),
            )
        )
    return tuple(options)


def _annotation(group: type, name: str) -> Any:
    """The annotation of a field, in the class or in one that it extends."""
    return next(
        annotations[name]
        for annotations in map(get_annotations, group.__mro__)
        if name in annotations
    )


def _leading(group: Any) -> list[type[Options]]:
    """The groups that it extends whose options are listed before its own."""
    return [each for each in group.__mro__[1:] if vars(each).get("leads")]


@cache
def texts_of(group: type) -> dict[str, str]:
    """The text of each option: what stands below its field, in the class or in one that it extends."""
    texts: dict[str, str] = {}
    for each in reversed(group.__mro__):
        if is_dataclass(each):
            texts |= _texts_below_fields(each.__module__).get(each.__name__, {})
    for name, default in getattr(group, "inherited", {}).items():
        text, _, _ = first_paragraph(texts.get(name, "")).partition(" Default: ")
        texts[name] = f"{text} Default: {default}."
    return texts


@cache
def _texts_below_fields(module: str) -> dict[str, dict[str, str]]:
    """By class and field the text below it, from the source: Python itself does not keep it."""
    try:
        source = inspect.getsource(sys.modules[module])
    except OSError:
        return {}
    return {
        each.name: dict(_texts_in(each))
        for each in ast.parse(source).body
        if isinstance(each, ast.ClassDef)
    }


def _texts_in(source: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in pairwise(source.body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, cleandoc(text)


def first_paragraph(text: str) -> str:
    """What a text says first, on one line."""
    return " ".join(text.partition("\n\n")[0].split())


def groups_in(kind: Any) -> list[type[Options]]:
    """The groups of options of which a kind is made."""
    return [part for part in parts_of(kind) if isinstance(part, type) and issubclass(part, Options)]
