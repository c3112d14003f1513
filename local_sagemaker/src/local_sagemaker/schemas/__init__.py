"""CloudFormation's own schemas of the emulated types, and a resource held against them.

An API knows properties, values and spellings that CloudFormation refuses: a stack that uses one
must fail here as it would there. `resource_types.json` is written from cfn-lint's copy of the
schemas (`tests/extract_schemas.py`); nothing of cfn-lint is needed at run time. `Check` also reads
the rules of templates and of requests (`template_shape.yaml`, `request_rules.yaml`).
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Schema = Mapping[str, Any]

_CUSTOM = "AWS::CloudFormation::CustomResource"
_CUSTOM_NAME = re.compile(r"(?=.{1,60}$)Custom::[\w@-]+", re.ASCII)
"""Whether the prefix counts is not said; here it does:
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requesttypes-create.html"""
_CUSTOM_SCHEMA: Schema = {
    "properties": {
        "ServiceToken": {"type": "string"},
        "ServiceTimeout": {"type": "integer", "minimum": 1, "maximum": 3600},
    },
    "required": ["ServiceToken"],
}
"""https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudformation-customresource.html"""


@functools.cache
def _schemas() -> dict[str, Schema]:
    text = Path(__file__).with_name("resource_types.json").read_text()
    schemas: dict[str, Schema] = json.loads(text)
    return {**schemas, _CUSTOM: _CUSTOM_SCHEMA}


def schema_of(type_name: str) -> Schema | None:
    """Give what is kept of a type's schema; None when the type has none."""
    return _schemas().get(type_name)


def violations(type_name: str, properties: Mapping[str, Any]) -> list[str]:
    """Say what CloudFormation would refuse, in its words; what a function will give is not judged.

    Examples
    --------
    >>> violations("AWS::SageMaker::Model", {"PrimaryContainer": {"image": "x"}})
    ['#/PrimaryContainer: extraneous key [image] is not permitted; the name is Image']
    """
    custom = type_name.startswith("Custom::")
    if custom and not _CUSTOM_NAME.fullmatch(type_name):
        return [
            f"#: the name of a custom type has up to 60 characters of a-z, A-Z, 0-9, _, @, -: {type_name}"
        ]
    schema = schema_of(_CUSTOM if custom else type_name)
    if schema is None:
        return []
    return list(Check(schema.get("definitions", {})).problems(schema, properties, "#"))


