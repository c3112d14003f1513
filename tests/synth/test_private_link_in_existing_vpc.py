"""An interface endpoint in a VPC that has other callers: what it takes over, and what it leaves."""

from __future__ import annotations

import json

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam

from low_latency_endpoint import (
    ClientZones,
    EndpointOptions,
    RuntimePrivateLink,
    WarmUpOptions,
    WarmUpPayload,
    ZoneAlignedNetwork,
)

from .conftest import Parts, by_action, warnings_after_synth
from .iam_decisions import ACCOUNT, allows

STRANGER = "999999999999"
STEM = f"arn:aws:sagemaker:us-east-1:{ACCOUNT}"
ASYNC, INVOKE = "sagemaker:InvokeEndpointAsync", "sagemaker:InvokeEndpoint"
TAKES_OVER = "resolve to this interface endpoint for every caller"


def existing_network(stack):
    parts = Parts()
    return parts.network_in(stack, parts.vpc(stack, vpc_cidr_block="10.0.0.0/16"))


def pattern(stack, parts, **given):
    return parts.pattern(stack, endpoint=EndpointOptions(endpoint_name="sentiment"), **given)


def lets_through(template, action, resource, account=ACCOUNT):
    policy = template.interface()["PolicyDocument"]
    return allows(policy, action, resource, aws_PrincipalAccount=account)


def takeover_warnings(scope):
    return warnings_after_synth(scope, TAKES_OVER)


# --- the policy --------------------------------------------------------------------------------

OTHERS = [
    (INVOKE, "endpoint/another"),
    (ASYNC, "endpoint/another"),
    (ASYNC, "endpoint/sentiment"),
    ("sagemaker:InvokeEndpointWithResponseStream", "endpoint/another"),
    ("sagemaker:InvokeEndpointWithBidirectionalStream", "endpoint/another"),
    (INVOKE, "inference-component/another"),
]


@pytest.mark.parametrize(("action", "resource"), OTHERS)
def test_other_callers_of_an_existing_vpc_keep_their_calls(
    stack, parts, template_of, action, resource
):
    pattern(stack, parts, network=existing_network(stack))
    template = template_of(stack)
    assert lets_through(template, action, f"{STEM}:{resource}")
    assert not lets_through(template, action, f"{STEM}:{resource}", STRANGER)


def test_they_keep_the_openai_path_too_and_nothing_else_passes(stack, template_of):
    RuntimePrivateLink(stack, "Link", network=existing_network(stack))
    template = template_of(stack)
    assert lets_through(template, "sagemaker:CallWithBearerToken", "*")
    for action in ("sagemaker:DeleteEndpoint", "s3:GetObject"):
        assert not lets_through(template, action, f"{STEM}:endpoint/another")


def test_a_vpc_of_the_same_app_is_an_existing_one(stack, template_of):
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-east-1a", "us-east-1b"])
    zones = ClientZones.of_names("us-east-1a", "us-east-1b")
    RuntimePrivateLink(
        stack,
        "Link",
        network=ZoneAlignedNetwork.in_vpc(stack, "Network", vpc=vpc, client_zones=zones),
    ).serve("sentiment")
    assert lets_through(template_of(stack), ASYNC, f"{STEM}:endpoint/another")


@pytest.mark.parametrize(
    ("network", "narrow_policy", "wide"),
    [
        (existing_network, None, True),
        (existing_network, True, False),
        (existing_network, False, True),
        (None, None, False),
        (None, True, False),
        (None, False, True),
    ],
)
def test_narrowing_is_a_choice(stack, parts, template_of, network, narrow_policy, wide):
    link = parts.link(stack, (network or parts.network)(stack), narrow_policy=narrow_policy)
    link.serve("sentiment")
    template = template_of(stack)
    assert lets_through(template, INVOKE, f"{STEM}:endpoint/sentiment")
    for action in (INVOKE, ASYNC):
        assert lets_through(template, action, f"{STEM}:endpoint/another") is wide


