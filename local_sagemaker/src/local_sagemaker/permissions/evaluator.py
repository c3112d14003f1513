"""Whether policies allow a request: IAM's patterns, variables, conditions and evaluation.

Source: IAM user guide, "IAM JSON policy elements: Condition operators", "Single-valued vs.
multivalued context keys", "Variables and tags", "Resource".

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
import ipaddress
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from ..wildcards import ANY, NO_COLON, ONE, SEGMENT, matches

Context = Mapping[str, "str | tuple[str, ...]"]
"""What a request brings, by condition key in lower case; several values are a tuple."""

_VARIABLE = re.compile(r"\$\{([^}]*)\}")


class NotJudged(Exception):
    """A policy or a request has something that this evaluator does not know; the text names it."""


# ------------------------------------------------------------------------------- patterns


_PART = re.compile(r"\$\{[^}]*\}|.", re.DOTALL)


def is_like(pattern: str, value: str, *, ignore_case: bool = False) -> bool:
    if ignore_case:
        pattern, value = pattern.lower(), value.lower()
    return matches(tuple({"*": ANY, "?": ONE}.get(letter, letter) for letter in pattern), value)


def _value(variable: str, context: Context) -> str | None:
    """Give what `${variable}` stands for; None when it has no value, or several."""
    key, _, default = (part.strip() for part in variable[2:-1].partition(","))
    value = key if key in ("*", "?", "$") else context.get(key.lower(), default.strip("'"))
    return None if not value or isinstance(value, tuple) else value


def _filled(text: str, context: Context) -> str | None:
    """Fill in the variables of a text; None, which equals nothing, when one has no value."""
    values = {found[0]: _value(found[0], context) for found in _VARIABLE.finditer(text)}
    if None in values.values():
        return None
    return _VARIABLE.sub(lambda found: values[found[0]] or "", text)


@functools.lru_cache(8192)
def _parts(text: str, *, segments: bool) -> tuple[str, ...]:
    """Take a pattern apart into wildcards, letters and variables.

    Of segments, `*` and `?` stop at a colon, but not a `*` that ends what stands between two.
    """
    wildcards = {"*": SEGMENT, "?": NO_COLON} if segments else {"*": ANY, "?": ONE}
    parts = [wildcards.get(found, found) for found in _PART.findall(text)]
    for number, following in enumerate([*parts[1:], ":"][: len(parts)]):
        if parts[number] == SEGMENT and following == ":":
            parts[number] = ANY
    return tuple(parts)


def _is_like(text: str, value: str, context: Context, *, segments: bool = False) -> bool:
    """Match a value; a variable's value is letters, and a missing one matches nothing."""
    parts = _parts(text, segments=segments)
    if "${" not in text:
        return matches(parts, value)
    filled: list[str] = []
    for part in parts:
        letters = _value(part, context) if part.startswith("${") else (part,)
        if letters is None:
            return False
        filled += letters
    return matches(tuple(filled), value)


def _without_variables(text: str) -> str:
    """Write a text so that it has no variables, as in a policy of an older version."""
    return text.replace("${", "${$}{")


def fields_of(pattern: str) -> list[str]:
    """Take an ARN apart; a colon within a variable separates nothing."""
    hidden = _VARIABLE.sub(lambda found: found[0].replace(":", "\0"), pattern)
    return [field.replace("\0", ":") for field in hidden.split(":", 5)]


def arn_matches(pattern: str, arn: str, context: Context, *, segments: bool = False) -> bool:
    """Match an ARN field by field; one without six of them matches nothing."""
    fields, values = fields_of(pattern), arn.split(":", 5)
    return len(fields) == len(values) == 6 and all(
        _is_like(field, value, context, segments=segments)
        for field, value in zip(fields, values, strict=True)
    )


_WITHOUT_TYPE = ("apigateway", "execute-api", "s3", "sns", "sqs")
_WILD_TYPE = re.compile(r"[^/:]*[*?][^/:]*[/:]")


def _has_wild_type(pattern: str, arn: str) -> bool:
    """Say whether a pattern has a wildcard in the type of a resource that has one."""
    typed = arn.count(":") > 4 and arn.split(":")[2] not in _WITHOUT_TYPE
    return typed and bool(_WILD_TYPE.match(fields_of(pattern)[-1]))


# ----------------------------------------------------------------------------- conditions


def _moment(text: str) -> float:
    try:
        return float(text)  # seconds since 1970
    except ValueError:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _in_network(wanted: str, given: str) -> bool:
    return ipaddress.ip_address(given) in ipaddress.ip_network(wanted, strict=False)


