"""SageMaker's optimization jobs: what they refuse, how they end, what lies in S3 then."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from roles_under_test import give_hosting_role
from signed_requests import refusal

from local_sagemaker import LocalAws, RuntimeOptions
from local_sagemaker.optimization_jobs import MARKER

AWQ = {"ModelQuantizationConfig": {"OverrideEnvironment": {"OPTION_QUANTIZE": "awq"}}}
SMOOTH = {"ModelQuantizationConfig": {"OverrideEnvironment": {"OPTION_QUANTIZE": "smoothquant"}}}
COMPILE: dict[str, Any] = {"ModelCompilationConfig": {}}
SHARD: dict[str, Any] = {"ModelShardingConfig": {}}
EAGLE = {"ModelSpeculativeDecodingConfig": {"Technique": "EAGLE"}}
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    """A local AWS whose jobs take an hour, by a clock that only tests move."""
    options = RuntimeOptions(optimization_time=3600, clock_speed=0)
    with LocalAws.in_process(region="us-east-1", runtime=options) as running:
        running.reset()  # of what other modules of this process have left
        s3 = running.client("s3")
        s3.create_bucket(Bucket="models")
        for name in ("config.json", "model.safetensors", "deep/er/file"):
            s3.put_object(Bucket="models", Key=f"llama/{name}", Body=name.encode())
        s3.put_object(Bucket="models", Key="llama-other/config.json", Body=b"not this one")
        give_hosting_role(running, "optimizer")
        yield running


def start(aws: LocalAws, *configs: dict[str, Any], **changes: Any) -> str:
    name = f"job-{next(_numbers)}"
    request: dict[str, Any] = {
        "OptimizationJobName": name,
        "RoleArn": "arn:aws:iam::123456789012:role/optimizer",
        "ModelSource": {"S3": {"S3Uri": "s3://models/llama/"}},
        "DeploymentInstanceType": "ml.g5.2xlarge",
        "OptimizationConfigs": list(configs) or [AWQ],
        "OutputConfig": {"S3OutputLocation": f"s3://models/out/{name}/"},
        "StoppingCondition": {"MaxRuntimeInSeconds": 36_000},
    }
    aws.client("sagemaker").create_optimization_job(**request | changes)
    return name


def described(aws: LocalAws, name: str) -> dict[str, Any]:
    sagemaker = aws.client("sagemaker")
    found: dict[str, Any] = sagemaker.describe_optimization_job(OptimizationJobName=name)
    return found


def ended(aws: LocalAws, name: str) -> dict[str, Any]:
    aws.advance(3600)
    return described(aws, name)


def keys(aws: LocalAws, prefix: str) -> list[str]:
    found = aws.client("s3").list_objects_v2(Bucket="models", Prefix=prefix)
    return sorted(each["Key"].removeprefix(prefix) for each in found.get("Contents", ()))


def test_a_job_copies_the_model_and_says_that_it_only_copied(aws: LocalAws) -> None:
    name = start(aws)
    job = ended(aws, name)
    assert job["OptimizationJobStatus"] == "COMPLETED"
    assert "/djl-inference:" in job["OptimizationOutput"]["RecommendedInferenceImage"]
    assert keys(aws, f"out/{name}/") == sorted([MARKER, *keys(aws, "llama/")])
    found = aws.client("s3").get_object(Bucket="models", Key=f"out/{name}/{MARKER}")
    said = json.load(found["Body"])
    assert "nothing was quantized" in said["note"]
    assert (said["source"], said["files"]) == ("s3://models/llama/", 3)


def test_a_job_takes_its_time_by_the_clock(aws: LocalAws) -> None:
    name = start(aws)
    assert described(aws, name)["OptimizationJobStatus"] == "INPROGRESS"
    aws.advance(3599)
    assert described(aws, name)["OptimizationJobStatus"] == "INPROGRESS"
    assert keys(aws, f"out/{name}/") == []
    aws.advance(1)
    job = described(aws, name)
    assert job["OptimizationJobStatus"] == "COMPLETED"
    assert (job["OptimizationEndTime"] - job["CreationTime"]).total_seconds() == 3600


def test_the_limit_of_its_time_ends_a_job_without_a_result(aws: LocalAws) -> None:
    name = start(aws, StoppingCondition={"MaxRuntimeInSeconds": 60})
    aws.advance(3600)
    job = described(aws, name)
    assert job["OptimizationJobStatus"] == "STOPPED"
    assert "OptimizationOutput" not in job
    assert keys(aws, f"out/{name}/") == []


def test_a_job_is_stopped_once(aws: LocalAws) -> None:
    name, sagemaker = start(aws), aws.client("sagemaker")
    sagemaker.stop_optimization_job(OptimizationJobName=name)
    aws.advance(7200)
    assert described(aws, name)["OptimizationJobStatus"] == "STOPPED"
    assert keys(aws, f"out/{name}/") == []
    code, message = refusal(sagemaker.stop_optimization_job, OptimizationJobName=name)
    assert (code, "in status STOPPED" in message) == ("ValidationException", True)


def fit(instance_type: str, *configs: dict[str, Any]) -> dict[str, Any]:
    return {"DeploymentInstanceType": instance_type, "OptimizationConfigs": list(configs)}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ModelSource": {"S3": {"S3Uri": "s3://models/nothing/"}}}, "No S3 objects found"),
        ({"ModelSource": {"S3": {"S3Uri": "s3://no-such-bucket/x/"}}}, "No S3 objects found"),
        ({"ModelSource": {"SageMakerModel": {"ModelName": "none"}}}, "model none"),
        ({"OutputConfig": {"S3OutputLocation": "s3://no-such-bucket/x/"}}, "does not exist"),
        (fit("ml.inf2.xlarge", AWQ), "Quantization are not supported on Neuron"),
        (fit("ml.trn1.2xlarge", COMPILE, SHARD), "Sharding are not supported on Neuron"),
        (fit("ml.g5.xlarge", COMPILE, EAGLE), "Compilation and SpeculativeDecoding"),
        (fit("ml.g5.xlarge", COMPILE, SHARD), "Compilation and Sharding"),
        (fit("ml.g5.xlarge", SMOOTH), "must be provided with Compilation"),
        (fit("ml.g5.xlarge", AWQ, AWQ), "Quantization twice"),
    ],
)
def test_a_job_fails_at_its_end_and_says_why(aws, changes, reason) -> None:
    job = ended(aws, start(aws, **changes))
    assert job["OptimizationJobStatus"] == "FAILED"
    assert reason in job["FailureReason"]


@pytest.mark.parametrize(
    ("instance_type", "configs", "tag"),
    [
        ("ml.inf2.xlarge", [COMPILE], "-neuronx-"),
        ("ml.g5.xlarge", [COMPILE, SMOOTH], "-tensorrtllm"),
        ("ml.g5.xlarge", [AWQ, SHARD], "-lmi"),
        ("ml.p5.48xlarge", [EAGLE], "-lmi"),
        ("ml.g5.xlarge", [{"ModelQuantizationConfig": {"Image": "mine:1"}}], "mine:1"),
    ],
)
def test_the_recommended_image_is_that_of_the_technique(
    aws: LocalAws, instance_type: str, configs: list[dict[str, Any]], tag: str
) -> None:
    job = ended(aws, start(aws, *configs, DeploymentInstanceType=instance_type))
    assert tag in job["OptimizationOutput"]["RecommendedInferenceImage"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"RoleArn": "arn:aws:iam::123456789012:role/nobody"}, "Could not assume role"),
        ({"OptimizationConfigs": []}, "At least one"),
        ({"DeploymentInstanceType": "ml.m5.large"}, "enum value set"),
        ({"ModelSource": {}}, "One and only one"),
    ],
)
def test_requests_that_are_refused(aws: LocalAws, changes: dict[str, Any], words: str) -> None:
    code, message = refusal(start, aws=aws, **changes)
    assert code == "ValidationException"
    assert words in message


def test_a_name_is_used_once_and_an_unknown_one_is_not_found(aws: LocalAws) -> None:
    assert refusal(start, aws=aws, OptimizationJobName=start(aws))[0] == "ResourceInUse"
    assert refusal(described, aws=aws, name="nobody")[0] == "ResourceNotFound"


def test_a_model_of_sagemaker_is_optimized_from_its_data(aws: LocalAws) -> None:
    source = {"S3Uri": "s3://models/llama/", "S3DataType": "S3Prefix", "CompressionType": "None"}
    aws.client("sagemaker").create_model(
        ModelName="llama",
        ExecutionRoleArn="arn:aws:iam::123456789012:role/optimizer",
        PrimaryContainer={"Image": "vllm:1", "ModelDataSource": {"S3DataSource": source}},
    )
    name = start(aws, ModelSource={"SageMakerModel": {"ModelName": "llama"}})
    assert ended(aws, name)["OptimizationJobStatus"] == "COMPLETED"
    assert "model.safetensors" in keys(aws, f"out/{name}/")


def test_the_list_has_the_newest_first_and_what_was_done(aws: LocalAws) -> None:
    first = start(aws, AWQ, SHARD)
    aws.advance(10)
    second = start(aws)
    found = aws.client("sagemaker").list_optimization_jobs(
        SortBy="CreationTime", StatusEquals="INPROGRESS"
    )["OptimizationJobSummaries"]
    assert [each["OptimizationJobName"] for each in found[:2]] == [second, first]
    assert found[1]["OptimizationTypes"] == ["Quantization", "Sharding"]


def test_of_jobs_of_one_moment_the_newest_comes_first_too(aws: LocalAws) -> None:
    names = [start(aws) for _ in range(3)]
    listed = aws.client("sagemaker").list_optimization_jobs
    found = [each["OptimizationJobName"] for each in listed()["OptimizationJobSummaries"]]
    assert found[:3] == names[::-1]
    upwards = listed(SortOrder="Ascending")["OptimizationJobSummaries"]
    assert [each["OptimizationJobName"] for each in upwards] == found[::-1]


def test_by_default_a_job_has_ended_at_the_first_look() -> None:
    assert RuntimeOptions().optimization_time == 0
