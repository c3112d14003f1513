"""Optimization jobs: requests, answers, adoption, and ``low-latency optimize`` on the local AWS."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from local_sagemaker import LocalAws, RuntimeOptions, delete_stack, deploy_template
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.operate.recommend.jobs import Job, parse_limit
from low_latency_endpoint.operate.recommend.optimization_requests import (
    OPTIMIZATION,
    RUNTIME,
    Techniques,
    optimization_job,
    parse_environment,
)
from low_latency_endpoint.operate.recommend.optimized_model import adopt_optimized, optimized_models
from low_latency_endpoint.settings import load_settings
from low_latency_endpoint.settings.yaml_editing import checked_edit
from tests.pinned_models import QWEN, written_lock
from tests.refusals import refused

from .account import ROLE, faults
from .command import Command, Done

MODEL, OUT = "s3://my-bucket/llama/", "s3://my-bucket/llama-awq/"
REGISTRY = "763104351884.dkr.ecr.us-west-2.amazonaws.com/"
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
HUB = """\
    # pinned
    hugging_face:
      model: Qwen/Qwen3-8B
      bucket: my-bucket
      accept_license: apache-2.0
    instance_type: ml.g6.2xlarge
    latency: {p99: 2s}
"""


def written(folder: Path, body: str) -> Path:
    path = folder / "llm.yaml"
    path.write_text(HEAD + body)
    return path


# --- requests ----------------------------------------------------------------------------------
def test_a_quantization_as_aws_takes_it() -> None:
    techniques = Techniques(quantize="awq", environment={"OPTION_TENSOR_PARALLEL_DEGREE": "4"})
    job = optimization_job("llm-1", ROLE, MODEL, OUT, "ml.g5.12xlarge", techniques)
    assert faults("CreateOptimizationJob", job.content) == ""
    assert job.content == {
        "OptimizationJobName": "llm-1",
        "RoleArn": ROLE,
        "ModelSource": {"S3": {"S3Uri": MODEL}},
        "DeploymentInstanceType": "ml.g5.12xlarge",
        "OptimizationConfigs": [
            {
                "ModelQuantizationConfig": {
                    "OverrideEnvironment": {
                        "OPTION_TENSOR_PARALLEL_DEGREE": "4",
                        "OPTION_QUANTIZE": "awq",
                    }
                }
            }
        ],
        "OutputConfig": {"S3OutputLocation": OUT},
        "StoppingCondition": {"MaxRuntimeInSeconds": 36_000},
        "Tags": [{"Key": "created-by", "Value": "low-latency-endpoint"}],
    }


def test_each_technique_is_a_configuration_of_its_own() -> None:
    data = "s3://my-bucket/chats/"
    techniques = Techniques(
        quantize="fp8", shard=True, speculative=True, training_data=data, image="r/lmi:1"
    )
    assert techniques.configs() == [
        {
            "ModelQuantizationConfig": {
                "Image": "r/lmi:1",
                "OverrideEnvironment": {"OPTION_QUANTIZE": "fp8"},
            }
        },
        {"ModelShardingConfig": {"Image": "r/lmi:1"}},
        {
            "ModelSpeculativeDecodingConfig": {
                "Technique": "EAGLE",
                "TrainingDataSource": {"S3Uri": data, "S3DataType": "S3Prefix"},
            }
        },
    ]


#: As AWS's own client has it: serve/validations/optimization.py of its SDK.
TOGETHER = [
    ("ml.g5.xlarge", {"quantize": "awq"}, True),
    ("ml.g5.xlarge", {"quantize": "smoothquant"}, False),
    ("ml.g5.xlarge", {"quantize": "smoothquant", "compile": True}, True),
    ("ml.g5.xlarge", {"compile": True, "shard": True}, False),
    ("ml.g5.xlarge", {"compile": True, "speculative": True}, False),
    ("ml.g5.xlarge", {"quantize": "fp8", "shard": True, "speculative": True}, True),
    ("ml.inf2.xlarge", {"compile": True}, True),
    ("ml.trn1.32xlarge", {"quantize": "fp8"}, False),
    ("ml.inf2.xlarge", {"compile": True, "shard": True}, False),
    ("ml.inf2.xlarge", {"speculative": True}, False),
    ("ml.c7i.xlarge", {"quantize": "fp8"}, False),
]


@pytest.mark.parametrize(("instance_type", "techniques", "taken"), TOGETHER)
def test_what_goes_together_on_which_accelerator(
    instance_type: str, techniques: dict[str, Any], taken: bool
) -> None:
    if taken:
        Techniques(**techniques).check_for(instance_type)
        return
    with refused("LLR113"):
        Techniques(**techniques).check_for(instance_type)


def job(**changes: str) -> None:
    stated = {"name": "llm-1", "role_arn": ROLE, "model": MODEL, "output": OUT}
    given_ = {**stated, "instance_type": "ml.g5.xlarge", **changes}
    optimization_job(**given_, techniques=Techniques(quantize="awq"))


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: Techniques(), "LLR111"),
        (lambda: Techniques(quantize="int2"), "LLR111"),
        (lambda: Techniques(quantize="awq", training_data=MODEL), "LLR111"),
        (lambda: Techniques(speculative=True, image="r/lmi:1"), "LLR111"),
        (lambda: Techniques(speculative=True, environment={"A": "1"}), "LLR111"),
        (lambda: job(output="s3://my-bucket/llama/awq/"), "LLR111"),  # inside of the model
        (lambda: job(output="s3://my-bucket/out"), "LLR111"),  # not as s3_prefix has it
        (lambda: job(output=""), "LLR111"),
        (lambda: job(model="s3://my-bucket/llama.tar.gz"), "LLR112"),
        (lambda: job(role_arn=""), "LLR102"),
        (lambda: job(name="-"), "LLR101"),
        (lambda: job(instance_type="g5"), "LLE405"),
        *(
            (functools.partial(parse_limit, text, RUNTIME), "LLR111")
            for text in ("1", "0s", "1.5s", "-1h", "soon", "1500ms")
        ),
        *(
            (functools.partial(parse_environment, variables), "LLR111")
            for variables in (["A"], ["=1"], ["A=1", "A=2"], ["OPTION_QUANTIZE=awq"])
        ),
    ],
)
def test_what_cannot_be_asked_for(make: Callable[[], object], code: str) -> None:
    with refused(code):
        make()


@given(
    asked=st.fixed_dictionaries(
        {},
        optional={
            "quantize": st.sampled_from(["fp8", "awq", "smoothquant", "int4"]),
            "compile": st.booleans(),
            "shard": st.booleans(),
            "speculative": st.booleans(),
            "training_data": st.sampled_from(["s3://b/t/", "b", ""]),
            "image": st.sampled_from([None, "r/i:1", "r i", ""]),
        },
    ),
    instance_type=st.sampled_from(["ml.g5.xlarge", "ml.inf2.xlarge", "ml.m5.large", "g5"]),
    output=st.sampled_from(["s3://b/o/", "s3://b/", "b/o/", "s3://my-bucket/"]),
    name=st.sampled_from(["a"]) | st.text("a-_", max_size=65),
)
def test_any_options(asked: dict[str, Any], instance_type: str, output: str, name: str) -> None:
    """A request that AWS's model takes, or a coded error of ours."""
    try:
        job = optimization_job(name, ROLE, MODEL, output, instance_type, Techniques(**asked))
    except ConfigurationError as error:
        code = error.code
    else:
        assert faults("CreateOptimizationJob", job.content) == ""
        return
    assert code in ("LLR101", "LLR111", "LLR113", "LLE302", "LLE304", "LLE405")


