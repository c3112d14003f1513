"""What an account has once: a second stack that claims it is refused, beside a file or a stack."""

from __future__ import annotations

from copy import deepcopy
from itertools import product
from typing import Any

import pytest
import yaml

from low_latency_endpoint.change.comparison import review
from low_latency_endpoint.change.effects import Effect
from low_latency_endpoint.change.refusals import endpoint_names
from low_latency_endpoint.change.synthesis import DescribedStack
from low_latency_endpoint.settings import Settings, parse_settings

from .conftest import SHIPPED, Check, Checkout

SUBNETS = ("subnet-0123456789abcdef0", "subnet-0123456789abcdef1", "subnet-0123456789abcdef2")
ZONES = SHIPPED["client_zones"]["ids"]
IN_A_VPC = {"vpc_id": "vpc-0123456789abcdef0", "subnets": dict(zip(ZONES, SUBNETS, strict=False))}
ACCOUNT, OTHER_ACCOUNT = "123456789012", "210987654321"
#: Shared settings of both stacks, and the name of an endpoint.
CLAIMED: dict[str, tuple[dict[str, Any], str | None]] = {
    "endpoint_name": ({}, "sentiment"),
    "parameters": ({"parameters": "/low-latency"}, None),
    "private_link the name of sagemaker.runtime in vpc-0123456789abcdef0": (
        {"network": IN_A_VPC},
        None,
    ),
    "private_link the rule of sg-0123456789abcdef0 for the VPC's range": (
        {
            "network": IN_A_VPC,
            "private_link": {
                "interface_endpoint_id": "vpce-0123456789abcdef0",
                "security_group_id": "sg-0123456789abcdef0",
            },
        },
        None,
    ),
    "private_link the name of sagemaker.runtime in vpc-0fedcba9876543210": (
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
    comparison = review(before, after)
    assert (comparison.effect is Effect.REFUSED) is not surely_apart
    texts = [row.text for row in comparison.stack.rows if row.effect is Effect.REFUSED]
    assert all(claim in text for text in texts)


def test_another_stack_that_claims_nothing_is_new() -> None:
    comparison = review(read({}, None), read({}, None, stack_name="Other"))
    assert comparison.effect is Effect.NEW


def test_a_name_that_follows_from_a_stack_that_stays_is_taken() -> None:
    """SageMaker's names are read from the template where the settings state none."""
    before = read({}, None)
    (name,) = endpoint_names(DescribedStack(before).template)
    comparison = review(before, read({}, name, stack_name="Other"))
    assert comparison.effect is Effect.REFUSED


def test_a_hosted_zone_and_private_dns_have_one_name_in_a_vpc() -> None:
    peered = {"private_link": {"hosted_zone_vpc_ids": [IN_A_VPC["vpc_id"]]}}
    before = read({"network": IN_A_VPC}, None)
    comparison = review(before, read(peered, None, stack_name="Other"))
    assert comparison.effect is Effect.REFUSED


def test_a_name_of_a_file_in_another_region_is_none_of_its_own(
    check: Check, checkout: Checkout
) -> None:
    """The stack of the first file stays with the name, and the second moves to its Region."""

    def text(stack: str, name: str, region: str) -> str:
        zones = {"us-east-1": "use1", "us-west-2": "usw2"}
        values = deepcopy(SHIPPED)
        values |= {"stack_name": stack, "region": region}
        values["client_zones"] = {"ids": [f"{zones[region]}-az{number}" for number in (1, 2)]}
        values["endpoints"]["sentiment"]["endpoint_name"] = name
        return yaml.safe_dump(values)

    former = {
        "a.yaml": text("A", "sentiment", "us-east-1"),
        "b.yaml": text("B", "sentiment", "us-west-2"),
    }
    checkout.commit({"endpoint.yaml": None, **former})
    later = {
        "a.yaml": text("A2", "other", "us-east-1"),
        "b.yaml": text("B", "sentiment", "us-east-1"),
    }
    checkout.commit(later)
    answer = check("HEAD~1...HEAD", "--settings=?.yaml", "--fail-on=refused")
    assert answer.code == 1
    assert "b.yaml: the deployment fails: the stack that stays has" in answer.out


def stack_text(stack: str, name: str, key: str = "sentiment", **shared: str) -> str:
    values = {**deepcopy(SHIPPED), "stack_name": stack, **shared}
    values["endpoints"] = {key: {**values["endpoints"]["sentiment"], "endpoint_name": name}}
    return yaml.safe_dump(values)


FORMER = {"a.yaml": stack_text("A", "n1"), "b.yaml": stack_text("B", "n2", "other")}
#: What a pull request makes of the two files, and what becomes of a stack that callers use.
TAKEN_OVER: dict[str, tuple[dict[str, str | None], str]] = {
    "names exchanged": (
        {"a.yaml": stack_text("B", "n1"), "b.yaml": stack_text("A", "n2", "other")},
        "deleted",
    ),
    "one name taken": (
        {"a.yaml": stack_text("C", "n3"), "b.yaml": stack_text("A", "n2", "other")},
        "deleted",
    ),
    "by a new file": (
        {"a.yaml": stack_text("Z", "n9"), "c.yaml": stack_text("A", "n3", "new")},
        "deleted",
    ),
    "by a new file with an account": (
        {"a.yaml": None, "c.yaml": stack_text("A", "n3", account=ACCOUNT)},
        "replaced",
    ),
}


@pytest.mark.parametrize("how", TAKEN_OVER)
def test_a_stack_is_compared_with_what_described_it(
    check: Check, checkout: Checkout, how: str
) -> None:
    """Whichever file it was: CloudFormation updates the stack of that name."""
    later, effect = TAKEN_OVER[how]
    checkout.commit({"endpoint.yaml": None, **FORMER})
    checkout.commit(later)
    chosen = ("--fail-on=refused", "--fail-on=replacement", "--fail-on=deletion")
    answer = check("HEAD~1...HEAD", "--settings=?.yaml", *chosen)
    assert answer.code == 1
    assert f" {effect}" in answer.out
