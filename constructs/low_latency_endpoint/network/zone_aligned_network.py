"""Subnets in the callers' Availability Zones, in a new VPC or in one that exists."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast

import jsii
from aws_cdk import CfnTag, CustomResource, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct, IDependable

from ..facts.limits import ACCOUNT, MAX_INSTANCES, SUBNET_PREFIX_LENGTH
from ..facts.rules import ENDPOINTS_ARE_THE_OWNERS, NOT_A_CLIENT_ZONE
from ..facts.subnets import network_blocks
from ..facts.zones import check_zones_in_region, zone_name_of
from ..options.argument_kinds import checked_arguments
from ..options.network import DEFAULT_CIDR, ClientZones
from ..synthesis.annotations import acknowledge_wildcard_resources
from ..synthesis.arns import bucket_arn
from ..synthesis.construct_tree import (
    TreePart,
    path_below,
    path_of,
    region_of,
    stack_name_of,
    stack_of,
)
from ..synthesis.lambda_functions import custom_resource_function
from ..synthesis.policy_documents import for_flow_logs, trust
from ..synthesis.rights import Own, allow, closing_group, document
from ..synthesis.role_rights import RightsBefore, RoleRights
from ..synthesis.safeguards import log_group, safeguards_of, writing_logs
from ..synthesis.template_values import check, is_token, pseudo_parameters
from .s3_access import S3GatewayPolicy, expect_way_to_s3, let_out_to_s3, reads_from_s3
from .subnets import FleetRoom, allow_stand_ins, choose_subnets, shared_room

if TYPE_CHECKING:
    from aws_cdk import aws_s3 as s3


@checked_arguments
class ZoneAlignedNetwork(Construct):
    """One isolated subnet in each client zone, in a VPC of its own.

    The VPC has DNS support and hostnames on (private DNS needs both), an S3 gateway endpoint
    (model downloads go through the VPC when the model runs in network isolation), no internet
    gateway, no NAT and no public subnet; its default security group is closed. For a VPC that
    exists, and the callers in it, use :meth:`in_vpc`.

    A zone's address block depends on the zone alone, so adding, removing or reordering client
    zones never moves another zone's subnet.

    Attributes
    ----------
    vpc : aws_ec2.IVpc
    subnets : list of aws_ec2.ISubnet
        One per client zone, in the order of the zones.
    model_security_group : aws_ec2.ISecurityGroup
        For models: no inbound rule; outbound HTTPS, which here reaches S3 only, and what
        :meth:`add_interface_endpoint` adds.
    client_zones : ClientZones
    own_vpc : bool
        Whether the network made the VPC: then nobody was in it before. Not with :meth:`in_vpc`.
    owner : str, optional
        The account that shares the VPC, where that is known to be another one than the stack's.

    Examples
    --------
    >>> from aws_cdk import App, Stack
    >>> from low_latency_endpoint import ClientZones, ZoneAlignedNetwork
    >>> stack = Stack(App(), "Callers")
    >>> network = ZoneAlignedNetwork(
    ...     stack, "Network", client_zones=ClientZones.of_ids("use1-az1", "use1-az2"))
    >>> len(network.subnets)
    2
    """

    vpc_id: str
    subnet_ids: list[str]
    zone_names: list[str | None]
    client_zones: ClientZones
    model_security_group: ec2.ISecurityGroup
    dns_ready: bool
    fleet_room: FleetRoom
    data_path: list[IDependable]
    own_vpc: bool = True
    owner: str | None = None
    _refer: Callable[[], ec2.IVpc]
    s3_prefix_list: ec2.IPrefixList | None
    _s3_policy: S3GatewayPolicy | None = None

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        client_zones: ClientZones,
        cidr: str = DEFAULT_CIDR,
        max_instances: int | None = None,
        subnet_prefix_length: int | None = None,
        flow_logs: ec2.FlowLogTrafficType | None = ec2.FlowLogTrafficType.REJECT,
        s3_prefix_list: ec2.IPrefixList | None = None,
        narrow_s3: bool = False,
    ) -> None:
        """One isolated subnet in each client zone, in a VPC of its own.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            client_zones: Where the callers run. With zone IDs the subnets carry ``AvailabilityZoneId``, so callers in another account land in the same physical zone.
            cidr: The VPC's IPv4 range; by default 10.0.0.0/16. Choose another if it must be peered.
            max_instances: The largest number of instances that all endpoints in this network have together. The subnets hold twice as many (a blue/green deployment runs two fleets), two addresses each, all in one zone. By default subnets are /24, room for 58 instances. Endpoints that need more are refused.
            subnet_prefix_length: Size of the subnets, 16 to 28. By default derived from ``max_instances``, never smaller than /24: a subnet cannot grow later without being replaced.
            flow_logs: What the VPC's flow log records; by default rejected packets. ``None`` makes no flow log.
            s3_prefix_list: AWS's list of S3's addresses in the Region, ``com.amazonaws.<region>.s3``: models then reach these alone, and no other address. By default port 443 of every address, of which nothing but S3 answers in this VPC: the list's ID differs by Region, and CloudFormation does not know it. ``aws_ec2.PrefixList.from_lookup`` finds it at synthesis.
            narrow_s3: Let the S3 gateway endpoint's policy name what models read and write, and what :meth:`allow_s3` adds, in place of all buckets of the account; by default not, since callers in the VPC may have buckets of their own. Either way images' layers in ECR pass, and no bucket of another account that is not named.

        Raises:
            ConfigurationError: LLE104, LLE105, LLE111 for the VPC's range, LLE11x when
                zones and region disagree or the subnets do not fit, LLE340 when more is
                named than a policy holds.
        """
        super().__init__(scope, id)
        path = path_below(self, scope, id)
        _check_region(self, client_zones)
        # Not with tokens: subnets are sized here.
        fleet = 1 if max_instances is None else MAX_INSTANCES.check(max_instances, path)
        if subnet_prefix_length is not None:
            SUBNET_PREFIX_LENGTH.check(subnet_prefix_length, path)
        blocks = network_blocks(cidr, client_zones.zones, fleet, subnet_prefix_length, path)
        # Not the path: `cdk refactor` can then move the network to another scope of its stack.
        name = f"{stack_name_of(stack_of(self))}/{id}"
        vpc = ec2.CfnVPC(
            self,
            "Vpc",
            cidr_block=cidr,
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags=[CfnTag(key="Name", value=name)],
        )
        path_below(vpc, self, "Vpc")
        self.node.default_child = vpc
        vpc_id = vpc.ref
        table = ec2.CfnRouteTable(
            self, "Routes", vpc_id=vpc_id, tags=[CfnTag(key="Name", value=name)]
        ).ref
        names = []
        associations = []
        self.subnet_ids = []
        for zone, block in blocks.items():
            subnet = ec2.CfnSubnet(
                self,
                f"Subnet-{zone}",
                vpc_id=vpc_id,
                cidr_block=block,
                availability_zone=None if client_zones.ids else zone,
                availability_zone_id=zone if client_zones.ids else None,
                map_public_ip_on_launch=False,
                tags=[CfnTag(key="Name", value=f"{name}/{zone}")],
            )
            path_below(subnet, self, f"Subnet-{zone}")
            names.append(subnet.attr_availability_zone)
            self.subnet_ids.append(subnet.ref)
            associations.append(
                ec2.CfnSubnetRouteTableAssociation(
                    self, f"Route-{zone}", subnet_id=self.subnet_ids[-1], route_table_id=table
                )
            )
        gateway = ec2.CfnVPCEndpoint(
            self,
            "S3",
            vpc_id=vpc_id,
            service_name=f"com.amazonaws.{pseudo_parameters()[1]}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[table],
        )
        _ClosedDefaultSecurityGroup(
            self, "DefaultSecurityGroup", security_group_id=vpc.attr_default_security_group
        )
        if flow_logs is not None:
            _FlowLog(self, "FlowLog", vpc_id=vpc_id, traffic=flow_logs)
        self.vpc_id, self.vpc_cidr, self.zone_names = vpc_id, cidr, [*names]
        self._refer = partial(
            ec2.Vpc.from_vpc_attributes,
            self,
            "Reference",
            vpc_id=vpc_id,
            vpc_cidr_block=cidr,
            availability_zones=names,
            isolated_subnet_ids=self.subnet_ids,
            isolated_subnet_route_table_ids=[table] * len(blocks),
            isolated_subnet_ipv4_cidr_blocks=list(blocks.values()),
        )
        self.client_zones = client_zones
        length = ipaddress.IPv4Network(next(iter(blocks.values()))).prefixlen
        self.fleet_room = FleetRoom([length] * len(blocks))
        self.dns_ready = True
        self.data_path = [gateway, *associations]
        self._s3_policy = S3GatewayPolicy(self, gateway, narrow=narrow_s3)
        self.s3_prefix_list = s3_prefix_list
        self.model_security_group = _model_security_group(self)

    @classmethod
    def in_vpc(
        cls,
        scope: Construct,
        id: str,
        *,
        vpc: ec2.IVpc,
        client_zones: ClientZones,
        subnets: Mapping[str, ec2.ISubnet] | None = None,
        subnet_selection: ec2.SubnetSelection | None = None,
        s3_prefix_list: ec2.IPrefixList | None = None,
        owner: str | None = None,
    ) -> ZoneAlignedNetwork:
        """Use a VPC that exists: made in the same app, imported by attributes, or looked up.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            vpc: The VPC. Its DNS support and DNS hostnames must be on for private DNS.
            client_zones: Where the callers run.
            subnets: The subnet of each client zone. By default one subnet per zone is chosen by the zone's name: isolated ones first, then private ones with a way out, never public ones. Needed with zone IDs, and where the VPC does not know its zones' names at synth.
            subnet_selection: Which of the VPC's subnets may be chosen; by default all that are not public. Where a client zone has several of these, a warning says which group was taken.
            s3_prefix_list: AWS's list of S3's addresses in the Region: models then reach S3 alone, whatever else the VPC leads to. By default port 443 of every address.
            owner: The account that shares the VPC's subnets by AWS RAM, twelve digits. By default as a lookup found, else the stack's own: ``from_vpc_attributes`` does not know it, so a missing one is found by preflight (LLP210) alone. In a shared VPC nothing makes VPC endpoints or changes the owner's security groups.

        Raises:
            ConfigurationError: LLE151 when a zone has no subnet (both sides are named),
                LLE152 when zones and subnets cannot be matched at synth, LLE153 when
                ``subnets`` names other zones, LLE158 when ``subnet_selection`` is given
                beside it, LLE159 for one subnet in two zones, LLE914 for ``owner``.
        """
        network = _NetworkInVpc(scope, id)
        allow_stand_ins(network, vpc)
        _check_region(network, client_zones)
        network.owner = _other_owner(network, check(ACCOUNT, owner, path_of(network)), vpc)
        network.vpc_id, network._refer = vpc.vpc_id, lambda: vpc
        network.client_zones = client_zones
        network.subnets = choose_subnets(network, vpc, client_zones, subnets, subnet_selection)
        network.subnet_ids = [subnet.subnet_id for subnet in network.subnets]
        network.zone_names = [zone_name_of(subnet) for subnet in network.subnets]
        network.fleet_room = shared_room(vpc, network.subnets)
        # Only a VPC made in the same app tells at synth; an imported one is taken at its word.
        network.dns_ready = not isinstance(vpc, ec2.Vpc) or bool(
            vpc.dns_support_enabled and vpc.dns_hostnames_enabled
        )
        network.data_path = []
        network.s3_prefix_list = s3_prefix_list
        network.model_security_group = _model_security_group(network)
        return network

    def allow_s3(self, bucket: s3.IBucket | str, *, write: bool = False) -> None:
        """Let a bucket through the S3 gateway endpoint, whosever it is.

        For buckets of other accounts, and with ``narrow_s3`` for every bucket, that is used in the
        VPC and is not a model's data, captured data or core dumps: these are known. A VPC that
        exists keeps its endpoints as they are: there it does nothing.

        Args:
            bucket: The bucket, or its name.
            write: Let objects be written and deleted too; by default they are read and listed.
        """
        name = bucket_arn(bucket) if isinstance(bucket, str) else bucket.bucket_arn
        statements = [allow(["s3:GetObject"], f"{name}/*"), allow(["s3:ListBucket"], name)]
        if write:
            statements.append(
                allow(["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"], f"{name}/*")
            )
        self.let_into_s3(statements)

    def let_into_s3(self, statements: Sequence[Mapping[str, Any]]) -> None:
        """Let what these statements allow in S3 through the gateway endpoint; for constructs."""
        if self._s3_policy is not None:
            self._s3_policy.let(statements)

    def add_interface_endpoint(
        self, id: str, service: ec2.IInterfaceVpcEndpointService
    ) -> ec2.InterfaceVpcEndpoint:
        """Let the models' containers reach another AWS service, such as Secrets Manager.

        An interface endpoint with private DNS in the client zones' subnets, which costs by the
        hour. Only models are let in, and only principals of this account may use it; who else
        needs it, ``connections`` lets in. What the containers may do is the matter of the model's
        role: pass the model to a ``grant_*`` method.

        Args:
            id: Of the construct below the network.
            service: ``ec2.InterfaceVpcEndpointAwsService.SECRETS_MANAGER``, for instance.
        """
        group = security_group_in(
            self, self, f"{id}SecurityGroup", "Interface endpoint for models: only these"
        )
        endpoint = interface_endpoint_in(self, self, id, service, group)
        resource = cast(ec2.CfnVPCEndpoint, endpoint.node.default_child)
        resource.policy_document = document(
            allow(
                ["*"],
                "*",
                principal={"AWS": "*"},
                condition={"StringEquals": {"aws:PrincipalAccount": pseudo_parameters()[2]}},
            )
        )
        group.connections.allow_from(
            self.model_security_group, ec2.Port.tcp(443), "Model containers"
        )
        return endpoint

    @cached_property
    def vpc(self) -> ec2.IVpc:
        """The VPC."""
        return self._refer()

    @cached_property
    def vpc_cidr(self) -> str:
        """The VPC's IPv4 range."""
        return self.vpc.vpc_cidr_block

    @cached_property
    def subnets(self) -> list[ec2.ISubnet]:
        """One per client zone, in the order of the zones."""
        return list(self.vpc.isolated_subnets)

    @property
    def subnet_selection(self) -> ec2.SubnetSelection:
        """The network's subnets, for any construct that takes a selection."""
        return ec2.SubnetSelection(subnets=self.subnets)

    def subnet_of(self, zone: str) -> ec2.ISubnet:
        """The subnet of a client zone.

        Raises
        ------
        ConfigurationError
            LLE362 for any other zone.
        """
        zones = self.client_zones.zones
        if zone not in zones:
            raise NOT_A_CLIENT_ZONE.error(
                got=repr(zone), allowed=", ".join(zones), where=path_of(self)
            )
        return self.subnets[zones.index(zone)]


