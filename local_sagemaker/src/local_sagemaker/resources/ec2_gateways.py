"""AWS::EC2::*: internet and NAT gateways, addresses, flow logs."""

from __future__ import annotations

from .ec2_tags import set_tags, update_tags
from .properties import call, only
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated


@emulated
class InternetGateway(ResourceType):
    """An internet gateway."""

    type_name = "AWS::EC2::InternetGateway"
    deletes_by = ("ec2", "delete_internet_gateway", "InternetGatewayId")

    def create(self, at: Place, properties: Properties) -> Created:
        gateway = at.client("ec2").create_internet_gateway()["InternetGateway"]
        identity = gateway["InternetGatewayId"]
        set_tags(at, identity, properties)
        return Created(identity, {"InternetGatewayId": identity})

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        update_tags(at, existing, properties)


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
    # No operation changes it in place.
    also_replaces = frozenset({"Domain"})

    def create(self, at: Place, properties: Properties) -> Created:
        address = at.client("ec2").allocate_address(Domain=properties.get("Domain", "vpc"))
        set_tags(at, address["AllocationId"], properties)
        return Created(
            address["PublicIp"],
            {"AllocationId": address["AllocationId"], "PublicIp": address["PublicIp"]},
        )

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        allocation = Existing(
            existing.attributes["AllocationId"], existing.properties, existing.attributes
        )
        update_tags(at, allocation, properties)

    def delete(self, at: Place, existing: Existing) -> None:
        at.client("ec2").release_address(AllocationId=existing.attributes["AllocationId"])


@emulated
class NatGateway(ResourceType):
    """A NAT gateway."""

    type_name = "AWS::EC2::NatGateway"

    def create(self, at: Place, properties: Properties) -> Created:
        arguments = only(properties, *self.replaces)
        gateway = call(at.client("ec2"), "create_nat_gateway", arguments)["NatGateway"]
        set_tags(at, gateway["NatGatewayId"], properties)
        return Created(gateway["NatGatewayId"], {"NatGatewayId": gateway["NatGatewayId"]})

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        update_tags(at, existing, properties)

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

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        update_tags(at, existing, properties)

    def delete(self, at: Place, existing: Existing) -> None:
        at.client("ec2").delete_flow_logs(FlowLogIds=[existing.physical_id])
