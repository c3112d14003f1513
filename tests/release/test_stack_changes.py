"""What an update does to a resource, by CloudFormation's schemas: templates made up for each rule."""

from __future__ import annotations

import pytest

from tools.release.stack_changes import Effect, changes_of


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


def encrypted(kind, **properties):
    return of("ECR::Repository", EncryptionConfiguration={"EncryptionType": kind}, **properties)


VPC = of("EC2::VPC", CidrBlock="10.0.0.0/16", InstanceTenancy="dedicated")
NAMED = endpoint(EndpointName="a", EndpointConfigName="c")
CONFIGURED = configuration(EndpointConfigName="c", KmsKeyId="k")


@pytest.mark.parametrize(
    ("before", "after", "effect"),
    [
        (endpoint(EndpointName="a"), endpoint(EndpointName="a"), Effect.LEFT),
        ({"Type": "AWS::CDK::Metadata"}, {"Type": "AWS::CDK::Metadata"}, None),
        # Metadata and order are no update.
        (NAMED, {**NAMED, "Metadata": {"x": 1}, "DependsOn": ["B"]}, Effect.LEFT),
        (None, endpoint(), Effect.ADDED),
        (endpoint(), None, Effect.DELETED),
        # createOnlyProperties of the endpoint: its name alone.
        (NAMED, endpoint(EndpointName="b", EndpointConfigName="c"), Effect.REPLACED),
        (NAMED, endpoint(EndpointName="a", EndpointConfigName="d"), Effect.UPDATED),
        # "CloudFormation cannot update a stack when a custom-named resource requires replacing".
        (CONFIGURED, configuration(EndpointConfigName="c", KmsKeyId="l"), Effect.REFUSED),
        (CONFIGURED, configuration(EndpointConfigName="d", KmsKeyId="l"), Effect.REPLACED),
        (endpoint(), of("SNS::Topic"), Effect.REPLACED),
        # Of the encryption of a repository the type and key are createOnlyProperties.
        (encrypted("AES256"), encrypted("KMS"), Effect.REPLACED),
        (
            encrypted("KMS"),
            encrypted("KMS", ImageScanningConfiguration={"ScanOnPush": True}),
            Effect.UPDATED,
        ),
        # InstanceTenancy of a VPC: conditionalCreateOnlyProperties.
        (
            VPC,
            of("EC2::VPC", CidrBlock="10.0.0.0/16", InstanceTenancy="default"),
            Effect.MAY_BE_REPLACED,
        ),
        # The function of a custom resource decides.
        (custom(ServiceToken="f", A=1), custom(ServiceToken="f", A=2), Effect.MAY_BE_REPLACED),
        (custom(ServiceToken="f"), custom(ServiceToken="g"), Effect.REPLACED),
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
        (tracking("b"), Effect.REFUSED),
        (tracking("b", metric="SageMakerInferenceComponentInvocationsPerCopy"), Effect.REPLACED),
        # Of another target both the name and the metric are free.
        (tracking("b", target="endpoint/b/variant/v"), Effect.REPLACED),
        (tracking("a", target="endpoint/b/variant/v"), Effect.REPLACED),
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

    assert effects(both("a"), both("b")) == dict.fromkeys(("Target", "Policy"), Effect.REPLACED)


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
        "C": Effect.REPLACED, "A": Effect.UPDATED, "B": Effect.LEFT,
    }  # fmt: skip


def test_a_replacement_goes_on_through_fixed_properties():
    before = {
        "Vpc": VPC,
        "Subnet": of("EC2::Subnet", VpcId={"Ref": "Vpc"}, CidrBlock="10.0.0.0/24"),
    }
    after = {**before, "Vpc": of("EC2::VPC", CidrBlock="10.1.0.0/16")}
    assert effects(before, after) == {"Vpc": Effect.REPLACED, "Subnet": Effect.REPLACED}


def test_a_parameters_other_default_changes_what_refers_to_it():
    both = {"A": endpoint(EndpointName={"Ref": "Name"})}
    was, now = {"Name": {"Default": "a"}}, {"Name": {"Default": "b"}}
    assert effects(both, both, was=was, now=now) == {"A": Effect.REPLACED}
    assert effects(both, both, was=was, now=was) == {"A": Effect.LEFT}


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