def security_group_in(
    network: ZoneAlignedNetwork, scope: Construct, id: str, description: str
) -> ec2.SecurityGroup:
    """A group in the network's VPC that lets nothing in or out."""
    return ec2.SecurityGroup(
        scope, id, vpc=_vpc_of(network), description=description, allow_all_outbound=False
    )


def interface_endpoint_in(
    network: ZoneAlignedNetwork,
    scope: Construct,
    id: str,
    service: ec2.IInterfaceVpcEndpointService,
    group: ec2.ISecurityGroup,
    *,
    private_dns: bool = True,
) -> ec2.InterfaceVpcEndpoint:
    """An interface endpoint in the network's subnets; the group says who gets in."""
    if network.owner is not None:
        raise ENDPOINTS_ARE_THE_OWNERS.error(
            got=f"{path_of(scope)}/{id} in a VPC of account {network.owner}",
            allowed="none of this stack's",
            where=path_of(scope),
        )
    return ec2.InterfaceVpcEndpoint(
        scope,
        id,
        vpc=_vpc_of(network),
        service=service,
        private_dns_enabled=private_dns,
        open=False,
        security_groups=[group],
        subnets=None if network.own_vpc else network.subnet_selection,
    )


def vpc_stack_of(network: ZoneAlignedNetwork) -> Stack:
    """The stack that the network's VPC is of."""
    return stack_of(network if network.own_vpc else network.vpc)


