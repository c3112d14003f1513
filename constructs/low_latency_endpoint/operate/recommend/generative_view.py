"""What ``recommend-generative`` shows: the price before a job starts, and its results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from ...report.tables import Table
from .generative_jobs import GenerativeJob, GenerativeResult
from .generative_requests import Benchmark, GenerativeRecommendation

__all__ = ["generative_price_lines", "generative_table"]

PRICES = "https://aws.amazon.com/sagemaker/ai/pricing/"


def generative_price_lines(
    job: GenerativeRecommendation | Benchmark, workload: str, doubts: Sequence[str] = ()
) -> Iterator[str]:
    """What the job will do and what it costs, before anything is started."""
    if isinstance(job, Benchmark):
        yield f"Job {job.job_name} (benchmark)"
        yield f"  endpoint         {job.endpoint_name}" + "".join(
            f", {each}" for each in job.inference_components
        )
        yield "  network          " + (
            f"{len(job.vpc.subnet_ids)} subnets of the model's VPC" if job.vpc else "no VPC"
        )
    else:
        yield f"Job {job.job_name} (recommendation)"
        yield f"  model            {job.model}"
        yield f"  goal             {job.goal}"
        yield "  instance types   " + (", ".join(job.instance_types) or "AWS chooses them")
        yield "  model as is      " + (
            "no, AWS may optimize it, which takes hours" if job.optimize else "yes"
        )
    yield f"  workload         {workload}"
    yield f"  results          {job.output}"
    yield "  duration limit   none: the API has none, so watch the job, or stop it with --stop"
    for doubt in doubts:
        yield f"  note             {doubt}"
    if isinstance(job, Benchmark):
        yield (
            "This loads the endpoint like production traffic, beside what its callers send, and "
            f"AWS bills the job ({PRICES})."
        )
    else:
        yield (
            "This costs money: AWS bills the GPU instances it tests, at the hosting price of "
            f"their types ({PRICES})."
        )


def generative_table(job: GenerativeJob, current: str) -> list[RenderableType]:
    """The results in AWS's order, and where the rest is."""
    parts: list[RenderableType] = [
        Text(f"{job.name} ({job.kind.word}): {job.status}", style="bold")
    ]
    if job.failure_reason:
        parts.append(Text(job.failure_reason))
    if job.results:
        parts.append(
            Table(
                ("#", "Instance type", "N", "Copies each", "Expected, and what it takes"),
                [
                    (
                        str(each.number),
                        _type(each, current),
                        _count(each.instance_count),
                        _count(each.copies_per_instance),
                        "\n".join(_details(each)),
                    )
                    for each in job.results
                ],
                align="rlrrl",
            )
        )
    if job.succeeded:
        parts.append(Text(f"Everything else is in {job.output}", style="dim"))
    return parts


def _type(result: GenerativeResult, current: str) -> str:
    name = result.instance_type or "-"
    return f"{name} (now)" if name == current else name


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)


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
