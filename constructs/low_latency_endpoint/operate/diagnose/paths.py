"""What callers in each client zone see of their path, as the canary measured it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from ...account.canary import ZoneReading
from ...account.metrics import Series, median
from ...facts.canary_metrics import PATH_MINUTES
from ...report.numbers import milliseconds, percent
from . import thresholds as const
from .findings import Evidence, Finding, finding
from .measurements import Measurements
from .view import runs

_OFTEN = 0.05
"""Share of the runs from which a name answers out of the zone, and from which answers are lost."""
_SHOWN = 3
"""Stretches of one zone that a finding shows, the longest."""


def paths(m: Measurements) -> Iterator[Finding]:
    """A slow path, a lost zone, a name that leads out of the zone: one finding each, with the zones."""
    slow = [reading for reading in m.canary if _is_slow(m, reading)]
    if slow:
        shown = [evidence for reading in slow for evidence in _slow_path(m, reading, slow)]
        yield finding("LLD802", *shown, at=_zones(slow))
    lost = [reading for reading in m.canary if _share(reading.unreachable) >= _OFTEN]
    if lost:
        shown = [evidence for reading in lost for evidence in _no_answer(m, reading)]
        yield finding("LLD803", *shown, at=_zones(lost))
    abroad = [reading for reading in m.canary if _share(reading.out_of_zone) >= _OFTEN]
    if abroad:
        shown = [evidence for reading in abroad for evidence in _out_of_zone(m, reading)]
        yield finding("LLD804", *shown, risk=True, at=_zones(abroad))


def _is_slow(m: Measurements, reading: ZoneReading) -> bool:
    """Whether the path was slow for as long as its alarm takes."""
    stretches = _stretches(m, _slow(reading))
    return any(len(stretch) >= PATH_MINUTES for stretch in stretches)


def _slow(reading: ZoneReading) -> list[datetime]:
    points = reading.connect.points.items()
    return sorted(time for time, took in points if took > reading.longest_connect)


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

    return _dated(m, reading.zone, reading.connect, _slow(reading), words)


def _no_answer(m: Measurements, reading: ZoneReading) -> Iterator[Evidence]:
    def words(times: list[datetime]) -> str:
        share = percent(_share_within(reading.unreachable, times))
        return f"{share} of the canary's runs in {reading.zone} got no answer"

    return _dated(m, reading.zone, reading.unreachable, _above_zero(reading.unreachable), words)


def _out_of_zone(m: Measurements, reading: ZoneReading) -> Iterator[Evidence]:
    def words(times: list[datetime]) -> str:
        share = percent(_share_within(reading.out_of_zone, times))
        return (
            f"in {reading.zone} the runtime's name gave another zone's address in {share} of the "
            "canary's runs"
        )

    return _dated(m, reading.zone, reading.out_of_zone, _above_zero(reading.out_of_zone), words)


def _dated(
    m: Measurements,
    zone: str,
    measured: Series,
    bad: list[datetime],
    words: Callable[[list[datetime]], str],
) -> Iterator[Evidence]:
    """Evidence of the longest bad stretches by time, then of the others, and since when it is well."""
    stretches = _stretches(m, bad)
    longest = sorted(stretches, key=len, reverse=True)[:_SHOWN]
    for stretch in sorted(longest):
        yield Evidence(
            words(stretch) + _over(m, measured, stretch), stretch[0], stretch[-1] + m.period
        )
    others = [stretch for stretch in stretches if stretch not in longest]
    if others:
        text = f"and {len(others)} shorter stretches in {zone}"
        yield Evidence(text, others[0][0], others[-1][-1] + m.period)


def _over(m: Measurements, measured: Series, stretch: list[datetime]) -> str:
    """That a stretch ended, where it was well for long enough to say so."""
    since = [time for time in measured.times if time > stretch[-1]]
    if len(since) < const.PERIODS:
        return ""
    return f"; this ended at {m.clock(stretch[-1] + m.period)}"


def _stretches(m: Measurements, bad: list[datetime]) -> list[list[datetime]]:
    """Bad times without a long gap between them; single ones only where there are no others."""
    stretches = [
        [time for time in bad if first <= time <= last]
        for first, last in runs(bad, const.PERIODS * m.period)
    ]
    longer = [stretch for stretch in stretches if len(stretch) >= PATH_MINUTES]
    return longer or stretches


def _above_zero(series: Series) -> list[datetime]:
    return sorted(time for time, value in series.points.items() if value > 0)


def _share_within(series: Series, times: list[datetime]) -> float:
    """Share of the runs from the first to the last of these times."""
    inside = [time for time in series.times if times[0] <= time <= times[-1]]
    return _share(series.only(inside))


def _share(answers: Series) -> float:
    return answers.mean or 0.0


def _zones(readings: list[ZoneReading]) -> str:
    return ", ".join(reading.zone for reading in readings)
