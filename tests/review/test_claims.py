"""What an account has once: a second stack that claims it is refused, beside a file or a stack."""

from __future__ import annotations

from copy import deepcopy
from itertools import product
from typing import Any

import pytest
import yaml

from low_latency_endpoint.options.option import Effect
from low_latency_endpoint.settings import Settings, parse_settings
from low_latency_endpoint.settings.update.comparison import compare

from .conftest import SHIPPED

SUBNETS = ("subnet-0123456789abcdef0", "subnet-0123456789abcdef1", "subnet-0123456789abcdef2")
ZONES = SHIPPED["client_zones"]["ids"]
IN_A_VPC = {"vpc_id": "vpc-0123456789abcdef0", "subnets": dict(zip(ZONES, SUBNETS, strict=False))}
ACCOUNT, OTHER_ACCOUNT = "123456789012", "210987654321"
#: Shared settings of both stacks, and the name of an endpoint.
CLAIMED: dict[str, tuple[dict[str, Any], str | None]] = {
    "endpoint_name": ({}, "sentiment"),
    "parameters": ({"parameters": "/low-latency"}, None),
    "private_link.private_dns": ({"network": IN_A_VPC}, None),
    "private_link.hosted_zone_vpc_ids": (
        {"private_link": {"hosted_zone_vpc_ids": ["vpc-0fedcba9876543210"]}},
        None,
    ),
}


def read(shared: dict[str, Any], name: str | None, **stack: Any) -> Settings:
    values = {**deepcopy(SHIPPED), **shared, **stack}
    values["endpoints"]["sentiment"].pop("endpoint_name", None)
    if name is not None:
        values["endpoints"]["sentiment"]["endpoint_name"] = name
    return parse_settings(yaml.safe_dump(values, sort_keys=False))


def accounts(one: str | None, other: str | None) -> tuple[dict[str, str], dict[str, str]]:
    return ({"account": one} if one else {}, {"account": other} if other else {})


@pytest.mark.parametrize("claim", CLAIMED)
@pytest.mark.parametrize(("one", "other"), product((None, ACCOUNT, OTHER_ACCOUNT), repeat=2))
def test_another_stack_in_what_may_be_the_same_account_is_refused(
    claim: str, one: str | None, other: str | None
) -> None:
    """An account that a file leaves open may be the one that the other file states."""
    shared, name = CLAIMED[claim]
    was, now = accounts(one, other)
    before = read(shared, name, **was)
    after = read(shared, name, stack_name="Other", **now)
    surely_apart = None not in (one, other) and one != other
    comparison = compare(before, after)
    assert (comparison.effect is Effect.REFUSED) is not surely_apart
    texts = [
        consequence.text
        for difference in comparison.differences
        for consequence in difference.consequences
        if consequence.effect is Effect.REFUSED
    ]
    assert all(claim in text for text in texts)


def test_another_stack_that_claims_nothing_is_new() -> None:
    comparison = compare(read({}, None), read({}, None, stack_name="Other"))
    assert comparison.effect is Effect.NEW
