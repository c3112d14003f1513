"""Alarms and dashboard of ``handwritten_l1_app.py``."""

from __future__ import annotations

from aws_cdk import Stack
from aws_cdk import aws_cloudwatch as cloudwatch

NAME = "benchmark-sentiment"
VARIANT = "primary"


def dimensions(more: dict[str, str]) -> list[cloudwatch.CfnAlarm.DimensionProperty]:
    """The variant's dimensions, and more for one configuration."""
    named = {**more, "EndpointName": NAME, "VariantName": VARIANT}
    return [
        cloudwatch.CfnAlarm.DimensionProperty(name=name, value=value)
        for name, value in named.items()
    ]


def metric_alarm(
    stack: Stack,
    name: str,
    metric: str,
    statistic: str,
    threshold: float,
    more: dict[str, str],
    *,
    namespace: str = "AWS/SageMaker",
) -> cloudwatch.CfnAlarm:
    """An alarm on one metric."""
    percentile = statistic.startswith("p")
    return cloudwatch.CfnAlarm(
        stack,
        name,
        alarm_description=f"{metric} {statistic} of {NAME} is above {threshold:g}",
        namespace=namespace,
        metric_name=metric,
        extended_statistic=statistic if percentile else None,
        statistic=None if percentile else statistic,
        dimensions=dimensions(more),
        period=60,
        evaluation_periods=3,
        datapoints_to_alarm=2,
        threshold=threshold,
        comparison_operator="GreaterThanThreshold",
        treat_missing_data="notBreaching",
    )


def formula_alarm(
    stack: Stack,
    name: str,
    expression: str,
    metrics: dict[str, str],
    threshold: float,
    more: dict[str, str],
    *,
    periods: int = 3,
    datapoints: int = 2,
) -> cloudwatch.CfnAlarm:
    """An alarm on a formula over sums of metrics."""
    queries = [
        cloudwatch.CfnAlarm.MetricDataQueryProperty(
            id="result", expression=expression, label=name, return_data=True
        )
    ]
    for query, metric in metrics.items():
        queries.append(
            cloudwatch.CfnAlarm.MetricDataQueryProperty(
                id=query,
                metric_stat=cloudwatch.CfnAlarm.MetricStatProperty(
                    metric=cloudwatch.CfnAlarm.MetricProperty(
                        namespace="AWS/SageMaker", metric_name=metric, dimensions=dimensions(more)
                    ),
                    period=60,
                    stat="Sum",
                ),
                return_data=False,
            )
        )
    return cloudwatch.CfnAlarm(
        stack,
        name,
        alarm_description=f"{name} of {NAME} is above {threshold:g}",
        metrics=queries,
        evaluation_periods=periods,
        datapoints_to_alarm=datapoints,
        threshold=threshold,
        comparison_operator="GreaterThanThreshold",
        treat_missing_data="notBreaching",
    )


def error_alarm(stack: Stack, name: str, more: dict[str, str]) -> cloudwatch.CfnAlarm:
    """An alarm on the share of invocations that fail."""
    return formula_alarm(
        stack,
        name,
        "IF(invocations >= 20, errors / invocations, 0)",
        {"errors": "Invocation5XXErrors", "invocations": "Invocations"},
        0.01,
        more,
    )


def alarms(stack: Stack) -> None:
    """The alarms that page, through one composite."""
    instances = "/aws/sagemaker/Endpoints"
    paging = [
        metric_alarm(stack, "ModelLatency", "ModelLatency", "p99", 160_000, {}),
        metric_alarm(stack, "OverheadLatency", "OverheadLatency", "Average", 40_000, {}),
        error_alarm(stack, "Errors", {}),
        metric_alarm(stack, "Cpu", "CPUUtilization", "Average", 340, {}, namespace=instances),
        metric_alarm(stack, "Memory", "MemoryUtilization", "Average", 90, {}, namespace=instances),
        metric_alarm(stack, "Disk", "DiskUtilization", "Average", 90, {}, namespace=instances),
        formula_alarm(
            stack,
            "Instances",
            "IF(per_instance > 0, invocations / per_instance, 0)",
            {"invocations": "Invocations", "per_instance": "InvocationsPerInstance"},
            15.5,
            {},
            periods=5,
            datapoints=5,
        ),
    ]
    cloudwatch.CfnCompositeAlarm(
        stack, "Composite", alarm_rule=" OR ".join(f'ALARM("{alarm.ref}")' for alarm in paging)
    )


DASHBOARD = {
    "Invocations": ["Invocations", "InvocationsPerInstance"],
    "Latency": ["ModelLatency", "OverheadLatency"],
    "Errors": ["Invocation4XXErrors", "Invocation5XXErrors"],
}


def dashboard(stack: Stack) -> None:
    """One graph per group of metrics."""
    widgets = [
        {
            "type": "metric",
            "width": 12,
            "height": 6,
            "x": 0,
            "y": 6 * row,
            "properties": {
                "view": "timeSeries",
                "title": title,
                "region": stack.region,
                "period": 60,
                "metrics": [
                    ["AWS/SageMaker", metric, "EndpointName", NAME, "VariantName", VARIANT]
                    for metric in metrics
                ],
            },
        }
        for row, (title, metrics) in enumerate(DASHBOARD.items())
    ]
    cloudwatch.CfnDashboard(
        stack, "Dashboard", dashboard_body=stack.to_json_string({"widgets": widgets})
    )
