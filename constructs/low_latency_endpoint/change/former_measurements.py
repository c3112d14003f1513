"""Settings as they would be if nothing had been measured anew, and the load had not changed.

Whoever changes a fleet could say in the same change that an instance holds more, or that fewer
requests come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar, cast

from ..options.option import changed
from ..options.throughput import MeasuredThroughput
from ..options.variant import PlannedPool, planned_for
from ..settings.endpoint import EndpointSettings, FurtherSettings, further_variants
from ..settings.stack import Settings

MEASURED = ("tps_per_instance", "concurrency_per_instance")  # by a load test
LOADS = ("peak_tps", "from_tps", "rise_tps_per_minute", "peaks")  # of the callers
_Further = TypeVar("_Further", bound=FurtherSettings)


def as_measured_before(before: Settings, after: Settings) -> Settings:
    """The settings with the former load-test results of instance types that stay."""
    endpoints = {
        key: _as_measured(before.endpoints.get(key), endpoint)
        for key, endpoint in after.endpoints.items()
    }
    return changed(after, endpoints=endpoints)


def as_loaded_before(before: Settings, after: Settings) -> Settings:
    """The settings with the former load of the endpoints that stay."""
    endpoints = {
        key: _as_loaded(before.endpoints.get(key), endpoint)
        for key, endpoint in after.endpoints.items()
    }
    return changed(after, endpoints=endpoints)


def measured_in_the_change_alone(before: Settings, after: Settings) -> Iterator[str]:
    """The endpoint and type of each load-test result that has no former one.

    None of an endpoint that had no result at all: its fleet was stated, so nothing is hidden.
    """
    for key, endpoint in after.endpoints.items():
        was = before.endpoints.get(key)
        if endpoint.throughput is None or (was is not None and was.throughput is None):
            continue
        former = _results(was) if was else {}
        for instance_type in _measured_types(endpoint):
            if instance_type not in former:
                yield f"{instance_type} for {key}"


def _as_measured(before: EndpointSettings | None, after: EndpointSettings) -> EndpointSettings:
    """The endpoint with the former results; with pools, sized for what was the slowest by them."""
    if before is None or before.throughput is None or after.throughput is None:
        return after
    former = _results(before)
    pools = tuple(_pool(pool, former) for pool in after.instance_pools)
    instance_type = planned_for(pools).instance_type if pools else after.instance_type
    measured = former | _of_pools(pools)
    throughput = replace(
        after.throughput,
        tps_per_instance=measured.get(instance_type, after.throughput.tps_per_instance),
    )
    if instance_type == before.instance_type:
        in_flight = before.throughput.concurrency_per_instance
        throughput = replace(throughput, concurrency_per_instance=in_flight)
    own = {variant.name: variant.settings for variant in further_variants(before)}
    shadow = after.shadow
    return replace(
        after,
        instance_type=instance_type,
        instance_pools=pools,
        throughput=throughput,
        variants={
            name: _further(own.get(name), variant, former)
            for name, variant in after.variants.items()
        },
        shadow=shadow and _further(own.get(shadow.name), shadow, former),
    )


def _as_loaded(before: EndpointSettings | None, after: EndpointSettings) -> EndpointSettings:
    """The endpoint with the former load; its peaks stay where a schedule stands in their place."""
    if before is None or before.throughput is None or after.throughput is None:
        return after
    loads = {name: getattr(before.throughput, name) for name in LOADS}
    if after.scaling.schedule:
        loads["peaks"] = after.throughput.peaks
    return replace(after, throughput=replace(after.throughput, **loads))


def _further(before: FurtherSettings | None, after: _Further, former: dict[str, float]) -> _Further:
    """A variant beside the first with its former results, or those of its instance type."""
    if before is not None and before.instance_type == after.instance_type:
        return replace(
            after,
            tps_per_instance=before.tps_per_instance,
            concurrency_per_instance=before.concurrency_per_instance,
        )
    if after.tps_per_instance is None or after.instance_type is None:
        return replace(after, tps_per_instance=None, concurrency_per_instance=None)
    return replace(
        after,
        tps_per_instance=former.get(after.instance_type, after.tps_per_instance),
        concurrency_per_instance=None,
    )


def _pool(pool: PlannedPool, former: dict[str, float]) -> PlannedPool:
    tps = former.get(pool.instance_type, pool.tps_per_instance)
    return replace(pool, tps_per_instance=tps)


def _results(endpoint: EndpointSettings) -> dict[str, float]:
    """What one instance of each type holds; of the first variant where others have its type."""
    throughput = cast(MeasuredThroughput, endpoint.throughput)
    further = {
        variant.settings.instance_type: variant.settings.tps_per_instance
        for variant in further_variants(endpoint)
    }
    found = {name: tps for name, tps in further.items() if name is not None and tps is not None}
    first = {endpoint.instance_type: throughput.tps_per_instance}
    return found | _of_pools(endpoint.instance_pools) | first


def _of_pools(pools: Sequence[PlannedPool]) -> dict[str, float]:
    stated = {pool.instance_type: pool.tps_per_instance for pool in pools}
    return {name: tps for name, tps in stated.items() if tps is not None}


def _measured_types(endpoint: EndpointSettings) -> dict[str, None]:
    """The instance types whose results an endpoint's variants state, each once."""
    return dict.fromkeys(_results(endpoint))
