"""What a resource policy lets through: enough of IAM's language for endpoint policies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

_EQUALS: dict[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda value, wanted: value == wanted,
    "StringEqualsIgnoreCase": lambda value, wanted: value.lower() == wanted.lower(),
    "StringLike": lambda value, wanted: _like(value, wanted),
    "ArnEquals": lambda value, wanted: _like(value, wanted),
    "ArnLike": lambda value, wanted: _like(value, wanted),
}
#: The same with "Not": none of the values may be equal.
_DIFFERS = {
    name.replace("Equals", "NotEquals").replace("Like", "NotLike"): equal
    for name, equal in _EQUALS.items()
}


@dataclass(frozen=True)
class PolicyVerdict:
    allowed: bool | None  # ``None`` when it depends on what is not known here
    # what that is: ``operator key`` of conditions, or principals by their ARN
    depends_on: tuple[str, ...] = ()


def verdict(
    policy: Mapping[str, Any], action: str, resource: str, context: Mapping[str, str]
) -> PolicyVerdict:
    """Whether the policy allows an action on a resource: a match to allow, and none to deny.

    >>> policy = {"Statement": [{"Effect": "Allow", "Action": "sagemaker:Invoke*",
    ...           "Resource": "arn:aws:sagemaker:*:*:endpoint/mine"}]}
    >>> arn = "arn:aws:sagemaker:us-east-1:123456789012:endpoint/"
    >>> verdict(policy, "sagemaker:InvokeEndpoint", arn + "mine", {})
    PolicyVerdict(allowed=True, depends_on=())
    >>> verdict(policy, "sagemaker:InvokeEndpoint", arn + "other", {}).allowed
    False
    >>> policy["Statement"][0]["Condition"] = {"StringEquals": {"aws:SourceVpc": "vpc-1"}}
    >>> verdict(policy, "sagemaker:InvokeEndpoint", arn + "mine", {})
    PolicyVerdict(allowed=None, depends_on=('StringEquals aws:SourceVpc',))
    """
    doubts: dict[str, list[str]] = {"Allow": [], "Deny": []}
    effects = set()
    for statement in items(policy.get("Statement")):
        effect = str(statement.get("Effect"))
        if effect not in doubts or not _matches(statement, action, resource):
            continue
        asked = _asks_of_principal(statement, context.get("aws:PrincipalAccount", ""))
        conditions = _asks_of_request(statement, context)
        if asked is None or conditions is None:
            continue  # speaks of others
        if asked or conditions:
            doubts[effect] += [*asked, *conditions]
        else:
            effects.add(effect)
    if "Deny" in effects:
        return PolicyVerdict(False)
    unknown = doubts["Deny"] if "Allow" in effects else doubts["Deny"] + doubts["Allow"]
    if unknown and ("Allow" in effects or doubts["Allow"]):
        return PolicyVerdict(None, tuple(sorted(set(unknown))))
    return PolicyVerdict("Allow" in effects)


def items(value: Any) -> list[Any]:
    """A value that may stand alone or in a list, as a list.

    >>> items("a"), items(["a", "b"]), items(None)
    (['a'], ['a', 'b'], [])
    """
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _matches(statement: Mapping[str, Any], action: str, resource: str) -> bool:
    return _among(statement, "Action", action.lower(), lower=True) and _among(
        statement, "Resource", resource, lower=False
    )


def _asks_of_principal(statement: Mapping[str, Any], account: str) -> list[str] | None:
    """The account's principals in the statement: empty means all, ``None`` means none."""
    if "NotPrincipal" in statement:
        return ["NotPrincipal"]
    if "Principal" not in statement:
        return []
    principal = statement["Principal"]
    named = [
        str(item)
        for item in items(principal.get("AWS") if isinstance(principal, Mapping) else principal)
    ]
    if any(each in ("*", account) or each.endswith(f":{account}:root") for each in named):
        return []
    return [each for each in named if f":{account}:" in each] or None


def _among(statement: Mapping[str, Any], name: str, value: str, *, lower: bool) -> bool:
    patterns = [
        str(item).lower() if lower else str(item)
        for item in items(statement.get(name, statement.get(f"Not{name}")))
    ]
    found = any(_like(value, pattern) for pattern in patterns)
    return found is (name in statement)


def _asks_of_request(statement: Mapping[str, Any], context: Mapping[str, str]) -> list[str] | None:
    """Its conditions that are not known to hold; ``None`` when one is known not to."""
    given = {key.lower(): value for key, value in context.items()}
    doubts = []
    for operator, tests in (statement.get("Condition") or {}).items():
        plain = operator.removesuffix("IfExists")
        for key, wanted in tests.items():
            value = given.get(key.lower())
            if value is None or plain not in _EQUALS.keys() | _DIFFERS.keys():
                doubts.append(f"{operator} {key}")
                continue
            equal = (_EQUALS | _DIFFERS)[plain]
            found = any(equal(value, str(item)) for item in items(wanted))
            if found is (plain in _DIFFERS):
                return None
    return doubts


def _like(value: str, pattern: str) -> bool:
    return fnmatchcase(value, pattern.replace("[", "[[]"))
