"""``low-latency recommend-generative``: SageMaker's jobs for language models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .job_following import JobCommand, JobOptions, Prepared, opened
from .options import SettingsFile, grouped
from .output import print_parts

if TYPE_CHECKING:
    from ..operate.recommend.generative_requests import (
        Benchmark,
        GenerativeRecommendation,
        Workload,
    )
    from ..operate.recommend.jobs import Job
    from ..operate.recommend.results import GenerativeResult
    from ..settings import EndpointSettings


@dataclass
class ModelOrEndpoint:
    """What is found out, of which model."""

    benchmark: Annotated[
        bool,
        typer.Option(
            "--benchmark", help="Measure the deployed endpoint, instead of finding a type."
        ),
    ] = False
    role_arn: Annotated[
        str | None,
        typer.Option(
            metavar="ARN", help="Role with which AWS reads the model or calls the endpoint."
        ),
    ] = None
    output: Annotated[
        str | None, typer.Option(metavar="S3_PREFIX", help="Where the results go.")
    ] = None
    model: Annotated[
        str | None,
        typer.Option(
            metavar="S3_PREFIX",
            help="Hugging Face checkpoint with SafeTensors. Default: s3_prefix "
            "of the settings' model data.",
        ),
    ] = None
    goal: Annotated[
        str,
        typer.Option(metavar="METRIC", help="ttft-ms (time to first token), throughput or cost."),
    ] = "ttft-ms"
    instance_type: Annotated[
        list[str] | None,
        typer.Option(
            "--instance-type",
            "-t",
            metavar="TYPE",
            help="GPU type to try; again for each, up to three. Default: AWS chooses.",
        ),
    ] = None
    framework: Annotated[str | None, typer.Option(help="LMI or VLLM. Default: AWS chooses.")] = None
    optimize: Annotated[
        bool,
        typer.Option(
            "--optimize",
            help="Let AWS change the model too (speculative decoding, kernels): hours "
            "instead of minutes.",
        ),
    ] = False
    model_package_group: Annotated[
        str | None, typer.Option(metavar="NAME", help="Where an optimized model is registered.")
    ] = None
    inference_component: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="With --benchmark: inference component to call; again for each."
        ),
    ] = None
    no_vpc: Annotated[
        bool, typer.Option("--no-vpc", help="With --benchmark: call from outside the model's VPC.")
    ] = False

    def check(self) -> None:
        """What is missing is said before AWS is asked for the endpoint."""
        from ..operate.recommend.job_requests import JOB_ROLE
        from ..plan.limits import S3_URI

        JOB_ROLE.check(self.role_arn or "", "--role-arn")
        S3_URI.check(self.output or "", "--output")


@dataclass
class TokenLoad:
    """What the model is asked."""

    workload: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Workload configuration that exists. Default: one is made from the "
            "options below and named as the job.",
        ),
    ] = None
    workload_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="AWS's whole workload specification, YAML or JSON."),
    ] = None
    input_tokens: Annotated[int, typer.Option(metavar="N", help="Mean length of prompts.")] = 550
    output_tokens: Annotated[int, typer.Option(metavar="N", help="Mean length of answers.")] = 150
    concurrency: Annotated[int, typer.Option(metavar="N", help="Requests in flight.")] = 10
    requests: Annotated[int, typer.Option(metavar="N", help="Requests in all.")] = 300
    no_streaming: Annotated[
        bool, typer.Option("--no-streaming", help="Whole answers instead of streams.")
    ] = False
    tokenizer: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Tokenizer on the Hugging Face Hub. Default: AWS's."),
    ] = None
    token_secret_arn: Annotated[
        str | None,
        typer.Option(metavar="ARN", help="Secret with a Hub token, for a gated tokenizer."),
    ] = None
    dataset: Annotated[
        str | None, typer.Option(metavar="S3_PREFIX", help="Recorded requests, in AWS's formats.")
    ] = None

    def made(self) -> Workload | None:
        """The workload to create; ``None`` where one is named that exists."""
        from ..operate.recommend import generative_requests

        if self.workload is not None:
            if self.workload_file is not None or self.dataset is not None:
                raise typer.BadParameter(
                    "--workload names a configuration that exists: it excludes --workload-file "
                    "and --dataset."
                )
            return None
        if self.workload_file is not None:
            return generative_requests.workload_of_file(self.workload_file, self.dataset)
        return generative_requests.Workload(
            self.input_tokens,
            self.output_tokens,
            self.concurrency,
            self.requests,
            not self.no_streaming,
            self.tokenizer,
            self.token_secret_arn,
            self.dataset,
        )


@grouped
def recommend_generative(
    settings: SettingsFile, model: ModelOrEndpoint, load: TokenLoad, options: JobOptions
) -> None:
    """Find type and configuration for a language model, or benchmark one. Costs GPU hours.

    AWS's AI recommendation and AI benchmark jobs, with a workload of tokens. Says what it will do
    and asks before it starts. Ctrl-C ends the watching, not the job: come back with --job.

    \b
    Exit status:
      0    the job is complete; or it was started, listed, stopped
      1    the job failed or was stopped
      2    usage, settings, or AWS refused
      130  interrupted; the job goes on

    \b
    Examples:
      low-latency recommend-generative llm.yaml --role-arn ARN --output s3://my-bucket/results/ \\
          -t ml.g6.12xlarge -t ml.g6e.12xlarge --input-tokens 2000 --output-tokens 500
      low-latency recommend-generative llm.yaml --benchmark --role-arn ARN \\
          --output s3://my-bucket/results/ --concurrency 32
      low-latency recommend-generative llm.yaml --job NAME --adopt 1
      low-latency recommend-generative llm.yaml --benchmark --job NAME --stop
    """
    options.check()
    if model.benchmark and options.adopt is not None:
        raise typer.BadParameter("--adopt is for results of a recommendation job.")
    command = opened(
        "recommend-generative", settings, options, flag=" --benchmark" if model.benchmark else ""
    )
    from ..operate.recommend.generative_requests import check_boto3
    from ..operate.recommend.jobs import BENCHMARK, GENERATIVE

    check_boto3(command.client)
    command.run(
        BENCHMARK if model.benchmark else GENERATIVE,
        lambda: _prepared(command, model, load),
        lambda job: _show(command, job),
    )


def _prepared(command: JobCommand, model: ModelOrEndpoint, load: TokenLoad) -> Prepared:
    from ..operate.recommend.generative_requests import Benchmark, doubtful_types
    from ..operate.recommend.view import generative_price_lines

    name, workload = command.new_name, load.made()
    job = _request(command, name, model, load.workload or name)
    doubts: list[str] = []
    if not isinstance(job, Benchmark):
        doubts = doubtful_types(command.client, job.instance_types)
    described = str(workload) if workload else f"{load.workload}, as it is"

    def before() -> None:
        """Make the workload: it costs nothing, and stays until it is deleted."""
        if workload is not None:
            command.client("sagemaker").create_ai_workload_config(**workload.request(name))

    return Prepared(job, generative_price_lines(job, described, doubts), before)


def _request(
    command: JobCommand, name: str, model: ModelOrEndpoint, workload: str
) -> Benchmark | GenerativeRecommendation:
    from ..operate.recommend.generative_requests import GenerativeRecommendation

    if model.benchmark:
        model.check()
        return _benchmark(command, name, model, workload)
    return GenerativeRecommendation(
        name,
        model.role_arn or "",
        model.model or _checkpoint_of(command.endpoint),
        model.output or "",
        workload,
        model.goal,
        tuple(model.instance_type or ()),
        model.framework,
        model.optimize,
        model.model_package_group,
    )


def _checkpoint_of(endpoint: EndpointSettings) -> str:
    data = endpoint.containers[0].data
    if data is None or data.s3_prefix is None:
        raise typer.BadParameter(
            "the settings name no uncompressed model (data: {s3_prefix: ...}): pass --model "
            "s3://bucket/prefix/ with a Hugging Face checkpoint.",
            param_hint="--model",
        )
    return data.s3_prefix


def _benchmark(command: JobCommand, name: str, model: ModelOrEndpoint, workload: str) -> Benchmark:
    from ..account.calls import Account
    from ..account.sessions import aws_errors_in_words
    from ..operate.recommend.deployed_model import find_deployed_model, find_endpoint
    from ..operate.recommend.generative_requests import Benchmark

    components = model.inference_component or []
    with aws_errors_in_words():
        account = Account(command.client, once=False)
        found = find_endpoint(account, command.settings, command.key)
        # An endpoint of inference components has no model that names a network.
        vpc = (
            None
            if model.no_vpc or components
            else find_deployed_model(account, command.settings, command.key).vpc
        )
    return Benchmark(
        name, model.role_arn or "", found, model.output or "", workload, components, vpc
    )


def _show(command: JobCommand, job: Job[GenerativeResult]) -> None:
    from ..operate.recommend.adopting import adopt_generative
    from ..operate.recommend.view import generative_table

    if not command.options.json:
        print_parts(*generative_table(job, command.endpoint.instance_type))
    shown = {
        "kind": job.type,
        "ended": job.ended.isoformat() if job.ended else None,
        "output": job.output,
        "results": [each.to_dict() for each in job.results],
    }
    command.show(job, shown, lambda each: adopt_generative(each, command.key, command.endpoint))
    if job.done and not job.succeeded:
        raise typer.Exit(1)
