"""The settings' JSON schema, from which editors complete and check the file."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from .option_models import duration_text, model_of
from .stack import Settings


class _Generator(GenerateJsonSchema):
    def encode_default(self, dft: Any) -> Any:
        """Durations as the file writes them, not in ISO 8601."""
        return duration_text(dft) if isinstance(dft, timedelta) else super().encode_default(dft)


def settings_json_schema() -> dict[str, Any]:
    """The JSON schema of a settings file, as ``endpoint.schema.json`` holds it.

    It carries the description, an example and the limits of every setting. What must hold between
    several settings is checked by :func:`load_settings` alone, but for "exactly one of".
    """
    schema = model_of(Settings).model_json_schema(schema_generator=_Generator)
    definitions = schema.pop("$defs")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of low-latency-endpoint",
        **{key: _tidy(value) for key, value in schema.items() if key != "title"},
        "$defs": {name: _tidy(value) for name, value in sorted(definitions.items())},
    }


def _tidy(node: Any) -> Any:
    """Leave out what editors would show as noise: titles, nulls and empty defaults."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = dict(node)
    if isinstance(node.get("title"), str):
        del node["title"]
    if node.get("default", 0) is None or node.get("default") == []:
        del node["default"]
    choices = [choice for choice in node.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:
        del node["anyOf"]
        node = {**choices[0], **node}
    elif choices:
        node["anyOf"] = choices
    if "patternProperties" in node:
        node["additionalProperties"] = False
    return {
        key: value if key in ("examples", "default", "enum", "required") else _tidy(value)
        for key, value in node.items()
    }


def merged(schema: JsonSchemaValue, definitions: dict[str, Any]) -> JsonSchemaValue:
    """A schema with what its ``$ref`` names."""
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    return {**definitions[name], **schema} if name else schema
