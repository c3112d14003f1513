"""Reads the table of the emulated types."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import yaml

from .calls import By, Call
from .resource_type import Members, ResourceType, Setting, Tags
from .translations import FUNCTIONS


class _Loader(yaml.SafeLoader):
    """YAML with `!same name name` for `{name: "{name}"}`, and `!function field field`."""


def _tagged(loader: _Loader, name: str, node: yaml.ScalarNode) -> Any:
    fields = node.value.split()
    if name == "same":
        return {field: f"{{{field}}}" for field in fields}
    return By(FUNCTIONS[name], *fields)


_Loader.add_multi_constructor("!", _tagged)
_CALLS = (
    "add",
    "creates",
    "deletes",
    "drift",
    "listed",
    "put",
    "remove",
    "reset",
    "tag",
    "untag",
    "updates",
)
_SETS = ("also_replaces", "in_place", "named_within")


def _call(written: str | dict[str, dict[str, Any]]) -> Call:
    if isinstance(written, str):
        return Call(written)
    ((operation, arguments),) = written.items()
    return Call(operation, **arguments)


def _read(row: dict[str, Any]) -> dict[str, Any]:
    read = {name: _call(value) if name in _CALLS else value for name, value in row.items()}
    read |= {name: frozenset(row[name]) for name in _SETS if name in row}
    if "parts" in row:
        read["parts"] = tuple(
            (Members if "add" in part else Setting)(of=of, **_read(part))
            for names, part in row["parts"].items()
            for of in names.split(", ")
        )
    if "tags" in row:
        read["tags"] = _tags(row["tags"])
    if "reads" in row:
        read["reads"] = tuple(_call(operation) for operation in row["reads"])
    return read


def _tags(row: dict[str, Any]) -> Tags:
    if "tag" in row:
        return Tags(**_read(row))
    ((operation, resource),) = row.items()
    tag, untag = Call(operation, **resource), Call(f"un{operation}", **resource)
    return Tags(tag, untag)


def _type(type_name: str, row: dict[str, Any]) -> ResourceType:
    module, _, name = row.pop("class", "resource_type.ResourceType").partition(".")
    kind = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    made: ResourceType = kind(type_name, **_read(row))
    return made


_TABLE = yaml.load(Path(__file__).with_name("table.yaml").read_text(), Loader=_Loader)
TYPES = {name: _type(name, row) for name, row in _TABLE.items() if name.startswith("AWS::")}
"""Every emulated type by name."""


def find_type(type_name: str) -> ResourceType | None:
    """Give the type's handler, or None when the type is not emulated."""
    custom = type_name.startswith("Custom::")
    return TYPES.get("AWS::CloudFormation::CustomResource" if custom else type_name)
