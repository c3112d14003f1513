"""Read recorded numbers of requests, such as CloudWatch's Invocations, as a traffic shape.

Four forms::

    # CSV: time (ISO 8601, or seconds) and requests in the period that begins there
    2026-11-20T10:00:00Z,5210
    2026-11-20T10:01:00Z,5473

    # JSON of `aws cloudwatch get-metric-statistics --metric-name Invocations --statistics Sum ...`
    {"Label": "Invocations", "Datapoints": [{"Timestamp": "2026-11-20T10:00:00Z", "Sum": 5210.0}]}

    # JSON of `aws cloudwatch get-metric-data` with one query
    {"MetricDataResults": [{"Timestamps": ["2026-11-20T10:00:00Z"], "Values": [5210.0]}]}

    # JSON, counts one after the other, and the length of a period
    {"seconds": 60, "counts": [5210, 5473]}

Times may come in any order, as CloudWatch gives them. The period is the shortest step; periods
without a line had no requests: CloudWatch keeps no data point for them.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..errors import rule
from .traffic import Shape, shape_of_counts

RECORDED_TRAFFIC = rule(
    "LLS130",
    "recorded traffic cannot be read",
    fix="Give a CSV file of times and counts, or the JSON that aws cloudwatch "
    "get-metric-statistics answers for Invocations with --statistics Sum: see "
    "docs/simulation.md.",
)

MOST_PERIODS = 200_000
_FORMS = (
    'lines of time and count, a CloudWatch answer with sums of Invocations, or "seconds" '
    'and "counts"'
)


def read_recorded_traffic(path: str | Path) -> Shape:
    """A file of recorded traffic as a shape; its largest count is the shape's peak.

    Parameters
    ----------
    path : str or Path
        ``.csv`` or JSON; the forms are described above.

    Raises
    ------
    ConfigurationError
        ``LLS130`` for a file that is missing or of another form.
    """
    where = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise RECORDED_TRAFFIC.error(
            got=getattr(problem, "strerror", None) or str(problem), allowed="a file", where=where
        ) from None
    return recorded_traffic(text, Path(path).stem, where)


def recorded_traffic(text: str, name: str, where: str = "") -> Shape:
    """The same from the file's text.

    Examples
    --------
    >>> shape = recorded_traffic("0,600\\n60,1200\\n180,300", "mine")
    >>> shape.levels  # nothing came in the third minute
    ((60.0, 0.5), (120.0, 1.0), (180.0, 0.0), (240.0, 0.25))
    >>> shape.description
    'recorded: 4 periods of 60 s, at most 20 requests per second'
    """
    begin = text.lstrip()[:1]
    if begin in ("{", "["):
        try:
            counts, seconds = _of_json(json.loads(text), where)
        except (ValueError, RecursionError) as problem:
            raise RECORDED_TRAFFIC.error(
                got=f"no JSON: {problem}", allowed=_FORMS, where=where
            ) from None
    else:
        counts, seconds = _of_lines(text, where)
    if not math.isfinite(seconds) or seconds <= 0:
        raise RECORDED_TRAFFIC.error(
            got=f"periods of {seconds!r} s", allowed="above 0", where=where
        )
    if len(counts) < 2 or min(counts) < 0 or max(counts) <= 0:
        raise RECORDED_TRAFFIC.error(
            got=f"{len(counts)} counts from {min(counts, default=0):g} to "
            f"{max(counts, default=0):g}",
            allowed="two or more, none below 0, one above",
            where=where,
        )
    return replace(
        shape_of_counts(name, counts, seconds),
        description=f"recorded: {len(counts):,} periods of {seconds:g} s, at most "
        f"{max(counts) / seconds:,.4g} requests per second",
    )


def _of_json(content: Any, where: str) -> tuple[list[float], float]:
    if not isinstance(content, Mapping):
        raise RECORDED_TRAFFIC.error(got=type(content).__name__, allowed=_FORMS, where=where)
    if "Datapoints" in content:
        points = content["Datapoints"]
        if not isinstance(points, list) or not all(
            isinstance(each, Mapping) and "Sum" in each for each in points
        ):
            raise RECORDED_TRAFFIC.error(
                got="data points without a Sum", where=where, allowed="what --statistics Sum gives"
            )
        return _by_time([(each.get("Timestamp"), each["Sum"]) for each in points], where)
    if "MetricDataResults" in content:
        results = content["MetricDataResults"]
        if (
            not isinstance(results, list)
            or len(results) != 1
            or not isinstance(results[0], Mapping)
        ):
            raise RECORDED_TRAFFIC.error(
                got=f"{len(results) if isinstance(results, list) else 'no'} metrics",
                allowed="one",
                where=where,
            )
        times, values = (results[0].get(key) or [] for key in ("Timestamps", "Values"))
        if not isinstance(times, list) or not isinstance(values, list) or len(times) != len(values):
            raise RECORDED_TRAFFIC.error(
                got="Timestamps and Values of different length",
                allowed="a value for each time",
                where=where,
            )
        return _by_time(list(zip(times, values, strict=True)), where)
    counts, seconds = content.get("counts"), content.get("seconds")
    if not isinstance(counts, list) or seconds is None:
        raise RECORDED_TRAFFIC.error(
            got="keys " + ", ".join(map(str, content))[:60], allowed=_FORMS, where=where
        )
    return [_number(each, where) for each in counts], _number(seconds, where)


def _of_lines(text: str, where: str) -> tuple[list[float], float]:
    try:
        rows = [row for row in csv.reader(io.StringIO(text)) if any(cell.strip() for cell in row)]
    except csv.Error as problem:
        raise RECORDED_TRAFFIC.error(
            got=f"no CSV: {problem}", allowed=_FORMS, where=where
        ) from None
    if rows and not _is_number(rows[0][-1]):
        rows = rows[1:]  # heads
    if not all(len(row) == 2 for row in rows):
        raise RECORDED_TRAFFIC.error(
            got=next(",".join(row) for row in rows if len(row) != 2)[:60],
            allowed="a time and a count in each line",
            where=where,
        )
    return _by_time([(row[0].strip(), row[1].strip()) for row in rows], where)


def _by_time(pairs: Sequence[tuple[Any, Any]], where: str) -> tuple[list[float], float]:
    """Counts in order, one for each period; the shortest step is the period."""
    points = sorted((_seconds(time, where), _number(count, where)) for time, count in pairs)
    steps = [later - earlier for (earlier, _), (later, _) in pairwise(points)]
    if not steps or min(steps) <= 0:
        raise RECORDED_TRAFFIC.error(
            got="one time twice" if steps else f"{len(points)} times",
            allowed="two or more times, each once",
            where=where,
        )
    period, begin = min(steps), points[0][0]
    size = round((points[-1][0] - begin) / period) + 1
    if size > MOST_PERIODS:
        raise RECORDED_TRAFFIC.error(
            got=f"{size:,} periods of {period:g} s",
            where=where,
            allowed=f"at most {MOST_PERIODS:,}",
        )
    counts = [0.0] * size
    for time, count in points:
        at = (time - begin) / period
        if abs(at - round(at)) > 0.01:
            raise RECORDED_TRAFFIC.error(
                got=f"a step of {time - begin:g} s from the first, where the shortest is "
                f"{period:g} s",
                allowed="whole multiples of the shortest step",
                where=where,
            )
        counts[round(at)] = count
    return counts, period


def _seconds(time: Any, where: str) -> float:
    if isinstance(time, str) and not _is_number(time):
        try:
            read = datetime.fromisoformat(time.strip())
        except ValueError:
            raise RECORDED_TRAFFIC.error(
                got=f"time {time!r}", where=where, allowed="ISO 8601, or seconds"
            ) from None
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    return _number(time, where)


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not _is_number(value):
        raise RECORDED_TRAFFIC.error(got=repr(value), allowed="a number", where=where)
    return float(value)


def _is_number(value: Any) -> bool:
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError, OverflowError):
        return False
