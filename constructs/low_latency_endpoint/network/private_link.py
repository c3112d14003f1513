"""The PrivateLink interface endpoint through which callers reach SageMaker Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Literal, cast

import jsii
from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ..facts.limits import ACCOUNT, ORGANIZATION
from ..facts.rules import (
    GUESTS_NEED_POLICY,
    HOSTED_ZONE_NEEDS_DNS_NAME,
    LINK_OF_OTHER_VPC,
    NO_NAME_WITHOUT_PRIVATE_DNS,
    PRIVATE_DNS_NEEDS_VPC_DNS,
)
from ..options.argument_kinds import checked_arguments
from ..options.network import PrivateLinkOptions
from ..options.option import made_at
from ..options.rules import CALLER_WITHOUT_SECURITY_GROUP
from ..plan.private_dns import takeover
from ..synthesis.annotations import warn
from ..synthesis.construct_tree import outermost_stack, path_below, path_of, region_of, stack_of
from ..synthesis.template_values import check, is_token
from .private_dns import (
    FIPS_LABEL,
    LABEL,
    claim_private_dns,
    dns_entry,
    has_private_dns,
    is_fips,
    own_name,
    private_hosted_zone,
    zonal_names,
)
from .vpc_endpoints import Guests, LinkPolicy
from .zone_aligned_network import (
    ZoneAlignedNetwork,
    interface_endpoint_in,
    security_group_in,
    vpc_stack_of,
)

_HTTPS = 443
_BIDIRECTIONAL = 8443


@checked_arguments
@jsii.implements(ec2.IConnectable)
class RuntimePrivateLink(Construct):
    """An interface endpoint for ``sagemaker.runtime`` in the network's subnets.

    With private DNS, ``runtime.sagemaker.<region>.amazonaws.com`` answers with the endpoint's own
    addresses inside the VPC, so callers change nothing, and SageMaker keeps an invocation in the
    zone of its caller (AWS: "Low latency real-time inference with AWS PrivateLink"). Nobody gets
    in until :meth:`allow_from` says so.

    In a VPC that exists (:meth:`ZoneAlignedNetwork.in_vpc`) private DNS leads the callers of all
    other SageMaker endpoints here too. So the policy stays wide there, and a warning says what is
    redirected.

    Attributes
    ----------
    interface_endpoint : aws_ec2.IInterfaceVpcEndpoint
    connections : aws_ec2.Connections
    zonal_dns_names : dict of str to str
        For each client zone the name that answers with that zone's address only.
    fips, private_dns : bool
        Whether it is an endpoint of ``sagemaker.runtime-fips``, and whether it has private DNS.
    private_dns_known : bool
        False of an imported one for which nobody states ``private_dns``: it is taken to have it.
    private_dns_name : str
        The runtime's own name, ``runtime.sagemaker.<region>...`` or
        ``runtime-fips.sagemaker.<region>...``. Clients call the first by themselves, and the
        second when they are told to use FIPS.
    dns_name, url : str
        The name that callers in the VPC use for all zones, and the base URL with it: the runtime's
        own one, without private DNS the interface endpoint's.

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
    ports: tuple[int, ...]
    fips: bool
    private_dns: bool
    private_dns_known: bool = True
    _policy: LinkPolicy | None

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        network: ZoneAlignedNetwork,
        fips: bool = False,
        private_dns: bool | None = None,
        endpoint_policy: bool | None = None,
        narrow_policy: bool | None = None,
        bidirectional_streaming: bool = False,
        openai: bool = False,
        sagemaker_api: bool = False,
        hosted_zone_vpcs: Sequence[ec2.IVpc] = (),
        accounts: Sequence[str] = (),
        organization: str | None = None,
    ) -> None:
        """An interface endpoint for ``sagemaker.runtime`` in the network's subnets.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            network: The subnets, one per client zone.
            fips: Use ``sagemaker.runtime-fips``; by default the ordinary service. AWS supports no endpoint policy for InvokeEndpoint there, so none is set.
            private_dns: Answer the runtime's own name in the whole VPC; by default yes, with a warning in a VPC that exists, which True acknowledges. With False callers use ``zonal_dns_names``, or ``url``.
            endpoint_policy: Let principals of this account alone do nothing but invoke endpoints through it. By default yes, with ``fips=True`` no.
            narrow_policy: Limit the policy to the endpoints that :meth:`serve` names (all of this account until it names some) and to the calls they answer. By default yes in a network's own VPC; in one that exists no, so that other callers there keep invoking the account's other endpoints, asynchronously too.
            bidirectional_streaming: Also let callers in on port 8443, which HTTP/2 streaming uses; by default 443 only. The policy then allows ``sagemaker:InvokeEndpoint*``: AWS names no action for these calls.
            openai: Let a narrow policy pass calls of the OpenAI-compatible path (``sagemaker:CallWithBearerToken``) too; by default not. How AWS applies an endpoint policy to its tokens is not documented, and was not seen on AWS.
            sagemaker_api: Also make an interface endpoint for ``sagemaker.api`` (describe, update), for tools that run in isolated subnets; by default not.
            hosted_zone_vpcs: Other VPCs (peered, or behind a transit gateway) whose callers use the runtime's name: they get a private hosted zone for it that points at this endpoint, since private DNS serves the endpoint's own VPC only. Their answers are not bound to a zone; give such callers the zonal names.
            accounts: Other accounts, to which AWS RAM shares the subnets: the policy lets their principals call their own endpoints. By default none.
            organization: The ID of an organization of AWS Organizations, all of whose accounts may do so. By default none.

        Raises:
            ConfigurationError: LLE211 for a second one with private DNS in the VPC, of the
                runtime or of the SageMaker API, LLE212 when the VPC's DNS is off, LLE213
                for FIPS with a policy, LLE214 and LLE222 when ``hosted_zone_vpcs`` has the
                endpoint's own VPC or one of another account, LLE218 for ``narrow_policy``
                without a policy, LLE220 for ``sagemaker_api`` without private DNS, LLE223 in a
                VPC that another account shares, LLE914 for ``accounts``, LLE224 for
                ``organization``, LLE225 for either without a policy.
        """
        super().__init__(scope, id)
        path = path_below(self, scope, id)
        for account in accounts:
            check(ACCOUNT, account, path)
        check(ORGANIZATION, organization, path)
        options = made_at(
            path,
            PrivateLinkOptions,
            fips=fips,
            private_dns=private_dns,
            endpoint_policy=endpoint_policy,
            narrow_policy=narrow_policy,
            sagemaker_api=sagemaker_api,
        )
        label, services = FIPS_LABEL if fips else LABEL, options.services
        self.private_dns = options.takes_the_name
        if self.private_dns:
            if not network.dns_ready:
                raise PRIVATE_DNS_NEEDS_VPC_DNS.error(
                    got="a VPC with DNS support or DNS hostnames off", allowed="both on", where=path
                )
            for service in services:
                claim_private_dns(self, network, service)
        group = security_group_in(
            network,
            self,
            "SecurityGroup",
            "SageMaker Runtime interface endpoint: only callers that are allowed",
        )
        endpoint = interface_endpoint_in(
            network,
            self,
            "Endpoint",
            ec2.InterfaceVpcEndpointAwsService(f"sagemaker.{label}"),
            group,
            private_dns=self.private_dns,
        )
        self.node.default_child = endpoint.node.default_child
        if sagemaker_api:
            interface_endpoint_in(
                network, self, "Api", ec2.InterfaceVpcEndpointAwsService.SAGEMAKER_API, group
            )
        self.network = network
        self.interface_endpoint = endpoint
        self._connections = group.connections
        self.ports = _ports(bidirectional_streaming)
        self.fips = fips
        narrow = options.narrow(own_vpc=network.own_vpc)
        self._policy = None
        if narrow is not None:
            self._policy = LinkPolicy(
                self,
                cast(ec2.CfnVPCEndpoint, endpoint.node.default_child),
                narrow=narrow,
                bidirectional_streaming=bidirectional_streaming,
                openai=openai,
                guests=Guests(accounts, organization),
            )
        elif accounts or organization:
            raise GUESTS_NEED_POLICY.error(
                got="no policy", allowed="accounts and organization with a policy", where=path
            )
        if options.takes_over_unasked(own_vpc=network.own_vpc):
            region = region_of(self)
            known = None if is_token(region) else region
            warn(self, "privateDnsTakesOver", takeover(services, known, narrow=narrow))
        if hosted_zone_vpcs:
            hosted_zone_id, name = dns_entry(endpoint)
            self._serve_other_vpcs(hosted_zone_vpcs, name, hosted_zone_id)

    @cached_property
    def regional_dns_name(self) -> str | None:
        """The endpoint's own name, in all its zones together."""
        return dns_entry(cast(ec2.InterfaceVpcEndpoint, self.interface_endpoint))[1]

    @cached_property
    def zonal_dns_names(self) -> dict[str, str]:
        """The endpoint's own name in each zone."""
        name, label = self.regional_dns_name, FIPS_LABEL if self.fips else LABEL
        return zonal_names(name, self.network, label) if name else {}

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
        private_dns: bool | None = None,
        bidirectional_streaming: bool = False,
        hosted_zone_vpcs: Sequence[ec2.IVpc] = (),
    ) -> RuntimePrivateLink:
        """Adopt an interface endpoint that exists: a VPC takes one with private DNS only.

        Its policy and subnets stay as they are. :meth:`allow_from` adds rules to the security
        groups that ``interface_endpoint`` was imported with; not where another account shares the
        VPC, whose groups are its own to open.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            network: The network whose zones the endpoint serves.
            interface_endpoint: One made elsewhere in the app, or imported with ``InterfaceVpcEndpoint.from_interface_vpc_endpoint_attributes``.
            regional_dns_name: ``vpce-...runtime.sagemaker.<region>.vpce.amazonaws.com``; by default that of the endpoint, where it was made in the app. An imported one does not know its name, and without it ``zonal_dns_names`` is empty.
            hosted_zone_id: The hosted zone of that name, needed with ``hosted_zone_vpcs``; by default likewise.
            fips: Whether it is an endpoint of ``sagemaker.runtime-fips``; by default as the endpoint or its DNS name says, and not where neither is known.
            private_dns: Whether it has private DNS; by default as it was made in the app, and yes where that is not known. Without, ``regional_dns_name`` is needed.
            bidirectional_streaming: Also let callers in on port 8443, which HTTP/2 streaming uses; by default 443 only.
            hosted_zone_vpcs: Other VPCs (peered, or behind a transit gateway) whose callers use the runtime's name: they get a private hosted zone for it that points at this endpoint.

        Raises:
            ConfigurationError: LLE215 for ``hosted_zone_vpcs``, LLE219 for
                ``private_dns=False`` without the endpoint's DNS name, LLE363 for another
                one.
        """
        link = _AdoptedPrivateLink(scope, id)
        if isinstance(interface_endpoint, ec2.InterfaceVpcEndpoint):  # made in the app
            known_zone, known_name = dns_entry(interface_endpoint)
            regional_dns_name = regional_dns_name or known_name
            hosted_zone_id = hosted_zone_id or known_zone
        if hosted_zone_vpcs and not (regional_dns_name and hosted_zone_id):
            raise HOSTED_ZONE_NEEDS_DNS_NAME.error(
                got="hosted_zone_vpcs without regional_dns_name and hosted_zone_id",
                allowed="all three",
                where=path_of(link),
            )
        link.private_dns = (
            has_private_dns(interface_endpoint) if private_dns is None else private_dns
        )
        made_here = isinstance(interface_endpoint.node.default_child, ec2.CfnVPCEndpoint)
        link.private_dns_known = private_dns is not None or made_here
        if not link.private_dns and regional_dns_name is None:
            raise NO_NAME_WITHOUT_PRIVATE_DNS.error(
                got="private_dns=False without regional_dns_name",
                allowed="both",
                where=path_of(link),
            )
        link.network = network
        link.interface_endpoint = interface_endpoint
        link._connections = interface_endpoint.connections
        if network.owner is not None:
            link._connections = _of_the_owner(link, interface_endpoint)
        link.ports = _ports(bidirectional_streaming)
        link.regional_dns_name = regional_dns_name
        link.fips = is_fips(interface_endpoint, regional_dns_name) if fips is None else fips
        link.zonal_dns_names  # noqa: B018  # refuses a name that is of no such endpoint
        link._policy = None
        if hosted_zone_vpcs:
            link._serve_other_vpcs(hosted_zone_vpcs, str(regional_dns_name), str(hosted_zone_id))
        return link

    @property
    @jsii.member(jsii_name="connections")
    def connections(self) -> ec2.Connections:
        """The interface endpoint's security groups."""
        return self._connections

    def allow_from(
        self,
        caller: ec2.IConnectable,
        description: str = "",
        *,
        rules_in: Literal["link", "caller"] | None = None,
    ) -> None:
        """Let a caller in: a security group, a ``Peer`` range, any construct with connections.

        Args:
            caller: A security group, a function, a service, or a ``Peer`` range.
            description: Of the rules; by default that these are callers.
            rules_in: In which stack the rules stand, where the caller's security groups are made in another one: its stack then depends on the other. By default in the caller's, which needs the endpoint's name anyway, and in the link's where its stack depends on the caller's: by a VPC that is made there, or by ``add_dependency``. CDK refuses cycles of stacks; say ``"link"`` where the endpoint takes something else of the caller's stack.

        Notes:
            Groups that are added to the caller's connections later are let in only with rules in the
            link's stack.
        """
        text = description or "Callers of SageMaker Runtime"
        groups = connections_of(caller, path_of(self)).security_groups
        beside_caller = (
            _rules_stand_with(groups, stack_of(self), self.network)
            if rules_in is None
            else rules_in == "caller" and bool(groups)
        )
        if beside_caller:
            _let_in(self.connections.security_groups, groups, self.ports, text)
            return
        for port in self.ports:
            self.connections.allow_from(caller, ec2.Port.tcp(port), text)

    @property
    def private_dns_name(self) -> str:
        """The runtime's own name, which private DNS answers."""
        return own_name(self, FIPS_LABEL if self.fips else LABEL)

    @property
    def dns_name(self) -> str:
        """The name that callers in the VPC use, whatever their zone."""
        return self.private_dns_name if self.private_dns else str(self.regional_dns_name)

    @property
    def url(self) -> str:
        """Base URL of the runtime for callers in the VPC."""
        return f"https://{self.dns_name}"

    def check_serves(self, network: ZoneAlignedNetwork, where: str) -> None:
        """Refuse a network of another VPC: the endpoint's addresses answer in its own only.

        Raises
        ------
        ConfigurationError
            LLE216.
        """
        if self.network is not network and self.network.vpc_id != network.vpc_id:
            raise LINK_OF_OTHER_VPC.error(
                got="two VPCs",
                allowed="network=private_link.network, or a network in its VPC",
                where=where,
            )

    def serve(self, endpoint_name: str, *, components: Sequence[str] = ()) -> None:
        """Narrow the endpoint policy to the endpoints served; each call adds one.

        A wide policy (``narrow_policy``) and an adopted endpoint's stay as they are.

        Args:
            endpoint_name: The policy names it in lower case, as ARNs of endpoints are. A token stays as it is, with a warning that its value has to be in lower case.
            components: Names of inference components on it; by default none.

        Raises:
            ConfigurationError: LLE217 when there are too many for a policy.
        """
        if self._policy is not None:
            self._policy.serve(endpoint_name, components)

    def _serve_other_vpcs(
        self, vpcs: Sequence[ec2.IVpc], dns_name: str, hosted_zone_id: str
    ) -> None:
        private_hosted_zone(
            self,
            self.network.vpc,
            vpcs,
            name=self.private_dns_name,
            dns_name=dns_name,
            hosted_zone_id=hosted_zone_id,
        )


