"""Jobs for generative models: requests, answers, and ``low-latency recommend-generative``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.operate.recommend.generative_requests import (
    benchmark_job,
    check_boto3,
    recommendation_job,
    workload_of_file,
    workload_of_tokens,
    workload_request,
)
from low_latency_endpoint.operate.recommend.jobs import GENERATIVE, read
from low_latency_endpoint.settings import load_settings

from .account import GROUPS, ROLE, SUBNETS, THEN, Account
from .command import Command
from .conftest import SHIPPED
from .test_requests import faults

ARN = "arn:aws:sagemaker:us-east-1:123456789012:"
OUT = "s3://my-bucket/results/"
LANGUAGE_MODEL = """\
# the team's language model
client_zones: {ids: [use1-az1, use1-az2]}
endpoints:
  llm:
    endpoint_name: llm
    containers:
      - image: {uri: 123456789012.dkr.ecr.us-east-1.amazonaws.com/vllm:1}   # ours
        data: {s3_prefix: s3://my-bucket/llama/}
        environment: {OPTION_TENSOR_PARALLEL_DEGREE: 1}
    instance_type: ml.g5.12xlarge   # a guess
    latency: {p99: 2s}
    throughput: {peak_tps: 20, tps_per_instance: 4}
"""
TAGS = [{"Key": "created-by", "Value": "low-latency-endpoint"}]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "llm.yaml"
    path.write_text(LANGUAGE_MODEL)
    return path


def recommendation(**changes: Any) -> dict[str, Any]:
    """An answer in the shape of AWS's guide."""
    deployment = {
        "ImageUri": "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi",
        "InstanceType": "ml.g6e.12xlarge",
        "InstanceCount": 1,
        "CopyCountPerInstance": 1,
        "EnvironmentVariables": {"OPTION_TENSOR_PARALLEL_DEGREE": "4"},
        "S3": [{"ChannelName": "model", "Uri": "s3://my-bucket/llama"}],
        **changes,
    }
    return {
        "RecommendationDescription": "lowest time to first token",
        "DeploymentConfiguration": deployment,
        "OptimizationDetails": [{"OptimizationType": "SpeculativeDecoding"}],
        "ModelDetails": {"ModelPackageArn": f"{ARN}model-package/llama/1"},
        "ExpectedPerformance": [
            {"Metric": "throughput", "Stat": "average", "Value": "512.0", "Unit": "tokens/second"}
        ],
    }


def describes(
    account: Account, name: str, status: str, *results: dict[str, Any], reason: str = ""
) -> None:
    answer: dict[str, Any] = {
        "AIRecommendationJobName": name,
        "AIRecommendationJobStatus": status,
        "AIRecommendationJobArn": f"{ARN}ai-recommendation-job/{name}",
        "ModelSource": {"S3": {"S3Uri": "s3://my-bucket/llama/"}},
        "OutputConfig": {"S3OutputLocation": OUT},
        "AIWorkloadConfigIdentifier": name,
        "RoleArn": ROLE,
        "CreationTime": THEN,
    }
    if results:
        answer["Recommendations"] = list(results)
    if reason:
        answer["FailureReason"] = reason
    account.answers(
        "sagemaker", "describe_ai_recommendation_job", {"AIRecommendationJobName": name}, answer
    )


# --- requests ----------------------------------------------------------------------------------
def test_the_workload() -> None:
    specification = workload_of_tokens(
        2000,
        500,
        32,
        100,
        tokenizer="meta-llama/Llama-3.2-1B",
        token_secret_arn="arn:aws:secretsmanager:us-east-1:123456789012:secret:hub",
    )
    request = workload_request("w", specification, "s3://b/chat/")
    assert faults("CreateAIWorkloadConfig", request) == ""
    assert json.loads(request["AIWorkloadConfigs"]["WorkloadSpec"]["Inline"]) == {
        "benchmark": {"type": "aiperf"},
        "parameters": {
            "prompt_input_tokens_mean": 2000,
            "output_tokens_mean": 500,
            "concurrency": 32,
            "request_count": 100,
            "streaming": True,
            "tokenizer": "meta-llama/Llama-3.2-1B",
        },
        "secrets": {"hf_token": "arn:aws:secretsmanager:us-east-1:123456789012:secret:hub"},
    }
    [channel] = request["DatasetConfig"]["InputDataConfig"]
    assert channel["DataSource"]["S3DataSource"]["S3Uri"] == "s3://b/chat/"


def test_a_workload_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "workload.yaml"
    path.write_text("benchmark: {type: aiperf}\nparameters: {image_width_mean: 640}\n")
    request = workload_request("w", workload_of_file(path))
    assert request["AIWorkloadConfigs"]["WorkloadSpec"]["Inline"] == path.read_text()
    assert faults("CreateAIWorkloadConfig", request) == ""


@pytest.mark.parametrize("content", [b"[1]", b"a: [", b"\xff", None])
def test_workload_files_that_are_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "workload.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        workload_of_file(path)
    assert caught.value.code == "LLR110"


def test_a_recommendation_job() -> None:
    request = recommendation_job(
        "llm-1",
        ROLE,
        "s3://my-bucket/llama/",
        OUT,
        "w",
        goal="cost",
        instance_types=("ml.g6.12xlarge", "ml.p5.48xlarge"),
        framework="VLLM",
        optimize=True,
        model_package_group="llama",
    ).content
    assert faults("CreateAIRecommendationJob", request) == ""
    assert request == {
        "AIRecommendationJobName": "llm-1",
        "RoleArn": ROLE,
        "OptimizeModel": True,
        "Tags": TAGS,
        "ModelSource": {"S3": {"S3Uri": "s3://my-bucket/llama/"}},
        "OutputConfig": {"S3OutputLocation": OUT, "ModelPackageGroupIdentifier": "llama"},
        "AIWorkloadConfigIdentifier": "w",
        "PerformanceTarget": {"Constraints": [{"Metric": "cost"}]},
        "InferenceSpecification": {"Framework": "VLLM"},
        "ComputeSpec": {"InstanceTypes": ["ml.g6.12xlarge", "ml.p5.48xlarge"]},
    }


def test_a_benchmark_job() -> None:
    network = {"Subnets": SUBNETS, "SecurityGroupIds": GROUPS}
    request = benchmark_job("llm-1", ROLE, "llm", OUT, "w", ["adapter-1"], network).content
    assert faults("CreateAIBenchmarkJob", request) == ""
    assert request == {
        "AIBenchmarkJobName": "llm-1",
        "RoleArn": ROLE,
        "Tags": TAGS,
        "BenchmarkTarget": {
            "Endpoint": {"Identifier": "llm", "InferenceComponents": [{"Identifier": "adapter-1"}]}
        },
        "OutputConfig": {"S3OutputLocation": OUT},
        "AIWorkloadConfigIdentifier": "w",
        "NetworkConfig": {"VpcConfig": {"Subnets": SUBNETS, "SecurityGroupIds": GROUPS}},
    }


@given(
    name=st.sampled_from(["a", "x" * 63]) | st.text("a-_", max_size=65),
    goal=st.sampled_from(["ttft-ms", "throughput", "cost", "speed"]),
    framework=st.sampled_from([None, "LMI", "VLLM", "TGI"]),
    types=st.lists(
        st.sampled_from(["ml.g6.12xlarge", "ml.g5.xlarge", "ml.m5.large", "g5"]), max_size=4
    ),
    model=st.sampled_from(["s3://b/m/", "b/m", "", "s3://b/" + "x" * 1100]),
    numbers=st.tuples(*[st.integers(-1, 3)] * 4),
)
def test_any_options(
    name: str,
    goal: str,
    framework: str | None,
    types: list[str],
    model: str,
    numbers: tuple[int, int, int, int],
) -> None:
    """A request that AWS's model takes, or a coded error of ours."""
    try:
        workload = workload_request(name, workload_of_tokens(*numbers))
        job = recommendation_job(
            name, ROLE, model, OUT, name, goal=goal, instance_types=types, framework=framework
        ).content
    except ConfigurationError as error:
        code = error.code
    else:
        assert faults("CreateAIWorkloadConfig", workload) == ""
        assert faults("CreateAIRecommendationJob", job) == ""
        return
    assert code in ("LLR101", "LLR110", "LLE405", "LLE304")


def test_an_old_boto3_is_named() -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_boto3(lambda service: object())
    assert caught.value.code == "LLR110"
    assert "pip install --upgrade boto3" in caught.value.fix


# --- answers -----------------------------------------------------------------------------------
def test_an_answer(account: Account) -> None:
    describes(account, "llm-1", "Completed", recommendation())
    job = read(account, GENERATIVE, "llm-1")
    [found] = job.results
    assert job.succeeded
    assert found.instance_type == "ml.g6e.12xlarge"
    assert found.performance == ("throughput average 512.0 tokens/second",)
    assert found.optimizations == ("SpeculativeDecoding",)
    assert found.model_data == {"model": "s3://my-bucket/llama"}


# --- the command -------------------------------------------------------------------------------
def test_a_recommendation_from_start_to_end(
    low_latency: Command, account: Account, file: Path
) -> None:
    inline = json.dumps(
        {
            "benchmark": {"type": "aiperf"},
            "parameters": {
                "prompt_input_tokens_mean": 2000,
                "output_tokens_mean": 500,
                "concurrency": 10,
                "request_count": 300,
                "streaming": True,
            },
        }
    )
    account.answers(
        "sagemaker",
        "create_ai_workload_config",
        {
            "AIWorkloadConfigName": "llm-1",
            "Tags": TAGS,
            "AIWorkloadConfigs": {"WorkloadSpec": {"Inline": inline}},
        },
        {"AIWorkloadConfigArn": f"{ARN}ai-workload-config/llm-1"},
    )
    account.answers(
        "sagemaker",
        "create_ai_recommendation_job",
        {
            "AIRecommendationJobName": "llm-1",
            "RoleArn": ROLE,
            "OptimizeModel": False,
            "Tags": TAGS,
            "ModelSource": {"S3": {"S3Uri": "s3://my-bucket/llama/"}},
            "OutputConfig": {"S3OutputLocation": OUT},
            "AIWorkloadConfigIdentifier": "llm-1",
            "PerformanceTarget": {"Constraints": [{"Metric": "ttft-ms"}]},
            "ComputeSpec": {"InstanceTypes": ["ml.g6e.12xlarge", "ml.g99.large"]},
        },
        {"AIRecommendationJobArn": f"{ARN}ai-recommendation-job/llm-1"},
    )
    describes(account, "llm-1", "InProgress")
    describes(account, "llm-1", "Completed", recommendation())
    done = low_latency(
        "recommend-generative",
        str(file),
        "--role-arn",
        ROLE,
        "--s3-output",
        OUT,
        "-t",
        "ml.g6e.12xlarge",
        "-t",
        "ml.g99.large",
        "--input-tokens",
        "2000",
        "--output-tokens",
        "500",
        "--job-name",
        "llm-1",
        "--yes",
    )
    assert done.status == 0, done
    before, _, after = done.err.partition("started llm-1")
    assert "This costs money" in before
    assert "ml.g99.large is not among the types that boto3 knows" in before
    assert "duration limit   none" in before
    assert "llm-1: InProgress" in after
    assert "throughput average 512.0 tokens/second" in done.out
    account.all_asked()


def test_a_benchmark_from_start_to_end(low_latency: Command, account: Account, file: Path) -> None:
    account.deployed(endpoint="llm")
    account.answers(
        "sagemaker",
        "create_ai_benchmark_job",
        {
            "AIBenchmarkJobName": "llm-1",
            "RoleArn": ROLE,
            "Tags": TAGS,
            "BenchmarkTarget": {"Endpoint": {"Identifier": "llm"}},
            "OutputConfig": {"S3OutputLocation": OUT},
            "AIWorkloadConfigIdentifier": "chat",
            "NetworkConfig": {"VpcConfig": {"Subnets": SUBNETS, "SecurityGroupIds": GROUPS}},
        },
        {"AIBenchmarkJobArn": f"{ARN}ai-benchmark-job/llm-1"},
    )
    account.answers(
        "sagemaker",
        "describe_ai_benchmark_job",
        {"AIBenchmarkJobName": "llm-1"},
        {
            "AIBenchmarkJobName": "llm-1",
            "AIBenchmarkJobStatus": "Failed",
            "RoleArn": ROLE,
            "AIBenchmarkJobArn": f"{ARN}ai-benchmark-job/llm-1",
            "FailureReason": "no answer",
            "BenchmarkTarget": {"Endpoint": {"Identifier": "llm"}},
            "CreationTime": THEN,
            "OutputConfig": {"S3OutputLocation": OUT},
            "AIWorkloadConfigIdentifier": "chat",
        },
    )
    done = low_latency(
        "recommend-generative",
        str(file),
        "--benchmark",
        "--role-arn",
        ROLE,
        "--s3-output",
        OUT,
        "--workload",
        "chat",
        "--job-name",
        "llm-1",
        "-y",
    )
    assert done.status == 1, done
    assert "loads the endpoint like production traffic" in done.err
    assert done.out == "llm-1 (benchmark): Failed\nno answer\n"
    account.all_asked()


def test_it_asks_before_it_costs(low_latency: Command, account: Account, file: Path) -> None:
    arguments = ("recommend-generative", str(file), "--role-arn", ROLE, "--s3-output", OUT)
    assert low_latency(*arguments, answer="n").status == 1
    assert low_latency(*arguments).status == 2


def test_an_interrupt_leaves_the_job_running(
    low_latency: Command, account: Account, file: Path
) -> None:
    describes(account, "llm-1", "InProgress")

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    done = low_latency("recommend-generative", str(file), "--job", "llm-1", sleep=interrupt)
    assert done.status == 130
    assert f"low-latency recommend-generative {file} --job llm-1 --stop" in done.err


def test_adopting(low_latency: Command, account: Account, file: Path) -> None:
    describes(
        account,
        "llm-1",
        "Completed",
        recommendation(S3=[{"ChannelName": "model", "Uri": "s3://my-bucket/optimized/"}]),
    )
    done = low_latency(
        "recommend-generative", str(file), "--job", "llm-1", "--result", "1", "--write", "--json"
    )
    assert done.status == 0, done
    adopted = json.loads(done.out)["adopted"]
    assert adopted["written"]
    [data, throughput, deploys] = adopted["notes"]
    assert "s3://my-bucket/optimized/" in data
    assert "tps_per_instance is still the old" in throughput
    assert "two deploys" in deploys
    text = file.read_text()
    assert text.count("#") == 3  # the comments are all there
    llm = load_settings(file).endpoints["llm"]
    assert llm.instance_type == "ml.g6e.12xlarge"
    assert (llm.containers[0].image.uri or "").endswith("djl-inference:0.36.0-lmi")
    assert llm.containers[0].environment["OPTION_TENSOR_PARALLEL_DEGREE"] == "4"


def test_copies_are_not_adopted(low_latency: Command, account: Account, file: Path) -> None:
    describes(account, "llm-1", "Completed", recommendation(CopyCountPerInstance=2))
    done = low_latency(
        "recommend-generative", str(file), "--job", "llm-1", "--result", "1", "--write"
    )
    assert done.status == 2
    assert "LLR109" in done.err
    assert file.read_text() == LANGUAGE_MODEL


def test_listing_and_stopping(low_latency: Command, account: Account, file: Path) -> None:
    account.answers(
        "sagemaker",
        "list_ai_benchmark_jobs",
        {"SortBy": "CreationTime", "SortOrder": "Descending", "MaxResults": 50},
        {
            "AIBenchmarkJobs": [
                {
                    "AIBenchmarkJobName": "b",
                    "AIBenchmarkJobArn": f"{ARN}ai-benchmark-job/b",
                    "AIBenchmarkJobStatus": "Stopped",
                    "CreationTime": THEN,
                }
            ]
        },
    )
    listed = low_latency("recommend-generative", str(file), "--benchmark", "--list", "--json")
    assert json.loads(listed.out)["jobs"] == [
        {
            "name": "b",
            "type": "benchmark",
            "status": "Stopped",
            "created": "2026-11-20T15:00:00+00:00",
        }
    ]
    account.answers(
        "sagemaker",
        "stop_ai_recommendation_job",
        {"AIRecommendationJobName": "r"},
        {"AIRecommendationJobArn": f"{ARN}ai-recommendation-job/r"},
    )
    assert low_latency("recommend-generative", str(file), "--job", "r", "--stop").status == 0
    account.all_asked()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--stop",), "add --job NAME"),
        (("--benchmark", "--job", "j", "--result", "1", "--write"), "of a recommendation job"),
        ((), "LLR102"),
        (("--benchmark",), "LLR102"),
        (("--role-arn", ROLE), "LLE418"),
        (("--benchmark", "--role-arn", ROLE), "LLE418"),
        (("--role-arn", ROLE, "--s3-output", OUT, "--goal", "speed"), "LLR110"),
        (("--role-arn", ROLE, "--s3-output", OUT, "-t", "ml.m5.large"), "LLR110"),
        (("--role-arn", ROLE, "--s3-output", OUT, "--requests", "0"), "LLR110"),
        (("--workload", "w", "--dataset", "s3://b/"), "--workload names a configuration"),
    ],
)
def test_mistakes_ask_aws_nothing(
    low_latency: Command, file: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = low_latency("recommend-generative", str(file), *arguments)
    assert done.status == 2
    assert said in done.err
    assert "Traceback" not in done.err


def test_the_shipped_settings_name_no_checkpoint(low_latency: Command) -> None:
    done = low_latency("recommend-generative", str(SHIPPED), "--role-arn", ROLE, "--s3-output", OUT)
    assert done.status == 2
    assert "pass --model" in done.err
