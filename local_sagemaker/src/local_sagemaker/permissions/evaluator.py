"""Whether policies allow a request: IAM's evaluation, and nothing else.

Pure: policies and a request go in, a decision comes out. Source: IAM user guide, "Policy evaluation
logic", "How AWS enforcement code logic evaluates requests to allow or deny access",
"Permissions boundaries for IAM entities" and "Troubleshoot access denied error messages".

No kept package of a permissive licence does this: on PyPI iam-ape is GPL, aws-why a compiled command
and iam-policy-validator a linter; moto's access control ignores resources and conditions, and
@cloud-copilot/iam-simulate on npm is AGPL and TypeScript.
"""

from __future__ import annotations

import enum
import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .conditions import Context, NotJudged, arn_matches, as_texts, holds, is_like, operator_parts

_POLICY_ELEMENTS = {"Version", "Id", "Statement"}
_ELEMENTS = {
    "Sid",
    "Effect",
    "Principal",
    "Action",
    "NotAction",
    "Resource",
    "NotResource",
    "Condition",
}
_PRINCIPALS = {"AWS", "Service", "Federated", "CanonicalUser"}


# ----------------------------------------------------------------------------- what goes in


@dataclass(frozen=True)
class Principal:
    arn: str
    account: str = ""
    role: str = ""


@dataclass(frozen=True)
class Asked:
    """A request: one action on one resource, with the condition keys that it brings."""

    principal: Principal
    action: str
    resource: str
    account: str  # of the resource
    context: Context = field(default_factory=dict)


@dataclass(frozen=True)
class Policies:
    identity: tuple[Policy, ...] = ()
    boundary: Policy | None = None
    session: Policy | None = None
    resource: Policy | None = None
    resource_decides: bool = False
    endpoint: Policy | None = None


@dataclass(frozen=True)
class Decision:
    """Whether a request is allowed; if not, why, in AWS's words."""

    allowed: bool
    reason: str = ""


class _Grant(enum.IntEnum):
    """Whom a statement's Principal names, as far as it is the one who asks."""

    NOBODY = 0
    ACCOUNT = 1  # its account, which shares the right out with identity policies
    ROLE = 2  # its role, or everybody: within boundary and session policy
    ITSELF = 3  # the user or session by its own ARN: whatever boundary and session policy leave out


# -------------------------------------------------------------------------------- policies


@dataclass(frozen=True)
class Statement:
    denies: bool
    actions: tuple[str, ...]
    not_actions: bool
    resources: tuple[str, ...] | None  # None in a trust policy, which has none
    not_resources: bool
    principals: Mapping[str, tuple[str, ...]] | None
    """None in a policy of an identity, which names nobody."""
    conditions: tuple[tuple[str, str, list[str]], ...]
    variables: bool  # whether the policy's version has variables

    @classmethod
    def of(cls, element: Mapping[str, Any], version: str) -> Statement:
        """Read one; NotJudged for what IAM, or this evaluator, does not know."""
        if unknown := [name for name in element if name not in _ELEMENTS]:
            raise NotJudged(f"the policy element {unknown[0]}")
        if element.get("Effect") not in ("Allow", "Deny"):
            raise NotJudged(f"the Effect {element.get('Effect')}")
        if ("Action" in element) == ("NotAction" in element):
            raise NotJudged("a statement without exactly one of Action and NotAction")
        conditions = [
            (operator, key, as_texts(values))
            for operator, block in (element.get("Condition") or {}).items()
            for key, values in block.items()
        ]
        for operator in element.get("Condition") or {}:
            operator_parts(operator)
        resources = element.get("Resource", element.get("NotResource"))
        return cls(
            denies=element["Effect"] == "Deny",
            actions=tuple(as_texts(element.get("Action", element.get("NotAction")))),
            not_actions="NotAction" in element,
            resources=None if resources is None else tuple(as_texts(resources)),
            not_resources="NotResource" in element,
            principals=_principals(element.get("Principal")),
            conditions=tuple(conditions),
            variables=version != "2008-10-17",
        )

    def applies(self, asked: Asked) -> bool:
        """Say whether action, resource and conditions are those of a request."""
        named = any(is_like(one, asked.action, ignore_case=True) for one in self.actions)
        if named == self.not_actions:
            return False
        if self.resources is not None:
            meant = any(
                arn_matches(one, asked.resource, asked.context, variables=self.variables)
                for one in self.resources
            )
            if meant == self.not_resources:
                return False
        return all(holds(*line, asked.context) for line in self.conditions)

    def grant(self, principal: Principal) -> _Grant:
        """Say whom it names; a statement that names nobody is its owner's, so it means itself."""
        if self.principals is None:
            return _Grant.ITSELF
        found = _Grant.NOBODY
        for kind, names in self.principals.items():
            for name in names:
                found = max(found, _named(kind, name, principal))
        return found

    @property
    def is_everything(self) -> bool:
        """Whether it allows every action on everything, always."""
        return (
            not (self.denies or self.not_actions or self.not_resources or self.conditions)
            and "*" in self.actions
            and "*" in (self.resources or ())
        )


