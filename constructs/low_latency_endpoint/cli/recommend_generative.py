"""``low-latency recommend-generative``: SageMaker's jobs for language models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .job_following import JobCommand, JobOptions, PreparedJob, opened
from .options import ENDPOINT_YAML, SettingsFile, flag, grouped, option

if TYPE_CHECKING:
    from ..operate.recommend.jobs import Job, JobRequest
    from ..operate.recommend.results import GenerativeResult
    from ..settings import EndpointSettings


@dataclass
class ModelOrEndpoint:
    """What is found out, of which model."""

    benchmark: bool = flag("Measure the deployed endpoint, instead of finding a type.")
    role_arn: str | None = option(
        "Role with which AWS reads the model or calls the endpoint.", metavar="ARN"
    )
    s3_output: str | None = option("Where the results go.", metavar="S3_PREFIX")
    model_data: str | None = option(
        "Hugging Face checkpoint with SafeTensors. Default: s3_prefix of the settings' model data.",
        metavar="S3_PREFIX",
    )
    goal: str = option(
        "ttft-ms (time to first token), throughput or cost.", "ttft-ms", metavar="METRIC"
    )
    instance_type: list[str] | None = option(
        "GPU type to try; again for each, up to three. Default: AWS chooses.",
        metavar="TYPE",
        short="-t",
    )
    framework: str | None = option("LMI or VLLM. Default: AWS chooses.", metavar="NAME")
    optimize: bool = flag(
        "Let AWS change the model too (speculative decoding, kernels): hours instead of minutes."
    )
    model_package_group: str | None = option(
        "Where an optimized model is registered.", metavar="NAME"
    )
    inference_component: list[str] | None = option(
        "With --benchmark: inference component to call; again for each.", metavar="NAME"
    )
    no_vpc: bool = flag("With --benchmark: call from outside the model's VPC.")

    def check(self) -> None:
        """What is missing is said before AWS is asked for the endpoint."""
        from ..operate.recommend.job_requests import JOB_ROLE
        from ..plan.limits import S3_URI

        JOB_ROLE.check(self.role_arn or "", "--role-arn")
        S3_URI.check(self.s3_output or "", "--s3-output")


@dataclass
class TokenLoad:
    """What the model is asked."""

    workload: str | None = option(
        "Workload configuration that exists. Default: one is made from the options below and "
        "named as the job.",
        metavar="NAME",
    )
    workload_file: Path | None = option(
        "AWS's whole workload specification, YAML or JSON.", metavar="FILE"
    )
    input_tokens: int = option("Mean length of prompts.", 550, metavar="N")
    output_tokens: int = option("Mean length of answers.", 150, metavar="N")
    users: int = option("Closed loop: callers that each wait for their answer.", 10, metavar="N")
    requests: int = option("Requests in all.", 300, metavar="N")
    no_streaming: bool = flag("Whole answers instead of streams.")
    tokenizer: str | None = option(
        "Tokenizer on the Hugging Face Hub. Default: AWS's.", metavar="NAME"
    )
    token_secret_arn: str | None = option(
        "Secret with a Hub token, for a gated tokenizer.", metavar="ARN"
    )
    dataset: str | None = option("Recorded requests, in AWS's formats.", metavar="S3_PREFIX")

    def made(self, name: str) -> tuple[dict[str, Any] | None, str]:
        """The workload to create, if none is named that exists, and what it is in words."""
        from ..operate.recommend import generative_requests

        if self.workload is not None:
            if self.workload_file is not None or self.dataset is not None:
                raise typer.BadParameter(
                    "--workload names a configuration that exists: it excludes --workload-file "
                    "and --dataset."
                )
            return None, f"{self.workload}, as it is"
        if self.workload_file is not None:
            words = "as the file says"
            specification = generative_requests.workload_of_file(self.workload_file)
        else:
            words = (
                f"{self.requests} requests, {self.users} in flight, {self.input_tokens} tokens "
                f"in, {self.output_tokens} out, {'not ' if self.no_streaming else ''}streaming"
            )
            specification = generative_requests.workload_of_tokens(
                self.input_tokens,
                self.output_tokens,
                self.users,
                self.requests,
                streaming=not self.no_streaming,
                tokenizer=self.tokenizer,
                token_secret_arn=self.token_secret_arn,
            )
        return generative_requests.workload_request(name, specification, self.dataset), words


@grouped
def recommend_generative(
    model: ModelOrEndpoint,
    load: TokenLoad,
    options: JobOptions,
    settings: SettingsFile = ENDPOINT_YAML,
) -> None:
    """Find type and configuration for a language model, or benchmark one. Costs GPU hours.

    AWS's AI recommendation and AI benchmark jobs, with a workload of tokens. Says what it will do
    and asks before it starts. Ctrl-C ends the watching, not the job: come back with --job.

    \b
    Exit codes:
      0    the job is complete; or it was started, listed, stopped
      1    the job failed or was stopped
      2    usage, settings, or AWS refused
      130  interrupted; the job goes on

    \b
    Examples:
      low-latency recommend-generative llm.yaml --role-arn ARN --s3-output s3://my-bucket/results/ \\
          -t ml.g6.12xlarge -t ml.g6e.12xlarge --input-tokens 2000 --output-tokens 500
      low-latency recommend-generative llm.yaml --benchmark --role-arn ARN \\
          --s3-output s3://my-bucket/results/ --users 32
      low-latency recommend-generative llm.yaml --job NAME --result 1 --write
      low-latency recommend-generative llm.yaml --benchmark --job NAME --stop
    """
    options.check()
    if model.benchmark and options.result is not None:
        raise typer.BadParameter("--result is of a recommendation job.")
    again = " --benchmark" if model.benchmark else ""
    command = opened("recommend-generative", settings, options, again)
    from ..operate.recommend.generative_requests import check_boto3
    from ..operate.recommend.jobs import BENCHMARK, GENERATIVE

    check_boto3(command.client)
    command.run(
        BENCHMARK if model.benchmark else GENERATIVE,
        lambda: _prepared(command, model, load),
        lambda job: _show(command, job),
    )


def _prepared(command: JobCommand, model: ModelOrEndpoint, load: TokenLoad) -> PreparedJob:
    from ..operate.recommend.generative_requests import doubtful_types, recommendation_job
    from ..operate.recommend.view import price_lines

    name = command.new_name
    workload, words = load.made(name)
    doubts: list[str] = []
    if model.benchmark:
        model.check()
        job = _benchmark(command, name, model, load.workload or name)
    else:
        types = model.instance_type or ()
        job = recommendation_job(
            name,
            model.role_arn or "",
            model.model_data or _checkpoint_of(command.endpoint),
            model.s3_output or "",
            load.workload or name,
            goal=model.goal,
            instance_types=types,
            framework=model.framework,
            optimize=model.optimize,
            model_package_group=model.model_package_group,
        )
        doubts = doubtful_types(command.client, types)

    def before() -> None:
        """Make the workload: it costs nothing, and stays until it is deleted."""
        if workload is not None:
            command.client("sagemaker").create_ai_workload_config(**workload)

    return PreparedJob(job, price_lines(job, doubts, workload=words), before)


def _checkpoint_of(endpoint: EndpointSettings) -> str:
    data = endpoint.containers[0].data if endpoint.containers else None
    if data is None or data.s3_prefix is None:
        raise typer.BadParameter(
            "the settings name no uncompressed model (data: {s3_prefix: ...}): pass "
            "--model-data s3://bucket/prefix/ with a Hugging Face checkpoint.",
            param_hint="--model-data",
        )
    return data.s3_prefix


def _benchmark(command: JobCommand, name: str, model: ModelOrEndpoint, workload: str) -> JobRequest:
    from ..account.calls import Account
    from ..account.sessions import aws_errors_in_words
    from ..operate.recommend.deployed_model import find_deployed_model, find_endpoint
    from ..operate.recommend.generative_requests import benchmark_job

    components = model.inference_component or []
    with aws_errors_in_words():
        account = Account(command.client, once=False)
        found = find_endpoint(account, command.settings, command.key)
        # An endpoint of inference components has no model that names a network.
        vpc = (
            None
            if model.no_vpc or components
            else find_deployed_model(account, command.settings, command.key).get("VpcConfig")
        )
    return benchmark_job(
        name, model.role_arn or "", found, model.s3_output or "", workload, components, vpc
    )


def _show(command: JobCommand, job: Job[GenerativeResult]) -> None:
    from ..operate.recommend.adopting import adopt_generative

    command.show_generative(
        job, lambda each: adopt_generative(each, command.key, command.endpoint), kind=job.type
    )
