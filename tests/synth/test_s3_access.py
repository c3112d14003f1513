"""The policy of the S3 gateway endpoint, and the function that remembers former names."""

from __future__ import annotations

import json
import runpy
import sys
import types
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3

import low_latency_endpoint.synthesis
from low_latency_endpoint import ClientZones, CoreDump, DataCapture, ModelData
from low_latency_endpoint.facts.stack_limits import LONGEST_ANSWER
from low_latency_endpoint.synthesis.arns import bucket_arn
from low_latency_endpoint.synthesis.rights import reading
from tests.refusals import refused

from .conftest import warnings_in
from .iam_decisions import ACCOUNT, allows, text

OTHERS = "999999999999"
LAYER = "arn:aws:s3:::prod-us-east-1-starport-layer-bucket/abc"


@pytest.fixture
def passes(template_of):
    """Asks the gateway endpoint of a stack's template."""

    def build(stack):
        template = template_of(stack)
        (gateway,) = [
            each
            for each in template.of_type("AWS::EC2::VPCEndpoint").values()
            if each.get("VpcEndpointType") == "Gateway"
        ]

        def ask(action, resource, account=OTHERS, **keys):
            return allows(
                gateway.get("PolicyDocument"),
                f"s3:{action}",
                f"arn:aws:s3:::{resource}".replace("arn:aws:s3:::arn:", "arn:"),
                aws_ResourceAccount=account,
                **keys,
            )

        return ask

    return build


def test_nothing_is_written_into_buckets_of_others(stack, parts, passes):
    parts.serving(stack, data=ModelData.from_uri("s3://models/distilbert/model.tar.gz"))
    ask = passes(stack)
    assert not ask("PutObject", "loot/weights")
    assert not ask("GetObject", "loot/tools")
    assert not ask("PutObject", "models/distilbert/model.tar.gz")
    # The account's own are the matter of roles and bucket policies.
    assert ask("PutObject", "ours/anything", account=ACCOUNT)
    assert ask("ListBucket", "ours", account=ACCOUNT)


def test_image_layers_are_read_whosever_they_are(stack, parts, passes):
    parts.network(stack)
    ask = passes(stack)
    assert ask("GetObject", LAYER)
    assert not ask("PutObject", LAYER)


def test_model_data_of_another_account_arrives(stack, parts, passes):
    parts.serving(stack, data=ModelData.from_uri("s3://jumpstart-cache-prod-us-east-1/m.tar.gz"))
    parts.serving(stack, "Prefix", data=ModelData.from_uri("s3://theirs/llama/"))
    ask = passes(stack)
    # The next version lies beside this one, under another key: which objects is the role's matter.
    for key in ("m.tar.gz", "other.tar.gz"):
        assert ask("GetObject", f"jumpstart-cache-prod-us-east-1/{key}")
    assert not ask("ListBucket", "jumpstart-cache-prod-us-east-1")
    assert ask("GetObject", "theirs/llama/config.json")
    assert ask("ListBucket", "theirs", s3_prefix="llama/")
    assert not ask("PutObject", "theirs/llama/config.json")


def test_what_a_container_fetches_by_itself_is_named_in_its_environment(stack, parts, passes):
    parts.serving(
        stack, environment={"OPTION_MODEL_ID": "s3://theirs/llama/", "HF_TASK": "text-generation"}
    )
    assert passes(stack)("GetObject", "theirs/llama/model-00001.safetensors")


def test_captured_data_and_core_dumps_leave(stack, parts, passes):
    parts.configuration(
        stack,
        data_capture=DataCapture(s3="s3://archive/captured"),
        variants=[parts.variant(stack, core_dump=CoreDump(s3="s3://archive/cores/"))],
    )
    ask = passes(stack)
    assert ask("PutObject", "archive/captured/2026/a.jsonl")
    assert ask("PutObject", "archive/cores/core.1")
    assert not ask("PutObject", "archive/elsewhere")
    assert not ask("GetObject", "archive/captured/2026/a.jsonl")


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("imported", [False, True])
def test_a_bucket_is_added_by_hand(stack, parts, passes, write, imported):
    bucket = s3.Bucket.from_bucket_name(stack, "Theirs", "theirs") if imported else "theirs"
    parts.network(stack).allow_s3(bucket, write=write)
    ask = passes(stack)
    assert ask("GetObject", "theirs/a")
    assert ask("ListBucket", "theirs")
    assert ask("PutObject", "theirs/a") is write
    assert not ask("DeleteBucket", "theirs")


