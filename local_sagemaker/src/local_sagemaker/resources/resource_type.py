"""What a resource type is to the engine, and the registry of the types there are."""

from __future__ import annotations

import secrets
import string
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from ..admission import Session
from ..connections import local_client
from ..runtime.clock import Clock
from ..runtime.options import RuntimeOptions
from ..schemas import schema_of
from .properties import Tagging, call

Properties = Mapping[str, Any]


@dataclass(frozen=True)
class Created:
    """What a created resource answers to `Ref` and `Fn::GetAtt`."""

    physical_id: str
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Existing:
    """A resource as it is before an update or a delete."""

    physical_id: str
    properties: Properties
    attributes: dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Where a resource belongs.

    Parameters
    ----------
    type_name
        The resource's type; it differs from the handler's name for `Custom::*`.
    clock
        By which handlers wait.
    options
        How the local AWS behaves where AWS leaves it open.
    begun
        What a creation has made so far; see `begin`.
    """

    account: str
    region: str
    url: str
    stack_name: str
    stack_id: str
    logical_id: str
    type_name: str
    clock: Clock = field(default_factory=Clock)
    options: RuntimeOptions = field(default_factory=RuntimeOptions)
    begun: list[Created] = field(default_factory=list)
    session: Session | None = None
    """Of the stack's role, or of a caller who is not the administrator."""

    def begin(self, physical_id: str, attributes: dict[str, Any] | None = None) -> Created:
        """Say that the resource is there and not finished: if the rest fails, a rollback deletes it.

        CloudFormation deletes what has a primary identifier after its create handler failed.
        """
        self.begun.append(Created(physical_id, attributes or {}))
        return self.begun[-1]

    def client(self, service: str, region: str | None = None) -> Any:
        """Give a boto3 client of this local AWS."""
        return local_client(service, region or self.region, self.url, self.session)

    def arn(self, service: str, resource: str) -> str:
        """Write an ARN in this account and region."""
        return f"arn:aws:{service}:{self.region}:{self.account}:{resource}"

    def generated_name(self, longest: int = 255, *, lower: bool = False) -> str:
        """Make a name as CloudFormation does: stack, logical id, random end."""
        alphabet = string.ascii_uppercase + string.digits
        end = "".join(secrets.choice(alphabet) for _ in range(12))
        room = longest - len(end) - 2
        stack = self.stack_name[: max(room // 2, room - len(self.logical_id))]
        name = f"{stack}-{self.logical_id[: room - len(stack)]}-{end}"
        return name.lower() if lower else name


class ResourceType(ABC):
    """How one type of resource is created, updated and deleted.

    Subclasses are stateless: whatever an update or a delete needs is in `Existing`.
    """

    type_name: ClassVar[str] = ""
    properties: ClassVar[frozenset[str]] = frozenset()
    """The properties that are honoured: those of `schemas/resource_types.json`, unless the type is
    free of a schema. Every other one makes the stack fail."""
    replaces: ClassVar[frozenset[str]] = frozenset()
    """The properties whose change needs a new resource: the schema's createOnlyProperties ..."""
    also_replaces: ClassVar[frozenset[str]] = frozenset()
    """... these too ..."""
    in_place: ClassVar[frozenset[str]] = frozenset()
    """... and these not. Both are exceptions, and say why."""
    deletes_by: ClassVar[tuple[str, str, str | Mapping[str, str]]] = ("", "", "")
    """Service, operation and its parameter for the physical id, where that is all of a delete; or
    its parameters, each with the property or attribute that it takes, "" being the physical id."""
    name_property: ClassVar[str | None] = None
    """The property that fixes the resource's name, which no two resources can share."""
    named_within: ClassVar[frozenset[str]] = frozenset()
    """Properties of what the name is unique in: where one of them differs, the name may be the same."""
    tags_by: ClassVar[Tagging | None] = None
    """How a change of its tags is made, beside `update`."""
    tagged: ClassVar[str | None] = None
    """The form of the Tags property, which also takes the stack's tags: "list", "map" or none."""

    def honours(self, name: str) -> bool:
        """Say whether a top-level property is honoured."""
        return name in self.properties

    def needs_replacement(self, changed: set[str]) -> bool:
        """Say whether a change of these properties needs a new resource."""
        return bool(changed & self.replaces)

    def name(self, at: Place, properties: Properties, longest: int = 255) -> str:
        """Give the fixed name, or a generated one."""
        fixed = properties.get(self.name_property) if self.name_property else None
        return str(fixed) if fixed else at.generated_name(longest)

    @abstractmethod
    def create(self, at: Place, properties: Properties) -> Created:
        """Create the resource."""

    def update(self, at: Place, existing: Existing, properties: Properties) -> Created | None:
        """Update the resource in place; gives what changed for `Ref` and `Fn::GetAtt`, if so."""
        assert self.tags_by, f"every property of {self.type_name} replaces it"
        return None

    def change(self, at: Place, existing: Existing, properties: Properties) -> Created | None:
        """Update the resource in place, and its tags."""
        changed = self.update(at, existing, properties)
        if by := self.tags_by:
            tags = existing.properties.get("Tags"), properties.get("Tags")
            by.change(at.client(by.service), self.tagged_as(at, existing), *tags)
        return changed

    def tagged_as(self, at: Place, existing: Existing) -> str:
        """Give what `tags_by` calls the resource; to override where it is no attribute."""
        of = self.tags_by.of if self.tags_by else ""
        return str(existing.attributes[of] if of else existing.physical_id)

    def delete(self, at: Place, existing: Existing) -> None:
        """Delete the resource."""
        service, operation, named = self.deletes_by
        known = {**existing.properties, **existing.attributes, "": existing.physical_id}
        sources = {named: ""} if isinstance(named, str) else named
        arguments = {name: known[of] for name, of in sources.items() if of in known}
        call(at.client(service), operation, arguments)


REGISTRY: dict[str, ResourceType] = {}
"""Every emulated type by name."""

Kind = TypeVar("Kind", bound=type[ResourceType])


def emulated(kind: Kind) -> Kind:
    """Register a resource type (a class decorator)."""
    if known := schema_of(kind.type_name):
        kind.properties = frozenset(known["properties"])
        kind.replaces = kind.also_replaces.union(known.get("createOnly", ())) - kind.in_place
        tags = known["properties"].get("Tags", {}).get("type", "")
        kind.tagged = {"array": "list", "object": "map"}.get(tags)
    REGISTRY[kind.type_name] = kind()
    return kind


def find_type(type_name: str) -> ResourceType | None:
    """Give the type's handler, or None when the type is not emulated."""
    if type_name.startswith("Custom::"):
        return REGISTRY["AWS::CloudFormation::CustomResource"]
    return REGISTRY.get(type_name)
