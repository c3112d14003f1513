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
        "Quantize to fp8 or awq, or with --compile to smoothquant. Changes the answers.",
        metavar="TYPE",
    )
    compile: bool = flag("Compile for the instance type: TensorRT-LLM, or the Neuron SDK.")
    shard: bool = flag("Split the weights into files that load faster onto several GPUs.")
    speculative: bool = flag("Train a draft head for speculative decoding (EAGLE).")
    training_data: str | None = option(
        "With --speculative: conversations in ShareGPT or OpenAI format. Default: AWS's.",
        metavar="S3_PREFIX",
    )
    role_arn: str | None = option(
        "IAM role that AWS uses to read the model and write the result.", metavar="ARN"
    )
    s3_output: str | None = option(
        "S3 prefix to write the optimized model to.", metavar="S3_PREFIX"
    )
    model_data: str | None = option(
        "S3 prefix of the model. Default: s3_prefix of the settings file, or the staged model of "
        "the Hub.",
        metavar="S3_PREFIX",
    )
    instance_type: str | None = option(
        "Instance type to optimize for. Default: from the settings file.",
        metavar="TYPE",
        short="-t",
    )
    image: str | None = option("LMI image to run the job with. Default: AWS's.", metavar="URI")
    env: list[str] | None = option(
        "Environment variable of that image, such as OPTION_TENSOR_PARALLEL_DEGREE=8. Can be "
        "repeated.",
        metavar="NAME=VALUE",
    )
    max_duration: str = option("Time after which AWS stops the job.", "10h", metavar="TIME")
    dry_run: bool = flag("Show the request to AWS without sending it.")


@grouped
def optimize(optimization: Optimization, options: JobOptions) -> None:
    """Quantize, compile or shard the model, or speed up its decoding. Costs GPU hours.

    Runs an optimization job of SageMaker before a deployment. It reads the model from S3 and writes
    the result to --s3-output; --write names the result in the settings file. Shows what it will do
    and asks before it starts. Ctrl-C stops watching, not the job: come back to it with --job.

    \b
    Exit codes:
      0    the job is complete; or it was started, listed or stopped
      1    the job failed or was stopped
      2    usage error, invalid settings file, or AWS refused
      130  interrupted; the job continues

    \b
    Examples:
      low-latency optimize chat --quantize awq --role-arn ARN \\
        --s3-output s3://my-bucket/llm-awq/
      low-latency optimize chat --compile -t ml.inf2.24xlarge --role-arn ARN \\
        --s3-output s3://my-bucket/inf2/ --env OPTION_TENSOR_PARALLEL_DEGREE=12
      low-latency optimize chat --speculative --role-arn ARN --dry-run \\
        --s3-output s3://my-bucket/eagle/ --max-duration 48h
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
        found.optimized_document(job, command.endpoint.instance_type),
        results,
        lambda each: found.adopt_optimized(
            each, command.key, command.endpoint, command.settings.region
        ),
        {"results": [{"number": 1, **asdict(result)} for result in results]},
    )
    if job.done and not job.succeeded:
        raise typer.Exit(1)
