"""EC2 and Route 53: subnets in zones that there are, interfaces that hold what they use, private names."""

from __future__ import annotations

import json
import random
import secrets
import string
from collections.abc import Callable
from itertools import chain
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import DependencyViolationError, EC2ClientError
from moto.ec2.models import EC2Backend, ec2_backends
from moto.ec2.models.security_groups import SecurityGroup, SecurityGroupRule
from moto.ec2.models.vpcs import VPCEndPoint
from moto.ec2.responses.security_groups import SecurityGroups
from moto.ec2.responses.vpcs import VPCs
from moto.ec2.utils import random_vpc_ep_id
from moto.iam.models import IAMBackend
from moto.route53.exceptions import Route53ClientError
from moto.route53.models import Route53Backend, route53_backends

from ..hosting import remove_expired
from ..permissions.principals import each_backend
from .policies import check_endpoint_policy
from .replacing import around

# A subnet is in a zone of its own region.
#
# moto takes a zone of any region.


@around(EC2Backend)
def create_subnet(
    original: Callable[..., Any],
    self: Any,
    vpc_id: str,
    cidr_block: str,
    ipv6_cidr_block: str | None = None,
    availability_zone: str | None = None,
    availability_zone_id: str | None = None,
    **more: Any,
) -> Any:
    """Settle the zone before moto looks for it."""
    zone = _zone(self, availability_zone, availability_zone_id)
    return original(self, vpc_id, cidr_block, ipv6_cidr_block, zone, None, **more)


def _zone(backend: Any, name: str | None, zone_id: str | None) -> str:
    """Give the name of the zone that is meant."""
    zones = backend.describe_availability_zones()
    if not name and not zone_id:
        return str(random.choice(zones).name)
    parameter, names = "availabilityZone", {str(zone.name): str(zone.name) for zone in zones}
    if zone_id:
        parameter, names = "availabilityZoneId", {zone.zone_id: str(zone.name) for zone in zones}
    wanted = zone_id or name
    if wanted in names:
        return names[wanted]
    raise EC2ClientError(
        "InvalidParameterValue",
        f"Value ({wanted}) for parameter {parameter} is invalid. Subnets can currently "
        f"only be created in the following availability zones: {', '.join(names)}.",
    )


# A route to an internet gateway leads to its table's network.
#
# moto takes any gateway. EC2's words: https://github.com/aws/aws-cdk/issues/1140


@around(EC2Backend, "create_route", "replace_route")
def route(
    original: Callable[..., Any], self: Any, route_table_id: str, *rest: Any, **named: Any
) -> Any:
    """Refuse a gateway that is attached to no VPC, or to another one."""
    gateway_id = named.get("gateway_id") or ""
    if gateway_id.startswith("igw-"):
        table, vpc = self.get_route_table(route_table_id), self.get_internet_gateway(gateway_id).vpc
        if vpc is None or vpc.id != table.vpc_id:
            raise EC2ClientError(
                "InvalidParameterValue",
                f"route table {route_table_id} and network gateway {gateway_id} belong to "
                "different networks",
            )
    return original(self, route_table_id, *rest, **named)


# Network interfaces hold their security groups and their subnet; SageMaker's go in their time.
#
# moto deletes a group or subnet whatever is in it. AWS refuses with DependencyViolation:
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html


@around(EC2Backend, "get_all_network_interfaces")
@around(IAMBackend, "delete_role", "delete_role_policy", "detach_role_policy")
def up_to_date(original: Callable[..., Any], self: Any, *given: Any, **named: Any) -> Any:
    """Look for expired interfaces whenever somebody could see them, or change their role."""
    remove_expired()
    return original(self, *given, **named)


