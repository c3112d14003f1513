"""What Inference Recommender is asked, what its answers mean, and what the settings take from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.operate.sagemaker_jobs import (
    Job,
    JobRequest,
    ModelUnderTest,
    Recommendation,
    adopt_recommendation,
    latency_target_ms,
    model_latency_ms,
    recommendation_request,
    recommendations,
)
from low_latency_endpoint.settings import EndpointSettings, load_settings, parse_settings
from low_latency_endpoint.settings.yaml_editing import edited_yaml
from tests.pinned_models import EMBEDDER, written_lock
from tests.refusals import refused

from .account import DEPLOYED, NETWORK, ROLE, THREADS, JobAccount, faults, result
from .conftest import SHIPPED

TARGET_MS = 200
ENDPOINT = load_settings(SHIPPED).endpoints["sentiment"]
# Recorded in the SageMaker Python SDK's tests.
RECORDED = result("ml.g4dn.xlarge", latency=171, invocations=1645)
NAMED = {"JobName": "sentiment-1", "RoleArn": ROLE}
VARIABLES = result("ml.c5.large", latency=1, invocations=600, **THREADS)
# Without an instance type, a model's name or a metric.
SERVERLESS = {
    "EndpointConfiguration": {"EndpointName": "e", "VariantName": "v"},
    "ModelConfiguration": {},
}


def request(
    account: JobAccount,
    *types: str,
    endpoint: EndpointSettings = ENDPOINT,
    payload: str = "s3://b/payload.tar.gz",
) -> JobRequest:
    """A request of ours, which AWS's model takes."""
    job = recommendation_request(
        account,
        "sentiment",
        ModelUnderTest.of_settings(endpoint),
        payload=payload,
        instance_types=types,
    )
    assert faults("CreateInferenceRecommendationsJob", {**NAMED, **job.content}) == ""
    return job


def results_of(*answers: dict[str, Any]) -> list[Recommendation]:
    description = {"InferenceRecommendations": list(answers)}
    return recommendations(Job("sentiment-1", "COMPLETED", "", description), TARGET_MS)


def adopted(
    answer: dict[str, Any],
    endpoint: EndpointSettings = ENDPOINT,
    *,
    number: int = 1,
    key: str = "sentiment",
) -> dict[Any, Any]:
    return adopt_recommendation(results_of(answer), number, key, endpoint)


# --- requests ----------------------------------------------------------------------------------
def test_a_default_job(account: JobAccount) -> None:
    job = request(account)
    assert job.content == {
        "JobType": "Default",
        "InputConfig": {
            "ModelName": "Model-1",
            "VpcConfig": NETWORK,
            "ContainerConfig": {
                "Domain": "MACHINE_LEARNING",
                "Task": "OTHER",
                "Framework": "PYTORCH",
                "PayloadConfig": {
                    "SamplePayloadUrl": "s3://b/payload.tar.gz",
                    "SupportedContentTypes": ["application/json"],
                },
                "SupportedEndpointType": "RealTime",
            },
        },
    }
    assert job.limit == "45 minutes, says AWS; a Default job takes no limit"


def test_an_advanced_job(account: JobAccount) -> None:
    types = ("ml.c6i.xlarge", "ml.m5.xlarge", "ml.r5.xlarge", "ml.m6i.xlarge")
    job = request(account, *types)
    tested = job.content["InputConfig"]
    assert job.content["JobType"] == "Advanced"
    assert tested["EndpointConfigurations"] == [{"InstanceType": name} for name in types]
    assert tested["TrafficPattern"] == {
        "TrafficType": "PHASES",
        "Phases": [{"InitialNumberOfUsers": 1, "SpawnRate": 3, "DurationInSeconds": 600}],
    }
    assert tested["JobDurationInSeconds"] == 7200
    assert tested["ResourceLimit"] == {"MaxNumberOfTests": 4, "MaxParallelOfTests": 3}
    assert job.content["StoppingConditions"] == {
        "MaxInvocations": 30_000,
        "FlatInvocations": "Stop",
        "ModelLatencyThresholds": [{"Percentile": "P95", "ValueInMilliseconds": 200}],
    }
    assert job.limit == "2 hours, so at most 6 instance hours"


def test_the_validation_of_these_tests_finds_faults(account: JobAccount) -> None:
    content = {**NAMED, **request(account, "ml.c5.xlarge").content, "JobName": "a_b"}
    content["InputConfig"]["EndpointConfigurations"][0]["InstanceType"] = "ml.none.large"
    text = faults("CreateInferenceRecommendationsJob", content)
    assert "ml.none.large" in text
    assert "a_b" in text


@pytest.mark.parametrize(
    ("image", "framework"),
    [
        ("dlc: {repository: tensorflow-inference, tag: 2.19.0-cpu}", "TENSORFLOW"),
        ("uri: 1.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1", "XGBOOST"),
        ("ecr: {repository: team/mine, tag: 1.4.2}", "PYTORCH"),
    ],
)
def test_container_of_the_settings(account: JobAccount, image: str, framework: str) -> None:
    endpoint = parse_settings(f"""
client_zones: {{ids: [use1-az1, use1-az2]}}
endpoints:
  a:
    containers: [{{image: {{{image}}}}}]
    instance_type: ml.m5.large
    latency: {{p99: 200ms}}
    warm_up: {{payload: {{text: '1,2', content_type: text/csv; charset=utf-8}}}}
""").endpoints["a"]
    container = request(account, endpoint=endpoint).content["InputConfig"]["ContainerConfig"]
    assert container["Framework"] == framework
    assert container["PayloadConfig"]["SupportedContentTypes"] == ["text/csv"]


