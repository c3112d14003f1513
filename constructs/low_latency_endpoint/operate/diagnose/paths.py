"""What callers in each client zone see of their path, as the canary measured it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta

from ...account.canary import ZoneReading, answer_difference
from ...account.metrics import Series, median
from ...facts.canary_metrics import (
    DIFFERENCE_MINUTES,
    LONGEST_CONNECT_MS,
    OUT_OF_ZONE_MINUTES,
    PATH_MINUTES,
    UNREACHABLE_MINUTES,
)
from ...report.numbers import milliseconds, percent
from . import thresholds as const
from .findings import Evidence, Finding, finding
from .measurements import Measurements
from .view import runs

_SHOWN = 3
"""Stretches of one zone that a finding shows, the longest."""


def paths(m: Measurements) -> Iterator[Finding]:
    """One finding for each kind of trouble on a path, with its zones.

    Each is found where the canary's alarm on it would be on: one rule, of ``facts.canary_metrics``.
    """
    slow = [reading for reading in m.canary if reading.path_is_slow]
    if slow:
        shown = [evidence for reading in slow for evidence in _slow_path(m, reading, slow)]
        yield finding("LLD802", *shown, at=_zones(slow))
    lost = [reading for reading in m.canary if _rows(reading, "LLD803")]
    if lost:
        shown = [evidence for reading in lost for evidence in _no_answer(m, reading)]
        yield finding("LLD803", *shown, at=_zones(lost))
    refused = [reading for reading in m.canary if _rows(reading, "LLD807")]
    if refused:
        shown = [evidence for reading in refused for evidence in _refusals(m, reading)]
        yield finding("LLD807", *shown, at=_zones(refused))
    abroad = [reading for reading in m.canary if reading.leads_out]
    if abroad:
        shown = [evidence for reading in abroad for evidence in _out_of_zone(m, reading)]
        yield finding("LLD804", *shown, risk=True, at=_zones(abroad))
    silent = [reading for reading in m.canary if _rows(reading, "LLD805")]
    if silent:
        shown = [evidence for reading in silent for evidence in _silence(m, reading)]
        yield finding("LLD805", *shown, risk=True, at=_zones(silent))
    yield from _late_answers(m, slow + lost + refused)


def _slow_path(
    m: Measurements, reading: ZoneReading, slow: list[ZoneReading]
) -> Iterator[Evidence]:
    others = [other for other in m.canary if other not in slow]

    def words(times: list[datetime]) -> str:
        took = reading.connect.only(times).median or 0.0
        elsewhere = [other.connect.only(times).median for other in others]
        usual = median(value for value in elsewhere if value is not None)
        beside = "" if usual is None else f", from the other zones {milliseconds(usual)}"
        return (
            f"connecting from {reading.zone} takes {milliseconds(took)} (median){beside}; the limit "
            f"is {milliseconds(reading.longest_connect)}"
        )

    bad = _stretches(reading, reading.slow_connects, PATH_MINUTES)
    return _dated(m, reading, reading.connect, bad, words)


def _rows(reading: ZoneReading, cause: str) -> list[list[datetime]]:
    """Times without an answer to use as long as the alarm takes, of which most have this cause.

    Missed runs count, as the alarm counts them.
    """
    rows = reading.lasting({*reading.lost_runs, *reading.missed_runs}, UNREACHABLE_MINUTES)
    return [row for row in rows if _cause(reading, row) == cause]


def _cause(reading: ZoneReading, row: list[datetime]) -> str:
    """What most runs of a row were: missed, refused, or without an answer."""
    lost = set(reading.lost_runs).intersection(row)
    if 2 * len(lost) <= len(row):
        return "LLD805"
    return "LLD807" if 2 * len(lost.intersection(reading.refused_runs)) > len(lost) else "LLD803"


def _no_answer(m: Measurements, reading: ZoneReading) -> Iterator[Evidence]:
    def words(times: list[datetime]) -> str:
        unused, refused = reading.unreachable, reading.refused
        share = percent(_share_within(unused, times) - _share_within(refused, times))
        return f"{share} of the canary's runs in {reading.zone} got no answer"

    unanswered = set(reading.lost_runs).difference(reading.refused_runs)
    bad = _stretches(reading, unanswered, UNREACHABLE_MINUTES)
    return _dated(m, reading, reading.unreachable, bad, words)


def _refusals(m: Measurements, reading: ZoneReading) -> Iterator[Evidence]:
    def words(times: list[datetime]) -> str:
        share = percent(_share_within(reading.refused, times))
        return f"{share} of the canary's runs in {reading.zone} were refused"

    bad = _stretches(reading, reading.refused_runs, UNREACHABLE_MINUTES)
    return _dated(m, reading, reading.refused, bad, words)


def _out_of_zone(m: Measurements, reading: ZoneReading) -> Iterator[Evidence]:
    def words(times: list[datetime]) -> str:
        share = percent(_share_within(reading.out_of_zone, times))
        return (
            f"in {reading.zone} the runtime's name gave another zone's address in {share} of the "
            "canary's runs"
        )

    bad = _stretches(reading, reading.runs_abroad, *OUT_OF_ZONE_MINUTES)
    return _dated(m, reading, reading.out_of_zone, bad, words)


def _silence(m: Measurements, reading: ZoneReading) -> Iterator[Evidence]:
    """When a canary was silent, and whether it still is."""
    for row in _rows(reading, "LLD805")[-_SHOWN:]:
        start, end = row[0], row[-1] + m.period
        since = (
            f"since {m.clock(start)}" if reading.unreachable else f"since before {m.clock(start)}"
        )
        lasts = end >= m.end
        when = since if lasts else f"from {m.clock(start)} to {m.clock(end)}"
        words = f"the canary in {reading.zone} {'has been' if lasts else 'was'} silent {when}"
        yield Evidence(words, start, end)


def _late_answers(m: Measurements, known: list[ZoneReading]) -> Iterator[Finding]:
    """Answers that one zone waits for longer than another, where its path does not say why."""
    stated = [
        limit.value
        for variant in m.variants
        for (metric, _), limit in variant.thresholds.items()
        if metric == "OverheadLatency"
    ]
    difference = answer_difference(m.canary, max([LONGEST_CONNECT_MS, *stated]))
    if difference is None:
        return
    length = max(m.period, timedelta(minutes=DIFFERENCE_MINUTES))
    zones = [each for each in m.canary if each.zone in difference.slow and each not in known]
    shown = []
    for reading in zones:
        starts = difference.slow[reading.zone]
        times = [
            time
            for time in reading.answer.times
            if any(0 <= (time - s) / length < 1 for s in starts)
        ]
        connect = milliseconds(reading.connect.only(times).median)
        others = [other for other in m.canary if other.zone not in difference.slow]
        usual = median(
            v for v in (each.answer.only(times).median for each in others) if v is not None
        )
        words = (
            f"answers take {milliseconds(reading.answer.only(times).median)} from {reading.zone} "
            f"(median), from the other zones {milliseconds(usual)}; connecting takes {connect}; the "
            f"limit of the difference is {milliseconds(difference.limit)}"
        )
        shown.append(Evidence(words, starts[0], starts[-1] + length))
    if shown:
        yield finding("LLD806", *shown, at=_zones(zones))


def _dated(
    m: Measurements,
    reading: ZoneReading,
    measured: Series,
    stretches: list[list[datetime]],
    words: Callable[[list[datetime]], str],
) -> Iterator[Evidence]:
    """Evidence of the longest bad stretches by time, then of the others, and since when it is well."""
    longest = sorted(stretches, key=len, reverse=True)[:_SHOWN]
    for stretch in sorted(longest):
        yield Evidence(
            words(stretch) + _over(m, measured, stretch), stretch[0], stretch[-1] + m.period
        )
    others = [stretch for stretch in stretches if stretch not in longest]
    if others:
        text = f"and {len(others)} shorter stretches in {reading.zone}"
        yield Evidence(text, others[0][0], others[-1][-1] + m.period)


def _over(m: Measurements, measured: Series, stretch: list[datetime]) -> str:
    """That a stretch ended, where it was well for long enough to say so."""
    since = [time for time in measured.times if time > stretch[-1]]
    if len(since) < const.PERIODS:
        return ""
    return f"; this ended at {m.clock(stretch[-1] + m.period)}"


def _stretches(
    reading: ZoneReading, bad: Iterable[datetime], minutes: int, breaching: int = 0
) -> list[list[datetime]]:
    """Bad times without a long gap between them; those of an alarm, where there are such."""
    times = sorted(bad)
    stretches = [
        [time for time in times if first <= time <= last]
        for first, last in runs(times, const.PERIODS * reading.period)
    ]
    alarmed = [stretch for stretch in stretches if reading.alarms(stretch, minutes, breaching)]
    return alarmed or stretches


def _share_within(series: Series, times: list[datetime]) -> float:
    """Share of the runs from the first to the last of these times."""
    inside = [time for time in series.times if times[0] <= time <= times[-1]]
    return series.only(inside).mean or 0.0


def _zones(readings: list[ZoneReading]) -> str:
    return ", ".join(reading.zone for reading in readings)
