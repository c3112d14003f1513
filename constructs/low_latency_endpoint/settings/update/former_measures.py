"""A changed file with the prices and load-test results of the former one.

Whoever changes a fleet could lower its price, or say that an instance holds more, in the same
change: a cost is compared with what was agreed on before.
"""

from __future__ import annotations

from ..endpoint import EndpointSettings
from ..stack import Settings, region_of

MEASURED = ("tps_per_instance", "concurrency_per_instance")
"""What a load test measures, by its name in ``throughput``."""


def at_former_prices(before: Settings, after: Settings) -> Settings:
    """The settings with the former prices; those of another Region say nothing here."""
    if region_of(before) != region_of(after):
        return after
    return after.model_copy(update={"prices": {**after.prices, **before.prices}})


def as_measured_before(before: Settings, after: Settings) -> Settings:
    """The settings with the former load-test results of endpoints that stay on their type."""
    endpoints = {
        key: _as_measured(before.endpoints.get(key), endpoint)
        for key, endpoint in after.endpoints.items()
    }
    return after.model_copy(update={"endpoints": endpoints})


def _as_measured(before: EndpointSettings | None, after: EndpointSettings) -> EndpointSettings:
    if before is None or before.instance_type != after.instance_type:
        return after
    if before.throughput is None or after.throughput is None:
        return after
    measured = {name: getattr(before.throughput, name) for name in MEASURED}
    known = {name: value for name, value in measured.items() if value is not None}
    throughput = after.throughput.model_copy(update=known)
    return after.model_copy(update={"throughput": throughput})
