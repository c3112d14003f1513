"""Creating, updating, rolling back and deleting a stack's resources."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace as copy_with
from typing import Any

from ..protocols import ServiceError
from ..resources.resource_type import Created, Place, ResourceType
from .dependencies import creation_order
from .evaluation import Evaluation
from .resource_work import ResourceFailed, ResourceWork, check, existing, kind_of
from .stacks import DeployedResource, Stack, StackStore, now
from .template import Submission

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
            for logical_id in evaluation.order:
                self._work.create(evaluation, logical_id)
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
            for logical_id in evaluation.order:
                self._create_or_update(evaluation, logical_id, journal, obsolete)
            self._finish(evaluation)
        except (ResourceFailed, ServiceError) as error:
            reason = str(error)
            if stack.disable_rollback:
                stack.set_status("UPDATE_FAILED", reason)
                return
            self._roll_back_update(reason, before, journal)
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
        stack.outputs, stack.imports = [], set()
        stack.deleted = now()
        stack.set_status("DELETE_COMPLETE")
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
            old.declaration = declared
            return
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
            return kind.update(at, existing(old), properties)

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
            reason = _CUSTOM_NAMED.format(name=name)
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
            stack.deleted = now()
            stack.set_status("DELETE_COMPLETE", reason)
            self._stacks.bury(stack)
        else:
            stack.set_status("ROLLBACK_COMPLETE")

    def _roll_back_update(
        self, reason: str, before: dict[str, DeployedResource], journal: dict[str, str]
    ) -> None:
        """Go back: first re-apply the old settings in order, then delete what the update made."""
        # An endpoint must point at its old configuration again before the new one can be deleted.
        after = dict(self._stack.resources)
        made = [after[n] for n in journal if after.get(n) is not before.get(n) and n in after]
        made = [r for r in made if journal[r.logical_id] in ("created", "replaced")]
        self._go_back(reason, before, dict(journal), made)

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
        for logical_id in creation_order(stack.submitted.template["Resources"]):
            if logical_id not in journal or logical_id not in before:
                continue
            old = before[logical_id]
            if journal[logical_id] == "updated" and logical_id not in skip:
                self._stack.note(old, "UPDATE_IN_PROGRESS")
                current = self._attempted[logical_id]
                kind = kind_of(old.type)
                try:
                    self._work.attempt(
                        old,
                        "UPDATE",
                        lambda at, k=kind, c=current, o=old: k.update(
                            at, existing(c), o.properties
                        ),
                    )
                except ResourceFailed:
                    # Also the one whose update failed: CloudFormation sends it the old properties
                    # (aws-cloudformation/custom-resource-helper#70 ended like this).
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
            try:
                self._work.delete(resource)
            except ResourceFailed:
                logger.warning("left behind by the rollback: %s", resource.physical_id)
        stack.set_status("UPDATE_ROLLBACK_COMPLETE")
