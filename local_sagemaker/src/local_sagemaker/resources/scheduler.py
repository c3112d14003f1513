"""AWS::Scheduler::*."""

from __future__ import annotations

from .properties import call, only, without
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated


@emulated
class Schedule(ResourceType):
    """A schedule. Nothing here fires it."""

    type_name = "AWS::Scheduler::Schedule"
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

    def delete(self, at: Place, existing: Existing) -> None:
        at.client("scheduler").delete_schedule(
            Name=existing.physical_id, **only(existing.properties, "GroupName")
        )


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
