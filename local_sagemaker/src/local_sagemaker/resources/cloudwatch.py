"""AWS::CloudWatch::* and AWS::Logs::*."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .properties import PropertyNotEmulated, Tagging, as_text, call, tag_map, without
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated

_TAGS = Tagging("cloudwatch", "tag_resource", "untag_resource", "ResourceARN")


class _Alarm(ResourceType):
    """What both kinds of alarm have in common: one Put operation creates and updates."""

    operation = ""
    deletes_by = ("cloudwatch", "delete_alarms", "AlarmNames")
    name_property = "AlarmName"
    tags_by = replace(_TAGS, of="Arn")

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


@emulated
class Alarm(_Alarm):
    """A metric alarm: a metric, a percentile, metric math, an anomaly band or a PromQL query."""

    type_name = "AWS::CloudWatch::Alarm"
    operation = "put_metric_alarm"


@emulated
class CompositeAlarm(_Alarm):
    """An alarm over alarms."""

    type_name = "AWS::CloudWatch::CompositeAlarm"
    operation = "put_composite_alarm"


@emulated
class Dashboard(ResourceType):
    """A dashboard."""

    type_name = "AWS::CloudWatch::Dashboard"
    deletes_by = ("cloudwatch", "delete_dashboards", "DashboardNames")
    name_property = "DashboardName"

    tags_by = _TAGS

    def create(self, at: Place, properties: Properties) -> Created:
        made = Existing(self.name(at, properties), {}, {})
        self.change(at, made, properties)  # tags too: moto's PutDashboard drops them
        return Created(made.physical_id, {})

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        body = as_text(properties["DashboardBody"])
        at.client("cloudwatch").put_dashboard(
            DashboardName=existing.physical_id, DashboardBody=body
        )

    def tagged_as(self, at: Place, existing: Existing) -> str:
        return f"arn:aws:cloudwatch::{at.account}:dashboard/{existing.physical_id}"


@emulated
class AnomalyDetector(ResourceType):
    """What an anomaly band is computed from."""

    type_name = "AWS::CloudWatch::AnomalyDetector"
    deletes_by = ("cloudwatch", "delete_anomaly_detector", "AnomalyDetectorId")

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


@emulated
class LogGroup(ResourceType):
    """A log group."""

    type_name = "AWS::Logs::LogGroup"
    deletes_by = ("logs", "delete_log_group", "logGroupName")
    # "Once a log group is created, its class can't be changed" (CloudWatch Logs user guide).
    also_replaces = frozenset({"LogGroupClass"})
    name_property = "LogGroupName"
    tags_by = Tagging(
        "logs",
        "tag_log_group",
        "untag_log_group",
        "logGroupName",
        tags="tags",
        keys="tags",
        spelt=tag_map,
    )

    def create(self, at: Place, properties: Properties) -> Created:
        logs, name = at.client("logs"), self.name(at, properties, longest=512)
        arguments = {
            "logGroupName": name,
            "tags": tag_map(properties.get("Tags")),
            "kmsKeyId": properties.get("KmsKeyId"),
            "logGroupClass": properties.get("LogGroupClass"),
        }
        call(logs, "create_log_group", arguments)
        at.begin(name)
        self._retain(at, name, {}, properties)
        return Created(name, {"Arn": at.arn("logs", f"log-group:{name}:*")})

    @staticmethod
    def _retain(at: Place, name: str, old: Properties, new: Properties) -> None:
        logs = at.client("logs")
        if new.get("RetentionInDays"):
            days = int(new["RetentionInDays"])
            logs.put_retention_policy(logGroupName=name, retentionInDays=days)
        elif old.get("RetentionInDays"):
            logs.delete_retention_policy(logGroupName=name)

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        logs, name, old = at.client("logs"), existing.physical_id, existing.properties
        self._retain(at, name, old, properties)
        if properties.get("KmsKeyId") != old.get("KmsKeyId"):
            if properties.get("KmsKeyId"):
                logs.associate_kms_key(logGroupName=name, kmsKeyId=properties["KmsKeyId"])
            else:
                logs.disassociate_kms_key(logGroupName=name)


@emulated
class MetricFilter(ResourceType):
    """A metric filter of a log group."""

    type_name = "AWS::Logs::MetricFilter"
    deletes_by = (
        "logs",
        "delete_metric_filter",
        {"logGroupName": "LogGroupName", "filterName": ""},
    )
    name_property = "FilterName"

    def create(self, at: Place, properties: Properties) -> Created:
        name = self.name(at, properties, longest=512)
        self._put(at, name, properties)
        return Created(name, {})

    @staticmethod
    def _put(at: Place, name: str, properties: Properties) -> None:
        transformations = []
        for transformation in properties["MetricTransformations"]:
            translated = dict(transformation)
            # CloudFormation has a list of Key and Value, the API a map.
            dimensions = translated.pop("Dimensions", None)
            if dimensions:
                translated["dimensions"] = {d["Key"]: d["Value"] for d in dimensions}
            transformations.append(translated)
        arguments = {"FilterPattern": "", **properties, "FilterName": name}
        arguments["MetricTransformations"] = transformations
        call(at.client("logs"), "put_metric_filter", arguments)

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        # moto adds a second filter of the same name when the pattern differs.
        self.delete(at, existing)
        self._put(at, existing.physical_id, properties)
