"""Optimization jobs: the request, and what an optimized model changes in the settings."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from low_latency_endpoint.operate.sagemaker_jobs import (
    Job,
    JobRequest,
    adopt_optimized_model,
    optimization_request,
)
from low_latency_endpoint.settings import EndpointSettings, load_settings, parse_settings
from low_latency_endpoint.settings.yaml_editing import edit_settings_file
from tests.pinned_models import written_lock
from tests.refusals import refused

from .account import ROLE, faults

OUT = "s3://my-bucket/llama-awq/"
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.28.0-lmi10.0.0-cu124"
HEAD = """\
# the team's language model
client_zones: {ids: [use1-az1, use1-az2]}
endpoints:
  llm:
"""
DLC = "dlc: {repository: djl-inference, tag: 0.28.0-lmi10.0.0-cu124}"
STATED = f"""\
    containers:
      - image: {{{DLC}}}   # AWS's
        data: {{s3_prefix: s3://my-bucket/llama/}}
        environment: {{OPTION_DTYPE: fp16}}
    instance_type: ml.g5.12xlarge   # a guess
    latency: {{p99: 2s}}
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


# --- requests ----------------------------------------------------------------------------------
def endpoint_of(body: str) -> EndpointSettings:
    return parse_settings(HEAD + body).endpoints["llm"]


def request(endpoint: EndpointSettings | None = None, **changes: Any) -> JobRequest:
    """A request of ours, which AWS's model takes."""
    options: dict[str, Any] = {
        "output": OUT,
        "instance_type": "ml.g5.12xlarge",
        "quantize": "awq",
        "compiles": False,
    }
    job = optimization_request(endpoint or endpoint_of(STATED), **(options | changes))
    named = {"OptimizationJobName": "llm-1", "RoleArn": ROLE}
    assert faults("CreateOptimizationJob", {**named, **job.content}) == ""
    return job


def test_each_technique_is_a_configuration_of_its_own() -> None:
    job = request(quantize="smoothquant", compiles=True)
    variables = {"OPTION_QUANTIZE": "smoothquant"}
    assert job.content == {
        "ModelSource": {"S3": {"S3Uri": "s3://my-bucket/llama/"}},
        "DeploymentInstanceType": "ml.g5.12xlarge",
        "OptimizationConfigs": [
            {"ModelQuantizationConfig": {"OverrideEnvironment": variables}},
            {"ModelCompilationConfig": {}},
        ],
        "OutputConfig": {"S3OutputLocation": OUT},
        "StoppingCondition": {"MaxRuntimeInSeconds": 36_000},
    }


ARCHIVE = STATED.replace("s3_prefix: s3://my-bucket/llama/", "s3: s3://my-bucket/m.tar.gz")


@pytest.mark.parametrize(
    ("changes", "code", "word"),
    [
        ({"quantize": None}, "LLR111", "--quantize or --compile"),
        ({"quantize": "int2"}, "LLR111", "int2"),
        ({"output": "s3://my-bucket/llama/awq/"}, "LLR111", "contain each other"),
        ({"output": "s3://my-bucket/llama/"}, "LLR111", "contain each other"),
        ({"output": "s3://my-bucket/out"}, "LLR111", "s3://my-bucket/out"),  # not as s3_prefix is
        ({"output": ""}, "LLR111", "s3://bucket/prefix/"),
        ({"instance_type": "g5"}, "LLE405", "g5"),
        ({"endpoint": endpoint_of(ARCHIVE)}, "LLR112", "1 containers"),
        ({"endpoint": endpoint_of(STATED + POOLS), "compiles": True}, "LLR109", "instance_pools"),
    ],
)
def test_what_cannot_be_asked_for(changes: dict[str, Any], code: str, word: str) -> None:
    with refused(code, says=word):
        request(**changes)


def test_a_model_of_the_hub_is_not_optimized(tmp_path: Path) -> None:
    written_lock(tmp_path)
    endpoint = load_settings(written(tmp_path, HUB)).endpoints["llm"]
    with refused("LLR112", says="hugging_face"):
        request(endpoint)


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
COMPILED = {"ModelCompilationConfig": {"OverrideEnvironment": {"OPTION_N_POSITIONS": "2048"}}}


def adopted(path: Path, job: Job) -> tuple[dict[str, Any], str]:
    """The endpoint after a result was adopted, and the text."""
    values = adopt_optimized_model(job, "llm", load_settings(path).endpoints["llm"])
    edit = edit_settings_file(path, values)
    return yaml.safe_load(edit.after)["endpoints"]["llm"], edit.after


def test_the_container_gets_data_image_and_environment(tmp_path: Path) -> None:
    job = completed(AWQ | COMPILED)
    endpoint, text = adopted(written(tmp_path, STATED), job)
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
                "OPTION_N_POSITIONS": "2048",
            },
        }
    ]
    assert f"- image: {{uri: {IMAGE}}} # AWS's\n" in text
    assert "# a guess\n" in text


@pytest.mark.parametrize(
    ("stated", "recommended", "image"),
    [
        ("uri: a/b:1", IMAGE, {"uri": IMAGE}),
        ("asset: .", IMAGE, {"asset": "."}),  # built from a folder
        ("uri: a/b:1", None, {"uri": "a/b:1"}),
    ],
)
def test_the_image_that_serves(
    tmp_path: Path, stated: str, recommended: str | None, image: dict[str, str]
) -> None:
    (tmp_path / "Dockerfile").touch()
    output = {"RecommendedInferenceImage": recommended} if recommended else {}
    job = completed(AWQ, OptimizationOutput=output)
    endpoint, _ = adopted(written(tmp_path, STATED.replace(DLC, stated)), job)
    assert endpoint["containers"][0]["image"] == image


@pytest.mark.parametrize(
    ("body", "config", "code"), [(STATED + POOLS, COMPILED, "LLR109"), (ARCHIVE, AWQ, "LLR112")]
)
def test_settings_that_cannot_take_the_model(
    tmp_path: Path, body: str, config: dict[str, Any], code: str
) -> None:
    with refused(code):
        adopted(written(tmp_path, body), completed(config))
