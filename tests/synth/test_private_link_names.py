"""DNS names: one for each zone, and the runtime's name for callers in other VPCs."""

from __future__ import annotations

from typing import Any

import pytest
from aws_cdk import aws_ec2 as ec2

from low_latency_endpoint import ClientZones, RuntimePrivateLink, ZoneAlignedNetwork
from tests.refusals import refused

from .conftest import Parts

# As DescribeVpcEndpoints lists them (AWS: "Access an AWS service using an interface VPC endpoint"),
# behind the ID of the hosted zone, as CloudFormation's DnsEntries has them.
REGIONAL = "vpce-0123-abcd.runtime.sagemaker.us-east-1.vpce.amazonaws.com"
FIPS = "vpce-0123-abcd.runtime-fips.sagemaker.us-east-1.vpce.amazonaws.com"


def evaluate(value: Any, attributes: dict[tuple[str, str], Any]) -> Any:
    """What CloudFormation makes of the functions that a DNS name needs."""
    if isinstance(value, list):
        return [evaluate(item, attributes) for item in value]
    if not isinstance(value, dict):
        return value
    ((function, argument),) = value.items()
    if function == "Fn::GetAtt":
        return attributes[tuple(argument)]
    parts = evaluate(argument, attributes)
    if function == "Fn::Join":
        return parts[0].join(parts[1])
    if function == "Fn::Select":
        return parts[1][int(parts[0])]
    if function == "Fn::Split":
        return parts[1].split(parts[0])
    raise AssertionError(f"{function} is not expected in a DNS name")


def deployed(stack, template, regional):
    """Attributes after a deployment into an account whose use1-az1 is us-east-1c."""
    zone_names = {"use1-az1": "us-east-1c", "use1-az2": "us-east-1a"}
    attributes: dict[tuple[str, str], Any] = {
        (logical_id, "AvailabilityZone"): zone_names[subnet["AvailabilityZoneId"]]
        for logical_id, subnet in template.of_type("AWS::EC2::Subnet").items()
    }
    for logical_id in template.of_type("AWS::EC2::VPCEndpoint"):
        attributes[logical_id, "DnsEntries"] = [
            f"Z7HUB22UULQXV:{regional}",
            "Z7HUB22UULQXV:" + regional.replace("abcd.", "abcd-us-east-1c.", 1),
            "Z2NK98O4T3SQ1V:runtime.sagemaker.us-east-1.amazonaws.com",
        ]
    return attributes


@pytest.mark.parametrize(
    ("fips", "regional", "service"), [(False, REGIONAL, "runtime"), (True, FIPS, "runtime-fips")]
)
def test_zonal_names_are_those_of_aws(stack, parts, template_of, fips, regional, service):
    link = RuntimePrivateLink(stack, "Link", network=parts.network(stack), fips=fips)
    names = stack.resolve(link.zonal_dns_names)
    regional_name = stack.resolve(link.regional_dns_name)
    attributes = deployed(stack, template_of(stack), regional)
    assert evaluate(regional_name, attributes) == regional
    tail = f"{service}.sagemaker.us-east-1.vpce.amazonaws.com"
    assert {zone: evaluate(name, attributes) for zone, name in names.items()} == {
        "use1-az1": f"vpce-0123-abcd-us-east-1c.{tail}",
        "use1-az2": f"vpce-0123-abcd-us-east-1a.{tail}",
    }


def existing(stack):
    return ec2.InterfaceVpcEndpoint.from_interface_vpc_endpoint_attributes(
        stack, "Existing", vpc_endpoint_id="vpce-0123456789abcdef0", port=443
    )


