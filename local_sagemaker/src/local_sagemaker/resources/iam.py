"""AWS::IAM::*."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ..protocols import ServiceError
from .properties import Tagging, as_text, call, only
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated

_SETTINGS = ("Description", "MaxSessionDuration")

Owner = tuple[str, str]
"""A stack's ID, and a resource's logical ID in it."""
_owners: dict[tuple[str, str, str], Owner] = {}
"""Whose an inline policy is, by account, role and policy name."""


def forget() -> None:
    """Forget whose which inline policy is."""
    _owners.clear()


def _own(at: Place, role: str, policy: str) -> None:
    """Claim an inline policy's name on a role, which no other resource of any stack may have.

    Since 30 January 2026 CloudFormation refuses what it overwrote until then; the words are those
    of aws/modern-data-architecture-accelerator#36 and aws-amplify/amplify-cli#14961.
    """
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


@emulated
class Role(ResourceType):
    """A role with its inline and attached policies."""

    type_name = "AWS::IAM::Role"
    name_property = "RoleName"
    tags_by = Tagging("iam", "tag_role", "untag_role", "RoleName")

    def create(self, at: Place, properties: Properties) -> Created:
        iam = at.client("iam")
        name = self.name(at, properties, longest=64)
        arguments = only(
            properties, "AssumeRolePolicyDocument", "Path", "PermissionsBoundary", *_SETTINGS
        )
        answer = call(
            iam, "create_role", {**arguments, "RoleName": name, "Tags": properties.get("Tags", [])}
        )
        at.begin(name)
        self._put_policies(at, name, properties)
        role = answer["Role"]
        return Created(name, {"Arn": role["Arn"], "RoleId": role["RoleId"]})

    @staticmethod
    def _put_policies(at: Place, name: str, properties: Properties) -> None:
        iam = at.client("iam")
        for policy in properties.get("Policies") or []:
            _own(at, name, policy["PolicyName"])
            call(iam, "put_role_policy", {**policy, "RoleName": name})
        for arn in properties.get("ManagedPolicyArns") or []:
            iam.attach_role_policy(RoleName=name, PolicyArn=arn)

    @staticmethod
    def _remove_policies(
        at: Place, name: str, policies: Iterable[str], arns: Iterable[str]
    ) -> None:
        iam = at.client("iam")
        for policy in policies:
            _disown(at, name, policy)
            iam.delete_role_policy(RoleName=name, PolicyName=policy)
        for arn in arns:
            iam.detach_role_policy(RoleName=name, PolicyArn=arn)

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        iam, name, old = at.client("iam"), existing.physical_id, existing.properties
        iam.update_assume_role_policy(
            RoleName=name, PolicyDocument=json.dumps(properties["AssumeRolePolicyDocument"])
        )
        # Absent means AWS's default again, not "as it was".
        settings = {"Description": "", "MaxSessionDuration": 3600, **only(properties, *_SETTINGS)}
        call(iam, "update_role", {"RoleName": name, **settings})
        boundary = properties.get("PermissionsBoundary")
        if boundary != old.get("PermissionsBoundary"):
            if boundary:
                iam.put_role_permissions_boundary(RoleName=name, PermissionsBoundary=boundary)
            else:
                iam.delete_role_permissions_boundary(RoleName=name)
        before = {p["PolicyName"] for p in old.get("Policies") or []}
        after = {p["PolicyName"] for p in properties.get("Policies") or []}
        arns_before = set(old.get("ManagedPolicyArns") or [])
        arns_after = set(properties.get("ManagedPolicyArns") or [])
        self._remove_policies(at, name, before - after, arns_before - arns_after)
        self._put_policies(at, name, properties)

    def delete(self, at: Place, existing: Existing) -> None:
        iam, name = at.client("iam"), existing.physical_id
        policies = iam.list_role_policies(RoleName=name)["PolicyNames"]
        attached = iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
        self._remove_policies(at, name, policies, [p["PolicyArn"] for p in attached])
        iam.delete_role(RoleName=name)


@emulated
class Policy(ResourceType):
    """An inline policy of roles. Users and groups are not emulated."""

    type_name = "AWS::IAM::Policy"

    def create(self, at: Place, properties: Properties) -> Created:
        created = at.begin(at.generated_name(64))
        self._put(at, properties)
        return created

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        self._put(at, properties)
        self._remove(at, self._places(existing.properties) - self._places(properties))

    def delete(self, at: Place, existing: Existing) -> None:
        self._remove(at, self._places(existing.properties))

    @staticmethod
    def _places(properties: Properties) -> set[tuple[str, str]]:
        return {(role, properties["PolicyName"]) for role in properties.get("Roles") or []}

    def _put(self, at: Place, properties: Properties) -> None:
        document = as_text(properties["PolicyDocument"])
        for role, name in self._places(properties):
            _own(at, role, name)
            at.client("iam").put_role_policy(
                RoleName=role, PolicyName=name, PolicyDocument=document
            )

    @staticmethod
    def _remove(at: Place, places: Iterable[tuple[str, str]]) -> None:
        for role, name in places:
            if _disown(at, role, name):
                at.client("iam").delete_role_policy(RoleName=role, PolicyName=name)


@emulated
class ManagedPolicy(ResourceType):
    """A customer-managed policy, attached to roles."""

    type_name = "AWS::IAM::ManagedPolicy"
    name_property = "ManagedPolicyName"

    def create(self, at: Place, properties: Properties) -> Created:
        iam = at.client("iam")
        arguments = only(properties, "PolicyDocument", "Description", "Path")
        name = self.name(at, properties, longest=128)
        arn = call(iam, "create_policy", {**arguments, "PolicyName": name})["Policy"]["Arn"]
        at.begin(arn)
        for role in properties.get("Roles") or []:
            iam.attach_role_policy(RoleName=role, PolicyArn=arn)
        return Created(arn, {"PolicyArn": arn})

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        iam, arn = at.client("iam"), existing.physical_id
        if properties["PolicyDocument"] != existing.properties["PolicyDocument"]:
            # A policy keeps at most five versions: the former default is not needed any more.
            former = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
            iam.create_policy_version(
                PolicyArn=arn,
                PolicyDocument=as_text(properties["PolicyDocument"]),
                SetAsDefault=True,
            )
            iam.delete_policy_version(PolicyArn=arn, VersionId=former)
        before = set(existing.properties.get("Roles") or [])
        after = set(properties.get("Roles") or [])
        for role in after - before:
            iam.attach_role_policy(RoleName=role, PolicyArn=arn)
        for role in before - after:
            iam.detach_role_policy(RoleName=role, PolicyArn=arn)

    def delete(self, at: Place, existing: Existing) -> None:
        iam, arn = at.client("iam"), existing.physical_id
        for role in iam.list_entities_for_policy(PolicyArn=arn)["PolicyRoles"]:
            iam.detach_role_policy(RoleName=role["RoleName"], PolicyArn=arn)
        iam.delete_policy(PolicyArn=arn)


@emulated
class InstanceProfile(ResourceType):
    """An instance profile with its one role."""

    type_name = "AWS::IAM::InstanceProfile"
    name_property = "InstanceProfileName"

    def create(self, at: Place, properties: Properties) -> Created:
        iam, name = at.client("iam"), self.name(at, properties, longest=128)
        profile = iam.create_instance_profile(InstanceProfileName=name, **only(properties, "Path"))[
            "InstanceProfile"
        ]
        at.begin(name)
        for role in properties.get("Roles") or []:
            iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=role)
        return Created(name, {"Arn": profile["Arn"]})

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        iam, name = at.client("iam"), existing.physical_id
        self._empty(iam, name)
        for role in properties.get("Roles") or []:
            iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=role)

    def delete(self, at: Place, existing: Existing) -> None:
        iam, name = at.client("iam"), existing.physical_id
        self._empty(iam, name)
        iam.delete_instance_profile(InstanceProfileName=name)

    @staticmethod
    def _empty(iam: Any, name: str) -> None:
        profile = iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
        for role in profile["Roles"]:
            iam.remove_role_from_instance_profile(
                InstanceProfileName=name, RoleName=role["RoleName"]
            )


@emulated
class ServiceLinkedRole(ResourceType):
    """The role that a service makes for itself."""

    type_name = "AWS::IAM::ServiceLinkedRole"
    deletes_by = ("iam", "delete_service_linked_role", "RoleName")
    # No operation changes it in place.
    also_replaces = frozenset({"Description"})

    def create(self, at: Place, properties: Properties) -> Created:
        role = call(at.client("iam"), "create_service_linked_role", properties)["Role"]
        return Created(role["RoleName"], {"RoleName": role["RoleName"]})
