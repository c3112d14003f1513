"""What a canary has published of each client zone, judged as its alarms judge it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from ..facts.canary_metrics import (
    ANSWER,
    CONNECT,
    DIFFERENCE_MINUTES,
    DIFFERENCE_PERIODS,
    DIMENSIONS,
    LONGEST_CONNECT_MS,
    NAMESPACE,
    OUT_OF_ZONE,
    OUT_OF_ZONE_MINUTES,
    PATH_MINUTES,
    REFUSED,
    UNREACHABLE,
    UNREACHABLE_MINUTES,
)
from .alarms import Alarm, alarm_dimensions, alarm_metrics, dimension_values, metric_alarms
from .calls import Account
from .metrics import Query, Series, median, metrics_of, read_queries

#: Of one run in each period, the median is what that run saw.
_STATISTICS = {
    CONNECT: "p50",
    ANSWER: "p50",
    UNREACHABLE: "Average",
    OUT_OF_ZONE: "Average",
    REFUSED: "Average",
}
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class ZoneReading:
    """One zone's canary in a time window: milliseconds, and shares of its runs.

    ``has_alarms`` is ``None`` where no zone of the endpoint has an alarm on its canary.
    """

    zone: str
    start: datetime
    end: datetime
    period: timedelta
    connect: Series = field(default_factory=Series)
    answer: Series = field(default_factory=Series)
    unreachable: Series = field(default_factory=Series)  # refused runs among them
    refused: Series = field(default_factory=Series)
    out_of_zone: Series = field(default_factory=Series)
    longest_connect: float = LONGEST_CONNECT_MS  # in milliseconds: its alarm's threshold
    difference: float | None = None  # the same of the alarm that compares zones, where there is one
    has_alarms: bool | None = None

    @property
    def slow_connects(self) -> list[datetime]:
        """When connecting took longer than the alarm allows."""
        points = self.connect.points.items()
        return sorted(time for time, took in points if took > self.longest_connect)

    @property
    def lost_runs(self) -> list[datetime]:
        """When no run of a period got an answer to use; of a minute, when one got none."""
        return self._all_runs(self.unreachable)

    @property
    def refused_runs(self) -> list[datetime]:
        """The same of the runs that were refused."""
        return self._all_runs(self.refused)

    def _all_runs(self, share_of_runs: Series) -> list[datetime]:
        least = 0.0 if self.period <= _MINUTE else 0.999
        return sorted(time for time, share in share_of_runs.points.items() if share > least)

    @property
    def runs_abroad(self) -> list[datetime]:
        """When the callers' name led out of the zone; of a period of runs, as often as the alarm takes."""
        minutes, breaching = OUT_OF_ZONE_MINUTES
        least = 0.0 if self.period <= _MINUTE else breaching / minutes - 0.001
        return sorted(time for time, share in self.out_of_zone.points.items() if share > least)

    @property
    def missed_runs(self) -> list[datetime]:
        """Periods without a run after the first: none where the zone's canary was removed.

        Without any run in the window all periods count, if an alarm still waits for them.
        """
        if self.has_alarms is False:
            return []
        times = self.unreachable.times
        if not times and not self.has_alarms:
            return []
        first = times[0] if times else self.start
        count = int((self.end - first) / self.period)
        expected = (first + number * self.period for number in range(count))
        return [time for time in expected if time not in self.unreachable.points]

    @property
    def silent_since(self) -> datetime | None:
        """Since when it has been silent for as long as its alarm waits; ``None`` while it runs."""
        missed = set(self.missed_runs)
        time = self.end - self.period
        while time in missed:
            time -= self.period
        since = time + self.period
        return since if self.end - since >= UNREACHABLE_MINUTES * _MINUTE else None

    @property
    def path_is_slow(self) -> bool:
        return self.alarms(self.slow_connects, PATH_MINUTES)

    @property
    def is_unreachable(self) -> bool:
        """Whether answers or runs were missing for as long as the alarm takes."""
        return self.alarms({*self.lost_runs, *self.missed_runs}, UNREACHABLE_MINUTES)

    @property
    def leads_out(self) -> bool:
        """Whether the name led out of the zone as often as the alarm takes."""
        return self.alarms(self.runs_abroad, *OUT_OF_ZONE_MINUTES)

    def lasting(self, bad: Iterable[datetime], minutes: int) -> list[list[datetime]]:
        """The bad periods in a row that last for so many minutes."""
        needed = _periods(minutes, self.period)
        rows: list[list[datetime]] = []
        for time in sorted(bad):
            if rows and time - rows[-1][-1] == self.period:
                rows[-1].append(time)
            else:
                rows.append([time])
        return [row for row in rows if len(row) >= needed]

    def alarms(self, bad: Collection[datetime], minutes: int, breaching: int = 0) -> bool:
        """Whether an alarm on the bad periods was on: so many minutes in a row, or so many of them."""
        reach = (_periods(minutes, self.period) - 1) * self.period
        needed = _periods(breaching or minutes, self.period)
        ordered = sorted(bad)
        return any(
            last - first <= reach
            for first, last in zip(ordered, ordered[needed - 1 :], strict=False)
        )


def _periods(minutes: int, period: timedelta) -> int:
    """So many minutes in periods of the window, one at least."""
    return max(1, math.ceil(minutes * _MINUTE / period))


