"""AWS::IAM::*: inline policies, whose names have owners, and versions of managed ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..protocols import ServiceError
from .calls import Known, as_text
from .resource_type import Created, Existing, Place, Properties, ResourceType

Owner = tuple[str, str]  # a stack's ID, and a resource's logical ID in it
_owners: dict[tuple[str, str, str], Owner] = {}
"""Whose an inline policy is, by account, role and policy name."""


def forget() -> None:
    _owners.clear()


def _own(at: Place, role: str, policy: str) -> None:
    """Claim an inline policy's name on a role, which no other resource of any stack may have."""
    # Since 30 January 2026 CloudFormation refuses what it overwrote until then; the words are those
    # of aws/modern-data-architecture-accelerator#36 and aws-amplify/amplify-cli#14961.
    owner = (at.stack_id, at.logical_id)
    if _owners.setdefault((at.account, role, policy), owner) != owner:
        raise ServiceError(
            f"Policy {policy} on role {role}: Policy resource was already managed by another stack "
            "or another resource in the current stack"
        )


def _disown(at: Place, role: str, policy: str) -> bool:
    """Give a name up; says whether it was the resource's own."""
    key = (at.account, role, policy)
    if _owners.get(key, (at.stack_id, at.logical_id)) != (at.stack_id, at.logical_id):
        return False
    _owners.pop(key, None)
    return True


def _put(at: Place, role: str, policy: str, document: Any) -> None:
    _own(at, role, policy)
    at.client("iam").put_role_policy(
        RoleName=role, PolicyName=policy, PolicyDocument=as_text(document)
    )


class Role(ResourceType):
    def settle(self, at: Place, known: Known, old: Properties, new: Properties) -> None:
        after = {policy["PolicyName"]: policy for policy in new.get("Policies") or []}
        former = {policy["PolicyName"] for policy in old.get("Policies") or []}
        self._remove(at, known[""], former - set(after))
        for name, policy in after.items():
            _put(at, known[""], name, policy["PolicyDocument"])
        super().settle(at, known, old, new)

    @staticmethod
    def _remove(at: Place, role: str, policies: Iterable[str]) -> None:
        for policy in policies:
            _disown(at, role, policy)
            at.client("iam").delete_role_policy(RoleName=role, PolicyName=policy)

    def delete(self, at: Place, existing: Existing) -> None:
        """Remove what the template gave the role: with more, IAM refuses to delete it.

        Seen: https://github.com/aws/aws-parallelcluster/issues/4031, convox/rack#2672.
        """
        role = existing.physical_id
        own = {policy["PolicyName"] for policy in existing.properties.get("Policies") or []}
        names = at.client("iam").list_role_policies(RoleName=role)["PolicyNames"]
        self._remove(at, role, own.intersection(names))
        super().delete(at, existing)


class PolicyResource(ResourceType):
    """An inline policy of roles. Users and groups are not emulated."""

    def create(self, at: Place, properties: Properties) -> Created:
        created = at.begin(at.generated_name(64))
        return self.update(at, Existing(created.physical_id, {}, {}), properties)

    def update(self, at: Place, existing: Existing, properties: Properties) -> Created:
        for role, name in self._places(properties):
            _put(at, role, name, properties["PolicyDocument"])
        self._remove(at, self._places(existing.properties) - self._places(properties))
        return Created(existing.physical_id)

    def delete(self, at: Place, existing: Existing) -> None:
        self._remove(at, self._places(existing.properties))

    @staticmethod
    def _places(properties: Properties) -> set[tuple[str, str]]:
        return {(role, properties["PolicyName"]) for role in properties.get("Roles") or []}

    @staticmethod
    def _remove(at: Place, places: Iterable[tuple[str, str]]) -> None:
        for role, name in places:
            if _disown(at, role, name):
                at.client("iam").delete_role_policy(RoleName=role, PolicyName=name)


class ManagedPolicy(ResourceType):
    """A customer-managed policy. It keeps at most five versions: the former is not needed."""

    def update(self, at: Place, existing: Existing, properties: Properties) -> Created:
        iam, arn = at.client("iam"), existing.physical_id
        if properties["PolicyDocument"] != existing.properties["PolicyDocument"]:
            former = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
            document = as_text(properties["PolicyDocument"])
            iam.create_policy_version(PolicyArn=arn, PolicyDocument=document, SetAsDefault=True)
            iam.delete_policy_version(PolicyArn=arn, VersionId=former)
        return super().update(at, existing, properties)
