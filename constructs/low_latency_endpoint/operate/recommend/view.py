"""What the commands show: the price before a job starts, and the table of its results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from textwrap import indent
from typing import Any

import yaml
from rich.console import RenderableType
from rich.text import Text

from ...report.tables import Cell, Table
from ...settings.fields import duration_text
from .jobs import OPTIMIZATION, Job, JobRequest
from .results import OptimizedModel, Recommendation
from .threshold import LatencyThreshold

_PRICES = "https://aws.amazon.com/sagemaker/ai/pricing/"


class _Whole(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def price_lines(
    job: JobRequest, doubts: Sequence[str] = (), *, assumed: Sequence[str] = ()
) -> Iterator[str]:
    """The request as AWS gets it, and what bounds its cost, before anything is started."""
    given = {name: value for name, value in job.content.items() if name != "Tags"}
    text = yaml.dump(given, Dumper=_Whole, sort_keys=False, default_flow_style=None, width=92)
    yield f"Job {job.name} ({job.kind.type(given)}), as AWS is asked for it:"
    yield indent(text.rstrip(), "  ")
    if assumed:
        yield _line("assumed", ", ".join(assumed).lower())
    yield _line("duration limit", _bound(job))
    yield from (_line("note", doubt) for doubt in doubts)
    if job.kind is OPTIMIZATION:
        # model-optimize-create-job.html; of speculative decoding it says "no additional costs", and
        # AWS's announcement of EAGLE "billed depending on the instance type and job duration".
        yield (
            "This costs money: AWS chooses an instance to run the job on, of a type that may be a "
            f"large one, and bills it for as long as the job runs ({_PRICES})."
        )
    else:
        yield (
            "This costs money: AWS bills the instances under test, by the second, at the hosting "
            f"price of their types ({_PRICES})."
        )


def _bound(job: JobRequest) -> str:
    """What ends a job, whatever happens."""
    if "StoppingCondition" in job.content:
        limit = timedelta(seconds=job.content["StoppingCondition"]["MaxRuntimeInSeconds"])
        return f"{duration_text(limit)}, then AWS ends the job without a result"
    given = job.content["InputConfig"]
    if "JobDurationInSeconds" not in given:
        return "AWS: within 45 minutes; a Default job takes no limit"
    seconds, limit = given["JobDurationInSeconds"], given["ResourceLimit"]
    hours = limit["MaxParallelOfTests"] * seconds / 3600
    return f"{duration_text(timedelta(seconds=seconds))}, so at most {hours:g} instance hours"


def _line(name: str, value: object) -> str:
    return f"  {name:<16} {value}"


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


def optimized_table(job: Job[OptimizedModel], current: str) -> list[RenderableType]:
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
        parts.append(Text(f"The model is in {job.output}", style="dim"))
    return parts


def _title(job: Job[Recommendation] | Job[OptimizedModel]) -> str:
    return f"{job.name} ({job.type}): {job.status}"


def _without_results(job: Job[Recommendation] | Job[OptimizedModel]) -> list[RenderableType]:
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


def _details(result: OptimizedModel) -> Iterator[str]:
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
