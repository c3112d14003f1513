"""Holds a template against `template_shape.yaml`: its sections, its quotas, and the functions in it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ..protocols import ServiceError
from ..schemas import Check, Schema

_SHAPES = yaml.safe_load(Path(__file__).with_name("template_shape.yaml").read_text())
_DEFINITIONS: Mapping[str, Schema] = _SHAPES["definitions"]
_FUNCTIONS: Mapping[str, Schema] = _SHAPES["functions"]


def check_template(template: Mapping[str, Any]) -> None:
    """Refuse what CloudFormation refuses of a template by itself, in its words where they are known."""
    _check_values(template, "", 0)
    if unknown := sorted(set(template) - set(_SHAPES["template"]["properties"])):
        raise ServiceError(
            f"Template format error: Invalid template property or properties [{', '.join(unknown)}]"
        )
    _refuse(_ShapeCheck(template).problems(_SHAPES["template"], template, ""))


def check_arguments(template: Mapping[str, Any], name: str, argument: Any) -> None:
    """Hold a function's arguments against its shape once more, when those in them are evaluated."""
    check = _ShapeCheck(template, evaluated=True)
    _refuse(check.problems(_FUNCTIONS[name], in_full(name, argument), name))


def _refuse(problems: Iterator[str]) -> None:
    for problem in problems:
        worded = problem.startswith("Template ")
        raise ServiceError(problem if worded else f"Template format error: {problem}")


_DEEPEST = 100
"""AWS names no limit; nobody nests deeper, and what walks through a template is recursive."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def _check_values(value: Any, path: str, depth: int) -> None:
    """Refuse what no document in JSON has, or none that somebody means."""
    if depth > _DEEPEST:
        raise ServiceError(f"Template format error: it is nested deeper than {_DEEPEST} levels")
    if value is None:
        raise ServiceError(f"[{path}] 'null' values are not allowed in templates")
    if isinstance(value, dict):
        for key, item in value.items():
            _check_values(key, f"{path}/{key}", depth)
            _check_values(item, f"{path}/{key}", depth + 1)
            if not isinstance(key, str):
                raise ServiceError(f"Template format error: [{path}/{key}] the key is no string")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            _check_values(item, f"{path}/{number}", depth + 1)
    elif not _is_plain(value):
        raise ServiceError(f"Template format error: [{path}] is no text or number of JSON")


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return not _SURROGATE.search(value)  # JSON can spell one, and no text has it
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


class _ShapeCheck(Check):
    """A template's check; once arguments are `evaluated`, no map is a function any more."""

    def __init__(self, template: Mapping[str, Any], *, evaluated: bool = False) -> None:
        super().__init__(_DEFINITIONS, judges_functions=True)
        self._template = template
        self._evaluated = evaluated

    def problems(self, schema: Schema, value: Any, path: str) -> Iterator[str]:
        """Find what is wrong with a value, in the words of what it stands in."""
        schema = {**_DEFINITIONS.get(schema.get("$ref", ""), {}), **schema}
        schema.pop("$ref", None)
        name = None if self._evaluated else _function_in(value, schema)
        if name is None:
            problems = [*super().problems(schema, value, path), *self._own(schema, value, path)]
        elif name in schema.get("functions", ()):
            argument = in_full(name, value[name])
            problems = [*self.problems(_FUNCTIONS[name], argument, f"{path}/{name}")]
        else:
            problems = [_misplaced(name, path)]
        worded = [problem for problem in problems if problem.startswith("Template ")]
        if problems and "words" in schema and not worded:
            words = schema["words"].replace("{path}", path)
            worded = [words.replace("{value}", str(value)[:100])]
        yield from (worded or problems)[:1]

    def _own(self, schema: Schema, value: Any, path: str) -> Iterator[str]:
        """Find what a resource's schema never says."""
        kinds = schema.get("type", ())
        if "name" in kinds and not isinstance(value, (str, list)):
            yield f"{path}: expected a name"
        if "function" in kinds:
            yield f"{path}: expected one of {', '.join(schema['functions'])}"
        if isinstance(value, dict):
            yield from self._keys(schema, value, path)
        if not isinstance(value, str):
            return
        if len(value.encode()) > schema.get("maxLength", math.inf):
            yield f"{path}: expected maxLength: {schema['maxLength']}"
        if "named" in schema and value not in self._template.get(schema["named"], {}):
            yield schema["missing"].replace("{value}", value)

    def _keys(self, schema: Schema, value: Mapping[str, Any], path: str) -> Iterator[str]:
        most = schema.get("maxProperties", math.inf)
        if len(value) > most:
            what = path.strip("/").lower()
            yield f"Template format error: Number of {what}, {len(value)}, is greater than maximum allowed, {most}"
        for key in value if "propertyNames" in schema else ():
            yield from self.problems(schema["propertyNames"], key, path)


def _function_in(value: Any, schema: Schema) -> str | None:
    """Give the name of the function that a value is; `Condition` is one only among conditions."""
    is_section = schema.get("type") == "object" and "functions" not in schema
    if is_section or not isinstance(value, dict) or len(value) != 1:
        return None
    (name,) = value
    known = name in ("Ref", *(["Condition"] if "Condition" in schema.get("functions", ()) else []))
    return name if known or name.startswith("Fn::") else None


def in_full(name: str, argument: Any) -> Any:
    """Write out the short forms: `Resource.Attribute`, a text without values of its own."""
    if not isinstance(argument, str):
        return argument
    return {"Fn::GetAtt": argument.split(".", 1), "Fn::Sub": [argument]}.get(name, argument)


def _misplaced(name: str, path: str) -> str:
    if "::".join(name.split("::")[:2]) in _SHAPES["with_transform"]:
        return f"Template error: {name} needs a transform, and none is emulated by the local AWS"
    if name in _FUNCTIONS:
        return f"{path}: {name} cannot stand here"
    known = ", ".join(_FUNCTIONS)
    return f"Template error: Encountered unsupported function: {name} Supported functions are: [{known}]"