class Check:
    """A value's check against one schema, which may refer to these definitions."""

    def __init__(
        self, definitions: Mapping[str, Schema], *, judges_functions: bool = False
    ) -> None:
        self._definitions = definitions
        self._judges_functions = judges_functions

    def problems(self, schema: Schema, value: Any, path: str) -> Iterator[str]:
        """Find what is wrong with a value."""
        if "$ref" in schema:
            schema = self._definitions[schema["$ref"]]
        if _is_function(value) and not self._judges_functions:
            yield from self._branches_of_if(schema, value, path)
            return
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if kinds and not any(_fits(value, kind) for kind in kinds):
            expected = " or ".join(kind.capitalize() for kind in kinds)
            yield f"{path}: expected type: {expected}, found: {_found(value)}"
            return
        if isinstance(value, dict):
            yield from self._object(schema, value, path)
        elif isinstance(value, list):
            yield from self._array(schema, value, path)
        else:
            yield from _scalar(schema, value, path)
        for choice in ("anyOf", "oneOf"):
            branches = [list(self.problems(each, value, path)) for each in schema.get(choice, [])]
            if branches and all(branches):
                yield ", or ".join(dict.fromkeys(branch[0] for branch in branches))

    def _branches_of_if(self, schema: Schema, value: Any, path: str) -> Iterator[str]:
        name, argument = next(iter(value.items()))
        if name == "Fn::If" and isinstance(argument, list):
            for branch in argument[1:]:
                yield from self.problems(schema, branch, path)

    def _object(self, schema: Schema, value: Mapping[str, Any], path: str) -> Iterator[str]:
        named, by_pattern = schema.get("properties", {}), schema.get("patternProperties", {})
        for key, item in value.items():
            if key in named:
                yield from self.problems(named[key], item, f"{path}/{key}")
            elif by_pattern:
                for inner in by_pattern.values():
                    yield from self.problems(inner, item, f"{path}/{key}")
            elif schema.get("additionalProperties") is False:
                alike = [name for name in named if name.lower() == key.lower()]
                hint = f"; the name is {alike[0]}" if alike else ""
                yield f"{path}: extraneous key [{key}] is not permitted{hint}"
        if len(value) > schema.get("maxProperties", len(value)):
            yield f"{path}: expected maximum key count: {schema['maxProperties']}, found: {len(value)}"
        for key in schema.get("required", []):
            if key not in value:
                yield f"{path}: required key [{key}] not found"
        for key, others in schema.get("dependentRequired", {}).items():
            if key in value and not value.keys() >= set(others):
                yield f"{path}: with [{key}], [{', '.join(others)}] is required"
        for key, others in schema.get("dependentExcluded", {}).items():
            # Said once for a pair that excludes each other.
            for other in others:
                if key in value and other in value and key < other:
                    yield f"{path}: only one of [{key}, {other}] can be given"
        for rule, most in (("requiredXor", 1), ("requiredOr", None)):
            keys = schema.get(rule, [])
            given = sum(key in value for key in keys)
            if keys and (given == 0 or (most is not None and given > most)):
                wanted = "exactly" if most else "at least"
                yield f"{path}: {wanted} one of [{', '.join(keys)}] is required"

    def _array(self, schema: Schema, value: list[Any], path: str) -> Iterator[str]:
        first = schema.get("prefixItems", [])
        for number, item in enumerate(value):
            items = first[number] if number < len(first) else schema.get("items", {})
            yield from self.problems(items, item, f"{path}/{number}")
        if len(value) < schema.get("minItems", 0):
            yield f"{path}: expected minimum item count: {schema['minItems']}, found: {len(value)}"
        if len(value) > schema.get("maxItems", len(value)):
            yield f"{path}: expected maximum item count: {schema['maxItems']}, found: {len(value)}"


def _scalar(schema: Schema, value: Any, path: str) -> Iterator[str]:
    choices = [_text(choice) for choice in schema.get("enum", [])]
    if choices and _text(value) not in choices:
        yield f"{path}: {_text(value)} is not a valid enum value; it is one of {', '.join(choices)}"
    folded = [_text(choice).lower() for choice in schema.get("enumCaseInsensitive", [])]
    if folded and _text(value).lower() not in folded:
        yield f"{path}: {_text(value)} is not a valid enum value; it is one of {', '.join(folded)}"
    if isinstance(value, str) and not re.fullmatch(schema.get("pattern", ".*"), value, re.DOTALL):
        yield f"{path}: does not match pattern {schema['pattern']}"
    if _fits(value, "number"):
        number = float(_text(value))  # a whole number may be too large for one
        if "multipleOf" in schema and number % schema["multipleOf"]:
            yield f"{path}: {value} is not a multiple of {schema['multipleOf']}"
        if number < schema.get("minimum", number):
            yield f"{path}: {value} is not greater or equal to {schema['minimum']}"
        if number > schema.get("maximum", number):
            yield f"{path}: {value} is not less or equal to {schema['maximum']}"


def _is_function(value: Any) -> bool:
    if not isinstance(value, dict) or len(value) != 1:
        return False
    (name,) = value
    return name == "Ref" or str(name).startswith("Fn::")


def _fits(value: Any, kind: str) -> bool:
    """Say whether a value is of a JSON type, or converted by CloudFormation from or to text."""
    if kind in ("object", "array"):
        return isinstance(value, dict if kind == "object" else list)
    if isinstance(value, (dict, list)) or value is None:
        return False
    if kind == "boolean":
        return _text(value).lower() in ("true", "false")
    if kind in ("integer", "number"):
        try:
            number = float(_text(value))
        except ValueError:
            return False
        return kind == "number" or number.is_integer()
    return True


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _found(value: Any) -> str:
    """Name a value's type as CloudFormation does; of a plain value, give the value too."""
    if isinstance(value, (dict, list)):
        return "JSONObject" if isinstance(value, dict) else "JSONArray"
    return "Null" if value is None else f"String ({value})"
