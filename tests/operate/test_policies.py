"""What commands read in policies, held against the local AWS's evaluator: equal to it, or unknown."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from local_sagemaker.permissions.evaluator import Asked, Policies, Principal, decide, read_policy
from low_latency_endpoint.operate.checking.policies import verdict
from tests.depth import examples

TEXTS = yaml.safe_load(Path(__file__).with_name("policy_texts.yaml").read_text())
ACCOUNT = "111122223333"
ARN = f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:endpoint/sentiment"
INVOKE = "sagemaker:InvokeEndpoint"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/caller"
CALLER = Principal(f"arn:aws:sts::{ACCOUNT}:assumed-role/caller/me", ACCOUNT, ROLE)
KNOWN = dict(zip(TEXTS["Key"][:3], (ACCOUNT, ACCOUNT, "vpc-1"), strict=True))
EVERYTHING = '{"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}'


@pytest.mark.parametrize("seed", range(examples(10)))
def test_a_verdict_is_the_local_aws_s_or_unknown(seed: int) -> None:
    random = Random(seed)
    for _ in range(100):
        policy, unknown = random_policy(random), random.choice(TEXTS["Unknown"])
        found, judged = verdict(policy, INVOKE, ARN, KNOWN), allowed(policy, unknown)
        assert found.allowed in (None, judged), (policy, unknown)
        assert (found.allowed is None) == bool(found.depends_on)


def allowed(policy: dict[str, Any], unknown: dict[str, Any]) -> bool:
    """Whether the local AWS lets the call through an endpoint of this policy."""
    context = {key.lower(): value for key, value in KNOWN.items()}
    context |= {k: tuple(v) if isinstance(v, list) else v for k, v in unknown.items()}
    policies = Policies((read_policy(EVERYTHING),), endpoint=read_policy(json.dumps(policy)))
    return decide(Asked(CALLER, INVOKE, ARN, ACCOUNT, context), policies).allowed


def random_policy(random: Random) -> dict[str, Any]:
    statements = [random_statement(random) for _ in range(random.randint(1, 3))]
    version = {"Version": random.choice(TEXTS["Version"])} if random.random() < 0.9 else {}
    return {**version, "Statement": statements}


def random_statement(random: Random) -> dict[str, Any]:
    conditions = dict(random_condition(random) for _ in range(random.randint(0, 2)))
    return {
        "Effect": random.choice(TEXTS["Effect"]),
        "Principal": random.choice(TEXTS["Principal"]),
        random.choice(["Action", "Action", "NotAction"]): some(random, "Action"),
        random.choice(["Resource", "Resource", "NotResource"]): some(random, "Resource"),
        "Condition": conditions,
    }


def random_condition(random: Random) -> tuple[str, dict[str, Any]]:
    parts = (random.choice(TEXTS[kind]) for kind in ("Quantifier", "Operator", "IfExists"))
    operator = "Null" if random.random() < 0.1 else "".join(parts)
    return operator, {random.choice(TEXTS["Key"]): some(random, "Value")}


def some(random: Random, kind: str) -> Any:
    """One text of a kind, alone, or a list of up to three."""
    texts = random.choices(TEXTS[kind], k=random.randint(1, 3))
    return texts[0] if random.random() < 0.5 else texts