def test_a_narrow_policy_names_all_that_passes(stack, parts, passes):
    network = parts.network(stack, narrow_s3=True)
    parts.model(stack, network=network)  # s3://models/distilbert/model.tar.gz
    network.allow_s3("callers")
    ask = passes(stack)
    assert ask("GetObject", "models/distilbert/model.tar.gz", account=ACCOUNT)
    assert ask("GetObject", "callers/a", account=ACCOUNT)
    assert ask("GetObject", LAYER)
    assert not ask("GetObject", "ours/anything", account=ACCOUNT)


@pytest.mark.parametrize("narrow", [False, True])
def test_a_bucket_of_another_stack_makes_no_circle(new_stack, parts, passes, narrow):
    """Its stack may need the network's; it is made in the app, so it is the account's."""
    serving = new_stack()
    network = parts.network(serving, narrow_s3=narrow)
    later = new_stack(app=cdk.App.of(serving), name="Later")
    bucket = s3.Bucket(later, "Models")
    parts.model(
        later,
        network=network,
        containers=[parts.container(data=ModelData.from_s3(bucket, "llama/"))],
    )
    warned = [text for text in warnings_in(serving) if "s3PolicyOfTheAccount" in text]
    assert len(warned) == (1 if narrow else 0)
    assert passes(serving)("GetObject", "models-1x2y/llama/a", account=ACCOUNT)


def existing(stack, parts, **given):
    vpc = parts.vpc(stack, private_subnet_route_table_ids=["rtb-0123456789abcdef0"] * 2)
    return parts.network_in(stack, vpc, **given)


def test_the_endpoints_of_a_vpc_that_exists_stay_as_they_are(stack, parts, template_of):
    network = existing(stack, parts)
    network.allow_s3("theirs")
    parts.model(stack, network=network)
    assert not template_of(stack).of_type("AWS::EC2::VPCEndpoint")


def test_more_buckets_than_a_policy_holds_are_refused(stack, parts):
    network = parts.network(stack)
    for number in range(50):
        network.allow_s3(f"{'b' * 61}{number:02}", write=True)
    with refused("LLE340"):
        network.allow_s3("one-too-many")


@pytest.mark.parametrize("region", ["us-east-1", "us-gov-west-1"])
def test_what_is_named_fits_the_policy(new_stack, parts, template_of, region):
    """AWS counts 20,480 characters; names and keys may be as long as they may be."""
    stack = new_stack(region=region)
    kind = ClientZones.of_names(f"{region}a", f"{region}b")
    network = parts.network(stack, client_zones=kind)
    for number in range(49):
        network.allow_s3(f"{'b' * 61}{number:02}", write=True)
    for number in range(9):
        network.let_into_s3(reading(bucket_arn("c" * 63), f"{'k' * 1000}{number}/"))
    gateway = template_of(stack).only("AWS::EC2::VPCEndpoint")
    policy = json.dumps(resolved(gateway["PolicyDocument"]), separators=(",", ":"))
    assert len(policy.replace("arn:aws:", "arn:aws-us-gov:")) <= 20_480
    assert allows(
        gateway["PolicyDocument"],
        "s3:GetObject",
        f"arn:aws:s3:::{'c' * 63}/k",
        aws_ResourceAccount=OTHERS,
    )


def resolved(value):
    """A policy as it is sent, without intrinsics."""
    if isinstance(value, dict) and list(value) in (["Fn::Join"], ["Ref"]):
        return text(value)
    if isinstance(value, dict):
        return {key: resolved(each) for key, each in value.items()}
    return [resolved(each) for each in value] if isinstance(value, list) else value


LIST = "pl-63a5400a"


@pytest.mark.parametrize("exists", [False, True])
def test_models_reach_nothing_but_s3_where_its_prefix_list_is_given(
    stack, parts, template_of, exists
):
    listed = ec2.PrefixList.from_prefix_list_id(stack, "S3", LIST)
    if exists:
        existing(stack, parts, s3_prefix_list=listed)
    else:
        parts.network(stack, s3_prefix_list=listed)
    template = template_of(stack)
    (rule,) = template.of_type("AWS::EC2::SecurityGroupEgress").values()
    assert (rule["DestinationPrefixListId"], rule["FromPort"], rule["ToPort"]) == (LIST, 443, 443)
    # EC2 gives a group without any rule of its own one that allows everything.
    (own,) = template.only("AWS::EC2::SecurityGroup")["SecurityGroupEgress"]
    assert own["CidrIp"] == "255.255.255.255/32"


