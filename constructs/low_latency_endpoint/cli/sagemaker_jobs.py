"""``low-latency recommend`` and ``optimize``: SageMaker jobs, from and into the settings file."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import typer

from ..errors.shell_words import shell_word
from ..report.document import Document, Part, Sentence
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
    parse_targets,
)
from .output import print_document, print_json, say
from .process import INTERRUPTED

if TYPE_CHECKING:
    from ..errors.findings import Place
    from ..operate.sagemaker_jobs import Job, JobKind, JobRequest
    from ..settings import EndpointSettings, Settings


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

    @property
    def has_settings(self) -> bool:
        """Whether a settings file is meant: not where an endpoint or a job is named, and none is there."""
        is_named = self.endpoint is not None or self.job is not None
        return self.settings != ENDPOINT_YAML or ENDPOINT_YAML.exists() or not is_named


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
    target: list[str] | None = option(
        "Latency target, such as p95=200ms. Default: from the settings file.", metavar="STAT=TIME"
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
def recommend(chosen: RecommendOptions, options: JobOptions) -> None:
    """Find the instance type with SageMaker Inference Recommender. Costs instance hours.

    Tests the deployed model against the latency target in the settings file. Without a settings
    file name the endpoint, and give --target. Shows the request and asks before it starts the job,
    and waits for its end. Ctrl-C stops waiting, not the job.

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
      low-latency recommend sentiment --target p95=200ms --role-arn ARN \\
        --payload s3://my-bucket/payload.tar.gz
      low-latency recommend --job NAME --write 2
    """
    from ..operate import sagemaker_jobs as jobs
    from .chosen_endpoints import stated_name, usual_settings

    if chosen.write is not None and not options.has_settings:
        raise typer.BadParameter("--write writes into a settings file, and there is none")
    if options.has_settings and options.settings == ENDPOINT_YAML:
        usual_settings("recommend", options.profile, options.region)
    targets = parse_targets(chosen.target or (), ())
    command = _JobCommand(options)
    if options.has_settings:
        tested = jobs.ModelUnderTest.of_settings(command.endpoint, targets)
    else:
        tested = jobs.ModelUnderTest(jobs.latency_target_ms(targets))
    target_ms = tested.target_ms
    name = options.job
    if not name:
        endpoint = command.key
        if options.has_settings:
            endpoint, _ = stated_name(
                options.settings, options.profile, options.region, options.endpoint
            )
        _say_unknown(chosen.instance_type or ())
        request = jobs.recommendation_request(
            command.client,
            endpoint,
            tested,
            payload=chosen.payload,
            instance_types=chosen.instance_type or (),
        )
        name = command.start(jobs.INFERENCE_RECOMMENDATION, request)
    ended = command.wait(jobs.INFERENCE_RECOMMENDATION, name)
    results = jobs.recommendations(ended, target_ms)
    table = jobs.results_table(results, target_ms)
    data = {"target_ms": target_ms, "results": [asdict(result) for result in results]}
    command.show(ended, table, data)
    if chosen.write is not None:
        values = jobs.adopt_recommendation(results, chosen.write, command.key, command.endpoint)
        command.write(values)
    elif not any(result.within_target for result in results):
        raise typer.Exit(1)


@grouped
def optimize(chosen: OptimizeOptions, options: JobOptions) -> None:
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
      low-latency optimize chat --job NAME --write
    """
    from ..operate import sagemaker_jobs as jobs

    command = _JobCommand(options)
    name = options.job
    if not name:
        instance_type = chosen.instance_type or command.endpoint.instance_type
        _say_unknown([instance_type])
        request = jobs.optimization_request(
            command.endpoint,
            output=chosen.s3_output,
            instance_type=instance_type,
            quantize=chosen.quantize,
            compiles=chosen.compile,
        )
        name = command.start(jobs.OPTIMIZATION, request)
    ended = command.wait(jobs.OPTIMIZATION, name)
    location = ended.description["OutputConfig"]["S3OutputLocation"]
    sentences = [Sentence(f"The model is in {location}.")] if ended.status == "COMPLETED" else []
    command.show(ended, sentences, {"s3_output": location})
    if chosen.write:
        command.write(jobs.adopt_optimized_model(ended, command.key, command.endpoint))


