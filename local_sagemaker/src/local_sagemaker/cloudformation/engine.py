"""Creating, updating, rolling back and deleting a stack's resources, one at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace as copy_with
from typing import Any, cast

from botocore.exceptions import BotoCoreError, ClientError

from ..protocols import ServiceError
from ..resources.calls import PropertyNotEmulated
from ..resources.resource_type import Created, Existing, Place, ResourceType
from ..resources.table import find_type, is_custom
from ..schemas import violations
from .evaluation import Evaluation, invalid, not_emulated
from .resource_order import creation_order, deletion_order, dependencies
from .stacks import DeployedResource, Stack, StackStore, now
from .template import Submission


class ResourceFailed(Exception):
    """A resource could not be created, updated or deleted; its event is already written."""


class InvalidProperties(Exception):
    """Resolved properties that CloudFormation refuses; the text is its reason."""


class ResourceWork:
    """What an operation does to a stack's resources and events."""

    def __init__(self, place: Place, stack: Stack) -> None:
        self._place = place
        self._stack = stack
        self._new_go = stack.retain_except_on_create

    def create(
        self,
        evaluation: Evaluation,
        logical_id: str,
        verb: str = "CREATE",
        *,
        cancelled: bool = False,
    ) -> None:
        """Create a resource, or with the verb UPDATE its replacement."""
        declared = evaluation.resources[logical_id]
        resource = DeployedResource(logical_id, declared["Type"], "", {}, declaration=declared)
        if verb == "CREATE":
            self._stack.note(resource, "CREATE_IN_PROGRESS")

        def create(place: Place) -> Created:
            at = copy_with(place, cancelled=cancelled)
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

        answer = cast(Created, self.attempt(resource, verb, create))
        resource.physical_id, resource.attributes = answer.physical_id, answer.attributes
        self._stack.resources[logical_id] = resource
        self._stack.note(resource, f"{verb}_COMPLETE")

    def live(self) -> dict[str, DeployedResource]:
        """Give the resources as their services have them, without those that are gone."""
        resources = {}
        for logical_id, resource in self._stack.resources.items():
            at = copy_with(self._place, logical_id=logical_id, type_name=resource.type)
            try:
                properties = kind_of(resource.type).live(at, existing(resource))
            except ClientError as error:
                if not _is_absent(error):
                    raise ServiceError(f"{logical_id}: its drift cannot be read: {error}") from None
                properties = None
            if properties is not None:
                resources[logical_id] = copy_with(resource, properties=dict(properties))
        return resources

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
        except (InvalidProperties, ServiceError) as error:
            reason = str(error)
        except (ClientError, BotoCoreError) as error:
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
        for logical_id in deletion_order(declared, self._place.options.creation_order):
            if logical_id in needed:
                needed |= dependencies(declared[logical_id], set(declared))
                continue
            resource = stack.resources[logical_id]
            retained = self._is_retained(resource, "DeletionPolicy", new=on_create)
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
        order = creation_order(template["Resources"], self._place.options.creation_order)
        for resource in sorted(resources, key=lambda r: order.index(r.logical_id), reverse=True):
            self.delete_or_leave(resource, policy)

    def delete_or_leave(
        self, resource: DeployedResource, policy: str, *, new: bool = False
    ) -> None:
        """Delete it, unless its policy retains it; `new` is what the same operation has made."""
        if self._is_retained(resource, policy, new=new):
            self._stack.note(resource, "DELETE_SKIPPED")
            return
        try:
            self.delete(resource)
        except ResourceFailed:
            logger.warning("clean-up left %s behind", resource.physical_id)

    def _is_retained(self, resource: DeployedResource, policy: str, *, new: bool) -> bool:
        retaining = {"Retain"} if new else {"Retain", "RetainExceptOnCreate"}
        return resource.declaration.get(policy) in retaining and not (new and self._new_go)

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
    if kind is None:
        raise LookupError(f"{type_name} got past the refusal of unknown types")
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


logger = logging.getLogger(__name__)

_CUSTOM_NAMED = (
    "CloudFormation cannot update a stack when a custom-named resource requires replacing. "
    "Rename {name} and update the stack again."
)
_NEW_PHYSICAL = (
    "Requested update requires the creation of a new physical resource; hence creating one."
)