class _AdoptedPrivateLink(RuntimePrivateLink):
    """What :meth:`RuntimePrivateLink.from_interface_endpoint` returns."""

    def __init__(self, scope: Construct, id: str) -> None:
        Construct.__init__(self, scope, id)


def connections_of(caller: ec2.IConnectable, where: str) -> ec2.Connections:
    """Return a caller's connections, or raise LLE226 for a function outside of a VPC."""
    try:
        return caller.connections
    except RuntimeError as problem:  # CDK throws when asked
        raise CALLER_WITHOUT_SECURITY_GROUP.error(
            got=str(problem).partition("\n")[0],
            allowed="a function in a VPC, a service, a security group, or a Peer range",
            where=where,
        ) from problem


def _ports(bidirectional_streaming: bool) -> tuple[int, ...]:
    return (_HTTPS, _BIDIRECTIONAL) if bidirectional_streaming else (_HTTPS,)


def _of_the_owner(link: Construct, endpoint: ec2.IInterfaceVpcEndpoint) -> ec2.Connections:
    """The endpoint's groups, in which this stack makes no rule."""
    groups = [
        ec2.SecurityGroup.from_security_group_id(
            link, f"Group{number}", group.security_group_id, mutable=False
        )
        for number, group in enumerate(endpoint.connections.security_groups)
    ]
    return ec2.Connections(security_groups=groups)


