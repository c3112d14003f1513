"""Models and links go where CDK's own grant and allow methods take a construct."""

from __future__ import annotations

import json

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3

from low_latency_endpoint import (
    ClientZones,
    Container,
    ContainerImage,
    Model,
    RuntimePrivateLink,
    ZoneAlignedNetwork,
)


def _network(stack):
    return ZoneAlignedNetwork(
        stack, "Network", client_zones=ClientZones.of_ids("use1-az1", "use1-az2")
    )


def test_a_bucket_grants_a_model(new_stack, template_of):
    stack = new_stack()
    model = Model(
        stack,
        "Model",
        network=_network(stack),
        containers=[Container(image=ContainerImage.from_uri("registry.example.com/x:1"))],
    )
    s3.Bucket.from_bucket_name(stack, "Bucket", "features").grant_read(model)
    policies = json.dumps(
        [
            each["Properties"]["PolicyDocument"]
            for each in template_of(stack)["Resources"].values()
            if each["Type"] == "AWS::IAM::Policy"
        ]
    )
    assert ":s3:::features/*" in policies


def test_a_security_group_connects_to_a_link(new_stack, template_of):
    stack = new_stack()
    network = _network(stack)
    link = RuntimePrivateLink(stack, "Link", network=network)
    callers = ec2.SecurityGroup(stack, "Callers", vpc=network.vpc, allow_all_outbound=False)
    callers.connections.allow_to(link, ec2.Port.tcp(443))
    ingress = [
        each["Properties"]
        for each in template_of(stack)["Resources"].values()
        if each["Type"] == "AWS::EC2::SecurityGroupIngress"
    ]
    assert [(each["FromPort"], each["ToPort"]) for each in ingress] == [(443, 443)]