@around(EC2Backend)
def delete_security_group(
    original: Callable[..., Any], self: Any, name: str | None = None, group_id: str | None = None
) -> Any:
    """Refuse while an interface has it, or a rule of another group names it."""
    remove_expired()
    of_interfaces = (group.id for eni in [*self.enis.values()] for group in eni.group_set)
    others = (group for group in _groups(self) if group.id != group_id)
    of_rules = (
        (rule.source_group or {}).get("GroupId")
        for group in others
        for rule in (*group.ingress_rules, *group.egress_rules)
    )
    if group_id in {*of_interfaces, *of_rules}:
        raise DependencyViolationError(f"resource {group_id} has a dependent object")
    return original(self, name, group_id)


@around(SecurityGroups, "delete_security_group")
def delete_group_by_request(original: Callable[..., Any], self: Any) -> Any:
    """Refuse a VPC's default group, which goes with its VPC.

    https://docs.aws.amazon.com/vpc/latest/userguide/default-security-group.html
    """
    named = self._get_param("GroupId") or self._get_param("GroupName")
    group = self.ec2_backend.get_security_group_by_name_or_id(named)
    if group is not None and group.is_default:
        raise EC2ClientError(
            "CannotDelete",
            f'the specified group: "{group.id}" name: "default" cannot be deleted by a user',
        )
    return original(self)


def _groups(backend: Any, vpc_id: str | None = None) -> list[Any]:
    groups = [group for groups in [*backend.groups.values()] for group in [*groups.values()]]
    return [group for group in groups if vpc_id in (None, group.vpc_id)]


@around(EC2Backend)
def create_security_group(
    original: Callable[..., Any], self: Any, name: str, *given: Any, **more: Any
) -> Any:
    """Refuse a name that the VPC has in another case."""
    vpc_id = more.get("vpc_id") or (given[1] if len(given) > 1 else None) or self.default_vpc.id
    names = [] if more.get("force") else [group.name.lower() for group in _groups(self, vpc_id)]
    if name.lower() in names:
        raise EC2ClientError(
            "InvalidGroup.Duplicate",
            f"The security group '{name}' already exists for VPC '{vpc_id}'",
        )
    return original(self, name, *given, **more)


@around(SecurityGroupRule, "__init__")
def rule_of_group(
    original: Callable[..., Any],
    self: Any,
    ec2_backend: Any,
    ip_protocol: str,
    group_id: str,
    from_port: str | None,
    to_port: str | None,
    *rest: Any,
    **more: Any,
) -> None:
    """Take a protocol without ports, of which moto makes numbers: all of them are meant."""
    ports = ["-1" if port is None else port for port in (from_port, to_port)]
    original(self, ec2_backend, ip_protocol, group_id, *ports, *rest, **more)


@around(SecurityGroup, "add_ingress_rule", "add_egress_rule")
def add_rule(original: Callable[..., Any], self: Any, rule: Any) -> Any:
    """Refuse a range of ports that ends before it starts, and a group of a VPC that is not peered."""
    # API reference, IpPermission, FromPort: "the start of the port range"; the words are ours.
    if rule.ip_protocol in ("tcp", "udp") and rule.from_port > rule.to_port:
        raise EC2ClientError(
            "InvalidParameterValue", f"Invalid TCP/UDP port range ({rule.from_port}:{rule.to_port})"
        )
    # A rule names a group of the same VPC, or of a peer VPC:
    # https://docs.aws.amazon.com/vpc/latest/userguide/security-group-rules.html
    peer = self.ec2_backend.get_security_group_from_id(rule.source_group.get("GroupId"))
    vpcs = {self.vpc_id, peer.vpc_id if peer else self.vpc_id}
    peered = [
        {connection.vpc.id, connection.peer_vpc.id}
        for connection in [*self.ec2_backend.vpc_pcxs.values()]
        if connection._status.code == "active"
    ]
    if len(vpcs) > 1 and vpcs not in peered:
        raise EC2ClientError(
            "InvalidGroup.NotFound",
            "You have specified two resources that belong to different networks.",
        )
    return original(self, rule)


