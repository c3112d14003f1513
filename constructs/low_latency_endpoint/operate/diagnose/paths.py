"""What callers in each client zone see of their path, as the canary measured it."""

from __future__ import annotations

from collections.abc import Iterator

from ...account.canary import ZoneReading
from ...account.metrics import Series, median
from ...facts.canary_metrics import PATH_MINUTES
from ...report.numbers import milliseconds, percent
from .findings import Evidence, Finding, finding
from .measurements import Measurements

_OFTEN = 0.05
"""Share of the runs from which a name answers out of the zone, and from which answers are lost."""


def paths(m: Measurements) -> Iterator[Finding]:
    """A slow path, a lost zone, a name that leads out of the zone: one finding each, with the zones."""
    slow = [each for each in m.canary if len(_slow(each)) >= PATH_MINUTES]  # as its alarm has it
    if slow:
        yield finding("LLD802", *(_slow_words(m, each, slow) for each in slow), at=_zones(slow))
    lost = [each for each in m.canary if _share(each.unreachable) >= _OFTEN]
    if lost:
        shown = (
            Evidence(
                f"{percent(_share(each.unreachable))} of the canary's runs in {each.zone} got no "
                "answer",
                min(each.unreachable.points),
                max(each.unreachable.points) + m.period,
            )
            for each in lost
        )
        yield finding("LLD803", *shown, at=_zones(lost))
    abroad = [each for each in m.canary if _share(each.out_of_zone) >= _OFTEN]
    if abroad:
        words = (
            f"in {each.zone} the runtime's name gave another zone's address in "
            f"{percent(_share(each.out_of_zone))} of the canary's runs"
            for each in abroad
        )
        yield finding("LLD804", *words, risk=True, at=_zones(abroad))


def _slow(reading: ZoneReading) -> Series:
    points = reading.connect.points.items()
    return Series({time: value for time, value in points if value > reading.longest_connect})


def _slow_words(m: Measurements, reading: ZoneReading, slow: list[ZoneReading]) -> Evidence:
    times = _slow(reading).times
    took = reading.connect.only(times).median or 0.0
    others = [
        value
        for each in m.canary
        if each not in slow and (value := each.connect.only(times).median) is not None
    ]
    beside = f", from the other zones {milliseconds(median(others) or 0)}" if others else ""
    return Evidence(
        f"connecting from {reading.zone} takes {milliseconds(took)} (median){beside}; the limit is "
        f"{milliseconds(reading.longest_connect)}",
        times[0],
        times[-1] + m.period,
    )


def _share(runs: Series) -> float:
    return runs.mean or 0.0


def _zones(readings: list[ZoneReading]) -> str:
    return ", ".join(each.zone for each in readings)
