"""AWS::EC2::*: VPC, subnet, routes, gateways, addresses, flow logs."""

from __future__ import annotations

from .ec2_security_groups import delete_once_free, ec2_tags, set_tags
from .properties import as_bool, call, only
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated

_DNS_SWITCHES = {"EnableDnsSupport": True, "EnableDnsHostnames": False}


@emulated
class Vpc(ResourceType):
    """A VPC with its DNS switches."""

    type_name = "AWS::EC2::VPC"
    tags_by = ec2_tags()
    deletes_by = ("ec2", "delete_vpc", "VpcId")
    # Conditional in the schema.
    also_replaces = frozenset({"InstanceTenancy"})

    def create(self, at: Place, properties: Properties) -> Created:
        ec2 = at.client("ec2")
        vpc = call(ec2, "create_vpc", only(properties, "CidrBlock", "InstanceTenancy"))["Vpc"]
        vpc_id = vpc["VpcId"]
        at.begin(vpc_id)
        self._switch_dns(at, vpc_id, properties)
        set_tags(at, vpc_id, properties)
        of_vpc = {"Name": "vpc-id", "Values": [vpc_id]}
        groups = ec2.describe_security_groups(
            Filters=[of_vpc, {"Name": "group-name", "Values": ["default"]}]
        )["SecurityGroups"]
        acls = ec2.describe_network_acls(Filters=[of_vpc, {"Name": "default", "Values": ["true"]}])[
            "NetworkAcls"
        ]
        return Created(
            vpc_id,
            {
                "VpcId": vpc_id,
                "CidrBlock": vpc["CidrBlock"],
                "CidrBlockAssociations": [
                    entry["AssociationId"] for entry in vpc.get("CidrBlockAssociationSet", [])
                ],
                "DefaultSecurityGroup": groups[0]["GroupId"],
                "DefaultNetworkAcl": acls[0]["NetworkAclId"],
                "Ipv6CidrBlocks": [],
            },
        )

    @staticmethod
    def _switch_dns(at: Place, vpc_id: str, properties: Properties) -> None:
        for name, default in _DNS_SWITCHES.items():
            value = {"Value": as_bool(properties.get(name, default))}
            at.client("ec2").modify_vpc_attribute(VpcId=vpc_id, **{name: value})

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        self._switch_dns(at, existing.physical_id, properties)


@emulated
class Subnet(ResourceType):
    """A subnet in a zone given by name or by zone id."""

    type_name = "AWS::EC2::Subnet"
    tags_by = ec2_tags()

    def create(self, at: Place, properties: Properties) -> Created:
        ec2 = at.client("ec2")
        arguments = only(properties, *self.replaces)
        subnet = call(ec2, "create_subnet", arguments)["Subnet"]
        subnet_id = subnet["SubnetId"]
        at.begin(subnet_id)
        if "MapPublicIpOnLaunch" in properties:
            self._map_public_ip(at, subnet_id, properties)
        set_tags(at, subnet_id, properties)
        acls = ec2.describe_network_acls(
            Filters=[{"Name": "association.subnet-id", "Values": [subnet_id]}]
        )["NetworkAcls"]
        associations = [
            association["NetworkAclAssociationId"]
            for acl in acls
            for association in acl["Associations"]
            if association["SubnetId"] == subnet_id
        ]
        return Created(
            subnet_id,
            {
                "SubnetId": subnet_id,
                "AvailabilityZone": subnet["AvailabilityZone"],
                "AvailabilityZoneId": subnet["AvailabilityZoneId"],
                "CidrBlock": subnet["CidrBlock"],
                "Ipv6CidrBlocks": [],
                "NetworkAclAssociationId": associations[0] if associations else "",
                "VpcId": subnet["VpcId"],
            },
        )

    @staticmethod
    def _map_public_ip(at: Place, subnet_id: str, properties: Properties) -> None:
        at.client("ec2").modify_subnet_attribute(
            SubnetId=subnet_id,
            MapPublicIpOnLaunch={"Value": as_bool(properties.get("MapPublicIpOnLaunch", False))},
        )

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        self._map_public_ip(at, existing.physical_id, properties)

    def delete(self, at: Place, existing: Existing) -> None:
        ec2 = at.client("ec2")
        delete_once_free(at, lambda: ec2.delete_subnet(SubnetId=existing.physical_id))


@emulated
class RouteTable(ResourceType):
    """A route table."""

    type_name = "AWS::EC2::RouteTable"
    tags_by = ec2_tags()
    deletes_by = ("ec2", "delete_route_table", "RouteTableId")

    def create(self, at: Place, properties: Properties) -> Created:
        table = at.client("ec2").create_route_table(VpcId=properties["VpcId"])["RouteTable"]
        set_tags(at, table["RouteTableId"], properties)
        return Created(table["RouteTableId"], {"RouteTableId": table["RouteTableId"]})


