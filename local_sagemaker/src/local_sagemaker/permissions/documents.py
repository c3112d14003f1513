"""What AWS takes as a policy document, beyond what moto checks of IAM's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .evaluator import as_texts, fields_of

_LONGEST = 20_480
_IDENTIFIERS = {
    *("aws:principalaccount", "aws:principalorgid", "aws:resourceaccount", "aws:resourceorgid"),
    *("aws:sourceaccount", "aws:sourceorgid", "aws:sourcevpc", "aws:sourcevpce", "aws:userid"),
    *("aws:vpceaccount", "aws:vpceorgid"),
}
_PRINCIPALS = {"Principal", "NotPrincipal"}
_LETTER = re.compile(r"\$\{[*?$]\}")  # a wildcard that is none
_WILDCARD = re.compile(r"[*?]")
_ALONE = re.compile(r"(?<![^*?]{6})[*?](?![^*?]{6})")


def problems_of_endpoint_policy(text: str) -> Iterator[str]:
    """Say what keeps a document from being a VPC endpoint's policy.

    Source: AWS PrivateLink guide, "Control access to VPC endpoints using endpoint policies",
    Considerations. The words are ours, but for the syntax and `NO_WILDCARD`.
    """
    if len(text) > _LONGEST:
        yield f"It has {len(text)} characters, and cannot exceed {_LONGEST}"
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        yield f"Syntax error at position ({error.lineno},{error.colno})"
        return
    for statement in _statements(document):
        if not statement.keys() & _PRINCIPALS:
            yield "It must contain a Principal element"
        for arn in _resources(statement):
            yield from _problems_of_text("", "", arn)
        for operator, block in (statement.get("Condition") or {}).items():
            for key, values in block.items():
                for value in as_texts(values):
                    yield from _problems_of_text(operator.rpartition(":")[2], key, value)


def _problems_of_text(operator: str, key: str, value: str) -> Iterator[str]:
    value = _LETTER.sub("_", value)
    account = fields_of(value)[4:5]
    if value.startswith("arn:") and _WILDCARD.search("".join(account)) and account != ["*"]:
        yield f"The account of {value} has an account ID and a wildcard character"
    if key.lower() in _IDENTIFIERS and (operator.startswith("Numeric") or _WILDCARD.search(value)):
        yield f"Condition key {key} with value {value} is at risk of NO_WILDCARD"
    elif operator.startswith("String") and _ALONE.search(value):
        yield (
            f"Condition key {key} with value {value} has fewer than six characters beside a "
            "wildcard: it is at risk of NO_WILDCARD"
        )


def problems_of_trust_policy(document: Mapping[str, Any]) -> Iterator[str]:
    """Say what a role's trust policy has that it cannot have, or lacks.

    Source: IAM user guide, "AWS JSON policy elements: Principal", which a role's trust policy must
    have; the words are those that IAM was seen to use.
    """
    for statement in _statements(document):
        if statement.keys() & {"Resource", "NotResource"}:
            yield "Has prohibited field Resource"
        if not statement.keys() & _PRINCIPALS:
            yield "Missing required field Principal"
        actions = as_texts(statement.get("Action", statement.get("NotAction", [])))
        if not all(action.lower().startswith("sts:") for action in actions):
            yield "AssumeRole policy may only specify STS AssumeRole actions."


def names_principal(document: Mapping[str, Any]) -> bool:
    """Say whether a statement is about principals, as no identity's policy is."""
    return any(statement.keys() & _PRINCIPALS for statement in _statements(document))


def aws_principals(document: Mapping[str, Any]) -> Iterator[str]:
    """Give the accounts, users, roles and sessions that a document names."""
    for statement in _statements(document):
        for element in _PRINCIPALS & statement.keys():
            named = statement[element]
            yield from as_texts(named.get("AWS", [])) if isinstance(named, dict) else ()


def size_of(text: str) -> int:
    """Count the characters of a policy as IAM does: "IAM doesn't count white space"."""
    return len("".join(text.split()))


def incomplete_arns(document: Mapping[str, Any]) -> list[str]:
    """Give the resources of a document that have fewer than the six fields of an ARN.

    Source: IAM user guide, "Identify AWS resources with ARNs": AWS completes them in policies of
    identities, and refuses them in a session's.
    """
    return [arn for arn in _all_resources(document) if arn != "*" and len(fields_of(arn)) < 6]


def misplaced_variables(document: Mapping[str, Any]) -> list[str]:
    """Give the resources with a variable before the fifth colon.

    Source: IAM user guide, "Variables and tags", "Resource element".
    """
    return [arn for arn in _all_resources(document) if "${" in "".join(fields_of(arn)[:5])]


def _statements(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    statements = document.get("Statement", [])
    return statements if isinstance(statements, list) else [statements]


def _resources(statement: Mapping[str, Any]) -> list[str]:
    return as_texts(statement.get("Resource", statement.get("NotResource", [])))


def _all_resources(document: Mapping[str, Any]) -> Iterator[str]:
    for statement in _statements(document):
        yield from _resources(statement)
