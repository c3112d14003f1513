"""A VPC that its owner shares by AWS RAM: both stacks of the page, each in its account.

https://docs.aws.amazon.com/vpc/latest/userguide/vpc-share-limitations.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from aws_cdk import DefaultStackSynthesizer
from aws_cdk import aws_ec2 as ec2
from botocore.exceptions import ClientError
from roles_under_test import allow, give_role

from local_sagemaker import DeployedStack, LocalAws, delete_stack, deploy_template
from local_sagemaker.connections import new_client
from low_latency_endpoint import ClientZones, RuntimePrivateLink, ZoneAlignedNetwork
from low_latency_endpoint.operate.preflight import run_preflight
from low_latency_endpoint.settings import parse_settings
from tests.deploy.small_stacks import REGION, REGISTRY, network_in, stack_in, synthesised
from tests.deploy.watched_rights import Watch
from tests.docs.test_shared_vpc import BLOCKS, TEXT

OWNER, PARTICIPANT, THIRD = "210987654321", "123456789012", "333333333333"


@pytest.fixture
def aws(clean_aws: LocalAws) -> LocalAws:
    clean_aws.add_image(f"{REGISTRY}/ranker:1")
    clean_aws.add_image(f"{REGISTRY}/ranker:2")
    return clean_aws


@pytest.fixture
def owner(aws: LocalAws) -> LocalAws:
    return aws.assume_role(f"arn:aws:iam::{OWNER}:role/OrganizationAccountAccessRole")


@pytest.fixture
def page(tmp_path: Path) -> Callable[..., Path]:
    """Synthesises a stack of docs/how-to/shared-vpc.md, with changes of its text."""

    def synthesise(stack: int, changes: Mapping[str, str]) -> Path:
        folder, text = tmp_path / f"{len(list(tmp_path.iterdir()))}", BLOCKS[stack]
        for old, new in {"App()": f"App(outdir={str(folder)!r})", **changes}.items():
            assert old in text
            text = text.replace(old, new)
        exec(text, {})
        return folder

    return synthesise


def ids_of(network: DeployedStack) -> dict[str, str]:
    """What stands in the participant's part of the page, and what the owner really has."""
    made = network.outputs
    return {
        "vpc-0123456789abcdef0": made["VpcId"],
        "subnet-0123456789abcdef0": made["Subnetuse1az1"],
        "subnet-0123456789abcdef1": made["Subnetuse1az2"],
        "vpce-0123456789abcdef0": made["InterfaceEndpoint"],
    }


# --- both stacks of the page

_OF_FUNCTIONS = [
    "iam:CreateRole",
    "iam:DeleteRole",
    "iam:DeleteRolePolicy",
    "iam:ListAttachedRolePolicies",
    "iam:ListRolePolicies",
    "iam:PassRole",
    "iam:PutRolePolicy",
    "lambda:CreateFunction",
    "lambda:DeleteFunction",
    "lambda:InvokeFunction",
    "logs:CreateLogGroup",
    "logs:DeleteLogGroup",
    "logs:PutRetentionPolicy",
]
OF_OWNER = [
    *_OF_FUNCTIONS,
    "ec2:AssociateRouteTable",
    "ec2:AuthorizeSecurityGroupEgress",
    "ec2:AuthorizeSecurityGroupIngress",
    "ec2:CreateFlowLogs",
    "ec2:CreateRouteTable",
    "ec2:CreateSecurityGroup",
    "ec2:CreateSubnet",
    "ec2:CreateTags",
    "ec2:CreateVpc",
    "ec2:CreateVpcEndpoint",
    "ec2:DeleteFlowLogs",
    "ec2:DeleteRouteTable",
    "ec2:DeleteSecurityGroup",
    "ec2:DeleteSubnet",
    "ec2:DeleteVpc",
    "ec2:DeleteVpcEndpoints",
    "ec2:DescribeNetworkAcls",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeVpcEndpoints",
    "ec2:DisassociateRouteTable",
    "ec2:ModifyVpcAttribute",
    "ec2:ModifyVpcEndpoint",
    "ec2:RevokeSecurityGroupEgress",
    "ram:AssociateResourceShare",
    "ram:CreateResourceShare",
    "ram:DeleteResourceShare",
]
OF_PARTICIPANT = [
    *_OF_FUNCTIONS,
    "cloudwatch:DeleteAlarms",
    "cloudwatch:DeleteDashboards",
    "cloudwatch:PutCompositeAlarm",
    "cloudwatch:PutDashboard",
    "cloudwatch:PutMetricAlarm",
    "ec2:AuthorizeSecurityGroupEgress",
    "ec2:DeleteSecurityGroup",
    "ec2:RevokeSecurityGroupEgress",
    "sagemaker:CreateEndpoint",
    "sagemaker:CreateEndpointConfig",
    "sagemaker:CreateModel",
    "sagemaker:DeleteEndpoint",
    "sagemaker:DeleteEndpointConfig",
    "sagemaker:DeleteModel",
    "sagemaker:DescribeEndpoint",
    "sagemaker:UpdateEndpoint",
]
"""On the participant's own; of the owner's it needs `ec2:CreateSecurityGroup` in the VPC."""


