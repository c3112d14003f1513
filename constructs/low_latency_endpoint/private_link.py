"""The PrivateLink interface endpoint through which callers reach SageMaker Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import jsii
from aws_cdk import Aws, Stack
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from .iam_documents import allow, arn, document, endpoint_arn, least_length
from .network import ZoneAlignedNetwork
from .planning.limits import ENDPOINT_POLICY_LENGTH
from .planning.rules import (
    FIPS_WITH_POLICY,
    HOSTED_ZONE_NEEDS_DNS_NAME,
    LINK_OF_OTHER_VPC,
    PRIVATE_DNS_NEEDS_VPC_DNS,
)
from .private_dns import (
    FIPS_LABEL,
    LABEL,
    claim_private_dns,
    dns_entry,
    is_fips,
    private_hosted_zone,
    zonal_names,
)

__all__ = ["INVOKE_ACTIONS", "RuntimePrivateLink"]

INVOKE_ACTIONS = ("sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream")
"""What a caller of a real-time endpoint needs. The API's page for the streaming call asks for
``sagemaker:InvokeEndpoint``, IAM lists a separate action: both are granted."""

_HTTPS = 443
_BIDIRECTIONAL = 8443


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
    fips : bool
        Whether it is an endpoint of ``sagemaker.runtime-fips``.
    private_dns_name, url : str
        The name that private DNS answers inside the VPC, ``runtime.sagemaker.<region>...`` or
        ``runtime-fips.sagemaker.<region>...``, and the base URL with it. Clients call the first
        by themselves, and the second when they are told to use FIPS.

    Raises
    ------
    ConfigurationError
        LLE211 for a second one in the VPC, of the runtime or of the SageMaker API, LLE212 when the
        VPC's DNS is off, LLE213 for FIPS with a policy, LLE214 when ``hosted_zone_vpcs`` has the
        endpoint's own VPC.

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
    fips: bool
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
        label = FIPS_LABEL if fips else LABEL
        claim_private_dns(self, network.vpc, f"sagemaker.{label}")
        if sagemaker_api:
            claim_private_dns(self, network.vpc, "sagemaker.api")
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
            service=ec2.InterfaceVpcEndpointAwsService(f"sagemaker.{label}"),
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
        self.fips = fips
        hosted_zone_id, self.regional_dns_name = dns_entry(endpoint)
        self.zonal_dns_names = zonal_names(self.regional_dns_name, network, label)
        self._served = []
        self._policed = None
        if endpoint_policy or (endpoint_policy is None and not fips):
            self._policed = cast(ec2.CfnVPCEndpoint, endpoint.node.default_child)
            self._limit_to([arn("sagemaker", "endpoint/*")])
        if hosted_zone_vpcs:
            self._serve_other_vpcs(hosted_zone_vpcs, self.regional_dns_name, hosted_zone_id)

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
        fips: bool | None = None,
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
            ``vpce-...runtime.sagemaker.<region>.vpce.amazonaws.com``; by default that of the
            endpoint, where it was made in the app. An imported one does not know its name, and
            without it ``zonal_dns_names`` is empty.
        hosted_zone_id : str, optional
            The hosted zone of that name, needed with ``hosted_zone_vpcs``; by default likewise.
        fips : bool, optional
            Whether it is an endpoint of ``sagemaker.runtime-fips``; by default as the endpoint or
            its DNS name says, and not where neither is known.
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
            fips=fips,
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

    @property
    def private_dns_name(self) -> str:
        """The runtime's name that callers in the VPC use."""
        label = FIPS_LABEL if self.fips else LABEL
        return f"{label}.sagemaker.{Stack.of(self).region}.{Aws.URL_SUFFIX}"

    @property
    def url(self) -> str:
        """Base URL of the runtime for callers in the VPC."""
        return f"https://{self.private_dns_name}"

    def check_serves(self, network: ZoneAlignedNetwork, where: str) -> None:
        """Refuse a network of another VPC: the endpoint's addresses answer in its own only.

        Raises
        ------
        ConfigurationError
            LLE216.
        """
        if self.network.vpc.vpc_id != network.vpc.vpc_id:
            raise LINK_OF_OTHER_VPC.error(
                got="two VPCs", allowed="network=private_link.network, or one in its VPC",
                where=where,
            )

    def serve(self, endpoint_name: str) -> None:
        """Narrow the endpoint policy to the endpoints served; each call adds one.

        Parameters
        ----------
        endpoint_name : str
            The policy names it in lower case, as ARNs of endpoints are. A token stays as it is,
            with a warning that its value has to be in lower case.

        Raises
        ------
        ConfigurationError
            LLE217 when there are too many for a policy.
        """
        if self._policed is None:
            return
        resource = endpoint_arn(self, endpoint_name)
        if resource not in self._served:
            self._served.append(resource)
            self._limit_to(self._served)

    def _limit_to(self, resources: Sequence[str]) -> None:
        policy = document(
            allow(
                INVOKE_ACTIONS,
                resources,
                principal={"AWS": "*"},
                condition={"StringEquals": {"aws:PrincipalAccount": Aws.ACCOUNT_ID}},
            )
        )
        ENDPOINT_POLICY_LENGTH.check(
            least_length(policy, Stack.of(self).region),
            f"{self.node.path}, serving {len(resources)} endpoints",
        )
        assert self._policed is not None
        self._policed.policy_document = policy

    def _serve_other_vpcs(self, vpcs: Sequence[ec2.IVpc], dns_name: str,
                          hosted_zone_id: str) -> None:
        private_hosted_zone(
            self, self.network.vpc, vpcs, name=self.private_dns_name, dns_name=dns_name,
            hosted_zone_id=hosted_zone_id,
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
        fips: bool | None,
        bidirectional_streaming: bool,
        hosted_zone_vpcs: Sequence[ec2.IVpc],
    ) -> None:
        Construct.__init__(self, scope, id)
        if isinstance(interface_endpoint, ec2.InterfaceVpcEndpoint):  # made in the app
            known_zone, known_name = dns_entry(interface_endpoint)
            regional_dns_name = regional_dns_name or known_name
            hosted_zone_id = hosted_zone_id or known_zone
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
        self.fips = is_fips(interface_endpoint, regional_dns_name) if fips is None else fips
        label = FIPS_LABEL if self.fips else LABEL
        self.zonal_dns_names = (
            zonal_names(regional_dns_name, network, label) if regional_dns_name else {}
        )
        self._served = []
        self._policed = None
        if hosted_zone_vpcs:
            self._serve_other_vpcs(hosted_zone_vpcs, str(regional_dns_name), str(hosted_zone_id))


def _ports(bidirectional_streaming: bool) -> tuple[int, ...]:
    return (_HTTPS, _BIDIRECTIONAL) if bidirectional_streaming else (_HTTPS,)