def _say_unknown(instance_types: Sequence[str]) -> None:
    """Warn of types that the table lacks, before AWS is asked: a newer type, or a typing error."""
    from ..facts.instance_types import instance_facts, unchecked

    for name in instance_types:
        if instance_facts(name) is None:
            say(f"Careful: {unchecked(name)}.", err=True)


class _JobCommand:
    """A command's endpoint in the settings file or by its name, and the account that runs its job."""

    def __init__(self, chosen: JobOptions) -> None:
        from ..account.sessions import open_clients

        if not (chosen.job or chosen.role_arn):
            raise typer.BadParameter("a new job needs --role-arn; --job NAME waits for another")
        self.options = chosen
        self._settings = self._read_settings() if chosen.has_settings else None
        stated_region = self._settings.region if self._settings else None
        self.client, self.region = open_clients(chosen.profile, chosen.region, stated_region)

    def _read_settings(self) -> Settings:
        from ..settings import load_settings

        return load_settings(self.options.settings)

    @cached_property
    def key(self) -> str:
        """The endpoint's key in the settings; its name, or the job's, without a settings file."""
        from .chosen_endpoints import stated_key

        if self._settings is None:
            return self.options.endpoint or self.options.job or ""
        return stated_key(self._settings, self.options.endpoint, self.options.settings)

    @property
    def endpoint(self) -> EndpointSettings:
        """The endpoint as its settings state it; there has to be a settings file."""
        settings = self._settings or self._read_settings()
        return settings.endpoints[self.key]

    def start(self, kind: JobKind, request: JobRequest) -> str:
        """Start a job that the user agrees to, and return its name."""
        # AWS cuts the names of the endpoints under test at 40 characters.
        name = f"{self.key[:20].rstrip('-')}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        content = {kind.name_field: name, "RoleArn": self.options.role_arn, **request.content}
        say(json.dumps(content, indent=2), err=True)
        say(f"Time limit: {request.limit}.", err=True)
        say(f"This costs money: {kind.cost}.", err=True)
        say("Prices: https://aws.amazon.com/sagemaker/ai/pricing/", err=True)
        if not (self.options.yes or sys.stdin.isatty()):
            raise typer.BadParameter("no terminal to ask on, so nothing was started; pass --yes")
        if not self.options.yes:
            typer.confirm("Start the job?", abort=True, err=True)
        kind.call(self.client, "create", content)
        return name

    def wait(self, kind: JobKind, name: str) -> Job:
        """Return a job at its end."""
        from ..operate.sagemaker_jobs import wait_for_job

        say(f"Waiting for the job {name}.", err=True)
        try:
            return wait_for_job(self.client, kind, name)
        except KeyboardInterrupt:
            say(f"\nThe job {name} goes on in AWS, and so does its cost.", err=True)
            for verb in ("describe", "stop"):
                say(
                    f"  {kind.aws_command(verb, name)} --region {shell_word(self.region)}", err=True
                )
            raise typer.Exit(INTERRUPTED) from None

    def show(self, job: Job, results: Sequence[Part], data: Mapping[str, Any]) -> None:
        """Print a job and its results; exit with 1 unless it has completed."""
        if self.options.json:
            status = {"job": job.name, "status": job.status, "failure_reason": job.failure_reason}
            print_json({**status, **data})
        else:
            failure = [job.failure_reason] if job.failure_reason else []
            print_document(Document(job.name, [*failure, *results], job.status))
        if job.status != "COMPLETED":
            raise typer.Exit(1)

    def write(self, values: Mapping[Place, Any]) -> None:
        """Write a result into the settings file, and print what changed."""
        from ..settings.yaml_editing import edit_settings_file, write_edit

        path = self.options.settings
        edit = edit_settings_file(path, values)
        write_edit(edit)
        say(edit.diff() or f"{path} says this already.\n", nl=False, err=True)
        say(f"See what follows: low-latency preflight{naming(path)}", err=True)
