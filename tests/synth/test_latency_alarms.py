"""Alarms on latency and errors: thresholds in SageMaker's unit, dimensions, missing data."""

from __future__ import annotations

from dataclasses import replace

import pytest
from aws_cdk import Duration
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns

from low_latency_endpoint import AlarmOptions, LatencyAlarms


@pytest.fixture
def endpoint(stack, parts):
    return parts.endpoint(stack)


@pytest.mark.parametrize(
    ("threshold", "microseconds"),
    [(Duration.millis(200), 200_000), (Duration.seconds(2), 2_000_000), (Duration.millis(1), 1000)],
)
def test_model_latency_in_microseconds(stack, endpoint, template_of, threshold, microseconds):
    alarms = LatencyAlarms(
        stack,
        "Alarms",
        endpoint=endpoint,
        options=replace(AlarmOptions.none(), model_latency={"p99": threshold}),
    )
    alarm = template_of(stack).made_of(alarms.alarms)["primary/ModelLatency/p99"]
    assert alarm["Threshold"] == microseconds
    assert alarm["ComparisonOperator"] == "GreaterThanThreshold"
    assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/SageMaker", "ModelLatency")
    assert alarm["ExtendedStatistic"] == "p99"
    assert alarm["TreatMissingData"] == "notBreaching"
    assert alarm["Period"] == 60
    assert (alarm["DatapointsToAlarm"], alarm["EvaluationPeriods"]) == (2, 3)
    assert {item["Name"]: item["Value"] for item in alarm["Dimensions"]} == {
        "EndpointName": endpoint.name_at_synth,
        "VariantName": "primary",
    }


def test_overhead_latency_as_an_average(stack, endpoint, template_of):
    alarms = LatencyAlarms(
        stack,
        "Alarms",
        endpoint=endpoint,
        options=replace(AlarmOptions.none(), overhead_latency={"Average": Duration.millis(20)}),
    )
    alarm = template_of(stack).made_of(alarms.alarms)["primary/OverheadLatency/Average"]
    assert alarm["Threshold"] == 20_000
    assert alarm["Statistic"] == "Average"
    assert alarm["MetricName"] == "OverheadLatency"


def test_the_error_rate_is_a_share_of_enough_invocations(stack, endpoint, template_of):
    alarms = LatencyAlarms(
        stack,
        "Alarms",
        endpoint=endpoint,
        options=replace(AlarmOptions.none(), error_rate=0.02, minimum_invocations=50),
    )
    alarm = template_of(stack).made_of(alarms.alarms)["primary/Invocation5XXErrors/Rate"]
    assert alarm["Threshold"] == 0.02
    assert alarm["TreatMissingData"] == "notBreaching"
    by_id = {metric["Id"]: metric for metric in alarm["Metrics"]}
    (result,) = [metric for metric in alarm["Metrics"] if metric.get("ReturnData") is not False]
    assert result["Expression"] == "IF(invocations >= 50, errors / invocations, 0)"
    for part, name in (("errors", "Invocation5XXErrors"), ("invocations", "Invocations")):
        assert by_id[part]["MetricStat"]["Metric"]["MetricName"] == name
        assert by_id[part]["MetricStat"]["Stat"] == "Sum"


def test_the_new_fleet_alone(stack, endpoint, template_of):
    alarms = LatencyAlarms(
        stack,
        "Rollback",
        endpoint=endpoint,
        new_fleet_only=True,
        options=replace(
            AlarmOptions.none(), model_latency={"p99": Duration.millis(200)}, error_rate=0.01
        ),
    )
    configuration = stack.resolve(endpoint.configuration.endpoint_config_name)
    found = template_of(stack).made_of(alarms.alarms)
    assert configuration["Fn::GetAtt"][1] == "EndpointConfigName"
    latency = found["primary/ModelLatency/p99"]["Dimensions"]
    assert {"Name": "EndpointConfigName", "Value": configuration} in latency
    metrics = found["primary/Invocation5XXErrors/Rate"]["Metrics"]
    stats = [metric["MetricStat"] for metric in metrics if "MetricStat" in metric]
    assert len(stats) == 2
    for stat in stats:
        dimensions = stat["Metric"]["Dimensions"]
        assert {"Name": "EndpointConfigName", "Value": configuration} in dimensions
        # The endpoint's name as text, not a reference: the endpoint is made after these alarms.
        assert {"Name": "EndpointName", "Value": endpoint.name_at_synth} in dimensions


def test_every_variant_is_watched(stack, parts, template_of):
    variants = [parts.variant(stack), parts.variant(stack, name="challenger")]
    endpoint = parts.endpoint(stack, variants=variants)
    alarms = LatencyAlarms(
        stack,
        "Alarms",
        endpoint=endpoint,
        options=replace(
            AlarmOptions.none(),
            model_latency={"p50": Duration.millis(50), "p99": Duration.millis(200)},
        ),
    )
    assert set(alarms.alarms) == {
        f"{variant}/ModelLatency/{statistic}"
        for variant in ("primary", "challenger")
        for statistic in ("p50", "p99")
    }
    watched = [
        (item["Value"], alarm["ExtendedStatistic"])
        for alarm in template_of(stack).made_of(alarms.alarms).values()
        for item in alarm["Dimensions"]
        if item["Name"] == "VariantName"
    ]
    assert len(set(watched)) == 4


