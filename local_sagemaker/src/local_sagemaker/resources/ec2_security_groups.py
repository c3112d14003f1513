"""AWS::EC2::*: security groups and VPC endpoints; tags of all EC2 resources."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from .properties import PropertyNotEmulated, Tagging, as_bool, as_text, call, only, tag_list
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated


def set_tags(at: Place, resource_id: str, properties: Properties) -> None:
    """Tag a new resource."""
    if properties.get("Tags"):
        at.client("ec2").create_tags(Resources=[resource_id], Tags=tag_list(properties["Tags"]))


def ec2_tags(of: str = "") -> Tagging:
    """Give how the tags of an EC2 resource are changed."""
    return Tagging(
        "ec2",
        "create_tags",
        "delete_tags",
        "Resources",
        of,
        keys="Tags",
        gone=lambda keys: [{"Key": key} for key in keys],
    )


_PEERS = (
    ("SourceSecurityGroupId", "UserIdGroupPairs", "GroupId"),
    ("DestinationSecurityGroupId", "UserIdGroupPairs", "GroupId"),
    ("CidrIp", "IpRanges", "CidrIp"),
    ("CidrIpv6", "Ipv6Ranges", "CidrIpv6"),
    ("SourcePrefixListId", "PrefixListIds", "PrefixListId"),
    ("DestinationPrefixListId", "PrefixListIds", "PrefixListId"),
)
_RULE = {"IpProtocol", "FromPort", "ToPort", "Description", *(peer[0] for peer in _PEERS)}


def _permission(rule: Properties) -> dict[str, Any]:
    """Translate a template's rule into the API's."""
    unknown = set(rule) - _RULE - {"GroupId"}
    if unknown:
        raise PropertyNotEmulated(f"rule.{', '.join(sorted(unknown))}")
    permission: dict[str, Any] = {"IpProtocol": str(rule["IpProtocol"])}
    for port in ("FromPort", "ToPort"):
        if rule.get(port) is not None:
            permission[port] = int(rule[port])
    for name, member, key in _PEERS:
        if rule.get(name):
            permission[member] = [{key: rule[name], **only(rule, "Description")}]
    return permission


def _authorize(at: Place, direction: str, group: str, rules: list[Properties]) -> Any:
    method = getattr(at.client("ec2"), f"authorize_security_group_{direction.lower()}")
    return method(GroupId=group, IpPermissions=[_permission(rule) for rule in rules])


def _revoke(at: Place, direction: str, group: str, rules: list[Properties]) -> None:
    method = getattr(at.client("ec2"), f"revoke_security_group_{direction.lower()}")
    method(GroupId=group, IpPermissions=[_permission(rule) for rule in rules])


_PATIENCE = 900.0
"""Seconds: "stack deletion will fail after 15 minutes"
(https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/1327)."""


def delete_once_free(at: Place, delete: Callable[[], Any]) -> None:
    """Delete what network interfaces may hold, with CloudFormation's patience, by the clock."""
    deadline = at.clock.now() + _PATIENCE
    while True:
        try:
            delete()
            return
        except ClientError as error:
            if error.response["Error"]["Code"] != "DependencyViolation" or (
                at.clock.now() >= deadline
            ):
                raise
        time.sleep(0.1)


_ALL_TRAFFIC = {"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}


@emulated
class SecurityGroup(ResourceType):
    """A security group with its inline rules."""

    type_name = "AWS::EC2::SecurityGroup"
    tags_by = ec2_tags()
    name_property = "GroupName"

    def create(self, at: Place, properties: Properties) -> Created:
        group = at.client("ec2").create_security_group(
            GroupName=self.name(at, properties),
            Description=properties["GroupDescription"],
            **only(properties, "VpcId"),
        )["GroupId"]
        at.begin(group)
        if properties.get("SecurityGroupEgress"):
            # A template that states its egress does not get AWS's allow-all rule.
            _revoke(at, "egress", group, [_ALL_TRAFFIC])
            _authorize(at, "egress", group, properties["SecurityGroupEgress"])
        if properties.get("SecurityGroupIngress"):
            _authorize(at, "ingress", group, properties["SecurityGroupIngress"])
        set_tags(at, group, properties)
        vpc = properties.get("VpcId", "")
        return Created(group, {"GroupId": group, "Id": group, "VpcId": vpc})

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        group, old = existing.physical_id, existing.properties
        for direction, default in (("Ingress", []), ("Egress", [_ALL_TRAFFIC])):
            name = f"SecurityGroup{direction}"
            before = old.get(name) or default
            after = properties.get(name) or default
            gone = [rule for rule in before if rule not in after]
            new = [rule for rule in after if rule not in before]
            if gone:
                _revoke(at, direction, group, gone)
            if new:
                _authorize(at, direction, group, new)

    def delete(self, at: Place, existing: Existing) -> None:
        ec2 = at.client("ec2")
        delete_once_free(at, lambda: ec2.delete_security_group(GroupId=existing.physical_id))


class _Rule(ResourceType):
    """One rule of a group; only its description can change in place."""

    direction = ""

    def create(self, at: Place, properties: Properties) -> Created:
        answer = _authorize(at, self.direction, properties["GroupId"], [properties])
        identity = answer["SecurityGroupRules"][0]["SecurityGroupRuleId"]
        return Created(identity, {"Id": identity})

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        method = f"update_security_group_rule_descriptions_{self.direction}"
        getattr(at.client("ec2"), method)(
            GroupId=properties["GroupId"], IpPermissions=[_permission(properties)]
        )

    def delete(self, at: Place, existing: Existing) -> None:
        old = existing.properties
        _revoke(at, self.direction, old["GroupId"], [old])


@emulated
class SecurityGroupIngress(_Rule):
    """An inbound rule."""

    type_name = "AWS::EC2::SecurityGroupIngress"
    direction = "ingress"


@emulated
class SecurityGroupEgress(_Rule):
    """An outbound rule."""

    type_name = "AWS::EC2::SecurityGroupEgress"
    direction = "egress"


_LISTS = ("RouteTableIds", "SecurityGroupIds", "SubnetIds")


@emulated
class VpcEndpoint(ResourceType):
    """A VPC endpoint; see `corrections.private_names` for its DNS entries and refusals."""

    type_name = "AWS::EC2::VPCEndpoint"
    deletes_by = ("ec2", "delete_vpc_endpoints", "VpcEndpointIds")
    tags_by = ec2_tags()

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
        return self._read(at, existing.physical_id)
