"""A network of its own: subnets by zone, DNS, the closed default group, the flow log; or in a VPC that exists."""

from __future__ import annotations

import ipaddress
import sys
from itertools import permutations
from types import SimpleNamespace

import pytest
from aws_cdk import Fn
from aws_cdk import aws_ec2 as ec2

from low_latency_endpoint import ClientZones, RuntimePrivateLink, ZoneAlignedNetwork
from tests.refusals import refused

from .conftest import Parts
from .inline_functions import loaded
from .looked_up_vpc import SECOND_RUN, looked_up

ZONE_IDS = ("use1-az1", "use1-az2", "use1-az4")


def subnets_by_zone(template):
    return {
        properties.get("AvailabilityZoneId") or properties["AvailabilityZone"]: (
            logical_id,
            properties,
        )
        for logical_id, properties in template.of_type("AWS::EC2::Subnet").items()
    }


def test_one_subnet_in_each_client_zone_by_id(stack, parts, template_of):
    parts.network(stack, client_zones=ClientZones.of_ids(*ZONE_IDS))
    subnets = template_of(stack).of_type("AWS::EC2::Subnet").values()
    assert sorted(subnet["AvailabilityZoneId"] for subnet in subnets) == sorted(ZONE_IDS)
    assert not any("AvailabilityZone" in subnet for subnet in subnets)


def test_one_subnet_in_each_client_zone_by_name(stack, parts, template_of):
    parts.network(stack, client_zones=ClientZones.of_names("us-east-1a", "us-east-1c"))
    subnets = template_of(stack).of_type("AWS::EC2::Subnet").values()
    assert sorted(subnet["AvailabilityZone"] for subnet in subnets) == ["us-east-1a", "us-east-1c"]
    assert not any("AvailabilityZoneId" in subnet for subnet in subnets)


def test_nothing_leads_to_the_internet(smallest):
    template = smallest("network")
    assert not template.types & {
        "AWS::EC2::EIP",
        "AWS::EC2::EgressOnlyInternetGateway",
        "AWS::EC2::InternetGateway",
        "AWS::EC2::NatGateway",
        "AWS::EC2::Route",
        "AWS::EC2::VPCGatewayAttachment",
        "AWS::EC2::TransitGatewayAttachment",
        "AWS::EC2::VPNGateway",
    }
    for subnet in template.of_type("AWS::EC2::Subnet").values():
        assert subnet["MapPublicIpOnLaunch"] is False


def test_private_dns_has_what_it_needs(stack, parts, template_of):
    network = parts.network(stack)
    vpc = template_of(stack).only("AWS::EC2::VPC")
    assert (vpc["EnableDnsSupport"], vpc["EnableDnsHostnames"]) == (True, True)
    assert network.dns_ready


def test_model_downloads_reach_s3_from_every_subnet(smallest):
    template = smallest("network")
    routes = {"Ref": template.only_id("AWS::EC2::RouteTable")}
    vpc = {"Ref": template.only_id("AWS::EC2::VPC")}
    gateway = template.only("AWS::EC2::VPCEndpoint")
    assert gateway["VpcEndpointType"] == "Gateway"
    assert gateway["ServiceName"] == {
        "Fn::Join": ["", ["com.amazonaws.", {"Ref": "AWS::Region"}, ".s3"]]
    }
    assert gateway["RouteTableIds"] == [routes]
    assert gateway["VpcId"] == template.only("AWS::EC2::RouteTable")["VpcId"] == vpc
    associations = template.of_type("AWS::EC2::SubnetRouteTableAssociation").values()
    assert all(association["RouteTableId"] == routes for association in associations)
    assert {association["SubnetId"]["Ref"] for association in associations} == set(
        template.of_type("AWS::EC2::Subnet")
    )


def test_models_let_nothing_in_and_only_https_out(stack, parts, template_of):
    network = parts.network(stack)
    template = template_of(stack)
    group = template.only("AWS::EC2::SecurityGroup")
    assert "SecurityGroupIngress" not in group
    assert not template.of_type("AWS::EC2::SecurityGroupIngress")
    (egress,) = group["SecurityGroupEgress"]
    assert (egress["IpProtocol"], egress["FromPort"], egress["ToPort"]) == ("tcp", 443, 443)
    assert stack.resolve(network.model_security_group.security_group_id) == {
        "Fn::GetAtt": [template.only_id("AWS::EC2::SecurityGroup"), "GroupId"]
    }


