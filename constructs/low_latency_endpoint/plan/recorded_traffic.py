"""Recorded traffic: a CSV file of times, or CloudWatch's sums of Invocations.

:func:`read_recording` reads a file for the load test, which sends it again.
:func:`read_recorded_traffic` gives its shape to the plan and the simulation.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..errors import rule
from ..errors.findings import shown
from ..errors.given_files import check_csv, json_value, text_of
from ..facts.limits import HIGHEST_RATE
from ..report.numbers import readable
from .dispersion import dispersion
from .traffic_shapes import SECONDS, Shape

RECORDED_TRAFFIC = rule(
    "LLS130",
    "recorded traffic cannot be read",
    fix="Give a CSV file of times and counts, or of the time of each request, or the JSON of "
    "aws cloudwatch get-metric-statistics for Invocations with --statistics Sum "
    "(docs/explanation/simulation.md).",
)

MOST_PERIODS = 200_000
#: Requests in a period: of fewer there are none, and more nobody sends.
COUNTED = (1e-6, 1e15)
#: Seconds of a period, and of all of a recording: two years.
_DAY = 24 * 3600
_SHORTEST, _LONGEST = 1e-6, 731 * _DAY
_FORMS = (
    "CSV with a time and a count, or the time of one request, in each line; or a CloudWatch answer "
    "with sums of Invocations"
)
_USUAL_PERIOD = 60.0  # seconds: CloudWatch's period for Invocations
#: Seconds since 1970, in the years 1989 to 2160: a number fits into no more than one unit. Dates may
#: be of years from 1970 on.
_FIRST_EPOCH, _LAST_EPOCH = 6e8, 6e9
_EPOCH_UNITS = {
    "seconds since 1970": 1.0,
    "milliseconds since 1970": 1e3,
    "microseconds since 1970": 1e6,
    "nanoseconds since 1970": 1e9,
}
_FROM_A_START = "seconds from a start"
_NO_COUNT = re.compile(r"/ ?s(ec)?\b|per.?sec|\b(rps|tps|qps|reqps|rate)\b|token", re.I)
_COMPACT_DAY = re.compile(r"(19|20)\d{6}")

Moment = float | datetime

_VALUE = (int, float, str)
_POINTS = {"Datapoints": [{"Timestamp": _VALUE, "Sum": _VALUE}]}
_SERIES = {
    "MetricDataResults": [
        {"Id?": str, "StatusCode?": str, "Timestamps?": [_VALUE], "Values?": [_VALUE]}
    ]
}


@dataclass(frozen=True, slots=True)
class Recording:
    """What a file has recorded: the time of each request, or a count for each period."""

    name: str
    times: tuple[float, ...]  # seconds from the first, in order
    counts: tuple[float, ...] | None  # requests from each time on; ``None``: each time is a request
    unit: str  # in which the file has its times
    where: str = ""  # the file, for errors
    begin: datetime | None = None  # the first time; None of seconds from a start

    def __str__(self) -> str:
        what = "requests" if self.counts is None else "counts"
        return f"{len(self.times):,} {what}, times in {self.unit}"

    def periods(self, period: float | None = None) -> tuple[list[float], float]:
        """Requests in each period, in order, and the seconds of a period.

        Periods without a line had no requests. ``period`` states the seconds. By default it is the
        shortest step between two counts; of single requests 60, or all of a shorter recording.
        """
        try:
            counts, seconds = self._periods(period)
        except ValueError as problem:
            raise RECORDED_TRAFFIC.error(
                got=str(problem), allowed=_FORMS, where=self.where
            ) from None
        return counts, seconds

    def _periods(self, stated: float | None) -> tuple[list[float], float]:
        if stated is not None:
            _check_period(stated)
        if self.counts is None:
            seconds = stated or min(_USUAL_PERIOD, self.seconds)
            _check_period(seconds)
            numbers = [int(time // seconds) for time in self.times]
            requests: Sequence[float] = [1.0] * len(numbers)
        else:
            seconds = _period(self.times, stated)
            _check_period(seconds)
            numbers = [_number_of_period(time, seconds) for time in self.times]
            requests = self.counts
        size = numbers[-1] + 1
        if size > MOST_PERIODS:
            raise ValueError(
                f"{size:,} periods of {readable(seconds)} s, where {MOST_PERIODS:,} are the most"
            )
        if size * seconds > _LONGEST:
            days = readable(size * seconds / _DAY, 4)
            raise ValueError(f"{days} days, where {_LONGEST // _DAY} are the most")
        if size < 2 and self.counts is not None:
            raise ValueError(f"one period of {readable(seconds)} s, where two or more are needed")
        counts = [0.0] * size
        for number, count in zip(numbers, requests, strict=True):
            counts[number] += count
        if not any(counts):
            raise ValueError("not one request")
        if max(counts) / seconds > HIGHEST_RATE:
            rate = f"{max(counts) / seconds:.6g}"
            raise ValueError(f"{rate} requests per second, where {HIGHEST_RATE:,.0f} are the most")
        return counts, seconds

    @property
    def seconds(self) -> float:
        """How long single requests last: to one mean gap after the last, which belongs to it."""
        length = self.times[-1] - self.times[0]
        return self.times[-1] + (length / (len(self.times) - 1) if length else 1.0)

    def shape(self, period: float | None = None) -> Shape:
        """The recording as a shape, whose peak is the largest count."""
        counts, seconds = self.periods(period)
        peak = max(counts) / seconds
        rate = f"at most {readable(peak, 4)} requests per second"
        if self.counts is None:
            what = f"{len(self.times):,} requests in {readable(self.seconds, 4)} s, {rate} in "
            what += f"{readable(seconds, 4)} s"
        else:
            what = f"{len(counts):,} periods of {readable(seconds)} s"
            if missing := len(counts) - len(self.times):
                what += f" (not in the file, so taken as without requests: {missing:,})"
            what += f", {rate}"
        shape = replace(
            shape_of_counts(self.name, counts, seconds),
            description=f"recorded: {what}, times in {self.unit}",
            recorded_peak=peak,
            begin=self.begin,
        )
        if self.counts is None:
            return replace(shape, times=self.times, dispersion=None)
        return shape


def read_recorded_traffic(path: str | Path, *, period: float | None = None) -> Shape:
    """A file of recorded traffic as a shape; its largest count is the shape's peak.

    Parameters
    ----------
    path : str or Path
        CSV with a time and a count in each line, or with the time of one request; or the JSON of
        ``aws cloudwatch get-metric-statistics`` (sums) or ``get-metric-data`` (one query).
    period : float or None
        Seconds of a period. By default the shortest step; of single requests 60, or all of a shorter
        recording.

    Raises
    ------
    ConfigurationError
        ``LLS130`` for a file that is missing or of another form, or leaves the period open.
    """
    return read_recording(path).shape(period)


def read_recording(path: str | Path) -> Recording:
    """What a file has recorded.

    Parameters
    ----------
    path : str or Path
        CSV with a time and a count in each line, or with the time of one request; or the JSON of
        ``aws cloudwatch get-metric-statistics`` (sums) or ``get-metric-data`` (one query).

    Raises
    ------
    ConfigurationError
        ``LLS130`` for a file that is missing or of another form.
    """
    where = str(path)
    return recording_of(text_of(path, RECORDED_TRAFFIC), Path(path).stem, where)


def recording_of(text: str, name: str, where: str = "") -> Recording:
    """The same from the file's text."""
    try:
        is_json = text.lstrip().startswith(("{", "["))
        moments, counts = _of_cloudwatch(text) if is_json else _of_csv(text)
        if len(moments) < 2:
            raise ValueError(f"{len(moments)} times, where two or more are needed")
        times, unit = _seconds(moments)
    except (ValueError, csv.Error) as problem:
        raise RECORDED_TRAFFIC.error(got=shown(str(problem)), allowed=_FORMS, where=where) from None
    begin = min(times)
    first = _first_date(moments, begin, unit)
    if counts is None:
        ordered = tuple(sorted(time - begin for time in times))
        return Recording(name, ordered, None, unit, where, first)
    points = sorted(zip(times, counts, strict=True))
    ordered = tuple(time - begin for time, _ in points)
    return Recording(name, ordered, tuple(count for _, count in points), unit, where, first)


