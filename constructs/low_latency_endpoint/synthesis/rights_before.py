"""The rights that other code of the app gives to a role, which whoever uses the role waits for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import jsii
from aws_cdk import CfnResource
from aws_cdk import aws_iam as iam
from constructs import Construct, Dependable, IConstruct

from .asked_once import path_of, stack_of
from .role_rights import RoleRights, is_ours

_ID = "RightsBefore"
_MAY_WAIT = ("AWS::SageMaker::", "AWS::Lambda::", "AWS::CloudFormation::", "Custom::")


class RightsBefore(Construct):
    """Stands for all policies of a stack that attach themselves to a role.

    An ``iam.Policy`` or ``iam.ManagedPolicy`` with ``roles=[role]`` is a resource of its own, which
    nothing that has the role depends on. Whoever depends on this depends on all of them, also on
    those that are made later. A policy that refers to a model, an endpoint or a function is left
    out, since what it refers to may be what waits. So are :class:`RoleRights`, which are waited
    for one by one.
    """

    def __init__(self, scope: Construct, role: iam.IRole) -> None:
        super().__init__(scope, _ID)
        Dependable.implement(self, _Attached(self, role))

    @classmethod
    def of(cls, scope: Construct, role: iam.IRole) -> RightsBefore:
        """That of the scope's stack and the role, made where there is none."""
        holder = RoleRights.given(scope, role).scope
        found = holder.node.try_find_child(_ID) or cls(holder, role)
        assert isinstance(found, RightsBefore)
        return found


class _Attached(Dependable):
    """Looks for the policies when CDK puts the dependencies down, after all is made."""

    def __init__(self, holder: Construct, role: iam.IRole) -> None:
        super().__init__()
        self._holder, self._role = holder, role
        self._found: tuple[int, list[IConstruct]] = (0, [])

    @property
    @jsii.member(jsii_name="dependencyRoots")
    def dependency_roots(self) -> list[IConstruct]:
        """The policies in the stack whose roles are this one; CDK asks for each dependent."""
        constructs = stack_of(self._holder).node.find_all()
        if self._found[0] != len(constructs):
            self._found = (len(constructs), self._among(constructs))
        return self._found[1]

    def _among(self, constructs: Sequence[IConstruct]) -> list[IConstruct]:
        stack = stack_of(self._holder)
        name = stack.resolve(self._role.role_name)
        made = [each for each in constructs if isinstance(each, CfnResource)]
        waiting = [
            stack.resolve(each.logical_id)
            for each in made
            if each.cfn_resource_type.startswith(_MAY_WAIT)
        ]
        return [
            policy
            for policy in made
            if isinstance(policy, (iam.CfnPolicy, iam.CfnManagedPolicy))
            and name in (stack.resolve(policy.roles) or [])
            and not is_ours(policy)
            and not _names(stack.resolve(policy.policy_document), waiting)
            and path_of(stack_of(policy)) == path_of(stack)
        ]


def _names(document: Any, logical_ids: Sequence[str]) -> bool:
    text = json.dumps(document)
    return any(f'"{name}"' in text for name in logical_ids)
