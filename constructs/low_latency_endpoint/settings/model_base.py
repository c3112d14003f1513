"""The base of all settings models: frozen, no unknown keys, every mistake at once, coded and with its place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
)
from pydantic import model_validator as _model_validator
from pydantic.fields import FieldInfo

from ..errors import MOST_SHOWN, ConfigurationError, ErrorRule, did_you_mean
from ..errors.findings import Finding, Place, finding, shown
from ..facts.paths import OUTSIDE
from ..options.option import Options, first_paragraph, options_of, parts_of, read, texts_of
from ..options.rules import MISSING_SETTING, NOT_A_CHOICE, UNKNOWN_SETTING, WRONG_KIND


class BreachError(ValueError):
    """Coded errors of one value, kept by pydantic in the ``ctx`` of its own error."""

    def __init__(self, findings: Iterable[Finding], sound_part: Any = None) -> None:
        self.findings = list(findings)
        self.sound_part = sound_part  # options without the values that are wrong
        super().__init__("\n".join(str(error) for _, error in self.findings))


def breach(
    rule: ErrorRule, *, got: object, allowed: str, what: str = "", fix: str = ""
) -> BreachError:
    """One breach of a rule."""
    return BreachError([finding(rule, got=got, allowed=allowed, what=what, fix=fix)])


_KINDS = {  # pydantic's error types and the kind of value that each asks for
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "dict_type": "a mapping of keys to values",
    "mapping_type": "a mapping of keys to values",
    "tuple_type": "a list",
    "list_type": "a list",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
}
_MOST_SUGGESTIONS = MOST_SHOWN  # comparing names takes its time, and no more of them are shown
_DEEPEST = 4  # groups inside of groups
_SWITCHES = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}


class SettingsModel(BaseModel):
    """Reads a group of options from a file; ``of_options`` makes a subclass of each group.

    A key without a value counts as left out, so that a section whose lines are all commented out
    means its default.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, populate_by_name=False
    )

    other_forms: ClassVar[Mapping[str, type[SettingsModel]]] = {}  # of a setting with choices
    makes: ClassVar[type[Options]]  # of which it makes an object
    whole: ClassVar[Collection[str]] = ()  # settings of which a sound part says nothing
    keys: ClassVar[Mapping[str, str]] = {}  # in the file, of options with another name in Python
    part: ClassVar[Callable[[], type[BaseModel]]]  # the same, in which nothing is required

    @_model_validator(mode="wrap")
    @classmethod
    def _find_every_mistake(
        cls, given: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        if isinstance(given, cls.makes):
            return given  # type: ignore[return-value]
        if not isinstance(given, Mapping):
            raise breach(
                WRONG_KIND,
                got=given,
                allowed="a mapping with "
                + ", ".join(str(cls.key_of(option)) for option in cls.model_fields),
                fix=_as_mapping(cls, given),
            )
        given = {key: value for key, value in given.items() if value is not None}
        findings: list[Finding] = []
        wrong = set[str]()
        try:
            model: BaseModel = handler(given)
        except ValidationError as error:
            findings.extend(_coded(cls, error))
            sound, wrong = _sound(given, error, cls.whole)
            model = cls.part().model_validate(sound, context=info.context)
        names = [
            name
            for name, model_field in cls.model_fields.items()
            if name in model.model_fields_set or (model_field.validate_default and not wrong)
        ]
        stated = {name: getattr(model, name) for name in names}
        unsound = [name for name in cls.model_fields if cls.key_of(name) in wrong]
        made, rules = read(cls.makes, stated, unsound)
        findings.extend(
            ((*map(cls.key_of, place[:1]), *place[1:]), error) for place, error in rules
        )
        if not findings:
            findings.extend(_led_outside(cls.makes, stated, info.context or {}))
        if findings:
            raise BreachError(findings, made)
        return made  # type: ignore[return-value]

    @classmethod
    def key_of(cls, name: str | int) -> str | int:
        """What the file calls an option: its name, but for a keyword of Python."""
        return cls.keys.get(str(name), name)


def _led_outside(
    group: type[Options], stated: Mapping[str, Any], context: Mapping[str, Any]
) -> Iterator[Finding]:
    """The files of a stated folder that, by links, lie outside of what may be read."""
    within = context.get("within")
    for each in options_of(group):
        if within is None or each.option is None or each.option.below is None:
            continue
        folder, default = each.option.below
        file = stated.get(each.name) or default
        if stated.get(folder) and not within(Path(stated[folder], file)):
            place = each.name if each.name in stated else folder
            yield finding(OUTSIDE, place, got=file, allowed="a path within the repository")


def _sound(
    given: Mapping[str, Any], error: ValidationError, whole: Collection[str]
) -> tuple[Mapping[str, Any], set[str]]:
    """What is sound, with the sound part of each group, and the names of what is not."""
    parts: dict[Place, Any] = {}
    wrong: set[str] = set()
    for detail in error.errors(include_url=False):
        place = tuple(part for part in detail["loc"] if not _is_mark(part))
        part = getattr(detail.get("ctx", {}).get("error"), "sound_part", None)
        if part is None or place[0] in whole:
            wrong.add(str(detail["loc"][0]))
        else:
            parts[place] = part
    return {
        name: _with_parts(
            each, {place[1:]: part for place, part in parts.items() if place[0] == name}
        )
        for name, each in given.items()
        if name not in wrong
    }, wrong


def _with_parts(given: Any, parts: Mapping[Place, Any]) -> Any:
    """The value, in which some groups are replaced by their sound parts."""
    if () in parts:
        return parts[()]
    if not parts:
        return given
    items = given.items() if isinstance(given, Mapping) else enumerate(given)
    made = {
        name: _with_parts(
            each, {place[1:]: part for place, part in parts.items() if place[0] == name}
        )
        for name, each in items
    }
    return made if isinstance(given, Mapping) else list(made.values())


def _coded(cls: type[SettingsModel], error: ValidationError) -> Iterator[Finding]:
    """pydantic's findings in one model as coded errors."""
    for number, detail in enumerate(error.errors(include_url=False)):
        parts = detail["loc"]
        own_key = detail["type"] in ("extra_forbidden", "missing")  # then the last part is a key
        place: Place = tuple(
            part
            for index, part in enumerate(parts)
            if not _is_mark(part) or (own_key and index == len(parts) - 1)
        )
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, BreachError):
            for below, coded in cause.findings:
                yield (*place, *below), coded
        else:
            yield (
                place,
                _translated(
                    cls,
                    place,
                    detail["type"],
                    detail.get("ctx", {}),
                    detail["input"],
                    suggest=number < _MOST_SUGGESTIONS,
                ),
            )