def deploying_role(aws: LocalAws, *statements: dict[str, Any]) -> str:
    return give_role(aws, "deploying", *statements, services=("cloudformation",))


def invoke(aws: LocalAws) -> Any:
    """Call the endpoint through the owner's interface endpoint in one zone."""
    client = new_client("sagemaker-runtime", REGION, aws.runtime_url("use1-az1"), aws.credentials)
    return client.invoke_endpoint(EndpointName="ranking", Body=b"x")["Body"].read()


def test_both_stacks_are_deployed_with_the_rights_that_they_need(
    aws: LocalAws, owner: LocalAws, page: Callable[..., Path], watch: Watch
) -> None:
    owners = deploying_role(owner, allow(OF_OWNER))
    network = deploy_template(owner, page(0, {}), "SharedNetwork", role_arn=owners)
    ids, own = ids_of(network), f"arn:aws:ec2:{REGION}:{PARTICIPANT}:security-group/*"
    vpc = f"arn:aws:ec2:{REGION}:{OWNER}:vpc/{network.outputs['VpcId']}"
    participants = deploying_role(
        aws,
        allow([action for action in OF_PARTICIPANT if not action.startswith("ec2:")]),
        allow([action for action in OF_PARTICIPANT if action.startswith("ec2:")], own),
        allow("ec2:CreateSecurityGroup", [own, vpc]),
    )
    deploy_template(aws, page(1, ids), "Ranking", role_arn=participants)
    endpoint = aws.client("sagemaker").describe_endpoint(EndpointName="ranking")
    assert endpoint["EndpointStatus"] == "InService"
    cards = aws.client("ec2").describe_network_interfaces()["NetworkInterfaces"]
    assert {(card["OwnerId"], card["VpcId"]) for card in cards} == {
        (PARTICIPANT, network.outputs["VpcId"])
    }
    assert invoke(aws) == b"x"

    others = {"accounts=[ML_ACCOUNT]": f"accounts=['{THIRD}']"}
    deploy_template(owner, page(0, others), "SharedNetwork", role_arn=owners)
    with pytest.raises(ClientError, match="no VPC endpoint policy allows"):
        invoke(aws)
    more = {"[ML_ACCOUNT]": f"[ML_ACCOUNT, '{THIRD}']"}
    deploy_template(owner, page(0, more), "SharedNetwork", role_arn=owners)
    assert invoke(aws) == b"x"
    newer = page(1, ids | {"ranker:1": "ranker:2"})
    deploy_template(aws, newer, "Ranking", role_arn=participants)

    delete_stack(aws, "Ranking")
    delete_stack(owner, "SharedNetwork")
    assert not [each for each in watch.denied if each[0] in (owners, participants)]
    needed = {role: {a for r, _, a in watch.needed if r == role} for role in (owners, participants)}
    assert needed[owners] == set(OF_OWNER)
    assert needed[participants] == {*OF_PARTICIPANT, "ec2:CreateSecurityGroup"}


# --- what a participant's stack may not


@pytest.fixture
def network(owner: LocalAws, page: Callable[..., Path]) -> DeployedStack:
    """The owner's stack."""
    return deploy_template(owner, page(0, {}), "SharedNetwork")


def mistaken(folder: Path, made: Mapping[str, str], adopts: bool) -> Path:
    """A participant's stack that does not say whose the VPC is, and takes it for its own."""
    stack = stack_in(folder, "Mistaken")
    vpc = ec2.Vpc.from_vpc_attributes(
        stack, "Vpc", vpc_id=made["VpcId"], availability_zones=["us-east-1a", "us-east-1b"]
    )
    zones = ("use1-az1", "use1-az2")
    of_zone = {z: made[f"Subnet{z.replace('-', '')}"] for z in zones}
    network = ZoneAlignedNetwork.in_vpc(
        stack,
        "Network",
        vpc=vpc,
        client_zones=ClientZones.of_ids(*zones),
        subnets={zone: ec2.Subnet.from_subnet_id(stack, zone, of_zone[zone]) for zone in zones},
    )
    if not adopts:
        RuntimePrivateLink(stack, "Link", network=network)
        return synthesised(stack)
    group = ec2.SecurityGroup.from_security_group_id(stack, "Group", made["InterfaceEndpointGroup"])
    theirs = ec2.InterfaceVpcEndpoint.from_interface_vpc_endpoint_attributes(
        stack,
        "Theirs",
        vpc_endpoint_id=made["InterfaceEndpoint"],
        port=443,
        security_groups=[group],
    )
    link = RuntimePrivateLink.from_interface_endpoint(
        stack, "Link", network=network, interface_endpoint=theirs
    )
    link.allow_from(ec2.Peer.ipv4("10.0.0.0/16"))
    return synthesised(stack)