@around(EC2Backend)
def create_nat_gateway(
    original: Callable[..., Any],
    self: Any,
    subnet_id: str,
    allocation_id: str,
    *rest: Any,
    **more: Any,
) -> Any:
    """Refuse an address that something else has: API reference, CreateNatGateway."""
    of_gateways = (
        address.get("allocationId")
        for gateway in [*self.nat_gateways.values()]
        if gateway.state != "deleted"
        for address in gateway.address_set
    )
    addresses = self.address_by_allocation([allocation_id]) if allocation_id else []
    if any(address.association_id for address in addresses) or allocation_id in {*of_gateways} - {
        None
    }:
        raise EC2ClientError(
            "Resource.AlreadyAssociated",
            f"Elastic IP address [{allocation_id}] is already associated",
        )
    return original(self, subnet_id, allocation_id, *rest, **more)


@around(EC2Backend)
def delete_vpc(original: Callable[..., Any], self: Any, vpc_id: str) -> Any:
    """Refuse while the VPC has security groups, of any account, an internet gateway or endpoints."""
    # botocore, DeleteVpc: "You must detach or delete all gateways and resources that are
    # associated with the VPC".
    everywhere = chain.from_iterable(_groups(b, vpc_id) for b in each_backend(ec2_backends))
    groups = [group for group in everywhere if not group.is_default]
    gateways = [
        gateway
        for gateway in [*self.internet_gateways.values()]
        if gateway.vpc and gateway.vpc.id == vpc_id
    ]
    endpoints = [
        endpoint
        for endpoint in [*self.vpc_end_points.values()]
        if endpoint.vpc_id == vpc_id and endpoint.state != "deleted"
    ]
    if groups or gateways or endpoints:
        raise DependencyViolationError(
            f"The vpc '{vpc_id}' has dependencies and cannot be deleted."
        )
    return original(self, vpc_id)


@around(EC2Backend)
def delete_subnet(original: Callable[..., Any], self: Any, subnet_id: str) -> Any:
    """Refuse while an interface, of any account, is in it."""
    remove_expired()
    # "If participants still have resources in the unshared subnet, the owner cannot delete" it:
    # https://docs.aws.amazon.com/vpc/latest/userguide/vpc-sharing-share-subnet-working-with.html
    everywhere = chain.from_iterable(list(b.enis.values()) for b in each_backend(ec2_backends))
    if any(eni.subnet.id == subnet_id for eni in everywhere):
        raise DependencyViolationError(
            f"The subnet '{subnet_id}' has dependencies and cannot be deleted."
        )
    return original(self, subnet_id)


# A VPC resolves a name by one private zone only, be it a hosted zone or private DNS.
#
# moto associates whatever is asked for. AWS answers as in
# https://github.com/hashicorp/terraform-provider-aws/issues/37783


@around(Route53Backend)
def create_hosted_zone(
    original: Callable[..., Any], self: Any, name: str, *rest: Any, **named: Any
) -> Any:
    """Look before a VPC is associated with a new zone."""
    if named.get("vpcid"):
        _refuse_second(self, name, named["vpcid"], str(named.get("vpcregion")))
    return original(self, name, *rest, **named)


@around(Route53Backend)
def associate_vpc_with_hosted_zone(
    original: Callable[..., Any], self: Any, zone_id: str, vpcid: str, vpcregion: str
) -> Any:
    """Look before a VPC is associated later."""
    _refuse_second(self, self.get_hosted_zone(zone_id).name, vpcid, vpcregion)
    return original(self, zone_id, vpcid, vpcregion)


def private_zone_named(account_id: str, partition: str, name: str, vpc_id: str) -> str | None:
    """The ID of the hosted zone by which the VPC resolves the name."""
    for zone in route53_backends[account_id][partition].zones.values():
        if (
            zone.private_zone
            and zone.name.rstrip(".") == name.rstrip(".")
            and any(vpc["vpc_id"] == vpc_id for vpc in zone.vpcs)
        ):
            return str(zone.id).rpartition("/")[2]
    return None