@emulated
class SubnetRouteTableAssociation(ResourceType):
    """Which route table a subnet uses."""

    type_name = "AWS::EC2::SubnetRouteTableAssociation"
    # "Update requires: No interruption", says the documentation against the schema.
    in_place = frozenset({"RouteTableId"})
    deletes_by = ("ec2", "disassociate_route_table", "AssociationId")

    def create(self, at: Place, properties: Properties) -> Created:
        answer = call(at.client("ec2"), "associate_route_table", properties)
        return Created(answer["AssociationId"], {"Id": answer["AssociationId"]})

    def update(self, at: Place, existing: Existing, properties: Properties) -> Created:
        at.client("ec2").disassociate_route_table(AssociationId=existing.physical_id)
        return self.create(at, properties)


@emulated
class Route(ResourceType):
    """A route to a gateway, a peering connection, or the like."""

    type_name = "AWS::EC2::Route"

    def create(self, at: Place, properties: Properties) -> Created:
        call(at.client("ec2"), "create_route", properties)
        destination = next(iter(self._destination(properties).values()))
        identity = f"{properties['RouteTableId']}|{destination}"
        return Created(identity, {"CidrBlock": destination})

    @staticmethod
    def _destination(properties: Properties) -> dict[str, str]:
        names = ("DestinationCidrBlock", "DestinationIpv6CidrBlock", "DestinationPrefixListId")
        return only(properties, *names)

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        call(at.client("ec2"), "replace_route", properties)

    def delete(self, at: Place, existing: Existing) -> None:
        old = existing.properties
        at.client("ec2").delete_route(RouteTableId=old["RouteTableId"], **self._destination(old))


@emulated
class InternetGateway(ResourceType):
    """An internet gateway."""

    type_name = "AWS::EC2::InternetGateway"
    tags_by = ec2_tags()
    deletes_by = ("ec2", "delete_internet_gateway", "InternetGatewayId")

    def create(self, at: Place, properties: Properties) -> Created:
        gateway = at.client("ec2").create_internet_gateway()["InternetGateway"]
        identity = gateway["InternetGatewayId"]
        set_tags(at, identity, properties)
        return Created(identity, {"InternetGatewayId": identity})


@emulated
class VpcGatewayAttachment(ResourceType):
    """An internet gateway's attachment to a VPC."""

    type_name = "AWS::EC2::VPCGatewayAttachment"
    # No operation changes it in place.
    also_replaces = frozenset({"InternetGatewayId"})

    def create(self, at: Place, properties: Properties) -> Created:
        at.client("ec2").attach_internet_gateway(**properties)
        return Created(f"IGW|{properties['VpcId']}", {"AttachmentType": "IGW"})

    def delete(self, at: Place, existing: Existing) -> None:
        at.client("ec2").detach_internet_gateway(**existing.properties)


@emulated
class ElasticIp(ResourceType):
    """An elastic address that is not attached to an instance."""

    type_name = "AWS::EC2::EIP"
    deletes_by = ("ec2", "release_address", {"AllocationId": "AllocationId"})
    tags_by = ec2_tags("AllocationId")
    # No operation changes it in place.
    also_replaces = frozenset({"Domain"})

    def create(self, at: Place, properties: Properties) -> Created:
        address = at.client("ec2").allocate_address(Domain=properties.get("Domain", "vpc"))
        set_tags(at, address["AllocationId"], properties)
        return Created(
            address["PublicIp"],
            {"AllocationId": address["AllocationId"], "PublicIp": address["PublicIp"]},
        )


@emulated
class NatGateway(ResourceType):
    """A NAT gateway."""

    type_name = "AWS::EC2::NatGateway"
    tags_by = ec2_tags()

    def create(self, at: Place, properties: Properties) -> Created:
        arguments = only(properties, *self.replaces)
        gateway = call(at.client("ec2"), "create_nat_gateway", arguments)["NatGateway"]
        set_tags(at, gateway["NatGatewayId"], properties)
        return Created(gateway["NatGatewayId"], {"NatGatewayId": gateway["NatGatewayId"]})

    def delete(self, at: Place, existing: Existing) -> None:
        ec2, identity = at.client("ec2"), existing.physical_id
        (gateway,) = ec2.describe_nat_gateways(NatGatewayIds=[identity])["NatGateways"]
        ec2.delete_nat_gateway(NatGatewayId=identity)
        # AWS removes a gateway's interfaces with it, moto does not.
        for address in gateway["NatGatewayAddresses"]:
            if address.get("NetworkInterfaceId"):
                ec2.delete_network_interface(NetworkInterfaceId=address["NetworkInterfaceId"])


@emulated
class FlowLog(ResourceType):
    """A flow log of a VPC, subnet or interface."""

    type_name = "AWS::EC2::FlowLog"
    deletes_by = ("ec2", "delete_flow_logs", "FlowLogIds")
    tags_by = ec2_tags()

    def create(self, at: Place, properties: Properties) -> Created:
        arguments = only(properties, *(self.replaces - {"ResourceId"}))
        answer = call(
            at.client("ec2"),
            "create_flow_logs",
            {**arguments, "ResourceIds": [properties["ResourceId"]]},
        )
        identity = answer["FlowLogIds"][0]
        set_tags(at, identity, properties)
        return Created(identity, {"Id": identity})
