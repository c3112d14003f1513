"""The warm-up at a deployment: when it runs, what it is told, what it fails."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import Duration

from low_latency_endpoint import (
    LatencyTarget,
    RuntimePrivateLink,
    WarmUp,
    WarmUpOptions,
    WarmUpPayload,
)
from low_latency_endpoint.warm_up.warm_up_function import controller
from tests.synth.warm_up.in_template import PAYLOAD, function_of


def test_runs_after_the_endpoint_and_again_for_each_configuration(template):
    resource = template.only("Custom::WarmUp")
    endpoint = template.only_id("AWS::SageMaker::Endpoint")
    assert resource["EndpointName"] == {"Fn::GetAtt": [endpoint, "EndpointName"]}
    assert resource["EndpointConfigName"] == {
        "Fn::GetAtt": [template.only_id("AWS::SageMaker::EndpointConfig"), "EndpointConfigName"]
    }


def test_says_how_much_is_sent(stack, make, template_of):
    make(
        requests=4938,
        concurrency_per_zone=8,
        last=100,
        timeout=Duration.minutes(5),
        latency=LatencyTarget(p50=Duration.millis(40), p99=Duration.millis(200)),
        on_miss="warn",
    )
    resource = template_of(stack).only("Custom::WarmUp")
    assert {
        name: resource[name]
        for name in (
            "RequestsPerZone",
            "ConcurrencyPerZone",
            "Last",
            "TimeoutSeconds",
            "Target",
            "OnMiss",
        )
    } == {
        "RequestsPerZone": 2469,
        "ConcurrencyPerZone": 8,
        "Last": 100,
        "TimeoutSeconds": 300,
        "Target": {"p50": 40, "p99": 200},
        "OnMiss": "WARN",
    }


def test_defaults_fail_the_deployment_after_ten_minutes(template):
    resource = template.only("Custom::WarmUp")
    assert (resource["OnMiss"], resource["TimeoutSeconds"], resource["Target"]) == ("FAIL", 600, {})
    assert resource["RequestsPerZone"] == 50
    timeout = function_of(template, "Controller")["Timeout"]
    # The function reports before it ends, and CloudFormation waits until after.
    assert 600 < timeout < int(resource["ServiceTimeout"]) < 3600


def test_the_longest_warm_up_fits_into_lambdas_fifteen_minutes(stack, make, template_of):
    make(timeout=Duration.seconds(810))
    assert function_of(template_of(stack), "Controller")["Timeout"] == 900


def test_waits_for_the_security_groups_rules(template):
    rules = [
        logical_id
        for kind in ("Ingress", "Egress")
        for logical_id in template.of_type(f"AWS::EC2::SecurityGroup{kind}")
        if "WarmUp" in logical_id
    ]
    assert len(rules) == 2
    waits_for = template.depends_on(template.only_id("Custom::WarmUp"))
    assert set(rules) <= set(waits_for)


def test_another_payload_is_tried_at_once(new_stack, parts, template_of):
    digests = set()
    for payload in (
        PAYLOAD,
        WarmUpPayload(data={"inputs": "I hate you."}),
        WarmUpPayload(data={"inputs": "I like you."}, target_model="a.tar.gz"),
        [PAYLOAD, PAYLOAD],
    ):
        stack = new_stack()
        network = parts.network(stack)
        WarmUp(
            stack,
            "WarmUp",
            endpoint=parts.endpoint(stack),
            network=network,
            options=WarmUpOptions(payload=payload),
            private_link=RuntimePrivateLink(stack, "Link", network=network),
        )
        digests.add(template_of(stack).only("Custom::WarmUp")["Payload"])
    assert len(digests) == 4


def test_the_results_are_attributes(stack, make, template_of):
    made = make()
    for name in ("outcome", "requests_sent", "failed_requests", "zones_report"):
        cdk.CfnOutput(stack, name.replace("_", ""), value=getattr(made, name))
    template = template_of(stack)
    attributes = {output["Value"]["Fn::GetAtt"][1] for output in template["Outputs"].values()}
    data = controller._verdict(
        {"outcome": "met", "requests": 1, "failed": 0, "seconds": 1, "zones": {}}, {}, False
    )[2]
    assert attributes <= set(data)
    assert len(attributes) == 4
