"""Scaling, alarms and the stack's plan, as the services tell them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from ...planning.metrics import metrics, milliseconds_from_microseconds
from .asking import Account
from .measurements import (
    Activity,
    AlarmReading,
    AlarmTransition,
    PlanFacts,
    ScalingReading,
    Threshold,
)

__all__ = ["alarm_thresholds", "read_alarms", "read_plan", "read_scaling", "read_transitions"]

PLAN_METADATA = "LowLatencyEndpoint::Plan"
_DIMENSION = "sagemaker:variant:DesiredInstanceCount"
_SET_TO = re.compile(r"instance count to (\d+)", re.IGNORECASE)
_LATENCY_STATISTIC = re.compile(r"Average|Maximum|p\d{1,2}(\.\d+)?")
_ERROR_RATES = {"Invocation5XXErrors": "error_rate", "Invocation4XXErrors": "client_error_rate",
                "InvocationModelErrors": "model_error_rate"}


def read_scaling(account: Account, endpoint: str, variant: str, start: datetime,
                 end: datetime) -> ScalingReading | None:
    """Application Auto Scaling's word on a variant; ``None`` when it may not be read."""
    resource = f"endpoint/{endpoint}/variant/{variant}"
    request = {"ServiceNamespace": "sagemaker", "ScalableDimension": _DIMENSION}
    what, service = f"scaling of {variant}", "application-autoscaling"
    targets = account.pages(what, service, "describe_scalable_targets", "ScalableTargets",
                            ResourceIds=[resource], **request)
    if targets is None:
        return None
    if not targets:
        return ScalingReading()
    policies = account.pages(f"scaling policies of {variant}", service,
                             "describe_scaling_policies", "ScalingPolicies",
                             ResourceId=resource, **request)
    activities = account.pages(f"scaling activities of {variant}", service,
                               "describe_scaling_activities", "ScalingActivities",
                               ResourceId=resource, IncludeNotScaledActivities=True, **request)
    metric, target, cooldown = _tracking(policies or [])
    return ScalingReading(
        minimum=targets[0]["MinCapacity"], maximum=targets[0]["MaxCapacity"],
        metric=metric, target=target, scale_out_cooldown=cooldown,
        scale_out_suspended=targets[0].get("SuspendedState", {}).get(
            "DynamicScalingOutSuspended", False),
        activities=None if activities is None else tuple(_activities(activities, start, end)),
    )


def _tracking(policies: list[dict[str, Any]]) -> tuple[str, float | None, float | None]:
    """Metric, target and scale-out cooldown of the policy that tracks a target."""
    tracking = [p["TargetTrackingScalingPolicyConfiguration"] for p in policies
                if "TargetTrackingScalingPolicyConfiguration" in p]
    # Invocations first: the load of each minute is measured against their target.
    for config in sorted(tracking, key=lambda c: "Invocations" not in json.dumps(c, default=str)):
        name = config.get("PredefinedMetricSpecification", {}).get("PredefinedMetricType") \
            or config.get("CustomizedMetricSpecification", {}).get("MetricName", "metric math")
        return name, config["TargetValue"], config.get("ScaleOutCooldown", 300)
    return (policies[0]["PolicyType"] if policies else "", None, None)


def _activities(found: list[dict[str, Any]], start: datetime, end: datetime) -> Iterator[Activity]:
    for each in found:
        if not start - timedelta(minutes=15) <= each["StartTime"] <= end:
            continue
        count = _SET_TO.search(each.get("Description", ""))
        yield Activity(
            start=each["StartTime"], end=each.get("EndTime"), status=each["StatusCode"],
            description=each.get("Description", ""), message=each.get("StatusMessage", ""),
            cause=each.get("Cause", ""), capacity=int(count[1]) if count else None,
            not_scaled=tuple(r["Code"] for r in each.get("NotScaledReasons", [])),
        )


# ------------------------------------------------------------------------------------------ alarms


def read_alarms(account: Account, endpoint: str) -> tuple[AlarmReading, ...] | None:
    """Alarms on the endpoint's metrics; ``None`` when they may not be read.

    CloudWatch cannot filter by dimension, so all metric alarms of the region are paged through.
    """
    found = account.pages("alarms", "cloudwatch", "describe_alarms", "MetricAlarms",
                          AlarmTypes=["MetricAlarm"], MaxRecords=100)
    if found is None:
        return None
    return tuple(r for alarm in found if (r := _alarm(alarm, endpoint)) is not None)