def _refuse_second(backend: Any, name: str, vpc_id: str, region: str) -> None:
    zone = private_zone_named(backend.account_id, backend.partition, name, vpc_id)
    endpoints = ec2_backends[backend.account_id][region].vpc_end_points.values()
    for endpoint in endpoints:
        if endpoint.vpc_id == vpc_id and endpoint.private_dns_enabled:
            zones = {entry["dns_name"]: entry["hosted_zone_id"] for entry in endpoint.dns_entries}
            zone = zones.get(name.rstrip("."), zone)
    if zone is not None:
        raise Route53ClientError(
            "ConflictingDomainExists",
            f"The VPC {vpc_id} in region {region} has already been associated with the hosted "
            f"zone {zone} with the same domain name.",
        )


def _domain(service_name: str, region: str) -> str:
    """Give `runtime.sagemaker.<region>` for `com.amazonaws.<region>.sagemaker.runtime`."""
    service = service_name.partition(f".{region}.")[2]
    return ".".join([*reversed(service.split(".")), region])


def _random(length: int, alphabet: str) -> str:
    return "".join(secrets.choice(alphabet) for _ in range(length))


def _create(
    self: Any,
    vpc_id: str,
    service_name: str,
    endpoint_type: str | None = None,
    policy_document: str | None = None,
    route_table_ids: list[str] | None = None,
    subnet_ids: list[str] | None = None,
    client_token: str | None = None,
    security_group_ids: list[str] | None = None,
    tags: dict[str, str] | None = None,
    private_dns_enabled: bool | None = None,
    **_: Any,
) -> VPCEndPoint:
    self.get_vpc(vpc_id)
    is_interface = (endpoint_type or "Gateway").lower() == "interface"
    check_endpoint_policy(policy_document)
    endpoint = VPCEndPoint(
        self,
        random_vpc_ep_id(),
        vpc_id,
        service_name,
        endpoint_type or "Gateway",
        policy_document,
        [],
        subnet_ids=[],
        client_token=client_token,
        security_group_ids=list(security_group_ids or []),
        tags=tags,
        private_dns_enabled=bool(private_dns_enabled) if is_interface else False,
        dns_entries=[],
    )
    if is_interface:
        _check_zones(self, vpc_id, subnet_ids or [])
        if endpoint.private_dns_enabled:
            _check_private_dns(self, endpoint)
        endpoint.dns_token = _random(8, string.ascii_lowercase + string.digits)
        endpoint.hosted_zone_id = "Z" + _random(13, string.ascii_uppercase + string.digits)
        if not endpoint.security_group_ids:
            default = self.get_default_security_group(vpc_id)
            endpoint.security_group_ids = [default.id] if default else []
        for subnet_id in subnet_ids or []:
            _add_subnet(self, endpoint, subnet_id)
        _write_dns_entries(self, endpoint)
    else:
        lists = self.managed_prefix_lists.values()
        found = (each.id for each in lists if each.prefix_list_name == service_name)
        endpoint.destination_prefix_list_id = next(found, None)
        _check_route_tables(self, endpoint, route_table_ids or [])
        # Registered first: a route is only accepted to an endpoint that exists.
        self.vpc_end_points[endpoint.id] = endpoint
        for route_table_id in route_table_ids or []:
            _add_route_table(self, endpoint, route_table_id)
    self.vpc_end_points[endpoint.id] = endpoint
    return endpoint


def _check_zones(backend: Any, vpc_id: str, subnet_ids: list[str]) -> None:
    seen: dict[str, str] = {}
    for subnet_id in subnet_ids:
        subnet = backend.get_subnet(subnet_id)
        zone = subnet.availability_zone
        if subnet.vpc_id != vpc_id:  # the words are ours
            raise EC2ClientError("InvalidParameter", f"{subnet_id} is not in the VPC {vpc_id}")
        if zone in seen:
            raise EC2ClientError(
                "DuplicateSubnetsInSameZone",
                f"Found another VPC endpoint subnet in the availability zone of {subnet_id}. "
                "VPC endpoint subnets should be in different availability zones supported by the "
                "VPC endpoint service.",
            )
        seen[zone] = subnet_id


