"""What the commands show: the price before a job starts, and the table of its results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from rich.console import RenderableType
from rich.text import Text

from ...report.tables import Cell, Table
from ...settings.fields import duration_text
from .generative_requests import Benchmark, GenerativeRecommendation
from .job_requests import RecommendationRequest, VpcConfig
from .jobs import Job
from .results import GenerativeResult, Recommendation
from .scaling import ScalingAdvice
from .threshold import LatencyThreshold
from .traffic import traffic_text

_PRICES = "https://aws.amazon.com/sagemaker/ai/pricing/"


def price_lines(job: RecommendationRequest, doubts: Sequence[str] = ()) -> Iterator[str]:
    """What the job will do and what bounds its cost, before anything is started."""
    test, container = job.load_test, job.container
    assumed = f" (assumed: {', '.join(container.assumed)})" if container.assumed else ""
    yield f"Job {job.job_name} ({job.job_type})"
    yield _line("model", job.model.model_name or job.model.model_package_arn)
    yield _line("described as", f"{' '.join(container.request().values())}{assumed}")
    yield _line("payload", f"{job.sample_payload} ({job.content_type})")
    yield _network(job.model.vpc)
    yield _types(job.instance_types)
    if test is None:
        yield _line("duration", "AWS: within 45 minutes; a Default job takes no limit")
    else:
        tests = test.tests(job.instance_types)
        parallel = min(test.max_parallel, tests)
        limit = duration_text(timedelta(seconds=test.max_seconds))
        hours = parallel * test.max_seconds / 3600
        ends = "" if test.continue_when_flat else ", or when the rate no longer rises"
        yield _line(
            "traffic",
            f"{traffic_text(test.traffic)}; a test ends at {test.threshold.percentile.lower()} "
            f"{test.threshold.milliseconds} ms, {test.max_invocations} requests per minute{ends}",
        )
        yield _line("tests", f"{tests}, {parallel} at a time")
        yield _line("duration limit", f"{limit}, so at most {hours:g} instance hours")
        if test.threshold.note:
            yield _line("note", test.threshold.note)
    yield from (_line("note", doubt) for doubt in doubts)
    yield (
        "This costs money: AWS bills the instances under test, by the second, at the hosting "
        f"price of their types ({_PRICES})."
    )


def generative_price_lines(
    job: GenerativeRecommendation | Benchmark, workload: str, doubts: Sequence[str] = ()
) -> Iterator[str]:
    """The same of a job for a generative model."""
    yield f"Job {job.job_name} ({job.kind.word})"
    if isinstance(job, Benchmark):
        yield _line("endpoint", ", ".join((job.endpoint_name, *job.inference_components)))
        yield _network(job.vpc)
        cost = (
            "This loads the endpoint like production traffic, beside what its callers send, and "
            f"AWS bills the job ({_PRICES})."
        )
    else:
        yield _line("model", job.model)
        yield _line("goal", job.goal)
        yield _types(job.instance_types)
        optimized = "no, AWS may optimize it, which takes hours" if job.optimize else "yes"
        yield _line("model as is", optimized)
        cost = (
            "This costs money: AWS bills the GPU instances it tests, at the hosting price of "
            f"their types ({_PRICES})."
        )
    yield _line("workload", workload)
    yield _line("results", job.output)
    yield _line("duration limit", "none: the API has none, so watch the job, or use --stop")
    yield from (_line("note", doubt) for doubt in doubts)
    yield cost


def _line(name: str, value: object) -> str:
    return f"  {name:<16} {value}"


def _network(vpc: VpcConfig | None) -> str:
    return _line(
        "network", f"{len(vpc.subnet_ids)} subnets of the model's VPC" if vpc else "no VPC"
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


def scaling_lines(advice: ScalingAdvice, planned_target: float | None) -> Iterator[str]:
    """AWS's recommendation of the scaling, beside the plan's."""
    low, high = (_number(each, "d") for each in (advice.min_instances, advice.max_instances))
    down, up = (
        "-" if each is None else f"{each}s"
        for each in (advice.scale_in_cooldown, advice.scale_out_cooldown)
    )
    yield "AWS recommends this scaling (GetScalingConfigurationRecommendation):"
    yield _line("instances", f"{low} to {high}")
    yield from (_line("target", f"{value:g} ({metric})") for metric, value in advice.targets)
    yield _line("cooldown", f"in {down}, out {up}")
    if planned_target is not None:
        yield _line("plan's target", f"{planned_target:g} invocations per instance and minute")
