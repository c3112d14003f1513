"""What CloudWatch remembers, per account and region; changes of an alarm's state and what they do."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from moto.cloudwatch.models import cloudwatch_backends
from moto.sns.models import sns_backends

from ..permissions.evaluator import Principal
from ..permissions.gate import is_enforced
from ..permissions.judge import check_service
from ..permissions.principals import each_backend
from ..permissions.requests import Right
from ..promql.series import SeriesStore
from .metric_store import MetricStore, reason_data

INITIAL_REASON = "Unchecked: Initial alarm creation"


@dataclass
class AlarmRecord:
    """An alarm: what was put, and what evaluation made of it."""

    name: str
    alarm_arn: str
    composite: bool
    settings: dict[str, Any] = field(default_factory=dict)
    outcome: dict[str, Any] = field(default_factory=dict)
    suppressor_was_on: bool = False
    suppressor_left: datetime | None = None
    waiting_since: datetime | None = None
    pending: dict[str, Any] | None = None
    differs_since: datetime | None = None
    judged: datetime | None = None

    @property
    def by_query(self) -> bool:
        return "EvaluationCriteria" in self.settings

    @property
    def state(self) -> str:
        """OK, ALARM or INSUFFICIENT_DATA."""
        return str(self.outcome["StateValue"])

    def described(self) -> dict[str, Any]:
        """Give the alarm as DescribeAlarms does."""
        return {
            "AlarmName": self.name,
            "AlarmArn": self.alarm_arn,
            **{name: [] for name in _LISTS},
            **self.settings,
            **self.outcome,
        }


_LISTS = ("OKActions", "AlarmActions", "InsufficientDataActions")


@dataclass
class OTelEnrichment:
    """The account's switch, without which what is kept cannot be asked for."""

    # whether queries find nothing while it is off: `RuntimeOptions.queries_need_enrichment`
    needed: bool = True
    # whether resource tags on telemetry are enabled, without which it cannot be started
    tagged: bool = False
    created: datetime | None = None
    updated: datetime | None = None
    filters: dict[str, Any] = field(default_factory=dict)

    @property
    def running(self) -> bool:
        return self.created is not None


@dataclass
class CloudWatchState:
    """Alarms, their history and what they did."""

    account: str
    region: str
    alarms: dict[str, AlarmRecord]
    metrics: MetricStore = field(default_factory=MetricStore)
    series: SeriesStore = field(default_factory=SeriesStore)
    """What containers told at their `/metrics`, for PromQL."""
    enrichment: OTelEnrichment = field(default_factory=OTelEnrichment)
    history: list[dict[str, Any]] = field(default_factory=list)
    published: list[dict[str, Any]] = field(default_factory=list)
    """Every action taken: alarm, action (an ARN), state, time."""
    clock: datetime | None = None
    """The moment of the last evaluation whose time was given; None follows the machine's clock."""
    lock: threading.RLock = field(default_factory=threading.RLock)

    def present(self) -> datetime:
        """Give the present, as evaluation was told last."""
        return self.clock or now()

    def queryable(self) -> SeriesStore:
        """Give the series that PromQL finds: none while enrichment is needed and off."""
        found = self.enrichment.running or not self.enrichment.needed
        return self.series if found else SeriesStore()

    def find(self, name_or_arn: str) -> AlarmRecord | None:
        name = name_or_arn.partition(":alarm:")[2] if ":alarm:" in name_or_arn else name_or_arn
        return self.alarms.get(name)

    def remember(
        self, alarm: AlarmRecord, at: datetime, kind: str, summary: str, data: str
    ) -> None:
        self.history.append(
            {
                "AlarmName": alarm.name,
                "AlarmType": "CompositeAlarm" if alarm.composite else "MetricAlarm",
                "Timestamp": at,
                "HistoryItemType": kind,
                "HistorySummary": summary,
                "HistoryData": data,
            }
        )


_lock = threading.Lock()


def state_of(backend: Any) -> CloudWatchState:
    """Give the state that hangs on one of moto's backends, so that a reset forgets it too."""
    with _lock:
        state = backend.__dict__.get("local_aws_state")
        if state is None:
            state = CloudWatchState(backend.account_id, backend.region_name, backend.alarms)
            backend.local_aws_state = state
        return state


def state_at(place: tuple[str, str]) -> CloudWatchState:
    return state_of(cloudwatch_backends[place[0]][place[1]])


def all_states() -> list[CloudWatchState]:
    return [state_of(backend) for backend in each_backend(cloudwatch_backends)]


def now() -> datetime:
    return datetime.now(UTC)


logger = logging.getLogger(__name__)

_WHO = Principal("cloudwatch.amazonaws.com")
_ACTIONS = {
    "OK": "OKActions",
    "ALARM": "AlarmActions",
    "INSUFFICIENT_DATA": "InsufficientDataActions",
}