@pytest.mark.parametrize(("regional", "service"), [(REGIONAL, "runtime"), (FIPS, "runtime-fips")])
def test_zonal_names_of_an_adopted_endpoint(stack, regional, service):
    link = RuntimePrivateLink.from_interface_endpoint(
        stack,
        "Link",
        network=Parts().network_in(stack),
        interface_endpoint=existing(stack),
        regional_dns_name=regional,
    )
    tail = f"{service}.sagemaker.us-east-1.vpce.amazonaws.com"
    assert stack.resolve(link.zonal_dns_names) == {
        "us-east-1a": f"vpce-0123-abcd-us-east-1a.{tail}",
        "us-east-1b": f"vpce-0123-abcd-us-east-1b.{tail}",
    }


@pytest.mark.parametrize(
    ("service", "regional", "label"),
    [("sagemaker.runtime", REGIONAL, "runtime"), ("sagemaker.runtime-fips", FIPS, "runtime-fips")],
)
def test_one_made_in_the_app_tells_its_names_when_adopted(
    stack, parts, template_of, service, regional, label
):
    network = parts.network(stack)
    made = ec2.InterfaceVpcEndpoint(
        stack,
        "Made",
        vpc=network.vpc,
        subnets=network.subnet_selection,
        service=ec2.InterfaceVpcEndpointAwsService(service),
    )
    link = RuntimePrivateLink.from_interface_endpoint(
        stack, "Link", network=network, interface_endpoint=made, hosted_zone_vpcs=[other_vpc(stack)]
    )
    names = stack.resolve(link.zonal_dns_names)
    template = template_of(stack)
    attributes = deployed(stack, template, regional)
    tail = f"{label}.sagemaker.us-east-1.vpce.amazonaws.com"
    assert {zone: evaluate(name, attributes) for zone, name in names.items()} == {
        "use1-az1": f"vpce-0123-abcd-us-east-1c.{tail}",
        "use1-az2": f"vpce-0123-abcd-us-east-1a.{tail}",
    }
    assert link.url.startswith(f"https://{label}.sagemaker.us-east-1.")
    alias = evaluate(template.only("AWS::Route53::RecordSet")["AliasTarget"]["DNSName"], attributes)
    assert alias == regional


def by_vpc_id(stack, **given):
    return RuntimePrivateLink(stack, "Link", network=Parts().network_in(stack), **given)


def adopted(stack, **given):
    return RuntimePrivateLink.from_interface_endpoint(
        stack,
        "Link",
        network=Parts().network_in(stack),
        interface_endpoint=existing(stack),
        **given,
    )


@pytest.mark.parametrize(
    ("link", "label"),
    [
        (lambda stack: by_vpc_id(stack), "runtime"),
        (lambda stack: by_vpc_id(stack, fips=True), "runtime-fips"),
        (lambda stack: adopted(stack), "runtime"),
        (lambda stack: adopted(stack, fips=True), "runtime-fips"),
        (lambda stack: adopted(stack, regional_dns_name=REGIONAL), "runtime"),
        (lambda stack: adopted(stack, regional_dns_name=FIPS), "runtime-fips"),
    ],
)
def test_the_url_is_that_which_private_dns_answers(stack, link, label):
    made = link(stack)
    assert made.fips is (label == "runtime-fips")
    # The suffix is amazonaws.com, and amazonaws.com.cn in China.
    name = {"Fn::Join": ["", [f"{label}.sagemaker.us-east-1.", {"Ref": "AWS::URLSuffix"}]]}
    assert stack.resolve(made.private_dns_name) == name
    name["Fn::Join"][1][0] = f"https://{label}.sagemaker.us-east-1."
    assert stack.resolve(made.url) == name


@pytest.mark.parametrize(("fips", "label"), [(False, "runtime"), (True, "runtime-fips")])
def test_callers_are_told_the_links_url(stack, parts, template_of, fips, label):
    network = parts.network(stack)
    link = RuntimePrivateLink(stack, "Link", network=network, fips=fips)
    parts.pattern(stack, network=network, private_link=link).output_settings_for_callers()
    (output,) = [
        value for name, value in template_of(stack)["Outputs"].items() if "RegionalUrl" in name
    ]
    assert output["Value"]["Fn::Join"][1][0] == f"https://{label}.sagemaker.us-east-1."


