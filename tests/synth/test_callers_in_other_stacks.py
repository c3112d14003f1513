"""Callers in stacks of their own: the rules stand where the stacks make no cycle."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3

from low_latency_endpoint import ClientZones, ModelData, RuntimePrivateLink, ZoneAlignedNetwork
from low_latency_endpoint.plan.launched_names import as_named

from .conftest import name_at_synth, warnings_after_synth
from .team_apps import HERE, INGRESS, a_function, only, resources, vpc_in

EGRESS = "AWS::EC2::SecurityGroupEgress"


def stacks(*names: str, scope: Any = None) -> dict[str, cdk.Stack]:
    scope = scope or cdk.App(analytics_reporting=False)
    return {name: cdk.Stack(scope, name, env=HERE) for name in dict.fromkeys(names)}


def link_in(stack: cdk.Stack, vpc: ec2.IVpc, **given: Any) -> RuntimePrivateLink:
    network = ZoneAlignedNetwork.in_vpc(
        stack, "Network", vpc=vpc, client_zones=ClientZones.of_vpc(vpc)
    )
    return RuntimePrivateLink(stack, "Link", network=network, **given)


def served_in(stack: cdk.Stack, parts: Any, link: RuntimePrivateLink) -> Any:
    model = parts.model(stack, network=link.network)
    configuration = parts.configuration(stack, variants=[parts.variant(stack, model=model)])
    return parts.endpoint(stack, configuration=configuration)


def rules(stack: cdk.Stack, kind: str = INGRESS) -> list[dict[str, Any]]:
    """Rules of their own in a stack's template; those of a network's own groups are inline."""
    return [each["Properties"] for each in resources(stack, kind).values()]


def made_in(made: dict[str, cdk.Stack], kind: str = INGRESS) -> dict[str, int]:
    return {name: len(found) for name, stack in made.items() if (found := rules(stack, kind))}


def needs(stack: cdk.Stack) -> set[str]:
    return {each.node.id for each in stack.dependencies}


@pytest.mark.parametrize(
    ("net", "ml", "app", "named", "rule_in"),
    [
        pytest.param("All", "All", "All", True, "All", id="one stack"),
        pytest.param("Ml", "Ml", "App", True, "App", id="two: the VPC beside the endpoint"),
        pytest.param("Ml", "Ml", "App", False, "App", id="two: and no name is used"),
        pytest.param("App", "Ml", "App", False, "Ml", id="two: the endpoint comes after its VPC"),
        pytest.param("Net", "Ml", "App", True, "App", id="three"),
        pytest.param("Net", "Ml", "App", False, "App", id="three, and no name is used"),
    ],
)
def test_stacks_in_any_order(parts, net, ml, app, named, rule_in):
    made = stacks(net, ml, app)
    vpc = vpc_in(made[net])
    link = link_in(made[ml], vpc)
    endpoint = served_in(made[ml], parts, link)
    given = {"ENDPOINT_NAME": endpoint.endpoint_name, "URL": link.url} if named else {}
    caller = a_function(made[app], vpc, **given)
    if named:
        endpoint.grant_invoke(caller)
    link.allow_from(caller)
    assert made_in(made) == {rule_in: 1}
    (rule,) = rules(made[rule_in])
    assert (rule["IpProtocol"], rule["FromPort"], rule["ToPort"]) == ("tcp", 443, 443)
    for side, group in (
        ("GroupId", link.connections.security_groups[0]),
        ("SourceSecurityGroupId", caller.connections.security_groups[0]),
    ):
        assert rule[side] == made[rule_in].resolve(group.security_group_id)
    others = {name for name in made if name != app}
    assert needs(made[ml]) == ({net} if net != ml else set())
    assert needs(made[app]) == (others if rule_in == app and len(made) > 1 else set())


def test_the_pattern_takes_callers_of_another_stack(parts):
    made = stacks("Ml", "App")
    vpc = vpc_in(made["Ml"])
    caller = a_function(made["App"], vpc)
    pattern = parts.pattern(
        made["Ml"], vpc=vpc, client_zones=ClientZones.of_vpc(vpc), callers=[caller]
    )
    caller.add_environment("ENDPOINT_NAME", pattern.endpoint.endpoint_name)
    pattern.endpoint.grant_invoke(caller)
    assert made_in(made) == {"App": 1}
    assert needs(made["Ml"]) == set()


def test_the_name_as_text_binds_no_stack(parts):
    """For callers in the stack whose VPC the endpoint needs."""
    made = stacks("App", "Ml")
    vpc = vpc_in(made["App"])
    link = link_in(made["Ml"], vpc)
    endpoint = served_in(made["Ml"], parts, link)
    link.allow_from(a_function(made["App"], vpc, ENDPOINT_NAME=endpoint.name_in(made["App"])))
    assert made_in(made) == {"Ml": 1}
    assert needs(made["App"]) == set()
    name = only(made["Ml"], "AWS::SageMaker::Endpoint")["EndpointName"]
    assert as_named(name) == name_at_synth(endpoint)


def test_a_stated_dependency_of_the_endpoints_stack_is_kept():
    made = stacks("Net", "Base", "Ml", "App")
    vpc = vpc_in(made["Net"])
    made["Ml"].add_dependency(made["Base"])
    made["Base"].add_dependency(made["App"])
    link_in(made["Ml"], vpc).allow_from(a_function(made["App"], vpc))
    assert made_in(made) == {"Ml": 1}


def test_what_is_not_known_when_the_rule_is_made_can_be_said(parts):
    """The model's data lies in a bucket of the callers' stack, which takes no name."""
    made = stacks("Net", "Ml", "App")
    vpc = vpc_in(made["Net"])
    link = link_in(made["Ml"], vpc)
    link.allow_from(a_function(made["App"], vpc), rules_in="link")
    data = ModelData.from_s3(s3.Bucket(made["App"], "Models"), "model.tar.gz")
    parts.model(made["Ml"], network=link.network, containers=[parts.container(data=data)])
    assert made_in(made) == {"Ml": 1}
    assert needs(made["Ml"]) == {"Net", "App"}


def test_a_group_known_by_its_id_binds_no_stack():
    made = stacks("Ml", "App")
    vpc = vpc_in(made["Ml"])
    group = ec2.SecurityGroup.from_security_group_id(made["App"], "Caller", "sg-0123456789abcdef")
    link_in(made["Ml"], vpc).allow_from(group)
    assert made_in(made) == {"Ml": 1}
    assert needs(made["App"]) == needs(made["Ml"]) == set()


@pytest.mark.parametrize(
    ("given", "ports"), [({}, [443]), ({"bidirectional_streaming": True}, [443, 8443])]
)
def test_a_group_that_may_not_go_everywhere_is_let_out_in_its_own_stack(given, ports):
    made = stacks("Ml", "App")
    vpc = vpc_in(made["Ml"])
    group = ec2.SecurityGroup(made["App"], "Caller", vpc=vpc, allow_all_outbound=False)
    link = link_in(made["Ml"], vpc, **given)
    link.allow_from(group, "the shop")
    assert made_in(made) == made_in(made, EGRESS) == {"App": len(ports)}
    for kind, ours in ((INGRESS, "SourceSecurityGroupId"), (EGRESS, "GroupId")):
        found = rules(made["App"], kind)
        assert sorted(rule["FromPort"] for rule in found) == ports
        assert {rule["Description"] for rule in found} == {"the shop"}
        own = made["App"].resolve(group.security_group_id)
        assert all(rule[ours] == own for rule in found)


def test_a_group_that_may_go_everywhere_gets_no_warning_of_the_cdk():
    made = stacks("Ml", "App")
    vpc = vpc_in(made["Ml"])
    link_in(made["Ml"], vpc).allow_from(a_function(made["App"], vpc))
    assert made_in(made, EGRESS) == {}
    for stack in made.values():
        assert not warnings_after_synth(stack, "Egress")


def test_ranges_stay_with_the_link():
    made = stacks("Ml", "App")
    link = link_in(made["Ml"], vpc_in(made["Ml"]))
    link.allow_from(ec2.Peer.ipv4("10.0.0.0/16"))
    link.allow_from(ec2.Peer.prefix_list("pl-63a5400a"))
    link.allow_from(ec2.Peer.ipv4("10.1.0.0/16"), rules_in="caller")
    (group,) = (
        each["Properties"]
        for each in resources(made["Ml"], "AWS::EC2::SecurityGroup").values()
        if "interface endpoint" in each["Properties"]["GroupDescription"]
    )
    assert [rule["CidrIp"] for rule in group["SecurityGroupIngress"]] == [
        "10.0.0.0/16",
        "10.1.0.0/16",
    ]
    assert made_in(made) == {"Ml": 1}


def test_an_adopted_endpoint_lets_in_callers_of_other_stacks():
    made = stacks("Ml", "App")
    vpc = vpc_in(made["Ml"])
    network = ZoneAlignedNetwork.in_vpc(
        made["Ml"], "Network", vpc=vpc, client_zones=ClientZones.of_vpc(vpc)
    )
    group = ec2.SecurityGroup.from_security_group_id(made["Ml"], "Theirs", "sg-0123456789abcdef")
    link = RuntimePrivateLink.from_interface_endpoint(
        made["Ml"],
        "Link",
        network=network,
        interface_endpoint=ec2.InterfaceVpcEndpoint.from_interface_vpc_endpoint_attributes(
            made["Ml"], "There", vpc_endpoint_id="vpce-1", port=443, security_groups=[group]
        ),
    )
    link.allow_from(a_function(made["App"], vpc))
    (rule,) = rules(made["App"])
    assert rule["GroupId"] == "sg-0123456789abcdef"
    assert needs(made["Ml"]) == set()


@pytest.mark.parametrize("vpc_in_parent", [True, False])
def test_nested_stacks_beside_each_other(parts, vpc_in_parent):
    app = stacks("All")["All"]
    ml, callers = cdk.NestedStack(app, "Ml"), cdk.NestedStack(app, "Callers")
    vpc = vpc_in(app if vpc_in_parent else ml)
    link = link_in(ml, vpc)
    endpoint = served_in(ml, parts, link)
    caller = a_function(callers, vpc, ENDPOINT_NAME=endpoint.endpoint_name)
    link.allow_from(caller)
    assert made_in({"Ml": ml, "Callers": callers, "All": app}) == {"Callers": 1}


@pytest.mark.parametrize("link_nested", [True, False])
def test_one_nested_in_the_other(parts, link_nested):
    app = stacks("All")["All"]
    nested = cdk.NestedStack(app, "Nested")
    vpc = vpc_in(app)
    ml, callers = (nested, app) if link_nested else (app, nested)
    link = link_in(ml, vpc)
    endpoint = served_in(ml, parts, link)
    link.allow_from(a_function(callers, vpc, ENDPOINT_NAME=endpoint.endpoint_name))
    assert made_in({"All": app, "Nested": nested}) == {"Nested": 1}


def test_callers_nested_in_the_stack_that_the_endpoints_needs():
    made = stacks("App", "Ml")
    vpc = vpc_in(made["App"])
    nested = cdk.NestedStack(made["App"], "Callers")
    link_in(made["Ml"], vpc).allow_from(a_function(nested, vpc))
    assert made_in({**made, "Nested": nested}) == {"Ml": 1}


class Deployed(cdk.Stage):
    """The three stacks of a team, in each of its accounts."""

    def __init__(self, scope: Any, id: str, parts: Any) -> None:
        super().__init__(scope, id, env=HERE)
        self.made = stacks("Net", "Ml", "App", scope=self)
        vpc = vpc_in(self.made["Net"])
        link = link_in(self.made["Ml"], vpc)
        endpoint = served_in(self.made["Ml"], parts, link)
        caller = a_function(self.made["App"], vpc, ENDPOINT_NAME=endpoint.endpoint_name)
        endpoint.grant_invoke(caller)
        link.allow_from(caller)


def test_a_stage(parts):
    stage = Deployed(cdk.App(analytics_reporting=False), "Test", parts)
    assert made_in(stage.made) == {"App": 1}
    assert needs(stage.made["Ml"]) == {"Net"}


def test_the_name_in_a_template_is_text_in_other_stacks(parts):
    """A condition, and the ID of a stack, are those of the template that they stand in."""
    made = stacks("Ml", "App")
    endpoint = served_in(made["Ml"], parts, link_in(made["Ml"], vpc_in(made["Ml"])))
    metric = endpoint.metric("Invocations", statistic="Sum")
    for stack in made.values():
        metric.create_alarm(stack, "Busy", threshold=1, evaluation_periods=1)
    assert needs(made["App"]) == set()
    own, other = (only(made[name], "AWS::CloudWatch::Alarm")["Dimensions"] for name in made)
    assert as_named(own) == other
    assert own != other
