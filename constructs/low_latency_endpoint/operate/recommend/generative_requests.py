"""Requests of SageMaker's jobs for generative models, as pure functions.

Three parts: a workload configuration (what callers send, run by NVIDIA AIPerf), a recommendation
job (which instance type and serving configuration for a model in S3), and a benchmark job (how an
endpoint that runs answers the workload).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ...account.sessions import ClientFactory
from ...errors import rule
from ...plan.instance_types import instance_facts
from ...plan.limits import GUIDE, INSTANCE_TYPE, MODEL_DATA_URI, S3_URI, Choice, Range
from .job_requests import JOB_NAME, JOB_ROLE, TAGS
from .jobs import BENCHMARK, GENERATIVE, JobKind, JobRequest

GENERATIVE_FORM = rule(
    "LLR110",
    "the request for a generative model is not valid",
    fix="See low-latency recommend-generative --help.",
    source=GUIDE + "generative-ai-inference-recommendations.html",
)
GOAL = Choice(GENERATIVE_FORM, "the goal", ("ttft-ms", "throughput", "cost"))
FRAMEWORK = Choice(GENERATIVE_FORM, "the serving framework", ("LMI", "VLLM"))
GENERATIVE_TYPES = Range(GENERATIVE_FORM, "the number of instance types", 0, 3)
TOKENS = Range(GENERATIVE_FORM, "a number of tokens or requests", 1, 1_000_000_000)


def workload_of_tokens(
    input_tokens: int = 550,
    output_tokens: int = 150,
    concurrency: int = 10,
    requests: int = 300,
    *,
    streaming: bool = True,
    tokenizer: str | None = None,
    token_secret_arn: str | None = None,
) -> str:
    """AWS's specification of what the callers of a language model send.

    Parameters
    ----------
    input_tokens, output_tokens : int
        Mean length of prompt and answer.
    concurrency : int
        Requests in flight. By default 10.
    requests : int
        Requests in all. By default 300.
    streaming : bool
        Whether the answer streams, which the time to first token needs. By default it does.
    tokenizer : str, optional
        Tokenizer on the Hugging Face Hub that counts the tokens. By default AWS's choice.
    token_secret_arn : str, optional
        Secret with a Hub token, for a tokenizer that needs one.

    Raises
    ------
    ConfigurationError
        LLR110.
    """
    parameters: dict[str, Any] = {
        "prompt_input_tokens_mean": TOKENS.check(input_tokens, "--input-tokens"),
        "output_tokens_mean": TOKENS.check(output_tokens, "--output-tokens"),
        "concurrency": TOKENS.check(concurrency, "--users"),
        "request_count": TOKENS.check(requests, "--requests"),
        "streaming": streaming,
    }
    if tokenizer:
        parameters["tokenizer"] = tokenizer
    specification: dict[str, Any] = {"benchmark": {"type": "aiperf"}, "parameters": parameters}
    if token_secret_arn:
        specification["secrets"] = {"hf_token": token_secret_arn}
    return json.dumps(specification)  # which is YAML too


def workload_of_file(path: str | Path) -> str:
    """AWS's specification from a file, YAML or JSON.

    Raises
    ------
    ConfigurationError
        LLR110 when it cannot be read, or is no mapping.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
        found = yaml.safe_load(text)
        wrong = "" if isinstance(found, dict) else type(found).__name__
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        wrong = getattr(error, "strerror", None) or type(error).__name__
    if wrong:
        raise GENERATIVE_FORM.error(
            got=f"{path}: {wrong}",
            allowed="a file with a mapping in YAML or JSON, "
            "{benchmark: {type: aiperf}, parameters: ...}",
            where="--workload-file",
        )
    return text


def workload_request(name: str, specification: str, dataset: str | None = None) -> dict[str, Any]:
    """What ``create_ai_workload_config`` is called with; a dataset is a prefix of recorded requests.

    Raises
    ------
    ConfigurationError
        LLR101 for the name, LLE418 for a dataset that is not in S3.
    """
    request: dict[str, Any] = {
        "AIWorkloadConfigName": JOB_NAME.check(name, "--job-name"),
        "AIWorkloadConfigs": {"WorkloadSpec": {"Inline": specification}},
        "Tags": TAGS,
    }
    if dataset is not None:
        source = {"S3DataSource": {"S3Uri": S3_URI.check(dataset, "--dataset")}}
        request["DatasetConfig"] = {
            "InputDataConfig": [{"ChannelName": "datasets", "DataSource": source}]
        }
    return request


