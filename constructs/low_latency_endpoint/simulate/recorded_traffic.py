"""Read recorded numbers of requests as a traffic shape (docs/explanation/simulation.md)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError

from ..errors import rule
from .traffic import Shape, shape_of_counts

RECORDED_TRAFFIC = rule(
    "LLS130",
    "recorded traffic cannot be read",
    fix="Give a CSV file of times and counts, or the JSON of aws cloudwatch "
    "get-metric-statistics for Invocations with --statistics Sum "
    "(docs/explanation/simulation.md).",
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
        Lines of time and count, JSON of ``aws cloudwatch get-metric-statistics`` (sums) or
        ``get-metric-data`` (one query), or ``{"seconds": 60, "counts": [...]}``. The period is the
        shortest step; periods without a line had no requests.

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
    """The same from the file's text."""
    try:
        if text.lstrip()[:1] in ("{", "["):
            counts, seconds = _of_json(json.loads(text))
        else:
            counts, seconds = _of_lines(text)
        if seconds <= 0 or len(counts) < 2 or min(counts) < 0 or max(counts) <= 0:
            raise ValueError(
                f"{len(counts)} counts from {min(counts, default=0):g} to "
                f"{max(counts, default=0):g} in periods of {seconds:g} s, where two or more not "
                "below 0, one above, and a period above 0 are needed"
            )
    except (ValueError, RecursionError, csv.Error) as problem:
        if isinstance(problem, ValidationError):
            first = problem.errors()[0]
            got = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        else:
            got = str(problem)
        raise RECORDED_TRAFFIC.error(got=got, allowed=_FORMS, where=where) from None
    return replace(
        shape_of_counts(name, counts, seconds),
        description=f"recorded: {len(counts):,} periods of {seconds:g} s, at most "
        f"{max(counts) / seconds:,.4g} requests per second",
    )


def _no_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError(f"{value} is no number")
    return value


def _epoch(time: float | datetime) -> float:
    if isinstance(time, datetime):
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    return time


Number = Annotated[float, BeforeValidator(_no_boolean), Field(allow_inf_nan=False)]
Time = Annotated[Number | datetime, Field(union_mode="left_to_right"), AfterValidator(_epoch)]


class _Sum(BaseModel):
    Timestamp: Time
    Sum: Number


class _Statistics(BaseModel):
    """What get-metric-statistics answers."""

    Datapoints: list[_Sum]


class _Series(BaseModel):
    Timestamps: list[Time]
    Values: list[Number]


class _MetricData(BaseModel):
    """What get-metric-data answers."""

    MetricDataResults: tuple[_Series]


class _Counts(BaseModel):
    """Counts one after the other."""

    counts: list[Number]
    seconds: Number


_LINES = TypeAdapter(list[tuple[Time, Number]])


def _of_json(content: Any) -> tuple[list[float], float]:
    if "Datapoints" in content:
        points = _Statistics.model_validate(content).Datapoints
        return _by_time([(each.Timestamp, each.Sum) for each in points])
    if "MetricDataResults" in content:
        (series,) = _MetricData.model_validate(content).MetricDataResults
        return _by_time(list(zip(series.Timestamps, series.Values, strict=True)))
    found = _Counts.model_validate(content)
    return found.counts, found.seconds


def _of_lines(text: str) -> tuple[list[float], float]:
    rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text)) if any(row)]
    try:
        float(rows[0][-1] if rows else "0")
    except ValueError:
        rows = rows[1:]  # heads
    return _by_time(_LINES.validate_python(rows))


def _by_time(points: Sequence[tuple[Any, float]]) -> tuple[list[float], float]:
    """Counts in order, one for each period; the shortest step is the period."""
    points = sorted(points)
    steps = [later - earlier for (earlier, _), (later, _) in pairwise(points)]
    if not steps or min(steps) <= 0:
        raise ValueError("one time twice" if steps else f"{len(points)} times")
    period, begin = min(steps), points[0][0]
    size = round((points[-1][0] - begin) / period) + 1
    if size > MOST_PERIODS:
        raise ValueError(f"{size:,} periods of {period:g} s, where {MOST_PERIODS:,} are the most")
    counts = [0.0] * size
    for time, count in points:
        at = (time - begin) / period
        if abs(at - round(at)) > 0.01:
            raise ValueError(
                f"a step of {time - begin:g} s from the first, no multiple of the shortest, "
                f"{period:g} s"
            )
        counts[round(at)] = count
    return counts, period