def _compared(read: Callable[[str], float], how: Callable[[float, float], bool]) -> _Test:
    return lambda wanted, given, _: how(read(given), read(wanted))


_Test = Callable[[str, str, Context], bool]
_Order = Callable[[float, float], bool]
_ORDERS: dict[str, _Order] = {
    "Equals": lambda given, wanted: given == wanted,
    "LessThan": lambda given, wanted: given < wanted,
    "LessThanEquals": lambda given, wanted: given <= wanted,
    "GreaterThan": lambda given, wanted: given > wanted,
    "GreaterThanEquals": lambda given, wanted: given >= wanted,
}
_TESTS: dict[str, _Test] = {
    "StringEquals": lambda wanted, given, context: _filled(wanted, context) == given,
    "StringEqualsIgnoreCase": lambda wanted, given, context: (
        (text := _filled(wanted, context)) is not None and text.lower() == given.lower()
    ),
    "StringLike": _is_like,
    "ArnEquals": lambda wanted, given, context: arn_matches(wanted, given, context),
    "ArnLike": lambda wanted, given, context: arn_matches(wanted, given, context),
    "Bool": lambda wanted, given, _: wanted.lower() == given.lower(),
    "BinaryEquals": lambda wanted, given, _: wanted == given,
    "IpAddress": lambda wanted, given, _: _in_network(wanted, given),
    **{f"Numeric{name}": _compared(float, order) for name, order in _ORDERS.items()},
    **{f"Date{name}": _compared(_moment, order) for name, order in _ORDERS.items()},
}
_NEGATED = {
    "StringNotEquals": "StringEquals",
    "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase",
    "StringNotLike": "StringLike",
    "ArnNotEquals": "ArnEquals",
    "ArnNotLike": "ArnLike",
    "NumericNotEquals": "NumericEquals",
    "DateNotEquals": "DateEquals",
    "NotIpAddress": "IpAddress",
}
_QUANTIFIERS = ("ForAllValues", "ForAnyValue")


def operator_parts(operator: str) -> tuple[str, str, bool]:
    """Take an operator apart: quantifier, name, whether IfExists; NotJudged for none of IAM's."""
    quantifier, colon, name = operator.rpartition(":")
    plain = name.removesuffix("IfExists")
    known = plain == "Null" or plain in _TESTS or plain in _NEGATED
    if not known or (colon and quantifier not in _QUANTIFIERS) or name == "NullIfExists":
        raise NotJudged(f"the condition operator {operator}")
    return quantifier, plain, plain != name


def as_texts(value: object) -> list[str]:
    """Give one value or several as texts, as JSON's booleans and numbers are meant."""
    values = value if isinstance(value, list) else [value]
    return [str(value).lower() if isinstance(value, bool) else str(value) for value in values]


