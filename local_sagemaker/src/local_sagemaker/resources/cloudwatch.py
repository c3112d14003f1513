"""AWS::CloudWatch::*."""

from __future__ import annotations

from typing import Any

from .properties import PropertyNotEmulated, as_text, call, tag_changes, without
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated


class _Alarm(ResourceType):
    """What both kinds of alarm have in common: one Put operation creates and updates."""

    operation = ""
    name_property = "AlarmName"
    replaces = frozenset({"AlarmName"})
    tagged = "list"

    def create(self, at: Place, properties: Properties) -> Created:
        name = self.name(at, properties)
        self._put(at, name, properties)
        return Created(name, {"Arn": at.arn("cloudwatch", f"alarm:{name}")})

    def _put(self, at: Place, name: str, properties: Properties) -> None:
        for query in properties.get("Metrics") or []:
            if "AccountId" in query:
                raise PropertyNotEmulated("Metrics.AccountId")
        arguments = {"ActionsEnabled": True, **properties, "AlarmName": name}
        call(at.client("cloudwatch"), self.operation, arguments)

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        # Put keeps the tags of an alarm that exists: they are changed by themselves.
        self._put(at, existing.physical_id, without(properties, "Tags"))
        cloudwatch, arn = at.client("cloudwatch"), existing.attributes["Arn"]
        changed, removed = tag_changes(existing.properties.get("Tags"), properties.get("Tags"))
        if changed:
            cloudwatch.tag_resource(ResourceARN=arn, Tags=changed)
        if removed:
            cloudwatch.untag_resource(ResourceARN=arn, TagKeys=removed)

    def delete(self, at: Place, existing: Existing) -> None:
        at.client("cloudwatch").delete_alarms(AlarmNames=[existing.physical_id])


@emulated
class Alarm(_Alarm):
    """A metric alarm: a metric, a percentile, metric math or an anomaly band."""

    type_name = "AWS::CloudWatch::Alarm"
    operation = "put_metric_alarm"
    properties = frozenset(
        {
            "ActionsEnabled",
            "AlarmActions",
            "AlarmDescription",
            "AlarmName",
            "ComparisonOperator",
            "DatapointsToAlarm",
            "Dimensions",
            "EvaluateLowSampleCountPercentile",
            "EvaluationPeriods",
            "ExtendedStatistic",
            "InsufficientDataActions",
            "MetricName",
            "Metrics",
            "Namespace",
            "OKActions",
            "Period",
            "Statistic",
            "Tags",
            "Threshold",
            "ThresholdMetricId",
            "TreatMissingData",
            "Unit",
        }
    )


@emulated
class CompositeAlarm(_Alarm):
    """An alarm over alarms."""

    type_name = "AWS::CloudWatch::CompositeAlarm"
    operation = "put_composite_alarm"
    properties = frozenset(
        {
            "ActionsEnabled",
            "ActionsSuppressor",
            "ActionsSuppressorExtensionPeriod",
            "ActionsSuppressorWaitPeriod",
            "AlarmActions",
            "AlarmDescription",
            "AlarmName",
            "AlarmRule",
            "InsufficientDataActions",
            "OKActions",
            "Tags",
        }
    )


@emulated
class Dashboard(ResourceType):
    """A dashboard."""

    type_name = "AWS::CloudWatch::Dashboard"
    properties = frozenset({"DashboardBody", "DashboardName"})
    replaces = frozenset({"DashboardName"})
    name_property = "DashboardName"

    def create(self, at: Place, properties: Properties) -> Created:
        name = self.name(at, properties)
        self._put(at, name, properties)
        return Created(name, {})

    @staticmethod
    def _put(at: Place, name: str, properties: Properties) -> Any:
        body = as_text(properties["DashboardBody"])
        return at.client("cloudwatch").put_dashboard(DashboardName=name, DashboardBody=body)

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        self._put(at, existing.physical_id, properties)

    def delete(self, at: Place, existing: Existing) -> None:
        at.client("cloudwatch").delete_dashboards(DashboardNames=[existing.physical_id])


@emulated
class AnomalyDetector(ResourceType):
    """What an anomaly band is computed from."""

    type_name = "AWS::CloudWatch::AnomalyDetector"
    properties = frozenset(
        {
            "Configuration",
            "Dimensions",
            "MetricCharacteristics",
            "MetricName",
            "Namespace",
            "SingleMetricAnomalyDetector",
            "Stat",
        }
    )
    replaces = frozenset(
        {"Dimensions", "MetricName", "Namespace", "SingleMetricAnomalyDetector", "Stat"}
    )

    def create(self, at: Place, properties: Properties) -> Created:
        made = str(self._put(at, properties)["AnomalyDetectorId"])
        return Created(made, {"Id": made})

    @staticmethod
    def _put(at: Place, properties: Properties) -> dict[str, Any]:
        configuration = dict(properties.get("Configuration") or {})
        # CloudFormation's name for it differs from the API's.
        if "MetricTimeZone" in configuration:
            configuration["MetricTimezone"] = configuration.pop("MetricTimeZone")
        arguments = {**properties, "Configuration": configuration}
        return call(at.client("cloudwatch"), "put_anomaly_detector", arguments)

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        self._put(at, properties)

    def delete(self, at: Place, existing: Existing) -> None:
        at.client("cloudwatch").delete_anomaly_detector(AnomalyDetectorId=existing.physical_id)
