"""Change sets, as the CDK CLI uses them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from signed_requests import refusal
from stacks_under_test import ENDPOINT, endpoint, hosting, resource_of, variant
from waiting import until


class Changes:
    """Creates, reads and executes change sets of one stack."""

    def __init__(self, aws: Any, stack: str) -> None:
        self.client = aws.client("cloudformation")
        self.stack = stack

    def create(
        self, resources: dict[str, Any], kind: str, name: str = "changes", **more: Any
    ) -> dict[str, Any]:
        self.client.create_change_set(
            StackName=self.stack,
            ChangeSetName=name,
            ChangeSetType=kind,
            TemplateBody=json.dumps({"Resources": resources}),
            Capabilities=["CAPABILITY_IAM"],
            **more,
        )
        return self.client.describe_change_set(StackName=self.stack, ChangeSetName=name)

    def execute(self, name: str = "changes") -> str:
        self.client.execute_change_set(StackName=self.stack, ChangeSetName=name)

        def status() -> str:
            return self.client.describe_stacks(StackName=self.stack)["Stacks"][0]["StackStatus"]

        return until(status, lambda found: not found.endswith("_IN_PROGRESS"))


@pytest.fixture
def changes(aws, stack) -> Changes:
    """Change sets of the test's stack."""
    return Changes(aws, stack.name)


def parameter(value: Any, **properties: Any) -> dict[str, Any]:
    return resource_of("AWS::SSM::Parameter", Type="String", Value=value, **properties)


def topic(**properties: Any) -> dict[str, Any]:
    return resource_of("AWS::SNS::Topic", **properties)


