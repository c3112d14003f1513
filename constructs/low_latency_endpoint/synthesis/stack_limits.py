"""What AWS takes of one stack, counted in what its template will have, at each synthesis.

CDK asks a stack for its validations after all constructs are made and all aspects ran, and before
it writes the template. So the counts are those of the template, and a stack of 501 resources is
refused here before CDK refuses it. CDK itself warns of a template above CloudFormation's 1 MB;
500 resources of this library's stay below.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Self, cast

import jsii
from aws_cdk import App, CfnElement, CfnOutput, CfnResource, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct, IValidation

from ..errors import ConfigurationError
from ..facts.limit_kinds import Range
from ..facts.stack_limits import (
    COMPOSITE_RULE_LENGTH,
    ENDPOINT_POLICY_LENGTH,
    OUTPUTS,
    RESOURCES,
    ROLE_POLICIES_LENGTH,
)
from ..report.numbers import readable
from .construct_tree import kept, node_of, path_of, root_of, stack_of
from .sent_lengths import SentLengths

if TYPE_CHECKING:
    from aws_cdk.cx_api import CloudAssembly

_ENDPOINT = "AWS::SageMaker::Endpoint"
#: Texts of a resource by what they are, of which AWS limits the length.
_Texts = dict[str, Any]


def synthesised(app: IConstruct) -> CloudAssembly:
    """``app.synth()``, which raises the refusal of a stack's limits as a ConfigurationError.

    jsii hands only the text of a Python error to CDK, which raises a RuntimeError with that text.
    """
    try:
        return cast(App, app).synth()
    except RuntimeError:
        for refusals in _refused(app).values():
            if refusals:
                raise refusals[0] from None
        raise


def _refused(app: IConstruct) -> dict[str, list[ConfigurationError]]:
    """What was refused at the last synthesis, by the path of the stack."""
    refused: dict[str, list[ConfigurationError]] = kept(app, "refused", dict)
    return refused


@jsii.implements(IValidation)
class StackLimits:
    """The limits of one stack."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._users: list[tuple[Construct, IConstruct | None]] = []  # policies, each with its first
        node_of(stack).add_validation(self)

    @classmethod
    def hold(cls, scope: Construct) -> Self:
        """Check the scope's stack at each synthesis from now on."""
        stack = stack_of(scope)
        limits: Self = kept(stack, "limits", lambda: cls(stack))
        return limits

    def note_user(self, policy: Construct, user: IConstruct | None) -> None:
        """Note the construct that needs a policy; None where several constructs share it."""
        self._users.append((policy, user))

    def validate(self) -> list[str]:
        """The texts of the refusals, with which CDK ends the synthesis."""
        refusals = list(self._refusals())
        _refused(root_of(self._stack))[path_of(self._stack)] = refusals
        return [str(refusal) for refusal in refusals]

    def _refusals(self) -> Iterator[ConfigurationError]:
        elements = _elements(self._stack)
        resources = [
            element
            for element in elements
            if isinstance(element, CfnResource) and _is_synthesised(element)
        ]
        yield from self._counted(RESOURCES, resources, resources)
        outputs = [element for element in elements if isinstance(element, CfnOutput)]
        yield from self._counted(OUTPUTS, outputs, resources)
        lengths = SentLengths(self._stack, resources)
        measured = self._measured(resources)
        yield from self._policies(measured, lengths)
        for resource, texts in measured:
            if isinstance(resource, cloudwatch.CfnCompositeAlarm):
                length = lengths.of_text(texts["rule"])
                yield from self._long(COMPOSITE_RULE_LENGTH, length, resource)
            elif isinstance(resource, ec2.CfnVPCEndpoint):
                document = texts.get("document")
                length = lengths.of_document(document) if document else 0
                yield from self._long(ENDPOINT_POLICY_LENGTH, length, resource)

    def _measured(self, resources: Sequence[CfnResource]) -> list[tuple[CfnResource, _Texts]]:
        """The resources whose texts have limits, each with these as its template has them."""
        stated = [(resource, _stated_texts(resource)) for resource in resources]
        limited = [(resource, texts) for resource, texts in stated if texts]
        # One call to Node.js for all of them.
        resolved = self._stack.resolve([texts for _, texts in limited])
        return [(resource, texts) for (resource, _), texts in zip(limited, resolved, strict=True)]

    def _counted(
        self, limit: Range, elements: Sequence[CfnElement], resources: Sequence[CfnResource]
    ) -> Iterator[ConfigurationError]:
        """Refuse one element too many, at the first endpoint that does not fit."""
        total = len(elements)
        if limit.holds(total):
            return
        parts = Counter(self._part_of(path_of(element)) for element in elements)
        endpoints = dict.fromkeys(
            self._part_of(path_of(resource))
            for resource in resources
            if resource.cfn_resource_type == _ENDPOINT
        )
        got, where = f"{total:,} {limit.unit}", path_of(self._stack)
        count = total - sum(parts[endpoint] for endpoint in endpoints)
        for number, endpoint in enumerate(endpoints):
            if not limit.holds(count + parts[endpoint]):
                before = f"the {number} before it have" if number else "without it the stack has"
                got = f"{got}: {endpoint} is the first that does not fit, {before} {count:,}"
                where = f"{where}/{endpoint}"
                break
            count += parts[endpoint]
        yield limit.rule.error(got=got, allowed=f"at most {readable(limit.maximum)}", where=where)

    def _policies(
        self, measured: Sequence[tuple[CfnResource, _Texts]], lengths: SentLengths
    ) -> Iterator[ConfigurationError]:
        """Refuse the inline policies of a role that are too long together."""
        roles: dict[str, list[tuple[CfnResource, int]]] = {}
        for resource, texts in measured:
            for role, document in _inline_policies(texts):
                length = lengths.of_document(document)
                roles.setdefault(role, []).append((resource, length))
        for policies in roles.values():
            total = sum(length for _, length in policies)
            if not ROLE_POLICIES_LENGTH.holds(total):
                yield self._too_long(total, policies)

    def _too_long(
        self, total: int, policies: Sequence[tuple[CfnResource, int]]
    ) -> ConfigurationError:
        """The refusal of a role's policies, at the first endpoint with which they are too long."""
        lengths: dict[str, int] = {}
        users = {path_of(policy): user for policy, user in self._users}
        endpoint = ""
        for resource, length in policies:
            endpoint = self._user_of(path_of(resource), users) or endpoint
            lengths[endpoint] = lengths.get(endpoint, 0) + length
        shared = lengths.pop("", 0)
        sums = accumulate(lengths.values(), initial=shared)
        fitting = sum(map(ROLE_POLICIES_LENGTH.holds, sums)) - 1
        where = "/".join([path_of(self._stack), *list(lengths)[max(fitting, 0) :][:1]])
        return ROLE_POLICIES_LENGTH.rule.error(
            got=f"{total:,} characters for {len(lengths)} endpoints",
            allowed=f"{readable(ROLE_POLICIES_LENGTH.maximum)} characters: {max(fitting, 0)} of "
            "these endpoints fit, less what else the role has",
            where=where,
        )

    def _user_of(self, path: str, users: Mapping[str, IConstruct | None]) -> str:
        """The stack's child that needs a policy; empty where several children share the policy."""
        for noted in (
            path,
            path.rpartition("/")[0],
        ):  # the policy, or the resource of an iam.Policy
            if noted in users:
                user = users[noted]
                return "" if user is None else self._part_of(path_of(user))
        return self._part_of(path)

    def _long(
        self, limit: Range, length: int, resource: CfnResource
    ) -> Iterator[ConfigurationError]:
        if not limit.holds(length):
            where = path_of(resource).removesuffix("/Resource")
            yield limit.rule.error(
                got=f"{length:,} {limit.unit}", allowed=limit.allowed, where=where
            )

    def _part_of(self, path: str) -> str:
        """The stack's child in a path; in the stack of a settings file, an endpoint's key."""
        return path.removeprefix(f"{path_of(self._stack)}/").partition("/")[0]


