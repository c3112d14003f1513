"""AWS::KMS::* and AWS::SSM::*."""

from __future__ import annotations

from typing import Any

from .properties import Tagging, as_bool, as_text, call, only, tag_list, without
from .resource_type import Created, Existing, Place, Properties, ResourceType, emulated


def _spelt(tags: list[dict[str, str]]) -> list[dict[str, str]]:
    """Give tags as KMS spells them."""
    return [{"TagKey": tag["Key"], "TagValue": tag["Value"]} for tag in tags]


@emulated
class Key(ResourceType):
    """A KMS key; deleting schedules its deletion, as AWS does."""

    type_name = "AWS::KMS::Key"
    # At AWS such an update fails; here it makes a new key.
    also_replaces = frozenset({"KeySpec", "KeyUsage", "MultiRegion"})
    tags_by = Tagging("kms", "tag_resource", "untag_resource", "KeyId", spelt=_spelt)

    def create(self, at: Place, properties: Properties) -> Created:
        kms = at.client("kms")
        arguments = only(properties, "Description", "KeySpec", "KeyUsage", "MultiRegion")
        if properties.get("KeyPolicy"):
            arguments["Policy"] = as_text(properties["KeyPolicy"])
        if properties.get("Tags"):
            arguments["Tags"] = _spelt(properties["Tags"])
        metadata = call(kms, "create_key", arguments)["KeyMetadata"]
        at.begin(metadata["KeyId"])
        self._switches(kms, metadata["KeyId"], {}, properties)
        return Created(metadata["KeyId"], {"Arn": metadata["Arn"], "KeyId": metadata["KeyId"]})

    @staticmethod
    def _switches(kms: Any, key: str, old: Properties, new: Properties) -> None:
        if as_bool(new.get("EnableKeyRotation", False)):
            call(kms, "enable_key_rotation", {"KeyId": key, **only(new, "RotationPeriodInDays")})
        elif as_bool(old.get("EnableKeyRotation", False)):
            kms.disable_key_rotation(KeyId=key)
        if not as_bool(new.get("Enabled", True)):
            kms.disable_key(KeyId=key)
        elif not as_bool(old.get("Enabled", True)):
            kms.enable_key(KeyId=key)

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        kms, key = at.client("kms"), existing.physical_id
        kms.update_key_description(KeyId=key, Description=properties.get("Description", ""))
        if properties.get("KeyPolicy"):
            kms.put_key_policy(
                KeyId=key, PolicyName="default", Policy=as_text(properties["KeyPolicy"])
            )
        self._switches(kms, key, existing.properties, properties)

    def delete(self, at: Place, existing: Existing) -> None:
        days = int(existing.properties.get("PendingWindowInDays", 30))
        at.client("kms").schedule_key_deletion(KeyId=existing.physical_id, PendingWindowInDays=days)


@emulated
class KeyAlias(ResourceType):
    """A key's alias."""

    type_name = "AWS::KMS::Alias"
    deletes_by = ("kms", "delete_alias", "AliasName")
    name_property = "AliasName"

    def create(self, at: Place, properties: Properties) -> Created:
        at.client("kms").create_alias(
            AliasName=properties["AliasName"], TargetKeyId=_key_id(properties["TargetKeyId"])
        )
        return Created(properties["AliasName"], {})

    def update(self, at: Place, existing: Existing, properties: Properties) -> None:
        at.client("kms").update_alias(
            AliasName=properties["AliasName"], TargetKeyId=_key_id(properties["TargetKeyId"])
        )


def _key_id(key: str) -> str:
    """Give the key's id; CDK passes the ARN."""
    return key.rpartition("key/")[2]


@emulated
class Parameter(ResourceType):
    """A Systems Manager parameter."""

    type_name = "AWS::SSM::Parameter"
    deletes_by = ("ssm", "delete_parameter", "Name")
    name_property = "Name"
    tags_by = Tagging(
        "ssm",
        "add_tags_to_resource",
        "remove_tags_from_resource",
        "ResourceId",
        more={"ResourceType": "Parameter"},
    )

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
        return self._created(name, properties)

    @staticmethod
    def _created(name: str, properties: Properties) -> Created:
        return Created(name, {"Type": properties["Type"], "Value": properties["Value"]})