@pytest.mark.parametrize("order", list(permutations(ZONE_IDS)))
def test_the_order_of_the_zones_moves_nothing(new_stack, parts, template_of, order):
    stacks = [new_stack(), new_stack()]
    for stack, zones in zip(stacks, (ZONE_IDS, order), strict=True):
        parts.network(stack, client_zones=ClientZones.of_ids(*zones))
    assert template_of(stacks[0]) == template_of(stacks[1])


@pytest.mark.parametrize(
    "zones",
    [ZONE_IDS[:2], ZONE_IDS[1:], (*ZONE_IDS, "use1-az6"), ("use1-az5", *ZONE_IDS, "use1-az3")],
)
def test_another_set_of_zones_leaves_the_kept_ones_alone(new_stack, parts, template_of, zones):
    stacks = [new_stack(), new_stack()]
    for stack, chosen in zip(stacks, (ZONE_IDS, zones), strict=True):
        parts.network(stack, client_zones=ClientZones.of_ids(*chosen))
    before, after = (template_of(stack) for stack in stacks)
    kept = set(ZONE_IDS) & set(zones)
    assert kept
    for zone in kept:
        assert subnets_by_zone(before)[zone] == subnets_by_zone(after)[zone]
    # CloudFormation replaces what changes its logical ID or its block: nothing else may move.
    for logical_id, resource in before["Resources"].items():
        if resource["Type"] not in ("AWS::EC2::Subnet", "AWS::EC2::SubnetRouteTableAssociation"):
            assert after["Resources"][logical_id] == resource


def test_subnets_stand_inside_the_vpc_and_apart(stack, parts, template_of):
    parts.network(stack, cidr="10.20.0.0/18", client_zones=ClientZones.of_ids(*ZONE_IDS))
    template = template_of(stack)
    assert template.only("AWS::EC2::VPC")["CidrBlock"] == "10.20.0.0/18"
    blocks = [
        ipaddress.IPv4Network(subnet["CidrBlock"])
        for subnet in template.of_type("AWS::EC2::Subnet").values()
    ]
    vpc = ipaddress.IPv4Network("10.20.0.0/18")
    assert all(block.subnet_of(vpc) for block in blocks)
    assert not any(one.overlaps(other) for one in blocks for other in blocks if one is not other)


@pytest.mark.parametrize(
    ("max_instances", "prefix_length"),
    [
        # 4 x instances + 5 reserved + 1 interface endpoint + 16 spare, never smaller than /24
        (None, 24),
        (1, 24),
        (58, 24),
        (59, 23),
        (122, 23),
        (123, 22),
        (500, 21),
    ],
)
def test_subnets_hold_two_fleets(stack, parts, template_of, max_instances, prefix_length):
    parts.network(stack, max_instances=max_instances)
    for subnet in template_of(stack).of_type("AWS::EC2::Subnet").values():
        assert subnet["CidrBlock"].endswith(f"/{prefix_length}")
        if max_instances:
            addresses = ipaddress.IPv4Network(subnet["CidrBlock"]).num_addresses
            blue_and_green = 2 * max_instances * 2  # two addresses for each instance
            assert addresses - 5 >= blue_and_green


def test_a_stated_subnet_size_wins(stack, parts, template_of):
    """Over the roomy default; one that the fleet does not fit is refused (LLE113)."""
    parts.network(stack, max_instances=2, subnet_prefix_length=27)
    for subnet in template_of(stack).of_type("AWS::EC2::Subnet").values():
        assert subnet["CidrBlock"].endswith("/27")


