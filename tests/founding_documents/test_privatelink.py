"""AWS's developer guide: "Low latency real-time inference with AWS PrivateLink".

https://docs.aws.amazon.com/sagemaker/latest/dg/realtime-endpoints-privatelink.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import boto3
import pytest
from hosting_site import Site, taking

from tests.operate.outcomes import assert_told
from tests.operate.preflight.cases import NO_HOSTNAMES, fails, passes
from tests.operate.preflight.cases import run as checked
from tests.settings_files import mistakes
from tests.synth.conftest import Synthesised
from tools.fuzzing.agreement import text_of

from .conftest import planned, stated

says = pytest.mark.says
Template = Callable[..., Synthesised]

EXISTING = {
    "vpc_id": "vpc-0123456789abcdef0",
    "subnets": {"use1-az1": "subnet-0123456789abcdef0", "use1-az2": "subnet-0123456789abcdef1"},
}
MODEL = "AWS::SageMaker::Model"


@says(1, "high availability and resiliency using multi-AZ deployment")
@says(7, "deployed in at least 2 AWS Availability Zones")
def test_two_zones_and_an_instance_for_each(template: Template) -> None:
    assert len(template().of_type("AWS::EC2::Subnet")) == 2
    assert template().only("AWS::ApplicationAutoScaling::ScalableTarget")["MinCapacity"] >= 2
    assert planned().fleet.minimum >= 2


@says(1, "high availability")
@says(7, "deployed in at least 2 AWS Availability Zones")
def test_fewer_are_told() -> None:
    (problem,) = mistakes(text_of(stated(client_zones={"ids": ["use1-az1"]})))
    assert problem[1].code == "LLE103"  # fewer than two client zones
    one = planned(instances={"min": 1, "max": 1}, throughput=None)
    assert any("outage" in warning for warning in map(str, one.explanation.warnings))


@says(2, "infrastructure or overhead latency and model inference latency")
def test_the_target_is_split_in_two(template: Template) -> None:
    """Of 200 ms 160 are the model's and 40 overhead's; CloudWatch takes microseconds."""
    thresholds = {
        alarm["MetricName"]: alarm["Threshold"]
        for alarm in template().of_type("AWS::CloudWatch::Alarm").values()
        if alarm.get("MetricName") in ("ModelLatency", "OverheadLatency")
    }
    assert thresholds == {"ModelLatency": 160_000, "OverheadLatency": 40_000}


@says(3, "deploying more complex, deep, and accurate models")
def test_less_overhead_leaves_more_to_the_model(template: Template) -> None:
    lower = template({"latency": {"p99": "200ms", "overhead_share": 0.05}})
    thresholds = {
        alarm["Threshold"]
        for alarm in lower.of_type("AWS::CloudWatch::Alarm").values()
        if alarm.get("MetricName") == "ModelLatency"
    }
    assert thresholds == {190_000}  # also of the alarm that rolls a deployment back


@says(4, "reduce the latency for real-time inferences")
@says(6, "an elastic network interface in your subnet")
@says(9, "privateDNSEnabled option set as true")
@says(13, "Select the Enable DNS name checkbox")
def test_an_interface_endpoint_with_private_dns_by_default(template: Template) -> None:
    link = template().interface("sagemaker.runtime")
    assert link["PrivateDnsEnabled"] is True
    subnets = template().of_type("AWS::EC2::Subnet")
    zones = [subnets[subnet["Ref"]]["AvailabilityZoneId"] for subnet in link["SubnetIds"]]
    assert sorted(zones) == ["use1-az1", "use1-az2"]  # one network interface in each client zone
    assert not any(subnet.get("MapPublicIpOnLaunch") for subnet in subnets.values())


@says(9, "privateDNSEnabled option")
@pytest.mark.parametrize("given", [True, False])
def test_an_existing_vpc_can_decline_private_dns(given: bool, template: Template) -> None:
    existing = template(network=EXISTING, private_link={"private_dns": given})
    assert existing.interface("sagemaker.runtime")["PrivateDnsEnabled"] is given


@says(5, "privately access all SageMaker API operations")
def test_the_api_beside_the_runtime(template: Template) -> None:
    both = template(private_link={"sagemaker_api": True})
    api, runtime = both.interface("sagemaker.api"), both.interface("sagemaker.runtime")
    assert api["PrivateDnsEnabled"] is True
    assert api["SubnetIds"] == runtime["SubnetIds"]


@says(8, "one or more AZ “hops” that contribute to the overhead latency")
@says(11, "in the same AZ as the client")
def test_hops_between_zones_are_counted_and_not_promised(command: Callable[..., str]) -> None:
    """AWS's pages disagree: the plan says 0 to 1 hops and what holds a call in its zone."""
    text = command("plan", "-v")
    assert text.count("0 to 1 hops") == 2
    assert "by PrivateLink's general page round robin" in text
    assert "the zonal DNS names hold callers to a zone in any case" in text


