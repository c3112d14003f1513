"""Kinds that are made of others: lists, mappings, groups of options, classes and unions.

:func:`kind_of` makes the kind of an option, :func:`kind_of_argument` that of a parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import timedelta
from functools import cache, cached_property
from inspect import cleandoc
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from ..errors import MOST_SHOWN, did_you_mean
from ..errors.findings import Place, shown
from ..facts.durations import duration_text
from ..facts.limit_kinds import Choice, Pattern
from ..facts.paths import OUTSIDE
from .annotations import AnyDuration, alternatives, evaluated, loaded
from .kind import (
    MISSING_SETTING,
    UNKNOWN_SETTING,
    WRONG,
    WRONG_KIND,
    AnyKind,
    BooleanKind,
    CallableKind,
    ChoiceKind,
    DurationKind,
    FileReading,
    Kind,
    Misfit,
    NumberKind,
    PathKind,
    Schema,
    TextKind,
    Wrong,
    any_wrong,
    limit_schema,
)
from .option import Declared, Option, Options, first_paragraph, options_of, read

_MOST_SUGGESTIONS = MOST_SHOWN  # comparing names takes time, and no more of them are shown
_DEEPEST = 4  # groups inside of groups
_TEXTS = (str, bytes, bytearray)
_CLASSES_IN_WORDS = {bytes: "bytes", NoneType: "None"}


class ListKind(Kind):
    """A list of values of one kind; in Python the class may be a tuple."""

    def __init__(self, item: Kind, *, of: Any = Sequence, example: Any = None) -> None:
        if not issubclass(of, Collection):  # looking at an iterator's items would use it up
            raise TypeError(f"{of.__name__} is no collection")
        self.item = item
        self.of = of
        self.example = example
        self.parts = (item,)

    def read(self, value: Any, place: Place, reading: FileReading) -> Any:
        if not isinstance(value, (list, tuple)):
            such = f", such as {_inline(self.example)}" if self.example is not None else ""
            fix = f"Write a list, even of one{such}: begin each entry with '- '."
            return reading.refuse(WRONG_KIND, place, got=value, allowed="a list", fix=fix)
        items = [self.item.read(item, (*place, index), reading) for index, item in enumerate(value)]
        return WRONG if any_wrong(items) else tuple(items)

    def schema(self) -> Schema:
        return {"type": "array", "items": self.item.schema()}

    def misfit(self, value: Any) -> Misfit | None:
        if not isinstance(value, self.of) or isinstance(value, _TEXTS):
            return Misfit(value, self)
        for index, item in enumerate(value):
            misfit = self.item.misfit(item)
            if misfit is not None:
                return misfit.inside(f"[{index}]")
        return None

    @property
    def words(self) -> str:  # type: ignore[override]
        noun = "tuple" if self.of is tuple else "list"
        return f"a {noun} of {self.item.words}, even for one"


class MappingKind(Kind):
    """Values of one kind by name."""

    def __init__(self, key: Kind, value: Kind, *, of: Any = Mapping) -> None:
        self.key = key
        self.value = value
        self.of = of
        self.parts = (value,)

    def read(self, value: Any, place: Place, reading: FileReading) -> Any:
        if not isinstance(value, Mapping):
            allowed = "a mapping of keys to values"
            return reading.refuse(WRONG_KIND, place, got=value, allowed=allowed)
        values: dict[str, Any] = {}
        keys: list[Any] = []
        for name, item in value.items():
            keys.append(self.key.read(name, (*place, name), reading))
            values[name] = self.value.read(item, (*place, name), reading)
        return WRONG if any_wrong([*keys, *values.values()]) else values

    def schema(self) -> Schema:
        item = self.value.schema()
        limit = getattr(self.key, "limit", None)
        if not isinstance(limit, Pattern):
            return {"type": "object", "additionalProperties": item}
        schema: Schema = {"type": "object", "additionalProperties": False}
        of_key = limit_schema(limit)
        schema["patternProperties"] = {of_key.pop("pattern"): item}
        if of_key:
            schema["propertyNames"] = of_key
        return schema

    def misfit(self, value: Any) -> Misfit | None:
        if not isinstance(value, self.of):
            return Misfit(value, self)
        for name, item in value.items():
            of_key = self.key.misfit(name)
            if of_key is not None:
                return of_key.inside(", a key")
            of_item = self.value.misfit(item)
            if of_item is not None:
                return of_item.inside(f"[{name!r:.60}]")
        return None

    @property
    def words(self) -> str:  # type: ignore[override]
        return f"a mapping of {self.key.words} to {self.value.words}"


class ClassKind(Kind):
    """An object of a class, which only Python can pass; CDK's are loaded when they are needed."""

    def __init__(self, annotation: type) -> None:
        self._annotation = annotation

    @cached_property
    def of(self) -> type:
        """The class."""
        return loaded(self._annotation)

    def accepts(self, value: Any) -> bool:
        if getattr(self.of, "_is_protocol", False):
            return _implements(value, self.of)
        return isinstance(value, self.of) or any(
            isinstance(part, self.of) for part in _delegates(value)
        )

    @property
    def words(self) -> str:  # type: ignore[override]
        if self.of in _CLASSES_IN_WORDS:
            return _CLASSES_IN_WORDS[self.of]
        name = class_name(self.of)
        return f"{name}(...)" if is_dataclass(self.of) else name


