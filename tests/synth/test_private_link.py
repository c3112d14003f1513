"""The private link: service, group, policy and its names."""

from __future__ import annotations

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2

from low_latency_endpoint import (
    ClientZones,
    EndpointOptions,
    RuntimePrivateLink,
    WarmUpOptions,
    WarmUpPayload,
    ZoneAlignedNetwork,
)
from low_latency_endpoint.synthesis.stack_limits import synthesised
from tests.refusals import refused

from .conftest import Parts, warnings_after_synth

INVOKE = ["sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"]
PORTS = pytest.mark.parametrize(
    ("given", "ports"), [({}, [443]), ({"bidirectional_streaming": True}, [443, 8443])]
)
# As DescribeVpcEndpoints lists them (AWS: "Access an AWS service using an interface VPC endpoint"),
# behind the ID of the hosted zone, as CloudFormation's DnsEntries has them.
REGIONAL = "vpce-0123-abcd.runtime.sagemaker.us-east-1.vpce.amazonaws.com"
FIPS = "vpce-0123-abcd.runtime-fips.sagemaker.us-east-1.vpce.amazonaws.com"
KINDS = pytest.mark.parametrize(
    ("fips", "regional", "label"), [(False, REGIONAL, "runtime"), (True, FIPS, "runtime-fips")]
)


def link_group(template):
    """Properties of the security group on the interface endpoint."""
    (group,) = template.interface()["SecurityGroupIds"]
    return template["Resources"][group["Fn::GetAtt"][0]]["Properties"]


def test_stands_in_every_client_zones_subnet_with_private_dns(stack, parts, template_of):
    RuntimePrivateLink(stack, "Link", network=parts.network(stack))
    template = template_of(stack)
    endpoint = template.interface()
    assert endpoint["PrivateDnsEnabled"] is True
    assert {subnet["Ref"] for subnet in endpoint["SubnetIds"]} == set(
        template.of_type("AWS::EC2::Subnet")
    )
    assert endpoint["VpcId"] == {"Ref": template.only_id("AWS::EC2::VPC")}


def test_nobody_gets_in_until_allowed(stack, parts, template_of):
    network = parts.network(stack)
    RuntimePrivateLink(stack, "Link", network=network)
    template = template_of(stack)
    assert "SecurityGroupIngress" not in link_group(template)
    assert not template.of_type("AWS::EC2::SecurityGroupIngress")
    model_group = stack.resolve(network.model_security_group.security_group_id)
    assert template.interface()["SecurityGroupIds"] != [model_group]


@PORTS
def test_a_range_is_let_in(stack, parts, template_of, given, ports):
    link = RuntimePrivateLink(stack, "Link", network=parts.network(stack), **given)
    link.allow_from(ec2.Peer.ipv4("10.1.0.0/16"))
    rules = link_group(template_of(stack))["SecurityGroupIngress"]
    assert [
        (rule["CidrIp"], rule["IpProtocol"], rule["FromPort"], rule["ToPort"]) for rule in rules
    ] == [("10.1.0.0/16", "tcp", port, port) for port in ports]


@PORTS
def test_a_security_group_is_let_in_and_out_to_it(stack, parts, template_of, given, ports):
    network = parts.network(stack)
    link = RuntimePrivateLink(stack, "Link", network=network, **given)
    caller = ec2.SecurityGroup(stack, "Caller", vpc=network.vpc, allow_all_outbound=False)
    link.allow_from(caller, "the shop")
    template = template_of(stack)
    group = template.interface()["SecurityGroupIds"][0]
    ingress = template.of_type("AWS::EC2::SecurityGroupIngress").values()
    caller_id = stack.resolve(caller.security_group_id)
    assert sorted((rule["FromPort"], rule["ToPort"]) for rule in ingress) == [
        (port, port) for port in ports
    ]
    for rule in ingress:
        assert rule["GroupId"] == group
        assert rule["SourceSecurityGroupId"] == caller_id
        assert rule["Description"] == "the shop"
    egress = template.of_type("AWS::EC2::SecurityGroupEgress").values()
    assert sorted(rule["FromPort"] for rule in egress) == ports
    assert all(
        rule["GroupId"] == caller_id and rule["DestinationSecurityGroupId"] == group
        for rule in egress
    )


