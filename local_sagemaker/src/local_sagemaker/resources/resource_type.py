"""Creates, updates and deletes resources of a type, as its row in ``table.yaml`` says."""

from __future__ import annotations

import functools
import secrets
import string
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from ..admission import Session
from ..connections import local_client
from ..protocols import ServiceError
from ..runtime.clock import Clock
from ..runtime.options import RuntimeOptions
from ..schemas import schema_of
from .calls import By, Known, OperationCall, agrees, as_bool, as_text, filled, tag_list, without

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
    """Where a resource belongs. Its type differs from the handler's for `Custom::*`."""

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
    cancelled: bool = False
    """Whether the creation is cancelled while it goes on, as another resource has failed."""

    def begin(self, physical_id: str, attributes: dict[str, Any] | None = None) -> Created:
        """Register the resource as created, so that a rollback deletes it if the rest fails."""
        # CloudFormation deletes what has a primary identifier after its create handler failed.
        self.begun.append(Created(physical_id, attributes or {}))
        return self.begun[-1]

    def client(self, service: str, region: str | None = None) -> Any:
        return local_client(service, region or self.region, self.url, self.session)

    def generated_name(self, longest: int = 255, *, lower: bool = False) -> str:
        """Make a name as CloudFormation does: stack, logical id, random end."""
        alphabet = string.ascii_uppercase + string.digits
        end = "".join(secrets.choice(alphabet) for _ in range(12))
        room = longest - len(end) - 2
        stack = self.stack_name[: max(room // 2, room - len(self.logical_id))]
        name = f"{stack}-{self.logical_id[: room - len(stack)]}-{end}"
        return name.lower() if lower else name


def _is_unset(value: Any) -> bool:
    """Whether a property says nothing; 0 is a value, though it equals ``False``."""
    return value is None or value is False or value in ("false", "", {}, [])


@dataclass(frozen=True)
class Setting:
    """Properties, separated by spaces, that have an operation of their own, and one that resets them."""

    of: str
    put: OperationCall
    reset: OperationCall | None = None
    """Where the first property is missing or false; without it `put` gets the default."""
    default: Any = None
    """What a missing property is set to, if AWS has no default that counts at its creation too."""

    def settle(
        self, client: Any, key: Known, known: Known, old: Properties, new: Properties
    ) -> None:
        """Bring it from what it was to what the template says."""
        before, after = (
            {name: where.get(name, self.default) for name in self.of.split()}
            for where in (old, new)
        )
        if all(as_text(before[name]) == as_text(after[name]) for name in after):
            return
        (part, value), was = next(iter(after.items())), next(iter(before.values()))
        if not _is_unset(value) or (self.reset is None and value is not None):
            operation = self.put
        elif self.reset is None or _is_unset(was):
            return
        else:
            operation = self.reset
        operation.run(client, {**known, **after, "part": part, "value": value}, {**key, **after})


@dataclass(frozen=True)
class Members:
    """A list property whose items are added and removed by one API call each."""

    of: str
    add: OperationCall
    remove: OperationCall | None = None
    identity: str = ""  # the part of an item that says which it is; by default all of it
    made: int = 0  # how many the creation has added
    adds_first: bool = False  # whether the last one cannot be removed
    listed: OperationCall | None = (
        None  # what lists those to remove before the resource is deleted ...
    )
    items: str = ""  # ... and where, if not in the property; "" removes none.

    def settle(
        self, client: Any, key: Known, known: Known, old: Properties, new: Properties
    ) -> None:
        """Remove what is not in the template any more, and add what is new in it."""
        before, after = old.get(self.of) or [], new.get(self.of) or []
        kept = [self._identity(item) for item in after]
        gone = [item for item in before if self._identity(item) not in kept]
        if not self.adds_first:
            self._remove(client, key, {**known, **old}, gone)
        # What is added with other properties is added again when they have changed.
        others = {field.split(".")[0] for field in self.add.fields} & {*old, *new} - {self.of}
        again = any(old.get(name) != new.get(name) for name in others)
        for item in after:
            if again or item not in before:
                self._run(self.add, client, key, {**known, **new}, item)
        if self.adds_first:
            self._remove(client, key, {**known, **old}, gone)

    def empty(self, client: Any, key: Known, known: Known) -> None:
        """Remove those of the template that there are, before the resource is deleted."""
        if self.items:
            there = {**known, **(self.listed.run(client, known, key) if self.listed else {})}
            own = [self._identity(item) for item in known.get(self.of) or []]
            found = filled(self.items, there) or []
            self._remove(client, key, known, [i for i in found if self._identity(i) in own])

    def _remove(self, client: Any, key: Known, known: Known, items: list[Any]) -> None:
        if self.remove is not None:
            for item in items:
                self._run(self.remove, client, key, known, item)

    @staticmethod
    def _run(operation: OperationCall, client: Any, key: Known, known: Known, item: Any) -> None:
        fields = item if isinstance(item, dict) else {}
        operation.run(client, {**known, "item": item}, {**key, **fields})

    def _identity(self, item: Any) -> Any:
        return item[self.identity] if self.identity else item


@dataclass(frozen=True)
class Tags:
    """The operations on a resource's tags: what they set or remove is `{tags}`, Tags and TagKeys."""

    tag: OperationCall
    untag: OperationCall
    of: str = "Tags"

    def settle(
        self, client: Any, key: Known, known: Known, old: Properties, new: Properties
    ) -> None:
        """Bring the tags from what they were to what the template says."""
        before, after = (
            {tag["Key"]: tag["Value"] for tag in tag_list(where.get(self.of))}
            for where in (old, new)
        )
        if changed := {key: text for key, text in after.items() if before.get(key) != text}:
            tags = tag_list(changed)
            self.tag.run(client, {**known, "tags": tags}, {"Tags": tags})
        if removed := sorted(set(before) - set(after)):
            named = {"Tags": removed, "TagKeys": removed}
            self.untag.run(client, {**known, "tags": removed}, named)


@dataclass(frozen=True)
class ResourceType:
    """How one type of resource is created, updated and deleted: a row of `table.yaml`, which explains.

    Subclasses say what a row cannot. They are stateless: whatever an update or a delete needs is in
    `Existing`.
    """

    type_name: str
    noun: str = ""
    name: str | None = None
    named_within: frozenset[str] = frozenset()
    """Properties of what the name is unique in: where one of them differs, the name may be the same."""
    longest: int = 255  # of generated names
    lower: bool = False
    fifo: str = ""
    """The property by which generated names end with .fifo. Source: cloudtools/troposphere#931."""
    creates: OperationCall | None = None
    ref: str | By = "{name}"
    attributes: Mapping[str, Any] = field(default_factory=dict)
    reads: tuple[OperationCall, ...] = ()
    drift: OperationCall | None = None
    state: str = ""
    key: Mapping[str, Any] = field(default_factory=dict)
    updates: OperationCall | None = None
    anew: bool = False
    deletes: OperationCall | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[Setting | Members, ...] = ()
    tags: Tags | None = None
    also_replaces: frozenset[str] = frozenset()
    in_place: frozenset[str] = frozenset()
    turn: int = 0
    taken: OperationCall | None = None

    def __post_init__(self) -> None:
        stated = {**vars(self)}
        if self.noun:
            stated["creates"] = self.creates or OperationCall(f"create_{self.noun}")
            stated["deletes"] = self.deletes or OperationCall(f"delete_{self.noun}")
        name = self.name or str(self.ref).strip("{}")
        if not self.key and name.isalnum() and name != "name":
            by_id = self.ref in ("{name}", f"{{{name}}}")
            stated["key"] = {name: "{}" if by_id else f"{{{name}}}"}
        vars(self).update(stated)

    @property
    def service(self) -> str:
        name = self.type_name.split("::")[1].lower()
        return {
            "applicationautoscaling": "application-autoscaling",
            "applicationsignals": "application-signals",
        }.get(name, name)

    @functools.cached_property
    def _schema(self) -> Mapping[str, Any]:
        return schema_of(self.type_name) or {"properties": {}}

    @functools.cached_property
    def properties(self) -> frozenset[str]:
        """The properties that are honoured; every other one makes the stack fail."""
        return frozenset(self._schema["properties"])

    @functools.cached_property
    def replaces(self) -> frozenset[str]:
        """The properties whose change needs a new resource."""
        return self.also_replaces.union(self._schema.get("createOnly", ())) - self.in_place

    @functools.cached_property
    def tagged(self) -> str | None:
        """The form of the Tags property, which also takes the stack's tags: "list", "map" or none."""
        kind = self._schema["properties"].get("Tags", {}).get("type", "")
        return {"array": "list", "object": "map"}.get(kind)

    def honours(self, name: str) -> bool:
        return name in self.properties

    def create(self, at: Place, properties: Properties) -> Created:
        own = {**self.defaults, **properties}
        ending = ".fifo" if self.fifo and as_bool(own.get(self.fifo, False)) else ""
        name = own.get(self.name or "") or (
            at.generated_name(self.longest, lower=self.lower) + ending
        )
        if self.name:
            own[self.name] = name
        if "Tags" in own:
            own["Tags"] = tag_list(own["Tags"])
        client = at.client(self.service) if self.creates else None
        place = {"account": at.account, "region": at.region, "name": str(name)}
        known = {**own, **place}
        if properties.get(self.name or ""):
            self._refuse_taken(client, {**known, "": str(name)})
        done = {part.of: (own.get(part.of) or [])[: part.made] for part in self._members}
        if self.creates:
            answer = self.creates.run(client, known, own)
            for inner in (*answer.values(), answer):
                known = {**known, **(inner if isinstance(inner, dict) else {}), **place}
            taken = {n: value for n, value in own.items() if self.creates.takes(client, n)}
            done = {**self.defaults, **taken, **done}
        created = at.begin(str(filled(self.ref, known)), filled(dict(self.attributes), known))
        known |= {**created.attributes, "": created.physical_id}
        self.wait(at, known)
        return self._settled(at, known, done, own, {})

    def _refuse_taken(self, client: Any, known: Known) -> None:
        """Refuse a name that something has already, which the operation would change or adopt."""
        if self.taken is None:
            return
        with suppress(ClientError):
            found = self.taken.run(client, known, {})
            if not self.state or filled(self.state, found):
                raise ServiceError(
                    f"Resource of type '{self.type_name}' with identifier '{known['name']}' "
                    "already exists."
                )

    def update(self, at: Place, existing: Existing, properties: Properties) -> Created:
        """Update the resource in place; gives what it is now to `Ref` and `Fn::GetAtt`."""
        if self.anew:
            self.delete(at, existing)
            named = {self.name: existing.physical_id} if self.name else {}
            return self.create(at, {**properties, **named})
        old, new = ({**self.defaults, **each} for each in (existing.properties, properties))
        changed = {name for name in {*old, *new} if old.get(name) != new.get(name)} - {"Tags"}
        known = self._known(at, new, existing, {n: new[n] for n in changed & set(new)})
        client = at.client(self.service) if self.updates else None
        if self.updates and any(self.updates.takes(client, name) for name in changed):
            stated = {**without(new, "Tags"), **filled(self.key, known)}
            self.updates.run(client, known, stated)
            self.wait(at, known)
        return self._settled(at, known, old, new, existing.attributes)

    def live(self, at: Place, existing: Existing) -> Properties | None:
        """Read what the service has of the stated properties; None where the resource is gone."""
        stated = existing.properties
        if self.drift is None:
            return stated
        known = self._known(at, {**self.defaults, **stated}, existing)
        found = self.drift.run(at.client(self.service), known, filled(self.key, known))
        found = filled(self.state, found) if self.state else found
        # Source: "Drift-aware change sets do not support drift reconciliation for immutable properties".
        kept = {n for n, v in stated.items() if n not in self.replaces and n in (found or {})}
        changed = {n: found[n] for n in kept if not agrees(stated[n], found[n])}
        return {**stated, **changed} if found else None

    def wait(self, at: Place, known: Known) -> None:
        """Wait until what was created or updated is ready."""

    def settle(self, at: Place, known: Known, old: Properties, new: Properties) -> None:
        """Settle the parts of a new resource, or of one that exists."""
        for part in self.parts:
            part.settle(at.client(self.service), filled(self.key, known), known, old, new)

    def _settled(
        self, at: Place, known: Known, old: Properties, new: Properties, before: Properties
    ) -> Created:
        self.settle(at, known, old, new)
        for operation in self.reads:
            known = {**known, **operation.run(at.client(self.service), known, {})}
        if self.tags:
            self.tags.settle(at.client(self.service), {}, known, old, new)
        return Created(known[""], {**before, **filled(dict(self.attributes), known)})

    def delete(self, at: Place, existing: Existing) -> None:
        known = self._known(at, {**self.defaults, **existing.properties}, existing)
        key = filled(self.key, known)
        for part in self._members:
            part.empty(at.client(self.service), key, known)
        if self.deletes:
            self.deletes.run(at.client(self.service), known, key)

    @property
    def _members(self) -> list[Members]:
        return [part for part in self.parts if isinstance(part, Members)]

    @staticmethod
    def _known(
        at: Place, own: Properties, existing: Existing, changed: Properties | None = None
    ) -> Known:
        place = {"account": at.account, "region": at.region, "": existing.physical_id}
        return {**own, **existing.attributes, **(changed or {}), **place}
