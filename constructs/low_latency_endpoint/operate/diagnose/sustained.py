"""For how long a metric must be above its limit: as the account's alarms on it say, else as the library's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

from ...account.alarms import USUAL_WINDOW, AlarmReading
from ...plan.alarm_windows import AlarmWindow


def windows_of(alarms: Sequence[AlarmReading]) -> list[AlarmWindow]:
    """The windows of these alarms; without any, the library's default."""
    return list(dict.fromkeys(alarm.window for alarm in alarms)) or [USUAL_WINDOW]


def conditions(limit: float, alarms: Sequence[AlarmReading]) -> Iterator[tuple[float, AlarmWindow]]:
    """What is slow, by value and window; a target has the window of the tightest alarm."""
    yield limit, windows_of(alarms)[0]
    for alarm in alarms:
        yield max(limit, alarm.threshold), alarm.window


def in_periods(window: AlarmWindow, period: timedelta) -> AlarmWindow:
    """The same in the diagnosis' periods, all of which must be late where the alarm's are longer."""
    seconds = round(period.total_seconds())
    length = max(window.seconds // seconds, 1)
    return AlarmWindow(seconds, length * window.evaluation_periods, length * window.datapoints)


def lasts(late: Sequence[bool], window: AlarmWindow) -> bool:
    """Whether as many periods on end are late as the window wants, whatever their length.

    >>> usual = AlarmWindow(60, 3, 2)
    >>> lasts([True, False, True], usual), lasts([True, False, False, True], usual)
    (True, False)
    """
    spans = (late[first : first + window.evaluation_periods] for first in range(len(late)))
    return any(sum(span) >= window.datapoints for span in spans)


def fewest_periods(window: AlarmWindow, period: timedelta) -> int:
    """With how many periods a metric may be above its limit for long enough, if it is in each.

    >>> fewest_periods(AlarmWindow(60, 3, 2), timedelta(minutes=1))
    2
    """
    count = 1
    while not _may_last(count, window, period):
        count += 1
    return count


def _may_last(count: int, window: AlarmWindow, period: timedelta) -> bool:
    if window.seconds <= period.total_seconds():
        return lasts([True] * count, window)
    return lasts_over(lambda first, end: True, count, window, period)


def lasts_over(
    is_late: Callable[[int, int], bool], count: int, window: AlarmWindow, period: timedelta
) -> bool:
    """The same of an alarm whose periods may be longer, and slide.

    ``is_late`` judges so many periods of the diagnosis together, from one index to another.
    """
    length = max(round(window.seconds / period.total_seconds()), 1)
    whole = range(min(length, count), count + 1)
    late = {end: is_late(max(end - length, 0), end) for end in whole}
    spans = [[end - n * length for n in range(window.evaluation_periods)] for end in whole]
    return any(sum(late.get(end, False) for end in ends) >= window.datapoints for ends in spans)