def shape_of_counts(name: str, counts: Sequence[float], seconds: float) -> Shape:
    """A shape from recorded numbers of requests per period, such as CloudWatch's Invocations.

    Parameters
    ----------
    name : str
        What to call it.
    counts : sequence of float
        Requests in each period, in order.
    seconds : float
        Length of a period.
    """
    SECONDS.check(seconds, "seconds")
    peak = max(counts, default=0)
    if peak <= 0 or seconds <= 0 or not all(map(_is_count, counts)):
        raise RECORDED_TRAFFIC.error(
            got=f"{len(counts)} counts, the largest {peak:.6g}",
            allowed=f"counts of requests, each zero or {COUNTED[0]:f} to {COUNTED[1]:,.0f}, "
            "at least one above zero",
        )
    return Shape(
        name,
        "recorded",
        tuple(((number + 1) * seconds, count / peak) for number, count in enumerate(counts)),
        dispersion=dispersion(counts),
    )


# --- the files -----------------------------------------------------------------------------------


def _of_csv(text: str) -> tuple[list[Moment], list[float] | None]:
    """Times, and counts where there is a second column; a first line without a time is a head."""
    check_csv(text)
    rows = [row for row in csv.reader(text.splitlines()) if row]
    if not rows:
        raise ValueError("an empty file")
    heads: list[str] = []
    if not _is_moment(rows[0][0]):
        heads = rows.pop(0)
    columns = {len(row) for row in rows}
    if not columns:
        raise ValueError("a head and no line with a time")
    if columns == {1}:
        return [_moment(row[0]) for row in rows], None
    if columns != {2}:
        raise ValueError(
            f"lines of {' and '.join(map(str, sorted(columns)))} columns, where a time and a "
            "count, or a time alone, are needed"
        )
    if len(heads) == 2 and _NO_COUNT.search(heads[1]):
        raise ValueError(f"a column {heads[1]!r}, where counts of requests are needed")
    return [_moment(row[0]) for row in rows], [_count(row[1]) for row in rows]


