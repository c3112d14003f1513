"""Deletes whatever a run has left, by tag: also when nothing else remembers the run."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from .app import PREFIX, TAG
from .looking import pages_of, settled
from .world import World

_OURS = re.compile(rf"{PREFIX}([0-9a-f]{{8}})")
_ATTEMPTS = 60
"""A minute apart: SageMaker's network interfaces may hold a security group that long."""


@dataclass(frozen=True)
class Kind:
    """One kind of resource that a stack may leave, or that AWS makes beside it."""

    name: str
    find: Callable[[World], Iterator[tuple[str, str]]]
    """Identifier and run's suffix of each."""
    delete: Callable[[World, str], None]


def _suffix(tags: list[dict[str, str]]) -> str:
    return next(
        (str(t.get("Value", t.get("value"))) for t in tags if t.get("Key", t.get("key")) == TAG), ""
    )


def _stacks(world: World) -> Iterator[tuple[str, str]]:
    for stack in pages_of(world.client("cloudformation"), "describe_stacks", "Stacks"):
        # Nested stacks go with their parent.
        if not stack.get("ParentId"):
            yield stack["StackName"], _suffix(stack.get("Tags", []))


def _log_groups(world: World) -> Iterator[tuple[str, str]]:
    """By name: SageMaker's and Lambda's own have no tag, and all are named after the stack."""
    for group in pages_of(world.client("logs"), "describe_log_groups", "logGroups"):
        if named := _OURS.search(group["logGroupName"]):
            yield group["logGroupName"], named[1]


def _buckets(world: World) -> Iterator[tuple[str, str]]:
    """By name too, as the stack's keep its name when they outlive it."""
    s3 = world.client("s3")
    for bucket in s3.list_buckets()["Buckets"]:
        if named := _OURS.match(bucket["Name"]):
            yield bucket["Name"], named[1]
            continue
        try:
            tags = s3.get_bucket_tagging(Bucket=bucket["Name"])["TagSet"]
        except ClientError:  # it has none, or is nobody's business here
            continue
        yield bucket["Name"], _suffix(tags)


def _delete_bucket(world: World, name: str) -> None:
    s3 = world.client("s3")
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=name):
        for each in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]:
            s3.delete_object(Bucket=name, Key=each["Key"], VersionId=each["VersionId"])
    s3.delete_bucket(Bucket=name)


def _kind(
    name: str,
    service: str,
    listing: str,
    deletes: str,
    tags: Callable[[Any, Any], Any] = lambda client, each: each.get("Tags", []),
) -> Kind:
    """What one operation lists: it, the key of its entries, and an entry's field that names it."""
    operation, key, *field = listing.split()
    delete_operation, argument = deletes.split()

    def find(world: World) -> Iterator[tuple[str, str]]:
        client = world.client(service)
        for each in pages_of(client, operation, key):
            yield each[field[0]] if field else each, _suffix(tags(client, each))

    def delete(world: World, found: str) -> None:
        value = [found] if argument.endswith("Ids") else found
        getattr(world.client(service), delete_operation)(**{argument: value})

    return Kind(name, find, delete)


def _hosting(kind: str, name: str, noun: str) -> Kind:
    def tags(client: Any, each: Any) -> Any:
        return client.list_tags(ResourceArn=each[f"{kind}Arn"])["Tags"]

    listing, deletes = f"list_{noun}s {kind}s {kind}Name", f"delete_{noun} {kind}Name"
    return _kind(name, "sagemaker", listing, deletes, tags)


def _queue_tags(client: Any, url: str) -> list[dict[str, str]]:
    found = client.list_queue_tags(QueueUrl=url).get("Tags", {})
    return [{"Key": k, "Value": v} for k, v in found.items()]


def _in_use(client: Any, each: Any) -> Any:
    """Tags of an interface that can be deleted: one in use goes with what uses it."""
    return each.get("TagSet", []) if each.get("Status") == "available" else []


def _delete_log_group(world: World, name: str) -> None:
    world.client("logs").delete_log_group(logGroupName=name)


KINDS = (
    _hosting("Endpoint", "endpoint", "endpoint"),
    _hosting("EndpointConfig", "endpoint configuration", "endpoint_config"),
    _hosting("Model", "model", "model"),
    Kind("log group", _log_groups, _delete_log_group),
    Kind("bucket", _buckets, _delete_bucket),
    _kind("queue", "sqs", "list_queues QueueUrls", "delete_queue QueueUrl", _queue_tags),
    _kind(
        "interface endpoint",
        "ec2",
        "describe_vpc_endpoints VpcEndpoints VpcEndpointId",
        "delete_vpc_endpoints VpcEndpointIds",
    ),
    _kind(
        "network interface",
        "ec2",
        "describe_network_interfaces NetworkInterfaces NetworkInterfaceId",
        "delete_network_interface NetworkInterfaceId",
        _in_use,
    ),
    _kind(
        "security group",
        "ec2",
        "describe_security_groups SecurityGroups GroupId",
        "delete_security_group GroupId",
    ),
    _kind("subnet", "ec2", "describe_subnets Subnets SubnetId", "delete_subnet SubnetId"),
    _kind("VPC", "ec2", "describe_vpcs Vpcs VpcId", "delete_vpc VpcId"),
)
"""In the order of deletion: what holds another one goes first."""


def _found(world: World, kind: Kind, wanted: str | None) -> list[str]:
    return [name for name, suffix in kind.find(world) if suffix and wanted in (None, suffix)]


def remaining(world: World, suffix: str | None = None) -> list[str]:
    """What is there, of one run or of all: ``kind: name`` lines."""
    found = [f"stack: {name}" for name, of in _stacks(world) if of and suffix in (None, of)]
    for kind in KINDS:
        found += [f"{kind.name}: {name}" for name in _found(world, kind, suffix)]
    return found


def sweep(
    world: World, suffix: str | None = None, say: Callable[[str], None] = lambda text: None
) -> list[str]:
    """Delete the stacks of a run or of all, then what they have left; gives what remains."""
    for _ in range(_ATTEMPTS):
        for name, of in _stacks(world):
            if of and suffix in (None, of):
                say(f"deleting the stack {name}")
                _delete_stack(world, name)
        for kind in KINDS:
            for name in _found(world, kind, suffix):
                say(f"deleting the {kind.name} {name}")
                try:
                    kind.delete(world, name)
                except ClientError as error:
                    say(f"  not now: {error.response['Error']['Message']}")
        left = remaining(world, suffix)
        if not left:
            break
        time.sleep(max(60 / world.speed, 0.05))
    return left


def _delete_stack(world: World, name: str) -> None:
    """Delete a stack and wait; what holds it up is deleted before the next attempt."""
    found = settled(world, name)
    if found is not None:
        world.client("cloudformation").delete_stack(StackName=found["StackId"])
        settled(world, found["StackId"])
