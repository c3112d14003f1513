"""AWS::Logs::*."""

from __future__ import annotations

from .properties import call, retag, tag_map
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated


@emulated
class LogGroup(ResourceType):
    """A log group."""

    type_name = "AWS::Logs::LogGroup"
    deletes_by = ("logs", "delete_log_group", "logGroupName")
    # "Once a log group is created, its class can't be changed" (CloudWatch Logs user guide).
    also_replaces = frozenset({"LogGroupClass"})
    name_property = "LogGroupName"

    def create(self, at: Place, properties: Properties) -> Created:
        logs, name = at.client("logs"), self.name(at, properties, longest=512)
        arguments = {
            "logGroupName": name,
            "tags": tag_map(properties.get("Tags")),
            "kmsKeyId": properties.get("KmsKeyId"),
            "logGroupClass": properties.get("LogGroupClass"),
        }
        call(logs, "create_log_group", arguments)
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
        retag(old, properties, logs.tag_log_group, logs.untag_log_group, "tags", "tags", tag_map,
              logGroupName=name)


@emulated
class MetricFilter(ResourceType):
    """A metric filter of a log group."""

    type_name = "AWS::Logs::MetricFilter"
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

    def delete(self, at: Place, existing: Existing) -> None:
        at.client("logs").delete_metric_filter(
            logGroupName=existing.properties["LogGroupName"], filterName=existing.physical_id
        )
