"""The instances of each variant of one configuration, and their room for inference components.

How much of an instance's memory SageMaker keeps for itself is not documented; all of it counts
here, so that what fits may still not fit at AWS. Where copies go is not documented either: each to
the first instance that has room.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES

from ..hosting import Hosting, all_variants
from ..model_servers.specifications import NEVER_RUNS, ModelServer
from ..permissions.service_roles import ModelRole, RoleLacks
from .clock import Clock
from .containers import Container, ModelData, ModelDataError, Site
from .instances import Instance, StartupFailed
from .meter import Dimensions
from .options import RuntimeOptions
from .routing import Routing

_DEFAULT_STARTUP = 240.0
"""Seconds. Source: SageMaker developer guide of 2023, "Container health check"; since then the
variant's ContainerStartupHealthCheckTimeoutInSeconds says it."""


_NO_CAPACITY = (
    "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error. "
    "Please retry using a different ML instance type or after some time."
)
"""As users report it, for instance in aws/deep-learning-containers#6673."""


class FleetFailed(Exception):
    """A variant did not come up; the message is AWS's FailureReason."""


@dataclass(eq=False)
class Variant:
    """One variant: its settings and its instances."""

    name: str
    server: ModelServer
    settings: Mapping[str, Any]
    environment: Mapping[str, str]
    zones: Sequence[str]
    routing: Routing
    model_data: ModelData | None = None
    multi_model: bool = False
    weight: float = 1.0
    shadow: bool = False  # whether it gets copies of requests, and answers nobody
    opened: int | None = None
    """How many of the instances take requests; None is all. A canary opens a part."""
    instances: list[Instance] = field(default_factory=list)
    sessions: dict[str, Instance] = field(default_factory=dict)
    places: int = 0
    under_way: int = 0  # requests, as a serverless variant's MaxConcurrency counts them
    invocation_dimensions: tuple[Dimensions, ...] = ()
    component: bool = False  # whether it is an inference component, whose copies are its instances
    was_asked: bool = False  # whether a request has ever come
    role: ModelRole | None = None  # the model's, when rights are judged

    @property
    def in_service(self) -> list[Instance]:
        return [instance for instance in self.instances if instance.in_service]

    @property
    def ready(self) -> list[Instance]:
        """The instances that take requests."""
        return self.in_service[: self.opened]

    @property
    def kind(self) -> str:
        """What a FailureReason calls it; of an inference component the words are ours."""
        return "inference component" if self.component else "production variant"

    @property
    def logged_by(self) -> str:
        """What has the log group of its containers."""
        return "inference component" if self.component else "endpoint"

    @property
    def startup_timeout(self) -> float:
        """Seconds that a container may take to become healthy."""
        given = self.settings.get("ContainerStartupHealthCheckTimeoutInSeconds")
        return float(given or _DEFAULT_STARTUP)


