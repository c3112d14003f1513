"""AWS::CloudWatch::*."""

from __future__ import annotations

from typing import Any

from .properties import PropertyNotEmulated, as_text, call, retag, without
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated


class _Alarm(ResourceType):
    """What both kinds of alarm have in common: one Put operation creates and updates."""

    operation = ""
    name_property = "AlarmName"

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
        retag(existing.properties, properties, cloudwatch.tag_resource, cloudwatch.untag_resource,
              ResourceARN=arn)

    def delete(self, at: Place, existing: Existing) -> None:
        at.client("cloudwatch").delete_alarms(AlarmNames=[existing.physical_id])


@emulated
class Alarm(_Alarm):
    """A metric alarm: a metric, a percentile, metric math or an anomaly band."""

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