def statements(template, service="sagemaker.runtime"):
    return template.interface(service)["PolicyDocument"]["Statement"]


def arn(stack, name):
    return stack.resolve(
        f"arn:{cdk.Aws.PARTITION}:sagemaker:{cdk.Aws.REGION}:{cdk.Aws.ACCOUNT_ID}:endpoint/{name}"
    )


def test_only_invoking_and_only_by_this_account(stack, parts, template_of):
    RuntimePrivateLink(stack, "Link", network=parts.network(stack))
    now, former = statements(template_of(stack))
    assert now == {
        "Effect": "Allow",
        "Principal": {"AWS": "*"},
        "Action": INVOKE,
        "Resource": [arn(stack, "*")],
        "Condition": {"StringEquals": {"aws:PrincipalAccount": {"Ref": "AWS::AccountId"}}},
    }
    assert {**former, "Resource": now["Resource"]} == now


def test_the_policy_narrows_to_the_endpoints_served(stack, parts, template_of):
    link = RuntimePrivateLink(stack, "Link", network=parts.network(stack))
    for name in ("sentiment", "Ranking", "sentiment"):
        link.serve(name)
    template = template_of(stack)
    statement, former = statements(template)
    # SageMaker's ARNs of endpoints are in lower case, and each endpoint stands there once.
    assert statement["Resource"] == [arn(stack, "sentiment"), arn(stack, "ranking")]
    assert statement["Action"] == former["Action"] == INVOKE
    # What was served before the last change is what the custom resource says.
    (remembers,) = (
        name for name in template.of_type("Custom::FormerNames") if name.startswith("Link")
    )
    assert former["Resource"] == {"Fn::Split": [",", {"Fn::GetAtt": [remembers, "Served"]}]}
    told = template.of_type("Custom::FormerNames")[remembers]
    assert told["Served"] == statement["Resource"]


def given(stack):
    return cdk.CfnParameter(stack, "Given").value_as_string


@pytest.mark.parametrize(
    ("name", "named"),
    [
        (lambda token: token, {"Ref": "Given"}),
        (lambda token: f"Team-{token}-V2", ("team-", {"Ref": "Given"}, "-v2")),
    ],
)
def test_a_token_stands_in_the_policy_as_it_is(stack, parts, template_of, name, named):
    link = RuntimePrivateLink(stack, "Link", network=parts.network(stack))
    link.serve(name(given(stack)))
    assert warnings_after_synth(link, "in lower case: if the name has upper case")
    statement, _ = statements(template_of(stack))
    (resource,) = statement["Resource"]
    pieces = resource["Fn::Join"][1]
    beginning, rest = pieces[-2], pieces[-1]
    if isinstance(named, tuple):
        beginning, rest = pieces[-3], (pieces[-3].rpartition("/")[2], *pieces[-2:])
    assert ":endpoint/" in beginning
    assert rest == named


def test_a_token_as_the_patterns_endpoint_name(stack, parts, template_of):
    # As it is in the link's policy, and in that of the warm-up's function.
    made = parts.pattern(
        stack,
        endpoint=EndpointOptions(endpoint_name=given(stack)),
        warm_up=WarmUpOptions(payload=WarmUpPayload(data={"inputs": "x"})),
    )
    for part in (made.private_link, made.node.find_child("WarmUp")):
        assert warnings_after_synth(part, "lower case")
    template = template_of(stack)
    assert statements(template)[0]["Resource"][0]["Fn::Join"][1][-1] == {"Ref": "Given"}
    assert "token[" not in json.dumps(template).lower()


