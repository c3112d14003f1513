"""An alarm has the name of a variant or a zone only if all its metrics are of that one."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from low_latency_endpoint.account.alarms import (
    ERROR_RATES,
    alarm_reading,
    dimension_values,
    read_alarms,
)
from low_latency_endpoint.account.endpoints import DeployedEndpoint

_OWNERS = [
    {},
    {"VariantName": "primary"},
    {"VariantName": "second"},
    {"Zone": "use1-az1"},
    {"Zone": "use1-az4"},
]
_ENDPOINTS = ("spell", "other")


def _metric(name: str, dimensions: dict[str, str]) -> dict[str, Any]:
    named = [{"Name": key, "Value": value} for key, value in dimensions.items()]
    metric = {"Namespace": "Any", "MetricName": name, "Dimensions": named}
    return {"Id": "m", "MetricStat": {"Metric": metric, "Stat": "Sum", "Period": 60}}


def _alarm(*dimensions: dict[str, str], names: tuple[str, ...] = ()) -> dict[str, Any]:
    chosen = names or ("CanaryConnectTime",) * len(dimensions)
    metrics = [_metric(name, of) for name, of in zip(chosen, dimensions, strict=True)]
    formula = {"Id": "e", "Expression": "m", "ReturnData": True}
    if not names:
        formula["Label"] = "slowest less fastest"
    return {
        "AlarmName": "a",
        "Metrics": [formula, *metrics],
        "Threshold": 1.0,
        "ComparisonOperator": "GreaterThanThreshold",
    }


@pytest.mark.parametrize("count", [1, 2, 3])
def test_an_owner_that_all_metrics_share(count: int) -> None:
    for owners in itertools.product(_OWNERS, repeat=count):
        alarm = _alarm(*({"EndpointName": "spell", **owner} for owner in owners))
        first = owners[0]
        name = "".join(first.values()) if all(owner == first for owner in owners) else ""
        reading = alarm_reading(alarm)
        assert reading.variant == name
        assert reading.title == f"{name} slowest less fastest".strip()


@pytest.mark.parametrize("rate", ERROR_RATES)
@pytest.mark.parametrize("owners", [*itertools.permutations(_OWNERS[1:3])])
def test_a_rate_over_two_variants_is_a_limit_of_neither(
    rate: str, owners: tuple[dict[str, str], ...]
) -> None:
    of = [{"EndpointName": "spell", **owner} for owner in owners]
    reading = alarm_reading(_alarm(*of, names=("Invocations", rate)))
    assert (reading.metric, reading.variant) == (ERROR_RATES[rate], "")


@pytest.mark.parametrize("order", [*itertools.permutations(_ENDPOINTS)])
def test_an_alarm_over_two_endpoints_is_of_each(order: tuple[str, ...]) -> None:
    alarm = _alarm(*({"EndpointName": name, "VariantName": "primary"} for name in order))
    for name in _ENDPOINTS:
        endpoint = DeployedEndpoint({"EndpointName": name, "EndpointStatus": "InService"}, {})
        (reading,) = read_alarms([alarm], endpoint)
        assert reading.variant == "", "which endpoint's it is the name would not say"
    assert dimension_values(alarm, "EndpointName") == set(_ENDPOINTS)


def test_a_new_fleet_beside_the_whole_endpoint() -> None:
    """It compares them: of a deployment, whichever metric stands first."""
    whole = {"EndpointName": "spell", "VariantName": "primary"}
    fleet = {**whole, "EndpointConfigName": "spell-2"}
    for order in itertools.permutations([whole, fleet]):
        reading = alarm_reading(_alarm(*order))
        assert reading.new_fleet
        assert reading.variant == "primary"
