"""What an account has once in a Region, so that two stacks cannot both have it.

:func:`claims` lists it for a settings file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..settings.stack import Settings, region_of

ENDPOINT_NAME = "endpoint_name"
STACK_NAME = "stack_name"
_WHY = {
    STACK_NAME: "each deployment would overwrite the other's stack",
    ENDPOINT_NAME: "SageMaker has one endpoint of a name in a Region",
    "parameters": "SSM has one parameter of a name in a Region",
    "private_link": "in a VPC one interface endpoint, or private hosted zone, has the name of a "
    "service, and a security group has a rule once",
}


class StackClaim(NamedTuple):
    """One thing that a stack has, and no other stack of the account and Region can have."""

    setting: str
    name: str  # as AWS compares it

    @property
    def why(self) -> str:
        """Why there is only one."""
        return _WHY[self.setting]

    def __str__(self) -> str:
        return f"{self.setting} {self.name}"


def claims(settings: Settings) -> Iterator[StackClaim]:
    """All but the stack's own name."""
    for key, endpoint in settings.endpoints.items():
        if endpoint.endpoint_name:
            yield StackClaim(ENDPOINT_NAME, endpoint.endpoint_name.lower())
        if settings.parameters:
            yield StackClaim("parameters", f"{settings.parameters}/{key}")
    link, vpc = settings.private_link, settings.network.vpc_id
    if vpc is not None and link.takes_the_name:
        for service in link.services:
            yield StackClaim("private_link", f"the name of {service} in {vpc}")
    if link.security_group_id and settings.network.owner is None:
        for source in link.allow_cidrs or ["the VPC's range"]:
            yield StackClaim("private_link", f"the rule of {link.security_group_id} for {source}")
    for peered in link.hosted_zone_vpc_ids:
        yield StackClaim("private_link", f"the name of {link.services[0]} in {peered}")


def same_place(one: Settings, other: Settings) -> bool:
    """Whether both may go into one account and Region: what a file leaves open, may be anywhere."""
    pairs = ((region_of(one), region_of(other)), (one.account, other.account))
    return all(None in pair or pair[0] == pair[1] for pair in pairs)


def another_stack(before: Settings, after: Settings) -> bool:
    """Whether two files surely describe two stacks; what a profile decides may be the same."""
    return before.stack_name != after.stack_name or not same_place(before, after)
