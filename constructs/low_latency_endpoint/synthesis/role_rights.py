"""Inline policies on roles: named for their stack, and never rewritten by an update; and those that
other code of the app attaches."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from posixpath import commonpath
from typing import Any, cast

import jsii
from aws_cdk import Aws, CfnResource, Fn, Reference, Stack, Tokenization
from aws_cdk import aws_iam as iam
from constructs import Construct, Dependable, IConstruct, IDependable, IValidation

from ..plan.launched_names import as_named
from .annotations import acknowledge_in_template, warn
from .construct_tree import TreePart, digest, digest_of, only_child, path_of, region_of, stack_of
from .homes import check_home, check_homes_of
from .launched_names import launched
from .rights import document, keys_apart
from .stack_limits import StackLimits
from .template_values import is_token, pseudo_parameters

_GIVEN = "RoleRights"
_LONGEST_STACK_NAME = 80  # of the 128 characters of a policy's name

_OF_RESOURCE = re.compile(r'"Fn::GetAtt"|"Ref": "(?!AWS::)')
_MARKER = re.compile(r"[$#]\{Token\[[^\]]*\]\}")  # a token in a text, or in a list's only entry

_RIGHTS_BEFORE = "RightsBefore"
_MAY_WAIT = ("AWS::SageMaker::", "AWS::Lambda::", "AWS::CloudFormation::", "Custom::")


class RoleRights:
    """What one stack allows one role, beside what the role says itself."""

    # Each policy's logical ID follows its content: an update makes the new policy before what needs
    # it, and CloudFormation's clean-up takes the former one away, when nothing serves with it any
    # more. Its name follows the content alone, not the logical ID: `cdk refactor` moves resources
    # whose properties are the same in both places.

    def __init__(
        self, scope: Construct, role: iam.IRole | iam.CfnRole, *, name_end: str = ""
    ) -> None:
        self.scope, self._role, self._name_end = scope, role, name_end
        self._limits = StackLimits.hold(scope)
        self._left_out = _LeftOut(scope, role)
        self._policies: dict[tuple[IConstruct, str], Construct] = {}

    @classmethod
    def made(
        cls,
        scope: Construct,
        id: str,
        *,
        trusted: Mapping[str, Any],
        policy_name: str,
        statements: Sequence[Mapping[str, Any]],
    ) -> tuple[iam.CfnRole, RoleRights, list[IDependable]]:
        """A new role with its statements; those for keys, which may be exchanged, stand apart."""
        own, for_keys = keys_apart(statements)
        role = iam.CfnRole(
            scope,
            id,
            assume_role_policy_document=trusted,
            policies=[
                iam.CfnRole.PolicyProperty(policy_name=policy_name, policy_document=document(*own))
            ],
        )
        reason = "Each policy names this stack's resources and is deleted with its role."
        acknowledge_in_template(role, {"IAM_NO_INLINE_POLICY_CHECK": reason})
        rights = cls(scope, role)
        keys = [rights.allow(f"{id}Keys", *for_keys, owner=scope)] if for_keys else []
        return role, rights, list(keys)

    @classmethod
    def given(cls, scope: Construct, role: iam.IRole) -> RoleRights:
        """Those of the scope's stack on a role that is made elsewhere, maybe with several users."""
        # CloudFormation refuses a policy of a name that another stack, or another resource, has on
        # the role. A role is its account's in all Regions, so the names carry stack and Region.
        stack = stack_of(scope)
        of_stack: Construct = only_child(stack, _GIVEN, lambda: TreePart(stack, _GIVEN))
        check_home(scope, role.role_arn)
        holder_id = digest(stack, role.role_arn)
        holder = of_stack.node.try_find_child(holder_id) or _Given(of_stack, holder_id, role)
        return cast(_Given, holder).rights

    def allow(
        self,
        kind: str,
        *statements: Mapping[str, Any],
        owner: IConstruct | None,
        scope: Construct | None = None,
        fixed: bool = False,
    ) -> Construct:
        """A policy with these statements; whatever needs the right has to depend on it."""
        parent = self.scope if self._name_end else scope or self.scope
        resolved = stack_of(parent).resolve(list(statements))
        check_homes_of(owner or parent, resolved)
        content_digest = _digest_below(parent, list(statements), resolved)
        name = kind if fixed else f"{kind}{content_digest}"
        if (parent, name) not in self._policies:
            policy = self._made(parent, name, statements)
            self._policies[parent, name] = policy
            self._limits.note_user(policy, owner)
        return self._policies[parent, name]

    def _made(
        self, parent: Construct, name: str, statements: Sequence[Mapping[str, Any]]
    ) -> Construct:
        content = document(*statements)
        if isinstance(self._role, iam.CfnRole):
            return iam.CfnPolicy(
                parent, name, policy_name=name, roles=[self._role.ref], policy_document=content
            )
        attached = iam.Policy(
            parent,
            name,
            policy_name=f"{name}-{self._name_end}" if self._name_end else name,
            document=iam.PolicyDocument.from_json(content),
        )
        self._role.attach_inline_policy(attached)  # which a role imported as immutable leaves out
        if self._name_end:
            self._left_out.note(attached, statements)
        return attached