def _elements(stack: Stack) -> list[CfnElement]:
    """What the stack's own template has, without that of stacks nested in it."""
    constructs = stack.node.find_all()
    nested = [f"{path_of(each)}/" for each in constructs[1:] if isinstance(each, Stack)]
    elements = [construct for construct in constructs if isinstance(construct, CfnElement)]
    if nested:
        elements = [each for each in elements if not path_of(each).startswith(tuple(nested))]
    return elements


def _is_synthesised(resource: CfnResource) -> bool:
    """Whether the template will have a resource: of CDK's own, only policies may be left out."""
    decides_itself = type(resource)._should_synthesize is not CfnResource._should_synthesize
    if decides_itself or isinstance(resource, iam.CfnPolicy):
        return resource._should_synthesize()
    return True


def _stated_texts(resource: CfnResource) -> _Texts:
    """The texts of a resource that have limits, as its construct has them; empty without any."""
    if isinstance(resource, iam.CfnRole):
        policies = resource.policies
        return {"policies": policies, "role": resource.ref} if policies else {}
    if isinstance(resource, iam.CfnPolicy):
        return {"roles": resource.roles, "document": resource.policy_document}
    if isinstance(resource, cloudwatch.CfnCompositeAlarm):
        return {"rule": resource.alarm_rule}
    if isinstance(resource, ec2.CfnVPCEndpoint):
        return {"document": resource.policy_document}
    return {}


def _inline_policies(texts: _Texts) -> Iterator[tuple[str, Any]]:
    """The role and the document of each inline policy that a resource is or has."""
    # What an included template has in place of a list, such as an Fn::If, is left out.
    policies, roles = texts.get("policies"), texts.get("roles")
    for policy in policies if isinstance(policies, list) else ():
        yield json.dumps(texts["role"]), policy.get("policyDocument")
    for role in roles if isinstance(roles, list) else ():
        yield json.dumps(role), texts.get("document")