@pytest.mark.parametrize("served", [151, 152])
def test_a_policy_has_room_for_so_many(stack, parts, served):
    link = RuntimePrivateLink(stack, "Link", network=parts.network(stack))
    for number in range(served):
        link.serve(f"endpoint-number-{number:040d}")
    if served == 151:
        synthesised(cdk.App.of(stack))
        return
    with refused("LLE217", allowed="0 to 20480 characters") as error:
        synthesised(cdk.App.of(stack))
    # 56 characters of name, 50 before them, quotes and comma each, and 3,500 for those that were
    # served before: at most 20,480 in all.
    assert error.value.where == "Serving/Link/Endpoint"
    assert 20_480 < int(error.value.got.split()[0].replace(",", "")) < 20_480 + 110


def test_the_policy_can_be_left_to_others(stack, parts, template_of):
    link = RuntimePrivateLink(stack, "Link", network=parts.network(stack), endpoint_policy=False)
    link.serve("sentiment")
    assert "PolicyDocument" not in template_of(stack).interface()


def test_fips_has_its_own_service_and_no_policy(stack, parts, template_of):
    link = RuntimePrivateLink(stack, "Link", network=parts.network(stack), fips=True)
    link.serve("sentiment")
    endpoint = template_of(stack).interface("sagemaker.runtime-fips")
    assert endpoint["PrivateDnsEnabled"] is True
    assert "PolicyDocument" not in endpoint


def test_the_sagemaker_api_beside_it(stack, parts, template_of):
    RuntimePrivateLink(stack, "Link", network=parts.network(stack), sagemaker_api=True)
    template = template_of(stack)
    api, invoke = template.interface("sagemaker.api"), template.interface()
    assert api["PrivateDnsEnabled"] is True
    assert api["SubnetIds"] == invoke["SubnetIds"]
    assert api["SecurityGroupIds"] == invoke["SecurityGroupIds"]


def no_second(scope, id, network, **given):
    with refused("LLE211", "conflicting DNS domain") as raised:
        RuntimePrivateLink(scope, id, network=network, **given)
    return raised.value


def test_a_second_one_in_the_vpc_is_refused(stack, parts):
    network = parts.network(stack)
    RuntimePrivateLink(stack, "Link", network=network)
    error = no_second(stack, "Second", network)
    assert "Serving/Link" in error.got
    assert error.where == "Serving/Second"


def test_also_when_nothing_else_holds_the_app():
    stack = cdk.Stack(cdk.App(), "Serving")
    network = ZoneAlignedNetwork(
        stack, "Network", client_zones=ClientZones.of_ids("use1-az1", "use1-az2")
    )
    RuntimePrivateLink(stack, "Link", network=network)
    no_second(stack, "Second", network)


def test_also_when_the_vpc_is_imported_twice(stack, parts):
    RuntimePrivateLink(stack, "Link", network=parts.network_in(stack))
    no_second(stack, "Second", parts.network_in(stack, parts.vpc(stack, "Again"), "AgainNetwork"))


def test_also_in_another_stack_of_the_app(stack, new_stack, parts):
    network = parts.network(stack)
    RuntimePrivateLink(stack, "Link", network=network)
    no_second(new_stack(app=cdk.App.of(stack), name="Other"), "Second", network)


def test_also_when_another_stack_has_no_environment(stack, new_stack, parts):
    RuntimePrivateLink(stack, "Link", network=parts.network_in(stack))
    other = new_stack(app=cdk.App.of(stack), name="Other", region=None)
    no_second(other, "Second", parts.network_in(other))


def test_also_the_apis(stack, parts):
    network = parts.network(stack)
    RuntimePrivateLink(stack, "Link", network=network, sagemaker_api=True)
    error = no_second(stack, "Second", network, fips=True, sagemaker_api=True)
    assert "Serving/Link/Api" in error.got
    assert "one link only" in error.fix


def add_runtime(vpc, **given):
    return vpc.add_interface_endpoint(
        "Runtime", service=ec2.InterfaceVpcEndpointAwsService.SAGEMAKER_RUNTIME, open=False, **given
    )


