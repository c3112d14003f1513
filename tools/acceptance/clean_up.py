"""Deletes what a run created: its stacks, and then what these have left, found by tag."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from botocore.exceptions import ClientError

from .app import PREFIX, ROLE, TAG, stack_name
from .observations import pages_of, settled
from .world import World

_ATTEMPTS = 60
"""A minute apart: SageMaker's network interfaces may hold a security group that long."""
_BETWEEN_ATTEMPTS = 60.0


def clean_up(world: World, suffix: str) -> list[str]:
    """Delete the stacks of a run, then what they have left; return what remains."""
    left = remaining(world, suffix)
    for _ in range(_ATTEMPTS):
        if not left:
            break
        _delete_stacks(world, suffix)
        for kind in KINDS:
            for name in kind.find(world, suffix):
                try:
                    kind.delete(world, name)
                except ClientError as error:
                    print(f"{kind.name} {name}: {error.response['Error']['Message']}", flush=True)
        left = remaining(world, suffix)
        if left:
            world.wait(_BETWEEN_ATTEMPTS)
    return left


def remaining(world: World, suffix: str) -> list[str]:
    """List what is there of a run, as ``kind: name`` lines."""
    found = [f"stack: {name}" for name in _stacks(world, suffix)]
    for kind in KINDS:
        found += [f"{kind.name}: {name}" for name in kind.find(world, suffix)]
    return found


def _stacks(world: World, suffix: str) -> list[str]:
    stacks = pages_of(world.client("cloudformation"), "describe_stacks", "Stacks")
    # Nested stacks go with their parent.
    return [
        stack["StackName"]
        for stack in stacks
        if not stack.get("ParentId") and _is_of(stack.get("Tags", []), suffix)
    ]


def _delete_stacks(world: World, suffix: str) -> None:
    """Delete the stacks, that of the role only once it is the last.

    SageMaker deletes its network interfaces with the model's role: without it they stay.
    """
    role = stack_name(suffix, ROLE)
    for name in _stacks(world, suffix):
        if name != role:
            _delete_stack(world, name)
    if _stacks(world, suffix) == [role]:
        _delete_stack(world, role)


def _delete_stack(world: World, name: str) -> None:
    """Delete a stack and wait; what holds it up is deleted before the next attempt."""
    stack = settled(world, name)
    if stack is not None:
        world.client("cloudformation").delete_stack(StackName=stack["StackId"])
        settled(world, stack["StackId"])


@dataclass(frozen=True)
class Kind:
    """One kind of resource that a stack may leave, or that AWS makes beside it."""

    name: str
    find: Callable[[World, str], Iterator[str]]
    """Yields the identifier of each that a run has."""
    delete: Callable[[World, str], None]


def _is_of(tags: Iterable[dict[str, str]], suffix: str) -> bool:
    return any(tag["Key"] == TAG and tag["Value"] == suffix for tag in tags)


def _log_groups(world: World, suffix: str) -> Iterator[str]:
    """Find log groups by name: SageMaker's and Lambda's own have no tag."""
    for group in pages_of(world.client("logs"), "describe_log_groups", "logGroups"):
        if f"{PREFIX}{suffix}" in group["logGroupName"]:
            yield group["logGroupName"]


def _delete_log_group(world: World, name: str) -> None:
    world.client("logs").delete_log_group(logGroupName=name)


def _buckets(world: World, suffix: str) -> Iterator[str]:
    """Find buckets by name too, as a stack's bucket keeps its name when it outlives the stack."""
    s3 = world.client("s3")
    for bucket in pages_of(s3, "list_buckets", "Buckets"):
        name = bucket["Name"]
        if name.startswith(f"{PREFIX}{suffix}"):
            yield name
            continue
        try:
            tags = s3.get_bucket_tagging(Bucket=name)["TagSet"]
        except ClientError:  # it has no tags, or belongs to somebody else
            continue
        if _is_of(tags, suffix):
            yield name


def _delete_bucket(world: World, name: str) -> None:
    s3 = world.client("s3")
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=name):
        for version in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]:
            s3.delete_object(Bucket=name, Key=version["Key"], VersionId=version["VersionId"])
    s3.delete_bucket(Bucket=name)


def _queues(world: World, suffix: str) -> Iterator[str]:
    sqs = world.client("sqs")
    for url in pages_of(sqs, "list_queues", "QueueUrls"):
        if sqs.list_queue_tags(QueueUrl=url).get("Tags", {}).get(TAG) == suffix:
            yield url


def _delete_queue(world: World, url: str) -> None:
    world.client("sqs").delete_queue(QueueUrl=url)


def _hosting(name: str, noun: str, field: str) -> Kind:
    """Return a kind of SageMaker's, such as ``endpoint_config`` with the field EndpointConfig."""

    def find(world: World, suffix: str) -> Iterator[str]:
        sagemaker = world.client("sagemaker")
        for entry in pages_of(sagemaker, f"list_{noun}s", f"{field}s"):
            tags = pages_of(sagemaker, "list_tags", "Tags", ResourceArn=entry[f"{field}Arn"])
            if _is_of(tags, suffix):
                yield entry[f"{field}Name"]

    def delete(world: World, found: str) -> None:
        getattr(world.client("sagemaker"), f"delete_{noun}")(**{f"{field}Name": found})

    return Kind(name, find, delete)


def _network(name: str, noun: str, field: str, id: str, *, plural: bool = False) -> Kind:
    """Return a kind of EC2's; ``plural``: its delete operation takes a list of IDs."""

    def find(world: World, suffix: str) -> Iterator[str]:
        filters = [{"Name": f"tag:{TAG}", "Values": [suffix]}]
        if noun == "network_interface":  # one in use goes with what uses it
            filters.append({"Name": "status", "Values": ["available"]})
        found = pages_of(world.client("ec2"), f"describe_{noun}s", field, Filters=filters)
        for entry in found:
            yield entry[id]

    def delete(world: World, found: str) -> None:
        ec2 = world.client("ec2")
        if plural:
            getattr(ec2, f"delete_{noun}s")(**{f"{id}s": [found]})
        else:
            getattr(ec2, f"delete_{noun}")(**{id: found})

    return Kind(name, find, delete)


KINDS = (
    _hosting("endpoint", "endpoint", "Endpoint"),
    _hosting("endpoint configuration", "endpoint_config", "EndpointConfig"),
    _hosting("model", "model", "Model"),
    Kind("log group", _log_groups, _delete_log_group),
    Kind("bucket", _buckets, _delete_bucket),
    Kind("queue", _queues, _delete_queue),
    _network("interface endpoint", "vpc_endpoint", "VpcEndpoints", "VpcEndpointId", plural=True),
    _network("network interface", "network_interface", "NetworkInterfaces", "NetworkInterfaceId"),
    _network("security group", "security_group", "SecurityGroups", "GroupId"),
    _network("subnet", "subnet", "Subnets", "SubnetId"),
    _network("VPC", "vpc", "Vpcs", "VpcId"),
)
"""In the order of deletion: what holds another one goes first."""
