"""The settings of a group of options, made from the options' own fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from datetime import timedelta
from functools import cache
from inspect import cleandoc
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import AfterValidator, Discriminator, Field, GetCoreSchemaHandler, Tag, create_model
from pydantic.json_schema import WithJsonSchema
from pydantic_core import CoreSchema

from ..options.option import Declared, Lasting, Option, Options, alternatives, options_of
from .fields import Asset, Limited, PathBeside, TextOrNumber
from .model_base import SettingsModel


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
    stated = [each for each in options_of(group) if each.option is not None]
    made: dict[str, Any] = {each.name: _setting(each) for each in stated}
    text, _, _ = cleandoc(group.__doc__ or "").partition("\n\nArgs:")
    summary = text.partition("\n\nIn Python ")[0].replace("``", "`")
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
    config = SettingsModel.model_config
    optional: Any = {name: (kind | None, None) for name, (kind, _) in made.items()}
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
    described: Any = {"description": declared.text_in_file, "examples": examples}
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
        get_origin(each) is Literal and get_args(each) == (default,) for each in alternatives(kind)
    )


def _groups(kind: Any) -> list[type[Options]]:
    """The groups that a setting may be in place of a word or number."""
    kinds = [
        below
        for each in alternatives(kind)
        for below in alternatives(getattr(each, "written", each))
        if below is not NoneType
    ]
    return [each for each in kinds if _is_group(each)] if len(kinds) > 1 else []


def _is_group(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Options)


def _read(kind: Any, option: Option, default: Any) -> Any:
    """The kind as pydantic reads it from a file."""
    of_python = (Literal[default],) if _of_python(kind, default) else ()
    kinds = [each for each in alternatives(kind) if each not in (NoneType, *of_python)]
    kinds = [Path] if Path in kinds else kinds  # in Python a text too
    groups = _groups(kind)
    plain: Any = Union[tuple(_read_one(each, option) for each in kinds if each not in groups)]  # noqa: UP007
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
        return Annotated[str if origin is Literal else kind, Limited(option.limit)]
    return TextOrNumber if option.as_text and kind is str else kind
