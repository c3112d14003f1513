"""Requests of SageMaker's jobs for generative models, as pure functions.

Three parts: a workload configuration (what callers send, run by NVIDIA AIPerf), a recommendation
job (which instance type and serving configuration for a model in S3), and a benchmark job (how an
endpoint that runs answers the workload).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import yaml

from ...account.sessions import ClientFactory
from ...errors import rule
from ...plan.instance_types import instance_facts
from ...plan.limits import GUIDE, INSTANCE_TYPE, MODEL_DATA_URI, S3_URI, Choice, Range
from .job_requests import JOB_NAME, JOB_ROLE, TAGS, VpcConfig
from .jobs import BENCHMARK, GENERATIVE, JobKind

GENERATIVE_FORM = rule(
    "LLR110",
    "a job for a generative model cannot be asked like this",
    fix="See low-latency recommend-generative --help.",
    source=GUIDE + "generative-ai-inference-recommendations.html",
)
GOAL = Choice(GENERATIVE_FORM, "the goal", ("ttft-ms", "throughput", "cost"))
FRAMEWORK = Choice(GENERATIVE_FORM, "the serving framework", ("LMI", "VLLM"))
GENERATIVE_TYPES = Range(GENERATIVE_FORM, "the number of instance types", 0, 3)
TOKENS = Range(GENERATIVE_FORM, "a number of tokens or requests", 1, 1_000_000_000)


@dataclass(frozen=True, slots=True)
class TokenWorkload:
    """What the callers of a language model send.

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
    dataset : str, optional
        Prefix in S3 with recorded requests.
    given : str, optional
        A whole specification as text, in place of the values above.

    Raises
    ------
    ConfigurationError
        LLR110, and LLE418 for a dataset that is not in S3.
    """

    input_tokens: int = 550
    output_tokens: int = 150
    concurrency: int = 10
    requests: int = 300
    streaming: bool = True
    tokenizer: str | None = None
    token_secret_arn: str | None = None
    dataset: str | None = None
    given: str | None = None

    def __post_init__(self) -> None:
        TOKENS.check(self.input_tokens, "--input-tokens")
        TOKENS.check(self.output_tokens, "--output-tokens")
        TOKENS.check(self.concurrency, "--concurrency")
        TOKENS.check(self.requests, "--requests")
        if self.dataset is not None:
            S3_URI.check(self.dataset, "--dataset")

    def request(self, name: str) -> dict[str, Any]:
        """What ``create_ai_workload_config`` is called with; ``LLR101`` for the name."""
        request: dict[str, Any] = {
            "AIWorkloadConfigName": JOB_NAME.check(name, "--job-name"),
            "AIWorkloadConfigs": {"WorkloadSpec": {"Inline": self._specification()}},
            "Tags": TAGS,
        }
        if self.dataset is not None:
            request["DatasetConfig"] = {
                "InputDataConfig": [
                    {
                        "ChannelName": "datasets",
                        "DataSource": {"S3DataSource": {"S3Uri": self.dataset}},
                    }
                ]
            }
        return request

    def _specification(self) -> str:
        """Inline: JSON, which is YAML too."""
        if self.given is not None:
            return self.given
        parameters: dict[str, Any] = {
            "prompt_input_tokens_mean": self.input_tokens,
            "output_tokens_mean": self.output_tokens,
            "concurrency": self.concurrency,
            "request_count": self.requests,
            "streaming": self.streaming,
        }
        if self.tokenizer:
            parameters["tokenizer"] = self.tokenizer
        specification: dict[str, Any] = {"benchmark": {"type": "aiperf"}, "parameters": parameters}
        if self.token_secret_arn:
            specification["secrets"] = {"hf_token": self.token_secret_arn}
        return json.dumps(specification)

    def __str__(self) -> str:
        if self.given is not None:
            return "as the file says"
        return (
            f"{self.requests} requests, {self.concurrency} in flight, {self.input_tokens} "
            f"tokens in, {self.output_tokens} out, {'' if self.streaming else 'not '}streaming"
        )


def workload_of_file(path: str | Path, dataset: str | None = None) -> TokenWorkload:
    """A workload from a file with AWS's specification, YAML or JSON.

    Raises
    ------
    ConfigurationError
        LLR110 when it cannot be read, or is no mapping.
    """
    allowed = "a file with a mapping in YAML or JSON, {benchmark: {type: aiperf}, parameters: ...}"
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
        found = yaml.safe_load(text)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        reason = error.strerror if isinstance(error, OSError) else type(error).__name__
        raise GENERATIVE_FORM.error(
            got=f"{path}: {reason}", allowed=allowed, where="--workload-file"
        ) from error
    if not isinstance(found, dict):
        raise GENERATIVE_FORM.error(
            got=f"{path}: {type(found).__name__}", allowed=allowed, where="--workload-file"
        )
    return TokenWorkload(given=text, dataset=dataset)


@dataclass(frozen=True, slots=True)
class GenerativeRecommendation:
    """A recommendation job.

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
    instance_types : tuple of str
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
        Of :meth:`request`: LLR101, LLR102, LLR110; LLE405 for an instance type, LLE304 for the
        model's place, LLE418 for the results'.
    """

    job_name: str
    role_arn: str
    model: str
    output: str
    workload: str
    goal: str = "ttft-ms"
    instance_types: tuple[str, ...] = ()
    framework: str | None = None
    optimize: bool = False
    model_package_group: str | None = None
    kind: ClassVar[JobKind[Any]] = GENERATIVE

    def request(self) -> dict[str, Any]:
        """What ``create_ai_recommendation_job`` is called with."""
        MODEL_DATA_URI.check(self.model, "--model")
        GENERATIVE_TYPES.check(len(self.instance_types), "--instance-type")
        request = _request(self) | {
            "ModelSource": {"S3": {"S3Uri": self.model}},
            "PerformanceTarget": {"Constraints": [{"Metric": GOAL.check(self.goal, "--goal")}]},
            "OptimizeModel": self.optimize,
        }
        if self.model_package_group is not None:
            request["OutputConfig"]["ModelPackageGroupIdentifier"] = self.model_package_group
        if self.framework is not None:
            request["InferenceSpecification"] = {
                "Framework": FRAMEWORK.check(self.framework, "--framework")
            }
        if self.instance_types:
            request["ComputeSpec"] = {"InstanceTypes": [_gpu(name) for name in self.instance_types]}
        return request


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


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark job.

    Parameters
    ----------
    endpoint_name : str
        It must be in service and answer OpenAI's chat completions.
    output : str
        Prefix in S3 for the results.
    workload : str
        Name or ARN of the workload configuration.
    inference_components : sequence of str
        Those to call, on an endpoint that hosts them.
    vpc : VpcConfig, optional
        From where the endpoint is called. By default from outside any VPC.

    Raises
    ------
    ConfigurationError
        Of :meth:`request`: LLR101, LLR102, and LLE418 for a place that is not S3.
    """

    job_name: str
    role_arn: str
    endpoint_name: str
    output: str
    workload: str
    inference_components: Sequence[str] = ()
    vpc: VpcConfig | None = None
    kind: ClassVar[JobKind[Any]] = BENCHMARK

    def request(self) -> dict[str, Any]:
        """What ``create_ai_benchmark_job`` is called with."""
        target: dict[str, Any] = {"Identifier": self.endpoint_name}
        if self.inference_components:
            target["InferenceComponents"] = [
                {"Identifier": each} for each in self.inference_components
            ]
        request = _request(self) | {"BenchmarkTarget": {"Endpoint": target}}
        if self.vpc is not None:
            request["NetworkConfig"] = {"VpcConfig": self.vpc.request()}
        return request


def _request(job: GenerativeRecommendation | Benchmark) -> dict[str, Any]:
    """What both kinds of jobs have."""
    return {
        **job.kind.named(JOB_NAME.check(job.job_name, "--job-name")),
        "RoleArn": JOB_ROLE.check(job.role_arn, "--role-arn"),
        "OutputConfig": {"S3OutputLocation": S3_URI.check(job.output, "--output")},
        "AIWorkloadConfigIdentifier": job.workload,
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


def doubtful_types(client: ClientFactory, instance_types: tuple[str, ...]) -> list[str]:
    """Types that the installed boto3 does not know for these jobs; AWS may by now."""
    known = client("sagemaker").meta.service_model.shape_for("AIRecommendationInstanceType").enum
    return [
        f"{name} is not among the types that boto3 knows for this job"
        for name in instance_types
        if name not in known
    ]
