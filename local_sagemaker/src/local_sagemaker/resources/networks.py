"""AWS::EC2::*: security groups and their rules, and what is deleted or changed in several steps."""

from __future__ import annotations

import time
from typing import Any

from botocore.exceptions import ClientError

from ..protocols import ServiceError
from .calls import Known, PropertyNotEmulated, as_bool, as_text, only
from .resource_type import Created, Existing, Place, Properties, ResourceType

_PATIENCE = 900.0
"""Seconds: "stack deletion will fail after 15 minutes"
(https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/1327)."""


class Held(ResourceType):
    """What network interfaces may hold: deleted with CloudFormation's patience, by the clock."""

    def delete(self, at: Place, existing: Existing) -> None:
        deadline = at.clock.now() + _PATIENCE
        while True:
            try:
                super().delete(at, existing)
                return
            except ClientError as error:
                held = error.response["Error"]["Code"] == "DependencyViolation"
                if not held or at.clock.now() >= deadline:
                    raise
            time.sleep(0.1)


class NatGateway(ResourceType):
    """A NAT gateway: AWS removes its interfaces with it, moto does not."""

    def wait(self, at: Place, known: Known) -> None:
        """Fail a public one whose VPC has no internet gateway attached, as AWS does.

        https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_NatGateway.html
        """
        vpc = known["VpcId"]
        attached = {"Name": "attachment.vpc-id", "Values": [vpc]}
        found = at.client("ec2").describe_internet_gateways(Filters=[attached])
        if known.get("ConnectivityType") != "private" and not found["InternetGateways"]:
            raise ServiceError(f"Network {vpc} has no Internet gateway attached")

    def delete(self, at: Place, existing: Existing) -> None:
        ec2, identity = at.client("ec2"), existing.physical_id
        (gateway,) = ec2.describe_nat_gateways(NatGatewayIds=[identity])["NatGateways"]
        super().delete(at, existing)
        for address in gateway["NatGatewayAddresses"]:
            if address.get("NetworkInterfaceId"):
                ec2.delete_network_interface(NetworkInterfaceId=address["NetworkInterfaceId"])


_PEERS = (
    ("SourceSecurityGroupId", "UserIdGroupPairs", "GroupId"),
    ("DestinationSecurityGroupId", "UserIdGroupPairs", "GroupId"),
    ("CidrIp", "IpRanges", "CidrIp"),
    ("CidrIpv6", "Ipv6Ranges", "CidrIpv6"),
    ("SourcePrefixListId", "PrefixListIds", "PrefixListId"),
    ("DestinationPrefixListId", "PrefixListIds", "PrefixListId"),
)
_RULE = {"GroupId", "IpProtocol", "FromPort", "ToPort", "Description", *(p[0] for p in _PEERS)}
_ALL_TRAFFIC = {"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}


def _permission(rule: Properties) -> dict[str, Any]:
    if unknown := sorted(set(rule) - _RULE):
        raise PropertyNotEmulated(f"rule.{', '.join(unknown)}")
    permission: dict[str, Any] = {"IpProtocol": str(rule["IpProtocol"])}
    for port in ("FromPort", "ToPort"):
        if rule.get(port) is not None:
            permission[port] = int(rule[port])
    for name, member, key in _PEERS:
        if rule.get(name):
            permission[member] = [{key: rule[name], **only(rule, "Description")}]
    return permission


def _change(at: Place, verb: str, group: str, rules: list[Properties]) -> Any:
    """Call what authorizes, revokes or describes rules, such as `revoke_security_group_egress`."""
    permissions = [_permission(rule) for rule in rules]
    return getattr(at.client("ec2"), verb)(GroupId=group, IpPermissions=permissions)


class SecurityGroup(Held):
    """A security group with its inline rules; one that states its egress loses AWS's allow-all."""

    def settle(self, at: Place, known: Known, old: Properties, new: Properties) -> None:
        super().settle(at, known, old, new)
        for name, default in (
            ("SecurityGroupIngress", []),
            ("SecurityGroupEgress", [_ALL_TRAFFIC]),
        ):
            verb = f"security_group_{name[13:].lower()}"
            before, after = (where.get(name) or default for where in (old, new))
            if gone := [rule for rule in before if rule not in after]:
                _change(at, f"revoke_{verb}", known[""], gone)
            if added := [rule for rule in after if rule not in before]:
                _change(at, f"authorize_{verb}", known[""], added)


class SecurityGroupRule(ResourceType):
    """One rule of a group; only its description can change in place."""

    @property
    def direction(self) -> str:
        return self.type_name.rpartition("Group")[2].lower()

    def create(self, at: Place, properties: Properties) -> Created:
        verb = f"authorize_security_group_{self.direction}"
        answer = _change(at, verb, properties["GroupId"], [properties])
        identity = answer["SecurityGroupRules"][0]["SecurityGroupRuleId"]
        return Created(identity, {"Id": identity})

    def update(self, at: Place, existing: Existing, properties: Properties) -> Created:
        verb = f"update_security_group_rule_descriptions_{self.direction}"
        _change(at, verb, properties["GroupId"], [properties])
        return Created(existing.physical_id, existing.attributes)

    def delete(self, at: Place, existing: Existing) -> None:
        old, verb = existing.properties, f"revoke_security_group_{self.direction}"
        _change(at, verb, old["GroupId"], [old])


class VpcEndpoint(ResourceType):
    """A VPC endpoint: one operation changes all; see `corrections.networks` for its names."""

    def settle(self, at: Place, known: Known, old: Properties, new: Properties) -> None:
        super().settle(at, known, old, new)
        changes = dict[str, Any]()
        policy = new.get("PolicyDocument")
        if policy != old.get("PolicyDocument"):
            changes |= {"PolicyDocument": as_text(policy)} if policy else {"ResetPolicy": True}
        for name in ("RouteTableIds", "SecurityGroupIds", "SubnetIds"):
            before, after = set(old.get(name) or []), set(new.get(name) or [])
            changes |= {f"Add{name}": sorted(after - before)} if after - before else {}
            changes |= {f"Remove{name}": sorted(before - after)} if before - after else {}
        was_private, private = (as_bool(where["PrivateDnsEnabled"]) for where in (old, new))
        if private != was_private:
            changes["PrivateDnsEnabled"] = private
        if changes:
            at.client("ec2").modify_vpc_endpoint(VpcEndpointId=known[""], **changes)
