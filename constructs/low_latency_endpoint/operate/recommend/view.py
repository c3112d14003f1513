"""What the commands show: the price before a job starts, and the table of its results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from ...report.tables import Cell, Table
from ...settings.fields import duration_text
from .jobs import BENCHMARK, Job, JobRequest
from .results import GenerativeResult, Recommendation
from .threshold import LatencyThreshold

_PRICES = "https://aws.amazon.com/sagemaker/ai/pricing/"


def price_lines(
    job: JobRequest, note: str, doubts: Sequence[str], assumed: Sequence[str]
) -> Iterator[str]:
    """What the job will do and what bounds its cost, before anything is started."""
    given = job.content["InputConfig"]
    container = given["ContainerConfig"]
    payload = container["PayloadConfig"]
    described = " ".join(
        container[name]
        for name in ("Domain", "Task", "Framework", "FrameworkVersion")
        if name in container
    )
    general = f" (assumed: {', '.join(assumed).lower()})" if assumed else ""
    tested = [each["InstanceType"] for each in given.get("EndpointConfigurations", ())]
    yield f"Job {job.name} ({job.content['JobType']})"
    yield _line("model", given.get("ModelName") or given["ModelPackageVersionArn"])
    yield _line("described as", f"{described}{general}")
    yield _line("payload", f"{payload['SamplePayloadUrl']} ({payload['SupportedContentTypes'][0]})")
    yield _network(given.get("VpcConfig"))
    yield _types(tested or container.get("SupportedInstanceTypes", ()))
    if not tested:
        yield _line("duration", "AWS: within 45 minutes; a Default job takes no limit")
    else:
        yield from _load_test_lines(given, job.content["StoppingConditions"])
        if note:
            yield _line("note", note)
    yield from (_line("note", doubt) for doubt in doubts)
    yield (
        "This costs money: AWS bills the instances under test, by the second, at the hosting "
        f"price of their types ({_PRICES})."
    )


def _load_test_lines(given: Mapping[str, Any], stopping: Mapping[str, Any]) -> Iterator[str]:
    tests = given["ResourceLimit"]["MaxNumberOfTests"]
    parallel = given["ResourceLimit"]["MaxParallelOfTests"]
    seconds = given["JobDurationInSeconds"]
    [latency] = stopping["ModelLatencyThresholds"]
    ends = "" if stopping["FlatInvocations"] == "Continue" else ", or when the rate no longer rises"
    yield _line(
        "traffic",
        f"{traffic_text(given['TrafficPattern'])}; a test ends at {latency['Percentile'].lower()} "
        f"{latency['ValueInMilliseconds']} ms, {stopping['MaxInvocations']} requests per minute"
        f"{ends}",
    )
    yield _line("tests", f"{tests}, {parallel} at a time")
    yield _line(
        "duration limit",
        f"{_minutes(seconds)}, so at most {parallel * seconds / 3600:g} instance hours",
    )


def traffic_text(pattern: Mapping[str, Any]) -> str:
    """A ``TrafficPattern`` of the API in words.

    Examples
    --------
    >>> traffic_text({"TrafficType": "STAIRS", "Stairs": {
    ...     "NumberOfSteps": 5, "UsersPerStep": 3, "DurationInSeconds": 600}})
    '5 steps of 3 more users in 10m'
    """
    if pattern["TrafficType"] == "STAIRS":
        stairs = pattern["Stairs"]
        return (
            f"{stairs['NumberOfSteps']} steps of {stairs['UsersPerStep']} more users in "
            f"{_minutes(stairs['DurationInSeconds'])}"
        )
    return ", then ".join(
        f"{users} user{'s' * (users != 1)}, {more} more each minute for {_minutes(seconds)}"
        for users, more, seconds in (
            (each["InitialNumberOfUsers"], each["SpawnRate"], each["DurationInSeconds"])
            for each in pattern["Phases"]
        )
    )


def _minutes(seconds: int) -> str:
    return duration_text(timedelta(seconds=seconds))


def generative_price_lines(
    job: JobRequest, workload: str, doubts: Sequence[str] = ()
) -> Iterator[str]:
    """The same of a job for a generative model."""
    given = job.content
    yield f"Job {job.name} ({job.kind.word})"
    if job.kind is BENCHMARK:
        target = given["BenchmarkTarget"]["Endpoint"]
        called = (target, *target.get("InferenceComponents", ()))
        yield _line("endpoint", ", ".join(each["Identifier"] for each in called))
        yield _network(given.get("NetworkConfig", {}).get("VpcConfig"))
        cost = (
            "This loads the endpoint like production traffic, beside what its callers send, and "
            f"AWS bills the job ({_PRICES})."
        )
    else:
        yield _line("model", given["ModelSource"]["S3"]["S3Uri"])
        yield _line("goal", given["PerformanceTarget"]["Constraints"][0]["Metric"])
        yield _types(given.get("ComputeSpec", {}).get("InstanceTypes", ()))
        optimized = "no, AWS may optimize it, which takes hours"
        yield _line("model as is", optimized if given["OptimizeModel"] else "yes")
        cost = (
            "This costs money: AWS bills the GPU instances it tests, at the hosting price of "
            f"their types ({_PRICES})."
        )
    yield _line("workload", workload)
    yield _line("results", given["OutputConfig"]["S3OutputLocation"])
    yield _line("duration limit", "none: the API has none, so watch the job, or use --stop")
    yield from (_line("note", doubt) for doubt in doubts)
    yield cost


def _line(name: str, value: object) -> str:
    return f"  {name:<16} {value}"


def _network(vpc: Mapping[str, Any] | None) -> str:
    return _line(
        "network", f"{len(vpc['Subnets'])} subnets of the model's VPC" if vpc else "no VPC"
    )


def _types(names: Sequence[str]) -> str:
    return _line("instance types", ", ".join(names) or "AWS chooses them")


def job_table(
    job: Job[Recommendation], threshold: LatencyThreshold, current: str
) -> list[RenderableType]:
    """The results, those within the target marked, and what can be done next."""
    if not job.results:
        return _without_results(job)
    heads = ["#", "Within target", "Instance type", "N", "USD per hour", "USD per million"]
    heads += ["Calls per s", "Model ms", "CPU %", "Mem. %"]
    rows = [list(_row(each, threshold, current)) for each in job.results]
    lines: list[RenderableType] = [Table(heads, rows, _title(job), "rllr", tight=True)]
    lines += [
        Text(f"{each.number}: {name}={value}", style="dim")
        for each in job.results
        for name, value in each.environment.items()
    ]
    lines.append(
        Text(
            f"Target: {threshold.milliseconds} ms, compared with the model's time; calls per second of "
            "one instance, from Inference Recommender's few users.",
            style="dim",
        )
    )
    ended = job.threshold
    if ended and ended.milliseconds != threshold.milliseconds:
        text = f"The job's tests ended at {ended.percentile.lower()} {ended.milliseconds} ms."
        lines.append(Text(text, style="dim"))
    return lines


def generative_table(job: Job[GenerativeResult], current: str) -> list[RenderableType]:
    """The results in AWS's order, and where the rest is."""
    parts = _without_results(job)
    if job.results:
        heads = ("#", "Instance type", "N", "Copies each", "Expected, and what it takes")
        rows = [
            (
                str(each.number),
                _type(each.instance_type or "-", current),
                _number(each.instance_count, "d"),
                _number(each.copies_per_instance, "d"),
                "\n".join(_details(each)),
            )
            for each in job.results
        ]
        parts.append(Table(heads, rows, align="rlrrl"))
    if job.succeeded:
        parts.append(Text(f"Everything else is in {job.output}", style="dim"))
    return parts


