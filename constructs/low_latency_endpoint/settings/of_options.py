"""The settings of a group of options, made from the options' own fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import timedelta
from inspect import cleandoc
from types import NoneType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import AfterValidator, Discriminator, Field, GetCoreSchemaHandler, Tag, create_model
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
    model.other_forms = {name: model_of(form) for name, form in group.other_forms.items()}
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
    word = any(_is_word(each, shown) for each in alternatives(declared.kind))
    if word or shown in (None, {}, ()) or isinstance(shown, (Options, SettingsModel)):
        return kind | None, Field(default=None, **described)
    return kind, Field(default=shown, **described)


def _required(group: Any, name: str) -> bool:
    [of] = [each for each in fields(group) if each.name == name]
    return of.default is MISSING and of.default_factory is MISSING


def _is_word(kind: Any, default: Any) -> bool:
    """Whether a kind is the word for a default, which only Python says."""
    return get_origin(kind) is Literal and get_args(kind) == (default,)


def _read(kind: Any, option: Option, default: Any) -> Any:
    """The kind as pydantic reads it from a file."""
    kinds = [
        each for each in alternatives(kind) if each is not NoneType and not _is_word(each, default)
    ]
    parts = [_read_one(each, option) for each in kinds]
    if len(parts) == 1:
        return parts[0]
    tagged = [
        Annotated[part, Tag(_tag(isinstance(each, type)))]
        for each, part in zip(kinds, parts, strict=True)
    ]
    return Annotated[Union[tuple(tagged)], Discriminator(_tag_of)]  # noqa: UP007


def _tag(is_group: bool) -> str:
    return "#group" if is_group else "#value"


def _tag_of(value: Any) -> str:
    """A value, or a group in its place."""
    return _tag(isinstance(value, (Mapping, Options)))


def _read_one(kind: Any, option: Option) -> Any:
    origin, below = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _read_one(below[0], next(each for each in below if isinstance(each, Option)))
    if hasattr(kind, "written"):
        return Annotated[_read(kind.written, option, None), AfterValidator(kind._of_file)]
    if kind is Lasting:
        return Annotated[timedelta, Limited(option.limit)] if option.limit else timedelta
    if isinstance(kind, type) and issubclass(kind, Options):
        return Annotated[kind, OfOptions()]
    if origin is Mapping or origin is dict:
        # In Python some mappings may be a level deeper: a file states the first form.
        return dict[_read_one(below[0], Option()), _read_one(alternatives(below[1])[0], option)]  # type: ignore[misc]
    if origin is Sequence or origin is tuple:
        items: Any = tuple[_read_one(below[0], option), ...]  # type: ignore[misc]
        return Annotated[items, Field(strict=False)]
    if option.limit is not None and kind in (int, float, str):
        return Annotated[kind, Limited(option.limit)]
    return kind
