"""AWS::Route53::*."""

from __future__ import annotations

import uuid
from typing import Any

from .properties import as_bool, call, only, without
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated


@emulated
class HostedZone(ResourceType):
    """A hosted zone, private when it names VPCs."""

    type_name = "AWS::Route53::HostedZone"
    deletes_by = ("route53", "delete_hosted_zone", "Id")

    def create(self, at: Place, properties: Properties) -> Created:
        route53 = at.client("route53")
        vpcs = properties.get("VPCs") or []
        arguments: dict[str, Any] = {
            "Name": properties["Name"],
            "CallerReference": str(uuid.uuid4()),
            "HostedZoneConfig": {
                **(properties.get("HostedZoneConfig") or {}),
                "PrivateZone": bool(vpcs),
            },
        }
        if vpcs:
            arguments["VPC"] = vpcs[0]
        answer = call(route53, "create_hosted_zone", arguments)
        zone = answer["HostedZone"]["Id"].rpartition("/")[2]
        at.begin(zone)
        for vpc in vpcs[1:]:
            route53.associate_vpc_with_hosted_zone(HostedZoneId=zone, VPC=vpc)
        self._tag(at, zone, {}, properties)
        servers = answer.get("DelegationSet", {}).get("NameServers", [])
        return Created(zone, {"Id": zone, "NameServers": servers})

    @staticmethod
    def _tag(at: Place, zone: str, old: Properties, new: Properties) -> None:
        before = {tag["Key"]: tag["Value"] for tag in old.get("HostedZoneTags") or []}
        after = {tag["Key"]: tag["Value"] for tag in new.get("HostedZoneTags") or []}
        arguments: dict[str, Any] = {}
        if after:
            arguments["AddTags"] = [{"Key": k, "Value": v} for k, v in after.items()]
        if set(before) - set(after):
            arguments["RemoveTagKeys"] = sorted(set(before) - set(after))
        if arguments:
            at.client("route53").change_tags_for_resource(
                ResourceType="hostedzone", ResourceId=zone, **arguments
            )

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        route53, zone, old = at.client("route53"), existing.physical_id, existing.properties
        comment = (properties.get("HostedZoneConfig") or {}).get("Comment", "")
        route53.update_hosted_zone_comment(Id=zone, Comment=comment)
        before, after = old.get("VPCs") or [], properties.get("VPCs") or []
        for vpc in after:
            if vpc not in before:
                route53.associate_vpc_with_hosted_zone(HostedZoneId=zone, VPC=vpc)
        for vpc in before:
            if vpc not in after:
                route53.disassociate_vpc_from_hosted_zone(HostedZoneId=zone, VPC=vpc)
        self._tag(at, zone, old, properties)


@emulated
class RecordSet(ResourceType):
    """A record, plain or alias."""

    type_name = "AWS::Route53::RecordSet"
    # What makes a record another one; the schema of this old type leaves them out.
    also_replaces = frozenset({"Name", "SetIdentifier", "Type"})

    def create(self, at: Place, properties: Properties) -> Created:
        self._change(at, "CREATE", properties)
        return Created(properties["Name"], {})

    @staticmethod
    def _change(at: Place, action: str, properties: Properties) -> None:
        record = without(properties, "HostedZoneId", "Comment")
        if "ResourceRecords" in record:
            record["ResourceRecords"] = [{"Value": value} for value in record["ResourceRecords"]]
        if "AliasTarget" in record:
            target = record["AliasTarget"]
            health = as_bool(target.get("EvaluateTargetHealth", False))
            record["AliasTarget"] = {**target, "EvaluateTargetHealth": health}
        batch = {
            **only(properties, "Comment"),
            "Changes": [{"Action": action, "ResourceRecordSet": record}],
        }
        call(
            at.client("route53"),
            "change_resource_record_sets",
            {"HostedZoneId": properties["HostedZoneId"], "ChangeBatch": batch},
        )

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        self._change(at, "UPSERT", properties)

    def delete(self, at: Place, existing: Existing) -> None:
        self._change(at, "DELETE", existing.properties)