class Fleet:
    """The variants of an endpoint configuration with their instances."""

    def __init__(
        self,
        config_name: str,
        variants: list[Variant],
        clock: Clock,
        options: RuntimeOptions,
        running: Callable[[], int],
        site: Site,
    ) -> None:
        self.config_name = config_name
        self.variants = {variant.name: variant for variant in variants}
        self.own_metrics = False
        self.hosts_components = False
        self._clock = clock
        self._options = options
        self._running, self._site = running, site

    def __iter__(self) -> Iterator[Variant]:
        return iter(self.variants.values())

    @property
    def production(self) -> list[Variant]:
        return [variant for variant in self if not variant.shadow]

    @property
    def shadow(self) -> Variant | None:
        """The variant that gets copies; AWS takes one at most."""
        return next((variant for variant in self if variant.shadow), None)

    @property
    def size(self) -> int:
        return sum(len(variant.instances) for variant in self)

    def take_weights(self, record: Mapping[str, Any]) -> None:
        """Share requests as an endpoint's description says."""
        for described in all_variants(record):
            if variant := self.variants.get(described["VariantName"]):
                variant.weight = float(described["DesiredWeight"])

    async def start(self, counts: Mapping[str, int]) -> None:
        """Start so many instances of each variant at the same time."""
        orders = [
            asyncio.ensure_future(self.scale(self.variants[name], count))
            for name, count in counts.items()
            if name in self.variants
        ]
        try:
            await asyncio.gather(*orders)
        except BaseException:
            for order in orders:
                order.cancel()
            await asyncio.gather(*orders, return_exceptions=True)
            self.stop()
            raise

    async def scale(self, variant: Variant, count: int) -> None:
        """Bring a variant to a number of instances; returns once the new ones are healthy."""
        if count < len(variant.instances):
            # The newest go first: the old ones have the warmer caches.
            leaving = variant.instances[count:]
            del variant.instances[count:]
            self._retire(leaving)
            return
        added = [self._make(variant) for _ in range(count - len(variant.instances))]
        if not added:
            return
        most = self._options.instance_limit
        if most is not None and self._running() + len(added) > most:
            raise FleetFailed(_NO_CAPACITY)
        if variant.role is not None:
            try:
                variant.role.check()
            except RoleLacks as lacks:
                raise FleetFailed(str(lacks)) from None
        variant.instances += added
        try:
            if self._options.provision_time:
                await self._clock.sleep(self._options.provision_time)
            if variant.server is not NEVER_RUNS:
                self._site.log(variant.role)
            await asyncio.gather(*(instance.start(variant.startup_timeout) for instance in added))
        except StartupFailed as failed:
            self._remove(variant, added)
            raise FleetFailed(
                f"The primary container for {variant.kind} {variant.name} did not pass the ping "
                f"health check. Please check CloudWatch logs for this {variant.logged_by}."
                + (f" {failed}" if str(failed) else "")
            ) from None
        except ModelDataError as failed:
            self._remove(variant, added)
            raise FleetFailed(str(failed)) from None
        except BaseException:
            self._remove(variant, added)
            raise

    def _remove(self, variant: Variant, instances: list[Instance]) -> None:
        for instance in instances:
            with contextlib.suppress(ValueError):
                variant.instances.remove(instance)
        self._retire(instances)

    def _make(self, variant: Variant) -> Instance:
        place = variant.places
        variant.places += 1
        zone = variant.zones[place % len(variant.zones)]
        container = Container(
            self._site,
            variant.name,
            f"i-0{secrets.token_hex(8)}",
            variant.environment,
            variant.model_data,
            variant.role,
        )
        return Instance(variant.server, place, zone, container, self._clock, self._options.routers)

    def _retire(self, instances: list[Instance]) -> None:
        """Stop instances once the requests under way on them are answered."""
        for instance in instances:
            instance.in_service = False
        for variant in self:
            for session in [s for s, i in variant.sessions.items() if i in instances]:
                del variant.sessions[session]
        task = asyncio.get_running_loop().create_task(_drain(instances))
        _draining[task] = instances
        task.add_done_callback(lambda ended: _draining.pop(ended, None))

    async def end(self) -> None:
        """Stop every instance, and wait until the requests under way on them are answered."""
        leaving = [instance for variant in self for instance in variant.instances]
        self.stop()
        ending = [
            task for task, drained in _draining.items() if not set(leaving).isdisjoint(drained)
        ]
        await asyncio.gather(*ending, return_exceptions=True)

    def stop(self) -> None:
        for variant in self:
            leaving, variant.instances = variant.instances, []
            self._retire(leaving)


_draining: dict[asyncio.Task[None], list[Instance]] = {}
_DRAIN_SECONDS = 60.0


async def _drain(instances: list[Instance]) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _DRAIN_SECONDS
    try:
        while any(instance.under_way for instance in instances) and loop.time() < deadline:
            await asyncio.sleep(0.02)
    finally:
        for instance in instances:
            instance.stop()
    for instance in instances:
        await loop.run_in_executor(None, instance.wait_stopped)


async def end_draining(timeout: float) -> None:
    """Stop what is still being drained in this event loop, and wait until its processes ended."""
    loop = asyncio.get_running_loop()
    mine = {task: instances for task, instances in _draining.items() if task.get_loop() is loop}
    for task in mine:
        task.cancel()
    await asyncio.gather(*mine, return_exceptions=True)
    instances = [instance for each in mine.values() for instance in each]
    for instance in instances:
        instance.stop()  # a task that was cancelled before its first step has not
    await asyncio.gather(
        *(loop.run_in_executor(None, instance.wait_stopped, timeout) for instance in instances)
    )


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
