"""The settings of a group of options, made from the options' own fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import timedelta
from inspect import cleandoc
from types import NoneType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import Field, GetCoreSchemaHandler, create_model
from pydantic.json_schema import WithJsonSchema
from pydantic_core import CoreSchema

from ..options.option import Declared, Lasting, Option, Options, alternatives, options_of
from .fields import Limited
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
    made: dict[str, Any] = {
        each.name: _setting(group, each) for each in options_of(group) if each.option is not None
    }
    text, _, _ = cleandoc(group.__doc__ or "").partition("\n\nArgs:")
    summary = text.partition("\n\nIn Python ")[0].replace("``", "`")
    model = create_model(group.__name__, __base__=SettingsModel, __doc__=summary, **made)
    model.makes = group
    return model


def _setting(group: type[Options], declared: Declared) -> tuple[Any, Any]:
    """Kind and field; a setting that is left out has the option's own default."""
    option = declared.option or Option()
    kind = _read(declared.kind, option, declared.default)
    if option.schema is not None:
        kind = Annotated[kind, WithJsonSchema(dict(option.schema))]
    examples = None if option.example is None else [option.example]
    described: Any = {"description": declared.text_in_file, "examples": examples}
    if _required(group, declared.name):
        return kind, Field(**described)
    shown = declared.default
    if shown in (None, {}, ()) or isinstance(shown, Options) or shown in _words(declared.kind):
        return kind | None, Field(default=None, **described)
    return kind, Field(default=shown, **described)


def _required(group: Any, name: str) -> bool:
    [of] = [each for each in fields(group) if each.name == name]
    return of.default is MISSING and of.default_factory is MISSING


def _words(kind: Any) -> list[Any]:
    """The words for a default, which only Python says: a file leaves the setting out."""
    kinds = alternatives(kind)
    return [
        word
        for each in kinds
        if get_origin(each) is Literal and set(kinds) - {each, NoneType}
        for word in get_args(each)
    ]


def _read(kind: Any, option: Option, default: Any) -> Any:
    """The kind as pydantic reads it from a file."""
    words = _words(kind)
    parts = [
        _read_one(each, option)
        for each in alternatives(kind)
        if each is not NoneType and not (get_origin(each) is Literal and words)
    ]
    return Union[tuple(parts)]  # noqa: UP007


def _read_one(kind: Any, option: Option) -> Any:
    origin, below = get_origin(kind), get_args(kind)
    if kind is Lasting:
        return Annotated[timedelta, Limited(option.limit)] if option.limit else timedelta
    if isinstance(kind, type) and issubclass(kind, Options):
        return Annotated[kind, OfOptions()]
    if origin is Mapping or origin is dict:
        # In Python some mappings may be a level deeper: a file states the first form.
        return dict[_read_one(below[0], Option()), _read_one(alternatives(below[1])[0], option)]  # type: ignore[misc]
    if origin is Sequence or origin is tuple:
        return tuple[_read_one(below[0], option), ...]  # type: ignore[misc]
    if option.limit is not None and kind in (int, float, str):
        return Annotated[kind, Limited(option.limit)]
    return kind
