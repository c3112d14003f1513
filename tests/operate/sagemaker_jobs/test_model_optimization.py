"""Optimization jobs: the request, and what an optimized model changes in the settings."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.operate.sagemaker_jobs.jobs import Job, JobRequest
from low_latency_endpoint.operate.sagemaker_jobs.model_optimization import (
    adopt_optimized_model,
    optimization_request,
)
from low_latency_endpoint.settings import EndpointSettings, load_settings, parse_settings
from low_latency_endpoint.settings.yaml_editing import checked_edit
from tests.pinned_models import written_lock
from tests.refusals import refused

from .account import ROLE, faults

OUT = "s3://my-bucket/llama-awq/"
REGISTRY = "763104351884.dkr.ecr.us-west-2.amazonaws.com/"
IMAGE = f"{REGISTRY}djl-inference:0.28.0-lmi10.0.0-cu124"
HEAD = """\
# the team's language model
client_zones: {ids: [use1-az1, use1-az2]}
endpoints:
  llm:
"""
STATED = """\
    containers:
      - image: {dlc: {repository: djl-inference, tag: 0.28.0-lmi10.0.0-cu124}}   # AWS's
        data: {s3_prefix: s3://my-bucket/llama/}
        environment: {OPTION_DTYPE: fp16}
    instance_type: ml.g5.12xlarge   # a guess
    latency: {p99: 2s}
"""
POOLS = (
    "    instance_pools: [{instance_type: ml.g5.12xlarge, priority: 1}, "
    "{instance_type: ml.g6.12xlarge, priority: 2}]\n"
)
HUB = """\
    hugging_face: {model: Qwen/Qwen3-8B, bucket: my-bucket, accept_license: apache-2.0}
    instance_type: ml.g6.2xlarge
    latency: {p99: 2s}
"""


def written(folder: Path, body: str) -> Path:
    path = folder / "llm.yaml"
    path.write_text(HEAD + body)
    return path


def endpoint_of(body: str) -> EndpointSettings:
    return parse_settings(HEAD + body).endpoints["llm"]


# --- requests ----------------------------------------------------------------------------------
def request(body: str = STATED, **changes: Any) -> JobRequest:
    options: dict[str, Any] = {
        "job_name": "llm-1",
        "role_arn": ROLE,
        "output": OUT,
        "instance_type": "ml.g5.12xlarge",
        "quantize": "awq",
        "compiles": False,
    }
    return optimization_request(endpoint_of(body), **(options | changes))


def test_a_quantization_as_aws_takes_it() -> None:
    job = request()
    assert faults("CreateOptimizationJob", job.content) == ""
    assert job.content == {
        "OptimizationJobName": "llm-1",
        "RoleArn": ROLE,
        "ModelSource": {"S3": {"S3Uri": "s3://my-bucket/llama/"}},
        "DeploymentInstanceType": "ml.g5.12xlarge",
        "OptimizationConfigs": [
            {"ModelQuantizationConfig": {"OverrideEnvironment": {"OPTION_QUANTIZE": "awq"}}}
        ],
        "OutputConfig": {"S3OutputLocation": OUT},
        "StoppingCondition": {"MaxRuntimeInSeconds": 36_000},
    }
    assert "changes the model's answers" in job.notes[0]


def test_each_technique_is_a_configuration_of_its_own() -> None:
    job = request(quantize="smoothquant", compiles=True)
    assert faults("CreateOptimizationJob", job.content) == ""
    assert job.content["OptimizationConfigs"] == [
        {"ModelQuantizationConfig": {"OverrideEnvironment": {"OPTION_QUANTIZE": "smoothquant"}}},
        {"ModelCompilationConfig": {}},
    ]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"quantize": None}, "LLR111"),
        ({"quantize": "int2"}, "LLR111"),
        ({"output": "s3://my-bucket/llama/awq/"}, "LLR111"),  # inside of the model
        ({"output": "s3://my-bucket/out"}, "LLR111"),  # not as s3_prefix has it
        ({"output": ""}, "LLR111"),
        ({"instance_type": "g5"}, "LLE405"),
        (
            {
                "body": STATED.replace(
                    "s3_prefix: s3://my-bucket/llama/", "s3: s3://my-bucket/m.tar.gz"
                )
            },
            "LLR112",
        ),
        ({"body": STATED + POOLS, "compiles": True}, "LLR109"),
    ],
)
def test_what_cannot_be_asked_for(changes: dict[str, Any], code: str) -> None:
    with refused(code):
        request(**changes)


def test_a_model_of_the_hub_is_not_optimized(tmp_path: Path) -> None:
    written_lock(tmp_path)
    endpoint = load_settings(written(tmp_path, HUB)).endpoints["llm"]
    with refused("LLR112", says="hugging_face"):
        optimization_request(
            endpoint,
            job_name="llm-1",
            role_arn=ROLE,
            output=OUT,
            instance_type="ml.g6.2xlarge",
            quantize="fp8",
            compiles=False,
        )


@given(
    quantize=st.sampled_from([None, "fp8", "awq", "smoothquant", "int4"]),
    compiles=st.booleans(),
    instance_type=st.sampled_from(["ml.g5.xlarge", "ml.inf2.xlarge", "g5"]),
    output=st.sampled_from(["s3://b/o/", "s3://b/", "b/o/", "s3://my-bucket/"]),
)
def test_any_options(**options: Any) -> None:
    """A request that AWS's model takes, or a coded error of ours."""
    try:
        job = request(**options)
    except ConfigurationError as error:
        code = error.code
    else:
        assert faults("CreateOptimizationJob", job.content) == ""
        return
    assert code in ("LLR111", "LLE405")


# --- adoption ----------------------------------------------------------------------------------
def completed(config: dict[str, Any], **changes: Any) -> Job:
    """As recorded in sagemaker-python-sdk's unit tests of ``optimize`` (test_optimize_utils.py)."""
    recorded = {
        "OptimizationJobName": "llm-1",
        "OptimizationJobStatus": "COMPLETED",
        "CreationTime": datetime(2026, 11, 20, tzinfo=UTC),
        "OptimizationEnvironment": {"HF_MODEL_ID": "/opt/ml/model", "SAGEMAKER_ENV": "1"},
        "DeploymentInstanceType": "ml.g5.2xlarge",
        "OptimizationConfigs": [config],
        "OutputConfig": {"S3OutputLocation": "s3://quicksilver-model-data/llama-3-8b/quantized-1/"},
        "OptimizationOutput": {"RecommendedInferenceImage": IMAGE},
    }
    return Job("llm-1", "COMPLETED", "", recorded | changes)


AWQ = {
    "ModelQuantizationConfig": {"Image": IMAGE, "OverrideEnvironment": {"OPTION_QUANTIZE": "awq"}}
}
COMPILED = {
    "ModelCompilationConfig": {
        "Image": f"{REGISTRY}djl-inference:0.28.0-neuronx-sdk2.18.2",
        "OverrideEnvironment": {"OPTION_N_POSITIONS": "2048", "OPTION_TENSOR_PARALLEL_DEGREE": "2"},
    }
}


def adopted(path: Path, job: Job) -> tuple[dict[str, Any], str, str]:
    """The endpoint after a result was adopted, the notes, and the text."""
    adoption = adopt_optimized_model(job, "llm", load_settings(path).endpoints["llm"])
    edit, _ = checked_edit(path, adoption.values)
    return yaml.safe_load(edit.after)["endpoints"]["llm"], "\n".join(adoption.notes), edit.after


def test_the_container_gets_data_image_and_environment(tmp_path: Path) -> None:
    endpoint, _, text = adopted(written(tmp_path, STATED), completed(AWQ))
    assert endpoint["instance_type"] == "ml.g5.2xlarge"
    assert endpoint["containers"] == [
        {
            "image": {"uri": IMAGE},
            "data": {"s3_prefix": "s3://quicksilver-model-data/llama-3-8b/quantized-1/"},
            "environment": {
                "OPTION_DTYPE": "fp16",
                "HF_MODEL_ID": "/opt/ml/model",
                "SAGEMAKER_ENV": "1",
                "OPTION_QUANTIZE": "awq",
            },
        }
    ]
    assert f"- image: {{uri: {IMAGE}}} # AWS's\n" in text
    assert "# a guess\n" in text


def test_an_image_that_is_stated_by_its_uri_is_replaced(tmp_path: Path) -> None:
    stated = STATED.replace(
        "dlc: {repository: djl-inference, tag: 0.28.0-lmi10.0.0-cu124}", "uri: a/b:1"
    )
    endpoint, _, _ = adopted(written(tmp_path, stated), completed(AWQ))
    assert endpoint["containers"][0]["image"] == {"uri": IMAGE}


def test_an_image_of_a_folder_stays(tmp_path: Path) -> None:
    stated = STATED.replace(
        "dlc: {repository: djl-inference, tag: 0.28.0-lmi10.0.0-cu124}", "asset: ."
    )
    (tmp_path / "Dockerfile").touch()
    endpoint, notes, _ = adopted(written(tmp_path, stated), completed(AWQ))
    assert endpoint["containers"][0]["image"] == {"asset": "."}
    assert f"Left to you: the image. The result is for image: {{uri: {IMAGE}}}" in notes


def test_without_a_recommended_image_the_former_one_serves(tmp_path: Path) -> None:
    endpoint, notes, _ = adopted(written(tmp_path, STATED), completed(AWQ, OptimizationOutput={}))
    assert endpoint["containers"][0]["image"]["dlc"]["repository"] == "djl-inference"
    assert "the settings' own stays" in notes


def test_a_new_model_needs_a_new_load_test(tmp_path: Path) -> None:
    load = "    throughput: {peak_tps: 10, tps_per_instance: 5, rise_tps_per_minute: 1}\n"
    _, notes, _ = adopted(written(tmp_path, STATED + load), completed(AWQ))
    assert "measure it with low-latency load-test --find-limit" in notes


def test_a_compiled_model_says_where_it_runs(tmp_path: Path) -> None:
    image = {"RecommendedInferenceImage": f"{REGISTRY}djl-inference:0.28.0-neuronx-sdk2.18.2"}
    job = completed(COMPILED, DeploymentInstanceType="ml.inf2.48xlarge", OptimizationOutput=image)
    endpoint, notes, _ = adopted(written(tmp_path, STATED), job)
    assert endpoint["instance_type"] == "ml.inf2.48xlarge"
    assert endpoint["containers"][0]["environment"]["OPTION_N_POSITIONS"] == "2048"
    assert "Compiled for ml.inf2.48xlarge" in notes


def test_a_compiled_model_is_not_for_pools_of_types(tmp_path: Path) -> None:
    with refused("LLR109"):
        adopted(written(tmp_path, STATED + POOLS), completed(COMPILED))
