"""Adopted endpoints, VPCs that exist, and what validators say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_sqs as sqs
from aws_cdk.assertions import Annotations, Match

from low_latency_endpoint import (
    ClientZones,
    KeepWarmOptions,
    RuntimePrivateLink,
    WarmUp,
    WarmUpOptions,
    ZoneAlignedNetwork,
)
from low_latency_endpoint.facts import warm_up_rules
from low_latency_endpoint.warm_up import warm_up as warm_up_module
from low_latency_endpoint.warm_up.warm_up_function import controller, sender
from tests.synth.warm_up.in_template import PAYLOAD, function_of

from ..judges import cfn_lint, judged


@pytest.mark.parametrize(("fips", "label"), [(False, "runtime"), (True, "runtime-fips")])
def test_an_adopted_endpoint_without_a_name_is_called_by_the_regional_one(
    stack, parts, make, template_of, fips, label
):
    network = parts.network(stack)
    adopted = ec2.InterfaceVpcEndpoint.from_interface_vpc_endpoint_attributes(
        stack, "Adopted", vpc_endpoint_id="vpce-0123456789abcdef0", port=443
    )
    link = RuntimePrivateLink.from_interface_endpoint(
        stack, "Link", network=network, interface_endpoint=adopted, fips=fips
    )
    make(network=network, private_link=link)
    Annotations.from_stack(stack).has_warning(
        "/Serving/WarmUp", Match.string_like_regexp("zonal names are not known")
    )
    template = template_of(stack)
    variable = function_of(template, "Sender")["Environment"]["Variables"]["WARM_UP"]
    text = "".join(
        part if isinstance(part, str) else "amazonaws.com" for part in variable["Fn::Join"][1]
    )
    assert json.loads(text)["zones"] == {"region": f"{label}.sagemaker.us-east-1.amazonaws.com"}
    (group,) = [
        group
        for logical_id, group in template.of_type("AWS::EC2::SecurityGroup").items()
        if "WarmUp" in logical_id
    ]
    (rule,) = group["SecurityGroupEgress"]
    assert (rule["CidrIp"], rule["FromPort"], rule["ToPort"]) == ("0.0.0.0/0", 443, 443)


def test_works_in_a_vpc_that_exists(stack, parts, make, template_of):
    vpc = ec2.Vpc.from_vpc_attributes(
        stack,
        "Vpc",
        vpc_id="vpc-0123456789abcdef0",
        availability_zones=["us-east-1a", "us-east-1b"],
        private_subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    )
    network = ZoneAlignedNetwork.in_vpc(
        stack, "Theirs", vpc=vpc, client_zones=ClientZones.of_names("us-east-1a", "us-east-1b")
    )
    endpoint = parts.endpoint(
        stack, variants=[parts.variant(stack, model=parts.model(stack, network=network))]
    )
    make(network=network, endpoint=endpoint)
    function = function_of(template_of(stack), "Sender")
    assert function["VpcConfig"]["SubnetIds"] == [
        "subnet-0123456789abcdef0",
        "subnet-0123456789abcdef1",
    ]


@pytest.mark.parametrize("region", ["us-east-1", None], ids=["region", "agnostic"])
def test_aws_solutions_and_cfn_lint_find_nothing(new_stack, parts, region):
    stack = new_stack(region=region)
    judged(stack.node.root)
    endpoint = parts.endpoint(stack)
    network = stack.node.find_child("Network")
    link = RuntimePrivateLink(stack, "Link", network=network)
    WarmUp(
        stack,
        "WarmUp",
        endpoint=endpoint,
        private_link=link,
        network=network,
        options=WarmUpOptions(payload=PAYLOAD, metrics=True, keep_warm=KeepWarmOptions()),
    )
    assembly = stack.node.root.synth()  # raises with the findings
    template = Path(assembly.directory, "Serving.template.json").read_text()
    assert cfn_lint(template) == []


def test_aws_solutions_would_have_found_something(stack, make):
    make()
    sqs.CfnQueue(stack, "Bad")
    judged(stack.node.root)
    with pytest.raises(RuntimeError, match="AwsSolutions-SQS4"):
        stack.node.root.synth()


def test_what_construct_and_function_both_know_is_the_same():
    assert warm_up_module._SENDER_SECONDS == controller.SENDER_SECONDS
    assert warm_up_module._DEPLOYMENT_EVENT == controller.DEPLOYMENT_EVENT
    assert warm_up_rules.MARGIN_SECONDS > sender.READ_TIMEOUT
