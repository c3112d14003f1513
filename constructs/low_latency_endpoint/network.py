"""Subnets in the callers' Availability Zones, in a new VPC or in one that exists."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from aws_cdk import Aws, CfnTag, Stack
from aws_cdk import aws_ec2 as ec2
from constructs import Construct, IDependable

from .client_zones import ClientZones
from .default_security_group import ClosedDefaultSecurityGroup
from .existing_subnets import choose_subnets
from .fleet_room import FleetRoom, shared_room
from .flow_log import FlowLog
from .planning.limits import MAX_INSTANCES, SUBNET_PREFIX_LENGTH
from .planning.subnets import network_blocks
from .planning.zones import check_zones_in_region
from .validation import check, is_token

__all__ = ["ZoneAlignedNetwork"]

DEFAULT_CIDR = "10.0.0.0/16"


class ZoneAlignedNetwork(Construct):
    """One isolated subnet in each client zone, in a VPC of its own.

    The VPC has DNS support and hostnames on (private DNS needs both), an S3 gateway endpoint
    (model downloads go through the VPC when the model runs in network isolation), no internet
    gateway, no NAT and no public subnet; its default security group is closed. For a VPC that
    exists, and the callers in it, use :meth:`in_vpc`.

    A zone's address block depends on the zone alone, so adding, removing or reordering client
    zones never moves another zone's subnet.

    Parameters
    ----------
    scope, id
        As for every construct.
    client_zones : ClientZones
        Where the callers run. With zone IDs the subnets carry ``AvailabilityZoneId``, so callers
        in another account land in the same physical zone.
    cidr : str
        The VPC's IPv4 range; by default 10.0.0.0/16. Choose another if it must be peered.
    max_instances : int, optional
        The largest number of instances that all endpoints in this network have together. The
        subnets hold twice as many (a blue/green deployment runs two fleets), two addresses each,
        all in one zone. By default subnets are /24, room for 58 instances. Endpoints that need
        more are refused.
    subnet_prefix_length : int, optional
        Size of the subnets, 16 to 28. By default derived from ``max_instances``, never smaller
        than /24: a subnet cannot grow later without being replaced.
    flow_logs : aws_ec2.FlowLogTrafficType, optional
        What the VPC's flow log records; by default rejected packets. ``None`` makes no flow log.

    Attributes
    ----------
    vpc : aws_ec2.IVpc
    subnets : list of aws_ec2.ISubnet
        One per client zone, in the order of the zones.
    model_security_group : aws_ec2.ISecurityGroup
        For models: no inbound rule; outbound HTTPS, which here reaches S3 only.
    client_zones : ClientZones
    own_vpc : bool
        Whether the network made the VPC: then nobody was in it before. Not with :meth:`in_vpc`.

    Raises
    ------
    ConfigurationError
        LLE104, LLE105, LLE108 for the VPC's range, LLE11x when zones and region disagree or the
        subnets do not fit.

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

    vpc: ec2.IVpc
    subnets: list[ec2.ISubnet]
    client_zones: ClientZones
    model_security_group: ec2.ISecurityGroup
    dns_ready: bool
    fleet_room: FleetRoom
    data_path: list[IDependable]
    own_vpc: bool = True

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
    ) -> None:
        super().__init__(scope, id)
        path = self.node.path
        _check_region(self, client_zones)
        fleet = check(MAX_INSTANCES, max_instances, path) or 1
        check(SUBNET_PREFIX_LENGTH, subnet_prefix_length, path)
        blocks = network_blocks(cidr, client_zones.zones, fleet, subnet_prefix_length, path)
        vpc = ec2.CfnVPC(
            self,
            "Vpc",
            cidr_block=cidr,
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags=[CfnTag(key="Name", value=path)],
        )
        routes = ec2.CfnRouteTable(
            self, "Routes", vpc_id=vpc.ref, tags=[CfnTag(key="Name", value=path)]
        )
        subnets = []
        associations = []
        for zone, block in blocks.items():
            subnet = ec2.CfnSubnet(
                self,
                f"Subnet-{zone}",
                vpc_id=vpc.ref,
                cidr_block=block,
                availability_zone=zone if client_zones.kind == "name" else None,
                availability_zone_id=zone if client_zones.kind == "id" else None,
                map_public_ip_on_launch=False,
                tags=[CfnTag(key="Name", value=f"{path}/{zone}")],
            )
            subnets.append(subnet)
            associations.append(
                ec2.CfnSubnetRouteTableAssociation(
                    self, f"Route-{zone}", subnet_id=subnet.ref, route_table_id=routes.ref
                )
            )
        s3 = ec2.CfnVPCEndpoint(
            self,
            "S3",
            vpc_id=vpc.ref,
            service_name=f"com.amazonaws.{Aws.REGION}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[routes.ref],
        )
        ClosedDefaultSecurityGroup(
            self, "DefaultSecurityGroup", security_group_id=vpc.attr_default_security_group
        )
        if flow_logs is not None:
            FlowLog(self, "FlowLog", vpc_id=vpc.ref, traffic=flow_logs)
        self.vpc = ec2.Vpc.from_vpc_attributes(
            self,
            "Reference",
            vpc_id=vpc.ref,
            vpc_cidr_block=cidr,
            availability_zones=[subnet.attr_availability_zone for subnet in subnets],
            isolated_subnet_ids=[subnet.ref for subnet in subnets],
            isolated_subnet_route_table_ids=[routes.ref] * len(subnets),
            isolated_subnet_ipv4_cidr_blocks=list(blocks.values()),
        )
        self.subnets = list(self.vpc.isolated_subnets)
        self.client_zones = client_zones
        length = ipaddress.IPv4Network(next(iter(blocks.values()))).prefixlen
        self.fleet_room = FleetRoom([length] * len(blocks))
        self.dns_ready = True
        self.data_path = [s3, *associations]
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
    ) -> ZoneAlignedNetwork:
        """Use a VPC that exists: made in the same app, imported by attributes, or looked up.

        Parameters
        ----------
        scope, id
            As for every construct.
        vpc : aws_ec2.IVpc
            The VPC. Its DNS support and DNS hostnames must be on for private DNS.
        client_zones : ClientZones
            Where the callers run.
        subnets : mapping of str to aws_ec2.ISubnet, optional
            The subnet of each client zone. By default one subnet per zone is chosen by the zone's
            name: isolated ones first, then private ones with a way out, never public ones. Needed
            with zone IDs, and where the VPC does not know its zones' names at synth.
        subnet_selection : aws_ec2.SubnetSelection, optional
            Which of the VPC's subnets may be chosen; by default all that are not public.

        Raises
        ------
        ConfigurationError
            LLE151 when a zone has no subnet (both sides are named), LLE152 when zones and subnets
            cannot be matched at synth, LLE153 when ``subnets`` names other zones, LLE158 when
            ``subnet_selection`` is given beside it, LLE159 for one subnet in two zones.
        """
        return _NetworkInVpc(
            scope, id, vpc=vpc, client_zones=client_zones, subnets=subnets,
            subnet_selection=subnet_selection,
        )

    @property
    def subnet_selection(self) -> ec2.SubnetSelection:
        """The network's subnets, for any construct that takes a selection."""
        return ec2.SubnetSelection(subnets=self.subnets)

    def subnet_of(self, zone: str) -> ec2.ISubnet:
        """The subnet of a client zone."""
        return self.subnets[self.client_zones.zones.index(zone)]


