"""``low-latency recommend-generative``: SageMaker's jobs for language models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import (
    Adopt,
    JobName,
    Json,
    ListJobs,
    NoWait,
    Profile,
    SettingsRegion,
    StopJob,
    Yes,
)
from .options import Job as JobOption

if TYPE_CHECKING:
    from ..operations.recommendation.generative_jobs import GenerativeJob
    from ..operations.recommendation.generative_requests import (
        Benchmark,
        GenerativeRecommendation,
        Kind,
        Workload,
    )
    from ..settings import Settings

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("recommend-generative")(recommend_generative)


def recommend_generative(
    settings: Annotated[Path, typer.Argument(
        show_default=False, help="The settings file, such as endpoint.yaml.")],
    benchmark: Annotated[bool, typer.Option(
        "--benchmark", help="Measure the deployed endpoint, instead of finding a type.")] = False,
    endpoint: Annotated[str | None, typer.Option(
        metavar="NAME", help="Endpoint of the file, when it has several.")] = None,
    role_arn: Annotated[str | None, typer.Option(
        metavar="ARN", help="Role with which AWS reads the model or calls the endpoint.")] = None,
    output: Annotated[str | None, typer.Option(
        metavar="S3_PREFIX", help="Where the results go.")] = None,
    model: Annotated[str | None, typer.Option(
        metavar="S3_PREFIX", help="Hugging Face checkpoint with SafeTensors. Default: s3_prefix "
        "of the settings' model data.")] = None,
    goal: Annotated[str, typer.Option(
        metavar="METRIC", help="ttft-ms (time to first token), throughput or cost.")] = "ttft-ms",
    instance_type: Annotated[list[str] | None, typer.Option(
        "--instance-type", "-t", metavar="TYPE", help="GPU type to try; again for each, up to "
        "three. Default: AWS chooses.")] = None,
    framework: Annotated[str | None, typer.Option(
        help="LMI or VLLM. Default: AWS chooses.")] = None,
    optimize: Annotated[bool, typer.Option(
        "--optimize", help="Let AWS change the model too (speculative decoding, kernels): hours "
        "instead of minutes.")] = False,
    model_package_group: Annotated[str | None, typer.Option(
        metavar="NAME", help="Where an optimized model is registered.")] = None,
    inference_component: Annotated[list[str] | None, typer.Option(
        metavar="NAME", help="With --benchmark: inference component to call; again for each.")
    ] = None,
    no_vpc: Annotated[bool, typer.Option(
        "--no-vpc", help="With --benchmark: call from outside the model's VPC.")] = False,
    workload: Annotated[str | None, typer.Option(
        metavar="NAME", help="Workload configuration that exists. Default: one is made from the "
        "options below and named as the job.")] = None,
    workload_file: Annotated[Path | None, typer.Option(
        metavar="FILE", help="AWS's whole workload specification, YAML or JSON.")] = None,
    input_tokens: Annotated[int, typer.Option(metavar="N", help="Mean length of prompts.")] = 550,
    output_tokens: Annotated[int, typer.Option(metavar="N", help="Mean length of answers.")] = 150,
    concurrency: Annotated[int, typer.Option(metavar="N", help="Requests in flight.")] = 10,
    requests: Annotated[int, typer.Option(metavar="N", help="Requests in all.")] = 300,
    no_streaming: Annotated[bool, typer.Option(
        "--no-streaming", help="Whole answers instead of streams.")] = False,
    tokenizer: Annotated[str | None, typer.Option(
        metavar="NAME", help="Tokenizer on the Hugging Face Hub. Default: AWS's.")] = None,
    token_secret_arn: Annotated[str | None, typer.Option(
        metavar="ARN", help="Secret with a Hub token, for a gated tokenizer.")] = None,
    dataset: Annotated[str | None, typer.Option(
        metavar="S3_PREFIX", help="Recorded requests, in AWS's formats.")] = None,
    job_name: JobName = None,
    job: JobOption = None,
    list_: ListJobs = False,
    stop: StopJob = False,
    adopt: Adopt = None,
    no_wait: NoWait = False,
    yes: Yes = False,
    json: Json = False,
    profile: Profile = None,
    region: SettingsRegion = None,
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
    from ..settings import load_settings
    from .job_following import only_endpoint

    if job is None and (stop or adopt is not None):
        raise typer.BadParameter("--stop and --adopt are for a job: add --job NAME.")
    if list_ and job is not None:
        raise typer.BadParameter("--list and --job exclude each other.")
    if adopt is not None and (benchmark or stop):
        raise typer.BadParameter("--adopt is for results of a recommendation job.")
    loaded = load_settings(settings)
    key = only_endpoint(list(loaded.endpoints), endpoint)
    from ..operations.checking.account import open_clients
    from ..operations.recommendation import generative_jobs, generative_requests

    client, _ = open_clients(profile, region, loaded.region)
    kind = generative_jobs.BENCHMARK if benchmark else generative_jobs.RECOMMENDATION
    generative_jobs.check_boto3(client)
    here = _Here(settings, loaded, key, client, kind, yes, json, "".join(
        f" {option} {value}" for option, value in (
            ("--endpoint", endpoint), ("--profile", profile), ("--region", region)) if value))
    if list_:
        _list(here)
        return
    if stop and job is not None:
        generative_jobs.stop_generative(client, kind, job)
        typer.echo(f"AWS stops {job}.", err=True)
        return
    if job is None:
        from .recommend import new_name

        name = job_name or new_name(key)
        made = None
        if workload is None:
            made = (generative_requests.workload_of_file(workload_file, dataset)
                    if workload_file is not None else generative_requests.Workload(
                        input_tokens, output_tokens, concurrency, requests, not no_streaming,
                        tokenizer, token_secret_arn, dataset))
        elif workload_file is not None or dataset is not None:
            raise typer.BadParameter("--workload names a configuration that exists: it excludes "
                                     "--workload-file and --dataset.")
        if benchmark:
            _check_start(role_arn, output)
            started: Benchmark | GenerativeRecommendation = _benchmark(
                here, name, role_arn or "", output or "", workload or name,
                inference_component or [], no_vpc)
        else:
            started = generative_requests.GenerativeRecommendation(
                name, role_arn or "", model or _model_of(loaded, key), output or "",
                workload or name, goal, tuple(instance_type or ()), framework, optimize,
                model_package_group)
        _start(here, started, made, workload)
        job = name
        if no_wait:
            if json:
                from .output import print_json

                print_json({"job": job, "kind": kind.word, "status": "InProgress"})
            return
    _results(here, job, adopt=adopt, no_wait=no_wait)


@dataclass(frozen=True)
class _Here:
    """What every step of one run needs."""

    path: Path
    settings: Settings
    key: str
    client: Any
    kind: Kind
    yes: bool
    json: bool
    options: str

    @property
    def again(self) -> str:
        """The command that comes back to a job."""
        flag = " --benchmark" if self.kind.word == "benchmark" else ""
        return f"low-latency recommend-generative {self.path}{flag}{self.options}"


def _model_of(settings: Settings, key: str) -> str:
    data = settings.endpoints[key].containers[0].data
    if data is None or data.s3_prefix is None:
        raise typer.BadParameter(
            "the settings name no uncompressed model (data: {s3_prefix: ...}): pass --model "
            "s3://bucket/prefix/ with a Hugging Face checkpoint.", param_hint="--model")
    return data.s3_prefix


def _check_start(role_arn: str | None, output: str | None) -> None:
    """What is missing is said before AWS is asked for the endpoint."""
    from ..operations.recommendation.rules import JOB_ROLE
    from ..planning.limits import S3_URI

    JOB_ROLE.check(role_arn or "", "--role-arn")
    S3_URI.check(output or "", "--output")


def _benchmark(here: _Here, name: str, role_arn: str, output: str, workload: str,
               components: list[str], no_vpc: bool) -> Benchmark:
    from ..operations.recommendation.deployed_model import find_deployed_model, find_endpoint
    from ..operations.recommendation.generative_requests import Benchmark
    from ..operations.sessions import aws_errors_in_words

    with aws_errors_in_words():
        found = find_endpoint(here.client, here.settings, here.key)
        # An endpoint of inference components has no model that names a network.
        vpc = None if no_vpc or components else find_deployed_model(
            here.client, here.settings, here.key).vpc
    return Benchmark(name, role_arn, found, output, workload, components, vpc)


def _start(here: _Here, job: Benchmark | GenerativeRecommendation, made: Workload | None,
           named: str | None) -> None:
    from ..operations.recommendation import generative_jobs as jobs
    from ..operations.recommendation import generative_requests as requests
    from ..operations.recommendation.generative_view import generative_price_lines
    from .job_following import confirm

    doubts: list[str] = []
    job.request()  # what is wrong with it is said before the question
    if isinstance(job, requests.GenerativeRecommendation):
        doubts = jobs.doubtful_types(here.client, job.instance_types)
    for line in generative_price_lines(job, str(made) if made else f"{named}, as it is", doubts):
        typer.echo(line, err=True)
    confirm("Start the job?", yes=here.yes)
    jobs.start_generative(here.client, job, made)
    typer.echo(f"started {job.job_name}", err=True)


def _results(here: _Here, name: str, *, adopt: int | None, no_wait: bool) -> None:
    from ..operations.recommendation.generative_jobs import (
        adopt_generative,
        chosen_generative,
        read_generative,
    )
    from ..operations.recommendation.generative_view import generative_table
    from .job_following import write_settings
    from .output import print_json, print_parts

    job = read_generative(here.client, here.kind, name) if no_wait else _wait(here, name)
    endpoint = here.settings.endpoints[here.key]
    if not here.json:
        print_parts(*generative_table(job, endpoint.instance_type))
    shown = job.to_dict()
    if adopt is not None:
        adoption = adopt_generative(chosen_generative(job, adopt), here.key, endpoint)
        shown["adopted"] = write_settings(here.path, adoption.values, adoption.notes,
                                          yes=here.yes, json=here.json)
    elif not here.json and job.results:
        typer.echo(f"Take one over with: {here.again} --job {name} --adopt N")
    if here.json:
        print_json(shown)
    if job.done and not job.succeeded:
        raise typer.Exit(1)


def _wait(here: _Here, name: str) -> GenerativeJob:
    from time import sleep

    from ..operations.recommendation.generative_jobs import wait_generative
    from .job_following import following

    come_back = (f"The job {name} goes on in AWS, and so does its cost.",
                 f"  come back:  {here.again} --job {name}",
                 f"  stop it:    {here.again} --job {name} --stop")
    with following(come_back, quiet=here.json) as line:
        return wait_generative(here.client, here.kind, name, sleep=sleep,
                               on_poll=lambda job: line(f"{name}: {job.status}"))


def _list(here: _Here) -> None:
    from ..operations.recommendation.generative_jobs import list_generative
    from ..operations.recommendation.view import jobs_table
    from .output import print_json, print_parts

    jobs = list_generative(here.client, here.kind)
    if here.json:
        print_json([each.to_dict() for each in jobs])
        return
    print_parts(*jobs_table(
        [(each.name, each.status, f"{each.created:%Y-%m-%d %H:%M}") for each in jobs],
        ("Job", "Status", "Created")))