def _is_mark(part: str | int) -> bool:
    """Whether pydantic put this into a place: ``[key]``, and our tags of unions (``#...``)."""
    return isinstance(part, str) and (part.startswith("#") or part == "[key]")


def _translated(
    cls: type[SettingsModel],
    place: Place,
    kind: str,
    context: Mapping[str, Any],
    got: Any,
    *,
    suggest: bool,
) -> ConfigurationError:
    name = str(place[-1]) if place else ""
    fields = {cls.key_of(option): field for option, field in cls.model_fields.items()}
    field = fields.get(str(place[0])) if place else None
    if kind == "extra_forbidden":
        return _unknown(cls, name, suggest)
    if kind == "missing":
        meaning = _meaning(cls, field) if field else ""
        return _missing(name, field, meaning, cls.makes.left_out.get(name, ""))
    if kind in ("literal_error", "enum"):
        choices = context.get("expected", "").replace("'", "").replace(" or ", ", ").split(", ")
        choices = [{"True": "true", "False": "false"}.get(choice, choice) for choice in choices]
        given = shown(got)
        form = cls.other_forms.get(name)
        other = _example(form) if form else ""
        if form is not None and given.lower() in form.model_fields:
            fix = f"Write {other}."
        elif "true" in choices and given.lower() in _SWITCHES:
            fix = f"Write {_SWITCHES[given.lower()]}."
        else:
            fix = did_you_mean(given, choices)
        return NOT_A_CHOICE.error(
            got=given, allowed=", ".join(filter(None, [*choices, other])), fix=fix
        )
    allowed = _KINDS.get(kind) or (_meaning(cls, field) if field else "")
    fix = ""
    if kind.startswith("bool") and isinstance(got, str):
        switch = _SWITCHES.get(got.lower())
        fix = f"Write {switch}." if switch else "Write true or false, without quotes."
    elif kind in ("tuple_type", "list_type"):
        examples = field.examples if field and len(place) == 1 else []
        such = f", such as {_inline(examples[0])}" if examples else ""
        fix = f"Write a list, even of one{such}: begin each entry with '- '."
    elif kind == "string_type" and isinstance(got, bool):
        fix = f'Put it in quotes: "{shown(got)}".'
    elif kind in ("int_type", "float_type"):
        example = [_inline(each) for each in (field.examples or [] if field else [])[:1]]
        allowed = ", such as ".join([allowed, *example])
        if isinstance(got, str):
            fix = "Write the number alone, without quotes or a unit."
    given = shown(got)
    if isinstance(got, str) and kind.startswith(("bool", "int", "float")):
        given = f'"{given}", which is text'  # true and 5 look like what is wanted
    return WRONG_KIND.error(got=given, allowed=allowed, fix=fix)