def _let_in(
    link_groups: Sequence[ec2.ISecurityGroup],
    groups: Sequence[ec2.ISecurityGroup],
    ports: Sequence[int],
    description: str,
) -> None:
    """Let groups into the link's, with the rules in the stacks of these groups."""
    for port in map(ec2.Port.tcp, ports):
        for group in groups:
            for link_group in link_groups:
                link_group.add_ingress_rule(group, port, description, remote_rule=True)
                if not group.allow_all_outbound:  # CDK warns of a rule for one that may go anywhere
                    group.add_egress_rule(link_group, port, description)


def _rules_stand_with(
    groups: Sequence[ec2.ISecurityGroup], link_stack: Stack, network: ZoneAlignedNetwork
) -> bool:
    """Whether the rules that let groups in stand in the stacks of these groups."""
    # A rule names both groups, so its stack depends on the other's. Callers' stacks depend on the
    # endpoint's for its name: there the rule makes no cycle, unless the endpoint's stack depends on
    # theirs, as with a VPC that is made there. Groups that are known by their IDs bind no stacks.
    bound = [stack_of(group) for group in groups if is_token(group.security_group_id)]
    others = {path_of(stack): stack for stack in bound if path_of(stack) != path_of(link_stack)}
    if not others:
        return False
    own = path_of(outermost_stack(link_stack))
    vpc_stack = vpc_stack_of(network) if is_token(network.vpc_id) else link_stack
    needed = _needed_by(outermost_stack(link_stack), outermost_stack(vpc_stack))
    return not any(
        path == path_of(vpc_stack)
        if (family := path_of(outermost_stack(stack))) == own  # nested in the same stack
        else family in needed
        for path, stack in others.items()
    )


def _needed_by(*stacks: Stack) -> set[str]:
    """Paths of these stacks, and of all that they are known to depend on."""
    waiting, needed = list(stacks), set()
    while waiting:
        stack = waiting.pop()
        if path_of(stack) not in needed:
            needed.add(path_of(stack))
            waiting += stack.dependencies
    return needed