class GroupKind(ClassKind):
    """A group of options: in a file a mapping of its keys to values.

    A key without a value counts as left out, so that a section whose lines are all commented out
    means its default.
    """

    def __init__(self, group: type[Options]) -> None:
        super().__init__(group)
        self.group = group

    @cached_property
    def options(self) -> dict[str, Declared]:
        """The options that a file can state, by its keys."""
        stated = [declared for declared in options_of(self.group) if declared.option is not None]
        return {declared.key: declared for declared in stated}

    @property
    def kinds(self) -> dict[str, Kind]:
        """The kind of each option, by its key in the file."""
        return {key: kind_of(declared) for key, declared in self.options.items()}

    @property
    def parts(self) -> Sequence[Kind]:  # type: ignore[override]
        return list(self.kinds.values())

    @property
    def example(self) -> str:
        """The group with its first option that has an example, as YAML."""
        for key, declared in self.options.items():
            if declared.example is not None:
                return _inline({key: declared.example})
        return ""

    def read(self, value: Any, place: Place, reading: FileReading) -> Any:
        """The object that the group's options make, sound or not.

        An option that is wrong has no value: reading it raises :class:`Unsound`.
        """
        if isinstance(value, self.group):
            return value
        if not isinstance(value, Mapping):
            allowed = f"a mapping with {', '.join(self.options)}"
            fix = self._as_mapping(value)
            return reading.refuse(WRONG_KIND, place, got=value, allowed=allowed, fix=fix)
        before = len(reading.findings)
        given = {key: item for key, item in value.items() if item is not None}
        values = self._values(given, place, reading)
        stated = {name: item for name, item in values.items() if item is not WRONG}
        wrong = [name for name, item in values.items() if item is WRONG]
        options, broken = read(self.group, stated, wrong)
        for below, error in broken:
            reading.findings.append(((*place, *self._keys(below[:1]), *below[1:]), error))
        if len(reading.findings) == before:
            self._check_links(stated, place, reading)
        return options

    def _values(
        self, given: Mapping[str, Any], place: Place, reading: FileReading
    ) -> dict[str, Any]:
        """The stated options by name, and those that are missing as ``WRONG``."""
        values: dict[str, Any] = {}
        for key, declared in self.options.items():
            if key in given:
                values[declared.name] = kind_of(declared).read(given[key], (*place, key), reading)
            elif declared.is_required:
                values[declared.name] = self._missing(declared, key, place, reading)
        unknown = [key for key in given if key not in self.options]
        for number, key in enumerate(unknown):
            fix = ""
            if number < _MOST_SUGGESTIONS:
                fix = _place_elsewhere(key) or did_you_mean(key, self.options)
            allowed = ", ".join(self.options)
            reading.refuse(UNKNOWN_SETTING, (*place, key), got=key, allowed=allowed, fix=fix)
        if not unknown and not any_wrong(values.values()):
            values |= self._default_paths(values, place, reading)
        return values

    def _default_paths(
        self, values: Mapping[str, Any], place: Place, reading: FileReading
    ) -> dict[str, Any]:
        """The default paths of options left out: they too lie beside the settings file."""
        paths: dict[str, Any] = {}
        for key, declared in self.options.items():
            kind = in_file(kind_of(declared))
            if isinstance(kind, PathKind) and declared.name not in values and declared.default:
                paths[declared.name] = kind.read(declared.default, (*place, key), reading)
        return paths

    def _keys(self, names: Sequence[str | int]) -> list[str | int]:
        """The keys of options in the file."""
        keys = {declared.name: key for key, declared in self.options.items()}
        return [keys.get(str(name), name) for name in names]

    def _missing(self, declared: Declared, key: str, place: Place, reading: FileReading) -> Wrong:
        example = declared.example
        such_as = "" if example is None else f", such as {key}: {_inline(example)}"
        fix = f"Add {key}{such_as}. {self.group.left_out.get(key, '')}".strip()
        return reading.refuse(
            MISSING_SETTING,
            (*place, key),
            got="nothing",
            allowed=declared.text_in_file or "a value",
            what=f"{key} is missing or empty",
            fix=fix,
        )

    def _as_mapping(self, value: Any) -> str:
        """What to write where a plain value stands for the group."""
        plain = self.group.plain_value
        if plain and isinstance(value, (str, int, float)):
            return f"Write {{{plain}: {shown(value)}}}."
        return f"Write a mapping, such as {self.example}." if self.example else ""

    def _check_links(self, stated: Mapping[str, Any], place: Place, reading: FileReading) -> None:
        """Refuse files of a stated folder that, by links, lie outside of what may be read."""
        within = reading.within
        if within is None:
            return
        for declared in self.options.values():
            if declared.option is None or declared.option.below is None:
                continue
            folder, default = declared.option.below
            file = stated.get(declared.name) or default
            if stated.get(folder) and not within(Path(stated[folder], file)):
                name = declared.name if declared.name in stated else folder
                allowed = "a path within the repository"
                reading.refuse(OUTSIDE, (*place, name), got=file, allowed=allowed)

    def schema(self) -> Schema:
        return {"$ref": f"#/$defs/{self.group.__name__}"}

    def definition(self) -> Schema:
        """The schema to which :meth:`schema` refers."""
        summary = first_paragraph(cleandoc(self.group.__doc__ or "")).replace("``", "`")
        definition: Schema = {
            "description": summary,
            "type": "object",
            "properties": {key: _property(declared) for key, declared in self.options.items()},
            "additionalProperties": False,
        }
        required = [key for key, declared in self.options.items() if declared.is_required]
        if required:
            definition["required"] = required
        if self.group.exactly_one_of:
            definition["oneOf"] = [{"required": [name]} for name in self.group.exactly_one_of]
        return definition


