"""``low-latency optimize``: SageMaker's jobs that change a model before it is deployed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from .job_command import JobCommand, JobOptions, opened
from .options import flag, grouped, option

if TYPE_CHECKING:
    from ..operate.recommend.jobs import Job, JobRequest


@dataclass
class Optimization:
    """What is done to which model."""

    quantize: str | None = option(
        "fp8, awq, or with --compile smoothquant: smaller weights, other answers.", metavar="TYPE"
    )
    compile: bool = flag("Compile for the instance type: TensorRT-LLM, or the Neuron SDK.")
    shard: bool = flag("Split the weights into files that load quickly onto several GPUs.")
    speculative: bool = flag("Train a head that guesses tokens ahead (EAGLE).")
    training_data: str | None = option(
        "With --speculative: conversations (ShareGPT, OpenAI). Default: AWS's.", metavar="S3_PREFIX"
    )
    role_arn: str | None = option(
        "Role with which AWS reads the model and writes the result.", metavar="ARN"
    )
    s3_output: str | None = option("Where the optimized model goes.", metavar="S3_PREFIX")
    model_data: str | None = option(
        "The model's files. Default: the settings' s3_prefix, or the staged model of the Hub.",
        metavar="S3_PREFIX",
    )
    instance_type: str | None = option(
        "Type that the result runs on. Default: the settings'.", metavar="TYPE", short="-t"
    )
    image: str | None = option("LMI image that does the work. Default: AWS's.", metavar="URI")
    env: list[str] | None = option(
        "Variable of that image, such as OPTION_TENSOR_PARALLEL_DEGREE=8; again for each.",
        metavar="NAME=VALUE",
    )
    max_duration: str = option("AWS ends the job after this time.", "10h", metavar="TIME")
    dry_run: bool = flag("Show what AWS would be asked for, and ask nothing.")


@grouped
def optimize(optimization: Optimization, options: JobOptions) -> None:
    """Quantize, compile or shard the model, or let it guess tokens ahead. Costs GPU hours.

    AWS's optimization jobs: a step before the deployment. The settings' model is read from S3, the
    result lies under --s3-output, and --write writes it into the settings. Says what it will do and
    asks before it starts. Ctrl-C ends the watching, not the job: come back with --job.

    \b
    Exit codes:
      0    the job is complete; or it was started, listed, stopped
      1    the job failed or was stopped
      2    usage, settings, or AWS refused
      130  interrupted; the job goes on

    \b
    Examples:
      low-latency optimize chat --quantize awq --role-arn ARN --s3-output s3://my-bucket/llm-awq/
      low-latency optimize chat --compile -t ml.inf2.24xlarge --role-arn ARN \\
          --s3-output s3://my-bucket/llm-inf2/ --env OPTION_TENSOR_PARALLEL_DEGREE=12
      low-latency optimize chat --speculative --role-arn ARN --s3-output s3://my-bucket/eagle/ \\
          --max-duration 48h --dry-run
      low-latency optimize chat --job NAME --result 1 --write
    """
    if optimization.dry_run and (options.job is not None or options.list_):
        raise typer.BadParameter("--dry-run belongs to a new job: it excludes --job and --list.")
    command = opened("optimize", options)
    if optimization.dry_run:
        for line in _request(command, optimization).lines():
            typer.echo(line)
        return
    from ..operate.recommend.optimization_requests import OPTIMIZATION

    command.run(
        OPTIMIZATION, lambda: _request(command, optimization), lambda job: _show(command, job)
    )


def _request(command: JobCommand, given: Optimization) -> JobRequest:
    from ..account.calls import Account
    from ..account.sessions import aws_errors_in_words
    from ..operate.recommend import optimization_requests as requests
    from ..operate.recommend.jobs import parse_limit

    techniques = requests.Techniques(
        quantize=given.quantize,
        compile=given.compile,
        shard=given.shard,
        speculative=given.speculative,
        training_data=given.training_data,
        image=given.image,
        environment=requests.parse_environment(given.env or []),
    )
    instance_type = given.instance_type or command.endpoint.instance_type
    techniques.check_for(instance_type)
    model, stated = given.model_data, command.endpoint.hugging_face
    if model is None:
        with aws_errors_in_words():
            account = Account(command.client, once=False)
            model = requests.model_prefix(account, command.settings, command.key)
    return requests.optimization_job(
        command.new_name,
        given.role_arn or "",
        model,
        given.s3_output or "",
        instance_type,
        techniques,
        max_runtime=parse_limit(given.max_duration, requests.RUNTIME),
        accept_eula=given.model_data is None and stated is not None and bool(stated.accept_license),
        notes=list(requests.doubts(techniques, command.client, instance_type)),
    )


def _show(command: JobCommand, job: Job) -> None:
    from dataclasses import asdict

    from ..operate.recommend import optimized_model as found

    results = found.optimized_models(job)
    command.show(
        job,
        found.optimized_table(job, command.endpoint.instance_type),
        results,
        lambda each: found.adopt_optimized(
            each, command.key, command.endpoint, command.settings.region
        ),
        {"results": [{"number": 1, **asdict(each)} for each in results]},
    )
    if job.done and not job.succeeded:
        raise typer.Exit(1)
