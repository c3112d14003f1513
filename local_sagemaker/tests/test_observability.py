"""AWS::CloudWatch::* and AWS::Logs::*."""

from __future__ import annotations

import json
from typing import Any

import pytest
from stacks_under_test import resource_of

ALARM = "AWS::CloudWatch::Alarm"
BASE = {"ComparisonOperator": "GreaterThanThreshold", "EvaluationPeriods": 3, "Threshold": 20000}


def percentile(**more: Any) -> dict[str, Any]:
    return {
        **BASE,
        "Namespace": "AWS/SageMaker",
        "MetricName": "ModelLatency",
        "ExtendedStatistic": "p99",
        "Period": 60,
        "Unit": "Microseconds",
        "DatapointsToAlarm": 2,
        "TreatMissingData": "notBreaching",
        "Dimensions": [
            {"Name": "EndpointName", "Value": "e"},
            {"Name": "VariantName", "Value": "v"},
        ],
        **more,
    }


def alarm(aws: Any, name: str) -> dict[str, Any]:
    (found,) = aws.client("cloudwatch").describe_alarms(AlarmNames=[name])["MetricAlarms"]
    return found


def test_percentile_alarm(aws, stack):
    tags = [{"Key": "k", "Value": "v"}]
    made = stack.deploy(ALARM, percentile(AlarmActions=["arn:aws:sns:x:y:z"], Tags=tags), ("Arn",))
    found = alarm(aws, made.ref)
    assert made.attributes["Arn"] == found["AlarmArn"]
    assert found["ActionsEnabled"] is True
    for name, value in percentile().items():
        assert found[name] == value, name
    read = aws.client("cloudwatch").list_tags_for_resource
    assert read(ResourceARN=found["AlarmArn"])["Tags"] == tags
    changed = stack.deploy(ALARM, percentile(Threshold=15000, ActionsEnabled=False))
    found = alarm(aws, made.ref)
    assert changed.ref == made.ref
    assert (found["Threshold"], found["ActionsEnabled"]) == (15000, False)
    assert found["AlarmActions"] == []
    assert read(ResourceARN=found["AlarmArn"])["Tags"] == []
    renamed = stack.deploy(ALARM, percentile(AlarmName="named"))
    assert renamed.ref == "named"
    names = [a["AlarmName"] for a in aws.client("cloudwatch").describe_alarms()["MetricAlarms"]]
    assert "named" in names
    assert made.ref not in names


def metric(name: str) -> dict[str, Any]:
    return {
        "Metric": {"Namespace": "AWS/SageMaker", "MetricName": name, "Dimensions": []},
        "Period": 60,
        "Stat": "Sum",
    }


def test_metric_math_alarm(aws, stack):
    queries = [
        {"Id": "rate", "Expression": "100*errors/MAX([calls,1])", "ReturnData": True},
        {"Id": "errors", "MetricStat": metric("Invocation5XXErrors"), "ReturnData": False},
        {"Id": "calls", "MetricStat": metric("Invocations"), "ReturnData": False},
    ]
    made = stack.deploy(ALARM, {**BASE, "Metrics": queries})
    found = {query["Id"]: query for query in alarm(aws, made.ref)["Metrics"]}
    assert found["rate"]["Expression"] == "100*errors/MAX([calls,1])"
    assert found["rate"]["ReturnData"] is True
    assert found["errors"]["MetricStat"]["Metric"]["MetricName"] == "Invocation5XXErrors"
    assert found["calls"]["MetricStat"]["Stat"] == "Sum"


def test_anomaly_alarm(aws, stack):
    queries = [
        {"Id": "band", "Expression": "ANOMALY_DETECTION_BAND(m, 2)", "ReturnData": True},
        {"Id": "m", "MetricStat": metric("ModelLatency"), "ReturnData": True},
    ]
    made = stack.deploy(
        ALARM,
        {
            "ComparisonOperator": "GreaterThanUpperThreshold",
            "EvaluationPeriods": 2,
            "ThresholdMetricId": "band",
            "Metrics": queries,
        },
    )
    assert alarm(aws, made.ref)["ThresholdMetricId"] == "band"


