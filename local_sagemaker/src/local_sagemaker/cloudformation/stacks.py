"""What CloudFormation remembers: stacks, resources, events, change sets, exports; and how it describes them."""

from __future__ import annotations

import re
import threading
import urllib.parse
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from ..protocols import ServiceError
from ..resources.calls import as_bool
from .template import ParameterValue, Submission

_STATUSES = yaml.safe_load(Path(__file__).with_name("statuses.yaml").read_text())


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

    def take_status_of(self, other: DeployedResource) -> None:
        """Show what came of the same resource with other properties."""
        self.status, self.reason, self.changed = other.status, other.reason, other.changed


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
    retain_except_on_create: bool = False
    """Whether a rollback deletes what its operation made, also what is to be retained."""
    role_arn: str | None = None
    notification_arns: list[str] = field(default_factory=list)
    parent: Stack | None = None
    """Of a nested stack: the one that has it as a resource."""
    created: datetime = field(default_factory=now)
    updated: datetime | None = None
    deleted: datetime | None = None
    token: str | None = None
    unrolled: list[str] = field(default_factory=list)
    """In UPDATE_ROLLBACK_FAILED: the resources that did not go back."""
    continue_rollback: Callable[[Iterable[str]], None] | None = None
    worker: threading.Thread | None = None
    """Of the latest operation."""

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
    def root(self) -> Stack:
        """The stack that is not nested: this one, or the first of those above it."""
        return self.parent.root if self.parent else self

    def check_status(self, operation: str) -> None:
        """Refuse an operation that a stack in this status does not take."""
        if operation not in _STATUSES["statuses"][self.status]:
            words = _STATUSES["words"][operation]
            raise ServiceError(words.format(id=self.id, status=self.status))


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

    def named(self, name_or_id: str | None) -> list[Stack]:
        """Give the stack of that name or ID, deleted ones by ID; without one all that there are."""
        with self.lock:
            return (
                [self.find(name_or_id, or_deleted=True)] if name_or_id else [*self.alive.values()]
            )

    def bury(self, stack: Stack, reason: str | None = None) -> None:
        """Note that a stack is deleted, after which it is found by its id only."""
        stack.outputs, stack.imports = [], set()
        stack.deleted = now()
        with self.lock:
            self.alive.pop(stack.name, None)
            self.deleted[stack.id] = stack
        # Last: whoever waits for it by ID may make another stack of the name at once.
        stack.set_status("DELETE_COMPLETE", reason)

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


def bucket_and_key(url: str) -> tuple[str, str]:
    """Read bucket and key from an S3 URL: path-style on this machine, else also virtual-hosted."""
    parts = urllib.parse.urlsplit(url)
    path = urllib.parse.unquote(parts.path.lstrip("/"))
    hosted = re.fullmatch(r"(.+)\.s3[.-][a-z0-9.-]*amazonaws\.com", parts.hostname or "")
    if hosted:
        return hosted[1], path
    bucket, _, key = path.partition("/")
    if not key:
        raise ServiceError(f"TemplateURL must be a supported URL, not {url}")
    return bucket, key


def described_stack(found: Stack) -> dict[str, Any]:
    return {
        "StackId": found.id,
        "StackName": found.name,
        "ChangeSetId": found.last_change_set,
        "Description": found.submitted.template.get("Description"),
        **_submitted(found.submitted),
        "CreationTime": found.created,
        "LastUpdatedTime": found.updated,
        "DeletionTime": found.deleted,
        "StackStatus": found.status,
        "StackStatusReason": found.reason,
        "DisableRollback": found.disable_rollback,
        "NotificationARNs": found.notification_arns,
        "RoleARN": found.role_arn,
        "EnableTerminationProtection": found.root.termination_protection,
        "ParentId": found.parent.id if found.parent else None,
        "RootId": found.root.id if found.parent else None,
        "DriftInformation": {"StackDriftStatus": "NOT_CHECKED"},
        "Outputs": [
            {
                "OutputKey": output.key,
                "OutputValue": output.value,
                "Description": output.description,
                "ExportName": output.export,
            }
            for output in found.outputs
        ],
    }


def _submitted(found: Submission) -> dict[str, Any]:
    declared = found.template.get("Parameters", {})
    hidden = {key for key in declared if as_bool(declared[key].get("NoEcho", False))}
    return {
        "Parameters": [
            _described_parameter(key, parameter, hidden=key in hidden)
            for key, parameter in found.parameters.items()
        ],
        "Capabilities": found.capabilities,
        "Tags": [{"Key": key, "Value": value} for key, value in found.tags.items()],
    }


def _described_parameter(key: str, found: ParameterValue, *, hidden: bool) -> dict[str, Any]:
    """Describe a parameter; AWS masks the value of one with NoEcho."""
    resolved = str(found.value) if found.from_ssm else None
    return {
        "ParameterKey": key,
        "ParameterValue": "****" if hidden else found.given,
        "ResolvedValue": "****" if hidden and resolved else resolved,
    }


def described_resource(owner: Stack, found: DeployedResource) -> dict[str, Any]:
    """Describe a stack's resource; the three operations differ in one time stamp's name only."""
    return {
        "StackName": owner.name,
        "StackId": owner.id,
        "LogicalResourceId": found.logical_id,
        "PhysicalResourceId": found.physical_id,
        "ResourceType": found.type,
        "ResourceStatus": found.status,
        "ResourceStatusReason": found.reason,
        "Timestamp": found.changed,
        "LastUpdatedTimestamp": found.changed,
        "DriftInformation": {"StackResourceDriftStatus": "NOT_CHECKED"},
    }


def described_resource_summaries(found: Stack) -> dict[str, Any]:
    return {
        "StackResourceSummaries": [
            described_resource(found, item) for item in found.resources.values()
        ]
    }


def described_events(found: Stack) -> dict[str, Any]:
    """Describe a stack's history, newest first."""
    return {"StackEvents": list(reversed(found.events))}


def template_of(found: Submission) -> dict[str, Any]:
    body = found.body or "{}"
    return {"TemplateBody": body, "StagesAvailable": ["Original", "Processed"]}


def template_summary(template: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "Description": template.get("Description"),
        "Metadata": None,
        "ResourceTypes": sorted({r["Type"] for r in template.get("Resources", {}).values()}),
        "Parameters": [
            {
                "ParameterKey": key,
                "DefaultValue": str(declared["Default"]) if "Default" in declared else None,
                "ParameterType": declared.get("Type"),
                "Description": declared.get("Description"),
                "NoEcho": as_bool(declared.get("NoEcho", False)),
                "ParameterConstraints": {"AllowedValues": declared.get("AllowedValues", [])},
            }
            for key, declared in (template.get("Parameters") or {}).items()
        ],
    }


def described_change_set(owner: Stack, found: ChangeSet) -> dict[str, Any]:
    return {
        "ChangeSetName": found.name,
        "ChangeSetId": found.id,
        "StackId": owner.id,
        "StackName": owner.name,
        "Description": found.description,
        **_submitted(found.submitted),
        "CreationTime": found.created,
        "ExecutionStatus": found.execution_status,
        "Status": found.status,
        "StatusReason": found.reason,
        "Changes": found.changes,
        "IncludeNestedStacks": found.include_nested,
        "DeploymentMode": found.drift_status and "REVERT_DRIFT",
        "StackDriftStatus": found.drift_status,
        "OnStackFailure": found.on_failure,
    }


def described_change_sets(found: Stack) -> dict[str, Any]:
    return {"Summaries": [described_change_set(found, item) for item in found.change_sets.values()]}