@pytest.mark.parametrize(
    ("adopts", "operation"), [(False, "CreateVpcEndpoint"), (True, "AuthorizeSecurityGroupIngress")]
)
def test_a_stack_that_takes_the_vpc_for_its_own_is_refused(
    aws, network, tmp_path, adopts, operation
):
    folder = mistaken(tmp_path / "mistaken", network.outputs, adopts)
    failed = deploy_template(aws, folder, "Mistaken", expect_failure=True)
    assert failed.status == "ROLLBACK_COMPLETE"
    refusal = f"not authorized to perform {operation} operation. A subnet in this vpc is shared"
    assert refusal in str(failed.failure_reason)


def test_without_the_owner_the_models_role_has_no_right_to_its_subnets(aws, network, page):
    stack = page(1, ids_of(network) | {f'    owner="{OWNER}",\n': ""})
    failed = deploy_template(aws, stack, "Ranking", expect_failure=True)
    subnet = f"arn:aws:ec2:{REGION}:{OWNER}:subnet/{network.outputs['Subnetuse1az1']}"
    assert failed.status == "ROLLBACK_COMPLETE"
    assert f"ec2:CreateNetworkInterface on resource: {subnet}" in str(failed.failure_reason)


# --- what preflight says before

SETTINGS = re.search(r"^In a settings file:\n\n```yaml\n(.*?)^```", TEXT, re.S | re.M)


@pytest.mark.parametrize(
    ("change", "status", "evidence"),
    [
        ({}, "pass", f"of account {OWNER}, whose interface endpoint is adopted"),
        ({"owner": THIRD}, "fail", f"of account {OWNER}, not of {THIRD}"),
        ({"owner": None}, "fail", f"of account {OWNER}, which shares it: only the owner makes"),
    ],
)
def test_preflight_compares_the_owner(aws, network, change, status, evidence):
    assert SETTINGS is not None
    text = SETTINGS[1]
    for shown, real in ids_of(network).items():
        text = text.replace(shown, real)
    stated = yaml.safe_load(text)
    stated["network"] |= change
    if change == {"owner": None}:
        del stated["private_link"], stated["network"]["owner"]
    settings = parse_settings(
        yaml.safe_dump(
            {
                "stack_name": "Ranking",
                "account": PARTICIPANT,
                "region": REGION,
                "client_zones": {"ids": list(stated["network"]["subnets"])},
                "endpoints": {
                    "ranking": {
                        "endpoint_name": "ranking",
                        "containers": [{"image": {"ecr": {"repository": "ranker", "tag": "1"}}}],
                        "instance_type": "ml.m5.xlarge",
                        "latency": {"p99": "200ms"},
                    }
                },
                **stated,
            }
        )
    )
    found = {row.id: row for row in run_preflight(settings, aws.client, REGION).results}
    assert (found["LLP210"].status, evidence in found["LLP210"].evidence) == (status, True)
    for reads in ("LLP205", "LLP206"):
        assert found[reads].status == "pass", found[reads]
    if not change:
        assert found["LLP204"].status == "unknown"
        assert "EC2 does not list" in found["LLP204"].evidence


# --- whom the owner lets in


def template(folder: Path, **guests: Any) -> dict[str, Any]:
    synthesizer = DefaultStackSynthesizer(generate_bootstrap_version_rule=False)
    stack = stack_in(folder, "Shared", synthesizer=synthesizer)
    RuntimePrivateLink(stack, "Link", network=network_in(stack), **guests)
    made: dict[str, Any] = json.loads((synthesised(stack) / stack.template_file).read_text())
    return made


def let_in(aws: LocalAws) -> str:
    """The policy of the interface endpoint."""
    found = aws.client("ec2").describe_vpc_endpoints()["VpcEndpoints"]
    [link] = [each for each in found if each["ServiceName"].endswith("sagemaker.runtime")]
    return str(link["PolicyDocument"])


def test_accounts_and_an_organization_are_let_in_one_after_the_other(aws, tmp_path):
    deploy_template(aws, template(tmp_path / "1", accounts=["210987654321"]), "Shared")
    assert "210987654321" in let_in(aws)
    guests = {"accounts": ["210987654321", "3" * 12], "organization": "o-abcdefghij"}
    deploy_template(aws, template(tmp_path / "2", **guests), "Shared")
    assert "3" * 12 in let_in(aws)
    assert "o-abcdefghij" in let_in(aws)
    delete_stack(aws, "Shared")
    assert not aws.client("ec2").describe_vpc_endpoints()["VpcEndpoints"]
