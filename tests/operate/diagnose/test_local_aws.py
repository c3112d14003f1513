"""The whole way: metrics put into a deployed endpoint of the local AWS, read back by the CLI."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from roles_under_test import give_hosting_role
from typer.testing import CliRunner

from local_sagemaker import LocalAws, delete_stack, deploy_template
from local_sagemaker.admission import TOKEN_VARIABLE
from local_sagemaker.model_servers import SimulatedModelServer
from local_sagemaker.runtime.options import RuntimeOptions
from low_latency_endpoint.cli import app

_PLAN = {
    "warnings": [],
    "decisions": [
        {
            "name": "scaling_target",
            "value": 7800.0,
            "inputs": {"TPS per instance": 200.0, "safety factor": 0.65},
        },
        {
            "name": "alarm_overhead_latency_average",
            "value": 40.0,
            "inputs": {"metric": "OverheadLatency", "statistic": "Average", "target in ms": 200.0},
        },
    ],
}
_MINUTES = 30


def _template(stack: str) -> dict[str, Any]:
    return {
        "Resources": {
            "Model": {
                "Type": "AWS::SageMaker::Model",
                "Properties": {
                    "ExecutionRoleArn": "arn:aws:iam::123456789012:role/models",
                    "PrimaryContainer": {
                        "Image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/model:1"
                    },
                },
            },
            "Configuration": {
                "Type": "AWS::SageMaker::EndpointConfig",
                "Properties": {
                    "ProductionVariants": [
                        {
                            "VariantName": "primary",
                            "ModelName": {"Fn::GetAtt": ["Model", "ModelName"]},
                            "InstanceType": "ml.m5.xlarge",
                            "InitialInstanceCount": 2,
                            "InitialVariantWeight": 1,
                            "RoutingConfig": {"RoutingStrategy": "RANDOM"},
                        }
                    ]
                },
            },
            "Endpoint": {
                "Type": "AWS::SageMaker::Endpoint",
                "Metadata": {"LowLatencyEndpoint::Plan": _PLAN},
                "Properties": {
                    "EndpointName": stack,
                    "EndpointConfigName": {"Fn::GetAtt": ["Configuration", "EndpointConfigName"]},
                },
            },
            "Target": {
                "Type": "AWS::ApplicationAutoScaling::ScalableTarget",
                "Properties": {
                    "MinCapacity": 2,
                    "MaxCapacity": 2,
                    "ResourceId": {"Fn::Sub": "endpoint/${Endpoint.EndpointName}/variant/primary"},
                    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
                    "ServiceNamespace": "sagemaker",
                },
            },
            "Policy": {
                "Type": "AWS::ApplicationAutoScaling::ScalingPolicy",
                "Properties": {
                    "PolicyName": "invocations",
                    "PolicyType": "TargetTrackingScaling",
                    "ScalingTargetId": {"Ref": "Target"},
                    "TargetTrackingScalingPolicyConfiguration": {
                        "TargetValue": 7800,
                        "PredefinedMetricSpecification": {
                            "PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"
                        },
                    },
                },
            },
            "Alarm": {
                "Type": "AWS::CloudWatch::Alarm",
                "Properties": {
                    "AlarmName": f"{stack}-p99",
                    "Namespace": "AWS/SageMaker",
                    "MetricName": "ModelLatency",
                    "ExtendedStatistic": "p99",
                    "Period": 60,
                    "EvaluationPeriods": 5,
                    "Threshold": 160_000,
                    "ComparisonOperator": "GreaterThanThreshold",
                    "Dimensions": [
                        {
                            "Name": "EndpointName",
                            "Value": {"Fn::GetAtt": ["Endpoint", "EndpointName"]},
                        },
                        {"Name": "VariantName", "Value": "primary"},
                    ],
                },
            },
        }
    }


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with LocalAws.in_process(region="us-east-1") as running:
        yield running


@pytest.fixture
def endpoint(aws: LocalAws, request: pytest.FixtureRequest) -> Iterator[str]:
    name = "diagnosed-" + request.node.name.split("[")[0].replace("_", "-")[-30:].strip("-")
    give_hosting_role(aws)
    deploy_template(aws, _template(name), name)
    yield name
    delete_stack(aws, name)


def _put(
    aws: LocalAws, endpoint: str, *, milliseconds: list[float], cpu: float, requests: float
) -> None:
    """Half an hour of one-minute values: the same latencies, CPU and requests in each."""
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    client = aws.client("cloudwatch")
    dimensions = [
        {"Name": "EndpointName", "Value": endpoint},
        {"Name": "VariantName", "Value": "primary"},
    ]

    def put(namespace: str, metric: str, values: list[float], counts: list[float]) -> None:
        for start in range(1, _MINUTES + 1, 10):
            client.put_metric_data(
                Namespace=namespace,
                MetricData=[
                    {
                        "MetricName": metric,
                        "Dimensions": dimensions,
                        "Timestamp": now - timedelta(minutes=minute),
                        "Values": values,
                        "Counts": counts,
                    }
                    for minute in range(start, start + 10)
                ],
            )

    each = requests / len(milliseconds)
    put(
        "AWS/SageMaker",
        "ModelLatency",
        [1000 * ms for ms in milliseconds],
        [each] * len(milliseconds),
    )
    put("AWS/SageMaker", "OverheadLatency", [6000.0], [requests])
    put("AWS/SageMaker", "Invocations", [1.0], [requests])
    put("AWS/SageMaker", "InvocationsPerInstance", [0.5], [requests])
    put("/aws/sagemaker/Endpoints", "CPUUtilization", [4 * cpu], [2])


def _diagnosed(
    aws: LocalAws, endpoint: str, monkeypatch: pytest.MonkeyPatch, *, by_the_wall: bool = False
) -> tuple[int, dict[str, Any]]:
    for name, value in aws.exports().items():
        monkeypatch.setenv(name, value)
    if by_the_wall:  # without the token the local AWS's own time is not asked for
        monkeypatch.delenv(TOKEN_VARIABLE)
    result = CliRunner().invoke(app, ["diagnose", endpoint, "--since", "25m", "--json"])
    assert result.exit_code in (0, 1), result.output
    return result.exit_code, json.loads(result.stdout)


def test_a_healthy_endpoint(aws: LocalAws, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _put(aws, endpoint, milliseconds=[30, 35, 40, 45, 60], cpu=45, requests=6000)
    code, made = _diagnosed(aws, endpoint, monkeypatch)
    assert (code, made["findings"], made["unknown"]) == (0, [], [])
    model, overhead = made["latency_ms"]["primary"]
    assert model["limit"] == "p99 160 ms"
    assert (model["p50"], overhead["average"]) == (pytest.approx(40, rel=0.15), pytest.approx(6))
    assert overhead["limit"] == "Average 40 ms", "from the plan in the stack's template"


def test_a_saturated_fleet_at_its_maximum(
    aws: LocalAws, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _put(aws, endpoint, milliseconds=[250, 300, 350, 400, 600], cpu=97, requests=27_000)
    code, made = _diagnosed(aws, endpoint, monkeypatch)
    assert code == 1
    assert [finding["id"] for finding in made["findings"]] == ["LLD102"]
    changes = made["findings"][0]["changes"]
    assert {
        "key": "instances.max",
        "value": "4",
        "why": "the load of this window at the scaling target",
    } in changes


def test_uneven_latency_under_random(
    aws: LocalAws, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _put(aws, endpoint, milliseconds=[38, 39, 40, 41, 420], cpu=45, requests=6000)
    _, made = _diagnosed(aws, endpoint, monkeypatch)
    assert [finding["id"] for finding in made["findings"]] == ["LLD502"]


def _status(sagemaker: Any) -> str:
    status: str = sagemaker.describe_endpoint(EndpointName="chat")["EndpointStatus"]
    return status


def test_a_cuda_13_image_on_the_default_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty minutes old by a clock that stands still: Creating, and nothing logged."""
    options = RuntimeOptions(clock_speed=0, clock_start=time.time() - 1200)
    servers = {"vllm": SimulatedModelServer()}
    with LocalAws.in_process(model_servers=servers, runtime=options) as aws:
        sagemaker = aws.client("sagemaker")
        sagemaker.create_model(
            ModelName="chat",
            ExecutionRoleArn=give_hosting_role(aws),
            PrimaryContainer={
                "Image": "763104351884.dkr.ecr.us-east-1.amazonaws.com/"
                "vllm:0.30.0-gpu-py312-cu130-ubuntu24.04-sagemaker"
            },
        )
        sagemaker.create_endpoint_config(
            EndpointConfigName="chat",
            ProductionVariants=[
                {
                    "VariantName": "primary",
                    "ModelName": "chat",
                    "InitialInstanceCount": 1,
                    "InstanceType": "ml.g6e.12xlarge",
                }
            ],
        )
        sagemaker.create_endpoint(EndpointName="chat", EndpointConfigName="chat")
        code, made = _diagnosed(aws, "chat", monkeypatch, by_the_wall=True)
        assert code == 1
        (finding,) = made["findings"]
        assert finding["id"] == "LLD119"
        assert {
            "key": "inference_ami",
            "value": "al2023-ami-sagemaker-inference-gpu-4-1",
            "why": "the driver that the image's CUDA needs",
        } in finding["changes"]
        # The container ends by the machine's clock, and SageMaker gives up by the local AWS's.
        deadline = time.monotonic() + 60
        while (status := _status(sagemaker)) == "Creating" and time.monotonic() < deadline:
            aws.advance(300)
            time.sleep(0.05)
        assert status == "Failed"
        sagemaker.delete_endpoint(EndpointName="chat")
        sagemaker.delete_endpoint_config(EndpointConfigName="chat")
        sagemaker.delete_model(ModelName="chat")