class ConvertedKind(ClassKind):
    """An object that a class makes of a value of another kind: of ``written``, by ``_of_file``."""

    @cached_property
    def written(self) -> Kind:
        """What a file states."""
        return _kind(self.of.written, Option())  # type: ignore[attr-defined]

    @property
    def parts(self) -> Sequence[Kind]:  # type: ignore[override]
        return (self.written,)

    def read(self, value: Any, place: Place, reading: FileReading) -> Any:
        before = len(reading.findings)
        stated = self.written.read(value, place, reading)
        if len(reading.findings) > before:
            return WRONG
        return self.of._of_file(stated)  # type: ignore[attr-defined]

    def schema(self) -> Schema:
        return self.written.schema()


class UnionKind(Kind):
    """One of several kinds.

    A file states one of them, its ``plain`` kind, or in its place a group, where a mapping stands.
    The others are for Python.
    """

    def __init__(self, alternatives: Sequence[Kind], stated: Sequence[Kind]) -> None:
        self._alternatives = alternatives
        groups = [kind for kind in stated if isinstance(kind, GroupKind)]
        plain = [kind for kind in stated if not isinstance(kind, GroupKind)]
        paths = [kind for kind in plain if isinstance(kind, PathKind)]
        self.parts = [*(paths or plain)[:1], *groups[:1]]
        if isinstance(self.parts[0], ChoiceKind) and groups:
            self.parts[0].group_keys = list(groups[0].options)
            self.parts[0].group_example = groups[0].example

    def read(self, value: Any, place: Place, reading: FileReading) -> Any:
        is_group = isinstance(value, (Mapping, Options))
        kind = self.parts[-1] if is_group else self.parts[0]
        return kind.read(value, place, reading)

    def schema(self) -> Schema:
        schemas = [part.schema() for part in self.parts]
        return {"oneOf": schemas} if len(schemas) > 1 else schemas[0]

    @property
    def alternatives(self) -> Sequence[Kind]:
        """The kinds, those too that only Python can pass."""
        return self._alternatives

    def misfit(self, value: Any) -> Misfit | None:
        """The last misfit inside the value, as its kind is likely meant; else the value itself."""
        likeliest = Misfit(value, self)
        for kind in self.alternatives:
            misfit = kind.misfit(value)
            if misfit is None:
                return None
            if misfit.path:
                likeliest = misfit
        return likeliest

    @property
    def words(self) -> str:  # type: ignore[override]
        return " or ".join(dict.fromkeys(kind.words for kind in self.alternatives))


