"""What an update does to a resource, by CloudFormation's schemas: templates made up for each rule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from low_latency_endpoint.change.resource_changes import CDK_METADATA, ResourceEffect, changes_of
from low_latency_endpoint.change.resource_types import WORDS, is_known
from tools.release.resource_schemas import FILE, fixed_by_schema

SNAPSHOTS = sorted((Path(__file__).parents[1] / "synth" / "__snapshots__").rglob("*.json"))


def effects(before, after, **parameters):
    made = changes_of(
        {"Resources": before, "Parameters": parameters.get("was", {})},
        {"Resources": after, "Parameters": parameters.get("now", {})},
    )
    return {name: change.effect for name, change in made.items()}


def endpoint(**properties):
    return {"Type": "AWS::SageMaker::Endpoint", "Properties": properties}


def configuration(**properties):
    return {"Type": "AWS::SageMaker::EndpointConfig", "Properties": properties}


def custom(**properties):
    return {"Type": "Custom::Check", "Properties": properties}


def of(kind, **properties):
    return {"Type": f"AWS::{kind}", "Properties": properties}


def link(preference, **properties):
    return of("EC2::VPCEndpoint", DnsOptions={"PrivateDnsPreference": preference}, **properties)


VPC = of("EC2::VPC", CidrBlock="10.0.0.0/16", InstanceTenancy="dedicated")
NAMED = endpoint(EndpointName="a", EndpointConfigName="c")
CONFIGURED = configuration(EndpointConfigName="c", KmsKeyId="k")


@pytest.mark.parametrize(
    ("before", "after", "effect"),
    [
        (endpoint(EndpointName="a"), endpoint(EndpointName="a"), ResourceEffect.LEFT),
        ({"Type": "AWS::CDK::Metadata"}, {"Type": "AWS::CDK::Metadata"}, None),
        # Metadata and order are no update.
        (NAMED, {**NAMED, "Metadata": {"x": 1}, "DependsOn": ["B"]}, ResourceEffect.LEFT),
        (None, endpoint(), ResourceEffect.ADDED),
        (endpoint(), None, ResourceEffect.DELETED),
        # createOnlyProperties of the endpoint: its name alone.
        (NAMED, endpoint(EndpointName="b", EndpointConfigName="c"), ResourceEffect.REPLACED),
        (NAMED, endpoint(EndpointName="a", EndpointConfigName="d"), ResourceEffect.UPDATED),
        # "CloudFormation cannot update a stack when a custom-named resource requires replacing".
        (CONFIGURED, configuration(EndpointConfigName="c", KmsKeyId="l"), ResourceEffect.REFUSED),
        (CONFIGURED, configuration(EndpointConfigName="d", KmsKeyId="l"), ResourceEffect.REPLACED),
        (endpoint(), of("SQS::Queue"), ResourceEffect.REPLACED),
        # Of the DNS options of a VPC endpoint the preference is among createOnlyProperties.
        (link("ALL_DOMAINS"), link("VERIFIED_DOMAINS_ONLY"), ResourceEffect.REPLACED),
        (link("ALL_DOMAINS"), link("ALL_DOMAINS", PrivateDnsEnabled=True), ResourceEffect.UPDATED),
        # InstanceTenancy of a VPC: conditionalCreateOnlyProperties.
        (
            VPC,
            of("EC2::VPC", CidrBlock="10.0.0.0/16", InstanceTenancy="default"),
            ResourceEffect.MAY_BE_REPLACED,
        ),
        # The function of a custom resource decides.
        (
            custom(ServiceToken="f", A=1),
            custom(ServiceToken="f", A=2),
            ResourceEffect.MAY_BE_REPLACED,
        ),
        (custom(ServiceToken="f"), custom(ServiceToken="g"), ResourceEffect.REPLACED),
    ],
)
def test_what_becomes_of_one_resource(before, after, effect):
    was, now = ({"R": each} if each else {} for each in (before, after))
    assert effects(was, now) == ({"R": effect} if effect else {})


def tracking(name, metric="SageMakerVariantInvocationsPerInstance", target="endpoint/a/variant/v"):
    configuration = {
        "PredefinedMetricSpecification": {"PredefinedMetricType": metric},
        "TargetValue": 70,
    }
    return of(
        "ApplicationAutoScaling::ScalingPolicy",
        PolicyName=name,
        PolicyType="TargetTrackingScaling",
        ScalingTargetId=target,
        TargetTrackingScalingPolicyConfiguration=configuration,
    )


@pytest.mark.parametrize(
    ("after", "effect"),
    [
        # "Only one TargetTrackingScaling policy for a given metric specification is allowed."
        (tracking("b"), ResourceEffect.REFUSED),
        (
            tracking("b", metric="SageMakerInferenceComponentInvocationsPerCopy"),
            ResourceEffect.REPLACED,
        ),
        # Of another target both the name and the metric are free.
        (tracking("b", target="endpoint/b/variant/v"), ResourceEffect.REPLACED),
        (tracking("a", target="endpoint/b/variant/v"), ResourceEffect.REPLACED),
    ],
)
def test_a_tracking_policy_has_no_second_beside_it(after, effect):
    assert effects({"R": tracking("a")}, {"R": after}) == {"R": effect}


def test_a_policy_whose_target_is_replaced_takes_its_name_along():
    def both(endpoint):
        target = of(
            "ApplicationAutoScaling::ScalableTarget",
            ResourceId=f"endpoint/{endpoint}/variant/v",
            MinCapacity=1,
            MaxCapacity=2,
        )
        return {"Target": target, "Policy": tracking("a", target={"Ref": "Target"})}

    assert effects(both("a"), both("b")) == dict.fromkeys(
        ("Target", "Policy"), ResourceEffect.REPLACED
    )


@pytest.mark.parametrize(
    "reference",
    [
        {"Ref": "C"},
        {"Fn::GetAtt": ["C", "EndpointConfigName"]},
        {"Fn::GetAtt": "C.EndpointConfigName"},
        {"Fn::Sub": "${C.EndpointConfigName}"},
        {"Fn::Join": ["", [{"Ref": "C"}]]},
    ],
)
def test_what_refers_to_a_replaced_resource_changes(reference):
    """Every property of a configuration is fixed but its tags."""
    before = {
        "C": configuration(KmsKeyId="k"),
        "A": endpoint(EndpointConfigName=reference),
        "B": endpoint(EndpointConfigName="other"),
    }
    after = {**before, "C": configuration(KmsKeyId="another")}
    assert effects(before, after) == {
        "C": ResourceEffect.REPLACED, "A": ResourceEffect.UPDATED, "B": ResourceEffect.LEFT,
    }  # fmt: skip


def test_a_replacement_goes_on_through_fixed_properties():
    before = {
        "Vpc": VPC,
        "Subnet": of("EC2::Subnet", VpcId={"Ref": "Vpc"}, CidrBlock="10.0.0.0/24"),
    }
    after = {**before, "Vpc": of("EC2::VPC", CidrBlock="10.1.0.0/16")}
    assert effects(before, after) == {
        "Vpc": ResourceEffect.REPLACED,
        "Subnet": ResourceEffect.REPLACED,
    }


def test_a_parameters_other_default_changes_what_refers_to_it():
    both = {"A": endpoint(EndpointName={"Ref": "Name"})}
    was, now = {"Name": {"Default": "a"}}, {"Name": {"Default": "b"}}
    assert effects(both, both, was=was, now=now) == {"A": ResourceEffect.REPLACED}
    assert effects(both, both, was=was, now=was) == {"A": ResourceEffect.LEFT}


def test_what_is_retained_is_said():
    bucket = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "a"}}
    kept = {**bucket, "DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
    other = {**kept, "Properties": {"BucketName": "b"}}
    for before, after, retained in (
        ({"B": kept}, {}, True),
        ({"B": bucket}, {}, False),
        ({"B": kept}, {"B": other}, True),
        ({"B": kept}, {"B": kept}, False),
    ):
        change = changes_of({"Resources": before}, {"Resources": after})["B"]
        assert change.retained is retained


def test_the_schemas_are_those_of_aws():
    """Run: python -m tools.release.resource_schemas"""
    assert json.loads(FILE.read_text(encoding="utf-8")) == fixed_by_schema(WORDS)


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: path.stem)
def test_every_type_of_a_stack_has_a_row(path):
    resources = json.loads(path.read_text(encoding="utf-8"))["Resources"].values()
    kinds = {resource["Type"] for resource in resources} - {CDK_METADATA}
    assert [kind for kind in kinds if not is_known(kind)] == [], "add a row to resource_types.py"
