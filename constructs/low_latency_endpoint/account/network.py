"""Networks as EC2 has them: zones, subnets and their ways, interface endpoints, who may connect."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any

from ..facts.zones import dns_suffix
from .calls import Account

_DEAD = ("deleting", "deleted", "rejected", "failed", "expired")
Subnet = Mapping[str, Any]
EVERYWHERE = "0.0.0.0/0"
HTTPS = 443

_TARGETS = {
    "NatGatewayId": "NAT gateway",
    "TransitGatewayId": "transit gateway",
    "NetworkInterfaceId": "network interface",
    "InstanceId": "instance",
    "VpcPeeringConnectionId": "peering",
    "CoreNetworkArn": "core network",
}


@dataclass(frozen=True, slots=True)
class SecurityGroupSources:
    """Who may connect on one port: ranges, security groups, prefix lists."""

    cidrs: tuple[str, ...]
    groups: tuple[str, ...]
    prefix_lists: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.cidrs or self.groups or self.prefix_lists)

    def __str__(self) -> str:
        return ", ".join((*self.cidrs, *self.groups, *self.prefix_lists)) or "nobody"

    @property
    def everybody(self) -> bool:
        return EVERYWHERE in self.cidrs

    def cover(self, cidr: str) -> bool:
        """Whether one of the ranges holds all of this one."""
        return any(IPv4Network(cidr).subnet_of(IPv4Network(each)) for each in self.cidrs)


def resolve(name: str) -> list[str]:
    """The IPv4 addresses of a name; none when it does not resolve."""
    try:
        answers = socket.getaddrinfo(name, 443, socket.AF_INET, socket.SOCK_STREAM)
    except OSError:
        return []
    return sorted({str(answer[4][0]) for answer in answers})


def runtime_name(account: Account, *, fips: bool) -> str:
    """The runtime's own name, which callers use, in the account's region."""
    return f"runtime{'-fips' * fips}.sagemaker.{account.region}.{dns_suffix(account.region)}"


def describe_zones(account: Account) -> list[Mapping[str, Any]]:
    """The zones that this account may use in the region."""
    availability_zones = account.read("ec2", "describe_availability_zones")["AvailabilityZones"]
    return [zone for zone in availability_zones if zone.get("OptInStatus") != "not-opted-in"]


def zones(account: Account) -> dict[str, str]:
    """Zone names to zone IDs of these zones."""
    return {zone["ZoneName"]: zone["ZoneId"] for zone in describe_zones(account)}


def describe_subnets(account: Account, ids: Iterable[str]) -> list[Subnet]:
    """The subnets of these IDs that exist."""
    return _of(account, "describe_subnets", "Subnets", "subnet-id", ids)


def subnets_of_vpc(account: Account, vpc_id: str) -> list[Subnet]:
    return _of(account, "describe_subnets", "Subnets", "vpc-id", [vpc_id])


def zones_of_subnets(subnets: Iterable[Subnet]) -> set[str]:
    """The zones of subnets, each by its name and by its ID."""
    return {
        zone
        for subnet in subnets
        for zone in (subnet["AvailabilityZone"], subnet["AvailabilityZoneId"])
    }


def vpcs(account: Account, vpc_id: str) -> list[Mapping[str, Any]]:
    """The VPC, or nothing where there is none."""
    return _of(account, "describe_vpcs", "Vpcs", "vpc-id", [vpc_id])


def vpc_blocks(account: Account, vpc_id: str) -> list[str]:
    return [
        str(each["CidrBlock"])
        for vpc in vpcs(account, vpc_id)
        for each in (vpc, *vpc.get("CidrBlockAssociationSet", ()))
    ]


def vpc_endpoints(account: Account, vpc_ids: Iterable[str]) -> list[Mapping[str, Any]]:
    """The endpoints of VPCs to services, but for those that are gone or never came."""
    found = _of(account, "describe_vpc_endpoints", "VpcEndpoints", "vpc-id", vpc_ids)
    return [each for each in found if each["State"].lower() not in _DEAD]


def adopted_interface_endpoint(account: Account, id: str) -> Mapping[str, Any] | None:
    """The interface endpoint of an ID that somebody states; ``None`` without such a one."""
    found = account.read(
        "ec2",
        "describe_vpc_endpoints",
        ("InvalidVpcEndpointId.NotFound", "InvalidVpcEndpointId.Malformed"),
        VpcEndpointIds=[id],
    )
    return next(iter((found or {}).get("VpcEndpoints") or ()), None)


def interfaces(account: Account, ids: Iterable[str]) -> list[Mapping[str, Any]]:
    """The network interfaces of these IDs that exist."""
    return _of(
        account, "describe_network_interfaces", "NetworkInterfaces", "network-interface-id", ids
    )


def interfaces_at(account: Account, vpc_id: str, address: str) -> list[Mapping[str, Any]]:
    """The network interfaces of a VPC with a private address."""
    return _of(
        account,
        "describe_network_interfaces",
        "NetworkInterfaces",
        "vpc-id",
        [vpc_id],
        {"Name": "addresses.private-ip-address", "Values": [address]},
    )


def _of(
    account: Account,
    operation: str,
    key: str,
    name: str,
    values: Iterable[str],
    *more: Mapping[str, Any],
) -> list[Any]:
    """What EC2 has where ``name`` is one of the values; without values, nothing."""
    wanted = sorted(set(values))
    if not wanted:
        return []
    return account.every("ec2", operation, key, Filters=[{"Name": name, "Values": wanted}, *more])


def https_sources(account: Account, group_ids: Iterable[str]) -> SecurityGroupSources:
    """Whom the security groups let in on port 443."""
    found = _of(account, "describe_security_groups", "SecurityGroups", "group-id", group_ids)
    rules = [rule for group in found for rule in group.get("IpPermissions", ()) if _opens(rule)]

    def named(kind: str, key: str) -> tuple[str, ...]:
        return tuple(
            sorted({each[key] for rule in rules for each in rule.get(kind, ()) if key in each})
        )

    return SecurityGroupSources(
        named("IpRanges", "CidrIp"),
        named("UserIdGroupPairs", "GroupId"),
        named("PrefixListIds", "PrefixListId"),
    )


def _opens(rule: Mapping[str, Any]) -> bool:
    ports = rule.get("FromPort", 0), rule.get("ToPort", 65535)
    return rule["IpProtocol"] == "-1" or (
        rule["IpProtocol"] in ("tcp", "6") and ports[0] <= HTTPS <= ports[1]
    )


def route_table(account: Account, subnet: Subnet) -> Mapping[str, Any] | None:
    """The subnet's own route table, or its VPC's main one."""
    main = None
    for table in _of(account, "describe_route_tables", "RouteTables", "vpc-id", [subnet["VpcId"]]):
        for association in table.get("Associations", ()):
            if association.get("SubnetId") == subnet["SubnetId"]:
                return dict(table)
            if association.get("Main"):
                main = table
    return main


def way_out(table: Mapping[str, Any] | None) -> str:
    """What the route table's default route leads to; empty without one that works."""
    for route in (table or {}).get("Routes", ()):
        if route.get("DestinationCidrBlock") != EVERYWHERE or route.get("State") == "blackhole":
            continue
        if str(route.get("GatewayId", "")).startswith("igw-"):
            return "internet gateway"
        for key, name in _TARGETS.items():
            if route.get(key):
                return name
        if route.get("GatewayId") not in (None, "local"):
            return "gateway"
    return ""


def way_to_s3(account: Account, subnet: Subnet) -> str:
    """How a subnet reaches S3; empty when it does not."""
    table = route_table(account, subnet)
    found = [
        endpoint
        for endpoint in vpc_endpoints(account, [subnet["VpcId"]])
        if endpoint["ServiceName"].endswith(".s3")
    ]
    for each in found:
        if (
            each["VpcEndpointType"] == "Gateway"
            and table is not None
            and table["RouteTableId"] in each.get("RouteTableIds", ())
        ):
            return f"gateway endpoint {each['VpcEndpointId']}"
    for each in found:
        if each["VpcEndpointType"] == "Interface" and each.get("PrivateDnsEnabled"):
            return f"interface endpoint {each['VpcEndpointId']}"
    return way_out(table)