# --- from annotations to kinds -----------------------------------------------------------------


def kind_of(declared: Declared) -> Kind:
    """The kind of an option."""
    place = (declared.group, declared.name)
    return _KINDS.get(place) or _KINDS.setdefault(place, _kind_of(declared))


_KINDS: dict[tuple[type[Options], str], Kind] = {}


def _kind_of(declared: Declared) -> Kind:
    for note in declared.notes:
        if isinstance(note, Kind):
            return note
    return _kind(declared.kind, declared.option or Option(), declared.default)


def kind_of_argument(annotation: Any, module: str) -> Kind:
    """The kind of a parameter, by an annotation that stands in a module."""
    return _kind(evaluated(annotation, module), Option())


def _kind(annotation: Any, option: Option, default: Any = None) -> Kind:
    """The kind of an annotation; what a file can state of a union depends on the default."""
    if get_origin(annotation) not in (Union, UnionType):
        return _kind_of_one(annotation, option)
    kinds: list[Kind] = []
    stated: list[Kind] = []
    for part in get_args(annotation):
        kind = _kind_of_one(part, option)
        kinds.append(kind)
        if part is not NoneType and not says_default(part, default):
            stated.append(kind)
    return UnionKind(kinds, stated or kinds)


def _kind_of_one(annotation: Any, option: Option) -> Kind:
    """The kind of an annotation that is no union."""
    origin = get_origin(annotation)
    below = get_args(annotation)
    within = option._replace(example=None)
    if origin is Annotated:
        own = [note for note in below if isinstance(note, Option)]
        return _kind(below[0], *(own or [option]))
    if origin is Literal:
        return ChoiceKind(below, option.limit if isinstance(option.limit, Choice) else None)
    if origin is Callable:
        return CallableKind()
    if isinstance(origin, type) and issubclass(origin, Mapping):
        key = _kind(below[0], Option(option.keys))
        return MappingKind(key, _kind(below[1], within), of=origin)
    if origin is not None and not issubclass(origin, Iterable):  # Decision[int]
        return ClassKind(origin)
    if origin is not None:
        return ListKind(_kind(below[0], within), of=origin, example=option.example)
    if annotation is Any:
        return AnyKind()
    if annotation is AnyDuration:
        return DurationKind(option.limit)
    return _kind_of_class(annotation, option)


def _kind_of_class(annotation: type, option: Option) -> Kind:
    if getattr(annotation, "__jsii_type__", "") == "aws-cdk-lib.Duration":
        return DurationKind(takes_text=False)
    if annotation is bool:
        return BooleanKind()
    if annotation in (int, float):
        return NumberKind(whole=annotation is int, limit=option.limit, example=option.example)
    if annotation is str:
        return TextKind(option.limit, as_text=option.as_text)
    if annotation is Path:
        return PathKind(may_be_missing=option.may_be_missing)
    if issubclass(annotation, Options):
        return GroupKind(annotation)
    if "written" in vars(annotation):  # hasattr: a class not loaded yet has every name
        return ConvertedKind(annotation)
    return ClassKind(annotation)