def by_id(described: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = [change["ResourceChange"] for change in described["Changes"]]
    return {change["LogicalResourceId"]: change for change in found}


def test_a_new_stack_by_change_set(changes):
    described = changes.create({"P": parameter("1")}, "CREATE")
    assert (described["Status"], described["ExecutionStatus"]) == ("CREATE_COMPLETE", "AVAILABLE")
    assert by_id(described)["P"]["Action"] == "Add"
    (found,) = changes.client.describe_stacks(StackName=changes.stack)["Stacks"]
    assert found["StackStatus"] == "REVIEW_IN_PROGRESS"
    assert changes.execute() == "CREATE_COMPLETE"
    gone = {"StackName": changes.stack, "ChangeSetName": "changes"}
    assert refusal(changes.client.describe_change_set, **gone)[0] == "ChangeSetNotFound"


def test_replacement_is_foretold_also_where_it_comes_from_a_reference(changes, role):
    resources = {
        **hosting(role, [variant(1)]),
        "Endpoint": resource_of(ENDPOINT, **endpoint()),
        "Untouched": topic(),
        "Gone": topic(),
    }
    changes.create(resources, "CREATE")
    assert changes.execute() == "CREATE_COMPLETE"
    resources["Model"]["Properties"]["PrimaryContainer"] = {"Image": "two"}
    del resources["Gone"]
    resources["New"] = topic()
    found = by_id(changes.create(resources, "UPDATE"))
    assert {key: change["Action"] for key, change in found.items()} == {
        "Model": "Modify",
        "Config": "Modify",
        "Endpoint": "Modify",
        "Gone": "Remove",
        "New": "Add",
    }
    replaced = {key: found[key]["Replacement"] for key in ("Model", "Config", "Endpoint")}
    assert replaced == {"Model": "True", "Config": "True", "Endpoint": "False"}
    (detail,) = found["Model"]["Details"]
    assert detail["Target"]["Name"] == "PrimaryContainer"
    assert detail["Target"]["RequiresRecreation"] == "Always"
    (detail,) = found["Endpoint"]["Details"]
    assert detail["CausingEntity"] == "Config.EndpointConfigName"
    assert changes.execute() == "UPDATE_COMPLETE"


def test_no_change_is_a_failed_change_set_in_the_words_the_cli_looks_for(changes):
    changes.create({"P": parameter("1")}, "CREATE")
    changes.execute()
    described = changes.create({"P": parameter("1")}, "UPDATE")
    assert (described["Status"], described["ExecutionStatus"]) == ("FAILED", "UNAVAILABLE")
    assert described["StatusReason"].startswith("The submitted information didn't contain changes.")
    gone = {"StackName": changes.stack, "ChangeSetName": "changes"}
    assert refusal(changes.client.execute_change_set, **gone)[0] == "InvalidChangeSetStatus"


def test_two_stacks_may_have_change_sets_of_one_name(aws, stack, changes):
    other = Changes(aws, f"{stack.name}Other")
    changes.create({"A": parameter("1")}, "CREATE")
    other.create({"B": parameter("1")}, "CREATE")
    described = changes.client.describe_change_set(StackName=changes.stack, ChangeSetName="changes")
    assert set(by_id(described)) == {"A"}
    assert other.execute() == "CREATE_COMPLETE"
    assert changes.execute() == "CREATE_COMPLETE"
    other.client.delete_stack(StackName=other.stack)


def test_deleting_an_absent_change_set_is_no_error(changes):
    changes.create({"P": parameter("1")}, "CREATE")
    changes.client.delete_change_set(StackName=changes.stack, ChangeSetName="absent")
    changes.client.delete_change_set(StackName=changes.stack, ChangeSetName="changes")
    assert changes.client.list_change_sets(StackName=changes.stack)["Summaries"] == []


def test_a_template_by_url_may_be_path_style_on_an_address(aws, stack):
    s3, cloudformation = aws.client("s3"), aws.client("cloudformation")
    s3.create_bucket(Bucket="by-url")
    body = json.dumps({"Resources": {"P": parameter("1")}})
    s3.put_object(Bucket="by-url", Key="a/b.json", Body=body.encode())
    for url in (
        f"http://127.0.0.1:{aws.port}/by-url/a/b.json",
        "https://by-url.s3.us-east-1.amazonaws.com/a/b.json",
    ):
        assert cloudformation.get_template_summary(TemplateURL=url)["Parameters"] == []
    s3.delete_object(Bucket="by-url", Key="a/b.json")
    s3.delete_bucket(Bucket="by-url")


ALARM = {
    "MetricName": "ModelLatency",
    "Namespace": "AWS/SageMaker",
    "Statistic": "Average",
    "Period": 60,
    "EvaluationPeriods": 3,
    "DatapointsToAlarm": 2,
    "Threshold": 160000,
    "ComparisonOperator": "GreaterThanThreshold",
    "Dimensions": [{"Name": "EndpointName", "Value": "e"}, {"Name": "VariantName", "Value": "v"}],
    "AlarmActions": [],
}
WHERE = {
    "ServiceNamespace": "sagemaker",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}
TRACKING = {
    "TargetValue": 100,
    "PredefinedMetricSpecification": {
        "PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"
    },
}


class Drifting:
    """A stack of a scaled endpoint with alarms, whose resources somebody changes by hand."""

    def __init__(self, aws: Any, changes: Changes, role: dict[str, Any]) -> None:
        self.aws, self.changes, self.name = aws, changes, changes.stack.lower()
        resource = {"Fn::Sub": "endpoint/${Endpoint.EndpointName}/variant/primary"}
        target = {**WHERE, "ResourceId": resource, "MinCapacity": 1, "MaxCapacity": 16}
        kind = "TargetTrackingScaling"
        self.resources = {
            **hosting(role, [variant(1)]),
            "Endpoint": resource_of(ENDPOINT, **endpoint(EndpointName=self.name)),
            "Target": resource_of("AWS::ApplicationAutoScaling::ScalableTarget", **target),
            "Policy": resource_of(
                "AWS::ApplicationAutoScaling::ScalingPolicy",
                PolicyName="tracking",
                PolicyType=kind,
                ScalingTargetId={"Ref": "Target"},
                TargetTrackingScalingPolicyConfiguration=TRACKING,
            ),
            "Alarm": resource_of("AWS::CloudWatch::Alarm", **ALARM),
            "Composite": resource_of(
                "AWS::CloudWatch::CompositeAlarm",
                AlarmRule={"Fn::Sub": 'ALARM("${Alarm}")'},
                ActionsEnabled=True,
            ),
        }
        changes.create(self.resources, "CREATE")
        assert changes.execute() == "CREATE_COMPLETE"
        self.at = {**WHERE, "ResourceId": f"endpoint/{self.name}/variant/primary"}
        assert self.alarms()
        assert self.alarms("CompositeAlarm")

    def revert(self) -> dict[str, Any]:
        """A drift-aware change set of the deployed template."""
        return self.changes.create(self.resources, "UPDATE", DeploymentMode="REVERT_DRIFT")

    def physical(self, logical_id: str) -> str:
        found = self.changes.client.describe_stack_resource(
            StackName=self.changes.stack, LogicalResourceId=logical_id
        )
        return found["StackResourceDetail"]["PhysicalResourceId"]

    def limits(self, **given: int) -> tuple[int, int]:
        scaling = self.aws.client("application-autoscaling")
        if given:
            scaling.register_scalable_target(**self.at, **given)
        (found,) = scaling.describe_scalable_targets(
            ServiceNamespace="sagemaker", ResourceIds=[self.at["ResourceId"]]
        )["ScalableTargets"]
        return found["MinCapacity"], found["MaxCapacity"]

    def alarms(self, kind: str = "MetricAlarm") -> list[dict[str, Any]]:
        """The stack's own; other tests share the account."""
        found = self.aws.client("cloudwatch").describe_alarms(AlarmTypes=[kind])[f"{kind}s"]
        own = f"{self.changes.stack}-"
        return [each for each in found if each["AlarmName"].startswith(own)]

    def by_hand(self, what: str) -> None:
        cloudwatch, sagemaker = self.aws.client("cloudwatch"), self.aws.client("sagemaker")
        name = self.physical("Alarm")
        if what == "limits":
            self.limits(MinCapacity=2, MaxCapacity=2)
        elif what == "threshold":
            cloudwatch.put_metric_alarm(**{**ALARM, "AlarmName": name, "Threshold": 9})
        elif what == "alarm gone":
            cloudwatch.delete_alarms(AlarmNames=[self.physical("Composite")])
            cloudwatch.delete_alarms(AlarmNames=[name])
        elif what == "actions off":
            cloudwatch.disable_alarm_actions(AlarmNames=[self.physical("Composite")])
        elif what == "target gone":
            self.aws.client("application-autoscaling").deregister_scalable_target(**self.at)
        else:
            serving = sagemaker.describe_endpoint(EndpointName=self.name)["EndpointConfigName"]
            stated = sagemaker.describe_endpoint_config(EndpointConfigName=serving)
            sagemaker.create_endpoint_config(
                EndpointConfigName="other", ProductionVariants=stated["ProductionVariants"]
            )
            sagemaker.update_endpoint(EndpointName=self.name, EndpointConfigName="other")
            sagemaker.get_waiter("endpoint_in_service").wait(
                EndpointName=self.name, WaiterConfig={"Delay": 1}
            )

    def state(self) -> Any:
        """What somebody may have changed."""
        found = self.aws.client("sagemaker").describe_endpoint(EndpointName=self.name)
        return (
            self.limits(),
            [each["Threshold"] for each in self.alarms()],
            [each["ActionsEnabled"] for each in self.alarms("CompositeAlarm")],
            found["EndpointConfigName"],
        )


@pytest.fixture
def drifting(aws, changes, role) -> Drifting:
    found = Drifting(aws, changes, role)
    yield found
    # Not the stack's: what is left of a configuration by hand.
    for each in aws.client("sagemaker").list_endpoint_configs()["EndpointConfigs"]:
        if each["EndpointConfigName"] == "other":
            aws.client("sagemaker").delete_endpoint_config(EndpointConfigName="other")


def test_without_drift_there_is_nothing_to_revert(drifting):
    described = drifting.revert()
    assert described["StatusReason"].startswith("The submitted information didn't contain changes.")
    assert described["StackDriftStatus"] == "IN_SYNC"


@pytest.mark.parametrize(
    ("what", "seen"),
    [
        ("limits", {"Target": ("Modify", "MODIFIED")}),
        ("threshold", {"Alarm": ("Modify", "MODIFIED")}),
        ("actions off", {"Composite": ("Modify", "MODIFIED")}),
        ("configuration", {"Endpoint": ("Modify", "MODIFIED")}),
        ("alarm gone", {"Alarm": ("Add", "DELETED"), "Composite": ("Add", "DELETED")}),
    ],
)
def test_what_was_changed_by_hand_goes_back_with_the_drift(drifting, what, seen):
    before = drifting.state()
    drifting.by_hand(what)
    plain = drifting.changes.create(drifting.resources, "UPDATE")
    assert plain["Status"] == "FAILED"  # templates alone are the same
    drifting.changes.client.delete_change_set(
        StackName=drifting.changes.stack, ChangeSetName="changes"
    )
    described = drifting.revert()
    assert described["StackDriftStatus"] == "DRIFTED"
    found = {
        key: (change["Action"], change["ResourceDriftStatus"])
        for key, change in by_id(described).items()
    }
    assert found == seen
    assert drifting.changes.execute() == "UPDATE_COMPLETE"
    assert drifting.state() == before


def test_a_scaling_policy_is_no_type_whose_drift_is_detected(drifting):
    scaling = drifting.aws.client("application-autoscaling")
    scaling.delete_scaling_policy(**drifting.at, PolicyName="tracking")
    assert drifting.revert()["Status"] == "FAILED"


def test_a_failed_revert_goes_back_to_what_was_made_by_hand(drifting):
    drifting.limits(MinCapacity=2, MaxCapacity=2)
    # Alarms come after the endpoint, and this one cannot be made.
    bad = resource_of("AWS::CloudWatch::Alarm", **{**ALARM, "Period": 7})
    drifting.resources["Bad"] = {**bad, "DependsOn": "Target"}
    drifting.revert()
    assert drifting.changes.execute() == "UPDATE_ROLLBACK_COMPLETE"
    assert drifting.limits() == (2, 2)


def test_what_would_be_imported_is_refused_and_what_cannot_be_is_created(changes, role):
    """User guide, "Import AWS resources into a CloudFormation stack automatically".

    Its name must be in the template, as its type's primary identifier, which must not be read-only: an
    endpoint's is its ARN, so that it is created like any other.
    """
    kept = {"DeletionPolicy": "Retain"}
    named = {
        **hosting(role, [variant(1)]),
        "Endpoint": resource_of(ENDPOINT, **endpoint(EndpointName="e")),
    }
    others = {**named, "Gone": parameter("1", Name="/gone"), "Unnamed": {**parameter("1"), **kept}}
    others["Endpoint"] |= kept
    found = by_id(changes.create(others, "CREATE", ImportExistingResources=True))
    assert {change["Action"] for change in found.values()} == {"Add"}
    given = {**others, "Kept": {**parameter("1", Name="/kept"), **kept}}
    with pytest.raises(Exception, match=r"would import \[Kept\] if they exist"):
        changes.create(given, "CREATE", "others", ImportExistingResources=True)