# --- answers, and what is adopted --------------------------------------------------------------
def answer(config: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """As recorded in sagemaker-python-sdk's unit tests of ``optimize`` (test_optimize_utils.py)."""
    recorded = {
        "OptimizationJobName": "llm-1",
        "OptimizationJobStatus": "COMPLETED",
        "CreationTime": datetime(2026, 11, 20, tzinfo=UTC),
        "OptimizationEnvironment": {"HF_MODEL_ID": "/opt/ml/model", "SAGEMAKER_ENV": "1"},
        "DeploymentInstanceType": "ml.g5.2xlarge",
        "OptimizationConfigs": [config],
        "OutputConfig": {"S3OutputLocation": "s3://quicksilver-model-data/llama-3-8b/quantized-1/"},
        "OptimizationOutput": {
            "RecommendedInferenceImage": f"{REGISTRY}djl-inference:0.28.0-lmi10.0.0-cu124"
        },
    }
    return recorded | changes


AWQ = {
    "ModelQuantizationConfig": {
        "Image": f"{REGISTRY}djl-inference:0.28.0-lmi10.0.0-cu124",
        "OverrideEnvironment": {"OPTION_QUANTIZE": "awq"},
    }
}
COMPILED = {
    "ModelCompilationConfig": {
        "Image": f"{REGISTRY}djl-inference:0.28.0-neuronx-sdk2.18.2",
        "OverrideEnvironment": {"OPTION_N_POSITIONS": "2048", "OPTION_TENSOR_PARALLEL_DEGREE": "2"},
    }
}


def adopted(path: Path, said: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...], str]:
    """The endpoint after a result was adopted, the notes, and the text."""
    [result] = optimized_models(Job.of(OPTIMIZATION, said))
    adoption = adopt_optimized(result, "llm", load_settings(path).endpoints["llm"], "us-west-2")
    edit, _ = checked_edit(path, adoption.values)
    return yaml.safe_load(edit.after)["endpoints"]["llm"], adoption.notes, edit.after


