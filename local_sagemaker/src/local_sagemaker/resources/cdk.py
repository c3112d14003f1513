"""AWS::CDK::*."""

from __future__ import annotations

from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated


@emulated
class Metadata(ResourceType):
    """CDK's own usage analytics: nothing to create, here as at AWS."""

    type_name = "AWS::CDK::Metadata"
    properties = frozenset({"Analytics"})

    def create(self, at: Place, properties: Properties) -> Created:
        return Created(at.generated_name(), {})

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        return None

    def delete(self, at: Place, existing: Existing) -> None:
        return None
