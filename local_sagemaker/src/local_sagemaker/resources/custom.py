"""AWS::CloudFormation::CustomResource and Custom::*."""

from __future__ import annotations

from typing import Any

from ..custom_resources import send
from .properties import as_text
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated


@emulated
class CustomResource(ResourceType):
    """A resource that a function of the stack looks after; see `custom_resources`."""

    type_name = "AWS::CloudFormation::CustomResource"
    properties = frozenset({"ServiceToken"})
    replaces = frozenset({"ServiceToken"})

    def honours(self, name: str) -> bool:
        """Every property is honoured: all of them go to the function."""
        return True

    def create(self, at: Place, properties: Properties) -> Created:
        answer = send(at, "Create", {"ResourceProperties": _texts(properties)})
        return Created(answer.physical_id, answer.data)

    def update(self, at: Place, existing: Existing, properties: Properties) -> Created:
        answer = send(
            at,
            "Update",
            {
                "ResourceProperties": _texts(properties),
                "OldResourceProperties": _texts(existing.properties),
                "PhysicalResourceId": existing.physical_id,
            },
        )
        return Created(answer.physical_id, answer.data)

    def delete(self, at: Place, existing: Existing) -> None:
        send(
            at,
            "Delete",
            {
                "ResourceProperties": _texts(existing.properties),
                "PhysicalResourceId": existing.physical_id,
            },
        )


def _texts(value: Any) -> Any:
    """CloudFormation hands every scalar to the function as text."""
    if isinstance(value, dict):
        return {key: _texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_texts(item) for item in value]
    return as_text(value)
