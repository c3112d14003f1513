"""Settings models made from the options' own fields, and the kinds of values that they take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from datetime import timedelta
from functools import cache
from inspect import cleandoc
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Tag,
    ValidationInfo,
    create_model,
)
from pydantic.functional_validators import BeforeValidator
from pydantic.json_schema import JsonSchemaValue, WithJsonSchema
from pydantic_core import CoreSchema, core_schema

from ..errors import ConfigurationError
from ..facts.durations import TEXT_PATTERN, duration_of_text, in_unit_of
from ..facts.limit_kinds import Choice, Limit, Pattern, Range
from ..facts.paths import OUTSIDE
from ..options.option import (
    Declared,
    Lasting,
    Option,
    Options,
    alternatives,
    first_paragraph,
    options_of,
)
from ..options.rules import DURATION_FORM, NO_SUCH_ASSET
from ..options.yaml_source import WrittenFloat, WrittenInt
from .model_base import BreachError, SettingsModel, breach


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
        raise breach(
            DURATION_FORM,
            got=value,
            allowed="a duration that a clock can measure",
            fix="Shorten it.",
        ) from None
    if duration is None:
        bare = isinstance(value, (int, float)) and not isinstance(value, bool)
        fix = f"Write the unit: {text}ms, {text}s or {text}m." if bare else ""
        together = "".join(text.split()) if isinstance(text, str) else ""
        if together != text and duration_of_text(together) is not None:
            fix = f"Write {together}."
        raise breach(
            DURATION_FORM,
            got=value if not bare else str(text),
            allowed="a number and ms, s, m or h, without a space, such as 200ms or 5m",
            fix=fix,
        )
    return duration


def duration_text(duration: timedelta) -> str:
    """A duration as a settings file writes it, in the largest unit that keeps it whole."""
    milliseconds = duration / timedelta(milliseconds=1)
    for unit, length in (("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if milliseconds and milliseconds % length == 0:
            return f"{milliseconds / length:g}{unit}"
    return f"{milliseconds:g}ms"


def checked(limit: Limit, value: Any) -> Any:
    """The value; a breach with the limit's own error when it lies outside."""
    try:
        return limit.check(value)
    except ConfigurationError as error:
        raise BreachError([((), error)]) from None