@pytest.mark.parametrize(
    ("types", "changes", "code", "word"),
    [
        ([], {"payload": ""}, "LLR107", "tar.gz"),
        ([], {"payload": "s3://b/p.json"}, "LLR107", "p.json"),
        ([], {"endpoint": replace(ENDPOINT, latency=None)}, "LLE928", "latency"),
        (["m5.large"], {}, "LLE405", "m5.large"),
        (["ml.m6g.large"], {}, "LLE334", "ml.m6g.large"),  # the shipped image is for x86_64
    ],
)
def test_what_is_not_tested_costs_nothing(
    account: JobAccount, types: list[str], changes: dict[str, Any], code: str, word: str
) -> None:
    with refused(code, says=word):
        request(account, *types, **changes)
    assert account.asked == []


def test_which_model_an_endpoint_has_is_not_said_during_an_update(account: JobAccount) -> None:
    described = account.answers["sagemaker.DescribeEndpoint"]
    pending = {"EndpointConfigName": "next"}
    updating = {"EndpointStatus": "Updating", "PendingDeploymentSummary": pending}
    account.answers["sagemaker.DescribeEndpoint"] = {**described, **updating}
    with refused("LLR103", says="updating to next"):
        request(account)


@pytest.mark.parametrize(
    ("operation", "answer"),
    [
        ("DescribeEndpointConfig", {"ProductionVariants": [{"VariantName": "primary"}]}),
        ("DescribeEndpointConfig", {"ProductionVariants": [{**DEPLOYED, "VariantName": "other"}]}),
    ],
    ids=["inference components", "another variant"],
)
def test_only_the_settings_own_model_is_tested(
    account: JobAccount, operation: str, answer: Any
) -> None:
    account.answers[f"sagemaker.{operation}"] = answer
    with refused("LLR103", says="no model of a variant primary in endpoint sentiment"):
        request(account)


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ({"p95": "120ms", "p99": "200ms"}, 120),
        ({"p50": "40ms", "p99": "200ms"}, 200),
        ({"p99_9": "400.9ms"}, 400),
        ({"p50": "40ms", "p90": "100ms"}, 100),
        ({"average": "60ms"}, 60),
        ({"p95": "0.5ms"}, 1),
    ],
)
def test_the_target_that_stands_for_p95(targets: dict[str, str], expected: int) -> None:
    latency = type(ENDPOINT.latency)(**targets)
    assert latency_target_ms(latency.milliseconds) == expected


# --- answers -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("users", "latency_ms"), [(1, 0.8), (1, 40), (3, 40), (20, 250), (180, 900), (30, 5000)]
)
def test_the_unit_of_model_latency(users: int, latency_ms: float) -> None:
    """Closed loop: so many users give users/latency requests per second, either unit is told."""
    per_minute = round(users / (latency_ms / 1000) * 60)
    if latency_ms >= 1:
        assert model_latency_ms(round(latency_ms), per_minute) == latency_ms
    assert model_latency_ms(round(latency_ms * 1000), per_minute) == latency_ms


# --- adoption ----------------------------------------------------------------------------------
def test_adopting_changes_the_lines_of_the_result_only() -> None:
    answer = result("ml.c6i.4xlarge", latency=88, invocations=9000, **THREADS)
    edit = edited_yaml(SHIPPED.read_text(), adopted(answer))
    parse_settings(edit.after)
    assert [line for line in edit.diff().splitlines() if line[0] in "+-"][2:] == [
        "-    instance_type: ml.m5.12xlarge",
        '+          OMP_NUM_THREADS: "8"',
        "+    instance_type: ml.c6i.4xlarge",
        "-      tps_per_instance: 200",
        "+      tps_per_instance: 150",
    ]


def test_variables_of_a_result_go_to_the_model_of_the_hub(tmp_path: Path) -> None:
    written_lock(tmp_path, EMBEDDER)
    path = tmp_path / "endpoint.yaml"
    path.write_text(
        "client_zones: {ids: [use1-az1, use1-az2]}\n"
        f"endpoints: {{v: {{hugging_face: {{model: {EMBEDDER.model}}}, instance_type: ml.m5.large}}}}\n"
    )
    values = adopted(VARIABLES, load_settings(path).endpoints["v"], key="v")
    assert values[("endpoints", "v", "hugging_face", "environment", "OMP_NUM_THREADS")] == "8"


def test_without_a_throughput_only_the_type_is_written() -> None:
    values = adopted(RECORDED, replace(ENDPOINT, throughput=None))
    assert values == {("endpoints", "sentiment", "instance_type"): "ml.g4dn.xlarge"}


WITHOUT_RATE = {**RECORDED, "Metrics": {"ModelLatency": 171}}
SEVERAL = replace(ENDPOINT, containers=[*ENDPOINT.containers] * 2, inference_mode="Serial")


@pytest.mark.parametrize(
    ("answer", "changes", "word"),
    [
        (result("ml.c5.large", latency=201, invocations=600), {}, "201 ms"),
        (SERVERLESS, {}, "serverless"),
        (
            result("ml.c5.large", latency=1, invocations=600, CompilationJobName="neo-1"),
            {},
            "neo-1",
        ),
        (WITHOUT_RATE, {}, "no rate"),
        (VARIABLES, {"endpoint": SEVERAL}, "one of 2 containers"),
        (RECORDED, {"number": 0}, "1 to 1"),
        (RECORDED, {"number": 2}, "1 to 1"),
        (RECORDED, {"number": -1}, "1 to 1"),
    ],
)
def test_results_that_cannot_be_adopted(
    answer: dict[str, Any], changes: dict[str, Any], word: str
) -> None:
    with refused("LLR109", says=word):
        adopted(answer, **changes)
