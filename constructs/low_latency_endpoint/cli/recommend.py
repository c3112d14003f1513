"""``low-latency recommend``: SageMaker Inference Recommender, from and into the settings file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..report.numbers import readable
from .job_command import JobCommand, JobOptions, opened
from .options import flag, grouped, option

if TYPE_CHECKING:
    from ..operate.recommend.inference_requests import LatencyThreshold
    from ..operate.recommend.jobs import Job, JobRequest
    from ..operate.recommend.recommendations import Recommendation
    from ..options.recommendation import RecommendationOptions


@dataclass
class Tests:
    """What is tried, and with which traffic."""

    instance_type: list[str] | None = option(
        "Instance type to try, up to ten. Can be repeated. Runs a load test (Advanced job). Default: "
        "recommendation in the settings file; if it has none, AWS chooses (Default job).",
        metavar="TYPE",
        short="-t",
    )
    any_type: bool = flag("Let AWS choose the types, even if the settings file names some.")
    phase: list[str] | None = option(
        "Phase of the traffic. Can be repeated. Default: from the settings file, otherwise "
        "users=1,spawn-rate=3,duration=10m.",
        metavar="SHAPE",
    )
    stairs: str | None = option(
        "Stairs instead of phases: steps=5,users-per-step=3,duration=10m.", metavar="SHAPE"
    )
    vary: list[str] | None = option(
        "Environment variable of the container to try with several values. Each combination is a "
        "test.",
        metavar="NAME=A,B",
    )
    target: str | None = option(
        "Latency target, such as p95=150ms. A test ends when it is exceeded. Default: from the "
        "settings file.",
        metavar="STAT=TIME",
    )
    max_invocations: int = option("Requests per minute at which a test ends.", 30_000, metavar="N")
    max_duration: str = option(
        "Time after which AWS stops the load test, at most 5h.", "2h", metavar="TIME"
    )
    max_parallel: int = option("Number of tests to run at the same time.", 3, metavar="N")
    continue_when_flat: bool = flag("Continue when the rate no longer rises.")


@dataclass
class TestedModel:
    """The model that is tested, and what it is asked."""

    role_arn: str | None = option(
        "IAM role that AWS uses to create the endpoints under test.", metavar="ARN"
    )
    payload: str | None = option(
        "Request to send: s3://bucket/name.tar.gz, or a file. Default: the warm-up payload of the "
        "settings file.",
        metavar="SOURCE",
    )
    upload_to: str | None = option(
        "S3 prefix to upload the payload to, if it is a local file.", metavar="S3_PREFIX"
    )
    content_type: str | None = option(
        "Content type of the payload. Default: that of the warm-up payload, or application/json.",
        metavar="TYPE",
    )
    model_name: str | None = option(
        "SageMaker model to test. Default: the model of the deployed endpoint.", metavar="NAME"
    )
    model_package_arn: str | None = option(
        "Model package in the model registry, instead of --model-name.", metavar="ARN"
    )
    domain: str | None = option(
        "Domain of the model: COMPUTER_VISION, NATURAL_LANGUAGE_PROCESSING or MACHINE_LEARNING. "
        "Default, here and below: derived from the image and HF_TASK.",
        metavar="NAME",
    )
    task: str | None = option(
        "Task of the model, such as CLASSIFICATION, TEXT_GENERATION or OTHER.", metavar="NAME"
    )
    framework: str | None = option(
        "Framework: TENSORFLOW, PYTORCH, XGBOOST or SAGEMAKER-SCIKIT-LEARN.", metavar="NAME"
    )
    framework_version: str | None = option(
        "Version of the framework, such as 2.6.0.", metavar="VERSION"
    )


@grouped
def recommend(
    tests: Tests,
    model: TestedModel,
    options: JobOptions,
    scaling: Annotated[
        bool,
        typer.Option(
            "--scaling", help="With --result: also show the scaling policy that AWS recommends."
        ),
    ] = False,
) -> None:
    """Find the instance type with SageMaker Inference Recommender. Costs instance hours.

    Tests the deployed model against the latency target in the settings file. Shows what it will do
    and asks before it starts. Ctrl-C stops watching, not the job: come back to it with --job.

    \b
    Exit codes:
      0    results within the target; or the job was started, listed or stopped
      1    the job failed or was stopped, or no result is known to meet the target
      2    usage error, invalid settings file, or AWS refused
      130  interrupted; the job continues

    \b
    Examples:
      low-latency recommend --role-arn ARN --upload-to s3://my-bucket/recommender/
      low-latency recommend -t ml.c6i.4xlarge -t ml.g5.xlarge --role-arn ARN \\
        --payload s3://my-bucket/payload.tar.gz --max-duration 90m
      low-latency recommend --list
      low-latency recommend --job NAME
      low-latency recommend --job NAME --result 2 --write
      low-latency recommend --job NAME --stop
    """
    if scaling and options.result is None:
        raise typer.BadParameter("--scaling goes with --result N.")
    if tests.any_type and tests.instance_type:
        raise typer.BadParameter("--any-type and --instance-type exclude each other.")
    stated = tests.target
    again = f" --target {stated}" if stated is not None else ""
    command = opened("recommend", options, again)
    from ..operate.recommend.inference_requests import INFERENCE, parse_threshold, threshold_of

    target = command.endpoint.latency
    threshold = (
        threshold_of(target.milliseconds if target else {})
        if stated is None
        else parse_threshold(stated)
    )
    command.run(
        INFERENCE,
        lambda: _request(command, tests, model, threshold),
        lambda job: _show(command, job, threshold, scaling),
    )


def _request(
    command: JobCommand, tests: Tests, model: TestedModel, threshold: LatencyThreshold
) -> JobRequest:
    from ..operate.recommend.inference_requests import (
        check_types_to_try,
        describe_container,
        inference_job,
        sample_payload,
    )
    from ..operate.recommend.jobs import JOB_ROLE

    role = JOB_ROLE.check(model.role_arn or "", "--role-arn")
    endpoint = command.endpoint
    stated = endpoint.recommendation
    types = tuple(tests.instance_type or ())
    if not (types or tests.any_type) and stated is not None:
        types = tuple(stated.instance_types or ())
    given = {
        "Domain": model.domain,
        "Task": model.task,
        "Framework": model.framework,
        "FrameworkVersion": model.framework_version,
    }
    container, assumed = describe_container(endpoint, given)
    payload = sample_payload(model.payload, model.upload_to, model.content_type, endpoint)
    test = _load_test(types, tests, threshold, stated)
    notes = check_types_to_try(types, endpoint)
    if not types:
        notes.append("without --instance-type AWS chooses the types")
    elif threshold.note:
        notes.insert(0, threshold.note)
    if assumed:
        notes.append(f"assumed: {', '.join(assumed).lower()}")
    if payload.archive is not None:
        notes.append(f"the payload is uploaded to {payload.uri}")
    return inference_job(
        command.new_name, role, _model(command, model), container, payload, types, test, notes
    )


def _load_test(
    types: tuple[str, ...],
    tests: Tests,
    threshold: LatencyThreshold,
    stated: RecommendationOptions | None,
) -> dict[str, Any] | None:
    from ..operate.recommend import inference_requests as requests
    from ..operate.recommend.jobs import parse_limit
    from ..options.recommendation import TrafficPhase, TrafficStairs

    if tests.phase and tests.stairs:
        raise typer.BadParameter("--phase and --stairs exclude each other.")
    if not types:
        if tests.phase or tests.stairs or tests.vary:
            raise typer.BadParameter(
                "--phase, --stairs and --vary are for load tests: name the "
                "types to try with --instance-type."
            )
        return None
    environment = {}
    for text in tests.vary or ():
        name, equals, values = text.partition("=")
        if not (name and equals and values):
            raise typer.BadParameter("write NAME=A,B", param_hint="--vary")
        environment[name] = values.split(",")
    traffic = (stated and (stated.stairs or stated.phases)) or requests.DEFAULT_TRAFFIC
    if tests.stairs:
        traffic = requests.parse_shape(TrafficStairs, tests.stairs, "--stairs")
    elif tests.phase:
        traffic = tuple(requests.parse_shape(TrafficPhase, each, "--phase") for each in tests.phase)
    return requests.load_test(
        types,
        threshold,
        traffic,
        max_invocations=tests.max_invocations,
        max_duration=parse_limit(tests.max_duration, requests.JOB_SECONDS),
        max_parallel=tests.max_parallel,
        continue_when_flat=tests.continue_when_flat,
        environment=environment,
    )


def _model(command: JobCommand, given: TestedModel) -> dict[str, Any]:
    from ..account.calls import Account
    from ..account.sessions import aws_errors_in_words
    from ..operate.recommend.inference_requests import (
        MODEL_TO_TEST,
        find_deployed_model,
        read_model,
    )

    if given.model_package_arn is not None:
        if given.model_name is not None:
            raise MODEL_TO_TEST.error(got="both", allowed="--model-name or --model-package-arn")
        return {"ModelPackageVersionArn": given.model_package_arn}
    with aws_errors_in_words():
        account = Account(command.client)
        if given.model_name:
            return read_model(account, given.model_name)
        return find_deployed_model(account, command.settings, command.key)


def _show(command: JobCommand, job: Job, threshold: LatencyThreshold, scaling: bool) -> None:
    from ..operate.recommend import recommendations as found

    options, results = command.options, found.recommendations(job)
    ended = found.stopping_threshold(job)
    data: dict[str, Any] = {
        "target_ms": threshold.milliseconds,
        "tests_ended_at_ms": ended.milliseconds if ended else None,
        "results": [result.to_dict(threshold) for result in results],
    }
    if scaling and options.result is not None:
        data["scaling"] = _scaling(command, job, job.chosen(results, options.result))
    command.show(
        job,
        found.job_document(job, results, threshold, command.endpoint.instance_type),
        results,
        lambda each: found.adopt(each, threshold, command.key, command.endpoint),
        data,
    )
    within = any(result.within(threshold) for result in results)
    if job.done and not (job.succeeded and (within or options.result is not None)):
        raise typer.Exit(1)


def _scaling(command: JobCommand, job: Job, result: Recommendation) -> dict[str, Any]:
    """AWS's recommendation of the scaling, beside the plan's."""
    from ..operate.recommend.jobs import as_yaml
    from ..operate.recommend.recommendations import ask_for_scaling
    from ..plan.plan import INVOCATIONS_METRIC
    from ..settings import plan_endpoint

    throughput = command.endpoint.throughput
    peak = throughput.peak_tps if throughput else None
    advice = ask_for_scaling(command.client, job, result, peak)
    if not command.options.json:
        typer.echo("AWS recommends this scaling (GetScalingConfigurationRecommendation):")
        typer.echo(as_yaml(advice))
        policy = plan_endpoint(command.settings, command.key).scaling
        if policy and policy.metric == INVOCATIONS_METRIC:
            typer.echo(
                f"The plan's target: {readable(policy.target)} invocations per instance and minute"
            )
    return advice
