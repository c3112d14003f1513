"""The alarms: all there, with the plan's thresholds, and with data to watch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from ..account_clock import account_now
from ..checking.account import Account
from ..checking.checks import check
from ..checking.results import Outcome, failed, passed, unknown, warned
from ..checking.stack import stack_ids, template_resources
from .context import EndpointContext, VerificationContext
from .drift import differences

__all__ = ["CHECKS", "ENDPOINT_CHECKS"]

ALARM = "AWS::CloudWatch::Alarm"
WINDOW = timedelta(hours=3)
PERIOD_SECONDS = 300

_ALARMS = "/AmazonCloudWatch/latest/monitoring/AlarmThatSendsEmail.html"
_METRICS = "/sagemaker/latest/dg/monitoring-cloudwatch.html"
_DEPLOY = "Deploy the stack again from its settings."
_COMPARED = ("Threshold", "ComparisonOperator", "EvaluationPeriods", "DatapointsToAlarm", "Period",
             "MetricName", "Namespace", "Statistic", "ExtendedStatistic", "TreatMissingData")
_IN_MICROSECONDS = "threshold in microseconds"


def described(account: Account, names: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """The metric alarms of these names that exist."""
    found: list[Mapping[str, Any]] = []
    ordered = sorted(names)
    for start in range(0, len(ordered), 100):  # DescribeAlarms takes 100 names at most
        found += account.every("cloudwatch", "describe_alarms", "MetricAlarms",
                               AlarmNames=ordered[start : start + 100],
                               AlarmTypes=["MetricAlarm"])
    return {each["AlarmName"]: each for each in found}


@check("LLV501", "The stack's alarms are as the template has them", source=_ALARMS)
def as_stated(context: VerificationContext) -> Iterator[Outcome]:
    """None deleted, changed or silenced by hand."""
    names = stack_ids(context.account, context.stack_name, ALARM)
    resources = template_resources(context.account, context.stack_name)
    found = described(context.account, list(names.values()))
    fine = 0
    for logical_id, name in sorted(names.items()):
        alarm = found.get(name)
        stated = resources.get(logical_id, {}).get("Properties") or {}
        if alarm is None:
            yield failed(f"{name} is gone", f"{_DEPLOY} CloudFormation makes it again once its "
                         "resource changes; or recreate the stack's alarms.", about=logical_id)
            continue
        problems = list(differences({key: stated[key] for key in _COMPARED if key in stated},
                                    alarm))
        if problems:
            yield failed(f"{name}: {'; '.join(problems)}",
                         "Set it back: CloudFormation does so once the resource changes.",
                         about=logical_id)
        elif not alarm.get("ActionsEnabled", True) and stated.get("ActionsEnabled", True):
            yield warned(f"{name} notifies nobody: its actions are off",
                         f"`aws cloudwatch enable-alarm-actions --alarm-names {name}`.",
                         about=logical_id)
        else:
            fine += 1
    if fine:
        yield passed(f"{fine} of {len(names)} alarms as stated")


@check("LLV502", "The alarms have the plan's thresholds", source=_METRICS)
def planned_thresholds(context: EndpointContext) -> Iterator[Outcome]:
    """One alarm per metric and statistic of the plan; a threshold of your own wins."""
    planned = [each for name, each in context.stated.plan.items() if name.startswith("alarm_")]
    if not context.stated.plan:
        yield unknown("the template has no plan to compare with")
        return
    stack = context.stack
    names = stack_ids(context.account, stack.stack_name, ALARM)
    resources = template_resources(context.account, stack.stack_name)
    mine = [(logical_id, alarm) for logical_id, alarm in (
        (logical_id, described(context.account, list(names.values())).get(name))
        for logical_id, name in names.items()) if alarm is not None
        and _dimensions(alarm).get("EndpointName") == context.stated.name
        and not _new_fleet_only(alarm)]
    for decision in planned:
        yield _threshold(decision, mine, resources)


def _threshold(decision: Mapping[str, Any], alarms: Sequence[tuple[str, Mapping[str, Any]]],
               resources: Mapping[str, Mapping[str, Any]]) -> Outcome:
    inputs = decision["inputs"]
    metric, statistic = inputs["metric"], inputs["statistic"]
    about = f"{metric} {statistic}"
    wanted = float(inputs[_IN_MICROSECONDS])
    found = [(logical_id, alarm) for logical_id, alarm in alarms
             if alarm.get("MetricName") == metric
             and statistic in (alarm.get("Statistic"), alarm.get("ExtendedStatistic"))]
    if not found:
        return warned("no alarm watches it", "Turned off in the settings, or deleted: see "
                      "LLV501.", about=about)
    thresholds = [alarm["Threshold"] for _, alarm in found]
    shown = ", ".join(f"{value / 1000:g} ms" for value in thresholds)
    if wanted in thresholds:
        return passed(f"above {shown}", about=about)
    stated = {resources.get(logical_id, {}).get("Properties", {}).get("Threshold")
              for logical_id, _ in found}
    if set(thresholds) <= stated:
        return passed(f"above {shown}, stated in the settings; the plan says "
                      f"{wanted / 1000:g} ms", about=about)
    return failed(f"above {shown}, the plan says {wanted / 1000:g} ms", _DEPLOY, about=about)


@check("LLV503", "The alarms have data, and none is in alarm", source=_METRICS)
def have_data(context: EndpointContext) -> Iterator[Outcome]:
    """What each alarm watches had data in the last three hours."""
    names = stack_ids(context.account, context.stack.stack_name, ALARM)
    mine = {name: alarm for name, alarm in
            described(context.account, list(names.values())).items()
            if _dimensions(alarm).get("EndpointName") == context.stated.name}
    for name, alarm in mine.items():
        if alarm.get("StateValue") == "ALARM" and not _tells_of_deployments(alarm):
            yield warned(f"{name} is in alarm: {alarm.get('StateReason', '')}",
                         f"`low-latency diagnose {context.stated.name}`.", about="state")
    watched = {name: _metrics(alarm) for name, alarm in mine.items()
               if not _new_fleet_only(alarm)}  # AWS names no data of those before an update
    silent = _without_data(context.account, watched)
    if not watched:
        yield warned("the stack has no alarms on this endpoint", "State latencies and "
                     "thresholds in the settings.")
    elif len(silent) == len(watched):
        yield warned(f"none of the {len(watched)} alarms has had data in the last 3 hours",
                     "Send requests to the endpoint, then verify again.")
    elif silent:
        yield warned(f"{len(watched) - len(silent)} of {len(watched)} alarms have data; not "
                     f"{', '.join(silent)}",
                     "Send requests, then verify again; a metric that stays silent is not "
                     "published for this endpoint.")
    else:
        yield passed(f"all {len(watched)} alarms have data")


def _without_data(account: Account,
                  watched: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """The alarms of which no metric has had data."""
    owners = [name for name, metrics in watched.items() for _ in metrics]
    queries = [
        {"Id": f"m{number}", "ReturnData": True, "MetricStat": {
            "Metric": metric, "Period": PERIOD_SECONDS, "Stat": "SampleCount"}}
        for number, metric in enumerate(
            metric for metrics in watched.values() for metric in metrics)
    ]
    end = account_now().replace(second=0, microsecond=0)
    seen: set[str] = set()
    for start in range(0, len(queries), 500):  # GetMetricData takes 500 at most
        results = account.every(
            "cloudwatch", "get_metric_data", "MetricDataResults", StartTime=end - WINDOW,
            EndTime=end + timedelta(minutes=1), MetricDataQueries=queries[start : start + 500])
        seen |= {owners[int(each["Id"][1:])] for each in results if each.get("Values")}
    return sorted(set(watched) - seen)


def _metrics(alarm: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if alarm.get("MetricName"):
        return [{key: alarm[key] for key in ("Namespace", "MetricName", "Dimensions")
                 if key in alarm}]
    return [query["MetricStat"]["Metric"] for query in alarm.get("Metrics", ())
            if "MetricStat" in query]


def _dimensions(alarm: Mapping[str, Any]) -> dict[str, str]:
    return {each["Name"]: each["Value"] for metric in _metrics(alarm)
            for each in metric.get("Dimensions", ())}


def _new_fleet_only(alarm: Mapping[str, Any]) -> bool:
    return "EndpointConfigName" in _dimensions(alarm)


def _tells_of_deployments(alarm: Mapping[str, Any]) -> bool:
    """Whether it compares the new fleet with the whole endpoint: no fault when it is on."""
    named = {any(each["Name"] == "EndpointConfigName" for each in metric.get("Dimensions", ()))
             for metric in _metrics(alarm)}
    return named == {True, False}


CHECKS = (as_stated,)
ENDPOINT_CHECKS = (planned_thresholds, have_data)