def _vpc_of(network: ZoneAlignedNetwork) -> ec2.IVpc:
    return cast(ec2.IVpc, _StandIn(network)) if network.own_vpc else network.vpc


@jsii.implements(ec2.IVpc, ec2.ISubnet)
class _StandIn:
    """For constructs of CDK that read the IDs of a VPC and its subnets, and no more."""

    # The reference to the VPC takes 80 ms: CDK loads its table of Regions for its ARN.

    def __init__(self, network: ZoneAlignedNetwork) -> None:
        self._network = network

    @property
    @jsii.member(jsii_name="vpcId")
    def vpc_id(self) -> str:
        return self._network.vpc_id

    @jsii.member(jsii_name="selectSubnets")
    def select_subnets(self, _selection: Any) -> ec2.SelectedSubnets:
        return ec2.SelectedSubnets(
            availability_zones=[],
            has_public=False,
            internet_connectivity_established=self._network,
            subnet_ids=self._network.subnet_ids,
            subnets=[cast(ec2.ISubnet, self)],  # asked for: whether there are any
        )


class _NetworkInVpc(ZoneAlignedNetwork):
    """What :meth:`ZoneAlignedNetwork.in_vpc` returns; makes nothing but the model's group."""

    own_vpc = False
    _expects_way_to_s3 = False

    def __init__(self, scope: Construct, id: str) -> None:
        Construct.__init__(self, scope, id)

    def let_into_s3(self, statements: Sequence[Mapping[str, Any]]) -> None:
        """Its endpoints stay as they are; what is read from S3 needs one, or another way."""
        if not self._expects_way_to_s3 and reads_from_s3(statements):
            self._expects_way_to_s3 = True
            expect_way_to_s3(self, self.vpc, self.subnets)


