"""``low-latency recommend`` and ``optimize``: SageMaker jobs, from and into the settings file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from ..report.document import Document, Part, Sentence
from . import INTERRUPTED
from .options import (
    ENDPOINT_YAML,
    EndpointName,
    Json,
    Profile,
    Region,
    SettingsFile,
    flag,
    grouped,
    naming,
    option,
)
from .output import print_document, print_json

if TYPE_CHECKING:
    from ..operate.sagemaker_jobs.jobs import Adoption, Job, JobKind, JobRequest


@dataclass
class JobOptions:
    """Options of both commands."""

    endpoint: EndpointName = None
    settings: SettingsFile = ENDPOINT_YAML
    role_arn: str = option("IAM role of a new job.", "", metavar="ARN")
    job: str | None = option(
        "Job to wait for, instead of starting one. It may have ended.", metavar="NAME"
    )
    yes: bool = flag("Do not ask for confirmation.", short="-y")
    json: Json = False
    profile: Profile = None
    region: Region = None


@dataclass
class RecommendOptions:
    """Options of ``recommend`` alone."""

    payload: str = option("Requests of a new job: s3://bucket/name.tar.gz.", "", metavar="SOURCE")
    instance_type: list[str] | None = option(
        "Type to load-test, up to ten (Advanced job). Can be repeated. Default: AWS chooses the "
        "types (Default job).",
        metavar="TYPE",
        short="-t",
    )
    write: int | None = option(
        "Write this row of the table into the settings file. Comments are kept.", metavar="N"
    )


@dataclass
class OptimizeOptions:
    """Options of ``optimize`` alone."""

    quantize: str | None = option(
        "Quantize to fp8 or awq, or with --compile to smoothquant. Changes the answers.",
        metavar="TYPE",
    )
    compile: bool = flag("Compile: TensorRT-LLM, or the Neuron SDK.")
    s3_output: str = option("S3 prefix of the new model.", "", metavar="S3_PREFIX")
    instance_type: str | None = option(
        "Type to optimize for. Default: from the settings file.", metavar="TYPE", short="-t"
    )
    write: bool = flag("Write the result into the settings file. Comments are kept.")


@grouped
def recommend(chosen: RecommendOptions, job: JobOptions) -> None:
    """Find the instance type with SageMaker Inference Recommender. Costs instance hours.

    Tests the deployed model against the latency target in the settings file. Shows the request and
    asks before it starts the job, and waits for its end. Ctrl-C stops waiting, not the job.

    \b
    Exit codes:
      0    results within the target
      1    the job failed or was stopped, or no result is known to meet the target
      2    usage error, invalid settings file, or AWS refused
      130  interrupted; the job continues

    \b
    Examples:
      low-latency recommend --role-arn ARN --payload s3://my-bucket/payload.tar.gz
      low-latency recommend -t ml.c6i.4xlarge -t ml.g5.xlarge --role-arn ARN \\
        --payload s3://my-bucket/payload.tar.gz
      low-latency recommend --job NAME --write 2
    """
    from ..account.calls import Account
    from ..account.sessions import aws_errors_in_words
    from ..operate.sagemaker_jobs import inference_recommender as recommender
    from .chosen_endpoints import stated_name

    command = _JobCommand(job)
    _, target_ms = recommender.latency_target(command.endpoint)

    def request(job_name: str) -> JobRequest:
        name, _ = stated_name(job.settings, job.profile, job.region, command.key)
        with aws_errors_in_words():
            return recommender.recommendation_request(
                Account(command.client),
                name,
                command.endpoint,
                job_name=job_name,
                role_arn=job.role_arn,
                payload=chosen.payload,
                instance_types=chosen.instance_type or (),
            )

    ended = command.ended_job(recommender.INFERENCE_RECOMMENDATION, request)
    results = recommender.recommendations(ended, target_ms)
    table = recommender.results_table(results, target_ms, command.endpoint.instance_type)
    data = {"target_ms": target_ms, "results": [asdict(result) for result in results]}
    command.show(ended, table, data)
    if chosen.write is not None:
        command.write(
            recommender.adopt_recommendation(results, chosen.write, command.key, command.endpoint)
        )
    elif not any(result.within_target for result in results):
        raise typer.Exit(1)
    else:
        typer.echo(f"Write a row into the settings file: --job {ended.name} --write N", err=True)


@grouped
def optimize(chosen: OptimizeOptions, job: JobOptions) -> None:
    """Quantize or compile the model with a SageMaker optimization job. Costs GPU hours.

    Reads the model from the s3_prefix in the settings file and writes the result to --s3-output.
    Shows the request and asks before it starts the job, and waits for its end. Ctrl-C stops
    waiting, not the job.

    \b
    Exit codes:
      0    the job has completed
      1    the job failed or was stopped
      2    usage error, invalid settings file, or AWS refused
      130  interrupted; the job continues

    \b
    Examples:
      low-latency optimize chat --quantize awq --role-arn ARN \\
        --s3-output s3://my-bucket/llm-awq/
      low-latency optimize chat --compile -t ml.inf2.24xlarge --role-arn ARN \\
        --s3-output s3://my-bucket/inf2/
      low-latency optimize chat --job NAME --write
    """
    from ..operate.sagemaker_jobs import model_optimization

    command = _JobCommand(job)

    def request(job_name: str) -> JobRequest:
        return model_optimization.optimization_request(
            command.endpoint,
            job_name=job_name,
            role_arn=job.role_arn,
            output=chosen.s3_output,
            instance_type=chosen.instance_type or command.endpoint.instance_type,
            quantize=chosen.quantize,
            compiles=chosen.compile,
        )

    ended = command.ended_job(model_optimization.OPTIMIZATION, request)
    location = model_optimization.model_location(ended)
    sentences = [Sentence(f"The model is in {location}.")] if ended.has_completed else []
    command.show(ended, sentences, {"s3_output": location})
    if chosen.write:
        command.write(
            model_optimization.adopt_optimized_model(ended, command.key, command.endpoint)
        )


class _JobCommand:
    """A command's endpoint in the settings file, and the account that runs its job."""

    def __init__(self, chosen: JobOptions) -> None:
        from ..account.sessions import open_clients
        from ..settings import load_settings
        from .chosen_endpoints import stated_key

        settings = load_settings(chosen.settings)
        self.options = chosen
        self.key = stated_key(settings, chosen.endpoint, chosen.settings)
        self.endpoint = settings.endpoints[self.key]
        first = self.endpoint.variant_name
        others = list(self.endpoint.variants)
        if self.endpoint.shadow is not None:
            others.append(self.endpoint.shadow.name)
        if others:
            typer.echo(
                f"{self.key} has {', '.join(others)} beside {first}: this is about {first} alone. "
                "What is written also holds for the others where they state nothing of their own.",
                err=True,
            )
        self.client, self.region = open_clients(chosen.profile, chosen.region, settings.region)

    def ended_job(self, kind: JobKind, request: Callable[[str], JobRequest]) -> Job:
        """Return the job that the options name, or a new one, at its end."""
        from ..operate.sagemaker_jobs.jobs import watch_job

        name = self.options.job or self._start(request)
        status = ""
        try:
            for job in watch_job(self.client, kind, name):
                if job.status != status:
                    typer.echo(f"{name}: {job.status}", err=True)
                status = job.status
        except KeyboardInterrupt:
            typer.echo(f"\nThe job {name} goes on in AWS, and so does its cost.", err=True)
            for verb in ("describe", "stop"):
                typer.echo(f"  {kind.aws_command(verb, name)} --region {self.region}", err=True)
            raise typer.Exit(INTERRUPTED) from None
        return job

    def _start(self, request: Callable[[str], JobRequest]) -> str:
        """Start a job that the user agrees to, and return its name."""
        if not self.options.role_arn:
            raise typer.BadParameter("a new job needs --role-arn; --job NAME waits for another")
        # AWS cuts the names of the endpoints under test at 40 characters.
        name = f"{self.key[:20].rstrip('-')}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        new = request(name)
        for line in new.lines():
            typer.echo(line, err=True)
        if not self.options.yes:
            if not sys.stdin.isatty():
                typer.echo("No terminal to ask on, so nothing was started. Pass --yes.", err=True)
                raise typer.Exit(2)
            typer.confirm("Start the job?", abort=True, err=True)
        new.start(self.client)
        return name

    def show(self, job: Job, results: Sequence[Part], data: Mapping[str, Any]) -> None:
        """Print a job and its results; exit with 1 unless it has completed."""
        if self.options.json:
            status = {"job": job.name, "status": job.status, "failure_reason": job.failure_reason}
            print_json({**status, **data})
        else:
            failure = [job.failure_reason] if job.failure_reason else []
            print_document(Document(job.name, [*failure, *results], job.status))
        if not job.has_completed:
            raise typer.Exit(1)

    def write(self, adoption: Adoption) -> None:
        """Write a result into the settings file, and print what changed."""
        from ..settings.yaml_editing import edit_settings_file, write_edit

        path = self.options.settings
        edit = edit_settings_file(path, adoption.values)
        write_edit(edit)
        typer.echo(edit.diff() or f"{path} says this already.\n", nl=False, err=True)
        for note in adoption.notes:
            typer.echo(f"Note: {note}", err=True)
        again = naming(path)
        typer.echo(
            f"See what follows: low-latency plan{again}; low-latency preflight{again}", err=True
        )
