"""Scaling, alarms and the stack's plan, as the services tell them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from ...account.alarms import Alarm, alarm_changes, alarm_dimensions, alarm_metrics
from ...account.calls import Account, json_object
from ...account.endpoints import DeployedEndpoint
from ...account.scaling import (
    scalable_targets,
    scaling_activities,
    scaling_policies,
    tracked_metric,
    tracked_value,
)
from ...account.sessions import Unreadable
from ...account.stacks import owner_of, template
from ...facts.metrics import metrics, milliseconds_from_microseconds
from ...plan.decisions import PLAN_METADATA, values_in_template
from .measurements import (
    ERROR_RATES,
    Activity,
    AlarmReading,
    AlarmTransition,
    PlanFacts,
    ScalingReading,
    Threshold,
)
from .read_tokens import token_alarms
from .stated_alarms import unmatched
from .thresholds import LOOK_BACK
from .tokens import MEASURES, TOKEN_TIMES

_SET_TO = re.compile(r"instance count to (\d+)", re.IGNORECASE)
_LATENCY_STATISTIC = re.compile(r"Average|Maximum|p\d{1,2}(\.\d+)?")


def read_scaling(
    account: Account, endpoint: str, variant: str, start: datetime, end: datetime
) -> ScalingReading | None:
    """Application Auto Scaling's word on a variant; ``None`` when it may not be read."""
    targets = account.known(f"scaling of {variant}", scalable_targets, endpoint, [variant])
    if targets is None:
        return None
    if variant not in targets:
        return ScalingReading()
    policies = account.known(f"scaling policies of {variant}", scaling_policies, endpoint, variant)
    activities = account.known(
        f"scaling activities of {variant}", scaling_activities, endpoint, variant
    )
    suspended = targets[variant].get("SuspendedState", {}).get("DynamicScalingOutSuspended", False)
    return ScalingReading(
        minimum=targets[variant]["MinCapacity"],
        maximum=targets[variant]["MaxCapacity"],
        scale_out_suspended=suspended,
        activities=None if activities is None else tuple(_activities(activities, start, end)),
        **_tracking(policies or [], endpoint, variant),
    )


def _tracking(policies: list[Mapping[str, Any]], endpoint: str, variant: str) -> dict[str, Any]:
    """Metric, target, scale-out cooldown and doubts of the policy that tracks a target."""
    configuration = "TargetTrackingScalingPolicyConfiguration"
    tracking = [policy for policy in policies if configuration in policy]
    if not tracking:
        return {"metric": policies[0]["PolicyType"]} if policies else {}
    # Invocations first: the load of each minute is measured against their target.
    policy = min(
        tracking, key=lambda p: "Invocations" not in json.dumps(p[configuration], default=str)
    )
    own = policy[configuration].get("CustomizedMetricSpecification", {})
    names = {"EndpointName": (endpoint,), "VariantName": (variant,)}
    return {
        "metric": tracked_metric(policy) or "metric math",
        "target": tracked_value(policy),
        "scale_out_cooldown": policy[configuration].get("ScaleOutCooldown", 300),
        "doubt": unmatched(own, own.get("Statistic", ""), names, own.get("Unit", "")),
    }


def _activities(
    found: list[Mapping[str, Any]], start: datetime, end: datetime
) -> Iterator[Activity]:
    for each in found:
        if not start - LOOK_BACK <= each["StartTime"] <= end:
            continue
        count = _SET_TO.search(each.get("Description", ""))
        yield Activity(
            start=each["StartTime"],
            end=each.get("EndTime"),
            status=each["StatusCode"],
            description=each.get("Description", ""),
            message=each.get("StatusMessage", ""),
            cause=each.get("Cause", ""),
            capacity=int(count[1]) if count else None,
            not_scaled=tuple(r["Code"] for r in each.get("NotScaledReasons", [])),
        )


def read_alarms(alarms: Iterable[Alarm], endpoint: DeployedEndpoint) -> tuple[AlarmReading, ...]:
    """Those alarms that are on the endpoint's metrics, or on what its containers tell of tokens."""
    listed = list(alarms)
    on_metrics = [a for a in listed if alarm_dimensions(a).get("EndpointName") == endpoint.name]
    read = (replace(alarm_reading(a), doubt=_doubt(a, endpoint)) for a in on_metrics)
    return (*read, *token_alarms(listed, endpoint.name))


def _doubt(alarm: Alarm, endpoint: DeployedEndpoint) -> str:
    """Why CloudWatch has nothing of what an alarm watches; empty where it has."""
    for each in alarm_metrics(alarm):
        metric = {**each["Metric"], "Threshold": alarm.get("Threshold", 0)}
        unit, period = ({**alarm, **each}.get(key) for key in ("Unit", "Period"))
        seconds = max(period or 60, 60 if endpoint.publish_seconds < 60 else 0)
        names = {"VariantName": (*endpoint.variants, *endpoint.shadows)}
        if found := unmatched(metric, each["Stat"], names, unit or "", seconds):
            return found
    return ""


