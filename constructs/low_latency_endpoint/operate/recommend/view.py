"""What the command shows: the price before a job starts, and the table of its results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from rich.console import RenderableType
from rich.text import Text

from ...report.tables import Cell, Table
from ...settings.fields import duration_text
from .job_requests import RecommendationRequest
from .results import Job, Recommendation
from .scaling import ScalingAdvice
from .threshold import LatencyThreshold
from .traffic import traffic_text

__all__ = ["job_table", "price_lines", "scaling_lines"]

PRICES = "https://aws.amazon.com/sagemaker/ai/pricing/"


def price_lines(job: RecommendationRequest, doubts: Sequence[str] = ()) -> Iterator[str]:
    """What the job will do and what bounds its cost, before anything is started."""
    test = job.load_test
    yield f"Job {job.job_name} ({job.job_type})"
    yield f"  model            {job.model.model_name or job.model.model_package_arn}"
    container = job.container
    described = " ".join(container.request().values())
    assumed = f" (assumed: {', '.join(container.assumed)})" if container.assumed else ""
    yield f"  described as     {described}{assumed}"
    yield f"  payload          {job.sample_payload} ({job.content_type})"
    yield "  network          " + (
        f"{len(job.vpc.subnet_ids)} subnets of the model's VPC" if job.vpc else "no VPC"
    )
    yield "  instance types   " + (", ".join(job.instance_types) or "AWS chooses them")
    if test is None:
        yield "  duration         AWS: within 45 minutes; a Default job takes no limit"
    else:
        tests = test.tests(job.instance_types)
        parallel = min(test.max_parallel, tests)
        limit = duration_text(timedelta(seconds=test.max_seconds))
        hours = parallel * test.max_seconds / 3600
        yield (
            f"  traffic          {traffic_text(test.traffic)}; a test ends at "
            f"{test.threshold.percentile.lower()} {test.threshold.milliseconds} ms, "
            f"{test.max_invocations} requests per minute"
            + ("" if test.continue_when_flat else ", or when the rate no longer rises")
        )
        yield f"  tests            {tests}, {parallel} at a time"
        yield f"  duration limit   {limit}, so at most {hours:g} instance hours"
        if test.threshold.note:
            yield f"  note             {test.threshold.note}"
    for doubt in doubts:
        yield f"  note             {doubt}"
    yield (
        "This costs money: AWS bills the instances under test, by the second, at the hosting "
        f"price of their types ({PRICES})."
    )


def job_table(job: Job, threshold: LatencyThreshold, current: str) -> list[RenderableType]:
    """The results, those within the target marked, and what can be done next."""
    title = f"{job.name} ({job.job_type}): {job.status}"
    if not job.recommendations:
        return [Text(title, style="bold"), *([Text(job.failure_reason)] * bool(job.failure_reason))]
    lines: list[RenderableType] = [
        Table(
            (
                "#",
                "Within target",
                "Instance type",
                "N",
                "USD per hour",
                "USD per million",
                "Calls per s",
                "Model ms",
                "CPU %",
                "Mem. %",
            ),
            [list(_row(each, threshold, current)) for each in job.recommendations],
            title,
            "rllr",
            tight=True,
        )
    ]
    lines += [
        Text(f"{each.number}: {name}={value}", style="dim")
        for each in job.recommendations
        for name, value in each.environment.items()
    ]
    lines.append(
        Text(
            f"Target: {threshold.milliseconds} ms, compared with the model's time; calls per second of "
            "one instance, from Inference Recommender's few users.",
            style="dim",
        )
    )
    if job.threshold and job.threshold.milliseconds != threshold.milliseconds:
        lines.append(
            Text(
                f"The job's tests ended at {job.threshold.percentile.lower()} "
                f"{job.threshold.milliseconds} ms.",
                style="dim",
            )
        )
    return lines


def _row(each: Recommendation, threshold: LatencyThreshold, current: str) -> Iterator[str | Cell]:
    within = each.within(threshold)
    yield str(each.number)
    yield (
        Cell("?", "other")
        if within is None
        else Cell("yes", "good")
        if within
        else Cell("no", "bad")
    )
    name = each.instance_type or "serverless"
    yield f"{name} (now)" if name == current else name
    yield _number(each.instance_count, "d")
    yield _number(each.cost_per_hour, ".3f")
    yield _number(None if each.cost_per_inference is None else each.cost_per_inference * 1e6, ".2f")
    yield _number(each.tps_per_instance, ".1f")
    yield _number(each.model_latency_ms, ".4g")
    yield _number(each.cpu_percent, ".0f")
    yield _number(each.memory_percent, ".0f")


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def scaling_lines(advice: ScalingAdvice, planned_target: float | None) -> Iterator[str]:
    """AWS's recommendation of the scaling, beside the plan's."""
    yield "AWS recommends this scaling (GetScalingConfigurationRecommendation):"
    yield (
        f"  instances        {_number(advice.min_instances, 'd')} to "
        f"{_number(advice.max_instances, 'd')}"
    )
    for metric, value in advice.targets:
        yield f"  target           {value:g} ({metric})"
    yield (
        f"  cooldown         in {_seconds(advice.scale_in_cooldown)}, "
        f"out {_seconds(advice.scale_out_cooldown)}"
    )
    if planned_target is not None:
        yield f"  plan's target    {planned_target:g} invocations per instance and minute"


def _seconds(value: int | None) -> str:
    return "-" if value is None else f"{value}s"
