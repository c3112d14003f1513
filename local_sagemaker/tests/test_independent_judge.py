"""3,000 random requests, and what an independent judge of IAM policies said of each."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from local_sagemaker.permissions.evaluator import (
    Asked,
    Policies,
    Policy,
    Principal,
    decide,
    read_policy,
)

DATA = Path(__file__).parent / "data"
KINDS = yaml.safe_load((DATA / "iam-differences.yaml").read_text())
"""What AWS's pages say where the judge differs. Any other difference is a fault."""


@pytest.fixture(scope="module")
def differences() -> dict[int, tuple[Mapping[str, Any], str]]:
    """The cases of which the evaluator does not say what the judge says, with what it says."""
    lines = lzma.decompress((DATA / "iam-cases.jsonl.xz").read_bytes()).splitlines()
    found = {case["id"]: (case, verdict(case)) for case in map(json.loads, lines)}
    assert len(found) == 3000
    return {n: pair for n, pair in found.items() if pair[1] != pair[0]["independent_judge"]}


def test_each_difference_is_of_a_kind_that_aws_s_pages_decide_or_leave_open(
    differences: dict[int, Any],
) -> None:
    assert differences.keys() == {number for kind in KINDS for number in kind["cases"]}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind["sign"])
def test_a_difference_has_its_kind_s_sign_and_an_open_one_is_no_permission(
    kind: Mapping[str, Any], differences: dict[int, Any]
) -> None:
    for number in kind["cases"]:
        case, found = differences[number]
        assert re.search(kind["sign"], json.dumps(case), re.IGNORECASE), number
        assert found != "Allowed" or "says" in kind, number


def verdict(case: Mapping[str, Any]) -> str:
    read = {
        kind: policy(case[kind]) for kind in ("boundary", "session", "endpoint") if kind in case
    }
    policies = Policies(
        identity=tuple(map(policy, case.get("identity", []))),
        resource=policy(case["rp"]) if "rp" in case else None,
        resource_decides=case["action"].startswith("kms:"),
        **read,
    )
    context = {
        key.lower(): tuple(value) if isinstance(value, list) else value
        for key, value in case["ctx"].items()
    }
    who = Principal(case["principal"], case["pacct"], case.get("role", ""))
    found = decide(Asked(who, case["action"], case["resource"], case["racct"], context), policies)
    if found.allowed:
        return "Allowed"
    return "ExplicitlyDenied" if "explicit deny" in found.reason else "ImplicitlyDenied"


def policy(document: Mapping[str, Any]) -> Policy:
    return read_policy(json.dumps(document))
