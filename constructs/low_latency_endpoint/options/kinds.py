"""The kinds of values in a settings file: how each one is read, and its JSON schema.

:func:`kind_of` chooses the kind of an option by its annotation. To add a kind, write a class with
``read`` and ``schema``, and choose it there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cache
from inspect import cleandoc
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from ..errors import MOST_SHOWN, ErrorRule, did_you_mean
from ..errors.findings import Finding, Place, breaches, finding, shown
from ..facts.durations import TEXT_PATTERN, duration_of_text, duration_text, in_unit_of
from ..facts.limit_kinds import Choice, Limit, Pattern, Range
from ..facts.paths import OUTSIDE
from .option import (
    Declared,
    Lasting,
    Option,
    Options,
    alternatives,
    first_paragraph,
    options_of,
    read,
)
from .rules import (
    DURATION_FORM,
    MISSING_SETTING,
    NO_SUCH_ASSET,
    NOT_A_CHOICE,
    UNKNOWN_SETTING,
    WRONG_KIND,
)
from .yaml_source import WrittenFloat, WrittenInt

_MOST_SUGGESTIONS = MOST_SHOWN  # comparing names takes time, and no more of them are shown
_DEEPEST = 4  # groups inside of groups
_LARGEST_EXACT = 2**53  # beyond it a float skips whole numbers
_SWITCHES = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}

Schema = dict[str, Any]


class Wrong:
    """Stands for a value that does not fit; its mistakes are among the findings."""


WRONG = Wrong()


class Reading:
    """One reading of a file's values, and all mistakes so far.

    Relative paths are taken from ``folder``; without one, nothing says whether a path exists.
    ``within`` says of a path whether it may be read.
    """

    def __init__(
        self, folder: Path | None = None, within: Callable[[Path], bool] | None = None
    ) -> None:
        self.folder, self.within = folder, within
        self.findings: list[Finding] = []

    def refuse(
        self,
        rule: ErrorRule,
        place: Place,
        *,
        got: object,
        allowed: str,
        what: str = "",
        fix: str = "",
    ) -> Wrong:
        """Note a mistake; the value of such a place is wrong."""
        self.findings.append(finding(rule, *place, got=got, allowed=allowed, what=what, fix=fix))
        return WRONG

    def holds(self, place: Place, check: Callable[..., object], value: Any) -> bool:
        """Whether a check accepts the value; else its error is noted."""
        broken = list(breaches(place, check, value))
        self.findings += broken
        return not broken

    def path(self, place: Place, value: str | Path) -> Path | Wrong:
        """The path from the folder of the file, if it may be read."""
        path = Path(self.folder or "", value)
        if self.within is not None and not self.within(path):
            return self.refuse(
                OUTSIDE, place, got=str(value), allowed="a path within the repository"
            )
        return path


class Kind(ABC):
    """What a value may be."""

    parts: Sequence[Kind] = ()  # the kinds of which this one is made

    @abstractmethod
    def read(self, value: Any, place: Place, reading: Reading) -> Any:
        """The value for the option, or ``WRONG`` with its mistakes noted in the reading."""

    @abstractmethod
    def schema(self) -> Schema:
        """Its JSON schema."""


class AnyKind(Kind):
    """Any value that YAML has."""

    def read(self, value: Any, place: Place, reading: Reading) -> Any:
        return value

    def schema(self) -> Schema:
        return {}


class BooleanKind(Kind):
    """True or false."""

    def read(self, value: Any, place: Place, reading: Reading) -> Any:
        if isinstance(value, bool):
            return value
        fix = ""
        if isinstance(value, str):
            switch = _SWITCHES.get(value.lower())
            fix = f"Write {switch}." if switch else "Write true or false, without quotes."
        allowed = "true or false"
        return reading.refuse(WRONG_KIND, place, got=_or_text(value), allowed=allowed, fix=fix)

    def schema(self) -> Schema:
        return {"type": "boolean"}


class NumberKind(Kind):
    """A number within a limit."""

    def __init__(self, *, whole: bool, limit: Limit, example: Any = None) -> None:
        self.whole, self.limit = whole, limit
        self.example = example if isinstance(example, (int, float)) else None

    def read(self, value: Any, place: Place, reading: Reading) -> Any:
        if isinstance(self.limit, Range) and not isinstance(value, (int, float)):
            return self._not_a_number(self.limit, value, place, reading)
        if not reading.holds(place, self.limit.check, value):
            return WRONG
        if self.whole and isinstance(value, float) and abs(value) > _LARGEST_EXACT:
            allowed = "a whole number without an exponent"
            return reading.refuse(WRONG_KIND, place, got=value, allowed=allowed)
        return int(value) if self.whole else float(value)

    def _not_a_number(self, limit: Range, value: Any, place: Place, reading: Reading) -> Wrong:
        noun = "whole number" if limit.whole else "number"
        such_as = "" if self.example is None else f", such as {self.example}"
        return reading.refuse(
            limit.rule,
            place,
            what=f"{limit.name} is no {noun}",
            got=_or_text(value),
            allowed=f"a {noun}{such_as}; {limit.allowed}",
            fix="Write the number alone, without quotes or a unit.",
        )

    def schema(self) -> Schema:
        return {"type": "integer" if self.whole else "number", **_limit_schema(self.limit)}


class TextKind(Kind):
    """Text, with or without a limit; with ``as_text`` a number counts as its text."""

    def __init__(self, limit: Limit | None = None, *, as_text: bool = False) -> None:
        self.limit, self.as_text = limit, as_text

    def read(self, value: Any, place: Place, reading: Reading) -> Any:
        text = _as_written(value) if self.limit or self.as_text else value
        if self.limit:
            return text if reading.holds(place, self.limit.check, text) else WRONG
        if isinstance(text, str):
            return text
        fix = f'Put it in quotes: "{shown(value)}".' if isinstance(value, bool) else ""
        return reading.refuse(WRONG_KIND, place, got=value, allowed="text", fix=fix)

    def schema(self) -> Schema:
        if self.limit:
            return {"type": "string", **_limit_schema(self.limit)}
        return {"type": ["string", "number"] if self.as_text else "string"}


class ChoiceKind(Kind):
    """One of several words; true and false may be among them."""

    def __init__(self, choices: Sequence[Any], *, beside: GroupKind | None = None) -> None:
        self.choices = choices
        self.beside = beside  # the group that may stand in place of a word

    def read(self, value: Any, place: Place, reading: Reading) -> Any:
        for choice in self.choices:
            if type(choice) is type(value) and choice == value:
                return value
        given = shown(value)
        words = [shown(choice) for choice in self.choices]
        example = self.beside.example if self.beside else ""
        if self.beside and given.lower() in self.beside.kinds:
            fix = f"Write {example}."
        elif "true" in words and given.lower() in _SWITCHES:
            fix = f"Write {_SWITCHES[given.lower()]}."
        else:
            fix = did_you_mean(given, words)
        allowed = ", ".join([*words, example] if example else words)
        return reading.refuse(NOT_A_CHOICE, place, got=given, allowed=allowed, fix=fix)

    def schema(self) -> Schema:
        of_text = all(isinstance(choice, str) for choice in self.choices)
        return {"enum": list(self.choices), **({"type": "string"} if of_text else {})}


class DurationKind(Kind):
    """A duration as a text with its unit, such as ``200ms``."""

    def __init__(self, limit: Limit | None = None) -> None:
        self.limit = limit

    def read(self, value: Any, place: Place, reading: Reading) -> Any:
        duration = self._duration(value, place, reading)
        if self.limit is None or not isinstance(duration, timedelta):
            return duration
        number = in_unit_of(self.limit, duration)
        if isinstance(self.limit, Choice) and not self.limit.holds(number):
            durations = ", ".join(self._choices(self.limit))
            got = duration_text(timedelta(seconds=number))
            return reading.refuse(self.limit.rule, place, got=got, allowed=durations)
        return duration if reading.holds(place, self.limit.check, number) else WRONG

    def _duration(self, value: Any, place: Place, reading: Reading) -> timedelta | Wrong:
        if isinstance(value, timedelta):
            return value
        text = _as_written(value)
        if not isinstance(text, str):
            return self._without_unit(value, str(text), place, reading)
        try:
            duration = duration_of_text(text)
        except OverflowError:
            return reading.refuse(
                DURATION_FORM,
                place,
                got=value,
                allowed="a duration that a clock can measure",
                fix="Shorten it.",
            )
        return self._without_unit(value, text, place, reading) if duration is None else duration

    def _without_unit(self, value: Any, text: str, place: Place, reading: Reading) -> Wrong:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        together = "".join(text.split())
        fix = f"Write the unit: {text}ms, {text}s or {text}m." if is_number else ""
        if isinstance(value, str) and together != text and duration_of_text(together) is not None:
            fix = f"Write {together}."
        return reading.refuse(
            DURATION_FORM,
            place,
            got=text if is_number else value,
            allowed="a number and ms, s, m or h, without a space, such as 200ms or 5m",
            fix=fix,
        )

    def schema(self) -> Schema:
        if isinstance(self.limit, Choice):
            return {"type": "string", "enum": self._choices(self.limit)}
        return {"type": "string", "pattern": TEXT_PATTERN}

    def _choices(self, limit: Choice) -> list[str]:
        return [f"{seconds}s" for seconds in limit.values]


class PathKind(Kind):
    """The path of a file or folder, relative to the settings file; absolute once it is read."""

    def __init__(self, *, may_be_missing: bool) -> None:
        self.may_be_missing = may_be_missing

    def read(self, value: Any, place: Place, reading: Reading) -> Any:
        if not isinstance(value, (str, Path)) or not str(value) or "\0" in str(value):
            return reading.refuse(NO_SUCH_ASSET, place, got=value, allowed="a path")
        path = reading.path(place, value)
        if isinstance(path, Wrong) or self.may_be_missing or not reading.folder:
            return path
        try:
            there = path.exists()
        except OSError:  # the name is too long for the file system
            there = False
        if there:
            return path
        allowed = f"a file or folder below {reading.folder}"
        return reading.refuse(NO_SUCH_ASSET, place, got=str(value), allowed=allowed)

    def schema(self) -> Schema:
        return {"type": "string"}


class ListKind(Kind):
    """A list of values of one kind."""

    def __init__(self, item: Kind, example: Any = None) -> None:
        self.item, self.example = item, example
        self.parts = (item,)

    def read(self, value: Any, place: Place, reading: Reading) -> Any:
        if not isinstance(value, (list, tuple)):
            such = f", such as {_inline(self.example)}" if self.example is not None else ""
            fix = f"Write a list, even of one{such}: begin each entry with '- '."
            return reading.refuse(WRONG_KIND, place, got=value, allowed="a list", fix=fix)
        items = [self.item.read(item, (*place, index), reading) for index, item in enumerate(value)]
        return WRONG if WRONG in items else tuple(items)

    def schema(self) -> Schema:
        return {"type": "array", "items": self.item.schema()}


class MappingKind(Kind):
    """Values of one kind by name."""

    def __init__(self, key: TextKind, value: Kind) -> None:
        self.key, self.value = key, value
        self.parts = (value,)

    def read(self, value: Any, place: Place, reading: Reading) -> Any:
        if not isinstance(value, Mapping):
            allowed = "a mapping of keys to values"
            return reading.refuse(WRONG_KIND, place, got=value, allowed=allowed)
        values: dict[str, Any] = {}
        wrong = False
        for name, item in value.items():
            key = self.key.read(name, (*place, name), reading)
            values[name] = self.value.read(item, (*place, name), reading)
            wrong = wrong or WRONG in (key, values[name])
        return WRONG if wrong else values

    def schema(self) -> Schema:
        item = self.value.schema()
        limit = self.key.limit
        if not isinstance(limit, Pattern):
            return {"type": "object", "additionalProperties": item}
        schema: Schema = {"type": "object", "additionalProperties": False}
        of_key = _limit_schema(limit)
        schema["patternProperties"] = {of_key.pop("pattern"): item}
        if of_key:
            schema["propertyNames"] = of_key
        return schema


class GroupKind(Kind):
    """A group of options: a mapping of its keys to values.

    A key without a value counts as left out, so that a section whose lines are all commented out
    means its default.
    """

    def __init__(self, group: type[Options]) -> None:
        self.group = group
        self.options = {key_of(option): option for option in stated_options(group)}

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The kind of each option, by its key in the file."""
        return {key: kind_of(option) for key, option in self.options.items()}

    @property
    def parts(self) -> Sequence[Kind]:  # type: ignore[override]
        return list(self.kinds.values())

    @property
    def example(self) -> str:
        """The group with its first option that has an example, as YAML."""
        for key, option in self.options.items():
            if option.option is not None and option.option.example is not None:
                return _inline({key: option.option.example})
        return ""

    def read(self, value: Any, place: Place, reading: Reading) -> Any:
        """The object that the group's options make, sound or not.

        Of an option that is wrong it has no value: who reads it gets :class:`Unsound`.
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
        made, broken = read(self.group, stated, wrong)
        for below, error in broken:
            reading.findings.append(((*place, *self._keys(below[:1]), *below[1:]), error))
        if len(reading.findings) == before:
            self._check_links(stated, place, reading)
        return made

    def _values(self, given: Mapping[str, Any], place: Place, reading: Reading) -> dict[str, Any]:
        """The stated options by name, and those that are missing as ``WRONG``."""
        values: dict[str, Any] = {}
        for key, option in self.options.items():
            if key in given:
                values[option.name] = kind_of(option).read(given[key], (*place, key), reading)
            elif option.is_required:
                values[option.name] = self._missing(option, key, place, reading)
        unknown = [key for key in given if key not in self.options]
        for number, key in enumerate(unknown):
            fix = ""
            if number < _MOST_SUGGESTIONS:
                fix = _place_elsewhere(key) or did_you_mean(key, self.options)
            allowed = ", ".join(self.options)
            reading.refuse(UNKNOWN_SETTING, (*place, key), got=key, allowed=allowed, fix=fix)
        if not unknown and WRONG not in values.values():
            values |= self._default_paths(values, place, reading)
        return values

    def _default_paths(
        self, values: Mapping[str, Any], place: Place, reading: Reading
    ) -> dict[str, Any]:
        """The default paths of options left out: they too lie beside the settings file."""
        paths: dict[str, Any] = {}
        for key, option in self.options.items():
            kind = kind_of(option)
            if isinstance(kind, PathKind) and option.name not in values and option.default:
                paths[option.name] = kind.read(option.default, (*place, key), reading)
        return paths

    def _keys(self, names: Sequence[str | int]) -> list[str | int]:
        """The keys of options in the file."""
        keys = {option.name: key for key, option in self.options.items()}
        return [keys.get(str(name), name) for name in names]

    def _missing(self, option: Declared, key: str, place: Place, reading: Reading) -> Wrong:
        example = option.option.example if option.option else None
        such_as = "" if example is None else f", such as {key}: {_inline(example)}"
        fix = f"Add {key}{such_as}. {self.group.left_out.get(key, '')}".strip()
        return reading.refuse(
            MISSING_SETTING,
            (*place, key),
            got="nothing",
            allowed=option.text_in_file or "a value",
            what=f"{key} is missing or empty",
            fix=fix,
        )

    def _as_mapping(self, value: Any) -> str:
        """What to write where a plain value stands for the group."""
        plain = self.group.plain_value
        if plain and isinstance(value, (str, int, float)):
            return f"Write {{{plain}: {shown(value)}}}."
        return f"Write a mapping, such as {self.example}." if self.example else ""

    def _check_links(self, stated: Mapping[str, Any], place: Place, reading: Reading) -> None:
        """Refuse files of a stated folder that, by links, lie outside of what may be read."""
        within = reading.within
        if within is None:
            return
        for option in stated_options(self.group):
            if option.option is None or option.option.below is None:
                continue
            folder, default = option.option.below
            file = stated.get(option.name) or default
            if stated.get(folder) and not within(Path(stated[folder], file)):
                name = option.name if option.name in stated else folder
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
            "properties": {key: _property(option) for key, option in self.options.items()},
            "additionalProperties": False,
        }
        required = [key for key, option in self.options.items() if option.is_required]
        if required:
            definition["required"] = required
        if self.group.exactly_one_of:
            definition["oneOf"] = [{"required": [name]} for name in self.group.exactly_one_of]
        return definition


class EitherKind(Kind):
    """A plain value, or a group in its place, where a mapping stands."""

    def __init__(self, plain: Kind, group: GroupKind) -> None:
        self.plain, self.group = plain, group
        self.parts = (plain, group)

    def read(self, value: Any, place: Place, reading: Reading) -> Any:
        kind = self.group if isinstance(value, (Mapping, Options)) else self.plain
        return kind.read(value, place, reading)

    def schema(self) -> Schema:
        return {"oneOf": [self.plain.schema(), self.group.schema()]}


class ConvertedKind(Kind):
    """A value of another kind, from which a class makes its object: ``written`` and ``_of_file``."""

    def __init__(self, written: Kind, of_file: Callable[[Any], Any]) -> None:
        self.written, self.of_file = written, of_file
        self.parts = (written,)

    def read(self, value: Any, place: Place, reading: Reading) -> Any:
        before = len(reading.findings)
        stated = self.written.read(value, place, reading)
        return self.of_file(stated) if len(reading.findings) == before else WRONG

    def schema(self) -> Schema:
        return self.written.schema()


# --- from annotations to kinds -----------------------------------------------------------------


def kind_of(option: Declared) -> Kind:
    """The kind of an option, by its annotation; None is a setting left out, and no kind."""
    place = (option.group, option.name)
    return _KINDS.get(place) or _KINDS.setdefault(place, _kind_of(option))


_KINDS: dict[tuple[type[Options], str], Kind] = {}


def stated_options(group: type[Options]) -> list[Declared]:
    """The options of a group that a settings file can state."""
    return [option for option in options_of(group) if option.option is not None]


def key_of(option: Declared) -> str:
    """What the file calls an option: its name, but for a keyword of Python."""
    return (option.option.key if option.option else "") or option.name


def all_kinds(kind: Kind) -> Iterator[Kind]:
    """A kind, and all of which it is made."""
    yield kind
    for part in kind.parts:
        yield from all_kinds(part)


def _kind_of(declared: Declared) -> Kind:
    for note in declared.notes:
        if isinstance(note, Kind):
            return note
    return _chosen(declared.kind, declared.option or Option(), declared.default)


def _chosen(annotation: Any, option: Option, default: Any = None) -> Kind:
    """The kind of an annotation, of which a file states the first alternative and the groups."""
    kinds = [
        alternative
        for alternative in alternatives(annotation)
        if alternative is not NoneType and not says_default(alternative, default)
    ]
    if Path in kinds:  # in Python a text too
        return PathKind(may_be_missing=option.may_be_missing)
    groups = [kind for kind in kinds if _is_group(kind)]
    plain = [kind for kind in kinds if kind not in groups]
    if groups and plain:
        beside = GroupKind(groups[0])
        return EitherKind(_chosen_one(plain[0], option, beside), beside)
    return _chosen_one(kinds[0], option)


def _chosen_one(kind: Any, option: Option, beside: GroupKind | None = None) -> Kind:
    """The kind of an annotation that is no union."""
    origin, below = get_origin(kind), get_args(kind)
    if origin is Annotated:
        [own] = [note for note in below if isinstance(note, Option)]
        return _chosen_one(below[0], own, beside)
    if hasattr(kind, "written"):
        return ConvertedKind(_chosen(kind.written, option), kind._of_file)
    if _is_group(kind):
        return GroupKind(kind)
    if origin in (Mapping, dict):
        # In Python some mappings may be a level deeper: a file states the first form.
        value = _chosen_one(alternatives(below[1])[0], option._replace(example=None))
        return MappingKind(_chosen_one(below[0], Option(option.keys)), value)  # type: ignore[arg-type]
    if origin in (Sequence, tuple):
        item = _chosen_one(below[0], option._replace(example=None))
        return ListKind(item, option.example)
    if origin is Literal and option.limit is None:
        return ChoiceKind(below, beside=beside)
    if kind is Lasting:
        return DurationKind(option.limit)
    if kind in (int, float):
        assert option.limit is not None, "a number has a limit"
        return NumberKind(whole=kind is int, limit=option.limit, example=option.example)
    if kind is str or origin is Literal:
        return TextKind(option.limit, as_text=option.as_text)
    return BooleanKind() if kind is bool else AnyKind()


def says_default(kind: Any, default: Any) -> bool:
    """Whether a kind is a word that only Python says: a file leaves the setting out."""
    return get_origin(kind) is Literal and get_args(kind) == (default,)


def _is_group(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Options)


def _property(declared: Declared) -> Schema:
    """The schema of an option in its group."""
    option = declared.option or Option()
    schema = dict(option.schema or kind_of(declared).schema())
    if declared.text:
        schema["description"] = declared.text_in_file
    if option.example is not None:
        schema["examples"] = [option.example]
    if _has_value(declared):
        default = declared.default
        schema["default"] = (
            duration_text(default) if isinstance(default, timedelta) else _in_json(default)
        )
    return schema


def _has_value(declared: Declared) -> bool:
    """Whether a setting that is left out has a value which the file could state."""
    default = declared.default
    if declared.is_required or default in (None, {}, ()) or isinstance(default, Options):
        return False
    return not any(says_default(kind, default) for kind in alternatives(declared.kind))


def _in_json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _limit_schema(limit: Limit) -> Schema:
    """A limit in the words of JSON schema."""
    if isinstance(limit, Choice):
        return {"enum": list(limit.values)}
    if isinstance(limit, Pattern):
        length = {"maxLength": limit.max_length} if limit.max_length else {}
        return {"pattern": f"^(?:{limit.regex})$", **length}
    bounds = {"minimum": limit.minimum, "maximum": limit.maximum}
    return {name: bound for name, bound in bounds.items() if bound is not None}


def _as_written(value: Any) -> Any:
    """The text of a number as the file has it; other values as they are."""
    return value.written if isinstance(value, (WrittenInt, WrittenFloat)) else value


def _or_text(value: Any) -> Any:
    """What was given where text may look like what is wanted, as true and 5 do."""
    return f'"{value}", which is text' if isinstance(value, str) else value


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


def groups_of(kind: Kind) -> list[GroupKind]:
    """The groups of which a kind is made, without what is inside of them."""
    if isinstance(kind, GroupKind):
        return [kind]
    return [group for part in kind.parts for group in groups_of(part)]


def _inline(value: Any) -> str:
    """An example in YAML's flow style."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_inline(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_inline(item) for item in value) + "]"
    return shown(value)