def test_a_stated_container_gets_data_image_and_environment(tmp_path: Path) -> None:
    endpoint, _, text = adopted(written(tmp_path, STATED), answer(AWQ))
    assert endpoint["instance_type"] == "ml.g5.2xlarge"
    assert endpoint["containers"] == [
        {
            "image": {"uri": f"{REGISTRY}djl-inference:0.28.0-lmi10.0.0-cu124"},
            "data": {"s3_prefix": "s3://quicksilver-model-data/llama-3-8b/quantized-1/"},
            "environment": {
                "OPTION_DTYPE": "fp16",
                "HF_MODEL_ID": "/opt/ml/model",
                "SAGEMAKER_ENV": "1",
                "OPTION_QUANTIZE": "awq",
            },
        }
    ]
    assert f"- image: {{uri: {REGISTRY}djl-inference:0.28.0-lmi10.0.0-cu124}} # AWS's\n" in text
    assert "# a guess\n" in text


def test_a_model_of_the_hub_gives_way_to_a_container_that_stays_offline(tmp_path: Path) -> None:
    written_lock(tmp_path)
    endpoint, notes, text = adopted(written(tmp_path, HUB), answer(AWQ))
    assert "hugging_face" not in endpoint
    [container] = endpoint["containers"]
    assert container["data"] == {"s3_prefix": "s3://quicksilver-model-data/llama-3-8b/quantized-1/"}
    wanted = {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",  # LMI runs vLLM, too
        "HF_MODEL_ID": "/opt/ml/model",
        "SAGEMAKER_ENV": "1",
        "OPTION_QUANTIZE": "awq",
    }
    assert wanted.items() <= container["environment"].items()
    assert not [name for name in container["environment"] if name.startswith("SM_")]
    assert endpoint["network_isolation"] is True
    assert any("SM_VLLM_" in note and "OPTION_MAX_MODEL_LEN" in note for note in notes)
    assert any("lock file" in note for note in notes)
    assert "    # pinned\n    containers:\n      - image:\n" in text


def test_without_a_recommended_image_the_former_one_serves(tmp_path: Path) -> None:
    written_lock(tmp_path)
    endpoint, _, _ = adopted(written(tmp_path, HUB), answer(AWQ, OptimizationOutput={}))
    [container] = endpoint["containers"]
    assert container["image"]["dlc"]["repository"] == "vllm"
    assert any(name.startswith("SM_VLLM_") for name in container["environment"])


def test_what_neuron_compiled_says_where_it_runs(tmp_path: Path) -> None:
    said = answer(
        COMPILED,
        DeploymentInstanceType="ml.inf2.48xlarge",
        OptimizationOutput={
            "RecommendedInferenceImage": f"{REGISTRY}djl-inference:0.28.0-neuronx-sdk2.18.2"
        },
    )
    endpoint, notes, _ = adopted(written(tmp_path, STATED), said)
    assert endpoint["instance_type"] == "ml.inf2.48xlarge"
    assert endpoint["containers"][0]["environment"]["OPTION_N_POSITIONS"] == "2048"
    assert any("Neuron SDK for ml.inf2.48xlarge" in note for note in notes)


def test_a_compiled_model_is_not_for_pools_of_types(tmp_path: Path) -> None:
    pools = (
        "    instance_pools: [{instance_type: ml.g5.12xlarge, priority: 1}, "
        "{instance_type: ml.g6.12xlarge, priority: 2}]\n"
    )
    with refused("LLR109"):
        adopted(written(tmp_path, STATED + pools), answer(COMPILED))


# --- the command, on the local AWS -------------------------------------------------------------
@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    options = RuntimeOptions(optimization_time=3600, clock_speed=0)
    with LocalAws.in_process(region="us-east-1", runtime=options) as running:
        running.client("iam").create_role(
            RoleName="recommender", AssumeRolePolicyDocument=json.dumps({"Statement": []})
        )
        s3 = running.client("s3")
        s3.create_bucket(Bucket="my-bucket")
        for key in ("llama/config.json", "llama/model.safetensors", f"{QWEN.prefix}config.json"):
            s3.put_object(Bucket="my-bucket", Key=key, Body=b"{}")
        yield running


class Optimize:
    """``low-latency optimize`` with an hour of the local AWS's clock for each look at a job."""

    def __init__(self, command: Command, aws: LocalAws, path: Path) -> None:
        command.account = aws.client
        self._command, self._aws, self.path = command, aws, path

    def __call__(self, *arguments: str, **more: Any) -> Done:
        hour = functools.partial(self._aws.advance, 3600)
        return self._command("optimize", str(self.path), *arguments, sleep=lambda _: hour(), **more)


@pytest.fixture
def optimize(low_latency: Command, aws: LocalAws, tmp_path: Path) -> Optimize:
    return Optimize(low_latency, aws, written(tmp_path, STATED))


