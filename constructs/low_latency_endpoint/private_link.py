"""The PrivateLink interface endpoint through which callers reach SageMaker Runtime."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

import jsii
from aws_cdk import Aws, Fn, Stack
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from .existing_subnets import zone_name_of
from .iam_documents import allow, arn, document
from .network import ZoneAlignedNetwork
from .planning.rules import (
    FIPS_WITH_POLICY,
    HOSTED_ZONE_IN_OWN_VPC,
    HOSTED_ZONE_NEEDS_DNS_NAME,
    PRIVATE_DNS_NEEDS_VPC_DNS,
    SECOND_PRIVATE_DNS,
)
from .validation import is_token

__all__ = ["INVOKE_ACTIONS", "RuntimePrivateLink"]

INVOKE_ACTIONS = ("sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream")
"""What a caller of a real-time endpoint needs. The API's page for the streaming call asks for
``sagemaker:InvokeEndpoint``, IAM lists a separate action: both are granted."""

_LOOKUP_PENDING = "vpc-12345"
"""CDK's stand-in for every VPC whose lookup is pending."""

_HTTPS = 443
_BIDIRECTIONAL = 8443

# On the app's root: which construct made the private-DNS endpoint of a VPC and service.
_PRIVATE_DNS_OWNER = "low-latency-endpoint:privateDns"


