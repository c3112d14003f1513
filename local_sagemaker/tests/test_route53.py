"""AWS::Route53::*."""

from __future__ import annotations

from typing import Any

from stacks_under_test import resource_of


def test_private_zone_with_an_alias_record(aws, stack, vpc):
    route53 = aws.client("route53")
    others = {
        "Vpc": vpc,
        "Other": {**vpc, "Properties": {**vpc["Properties"], "CidrBlock": "10.9.0.0/16"}},
    }

    def of(name: str) -> dict[str, Any]:
        return {"VPCId": {"Ref": name}, "VPCRegion": {"Ref": "AWS::Region"}}

    record = resource_of(
        "AWS::Route53::RecordSet",
        HostedZoneId={"Ref": "It"},
        Name="runtime.test.",
        Type="A",
        AliasTarget={"HostedZoneId": "Z1234567890", "DNSName": "one.vpce.amazonaws.com"},
    )

    def target(zone: str) -> str:
        found = route53.list_resource_record_sets(HostedZoneId=zone)["ResourceRecordSets"]
        (alias,) = [r for r in found if "AliasTarget" in r]
        return alias["AliasTarget"]["DNSName"].rstrip(".")

    properties = {"Name": "test.", "VPCs": [of("Vpc")]}
    made = stack.deploy("AWS::Route53::HostedZone", properties, ("Id",), Record=record, **others)
    found = route53.get_hosted_zone(Id=made.ref)
    ids = made.stack.resources
    assert made.attributes["Id"] == made.ref
    assert found["HostedZone"]["Config"]["PrivateZone"] is True
    assert [v["VPCId"] for v in found["VPCs"]] == [ids["Vpc"]]
    assert ids["Record"] == "runtime.test."
    assert target(made.ref) == "one.vpce.amazonaws.com"

    record["Properties"]["AliasTarget"]["DNSName"] = "two.vpce.amazonaws.com"
    properties["VPCs"] = [of("Other")]
    properties["HostedZoneConfig"] = {"Comment": "changed"}
    changed = stack.deploy("AWS::Route53::HostedZone", properties, Record=record, **others)
    assert changed.ref == made.ref
    found = route53.get_hosted_zone(Id=made.ref)
    assert [v["VPCId"] for v in found["VPCs"]] == [ids["Other"]]
    assert found["HostedZone"]["Config"]["Comment"] == "changed"
    assert target(made.ref) == "two.vpce.amazonaws.com"
    stack.delete()
    assert route53.list_hosted_zones()["HostedZones"] == []


def test_plain_record(aws, stack, vpc):
    zone = resource_of(
        "AWS::Route53::HostedZone",
        Name="plain.test.",
        VPCs=[{"VPCId": {"Ref": "Vpc"}, "VPCRegion": "us-east-1"}],
    )
    properties = {
        "HostedZoneId": {"Ref": "Zone"},
        "Name": "a.plain.test.",
        "Type": "CNAME",
        "TTL": "60",
        "ResourceRecords": ["b.test"],
    }
    made = stack.deploy("AWS::Route53::RecordSet", properties, Zone=zone, Vpc=vpc)
    found = aws.client("route53").list_resource_record_sets(
        HostedZoneId=made.stack.resources["Zone"]
    )["ResourceRecordSets"]
    (record,) = [r for r in found if r["Type"] == "CNAME"]
    assert (record["TTL"], record["ResourceRecords"]) == (60, [{"Value": "b.test"}])
