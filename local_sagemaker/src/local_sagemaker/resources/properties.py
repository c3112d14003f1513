"""From a template's properties to an API call's parameters, refusing what would get lost.

CloudFormation's property names and the service APIs' parameter names are the same but for case, so
botocore's shapes are enough to translate one to the other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from botocore.model import Shape


class PropertyNotEmulated(Exception):
    """A property that no part of the local AWS would honour; `path` is below the resource's own."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def call(client: Any, operation: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Call an operation with resolved properties, named as in the template or as in the API."""
    name = client.meta.method_to_api_mapping[operation]
    shape = client.meta.service_model.operation_model(name).input_shape
    return getattr(client, operation)(**coerce(shape, properties, ""))


def coerce(shape: Shape, value: Any, path: str) -> Any:
    """Give a value the types and the spelling that an API shape asks for."""
    kind = shape.type_name
    if kind == "structure":
        return _structure(shape, value, path)
    if kind == "list":
        items = value if isinstance(value, list) else [value]
        return [coerce(shape.member, item, path) for item in items]
    if kind == "map":
        if isinstance(value, list):
            value = {item["Key"]: item["Value"] for item in value}
        return {key: coerce(shape.value, item, f"{path}.{key}") for key, item in value.items()}
    if kind in ("integer", "long"):
        return int(float(value))
    if kind in ("float", "double"):
        return float(value)
    if kind == "boolean":
        return as_bool(value)
    if kind == "string":
        return as_text(value)
    return value


def _structure(shape: Shape, value: Any, path: str) -> dict[str, Any]:
    members = {name.lower(): name for name in shape.members}
    result = {}
    for key, item in value.items():
        where = f"{path}.{key}" if path else key
        # KMS says TagKey and TagValue.
        member = members.get(key.lower()) or members.get(f"tag{key.lower()}")
        if member is None:
            raise PropertyNotEmulated(where)
        if item is not None:
            result[member] = coerce(shape.members[member], item, where)
    return result


def as_bool(value: Any) -> bool:
    """Read a template's boolean, which may be written as text."""
    return value if isinstance(value, bool) else str(value).lower() == "true"


def as_text(value: Any) -> str:
    """Write a template's value as text; documents (policies) become JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, (dict, list)) else str(value)


def agrees(stated: Any, found: Any) -> bool:
    """Say whether a service has what is stated: it adds members, and writes numbers its own way."""
    if isinstance(stated, dict) and isinstance(found, dict):
        return all(agrees(value, found.get(name)) for name, value in stated.items())
    if isinstance(stated, list) and isinstance(found, list):
        return len(stated) == len(found) and all(map(agrees, stated, found))
    try:
        return float(stated) == float(found)
    except (TypeError, ValueError):
        return as_text(stated) == as_text(found)


def only(properties: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: properties[name] for name in names if properties.get(name) is not None}


def without(properties: Mapping[str, Any], *names: str | None) -> dict[str, Any]:
    return {name: value for name, value in properties.items() if name not in names}


def tag_list(tags: Any) -> list[dict[str, str]]:
    """Give tags as AWS's list of Key and Value, whichever of the two forms the template has."""
    if isinstance(tags, Mapping):
        return [{"Key": key, "Value": as_text(value)} for key, value in tags.items()]
    return [{"Key": tag["Key"], "Value": as_text(tag["Value"])} for tag in tags or []]
