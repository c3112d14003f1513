"""The API operations on alarms."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from moto.cloudwatch.exceptions import (
    InvalidFormat,
    InvalidParameterCombination,
    ResourceNotFound,
    ValidationError,
)

from . import metric_alarms, query_alarms
from .composite_alarms import RuleError, parse_rule
from .metric_api import paged
from .metric_store import as_seconds
from .state import INITIAL_REASON, AlarmRecord, CloudWatchState

Request = dict[str, Any]
_PAGE = 50


def put_metric_alarm(state: CloudWatchState, request: Request) -> None:
    """PutMetricAlarm: create or replace; a PromQL alarm too."""
    kind = query_alarms if request.get("EvaluationCriteria") is not None else metric_alarms
    problem = kind.problem_of(request)
    if problem:
        raise ValidationError(problem)
    _put(state, request, composite=False)


def put_composite_alarm(state: CloudWatchState, request: Request) -> None:
    """PutCompositeAlarm: create or replace."""
    if "ActionsSuppressor" in request:
        for name in ("ActionsSuppressorWaitPeriod", "ActionsSuppressorExtensionPeriod"):
            if name not in request:
                raise ValidationError(f"{name} is required when ActionsSuppressor is specified")
    try:
        children = parse_rule(request["AlarmRule"]).children
    except RuleError as error:
        raise ValidationError(f"AlarmRule is not valid: {error}") from error
    unknown = [name for name in children if state.find(name) is None]
    if unknown:
        raise ValidationError(
            f"Could not save the composite alarm as alarms [{', '.join(unknown)}] in the alarm "
            "rule do not exist"
        )
    _put(state, request, composite=True)


def _put(state: CloudWatchState, request: Request, *, composite: bool) -> None:
    name = request["AlarmName"]
    at = state.present()
    with state.lock:
        alarm = state.alarms.get(name)
        if alarm is not None and alarm.composite != composite:
            raise ValidationError(f"An alarm of another type is named {name} already")
        made = alarm is None
        if alarm is None:
            alarm = AlarmRecord(
                name,
                f"arn:aws:cloudwatch:{state.region}:{state.account}:alarm:{name}",
                composite,
                outcome={
                    # "For PromQL alarms, the alarm state is instead immediately set to OK."
                    "StateValue": "OK"
                    if request.get("EvaluationCriteria") is not None
                    else "INSUFFICIENT_DATA",
                    "StateReason": INITIAL_REASON,
                    "StateUpdatedTimestamp": at,
                    "StateTransitionedTimestamp": at,
                },
            )
            state.alarms[name] = alarm
        if alarm.settings.get("ActionsSuppressor") != request.get("ActionsSuppressor"):
            # "If you replace the action suppressor alarm, any active period is discarded."
            alarm.waiting_since = alarm.suppressor_left = alarm.pending = None
            alarm.suppressor_was_on = False
        if alarm.settings.get("EvaluationCriteria") != request.get("EvaluationCriteria"):
            alarm.differs_since = alarm.judged = None
        alarm.settings = {
            "ActionsEnabled": True,
            **{key: value for key, value in request.items() if key != "Tags"},
            "AlarmConfigurationUpdatedTimestamp": at,
        }
        what = "created" if made else "updated"
        data = json.dumps({"version": "1.0", "type": "Create" if made else "Update"})
        state.remember(alarm, at, "ConfigurationUpdate", f'Alarm "{name}" {what}', data)


def describe_alarms(state: CloudWatchState, request: Request) -> dict[str, Any]:
    """DescribeAlarms; without AlarmTypes only metric alarms, as AWS does."""
    related = request.keys() & {"ChildrenOfAlarmName", "ParentsOfAlarmName"}
    kinds = request.get("AlarmTypes") or ["MetricAlarm", *(["CompositeAlarm"] if related else [])]
    names, prefix = request.get("AlarmNames"), request.get("AlarmNamePrefix")
    if names and prefix:
        raise InvalidParameterCombination(
            "AlarmNames and AlarmNamePrefix cannot be specified together"
        )
    if related and len(request.keys() - {"MaxRecords", "NextToken"}) > 1:
        raise ValidationError(
            f"{', '.join(related)} cannot be specified together with other parameters"
        )
    with state.lock:
        found = sorted(state.alarms.values(), key=lambda alarm: alarm.name)
        tests: list[Callable[[AlarmRecord], bool]] = [
            lambda alarm: ("CompositeAlarm" if alarm.composite else "MetricAlarm") in kinds
        ]
        if names:
            tests.append(lambda alarm: alarm.name in names)
        if prefix:
            tests.append(lambda alarm: alarm.name.startswith(prefix))
        if request.get("StateValue"):
            tests.append(lambda alarm: alarm.state == request["StateValue"])
        if request.get("ChildrenOfAlarmName"):
            parent = state.alarms.get(request["ChildrenOfAlarmName"])
            names_below = _children(parent)
            tests.append(lambda alarm: alarm.name in names_below)
        if request.get("ParentsOfAlarmName"):
            child_name = request["ParentsOfAlarmName"]
            tests.append(lambda alarm: child_name in _children(alarm))
        if request.get("ActionPrefix"):
            tests.append(lambda alarm: _acts_on(alarm, request["ActionPrefix"]))
        found = [alarm for alarm in found if all(test(alarm) for test in tests)]
        page, token = paged(found, request, _PAGE)
        return {
            "MetricAlarms": [alarm.described() for alarm in page if not alarm.composite],
            "CompositeAlarms": [alarm.described() for alarm in page if alarm.composite],
            "NextToken": token,
        }


def _children(alarm: AlarmRecord | None) -> set[str]:
    if alarm is None or not alarm.composite:
        return set()
    named = parse_rule(alarm.settings["AlarmRule"]).children
    return {name.rpartition(":alarm:")[2] for name in named}


def _acts_on(alarm: AlarmRecord, prefix: str) -> bool:
    return any(action.startswith(prefix) for action in alarm.settings.get("AlarmActions", []))


def describe_alarms_for_metric(state: CloudWatchState, request: Request) -> dict[str, Any]:
    """DescribeAlarmsForMetric: alarms on exactly this metric; never those on metric math."""
    wanted = {d["Name"]: d["Value"] for d in request.get("Dimensions", [])}

    def matches(settings: dict[str, Any]) -> bool:
        dimensions = {d["Name"]: d["Value"] for d in settings.get("Dimensions", [])}
        optional = ("Statistic", "ExtendedStatistic", "Period", "Unit")
        return (
            settings.get("Namespace") == request["Namespace"]
            and settings.get("MetricName") == request["MetricName"]
            and dimensions == wanted
            and all(request.get(n) in (None, settings.get(n)) for n in optional)
        )

    with state.lock:
        found = [a.described() for a in state.alarms.values() if matches(a.settings)]
    return {"MetricAlarms": found}


def delete_alarms(state: CloudWatchState, request: Request) -> None:
    """DeleteAlarms: at most one composite at a time, as AWS; a missing one is no error."""
    with state.lock:
        names = request.get("AlarmNames", [])
        found = [state.alarms[name] for name in names if name in state.alarms]
        if sum(alarm.composite for alarm in found) > 1:
            raise ValidationError("You can delete only one composite alarm in one operation")
        _check_unused(state, found)
        for alarm in found:
            state.remember(
                alarm,
                state.present(),
                "ConfigurationUpdate",
                f'Alarm "{alarm.name}" deleted',
                json.dumps({"version": "1.0", "type": "Delete"}),
            )
            del state.alarms[alarm.name]


def _check_unused(state: CloudWatchState, deleted: list[AlarmRecord]) -> None:
    """Refuse to delete what a composite that stays depends on, as AWS does."""
    names = {alarm.name for alarm in deleted}
    for composite in state.alarms.values():
        if not composite.composite or composite.name in names:
            continue
        children = map(state.find, parse_rule(composite.settings["AlarmRule"]).children)
        used = sorted({child.name for child in children if child is not None} & names)
        if used:
            raise ValidationError(
                f"Cannot delete {','.join(used)} as there are composite alarm(s) depending on "
                f"{'it' if len(used) == 1 else 'them'}."
            )


def describe_alarm_history(state: CloudWatchState, request: Request) -> dict[str, Any]:
    """DescribeAlarmHistory; without AlarmTypes only metric alarms, as AWS does."""
    kinds = request.get("AlarmTypes") or ["MetricAlarm"]
    name, item = request.get("AlarmName"), request.get("HistoryItemType")
    # In seconds: the protocols give times with and without a zone, or as numbers.
    start, end = (
        None if request.get(name) is None else as_seconds(request[name])
        for name in ("StartDate", "EndDate")
    )
    with state.lock:
        found = [
            line
            for line in state.history
            if line["AlarmType"] in kinds
            and name in (None, line["AlarmName"])
            and item in (None, line["HistoryItemType"])
            and (start is None or as_seconds(line["Timestamp"]) >= start)
            and (end is None or as_seconds(line["Timestamp"]) <= end)
        ]
    # Stable: lines of one moment stay in the order in which they happened.
    found.sort(key=lambda line: line["Timestamp"])
    if request.get("ScanBy") != "TimestampAscending":
        found.reverse()
    page, token = paged(found, request, 100)
    return {"AlarmHistoryItems": page, "NextToken": token}


def _switch_actions(state: CloudWatchState, request: Request, *, enabled: bool) -> None:
    with state.lock:
        for name in request.get("AlarmNames", []):
            if name in state.alarms:
                state.alarms[name].settings["ActionsEnabled"] = enabled


enable_alarm_actions = partial(_switch_actions, enabled=True)
disable_alarm_actions = partial(_switch_actions, enabled=False)


def check_set_state(state: CloudWatchState, request: Request) -> AlarmRecord:
    """Hold a SetAlarmState request against what AWS accepts; gives the alarm."""
    try:
        json.loads(request.get("StateReasonData") or "{}")
    except ValueError as error:
        raise InvalidFormat("StateReasonData is not JSON") from error
    alarm = state.alarms.get(request["AlarmName"])
    if alarm is None:
        raise ResourceNotFound(f"Unknown alarm {request['AlarmName']}")
    return alarm
