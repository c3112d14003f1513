"""Statements and documents of IAM as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def allow(
    actions: Sequence[str],
    resources: str | Sequence[str],
    *,
    principal: Any = None,
    condition: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """One Allow statement."""
    statement: dict[str, Any] = {"Effect": "Allow"}
    if principal is not None:
        statement["Principal"] = principal
    statement["Action"] = list(actions)
    statement["Resource"] = resources if isinstance(resources, str) else list(resources)
    if condition:
        statement["Condition"] = dict(condition)
    return statement


def keys_apart(
    statements: Sequence[Mapping[str, Any]],
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """The statements without those on keys of KMS, which may be exchanged, and these."""
    for_keys = [each for each in statements if each["Action"][0].startswith("kms:")]
    return [each for each in statements if each not in for_keys], for_keys


def document(*statements: Mapping[str, Any]) -> dict[str, Any]:
    """A policy document."""
    return {"Version": "2012-10-17", "Statement": [dict(statement) for statement in statements]}
