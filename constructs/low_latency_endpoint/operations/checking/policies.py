"""What a resource policy lets through: enough of IAM's language for endpoint policies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

__all__ = ["allows", "document_of", "items", "undecided"]

_KNOWN = {"StringEquals", "StringLike", "ArnLike", "ArnEquals", "StringEqualsIgnoreCase"}


def document_of(policy: str | Mapping[str, Any]) -> Mapping[str, Any]:
    """The policy as data; empty when it is none."""
    if not isinstance(policy, str):
        return policy
    try:
        found = json.loads(policy)
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}


def allows(policy: Mapping[str, Any], action: str, resource: str,
           context: Mapping[str, str]) -> bool:
    """Whether the policy allows an action on a resource: a match to allow, and none to deny.

    Parameters
    ----------
    policy : mapping
        The policy document.
    action, resource : str
        Such as ``sagemaker:InvokeEndpoint`` and an endpoint's ARN.
    context : mapping of str to str
        Condition keys and their values in the request, such as ``aws:PrincipalAccount``. A
        condition on a key that is not given does not hold. Principals are told apart by
        ``aws:PrincipalAccount`` only: one of an account's roles stands for all of that account.

    Examples
    --------
    >>> policy = {"Statement": [{"Effect": "Allow", "Action": "sagemaker:Invoke*",
    ...           "Resource": "arn:aws:sagemaker:*:*:endpoint/mine"}]}
    >>> arn = "arn:aws:sagemaker:us-east-1:123456789012:endpoint/"
    >>> allows(policy, "sagemaker:InvokeEndpoint", arn + "mine", {})
    True
    >>> allows(policy, "sagemaker:InvokeEndpoint", arn + "other", {})
    False
    """
    effects = {statement.get("Effect") for statement in _statements(policy)
               if _matches(statement, action, resource) and _holds(statement, context)
               and _speaks_of(statement, context.get("aws:PrincipalAccount", ""))}
    return "Allow" in effects and "Deny" not in effects


def undecided(policy: Mapping[str, Any], known: Mapping[str, str]) -> list[str]:
    """Conditions that this reading cannot decide, as ``operator key``."""
    return sorted({
        f"{operator} {key}"
        for statement in _statements(policy)
        for operator, tests in (statement.get("Condition") or {}).items()
        for key in tests
        if operator not in _KNOWN or key.lower() not in {name.lower() for name in known}
    })


def items(value: Any) -> list[Any]:
    """A value that may stand alone or in a list, as a list.

    >>> items("a"), items(["a", "b"]), items(None)
    (['a'], ['a', 'b'], [])
    """
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _statements(policy: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from items(policy.get("Statement"))


def _matches(statement: Mapping[str, Any], action: str, resource: str) -> bool:
    return (
        _among(statement, "Action", action.lower(), lower=True)
        and _among(statement, "Resource", resource, lower=False)
    )


def _speaks_of(statement: Mapping[str, Any], account: str) -> bool:
    if "Principal" not in statement:
        return True
    principal = statement["Principal"]
    named = principal.get("AWS") if isinstance(principal, Mapping) else principal
    return any(each in ("*", account) or f":{account}:" in str(each) for each in items(named))


def _among(statement: Mapping[str, Any], name: str, value: str, *, lower: bool) -> bool:
    patterns = [str(each).lower() if lower else str(each)
                for each in items(statement.get(name, statement.get(f"Not{name}")))]
    found = any(fnmatchcase(value, each.replace("[", "[[]")) for each in patterns)
    return found is (name in statement)


def _holds(statement: Mapping[str, Any], context: Mapping[str, str]) -> bool:
    given = {key.lower(): value for key, value in context.items()}
    for operator, tests in (statement.get("Condition") or {}).items():
        for key, allowed in tests.items():
            value = given.get(key.lower())
            if value is None or operator not in _KNOWN:
                return False
            if not any(_equal(operator, value, str(each)) for each in items(allowed)):
                return False
    return True


def _equal(operator: str, value: str, allowed: str) -> bool:
    if operator == "StringEqualsIgnoreCase":
        return value.lower() == allowed.lower()
    if operator == "StringEquals":
        return value == allowed
    return fnmatchcase(value, allowed.replace("[", "[[]"))
