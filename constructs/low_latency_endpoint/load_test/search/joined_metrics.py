"""What CloudWatch has of the same endpoint and time: model latency, overhead, use, errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from ...account.calls import Account
from ...account.clock import WALL_CLOCK, AccountClock
from ...account.metrics import Query, Series, read_queries, variant_queries
from ...account.sessions import Unreadable
from ..engine.steps import StepResult
from .serving import ServingFleet

PERIOD = timedelta(minutes=1)
_WHOLE = 0.98  # of a minute: clocks differ, and a step may begin to count a little late
_COUNTED = 0.98  # share of the answers that CloudWatch must have counted to be complete
_PAUSES = (1.0, 2.0, 5.0, 10.0)
_SUMMED = {
    "Invocations",
    "Invocation4XXErrors",
    "Invocation5XXErrors",
    "InvocationModelErrors",
    "MidStreamErrors",
}
_LATENCIES = {"ModelLatency", "OverheadLatency"}


@dataclass(frozen=True)
class StepMetrics:
    """Values of a stretch of time, by metric and statistic such as ``ModelLatency.p99``."""

    # Latencies in milliseconds, utilization in percent of the whole instance, sums of requests per
    # second. ``shared`` when its minutes hold requests from before or after, too.

    values: Mapping[str, float] = field(default_factory=dict)
    shared: bool = False

    def get(self, name: str) -> float | None:
        """One value."""
        return self.values.get(name)

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        return {"values": dict(self.values), "shared_minutes": self.shared}


@dataclass(frozen=True)
class JoinedMetrics:
    """CloudWatch's series over the run."""

    # by metric and statistic; milliseconds and percent of the whole instance
    series: Mapping[tuple[str, str], Series] = field(default_factory=dict)
    complete: bool = False  # whether it had counted the answers when it was read
    unknown: tuple[str, ...] = ()  # what could not be read, and why
    # by which the account's time, the series', went beside that of the steps
    clock: AccountClock = WALL_CLOCK

    def of(self, result: StepResult) -> StepMetrics:
        """The values of a step's time that counts; its settling is the same load."""
        return self.during(result.started_at, result.ended_at, result.step.settle_seconds)

    def during(self, start: float, end: float, settling: float = 0.0) -> StepMetrics:
        """The values between two moments (epoch seconds, wall clock), from their minutes."""
        # Whole minutes are preferred, with ``settling`` before; else those that the stretch fills most.
        seconds = PERIOD.total_seconds()
        start, end = self.clock.account(start), self.clock.account(end)
        settling *= self.clock.speed
        overlap = {
            minute: min(end, minute + seconds) - max(start, minute)
            for minute in _minutes(start, end)
        }
        whole = {
            minute
            for minute, part in overlap.items()
            if part >= 0.5 * seconds
            and min(end, minute + seconds) - max(start - settling, minute) >= _WHOLE * seconds
        }
        most = max(overlap.values(), default=0.0)
        chosen = whole or {minute for minute, part in overlap.items() if part >= 0.5 * most}
        counts = self._only(("ModelLatency", "SampleCount"), chosen)
        values: dict[str, float] = {}
        for (metric, statistic), _ in self.series.items():
            if statistic == "SampleCount":
                continue
            found = self._only((metric, statistic), chosen)
            if not found:
                continue
            if metric in _SUMMED:
                value: float | None = found.sum * self.clock.speed / (seconds * len(chosen))
            elif statistic == "Maximum":
                value = found.max
            elif metric in _LATENCIES:
                value = found.weighted_mean(counts)
            else:
                value = found.mean
            if value is not None:
                values[f"{metric}.{statistic}"] = value
        return StepMetrics(values, bool(values) and not whole)

    def _only(self, key: tuple[str, str], minutes: set[float]) -> Series:
        points = self.series.get(key, Series()).points
        return Series({at: value for at, value in points.items() if at.timestamp() in minutes})

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        return {
            "period_seconds": PERIOD.total_seconds(),
            "complete": self.complete,
            "unknown": list(self.unknown),
            "series": {
                f"{metric}.{statistic}": {
                    at.astimezone(UTC).isoformat(): value
                    for at, value in sorted(each.points.items())
                }
                for (metric, statistic), each in self.series.items()
                if each
            },
        }