@jsii.implements(IValidation)
class _LeftOut:
    """The actions that a role needs, and that nothing in the stack can allow it: one warning of all."""

    def __init__(self, holder: Construct, role: iam.IRole | iam.CfnRole) -> None:
        self._holder, self._role = holder, role
        self._actions: set[str] = set()

    def note(self, policy: iam.Policy, statements: Sequence[Mapping[str, Any]]) -> None:
        """Note what a policy says, if the role did not take it."""
        resource = cast(iam.CfnPolicy, policy.node.default_child)
        if stack_of(self._holder).resolve(resource.roles):
            return
        if not self._actions:
            # When all is made; before the annotations are written.
            self._holder.node.add_validation(self)
        for statement in statements:
            self._actions.update(statement["Action"])

    def validate(self) -> list[str]:
        """Warn; there is never a complaint."""
        warn(
            self._holder,
            "roleCannotBeChanged",
            f"The role {path_of(self._role)} cannot be changed here (mutable=False, another account, "
            f"or customized roles), so that nothing is attached to it. It must be allowed: "
            f"{', '.join(sorted(self._actions))}. A template with a role that can be changed has the "
            "statements.",
        )
        return []


def _digest_below(scope: IConstruct, value: Any, resolved: Any) -> str:
    """The same for the same value wherever the scope is in its stack.

    A resource counts by its path below the nearest construct that holds both it and the scope.
    """
    # Node.js is asked for paths only where the value, as the stack resolved it, names resources.
    if not _OF_RESOURCE.search(json.dumps(resolved)):
        return digest_of(as_named(resolved))
    text = json.dumps(value, sort_keys=True, default=stack_of(scope).resolve)
    for token, name in zip(pseudo_parameters(), ("Partition", "Region", "AccountId"), strict=True):
        text = text.replace(token, f"AWS::{name}")
    meanings = {marker: _meaning(scope, marker) for marker in set(_MARKER.findall(text))}
    return digest_of(_MARKER.sub(lambda marker: meanings[marker.group()], text))


def _meaning(scope: IConstruct, marker: str) -> str:
    """What a token's text refers to: a resource by its path, anything else as the stack has it."""
    token = Tokenization.reverse_string(marker).first_token if marker[0] == "$" else None
    if not isinstance(token, Reference):
        return json.dumps(as_named(stack_of(scope).resolve(marker)), sort_keys=True)
    path = path_of(token.target)
    shared = commonpath([path, path_of(scope)])
    return f"{token.display_name} of {path.removeprefix(shared).lstrip('/')}"


class _Given(TreePart):
    """Holds a stack's policies on one role that is given."""

    def __init__(self, scope: Construct, id: str, role: iam.IRole) -> None:
        super().__init__(scope, id)
        self.rights = RoleRights(self, role, name_end=_of_stack(stack_of(scope)))


def _of_stack(stack: Stack) -> str:
    """What no other stack's policies end with, in at most 100 characters."""
    unique = Fn.select(2, Fn.split("/", Aws.STACK_ID))
    if is_token(stack.stack_name):  # nested: CloudFormation names it
        return unique
    name = stack.stack_name
    if len(name) > _LONGEST_STACK_NAME:
        name = f"{name[: _LONGEST_STACK_NAME - 9]}-{digest(stack, name)}"
    return f"{launched(stack, name, elsewhere=unique)}-{region_of(stack)}"


def is_ours(policy: IConstruct) -> bool:
    """Whether a policy is one of those that :meth:`RoleRights.given` makes."""
    return any(isinstance(scope, _Given) for scope in policy.node.scopes)


class RightsBefore(Construct):
    """Stands for all policies that other code of a stack attaches to a role, now or later."""

    # Nothing that has the role depends on such an iam.Policy or iam.ManagedPolicy. One that refers
    # to a model, an endpoint or a function is left out, since what it refers to may be what waits;
    # so are RoleRights, which are waited for one by one.

    def __init__(self, scope: Construct, role: iam.IRole) -> None:
        super().__init__(scope, _RIGHTS_BEFORE)
        Dependable.implement(self, _Attached(self, role))

    @classmethod
    def of(cls, scope: Construct, role: iam.IRole) -> RightsBefore:
        """That of the scope's stack and the role, made where there is none."""
        holder = RoleRights.given(scope, role).scope
        rights = holder.node.try_find_child(_RIGHTS_BEFORE) or cls(holder, role)
        return cast(RightsBefore, rights)


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
        resources = [construct for construct in constructs if isinstance(construct, CfnResource)]
        waiting = [
            stack.resolve(resource.logical_id)
            for resource in resources
            if resource.cfn_resource_type.startswith(_MAY_WAIT)
        ]
        return [
            policy
            for policy in resources
            if isinstance(policy, (iam.CfnPolicy, iam.CfnManagedPolicy))
            and name in (stack.resolve(policy.roles) or [])
            and not is_ours(policy)
            and not _mentions(stack.resolve(policy.policy_document), waiting)
            and path_of(stack_of(policy)) == path_of(stack)
        ]


def _mentions(document: Any, logical_ids: Sequence[str]) -> bool:
    text = json.dumps(document)
    return any(f'"{name}"' in text for name in logical_ids)
