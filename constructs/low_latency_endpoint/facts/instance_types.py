"""What each hosting instance type has: processors, memory, accelerators, local storage.

The table ``data/instance_types.csv`` names the source of each column. A type that it lacks is
unknown, not wrong: AWS adds types every month, so callers warn and go on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from .tables import number, rows, whole

SOURCE = "https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ProductionVariant.html"


class InstanceFacts(NamedTuple):
    """Facts of one instance type; ``None`` in a number means unknown."""

    name: str  # such as ml.g5.xlarge, of the family g5 and the size xlarge
    family: str
    size: str
    vcpus: int | None  # CPUUtilization reaches 100 times this number
    memory_gib: float | None  # main memory in GiB
    architecture: str | None  # x86_64 or arm64
    accelerator: str | None  # nvidia, neuron (Inferentia, Trainium), gaudi, or None for a CPU type
    accelerator_name: str  # the accelerator's product name; empty without one
    accelerator_count: int | None  # GPUs, Inferentia chips, Trainium chips
    accelerator_memory_mib: int | None  # memory of all accelerators together, in MiB
    neuron_cores: int | None  # neuron cores of all chips together; 0 on types without Neuron
    local_storage_gb: int | None  # NVMe instance storage in GB; 0 means none, None means unknown
    burstable: bool  # whether the CPU runs on credits (T2), which auto scaling excludes
    network_gbps: float | None  # baseline bandwidth of the default network card in Gbit/s
    note: str = ""  # why the row is less certain than the others; empty for most


@cache
def instance_types() -> Mapping[str, InstanceFacts]:
    """All instance types that SageMaker hosting takes, by name."""
    return MappingProxyType(
        {
            row["name"]: InstanceFacts(
                name=row["name"],
                family=row["family"],
                size=row["size"],
                vcpus=whole(row["vcpus"]),
                memory_gib=number(row["memory_gib"]),
                architecture=row["architecture"] or None,
                accelerator=row["accelerator"] or None,
                accelerator_name=row["accelerator_name"],
                accelerator_count=whole(row["accelerator_count"]),
                accelerator_memory_mib=whole(row["accelerator_memory_mib"]),
                neuron_cores=whole(row["neuron_cores"]),
                local_storage_gb=whole(row["local_storage_gb"]),
                burstable=row["burstable"] == "yes",
                network_gbps=number(row["network_gbps"]),
                note=row["note"],
            )
            for row in rows("instance_types")
        }
    )


def instance_facts(name: str) -> InstanceFacts | None:
    """Facts of one instance type; ``None`` when the table does not know it."""
    return instance_types().get(name)


def next_larger(facts: InstanceFacts) -> str | None:
    """The smallest type of the family with more GPUs or chips, or without any, with more vCPUs.

    >>> next_larger(instance_types()["ml.m5.12xlarge"]), next_larger(instance_types()["ml.g5.xlarge"])
    ('ml.m5.24xlarge', 'ml.g5.12xlarge')
    """
    larger = [
        other
        for other in instance_types().values()
        if other.family == facts.family and _size(other) > _size(facts)
    ]
    return min(larger, key=_size).name if larger else None


def smaller_types(facts: InstanceFacts) -> list[InstanceFacts]:
    """Types of the family with fewer vCPUs and the same GPUs or chips, the smallest first.

    >>> [other.size for other in smaller_types(instance_types()["ml.g5.4xlarge"])]
    ['xlarge', '2xlarge']
    """
    smaller = [
        other
        for other in instance_types().values()
        if other.family == facts.family
        and other.accelerator_count == facts.accelerator_count
        and (other.vcpus or 0) < (facts.vcpus or 0)
    ]
    return sorted(smaller, key=lambda other: other.vcpus or 0)


def _size(facts: InstanceFacts) -> int:
    return facts.accelerator_count or facts.vcpus or 0


def not_known(name: str) -> str:
    """That the table lacks a type, and which one may be meant."""
    from difflib import get_close_matches

    near = get_close_matches(name, instance_types(), n=1, cutoff=0.85)
    return f"{name} is not in this version's table{f' (did you mean {near[0]}?)' if near else ''}"


_SIZE = re.compile(
    r"nano|micro|small|medium|large|xlarge|[2-9]xlarge|[1-9]\d{1,2}xlarge|metal(-.+)?"
)
_FAMILY = re.compile(r"(?P<series>[a-z]+)\d+[a-z]*(-[a-z0-9]+)?")
_SERIES = frozenset(["dl", "gr", "hpc", "im", "inf", "is", "mac", "trn"])
"""Series of EC2's instance types with several letters (Amazon EC2 Instance Types guide, "Naming
conventions"); of one letter any may come."""


def mistyped(name: str) -> str | None:
    """The known type that is one letter away from a name which no type can have; else ``None``.

    A name of the usual form may be of a type that AWS has added since.

    >>> mistyped("ml.m5.12xlarg"), mistyped("ml.g5.xlrage"), mistyped("ml.mm5.large")
    ('ml.m5.12xlarge', 'ml.g5.xlarge', 'ml.m5.large')
    >>> mistyped("ml.g8.xlarge"), mistyped("ml.g5.3xlarge"), mistyped("ml.gr6.4xlarge")
    (None, None, None)
    """
    _, family, size = name.split(".")
    form = _FAMILY.fullmatch(family)
    usual = form is not None and (len(form["series"]) == 1 or form["series"] in _SERIES)
    if usual and _SIZE.fullmatch(size):
        return None
    return next((known for known in instance_types() if _one_letter_apart(name, known)), None)


def _one_letter_apart(one: str, other: str) -> bool:
    """Whether one letter is too much, missing or another, or two beside each other are swapped."""
    short, long = sorted((one, other), key=len)
    pairs = enumerate(zip(short, long, strict=False))
    start = next((place for place, (left, right) in pairs if left != right), len(short))
    if len(long) == len(short):
        swapped = short[start + 1 : start + 2] + short[start : start + 1]
        swap = swapped == long[start : start + 2] and short[start + 2 :] == long[start + 2 :]
        return swap or short[start + 1 :] == long[start + 1 :]
    return short[start:] == long[start + 1 :]


def unchecked(name: str, what: str = "it") -> str:
    """That nothing could be checked of a type that the table lacks: AWS adds types."""
    return f"{not_known(name)}: nothing about {what} could be checked"
