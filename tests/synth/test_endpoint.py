"""The endpoint: its updates, who may call it, its name, its metrics."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam

from low_latency_endpoint import AlarmOptions, LatencyAlarms
from tests.refusals import refused


def assert_no_cycle(template):
    for logical_id in template["Resources"]:
        assert logical_id not in template.needs(logical_id)


def test_an_update_policy_is_always_stated(smallest):
    routing = smallest("endpoint").deployment["BlueGreenUpdatePolicy"][
        "TrafficRoutingConfiguration"
    ]
    assert (routing["Type"], routing["WaitIntervalInSeconds"]) == ("CANARY", 300)


def test_runs_its_configuration(smallest):
    template = smallest("endpoint")
    assert template.only("AWS::SageMaker::Endpoint")["EndpointConfigName"] == {
        "Fn::GetAtt": [template.only_id("AWS::SageMaker::EndpointConfig"), "EndpointConfigName"]
    }


def test_its_name_is_known_at_synth(stack, parts, template_of):
    endpoint = parts.endpoint(stack)
    template = template_of(stack)
    assert template.only("AWS::SageMaker::Endpoint")["EndpointName"] == endpoint.name_at_synth
    assert endpoint.name_at_synth == endpoint.name_at_synth.lower()
    assert len(endpoint.name_at_synth) <= 63
    # Whoever uses this one is made after the endpoint.
    assert stack.resolve(endpoint.endpoint_name) == {
        "Fn::GetAtt": [template.only_id("AWS::SageMaker::Endpoint"), "EndpointName"]
    }


def test_a_long_path_makes_a_name_that_fits(new_stack, parts):
    stack = new_stack(name="a" + "-very-long-name-of-a-stack" * 4)
    configuration = parts.configuration(stack)
    names = [
        parts.endpoint(stack, f"{'Endpoint' * 9}{n}", configuration=configuration).name_at_synth
        for n in (1, 2)
    ]
    assert len(set(names)) == 2
    assert all(len(name) <= 63 for name in names)


def test_a_name_of_the_users_own(stack, parts, template_of):
    endpoint = parts.endpoint(stack, endpoint_name="Sentiment-v2")
    properties = template_of(stack).only("AWS::SageMaker::Endpoint")
    assert properties["EndpointName"] == endpoint.name_at_synth == "Sentiment-v2"


def test_tags(stack, parts, template_of):
    parts.endpoint(stack, tags={"team": "search", "cost-centre": "42"})
    tags = template_of(stack).only("AWS::SageMaker::Endpoint")["Tags"]
    assert {tag["Key"]: tag["Value"] for tag in tags} == {"team": "search", "cost-centre": "42"}


def test_rollback_alarms_exist_before_the_endpoint(stack, parts, template_of):
    endpoint = parts.endpoint(stack)
    alarms = LatencyAlarms(
        stack,
        "Rollback",
        endpoint=endpoint,
        new_fleet_only=True,
        options=replace(
            AlarmOptions.none(), model_latency={"p99": Duration.millis(200)}, error_rate=0.01
        ),
    ).alarms.values()
    endpoint.roll_back_on(*alarms)
    template = template_of(stack)
    endpoint_id = template.only_id("AWS::SageMaker::Endpoint")
    configured = template.deployment
    assert configured["AutoRollbackConfiguration"] == {
        "Alarms": [{"AlarmName": stack.resolve(alarm.alarm_name)} for alarm in alarms]
    }
    assert "BlueGreenUpdatePolicy" in configured
    made = set(template.of_type("AWS::CloudWatch::Alarm"))
    assert len(made) == 2
    assert made <= template.needs(endpoint_id)
    assert_no_cycle(template)


def test_rollback_alarms_given_at_once_or_later_add_up(stack, parts, template_of):
    def alarm(id):
        metric = cloudwatch.Metric(namespace="Shop", metric_name="CheckoutFailures")
        return cloudwatch.Alarm(
            stack, id, metric=metric, threshold=1, evaluation_periods=1, alarm_name=id
        )

    endpoint = parts.endpoint(stack, rollback_alarms=[alarm("First")])
    endpoint.roll_back_on(alarm("Second"), alarm("Third"))
    configured = template_of(stack).deployment
    assert len(configured["AutoRollbackConfiguration"]["Alarms"]) == 3


def test_more_than_ten_rollback_alarms_are_refused_also_over_several_calls(stack, parts):
    alarms = [
        cloudwatch.Alarm.from_alarm_arn(
            stack, f"Alarm{n}", f"arn:aws:cloudwatch:us-east-1:123456789012:alarm:a{n}"
        )
        for n in range(11)
    ]
    endpoint = parts.endpoint(stack, rollback_alarms=alarms[:10])
    with refused("LLE508"):
        endpoint.roll_back_on(alarms[10])


def test_without_scaling_an_update_resets_the_counts(smallest):
    endpoint = smallest("endpoint").only("AWS::SageMaker::Endpoint")
    assert "RetainAllVariantProperties" not in endpoint
    assert "ExcludeRetainedVariantProperties" not in endpoint


def test_with_scaling_an_update_keeps_the_counts_but_not_the_weights(stack, parts, template_of):
    endpoint = parts.endpoint(stack)
    endpoint.scale("primary", min_instances=2, max_instances=4)
    properties = template_of(stack).only("AWS::SageMaker::Endpoint")
    assert properties["RetainAllVariantProperties"] is True
    assert properties["ExcludeRetainedVariantProperties"] == [
        {"VariantPropertyType": "DesiredWeight"}
    ]


def test_granting_covers_both_ways_to_invoke_and_this_endpoint_only(stack, parts, template_of):
    endpoint = parts.endpoint(stack)
    caller = iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    endpoint.grant_invoke(caller)
    template = template_of(stack)
    (policy,) = [
        properties
        for properties in template.of_type("AWS::IAM::Policy").values()
        if properties["Roles"] == [stack.resolve(caller.role_name)]
    ]
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert statement == {
        "Effect": "Allow",
        "Action": ["sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"],
        "Resource": {"Ref": template.only_id("AWS::SageMaker::Endpoint")},
    }


@pytest.mark.parametrize(
    ("name", "statistic", "namespace"),
    [
        ("ModelLatency", "p99", "AWS/SageMaker"),
        ("Invocations", "Sum", "AWS/SageMaker"),
        ("CPUUtilization", "Average", "/aws/sagemaker/Endpoints"),
    ],
)
def test_metrics(stack, parts, name, statistic, namespace):
    endpoint = parts.endpoint(stack)
    metric = endpoint.metric(name, statistic=statistic)
    assert (metric.namespace, metric.metric_name, metric.statistic) == (namespace, name, statistic)
    assert metric.period.to_seconds() == 60
    assert stack.resolve(metric.dimensions) == {
        "EndpointName": endpoint.name_at_synth,
        "VariantName": "primary",
    }


def test_two_endpoints_in_one_stack_have_different_names(stack, parts, template_of):
    for name in ("One", "Two"):
        configuration = parts.configuration(
            stack, f"{name}Configuration", variants=[parts.variant(stack, name=name)]
        )
        parts.endpoint(stack, name, configuration=configuration)
    template = template_of(stack)
    names = [
        endpoint["EndpointName"]
        for endpoint in template.of_type("AWS::SageMaker::Endpoint").values()
    ]
    assert len(set(names)) == 2
    assert_no_cycle(template)
    assert "AmazonSageMakerFullAccess" not in json.dumps(template)
