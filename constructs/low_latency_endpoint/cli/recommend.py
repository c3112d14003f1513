"""``low-latency recommend``: SageMaker Inference Recommender, from and into the settings file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .job_following import JobOptions, Run, opened
from .options import SettingsFile, grouped
from .output import print_json, print_parts

if TYPE_CHECKING:
    from ..operate.recommend import (
        Job,
        LatencyThreshold,
        LoadTest,
        RecommendationRequest,
        SamplePayload,
    )
    from ..settings import RecommendationSettings

__all__ = ["recommend"]


@dataclass
class Tests:
    """What is tried, and with which traffic."""

    instance_type: Annotated[
        list[str] | None,
        typer.Option(
            "--instance-type",
            "-t",
            metavar="TYPE",
            help="Type to try; again for each, up to ten. "
            "Makes it a load test (Advanced job). Default: the settings' recommendation; without any, "
            "AWS chooses (Default job).",
        ),
    ] = None
    any_type: Annotated[
        bool,
        typer.Option("--any-type", help="Let AWS choose the types, though the settings name some."),
    ] = False
    phase: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SHAPE",
            help="users=1,spawn-rate=3,duration=10m; again for each phase. Default: "
            "the settings' recommendation, else this one.",
        ),
    ] = None
    stairs: Annotated[
        str | None,
        typer.Option(
            metavar="SHAPE", help="steps=5,users-per-step=3,duration=10m, instead of phases."
        ),
    ] = None
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=A,B",
            help="Environment variable of the container to try with several "
            "values; each combination is a test.",
        ),
    ] = None
    latency_threshold: Annotated[
        str | None,
        typer.Option(
            metavar="STAT=TIME",
            help="Where a test ends, such as p95=150ms. Default: the settings' latency target.",
        ),
    ] = None
    max_invocations: Annotated[
        int, typer.Option(metavar="N", help="Requests per minute at which a test ends.")
    ] = 30_000
    max_duration: Annotated[
        str,
        typer.Option(metavar="TIME", help="AWS stops the load test after this time, at most 5h."),
    ] = "2h"
    max_parallel: Annotated[int, typer.Option(metavar="N", help="Tests at the same time.")] = 3
    continue_when_flat: Annotated[
        bool, typer.Option("--continue-when-flat", help="Go on when the rate no longer rises.")
    ] = False


@dataclass
class Subject:
    """The model that is tested, and what it is asked."""

    role_arn: Annotated[
        str | None,
        typer.Option(metavar="ARN", help="Role with which AWS makes the endpoints under test."),
    ] = None
    sample_payload: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Request to send: s3://bucket/name.tar.gz, or a file. Default: the "
            "warm-up's payload of the settings.",
        ),
    ] = None
    upload_to: Annotated[
        str | None,
        typer.Option(metavar="S3_PREFIX", help="Where a payload goes that is not in S3 yet."),
    ] = None
    content_type: Annotated[
        str | None,
        typer.Option(metavar="TYPE", help="Content type of the payload. Default: the warm-up's."),
    ] = None
    model_name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Model in SageMaker. Default: the deployed endpoint's."),
    ] = None
    model_package_arn: Annotated[
        str | None,
        typer.Option(metavar="ARN", help="Version in the model registry, instead of a model."),
    ] = None
    domain: Annotated[
        str | None,
        typer.Option(
            help="Of the model: COMPUTER_VISION, NATURAL_LANGUAGE_PROCESSING, MACHINE_LEARNING. "
            "Default, here and below: what image and HF_TASK say."
        ),
    ] = None
    task: Annotated[
        str | None,
        typer.Option(help="Such as CLASSIFICATION, TEXT_GENERATION, IMAGE_CLASSIFICATION, OTHER."),
    ] = None
    framework: Annotated[
        str | None, typer.Option(help="TENSORFLOW, PYTORCH, XGBOOST, SAGEMAKER-SCIKIT-LEARN.")
    ] = None
    framework_version: Annotated[
        str | None, typer.Option(metavar="VERSION", help="Such as 2.6.0.")
    ] = None


@grouped
def recommend(
    settings: SettingsFile,
    tests: Tests,
    subject: Subject,
    options: JobOptions,
    scaling: Annotated[
        int | None, typer.Option(metavar="N", help="With --job: AWS's scaling policy for result N.")
    ] = None,
) -> None:
    """Find the instance type with SageMaker Inference Recommender. Costs instance hours.

    Tests the deployed model, with the latency target of the settings. Says what it will do and
    asks before it starts. Ctrl-C ends the watching, not the job: come back with --job.

    \b
    Exit status:
      0    there are results within the target; or the job was started, listed, stopped
      1    the job failed or was stopped, or no result is within the target
      2    usage, settings, or AWS refused
      130  interrupted; the job goes on

    \b
    Examples:
      low-latency recommend endpoint.yaml --role-arn ARN --upload-to s3://my-bucket/recommender/
      low-latency recommend endpoint.yaml -t ml.c6i.4xlarge -t ml.g5.xlarge --role-arn ARN \\
          --sample-payload s3://my-bucket/payload.tar.gz --max-duration 90m
      low-latency recommend endpoint.yaml --list
      low-latency recommend endpoint.yaml --job NAME               follow it, show its results
      low-latency recommend endpoint.yaml --job NAME --adopt 2     write result 2 into the file
      low-latency recommend endpoint.yaml --job NAME --stop
    """
    options.check(scaling=scaling)
    if tests.any_type and tests.instance_type:
        raise typer.BadParameter("--any-type and --instance-type exclude each other.")
    run = opened("recommend", settings, options, latency_threshold=tests.latency_threshold)
    from ..operate import recommend as recommendation

    if options.list_:
        jobs = recommendation.newest_jobs(run.client)
        run.show_jobs(
            jobs,
            ("Job", "Type", "Status", "Created"),
            [
                (each.name, each.job_type, each.status, f"{each.created:%Y-%m-%d %H:%M}")
                for each in jobs
            ],
        )
        return
    if options.stop and options.job is not None:
        recommendation.stop(run.client, options.job)
        typer.echo(f"AWS stops {options.job} and deletes its endpoints.", err=True)
        return
    threshold = _threshold(run, tests.latency_threshold)
    job = options.job
    if job is None:
        job = _start(run, *_request(run, tests, subject, threshold))
        if options.no_wait:
            if options.json:
                print_json({"job": job, "status": "PENDING"})
            return
    _results(run, job, threshold, scaling)


def _request(
    run: Run, tests: Tests, subject: Subject, threshold: LatencyThreshold
) -> tuple[RecommendationRequest, SamplePayload, list[str]]:
    """The job, what it sends, and what is doubtful about it."""
    from ..operate import recommend as recommendation
    from ..operate.recommend.rules import JOB_ROLE

    JOB_ROLE.check(subject.role_arn or "", "--role-arn")
    endpoint = run.settings.endpoints[run.key]
    stated = endpoint.recommendation
    types = tuple(tests.instance_type or ())
    if not (types or tests.any_type) and stated is not None:
        types = stated.instance_types or ()
    described = recommendation.describe_container(
        endpoint,
        domain=subject.domain,
        task=subject.task,
        framework=subject.framework,
        framework_version=subject.framework_version,
    )
    payload = recommendation.sample_payload(
        subject.sample_payload, subject.upload_to, subject.content_type, endpoint
    )
    test = _load_test(types, tests, threshold, stated)
    doubts = recommendation.check_types_to_try(types, endpoint)
    source, vpc = _model(run, subject.model_name, subject.model_package_arn)
    return (
        recommendation.RecommendationRequest(
            job_name=run.new_name,
            role_arn=subject.role_arn or "",
            model=source,
            container=described,
            sample_payload=payload.uri,
            content_type=payload.content_type,
            instance_types=types,
            load_test=test,
            vpc=vpc,
        ),
        payload,
        doubts,
    )


def _threshold(run: Run, given: str | None) -> LatencyThreshold:
    from ..operate.recommend import parse_threshold, threshold_of

    if given is not None:
        return parse_threshold(given)
    return threshold_of(run.settings.endpoints[run.key].latency.target.milliseconds)


def _load_test(
    types: tuple[str, ...],
    tests: Tests,
    threshold: LatencyThreshold,
    stated: RecommendationSettings | None,
) -> LoadTest | None:
    from ..operate.recommend import LoadTest, parse_phases, parse_stairs
    from ..operate.recommend.traffic import seconds_of_text, stated_traffic

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
    return LoadTest(
        threshold=threshold,
        traffic=parse_stairs(tests.stairs)
        if tests.stairs
        else parse_phases(tests.phase)
        if tests.phase
        else stated_traffic(stated),
        max_invocations=tests.max_invocations,
        max_seconds=seconds_of_text(tests.max_duration, "--max-duration"),
        max_parallel=tests.max_parallel,
        continue_when_flat=tests.continue_when_flat,
        environment=environment,
    )


def _model(run: Run, name: str | None, package: str | None) -> tuple[Any, Any]:
    """The model to test and its network."""
    from ..account.calls import Account
    from ..account.sessions import aws_errors_in_words
    from ..operate.recommend import ModelSource, find_deployed_model, read_model

    if package is not None:
        return ModelSource(name, package), None
    with aws_errors_in_words():
        account = Account(run.client)
        found = (
            read_model(account, name)
            if name
            else find_deployed_model(account, run.settings, run.key)
        )
    return ModelSource(found.name), found.vpc


def _start(
    run: Run, request: RecommendationRequest, payload: SamplePayload, doubts: list[str]
) -> str:
    from ..account.sessions import aws_errors_in_words
    from ..operate.recommend import job_request, start, upload
    from ..operate.recommend.view import price_lines

    job_request(request)  # what is wrong with it is said before the question
    for line in price_lines(request, doubts):
        typer.echo(line, err=True)
    if payload.archive is not None:
        typer.echo(f"The payload is uploaded to {payload.uri}.", err=True)
    run.confirm("Start the job?")
    with aws_errors_in_words():
        upload(run.client, payload)
    start(run.client, request)
    typer.echo(f"started {request.job_name}", err=True)
    return request.job_name


def _results(run: Run, name: str, threshold: LatencyThreshold, scaling: int | None) -> None:
    from ..operate.recommend import adopt, chosen, read
    from ..operate.recommend.view import job_table

    options, endpoint = run.options, run.settings.endpoints[run.key]
    job = read(run.client, name) if options.no_wait else _wait(run, name)
    if not options.json:
        print_parts(*job_table(job, threshold, endpoint.instance_type))
    shown = _shown(job, threshold)
    if scaling is not None:
        shown["scaling"] = _scaling(run, job, scaling)
    if options.adopt is not None:
        adoption = adopt(chosen(job, options.adopt), threshold, run.key, endpoint)
        shown["adopted"] = run.write_settings(adoption.values, adoption.notes)
    run.show(name, shown, results=bool(job.recommendations))
    within = any(each.within(threshold) for each in job.recommendations)
    if job.done and not (job.succeeded and (within or options.adopt is not None)):
        raise typer.Exit(1)


def _wait(run: Run, name: str) -> Job:
    from time import sleep

    from ..operate.recommend import wait

    with run.following(name) as line:
        return wait(
            run.client,
            name,
            sleep=sleep,
            on_poll=lambda job, progress: line(
                f"{name}: {job.status}" + (f", tests: {progress}" if progress else "")
            ),
        )


def _shown(job: Job, threshold: LatencyThreshold) -> dict[str, Any]:
    return {
        "job": job.name,
        "type": job.job_type,
        "status": job.status,
        "failure_reason": job.failure_reason or None,
        "created": job.created.isoformat(),
        "completed": job.completed.isoformat() if job.completed else None,
        "target_ms": threshold.milliseconds,
        "tests_ended_at_ms": job.threshold.milliseconds if job.threshold else None,
        "results": [each.to_dict(threshold) for each in job.recommendations],
    }


def _scaling(run: Run, job: Job, number: int) -> dict[str, Any]:
    from ..operate.recommend import ask_for_scaling, chosen
    from ..operate.recommend.view import scaling_lines
    from ..plan.latency_plan import INVOCATIONS_METRIC
    from ..settings import plan_endpoint

    throughput = run.settings.endpoints[run.key].throughput
    advice = ask_for_scaling(
        run.client, job, chosen(job, number), throughput.peak_tps if throughput else None
    )
    if not run.options.json:
        policy = plan_endpoint(run.settings, run.key).scaling
        planned = policy.target if policy and policy.metric == INVOCATIONS_METRIC else None
        for line in scaling_lines(advice, planned):
            typer.echo(line)
    return advice.to_dict()
