"""The two templates of an update, with what CloudFormation does with each resource of an endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from ..errors.frozen import dataclass
from .resource_changes import Resource, ResourceChange, ResourceEffect, Template, changes_of

ENDPOINT = "AWS::SageMaker::Endpoint"
CONFIGURATION = "AWS::SageMaker::EndpointConfig"
MODEL = "AWS::SageMaker::Model"
GOES = (ResourceEffect.REPLACED, ResourceEffect.REFUSED, ResourceEffect.DELETED)
COMES = (ResourceEffect.ADDED, ResourceEffect.REPLACED, ResourceEffect.REFUSED)


@dataclass(frozen=True)
class StackUpdate:
    """The templates of a stack with endpoints of these keys, before or after."""

    before: Template
    after: Template
    keys: Sequence[str]

    @cached_property
    def changes(self) -> dict[str, ResourceChange]:
        """What becomes of each resource, by logical ID."""
        return changes_of(self.before, self.after)

    def changes_for(self, key: str) -> list[ResourceChange]:
        """What becomes of the resources of one endpoint; of shared ones for an empty key."""
        return [change for change in self.changes.values() if self._owner(change) == key]

    def former(self, change: ResourceChange) -> Resource:
        """The resource before; empty where there is none."""
        resource: Resource = self.before["Resources"].get(change.logical_id, {})
        return resource

    def later(self, change: ResourceChange) -> Resource:
        """The resource after; empty where there is none."""
        resource: Resource = self.after["Resources"].get(change.logical_id, {})
        return resource

    def goes(self, kind: str) -> bool:
        """Whether a resource of a type goes, replaced or deleted."""
        return any(
            change.kind == kind and change.effect in GOES for change in self.changes.values()
        )

    def _owner(self, change: ResourceChange) -> str:
        """The key of the endpoint in whose construct a resource stands; empty for shared ones."""
        key = key_of(change.path)
        return key if key in self.keys else ""


class ServedEndpoint(NamedTuple):
    """What a template says of how an endpoint is updated."""

    keeps_counts: bool  # whether an update keeps the number of instances that run
    rollback_alarms: int  # how many alarms roll a deployment back


def served_endpoint(template: Template, key: str) -> ServedEndpoint:
    """How the endpoint of this key is updated."""
    for path, resource in of_type(template, ENDPOINT):
        if key_of(path) == key:
            properties = resource["Properties"]
            rollback = properties.get("DeploymentConfig", {}).get("AutoRollbackConfiguration", {})
            keeps_counts = bool(properties.get("RetainAllVariantProperties"))
            return ServedEndpoint(keeps_counts, len(rollback.get("Alarms", ())))
    raise KeyError(key)


def of_type(template: Template, *kinds: str) -> Iterator[tuple[str, Resource]]:
    """The resources of some types, each with its construct's path."""
    for resource in template["Resources"].values():
        if resource["Type"] in kinds:
            yield resource["Metadata"]["aws:cdk:path"], resource


def key_of(path: str) -> str:
    """The part below the stack of a construct's path."""
    return path.partition("/")[2].partition("/")[0]
