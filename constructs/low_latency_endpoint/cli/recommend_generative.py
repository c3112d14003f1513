"""``low-latency recommend-generative``: SageMaker's jobs for language models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .job_following import JobOptions, Run, opened
from .options import SettingsFile, grouped
from .output import print_json, print_parts

if TYPE_CHECKING:
    from ..operate.recommend.generative_jobs import GenerativeJob
    from ..operate.recommend.generative_requests import (
        Benchmark,
        GenerativeRecommendation,
        Kind,
        Workload,
    )
    from ..settings import Settings

__all__ = ["recommend_generative"]


@dataclass
class Subject:
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
        from ..operate.recommend.rules import JOB_ROLE
        from ..plan.limits import S3_URI

        JOB_ROLE.check(self.role_arn or "", "--role-arn")
        S3_URI.check(self.output or "", "--output")


@dataclass
class Load:
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
    settings: SettingsFile, subject: Subject, load: Load, options: JobOptions
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
    if subject.benchmark and options.adopt is not None:
        raise typer.BadParameter("--adopt is for results of a recommendation job.")
    run = opened(
        "recommend-generative", settings, options, flag=" --benchmark" if subject.benchmark else ""
    )
    from ..operate.recommend import generative_jobs

    kind = generative_jobs.BENCHMARK if subject.benchmark else generative_jobs.RECOMMENDATION
    generative_jobs.check_boto3(run.client)
    if options.list_:
        jobs = generative_jobs.list_generative(run.client, kind)
        run.show_jobs(
            jobs,
            ("Job", "Status", "Created"),
            [(each.name, each.status, f"{each.created:%Y-%m-%d %H:%M}") for each in jobs],
        )
        return
    if options.stop and options.job is not None:
        generative_jobs.stop_generative(run.client, kind, options.job)
        typer.echo(f"AWS stops {options.job}.", err=True)
        return
    job = options.job
    if job is None:
        job, made = run.new_name, load.made()
        _start(run, _request(run, job, subject, load.workload or job), made, load.workload)
        if options.no_wait:
            if options.json:
                print_json({"job": job, "kind": kind.word, "status": "InProgress"})
            return
    _results(run, kind, job)


def _request(
    run: Run, name: str, subject: Subject, workload: str
) -> Benchmark | GenerativeRecommendation:
    from ..operate.recommend.generative_requests import GenerativeRecommendation

    if subject.benchmark:
        subject.check()
        return _benchmark(run, name, subject, workload)
    return GenerativeRecommendation(
        name,
        subject.role_arn or "",
        subject.model or _model_of(run.settings, run.key),
        subject.output or "",
        workload,
        subject.goal,
        tuple(subject.instance_type or ()),
        subject.framework,
        subject.optimize,
        subject.model_package_group,
    )


def _model_of(settings: Settings, key: str) -> str:
    data = settings.endpoints[key].containers[0].data
    if data is None or data.s3_prefix is None:
        raise typer.BadParameter(
            "the settings name no uncompressed model (data: {s3_prefix: ...}): pass --model "
            "s3://bucket/prefix/ with a Hugging Face checkpoint.",
            param_hint="--model",
        )
    return data.s3_prefix


def _benchmark(run: Run, name: str, subject: Subject, workload: str) -> Benchmark:
    from ..account.calls import Account
    from ..account.sessions import aws_errors_in_words
    from ..operate.recommend.deployed_model import find_deployed_model, find_endpoint
    from ..operate.recommend.generative_requests import Benchmark

    components = subject.inference_component or []
    with aws_errors_in_words():
        account = Account(run.client, once=False)
        found = find_endpoint(account, run.settings, run.key)
        # An endpoint of inference components has no model that names a network.
        vpc = (
            None
            if subject.no_vpc or components
            else find_deployed_model(account, run.settings, run.key).vpc
        )
    return Benchmark(
        name, subject.role_arn or "", found, subject.output or "", workload, components, vpc
    )


def _start(
    run: Run, job: Benchmark | GenerativeRecommendation, made: Workload | None, named: str | None
) -> None:
    from ..operate.recommend import generative_jobs as jobs
    from ..operate.recommend import generative_requests as requests
    from ..operate.recommend.generative_view import generative_price_lines

    doubts: list[str] = []
    job.request()  # what is wrong with it is said before the question
    if isinstance(job, requests.GenerativeRecommendation):
        doubts = jobs.doubtful_types(run.client, job.instance_types)
    for line in generative_price_lines(job, str(made) if made else f"{named}, as it is", doubts):
        typer.echo(line, err=True)
    run.confirm("Start the job?")
    jobs.start_generative(run.client, job, made)
    typer.echo(f"started {job.job_name}", err=True)


def _results(run: Run, kind: Kind, name: str) -> None:
    from ..operate.recommend.generative_jobs import (
        adopt_generative,
        chosen_generative,
        read_generative,
    )
    from ..operate.recommend.generative_view import generative_table

    options, endpoint = run.options, run.settings.endpoints[run.key]
    job = read_generative(run.client, kind, name) if options.no_wait else _wait(run, kind, name)
    if not options.json:
        print_parts(*generative_table(job, endpoint.instance_type))
    shown = job.to_dict()
    if options.adopt is not None:
        adoption = adopt_generative(chosen_generative(job, options.adopt), run.key, endpoint)
        shown["adopted"] = run.write_settings(adoption.values, adoption.notes)
    run.show(name, shown, results=bool(job.results))
    if job.done and not job.succeeded:
        raise typer.Exit(1)


def _wait(run: Run, kind: Kind, name: str) -> GenerativeJob:
    from time import sleep

    from ..operate.recommend.generative_jobs import wait_generative

    with run.following(name) as line:
        return wait_generative(
            run.client, kind, name, sleep=sleep, on_poll=lambda job: line(f"{name}: {job.status}")
        )
