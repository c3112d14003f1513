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

__all__ = ["remaining", "suffixes", "sweep"]

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


def _hosting(kind: str, plural: str) -> Callable[[World], Iterator[tuple[str, str]]]:
    def find(world: World) -> Iterator[tuple[str, str]]:
        sagemaker = world.client("sagemaker")
        for each in pages_of(sagemaker, f"list_{plural}", f"{kind}s"):
            tags = sagemaker.list_tags(ResourceArn=each[f"{kind}Arn"])["Tags"]
            yield each[f"{kind}Name"], _suffix(tags)

    return find


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


def _tagged(
    service: str,
    operation: str,
    key: str,
    field: str,
    tags: Callable[[Any, Any], list[dict[str, str]]],
) -> Callable[[World], Iterator[tuple[str, str]]]:
    def find(world: World) -> Iterator[tuple[str, str]]:
        client = world.client(service)
        for each in pages_of(client, operation, key):
            identifier = each if isinstance(each, str) else each[field]
            yield identifier, _suffix(tags(client, each))

    return find


def _queue_tags(client: Any, url: str) -> list[dict[str, str]]:
    found = client.list_queue_tags(QueueUrl=url).get("Tags", {})
    return [{"Key": k, "Value": v} for k, v in found.items()]


def _own_tags(key: str) -> Callable[[Any, Any], list[dict[str, str]]]:
    return lambda client, each: each.get(key, [])


def _in_use(client: Any, each: Any) -> list[dict[str, str]]:
    """Tags of an interface that can be deleted: one in use goes with what uses it."""
    return each.get("TagSet", []) if each.get("Status") == "available" else []


def _calling(service: str, operation: str, argument: str) -> Callable[[World, str], None]:
    return lambda world, name: getattr(world.client(service), operation)(**{argument: name})


KINDS = (
    Kind(
        "endpoint",
        _hosting("Endpoint", "endpoints"),
        _calling("sagemaker", "delete_endpoint", "EndpointName"),
    ),
    Kind(
        "endpoint configuration",
        _hosting("EndpointConfig", "endpoint_configs"),
        _calling("sagemaker", "delete_endpoint_config", "EndpointConfigName"),
    ),
    Kind("model", _hosting("Model", "models"), _calling("sagemaker", "delete_model", "ModelName")),
    Kind("log group", _log_groups, _calling("logs", "delete_log_group", "logGroupName")),
    Kind("bucket", _buckets, _delete_bucket),
    Kind(
        "queue",
        _tagged("sqs", "list_queues", "QueueUrls", "", _queue_tags),
        _calling("sqs", "delete_queue", "QueueUrl"),
    ),
    Kind(
        "interface endpoint",
        _tagged(
            "ec2", "describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId", _own_tags("Tags")
        ),
        lambda world, name: world.client("ec2").delete_vpc_endpoints(VpcEndpointIds=[name]),
    ),
    Kind(
        "network interface",
        _tagged(
            "ec2", "describe_network_interfaces", "NetworkInterfaces", "NetworkInterfaceId", _in_use
        ),
        _calling("ec2", "delete_network_interface", "NetworkInterfaceId"),
    ),
    Kind(
        "security group",
        _tagged("ec2", "describe_security_groups", "SecurityGroups", "GroupId", _own_tags("Tags")),
        _calling("ec2", "delete_security_group", "GroupId"),
    ),
    Kind(
        "subnet",
        _tagged("ec2", "describe_subnets", "Subnets", "SubnetId", _own_tags("Tags")),
        _calling("ec2", "delete_subnet", "SubnetId"),
    ),
    Kind(
        "VPC",
        _tagged("ec2", "describe_vpcs", "Vpcs", "VpcId", _own_tags("Tags")),
        _calling("ec2", "delete_vpc", "VpcId"),
    ),
)
"""In the order of deletion: what holds another one goes first."""


def _found(world: World, kind: Kind, wanted: str | None) -> list[str]:
    return [name for name, suffix in kind.find(world) if suffix and wanted in (None, suffix)]


def suffixes(world: World) -> set[str]:
    """The runs of which something is there."""
    finds = [_stacks, *(kind.find for kind in KINDS)]
    return {suffix for find in finds for _, suffix in find(world) if suffix}


def remaining(world: World, suffix: str | None = None) -> list[str]:
    """What is there, of one run or of all: ``kind: name`` lines."""
    found = [f"stack: {name}" for name, of in _stacks(world) if of and suffix in (None, of)]
    for kind in KINDS:
        found += [f"{kind.name}: {name}" for name in _found(world, kind, suffix)]
    return found


def sweep(
    world: World, suffix: str | None = None, say: Callable[[str], None] = lambda text: None
) -> list[str]:
    """Delete the stacks, then what they have left; gives what remains nevertheless.

    Parameters
    ----------
    suffix
        One run's; by default all runs' in this account and region.
    """
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