class Limited:
    """Annotates a field with the limit that its value must keep; its JSON schema follows.

    ``Limited(limits.VARIANT_WEIGHT)`` on an ``int``, ``float`` or ``str``; on a ``timedelta`` the
    limit applies to seconds, or to milliseconds when the limit says so.
    """

    def __init__(self, limit: Limit, example: Any = None) -> None:
        self.limit = limit
        self.example = example if isinstance(example, (int, float)) else None

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
        if isinstance(self.limit, Range) and not isinstance(value, (int, float)):
            kind = "whole number" if self.limit.whole else "number"
            such_as = "" if self.example is None else f", such as {self.example}"
            raise breach(
                self.limit.rule,
                what=f"{self.limit.name} is no {kind}",
                got=f'"{value}", which is text' if isinstance(value, str) else value,
                allowed=f"a {kind}{such_as}; {self.limit.allowed}",
                fix="Write the number alone, without quotes or a unit.",
            )
        return checked(self.limit, value)

    def _check_text(self, value: Any) -> Any:
        return checked(self.limit, as_written(value))

    def _check_duration(self, value: Any) -> timedelta:
        duration = parse_duration(value)
        in_unit = in_unit_of(self.limit, duration)
        if isinstance(self.limit, Choice) and not self.limit.holds(in_unit):
            raise breach(
                self.limit.rule,
                got=f"{in_unit:g}s",
                allowed=", ".join(f"{value}s" for value in self.limit.values),
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
    if within is not None and not within(path):
        raise breach(OUTSIDE, got=str(value), allowed="a path within the repository")
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
        raise breach(NO_SUCH_ASSET, got=value, allowed="a path")
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
        raise breach(NO_SUCH_ASSET, got=str(value), allowed=f"a file or folder below {folder}")
    return path


#: Text where numbers without quotes are common.
TextOrNumber = Annotated[
    str, BeforeValidator(as_written), WithJsonSchema({"type": ["string", "number"]})
]
#: The same of a file that may be missing: the plan tells of it.
PathBeside = Annotated[Path, BeforeValidator(_path), WithJsonSchema({"type": "string"})]
#: A file or folder, absolute once loaded from a file.
Asset = Annotated[Path, BeforeValidator(_asset), WithJsonSchema({"type": "string"})]


class OfOptions:
    """Annotates a setting whose value is an object of a class of options."""

    def __get_pydantic_core_schema__(
        self, source: type[Options], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return handler.generate_schema(model_of(source))


def model_of(group: Any) -> type[SettingsModel]:
    """The model that reads a group of options from a file and makes its object."""
    return _MODELS.get(group) or _MODELS.setdefault(group, _model_of(group))


_MODELS: dict[type[Options], type[SettingsModel]] = {}


def _model_of(group: type[Options]) -> type[SettingsModel]:
    stated = [option for option in options_of(group) if option.option is not None]
    made: dict[str, Any] = {each.name: _setting(each) for each in stated}
    summary = first_paragraph(cleandoc(group.__doc__ or "")).replace("``", "`")
    model = create_model(group.__name__, __base__=SettingsModel, __doc__=summary, **made)
    model.makes = group
    written = (
        each.name for each in stated for of in alternatives(each.kind) if hasattr(of, "written")
    )
    model.whole = frozenset(written)
    if group.exactly_one_of:
        one_of: Any = [{"required": [name]} for name in group.exactly_one_of]
        model.model_config["json_schema_extra"] = {"oneOf": one_of}
    model.other_forms = {each.name: model_of(of) for each in stated for of in _groups(each.kind)}
    model.keys = {each.name: each.option.key for each in stated if each.option and each.option.key}
    config = SettingsModel.model_config
    optional: Any = {
        name: (kind | None, Field(default=None, alias=model.keys.get(name)))
        for name, (kind, _) in made.items()
    }
    model.part = cache(lambda: create_model(group.__name__, __config__=config, **optional))
    return model


def _setting(declared: Declared) -> tuple[Any, Any]:
    """Kind and field; a setting that is left out has the option's own default."""
    option = declared.option or Option()
    kind = _read(declared.kind, option, declared.default)
    if declared.notes:
        kind = Annotated[(kind, *declared.notes)]
    if option.schema is not None:
        kind = Annotated[kind, WithJsonSchema(dict(option.schema))]
    examples = None if option.example is None else [option.example]
    described: Any = {"examples": examples, "alias": option.key or None}
    # Read from the sources, so only for a schema.
    described["json_schema_extra"] = lambda schema: schema.update(
        {"description": declared.text_in_file} if declared.text else {}
    )
    if declared.default is MISSING:
        return kind, Field(**described)
    shown = declared.default
    of_python = _of_python(declared.kind, shown)
    if shown in (None, {}, ()) or isinstance(shown, Options) or of_python:
        return kind | None, Field(default=None, **described)
    # A path lies beside the settings file, by default too.
    is_path = Path in alternatives(declared.kind)
    return kind, Field(default=shown, validate_default=is_path or None, **described)


def _of_python(kind: Any, default: Any) -> bool:
    """Whether the default is a word that only Python says: a file leaves the setting out."""
    return any(
        get_origin(alternative) is Literal and get_args(alternative) == (default,)
        for alternative in alternatives(kind)
    )


def _groups(kind: Any) -> list[type[Options]]:
    """The groups that a setting may be in place of a word or number."""
    kinds = [
        below
        for alternative in alternatives(kind)
        for below in alternatives(getattr(alternative, "written", alternative))
        if below is not NoneType
    ]
    return [kind for kind in kinds if _is_group(kind)] if len(kinds) > 1 else []


def _is_group(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Options)


def _read(kind: Any, option: Option, default: Any) -> Any:
    """The kind as pydantic reads it from a file."""
    of_python = (Literal[default],) if _of_python(kind, default) else ()
    kinds = [
        alternative
        for alternative in alternatives(kind)
        if alternative not in (NoneType, *of_python)
    ]
    kinds = [Path] if Path in kinds else kinds  # in Python a text too
    groups = _groups(kind)
    plain: Any = Union[tuple(_read_one(kind, option) for kind in kinds if kind not in groups)]  # noqa: UP007
    if not groups or len(kinds) == 1:
        return plain
    return Annotated[
        Annotated[plain, Tag("#plain")] | Annotated[_read_one(groups[0], option), Tag("#group")],
        Discriminator(
            lambda value: "#group" if isinstance(value, (Mapping, Options)) else "#plain"
        ),
    ]


def _read_one(kind: Any, option: Option) -> Any:
    origin, below = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _read_one(below[0], next(each for each in below if isinstance(each, Option)))
    if hasattr(kind, "written"):
        return Annotated[_read(kind.written, option, None), AfterValidator(kind._of_file)]
    if kind is Lasting:
        return Annotated[timedelta, Limited(option.limit)] if option.limit else timedelta
    if kind is Path:
        return PathBeside if option.may_be_missing else Asset
    if _is_group(kind):
        return Annotated[kind, OfOptions()]
    if origin is Mapping or origin is dict:
        # In Python some mappings may be a level deeper: a file states the first form.
        keys = _read_one(below[0], Option(option.keys))
        return dict[keys, _read_one(alternatives(below[1])[0], option)]  # type: ignore[valid-type,misc]
    if origin is Sequence or origin is tuple:
        items: Any = tuple[_read_one(below[0], option), ...]  # type: ignore[misc]
        return Annotated[items, Field(strict=False)]
    if option.limit is not None and (kind in (int, float, str) or origin is Literal):
        return Annotated[str if origin is Literal else kind, Limited(option.limit, option.example)]
    return TextOrNumber if option.as_text and kind is str else kind
