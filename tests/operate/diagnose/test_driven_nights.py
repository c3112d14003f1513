"""Faults and healthy states that real requests drive through the local AWS, one endpoint each.

What DescribeEndpoint, CloudWatch and scaling say is the local AWS's own answer; no metric is put.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hosting_site import Site, taking

from local_sagemaker import LocalAws, RuntimeOptions

from .conftest import Diagnosed

_CALLERS, _A_MINUTE = 8, 32
_BEFORE, _AFTER = 10, 14
_MODEL = taking(0.004, concurrency=16, cpu_busy=20)
_LIMIT = ("--target", "p99=500ms")


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    options = RuntimeOptions(clock_start=time.time() - 86_400, clock_speed=0)
    with LocalAws.in_process(
        region="us-east-1", model_servers={"*": _MODEL}, runtime=options
    ) as running:
        yield Site(running)


Event = Callable[[Site, str], None]


@dataclass(frozen=True)
class Night:
    """What happens to an endpoint of three instances that served ten minutes, and what is to be said.

    ``finding`` is the first one, and empty for a healthy state; ``says`` stands in its evidence or
    its advice, and ``not_said`` nowhere.
    """

    name: str
    event: Event
    finding: str = ""
    says: tuple[str, ...] = ()
    not_said: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


def serves(**settings: Any) -> Event:
    """The model serves otherwise from now on."""

    def event(site: Site, endpoint: str) -> None:
        site.aws.set_model_servers({"*": replace(_MODEL, **settings)})

    return event


def slower(site: Site, endpoint: str) -> None:
    site.aws.set_model_servers({"*": taking(0.6, concurrency=16, cpu_busy=1)})


def _configuration(site: Site, endpoint: str) -> str:
    return str(site.described(endpoint)["EndpointConfigName"])


def _model(site: Site, configuration: str) -> str:
    described = site.aws.client("sagemaker").describe_endpoint_config(
        EndpointConfigName=configuration
    )
    return str(described["ProductionVariants"][0]["ModelName"])


def without_configuration(site: Site, endpoint: str) -> None:
    name = _configuration(site, endpoint)
    site.aws.client("sagemaker").delete_endpoint_config(EndpointConfigName=name)


def without_model(site: Site, endpoint: str) -> None:
    name = _model(site, _configuration(site, endpoint))
    site.aws.client("sagemaker").delete_model(ModelName=name)


def deployed(site: Site, endpoint: str) -> None:
    """A version as fast as the one before, after which that one is deleted."""
    before = _configuration(site, endpoint)
    model = _model(site, before)
    site.update(endpoint, site.config({"InitialInstanceCount": 3}))
    site.settle(endpoint)
    site.aws.client("sagemaker").delete_endpoint_config(EndpointConfigName=before)
    site.aws.client("sagemaker").delete_model(ModelName=model)


def scaled_out(site: Site, endpoint: str) -> None:
    site.scale(endpoint, 5)
    site.settle(endpoint)


def queued(site: Site, endpoint: str) -> None:
    """One worker where sixteen were: eight callers wait for each other."""
    site.aws.set_model_servers({"*": taking(0.15, concurrency=1, cpu_busy=100)})


def one_slow(site: Site, endpoint: str) -> None:
    site.aws.set_model_servers({"*": replace(_MODEL, slow_instances={1: 200.0})})


def cold(site: Site, endpoint: str) -> None:
    """New instances need 0.6 s for each of their first requests."""
    site.aws.set_model_servers({"*": replace(_MODEL, cold_requests=60, cold_factor=150)})
    scaled_out(site, endpoint)


def slow_for_a_minute(site: Site, endpoint: str) -> None:
    slower(site, endpoint)
    _traffic(site, endpoint, 1)
    site.aws.set_model_servers({"*": _MODEL})


def scaled_in(site: Site, endpoint: str) -> None:
    site.scale(endpoint, 2)
    site.settle(endpoint)


NIGHTS = [
    Night("the model fails for half", serves(failure_share=0.5), "LLD402", ("5XX errors",)),
    Night("callers send what it rejects", serves(failure_share=0.3, failure_status=400), "LLD403"),
    Night("the model waits for something", slower, "LLD123", not_said=("instance_type", "GPU")),
    Night("one worker where sixteen were", queued, "LLD127", ("from ",)),
    # Its zone's series shows it, also without metrics per instance (tests/recorded, R4).
    Night("one instance is slow", one_slow, "LLD503", ("one slow instance", "RANDOM")),
    Night("new instances are cold", cold, "LLD121"),
    Night("slow for a minute", slow_for_a_minute),
    Night("the configuration is deleted", without_configuration, "LLD709"),
    Night("the model is deleted", without_model, "LLD709"),
    Night("nothing happens", lambda site, endpoint: None),
    Night("one error in a thousand", serves(failure_share=0.001)),
    Night("a faster model", serves(cpu_busy=10)),
    Night("a new version, the old one deleted", deployed),
    Night("scaled out by hand", scaled_out),
    Night("scaled in by hand", scaled_in),
]


@pytest.mark.parametrize("night", NIGHTS, ids=str)
def test_a_night(night: Night, site: Site, diagnosed: Diagnosed) -> None:
    site.aws.set_model_servers({"*": _MODEL})
    endpoint = site.endpoint({"InitialInstanceCount": 3}, wait=False)
    site.settle(endpoint)
    site.aws.advance(3600)  # long enough ago to be no deployment of this night
    _traffic(site, endpoint, _BEFORE)
    night.event(site, endpoint)
    _traffic(site, endpoint, _AFTER)
    site.aws.flush_metrics()
    until = site.aws.runtime_time().isoformat()
    told = diagnosed(site.aws, endpoint, "--until", until, *_LIMIT)
    assert [each["id"] for each in told["findings"][:1]] == (
        [night.finding] if night.finding else []
    )
    text = str(told["findings"][:1])
    for words in night.says:
        assert words in text
    for words in night.not_said:
        assert words not in text


def _traffic(site: Site, endpoint: str, minutes: int) -> None:
    """Some requests of eight callers in each minute, whatever becomes of them."""

    def call(_: int) -> None:
        with suppress(ClientError):
            site.invoke(endpoint)

    for _ in range(minutes):
        with ThreadPoolExecutor(_CALLERS) as callers:
            list(callers.map(call, range(_A_MINUTE)))
        site.aws.advance(60)
