"""Alarms that cannot be meant as they are written: nothing is judged by them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ...facts.metrics import metrics
from ...report.numbers import milliseconds, readable
from .measurements import AlarmReading, PlanFacts, VariantReading
from .thresholds import LONGEST_MS, WRONG_UNIT


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
        published, given = " and ".join(facts.dimensions[0]), " and ".join(dimensions) or "none"
        return f"{name} has the dimensions {published}, not {given}"
    for key, known in names.items():
        if key in dimensions and dimensions[key] not in known:
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


def misread(alarm: AlarmReading, variants: Iterable[VariantReading], plan: PlanFacts | None) -> str:
    """What the threshold of a latency would be in the metric's unit; empty where it can be meant."""
    series = (v.get(alarm.metric, alarm.statistic) for v in variants if v.name == alarm.variant)
    values = sorted(value for each in series for value in each.points.values())
    stated, factor = alarm.threshold, 1.0
    planned = plan and any(math.isclose(stated, each) for each in plan.thresholds.values())
    if alarm.unit != "ms" or not values or stated <= 0 or planned:
        return ""
    times = values[len(values) // 4] / stated
    if times >= WRONG_UNIT or (times >= 10 and stated <= 1):
        factor = 1e3 if times < WRONG_UNIT * 1e3 else 1e6
    elif stated > LONGEST_MS and times * WRONG_UNIT <= 1:
        factor = 1e-3
    right = stated * factor
    if factor == 1 or right > LONGEST_MS:
        return ""
    return (
        f"{alarm.metric} {alarm.statistic} above {readable(1000 * stated)} microseconds, which is "
        f"{milliseconds(stated)}; for {milliseconds(right)} it is {1000 * right:.0f}"
    )
