"""What IAM would decide: a policy of a template, read as AWS's "Policy evaluation logic" says.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html: nothing
is allowed but what an Allow names, and nothing that a Deny names.
"""

from __future__ import annotations

import re
from typing import Any

ACCOUNT, REGION = "123456789012", "us-east-1"
PSEUDO = {
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::AccountId": ACCOUNT,
    "AWS::URLSuffix": "amazonaws.com",
}


def text(value: Any) -> str:
    """An intrinsic of the template as the text it becomes; what is made is ``<LogicalId>``."""
    if isinstance(value, str):
        return value
    ((function, given),) = value.items()
    if function == "Fn::Join":
        return str(given[0]).join(text(part) for part in given[1])
    if function == "Ref":
        return PSEUDO.get(given, f"<{given}>")
    if function == "Fn::GetAtt":
        return f"<{'.'.join(given)}>"
    if function == "Fn::ImportValue":
        return f"<{text(given)}>"
    raise AssertionError(value)


def allows(policy: dict[str, Any] | None, action: str, resource: str, **keys: str) -> bool:
    """Whether a request passes, with condition keys such as ``aws_ResourceAccount="1234..."``."""
    if policy is None:  # an endpoint without a policy lets everything through
        return True
    context = {name.replace("_", ":", 1).lower(): value for name, value in keys.items()}
    effects = {
        statement["Effect"]
        for statement in policy["Statement"]
        if _any(statement["Action"], action, ignore_case=True)
        and _any(statement["Resource"], resource)
        and all(
            _holds(operator, key, wanted, context)
            for operator, tests in statement.get("Condition", {}).items()
            for key, wanted in tests.items()
        )
    }
    return effects == {"Allow"}


def _any(patterns: Any, value: str, *, ignore_case: bool = False) -> bool:
    if isinstance(patterns, dict) and "Fn::Split" in patterns:
        return False  # what a policy named before its last change, of which there was none
    given = patterns if isinstance(patterns, list) else [patterns]
    return any(_like(text(pattern), value, ignore_case) for pattern in given)


def _like(pattern: str, value: str, ignore_case: bool = False) -> bool:
    expression = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(expression, value, re.I if ignore_case else 0) is not None


def _holds(operator: str, key: str, wanted: Any, context: dict[str, str]) -> bool:
    got = context.get(key.lower())
    if got is None:  # a key that is not in the request does not match
        return False
    given = wanted if isinstance(wanted, list) else [wanted]
    if operator in ("StringLike", "ArnLike"):
        return _any(given, got)
    assert operator in ("StringEquals", "ArnEquals", "Bool"), operator
    return got in [text(each) for each in given]
