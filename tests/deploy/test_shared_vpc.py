"""The owner's part of a shared VPC, deployed, updated and deleted.

The participant's part has subnets of another account, and the local AWS has one account: its
template is judged in tests/synth/test_shared_vpc.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import DefaultStackSynthesizer

from local_sagemaker import LocalAws, delete_stack, deploy_template
from low_latency_endpoint import RuntimePrivateLink
from tests.deploy.small_stacks import network_in, stack_in, synthesised


@pytest.fixture
def aws(clean_aws: LocalAws) -> LocalAws:
    return clean_aws


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