def _of_cloudwatch(text: str) -> tuple[list[Moment], list[float]]:
    """Times and sums of ``get-metric-statistics``, or of one query of ``get-metric-data``."""
    answer = json_value(text, _POINTS if '"Datapoints"' in text else _SERIES)
    if answer.get("NextToken"):
        raise ValueError(f"an answer that is not whole: NextToken {answer['NextToken']}")
    points = list(_points(answer))
    return [_moment(time) for time, _ in points], [_count(value) for _, value in points]


def _points(answer: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    if "Datapoints" in answer:
        yield from ((point["Timestamp"], point["Sum"]) for point in answer["Datapoints"])
        return
    pages = answer["MetricDataResults"]
    # The pages of one query have one Id, and the last of them says how it ended.
    if len({page.get("Id") for page in pages}) > 1:
        raise ValueError("several series, where one is needed")
    if pages and (ended := pages[-1].get("StatusCode", "Complete")) != "Complete":
        raise ValueError(f"an answer that is not whole: StatusCode {ended}")
    for page in pages:
        times, values = page.get("Timestamps", ()), page.get("Values", ())
        if len(times) != len(values):
            raise ValueError("not as many Values as Timestamps")
        yield from zip(times, values, strict=True)


# --- their times and counts ----------------------------------------------------------------------


def _moment(value: Any) -> Moment:
    """A number, or a time in ISO 8601."""
    text = str(value).strip()
    if _COMPACT_DAY.fullmatch(text):
        raise ValueError(f"{value!r}, a day or a number of seconds: write a day as 2026-11-20")
    try:
        return _number(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{value!r} is no time in ISO 8601 and no number") from None


def _is_moment(text: str) -> bool:
    try:
        _moment(text)
    except ValueError:
        return bool(_COMPACT_DAY.fullmatch(text.strip()))
    return True


def _count(value: Any) -> float:
    count = _number(value)
    if not _is_count(count):
        raise ValueError(f"a count of {count:.6g}")
    return count


def _is_count(count: float) -> bool:
    """Whether so many requests can be in a period: counts may be averages, with a fraction."""
    least, most = COUNTED
    return count == 0 or least <= count <= most


def _number(value: Any) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is no number")
    return number


def _seconds(moments: Sequence[Moment]) -> tuple[list[float], str]:
    """Times in seconds, and the unit that they were in: of numbers the one that gives a year."""
    dates = [moment for moment in moments if isinstance(moment, datetime)]
    numbers = [moment for moment in moments if not isinstance(moment, datetime)]
    if dates and numbers:
        raise ValueError(f"times in ISO 8601 and numbers: {dates[0]} and {numbers[0]:.15g}")
    if dates:
        seconds = _seconds_of_dates(dates)
        if min(seconds) < 0 or max(seconds) >= _LAST_EPOCH:
            raise ValueError(f"times from {min(dates)} to {max(dates)}, outside of 1970 to 2160")
        return seconds, "ISO 8601"
    if min(numbers) >= 0 and max(numbers) < _FIRST_EPOCH:
        return numbers, _FROM_A_START
    for unit, factor in _EPOCH_UNITS.items():
        if min(numbers) / factor >= _FIRST_EPOCH and max(numbers) / factor < _LAST_EPOCH:
            return [number / factor for number in numbers], unit
    raise ValueError(
        f"times from {min(numbers):.15g} to {max(numbers):.15g}: neither seconds from a start nor "
        "years in one of seconds, milliseconds, microseconds and nanoseconds since 1970"
    )


def _first_date(moments: Sequence[Moment], begin: float, unit: str) -> datetime | None:
    """The first time as a date, without a zone where the file has none; None without dates."""
    if unit == _FROM_A_START:
        return None
    date = datetime.fromtimestamp(begin, UTC)
    first = moments[0]
    if isinstance(first, datetime) and first.tzinfo is None:
        return date.replace(tzinfo=None)
    return date


def _seconds_of_dates(dates: Sequence[datetime]) -> list[float]:
    zoned = [date for date in dates if date.tzinfo]
    if not zoned:
        return [date.replace(tzinfo=UTC).timestamp() for date in dates]
    if len(zoned) < len(dates):
        raise ValueError("times with a zone and times without one")
    return [date.timestamp() for date in dates]


def _period(times: Sequence[float], stated: float | None) -> float:
    """The period of sorted times; refused where the shortest step may be a gap."""
    steps = [later - earlier for earlier, later in pairwise(times)]
    shortest = min(steps)
    if shortest <= 0:
        twice = times[steps.index(shortest)]
        raise ValueError(f"one time twice, {readable(twice)} s after the first")
    if stated is not None:
        if shortest < 0.99 * stated:
            raise ValueError(
                f"steps of {readable(shortest)} s, shorter than the period, {readable(stated)} s"
            )
        return stated
    if max(steps) > 1.01 * shortest and abs(shortest / _USUAL_PERIOD - 1) > 0.01:
        raise ValueError(
            f"times with gaps, the shortest step {readable(shortest)} s: is that the period, or a "
            "gap too? Add the periods without requests, or say it with --period of plan and "
            "simulate (the period CloudWatch was asked for; 60s is usual)"
        )
    return shortest


def _check_period(seconds: float) -> None:
    if not _SHORTEST <= seconds <= _LONGEST:
        raise ValueError(f"periods of {seconds:.6g} s")


def _number_of_period(time: float, seconds: float) -> int:
    number = round(time / seconds)
    if abs(time / seconds - number) > 0.01:
        raise ValueError(
            f"a step of {readable(time)} s from the first, no multiple of the period, "
            f"{readable(seconds)} s"
        )
    return number
