"""Updates that the local AWS runs by its own rules, under real requests: what is said meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hosting_site import Site, canary, rolling, taking

from local_sagemaker import LocalAws, RuntimeOptions

from .conftest import Diagnosed

_CALLERS, _A_MINUTE = 8, 32
_BEFORE, _DURING = 8, 7
_SERVERS = {
    "model": taking(0.004, concurrency=16, cpu_busy=20),
    "slow": taking(0.6, concurrency=16, cpu_busy=20),
    "failing": taking(0.004, concurrency=16, cpu_busy=20, failure_share=1.0),
    "sick": taking(0.0, ping_status=500),
}
_LIMIT = ("--target", "p99=500ms")


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    options = RuntimeOptions(clock_start=time.time() - 86_400, clock_speed=0)
    with LocalAws.in_process(
        region="us-east-1", model_servers=_SERVERS, runtime=options
    ) as running:
        yield Site(running)


@dataclass(frozen=True)
class Update:
    """An update of two instances to another model, and what is to be said of it.

    ``finding`` is empty for an update without symptoms.
    """

    name: str
    server: str
    finding: str = ""
    says: tuple[str, ...] = ()
    policy: dict[str, Any] = field(default_factory=lambda: canary(3600))

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


UPDATES = [
    Update("a slow model bakes", "slow", "LLD706", ("ModelLatency p99", "in the fleet of")),
    Update("a failing model bakes", "failing", "LLD706", ("end in 5XX errors", "0 % to that of")),
    Update("a model that is well bakes", "model"),
    Update("batches that are well", "model", policy=rolling(1, wait=3600)),
    Update("a batch of a slow model", "slow", "LLD706", policy=rolling(1, wait=3600)),
]


@pytest.mark.parametrize("update", UPDATES, ids=str)
def test_an_update_under_way(update: Update, site: Site, diagnosed: Diagnosed) -> None:
    endpoint, before, coming = _begun(site, update.server, update.policy)
    site.until(endpoint, _baking)
    _traffic(site, endpoint, _DURING)
    told = _told(site, endpoint, diagnosed)
    assert told["status"] == "Updating"
    assert told["update"]["configuration"] == coming
    assert told["update"]["serving"] == before
    assert told["update"]["stage"] == "Baking"
    assert [event["names"] for event in told["events"]].count([coming]) == 1
    _is_said(told, update.finding, *update.says)


def test_a_failing_model_that_was_rolled_back(site: Site, diagnosed: Diagnosed) -> None:
    """By an alarm that is set by hand, as the local AWS takes it; the old fleet serves again."""
    alarm = _alarm(site)
    rolls_back = {"AutoRollbackConfiguration": {"Alarms": [{"AlarmName": alarm}]}}
    endpoint, before, coming = _begun(site, "failing", canary(3600) | rolls_back)
    site.until(endpoint, _baking)
    _traffic(site, endpoint, _DURING)
    state = {"AlarmName": alarm, "StateValue": "ALARM", "StateReason": "roll back"}
    site.aws.client("cloudwatch").set_alarm_state(**state)
    site.aws.advance(30)
    site.settle(endpoint)
    assert site.described(endpoint)["EndpointConfigName"] == before
    _traffic(site, endpoint, _DURING)
    told = _told(site, endpoint, diagnosed)
    assert told["update"] is None
    _is_said(told, "LLD708", coming, "this ended at", "end in 5XX errors")


def test_a_fleet_that_is_not_asked_yet_is_not_blamed(site: Site, diagnosed: Diagnosed) -> None:
    """It does not start, while the old one begins to fail."""
    endpoint, _, coming = _begun(site, "sick", canary(3600))
    site.until(endpoint, lambda found: "PendingDeploymentSummary" in found)
    site.aws.set_model_servers({**_SERVERS, "model": _SERVERS["failing"]})
    try:
        _requests(site, endpoint)
        told = _told(site, endpoint, diagnosed)
    finally:
        site.aws.set_model_servers(_SERVERS)
    assert told["update"]["configuration"] == coming
    assert not {"LLD706", "LLD707", "LLD708"} & {each["id"] for each in told["findings"]}


def _begun(site: Site, server: str, policy: dict[str, Any]) -> tuple[str, str, str]:
    """An endpoint that served for a while, of which an update begins; both configurations."""
    endpoint = site.endpoint({"InitialInstanceCount": 2}, wait=False)
    site.settle(endpoint)
    site.aws.advance(3600)
    _traffic(site, endpoint, _BEFORE)
    before = str(site.described(endpoint)["EndpointConfigName"])
    coming = site.config({"ModelName": site.model(server), "InitialInstanceCount": 2})
    site.update(endpoint, coming, **policy)
    return endpoint, before, coming


def _alarm(site: Site) -> str:
    name = f"new-fleet-{time.monotonic_ns()}"
    site.aws.client("cloudwatch").put_metric_alarm(
        AlarmName=name,
        Namespace="AWS/SageMaker",
        MetricName="Invocation5XXErrors",
        Dimensions=[{"Name": "EndpointName", "Value": "another"}],
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1.0,
        ComparisonOperator="GreaterThanThreshold",
        TreatMissingData="ignore",
    )
    return name


def _baking(described: dict[str, Any]) -> bool:
    pending = described.get("PendingDeploymentSummary", {})
    variants = pending.get("ProductionVariants") or [{}]
    return variants[0].get("VariantStatus", [{}])[0].get("Status") == "Baking"


def _told(site: Site, endpoint: str, diagnosed: Diagnosed) -> dict[str, Any]:
    site.aws.flush_metrics()
    return diagnosed(site.aws, endpoint, "--until", site.aws.runtime_time().isoformat(), *_LIMIT)


def _is_said(told: dict[str, Any], finding: str, *words: str) -> None:
    assert [each["id"] for each in told["findings"]] == ([finding] if finding else [])
    text = str(told["findings"])
    for each in words:
        assert each in text


def _traffic(site: Site, endpoint: str, minutes: int) -> None:
    for _ in range(minutes):
        _requests(site, endpoint)
        site.aws.advance(60)


def _requests(site: Site, endpoint: str) -> None:
    """Some requests of eight callers, whatever becomes of them."""

    def call(_: int) -> None:
        with suppress(ClientError):
            site.invoke(endpoint)

    with ThreadPoolExecutor(_CALLERS) as callers:
        list(callers.map(call, range(_A_MINUTE)))
