"""One resource at a time: created, deleted, and every failure turned into its event."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace as copy_with
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from ..protocols import ServiceError
from ..resources.properties import PropertyNotEmulated
from ..resources.resource_type import Created, Existing, Place, ResourceType
from ..resources.table import find_type
from ..schemas import violations
from .dependencies import creation_order, deletion_order, dependencies
from .evaluation import Evaluation, invalid, not_emulated
from .stacks import DeployedResource, Stack

logger = logging.getLogger(__name__)


class ResourceFailed(Exception):
    """A resource could not be created, updated or deleted; its event is already written."""


class InvalidProperties(Exception):
    """Resolved properties that CloudFormation refuses; the text is its reason."""


class ResourceWork:
    """What an operation does to a stack's resources and events."""

    def __init__(self, place: Place, stack: Stack) -> None:
        self._place = place
        self._stack = stack

    def create(self, evaluation: Evaluation, logical_id: str, verb: str = "CREATE") -> None:
        """Create a resource, or with the verb UPDATE its replacement."""
        declared = evaluation.resources[logical_id]
        resource = DeployedResource(logical_id, declared["Type"], "", {}, declaration=declared)
        if verb == "CREATE":
            self._stack.note(resource, "CREATE_IN_PROGRESS")

        def create(at: Place) -> Created:
            resource.properties = evaluation.properties(logical_id)
            check(logical_id, declared["Type"], resource.properties)
            try:
                return kind_of(declared["Type"]).create(at, resource.properties)
            except Exception:
                for created in at.begun:
                    resource.physical_id = created.physical_id
                    resource.attributes = created.attributes
                    self._stack.resources[logical_id] = resource
                raise

        answer = self.attempt(resource, verb, create)
        assert answer is not None
        resource.physical_id, resource.attributes = answer.physical_id, answer.attributes
        self._stack.resources[logical_id] = resource
        self._stack.note(resource, f"{verb}_COMPLETE")

    def live(self) -> dict[str, DeployedResource]:
        """Give the resources as their services have them, without those that are gone."""
        found = {}
        for logical_id, resource in self._stack.resources.items():
            at = copy_with(self._place, logical_id=logical_id, type_name=resource.type)
            try:
                properties = kind_of(resource.type).live(at, existing(resource))
            except ClientError as error:
                if not _is_absent(error):
                    raise ServiceError(f"{logical_id}: its drift cannot be read: {error}") from None
                properties = None
            if properties is not None:
                found[logical_id] = copy_with(resource, properties=dict(properties))
        return found

    def attempt(self, resource: DeployedResource, verb: str, work: Any) -> Created | None:
        """Do the work; turn any failure into the resource's event and `ResourceFailed`."""
        at = copy_with(
            self._place, logical_id=resource.logical_id, type_name=resource.type, begun=[]
        )
        try:
            answer: Created | None = work(at)
            return answer
        except PropertyNotEmulated as error:
            reason = not_emulated(resource.type, error.path)
        except InvalidProperties as error:
            reason = str(error)
        except (ClientError, BotoCoreError, ServiceError) as error:
            reason = f'Resource handler returned message: "{_message(error)}"'
            logger.info("%s %s %s: %s", verb, resource.type, resource.logical_id, reason)
        except Exception as error:
            # A mistake of ours: the user sees which resource it was, the log has the trace.
            logger.exception("%s %s %s", verb, resource.type, resource.logical_id)
            reason = f"local AWS internal error: {type(error).__name__}: {error}"
        self._stack.note(resource, f"{verb}_FAILED", reason)
        raise ResourceFailed(f"{resource.logical_id}: {reason}")

    def delete_all(self, keep: set[str], *, on_create: bool = False) -> list[str]:
        """Delete all, users first; gives what would not go, whose needs stay too."""
        stack = self._stack
        declared = {name: r.declaration for name, r in stack.resources.items()}
        failed: list[str] = []
        needed: set[str] = set()
        for logical_id in deletion_order(declared):
            if logical_id in needed:
                needed |= dependencies(declared[logical_id], set(declared))
                continue
            resource = stack.resources[logical_id]
            policy = resource.declaration.get("DeletionPolicy")
            retained = policy == "Retain" or (policy == "RetainExceptOnCreate" and not on_create)
            if logical_id in keep or retained:
                stack.note(resource, "DELETE_SKIPPED")
                del stack.resources[logical_id]
                continue
            try:
                self.delete(resource)
                del stack.resources[logical_id]
            except ResourceFailed:
                failed.append(logical_id)
                needed |= dependencies(declared[logical_id], set(declared))
        return failed

    def clean_up(
        self, template: Mapping[str, Any], resources: list[DeployedResource], policy: str
    ) -> None:
        """Delete what an update made superfluous; a failure here does not fail the update."""
        order = creation_order(template["Resources"])
        for resource in sorted(resources, key=lambda r: order.index(r.logical_id), reverse=True):
            if resource.declaration.get(policy) in ("Retain", "RetainExceptOnCreate"):
                self._stack.note(resource, "DELETE_SKIPPED")
                continue
            try:
                self.delete(resource)
            except ResourceFailed:
                logger.warning("clean-up left %s behind", resource.physical_id)

    def delete(self, resource: DeployedResource) -> None:
        """Delete a resource; one that is gone already is deleted."""
        self._stack.note(resource, "DELETE_IN_PROGRESS")

        def delete(at: Place) -> None:
            try:
                kind_of(resource.type).delete(at, existing(resource))
            except ClientError as error:
                # What is gone already is deleted, as far as CloudFormation is concerned.
                if not _is_absent(error):
                    raise

        self.attempt(resource, "DELETE", delete)
        self._stack.note(resource, "DELETE_COMPLETE")


def kind_of(type_name: str) -> ResourceType:
    """Give the type, which is known: unknown ones are refused before anything is created."""
    kind = find_type(type_name)
    assert kind is not None, f"{type_name} got past the refusal of unknown types"
    return kind


def check(logical_id: str, type_name: str, properties: Mapping[str, Any]) -> None:
    """Hold what parameters and other resources have put in against CloudFormation's schema."""
    if wrong := violations(type_name, properties):
        raise InvalidProperties(invalid(logical_id, wrong))


def existing(resource: DeployedResource) -> Existing:
    return Existing(resource.physical_id, resource.properties, resource.attributes)


def _message(error: Exception) -> str:
    if isinstance(error, ClientError):
        detail = error.response["Error"]
        return f"{detail.get('Message', '')} (Service: {error.operation_name}, {detail['Code']})"
    return str(error)


def _is_absent(error: ClientError) -> bool:
    code = str(error.response["Error"]["Code"])
    message = str(error.response["Error"].get("Message", ""))
    return any(w in code for w in ("NotFound", "NoSuch", "NonExistent")) or (
        "Could not find" in message
    )
