"""Names that CloudFormation lets one resource have: inline policies of a role, scaling policies."""

from __future__ import annotations

import copy

import pytest
from roles_under_test import allow, document
from stacks_under_test import resource_of

from local_sagemaker import DeploymentFailed, delete_stack, deploy_template

REFUSED = "Policy resource was already managed by another stack or another resource"


def policy(name, role, action="s3:GetObject"):
    rights = document(allow(action))
    return resource_of("AWS::IAM::Policy", PolicyName=name, Roles=[role], PolicyDocument=rights)


def template(**resources):
    return {"Resources": resources}


@pytest.fixture
def role(aws):
    iam = aws.client("iam")
    iam.create_role(RoleName="shared", AssumeRolePolicyDocument="{}")
    yield "shared"
    for name in iam.list_role_policies(RoleName="shared")["PolicyNames"]:
        iam.delete_role_policy(RoleName="shared", PolicyName=name)
    iam.delete_role(RoleName="shared")


def policies_of(aws, role):
    return aws.client("iam").list_role_policies(RoleName=role)["PolicyNames"]


def test_two_resources_of_a_stack_cannot_have_the_same_policy_on_a_role(aws, role):
    failed = deploy_template(
        aws, template(A=policy("same", role), B=policy("same", role)), "twice", expect_failure=True
    )
    assert failed.status == "ROLLBACK_COMPLETE"
    assert REFUSED in failed.failure_reason
    assert policies_of(aws, role) == []
    delete_stack(aws, "twice")


def test_two_stacks_cannot_and_the_first_keeps_its_own(aws, role):
    deploy_template(aws, template(A=policy("same", role)), "first")
    failed = deploy_template(aws, template(A=policy("same", role)), "second", expect_failure=True)
    assert REFUSED in failed.failure_reason
    delete_stack(aws, "second")
    assert policies_of(aws, role) == ["same"]
    delete_stack(aws, "first")
    assert policies_of(aws, role) == []


def test_an_update_cannot_take_the_name_of_another_resource(aws, role):
    before = template(A=policy("a", role), B=policy("b", role))
    deploy_template(aws, before, "renamed")
    after = copy.deepcopy(before)
    after["Resources"]["B"]["Properties"]["PolicyName"] = "a"
    failed = deploy_template(aws, after, "renamed", expect_failure=True)
    assert failed.status == "UPDATE_ROLLBACK_COMPLETE"
    assert REFUSED in failed.failure_reason
    assert sorted(policies_of(aws, role)) == ["a", "b"]
    delete_stack(aws, "renamed")


def test_a_policy_that_moves_to_another_logical_id_meets_itself(aws, role):
    """The new one is made before the old one goes."""
    deploy_template(aws, template(Old=policy("same", role)), "moved")
    failed = deploy_template(aws, template(New=policy("same", role)), "moved", expect_failure=True)
    assert REFUSED in failed.failure_reason
    assert policies_of(aws, role) == ["same"]
    delete_stack(aws, "moved")


def test_the_inline_policies_of_a_roles_own_resource_count(aws):
    made = template(
        Role=resource_of(
            "AWS::IAM::Role",
            AssumeRolePolicyDocument={"Version": "2012-10-17", "Statement": []},
            Policies=[
                {
                    name: value
                    for name, value in policy("act", "")["Properties"].items()
                    if name != "Roles"
                }
            ],
        ),
        Policy=policy("act", {"Ref": "Role"}),
    )
    failed = deploy_template(aws, made, "role", expect_failure=True)
    assert REFUSED in failed.failure_reason
    delete_stack(aws, "role")


def test_a_name_that_was_given_up_is_free(aws, role):
    deploy_template(aws, template(A=policy("a", role)), "gives")
    deploy_template(aws, template(A=policy("b", role)), "gives")
    deploy_template(aws, template(A=policy("a", role)), "takes")
    assert sorted(policies_of(aws, role)) == ["a", "b"]
    delete_stack(aws, "gives")
    delete_stack(aws, "takes")


# --------------------------------------------------------------------------------------- scaling


def scaled(table="a", name="Track"):
    return template(
        Target=resource_of(
            "AWS::ApplicationAutoScaling::ScalableTarget",
            ServiceNamespace="dynamodb",
            ResourceId=f"table/{table}",
            ScalableDimension="dynamodb:table:ReadCapacityUnits",
            MinCapacity=1,
            MaxCapacity=4,
        ),
        Policy=resource_of(
            "AWS::ApplicationAutoScaling::ScalingPolicy",
            PolicyName=name,
            PolicyType="TargetTrackingScaling",
            ScalingTargetId={"Ref": "Target"},
            TargetTrackingScalingPolicyConfiguration={
                "TargetValue": 70,
                "PredefinedMetricSpecification": {
                    "PredefinedMetricType": "DynamoDBReadCapacityUtilization"
                },
            },
        ),
    )


def test_a_scaling_policy_of_another_target_may_have_the_same_name(aws):
    deploy_template(aws, scaled(), "scaled")
    deploy_template(aws, scaled(table="b"), "scaled")
    found = aws.client("application-autoscaling").describe_scaling_policies(
        ServiceNamespace="dynamodb"
    )["ScalingPolicies"]
    assert [each["ResourceId"] for each in found] == ["table/b"]
    delete_stack(aws, "scaled")


def test_a_target_takes_one_tracking_policy_of_a_metric_so_only_a_name_cannot_change(aws):
    deploy_template(aws, scaled(), "scaled")
    with pytest.raises(DeploymentFailed, match="Only one TargetTrackingScaling policy"):
        deploy_template(aws, scaled(name="Other"), "scaled")
    delete_stack(aws, "scaled")
