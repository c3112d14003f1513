"""Alarms whose numbers or names cannot be meant: nothing is judged by them, and they are named."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ...errors import AWS_DOCS
from ...plan.metrics import metrics
from ...report.numbers import milliseconds
from .findings import MONITORING, STATED_NUMBER, Evidence, Finding, kind
from .measurements import AlarmReading, Measurements, PlanFacts, VariantReading

WRONG_UNIT = kind(
    "LLD604",
    "An alarm's threshold is in another unit than its metric",
    (
        "all but the fastest quarter of the periods are 32 times the threshold or more (10 times, "
        "below 1 ms), which in the next unit is at most 60 s and not the plan's; or the threshold is "
        "above 60 s and 316 times the metric"
    ),
    MONITORING,
)
NEVER_MATCHES = kind(
    "LLD605",
    "An alarm watches what CloudWatch does not have",
    "namespace, dimensions, variant, statistic, unit or period are none that SageMaker publishes",
    AWS_DOCS + "/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html",
)
#: Nearer to a factor of 1,000 than to one; and than to one of a hundred.
_ODD, _EVER = 1000**0.5, 1000**0.5 * 10
#: Milliseconds after which SageMaker ends an invocation, and periods to judge by.
_LIMIT_MS, _LEAST = 60_000, 3


def unmatched(
    metric: Mapping[str, Any],
    statistic: str,
    names: Mapping[str, Collection[str]],
    unit: str = "",
    period: int = 60,
) -> str:
    """Why SageMaker publishes no such data of these endpoints and variants; empty where it does."""
    name, namespace = str(metric.get("MetricName")), str(metric.get("Namespace"))
    same = [each for each in metrics() if each.name.casefold() == name.casefold()]
    facts = next((f for f in same if (f.name, f.namespace) == (name, namespace)), None)
    dimensions = {each["Name"]: each["Value"] for each in metric.get("Dimensions", ())}
    if "sagemaker" not in namespace.casefold() or not same:
        return ""  # somebody's own metric, or a new one of AWS
    if facts is None:
        return f"{namespace} has no {name}; {same[0].namespace} has {same[0].name}"
    if not any(set(each) == dimensions.keys() for each in facts.dimensions):
        return (
            f"{name} has the dimensions {' and '.join(facts.dimensions[0])}, not "
            f"{' and '.join(dimensions) or 'none'}"
        )
    for key, known in names.items():
        if dimensions.get(key, next(iter(known), "")) not in known:
            return f"no {key} {dimensions[key]}; there is {', '.join(known)}"
    if unit not in ("", facts.unit):
        return f"{name} is published in {facts.unit}, not in {unit}"
    if statistic.startswith("p") and not facts.percentiles:
        return f"{name} has no percentiles ({facts.valid_statistics})"
    if facts.statistics == ("Sum",) and statistic in ("Average", "Minimum", "Maximum"):
        return f"the {statistic} of {name} is no number of requests: take the Sum"
    if name.endswith("Errors") and statistic == "Average" and metric.get("Threshold", 0) >= 1:
        return f"the Average of {name} is a share of the requests, 1 at most"
    if period < facts.period_seconds:
        return f"{name} comes every {facts.period_seconds} s, not every {period} s"
    return ""


def meant(alarm: AlarmReading, variants: Iterable[VariantReading], plan: PlanFacts | None) -> float:
    """What the threshold of a latency must be multiplied by to be one; 1 where it can be meant."""
    values = sorted(
        value
        for each in variants
        if each.name == alarm.variant
        for value in each.get(alarm.metric, alarm.statistic).points.values()
    )
    stated = alarm.threshold
    planned = plan and any(math.isclose(stated, each) for each in plan.thresholds.values())
    if alarm.unit != "ms" or len(values) < _LEAST or stated <= 0 or planned:
        return 1.0
    times = values[len(values) // 4] / stated
    if times >= _ODD or (times >= 10 and stated <= 1):
        factor = 1e3 if times < _ODD * 1e3 else 1e6
        return factor if stated * factor <= _LIMIT_MS else 1.0
    return 1e-3 if stated > _LIMIT_MS and values[-1] * _EVER <= stated else 1.0


def stated_alarms(m: Measurements) -> Iterator[Finding]:
    """One finding of the alarms in another unit, one of those that can never match."""
    units, never = [], []
    for each in m.alarms or ():
        if each.doubt:
            never.append(f"{each.name}: {each.doubt}")
        elif (factor := meant(each, m.variants, m.plan)) != 1:
            right = each.threshold * factor
            units.append(
                f"{each.name}: {each.metric} {each.statistic} above {1000 * each.threshold:g} "
                f"microseconds, which is {milliseconds(each.threshold)}; for {milliseconds(right)} it "
                f"is {1000 * right:.0f}"
            )
    for made, texts, besides in (
        (
            WRONG_UNIT,
            units,
            "CloudWatch's latencies are in microseconds. Nothing here is judged by ",
        ),
        (NEVER_MATCHES, never, "Such an alarm has no data and never fires. Nothing is judged by "),
    ):
        if texts:
            yield Finding(
                made,
                "",
                tuple(Evidence(text) for text in texts),
                "high",
                (STATED_NUMBER, "alarms"),
                besides=f"{besides}{'it' if len(texts) == 1 else 'them'}: put the alarm right, or "
                "let this library make it (alarms.model_latency).",
                risk=True,
            )