@jsii.implements(ec2.IConnectable)
class RuntimePrivateLink(Construct):
    """An interface endpoint for ``sagemaker.runtime`` in the network's subnets.

    With private DNS, ``runtime.sagemaker.<region>.amazonaws.com`` answers with the endpoint's own
    addresses inside the VPC, so callers change nothing, and SageMaker keeps an invocation in the
    zone of its caller (AWS: "Low latency real-time inference with AWS PrivateLink"). Nobody gets
    in until :meth:`allow_from` says so.

    Parameters
    ----------
    scope, id
        As for every construct.
    network : ZoneAlignedNetwork
        The subnets, one per client zone.
    fips : bool
        Use ``sagemaker.runtime-fips``; by default the ordinary service. AWS supports no endpoint
        policy for InvokeEndpoint there, so none is set.
    endpoint_policy : bool, optional
        Limit what may be done through the endpoint to invoking the endpoints it serves (all of
        this account until :meth:`serve` names some), by principals of this account. By default
        yes, with ``fips=True`` no.
    bidirectional_streaming : bool
        Also let callers in on port 8443, which HTTP/2 streaming uses; by default 443 only.
    sagemaker_api : bool
        Also make an interface endpoint for ``sagemaker.api`` (describe, update), for tools that
        run in isolated subnets; by default not.
    hosted_zone_vpcs : sequence of aws_ec2.IVpc
        Other VPCs (peered, or behind a transit gateway) whose callers use the runtime's name:
        they get a private hosted zone for it that points at this endpoint, since private DNS
        serves the endpoint's own VPC only. Their answers are not bound to a zone; give such
        callers the zonal names.

    Attributes
    ----------
    interface_endpoint : aws_ec2.IInterfaceVpcEndpoint
    connections : aws_ec2.Connections
    zonal_dns_names : dict of str to str
        For each client zone the name that answers with that zone's address only.

    Raises
    ------
    ConfigurationError
        LLE211 for a second one in the VPC, LLE212 when the VPC's DNS is off, LLE213 for FIPS with
        a policy, LLE214 when ``hosted_zone_vpcs`` has the endpoint's own VPC.

    Examples
    --------
    >>> from aws_cdk import App, Stack, aws_ec2 as ec2
    >>> from low_latency_endpoint import ClientZones, RuntimePrivateLink, ZoneAlignedNetwork
    >>> stack = Stack(App(), "Callers")
    >>> network = ZoneAlignedNetwork(
    ...     stack, "Network", client_zones=ClientZones.of_ids("use1-az1", "use1-az2"))
    >>> link = RuntimePrivateLink(stack, "Link", network=network)
    >>> link.allow_from(ec2.Peer.ipv4("10.0.0.0/16"))
    >>> sorted(link.zonal_dns_names)
    ['use1-az1', 'use1-az2']
    """

    network: ZoneAlignedNetwork
    interface_endpoint: ec2.IInterfaceVpcEndpoint
    _connections: ec2.Connections
    zonal_dns_names: dict[str, str]
    ports: tuple[int, ...]
    regional_dns_name: str | None
    _served: list[str]
    _policed: ec2.CfnVPCEndpoint | None

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        network: ZoneAlignedNetwork,
        fips: bool = False,
        endpoint_policy: bool | None = None,
        bidirectional_streaming: bool = False,
        sagemaker_api: bool = False,
        hosted_zone_vpcs: Sequence[ec2.IVpc] = (),
    ) -> None:
        super().__init__(scope, id)
        path = self.node.path
        if fips and endpoint_policy:
            raise FIPS_WITH_POLICY.error(
                got="fips=True, endpoint_policy=True", allowed="endpoint_policy=False", where=path
            )
        if not network.dns_ready:
            raise PRIVATE_DNS_NEEDS_VPC_DNS.error(
                got="a VPC with DNS support or DNS hostnames off", allowed="both on", where=path
            )
        service = "sagemaker.runtime-fips" if fips else "sagemaker.runtime"
        _claim_private_dns(self, network.vpc, service)
        group = ec2.SecurityGroup(
            self,
            "SecurityGroup",
            vpc=network.vpc,
            description="SageMaker Runtime interface endpoint: only callers that are allowed",
            allow_all_outbound=False,
        )
        endpoint = ec2.InterfaceVpcEndpoint(
            self,
            "Endpoint",
            vpc=network.vpc,
            service=ec2.InterfaceVpcEndpointAwsService(service),
            private_dns_enabled=True,
            open=False,
            security_groups=[group],
            subnets=network.subnet_selection,
        )
        if sagemaker_api:
            ec2.InterfaceVpcEndpoint(
                self,
                "Api",
                vpc=network.vpc,
                service=ec2.InterfaceVpcEndpointAwsService.SAGEMAKER_API,
                private_dns_enabled=True,
                open=False,
                security_groups=[group],
                subnets=network.subnet_selection,
            )
        self.network = network
        self.interface_endpoint = endpoint
        self._connections = group.connections
        self.ports = _ports(bidirectional_streaming)
        # DnsEntries is a list of "<hosted zone ID>:<DNS name>", the regional name first.
        entry = Fn.select(0, endpoint.vpc_endpoint_dns_entries)
        self.regional_dns_name = Fn.select(1, Fn.split(":", entry))
        label = "runtime-fips" if fips else "runtime"
        self.zonal_dns_names = _zonal_names(self.regional_dns_name, network, label)
        self._served = []
        self._policed = None
        if endpoint_policy or (endpoint_policy is None and not fips):
            self._policed = cast(ec2.CfnVPCEndpoint, endpoint.node.default_child)
            self._limit_to([arn("sagemaker", "endpoint/*")])
        if hosted_zone_vpcs:
            _private_hosted_zone(
                self,
                hosted_zone_vpcs,
                self.regional_dns_name,
                Fn.select(0, Fn.split(":", entry)),
                label,
            )

    @classmethod
    def from_interface_endpoint(
        cls,
        scope: Construct,
        id: str,
        *,
        network: ZoneAlignedNetwork,
        interface_endpoint: ec2.IInterfaceVpcEndpoint,
        regional_dns_name: str | None = None,
        hosted_zone_id: str | None = None,
        bidirectional_streaming: bool = False,
        hosted_zone_vpcs: Sequence[ec2.IVpc] = (),
    ) -> RuntimePrivateLink:
        """Adopt an interface endpoint that exists: a VPC takes one with private DNS only.

        Its policy and subnets stay as they are. :meth:`allow_from` adds rules to the security
        groups that ``interface_endpoint`` was imported with.

        Parameters
        ----------
        scope, id
            As for every construct.
        network : ZoneAlignedNetwork
            The network whose zones the endpoint serves.
        interface_endpoint : aws_ec2.IInterfaceVpcEndpoint
            As made elsewhere in the app, or imported with
            ``InterfaceVpcEndpoint.from_interface_vpc_endpoint_attributes``.
        regional_dns_name : str, optional
            ``vpce-...runtime.sagemaker.<region>.vpce.amazonaws.com``. Without it
            ``zonal_dns_names`` is empty.
        hosted_zone_id : str, optional
            The hosted zone of that name, needed with ``hosted_zone_vpcs``.
        bidirectional_streaming, hosted_zone_vpcs
            As above.

        Raises
        ------
        ConfigurationError
            LLE215 for ``hosted_zone_vpcs`` without the endpoint's DNS name.
        """
        return _AdoptedPrivateLink(
            scope,
            id,
            network=network,
            interface_endpoint=interface_endpoint,
            regional_dns_name=regional_dns_name,
            hosted_zone_id=hosted_zone_id,
            bidirectional_streaming=bidirectional_streaming,
            hosted_zone_vpcs=hosted_zone_vpcs,
        )

    @property
    @jsii.member(jsii_name="connections")
    def connections(self) -> ec2.Connections:
        """The interface endpoint's security groups."""
        return self._connections

    def allow_from(self, caller: ec2.IConnectable, description: str = "") -> None:
        """Let a caller in: a security group, a ``Peer`` range, any construct with connections."""
        for port in self.ports:
            self.connections.allow_from(
                caller, ec2.Port.tcp(port), description or "Callers of SageMaker Runtime"
            )

    def serve(self, endpoint_name: str) -> None:
        """Narrow the endpoint policy to the endpoints served; each call adds one."""
        # ARNs of endpoints are in lower case, whatever the case of the name.
        resource = arn("sagemaker", f"endpoint/{endpoint_name.lower()}")
        if resource not in self._served:
            self._served.append(resource)
            self._limit_to(self._served)

    def _limit_to(self, resources: Sequence[str]) -> None:
        if self._policed is not None:
            self._policed.policy_document = document(
                allow(
                    INVOKE_ACTIONS,
                    resources,
                    principal={"AWS": "*"},
                    condition={"StringEquals": {"aws:PrincipalAccount": Aws.ACCOUNT_ID}},
                )
            )


