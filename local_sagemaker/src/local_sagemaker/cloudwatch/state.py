"""What CloudWatch remembers, per account and region."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from moto.cloudwatch.models import cloudwatch_backends

from ..promql.series import SeriesStore
from .metric_store import MetricStore

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
        found = backend.__dict__.get("local_aws_state")
        if found is None:
            found = CloudWatchState(backend.account_id, backend.region_name, backend.alarms)
            backend.local_aws_state = found
        return found


def state_at(place: tuple[str, str]) -> CloudWatchState:
    return state_of(cloudwatch_backends[place[0]][place[1]])


def all_states() -> list[CloudWatchState]:
    return [
        state_of(backend)
        for account in list(cloudwatch_backends.values())
        for backend in list(account.values())
    ]


def now() -> datetime:
    return datetime.now(UTC)