def test_other_constructs_can_use_it(stack, parts, template_of):
    network = parts.network(stack, client_zones=ClientZones.of_ids("use1-az2", "use1-az1"))
    template = template_of(stack)
    by_zone = subnets_by_zone(template)
    for zone, subnet in zip(network.client_zones.zones, network.subnets, strict=True):
        assert stack.resolve(subnet.subnet_id) == {"Ref": by_zone[zone][0]}
        assert network.subnet_of(zone) is subnet
        # The zone's name, which callers and zonal DNS names need, is only known once it exists.
        assert stack.resolve(subnet.availability_zone) == {
            "Fn::GetAtt": [by_zone[zone][0], "AvailabilityZone"]
        }
    assert stack.resolve(network.vpc.vpc_id) == {"Ref": template.only_id("AWS::EC2::VPC")}
    assert not network.vpc.public_subnets


def test_zones_follow_the_region_only_where_it_is_known(new_stack, parts, template_of):
    stack = new_stack(region=None)
    parts.network(stack, client_zones=ClientZones.of_ids("euw1-az1", "use1-az2"))
    assert len(template_of(stack).of_type("AWS::EC2::Subnet")) == 2


A, B, C = "us-east-1a", "us-east-1b", "us-east-1c"
ZONES = ClientZones.of_names(A, B)
ISOLATED = ["subnet-isolated-a", "subnet-isolated-b", "subnet-isolated-c"]


def imported(stack, zones=(A, B, C), **given):
    private = [f"subnet-private-{zone[-1]}" for zone in zones]
    stated = {"availability_zones": list(zones), "private_subnet_ids": private}
    return Parts().vpc(stack, **stated | given)


def subnet_ids(network):
    return [subnet.subnet_id for subnet in network.subnets]


def in_vpc(stack, vpc, client_zones=ZONES, **given):
    return ZoneAlignedNetwork.in_vpc(stack, "Network", vpc=vpc, client_zones=client_zones, **given)


def test_a_vpc_made_in_the_same_app(stack, template_of):
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=[A, B, C])
    network = in_vpc(stack, vpc, ClientZones.of_names(C, A))
    chosen = [stack.resolve(subnet_id)["Ref"] for subnet_id in subnet_ids(network)]
    template = template_of(stack)
    subnets = template.of_type("AWS::EC2::Subnet")
    assert [subnets[subnet]["AvailabilityZone"] for subnet in chosen] == [C, A]
    assert not any(subnets[subnet]["MapPublicIpOnLaunch"] for subnet in chosen)
    assert network.vpc is vpc
    group = template.of_type("AWS::EC2::SecurityGroup")
    assert [properties["VpcId"] for properties in group.values()] == [stack.resolve(vpc.vpc_id)]


def test_only_a_network_that_made_its_vpc_owns_it(stack, parts):
    assert parts.network(stack, "New").own_vpc
    assert not in_vpc(stack, imported(stack)).own_vpc


def test_it_makes_nothing_but_the_models_security_group(stack, template_of):
    in_vpc(stack, imported(stack))
    assert template_of(stack).types == {"AWS::EC2::SecurityGroup"}


def test_a_vpc_imported_by_attributes(stack):
    network = in_vpc(stack, imported(stack), ClientZones.of_names(C, A))
    assert subnet_ids(network) == ["subnet-private-c", "subnet-private-a"]


def test_isolated_subnets_are_preferred_to_private_ones(stack):
    vpc = imported(stack, isolated_subnet_ids=ISOLATED)
    assert subnet_ids(in_vpc(stack, vpc)) == ISOLATED[:2]


def test_a_selection_narrows_the_choice(stack):
    vpc = imported(stack, isolated_subnet_ids=ISOLATED)
    private = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS)
    network = in_vpc(stack, vpc, subnet_selection=private)
    assert subnet_ids(network) == ["subnet-private-a", "subnet-private-b"]


def test_one_subnet_of_several_in_a_zone(stack):
    vpc = imported(stack, private_subnet_ids=[f"subnet-{n}{z}" for n in "12" for z in "abc"])
    chosen = subnet_ids(in_vpc(stack, vpc))
    assert len(chosen) == 2
    assert {name[-1] for name in chosen} == {"a", "b"}


def test_a_zone_without_a_subnet_names_both_sides(stack):
    with refused("LLE151", B, where="Serving/Network"):
        in_vpc(stack, imported(stack, zones=(A, C)))


