"""Who sends requests, and when: closed loops, open loops, shapes over time, and recorded numbers."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..errors import rule
from ..facts.limit_kinds import number_range
from ..plan.traffic_shapes import SECONDS, Shape
from ..report.numbers import readable
from .service_laws import Constant, ServiceLaw, never_falls

RATE = number_range(
    "LLS106", "a rate of requests", 1e-6, 1e9, unit="requests per second", whole=False
)
USERS = number_range("LLS107", "the number of users", 1, 10_000_000)
TRACE = rule(
    "LLS121",
    "the times of an arrival trace are not in order",
    fix="Give at least two times in seconds, from zero on, and never decreasing.",
)


class Traffic:
    """What sends the requests; the classes below are the kinds there are."""


@dataclass(frozen=True, slots=True)
class ClosedLoop(Traffic):
    """Users who each wait for the answer, pause, and send the next request.

    Parameters
    ----------
    users : int
        Number of users.
    think : ServiceLaw, optional
        The law of the pause. By default no pause, as in a load test at full speed.
    """

    users: int
    think: ServiceLaw = Constant(0.0)  # noqa: RUF009  # a frozen value

    def __post_init__(self) -> None:
        USERS.check(self.users, "users")


@dataclass(frozen=True, slots=True)
class OpenLoop(Traffic):
    """Requests that come whether or not earlier ones were answered, at a steady rate.

    Parameters
    ----------
    rate : float
        Requests per second.
    poisson : bool
        Whether gaps are random (many independent callers); at equal gaps otherwise. By default
        random.
    """

    rate: float
    poisson: bool = True

    def __post_init__(self) -> None:
        RATE.check(self.rate, "rate")


@dataclass(frozen=True, slots=True)
class ArrivalTrace(Traffic):
    """Requests at recorded times, once.

    Parameters
    ----------
    seconds : tuple of float
        Arrival times in seconds from the start of the run, in order.
    """

    seconds: tuple[float, ...]

    def __post_init__(self) -> None:
        values = self.seconds
        if not never_falls(values) or values[0] < 0:
            raise TRACE.error(
                got=f"{len(values)} times",
                where="seconds",
                allowed="two or more times from 0 on that never decrease",
            )


@dataclass(frozen=True, slots=True)
class ShapedLoop(Traffic):
    """An open loop whose rate follows a shape.

    Parameters
    ----------
    peak_rate : float
        Requests per second at the shape's share of 1.
    shape : Shape
        The shape.
    poisson : bool
        As for :class:`OpenLoop`.
    """

    peak_rate: float
    shape: Shape
    poisson: bool = True

    def __post_init__(self) -> None:
        RATE.check(self.peak_rate, "peak_rate")


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
    if peak <= 0 or seconds <= 0 or min(counts) < 0:
        raise TRACE.error(
            got=f"{len(counts)} counts, the largest {readable(peak)}",
            allowed="request counts of at least zero, at least one above zero",
        )
    return Shape(
        name,
        "recorded",
        tuple(((number + 1) * seconds, count / peak) for number, count in enumerate(counts)),
    )


RECORDED_TRAFFIC = rule(
    "LLS130",
    "recorded traffic cannot be read",
    fix="Give a CSV file of times and counts, or the JSON of aws cloudwatch "
    "get-metric-statistics for Invocations with --statistics Sum "
    "(docs/explanation/simulation.md).",
)

MOST_PERIODS = 200_000
_FORMS = (
    "lines of time and count, a CloudWatch answer with sums of Invocations, Prometheus's "
    'query_range, a trace with a line for each request, or "seconds" and "counts"'
)
_USUAL = 60.0  # seconds: CloudWatch's period for Invocations
_UNITS = (1.0, 1e3, 1e6, 1e9)  # of a second: logs and exports have each of them
_ERA = (6e8, 6e9)  # seconds since 1970, in the years 1989 to 2160; no two units share a number
_TIME = re.compile(r"time|arriv|^ts$", re.I)
_REQUEST = re.compile(r"tokens|put_length", re.I)  # single requests have two such columns
_NO_COUNT = re.compile(r"/ ?s(ec)?\b|per.?sec|\b(rps|tps|qps|reqps|rate)\b|token", re.I)

Moment = float | datetime
Read = tuple[list[Moment], list[float] | None, float | None]
"""Times and counts, which requests have not, and the period where the file says it."""


def read_recorded_traffic(path: str | Path, *, period: float | None = None) -> Shape:
    """A file of recorded traffic as a shape; its largest count is the shape's peak.

    Parameters
    ----------
    path : str or Path
        Lines of time and count, JSON of ``aws cloudwatch get-metric-statistics`` (sums),
        ``get-metric-data`` (one query) or Prometheus's ``query_range``, or ``{"seconds": 60,
        "counts": [...]}``; periods without a line had no requests. Or a trace: a line of CSV or
        JSON for each request, which are counted.
    period : float or None
        Seconds of a period. By default the shortest step; of a trace 60.

    Raises
    ------
    ConfigurationError
        ``LLS130`` for a file that is missing or of another form, or leaves the period open.
    """
    where = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise RECORDED_TRAFFIC.error(
            got=getattr(problem, "strerror", None) or str(problem), allowed="a file", where=where
        ) from None
    return recorded_traffic(text, Path(path).stem, where, period=period)


def recorded_traffic(
    text: str, name: str, where: str = "", *, period: float | None = None
) -> Shape:
    """The same from the file's text."""
    try:
        if not text.strip():
            raise ValueError("an empty file")
        is_json = text.lstrip()[0] in "{["
        counts, seconds = _counts(*(_of_json(text) if is_json else _of_lines(text)), period)
        if (low := min(counts)) < 0 or max(counts) <= 0:
            raise ValueError(f"a count of {readable(low)}" if low < 0 else "not one request")
        if len(counts) < 2:
            raise ValueError(f"one period of {readable(seconds)} s, where two or more are needed")
    except (ValueError, RecursionError, csv.Error, KeyError, TypeError, AttributeError) as problem:
        got = str(problem)
        if isinstance(problem, KeyError | TypeError | AttributeError):
            got = f"JSON without {got}" if isinstance(problem, KeyError) else "another form of JSON"
        raise RECORDED_TRAFFIC.error(got=got, allowed=_FORMS, where=where) from None
    peak = max(counts) / seconds
    return replace(
        shape_of_counts(name, counts, seconds),
        description=f"recorded: {len(counts):,} periods of {readable(seconds)} s, at most {readable(peak, 4)} "
        "requests per second",
        recorded_peak=peak,
    )