# --- bidirectional streaming and the OpenAI-compatible path --------------------------------------


@pytest.mark.parametrize(
    "action",
    [
        "sagemaker:InvokeEndpointWithBidirectionalStream",
        INVOKE,
        "sagemaker:InvokeEndpointWithResponseStream",
    ],
)
def test_bidirectional_calls_pass_whatever_their_action_is_called(
    stack, parts, template_of, action
):
    link = parts.link(stack, bidirectional_streaming=True)
    link.serve("sentiment")
    template = template_of(stack)
    assert lets_through(template, action, f"{STEM}:endpoint/sentiment")
    assert not lets_through(template, action, f"{STEM}:endpoint/another")


@pytest.mark.parametrize("openai", [False, True])
def test_bearer_tokens_pass_a_narrow_policy_on_request(stack, parts, template_of, openai):
    link = RuntimePrivateLink(stack, "Link", network=parts.network(stack), openai=openai)
    link.serve("sentiment")
    template = template_of(stack)
    assert lets_through(template, "sagemaker:CallWithBearerToken", "*") is openai
    assert not lets_through(template, "sagemaker:CallWithBearerToken", "*", STRANGER)
    assert not lets_through(template, INVOKE, f"{STEM}:endpoint/another")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, {INVOKE, "sagemaker:InvokeEndpointWithResponseStream"}),
        (
            {"openai": True},
            {INVOKE, "sagemaker:InvokeEndpointWithResponseStream", "sagemaker:CallWithBearerToken"},
        ),
        ({"bidirectional_streaming": True}, {"sagemaker:InvokeEndpoint*"}),
    ],
)
def test_a_caller_gets_what_its_way_of_calling_needs(stack, parts, template_of, given, wanted):
    endpoint = parts.endpoint(stack)
    caller = iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
    grant = endpoint.grant_invoke(caller, **given)
    assert grant.success
    (policy,) = [
        each
        for each in template_of(stack).of_type("AWS::IAM::Policy").values()
        if "Caller" in each["Roles"][0]["Ref"]
    ]
    given = by_action(policy["PolicyDocument"]["Statement"])
    assert set(given) == wanted
    on_all = {action for action, statement in given.items() if statement["Resource"] == "*"}
    assert on_all <= {"sagemaker:CallWithBearerToken"}  # takes no resource


# --- the warning -------------------------------------------------------------------------------


def test_an_existing_vpc_is_told_what_is_redirected(stack):
    link = RuntimePrivateLink(stack, "Link", network=existing_network(stack))
    (found,) = takeover_warnings(stack)
    assert takeover_warnings(link) == [found]
    for words in (
        "runtime.sagemaker.us-east-1.",
        "callers",
        "time out",
        "allow_from(",
        "Peer.ipv4",
        "private_dns=False",
        "endpoint_policy=False",
        "low-latency-endpoint:privateDnsTakesOver",
    ):
        assert words in found, words


def test_a_region_that_only_the_deployment_knows_is_no_token_in_the_text():
    stack = cdk.Stack(cdk.App(), "Anywhere")
    RuntimePrivateLink(stack, "Link", network=existing_network(stack))
    (found,) = takeover_warnings(stack)
    assert "makes runtime.sagemaker.<region>.<suffix> resolve" in found


@pytest.mark.parametrize(
    ("given", "said", "unsaid"),
    [
        ({"sagemaker_api": True}, "api.sagemaker.us-east-1.", "-"),
        ({"fips": True}, "runtime-fips.sagemaker.us-east-1.", "policy"),
        ({"narrow_policy": True}, "refuses every other endpoint", "-"),
    ],
)
def test_what_is_redirected_and_refused_follows_what_is_made(stack, given, said, unsaid):
    RuntimePrivateLink(stack, "Link", network=existing_network(stack), **given)
    (found,) = takeover_warnings(stack)
    assert said in found
    assert unsaid == "-" or unsaid not in found


