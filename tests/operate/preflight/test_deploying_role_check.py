"""LLP502 is content with the statements of the deploying role's page, and misses each that is not there."""

from __future__ import annotations

import pytest

from low_latency_endpoint.account.calls import Account
from low_latency_endpoint.operate.checking.checks import Result, checks
from low_latency_endpoint.operate.preflight.context import PreflightContext
from low_latency_endpoint.operate.preflight.deploying_role import DeploymentPlace, needed_statements
from low_latency_endpoint.settings import planned_variants
from tests.fake_aws import ACCOUNT, REGION, FakeAws, merged
from tests.operate.preflight.cases import E
from tests.operate.preflight.world import DEPLOYER, WORLD, settings_with, simulating

ALL_PARTS = settings_with(
    {
        E + "role_arn": None,
        E + "warm_up": {"payload": {"text": "hello"}},
        E + "alarms": {"service_level_objective": 0.99, "model_latency": {"p99": "200ms"}},
        "network": None,
        "parameters": "/shop",
        "private_link": {"hosted_zone_vpc_ids": ["vpc-0fedcba9876543210"]},
    }
)
NEEDED = {statement.sid: statement for statement in needed_statements(ALL_PARTS)}
OTHER = f"arn:aws:iam::{ACCOUNT}:role/platform/deploys"


def told(*sids: str, deploying_role: str | None = None) -> tuple[list[Result], FakeAws]:
    """What the check says of a role that has these statements."""
    place = DeploymentPlace("Shop", ACCOUNT, REGION, parameters="/shop")
    held = [NEEDED[sid].in_policy(place) for sid in sids]
    aws = FakeAws(merged(WORLD, {"iam.SimulatePrincipalPolicy": simulating(*held)}))
    context = PreflightContext(
        ALL_PARTS,
        list(planned_variants(ALL_PARTS)),
        Account(aws, REGION),
        deploying_role=deploying_role,
    )
    (check,) = checks("LLP502")
    return list(check.results(context)), aws


def test_the_statements_of_the_page_are_enough() -> None:
    results, aws = told(*NEEDED)
    assert [result.status for result in results] == ["pass"], results
    sources = {request["PolicySourceArn"] for request in aws.sent("iam.SimulatePrincipalPolicy")}
    assert sources == {DEPLOYER}


@pytest.mark.parametrize("sid", NEEDED)
def test_a_statement_that_is_not_there_is_named_with_its_actions(sid: str) -> None:
    results, _ = told(*({*NEEDED} - {sid}))
    assert results
    assert {result.subject for result in results} == {sid}
    assert {result.status for result in results} <= {"fail", "warn"}
    # What another statement allows on all resources is not missing.
    assert any(
        action in result.evidence for result in results for action in NEEDED[sid].called
    ) or (not NEEDED[sid].called)


def test_a_role_that_is_named_is_the_one_that_is_asked_about() -> None:
    results, aws = told(*NEEDED, deploying_role=OTHER)
    assert results[0].evidence.startswith("deploys has the rights of Template")
    sources = {request["PolicySourceArn"] for request in aws.sent("iam.SimulatePrincipalPolicy")}
    assert sources == {OTHER}