def _principals(element: Any) -> Mapping[str, tuple[str, ...]] | None:
    if element is None:
        return None
    if element == "*":
        return {"AWS": ("*",)}
    if unknown := [kind for kind in element if kind not in _PRINCIPALS]:
        raise NotJudged(f"the principal {unknown[0]}")
    return {kind: tuple(as_texts(names)) for kind, names in element.items()}


def _named(kind: str, name: str, principal: Principal) -> _Grant:
    """Say whether a principal of a policy is the one who asks."""
    if kind == "Service":
        return _Grant.ITSELF if name == principal.arn else _Grant.NOBODY
    if kind != "AWS":  # nobody here comes from an identity provider, nor has a canonical user
        return _Grant.NOBODY
    if name == "*":
        return _Grant.ROLE
    if principal.account and name in (principal.account, f"arn:aws:iam::{principal.account}:root"):
        return _Grant.ACCOUNT
    if "*" in name or "?" in name:
        raise NotJudged(f"a principal with a wildcard: {name}")
    if name == principal.arn:
        return _Grant.ITSELF
    return _Grant.ROLE if principal.role and name == principal.role else _Grant.NOBODY


@dataclass(frozen=True)
class Policy:
    statements: tuple[Statement, ...]

    def denies(self, asked: Asked) -> bool:
        return any(
            each.denies and each.grant(asked.principal) and each.applies(asked)
            for each in self.statements
        )

    def allows(self, asked: Asked) -> _Grant:
        """Say whom the allowing statements name, the nearest, whatever is unknown of others."""
        found, unknown = _Grant.NOBODY, None
        for each in self.statements:
            try:
                grant = each.grant(asked.principal)
                if grant > found and not each.denies and each.applies(asked):
                    found = grant
            except NotJudged as problem:
                unknown = problem
        if unknown is not None and found < _Grant.ITSELF:
            raise unknown
        return found


@functools.lru_cache(4096)
def read_policy(text: str) -> Policy:
    """Read a policy document, once; NotJudged for what IAM, or this evaluator, does not know."""
    document = json.loads(text)
    if unknown := [name for name in document if name not in _POLICY_ELEMENTS]:
        raise NotJudged(f"the policy element {unknown[0]}")
    # Without a version it is the older one.
    version = document.get("Version", "2008-10-17")
    statements = document["Statement"]
    statements = statements if isinstance(statements, list) else [statements]
    return Policy(tuple(Statement.of(each, version) for each in statements))


# -------------------------------------------------------------------------------- decision


def decide(asked: Asked, policies: Policies) -> Decision:
    """Judge a request; NotJudged when something in a policy is not known here."""
    if denying := _denying(asked, policies):
        return Decision(False, f"with an explicit deny in {denying}")
    if policies.endpoint and not policies.endpoint.allows(asked):
        return _missing("VPC endpoint policy", asked)
    grant = policies.resource.allows(asked) if policies.resource else _Grant.NOBODY
    home = asked.principal.account == asked.account
    if grant == _Grant.NOBODY and (policies.resource_decides or not home):
        return _missing("resource-based policy", asked)
    if not asked.principal.account:  # a service has nothing but what the resource gives it
        return Decision(True)
    # In one account one of the two is enough; between accounts both have to allow.
    if grant < _Grant.ROLE or not home:
        if not _any_allows(policies.identity, asked):
            return _missing("identity-based policy", asked)
    elif grant == _Grant.ITSELF:
        return Decision(True)
    if policies.boundary and not policies.boundary.allows(asked):
        return _missing("permissions boundary", asked)
    if policies.session and not policies.session.allows(asked):
        return _missing("session policy", asked)
    return Decision(True)


def allows_everything(policies: Policies) -> bool:
    """Say whether an identity may do whatever there is: an administrator, whom nothing limits."""
    statements = [each for policy in policies.identity for each in policy.statements]
    return (
        any(each.is_everything for each in statements)
        and not any(each.denies for each in statements)
        and not (policies.boundary or policies.session or policies.endpoint or policies.resource)
    )


def _any_allows(policies: Iterable[Policy], asked: Asked) -> bool:
    unknown = None
    for each in policies:
        try:
            if each.allows(asked):
                return True
        except NotJudged as problem:
            unknown = problem
    if unknown is not None:
        raise unknown
    return False


def _denying(asked: Asked, policies: Policies) -> str:
    """Name the kind of policy with a statement that denies a request; empty without one."""
    kinds: tuple[tuple[str, Iterable[Policy | None]], ...] = (
        ("a VPC endpoint policy", [policies.endpoint]),
        ("a resource-based policy", [policies.resource]),
        ("an identity-based policy", policies.identity),
        ("a permissions boundary", [policies.boundary]),
        ("a session policy", [policies.session]),
    )
    for kind, group in kinds:
        for policy in group:
            if policy is not None and policy.denies(asked):
                return kind
    return ""


def _missing(kind: str, asked: Asked) -> Decision:
    return Decision(False, f"because no {kind} allows the {asked.action} action")
