"""Reads networks for checks: who may connect, and where a subnet's packets go."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any

from .account import Account

__all__ = ["DEAD", "SecurityGroupSources", "https_sources", "resolve", "route_table_of",
           "way_out", "way_to_s3"]

DEAD = ("deleting", "deleted", "rejected", "failed", "expired")
EVERYWHERE = "0.0.0.0/0"
HTTPS = 443

_TARGETS = {
    "NatGatewayId": "NAT gateway", "TransitGatewayId": "transit gateway",
    "NetworkInterfaceId": "network interface", "InstanceId": "instance",
    "VpcPeeringConnectionId": "peering", "CoreNetworkArn": "core network",
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
        """Whether any IPv4 address may connect."""
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


def https_sources(account: Account, group_ids: Sequence[str],
                  port: int = HTTPS) -> SecurityGroupSources:
    """Whom the security groups let in on a port."""
    if not group_ids:
        return SecurityGroupSources((), (), ())
    found = account.every("ec2", "describe_security_groups", "SecurityGroups",
                          Filters=[{"Name": "group-id", "Values": sorted(group_ids)}])
    rules = [rule for group in found for rule in group.get("IpPermissions", ())
             if _opens(rule, port)]
    return SecurityGroupSources(
        tuple(sorted({each["CidrIp"] for rule in rules for each in rule.get("IpRanges", ())})),
        tuple(sorted({each["GroupId"] for rule in rules
                      for each in rule.get("UserIdGroupPairs", ()) if "GroupId" in each})),
        tuple(sorted({each["PrefixListId"] for rule in rules
                      for each in rule.get("PrefixListIds", ())})),
    )


def _opens(rule: Mapping[str, Any], port: int) -> bool:
    if rule["IpProtocol"] == "-1":
        return True
    return (rule["IpProtocol"] in ("tcp", "6")
            and rule.get("FromPort", 0) <= port <= rule.get("ToPort", 65535))


def route_table_of(tables: Sequence[Mapping[str, Any]],
                   subnet_id: str) -> Mapping[str, Any] | None:
    """The subnet's own route table, or its VPC's main one."""
    main = None
    for table in tables:
        for association in table.get("Associations", ()):
            if association.get("SubnetId") == subnet_id:
                return table
            if association.get("Main"):
                main = table
    return main


def way_out(table: Mapping[str, Any]) -> str:
    """What the route table's default route leads to; empty without one that works."""
    for route in table.get("Routes", ()):
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


def way_to_s3(account: Account, vpc_id: str, table: Mapping[str, Any] | None) -> str:
    """How the subnets of a route table reach S3; empty when they do not."""
    endpoints = account.every("ec2", "describe_vpc_endpoints", "VpcEndpoints",
                              Filters=[{"Name": "vpc-id", "Values": [vpc_id]}])
    alive = [each for each in endpoints
             if each["ServiceName"].endswith(".s3") and each["State"].lower() not in DEAD]
    for each in alive:
        if (each["VpcEndpointType"] == "Gateway" and table is not None
                and table["RouteTableId"] in each.get("RouteTableIds", ())):
            return f"gateway endpoint {each['VpcEndpointId']}"
    for each in alive:
        if each["VpcEndpointType"] == "Interface" and each.get("PrivateDnsEnabled"):
            return f"interface endpoint {each['VpcEndpointId']}"
    return way_out(table) if table is not None else ""