def change_state(
    state: CloudWatchState, alarm: AlarmRecord, new: str, reason: str, data: str, at: datetime
) -> dict[str, Any] | None:
    """Give an alarm a state; the change as `act` takes it, or None, with the reason of the last."""
    old = dict(alarm.outcome)
    if new == old["StateValue"]:
        return None
    alarm.outcome.update(
        StateValue=new,
        StateReason=reason,
        StateReasonData=data,
        StateUpdatedTimestamp=at,
        StateTransitionedTimestamp=at,
    )
    history = {
        "version": "1.0",
        "oldState": {"stateValue": old["StateValue"], "stateReason": old["StateReason"]},
        "newState": {"stateValue": new, "stateReason": reason, "stateReasonData": json.loads(data)},
    }
    summary = f"Alarm updated from {old['StateValue']} to {new}"
    state.remember(alarm, at, "StateUpdate", summary, json.dumps(history))
    return {"OldStateValue": old["StateValue"], "NewStateReason": reason, "StateChangeTime": at}


def act(
    state: CloudWatchState, alarm: AlarmRecord, change: Mapping[str, Any], at: datetime
) -> None:
    """Take the actions of an alarm's present state."""
    enabled = alarm.settings["ActionsEnabled"]
    for action in (alarm.settings.get(_ACTIONS[alarm.state]) or ()) if enabled else ():
        problem = _publish(state, alarm, change, action)
        state.published.append(
            {
                "AlarmName": alarm.name,
                "Action": action,
                "StateValue": alarm.state,
                "Time": at,
                "Problem": problem,
            }
        )
        done = "Failed to execute" if problem else "Successfully executed"
        data = {
            "actionState": "Failed" if problem else "Succeeded",
            "stateUpdateTimestamp": at,
            "notificationResource": action,
            "error": problem,
        }
        state.remember(alarm, at, "Action", f"{done} action {action}", reason_data(**data))


def _publish(
    state: CloudWatchState, alarm: AlarmRecord, change: Mapping[str, Any], action: str
) -> str | None:
    """Send to an SNS topic; gives what went wrong."""
    if action.startswith("arn:aws:autoscaling:") and ":resource/sagemaker/" in action:
        return None  # a policy of Application Auto Scaling, on which the runtime acts
    parts = action.split(":")
    if len(parts) < 6 or parts[2] != "sns":
        return "the local AWS acts on SNS topics only"
    backend = sns_backends[parts[4]][parts[3]] if parts[4] == state.account else None
    if backend is None or action not in backend.topics:
        return "the topic does not exist"
    if is_enforced():
        key = backend.topics[action].kms_master_key_id
        if refused := _why_not_published(action, key, alarm.alarm_arn):
            return refused
    try:
        backend.publish(
            reason_data(**_message(state, alarm, change)),
            arn=action,
            subject=f'{alarm.state}: "{alarm.name}" in {state.region}'[:100],
        )
    except Exception as error:
        logger.exception("publishing to %s failed", action)
        return f"{type(error).__name__}: {error}"
    return None


def _message(
    state: CloudWatchState, alarm: AlarmRecord, change: Mapping[str, Any]
) -> dict[str, Any]:
    settings = alarm.settings
    message = {
        "AlarmName": alarm.name,
        "AlarmDescription": settings.get("AlarmDescription"),
        "AWSAccountId": state.account,
        "AlarmConfigurationUpdatedTimestamp": settings["AlarmConfigurationUpdatedTimestamp"],
        "NewStateValue": alarm.state,
        **change,
        "Region": state.region,
        "AlarmArn": alarm.alarm_arn,
        **{name: settings.get(name, []) for name in _ACTIONS.values()},
    }
    if alarm.composite:
        return {**message, "AlarmRule": settings["AlarmRule"]}
    told = {*message, "ActionsEnabled"}
    trigger = {n: v for n, v in settings.items() if n not in told and v is not None}
    return {**message, "Trigger": trigger}


def _why_not_published(topic: str, key: str, alarm: str) -> str | None:
    """Say why CloudWatch cannot publish an alarm; None when it can."""
    # Source: CloudWatch user guide, "Using Amazon CloudWatch alarms" and its key policy for topics;
    # the text about the key is https://repost.aws/knowledge-center/cloudwatch-configure-alarm-sns.
    _, _, _, region, account, _ = topic.split(":", 5)
    source = {"aws:sourceaccount": account, "aws:sourceowner": account, "aws:sourcearn": alarm}
    if reason := check_service(_WHO, Right("sns:Publish", topic, source), region):
        return (
            "CloudWatch Alarms is not authorized to perform: SNS:Publish on resource: "
            f"{topic} {reason}"
        )
    for action in ("kms:GenerateDataKey", "kms:Decrypt") if key else ():
        if check_service(_WHO, Right(action, key, source), region):
            return (
                "CloudWatch Alarms does not have authorization to access the SNS topic encryption "
                "key."
            )
    return None