TO = ("--role-arn", ROLE, "--s3-output", OUT)


def test_from_the_question_to_the_adopted_model(optimize: Optimize, aws: LocalAws) -> None:
    done = optimize("--quantize", "awq", *TO, "--job-name", "whole", answer="y")
    assert "This costs money" in done.err
    assert "10h, then AWS ends the job" in done.err
    assert "changes the model's answers" in done.err
    assert "whole: INPROGRESS" in done.err
    assert "whole (optimization): COMPLETED" in done.out
    assert "--job whole --result N --write" in done.out
    found = aws.client("s3").list_objects_v2(Bucket="my-bucket", Prefix="llama-awq/")
    assert "llama-awq/model.safetensors" in [each["Key"] for each in found["Contents"]]

    done = optimize("--job", "whole", "--result", "1", "--write")
    container = load_settings(optimize.path).endpoints["llm"].containers[0]
    assert container.data.s3_prefix == OUT
    assert container.environment["OPTION_QUANTIZE"] == "awq"
    assert "# the team's language model" in optimize.path.read_text()


def test_a_dry_run_shows_and_starts_nothing(optimize: Optimize, aws: LocalAws) -> None:
    done = optimize("--quantize", "fp8", *TO, "--job-name", "dry", "--dry-run")
    assert "OPTION_QUANTIZE: fp8" in done.out
    names = aws.client("sagemaker").list_optimization_jobs(NameContains="dry")
    assert names["OptimizationJobSummaries"] == []
    assert "belongs to a new job" in optimize("--job", "dry", "--dry-run", ends=2).err


def test_the_staged_model_of_the_hub_is_the_source(
    low_latency: Command, aws: LocalAws, tmp_path: Path
) -> None:
    written_lock(tmp_path)
    optimize = Optimize(low_latency, aws, written(tmp_path, HUB))
    to = ("--role-arn", ROLE, "--s3-output", "s3://my-bucket/qwen-fp8/")
    optimize("--quantize", "fp8", *to, "--job-name", "hub", "--yes")
    job = aws.client("sagemaker").describe_optimization_job(OptimizationJobName="hub")
    assert job["ModelSource"]["S3"] == {
        "S3Uri": f"s3://my-bucket/{QWEN.prefix}",
        "ModelAccessConfig": {"AcceptEula": True},
    }
    optimize("--job", "hub", "--result", "1", "--write")
    endpoint = load_settings(optimize.path).endpoints["llm"]
    assert endpoint.hugging_face is None
    assert endpoint.containers[0].environment["HF_HUB_OFFLINE"] == "1"


def test_the_stacks_own_bucket_is_found(
    low_latency: Command, aws: LocalAws, tmp_path: Path
) -> None:
    written_lock(tmp_path)
    body = HUB.replace("      bucket: my-bucket\n", "")
    optimize = Optimize(low_latency, aws, written(tmp_path, body))
    to = ("--quantize", "fp8", "--role-arn", ROLE, "--s3-output", "s3://my-bucket/q/", "--dry-run")
    assert "LLR112" in optimize(*to, ends=2).err
    buckets = {"HubModelsB3C0FFEE": "made-by-the-stack", "Other": "not-this"}
    resources = {
        logical_id: {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": bucket}}
        for logical_id, bucket in buckets.items()
    }
    name = load_settings(optimize.path).stack_name
    deploy_template(aws, {"Resources": resources}, name)
    done = optimize(*to)
    assert f"s3://made-by-the-stack/{QWEN.prefix}" in done.out
    delete_stack(aws, name)


def test_a_job_that_fails_says_why(optimize: Optimize) -> None:
    model = ("--model-data", "s3://my-bucket/nothing-here/")
    done = optimize("--quantize", "awq", *model, *TO, "--job-name", "empty", "--yes", ends=1)
    assert "No S3 objects found" in done.out
    assert "LLR108" in optimize("--job", "empty", "--result", "1", "--write", ends=2).err


def test_stop_list_and_come_back(optimize: Optimize) -> None:
    start = ("--speculative", *TO, "--job-name", "eagle", "--yes", "--no-wait", "--json")
    assert json.loads(optimize(*start).out)["job"] == "eagle"
    assert "optimization" in optimize("--list").out
    assert optimize("--job", "eagle", "--stop").err == "AWS stops eagle.\n"
    back = optimize("--job", "eagle", "--json", ends=1)
    assert json.loads(back.out)["status"] == "STOPPED"


def test_a_second_job_of_a_name_is_told_what_to_do(optimize: Optimize) -> None:
    start = ("--quantize", "awq", *TO, "--job-name", "twice", "--yes", "--no-wait")
    optimize(*start)
    assert "Choose another --job-name" in optimize(*start, ends=2).err
