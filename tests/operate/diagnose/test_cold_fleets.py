"""Cold instances on the local AWS: real requests to model servers that start slowly.

Their latencies are real, and so is the time; the same findings on made-up minutes: test_faults.py.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from roles_under_test import give_hosting_role
from typer.testing import CliRunner

from local_sagemaker import LocalAws, RuntimeOptions
from local_sagemaker.model_servers import ServiceTime, SimulatedModelServer
from low_latency_endpoint.cli import app

_VARIANT = "primary"
_CALLERS, _A_MINUTE = 8, 32
_WARM = SimulatedModelServer(service_time=ServiceTime.constant(0.004), concurrency=16, cpu_busy=20)
#: A new instance takes 0.6 s for each of its first requests.
_COLD = dataclasses.replace(_WARM, cold_requests=60, cold_factor=150)


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    options = RuntimeOptions(clock_start=time.time() - 86_400, clock_speed=0)
    with LocalAws.in_process(
        region="us-east-1", model_servers={"*": _WARM}, runtime=options
    ) as running:
        running.client("sagemaker").create_model(
            ModelName="cold-fleets",
            ExecutionRoleArn=give_hosting_role(running),
            PrimaryContainer={"Image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/model:1"},
        )
        yield running


def _configure(aws: LocalAws, name: str) -> None:
    aws.client("sagemaker").create_endpoint_config(
        EndpointConfigName=name,
        ProductionVariants=[
            {
                "VariantName": _VARIANT,
                "ModelName": "cold-fleets",
                "InstanceType": "ml.c7i.xlarge",
                "InitialInstanceCount": 2,
            }
        ],
    )


def _settle(aws: LocalAws, endpoint: str) -> None:
    """Wait for the endpoint, and let the clock go on for it."""
    for _ in range(400):
        status = aws.client("sagemaker").describe_endpoint(EndpointName=endpoint)["EndpointStatus"]
        if status == "InService":
            return
        aws.advance(5)
        time.sleep(0.02)
    pytest.fail(f"{endpoint} stays {status}")


def _traffic(aws: LocalAws, endpoint: str, minutes: int) -> None:
    runtime = aws.client("sagemaker-runtime")
    with ThreadPoolExecutor(_CALLERS) as pool:
        for _ in range(minutes):
            list(
                pool.map(
                    lambda _: runtime.invoke_endpoint(EndpointName=endpoint, Body=b"{}"),
                    range(_A_MINUTE),
                )
            )
            aws.advance(60)


def _deploy(aws: LocalAws, endpoint: str) -> None:
    _configure(aws, f"{endpoint}-2")
    aws.client("sagemaker").update_endpoint(
        EndpointName=endpoint, EndpointConfigName=f"{endpoint}-2"
    )


def _scale(aws: LocalAws, endpoint: str) -> None:
    """Register a policy whose target the traffic is far above: it acts within some minutes."""
    variant = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": f"endpoint/{endpoint}/variant/{_VARIANT}",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    }
    scaling = aws.client("application-autoscaling")
    scaling.register_scalable_target(**variant, MinCapacity=2, MaxCapacity=4)
    scaling.put_scaling_policy(
        **variant,
        PolicyName="invocations",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={
            "TargetValue": _A_MINUTE / 5,
            "PredefinedMetricSpecification": {
                "PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"
            },
        },
    )
    aws.advance(60)


def _by_hand(aws: LocalAws, endpoint: str) -> None:
    aws.client("sagemaker").update_endpoint_weights_and_capacities(
        EndpointName=endpoint,
        DesiredWeightsAndCapacities=[{"VariantName": _VARIANT, "DesiredInstanceCount": 4}],
    )


@pytest.mark.realtime
@pytest.mark.parametrize(
    ("begin", "words"),
    [
        (_deploy, "the deployment of cold-deploy-2 at"),
        (_scale, "the scale-out to 4 instances at"),
        (_by_hand, "the rise from 2 to 4 instances at"),
    ],
    ids=["deploy", "scale", "by-hand"],
)
def test_a_cold_fleet_is_named(
    begin: Callable[[LocalAws, str], None],
    words: str,
    aws: LocalAws,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    endpoint = f"cold{begin.__name__.replace('_', '-')}"
    aws.set_model_servers({"*": _WARM})
    _configure(aws, endpoint)
    aws.client("sagemaker").create_endpoint(EndpointName=endpoint, EndpointConfigName=endpoint)
    _settle(aws, endpoint)
    _traffic(aws, endpoint, 12)
    # Instances that are there have answered too many requests to be cold again.
    aws.set_model_servers({"*": _COLD})
    begin(aws, endpoint)
    _settle(aws, endpoint)
    _traffic(aws, endpoint, 12)
    made = _diagnosed(aws, endpoint, monkeypatch)
    assert [finding["id"] for finding in made["findings"]] == ["LLD121"]
    evidence = " ".join(each["text"] for each in made["findings"][0]["evidence"])
    assert words in evidence


def test_records_have_the_time_of_the_clock(aws: LocalAws) -> None:
    """A day ago and standing still: not the machine's time."""
    _configure(aws, "dated")
    sagemaker, began = aws.client("sagemaker"), aws.runtime_time()
    sagemaker.create_endpoint(EndpointName="dated", EndpointConfigName="dated")
    _settle(aws, "dated")
    aws.advance(600)
    changed = aws.runtime_time()
    _by_hand(aws, "dated")
    _settle(aws, "dated")
    _scale(aws, "dated")
    described = sagemaker.describe_endpoint(EndpointName="dated")
    (image,) = described["ProductionVariants"][0]["DeployedImages"]
    configuration = sagemaker.describe_endpoint_config(EndpointConfigName="dated")
    (target,) = aws.client("application-autoscaling").describe_scalable_targets(
        ServiceNamespace="sagemaker", ResourceIds=["endpoint/dated/variant/primary"]
    )["ScalableTargets"]
    ended = aws.runtime_time()
    for time_ in (
        described["CreationTime"],
        image["ResolutionTime"],
        configuration["CreationTime"],
    ):
        assert abs(time_ - began) < timedelta(minutes=1)
    for time_ in (described["LastModifiedTime"], target["CreationTime"]):
        assert changed - timedelta(seconds=1) <= time_ <= ended


def _diagnosed(aws: LocalAws, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    for name, value in aws.exports().items():
        monkeypatch.setenv(name, value)
    aws.flush_metrics()
    until = aws.runtime_time().isoformat()
    result = CliRunner().invoke(
        app,
        [
            "diagnose",
            endpoint,
            "--since",
            "25m",
            "--until",
            until,
            "--target",
            "p99=500ms",
            "--json",
        ],
    )
    assert result.exit_code in (0, 1), result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found