def test_never_a_public_subnet(stack):
    public = ["subnet-a", "subnet-b", "subnet-c"]
    vpc = imported(stack, private_subnet_ids=None, public_subnet_ids=public)
    with refused("LLE151", allowed="zones with a subnet that is not public: -"):
        in_vpc(stack, vpc)


def test_a_vpc_whose_zones_are_tokens_needs_a_mapping(new_stack):
    stack = new_stack(region=None)
    vpc = ec2.Vpc(stack, "Vpc")  # its zones are Fn::GetAZs, chosen when it is deployed
    with refused("LLE152"):
        in_vpc(stack, vpc)
    first, second = vpc.private_subnets
    network = ZoneAlignedNetwork.in_vpc(
        stack, "Mapped", vpc=vpc, client_zones=ZONES, subnets={A: second, B: first}
    )
    assert network.subnets == [second, first]


def test_zone_ids_need_a_mapping(stack):
    vpc = imported(stack)
    zones = ClientZones.of_ids("use1-az1", "use1-az2")
    with refused("LLE152", "use1-az1"):
        in_vpc(stack, vpc, zones)
    one, two, _ = vpc.private_subnets
    network = ZoneAlignedNetwork.in_vpc(
        stack, "Mapped", vpc=vpc, client_zones=zones, subnets={"use1-az2": one, "use1-az1": two}
    )
    assert subnet_ids(network) == ["subnet-private-b", "subnet-private-a"]


def test_subnets_known_by_id_only(stack):
    given = {
        zone: ec2.Subnet.from_subnet_id(stack, f"Subnet-{zone}", f"subnet-{zone[-1]}")
        for zone in (A, B)
    }
    network = in_vpc(stack, imported(stack), subnets=given)
    assert subnet_ids(network) == ["subnet-a", "subnet-b"]
    # No zone names, so no zonal DNS names, but everything else works.
    assert RuntimePrivateLink(stack, "Link", network=network).zonal_dns_names == {}


@pytest.mark.parametrize("given", [(A,), (A, B, C), (A, C), ()])
def test_a_mapping_names_exactly_the_client_zones(stack, given):
    by_zone = dict(zip((A, B, C), imported(stack).private_subnets, strict=True))
    with refused("LLE153", allowed=f"one subnet for each of {A}, {B}"):
        in_vpc(stack, imported(stack, id="Again"), subnets={zone: by_zone[zone] for zone in given})


def test_a_mapping_may_not_swap_zones(stack):
    vpc = imported(stack)
    first, second, _ = vpc.private_subnets
    with refused("LLE153", got=f"for {A} a subnet in {B}"):
        in_vpc(stack, vpc, subnets={A: second, B: first})


def test_dns_of_a_vpc_in_the_app_is_known(stack):
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=[A, B], enable_dns_hostnames=False)
    assert not in_vpc(stack, vpc).dns_ready


def test_the_second_run_chooses_the_subnets_found(new_stack, template_of):
    stack = new_stack(context=SECOND_RUN)
    network = in_vpc(stack, looked_up(stack), ClientZones.of_names(C, A))
    RuntimePrivateLink(stack, "Link", network=network)
    assert subnet_ids(network) == ["subnet-private-c", "subnet-private-a"]
    link = template_of(stack).only("AWS::EC2::VPCEndpoint")
    assert link["SubnetIds"] == ["subnet-private-c", "subnet-private-a"]
    assert link["VpcId"] == "vpc-0fedcba9876543210"


def test_a_found_vpc_without_the_zone_is_refused(new_stack):
    stack = new_stack(context=SECOND_RUN)
    with refused("LLE151", "us-east-1f"):
        in_vpc(stack, looked_up(stack), ClientZones.of_names(A, "us-east-1f"))


def test_a_vpc_id_that_another_stack_exports(stack, template_of):
    vpc = imported(stack, vpc_id=Fn.import_value("shared-vpc"))
    RuntimePrivateLink(stack, "Link", network=in_vpc(stack, vpc))
    link = template_of(stack).only("AWS::EC2::VPCEndpoint")
    assert link["VpcId"] == {"Fn::ImportValue": "shared-vpc"}