def read_joined(
    account: Account,
    endpoint: str,
    fleet: ServingFleet,
    *,
    start: float,
    end: float,
    answers: int,
    wait: float = 180.0,
    clock: AccountClock = WALL_CLOCK,
    progress: Callable[[str], None] = lambda text: None,
    sleep: Callable[[float], None] = time.sleep,
) -> JoinedMetrics:
    """Read CloudWatch over a run, once it has counted the run's answers."""
    if not all(each.variant for each in fleet.each):
        return JoinedMetrics(unknown=("CloudWatch: the variant is not known",), clock=clock)
    start, end = clock.account(start), clock.account(end)
    first = datetime.fromtimestamp(start - start % PERIOD.total_seconds(), UTC)
    last = datetime.fromtimestamp(end, UTC) + PERIOD
    queries = [
        query
        for each in fleet.each
        for query in variant_queries(endpoint, each.variant, each.instance_type)
    ]
    waited, pause, pauses = 0.0, 0.0, iter(_PAUSES)
    while True:
        try:
            found = read_queries(account, queries, first, last, PERIOD)
        except Unreadable as refusal:
            return JoinedMetrics(unknown=(f"CloudWatch: {refusal.why}",), clock=clock)
        series = _merged(found, fleet)
        counted = series.get(("Invocations", "Sum"), Series()).sum
        if counted >= _COUNTED * answers or waited >= wait:
            return JoinedMetrics(series, counted >= _COUNTED * answers, _unscaled(fleet), clock)
        progress(f"CloudWatch has counted {counted:,.0f} of {answers:,} requests")
        pause = min(next(pauses, pause), wait - waited)
        sleep(pause)
        waited += pause


def _merged(found: Mapping[Query, Series], fleet: ServingFleet) -> dict[tuple[str, str], Series]:
    """All variants as one: sums added, latencies weighted by requests, all else by instances."""
    weights = {each.variant: float(each.instances or 1) for each in fleet.each}
    counts = {
        query.owner[0]: values
        for query, values in found.items()
        if (query.metric, query.statistic) == ("ModelLatency", "SampleCount")
    }
    by_name: dict[tuple[str, str], dict[str, Series]] = {}
    for query, values in found.items():
        by_name.setdefault((query.metric, query.statistic), {})[query.owner[0]] = values
    merged = {}
    for (metric, statistic), parts in by_name.items():
        if len(parts) == 1:
            (merged[metric, statistic],) = parts.values()
            continue
        points = {}
        for at in {at for each in parts.values() for at in each.points}:
            here = {name: each.points[at] for name, each in parts.items() if at in each.points}
            if metric in _SUMMED or statistic == "SampleCount":
                points[at] = sum(here.values())
            elif statistic == "Maximum":
                points[at] = max(here.values())
            else:
                shares = {
                    name: counts.get(name, Series()).points.get(at, 0.0)
                    if metric in _LATENCIES
                    else weights[name]
                    for name in here
                }
                total = sum(shares.values())
                points[at] = (
                    sum(value * shares[name] for name, value in here.items()) / total
                    if total
                    else sum(here.values()) / len(here)
                )
        merged[metric, statistic] = Series(points)
    return merged


def _unscaled(fleet: ServingFleet) -> tuple[str, ...]:
    """Utilization is left out where nobody can say of how many processors it is."""
    if all(each.instance_type for each in fleet.each):
        return ()
    return ("CPU and GPU utilization: the instance type, by which they are scaled, is not known",)


def _minutes(start: float, end: float) -> list[float]:
    seconds = PERIOD.total_seconds()
    first = start - start % seconds
    return [first + number * seconds for number in range(int((end - first) // seconds) + 1)]