def _check_private_dns(backend: Any, endpoint: Any) -> None:
    vpc = backend.get_vpc(endpoint.vpc_id)
    if not (vpc.enable_dns_support and vpc.enable_dns_hostnames):
        raise EC2ClientError(
            "InvalidParameter",
            "Enabling private DNS requires both enableDnsSupport and enableDnsHostnames VPC "
            f"attributes set to true for {endpoint.vpc_id}",
        )
    name = f"{_domain(endpoint.service_name, backend.region_name)}.amazonaws.com"
    taken = any(
        other.id != endpoint.id
        and other.vpc_id == endpoint.vpc_id
        and other.service_name == endpoint.service_name
        and other.private_dns_enabled
        for other in backend.vpc_end_points.values()
    )
    if taken or private_zone_named(backend.account_id, backend.partition, name, endpoint.vpc_id):
        raise EC2ClientError(
            "InvalidParameter",
            "private-dns-enabled cannot be set because there is already a conflicting DNS "
            f"domain for {name} in the VPC {endpoint.vpc_id}",
        )


def _add_subnet(backend: Any, endpoint: Any, subnet_id: str) -> None:
    interface = backend.create_network_interface(
        backend.get_subnet(subnet_id),
        None,
        group_ids=endpoint.security_group_ids,
        description=f"VPC Endpoint Interface {endpoint.id}",
    )
    endpoint.subnet_ids.append(subnet_id)
    endpoint.network_interface_ids.append(interface.id)


def _write_dns_entries(backend: Any, endpoint: Any) -> None:
    """List the names as AWS was seen to: regional, those of the zones in no order, two private ones.

    Seen: tests/recorded, R6 and R8. What the second private name is, the recording does not tell.
    """
    domain = _domain(endpoint.service_name, backend.region_name)
    base = f"{endpoint.id}-{endpoint.dns_token}"
    zones = [backend.get_subnet(s).availability_zone for s in endpoint.subnet_ids]
    random.shuffle(zones)
    names = [f"{base}.{domain}.vpce.amazonaws.com"]
    names += [f"{base}-{zone}.{domain}.vpce.amazonaws.com" for zone in zones]
    entries = [{"dns_name": n, "hosted_zone_id": endpoint.hosted_zone_id} for n in names]
    if endpoint.private_dns_enabled:
        for place, suffix in enumerate(("amazonaws.com", "api.aws")):
            private = f"Z{endpoint.hosted_zone_id[::-1][:-2]}{place}"
            entries.append({"dns_name": f"{domain}.{suffix}", "hosted_zone_id": private})
    endpoint.dns_entries = entries


def _check_route_tables(backend: Any, endpoint: Any, route_table_ids: list[str]) -> None:
    """Refuse a table that has a route to the service: a table has one endpoint of it only.

    https://docs.aws.amazon.com/vpc/latest/privatelink/gateway-endpoints.html; seen in
    https://github.com/eksctl-io/eksctl/issues/4377.
    """
    service = endpoint.destination_prefix_list_id
    for route_table_id in route_table_ids:
        routes = backend.get_route_table(route_table_id).routes
        lists = (route.destination_prefix_list for route in routes)
        if service in {prefix_list.id for prefix_list in lists if prefix_list}:
            raise EC2ClientError(
                "RouteAlreadyExists",
                f"route table {route_table_id} already has a route with "
                f"destination-prefix-list-id {service}",
            )


def _add_route_table(backend: Any, endpoint: Any, route_table_id: str) -> None:
    endpoint.route_table_ids.append(route_table_id)
    if endpoint.destination_prefix_list_id:
        backend.create_route(
            route_table_id,
            None,
            gateway_id=endpoint.id,
            destination_prefix_list_id=endpoint.destination_prefix_list_id,
        )