def holds(operator: str, key: str, wanted: list[str], context: Context) -> bool:
    """Say whether one line of a Condition holds.

    A key that is not there, or has no value, makes a positive operator false, a negated one true, one
    with IfExists true; before all of that ForAllValues is true then, ForAnyValue false.
    """
    quantifier, name, if_exists = operator_parts(operator)
    given = context.get(key.lower())
    given = None if given == () else given
    if name == "Null":
        return any((given is None) == (text.lower() == "true") for text in wanted)
    negated = name in _NEGATED
    if given is None:
        return quantifier == "ForAllValues" if quantifier else if_exists or negated
    values = given if isinstance(given, tuple) else (given,)
    test = _TESTS[_NEGATED.get(name, name)]

    def matches(value: str) -> bool:
        try:
            return any(test(text, value, context) for text in wanted)
        except ValueError:  # no number, no date, no address: it equals none
            return False

    if quantifier == "ForAllValues":
        return all(matches(value) != negated for value in values)
    if quantifier == "ForAnyValue":
        return any(matches(value) != negated for value in values)
    return any(matches(value) for value in values) != negated


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
    gateway: bool = False  # whether the endpoint is a gateway: there no principal has a name


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

    @classmethod
    def of(cls, element: Mapping[str, Any], version: str) -> Statement:
        """Read one; NotJudged for what IAM, or this evaluator, does not know."""
        if unknown := [name for name in element if name not in _ELEMENTS]:
            raise NotJudged(f"the policy element {unknown[0]}")
        if element.get("Effect") not in ("Allow", "Deny"):
            raise NotJudged(f"the Effect {element.get('Effect')}")
        if ("Action" in element) == ("NotAction" in element):
            raise NotJudged("a statement without exactly one of Action and NotAction")
        denies = element["Effect"] == "Deny"
        read = as_texts if version != "2008-10-17" else _literal_texts
        conditions = [
            (operator, key, _completed(operator, read(values), denies=denies))
            for operator, block in (element.get("Condition") or {}).items()
            for key, values in block.items()
        ]
        resources = element.get("Resource", element.get("NotResource"))
        return cls(
            denies=denies,
            actions=tuple(as_texts(element.get("Action", element.get("NotAction")))),
            not_actions="NotAction" in element,
            resources=None if resources is None else tuple(read(resources)),
            not_resources="NotResource" in element,
            principals=_principals(element.get("Principal")),
            conditions=tuple(conditions),
        )

    def applies(self, asked: Asked) -> bool:
        """Say whether action, resource and conditions are those of a request."""
        named = any(is_like(action, asked.action, ignore_case=True) for action in self.actions)
        if named == self.not_actions or not self._means(asked):
            return False
        return all(holds(*line, asked.context) for line in self.conditions)

    def _means(self, asked: Asked) -> bool:
        """Say whether it is about a request's resource; in doubt it denies, and does not allow."""
        if self.resources is None:
            return True
        if (
            self.not_resources
            and not self.denies
            and any(_filled(resource, asked.context) is None for resource in self.resources)
        ):
            return False
        return self.not_resources != any(
            self._names(resource, asked) for resource in self.resources
        )

    def _names(self, pattern: str, asked: Asked) -> bool:
        if pattern == "*":
            return True
        # How far a `*` reaches is open, whether it may stand in a type, and what is completed where.
        wide = (pattern, _padded(pattern)) if self.denies != self.not_resources else ()
        if any(_is_like(text, asked.resource, asked.context) for text in wide):
            return True
        if self.principals is None or pattern.endswith("*"):
            pattern = _padded(pattern)
        if _has_wild_type(pattern, asked.resource):
            return False
        return arn_matches(pattern, asked.resource, asked.context, segments=True)

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


def _literal_texts(value: object) -> list[str]:
    return [_without_variables(text) for text in as_texts(value)]


def _completed(operator: str, wanted: list[str], *, denies: bool) -> list[str]:
    """Give what a condition wants; in doubt whether a part of an ARN means any, it denies.

    NotJudged for an operator that is none of IAM's.
    """
    _, name, _ = operator_parts(operator)
    if not name.startswith("Arn") or denies == (name in _NEGATED):
        return wanted
    return [_padded(text) for text in wanted]


def _padded(pattern: str) -> str:
    """Complete an ARN that has fewer than six fields."""
    return pattern + ":*" * (6 - len(fields_of(pattern)))


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
            statement.denies and statement.grant(asked.principal) and statement.applies(asked)
            for statement in self.statements
        )

    def allows(self, asked: Asked) -> _Grant:
        """Say whom the allowing statements name, the nearest; NotJudged if others may name nearer."""
        found = possible = _Grant.NOBODY
        unknown = None
        for statement in self.statements:
            grant = _Grant.ITSELF  # as far as is known
            try:
                grant = statement.grant(asked.principal)
                if grant > found and not statement.denies and statement.applies(asked):
                    found = grant
            except NotJudged as problem:
                possible, unknown = max(possible, grant), problem
        if unknown is not None and found < possible:
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
    return Policy(tuple(Statement.of(statement, version) for statement in statements))


# -------------------------------------------------------------------------------- decision


def decide(asked: Asked, policies: Policies) -> Decision:
    """Judge a request; NotJudged when something in a policy is not known here."""
    if denying := _denying(asked, policies):
        return Decision(False, f"with an explicit deny in {denying}")
    if policies.endpoint and not policies.endpoint.allows(_at_endpoint(asked, policies)):
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


def _at_endpoint(asked: Asked, policies: Policies) -> Asked:
    """Give a request as the policy of its VPC endpoint sees it.

    Source: AWS PrivateLink guide, "Principals for gateway endpoints": an account there is its root
    user only, and a role or user is reached by `*`.
    """
    is_root = asked.principal.arn.endswith(":root")
    return replace(asked, principal=Principal("")) if policies.gateway and not is_root else asked


def allows_everything(policies: Policies) -> bool:
    """Say whether an identity may do whatever there is: an administrator, whom nothing limits."""
    statements = [statement for policy in policies.identity for statement in policy.statements]
    return (
        any(statement.is_everything for statement in statements)
        and not any(statement.denies for statement in statements)
        and not (policies.boundary or policies.session or policies.endpoint or policies.resource)
    )


def _any_allows(policies: Iterable[Policy], asked: Asked) -> bool:
    unknown = None
    for policy in policies:
        try:
            if policy.allows(asked):
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
