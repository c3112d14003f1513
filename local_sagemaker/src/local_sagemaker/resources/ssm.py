"""AWS::SSM::*."""

from __future__ import annotations

from .properties import call, retag, tag_list, without
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated


@emulated
class Parameter(ResourceType):
    """A Systems Manager parameter."""

    type_name = "AWS::SSM::Parameter"
    deletes_by = ("ssm", "delete_parameter", "Name")
    name_property = "Name"

    def create(self, at: Place, properties: Properties) -> Created:
        name = self.name(at, properties)
        tags = tag_list(properties.get("Tags"))
        arguments = {**without(properties, "Tags"), "Name": name}
        if tags:
            arguments["Tags"] = tags
        call(at.client("ssm"), "put_parameter", arguments)
        return self._created(name, properties)

    def update(self, at: Place, existing: Existing, properties: Properties) -> Created:
        ssm, name = at.client("ssm"), existing.physical_id
        arguments = {"Description": "", **without(properties, "Tags"), "Name": name}
        call(ssm, "put_parameter", {**arguments, "Overwrite": True})
        retag(existing.properties, properties, ssm.add_tags_to_resource,
              ssm.remove_tags_from_resource, ResourceType="Parameter", ResourceId=name)
        return self._created(name, properties)

    @staticmethod
    def _created(name: str, properties: Properties) -> Created:
        return Created(name, {"Type": properties["Type"], "Value": properties["Value"]})
