"""Objectives of Application Signals: what a stack makes, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from stacks_under_test import resource_of

from local_sagemaker import delete_stack, deploy_template

SLO = "AWS::ApplicationSignals::ServiceLevelObjective"


def objective(name: str = "fast", **more: Any) -> dict[str, Any]:
    metric = {
        "Namespace": "AWS/SageMaker",
        "MetricName": "ModelLatency",
        "Dimensions": [{"Name": "EndpointName", "Value": "e"}],
    }
    query = {
        "Id": "latency",
        "MetricStat": {"Metric": metric, "Period": 60, "Stat": "p99"},
        "ReturnData": True,
    }
    return {
        "Name": name,
        "Sli": {
            "ComparisonOperator": "LessThanOrEqualTo",
            "MetricThreshold": 200_000,
            "SliMetric": {"MetricDataQueries": [query]},
        },
        "BurnRateConfigurations": [{"LookBackWindowMinutes": 60}],
        "Goal": {
            "AttainmentGoal": 99.5,
            "Interval": {"RollingInterval": {"Duration": 28, "DurationUnit": "DAY"}},
        },
        **more,
    }


@pytest.fixture
def signals(aws):
    return aws.client("application-signals")


def read(signals, name: str) -> dict[str, Any]:
    return signals.get_service_level_objective(Id=name)["Slo"]


def test_a_stack_makes_changes_and_deletes_one(stack, signals):
    tags = [{"Key": "team", "Value": "nlp"}]
    made = stack.deploy(SLO, objective(Tags=tags), ("Arn",))
    arn = "arn:aws:application-signals:us-east-1:123456789012:slo/fast"
    assert made.ref == made.attributes["Arn"] == arn
    found, properties = read(signals, "fast"), objective()
    assert found["Sli"] == properties["Sli"]
    assert found["BurnRateConfigurations"] == properties["BurnRateConfigurations"]
    assert found["Goal"] == {**properties["Goal"], "WarningThreshold": 50.0}
    assert signals.list_tags_for_resource(ResourceArn=arn)["Tags"] == tags
    other = {**objective()["Goal"], "AttainmentGoal": 99.9}
    changed = stack.deploy(SLO, objective(Goal=other, Tags=[{"Key": "a", "Value": "b"}]))
    assert changed.ref == arn
    assert read(signals, arn)["Goal"]["AttainmentGoal"] == 99.9
    assert read(signals, arn)["CreatedTime"] == found["CreatedTime"]
    assert signals.list_tags_for_resource(ResourceArn=arn)["Tags"] == [{"Key": "a", "Value": "b"}]
    assert stack.deploy(SLO, objective("renamed")).ref.endswith(":slo/renamed")
    with pytest.raises(signals.exceptions.ResourceNotFoundException):
        read(signals, "fast")
    stack.delete()
    with pytest.raises(signals.exceptions.ResourceNotFoundException):
        read(signals, "renamed")


def test_a_name_is_taken_in_its_region(aws, stack, signals):
    stack.of(It=resource_of(SLO, **objective()))
    second = {"Resources": {"It": resource_of(SLO, **objective())}}
    failed = deploy_template(aws, second, "second", expect_failure=True)
    assert "already exists" in failed.failure_reason
    delete_stack(aws, "second")
    assert read(signals, "fast")
    asked = objective()
    sli = {**asked["Sli"], "SliMetricConfig": asked["Sli"]["SliMetric"]}
    del sli["SliMetric"]
    with pytest.raises(signals.exceptions.ConflictException):
        signals.create_service_level_objective(Name="fast", SliConfig=sli)
    elsewhere = aws.client("application-signals", region="eu-west-1")
    elsewhere.create_service_level_objective(Name="fast", SliConfig=sli)
    assert read(elsewhere, "fast")["Goal"]["AttainmentGoal"] == 99
    elsewhere.delete_service_level_objective(Id="fast")


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"Sli": {"MetricThreshold": 1}}, "required key [SliMetric] not found"),
        ({"Sli": {**objective()["Sli"], "ComparisonOperator": "Above"}}, "not a valid enum value"),
        ({"BurnRateConfigurations": [{"LookBackWindowMinutes": 10_081}]}, "less or equal to 10080"),
        ({"BurnRateConfigurations": [{"LookBackWindowMinutes": 1}] * 11}, "maximum item count: 10"),
        ({"Name": "-fast"}, "failed to satisfy constraint"),
        ({"Name": "f" * 129}, "failed to satisfy constraint"),
        ({"RequestBasedSli": {}}, "RequestBasedSli"),
    ],
)
def test_what_the_schema_and_the_api_refuse(stack, properties, message):
    assert message in stack.refusal(SLO, {**objective(), **properties})


def test_what_else_the_service_does_is_refused_by_name(signals):
    with pytest.raises(ClientError, match="application-signals:ListServices is not emulated"):
        signals.list_services(StartTime=0, EndTime=1)
