"""AWS::CloudWatch::* and AWS::Logs::*."""

from __future__ import annotations

import json
from typing import Any

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
    assert stack.deploy(ALARM, percentile(AlarmName="named")).ref == "named"
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
    operator = {"ComparisonOperator": "GreaterThanUpperThreshold", "EvaluationPeriods": 2}
    made = stack.deploy(ALARM, {**operator, "ThresholdMetricId": "band", "Metrics": queries})
    assert alarm(aws, made.ref)["ThresholdMetricId"] == "band"


def test_composite_alarm(aws, stack):
    single = {"Type": ALARM, "Properties": percentile()}
    properties: dict[str, Any] = {"AlarmRule": {"Fn::Sub": 'ALARM("${Single}")'}}

    def deploy(**more: Any) -> Any:
        properties.update(more)
        kind = "AWS::CloudWatch::CompositeAlarm"
        return stack.deploy(kind, properties, ("Arn",), Single=single)

    def composites() -> list[dict[str, Any]]:
        client = aws.client("cloudwatch")
        return client.describe_alarms(AlarmTypes=["CompositeAlarm"])["CompositeAlarms"]

    made = deploy(OKActions=["arn:aws:sns:x:y:z"])
    (found,) = composites()
    assert (made.ref, made.attributes["Arn"]) == (found["AlarmName"], found["AlarmArn"])
    assert found["AlarmRule"] == f'ALARM("{made.stack.resources["Single"]}")'
    suppressor = {"ActionsSuppressorWaitPeriod": 60, "ActionsSuppressorExtensionPeriod": 120}
    deploy(
        AlarmRule={"Fn::Sub": 'NOT ALARM("${Single}")'},
        ActionsSuppressor={"Fn::GetAtt": ["Single", "Arn"]},
        **suppressor,
    )
    (found,) = composites()
    assert found["AlarmRule"].startswith("NOT ALARM")
    suppressor["ActionsSuppressor"] = alarm(aws, made.stack.resources["Single"])["AlarmArn"]
    assert suppressor.items() <= found.items()
    assert f"cloudwatch: {made.ref}" in aws.leftovers()
    stack.delete()
    assert composites() == []
    assert f"cloudwatch: {made.ref}" not in aws.leftovers()


TEAM = {"Key": "team", "Value": "nlp"}


def test_dashboard(aws, stack):
    cloudwatch = aws.client("cloudwatch")
    chart = {"type": "chart", "properties": {"data": []}}  # as CloudWatch draws PromQL
    body = {"widgets": [{"type": "text", "properties": {"markdown": "one"}}, chart]}
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
    entries = cloudwatch.list_dashboards()["DashboardEntries"]
    assert [entry["DashboardName"] for entry in entries] == ["other"]


def test_log_group(aws, stack):
    logs = aws.client("logs")
    kind = "AWS::Logs::LogGroup"

    def groups() -> dict[str, Any]:
        pages = logs.get_paginator("describe_log_groups").paginate()  # other tests made many
        return {group["logGroupName"]: group for page in pages for group in page["logGroups"]}

    tags = [{"Key": "k", "Value": "v"}]
    named = {"LogGroupName": "/mine"}
    made = stack.deploy(kind, {**named, "RetentionInDays": 7, "Tags": tags}, ("Arn",))
    assert made.ref == "/mine"
    assert groups()["/mine"]["retentionInDays"] == 7
    assert made.attributes["Arn"] == groups()["/mine"]["arn"]
    stack.deploy(kind, {**named, "RetentionInDays": 30})
    assert groups()["/mine"]["retentionInDays"] == 30
    assert logs.list_tags_log_group(logGroupName="/mine")["tags"] == {}
    stack.deploy(kind, named)
    assert "retentionInDays" not in groups()["/mine"]
    stack.deploy(kind, {"LogGroupName": "/other"})
    assert "/mine" not in groups()
    stack.delete()
    assert "/other" not in groups()