def _of_json(text: str) -> Read:
    try:
        documents = [json.loads(text)]
    except ValueError as problem:
        try:
            documents = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError:
            raise ValueError(f"no whole JSON: {problem}") from None
    content = documents[0]
    if _of_requests(content):
        name = next(key for key in [*content, "timestamp"] if _TIME.search(key))
        times = [_moment(document[name]) for document in documents]
        whole = all(
            isinstance(document[name], int) and document[name] < _ERA[0] for document in documents
        )
        # Mooncake's and AIPerf's are milliseconds from the start, and whole; Qwen's are seconds.
        return [time / 1e3 if whole else time for time in times], None, None  # type: ignore[operator]
    if len(documents) > 1:
        raise ValueError("lines of JSON that are no trace of requests")
    if "counts" in content:
        seconds, counts = (
            _number(content["seconds"]),
            [_number(count) for count in content["counts"]],
        )
        return [number * seconds for number in range(len(counts))], counts, seconds
    points = list(_points(content))
    return [_moment(time) for time, _ in points], [_number(count) for _, count in points], None


def _of_requests(names: Iterable[str]) -> bool:
    return sum(map(bool, map(_REQUEST.search, names))) > 1


def _points(content: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Time and count of each point of an answer with one series."""
    for name in ("NextToken", "error"):
        if content.get(name):
            raise ValueError(f"an answer that is not whole: {name} {content[name]}")
    if "Datapoints" in content:
        yield from (
            (datapoint["Timestamp"], datapoint["Sum"]) for datapoint in content["Datapoints"]
        )
        return
    cloudwatch = "MetricDataResults" in content
    series = content["MetricDataResults"] if cloudwatch else content["data"]["result"]
    # The pages of one query have one Id, and the last of them says how it ended.
    if len({json.dumps(each.get("Id" if cloudwatch else "metric")) for each in series}) > 1:
        raise ValueError("several series, where one is needed")
    if series and (ended := series[-1].get("StatusCode", "Complete")) != "Complete":
        raise ValueError(f"an answer that is not whole: StatusCode {ended}")
    for each in series:
        times = each["Timestamps"] if cloudwatch else each["values"]
        if cloudwatch and len(times) != len(each["Values"]):
            raise ValueError("not as many Values as Timestamps")
        yield from zip(times, each["Values"], strict=True) if cloudwatch else times


def _of_lines(text: str) -> Read:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("sep=")]
    mark = next((mark for mark in ";\t" if any(mark in line for line in lines[:9])), ",")
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=mark)]
    named = next((at for at, cell in enumerate(rows[0]) if _TIME.search(cell)), 0)
    at = next((at for row in rows[:9] for at, cell in enumerate(row) if _date(cell)), named)
    begin = next((n for n, row in enumerate(rows) if row[at:] and _is_moment(row[at])), len(rows))
    heads, rows = rows[begin - 1] if begin else [], rows[begin:]
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise ValueError(
            "lines of different lengths" if rows else "no line that begins with a time"
        )
    others = [number for number in range(len(rows[0])) if number != at]
    if not others or _of_requests(heads):
        return [_moment(row[at]) for row in rows], None, None
    if len(others) > 1:  # Grafana names the series in a column, where it is asked for that
        others = [n for n in others if _is_moment(rows[0][n]) or len({row[n] for row in rows}) > 1]
    if len(others) != 1:
        raise ValueError(f"{len(rows[0])} columns, where a time and a count are needed")
    (column,) = others
    if _NO_COUNT.search(" ".join(heads[column : column + 1])):
        raise ValueError(f"a column {heads[column]!r}, where counts of requests are needed")
    there = [row for row in rows if row[column].lower() not in ("", "null", "undefined")]
    numbers = [_number(row[column], mark) for row in there]
    return [_moment(row[at]) for row in there], numbers, None


def _counts(
    moments: list[Moment], numbers: list[float] | None, stated: float | None, told: float | None
) -> tuple[list[float], float]:
    """Counts in order, one for each period, and the seconds of a period."""
    times, stated = _seconds(moments), stated if told is None else told
    if stated is not None and stated <= 0:
        raise ValueError(f"periods of {readable(stated)} s")
    if len(times) < 2:
        raise ValueError(f"{len(times)} times, where two or more are needed")
    begin = min(times)
    if numbers is None:
        period = stated or _USUAL
        points = [(begin + (time - begin) // period * period, 1.0) for time in sorted(times)]
    else:
        points = sorted(zip(times, numbers, strict=True))
        period = _period([time for time, _ in points], stated)
    size = round((points[-1][0] - begin) / period) + 1
    if size > MOST_PERIODS:
        raise ValueError(
            f"{size:,} periods of {readable(period)} s, where {MOST_PERIODS:,} are the most"
        )
    counts = [0.0] * size
    for time, count in points:
        at = (time - begin) / period
        if abs(at - round(at)) > 0.01:
            raise ValueError(
                f"a step of {readable(time - begin)} s from the first, no multiple of the period, "
                f"{readable(period)} s"
            )
        counts[round(at)] += count
    return counts, period


def _period(times: Sequence[float], told: float | None) -> float:
    """The period of sorted times; refused where the shortest step may be a gap."""
    steps = [later - earlier for earlier, later in pairwise(times)]
    shortest = min(steps)
    if shortest <= 0:
        twice = times[steps.index(shortest)]
        day = f" ({datetime.fromtimestamp(twice, UTC)})" if twice > _ERA[0] else ""
        raise ValueError(f"one time twice, {twice:.15g} s{day}")
    if told is None and max(steps) > 1.01 * shortest and abs(shortest / _USUAL - 1) > 0.01:
        raise ValueError(
            f"times with gaps, the shortest step {readable(shortest)} s: is that the period, or a gap too? "
            "Say it with --period (the period CloudWatch was asked for; 60s is usual)"
        )
    if told is not None and shortest < 0.99 * told:
        raise ValueError(
            f"steps of {readable(shortest)} s, shorter than the period, {readable(told)} s"
        )
    return told or shortest


def _seconds(moments: Sequence[Moment]) -> list[float]:
    """Seconds since 1970, by the unit that gives a plausible year; small ones are from a start."""
    numbers = [moment for moment in moments if not isinstance(moment, datetime)]
    unit = 1.0
    if max(numbers, default=0.0) >= _ERA[0]:
        units = {next((u for u in _UNITS if _ERA[0] <= n / u < _ERA[1]), 0.0) for n in numbers}
        unit = units.pop()
        if units or not unit:
            raise ValueError(
                f"times from {min(numbers):.15g} to {max(numbers):.15g}, no years in one of "
                "seconds, milliseconds, microseconds and nanoseconds since 1970"
            )
    return [
        moment.timestamp() if isinstance(moment, datetime) else moment / unit for moment in moments
    ]


def _date(value: Any) -> datetime | None:
    text = str(value).replace("/", "-")
    if text.isdecimal() and not re.fullmatch(r"20\d{6}", text):  # milliseconds may look like one
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _is_moment(cell: str) -> bool:
    try:
        return bool(_date(cell)) or _number(cell) is not None
    except ValueError:
        return False


def _moment(value: Any) -> Moment:
    return _date(value) or _number(value, what="time in ISO 8601 and no number")


def _number(value: Any, mark: str = ",", what: str = "number") -> float:
    """A number of JSON or CSV, with commas for thousands where they can be nothing else."""
    text = str(value).replace(" ", "")
    if mark == "," and re.fullmatch(r"-?\d{1,3}(,\d{3})+(\.\d*)?", text):
        text = text.replace(",", "")
    if mark != "," and re.fullmatch(r"\d{1,3}[.,]\d{3}", text):
        raise ValueError(f"{value!r}, thousands or a fraction: write it without the mark")
    try:
        number = math.nan if isinstance(value, bool) else float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is no {what}")
    return number
