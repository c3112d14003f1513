"""AWS::Events::*."""

from __future__ import annotations

from .properties import as_text, call, only, retag, tag_list
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated


@emulated
class Rule(ResourceType):
    """A rule with its targets."""

    type_name = "AWS::Events::Rule"
    # Conditional in the schema.
    also_replaces = frozenset({"EventBusName"})
    name_property = "Name"

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
        retag(old, properties, events.tag_resource, events.untag_resource,
              ResourceARN=existing.attributes["Arn"])

    def delete(self, at: Place, existing: Existing) -> None:
        events, name = at.client("events"), existing.physical_id
        bus = only(existing.properties, "EventBusName")
        targets = [t["Id"] for t in events.list_targets_by_rule(Rule=name, **bus)["Targets"]]
        if targets:
            events.remove_targets(Rule=name, Ids=targets, **bus)
        events.delete_rule(Name=name, **bus)
