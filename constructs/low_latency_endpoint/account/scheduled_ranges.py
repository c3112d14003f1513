"""Which minimum and maximum of a scalable target are due now, by its scheduled actions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from ..errors import ConfigurationError
from ..options.scaling import ScalingSchedule
from ..plan.schedule_times import clock_of_zone, minute_of_week, order_of
from ..plan.standing_ranges import CapacityRange, StandingRanges

_LIMITS = ("MinCapacity", "MaxCapacity")
#: How late an action may come, and how far this machine's clock may be ahead.
_LATE, _EARLY = timedelta(minutes=5), timedelta(minutes=1)
_WEEK = timedelta(weeks=1)


def due_ranges(
    target: Mapping[str, Any], now: datetime, updated: datetime | None
) -> list[CapacityRange] | None:
    """The ranges that may stand now of a scalable target that a template states.

    The one that the last scheduled action brought comes first, then the usual one: CloudFormation
    sends that whenever the template changes it. Of a schedule whose hours are not known, or which is
    younger than the last action by the time the stack was ``updated``, any of its ranges may stand.
    ``None`` where the template states numbers that are no literals.
    """
    try:
        standing = _standing(target)
    except (ConfigurationError, KeyError, TypeError, ValueError):
        return None
    return _by_the_hour(standing, now, updated) or [each.range for each in standing.all]


def nearest(ranges: Iterable[CapacityRange], found: CapacityRange) -> CapacityRange:
    """The range with the most limits of the one that was found; the first of several.

    >>> nearest([CapacityRange(5, 33), CapacityRange(4, 6)], CapacityRange(5, 6))
    CapacityRange(minimum=5, maximum=33)
    """
    return max(ranges, key=lambda each: sum(map(int.__eq__, each, found)))


def _standing(target: Mapping[str, Any]) -> StandingRanges:
    usual = CapacityRange(*(_whole(target[limit]) for limit in _LIMITS))
    actions = target.get("ScheduledActions") or ()
    return StandingRanges(usual, tuple(_action(n, each) for n, each in enumerate(actions)))


def _action(number: int, stated: Mapping[str, Any]) -> ScalingSchedule:
    """A scheduled action of the template; one without a time may come at any."""
    kind, _, time = str(stated.get("Schedule") or "rate(1 day)").partition("(")
    limits = stated["ScalableTargetAction"]
    least, most = (limits.get(limit) for limit in _LIMITS)
    return ScalingSchedule(
        name=str(number),
        time_zone=stated.get("Timezone"),
        min=None if least is None else _whole(least),
        max=None if most is None else _whole(most),
        **{kind: time.removesuffix(")")},
    )


def _whole(number: Any) -> int:
    """A literal of a template, which may be text."""
    return int(str(number))


def _by_the_hour(
    standing: StandingRanges, now: datetime, updated: datetime | None
) -> list[CapacityRange]:
    """The ranges that the clock allows; none where it decides nothing."""
    zones = {action.time_zone or "UTC" for action in standing.schedule}
    # What an action of one time has brought stays until a later one, which no week tells.
    week = None if order_of(standing.schedule).once else standing.of_week()
    clock = clock_of_zone(zones.pop()) if len(zones) == 1 else None
    if not week or clock is None:
        return []
    here = now.astimezone(clock)
    if here.utcoffset() != (now - _WEEK).astimezone(clock).utcoffset():
        return []  # a clock that changed may have skipped an action
    ran = _last_run(week, here)
    if updated is not None and here - updated < ran:
        return []
    lately = (_standing_at(week, moment) for moment in (here, here - _LATE, here + _EARLY))
    return list(dict.fromkeys((*lately, standing.usual)))


def _minute(moment: datetime) -> int:
    minutes = moment.toordinal() * 24 * 60 + moment.hour * 60 + moment.minute
    return minute_of_week(minutes)


def _last_run(week: Mapping[int, CapacityRange], moment: datetime) -> timedelta:
    """How long ago the last action ran."""
    ago = min((_minute(moment) - minute) % (7 * 24 * 60) for minute in week)
    return timedelta(minutes=ago)


def _standing_at(week: Mapping[int, CapacityRange], moment: datetime) -> CapacityRange:
    begin = max((minute for minute in week if minute <= _minute(moment)), default=max(week))
    return week[begin]