@pytest.mark.parametrize("network", [existing_network, None])
@pytest.mark.parametrize("private_dns", [True, False])
def test_who_says_it_on_purpose_is_not_warned(stack, parts, network, private_dns):
    parts.link(stack, (network or parts.network)(stack), private_dns=private_dns)
    assert takeover_warnings(stack) == []


def test_a_new_vpc_has_nobody_to_redirect(stack, parts):
    RuntimePrivateLink(stack, "Link", network=parts.network(stack))
    assert takeover_warnings(stack) == []


def test_one_that_exists_redirects_nothing_new(stack):
    RuntimePrivateLink.from_interface_endpoint(
        stack, "Link", network=existing_network(stack), interface_endpoint=imported(stack)
    )
    assert takeover_warnings(stack) == []


# --- private_dns=False -------------------------------------------------------------------------


def imported(stack):
    return ec2.InterfaceVpcEndpoint.from_interface_vpc_endpoint_attributes(
        stack, "Existing", vpc_endpoint_id="vpce-0123456789abcdef0", port=443
    )


@pytest.mark.parametrize(("fips", "label"), [(False, "runtime"), (True, "runtime-fips")])
def test_without_private_dns_the_name_is_left_alone(stack, template_of, fips, label):
    link = RuntimePrivateLink(
        stack, "Link", network=existing_network(stack), fips=fips, private_dns=False
    )
    assert link.private_dns is False
    # Callers in the VPC connect to the interface endpoint's own name.
    assert stack.resolve(link.dns_name) == stack.resolve(link.regional_dns_name)
    assert link.url == f"https://{link.dns_name}"
    assert set(link.zonal_dns_names) == {"us-east-1a", "us-east-1b"}
    assert stack.resolve(link.private_dns_name)["Fn::Join"][1][0] == f"{label}.sagemaker.us-east-1."
    made = template_of(stack).interface(f"sagemaker.{label}")
    assert made["PrivateDnsEnabled"] is False


def test_it_stands_beside_one_with_private_dns(stack):
    network = existing_network(stack)
    network.vpc.add_interface_endpoint(
        "Theirs", service=ec2.InterfaceVpcEndpointAwsService.SAGEMAKER_RUNTIME, open=False
    )
    RuntimePrivateLink(stack, "Link", network=network, private_dns=False)
    RuntimePrivateLink(stack, "Another", network=network, private_dns=False)
    cdk.App.of(stack).synth()


def test_it_needs_no_dns_settings_of_the_vpc(stack):
    vpc = ec2.Vpc(
        stack, "Vpc", availability_zones=["us-east-1a", "us-east-1b"], enable_dns_hostnames=False
    )
    network = Parts().network_in(stack, vpc)
    RuntimePrivateLink(stack, "Link", network=network, private_dns=False)


def test_other_vpcs_get_the_name_all_the_same(stack, template_of):
    callers = ec2.Vpc.from_vpc_attributes(
        stack, "Callers", vpc_id="vpc-0fedcba9876543210", availability_zones=["us-east-1a"]
    )
    RuntimePrivateLink(
        stack,
        "Link",
        network=existing_network(stack),
        private_dns=False,
        hosted_zone_vpcs=[callers],
    )
    zone = template_of(stack).only("AWS::Route53::HostedZone")
    assert zone["Name"]["Fn::Join"][1][0] == "runtime.sagemaker.us-east-1."


def test_the_patterns_callers_are_told_the_endpoints_own_names(stack, parts, template_of):
    vpc = existing_network(stack).vpc
    made = pattern(
        stack,
        parts,
        vpc=vpc,
        private_dns=False,
        client_zones=ClientZones.of_names("us-east-1a", "us-east-1b"),
    )
    made.output_settings_for_callers()
    regional = stack.resolve(f"https://{made.private_link.regional_dns_name}")
    template = template_of(stack)
    urls = {name: value["Value"] for name, value in template["Outputs"].items() if "Url" in name}
    assert [value for name, value in urls.items() if "Regional" in name] == [regional]
    assert len([name for name in urls if "Zonal" in name]) == 2
    assert template.interface()["PrivateDnsEnabled"] is False
    assert takeover_warnings(stack) == []


