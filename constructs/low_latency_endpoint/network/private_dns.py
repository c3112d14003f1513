"""Private DNS of interface endpoints: one for each VPC and service, its names, its reach."""

from __future__ import annotations

from collections.abc import Sequence

import jsii
from aws_cdk import Aws, Fn
from aws_cdk import aws_ec2 as ec2
from constructs import Construct, IValidation

from ..errors import ConfigurationError
from ..facts.rules import (
    HOSTED_ZONE_IN_OWN_VPC,
    HOSTED_ZONE_OF_OTHER_ACCOUNT,
    OTHER_REGIONAL_NAME,
    SECOND_PRIVATE_DNS,
)
from ..synthesis.construct_tree import node_of, path_of, region_of, root_of, stack_of
from ..synthesis.template_values import is_token
from .subnets import LOOKUP_PENDING, allow_stand_ins
from .vpc_endpoints import service_name_of, stands_in
from .zone_aligned_network import ZoneAlignedNetwork, vpc_stack_of

LABEL, FIPS_LABEL = "runtime", "runtime-fips"
"""The first label of the runtime's names: ``runtime.sagemaker.<region>.<suffix>``."""


def claim_private_dns(owner: Construct, network: ZoneAlignedNetwork, service: str) -> None:
    """Refuse a second private-DNS endpoint for the service, now or at synthesis, as AWS does."""
    _refuse_others(owner, network, service)
    node_of(owner).add_validation(_OnePrivateDns(owner, network, service))


@jsii.implements(IValidation)
class _OnePrivateDns:
    def __init__(self, owner: Construct, network: ZoneAlignedNetwork, service: str) -> None:
        self._claim = owner, network, service

    def validate(self) -> list[str]:
        try:
            _refuse_others(*self._claim)
        except ConfigurationError as error:
            return [str(error)]
        return []


def _refuse_others(owner: Construct, network: ZoneAlignedNetwork, service: str) -> None:
    if network.vpc_id == LOOKUP_PENDING:
        return
    path = path_of(owner)
    for endpoint in node_of(root_of(owner)).find_all():
        if (
            isinstance(endpoint, ec2.CfnVPCEndpoint)
            and endpoint.private_dns_enabled is True
            and not endpoint.node.path.startswith(f"{path}/")
            and stands_in(endpoint, network.vpc_id, vpc_stack_of(network))
            and service_name_of(endpoint).endswith(f".{service}")
        ):
            raise SECOND_PRIVATE_DNS.error(
                got=f"a second interface endpoint for {service}; the first is {endpoint.node.path}",
                allowed="one per VPC and service",
                where=path,
            )


def is_fips(endpoint: ec2.IInterfaceVpcEndpoint, regional_dns_name: str | None) -> bool:
    """Whether the endpoint's DNS name, or the service it was made for, says so."""
    resource = endpoint.node.default_child
    return f".{FIPS_LABEL}." in (regional_dns_name or "") or (
        isinstance(resource, ec2.CfnVPCEndpoint)
        and service_name_of(resource).endswith(f".{FIPS_LABEL}")
    )


def own_name(link: Construct, label: str) -> str:
    """The name of a SageMaker service in the link's region: ``runtime.sagemaker.<region>...``."""
    return f"{label}.sagemaker.{region_of(link)}.{Aws.URL_SUFFIX}"


def has_private_dns(endpoint: ec2.IInterfaceVpcEndpoint) -> bool:
    """Whether an adopted endpoint has private DNS; one imported by its ID is taken to have it."""
    resource = endpoint.node.default_child
    return not (isinstance(resource, ec2.CfnVPCEndpoint) and resource.private_dns_enabled is False)


def dns_entry(endpoint: ec2.InterfaceVpcEndpoint) -> tuple[str, str]:
    """Hosted zone ID and DNS name of an endpoint made in the app, in all its zones together."""
    # DnsEntries is a list of "<hosted zone ID>:<DNS name>", the regional name first.
    entry = Fn.select(0, endpoint.vpc_endpoint_dns_entries)
    return Fn.select(0, Fn.split(":", entry)), Fn.select(1, Fn.split(":", entry))


def zonal_names(regional_dns_name: str, network: ZoneAlignedNetwork, label: str) -> dict[str, str]:
    """Zone -> ``vpce-<id>-<random>-<zone name>.runtime...``, derived from the regional name."""
    # CloudFormation lists these too, in no order that says which zone is which; the form is AWS's
    # ("Access an AWS service using an interface VPC endpoint").
    if not is_token(regional_dns_name) and f".{label}." not in regional_dns_name:
        raise OTHER_REGIONAL_NAME.error(
            got=repr(regional_dns_name),
            where=path_of(network),
            allowed=f"vpce-<id>-<random>.{label}.sagemaker.<region>.vpce.amazonaws.com",
        )
    parts = Fn.split(f".{label}.", regional_dns_name)
    first, rest = Fn.select(0, parts), Fn.select(1, parts)
    return {
        zone: f"{first}-{name}.{label}.{rest}"
        for zone, name in zip(network.client_zones.zones, network.zone_names, strict=True)
        if name is not None
    }


def private_hosted_zone(
    scope: Construct,
    own: ec2.IVpc,
    vpcs: Sequence[ec2.IVpc],
    *,
    name: str,
    dns_name: str,
    hosted_zone_id: str,
) -> None:
    """Let other VPCs resolve a name to the endpoint, whose private DNS serves its own VPC only."""
    from aws_cdk import aws_route53 as route53  # few links need it

    for vpc in vpcs:
        allow_stand_ins(scope, vpc)
        if vpc.vpc_id == own.vpc_id != LOOKUP_PENDING:
            raise HOSTED_ZONE_IN_OWN_VPC.error(
                got="the endpoint's own VPC", allowed="other VPCs", where=path_of(scope)
            )
        _refuse_other_account(scope, vpc)
    zone = route53.CfnHostedZone(
        scope,
        "HostedZone",
        name=name,
        vpcs=[
            route53.CfnHostedZone.VPCProperty(vpc_id=vpc.vpc_id, vpc_region=vpc.env.region)
            for vpc in vpcs
        ],
    )
    route53.CfnRecordSet(
        scope,
        "Record",
        hosted_zone_id=zone.ref,
        name=name,
        type="A",
        alias_target=route53.CfnRecordSet.AliasTargetProperty(
            dns_name=dns_name, hosted_zone_id=hosted_zone_id, evaluate_target_health=True
        ),
    )


def _refuse_other_account(scope: Construct, vpc: ec2.IVpc) -> None:
    own, theirs = stack_of(scope).account, vpc.env.account
    if not is_token(own) and not is_token(theirs) and theirs != own:
        raise HOSTED_ZONE_OF_OTHER_ACCOUNT.error(
            got=f"a VPC of account {theirs}", allowed=f"VPCs of account {own}", where=path_of(scope)
        )