def test_models_reach_a_service_that_is_added(stack, parts, template_of):
    listed = ec2.PrefixList.from_prefix_list_id(stack, "S3", LIST)
    network = parts.network(stack, s3_prefix_list=listed)
    network.add_interface_endpoint("Secrets", ec2.InterfaceVpcEndpointAwsService.SECRETS_MANAGER)
    model_group = stack.resolve(network.model_security_group.security_group_id)
    template = template_of(stack)
    (made,) = [
        each
        for each in template.of_type("AWS::EC2::VPCEndpoint").values()
        if each.get("VpcEndpointType") == "Interface"
    ]
    assert made["PrivateDnsEnabled"] is True
    assert made["ServiceName"].endswith(".secretsmanager")
    (group,) = made["SecurityGroupIds"]
    (let_in,) = template.of_type("AWS::EC2::SecurityGroupIngress").values()
    assert (let_in["GroupId"], let_in["SourceSecurityGroupId"]) == (group, model_group)
    let_out = template.of_type("AWS::EC2::SecurityGroupEgress").values()
    assert [rule["GroupId"] for rule in let_out] == [model_group] * 2
    assert [
        rule.get("DestinationPrefixListId") or rule["DestinationSecurityGroupId"]
        for rule in let_out
    ] == [LIST, group]
    read = ("secretsmanager:GetSecretValue", "arn:aws:secretsmanager:us-east-1:1:secret:a")
    assert allows(made["PolicyDocument"], *read, aws_PrincipalAccount=ACCOUNT)
    assert not allows(made["PolicyDocument"], *read, aws_PrincipalAccount=OTHERS)


SOURCE = (
    Path(low_latency_endpoint.synthesis.__file__).parent
    / "custom_resource_functions"
    / "former_names.py"
)


@pytest.fixture
def answer(monkeypatch):
    """Runs the function on one event; gives status, data and reason."""
    sent = []
    cfnresponse = types.ModuleType("cfnresponse")
    cfnresponse.SUCCESS, cfnresponse.FAILED = "SUCCESS", "FAILED"
    cfnresponse.send = lambda event, context, status, data, name, reason="": sent.append(
        (status, data, reason)
    )
    monkeypatch.setitem(sys.modules, "cfnresponse", cfnresponse)
    handler = runpy.run_path(str(SOURCE))["handler"]

    def run(kind, now, before=None):
        event = {
            "RequestType": kind,
            "LogicalResourceId": "Former",
            "ResourceProperties": {"ServiceToken": "arn", "ServiceTimeout": "120", "Read": now},
        }
        if before is not None:
            event["OldResourceProperties"] = {"ServiceToken": "arn", "Read": before}
        handler(event, None)
        return sent[-1]

    return run


def test_what_goes_is_remembered_until_the_next_change(answer):
    assert answer("Update", ["b", "c"], ["a", "b"]) == ("SUCCESS", {"Read": "a"}, "")
    assert answer("Update", ["c"], ["b", "c"]) == ("SUCCESS", {"Read": "b"}, "")


def test_where_nothing_went_a_name_that_is_there_stands_for_it(answer):
    assert answer("Create", ["a", "b"]) == ("SUCCESS", {"Read": "a"}, "")
    assert answer("Update", ["a", "b"], ["a"]) == ("SUCCESS", {"Read": "a"}, "")


def test_more_than_cloudformation_takes_is_refused_and_still_deleted(answer):
    longest = "a" * LONGEST_ANSWER
    assert answer("Update", ["b"], [longest]) == ("SUCCESS", {"Read": longest}, "")
    status, data, reason = answer("Update", ["b"], [f"{longest}a"])
    assert (status, data) == ("FAILED", {})
    assert f"{LONGEST_ANSWER + 1} characters" in reason
    assert "several deployments" in reason
    assert answer("Delete", ["b"]) == ("SUCCESS", {"Read": "b"}, "")
