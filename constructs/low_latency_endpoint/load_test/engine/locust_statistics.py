"""Locust's own table, CSV and HTML with figures that hold."""

from __future__ import annotations

import functools
import time
from bisect import bisect_left
from collections.abc import Callable
from typing import Any

_POWERS = tuple(10.0**exponent for exponent in range(-3, 8))
#: Below this nothing is distinguished: a microsecond.
_FINEST = 0.001


def bucket_response_time(response_time: float) -> float:
    """A response time in milliseconds, rounded to its bucket: at most 0.1 % away.

    Buckets are decimal numbers, so that tables stay readable; no finer than a microsecond.
    """
    if response_time < _FINEST:
        return 0.0
    place = min(max(bisect_left(_POWERS, response_time) - 1, 0), len(_POWERS) - 1)
    power = _POWERS[place]
    mantissa = response_time / power
    # Half a step is at most 0.1 % of the value.
    step = 0.002 if mantissa < 2 else 0.004 if mantissa < 5 else 0.01
    width = max(step * power, _FINEST)
    return round(round(response_time / width) * width, 6)


def install() -> None:
    """Replace Locust's buckets and the way its table and CSV print them; again does nothing.

    In a locustfile it is enough to import :mod:`low_latency_endpoint.load_test.engine.open_loop`
    or to call this at its top. Workers and master both need it, as both read the same locustfile.
    """
    from locust import argument_parser, stats

    if stats.bucket_response_time is bucket_response_time:
        return
    # Workers look it up for every option whenever users come or go, and Locust makes a parser each
    # time: 80 ms in which no request starts and no answer is read.
    argument_parser.default_args_dict = functools.cache(argument_parser.default_args_dict)
    stats.bucket_response_time = bucket_response_time  # type: ignore[assignment]
    if 0.999 not in stats.PERCENTILES_TO_REPORT or 0.9999 not in stats.PERCENTILES_TO_REPORT:
        stats.PERCENTILES_TO_REPORT = sorted({*stats.PERCENTILES_TO_REPORT, 0.999, 0.9999})
    entry: Any = stats.StatsEntry
    entry.to_string = _table_row
    entry.percentile = _percentile_row
    entry.to_dict = _unrounded(entry.to_dict)
    stats.StatsCSV._percentile_fields = _csv_percentiles  # type: ignore[assignment, method-assign]
    writer: Any = stats.StatsCSVFileWriter
    writer.close_files = _after_a_last_write(writer.close_files)


def _table_row(entry: Any, current: bool = True) -> str:
    """A row of the table on the terminal, in the widths of Locust's own heading."""
    from locust import stats

    rps, failures = (
        (entry.current_rps, entry.current_fail_per_sec)
        if current
        else (entry.total_rps, entry.total_fail_per_sec)
    )
    method = f"{entry.method} " if entry.method else ""
    failed = f"{entry.num_failures}({entry.fail_ratio:.2%})"
    times = [
        entry.avg_response_time,
        entry.min_response_time or 0,
        entry.max_response_time,
        entry.median_response_time or 0,
    ]
    average, smallest, largest, median = (f"{milliseconds(time):>7}" for time in times)
    return (
        f"{method:<{stats.STATS_TYPE_WIDTH}} "
        f"{entry.name:<{stats.STATS_NAME_WIDTH - stats.STATS_TYPE_WIDTH + 4}} "
        f"{entry.num_requests:>7} {failed:>12} |{average} {smallest} {largest}{median} | "
        f"{rps or 0:>7.2f} {failures or 0:>11.2f}"
    )


def _unrounded(to_dict: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """What the HTML report and the page show, with extremes that are not whole milliseconds."""

    def of(entry: Any, *arguments: Any, **options: Any) -> dict[str, Any]:
        return {
            **to_dict(entry, *arguments, **options),
            "min_response_time": round(entry.min_response_time or 0, 3),
            "max_response_time": round(entry.max_response_time, 3),
        }

    return of


def _percentile_row(entry: Any) -> str:
    from locust import stats

    if not entry.num_requests:
        raise ValueError("Can't calculate percentile on url with no successful requests")
    values = " ".join(
        f"{milliseconds(entry.get_response_time_percentile(share)):>6}"
        for share in stats.PERCENTILES_TO_REPORT
    )
    return (
        f"{entry.method or '':<{stats.STATS_TYPE_WIDTH}} "
        f"{entry.name:<{stats.STATS_NAME_WIDTH}} {values} {entry.num_requests:>8}"
    )


def _csv_percentiles(writer: Any, entry: Any, use_current: bool = False) -> list[Any]:
    if not entry.num_requests:
        return list(writer.percentiles_na)
    of = (
        entry.get_current_response_time_percentile
        if use_current and entry.use_response_times_cache
        else entry.get_response_time_percentile
    )
    return [of(share) or 0 for share in writer.percentiles_to_report]


def _after_a_last_write(close_files: Callable[[Any], None]) -> Callable[[Any], None]:
    """Write the CSV files once more: Locust writes them once a second and misses the end of a test."""

    def close(writer: Any) -> None:
        for file, rows, columns, write in (
            (
                writer.requests_csv_filehandle,
                writer._requests_data_rows,
                writer.requests_csv_columns,
                writer.requests_csv_writer,
            ),
            (
                writer.failures_csv_filehandle,
                writer._failures_data_rows,
                writer.failures_columns,
                writer.failures_csv_writer,
            ),
        ):
            file.seek(0)
            write.writerow(columns)
            rows(write)
            file.truncate()
        writer._stats_history_data_rows(writer.stats_history_csv_writer, time.time())
        close_files(writer)

    return close


def milliseconds(value: float) -> str:
    """A time in the six places that Locust's table has for it."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"
