"""AWS::EC2::VPCEndpoint, interface and gateway."""

from __future__ import annotations

from typing import Any

from .ec2_tags import set_tags, update_tags
from .properties import as_bool, as_text, call, only
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated

_LISTS = ("RouteTableIds", "SecurityGroupIds", "SubnetIds")


@emulated
class VpcEndpoint(ResourceType):
    """A VPC endpoint; see `corrections.vpc_endpoints` for its DNS entries and refusals."""

    type_name = "AWS::EC2::VPCEndpoint"

    def create(self, at: Place, properties: Properties) -> Created:
        arguments = only(properties, *self.replaces, "PolicyDocument", *_LISTS)
        # The API's default is true, CloudFormation's is false.
        arguments["PrivateDnsEnabled"] = as_bool(properties.get("PrivateDnsEnabled", False))
        identity = call(at.client("ec2"), "create_vpc_endpoint", arguments)["VpcEndpoint"][
            "VpcEndpointId"
        ]
        set_tags(at, identity, properties)
        return self._read(at, identity)

    @staticmethod
    def _read(at: Place, identity: str) -> Created:
        found = at.client("ec2").describe_vpc_endpoints(VpcEndpointIds=[identity])
        endpoint = found["VpcEndpoints"][0]
        return Created(
            identity,
            {
                "Id": identity,
                "CreationTimestamp": str(endpoint["CreationTimestamp"]),
                "DnsEntries": [
                    f"{entry['HostedZoneId']}:{entry['DnsName']}"
                    for entry in endpoint.get("DnsEntries", [])
                ],
                "NetworkInterfaceIds": endpoint.get("NetworkInterfaceIds", []),
            },
        )

    def update(self, at: Place, existing: Existing, properties: Properties) -> Created:
        old, changes = existing.properties, dict[str, Any]()
        policy = properties.get("PolicyDocument")
        if policy != old.get("PolicyDocument"):
            changes |= {"PolicyDocument": as_text(policy)} if policy else {"ResetPolicy": True}
        for name in _LISTS:
            before, after = set(old.get(name) or []), set(properties.get(name) or [])
            if after - before:
                changes[f"Add{name}"] = sorted(after - before)
            if before - after:
                changes[f"Remove{name}"] = sorted(before - after)
        wanted = as_bool(properties.get("PrivateDnsEnabled", False))
        if wanted != as_bool(old.get("PrivateDnsEnabled", False)):
            changes["PrivateDnsEnabled"] = wanted
        if changes:
            at.client("ec2").modify_vpc_endpoint(VpcEndpointId=existing.physical_id, **changes)
        update_tags(at, existing, properties)
        return self._read(at, existing.physical_id)

    def delete(self, at: Place, existing: Existing) -> None:
        at.client("ec2").delete_vpc_endpoints(VpcEndpointIds=[existing.physical_id])