def alarm_reading(alarm: Mapping[str, Any]) -> AlarmReading:
    threshold, unit = alarm.get("Threshold", 0.0), ""
    watched = alarm_metrics(alarm)
    names = sorted({each["Metric"]["MetricName"] for each in watched})
    metric, statistic = names[0], watched[0]["Stat"]
    if len(watched) > 1 or any("Expression" in each for each in alarm.get("Metrics", ())):
        rate = [n for n in names if n in ERROR_RATES]
        labels = [m["Label"] for m in alarm["Metrics"] if m.get("ReturnData") and "Label" in m]
        metric = "".join(labels) or " and ".join(names)
        if rate and names == sorted(["Invocations", *rate]):
            metric = ERROR_RATES[rate[0]]
        statistic = "Rate" if rate else "formula"
    simple = statistic not in ("formula", "Rate", "SampleCount") and not statistic.startswith("PR(")
    if simple and any(f.name == metric and f.unit == "Microseconds" for f in metrics()):
        threshold, unit = milliseconds_from_microseconds(threshold), "ms"
    above = alarm.get("ComparisonOperator", "").startswith("GreaterThan")
    return AlarmReading(
        name=alarm["AlarmName"],
        metric=metric,
        statistic=statistic if above else f"{statistic} <",
        threshold=threshold,
        unit=unit,
        state=alarm.get("StateValue", "INSUFFICIENT_DATA"),
        since=alarm.get("StateUpdatedTimestamp"),
        variant=alarm_dimensions(alarm).get("VariantName", ""),
        new_fleet="EndpointConfigName" in alarm_dimensions(alarm),
    )


def read_transitions(
    account: Account, alarms: tuple[AlarmReading, ...], start: datetime, end: datetime
) -> Iterator[AlarmTransition]:
    """Changes of state in the window; alarms that have not changed since are not asked for."""
    for alarm in alarms:
        if alarm.since is not None and alarm.since < start:
            continue
        items = account.known("history of alarms", alarm_changes, alarm.name, start, end)
        if items is None:
            return
        for item in items:
            data = json_object(item.get("HistoryData"))
            old, new = data.get("oldState", {}), data.get("newState", {})
            if start <= item["Timestamp"] <= end:
                told = new.get("stateValue") or item.get("HistorySummary", "")
                silent = "no datapoints were received" in new.get("stateReason", "")
                before = old.get("stateValue", "")
                yield AlarmTransition(item["Timestamp"], alarm.name, told, before, silent)


def alarm_thresholds(
    alarms: tuple[AlarmReading, ...] | None, variant: str
) -> dict[tuple[str, str], Threshold]:
    """The tightest threshold by metric and statistic."""
    found: dict[tuple[str, str], Threshold] = {}
    for alarm in alarms or ():
        key = alarm.metric, alarm.statistic
        latency = alarm.metric in ("ModelLatency", "OverheadLatency", *TOKEN_TIMES)
        latency = latency and alarm.unit == "ms" and bool(_LATENCY_STATISTIC.fullmatch(key[1]))
        if alarm.doubt or alarm.variant != variant or not (latency or key[1] == "Rate"):
            continue
        if key not in found or alarm.threshold < found[key].value:
            found[key] = Threshold(alarm.threshold, "an alarm's threshold")
    return found


def read_plan(account: Account, endpoint_arn: str) -> PlanFacts | None:
    """The plan in the template of the stack that owns the endpoint; ``None`` without one."""
    owner = owner_of(account, endpoint_arn)
    if owner is None:
        return None
    stack, logical_id = owner
    try:
        resources = template(account, stack)
    except Unreadable as refusal:
        if refusal.error is None:
            return None  # not JSON, so not the CDK's, which alone writes plans
        raise
    plan = resources.get(logical_id, {}).get("Metadata", {}).get(PLAN_METADATA)
    return plan_facts(stack, plan) if isinstance(plan, Mapping) else None


def plan_facts(stack: str, plan: Mapping[str, Any]) -> PlanFacts:
    """What the diagnosis needs of a plan in a template."""
    values = values_in_template(plan)
    thresholds = {}
    for about, milliseconds in values.get("alarms", {}).items():
        watched, _, statistic = about.rpartition(" ")
        thresholds[MEASURES.get(watched, watched), statistic] = float(milliseconds)
    told = {name: values.get(name) for name in ("peak_tps", "tps_per_instance", "safety_factor")}
    return PlanFacts(stack, thresholds, **told)