def _other_owner(scope: Construct, stated: str | None, vpc: ec2.IVpc) -> str | None:
    """The VPC's owner, where that is known to be another account than the stack's."""
    own = stack_of(scope).account
    owner = stated or vpc.env.account
    return None if owner == own or is_token(owner) else owner


def _check_region(scope: Construct, client_zones: ClientZones) -> None:
    region = region_of(scope)
    if not is_token(region):
        check_zones_in_region(client_zones.zones, region, where=path_of(scope))


def _model_security_group(network: ZoneAlignedNetwork) -> ec2.ISecurityGroup:
    group = security_group_in(
        network, network, "ModelSecurityGroup", "SageMaker model containers: nothing in, HTTPS out"
    )
    # Of the containers' interfaces nothing else is needed: SageMaker pulls images "in isolation
    # from your inference container", and no page asks for an endpoint of CloudWatch Logs.
    let_out_to_s3(group, network.s3_prefix_list, "HTTPS, to S3")
    return group


class _ClosedDefaultSecurityGroup(TreePart):
    """Removes the rules that every default security group is born with; nothing of ours uses it."""

    def __init__(self, scope: Construct, id: str, *, security_group_id: str) -> None:
        super().__init__(scope, id)
        function = custom_resource_function(
            self,
            "close_default_security_group",
            description="Removes the rules of a VPC's default security group",
            statements=closing_group(Own(*pseudo_parameters()), security_group_id),
            wildcards="ec2:DescribeSecurityGroups takes no resource.",
            timeout_seconds=120,  # it waits for a minute for rights that are new
        )
        CustomResource(
            self,
            "Rules",
            resource_type="Custom::ClosedDefaultSecurityGroup",
            service_token=function.arn,
            properties={"SecurityGroupId": security_group_id},
        )