@pytest.mark.parametrize(
    "vpc",
    [
        lambda stack, parts: ec2.Vpc(stack, "Own", availability_zones=["us-east-1a", "us-east-1b"]),
        lambda stack, parts: parts.vpc(stack),
    ],
)
def test_also_one_that_the_vpc_has_by_cdks_own_method(stack, parts, vpc):
    made = vpc(stack, parts)
    add_runtime(made)
    error = no_second(stack, "Link", parts.network_in(stack, made))
    assert f"{made.node.path}/Runtime" in error.got


def test_also_where_the_region_is_open(new_stack, parts):
    stack = new_stack(region=None)
    vpc = parts.vpc(stack)
    add_runtime(vpc)
    no_second(stack, "Link", parts.network_in(stack, vpc))


def test_also_one_that_comes_later(stack, parts):
    vpc = parts.vpc(stack)
    RuntimePrivateLink(stack, "Link", network=parts.network_in(stack, vpc))
    add_runtime(vpc)
    with pytest.raises(RuntimeError, match=r"(?s)Serving/Link.*LLE211.*conflicting DNS domain"):
        cdk.App.of(stack).synth()


def test_one_without_private_dns_is_no_second_one(stack, parts):
    vpc = parts.vpc(stack)
    add_runtime(vpc, private_dns_enabled=False)
    vpc.add_interface_endpoint(
        "Api", service=ec2.InterfaceVpcEndpointAwsService.SAGEMAKER_API, open=False
    )
    RuntimePrivateLink(stack, "Link", network=parts.network_in(stack, vpc))
    cdk.App.of(stack).synth()


def test_another_vpc_and_another_service_are_no_second_one(stack, new_stack, parts):
    network = parts.network(stack)
    RuntimePrivateLink(stack, "Link", network=network)
    RuntimePrivateLink(stack, "Fips", network=network, fips=True)
    for place, vpc_id in enumerate(("vpc-0123456789abcdef0", "vpc-0123456789abcdef1")):
        vpc = parts.vpc(stack, f"Vpc{place}", vpc_id=vpc_id)
        parts.link(stack, parts.network_in(stack, vpc, f"Network{place}"), id=f"Link{place}")
    # The same logical ID in another stack is another VPC.
    other = new_stack(app=cdk.App.of(stack), name="Other")
    RuntimePrivateLink(other, "Link", network=parts.network(other))
    # And another app knows nothing of this one.
    fresh = new_stack()
    RuntimePrivateLink(fresh, "Link", network=parts.network(fresh))


def test_lookups_that_are_pending_are_no_second_one(stack, parts):
    # CDK stands in the same ID for every VPC on the first run; the second run tells them apart.
    for place in (1, 2):
        vpc = ec2.Vpc.from_lookup(stack, f"Vpc{place}", vpc_name=f"vpc-{place}")
        parts.link(stack, parts.network_in(stack, vpc, f"Network{place}"), id=f"Link{place}")


@pytest.mark.parametrize("off", ["enable_dns_support", "enable_dns_hostnames"])
def test_private_dns_needs_the_vpcs_dns(stack, parts, off):
    vpc = ec2.Vpc(
        stack,
        "Vpc",
        availability_zones=["us-east-1a", "us-east-1b"],
        **({"enable_dns_hostnames": False} | {off: False}),
    )
    with refused("LLE212"):
        RuntimePrivateLink(stack, "Link", network=parts.network_in(stack, vpc))


def adopted(stack, *, network=None, endpoint=None, groups=None, **given):
    """A link of an endpoint that is made elsewhere, by default not in the app."""
    network = network or Parts().network_in(stack)
    endpoint = endpoint or ec2.InterfaceVpcEndpoint.from_interface_vpc_endpoint_attributes(
        stack,
        "Existing",
        vpc_endpoint_id="vpce-0123456789abcdef0",
        port=443,
        security_groups=groups,
    )
    return RuntimePrivateLink.from_interface_endpoint(
        stack, "Link", network=network, interface_endpoint=endpoint, **given
    )


