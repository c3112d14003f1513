"""Cold instances on the local AWS: real requests to model servers that start slowly.

Their latencies are real, and so is the time; the same findings on made-up minutes: test_faults.py.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from hosting_site import Site

from local_sagemaker import LocalAws, RuntimeOptions
from local_sagemaker.model_servers import ServiceTime, SimulatedModelServer

from .conftest import Diagnosed

_CALLERS, _A_MINUTE = 8, 32
_WARM = SimulatedModelServer(service_time=ServiceTime.constant(0.004), concurrency=16, cpu_busy=20)
#: A new instance takes 0.6 s for each of its first requests.
_COLD = dataclasses.replace(_WARM, cold_requests=60, cold_factor=150)
_TWO = {"InitialInstanceCount": 2}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    options = RuntimeOptions(clock_start=time.time() - 86_400, clock_speed=0)
    with LocalAws.in_process(
        region="us-east-1", model_servers={"*": _WARM}, runtime=options
    ) as running:
        yield Site(running)


def _settle(site: Site, endpoint: str) -> None:
    """Wait for the endpoint, and let the clock go on for it."""

    def in_service(described: dict[str, str]) -> bool:
        if described["EndpointStatus"] != "InService":
            site.aws.advance(5)
        return described["EndpointStatus"] == "InService"

    site.until(endpoint, in_service)


def _traffic(site: Site, endpoint: str, minutes: int) -> None:
    for _ in range(minutes):
        site.invoke_many(endpoint, _A_MINUTE, at_once=_CALLERS)
        site.aws.advance(60)


def _deploy(site: Site, endpoint: str) -> str:
    config = site.config(_TWO)
    site.update(endpoint, config)
    return f"the deployment of {config} at"


def _scale(site: Site, endpoint: str) -> str:
    """Register a policy whose target the traffic is far above: it acts within some minutes."""
    variant = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": f"endpoint/{endpoint}/variant/primary",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    }
    metric = {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}
    scaling = site.aws.client("application-autoscaling")
    scaling.register_scalable_target(**variant, MinCapacity=2, MaxCapacity=4)
    scaling.put_scaling_policy(
        **variant,
        PolicyName="invocations",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={
            "TargetValue": _A_MINUTE / 5,
            "PredefinedMetricSpecification": metric,
        },
    )
    site.aws.advance(60)
    return "the scale-out to 4 instances at"


def _by_hand(site: Site, endpoint: str) -> str:
    site.scale(endpoint, 4)
    return "the rise from 2 to 4 instances at"


@pytest.mark.realtime
@pytest.mark.parametrize("begin", [_deploy, _scale, _by_hand])
def test_a_cold_fleet_is_named(
    begin: Callable[[Site, str], str], site: Site, diagnosed: Diagnosed
) -> None:
    site.aws.set_model_servers({"*": _WARM})
    endpoint = site.endpoint(_TWO, wait=False)
    _settle(site, endpoint)
    _traffic(site, endpoint, 12)
    # Instances that are there have answered too many requests to be cold again.
    site.aws.set_model_servers({"*": _COLD})
    words = begin(site, endpoint)
    _settle(site, endpoint)
    _traffic(site, endpoint, 12)
    site.aws.flush_metrics()
    until = site.aws.runtime_time().isoformat()
    (finding,) = diagnosed(site.aws, endpoint, "--until", until, "--target", "p99=500ms")[
        "findings"
    ]
    assert finding["id"] == "LLD121"
    assert words in " ".join(each["text"] for each in finding["evidence"])


def test_records_have_the_time_of_the_clock(site: Site) -> None:
    """A day ago and standing still: not the machine's time."""
    aws, began = site.aws, site.aws.runtime_time()
    endpoint = site.endpoint(_TWO, wait=False)
    _settle(site, endpoint)
    aws.advance(600)
    changed = aws.runtime_time()
    _by_hand(site, endpoint)
    _settle(site, endpoint)
    _scale(site, endpoint)
    described = site.described(endpoint)
    (image,) = described["ProductionVariants"][0]["DeployedImages"]
    configuration = aws.client("sagemaker").describe_endpoint_config(
        EndpointConfigName=described["EndpointConfigName"]
    )
    (target,) = aws.client("application-autoscaling").describe_scalable_targets(
        ServiceNamespace="sagemaker", ResourceIds=[f"endpoint/{endpoint}/variant/primary"]
    )["ScalableTargets"]
    ended = aws.runtime_time()
    for made in (described["CreationTime"], image["ResolutionTime"], configuration["CreationTime"]):
        assert abs(made - began) < timedelta(minutes=1)
    for made in (described["LastModifiedTime"], target["CreationTime"]):
        assert changed - timedelta(seconds=1) <= made <= ended
