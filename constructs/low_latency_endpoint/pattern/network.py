"""The pattern's network and private link: given, in a VPC that exists, or new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ..facts.limits import MAX_INSTANCES, ZONE_NAME
from ..facts.rules import (
    FLEETS_SHARE_SUBNETS,
    LINK_HAS_ITS_OWN_DNS,
    NETWORK_FROM_TWO,
    ZONES_OR_NETWORK,
)
from ..facts.zones import is_stand_in
from ..network.private_link import RuntimePrivateLink
from ..network.zone_aligned_network import ZoneAlignedNetwork
from ..options.network import ClientZones
from ..synthesis.annotations import warn
from ..synthesis.construct_tree import path_of


def zones_of(
    client_zones: ClientZones | Sequence[str] | None, network: ZoneAlignedNetwork | None, where: str
) -> ClientZones:
    """The zones that are stated, or those of the network that is given."""
    if (client_zones is None) == (network is None):
        raise ZONES_OR_NETWORK.error(
            got="neither" if network is None else "both",
            allowed="client_zones or network",
            where=where,
        )
    if network is not None:
        return network.client_zones
    if isinstance(client_zones, ClientZones):
        return client_zones
    zones = client_zones or ()
    names = bool(zones) and all(ZONE_NAME.holds(zone) or is_stand_in(zone) for zone in zones)
    return ClientZones.of_names(*zones) if names else ClientZones.of_ids(*zones)


def network_of(
    scope: Construct,
    zones: ClientZones,
    *,
    network: ZoneAlignedNetwork | None,
    vpc: ec2.IVpc | None,
    subnets: Mapping[str, ec2.ISubnet] | None,
    subnet_selection: ec2.SubnetSelection | None,
    shared_by: int | None,
    own: int,
) -> ZoneAlignedNetwork:
    """The network that is given, or one made below ``scope``."""
    where = path_of(scope)
    given = [
        name
        for name, value in (
            ("network", network),
            ("vpc", vpc),
            ("subnets", subnets),
            ("subnet_selection", subnet_selection),
            ("network_max_instances", shared_by),
        )
        if value is not None
    ]
    if given not in (
        [],
        ["network"],
        ["vpc"],
        ["vpc", "subnets"],
        ["vpc", "subnet_selection"],
        ["network_max_instances"],
    ):
        raise NETWORK_FROM_TWO.error(
            got=", ".join(given),
            where=where,
            allowed="network; vpc; vpc and subnets; vpc and subnet_selection; "
            "network_max_instances; or none of them",
        )
    if network is not None:
        _warn_of_owner(scope, network)
        return network
    if vpc is not None:
        return ZoneAlignedNetwork.in_vpc(
            scope,
            "Network",
            vpc=vpc,
            client_zones=zones,
            subnets=subnets,
            subnet_selection=subnet_selection,
        )
    if shared_by is not None and MAX_INSTANCES.check(shared_by, where) < own:
        raise FLEETS_SHARE_SUBNETS.error(
            got=f"network_max_instances={shared_by}, and {own} of this endpoint alone",
            allowed=f"at least {own}",
            where=where,
        )
    return ZoneAlignedNetwork(scope, "Network", client_zones=zones, max_instances=shared_by or own)


def _warn_of_owner(scope: Construct, network: ZoneAlignedNetwork) -> None:
    """Say that the network goes with the endpoint that made it."""
    owner = network.node.scope
    if isinstance(owner, type(scope)):
        warn(
            scope,
            "networkOfAnEndpoint",
            f"The network belongs to the endpoint {path_of(owner)}: when that is taken out, VPC, "
            "subnets and interface endpoint go with it, and this endpoint is replaced in others. "
            "Share a ZoneAlignedNetwork and a RuntimePrivateLink that no endpoint made: "
            "docs/how-to/in-your-app.md.",
        )


def link_of(
    scope: Construct,
    network: ZoneAlignedNetwork,
    *,
    private_link: RuntimePrivateLink | None,
    private_dns: bool | None,
) -> RuntimePrivateLink:
    """The private link that is given, if it serves the network, or one made below ``scope``."""
    where = path_of(scope)
    if private_link is None:
        return RuntimePrivateLink(scope, "PrivateLink", network=network, private_dns=private_dns)
    if private_dns is not None:
        raise LINK_HAS_ITS_OWN_DNS.error(
            got=f"private_dns={private_dns} and private_link", allowed="one of them", where=where
        )
    private_link.check_serves(network, where)
    return private_link


def known_private_dns(
    private_link: RuntimePrivateLink | None, private_dns: bool | None
) -> bool | None:
    """Whether the interface endpoint has private DNS; None of one whose app does not say it."""
    if private_link is None:
        return private_dns is not False
    return private_link.private_dns if private_link.private_dns_known else None