def other_vpc(stack, id="Callers", vpc_id="vpc-0fedcba9876543210", region="eu-west-1"):
    return ec2.Vpc.from_vpc_attributes(
        stack, id, vpc_id=vpc_id, region=region, availability_zones=["eu-west-1a"]
    )


@pytest.mark.parametrize(
    ("fips", "regional", "label"), [(False, REGIONAL, "runtime"), (True, FIPS, "runtime-fips")]
)
def test_callers_in_other_vpcs_resolve_the_runtimes_name(
    stack, parts, template_of, fips, regional, label
):
    RuntimePrivateLink(
        stack,
        "Link",
        network=parts.network(stack),
        fips=fips,
        hosted_zone_vpcs=[
            other_vpc(stack),
            other_vpc(stack, "More", "vpc-0123456789abcdef1", "us-east-1"),
        ],
    )
    template = template_of(stack)
    name = {"Fn::Join": ["", [f"{label}.sagemaker.us-east-1.", {"Ref": "AWS::URLSuffix"}]]}
    zone = template.only("AWS::Route53::HostedZone")
    assert zone["Name"] == name
    assert zone["VPCs"] == [
        {"VPCId": "vpc-0fedcba9876543210", "VPCRegion": "eu-west-1"},
        {"VPCId": "vpc-0123456789abcdef1", "VPCRegion": "us-east-1"},
    ]
    record = template.only("AWS::Route53::RecordSet")
    assert record["Name"] == name
    assert record["Type"] == "A"
    assert record["HostedZoneId"] == {"Ref": template.only_id("AWS::Route53::HostedZone")}
    alias = {
        key: evaluate(value, deployed(stack, template, regional))
        for key, value in record["AliasTarget"].items()
    }
    assert alias["DNSName"] == regional
    assert alias["HostedZoneId"] == "Z7HUB22UULQXV"


def test_the_endpoints_own_vpc_is_refused(stack, parts):
    network = parts.network(stack)
    with refused("LLE214"):
        RuntimePrivateLink(
            stack, "Link", network=network, hosted_zone_vpcs=[other_vpc(stack), network.vpc]
        )


def test_lookups_that_are_pending_are_not_the_own_vpc(stack):
    own = ec2.Vpc.from_lookup(stack, "Own", vpc_name="own")
    network = ZoneAlignedNetwork.in_vpc(
        stack, "Network", vpc=own, client_zones=ClientZones.of_names("us-east-1a", "us-east-1b")
    )
    callers = ec2.Vpc.from_lookup(stack, "Callers", vpc_name="callers")
    RuntimePrivateLink(stack, "Link", network=network, hosted_zone_vpcs=[callers])


def test_an_adopted_endpoint_takes_a_hosted_zone_too(stack, template_of):
    RuntimePrivateLink.from_interface_endpoint(
        stack,
        "Link",
        network=Parts().network_in(stack),
        interface_endpoint=existing(stack),
        regional_dns_name=REGIONAL,
        hosted_zone_id="Z7HUB22UULQXV",
        hosted_zone_vpcs=[other_vpc(stack)],
    )
    template = template_of(stack)
    assert template.only("AWS::Route53::RecordSet")["AliasTarget"] == {
        "DNSName": REGIONAL,
        "HostedZoneId": "Z7HUB22UULQXV",
        "EvaluateTargetHealth": True,
    }


@pytest.mark.parametrize(
    "given", [{}, {"regional_dns_name": REGIONAL}, {"hosted_zone_id": "Z7HUB22UULQXV"}]
)
def test_an_adopted_endpoint_needs_both_names_for_it(stack, given):
    with refused("LLE215"):
        RuntimePrivateLink.from_interface_endpoint(
            stack,
            "Link",
            network=Parts().network_in(stack),
            interface_endpoint=existing(stack),
            hosted_zone_vpcs=[other_vpc(stack)],
            **given,
        )