def _title(job: Job[Recommendation] | Job[GenerativeResult]) -> str:
    return f"{job.name} ({job.type}): {job.status}"


def _without_results(job: Job[Recommendation] | Job[GenerativeResult]) -> list[RenderableType]:
    reason = [Text(job.failure_reason)] if job.failure_reason else []
    return [Text(_title(job), style="bold"), *reason]


def _row(each: Recommendation, threshold: LatencyThreshold, current: str) -> Iterator[str | Cell]:
    within = each.within(threshold)
    tones = {None: Cell("?", "other"), True: Cell("yes", "good"), False: Cell("no", "bad")}
    millions = None if each.cost_per_inference_usd is None else each.cost_per_inference_usd * 1e6
    yield str(each.number)
    yield tones[within]
    yield _type(each.instance_type or "serverless", current)
    yield _number(each.instance_count, "d")
    yield _number(each.cost_per_hour_usd, ".3f")
    yield _number(millions, ".2f")
    yield _number(each.tps_per_instance, ".1f")
    yield _number(each.model_latency_ms, ".4g")
    yield _number(each.cpu_percent, ".0f")
    yield _number(each.memory_percent, ".0f")


def _type(name: str, current: str) -> str:
    return f"{name} (now)" if name == current else name


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _details(result: GenerativeResult) -> Iterator[str]:
    yield from result.performance
    if result.description:
        yield result.description
    if result.optimizations:
        yield "optimized: " + ", ".join(result.optimizations)
    if result.image:
        yield result.image
    yield from (f"{name}={value}" for name, value in result.environment.items())
    if result.model_package_arn:
        yield result.model_package_arn


def scaling_lines(advice: Mapping[str, Any], planned_target: float | None) -> Iterator[str]:
    """AWS's recommendation of the scaling, beside the plan's."""
    shown = {name: "-" if value is None else value for name, value in advice.items()}
    yield "AWS recommends this scaling (GetScalingConfigurationRecommendation):"
    yield _line("instances", "{min_instances} to {max_instances}".format_map(shown))
    for target in advice["targets"]:
        yield _line("target", "{value:g} ({metric})".format_map(target))
    yield _line(
        "cooldown",
        "in {scale_in_cooldown_seconds}, out {scale_out_cooldown_seconds} seconds".format_map(
            shown
        ),
    )
    if planned_target is not None:
        yield _line("plan's target", f"{planned_target:g} invocations per instance and minute")
