"""What the check takes of the CDK app beside the settings: feature flags, and what was looked up."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from .conftest import ROOT, SHIPPED, Check, Checkout, settings

VPC = "vpc-0123456789abcdef0"
IN_A_VPC = {"network": {"vpc_id": VPC}, "client_zones": {"names": ["us-east-1a", "us-east-1b"]}}
IN_A_VPC["account"] = "123456789012"
KEY = (
    "vpc-provider:account={}:filter.vpc-id=" + VPC + ":region=us-east-1:"
    "returnAsymmetricSubnets=true"
)
OWN = "123456789012"


def looked_up(first_subnet: str, account: str = OWN) -> str:
    """A cdk.context.json, with a VPC that has a subnet in both zones."""
    subnets = [
        {
            "subnetId": subnet,
            "cidr": f"10.{number}.0.0/16",
            "availabilityZone": f"us-east-1{zone}",
            "routeTableId": f"rtb-{number:017x}",
        }
        for number, (zone, subnet) in enumerate((("a", first_subnet), ("b", "subnet-2")))
    ]
    vpc = {
        "vpcId": VPC,
        "vpcCidrBlock": "10.0.0.0/8",
        "ownerAccountId": account,
        "availabilityZones": [],
        "subnetGroups": [{"name": "Isolated", "type": "Isolated", "subnets": subnets}],
    }
    return json.dumps({KEY.format(account): vpc})


def compared(check: Check, *arguments: str) -> dict[str, Any]:
    (file,) = json.loads(check("HEAD~1...HEAD", "--json", *arguments).out)["files"]
    data: dict[str, Any] = file
    return data


def test_a_vpc_that_was_looked_up_is_read_from_the_context(
    check: Check, checkout: Checkout
) -> None:
    """Another subnet in it is a change of the stack, though no setting differs."""
    checkout.commit(
        {"endpoint.yaml": settings(IN_A_VPC), "cdk.context.json": looked_up("subnet-1")}
    )
    checkout.commit({"cdk.context.json": looked_up("subnet-9")})
    file = compared(check)
    assert (file["differences"], file["effect"]) == ([], "deployment")
    assert (file["changed_lookups"], file["not_looked_up"]) == (True, [])
    out = check("HEAD~1...HEAD").out
    assert "changes what the CDK CLI looked up" in out


def test_a_vpc_that_nobody_looked_up_is_said(check: Check, checkout: Checkout) -> None:
    checkout.commit({"endpoint.yaml": settings(IN_A_VPC)})
    checkout.commit({"endpoint.yaml": settings(IN_A_VPC, volume_size_gib=64)})
    file = compared(check)
    assert (file["effect"], file["not_looked_up"]) == ("deployment", [VPC])
    assert f"Not in cdk.context.json: {VPC}" in check("HEAD~1...HEAD").out


def test_a_lookup_of_one_side_alone_is_no_change(check: Check, checkout: Checkout) -> None:
    checkout.commit({"endpoint.yaml": settings(IN_A_VPC)})
    checkout.commit({"cdk.context.json": looked_up("subnet-1")})
    file = compared(check)
    assert (file["effect"], file["changed_lookups"]) == ("nothing", False)


@pytest.mark.parametrize("text", ["[]", "{", '{"a": 1, "a": 2}', "\0"])
def test_a_context_that_is_none_is_a_mistake(check: Check, checkout: Checkout, text: str) -> None:
    checkout.commit({"cdk.context.json": text})
    answer = check("HEAD~1...HEAD")
    assert (answer.code, "LLE228" in answer.out) == (1, True)


@pytest.mark.parametrize("vpc", [7, {}, {"vpcId": 1}, {"subnetGroups": "x"}])
def test_a_lookup_of_another_kind_is_a_mistake(
    check: Check, checkout: Checkout, vpc: object
) -> None:
    """The CDK ends in errors of its own."""
    checkout.commit({"endpoint.yaml": settings(IN_A_VPC)})
    checkout.commit({"cdk.context.json": json.dumps({KEY.format(OWN): vpc})})
    answer = check("HEAD~1...HEAD")
    assert answer.code == 1
    assert "LLE227" in answer.out
    assert "Traceback" not in answer.err


def test_a_lookup_in_cdk_json_goes_before(check: Check, checkout: Checkout) -> None:
    """As with the CDK CLI."""
    checkout.commit(
        {"endpoint.yaml": settings(IN_A_VPC), "cdk.context.json": looked_up("subnet-1")}
    )
    checkout.commit({"cdk.json": json.dumps({"context": json.loads(looked_up("subnet-9"))})})
    assert compared(check)["endpoints"]["sentiment"]["effect"] == "deployment"


def test_the_context_is_that_beside_cdk_json(check: Check, checkout: Checkout) -> None:
    """A former one in a nearer folder hides nothing."""
    files: dict[str, str | None] = {"cdk.json": "{}", "cdk.context.json": looked_up("subnet-1")}
    checkout.commit({**files, "live/a.yaml": settings(IN_A_VPC), "endpoint.yaml": None})
    checkout.commit(
        {"cdk.context.json": looked_up("subnet-9"), "live/cdk.context.json": looked_up("subnet-1")}
    )
    assert compared(check, "--settings=live/a.yaml")["effect"] == "deployment"


@pytest.mark.parametrize("name", ["cdk.json", "cdk.context.json"])
def test_a_link_in_the_place_of_the_context_is_a_mistake(
    check: Check, checkout: Checkout, name: str
) -> None:
    checkout.commit({"endpoint.yaml": settings(IN_A_VPC), name: looked_up("subnet-1")})
    checkout.commit({name: None, "other.json": looked_up("subnet-9")})
    (checkout.folder / name).symlink_to("other.json")
    checkout.commit({})
    answer = check("HEAD~2...HEAD")
    assert (answer.code, "LLE228" in answer.out) == (1, True)


def test_a_lookup_of_another_account_counts(check: Check, checkout: Checkout) -> None:
    """Settings without an account go into any."""
    other = "210987654321"
    anywhere = {name: value for name, value in IN_A_VPC.items() if name != "account"}
    lookups = {**json.loads(looked_up("subnet-1")), **json.loads(looked_up("subnet-1", other))}
    checkout.commit({"endpoint.yaml": settings(anywhere), "cdk.context.json": json.dumps(lookups)})
    later = {**lookups, **json.loads(looked_up("subnet-9", other))}
    checkout.commit({"cdk.context.json": json.dumps(later)})
    file = compared(check)
    assert file["effect"] == "deployment", file["resources"]


def test_flags_of_the_app_count_and_the_rest_is_said(check: Check, checkout: Checkout) -> None:
    """An app that a pull request names is not run; context of its own may mean other settings."""
    flags = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    planted = checkout.folder / "planted"
    evil = {"aws:cdk:bundling-stacks": ["**"], "settings": "evil.yaml"}
    checkout.commit({"cdk.json": json.dumps({"context": flags})})
    app = {"app": f"touch {planted}", "build": f"touch {planted}", "context": {**flags, **evil}}
    checkout.commit({"cdk.json": json.dumps(app)})
    file = compared(check)
    assert file["effect"] == "not known"
    (row,) = file["resources"]
    assert row["what"].endswith("app, build, aws:cdk:bundling-stacks, settings")
    assert not planted.exists()
    minimised = "@aws-cdk/aws-iam:minimizePolicies"
    checkout.commit(
        {"cdk.json": json.dumps({**app, "context": {**flags, **evil, minimised: False}})}
    )
    file = compared(check)
    assert (file["differences"], file["effect"]) == ([], "in place")


def test_what_only_the_template_shows_is_a_mistake(check: Check, checkout: Checkout) -> None:
    """16 endpoints are more resources than a stack has, by CloudFormation's 500."""
    one = SHIPPED["endpoints"]["sentiment"]
    many = {f"e{number}": {**one, "endpoint_name": f"e{number}"} for number in range(16)}
    checkout.commit({"endpoint.yaml": yaml.safe_dump({**SHIPPED, "endpoints": many})})
    answer = check("HEAD~1...HEAD")
    assert answer.code == 1
    assert "**:x: Mistakes in endpoint.yaml: nothing of it can be deployed**" in answer.out
    assert "LLE384" in answer.out
    assert "LowLatencyEndpoint/e" in answer.out