_NOT_OF = {
    "Gateway": ("AddSecurityGroupIds", "AddSubnetIds", "PrivateDnsEnabled"),
    "Interface": ("AddRouteTableIds",),
}
"""What ModifyVpcEndpoint takes of the other type only; source: API reference. The words are ours."""


def _modify(self: Any) -> ActionResult:
    backend = self.ec2_backend
    endpoint = backend.describe_vpc_endpoints([self._get_param("VpcEndpointId")])[0]
    check_endpoint_policy(self._get_param("PolicyDocument"))
    for name in _NOT_OF.get(endpoint.vpc_endpoint_type, ()):
        if str(self._get_param(name, "")).lower() not in ("", "[]", "false"):
            words = f"{name} is not for an endpoint of the type {endpoint.vpc_endpoint_type}"
            raise EC2ClientError("InvalidParameter", words)
    if self._get_bool_param("ResetPolicy"):
        endpoint.policy_document = json.dumps(VPCEndPoint.DEFAULT_POLICY)
    if self._get_param("PolicyDocument"):
        endpoint.policy_document = self._get_param("PolicyDocument")
    removed_subnets = self._get_param("RemoveSubnetIds", [])
    for subnet_id in removed_subnets:
        position = endpoint.subnet_ids.index(subnet_id)
        del endpoint.subnet_ids[position]
        backend.enis.pop(endpoint.network_interface_ids.pop(position), None)
    added_subnets = self._get_param("AddSubnetIds", [])
    _check_zones(backend, endpoint.vpc_id, [*endpoint.subnet_ids, *added_subnets])
    for subnet_id in added_subnets:
        _add_subnet(backend, endpoint, subnet_id)
    for route_table_id in self._get_param("RemoveRouteTableIds", []):
        endpoint.route_table_ids.remove(route_table_id)
        if endpoint.destination_prefix_list_id:
            backend.delete_route(route_table_id, endpoint.destination_prefix_list_id)
    added_tables = self._get_param("AddRouteTableIds", [])
    _check_route_tables(backend, endpoint, added_tables)
    for route_table_id in added_tables:
        _add_route_table(backend, endpoint, route_table_id)
    gone = self._get_param("RemoveSecurityGroupIds", [])
    groups = [group for group in endpoint.security_group_ids if group not in gone]
    added = [g for g in self._get_param("AddSecurityGroupIds", []) if g not in groups]
    endpoint.security_group_ids = groups + added
    for interface_id in endpoint.network_interface_ids:
        backend.modify_network_interface_attribute(interface_id, endpoint.security_group_ids)
    private_dns = self._get_param("PrivateDnsEnabled")
    if private_dns is not None:
        wanted = str(private_dns).lower() == "true"
        if wanted and not endpoint.private_dns_enabled:
            _check_private_dns(backend, endpoint)
        endpoint.private_dns_enabled = wanted
    if endpoint.vpc_endpoint_type.lower() == "interface":
        _write_dns_entries(backend, endpoint)
    return ActionResult({"Return": True})


def _delete(self: Any, vpce_ids: list[str] | None = None) -> None:
    """Delete endpoints for good: moto keeps them listed as `deleted`, AWS for minutes only."""
    for endpoint_id in vpce_ids or []:
        endpoint = self.vpc_end_points.pop(endpoint_id, None)
        if endpoint is None:
            continue
        for interface_id in endpoint.network_interface_ids:
            self.enis.pop(interface_id, None)
        if endpoint.destination_prefix_list_id:
            for route_table_id in endpoint.route_table_ids:
                if route_table_id in self.route_tables:
                    self.delete_route(route_table_id, endpoint.destination_prefix_list_id)


EC2Backend.create_vpc_endpoint = _create
VPCs.modify_vpc_endpoint = _modify
EC2Backend.delete_vpc_endpoints = _delete
