"""AWS::Events::* and AWS::Scheduler::*."""

from __future__ import annotations

from .properties import Tagging, as_text, call, only, tag_list, without
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated


@emulated
class Rule(ResourceType):
    """A rule with its targets."""

    type_name = "AWS::Events::Rule"
    # Conditional in the schema.
    also_replaces = frozenset({"EventBusName"})
    name_property = "Name"
    tags_by = Tagging("events", "tag_resource", "untag_resource", "ResourceARN", "Arn")

    def create(self, at: Place, properties: Properties) -> Created:
        name = self.name(at, properties, longest=64)
        arn = self._put(at, name, properties, {"Tags": tag_list(properties.get("Tags"))})
        return Created(name, {"Arn": arn})

    def _put(self, at: Place, name: str, properties: Properties, extra: Properties) -> str:
        events = at.client("events")
        settings = ("Description", "EventBusName", "RoleArn", "ScheduleExpression", "State")
        arguments = {**only(properties, *settings), "Name": name, **extra}
        if properties.get("EventPattern"):
            arguments["EventPattern"] = as_text(properties["EventPattern"])
        arn = str(call(events, "put_rule", arguments)["RuleArn"])
        if properties.get("Targets"):
            bus = only(properties, "EventBusName")
            targets = {"Rule": name, "Targets": properties["Targets"], **bus}
            call(events, "put_targets", targets)
        return arn

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        events, name, old = at.client("events"), existing.physical_id, existing.properties
        self._put(at, name, properties, {})
        kept = {target["Id"] for target in properties.get("Targets") or []}
        gone = [t["Id"] for t in old.get("Targets") or [] if t["Id"] not in kept]
        if gone:
            events.remove_targets(Rule=name, Ids=gone, **only(properties, "EventBusName"))

    def delete(self, at: Place, existing: Existing) -> None:
        events, name = at.client("events"), existing.physical_id
        bus = only(existing.properties, "EventBusName")
        targets = [t["Id"] for t in events.list_targets_by_rule(Rule=name, **bus)["Targets"]]
        if targets:
            events.remove_targets(Rule=name, Ids=targets, **bus)
        events.delete_rule(Name=name, **bus)


@emulated
class Schedule(ResourceType):
    """A schedule. Nothing here fires it."""

    type_name = "AWS::Scheduler::Schedule"
    deletes_by = ("scheduler", "delete_schedule", {"Name": "", "GroupName": "GroupName"})
    # A schedule is named within its group.
    also_replaces = frozenset({"GroupName"})
    name_property = "Name"

    def create(self, at: Place, properties: Properties) -> Created:
        name = self.name(at, properties, longest=64)
        arguments = {"State": "ENABLED", **properties, "Name": name}
        arn = call(at.client("scheduler"), "create_schedule", arguments)["ScheduleArn"]
        return Created(name, {"Arn": arn})

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        arguments = {"State": "ENABLED", **properties, "Name": existing.physical_id}
        call(at.client("scheduler"), "update_schedule", arguments)


@emulated
class ScheduleGroup(ResourceType):
    """A group of schedules."""

    type_name = "AWS::Scheduler::ScheduleGroup"
    deletes_by = ("scheduler", "delete_schedule_group", "Name")
    name_property = "Name"

    def create(self, at: Place, properties: Properties) -> Created:
        name = self.name(at, properties, longest=64)
        arguments = {**without(properties, "Name"), "Name": name}
        arn = call(at.client("scheduler"), "create_schedule_group", arguments)["ScheduleGroupArn"]
        return Created(name, {"Arn": arn, "State": "ACTIVE"})