def test_load_generators_call_the_endpoints_own_name(stack, parts, template_of):
    network = existing_network(stack)
    link = RuntimePrivateLink(stack, "Link", network=network, private_dns=False)
    parts.fleet(stack, network=network, private_link=link)
    url = stack.resolve(link.url)
    zonal = [stack.resolve(f"https://{name}") for name in link.zonal_dns_names.values()]
    template = template_of(stack)
    # Each worker is told its own zone's name when a run starts.
    description = json.dumps(template.only("AWS::SSM::Parameter")["Value"])
    assert description.count("zonal_urls") == 1
    assert all(
        json.dumps(part)[1:-1] in description
        for name in zonal
        for part in name["Fn::Join"][1]
        if isinstance(part, dict)
    )
    (worker,) = [
        task["ContainerDefinitions"][0]
        for task in template.of_type("AWS::ECS::TaskDefinition").values()
        if task["ContainerDefinitions"][0]["Name"] == "worker"
    ]
    assert worker["Environment"] == [{"Name": "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME", "Value": url}]


REGIONAL = "vpce-0123-abcd.runtime.sagemaker.us-east-1.vpce.amazonaws.com"


def test_the_warm_up_calls_an_adopted_one_by_its_own_name(stack, parts, template_of):
    network = existing_network(stack)
    subnets = [
        ec2.Subnet.from_subnet_id(stack, f"S{n}", f"subnet-0123456789abcdef{n}") for n in "01"
    ]
    unnamed = ZoneAlignedNetwork.in_vpc(
        stack,
        "Unnamed",
        vpc=network.vpc,
        client_zones=ClientZones.of_ids("use1-az1", "use1-az2"),
        subnets=dict(zip(("use1-az1", "use1-az2"), subnets, strict=True)),
    )
    link = RuntimePrivateLink.from_interface_endpoint(
        stack,
        "Link",
        network=unnamed,
        interface_endpoint=imported(stack),
        regional_dns_name=REGIONAL,
        private_dns=False,
    )
    assert link.zonal_dns_names == {}
    assert link.url == f"https://{REGIONAL}"
    pattern(
        stack,
        parts,
        network=unnamed,
        private_link=link,
        warm_up=WarmUpOptions(payload=WarmUpPayload(data={"inputs": "x"})),
    )
    environments = [
        str(function.get("Environment"))
        for function in template_of(stack).of_type("AWS::Lambda::Function").values()
    ]
    assert any(REGIONAL in each for each in environments)
    assert not any("amazonaws.com" in each.replace(REGIONAL, "") for each in environments)


def test_one_made_in_the_app_tells_whether_it_has_private_dns(stack):
    network = existing_network(stack)
    for private_dns in (True, False):
        made = network.vpc.add_interface_endpoint(
            f"Made{private_dns}",
            service=ec2.InterfaceVpcEndpointAwsService.SAGEMAKER_RUNTIME,
            private_dns_enabled=private_dns,
        )
        link = RuntimePrivateLink.from_interface_endpoint(
            stack, f"Link{private_dns}", network=network, interface_endpoint=made
        )
        assert link.private_dns is private_dns


# --- VPCs of other accounts ----------------------------------------------------------------------


@pytest.mark.parametrize("own", [ACCOUNT, None])
def test_an_account_that_is_not_known_is_not_judged(new_stack, parts, own):
    stack = new_stack(region="us-east-1" if own else None)
    theirs = ec2.Vpc(new_stack(app=cdk.App.of(stack), name="Theirs", region=None), "Vpc")
    RuntimePrivateLink(stack, "Link", network=parts.network(stack), hosted_zone_vpcs=[theirs])
