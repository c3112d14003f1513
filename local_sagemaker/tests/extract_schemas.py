"""What is kept of CloudFormation's schemas: the emulated types, and what a check reads.

    python local_sagemaker/tests/extract_schemas.py      # writes resource_types.json anew

The file itself says which properties of a type are honoured. For another one, write
`"Name": {}` among the type's properties there (for another type, `"AWS::...": {"properties": {}}`)
and run `make docs`: the rest follows from the schema.

The source is cfn-lint's copy of the provider schemas. It is read when the library is worked on,
never at run time: where cfn-lint keeps them is its own affair and has changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from local_sagemaker import schemas
from local_sagemaker.resources.table import TYPES

FILE = Path(schemas.__file__).with_name("resource_types.json")
# Custom resources take any property; the CDK's metadata resource takes none but its own.
_FREE = frozenset({"AWS::CDK::Metadata", "AWS::CloudFormation::CustomResource"})
# Those of a nested stack are its template's outputs.
_OTHER_ATTRIBUTES = frozenset({"AWS::CloudFormation::Stack"})
# No patterns and lengths: written for Java's engine, or the same as the API's, which has its say.
_CHECKED = (
    "dependentExcluded",
    "enum",
    "enumCaseInsensitive",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "required",
    "requiredOr",
    "requiredXor",
    "type",
)
_NAMED = ("patternProperties", "properties")
# A longer list of values is that of the instance types: it grows monthly, and the API's model,
# against which every request is held, has it too.
_LONGEST_ENUM = 100
_REFERENCE = "#/definitions/"


def extracted() -> dict[str, Any]:
    """Give the emulated types' schemas by type name."""
    from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

    found = {}
    for name in sorted(set(TYPES) - _FREE):
        kept = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", name)
        found[name] = _resource(kept.schema, name)
        if name not in _OTHER_ATTRIBUTES:
            found[name]["attributes"] = sorted(kept.get_atts)
        identifier = [path.split("/")[-1] for path in kept.schema["primaryIdentifier"]]
        if {*identifier} <= {*found[name]["properties"]}:
            found[name]["identifier"] = identifier
    return found


def written(schemas: Mapping[str, Any]) -> str:
    """Write the schemas, one definition a line: readable as a difference, and small."""
    lines = []
    for name, schema in schemas.items():
        parts = [
            f"  {json.dumps(part)}: {json.dumps(schema[part], sort_keys=True)}"
            for part in sorted(schema)
            if part != "definitions"
        ]
        inner = [
            f"   {json.dumps(key)}: {json.dumps(value, sort_keys=True)}"
            for key, value in sorted(schema.get("definitions", {}).items())
        ]
        if inner:
            parts.append('  "definitions": {\n' + ",\n".join(inner) + "\n  }")
        lines.append(f" {json.dumps(name)}: {{\n" + ",\n".join(parts) + "\n }")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _resource(schema: Mapping[str, Any], type_name: str) -> dict[str, Any]:
    """Keep the properties that are honoured, and the definitions that these reach."""
    honoured = TYPES[type_name].properties
    own = {**schema, "properties": {k: v for k, v in schema["properties"].items() if k in honoured}}
    result = _kept(own)
    fixed = {path.split("/")[2] for path in schema.get("createOnlyProperties", [])}
    if fixed & honoured:
        result["createOnly"] = sorted(fixed & honoured)
    definitions: dict[str, Any] = {}
    waiting = _references(result)
    while waiting:
        name = waiting.pop()
        if name not in definitions:
            definitions[name] = _kept(schema["definitions"][name])
            waiting |= _references(definitions[name])
    return {**result, "definitions": definitions} if definitions else result


def _kept(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    if "$ref" in schema:
        return {"$ref": schema["$ref"].removeprefix(_REFERENCE)}
    result = {key: schema[key] for key in _CHECKED if key in schema}
    if len(result.get("enum", ())) > _LONGEST_ENUM:
        del result["enum"]
    if schema.get("additionalProperties") is False:
        result["additionalProperties"] = False
    for key in _NAMED:
        if key in schema:
            result[key] = {name: _kept(inner) for name, inner in schema[key].items()}
    if "items" in schema:
        result["items"] = _kept(schema["items"])
    for key in ("anyOf", "oneOf"):
        branches = [_kept(branch) for branch in schema.get(key, [])]
        if branches and all(branches):  # a branch that says nothing accepts everything
            result[key] = branches
    return result


def _references(schema: Any) -> set[str]:
    if isinstance(schema, Mapping):
        if isinstance(schema.get("$ref"), str):
            return {schema["$ref"]}
        return set().union(*(_references(inner) for inner in schema.values()))
    if isinstance(schema, list):
        return set().union(*(_references(inner) for inner in schema))
    return set()


if __name__ == "__main__":
    FILE.write_text(written(extracted()))