@dataclass(frozen=True, slots=True)
class AnswerDifference:
    """Zones whose answers take longer than the fastest zone's by more than a limit."""

    limit: float
    slow: Mapping[str, Sequence[datetime]]  # by zone, the starts of medians


def answer_difference(
    readings: Sequence[ZoneReading], usual_limit: float
) -> AnswerDifference | None:
    """As the alarm that compares zones: medians of five minutes, three in a row.

    Without that alarm the limit is the usual one, and the slow zone's answers must take twice as
    long as the fastest's: medians of five requests differ by chance.
    """
    if len(readings) < 2:
        return None
    stated = readings[0].difference
    limit = usual_limit if stated is None else stated
    length = max(readings[0].period, DIFFERENCE_MINUTES * _MINUTE)
    medians = {each.zone: _medians(each, length) for each in readings}
    slow: dict[str, list[datetime]] = {}
    for time in sorted({time for of_zone in medians.values() for time in of_zone}):
        at_once = {zone: of_zone[time] for zone, of_zone in medians.items() if time in of_zone}
        fastest = min(at_once.values())
        least = fastest + (limit if stated is not None else max(limit, fastest))
        for zone, took in at_once.items():
            if took > least:
                slow.setdefault(zone, []).append(time)
    needed = _periods(DIFFERENCE_PERIODS * DIFFERENCE_MINUTES, length)
    late = sorted({time for times in slow.values() for time in times})
    rows = [
        late[at : at + needed]
        for at in range(len(late) - needed + 1)
        if late[at + needed - 1] - late[at] == (needed - 1) * length
    ]
    alarmed = {time for row in rows for time in row}
    found = {zone: [time for time in times if time in alarmed] for zone, times in slow.items()}
    found = {zone: times for zone, times in found.items() if times}
    return AnswerDifference(limit, found) if found else None


def _medians(reading: ZoneReading, length: timedelta) -> dict[datetime, float]:
    """The medians of answers by the start of their time, whole ones only."""
    values: dict[datetime, list[float]] = {}
    for time, took in reading.answer.points.items():
        start = time - (time - datetime(1970, 1, 1, tzinfo=UTC)) % length
        if reading.start <= start and start + length <= reading.end:
            values.setdefault(start, []).append(took)
    return {start: median(taken) or 0.0 for start, taken in values.items()}


def read_canary(
    account: Account, endpoint: str, start: datetime, end: datetime, period: timedelta
) -> tuple[ZoneReading, ...]:
    """By zone; empty where no canary has published within the last two weeks."""
    zones = _zones(account, endpoint)
    if not zones:
        return ()
    alarms = _alarms_of(account, endpoint)
    watched = {value for alarm in alarms for value in dimension_values(alarm, DIMENSIONS[1])}
    limits, difference = _limits(alarms), _difference(alarms)
    queries = [
        Query(
            ("", "zone", zone),
            metric,
            statistic,
            tuple(zip(DIMENSIONS, (endpoint, zone), strict=True)),
            namespace=NAMESPACE,
        )
        for zone in zones
        for metric, statistic in _STATISTICS.items()
    ]
    found = read_queries(account, queries, start, end, period)
    series = {(query.owner[2], query.metric): values for query, values in found.items()}
    return tuple(
        ZoneReading(
            zone,
            start,
            end,
            period,
            connect=series[zone, CONNECT],
            answer=series[zone, ANSWER],
            unreachable=series[zone, UNREACHABLE],
            refused=series[zone, REFUSED],
            out_of_zone=series[zone, OUT_OF_ZONE],
            longest_connect=limits.get(zone, LONGEST_CONNECT_MS),
            difference=difference,
            has_alarms=zone in watched if watched else None,
        )
        for zone in zones
    )


def _zones(account: Account, endpoint: str) -> list[str]:
    published = metrics_of(account, NAMESPACE, endpoint)
    named = (dict(dimensions) for name, dimensions in published if name == UNREACHABLE)
    return sorted({each[DIMENSIONS[1]] for each in named if DIMENSIONS[1] in each})


def _alarms_of(account: Account, endpoint: str) -> list[Alarm]:
    """The alarms on what the endpoint's canary publishes."""
    return [
        alarm
        for alarm in metric_alarms(account)
        if {each["Metric"].get("Namespace") for each in alarm_metrics(alarm)} == {NAMESPACE}
        and alarm_dimensions(alarm).get(DIMENSIONS[0]) == endpoint
    ]


def _names(alarm: Alarm) -> set[str]:
    return {str(each["Metric"]["MetricName"]) for each in alarm_metrics(alarm)}


def _limits(alarms: Iterable[Alarm]) -> dict[str, float]:
    """By zone, above which time to connect the alarm on its path is on."""
    return {
        alarm_dimensions(alarm).get(DIMENSIONS[1], ""): float(alarm["Threshold"])
        for alarm in alarms
        if _names(alarm) == {CONNECT}
    }


def _difference(alarms: Iterable[Alarm]) -> float | None:
    """By how much the answers of zones may differ."""
    limits = (float(alarm["Threshold"]) for alarm in alarms if _names(alarm) == {ANSWER})
    return next(limits, None)
