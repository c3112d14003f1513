"""What Inference Recommender is asked, what its answers mean, and what the settings take from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.account.calls import Account
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.facts.instance_types import instance_types
from low_latency_endpoint.operate.sagemaker_jobs.inference_recommender import (
    Recommendation,
    adopt_recommendation,
    latency_target,
    model_latency_ms,
    recommendation_request,
    recommendations,
)
from low_latency_endpoint.operate.sagemaker_jobs.jobs import Adoption, Job, JobRequest
from low_latency_endpoint.settings import EndpointSettings, load_settings, parse_settings
from low_latency_endpoint.settings.yaml_editing import edited_yaml
from tests.fake_aws import Refused
from tests.pinned_models import EMBEDDER, written_lock
from tests.refusals import refused

from .account import NETWORK, ROLE, JobAccount, faults, result
from .conftest import SHIPPED

TARGET_MS = 200
# Recorded in the SageMaker Python SDK's tests: 0.736 / (1645 * 60) is the cost of one inference.
RECORDED = result("ml.g4dn.xlarge", latency=171, invocations=1645)


def request(account: JobAccount, endpoint: EndpointSettings, *types: str) -> JobRequest:
    return recommendation_request(
        Account(account),
        "sentiment",
        endpoint,
        job_name="sentiment-1",
        role_arn=ROLE,
        payload="s3://b/payload.tar.gz",
        instance_types=types,
    )


def results_of(*answers: dict[str, Any]) -> list[Recommendation]:
    description = {"InferenceRecommendations": list(answers)}
    return recommendations(Job("sentiment-1", "COMPLETED", "", description), TARGET_MS)


def adopted(answer: dict[str, Any], endpoint: EndpointSettings, key: str = "sentiment") -> Adoption:
    return adopt_recommendation(results_of(answer), 1, key, endpoint)


# --- requests ----------------------------------------------------------------------------------
def test_a_default_job(account: JobAccount, endpoint: EndpointSettings) -> None:
    job = request(account, endpoint)
    assert faults("CreateInferenceRecommendationsJob", job.content) == ""
    assert job.content == {
        "JobName": "sentiment-1",
        "JobType": "Default",
        "RoleArn": ROLE,
        "InputConfig": {
            "ModelName": "Model-1",
            "VpcConfig": NETWORK,
            "ContainerConfig": {
                "Domain": "MACHINE_LEARNING",
                "Task": "OTHER",
                "Framework": "PYTORCH",
                "FrameworkVersion": "2.6.0",
                "PayloadConfig": {
                    "SamplePayloadUrl": "s3://b/payload.tar.gz",
                    "SupportedContentTypes": ["application/json"],
                },
                "SupportedEndpointType": "RealTime",
            },
        },
    }
    assert "45 minutes" in job.limit


def test_an_advanced_job(account: JobAccount, endpoint: EndpointSettings) -> None:
    types = ("ml.c6i.xlarge", "ml.m5.xlarge", "ml.r5.xlarge", "ml.m6i.xlarge")
    job = request(account, endpoint, *types)
    assert faults("CreateInferenceRecommendationsJob", job.content) == ""
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
    assert job.notes == ["a test ends at a p95 of 200 ms, the settings' target for p99"]


def test_the_validation_of_these_tests_finds_faults(
    account: JobAccount, endpoint: EndpointSettings
) -> None:
    content = {**request(account, endpoint, "ml.c5.xlarge").content, "JobName": "a_b"}
    content["InputConfig"]["EndpointConfigurations"][0]["InstanceType"] = "ml.none.large"
    found = faults("CreateInferenceRecommendationsJob", content)
    assert "ml.none.large" in found
    assert "a_b" in found
    with pytest.raises(KeyError):
        faults("CreateInferenceRecommendationsJob", {**content, "Unknown": 1})


ENDPOINT = load_settings(SHIPPED).endpoints["sentiment"]


@given(st.lists(st.sampled_from([*instance_types(), "large"]), max_size=10, unique=True))
def test_any_types(types: list[str]) -> None:
    """A request that AWS's model takes, or a coded error of ours."""
    try:
        job = request(JobAccount(), ENDPOINT, *types)
    except ConfigurationError as error:
        code = error.code
    else:
        assert faults("CreateInferenceRecommendationsJob", job.content) == ""
        return
    assert code in ("LLE334", "LLE405")