def recommendation_job(
    name: str,
    role_arn: str,
    model: str,
    output: str,
    workload: str,
    *,
    goal: str = "ttft-ms",
    instance_types: Sequence[str] = (),
    framework: str | None = None,
    optimize: bool = False,
    model_package_group: str | None = None,
) -> JobRequest:
    """A job that finds a configuration.

    Parameters
    ----------
    model : str
        Prefix in S3 with the model as a Hugging Face checkpoint in SafeTensors.
    output : str
        Prefix in S3 for the results.
    workload : str
        Name or ARN of the workload configuration.
    goal : str
        ``ttft-ms`` (time to first token), ``throughput`` or ``cost``. By default ``ttft-ms``.
    instance_types : sequence of str
        At most three; none lets AWS choose.
    framework : str, optional
        ``LMI`` or ``VLLM``. By default AWS's choice.
    optimize : bool
        Let AWS change the model too (speculative decoding, kernels), which takes hours. By
        default it does not, other than AWS's own default.
    model_package_group : str, optional
        Where an optimized model is registered.

    Raises
    ------
    ConfigurationError
        LLR101, LLR102, LLR110; LLE405 for an instance type, LLE304 for the model's place, LLE418
        for the results'.
    """
    GENERATIVE_TYPES.check(len(instance_types), "--instance-type")
    request = _common(GENERATIVE, name, role_arn, output, workload) | {
        "ModelSource": {"S3": {"S3Uri": MODEL_DATA_URI.check(model, "--model-data")}},
        "PerformanceTarget": {"Constraints": [{"Metric": GOAL.check(goal, "--goal")}]},
        "OptimizeModel": optimize,
    }
    if model_package_group is not None:
        request["OutputConfig"]["ModelPackageGroupIdentifier"] = model_package_group
    if framework is not None:
        framework = FRAMEWORK.check(framework, "--framework")
        request["InferenceSpecification"] = {"Framework": framework}
    if instance_types:
        request["ComputeSpec"] = {"InstanceTypes": [_gpu(each) for each in instance_types]}
    return JobRequest(GENERATIVE, request)


def _gpu(name: str) -> str:
    INSTANCE_TYPE.check(name, "--instance-type")
    facts = instance_facts(name)
    if facts is not None and facts.accelerator != "nvidia":
        raise GENERATIVE_FORM.error(
            got=f"{name} without an NVIDIA GPU",
            where="--instance-type",
            allowed="GPU types such as ml.g6.12xlarge",
        )
    return name


def benchmark_job(
    name: str,
    role_arn: str,
    endpoint: str,
    output: str,
    workload: str,
    components: Sequence[str] = (),
    vpc: Mapping[str, Any] | None = None,
) -> JobRequest:
    """A job that loads an endpoint in service, which answers OpenAI's chat completions.

    Parameters
    ----------
    output : str
        Prefix in S3 for the results.
    workload : str
        Name or ARN of the workload configuration.
    components : sequence of str
        Inference components to call, on an endpoint that hosts them.
    vpc : mapping, optional
        ``VpcConfig`` from where the endpoint is called. By default from outside any VPC.

    Raises
    ------
    ConfigurationError
        LLR101, LLR102, and LLE418 for a place that is not S3.
    """
    target: dict[str, Any] = {"Identifier": endpoint}
    if components:
        target["InferenceComponents"] = [{"Identifier": each} for each in components]
    request = _common(BENCHMARK, name, role_arn, output, workload)
    request["BenchmarkTarget"] = {"Endpoint": target}
    if vpc is not None:
        request["NetworkConfig"] = {"VpcConfig": vpc}
    return JobRequest(BENCHMARK, request)


def _common(
    kind: JobKind[Any], name: str, role_arn: str, output: str, workload: str
) -> dict[str, Any]:
    """What both kinds of jobs have."""
    return {
        **kind.named(JOB_NAME.check(name, "--job-name")),
        "RoleArn": JOB_ROLE.check(role_arn, "--role-arn"),
        "OutputConfig": {"S3OutputLocation": S3_URI.check(output, "--s3-output")},
        "AIWorkloadConfigIdentifier": workload,
        "Tags": TAGS,
    }


def check_boto3(client: ClientFactory) -> None:
    """Say so when the installed boto3 does not know these jobs yet.

    Raises
    ------
    ConfigurationError
        LLR110.
    """
    if not hasattr(client("sagemaker"), "create_ai_recommendation_job"):
        raise GENERATIVE_FORM.error(
            got="a boto3 from before these jobs",
            allowed="a boto3 of 2026-04 or newer",
            fix="Run pip install --upgrade boto3.",
        )


def doubtful_types(
    client: ClientFactory,
    instance_types: Sequence[str],
    shape: str = "AIRecommendationInstanceType",
) -> list[str]:
    """Types that the installed boto3 does not know for these jobs; AWS may by now."""
    known = client("sagemaker").meta.service_model.shape_for(shape).enum
    return [
        f"{name} is not among the types that boto3 knows for this job"
        for name in instance_types
        if name not in known
    ]