class StackOperation:
    """One operation on one stack; the place's logical ID is of no meaning."""

    def __init__(self, place: Place, stacks: StackStore, stack: Stack) -> None:
        self._place = place
        self._stacks = stacks
        self._stack = stack
        self._work = ResourceWork(place, stack)
        self._attempted: dict[str, DeployedResource] = {}

    # ------------------------------------------------------------------------------- operations

    def create(self, *, on_failure: str = "ROLLBACK") -> None:
        stack = self._stack
        stack.set_status("CREATE_IN_PROGRESS", "User Initiated")
        try:
            evaluation = self._evaluate(stack.submitted)
            self._in_order(evaluation, {}, lambda name: self._work.create(evaluation, name))
            self._finish(evaluation)
        except (ResourceFailed, ServiceError) as error:
            reason = str(error)
            if on_failure == "DO_NOTHING" or stack.disable_rollback:
                stack.set_status("CREATE_FAILED", reason)
                return
            self._roll_back_create(reason, delete=on_failure == "DELETE")
            return
        stack.set_status("CREATE_COMPLETE")

    def update(self, submitted: Submission, *, reverts: bool = False) -> None:
        """Bring the stack to a new template, or back to where it was: with drift, to the live state."""
        stack = self._stack
        stack.resources = self._work.live() if reverts else stack.resources
        before = dict(stack.resources)
        stack.set_status("UPDATE_IN_PROGRESS", "User Initiated")
        journal: dict[str, str] = {}
        obsolete: list[DeployedResource] = []
        try:
            evaluation = self._evaluate(submitted)
            self._refuse_changed_types(evaluation)
            self._in_order(
                evaluation,
                journal,
                lambda name: self._create_or_update(evaluation, name, journal, obsolete),
            )
            self._finish(evaluation)
        except (ResourceFailed, ServiceError) as error:
            reason = str(error)
            if stack.disable_rollback:
                stack.set_status("UPDATE_FAILED", reason)
                return
            stack.resources |= {name: before[name] for name in before if name not in journal}
            # First the old settings, then what the update made: an endpoint must point at its old
            # configuration again before the new one can be deleted.
            after = stack.resources
            made = [
                after[name]
                for name, what in journal.items()
                if what != "updated" and name in after and after[name] is not before.get(name)
            ]
            self._go_back(reason, before, journal, made)
            return
        old_template, stack.submitted = stack.submitted.template, submitted
        stack.updated = now()
        stack.set_status("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")
        removed = [stack.resources.pop(n) for n in before if n not in evaluation.resources]
        self._work.clean_up(old_template, obsolete, "UpdateReplacePolicy")
        self._work.clean_up(old_template, removed, "DeletionPolicy")
        stack.set_status("UPDATE_COMPLETE")

    def delete(self, retain: Iterable[str] = ()) -> None:
        stack = self._stack
        stack.set_status("DELETE_IN_PROGRESS", "User Initiated")
        failed = self._work.delete_all(keep=set(retain))
        if failed:
            stack.set_status(
                "DELETE_FAILED",
                f"The following resource(s) failed to delete: [{', '.join(failed)}]. ",
            )
            return
        self._stacks.bury(stack)

    # ------------------------------------------------------------------------------------ steps

    def _evaluate(self, submitted: Submission) -> Evaluation:
        """Evaluate a template, all of whose resources are such as can be made."""
        evaluation = Evaluation(self._place, self._stacks, self._stack, submitted)
        refusals = evaluation.refusals()
        for logical_id, reason in refusals.items():
            declared = evaluation.resources[logical_id]
            ghost = DeployedResource(logical_id, declared["Type"], "", {})
            verb = "UPDATE" if logical_id in self._stack.resources else "CREATE"
            self._stack.note(ghost, f"{verb}_FAILED", reason)
        if refusals:
            raise ResourceFailed("; ".join(f"{name}: {why}" for name, why in refusals.items()))
        return evaluation

    def _refuse_changed_types(self, evaluation: Evaluation) -> None:
        changed = [
            name
            for name, declared in evaluation.resources.items()
            if name in self._stack.resources
            and self._stack.resources[name].type != declared["Type"]
        ]
        if changed:
            raise ServiceError(
                "Update of resource type is not permitted. The new template modifies resource "
                f"type of the following resources: [{', '.join(changed)}]"
            )

    def _in_order(
        self, evaluation: Evaluation, journal: dict[str, str], work: Callable[[str], None]
    ) -> None:
        """Do the work for one resource after the other, until one fails."""
        waiting = set(evaluation.resources)
        for logical_id in evaluation.order:
            try:
                work(logical_id)
            except ResourceFailed:
                for name in self._begun_beside(evaluation, waiting - {logical_id}, waiting):
                    journal[name] = "created"
                    with suppress(ResourceFailed):
                        self._work.create(evaluation, name, cancelled=True)
                raise
            waiting.discard(logical_id)

    def _begun_beside(
        self, evaluation: Evaluation, names: set[str], waiting: set[str]
    ) -> list[str]:
        """Give the new custom resources that CloudFormation would have begun, and now cancels.

        It works at once on what does not need each other:
        https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/1814
        """
        if self._stack.disable_rollback:
            return []
        new, declared = sorted(names - set(self._stack.resources)), evaluation.resources
        custom = [name for name in new if is_custom(declared[name]["Type"])]
        return [name for name in custom if not dependencies(declared[name], waiting)]

    def _finish(self, evaluation: Evaluation) -> None:
        """Settle the outputs, and hold exports against the other stacks."""
        stack = self._stack
        outputs = evaluation.outputs()
        taken = self._stacks.exports()
        for output in outputs:
            owner = taken.get(output.export or "")
            if owner is not None and owner[0] is not stack:
                raise ServiceError(
                    f"Export with name {output.export} is already exported by stack "
                    f"{owner[0].name}."
                )
        new = {output.export: output.value for output in outputs if output.export}
        for output in stack.outputs:
            if output.export is None:
                continue
            users = self._stacks.importers(output.export)
            if users and new.get(output.export) != output.value:
                verb = "deleted" if output.export not in new else "updated"
                raise ServiceError(
                    f"Export {output.export} cannot be {verb} as it is in use by {', '.join(users)}"
                )
        stack.outputs, stack.imports = outputs, evaluation.imports

    def _create_or_update(
        self,
        evaluation: Evaluation,
        logical_id: str,
        journal: dict[str, str],
        obsolete: list[DeployedResource],
    ) -> None:
        old = self._stack.resources.get(logical_id)
        if old is None:
            journal[logical_id] = "created"
            self._work.create(evaluation, logical_id)
            return
        properties = evaluation.properties(logical_id)
        declared = evaluation.resources[logical_id]
        names = set(properties) | set(old.properties)
        changed = {n for n in names if properties.get(n) != old.properties.get(n)}
        if not changed:
            self._stack.resources[logical_id] = copy_with(old, declaration=declared)
            return
        if is_custom(old.type) and "ServiceToken" in changed:
            # https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/802
            self._refuse_update(old, "Modifying service token is not allowed.")
        kind = kind_of(old.type)
        if changed & kind.replaces:
            self._refuse_same_name(kind, old, properties)
            self._stack.note(old, "UPDATE_IN_PROGRESS", _NEW_PHYSICAL)
            journal[logical_id] = "replaced"
            obsolete.append(old)
            self._work.create(evaluation, logical_id, verb="UPDATE")
            return
        journal[logical_id] = "updated"
        changed_resource = copy_with(old, properties=properties, declaration=declared)
        self._attempted[logical_id] = changed_resource
        self._stack.note(changed_resource, "UPDATE_IN_PROGRESS")

        def update(at: Place) -> Created | None:
            check(logical_id, old.type, properties)
            try:
                return kind.update(at, existing(old), properties)
            except Exception:
                # A failed custom resource's answer has a physical ID, too.
                for begun in at.begun:
                    changed_resource.physical_id = begun.physical_id
                raise

        answer = self._work.attempt(changed_resource, "UPDATE", update)
        if answer is not None and answer.physical_id != old.physical_id:
            # A custom resource may answer with a new physical id: that is its replacement.
            journal[logical_id] = "replaced"
            obsolete.append(old)
        if answer is not None:
            changed_resource.physical_id = answer.physical_id
            changed_resource.attributes = answer.attributes
        self._stack.resources[logical_id] = changed_resource
        self._stack.note(changed_resource, "UPDATE_COMPLETE")

    def _refuse_same_name(
        self, kind: ResourceType, old: DeployedResource, properties: Mapping[str, Any]
    ) -> None:
        elsewhere = any(properties.get(n) != old.properties.get(n) for n in kind.named_within)
        if kind.name is None or elsewhere:
            return
        name = properties.get(kind.name)
        if name and name == old.properties.get(kind.name):
            self._refuse_update(old, _CUSTOM_NAMED.format(name=name))

    def _refuse_update(self, old: DeployedResource, reason: str) -> None:
        self._stack.note(copy_with(old), "UPDATE_FAILED", reason)
        raise ResourceFailed(f"{old.logical_id}: {reason}")

    # --------------------------------------------------------------------------------- rollback

    def _roll_back_create(self, reason: str, *, delete: bool) -> None:
        stack = self._stack
        stack.set_status("ROLLBACK_IN_PROGRESS", reason)
        failed = self._work.delete_all(keep=set(), on_create=True)
        stack.outputs, stack.imports = [], set()
        if failed:
            stack.set_status("ROLLBACK_FAILED", f"failed to delete: [{', '.join(failed)}]")
        elif delete:
            self._stacks.bury(stack, reason)
        else:
            stack.set_status("ROLLBACK_COMPLETE")

    def _go_back(
        self,
        reason: str,
        before: dict[str, DeployedResource],
        journal: dict[str, str],
        made: list[DeployedResource],
        skip: Iterable[str] = (),
    ) -> None:
        """Roll back what is in the journal; what cannot go back waits there for another try."""
        stack = self._stack
        stack.set_status("UPDATE_ROLLBACK_IN_PROGRESS", reason)
        failed = []
        order = self._place.options.creation_order
        for logical_id in creation_order(stack.submitted.template["Resources"], order):
            if logical_id not in journal or logical_id not in before:
                continue
            old = before[logical_id]
            if journal[logical_id] == "updated" and logical_id not in skip:
                try:
                    old = self._go_back_one(old, made)
                except ResourceFailed:
                    # Also the one whose update failed: CloudFormation sends it the old properties
                    # (aws-cloudformation/custom-resource-helper#70 ended like this).
                    stack.resources[logical_id].take_status_of(old)
                    failed.append(logical_id)
                    continue
            del journal[logical_id]
            stack.resources[logical_id] = old
            stack.note(old, "UPDATE_COMPLETE")
        if failed:
            stack.unrolled = failed
            stack.continue_rollback = lambda skipped: self._go_back(
                "User Initiated", before, journal, made, skipped
            )
            stack.set_status(
                "UPDATE_ROLLBACK_FAILED",
                f"The following resource(s) failed to update: [{', '.join(failed)}]. ",
            )
            return
        stack.set_status("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS")
        for resource in made:
            if resource.logical_id not in before:
                stack.resources.pop(resource.logical_id, None)
        for resource in reversed(made):
            # Which attribute counts for what a replacement has made was seen, not documented:
            # https://github.com/go-to-k/cdkd/pull/2634
            replaced = resource.logical_id in before
            policy = "UpdateReplacePolicy" if replaced else "DeletionPolicy"
            self._work.delete_or_leave(resource, policy, new=True)
        stack.set_status("UPDATE_ROLLBACK_COMPLETE")

    def _go_back_one(self, old: DeployedResource, made: list[DeployedResource]) -> DeployedResource:
        """Give a resource its old properties; gives it as it answers, also with another ID."""
        self._stack.note(old, "UPDATE_IN_PROGRESS")
        current = self._attempted[old.logical_id]
        kind = kind_of(old.type)
        answer = self._work.attempt(
            old, "UPDATE", lambda at: kind.update(at, existing(current), old.properties)
        )
        if answer is None:
            return old
        if answer.physical_id != current.physical_id:
            made.append(current)
        return copy_with(old, physical_id=answer.physical_id, attributes=answer.attributes)
