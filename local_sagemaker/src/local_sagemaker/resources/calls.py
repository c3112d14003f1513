"""Operations of AWS's services as a table writes them, and a template's properties as their parameters.

CloudFormation's property names and the service APIs' parameter names are the same but for case, so
botocore's shapes are enough to translate one to the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from botocore.model import Shape

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?")


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
    if isinstance(stated, str) and isinstance(found, str):
        return stated == found
    texts = as_text(stated), as_text(found)
    if all(map(_NUMBER.fullmatch, texts)):
        return Decimal(texts[0]) == Decimal(texts[1])
    return texts[0] == texts[1]


def only(properties: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: properties[name] for name in names if properties.get(name) is not None}


def without(properties: Mapping[str, Any], *names: str | None) -> dict[str, Any]:
    return {name: value for name, value in properties.items() if name not in names}


def tag_list(tags: Any) -> list[dict[str, str]]:
    """Give tags as AWS's list of Key and Value, whichever of the two forms the template has."""
    if isinstance(tags, Mapping):
        return [{"Key": key, "Value": as_text(value)} for key, value in tags.items()]
    return [{"Key": tag["Key"], "Value": as_text(tag["Value"])} for tag in tags or []]


Known = Mapping[str, Any]
"""What arguments are made of: a resource's properties and attributes, the answer to its creation,
`name`, `account`, `region`, and under "" the physical ID."""

_FIELD = re.compile(r"\{([\w.]*)(?::([^}]*))?\}")


class By:
    """A value that a function makes of fields; nothing where the first of them is not there."""

    def __init__(self, function: Callable[..., Any], *fields: str) -> None:
        self.function = function
        self.fields = fields


class OperationCall:
    """An operation with what it is given beside the properties that have its parameters' names.

    An argument is text with fields, `"{RouteTableId}|{State:ENABLED}"`, where `{}` is the physical
    ID, ":" comes before what stands for a missing value, and the field of a list is that of each
    item; of a field alone it is the field's value. Or it is a list or mapping of such, `By` a
    function, or any other value as it is; None leaves a parameter out.
    """

    def __init__(self, operation: str, /, **arguments: Any) -> None:
        self.operation = operation
        self.arguments = arguments
        self.fields = frozenset(_fields(arguments))

    def takes(self, client: Any, name: str) -> bool:
        """Say whether a property is an argument, or is in one."""
        left_out = {name.lower() for name, value in self.arguments.items() if value is None}
        free = {member.lower() for member in _members(client, self.operation)} - left_out
        return name.lower() in free or name in {field.split(".")[0] for field in self.fields}

    def run(self, client: Any, known: Known, properties: Known) -> dict[str, Any]:
        self._refuse_lost(properties)
        filled_in = {name: filled(value, known) for name, value in self.arguments.items()}
        arguments = {
            name: value
            for name, value in filled_in.items()
            if value is not None or self.arguments[name] is None
        }
        free = {name.lower() for name in _members(client, self.operation)}
        free -= {name.lower() for name in arguments}
        given = {name: value for name, value in properties.items() if name.lower() in free}
        return call(client, self.operation, {**given, **arguments})

    def _refuse_lost(self, properties: Known) -> None:
        """Refuse the parts of a property of which the arguments have others."""
        for name in {field.split(".")[0] for field in self.fields} - self.fields:
            taken = {field.split(".")[1] for field in self.fields if field.startswith(f"{name}.")}
            value = properties.get(name)
            if isinstance(value, dict) and (lost := sorted(set(value) - taken)):
                raise PropertyNotEmulated(f"{name}.{', '.join(lost)}")


def _members(client: Any, operation: str) -> list[str]:
    name = client.meta.method_to_api_mapping[operation]
    shape = client.meta.service_model.operation_model(name).input_shape
    return list(shape.members) if shape else []


def _fields(value: Any) -> Iterator[str]:
    if isinstance(value, By):
        yield from value.fields
    elif isinstance(value, str):
        yield from (match[1] for match in _FIELD.finditer(value))
    elif isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _fields(inner)


def filled(value: Any, known: Known) -> Any:
    """Fill in the fields of an argument; None where one of them is missing."""
    if isinstance(value, By):
        first, *more = (_found(known, field) for field in value.fields)
        return None if first is None else value.function(first, *more)
    if isinstance(value, dict):
        pairs = {name: filled(inner, known) for name, inner in value.items()}
        return {name: inner for name, inner in pairs.items() if inner is not None}
    if isinstance(value, list):
        return [item for inner in value if (item := filled(inner, known)) is not None]
    if not isinstance(value, str):
        return value
    if alone := _FIELD.fullmatch(value):
        return _or(alone, known)
    texts = [_or(match, known) for match in _FIELD.finditer(value)]
    if None in texts:
        return None
    return _FIELD.sub(lambda match: str(_or(match, known)), value)


def _or(field: re.Match[str], known: Known) -> Any:
    value = _found(known, field[1])
    return field[2] if value is None else value


def _found(known: Known, path: str) -> Any:
    value: Any = known
    for part in path.split("."):
        if isinstance(value, list) and not part.isdigit():
            value = [item.get(part) for item in value]
        elif isinstance(value, list):
            value = value[int(part)] if int(part) < len(value) else None
        else:
            value = value.get(part) if isinstance(value, Mapping) else None
    return value
