"""What CloudFormation remembers: stacks, their resources, events, change sets and exports."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ..protocols import ServiceError
from .template import Submission


def now() -> datetime:
    return datetime.now(UTC)


@dataclass
class DeployedResource:
    """A resource as it is now: resolved `properties`, and `attributes` for `Fn::GetAtt`."""

    logical_id: str
    type: str
    physical_id: str
    properties: dict[str, Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    declaration: dict[str, Any] = field(default_factory=dict)
    status: str = ""
    reason: str | None = None
    changed: datetime = field(default_factory=now)


@dataclass
class Output:
    key: str
    value: str
    description: str | None = None
    export: str | None = None


@dataclass
class ChangeSet:
    id: str
    name: str
    kind: str
    submitted: Submission
    description: str | None
    on_failure: str | None
    include_nested: bool
    changes: list[dict[str, Any]]
    drift_status: str | None = None
    """Of the stack, where the change set reverts drift; else None."""
    status: str = "CREATE_COMPLETE"
    execution_status: str = "AVAILABLE"
    reason: str | None = None
    created: datetime = field(default_factory=now)


@dataclass
class Stack:
    name: str
    id: str
    status: str
    submitted: Submission = field(default_factory=Submission)
    reason: str | None = None
    resources: dict[str, DeployedResource] = field(default_factory=dict)
    outputs: list[Output] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    """As DescribeStackEvents gives them, the oldest first."""
    change_sets: dict[str, ChangeSet] = field(default_factory=dict)
    last_change_set: str | None = None
    imports: set[str] = field(default_factory=set)
    termination_protection: bool = False
    disable_rollback: bool = False
    role_arn: str | None = None
    notification_arns: list[str] = field(default_factory=list)
    parent_id: str | None = None
    root_id: str | None = None
    created: datetime = field(default_factory=now)
    updated: datetime | None = None
    deleted: datetime | None = None
    token: str | None = None
    unrolled: list[str] = field(default_factory=list)
    """In UPDATE_ROLLBACK_FAILED: the resources that did not go back."""
    continue_rollback: Callable[[Iterable[str]], None] | None = None

    def set_status(self, status: str, reason: str | None = None) -> None:
        """Change the stack's status and write the event for it."""
        self.status, self.reason = status, reason
        self._write(self.name, self.id, "AWS::CloudFormation::Stack", status, reason, now())

    def note(self, resource: DeployedResource, status: str, reason: str | None = None) -> None:
        """Change a resource's status and write the event for it."""
        resource.status, resource.reason, resource.changed = status, reason, now()
        names = resource.logical_id, resource.physical_id, resource.type
        self._write(*names, status, reason, resource.changed)

    def _write(
        self, name: str, physical: str, kind: str, status: str, reason: str | None, at: datetime
    ) -> None:
        self.events.append(
            {
                "StackId": self.id,
                "StackName": self.name,
                "EventId": str(uuid.uuid4()),
                "LogicalResourceId": name,
                "PhysicalResourceId": physical,
                "ResourceType": kind,
                "Timestamp": at,
                "ResourceStatus": status,
                "ResourceStatusReason": reason,
                "ClientRequestToken": self.token,
            }
        )

    @property
    def busy(self) -> bool:
        return self.status.endswith("_IN_PROGRESS") and self.status != "REVIEW_IN_PROGRESS"


class StackStore:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.alive: dict[str, Stack] = {}
        self.deleted: dict[str, Stack] = {}

    def find(self, name_or_id: str, *, or_deleted: bool = False) -> Stack:
        """Find a stack by name (alive only) or by ID; the CDK CLI looks for the words if there is none."""
        with self.lock:
            for stack in self.alive.values():
                if name_or_id in (stack.name, stack.id):
                    return stack
            if or_deleted and name_or_id in self.deleted:
                return self.deleted[name_or_id]
        raise ServiceError(f"Stack with id {name_or_id} does not exist")

    def bury(self, stack: Stack) -> None:
        """Move a stack to the deleted ones; a deleted stack is found by its id only."""
        with self.lock:
            self.alive.pop(stack.name, None)
            self.deleted[stack.id] = stack

    def exports(self) -> dict[str, tuple[Stack, Output]]:
        with self.lock:
            return {
                output.export: (stack, output)
                for stack in self.alive.values()
                for output in stack.outputs
                if output.export
            }

    def importers(self, export: str) -> list[str]:
        with self.lock:
            return [stack.name for stack in self.alive.values() if export in stack.imports]


_stores: dict[tuple[str, str], StackStore] = {}


def store(account: str, region: str) -> StackStore:
    return _stores.setdefault((account, region), StackStore())


def reset() -> None:
    _stores.clear()