class _AdoptedPrivateLink(RuntimePrivateLink):
    """What :meth:`RuntimePrivateLink.from_interface_endpoint` returns."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        network: ZoneAlignedNetwork,
        interface_endpoint: ec2.IInterfaceVpcEndpoint,
        regional_dns_name: str | None,
        hosted_zone_id: str | None,
        bidirectional_streaming: bool,
        hosted_zone_vpcs: Sequence[ec2.IVpc],
    ) -> None:
        Construct.__init__(self, scope, id)
        if hosted_zone_vpcs and not (regional_dns_name and hosted_zone_id):
            raise HOSTED_ZONE_NEEDS_DNS_NAME.error(
                got="hosted_zone_vpcs without regional_dns_name and hosted_zone_id",
                allowed="all three",
                where=self.node.path,
            )
        self.network = network
        self.interface_endpoint = interface_endpoint
        self._connections = interface_endpoint.connections
        self.ports = _ports(bidirectional_streaming)
        self.regional_dns_name = regional_dns_name
        self.zonal_dns_names = (
            _zonal_names(regional_dns_name, network) if regional_dns_name else {}
        )
        self._served = []
        self._policed = None
        if hosted_zone_vpcs:
            _private_hosted_zone(
                self, hosted_zone_vpcs, str(regional_dns_name), str(hosted_zone_id), "runtime"
            )


def _ports(bidirectional_streaming: bool) -> tuple[int, ...]:
    return (_HTTPS, _BIDIRECTIONAL) if bidirectional_streaming else (_HTTPS,)


def _claim_private_dns(link: RuntimePrivateLink, vpc: ec2.IVpc, service: str) -> None:
    """Refuse a second private-DNS endpoint for the service in the same VPC, as AWS does."""
    vpc_id = vpc.vpc_id
    if vpc_id == _LOOKUP_PENDING:
        return
    # A VPC of this app is the same one in whichever stack it is used; an ID is unique anyway.
    home = Stack.of(vpc)
    key = json.dumps(
        [home.node.path if is_token(vpc_id) else "", home.resolve(vpc_id), service],
        sort_keys=True,
    )
    root = link.node.root
    for entry in root.node.metadata:
        if entry.type == _PRIVATE_DNS_OWNER and entry.data["key"] == key:
            raise SECOND_PRIVATE_DNS.error(
                got=f"a second one; the first is {entry.data['path']}",
                allowed="one per VPC and service",
                where=link.node.path,
            )
    root.node.add_metadata(_PRIVATE_DNS_OWNER, {"key": key, "path": link.node.path})


def _zonal_names(regional_dns_name: str, network: ZoneAlignedNetwork,
                 service: str = "runtime") -> dict[str, str]:
    """Zone -> ``vpce-<id>-<random>-<zone name>.runtime...``, derived from the regional name.

    CloudFormation lists the zonal names too, but in no order that says which zone is which; the
    form is AWS's ("Access an AWS service using an interface VPC endpoint").
    """
    service = ".runtime-fips." if ".runtime-fips." in regional_dns_name else f".{service}."
    parts = Fn.split(service, regional_dns_name)
    label, rest = Fn.select(0, parts), Fn.select(1, parts)
    return {
        zone: f"{label}-{name}{service}{rest}"
        for zone, subnet in zip(network.client_zones.zones, network.subnets, strict=True)
        if (name := zone_name_of(subnet)) is not None
    }


def _private_hosted_zone(
    link: RuntimePrivateLink,
    vpcs: Sequence[ec2.IVpc],
    dns_name: str,
    hosted_zone_id: str,
    label: str,
) -> None:
    from aws_cdk import aws_route53 as route53  # few links need it

    own = link.network.vpc.vpc_id
    for vpc in vpcs:
        if vpc.vpc_id == own != _LOOKUP_PENDING:
            raise HOSTED_ZONE_IN_OWN_VPC.error(
                got="the endpoint's own VPC", allowed="other VPCs", where=link.node.path
            )
    region = Stack.of(link).region
    zone = route53.CfnHostedZone(
        link,
        "HostedZone",
        name=f"{label}.sagemaker.{region}.{Aws.URL_SUFFIX}",
        vpcs=[
            route53.CfnHostedZone.VPCProperty(vpc_id=vpc.vpc_id, vpc_region=vpc.env.region)
            for vpc in vpcs
        ],
    )
    route53.CfnRecordSet(
        link,
        "Record",
        hosted_zone_id=zone.ref,
        name=f"{label}.sagemaker.{region}.{Aws.URL_SUFFIX}",
        type="A",
        alias_target=route53.CfnRecordSet.AliasTargetProperty(
            dns_name=dns_name, hosted_zone_id=hosted_zone_id, evaluate_target_health=True
        ),
    )