@pytest.mark.parametrize(
    ("image", "environment", "expected"),
    [
        (
            "dlc: {repository: tensorflow-inference, tag: 2.19.0-cpu}",
            "{}",
            ("TENSORFLOW", "2.19.0", "text/csv"),
        ),
        (
            "uri: 1.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1",
            "{}",
            ("XGBOOST", "1.7", "text/csv"),
        ),
        ("ecr: {repository: team/mine, tag: 1.4.2}", "{}", ("PYTORCH", None, "text/csv")),
    ],
)
def test_container_as_the_settings_describe_it(
    account: JobAccount, image: str, environment: str, expected: Any
) -> None:
    endpoint = parse_settings(f"""
client_zones: {{ids: [use1-az1, use1-az2]}}
endpoints:
  a:
    containers: [{{image: {{{image}}}, environment: {environment}}}]
    instance_type: ml.m5.large
    latency: {{p99: 200ms}}
    warm_up: {{payload: {{text: '1,2', content_type: text/csv; charset=utf-8}}}}
""").endpoints["a"]
    container = request(account, endpoint).content["InputConfig"]["ContainerConfig"]
    [content_type] = container["PayloadConfig"]["SupportedContentTypes"]
    found = (container["Framework"], container.get("FrameworkVersion"), content_type)
    assert found == expected


def test_types_that_could_not_run_the_image_cost_nothing(
    account: JobAccount, endpoint: EndpointSettings
) -> None:
    with refused("LLE405", where="--instance-type"):
        request(account, endpoint, "m5.large")
    with refused("LLE334", where="--instance-type"):
        request(account, endpoint, "ml.m6g.large")  # the shipped image is for x86_64
    assert account.asked == []
    assert "would stand idle" in request(account, endpoint, "ml.g5.xlarge").notes[0]


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ({"p95": 120.0, "p99": 200.0}, ("p95", 120)),
        ({"p50": 40.0, "p99": 200.0}, ("p99", 200)),
        ({"p99.9": 400.9}, ("p99.9", 400)),
        ({"p50": 40.0, "p90": 100.0}, ("p90", 100)),
        ({"Average": 60.0}, ("Average", 60)),
        ({"p95": 0.5}, ("p95", 1)),
    ],
)
def test_the_target_that_stands_for_p95(
    endpoint: EndpointSettings, targets: dict[str, float], expected: tuple[str, int]
) -> None:
    names = {"p99.9": "p99_9", "Average": "average"}
    options = {names.get(name, name): f"{value}ms" for name, value in targets.items()}
    latency = type(endpoint.latency)(**options)
    assert latency_target(replace(endpoint, latency=latency)) == expected


def test_without_a_target_nothing_is_tested(endpoint: EndpointSettings) -> None:
    with refused("LLE928", says="latency"):
        latency_target(replace(endpoint, latency=None))


@pytest.mark.parametrize(
    "answers",
    [
        {
            "sagemaker.DescribeEndpoint": Refused(
                "ValidationException", 'Could not find endpoint "sentiment".', 400
            )
        },
        {"sagemaker.DescribeEndpointConfig": {"ProductionVariants": [{"VariantName": "primary"}]}},
        {
            "sagemaker.DescribeEndpointConfig": {
                "ProductionVariants": [{"VariantName": "other", "ModelName": "Model-1"}]
            }
        },
    ],
    ids=["no endpoint", "inference components", "another variant"],
)
def test_only_the_settings_own_model_is_tested(
    account: JobAccount, endpoint: EndpointSettings, answers: dict[str, Any]
) -> None:
    account.answers |= answers
    with refused("LLR103", says="no model of a variant primary in endpoint sentiment"):
        request(account, endpoint)


