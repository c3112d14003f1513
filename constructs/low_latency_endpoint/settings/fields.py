"""The kinds of values that settings take, each checked by the limit that AWS sets on it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic.functional_validators import BeforeValidator
from pydantic.json_schema import JsonSchemaValue, WithJsonSchema
from pydantic_core import CoreSchema, core_schema

from ..errors import ConfigurationError
from ..errors.findings import finding, shown
from ..facts.durations import TEXT_PATTERN, duration_of_text, in_unit_of
from ..facts.limit_kinds import Choice, Limit, Pattern
from ..options.rules import DURATION_FORM, NO_SUCH_ASSET, OUTSIDE
from .breach import BreachError
from .yaml_source import WrittenFloat, WrittenInt


def as_written(value: Any) -> Any:
    """The text of a number as the file has it; other values as they are."""
    return value.written if isinstance(value, (WrittenInt, WrittenFloat)) else value


def parse_duration(value: Any) -> timedelta:
    """A duration from its text."""
    if isinstance(value, timedelta):
        return value
    text = as_written(value)
    try:
        duration = duration_of_text(text) if isinstance(text, str) else None
    except OverflowError:
        raise BreachError(
            [
                finding(
                    DURATION_FORM,
                    got=value,
                    allowed="a duration that a clock can measure",
                    fix="Shorten it.",
                )
            ]
        ) from None
    if duration is None:
        bare = isinstance(value, (int, float)) and not isinstance(value, bool)
        fix = f"Write the unit: {text}ms, {text}s or {text}m." if bare else ""
        raise BreachError(
            [
                finding(
                    DURATION_FORM,
                    got=value if not bare else str(text),
                    fix=fix,
                    allowed="a number and ms, s, m or h, such as 200ms or 5m",
                )
            ]
        )
    return duration


def duration_text(duration: timedelta) -> str:
    """A duration as a settings file writes it, in the largest unit that keeps it whole."""
    milliseconds = duration / timedelta(milliseconds=1)
    for unit, length in (("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if milliseconds and milliseconds % length == 0:
            return f"{milliseconds / length:g}{unit}"
    return f"{milliseconds:g}ms"


def duration_of(value: Any) -> timedelta | None:
    """The duration, or ``None`` when there is none or the field reports it as malformed."""
    try:
        return None if value is None else parse_duration(value)
    except BreachError:
        return None


def checked(limit: Limit, value: Any) -> Any:
    """The value; a breach with the limit's own error when it lies outside."""
    try:
        return limit.check(value)
    except ConfigurationError as error:
        raise BreachError.of(error) from None


class Limited:
    """Annotates a field with the limit that its value must keep; its JSON schema follows.

    ``Limited(limits.VARIANT_WEIGHT)`` on an ``int``, ``float`` or ``str``; on a ``timedelta`` the
    limit applies to seconds, or to milliseconds when the limit says so.
    """

    def __init__(self, limit: Limit, note: str = "") -> None:
        self.limit = limit
        self.note = note

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        before = core_schema.no_info_before_validator_function
        if source is timedelta:
            return before(self._check_duration, core_schema.timedelta_schema(strict=True))
        # Not strict: the limit has refused what is no number, and 2.0 may stand for 2.
        if source is int:
            return before(self._check_number, core_schema.int_schema(strict=False))
        if source is float:
            return before(self._check_number, core_schema.float_schema(strict=False))
        return before(self._check_text, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        if _is_duration(schema):
            return duration_schema(self.limit)
        return {**handler(schema), **limit_schema(self.limit)}

    def _check_number(self, value: Any) -> Any:
        return checked(self.limit, value)

    def _check_text(self, value: Any) -> Any:
        return checked(self.limit, as_written(value))

    def _check_duration(self, value: Any) -> timedelta:
        duration = parse_duration(value)
        in_unit = in_unit_of(self.limit, duration)
        if isinstance(self.limit, Choice) and not self.limit.holds(in_unit):
            raise BreachError.of(
                self.limit.rule.error(
                    got=f"{in_unit:g}s", allowed=", ".join(f"{each}s" for each in self.limit.values)
                )
            )
        checked(self.limit, in_unit)
        return duration


def _is_duration(schema: CoreSchema) -> bool:
    inner: Any = schema
    while "schema" in inner:
        inner = inner["schema"]
    return bool(inner["type"] == "timedelta")


def limit_schema(limit: Limit) -> JsonSchemaValue:
    """A limit in the words of JSON schema."""
    if isinstance(limit, Choice):
        return {"enum": list(limit.values)}
    if isinstance(limit, Pattern):
        length = {"maxLength": limit.max_length} if limit.max_length else {}
        return {"pattern": f"^(?:{limit.regex})$", **length}
    bounds = {"minimum": limit.minimum, "maximum": limit.maximum}
    return {name: bound for name, bound in bounds.items() if bound is not None}


def duration_schema(limit: Limit | None = None) -> JsonSchemaValue:
    """The JSON schema of a duration, with the durations allowed when they are a few."""
    if isinstance(limit, Choice):
        return {"type": "string", "enum": [f"{value}s" for value in limit.values]}
    return {"type": "string", "pattern": TEXT_PATTERN}


def path_beside(value: str | Path, info: ValidationInfo) -> Path:
    """The path from the settings file's folder, within what its reader was told to keep to."""
    context = info.context or {}
    path = Path(context.get("folder") or "", value)
    within = context.get("within")
    if within is not None and not is_within(path, within):
        raise BreachError(
            [finding(OUTSIDE, got=shown(str(value)), allowed="a path within the repository")]
        )
    return path


def is_within(path: Path, folder: Path) -> bool:
    """Whether a path, its symbolic links followed, is in a folder, and not in Git's own files."""
    try:
        found = path.resolve()
    except (OSError, RuntimeError):  # links that go round in circles
        return False
    return found.is_relative_to(folder) and ".git" not in found.relative_to(folder).parts


def _path(value: Any, info: ValidationInfo) -> Path:
    if not isinstance(value, (str, Path)) or not str(value) or "\0" in str(value):
        raise BreachError([finding(NO_SUCH_ASSET, got=value, allowed="a path")])
    return path_beside(value, info)


def _asset(value: Any, info: ValidationInfo) -> Path:
    """A path below the settings file's folder, which the loader passes as context."""
    folder = (info.context or {}).get("folder")
    path = _path(value, info)
    try:
        there = path.exists()
    except OSError:  # the name is too long for the file system
        there = False
    if folder and not there:
        raise BreachError(
            [
                finding(
                    NO_SUCH_ASSET, got=shown(str(value)), allowed=f"a file or folder below {folder}"
                )
            ]
        )
    return path


#: Text where numbers without quotes are common.
TextOrNumber = Annotated[
    str, BeforeValidator(as_written), WithJsonSchema({"type": ["string", "number"]})
]
#: The same of a file that may be missing: the plan tells of it.
PathBeside = Annotated[Path, BeforeValidator(_path), WithJsonSchema({"type": "string"})]
#: A file or folder, absolute once loaded from a file.
Asset = Annotated[Path, BeforeValidator(_asset), WithJsonSchema({"type": "string"})]
