"""What an update does to a resource, by CloudFormation's schemas: templates made up for each rule."""

from __future__ import annotations

import pytest

from release.stack_changes import Effect, changes_of


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


def test_the_same_template_leaves_everything():
    both = {"A": endpoint(EndpointName="a"), "M": {"Type": "AWS::CDK::Metadata"}}
    assert effects(both, both) == {"A": Effect.LEFT}


def test_metadata_and_order_are_no_update():
    before = {"A": endpoint(EndpointName="a")}
    after = {"A": {**before["A"], "Metadata": {"x": 1}, "DependsOn": ["B"]}}
    assert effects(before, after) == {"A": Effect.LEFT}


def test_another_logical_id_is_another_resource():
    before, after = {"Old": endpoint()}, {"New": endpoint()}
    assert effects(before, after) == {"New": Effect.ADDED, "Old": Effect.DELETED}


def test_a_property_that_cannot_be_updated_replaces():
    """createOnlyProperties of the endpoint: its name alone."""
    before = {"A": endpoint(EndpointName="a", EndpointConfigName="c")}
    assert effects(before, {"A": endpoint(EndpointName="b", EndpointConfigName="c")}) == {
        "A": Effect.REPLACED
    }
    assert effects(before, {"A": endpoint(EndpointName="a", EndpointConfigName="d")}) == {
        "A": Effect.UPDATED
    }


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
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
        "Subnet": {
            "Type": "AWS::EC2::Subnet",
            "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.0.0.0/24"},
        },
    }
    after = {**before, "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.1.0.0/16"}}}
    assert effects(before, after) == {"Vpc": Effect.REPLACED, "Subnet": Effect.REPLACED}


def test_a_replacement_under_the_same_name_is_refused():
    """ "CloudFormation cannot update a stack when a custom-named resource requires replacing"."""
    before = {"C": configuration(EndpointConfigName="c", KmsKeyId="k")}
    after = {"C": configuration(EndpointConfigName="c", KmsKeyId="another")}
    assert effects(before, after) == {"C": Effect.REFUSED}
    after = {"C": configuration(EndpointConfigName="d", KmsKeyId="another")}
    assert effects(before, after) == {"C": Effect.REPLACED}


def test_another_type_replaces():
    after = {"A": {"Type": "AWS::SNS::Topic", "Properties": {}}}
    assert effects({"A": endpoint()}, after) == {"A": Effect.REPLACED}


def test_a_part_of_a_property_can_be_what_is_fixed():
    """Of the encryption of a repository the type and key are createOnlyProperties."""

    def repository(**properties):
        return {"R": {"Type": "AWS::ECR::Repository", "Properties": properties}}

    encrypted = repository(EncryptionConfiguration={"EncryptionType": "KMS"})
    assert effects(repository(EncryptionConfiguration={"EncryptionType": "AES256"}), encrypted) == {
        "R": Effect.REPLACED
    }
    scanned = {"R": {**encrypted["R"]}}
    scanned["R"]["Properties"] = {
        **encrypted["R"]["Properties"], "ImageScanningConfiguration": {"ScanOnPush": True},
    }  # fmt: skip
    assert effects(encrypted, scanned) == {"R": Effect.UPDATED}


def test_what_depends_on_the_value_may_be_replaced():
    """InstanceTenancy of a VPC: conditionalCreateOnlyProperties."""

    def vpc(tenancy):
        properties = {"CidrBlock": "10.0.0.0/16", "InstanceTenancy": tenancy}
        return {"V": {"Type": "AWS::EC2::VPC", "Properties": properties}}

    assert effects(vpc("dedicated"), vpc("default")) == {"V": Effect.MAY_BE_REPLACED}


def test_the_function_of_a_custom_resource_decides():
    def custom(**properties):
        return {"C": {"Type": "Custom::Check", "Properties": properties}}

    assert effects(custom(ServiceToken="f", A=1), custom(ServiceToken="f", A=2)) == {
        "C": Effect.MAY_BE_REPLACED
    }
    assert effects(custom(ServiceToken="f"), custom(ServiceToken="g")) == {"C": Effect.REPLACED}


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