def _alarm(alarm: dict[str, Any], endpoint: str) -> AlarmReading | None:
    stats = [q["MetricStat"] for q in alarm.get("Metrics", []) if "MetricStat" in q]
    dimensions = [d for stat in stats for d in stat["Metric"].get("Dimensions", [])]
    dimensions += alarm.get("Dimensions", [])
    values = {d["Name"]: d["Value"] for d in dimensions}
    if values.get("EndpointName") != endpoint:
        return None
    threshold, unit = alarm.get("Threshold", 0.0), ""
    if stats:
        names = sorted({stat["Metric"]["MetricName"] for stat in stats})
        metric, statistic = names[0], stats[0]["Stat"]
        if len(stats) > 1 or any("Expression" in q for q in alarm["Metrics"]):
            rate = [n for n in names if n in _ERROR_RATES]
            metric = _ERROR_RATES[rate[0]] if rate and names == sorted(["Invocations", *rate]) \
                else " and ".join(names)
            statistic = "Rate" if rate else "formula"
    else:
        metric = alarm["MetricName"]
        statistic = alarm.get("ExtendedStatistic") or alarm.get("Statistic", "")
    simple = statistic not in ("formula", "Rate", "SampleCount") and not statistic.startswith("PR(")
    if simple and any(f.name == metric and f.unit == "Microseconds" for f in metrics()):
        threshold, unit = milliseconds_from_microseconds(threshold), "ms"
    above = alarm.get("ComparisonOperator", "").startswith("GreaterThan")
    return AlarmReading(
        name=alarm["AlarmName"], metric=metric, statistic=statistic if above else f"{statistic} <",
        threshold=threshold, unit=unit, state=alarm.get("StateValue", "INSUFFICIENT_DATA"),
        since=alarm.get("StateUpdatedTimestamp"), variant=values.get("VariantName", ""),
        reason=alarm.get("StateReason", ""),
    )


def read_transitions(account: Account, alarms: tuple[AlarmReading, ...], start: datetime,
                     end: datetime) -> Iterator[AlarmTransition]:
    """Changes of state in the window; alarms that have not changed since are not asked for."""
    for alarm in alarms:
        if alarm.since is not None and alarm.since < start:
            continue
        items = account.pages("history of alarms", "cloudwatch", "describe_alarm_history",
                              "AlarmHistoryItems", AlarmName=alarm.name,
                              HistoryItemType="StateUpdate", StartDate=start, EndDate=end)
        if items is None:
            return
        for item in items:
            data = _json(item.get("HistoryData"))
            state = data.get("newState", {}).get("stateValue", "")
            before = data.get("oldState", {}).get("stateValue", "")
            if start <= item["Timestamp"] <= end:
                yield AlarmTransition(item["Timestamp"], alarm.name,
                                      state or item.get("HistorySummary", ""), before)


def alarm_thresholds(alarms: tuple[AlarmReading, ...] | None, variant: str
                     ) -> dict[tuple[str, str], Threshold]:
    """The tightest threshold by metric and statistic."""
    found: dict[tuple[str, str], Threshold] = {}
    for alarm in alarms or ():
        latency = (alarm.metric in ("ModelLatency", "OverheadLatency") and alarm.unit == "ms"
                   and _LATENCY_STATISTIC.fullmatch(alarm.statistic))
        if alarm.variant != variant or not (latency or alarm.statistic == "Rate"):
            continue
        key = (alarm.metric, alarm.statistic)
        if key not in found or alarm.threshold < found[key].value:
            found[key] = Threshold(alarm.threshold, "an alarm's threshold")
    return found


# -------------------------------------------------------------------------------------------- plan


def read_plan(account: Account, endpoint_arn: str) -> PlanFacts | None:
    """The plan in the template of the stack that owns the endpoint; ``None`` without one."""
    what = "the stack's plan"
    before = len(account.unknown)
    answer = account.ask(what, "cloudformation", "describe_stack_resources",
                         PhysicalResourceId=endpoint_arn)
    if answer is None:
        # An endpoint that no stack made is an error of CloudFormation's, and nothing unknown.
        if "does not exist" in account.unknown[-1].why:
            del account.unknown[before:]
        return None
    own = [r for r in answer["StackResources"] if r.get("PhysicalResourceId") == endpoint_arn]
    if not own:
        return None
    stack = own[0]["StackName"]
    template = account.ask(what, "cloudformation", "get_template", StackName=stack)
    if template is None:
        return None
    body = template["TemplateBody"]
    resources = (body if isinstance(body, Mapping) else _json(body)).get("Resources", {})
    resource = resources.get(own[0]["LogicalResourceId"], {})
    plan = resource.get("Metadata", {}).get(PLAN_METADATA)
    return plan_facts(stack, plan) if isinstance(plan, Mapping) else None


def plan_facts(stack: str, plan: Mapping[str, Any]) -> PlanFacts:
    """What the diagnosis needs of a plan's ``to_dict()``."""
    thresholds, targets = {}, {}
    load: dict[str, Any] = {}
    for decision in plan.get("decisions", []):
        inputs = decision.get("inputs", {})
        if "metric" in inputs and decision.get("value") is not None:
            thresholds[inputs["metric"], inputs["statistic"]] = float(decision["value"])
            if inputs["metric"] == "ModelLatency" and "target in ms" in inputs:
                targets[inputs["statistic"]] = float(inputs["target in ms"])
        if decision.get("name") in ("instances_at_peak", "scaling_target"):
            load = {**inputs, **load}
    return PlanFacts(stack=stack, thresholds=thresholds, targets=targets,
                     peak_tps=load.get("peak TPS"), tps_per_instance=load.get("TPS per instance"),
                     safety_factor=load.get("safety factor"))


def _json(text: Any) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except (TypeError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
