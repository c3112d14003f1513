"""The kinds of values that options and arguments have.

A kind knows its value twice: as a settings file writes it (:meth:`Kind.read`), and as Python passes
it (:meth:`Kind.accepts`). To add a kind, write a class with these two, its words and its JSON schema,
and choose it in ``_kind_of_class`` of :mod:`.compound_kinds`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, cast

from ..errors import ConfigurationError, ErrorRule, did_you_mean, rule
from ..errors.findings import Finding, Place, breaches, finding, shown
from ..errors.given_files import is_finite
from ..facts.durations import (
    TEXT_PATTERN,
    duration_in_unit_of,
    duration_of_text,
    duration_text,
    in_unit_of,
    is_duration,
)
from ..facts.limit_kinds import USE_AN_ALLOWED_VALUE, Choice, Limit, Pattern, Range
from ..facts.paths import OUTSIDE
from .written_numbers import as_written

UNKNOWN_SETTING = rule(
    "LLE904",
    "the setting does not exist",
    fix="Correct the spelling or indentation, or remove the line.",
)
MISSING_SETTING = rule("LLE905", "a required setting is missing or empty", fix="Add the setting.")
WRONG_KIND = rule("LLE906", "a setting has the wrong type", fix="Use an allowed value.")
DURATION_FORM = rule(
    "LLE908", "a duration needs a number and a unit", fix="Write both: 200ms, 1.5s, 5m or 1h."
)
NOT_A_CHOICE = rule("LLE909", "a setting's value is not valid", fix="Use an allowed value.")
NO_SUCH_ASSET = rule(
    "LLE911",
    "a file or folder of the settings does not exist",
    fix="Create it, or correct the path, which is relative to the settings file.",
)

Schema = dict[str, Any]

_LARGEST_EXACT = 2**53  # beyond it a float skips whole numbers
_SWITCHES = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}


class Wrong:
    """Stands for a value that does not fit; its mistakes are among the findings."""


WRONG = Wrong()


def any_wrong(values: Iterable[Any]) -> bool:
    """Whether one of the values is ``WRONG``."""
    return any(value is WRONG for value in values)


class FileReading:
    """One reading of a file's values, and all mistakes so far.

    Relative paths are taken from ``folder``; without one, nothing says whether a path exists.
    ``within`` says of a path whether it may be read.
    """

    def __init__(
        self, folder: Path | None = None, within: Callable[[Path], bool] | None = None
    ) -> None:
        self.folder = folder
        self.within = within
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
            allowed = "a path within the repository"
            return self.refuse(OUTSIDE, place, got=str(value), allowed=allowed)
        return path


class Misfit(NamedTuple):
    """An argument that is not of its kind, and where it is inside the one that was passed."""

    value: Any
    kind: Kind
    path: str = ""

    def inside(self, path: str) -> Misfit:
        """The same, of what holds the value."""
        return Misfit(self.value, self.kind, path + self.path)


class Kind:
    """What a value may be."""

    words = ""  # what to pass in Python
    parts: Sequence[Kind] = ()  # the kinds of which this one is made, in a file

    def read(self, value: Any, place: Place, reading: FileReading) -> Any:
        """The value that a file states, or ``WRONG`` with its mistakes noted in the reading."""
        raise NotImplementedError(f"{self.words} in a settings file")

    def schema(self) -> Schema:
        """Its JSON schema, of a kind that a file can state."""
        raise NotImplementedError(f"{self.words} in a settings file")

    def accepts(self, value: Any) -> bool:
        """Whether what Python passes is of the kind."""
        raise NotImplementedError

    @property
    def alternatives(self) -> Sequence[Kind]:
        """The kinds of a union; of any other kind itself."""
        return (self,)

    def misfit(self, value: Any) -> Misfit | None:
        """What does not fit; None if all does. Kinds of containers look at what is inside."""
        return None if self.accepts(value) else Misfit(value, self)


class AnyKind(Kind):
    """Any value."""

    def read(self, value: Any, place: Place, reading: FileReading) -> Any:
        return value

    def schema(self) -> Schema:
        return {}

    def accepts(self, value: Any) -> bool:
        return True


class BooleanKind(Kind):
    """True or false."""

    words = "True or False"

    def read(self, value: Any, place: Place, reading: FileReading) -> Any:
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

    def accepts(self, value: Any) -> bool:
        return isinstance(value, bool)


class NumberKind(Kind):
    """A finite number. Its limit says which ones, and whether whole, for an argument as well."""

    def __init__(self, *, whole: bool, limit: Limit | None = None, example: Any = None) -> None:
        self.whole = whole
        self.limit = limit
        self.words = "a whole number" if whole else "a finite number"
        self.example = example if isinstance(example, (int, float)) else None

    def read(self, value: Any, place: Place, reading: FileReading) -> Any:
        limit = cast(Limit, self.limit)  # a number of a settings file has one
        if isinstance(limit, Range) and not isinstance(value, (int, float)):
            return self._not_a_number(limit, value, place, reading)
        if not reading.holds(place, limit.check, value):
            return WRONG
        if self.whole and isinstance(value, float) and abs(value) > _LARGEST_EXACT:
            allowed = "a whole number without an exponent"
            return reading.refuse(WRONG_KIND, place, got=value, allowed=allowed)
        return int(value) if self.whole else float(value)

    def _not_a_number(self, limit: Range, value: Any, place: Place, reading: FileReading) -> Wrong:
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
        of_limit = limit_schema(self.limit) if self.limit else {}
        return {"type": "integer" if self.whole else "number", **of_limit}

    def accepts(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        return is_finite(value)  # jsii's process ends at others


class TextKind(Kind):
    """Text; where it has a limit, or with ``as_text``, a number of a file counts as its text."""

    words = "text"

    def __init__(self, limit: Limit | None = None, *, as_text: bool = False) -> None:
        self.limit = limit
        self.as_text = as_text

    def read(self, value: Any, place: Place, reading: FileReading) -> Any:
        text = as_written(value) if self.limit or self.as_text else value
        if self.limit:
            return text if reading.holds(place, self.limit.check, text) else WRONG
        if isinstance(text, str):
            return text
        fix = f'Put it in quotes: "{shown(value)}".' if isinstance(value, bool) else ""
        return reading.refuse(WRONG_KIND, place, got=value, allowed="text", fix=fix)

    def schema(self) -> Schema:
        if self.limit:
            return {"type": "string", **limit_schema(self.limit)}
        return {"type": ["string", "number"] if self.as_text else "string"}

    def accepts(self, value: Any) -> bool:
        return isinstance(value, str)


class ChoiceKind(Kind):
    """One of several words; true and false may be among them."""

    def __init__(self, choices: Sequence[Any], limit: Limit | None = None) -> None:
        self.choices = choices
        self.limit = limit
        self.words = " or ".join(map(repr, choices))
        self.group_keys: Sequence[str] = ()  # of the group that may stand in place of a word
        self.group_example = ""

    def read(self, value: Any, place: Place, reading: FileReading) -> Any:
        if self.limit:
            text = as_written(value)
            return text if reading.holds(place, self.limit.check, text) else WRONG
        if self._is_choice(value):
            return value
        given = shown(value)
        words = [shown(choice) for choice in self.choices]
        if given.lower() in self.group_keys:
            fix = f"Write {self.group_example}."
        elif "true" in words and given.lower() in _SWITCHES:
            fix = f"Write {_SWITCHES[given.lower()]}."
        else:
            fix = did_you_mean(given, words)
        allowed = ", ".join(filter(None, [*words, self.group_example]))
        return reading.refuse(NOT_A_CHOICE, place, got=given, allowed=allowed, fix=fix)

    def schema(self) -> Schema:
        if self.limit:
            return {"type": "string", **limit_schema(self.limit)}
        of_text = all(isinstance(choice, str) for choice in self.choices)
        return {"enum": list(self.choices), **({"type": "string"} if of_text else {})}

    def accepts(self, value: Any) -> bool:
        return self._is_choice(value) or (isinstance(value, str) and "${Token[" in value)

    def _is_choice(self, value: Any) -> bool:
        return any(type(choice) is type(value) and choice == value for choice in self.choices)


class DurationKind(Kind):
    """A duration: a text such as ``200ms``, in Python a ``timedelta`` or the CDK's too.

    Where a parameter is annotated with the CDK's class alone, it takes no text.
    """

    def __init__(self, limit: Limit | None = None, *, takes_text: bool = True) -> None:
        self.limit = limit
        self.takes_text = takes_text
        self.words = "Duration(...)" if takes_text else "aws_cdk.Duration(...)"

    def read(self, value: Any, place: Place, reading: FileReading) -> Any:
        duration = self._duration(value, place, reading)
        if self.limit is None or not isinstance(duration, timedelta):
            return duration
        number = in_unit_of(self.limit, duration)
        if isinstance(self.limit, Choice) and not self.limit.holds(number):
            durations = ", ".join(self._choices(self.limit))
            got = duration_text(timedelta(seconds=number))
            return reading.refuse(self.limit.rule, place, got=got, allowed=durations)
        try:
            self.limit.check(number)
        except ConfigurationError as error:
            nearest = self._nearest(number)
            if nearest and self.limit.rule.fix == USE_AN_ALLOWED_VALUE:
                error.fix = f"Write {' or '.join(nearest)}."
            reading.findings.append((place, error))
            return WRONG
        return duration

    def _nearest(self, number: float) -> list[str]:
        """The durations next to one that is out of range, as a file writes them."""
        texts: list[str] = []
        if isinstance(self.limit, Range):
            for nearest in self.limit.nearest(number):
                duration = duration_in_unit_of(self.limit, nearest)
                if self.limit.holds(in_unit_of(self.limit, duration)):
                    texts.append(duration_text(duration))
        return texts

    def _duration(self, value: Any, place: Place, reading: FileReading) -> timedelta | Wrong:
        if isinstance(value, timedelta):
            return value
        text = as_written(value)
        try:
            duration = duration_of_text(text) if isinstance(text, str) else None
        except OverflowError:
            return reading.refuse(
                DURATION_FORM,
                place,
                got=value,
                allowed="a duration that a clock can measure",
                fix="Shorten it.",
            )
        return self._without_unit(value, text, place, reading) if duration is None else duration

    def _without_unit(self, value: Any, text: Any, place: Place, reading: FileReading) -> Wrong:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        fix = f"Write the unit: {text}ms, {text}s or {text}m." if is_number else ""
        together = "".join(text.split()) if isinstance(text, str) else ""
        if together != text and is_duration(together):
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

    def accepts(self, value: Any) -> bool:
        return is_duration(value) and (self.takes_text or not isinstance(value, str))


class PathKind(Kind):
    """The path of a file or folder, relative to the settings file; absolute once it is read."""

    words = "Path"

    def __init__(self, *, may_be_missing: bool = False) -> None:
        self.may_be_missing = may_be_missing

    def read(self, value: Any, place: Place, reading: FileReading) -> Any:
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

    def accepts(self, value: Any) -> bool:
        return isinstance(value, Path)


class CallableKind(Kind):
    """A function, which only Python can pass."""

    words = "a function"

    def accepts(self, value: Any) -> bool:
        return callable(value)


def limit_schema(limit: Limit) -> Schema:
    """A limit in the words of JSON schema."""
    if isinstance(limit, Choice):
        return {"enum": list(limit.values)}
    if isinstance(limit, Pattern):
        length = {"maxLength": limit.max_length} if limit.max_length else {}
        return {"pattern": f"^(?:{limit.regex})$", **length}
    bounds = {"minimum": limit.minimum, "maximum": limit.maximum}
    return {name: bound for name, bound in bounds.items() if bound is not None}


def _or_text(value: Any) -> Any:
    """What was given where text may look like what is wanted, as true and 5 do."""
    return f'"{value}", which is text' if isinstance(value, str) else value
