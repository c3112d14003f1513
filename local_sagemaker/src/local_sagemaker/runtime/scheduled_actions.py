"""Schedule expressions, and when the scheduled actions of Application Auto Scaling run.

Sources: Application Auto Scaling API reference, PutScheduledAction; user guide, "Schedule recurring
scaling actions using cron expressions". A rate counts from StartTime or else from the action's
creation, which the pages leave open. EventBridge user guide, "Cron expressions" and "Rate
expressions", for what an expression may be; of Application Auto Scaling the same is taken.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from ..cloudwatch.metric_store import as_seconds

_MINUTE = 60
_SECONDS = {"minute": 60, "hour": 3600, "day": 86_400}
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_YEARS = (1970, 2199)
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


_ONCE = "%Y-%m-%dT%H:%M:%S"
_NUMBER = r"(?:[0-9]{1,4}|[A-Za-z]{3})"
_ITEM = rf"(?:\*|{_NUMBER}(?:-{_NUMBER})?)(?:/[1-9][0-9]{{0,3}})?"
_LIST = rf"{_ITEM}(?:,{_ITEM})*"
_SOME_DAY = rf"(?:{_ITEM}|L|(?:[1-9]|[12][0-9]|3[01])W)"
_DAY = rf"\?|{_SOME_DAY}(?:,{_SOME_DAY})*"
_WEEKDAY = rf"\?|(?:{_ITEM}|{_NUMBER}?L)(?:,(?:{_ITEM}|{_NUMBER}?L))*|{_NUMBER}#[1-5]"
_CRON = re.compile(rf"{_LIST}\s+{_LIST}\s+(?:{_DAY})\s+{_LIST}\s+(?:{_WEEKDAY})\s+{_LIST}")


def is_schedule(text: str, *kinds: str) -> bool:
    """Say whether an expression is one of some kinds: at, cron, rate.

    Examples
    --------
    >>> rates = "rate(1 minute)", "rate(5 minutes)", "rate(1 minutes)", "rate(5 minute)", "rate(0 days)"
    >>> [is_schedule(text, "rate") for text in rates]
    [True, True, False, False, False]
    >>> is_schedule("cron(0 12 * * ? *)", "cron"), is_schedule("cron(0 12 * * * *)", "cron")
    (True, False)
    """
    match = re.fullmatch(r"(at|cron|rate)\((.*)\)", text)
    if match is None or match[1] not in kinds:
        return False
    if match[1] == "rate":
        rate = re.fullmatch(r"([1-9][0-9]{0,8}) (?:minute|hour|day)(s?)", match[2])
        return rate is not None and (rate[1] == "1") == (not rate[2])
    # "You can't specify the Day-of-month and Day-of-week fields in the same cron expression."
    if match[1] == "cron" and not (_CRON.fullmatch(match[2]) and match[2].count("?") == 1):
        return False
    try:
        if match[1] == "at":
            datetime.strptime(match[2], _ONCE)
        else:
            cron_matches(match[2], datetime(2000, 1, 1, tzinfo=UTC))
    except (ValueError, KeyError):
        return False
    return True


def is_due(action: Mapping[str, Any], at: float) -> bool:
    """Say whether an action runs in the minute that begins at a moment."""
    start, end = action.get("StartTime"), action.get("EndTime")
    if start is not None and at + _MINUTE <= as_seconds(start):
        return False
    if end is not None and at > as_seconds(end):
        return False
    kind, _, rest = action["Schedule"].partition("(")
    text = rest.rstrip(")")
    zone = action.get("Timezone")
    moment = datetime.fromtimestamp(at, ZoneInfo(zone) if zone else UTC)
    if kind == "at":
        once = datetime.strptime(text, _ONCE).replace(tzinfo=moment.tzinfo)
        return at <= once.timestamp() < at + _MINUTE
    if kind == "rate":
        number, unit = text.split()
        since = as_seconds(start or action["CreationTime"])
        passed = at - since // _MINUTE * _MINUTE
        return passed > 0 and passed % (int(number) * _SECONDS[unit.rstrip("s")]) == 0
    return cron_matches(text, moment)


def cron_matches(expression: str, moment: datetime) -> bool:
    """Say whether minutes, hours, days of month, months, days of week and years fit a moment.

    Examples
    --------
    >>> friday = datetime(2026, 11, 27, 7, 45, tzinfo=UTC)  # the fourth of the month, and its last
    >>> fits = lambda expression: cron_matches(expression, friday)
    >>> fits("45 7 ? * MON-FRI *"), fits("0/15 * * * ? 2026"), fits("45 7 ? * SAT,SUN *")
    (True, True, False)
    >>> fits("45 7 ? * 6#4 *"), fits("45 7 ? * FRIL *"), fits("45 7 L * ? *"), fits("45 7 28W * ? *")
    (True, True, False, True)
    """
    minute, hour, day, month, weekday, year = expression.split()
    # All are read, so that a field in another form is an error at any moment.
    days = [_fits_day(part, moment.date()) for part in day.split(",")]
    weekdays = [_fits_weekday(part, moment.date()) for part in weekday.split(",")]
    fields = [
        _fits(minute, moment.minute, 0, 59),
        _fits(hour, moment.hour, 0, 23),
        _fits(month, moment.month, 1, 12, _MONTHS),
        _fits(year, moment.year, *_YEARS),
        any(days),
        any(weekdays),
    ]
    return all(fields)


def _fits(field: str, value: int, low: int, high: int, names: Sequence[str] = ()) -> bool:
    """Say whether a value is in a field's list of values, ranges and steps.

    A step counts from the first value, and a range can go on after the last one: FRI-MON.
    """
    parts = [_fits_part(part, value, low, high, names) for part in field.upper().split(",")]
    return any(parts)


def _fits_part(part: str, value: int, low: int, high: int, names: Sequence[str]) -> bool:
    def number(text: str) -> int:
        return names.index(text) + 1 if text in names else int(text)

    values, _, step = part.partition("/")
    first, _, last = values.partition("-")
    if first in ("*", "?"):
        begin, end = low, high
    else:
        begin = number(first)
        end = number(last) if last else begin
        if step and not last:
            end = high
    if not (low <= begin <= high and low <= end <= high):
        raise ValueError(part)
    size = high - low + 1
    offset = (value - begin) % size
    return offset <= (end - begin) % size and offset % int(step or 1) == 0


def _fits_day(part: str, day: date) -> bool:
    """Say whether a day is one of the month's: L is the last, nW the working day nearest to n."""
    length = calendar.monthrange(day.year, day.month)[1]
    if part.upper() == "L":
        return day.day == length
    if not part.upper().endswith("W"):
        return _fits(part, day.day, 1, 31)
    wanted = day.replace(day=min(int(part[:-1]), length))
    shift = {5: -1, 6: 1}.get(wanted.weekday(), 0)
    nearest = wanted + timedelta(days=shift)
    if nearest.month != wanted.month:  # it stays in the month
        nearest = wanted - timedelta(days=2 * shift)
    return day == nearest


def _fits_weekday(part: str, day: date) -> bool:
    """Say whether a day is one of the week's: nL is the month's last, n#k its k-th."""
    number = day.isoweekday() % 7 + 1  # Sunday is 1
    name, _, nth = part.upper().partition("#")
    if nth:
        return _fits(name, number, 1, 7, _DAYS) and (day.day - 1) // 7 + 1 == int(nth)
    if name.endswith("L") and name != "L":
        length = calendar.monthrange(day.year, day.month)[1]
        return _fits(name[:-1], number, 1, 7, _DAYS) and day.day > length - 7
    return _fits("SAT" if name == "L" else name, number, 1, 7, _DAYS)
