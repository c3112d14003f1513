"""Names that CloudFormation lets one resource have, also where the service's operation would adopt it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from roles_under_test import allow, document, trust
from stacks_under_test import TRUST, resource_of

from local_sagemaker import DeploymentFailed, delete_stack, deploy_template

REFUSED = "Policy resource was already managed by another stack or another resource"
RIGHTS = {"PolicyName": "same", "PolicyDocument": document(allow("s3:GetObject"))}


def policy(name, role):
    return resource_of("AWS::IAM::Policy", **{**RIGHTS, "PolicyName": name}, Roles=[role])


@pytest.fixture
def role(aws):
    iam = aws.client("iam")
    iam.create_role(RoleName="shared", AssumeRolePolicyDocument=json.dumps(TRUST))
    yield "shared"
    for name in iam.list_role_policies(RoleName="shared")["PolicyNames"]:
        iam.delete_role_policy(RoleName="shared", PolicyName=name)
    iam.delete_role(RoleName="shared")


def policies_of(aws, role):
    return aws.client("iam").list_role_policies(RoleName=role)["PolicyNames"]


def test_two_resources_of_a_stack_cannot_have_the_same_policy_on_a_role(aws, stack, role):
    failed = stack.of(A=policy("same", role), B=policy("same", role), expect_failure=True)
    assert failed.status == "ROLLBACK_COMPLETE"
    assert REFUSED in failed.failure_reason
    assert policies_of(aws, role) == []


def test_two_stacks_cannot_and_the_first_keeps_its_own(aws, stack, role):
    stack.of(A=policy("same", role))
    second = {"Resources": {"A": policy("same", role)}}
    failed = deploy_template(aws, second, "second", expect_failure=True)
    assert REFUSED in failed.failure_reason
    delete_stack(aws, "second")
    assert policies_of(aws, role) == ["same"]
    stack.delete()
    assert policies_of(aws, role) == []


def test_an_update_cannot_take_the_name_of_another_resource(aws, stack, role):
    stack.of(A=policy("a", role), B=policy("b", role))
    failed = stack.of(A=policy("a", role), B=policy("a", role), expect_failure=True)
    assert failed.status == "UPDATE_ROLLBACK_COMPLETE"
    assert REFUSED in failed.failure_reason
    assert sorted(policies_of(aws, role)) == ["a", "b"]


def test_a_policy_that_moves_to_another_logical_id_meets_itself(aws, stack, role):
    """The new one is made before the old one goes."""
    stack.of(Old=policy("same", role))
    assert REFUSED in stack.of(New=policy("same", role), expect_failure=True).failure_reason
    assert policies_of(aws, role) == ["same"]


def test_the_inline_policies_of_a_roles_own_resource_count(stack):
    own = {"AssumeRolePolicyDocument": trust("lambda"), "Policies": [RIGHTS]}
    role = resource_of("AWS::IAM::Role", **own)
    failed = stack.of(Role=role, Policy=policy("same", {"Ref": "Role"}), expect_failure=True)
    assert REFUSED in failed.failure_reason


def test_a_name_that_was_given_up_is_free(aws, stack, role):
    stack.of(A=policy("a", role))
    stack.of(A=policy("b", role))
    deploy_template(aws, {"Resources": {"A": policy("a", role)}}, "takes")
    assert sorted(policies_of(aws, role)) == ["a", "b"]
    delete_stack(aws, "takes")


ADOPTED = yaml.safe_load(Path(__file__).with_name("named_resources.yaml").read_text())


@pytest.mark.parametrize("it", ADOPTED, ids=lambda it: it["Type"])
def test_a_name_that_something_has_already_is_refused(aws, stack, it):
    """HandlerErrorCode AlreadyExists: CloudFormation CLI user guide, "Handler error codes"."""
    first = stack.of(It=it).resources
    second = deploy_template(aws, {"Resources": {"It": it}}, "second", expect_failure=True)
    assert second.status == "ROLLBACK_COMPLETE"
    assert re.search("exist", second.failure_reason or "")
    delete_stack(aws, "second")
    assert stack.of(It=it).resources == first


# --------------------------------------------------------------------------------------- scaling


def scaled(table="a", name="Track"):
    kind = {"PredefinedMetricType": "DynamoDBReadCapacityUtilization"}
    return {
        "Target": resource_of(
            "AWS::ApplicationAutoScaling::ScalableTarget",
            ServiceNamespace="dynamodb",
            ResourceId=f"table/{table}",
            ScalableDimension="dynamodb:table:ReadCapacityUnits",
            MinCapacity=1,
            MaxCapacity=4,
        ),
        "Policy": resource_of(
            "AWS::ApplicationAutoScaling::ScalingPolicy",
            PolicyName=name,
            PolicyType="TargetTrackingScaling",
            ScalingTargetId={"Ref": "Target"},
            TargetTrackingScalingPolicyConfiguration={
                "TargetValue": 70,
                "PredefinedMetricSpecification": kind,
            },
        ),
    }


def test_a_scaling_policy_of_another_target_may_have_the_same_name(aws, stack):
    stack.of(**scaled())
    stack.of(**scaled(table="b"))
    scaling = aws.client("application-autoscaling")
    found = scaling.describe_scaling_policies(ServiceNamespace="dynamodb")["ScalingPolicies"]
    assert [each["ResourceId"] for each in found] == ["table/b"]


def test_a_target_takes_one_tracking_policy_of_a_metric_so_only_a_name_cannot_change(stack):
    stack.of(**scaled())
    with pytest.raises(DeploymentFailed, match="Only one TargetTrackingScaling policy"):
        stack.of(**scaled(name="Other"))
