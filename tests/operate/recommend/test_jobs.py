"""What is read and done: recorded shapes, the model's latency unit, payloads, adopted values."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.account.calls import Account as Reader
from low_latency_endpoint.operate.recommend.inference_requests import (
    INFERENCE,
    LatencyThreshold,
    SamplePayload,
    find_deployed_model,
    sample_payload,
)
from low_latency_endpoint.operate.recommend.jobs import Job
from low_latency_endpoint.operate.recommend.recommendations import (
    Recommendation,
    adopt,
    ask_for_scaling,
    model_latency_ms,
    recommendations,
    stopping_threshold,
)
from low_latency_endpoint.settings import EndpointSettings, Settings, load_settings, parse_settings
from low_latency_endpoint.settings.yaml_editing import edited_yaml
from tests.fake_aws import Refused
from tests.pinned_models import EMBEDDER, written_lock
from tests.refusals import refused

from .account import Recommender, result
from .conftest import SHIPPED

THEN = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
P95_200 = LatencyThreshold("P95", 200)
# Recorded in the SageMaker Python SDK's tests: 0.736 / (1645 * 60) is the cost of one inference.
RECORDED = result("ml.g4dn.xlarge", latency=171, invocations=1645)


def job_of(*results: dict[str, Any], status: str = "COMPLETED", **more: Any) -> Job:
    answer = {"JobName": "j", "JobType": "Advanced", "Status": status, "CreationTime": THEN}
    return Job.of(INFERENCE, {**answer, "InferenceRecommendations": list(results), **more})


def chosen(job: Job, number: int) -> Recommendation:
    return job.chosen(recommendations(job), number)


# --- reading -----------------------------------------------------------------------------------
def test_a_recorded_answer() -> None:
    threads = {"OMP_NUM_THREADS": "2"}
    slower = result("ml.c5.xlarge", latency=450, invocations=648, cost=0.204, environment=threads)
    threshold = {"Percentile": "P95", "ValueInMilliseconds": 200}
    job = job_of(RECORDED, slower, StoppingConditions={"ModelLatencyThresholds": [threshold]})
    fast, slow = recommendations(job)
    assert (fast.instance_type, fast.instance_count) == ("ml.g4dn.xlarge", 1)
    assert fast.cost_per_inference_usd == pytest.approx(7.456940238625975e-06)
    assert fast.tps_per_instance == pytest.approx(27.4167, abs=1e-4)
    assert fast.model_latency_ms == 171
    assert (fast.cpu_percent, fast.memory_percent) == (71.4, 22.5)
    assert slow.environment == threads
    assert stopping_threshold(job) == P95_200
    assert [each.within(P95_200) for each in (fast, slow)] == [True, False]


def test_values_that_aws_leaves_out() -> None:
    serverless = {
        "EndpointConfiguration": {"EndpointName": "e", "VariantName": "v"},
        "ModelConfiguration": {},
        "Metrics": {"CpuUtilization": float("nan")},
    }
    [found] = recommendations(job_of(serverless))
    assert found.instance_type == ""
    assert found.cpu_percent is None
    assert found.within(P95_200) is None
    assert found.to_dict(P95_200)["within_target"] is None


@pytest.mark.parametrize(
    ("users", "latency_ms"), [(1, 0.8), (1, 40), (3, 40), (20, 250), (180, 900), (30, 5000)]
)
def test_the_unit_of_model_latency(users: int, latency_ms: float) -> None:
    """Closed loop: so many users give users/latency requests per second, either unit is told."""
    per_minute = round(users / (latency_ms / 1000) * 60)
    if latency_ms >= 1:
        assert model_latency_ms(round(latency_ms), per_minute) == latency_ms
    assert model_latency_ms(round(latency_ms * 1000), per_minute) == latency_ms


# --- the deployed model ------------------------------------------------------------------------
def test_an_endpoint_named_by_cloudformation(account: Recommender) -> None:
    settings = parse_settings(SHIPPED.read_text().replace("    endpoint_name: sentiment\n", ""))
    found = {
        "LogicalResourceId": "sentimentEndpoint0A1B2C3D",
        "ResourceType": "AWS::SageMaker::Endpoint",
        "PhysicalResourceId": "arn:aws:sagemaker:us-east-1:123456789012:endpoint/made-1",
    }
    account.answers |= {
        "cloudformation.ListStackResources": {"StackResourceSummaries": [found]},
        "sagemaker.DescribeModel": {},
    }
    assert "VpcConfig" not in find_deployed_model(Reader(account), settings, "sentiment")
    assert account.sent("sagemaker.DescribeEndpoint") == [{"EndpointName": "made-1"}]


def test_nothing_deployed(account: Recommender, settings: Settings) -> None:
    gone = Refused("ValidationException", 'Could not find endpoint "sentiment".', 400)
    account.answers["sagemaker.DescribeEndpoint"] = gone
    with refused("LLR103") as caught:
        find_deployed_model(Reader(account), settings, "sentiment")
    assert "no endpoint sentiment" in caught.value.got


# --- the payload -------------------------------------------------------------------------------
def test_a_payload_in_s3_is_taken_as_it_is(endpoint: EndpointSettings) -> None:
    payload = sample_payload("s3://b/p.tar.gz", None, "text/csv", endpoint)
    assert payload == SamplePayload("s3://b/p.tar.gz", "text/csv")


def test_a_file_and_an_archive(tmp_path: Path, endpoint: EndpointSettings) -> None:
    (tmp_path / "one.json").write_text("{}")
    one = sample_payload(str(tmp_path / "one.json"), "s3://b", None, endpoint)
    assert one.archive is not None
    (tmp_path / "all.tar.gz").write_bytes(one.archive)
    assert sample_payload(str(tmp_path / "one.json"), "s3://b", None, endpoint) == one
    assert sample_payload(str(tmp_path / "all.tar.gz"), "s3://b/", None, endpoint) == one


@pytest.mark.parametrize(
    ("given", "upload_to"),
    [
        ("s3://bucket/payload.json", None),
        ("s3:///x.tar.gz", None),
        (None, None),
        (None, "my-bucket"),
        ("missing.json", "s3://b"),
        ("\0", "s3://b"),
    ],
)
def test_payloads_that_are_refused(
    given: str | None, upload_to: str | None, endpoint: EndpointSettings
) -> None:
    with refused("LLR107"):
        sample_payload(given, upload_to, None, endpoint)


# --- taking a result over ----------------------------------------------------------------------
def test_adopting_changes_the_lines_of_the_result_only(endpoint: EndpointSettings) -> None:
    threads = {"OMP_NUM_THREADS": "8"}
    found = result("ml.c6i.4xlarge", latency=88, invocations=9000, environment=threads)
    adoption = adopt(chosen(job_of(RECORDED, found), 2), P95_200, "sentiment", endpoint)
    edit = edited_yaml(SHIPPED.read_text(), adoption.values)
    parse_settings(edit.after)
    assert [line for line in edit.diff().splitlines() if line[0] in "+-"][2:] == [
        "-    instance_type: ml.m5.12xlarge",
        '+          OMP_NUM_THREADS: "8"',
        "+    instance_type: ml.c6i.4xlarge",
        "-      tps_per_instance: 200",
        "+      tps_per_instance: 150",
    ]
    assert "two deploys" in adoption.notes[1]
    assert "docs/explanation/updates.md" in adoption.notes[1]


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
    adoption = adopt(chosen(job_of(RECORDED, found), 2), P95_200, "vectors", endpoint)
    path.write_text(edited_yaml(text, adoption.values).after)
    after = load_settings(path).endpoints["vectors"]
    assert after.hugging_face.environment == {"A": "8"}
    assert after.instance_type == "ml.c6i.4xlarge"


@pytest.mark.parametrize(
    ("found", "note", "noted"),
    [
        (result("ml.c6i.large", latency=5, invocations=60), "two deploys", True),
        (result("ml.m5.12xlarge", latency=9, invocations=60), "two deploys", False),
        # A rate at AWS's limit may be too low.
        (result("ml.c6i.large", latency=5, invocations=30_000), "may hold more", True),
        (result("ml.c6i.large", latency=5, invocations=29_800), "may hold more", True),
        (result("ml.c6i.large", latency=5, invocations=20_000), "may hold more", False),
    ],
)
def test_notes_on_a_result(
    found: dict[str, Any], note: str, noted: bool, endpoint: EndpointSettings
) -> None:
    adoption = adopt(chosen(job_of(found), 1), P95_200, "sentiment", endpoint)
    assert any(note in each for each in adoption.notes) is noted


def test_without_a_throughput_only_the_type_is_written(endpoint: EndpointSettings) -> None:
    bare = replace(endpoint, throughput=None)
    adoption = adopt(chosen(job_of(RECORDED), 1), P95_200, "sentiment", bare)
    assert adoption.values == {("endpoints", "sentiment", "instance_type"): "ml.g4dn.xlarge"}
    assert "27.42 requests per second" in adoption.notes[0]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (result("ml.c5.large", latency=201, invocations=600), "201 ms"),
        (
            {**RECORDED, "EndpointConfiguration": {"EndpointName": "e", "VariantName": "v"}},
            "serverless",
        ),
        (result("ml.c5.large", latency=1, invocations=600, CompilationJobName="neo-1"), "neo-1"),
    ],
)
def test_results_that_cannot_be_adopted(
    answer: dict[str, Any], said: str, endpoint: EndpointSettings
) -> None:
    with refused("LLR109") as caught:
        adopt(chosen(job_of(answer), 1), P95_200, "sentiment", endpoint)
    assert said in caught.value.got


@pytest.mark.parametrize(
    ("status", "number"), [("COMPLETED", 0), ("COMPLETED", 2), ("IN_PROGRESS", 1), ("STOPPED", 1)]
)
def test_results_that_are_not_there(status: str, number: int) -> None:
    with refused("LLR108"):
        chosen(job_of(RECORDED, status=status), number)


# --- scaling -----------------------------------------------------------------------------------
def test_a_result_without_an_id_has_no_scaling(account: Recommender) -> None:
    job = job_of({**RECORDED, "RecommendationId": ""})
    with refused("LLR108"):
        ask_for_scaling(account, job, chosen(job, 1), None)