class _FlowLog(TreePart):
    """Records a VPC's traffic for a month: rejected packets show the group that lacks port 443."""

    def __init__(
        self, scope: Construct, id: str, *, vpc_id: str, traffic: ec2.FlowLogTrafficType
    ) -> None:
        super().__init__(scope, id)
        guards = safeguards_of(self)
        group = log_group(self, guards, days=30)
        rights = [
            *writing_logs(guards, group, "logs:DescribeLogStreams"),
            allow(["logs:DescribeLogGroups"], "*"),
        ]
        role_arn, carrier, before = _flow_log_role(self, guards.flow_log_role, rights)
        acknowledge_wildcard_resources(
            carrier, ["*"], reason="logs:DescribeLogGroups takes no single log group."
        )
        flow_log = ec2.CfnFlowLog(
            self,
            "FlowLog",
            resource_id=vpc_id,
            resource_type="VPC",
            traffic_type=traffic.value,
            log_destination_type="cloud-watch-logs",
            log_group_name=group.ref,
            deliver_logs_permission_arn=role_arn,
        )
        if before:
            flow_log.node.add_dependency(*before)


def _flow_log_role(
    scope: Construct, given: iam.IRole | None, rights: Sequence[Mapping[str, Any]]
) -> tuple[str, Construct, list[IDependable]]:
    """The role's ARN, what carries its rights, and what has to be there before the role is used."""
    if given is not None:
        policy = RoleRights.given(scope, given).allow("FlowLog", *rights, owner=scope)
        return given.role_arn, policy, [policy, RightsBefore.of(scope, given)]
    role, _, before = RoleRights.made(
        scope,
        "Role",
        trusted=trust("vpc-flow-logs.amazonaws.com", for_flow_logs()),
        policy_name="deliver",
        statements=rights,
    )
    return role.attr_arn, role, before