def test_composite_alarm(aws, stack):
    single = {"Type": ALARM, "Properties": percentile()}
    properties = {
        "AlarmRule": {"Fn::Sub": 'ALARM("${Single}")'},
        "OKActions": ["arn:aws:sns:x:y:z"],
    }
    made = stack.deploy("AWS::CloudWatch::CompositeAlarm", properties, ("Arn",), Single=single)

    def composite() -> dict[str, Any]:
        answer = aws.client("cloudwatch").describe_alarms(
            AlarmNames=[made.ref], AlarmTypes=["CompositeAlarm"]
        )
        return answer["CompositeAlarms"][0]

    assert composite()["AlarmArn"] == made.attributes["Arn"]
    assert composite()["AlarmRule"] == f'ALARM("{made.stack.resources["Single"]}")'
    properties["AlarmRule"] = {"Fn::Sub": 'NOT ALARM("${Single}")'}
    stack.deploy("AWS::CloudWatch::CompositeAlarm", properties, Single=single)
    assert composite()["AlarmRule"].startswith("NOT ALARM")
    suppressor = {
        "ActionsSuppressor": {"Fn::GetAtt": ["Single", "Arn"]},
        "ActionsSuppressorWaitPeriod": 60,
        "ActionsSuppressorExtensionPeriod": 120,
    }
    stack.deploy("AWS::CloudWatch::CompositeAlarm", {**properties, **suppressor}, Single=single)
    single_arn = alarm(aws, made.stack.resources["Single"])["AlarmArn"]
    assert composite()["ActionsSuppressor"] == single_arn
    assert composite()["ActionsSuppressorWaitPeriod"] == 60
    assert composite()["ActionsSuppressorExtensionPeriod"] == 120
    assert f"cloudwatch: {made.ref}" in aws.leftovers()
    stack.delete()
    found = aws.client("cloudwatch").describe_alarms(AlarmTypes=["CompositeAlarm"])
    assert found["CompositeAlarms"] == []
    assert f"cloudwatch: {made.ref}" not in aws.leftovers()


TEAM = {"Key": "team", "Value": "nlp"}


def test_dashboard(aws, stack):
    cloudwatch = aws.client("cloudwatch")
    body = {"widgets": [{"type": "text", "properties": {"markdown": "one"}}]}
    arn = "arn:aws:cloudwatch::123456789012:dashboard/board"
    properties = {"DashboardName": "board", "DashboardBody": json.dumps(body)}
    made = stack.deploy("AWS::CloudWatch::Dashboard", {**properties, "Tags": [TEAM]})
    assert made.ref == "board"
    assert cloudwatch.list_tags_for_resource(ResourceARN=arn)["Tags"] == [TEAM]
    assert json.loads(cloudwatch.get_dashboard(DashboardName="board")["DashboardBody"]) == body
    properties["DashboardBody"] = json.dumps({"widgets": []})
    stack.deploy("AWS::CloudWatch::Dashboard", properties)
    found = cloudwatch.get_dashboard(DashboardName="board")["DashboardBody"]
    assert json.loads(found) == {"widgets": []}
    assert cloudwatch.list_tags_for_resource(ResourceARN=arn)["Tags"] == []
    stack.deploy("AWS::CloudWatch::Dashboard", {**properties, "DashboardName": "other"})
    assert [d["DashboardName"] for d in cloudwatch.list_dashboards()["DashboardEntries"]] == [
        "other"
    ]


def test_log_group(aws, stack):
    logs = aws.client("logs")

    def group(name: str) -> dict[str, Any]:
        (found,) = logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"]
        return found

    tags = [{"Key": "k", "Value": "v"}]
    properties = {"LogGroupName": "/mine", "RetentionInDays": 7, "Tags": tags}
    made = stack.deploy("AWS::Logs::LogGroup", properties, ("Arn",))
    assert made.ref == "/mine"
    assert group("/mine")["retentionInDays"] == 7
    assert made.attributes["Arn"] == group("/mine")["arn"]
    stack.deploy("AWS::Logs::LogGroup", {"LogGroupName": "/mine", "RetentionInDays": 30})
    assert group("/mine")["retentionInDays"] == 30
    assert logs.list_tags_log_group(logGroupName="/mine")["tags"] == {}
    stack.deploy("AWS::Logs::LogGroup", {"LogGroupName": "/mine"})
    assert "retentionInDays" not in group("/mine")
    stack.deploy("AWS::Logs::LogGroup", {"LogGroupName": "/other"})
    assert logs.describe_log_groups(logGroupNamePrefix="/mine")["logGroups"] == []
    stack.delete()
    assert logs.describe_log_groups(logGroupNamePrefix="/other")["logGroups"] == []


@pytest.mark.parametrize("pattern", ['{ $.status = "error" }', "ERROR"])
def test_metric_filter(aws, stack, pattern):
    group = resource_of("AWS::Logs::LogGroup", LogGroupName="/filtered")
    transformation = {"MetricName": "Errors", "MetricNamespace": "Mine", "MetricValue": "1"}
    properties = {
        "LogGroupName": {"Ref": "Group"},
        "FilterPattern": "x",
        "MetricTransformations": [transformation],
    }
    made = stack.deploy("AWS::Logs::MetricFilter", properties, Group=group)
    stack.deploy("AWS::Logs::MetricFilter", {**properties, "FilterPattern": pattern}, Group=group)
    (found,) = aws.client("logs").describe_metric_filters(logGroupName="/filtered")["metricFilters"]
    assert (found["filterName"], found["filterPattern"]) == (made.ref, pattern)
    assert found["metricTransformations"][0]["metricNamespace"] == "Mine"
