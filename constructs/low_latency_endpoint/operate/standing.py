"""How deployed endpoints stand now: requests, alarms, and what differs from their templates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from ..account.alarms import Alarm, AlarmReading, alarms_by_endpoint, read_alarms
from ..account.calls import Account, Unknown, side_by_side
from ..account.deployed_endpoints import ListedEndpoint
from ..account.drift import Drift, deleted_parts
from ..account.drift import drifts as drifted
from ..account.endpoints import endpoints_of_region
from ..account.metrics import FAILURES, failed_requests, read_queries, variant_query
from ..account.scaling import scalable_targets
from ..account.stacks import stack_endpoints
from ..report.json_text import json_safe

_WINDOW = timedelta(hours=1)
#: Endpoints in one request for metrics: of each several, of one variant or more.
_TOGETHER = 100
#: One endpoint of so many is ours, or more: it takes fewer calls to read the lists of the Region whole.
_OTHERS = 10


@dataclass(frozen=True)
class RequestCounts:
    """Of the last hour."""

    requests: float
    failed: float  # on SageMaker's side or the container's

    @property
    def failed_share(self) -> float | None:
        """``None`` without a request."""
        return self.failed / self.requests if self.requests else None


@dataclass(frozen=True)
class Standing:
    """``None`` is what could not be read; why is ``unknown``."""

    load: RequestCounts | None
    alarms: tuple[AlarmReading, ...] | None
    drifts: tuple[Drift, ...] | None
    compared: bool  # whether all of it could be compared; else there may be more drifts
    # the least instances by the scalable target of each variant that runs with fewer
    below_minimum: Mapping[str, int]
    unknown: tuple[Unknown, ...] = ()

    @property
    def firing(self) -> list[AlarmReading]:
        return [alarm for alarm in self.alarms or () if alarm.state == "ALARM"]

    @property
    def failed(self) -> float:
        """The share of the requests that failed; 0 where that is not known."""
        return (self.load and self.load.failed_share) or 0.0

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
            "requests_last_hour": self.load.requests if self.load else None,
            "failed_share_last_hour": self.load.failed_share if self.load else None,
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
            "drift_compared": self.compared,
            "below_minimum": dict(self.below_minimum),
            "unknown": [asdict(each) for each in self.unknown],
        }


def standings(
    account: Account, endpoints: Sequence[ListedEndpoint], now: datetime
) -> list[Standing]:
    """How each stands, in their order; what is refused is unknown of those that it is about."""
    region = account.view()
    region.whole_lists = len(endpoints_of_region(account)) <= _OTHERS * len(endpoints)
    alarms = region.known("alarms", alarms_by_endpoint)
    end = now.replace(second=0, microsecond=0)
    parts = [endpoints[at : at + _TOGETHER] for at in range(0, len(endpoints), _TOGETHER)]
    loads: dict[str, RequestCounts | Unknown] = {}
    for part in side_by_side(lambda some: _loads(account.view(), some, end), parts):
        loads |= part

    def read(listed: ListedEndpoint) -> Standing:
        view = region.view()
        view.unknown = [*listed.unknown, *region.unknown]
        return _standing(view, listed, alarms, loads.get(listed.endpoint))

    return side_by_side(read, endpoints)


def _standing(
    account: Account,
    listed: ListedEndpoint,
    alarms: Mapping[str, list[Alarm]] | None,
    load: RequestCounts | Unknown | None,
) -> Standing:
    """How one stands, with what was read of all of them."""
    if isinstance(load, Unknown):
        account.unknown.append(load)
        load = None
    readings = None
    if alarms is not None and listed.deployed is not None:
        read = read_alarms(alarms.get(listed.endpoint, ()), listed.deployed)
        readings = tuple(reading for reading in read if not reading.of_scaling)
    below = account.known("scaling", _below_minimum, listed)
    drifts, compared = _drifts(account, listed)
    return Standing(
        load=load,
        alarms=readings,
        drifts=drifts if drifts or compared else None,
        compared=compared,
        below_minimum=below or {},
        unknown=tuple(dict.fromkeys(account.unknown)),
    )


def _drifts(account: Account, listed: ListedEndpoint) -> tuple[tuple[Drift, ...], bool]:
    """What was changed by hand, or deleted, and whether that is all."""
    view = account.view()
    found: list[Drift] = []
    if listed.deployed is not None:
        found += view.known("what serves", deleted_parts, listed.deployed) or ()
    if listed.stack is not None:
        stated = view.known("the stack's template", stack_endpoints, listed.stack) or ()
        for stack_endpoint in stated:
            if stack_endpoint.name == listed.endpoint:
                found += drifted(view, listed.stack, stack_endpoint)
    account.unknown += view.unknown
    known = listed.deployed is not None and listed.stack is not None
    return tuple(found), known and not view.unknown


def _below_minimum(account: Account, listed: ListedEndpoint) -> dict[str, int]:
    targets = scalable_targets(account, listed.endpoint, [each.name for each in listed.variants])
    return {
        variant.name: targets[variant.name]["MinCapacity"]
        for variant in listed.variants
        if variant.is_below(targets.get(variant.name))
    }


def _loads(
    account: Account, endpoints: Iterable[ListedEndpoint], end: datetime
) -> dict[str, RequestCounts | Unknown]:
    """By endpoint, where its variants are known."""
    queries = {
        listed.endpoint: {
            (variant.name, metric): variant_query(listed.endpoint, variant.name, metric, "Sum")
            for variant in listed.variants
            for metric in ("Invocations", *FAILURES)
        }
        for listed in endpoints
        if listed.variants
    }
    every = [query for of in queries.values() for query in of.values()]
    series = account.known(
        "requests", read_queries, every, end - _WINDOW, end, timedelta(minutes=1)
    )
    if series is None:
        return dict.fromkeys(queries, account.unknown[0])
    loads: dict[str, RequestCounts | Unknown] = {}
    for name, of in queries.items():
        asked = [series[query].sum for (_, metric), query in of.items() if metric == "Invocations"]
        failed = [
            failed_requests({metric: series[of[variant, metric]] for metric in FAILURES}).sum
            for variant in {variant for variant, _ in of}
        ]
        loads[name] = RequestCounts(sum(asked), sum(failed))
    return loads