def says_default(annotation: Any, default: Any) -> bool:
    """Whether it is a word that only Python says: a file leaves the setting out."""
    return get_origin(annotation) is Literal and get_args(annotation) == (default,)


def in_file(kind: Kind) -> Kind:
    """The kind that a file states; of a union the plain one."""
    return kind.parts[0] if isinstance(kind, UnionKind) else kind


def all_kinds(kind: Kind) -> Iterator[Kind]:
    """A kind, and all of which a file can make it."""
    yield kind
    for part in kind.parts:
        yield from all_kinds(part)


def groups_of(kind: Kind) -> list[GroupKind]:
    """The groups of which a kind is made, without what is inside of them."""
    if isinstance(kind, GroupKind):
        return [kind]
    return [group for part in kind.parts for group in groups_of(part)]


def class_name(of: type) -> str:
    """The name of a class, with its module where that is one of CDK's."""
    module = of.__module__.rpartition(".")[2]
    return f"{module}.{of.__name__}" if module.startswith("aws_") else of.__name__


def _property(declared: Declared) -> Schema:
    """The schema of an option in its group."""
    option = declared.option or Option()
    schema = dict(option.schema or kind_of(declared).schema())
    if declared.text:
        schema["description"] = declared.text_in_file
    if option.example is not None:
        schema["examples"] = [option.example]
    if _has_value(declared):
        schema["default"] = _in_json(declared.default)
    return schema


def _has_value(declared: Declared) -> bool:
    """Whether a setting that is left out has a value which the file could state."""
    default = declared.default
    if declared.is_required or default in (None, {}, ()) or isinstance(default, Options):
        return False
    return not any(says_default(part, default) for part in alternatives(declared.kind))


def _in_json(value: Any) -> Any:
    """A default as a file states it."""
    if isinstance(value, timedelta):
        return duration_text(value)
    return list(value) if isinstance(value, tuple) else value


def _delegates(value: Any) -> Sequence[Any]:
    """What stands behind an object of a class that CDK does not export."""
    if type(value).__name__ != "InterfaceDynamicProxy":
        return ()
    delegates: Sequence[Any] = vars(value)["_delegates"]
    return delegates


def _implements(value: Any, interface: Any) -> bool:
    """Whether a value is of an interface of jsii's.

    A class of Python's says so with ``@jsii.implements``. Of an object from Node.js the class may
    be known as something more general, so what counts is that it has all that the interface has.
    """
    classes = [type(part) for part in _delegates(value)] or [type(value)]
    bases = [base for own in classes for base in own.__mro__]
    for base in bases:
        declared = vars(base).get("__jsii_ifaces__", ())
        if any(interface in of.__mro__ for of in declared):
            return True
    if not any("__jsii_type__" in vars(base) for base in bases):
        return False
    protocols = [of for of in interface.__mro__ if getattr(of, "_is_protocol", False)]
    members = {name for of in protocols for name in vars(of) if not name.startswith("_")}
    return all(any(name in vars(base) for base in bases) for name in members)


def _place_elsewhere(name: str) -> str:
    """Where the file has the key, if in one or two places; an indentation may put it elsewhere."""
    places = _places_of_keys().get(name, [])
    if not 1 <= len(places) <= 2:
        return ""
    return f"It belongs {' or '.join(places)}. Correct the indentation, or move the line."


@cache
def _places_of_keys() -> dict[str, list[str]]:
    """Each key of the file, and in words what it stands under."""
    [whole] = [group for group in Options.__subclasses__() if group.__name__ == "Settings"]
    places: dict[str, list[str]] = {}
    groups: list[tuple[tuple[str, ...], GroupKind]] = [((), GroupKind(whole))]
    for path, group in groups:  # grows
        under = f"under {'.'.join(path)}" if path else "at the top level"
        for key, kind in group.kinds.items():
            places.setdefault(group.options[key].name, []).append(under)
            below = "endpoints.<name>" if key == "endpoints" else key
            if len(path) < _DEEPEST:
                groups += [((*path, below), part) for part in groups_of(kind)]
    return {name: list(dict.fromkeys(under)) for name, under in places.items()}


def _inline(value: Any) -> str:
    """An example in YAML's flow style."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_inline(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_inline(item) for item in value) + "]"
    return shown(value)
