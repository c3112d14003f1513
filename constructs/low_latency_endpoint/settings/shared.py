"""What all endpoints of a settings file share: subnets, quotas, connections, interface endpoints."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..errors.frozen import dataclass
from ..facts.subnets import (
    RESERVED_ADDRESSES,
    SPARE_ADDRESSES,
    addresses_per_subnet,
    network_blocks,
    roomy_prefix_length,
)
from ..options.capacity import counted_instances
from .costs import instances_in_update
from .planned import planned_variants
from .plans import largest_fleet
from .stack import Settings


class QuotaNeed(NamedTuple):
    """Instances of a type that the account's quota must allow, over all endpoints."""

    instance_type: str
    at_most: int
    in_an_update: int


@dataclass(frozen=True)
class SharedResources:
    """What the endpoints of a settings file share."""

    blocks: dict[str, str]  # the block of each client zone's new subnet; empty where the VPC exists
    zones: tuple[str, ...]
    prefix_length: int | None  # of the new subnets; None where the VPC exists
    addresses_per_subnet: int  # that each subnet must have for the fleets of all endpoints
    instances: int  # the most instances of all endpoints, outside of updates
    quotas: tuple[QuotaNeed, ...]  # by instance type
    # requests in flight at the peaks of all endpoints together; None where one has no throughput
    connections: int | None
    interface_endpoints: int  # that the stack makes, each with an address in each client zone

    def lines(self) -> list[tuple[str, str]]:
        """What, and how much of it."""
        zones, found = len(self.zones), []
        if self.blocks:
            subnets = ", ".join(f"{zone} {block}" for zone, block in self.blocks.items())
            found.append(("Subnets", subnets))
        else:
            found.append(("Subnets", f"{zones} that exist, one in each client zone"))
        found.append(
            (
                "Addresses",
                f"{self.addresses_per_subnet:,} per subnet, two for each of "
                f"{counted_instances(self.instances)}, twice for an update, "
                f"{RESERVED_ADDRESSES} that AWS keeps, 1 for the interface endpoint, "
                f"{SPARE_ADDRESSES} to spare",
            )
        )
        found += [
            (
                "Quota",
                f"{each.instance_type}: {each.in_an_update:,} while all endpoints are updated, "
                f"{each.at_most:,} otherwise",
            )
            for each in self.quotas
        ]
        if self.connections is not None:
            found.append(("In flight", f"{self.connections:,} requests at the endpoints' peaks"))
        links = self.interface_endpoints
        found.append(
            (
                "Links",
                f"{links} interface endpoint{'s' if links > 1 else ''} in {zones} zones"
                if links
                else "an interface endpoint that exists",
            )
        )
        return found

    def to_dict(self) -> dict[str, Any]:
        """The numbers for JSON."""
        return {
            "subnets": self.blocks or None,
            "subnet_prefix_length": self.prefix_length,
            "addresses_per_subnet": self.addresses_per_subnet,
            "instances": self.instances,
            "quotas": [each._asdict() for each in self.quotas],
            "connections": self.connections,
            "interface_endpoints": self.interface_endpoints,
        }


def shared_resources(settings: Settings) -> SharedResources:
    """What all endpoints of a settings file share, as the stack deploys it."""
    network, zones = settings.network, tuple(settings.client_zones.zones)
    variants = list(planned_variants(settings))
    instances = largest_fleet(settings)
    needs: dict[str, tuple[int, int]] = {}
    for each in variants:
        most = each.plan.largest_fleet
        for name in each.plan.request.serving.types:  # any of several pools may have to serve alone
            at_most, updating = needs.get(name, (0, 0))
            needs[name] = (
                at_most + most,
                updating + instances_in_update(most, settings.endpoints[each.key]),
            )
    addresses, own = addresses_per_subnet(instances), network.vpc_id is None
    link = settings.private_link
    # Of a whole endpoint, which each of its variants' plans has.
    flying = [each.plan.caller_connections for each in variants if each.further is None]
    return SharedResources(
        network_blocks(network.cidr, zones, instances, network.subnet_prefix_length) if own else {},
        zones,
        (network.subnet_prefix_length or roomy_prefix_length(addresses)) if own else None,
        addresses,
        instances,
        tuple(QuotaNeed(name, *needs[name]) for name in sorted(needs)),
        None if None in flying else sum(count or 0 for count in flying),
        0 if link.interface_endpoint_id else 2 if link.sagemaker_api else 1,
    )
