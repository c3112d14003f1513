"""How a deployed endpoint stands now: requests, alarms, and what differs from its template."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ..account.alarms import AlarmReading, metric_alarms, read_alarms
from ..account.calls import Account
from ..account.deployed_endpoints import ListedEndpoint
from ..account.drift import Drift, drifts
from ..account.endpoints import existing_endpoint
from ..account.metrics import read_queries, variant_query
from ..account.stacks import stack_endpoints
from ..report.json_text import json_safe

_WINDOW = timedelta(hours=1)


@dataclass(frozen=True)
class Standing:
    """``None`` is what could not be read; ``requests`` are those of the last hour."""

    requests: float | None
    alarms: tuple[AlarmReading, ...] | None
    drifts: tuple[Drift, ...] | None

    @property
    def firing(self) -> list[AlarmReading]:
        return [alarm for alarm in self.alarms or () if alarm.state == "ALARM"]

    @property
    def states(self) -> dict[str, int] | None:
        """How many alarms are in each state."""
        if self.alarms is None:
            return None
        found = [alarm.state for alarm in self.alarms]
        return {state: found.count(state) for state in ("ALARM", "OK", "INSUFFICIENT_DATA")}

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe data, of the alarms those that are on."""
        return {
            "requests_last_hour": self.requests,
            "alarm_states": self.states,
            "in_alarm": [
                {
                    "name": alarm.name,
                    "title": alarm.title,
                    "since": alarm.since.isoformat() if alarm.since else None,
                }
                for alarm in self.firing
            ],
            "drift": None if self.drifts is None else list(map(json_safe, self.drifts)),
        }


def standing(account: Account, listed: ListedEndpoint, now: datetime) -> Standing:
    """What is refused is :attr:`.Account.unknown`."""
    endpoint = existing_endpoint(account, listed.endpoint)
    queries = [
        variant_query(endpoint.name, name, "Invocations", "Sum") for name in endpoint.variants
    ]
    end = now.replace(second=0, microsecond=0)
    series = account.known(
        "requests", read_queries, queries, end - _WINDOW, end, timedelta(minutes=1)
    )
    alarms = account.known("alarms", metric_alarms)
    before = len(account.unknown)
    stated = account.known("the stack's template", stack_endpoints, listed.stack) or ()
    mine = (each for each in stated if each.name == listed.endpoint)
    differ = [drift for each in mine for drift in drifts(account, listed.stack, each)]
    readings = None if alarms is None else read_alarms(alarms, endpoint)
    return Standing(
        None if series is None else sum(each.sum for each in series.values()),
        None
        if readings is None
        else tuple(reading for reading in readings if not reading.of_scaling),
        tuple(differ) if differ or len(account.unknown) == before else None,
    )