@pytest.mark.parametrize(
    ("given", "recorded"),
    [
        ({}, "REJECT"),
        ({"flow_logs": ec2.FlowLogTrafficType.REJECT}, "REJECT"),
        ({"flow_logs": ec2.FlowLogTrafficType.ACCEPT}, "ACCEPT"),
        ({"flow_logs": ec2.FlowLogTrafficType.ALL}, "ALL"),
    ],
)
def test_records_the_traffic_asked_for(stack, parts, template_of, given, recorded):
    parts.network(stack, **given)
    template = template_of(stack)
    log = template.only("AWS::EC2::FlowLog")
    assert log["TrafficType"] == recorded
    assert log["ResourceType"] == "VPC"
    assert log["ResourceId"] == {"Ref": template.only_id("AWS::EC2::VPC")}
    assert log["LogDestinationType"] == "cloud-watch-logs"


def test_can_be_left_out(stack, parts, template_of):
    parts.network(stack, flow_logs=None)
    template = template_of(stack)
    assert "AWS::EC2::FlowLog" not in template.types
    principals = {
        role["AssumeRolePolicyDocument"]["Statement"][0]["Principal"]["Service"]
        for role in template.of_type("AWS::IAM::Role").values()
    }
    assert principals == {"lambda.amazonaws.com"}


def test_writes_into_its_own_log_group_only(smallest):
    template = smallest("network")
    log = template.only("AWS::EC2::FlowLog")
    group_id = log["LogGroupName"]["Ref"]
    group = template["Resources"][group_id]
    assert group["Properties"] == {"RetentionInDays": 30}
    assert group["DeletionPolicy"] == group["UpdateReplacePolicy"] == "Delete"
    role = template["Resources"][log["DeliverLogsPermissionArn"]["Fn::GetAtt"][0]]["Properties"]
    trust = role["AssumeRolePolicyDocument"]["Statement"]
    assert [statement["Principal"] for statement in trust] == [
        {"Service": "vpc-flow-logs.amazonaws.com"}
    ]
    (policy,) = role["Policies"]
    resources = {
        action: statement["Resource"]
        for statement in policy["PolicyDocument"]["Statement"]
        for action in statement["Action"]
    }
    own = {"Fn::GetAtt": [group_id, "Arn"]}
    # The set that AWS's guide asks for, without CreateLogGroup: the group is there.
    assert resources == {
        "logs:CreateLogStream": own,
        "logs:PutLogEvents": own,
        "logs:DescribeLogStreams": own,
        "logs:DescribeLogGroups": "*",
    }


ANY = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
SELF = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": "sg-default"}]}]
CUSTOM_RESOURCE = "Custom::ClosedDefaultSecurityGroup"


def test_concerns_the_vpcs_default_group(smallest):
    template = smallest("network")
    rules = template.only(CUSTOM_RESOURCE)
    assert rules["SecurityGroupId"] == {
        "Fn::GetAtt": [template.only_id("AWS::EC2::VPC"), "DefaultSecurityGroup"]
    }
    assert "Removes the rules" in template.function_of(CUSTOM_RESOURCE)["Code"]["ZipFile"]


def test_may_revoke_rules_of_that_group_only(smallest):
    template = smallest("network")
    function = template.function_of(CUSTOM_RESOURCE)
    role = template["Resources"][function["Role"]["Fn::GetAtt"][0]]["Properties"]
    assert "ManagedPolicyArns" not in role
    (policy,) = role["Policies"]
    resources = {
        action: statement["Resource"]
        for statement in policy["PolicyDocument"]["Statement"]
        for action in statement["Action"]
    }
    group = {"Fn::GetAtt": [template.only_id("AWS::EC2::VPC"), "DefaultSecurityGroup"]}
    for action in ("ec2:RevokeSecurityGroupIngress", "ec2:RevokeSecurityGroupEgress"):
        assert resources.pop(action)["Fn::Join"][1][-2:] == [":security-group/", group]
    logs = {"Fn::GetAtt": [function["LoggingConfig"]["LogGroup"]["Ref"], "Arn"]}
    assert resources == {
        "ec2:DescribeSecurityGroups": "*",  # takes no resource
        "logs:CreateLogStream": logs,
        "logs:PutLogEvents": logs,
    }