@says(8, "contribute to the overhead latency")
@says(11, "in the same AZ as the client")
def test_a_canary_measures_the_path_from_each_zone(template: Template) -> None:
    alarms = str(template({"canary": {}}).of_type("AWS::CloudWatch::Alarm"))
    assert "CanaryConnectTime" in alarms
    assert "CanaryOutOfZone" in alarms
    assert "Canary" not in str(template().of_type("AWS::CloudWatch::Alarm"))


@says(10, "It keeps all inference traffic within your VPC")
def test_a_new_vpc_has_no_way_out(template: Template) -> None:
    exits = {"AWS::EC2::InternetGateway", "AWS::EC2::NatGateway", "AWS::EC2::Route"}
    assert not exits & template().types


@says(12, "create an interface endpoint for the VPC")
def test_the_callers_vpc(template: Template) -> None:
    existing = template(network=EXISTING, private_link={"private_dns": True})
    assert "AWS::EC2::VPC" not in existing.types
    assert EXISTING["vpc_id"] in str(existing.interface("sagemaker.runtime")["VpcId"])


@says(14, "Select the appropriate security groups")
def test_callers_get_in_on_port_443_and_nobody_else(template: Template) -> None:
    (group,) = template().interface("sagemaker.runtime")["SecurityGroupIds"]
    rules = template()["Resources"][group["Fn::GetAtt"][0]]["Properties"]["SecurityGroupIngress"]
    assert [(rule["CidrIp"], rule["FromPort"], rule["ToPort"]) for rule in rules] == [
        ("10.0.0.0/16", 443, 443)
    ]
    (of_model,) = template().only(MODEL)["VpcConfig"]["SecurityGroupIds"]
    assert of_model != group
    assert not template()["Resources"][of_model["Fn::GetAtt"][0]]["Properties"].get(
        "SecurityGroupIngress"
    )


@says(15, "the subnets to be used with the SageMaker endpoints")
@says(17, "the same subnets that you specified")
@says(19, "'Subnets': [subnet_a, subnet_b]")
@pytest.mark.parametrize("network", [None, EXISTING], ids=["new", "existing"])
def test_the_same_subnets_for_both(network: dict[str, Any] | None, template: Template) -> None:
    stack = template(network=network, private_link={"private_dns": True})
    model = stack.only(MODEL)["VpcConfig"]
    link = stack.interface("sagemaker.runtime")["SubnetIds"]
    assert len(link) == 2
    assert sorted(map(str, model["Subnets"])) == sorted(map(str, link))
    assert len(model["SecurityGroupIds"]) == 1


@says(16, "DNS hostnames turned on")
def test_dns_hostnames(template: Template) -> None:
    vpc = template().only("AWS::EC2::VPC")
    assert (vpc["EnableDnsHostnames"], vpc["EnableDnsSupport"]) == (True, True)


@says(16, "DNS hostnames turned on")
@pytest.mark.parametrize(
    "case",
    [passes("LLP205", "hostnames on"), fails("LLP205", "enableDnsHostnames off", NO_HOSTNAMES)],
    ids=["on", "off"],
)
def test_dns_hostnames_of_an_existing_vpc_are_checked(case: Any) -> None:
    assert_told(checked(case)[0], case.status, case.words)


@says(18, "These subnets should match the AZs of your client application")
def test_subnets_stand_in_the_callers_zones(template: Template) -> None:
    placed = template(client_zones={"ids": ["use1-az4", "use1-az6"]})
    subnets = placed.of_type("AWS::EC2::Subnet").values()
    assert sorted(subnet["AvailabilityZoneId"] for subnet in subnets) == ["use1-az4", "use1-az6"]


@says(20, "runtime_client.invoke_endpoint(EndpointName=endpoint_name, ContentType='text/csv'")
def test_the_guides_call_unchanged(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.aws.set_model_servers({"*": taking(0.005)})
    endpoint_name, payload = site.endpoint({}, wait=False), b"5.1,3.5,1.4,0.2"
    site.settle(endpoint_name)
    for name, value in site.aws.environment().items():
        monkeypatch.setenv(name, value)

    runtime_client = boto3.client("sagemaker-runtime")
    response = runtime_client.invoke_endpoint(
        EndpointName=endpoint_name, ContentType="text/csv", Body=payload
    )

    assert response["ContentType"] == "text/csv"
    assert response["Body"].read() == payload  # the simulated model's answer
