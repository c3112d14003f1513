"""Tags of EC2 resources, the same for all of them."""

from __future__ import annotations

from .properties import tag_changes, tag_list
from .resource_type import Existing, Place, Properties


def set_tags(at: Place, resource_id: str, properties: Properties) -> None:
    """Tag a new resource."""
    if properties.get("Tags"):
        at.client("ec2").create_tags(Resources=[resource_id], Tags=tag_list(properties["Tags"]))


def update_tags(at: Place, existing: Existing, properties: Properties) -> None:
    """Bring a resource's tags up to date."""
    ec2 = at.client("ec2")
    changed, removed = tag_changes(existing.properties.get("Tags"), properties.get("Tags"))
    if changed:
        ec2.create_tags(Resources=[existing.physical_id], Tags=changed)
    if removed:
        ec2.delete_tags(Resources=[existing.physical_id], Tags=[{"Key": key} for key in removed])
