"""What the fix of a construct's error says to pass is passed here, and no error comes.

Fixes that name commands: tests/cli/test_tried_fixes.py. Fixes of values of a wrong kind:
test_argument_kinds.py. A row has what ends with the error, the same as the fix says, and the pieces
of code that the fix has to name for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2

from low_latency_endpoint import (
    ClientZones,
    EndpointConfiguration,
    InstanceType,
    LatencyTarget,
    MeasuredThroughput,
    ProductionVariant,
    RuntimePrivateLink,
    ZoneAlignedNetwork,
)
from low_latency_endpoint.errors import ConfigurationError

AB = ("us-east-1a", "us-east-1b")
NAMES = ClientZones.of_names


class Room:
    """Stacks to try in, and what a row makes in them."""

    def __init__(self, parts: Any, stack: cdk.Stack, anywhere: cdk.Stack) -> None:
        self.parts, self.stack, self.anywhere = parts, stack, anywhere

    def parameter(self, type: str) -> cdk.CfnParameter:
        return cdk.CfnParameter(self.stack, f"Given{len(self.stack.node.children)}", type=type)

    def pattern(self, id: str = "Tried", stack: cdk.Stack | None = None, **given: Any) -> Any:
        return self.parts.pattern(stack or self.stack, id, **given)

    def vpc(self) -> ec2.IVpc:
        """A VPC of the app's, made once."""
        found = self.stack.node.try_find_child("Vpc")
        return found or ec2.Vpc(self.stack, "Vpc", availability_zones=list(AB))

    def vpc_of_tokens(self) -> ec2.Vpc:
        """A VPC in a stack without an environment, made once."""
        return self.anywhere.node.try_find_child("Vpc") or ec2.Vpc(self.anywhere, "Vpc")

    def imported(self, **given: Any) -> ec2.IVpc:
        """A VPC of which the import states no subnets, unless they are given."""
        name = f"Imported{len(self.stack.node.children)}"
        return ec2.Vpc.from_vpc_attributes(
            self.stack, name, vpc_id="vpc-0123456789abcdef0", availability_zones=list(AB), **given
        )

    def subnets(self) -> Mapping[str, ec2.ISubnet]:
        first = len(self.stack.node.children)
        return {
            zone: ec2.Subnet.from_subnet_id(
                self.stack, f"Subnet{first}{zone}", f"subnet-{zone[-1]}"
            )
            for zone in AB
        }

    def shared_link(self) -> RuntimePrivateLink:
        network = ZoneAlignedNetwork.in_vpc(
            self.stack, "Shared", vpc=self.vpc(), client_zones=NAMES(*AB)
        )
        return RuntimePrivateLink(self.stack, "Link", network=network)

    def with_link(self, **given: Any) -> Any:
        link = self.stack.node.try_find_child("Link") or self.shared_link()
        name = f"Endpoint{len(self.stack.node.children)}"
        return self.pattern(
            name, client_zones=None, network=link.network, **given, private_link=link
        )

    def second_in_vpc(self) -> Any:
        self.shared_link()
        return self.pattern("Second", vpc=self.vpc(), client_zones=NAMES(*AB), private_dns=True)

    def variant_of_parameters(self) -> Any:
        variant = ProductionVariant(
            model=self.parts.model(self.stack),
            instance_type=InstanceType(self.parameter("String").value_as_string),
            initial_instance_count=self.parameter("Number").value_as_number,
        )
        return EndpointConfiguration(self.stack, "Configuration", variants=[variant])


class Try(NamedTuple):
    """What ends with an error, the same as its fix says, and what the fix names for it."""

    code: str
    before: Callable[[Room], Any]
    after: Callable[[Room], Any]
    named: tuple[str, ...]


SUBNETS = "subnets={"
TRIED = [
    Try(
        "LLE825",
        lambda r: r.pattern(instance_type=InstanceType(r.parameter("String").value_as_string)),
        lambda r: r.variant_of_parameters(),
        ("ProductionVariant(instance_type=InstanceType(", "initial_instance_count="),
    ),
    Try(
        "LLE825",
        lambda r: LatencyTarget(p99=cdk.Duration.millis(r.parameter("Number").value_as_number)),
        lambda r: LatencyTarget(p99=cdk.Duration.millis(200)),
        ("known at synth",),
    ),
    Try(
        "LLE825",
        lambda r: MeasuredThroughput(
            peak_tps=r.parameter("Number").value_as_number, tps_per_instance=20
        ),
        lambda r: MeasuredThroughput(peak_tps=20, tps_per_instance=20),
        ("known at synth",),
    ),
    Try(
        "LLE152",
        lambda r: ClientZones.of_vpc(r.vpc_of_tokens()),
        lambda r: r.pattern(
            stack=r.anywhere,
            vpc=r.vpc_of_tokens(),
            client_zones=NAMES(*AB),
            subnets=dict(zip(AB, r.vpc_of_tokens().private_subnets, strict=True)),
        ),
        ('ClientZones.of_names("us-east-1a", "us-east-1b")', SUBNETS),
    ),
    Try(
        "LLE152",
        lambda r: ClientZones.of_vpc(r.vpc_of_tokens()),
        lambda r: ClientZones.of_vpc(r.vpc()),
        ("account and region",),
    ),
    Try(
        "LLE151",
        lambda r: ClientZones.of_vpc(r.imported()),
        lambda r: r.pattern(vpc=r.imported(), client_zones=NAMES(*AB), subnets=r.subnets()),
        ("ClientZones.of_names(", SUBNETS),
    ),
    Try(
        "LLE151",
        lambda r: r.pattern(vpc=r.imported(), client_zones=NAMES(*AB)),
        lambda r: r.pattern(
            "Again",
            vpc=r.imported(private_subnet_ids=["subnet-a", "subnet-b"]),
            client_zones=NAMES(*AB),
        ),
        ("private_subnet_ids=",),
    ),
    Try(
        "LLE211",
        lambda r: r.second_in_vpc(),
        lambda r: r.with_link(),
        ("one RuntimePrivateLink as private_link=, without private_dns=",),
    ),
    Try(
        "LLE221",
        lambda r: r.with_link(private_dns=True),
        lambda r: r.with_link(),
        ("Leave private_dns= out",),
    ),
]


@pytest.mark.parametrize("row", TRIED, ids=[f"{row.code}: {row.named[0]}" for row in TRIED])
def test_what_the_fix_says_ends_the_error(new_stack, parts, row):
    room = Room(parts, new_stack(), new_stack(region=None, name="Anywhere"))
    with pytest.raises(ConfigurationError) as raised:
        row.before(room)
    assert raised.value.code == row.code
    assert [name for name in row.named if name not in raised.value.fix] == []
    row.after(room)
