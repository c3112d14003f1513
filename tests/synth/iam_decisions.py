"""What IAM would decide of a template's policies: the local AWS's evaluator is asked."""

from __future__ import annotations

import json
from typing import Any

from local_sagemaker.permissions.evaluator import Asked, Principal, read_policy

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
    """Whether a request passes, with condition keys such as ``aws_ResourceAccount="1234..."``.

    Whomever a statement names: what else of the local AWS's evaluator counts is tested with it.
    """
    if policy is None:  # an endpoint without a policy lets everything through
        return True
    document = {
        "Version": "2012-10-17",
        "Statement": [
            _resolved({name: each for name, each in statement.items() if name != "Principal"})
            for statement in policy["Statement"]
            if not _named_before(statement)
        ],
    }
    context = {name.replace("_", ":", 1).lower(): value for name, value in keys.items()}
    asked = Asked(Principal("anybody"), action, resource, ACCOUNT, context)
    read = read_policy(json.dumps(document))
    return bool(read.allows(asked)) and not read.denies(asked)


def _named_before(statement: dict[str, Any]) -> bool:
    """Whether it is of what a policy named before its last change, of which there was none."""
    return isinstance(statement["Resource"], dict) and "Fn::Split" in statement["Resource"]


def _resolved(value: Any) -> Any:
    if isinstance(value, list):
        return [_resolved(each) for each in value]
    if isinstance(value, dict) and not set(value) & {"Fn::Join", "Ref", "Fn::GetAtt"}:
        return {name: _resolved(each) for name, each in value.items()}
    return text(value)