class _NetworkInVpc(ZoneAlignedNetwork):
    """What :meth:`ZoneAlignedNetwork.in_vpc` returns; makes nothing but the model's group."""

    own_vpc = False

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        vpc: ec2.IVpc,
        client_zones: ClientZones,
        subnets: Mapping[str, ec2.ISubnet] | None,
        subnet_selection: ec2.SubnetSelection | None,
    ) -> None:
        Construct.__init__(self, scope, id)
        _check_region(self, client_zones)
        self.vpc = vpc
        self.client_zones = client_zones
        self.subnets = choose_subnets(
            vpc, client_zones, subnets, subnet_selection, where=self.node.path
        )
        self.fleet_room = shared_room(vpc, self.subnets)
        # Only a VPC made in the same app tells at synth; an imported one is taken at its word.
        self.dns_ready = not isinstance(vpc, ec2.Vpc) or bool(
            vpc.dns_support_enabled and vpc.dns_hostnames_enabled
        )
        self.data_path = []
        self.model_security_group = _model_security_group(self)


def _check_region(scope: Construct, client_zones: ClientZones) -> None:
    region = Stack.of(scope).region
    if not is_token(region):
        check_zones_in_region(client_zones.zones, region, where=scope.node.path)


def _model_security_group(network: ZoneAlignedNetwork) -> ec2.ISecurityGroup:
    group = ec2.SecurityGroup(
        network,
        "ModelSecurityGroup",
        vpc=network.vpc,
        description="SageMaker model containers: nothing in, HTTPS out",
        allow_all_outbound=False,
    )
    # S3 answers on public addresses behind the gateway endpoint, and CloudFormation has no
    # attribute for the prefix list that names them.
    group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "HTTPS, to S3")
    return group