def test_its_code_needs_no_asset(smallest):
    function = smallest("network").function_of(CUSTOM_RESOURCE)
    assert len(function["Code"]["ZipFile"]) < 4096  # Lambda's limit for inline code
    assert function["Runtime"].startswith("python3.")
    assert function["Handler"] == "index.handler"


class FakeEc2:
    """The three calls that the handler makes, with a group in memory."""

    def __init__(self, ingress, egress, failure=None, failures=sys.maxsize):
        self.rules = {"ingress": ingress, "egress": egress}
        self.failure, self.failures = failure, failures
        self.calls = []

    def describe_security_groups(self, *, GroupIds):
        self.calls.append("describe")
        if self.failure and self.failures:
            self.failures -= 1
            raise self.failure
        return {
            "SecurityGroups": [
                {
                    "GroupId": GroupIds[0],
                    "IpPermissions": self.rules["ingress"],
                    "IpPermissionsEgress": self.rules["egress"],
                }
            ]
        }

    def _revoke(self, side, group_id, permissions):
        assert group_id == "sg-default"
        assert permissions == self.rules[side], "AWS refuses to revoke a rule that is not there"
        assert permissions, "AWS refuses an empty list"
        self.calls.append(side)
        self.rules[side] = []

    def revoke_security_group_ingress(self, *, GroupId, IpPermissions):
        self._revoke("ingress", GroupId, IpPermissions)

    def revoke_security_group_egress(self, *, GroupId, IpPermissions):
        self._revoke("egress", GroupId, IpPermissions)


@pytest.fixture
def run(smallest, monkeypatch):
    """Run the handler as it stands in the template; returns what it sent to CloudFormation."""
    source = smallest("network").function_of(CUSTOM_RESOURCE)["Code"]["ZipFile"]

    def run(request_type, ec2):
        slept = []  # the clock passes by sleeping alone
        clock = SimpleNamespace(monotonic=lambda: sum(slept), sleep=slept.append)
        handler, answers = loaded(source, {"ec2": ec2}, clock, monkeypatch)
        group = {"SecurityGroupId": "sg-default"}
        handler({"RequestType": request_type, "ResourceProperties": group}, object())
        (answer,) = answers  # exactly one, or CloudFormation waits for an hour
        return answer

    return run


@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_revokes_every_rule(run, request_type):
    ec2 = FakeEc2(SELF, ANY)
    assert run(request_type, ec2) == ("SUCCESS", "sg-default", None)
    assert ec2.rules == {"ingress": [], "egress": []}


@pytest.mark.parametrize(
    ("ingress", "egress", "calls"),
    [
        ([], [], ["describe"]),
        (SELF, [], ["describe", "ingress"]),
        ([], ANY, ["describe", "egress"]),
    ],
)
def test_a_group_that_is_closed_already_stays_so(run, ingress, egress, calls):
    ec2 = FakeEc2(ingress, egress)
    assert run("Create", ec2)[0] == "SUCCESS"
    assert ec2.calls == calls


def test_waits_for_rights_that_are_new(run):
    ec2 = FakeEc2(SELF, ANY, failure=RuntimeError("UnauthorizedOperation"), failures=3)
    assert run("Create", ec2)[0] == "SUCCESS"
    assert ec2.calls == ["describe"] * 4 + ["ingress", "egress"]
    assert ec2.rules == {"ingress": [], "egress": []}


def test_fails_at_once_for_anything_else(run):
    ec2 = FakeEc2(SELF, ANY, failure=RuntimeError("InvalidGroup.NotFound"), failures=3)
    assert run("Create", ec2) == ("FAILED", "sg-default", "InvalidGroup.NotFound")
    assert ec2.calls == ["describe"]


def test_delete_touches_nothing(run):
    ec2 = FakeEc2(SELF, ANY)
    assert run("Delete", ec2) == ("SUCCESS", "sg-default", None)
    assert ec2.calls == []


def test_a_refusal_reaches_cloudformation(run):
    ec2 = FakeEc2(SELF, ANY, failure=RuntimeError("UnauthorizedOperation"))
    assert run("Create", ec2) == ("FAILED", "sg-default", "UnauthorizedOperation")
