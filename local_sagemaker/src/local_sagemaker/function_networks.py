"""The network of functions in a VPC: names and addresses of the interface endpoint for SageMaker Runtime.

`lambda_bootstrap` plays it inside of the function's process. Nothing else of a network is played.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from moto.ec2.models import ec2_backends

from .permissions.judge import subnets_of

if TYPE_CHECKING:
    from .runtime.service import Runtime

_HTTPS = 443


def network_of(function: Any, runtime: Runtime) -> dict[str, Any] | None:
    """Write what moto's function finds in its VPC, for `lambda_bootstrap`; None outside of one."""
    from .runtime.paths import Path, domain_of

    config, paths = function._vpc_config or {}, runtime.paths
    backend = ec2_backends[function.account_id][function.region]
    known = subnets_of(function.account_id, function.region)
    subnet = next((known[each] for each in config.get("SubnetIds") or () if each in known), None)
    if subnet is None or function.region != paths.region:
        return None
    found = (backend.get_security_group_from_id(g) for g in config.get("SecurityGroupIds") or ())
    groups = [group for group in found if group is not None]
    names: dict[str, list[str]] = {}
    addresses: dict[str, dict[str, Any]] = {}
    owner = ec2_backends[subnet.owner_id][function.region]
    for endpoint in _endpoints(owner, subnet.vpc_id):
        cards = [owner.get_network_interface(card) for card in endpoint.network_interface_ids]
        by_zone = {card.subnet.availability_zone: card for card in cards}
        for zone, card in by_zone.items():
            path = paths.by_zone.get(zone, Path())
            addresses[card.private_ip_address] = {
                "port": urlsplit(runtime.url(zone)).port,
                "delay": path.delay,
                "lost": path.lost or not _reaches(groups, subnet, card),
            }
        for name in (entry["dns_name"] for entry in endpoint.dns_entries):
            # Of a regional name in a zone without an interface: "you may see DNS failures".
            # Source: SageMaker developer guide, "Connect to SageMaker AI Within your VPC".
            zonal = [zone for zone in by_zone if name.partition(".")[0].endswith(f"-{zone}")]
            wanted = [*by_zone] if paths.order == "round robin" else [subnet.availability_zone]
            there = [by_zone[zone] for zone in zonal or wanted if zone in by_zone]
            names[name] = [card.private_ip_address for card in there]
    domain = domain_of(paths.region)
    domains = [f"{domain}.amazonaws.com", f".{domain}.vpce.amazonaws.com"]
    return {"names": names, "domains": domains, "addresses": addresses}


def _endpoints(backend: Any, vpc: str) -> Iterator[Any]:
    service = f"com.amazonaws.{backend.region_name}.sagemaker.runtime"
    for endpoint in list(backend.vpc_end_points.values()):
        if endpoint.vpc_id == vpc and endpoint.service_name == service:
            yield endpoint


def _reaches(groups: list[Any], subnet: Any, card: Any) -> bool:
    """Say whether security groups let a function through to an endpoint's network interface."""
    into = (rule for group in card.group_set for rule in group.ingress_rules)
    out = (rule for group in groups for rule in group.egress_rules)
    return _lets(into, {group.id for group in groups}, subnet.cidr_block) and _lets(
        out, {group.id for group in card.group_set}, f"{card.private_ip_address}/32"
    )


def _lets(rules: Iterable[Any], groups: set[str], network: str) -> bool:
    """Say whether a rule lets HTTPS from or to some groups, or the whole of a network."""
    for rule in rules:
        is_open = str(rule.ip_protocol) == "-1" or (
            rule.ip_protocol == "tcp" and int(rule.from_port) <= _HTTPS <= int(rule.to_port)
        )
        wide = (rule.ip_range or {}).get("CidrIp")
        within = wide and IPv4Network(network).subnet_of(IPv4Network(wide, strict=False))
        if is_open and (within or (rule.source_group or {}).get("GroupId") in groups):
            return True
    return False