def made_in(stack, network, service="sagemaker.runtime", **given):
    """An interface endpoint in the network's VPC by CDK's own construct."""
    return ec2.InterfaceVpcEndpoint(
        stack,
        "Made",
        vpc=network.vpc,
        subnets=network.subnet_selection,
        service=ec2.InterfaceVpcEndpointAwsService(service),
        **given,
    )


def test_an_existing_one_is_adopted_and_left_as_it_is(stack, template_of):
    group = ec2.SecurityGroup.from_security_group_id(stack, "LinkGroup", "sg-0123456789abcdef0")
    link = adopted(stack, groups=[group], bidirectional_streaming=True)
    link.allow_from(ec2.Peer.ipv4("10.1.0.0/16"))
    link.serve("sentiment")
    template = template_of(stack)
    assert not template.of_type("AWS::EC2::VPCEndpoint")
    rules = template.of_type("AWS::EC2::SecurityGroupIngress").values()
    assert sorted((rule["GroupId"], rule["CidrIp"], rule["FromPort"]) for rule in rules) == [
        ("sg-0123456789abcdef0", "10.1.0.0/16", port) for port in (443, 8443)
    ]
    assert link.zonal_dns_names == {}
    assert link.interface_endpoint.vpc_endpoint_id == "vpce-0123456789abcdef0"


def test_one_made_elsewhere_in_the_app_is_adopted(stack, parts, template_of):
    network = parts.network(stack)
    link = adopted(stack, network=network, endpoint=made_in(stack, network, open=False))
    link.allow_from(ec2.Peer.ipv4("10.1.0.0/16"))
    (rule,) = link_group(template_of(stack))["SecurityGroupIngress"]
    assert (rule["CidrIp"], rule["FromPort"]) == ("10.1.0.0/16", 443)


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


@KINDS
def test_zonal_names_are_those_of_aws(stack, parts, template_of, fips, regional, label):
    link = RuntimePrivateLink(stack, "Link", network=parts.network(stack), fips=fips)
    names = stack.resolve(link.zonal_dns_names)
    regional_name = stack.resolve(link.regional_dns_name)
    attributes = deployed(stack, template_of(stack), regional)
    assert evaluate(regional_name, attributes) == regional
    tail = f"{label}.sagemaker.us-east-1.vpce.amazonaws.com"
    assert {zone: evaluate(name, attributes) for zone, name in names.items()} == {
        "use1-az1": f"vpce-0123-abcd-us-east-1c.{tail}",
        "use1-az2": f"vpce-0123-abcd-us-east-1a.{tail}",
    }


@pytest.mark.parametrize(("regional", "service"), [(REGIONAL, "runtime"), (FIPS, "runtime-fips")])
def test_zonal_names_of_an_adopted_endpoint(stack, regional, service):
    link = adopted(stack, regional_dns_name=regional)
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
    made = made_in(stack, network, service)
    link = adopted(stack, network=network, endpoint=made, hosted_zone_vpcs=[other_vpc(stack)])
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


@KINDS
def test_callers_in_other_vpcs_resolve_the_runtimes_name(
    stack, parts, template_of, fips, regional, label
):
    parts.link(
        stack,
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
        parts.link(stack, network, hosted_zone_vpcs=[other_vpc(stack), network.vpc])


def test_lookups_that_are_pending_are_not_the_own_vpc(stack):
    own = ec2.Vpc.from_lookup(stack, "Own", vpc_name="own")
    network = Parts().network_in(stack, own)
    callers = ec2.Vpc.from_lookup(stack, "Callers", vpc_name="callers")
    RuntimePrivateLink(stack, "Link", network=network, hosted_zone_vpcs=[callers])


def test_an_adopted_endpoint_takes_a_hosted_zone_too(stack, template_of):
    zone = {"regional_dns_name": REGIONAL, "hosted_zone_id": "Z7HUB22UULQXV"}
    adopted(stack, hosted_zone_vpcs=[other_vpc(stack)], **zone)
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
        adopted(stack, hosted_zone_vpcs=[other_vpc(stack)], **given)
