"""Whether the copies of inference components find room on the instances of their variant.

How much of an instance's memory SageMaker keeps for itself is not documented; all of it counts
here, so that what fits may still not fit at AWS. Where copies go is not documented either: each to
the first instance that has room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES

from ..hosting import Hosting, all_variants
from .fleet import FleetFailed

_NO_ROOM = (
    "There is not enough hardware resources on the instances for this endpoint to create a copy of "
    "the inference component."
)
"""As users report it."""

Room = Sequence[float]  # CPU cores, memory in MiB, accelerators


def instance_room(instance_type: str) -> Room | None:
    """Give what an instance has, as EC2 describes it; None for a type that EC2 has no more.

    Examples
    --------
    >>> instance_room("ml.g5.12xlarge"), instance_room("ml.inf2.xlarge")
    ((48, 196608, 4), (4, 16384, 1))
    """
    known = INSTANCE_TYPES.get(instance_type.removeprefix("ml."))
    if known is None:
        return None
    chips = [
        *(known.get("GpuInfo") or {}).get("Gpus", ()),
        *(known.get("NeuronInfo") or {}).get("NeuronDevices", ()),
    ]
    return (
        known["VCpuInfo"]["DefaultVCpus"],
        known["MemoryInfo"]["SizeInMiB"],
        sum(chip["Count"] for chip in chips),
    )


def copy_room(specification: Mapping[str, Any]) -> Room:
    needs = specification["ComputeResourceRequirements"]
    return (
        needs.get("NumberOfCpuCoresRequired") or 0,
        needs["MinMemoryRequiredInMb"],
        needs.get("NumberOfAcceleratorDevicesRequired") or 0,
    )


def instances_for(size: Room, copies: Iterable[tuple[Room, int]], most: int) -> int | None:
    """Give the instances that take so many copies of each size; None when they are too many.

    Examples
    --------
    >>> instances_for((4, 8192, 0), [((1, 4096, 0), 3)], most=2)
    2
    >>> instances_for((48, 196608, 4), [((1, 1024, 3), 2)], most=1) is None  # 3 of 4 GPUs each
    True
    """
    free: list[list[float]] = []
    for need in (need for need, count in copies for _ in range(count)):
        fitting = [each for each in free if all(n <= f for n, f in zip(need, each, strict=True))]
        if not fitting:
            if len(free) == most or any(n > s for n, s in zip(need, size, strict=True)):
                return None
            free.append(list(size))
        where = fitting[0] if fitting else free[-1]
        where[:] = [f - n for f, n in zip(where, need, strict=True)]
    return len(free)


def take_room(
    hosting: Hosting,
    component: Mapping[str, Any],
    host: Mapping[str, Any],
    copies: Iterable[tuple[Room, int]],
) -> None:
    """Hold all copies on a variant against its instances, and let managed scaling follow."""
    described = next(
        variant
        for variant in all_variants(hosting.endpoints[component["EndpointName"]])
        if variant["VariantName"] == component["VariantName"]
    )
    size = instance_room(str(host.get("InstanceType", "")))
    if size is None:
        return
    managed = host.get("ManagedInstanceScaling") or {}
    most = described["DesiredInstanceCount"]
    if managed.get("Status") != "ENABLED":
        managed = {}
    needed = instances_for(size, copies, managed.get("MaxInstanceCount") or most)
    if needed is None:
        raise FleetFailed(_NO_ROOM)
    if managed:
        count = max(needed, managed.get("MinInstanceCount", 1))
        described["DesiredInstanceCount"] = described["CurrentInstanceCount"] = count