# --- answers -----------------------------------------------------------------------------------
def test_a_recorded_answer() -> None:
    threads = {"OMP_NUM_THREADS": "2"}
    slower = result("ml.c5.xlarge", latency=450, invocations=648, cost=0.204, environment=threads)
    fast, slow = results_of(RECORDED, slower)
    assert fast.instance_type == "ml.g4dn.xlarge"
    assert fast.cost_per_inference_usd == pytest.approx(7.456940238625975e-06)
    assert fast.tps_per_instance == pytest.approx(27.4167, abs=1e-4)
    assert fast.model_latency_ms == 171
    assert slow.environment == threads
    assert [fast.within_target, slow.within_target] == [True, False]


def test_values_that_aws_leaves_out() -> None:
    serverless = {
        "EndpointConfiguration": {"EndpointName": "e", "VariantName": "v"},
        "ModelConfiguration": {},
    }
    [found] = results_of(serverless)
    assert found.instance_type == ""
    assert found.tps_per_instance is None
    assert found.within_target is None


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
def test_adopting_changes_the_lines_of_the_result_only(endpoint: EndpointSettings) -> None:
    threads = {"OMP_NUM_THREADS": "8"}
    found = result("ml.c6i.4xlarge", latency=88, invocations=9000, environment=threads)
    edit = edited_yaml(SHIPPED.read_text(), adopted(found, endpoint).values)
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
    text = f"""\
client_zones: {{ids: [use1-az1, use1-az2]}}
endpoints:
  vectors:
    hugging_face: {{model: {EMBEDDER.model}}}
    instance_type: ml.c6i.xlarge
"""
    path = tmp_path / "endpoint.yaml"
    path.write_text(text)
    found = result("ml.c6i.4xlarge", latency=88, invocations=9000, environment={"A": "8"})
    endpoint = load_settings(path).endpoints["vectors"]
    path.write_text(edited_yaml(text, adopted(found, endpoint, "vectors").values).after)
    after = load_settings(path).endpoints["vectors"]
    assert after.hugging_face.environment == {"A": "8"}
    assert after.instance_type == "ml.c6i.4xlarge"


@pytest.mark.parametrize(("per_minute", "noted"), [(30_000, True), (29_800, True), (20_000, False)])
def test_a_rate_at_the_limit_of_aws_may_be_too_low(
    per_minute: int, noted: bool, endpoint: EndpointSettings
) -> None:
    notes = adopted(result("ml.c6i.large", latency=5, invocations=per_minute), endpoint).notes
    assert any("may hold more" in note for note in notes) is noted


def test_without_a_throughput_only_the_type_is_written(endpoint: EndpointSettings) -> None:
    adoption = adopted(RECORDED, replace(endpoint, throughput=None))
    assert adoption.values == {("endpoints", "sentiment", "instance_type"): "ml.g4dn.xlarge"}


def without_rate() -> dict[str, Any]:
    metrics = {
        name: value for name, value in RECORDED["Metrics"].items() if name != "MaxInvocations"
    }
    return {**RECORDED, "Metrics": metrics}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (result("ml.c5.large", latency=201, invocations=600), "201 ms"),
        (
            {**RECORDED, "EndpointConfiguration": {"EndpointName": "e", "VariantName": "v"}},
            "serverless",
        ),
        (result("ml.c5.large", latency=1, invocations=600, CompilationJobName="neo-1"), "neo-1"),
        (without_rate(), "no rate"),
    ],
)
def test_results_that_cannot_be_adopted(
    answer: dict[str, Any], said: str, endpoint: EndpointSettings
) -> None:
    with refused("LLR109") as caught:
        adopted(answer, endpoint)
    assert said in caught.value.got


def test_variables_are_not_written_into_one_of_several_containers(
    endpoint: EndpointSettings,
) -> None:
    containers = [*endpoint.containers, *endpoint.containers]
    several = replace(endpoint, containers=containers, inference_mode="Serial")
    answer = result("ml.c5.large", latency=1, invocations=600, environment={"A": "1"})
    with refused("LLR109", says="one of 2 containers"):
        adopted(answer, several)


@pytest.mark.parametrize("number", [0, 2, -1])
def test_results_that_are_not_there(number: int, endpoint: EndpointSettings) -> None:
    with refused("LLR109", got=str(number)):
        adopt_recommendation(results_of(RECORDED), number, "sentiment", endpoint)
