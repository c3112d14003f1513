"""``low-latency recommend``: SageMaker Inference Recommender, from and into the settings file."""

from __future__ import annotations

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
    from ..operations.recommendation import (
        Job,
        LatencyThreshold,
        LoadTest,
        RecommendationRequest,
        SamplePayload,
    )
    from ..settings import RecommendationSettings, Settings

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("recommend")(recommend)


def recommend(
    settings: Annotated[Path, typer.Argument(
        show_default=False, help="The settings file, such as endpoint.yaml.")],
    endpoint: Annotated[str | None, typer.Option(
        metavar="NAME", help="Endpoint of the file, when it has several.")] = None,
    instance_type: Annotated[list[str] | None, typer.Option(
        "--instance-type", "-t", metavar="TYPE", help="Type to try; again for each, up to ten. "
        "Makes it a load test (Advanced job). Default: the settings' recommendation; without any, "
        "AWS chooses (Default job).")] = None,
    any_type: Annotated[bool, typer.Option(
        "--any-type", help="Let AWS choose the types, though the settings name some.")] = False,
    role_arn: Annotated[str | None, typer.Option(
        metavar="ARN", help="Role with which AWS makes the endpoints under test.")] = None,
    sample_payload: Annotated[str | None, typer.Option(
        metavar="FILE", help="Request to send: s3://bucket/name.tar.gz, or a file. Default: the "
        "warm-up's payload of the settings.")] = None,
    upload_to: Annotated[str | None, typer.Option(
        metavar="S3_PREFIX", help="Where a payload goes that is not in S3 yet.")] = None,
    content_type: Annotated[str | None, typer.Option(
        metavar="TYPE", help="Content type of the payload. Default: the warm-up's.")] = None,
    phase: Annotated[list[str] | None, typer.Option(
        metavar="SHAPE", help="users=1,spawn-rate=3,duration=10m; again for each phase. Default: "
        "the settings' recommendation, else this one.")] = None,
    stairs: Annotated[str | None, typer.Option(
        metavar="SHAPE", help="steps=5,users-per-step=3,duration=10m, instead of phases.")] = None,
    vary: Annotated[list[str] | None, typer.Option(
        metavar="NAME=A,B", help="Environment variable of the container to try with several "
        "values; each combination is a test.")] = None,
    latency_threshold: Annotated[str | None, typer.Option(
        metavar="STAT=TIME", help="Where a test ends, such as p95=150ms. Default: the settings' "
        "latency target.")] = None,
    max_invocations: Annotated[int, typer.Option(
        metavar="N", help="Requests per minute at which a test ends.")] = 30_000,
    max_duration: Annotated[str, typer.Option(
        metavar="TIME", help="AWS stops the load test after this time, at most 5h.")] = "2h",
    max_parallel: Annotated[int, typer.Option(
        metavar="N", help="Tests at the same time.")] = 3,
    continue_when_flat: Annotated[bool, typer.Option(
        "--continue-when-flat", help="Go on when the rate no longer rises.")] = False,
    model_name: Annotated[str | None, typer.Option(
        metavar="NAME", help="Model in SageMaker. Default: the deployed endpoint's.")] = None,
    model_package_arn: Annotated[str | None, typer.Option(
        metavar="ARN", help="Version in the model registry, instead of a model.")] = None,
    domain: Annotated[str | None, typer.Option(
        help="Of the model: COMPUTER_VISION, NATURAL_LANGUAGE_PROCESSING, MACHINE_LEARNING. "
        "Default, here and below: what image and HF_TASK say.")] = None,
    task: Annotated[str | None, typer.Option(
        help="Such as CLASSIFICATION, TEXT_GENERATION, IMAGE_CLASSIFICATION, OTHER.")] = None,
    framework: Annotated[str | None, typer.Option(
        help="TENSORFLOW, PYTORCH, XGBOOST, SAGEMAKER-SCIKIT-LEARN.")] = None,
    framework_version: Annotated[str | None, typer.Option(
        metavar="VERSION", help="Such as 2.6.0.")] = None,
    job_name: JobName = None,
    job: JobOption = None,
    list_: ListJobs = False,
    stop: StopJob = False,
    adopt: Adopt = None,
    scaling: Annotated[int | None, typer.Option(
        metavar="N", help="With --job: AWS's scaling policy for result N.")] = None,
    no_wait: NoWait = False,
    yes: Yes = False,
    json: Json = False,
    profile: Profile = None,
    region: SettingsRegion = None,
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
    from ..settings import load_settings
    from .job_following import only_endpoint

    _check_mode(job, list_=list_, stop=stop, adopt=adopt, scaling=scaling)
    if any_type and instance_type:
        raise typer.BadParameter("--any-type and --instance-type exclude each other.")
    loaded = load_settings(settings)
    key = only_endpoint(list(loaded.endpoints), endpoint)
    from ..operations import recommendation
    from ..operations.checking.account import open_clients
    from ..operations.recommendation.rules import JOB_ROLE

    client, _ = open_clients(profile, region, loaded.region)
    if list_:
        _list(client, json=json)
        return
    if stop and job is not None:
        recommendation.stop(client, job)
        typer.echo(f"AWS stops {job} and deletes its endpoints.", err=True)
        return
    here = _Here(settings, loaded, key, client, _threshold(loaded, key, latency_threshold),
                 yes, json, {"--endpoint": endpoint, "--latency-threshold": latency_threshold,
                             "--profile": profile, "--region": region})
    if job is None:
        JOB_ROLE.check(role_arn or "", "--role-arn")
        stated = loaded.endpoints[key].recommendation
        types = tuple(instance_type or ())
        if not (types or any_type) and stated is not None:
            types = stated.instance_types or ()
        described = recommendation.describe_container(
            loaded.endpoints[key], domain=domain, task=task, framework=framework,
            framework_version=framework_version)
        payload = recommendation.sample_payload(
            sample_payload, upload_to, content_type, loaded.endpoints[key])
        test = _load_test(types, phase or [], stairs, vary or [], here.threshold,
                          max_invocations, max_duration, max_parallel, continue_when_flat, stated)
        doubts = recommendation.check_types_to_try(types, loaded.endpoints[key])
        source, vpc = _model(here, model_name, model_package_arn)
        request = recommendation.RecommendationRequest(
            job_name=job_name or new_name(key), role_arn=role_arn or "", model=source,
            container=described, sample_payload=payload.uri, content_type=payload.content_type,
            instance_types=types, load_test=test, vpc=vpc)
        job = _start(here, request, payload, doubts)
        if no_wait:
            if json:
                from .output import print_json

                print_json({"job": job, "status": "PENDING"})
            return
    _results(here, job, adopt=adopt, scaling=scaling, no_wait=no_wait)


class _Here:
    """What every step of one run needs."""

    def __init__(self, path: Path, settings: Settings, key: str, client: Any,
                 threshold: LatencyThreshold, yes: bool, json: bool,
                 options: dict[str, str | None]) -> None:
        self.path = path
        self.settings = settings
        self.key = key
        self.client = client
        self.threshold = threshold
        self.yes = yes
        self.json = json
        self.again = f"low-latency recommend {path}" + "".join(
            f" {option} {value}" for option, value in options.items() if value)


def _check_mode(job: str | None, *, list_: bool, stop: bool, adopt: int | None,
                scaling: int | None) -> None:
    if job is None and (stop or adopt is not None or scaling is not None):
        raise typer.BadParameter("--stop, --adopt and --scaling are for a job: add --job NAME.")
    if list_ and job is not None:
        raise typer.BadParameter("--list and --job exclude each other.")
    if stop and (adopt is not None or scaling is not None):
        raise typer.BadParameter("--stop excludes --adopt and --scaling.")


def new_name(key: str) -> str:
    """A job's name; AWS cuts names of the endpoints under test at 40 characters."""
    from datetime import UTC, datetime

    return f"{key[:20].rstrip('-')}-{datetime.now(UTC):%Y%m%d-%H%M%S}"


def _threshold(settings: Settings, key: str, given: str | None) -> LatencyThreshold:
    from ..operations.recommendation import parse_threshold, threshold_of

    if given is not None:
        return parse_threshold(given)
    return threshold_of(settings.endpoints[key].latency.target.milliseconds)


def _load_test(types: tuple[str, ...], phases: list[str], stairs: str | None, vary: list[str],
               threshold: LatencyThreshold, max_invocations: int, max_duration: str,
               max_parallel: int, continue_when_flat: bool,
               stated: RecommendationSettings | None) -> LoadTest | None:
    from ..operations.recommendation import LoadTest, parse_phases, parse_stairs
    from ..operations.recommendation.traffic import seconds_of_text, stated_traffic

    if phases and stairs:
        raise typer.BadParameter("--phase and --stairs exclude each other.")
    if not types:
        if phases or stairs or vary:
            raise typer.BadParameter("--phase, --stairs and --vary are for load tests: name the "
                                     "types to try with --instance-type.")
        return None
    environment = {}
    for text in vary:
        name, equals, values = text.partition("=")
        if not (name and equals and values):
            raise typer.BadParameter("write NAME=A,B", param_hint="--vary")
        environment[name] = values.split(",")
    return LoadTest(
        threshold=threshold,
        traffic=parse_stairs(stairs) if stairs
        else parse_phases(phases) if phases else stated_traffic(stated),
        max_invocations=max_invocations,
        max_seconds=seconds_of_text(max_duration, "--max-duration"), max_parallel=max_parallel,
        continue_when_flat=continue_when_flat, environment=environment)


def _model(here: _Here, name: str | None, package: str | None) -> tuple[Any, Any]:
    """The model to test and its network."""
    from ..operations.recommendation import ModelSource, find_deployed_model, read_model
    from ..operations.sessions import aws_errors_in_words

    if package is not None:
        return ModelSource(name, package), None
    with aws_errors_in_words():
        found = (read_model(here.client, name) if name else
                 find_deployed_model(here.client, here.settings, here.key))
    return ModelSource(found.name), found.vpc


def _start(here: _Here, request: RecommendationRequest, payload: SamplePayload,
           doubts: list[str]) -> str:
    from ..operations.recommendation import job_request, start, upload
    from ..operations.recommendation.view import price_lines
    from ..operations.sessions import aws_errors_in_words
    from .job_following import confirm

    job_request(request)  # what is wrong with it is said before the question
    for line in price_lines(request, doubts):
        typer.echo(line, err=True)
    if payload.archive is not None:
        typer.echo(f"The payload is uploaded to {payload.uri}.", err=True)
    confirm("Start the job?", yes=here.yes)
    with aws_errors_in_words():
        upload(here.client, payload)
    start(here.client, request)
    typer.echo(f"started {request.job_name}", err=True)
    return request.job_name


def _results(here: _Here, name: str, *, adopt: int | None, scaling: int | None,
             no_wait: bool) -> None:
    from ..operations.recommendation import read
    from ..operations.recommendation.view import job_table
    from .output import print_json, print_parts

    job = read(here.client, name) if no_wait else _wait(here, name)
    current = here.settings.endpoints[here.key].instance_type
    if not here.json:
        print_parts(*job_table(job, here.threshold, current))
    shown = _shown(here, job)
    if scaling is not None:
        shown["scaling"] = _scaling(here, job, scaling)
    if adopt is not None:
        shown["adopted"] = _adopt(here, job, adopt)
    elif not here.json and job.recommendations:
        typer.echo(f"Take one over with: {here.again} --job {name} --adopt N")
    if here.json:
        print_json(shown)
    within = any(each.within(here.threshold) for each in job.recommendations)
    if job.done and not (job.succeeded and (within or adopt is not None)):
        raise typer.Exit(1)


def _wait(here: _Here, name: str) -> Job:
    from time import sleep

    from ..operations.recommendation import wait
    from .job_following import following

    come_back = (f"The job {name} goes on in AWS, and so does its cost.",
                 f"  come back:  {here.again} --job {name}",
                 f"  stop it:    {here.again} --job {name} --stop")
    with following(come_back, quiet=here.json) as line:
        return wait(here.client, name, sleep=sleep, on_poll=lambda job, progress: line(
            f"{name}: {job.status}" + (f", tests: {progress}" if progress else "")))


def _shown(here: _Here, job: Job) -> dict[str, Any]:
    return {
        "job": job.name, "type": job.job_type, "status": job.status,
        "failure_reason": job.failure_reason or None, "created": job.created.isoformat(),
        "completed": job.completed.isoformat() if job.completed else None,
        "target_ms": here.threshold.milliseconds,
        "tests_ended_at_ms": job.threshold.milliseconds if job.threshold else None,
        "results": [each.to_dict(here.threshold) for each in job.recommendations],
    }


def _scaling(here: _Here, job: Job, number: int) -> dict[str, Any]:
    from ..operations.recommendation import ask_for_scaling, chosen
    from ..operations.recommendation.view import scaling_lines
    from ..planning.latency_plan import INVOCATIONS_METRIC
    from ..settings import plan_endpoint

    throughput = here.settings.endpoints[here.key].throughput
    advice = ask_for_scaling(here.client, job, chosen(job, number),
                             throughput.peak_tps if throughput else None)
    if not here.json:
        policy = plan_endpoint(here.settings, here.key).scaling
        planned = policy.target if policy and policy.metric == INVOCATIONS_METRIC else None
        for line in scaling_lines(advice, planned):
            typer.echo(line)
    return advice.to_dict()


def _adopt(here: _Here, job: Job, number: int) -> dict[str, Any]:
    from ..operations.recommendation import adopt, chosen
    from .job_following import write_settings

    adoption = adopt(chosen(job, number), here.threshold, here.key,
                     here.settings.endpoints[here.key])
    return write_settings(here.path, adoption.values, adoption.notes, yes=here.yes,
                          json=here.json)


def _list(client: Any, *, json: bool) -> None:
    from ..operations.recommendation import list_jobs
    from ..operations.recommendation.view import jobs_table
    from .output import print_json, print_parts

    jobs = list_jobs(client)
    if json:
        print_json([each.to_dict() for each in jobs])
        return
    print_parts(*jobs_table(
        [(each.name, each.job_type, each.status, f"{each.created:%Y-%m-%d %H:%M}")
         for each in jobs], ("Job", "Type", "Status", "Created")))
