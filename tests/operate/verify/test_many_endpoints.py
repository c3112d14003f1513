"""``low-latency verify`` over a stack of many endpoints: one account, read once."""

from __future__ import annotations

from collections import Counter

import pytest

from low_latency_endpoint.account.calls import Account
from low_latency_endpoint.account.deployed_endpoints import meant_stack
from low_latency_endpoint.account.stacks import owner_of
from low_latency_endpoint.operate.verify import Machine, alarm_checks, path_checks, run_verification
from tests.operate.fleet import NOW, Fleet

NOWHERE = Machine(
    resolve=lambda name: [],
    own_address=lambda: None,
    client_zone=lambda: None,
    tls_names=lambda host: [],
)


@pytest.mark.parametrize(("endpoints", "others"), [(12, 5000), (40, 0)])
def test_few_calls_for_many_endpoints(
    endpoints: int, others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each endpoint's diagnosis made an account of its own: 986 calls for twelve endpoints."""
    for checks in (alarm_checks, path_checks):
        monkeypatch.setattr(checks, "account_now", lambda: NOW)
    fleet = Fleet(endpoints, in_stack=endpoints, alarms_of_others=others)
    for limits in fleet.targets.values():  # changed by hand: CloudTrail is asked who did it
        limits["MaxCapacity"] = 9
    report = run_verification("Stack000", fleet, "us-east-1", machine=NOWHERE)
    changed = [each for each in report.results if each.id == "LLV405" and each.status == "fail"]
    assert len(changed) == endpoints
    asked = Counter(fleet.asked)
    assert asked["cloudtrail.LookupEvents"] == 1
    # CloudWatch gives a hundred alarms in one answer: all are read once, and the stack's by name.
    named = len(fleet.alarms) - others
    assert asked.pop("cloudwatch.DescribeAlarms") <= (len(fleet.alarms) + named) / 100 + 3
    assert sum(asked.values()) <= 12 * endpoints, asked


def test_each_endpoint_of_a_large_stack_has_its_owner() -> None:
    """DescribeStackResources tells the first hundred of the stack, whichever is asked for."""
    fleet = Fleet(20, in_stack=20)
    account = Account(fleet, "us-east-1")
    for number, name in enumerate(fleet.names):
        arn = fleet.endpoints[name]["EndpointArn"]
        assert owner_of(account, arn) == ("Stack000", f"Endpoint{number}")
        assert meant_stack(account, name) == "Stack000"