def _unknown(cls: type[SettingsModel], name: str, suggest: bool) -> ConfigurationError:
    known = [str(cls.key_of(option)) for option in cls.model_fields]
    fix = (_place_elsewhere(name) or did_you_mean(name, known)) if suggest else ""
    return UNKNOWN_SETTING.error(got=shown(name), allowed=", ".join(known), fix=fix)


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
    groups: list[tuple[tuple[str, ...], type[Options]]] = [((), whole)]
    for path, group in groups:  # grows
        under = f"under {'.'.join(path)}" if path else "at the top level"
        for option in options_of(group):
            if option.option is None:
                continue
            places.setdefault(option.name, []).append(under)
            inner = [part for part in parts_of(option.kind) if _is_group(part)]
            below = "endpoints.<name>" if option.name == "endpoints" else option.name
            groups += [((*path, below), part) for part in inner if len(path) < _DEEPEST]
    return {name: list(dict.fromkeys(under)) for name, under in places.items()}


def _is_group(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Options)


def _as_mapping(cls: type[SettingsModel], given: Any) -> str:
    """What to write where a plain value stands for a group."""
    if cls.makes.plain_value and isinstance(given, (str, int, float)):
        return f"Write {{{cls.makes.plain_value}: {shown(given)}}}."
    example = _example(cls)
    return f"Write a mapping, such as {example}." if example else ""


def _example(cls: type[SettingsModel]) -> str:
    """The group with its first setting that has an example."""
    for name, field in cls.model_fields.items():
        if field.examples:
            return _inline({cls.key_of(name): field.examples[0]})
    return ""


def _meaning(cls: type[SettingsModel], field: FieldInfo) -> str:
    """What the option says of itself."""
    [name] = [name for name, each in cls.model_fields.items() if each is field]
    return first_paragraph(texts_of(cls.makes).get(name, ""))  # type: ignore[arg-type]


def _missing(name: str, field: FieldInfo | None, meaning: str, left_out: str) -> ConfigurationError:
    examples = (field.examples or []) if field else []
    fix = f"Add {name}" + (f", such as {name}: {_inline(examples[0])}." if examples else ".")
    fix += f" {left_out}" if left_out else ""
    return MISSING_SETTING.error(
        got="nothing", allowed=meaning or "a value", what=f"{name} is missing or empty", fix=fix
    )


def _inline(value: Any) -> str:
    """An example in YAML's flow style."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_inline(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_inline(item) for item in value) + "]"
    return shown(value)