def test_somebody_is_told(stack, endpoint, template_of):
    topic = sns.Topic.from_topic_arn(stack, "Pages", "arn:aws:sns:us-east-1:123456789012:pages")
    LatencyAlarms(
        stack,
        "Alarms",
        endpoint=endpoint,
        options=replace(
            AlarmOptions.none(),
            model_latency={"p99": Duration.millis(200)},
            actions=[actions.SnsAction(topic)],
        ),
    )
    resources = template_of(stack)["Resources"].values()
    told = [
        resource
        for resource in resources
        if topic.topic_arn in resource.get("Properties", {}).get("AlarmActions", [])
    ]
    assert len(told) == 1


def test_periods_of_the_users_own(stack, endpoint, template_of):
    alarms = LatencyAlarms(
        stack,
        "Alarms",
        endpoint=endpoint,
        options=replace(
            AlarmOptions.none(),
            model_latency={"p99": Duration.millis(200)},
            period=Duration.minutes(5),
            evaluation_periods=1,
            datapoints_to_alarm=1,
        ),
    )
    alarm = template_of(stack).made_of(alarms.alarms)["primary/ModelLatency/p99"]
    assert alarm["Period"] == 300
    assert (alarm["DatapointsToAlarm"], alarm["EvaluationPeriods"]) == (1, 1)


def composites(template):
    return [
        resource["Properties"]
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::CloudWatch::CompositeAlarm"
    ]


def test_nothing_suppresses_pages_by_default(stack, endpoint, template_of):
    LatencyAlarms(
        stack,
        "Alarms",
        endpoint=endpoint,
        options=replace(AlarmOptions.none(), model_latency={"p99": Duration.millis(200)}),
    )
    template = template_of(stack)
    (composite,) = composites(template)
    assert not [name for name in composite if name.startswith("ActionsSuppressor")]
    assert "Quiet" not in composite["AlarmDescription"]
    (alarm,) = [
        resource["Properties"]
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::CloudWatch::Alarm"
    ]
    assert alarm["MetricName"] == "ModelLatency"


@pytest.mark.parametrize(
    ("variants", "many", "of"),
    [
        # An hour's worth of minutes, each of which covers 12 at most, shared by the variants;
        # CloudWatch allows a day.
        (1, 60, 12 * 60),
        (2, 60, 24 * 60),
        (3, 40, 24 * 60),
        (10, 12, 24 * 60),
    ],
)
def test_pages_are_held_back_for_an_hour_at_most(stack, parts, template_of, variants, many, of):
    endpoint = parts.endpoint(
        stack, variants=[parts.variant(stack, name=f"v{number}") for number in range(variants)]
    )
    LatencyAlarms(
        stack,
        "Alarms",
        endpoint=endpoint,
        options=replace(
            AlarmOptions.none(),
            model_latency={"p99": Duration.millis(200)},
            quiet_during_deployments=True,
        ),
    )
    template = template_of(stack)
    quiet, composite = sorted(composites(template), key=lambda each: len(each))
    assert composite["ActionsSuppressor"]["Fn::GetAtt"][0].startswith("AlarmsQuiet")
    assert composite["ActionsSuppressorWaitPeriod"] == 60
    assert composite["ActionsSuppressorExtensionPeriod"] == 60
    assert f"for {many} such minutes at most" in composite["AlarmDescription"]
    found = {
        logical_id: resource["Properties"]
        for logical_id, resource in template["Resources"].items()
        if "Metrics" in resource.get("Properties", {})
    }
    periods = sorted(
        (each["DatapointsToAlarm"], each["EvaluationPeriods"]) for each in found.values()
    )
    assert periods == sorted([(1, 10)] * variants + [(many, of)] * variants)
    for each in found.values():
        (stat, other) = [
            metric["MetricStat"] for metric in each["Metrics"] if "MetricStat" in metric
        ]
        assert (stat["Stat"], other["Stat"], stat["Period"], other["Period"]) == (
            "Sum",
            "Sum",
            60,
            60,
        )
        assert each["TreatMissingData"] == "notBreaching"
    # They watch the new configuration before it takes requests.
    (made_after,) = [
        resource["DependsOn"]
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::SageMaker::Endpoint"
    ]
    assert set(found) <= set(made_after)
    # Any that is deploying, and none for too long.
    names = [part["Ref"] for part in quiet["AlarmRule"]["Fn::Join"][1] if isinstance(part, dict)]
    assert sorted(names) == sorted(found)
    assert [("TooLong" in name) for name in names] == [False] * variants + [True] * variants
    text = "".join(
        part if isinstance(part, str) else "x" for part in quiet["AlarmRule"]["Fn::Join"][1]
    )
    assert text.count("NOT") == 1
    assert " AND (NOT (" in text
