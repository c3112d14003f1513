"""Recorded traffic: times of requests and counts of periods, in the forms that are read."""

from __future__ import annotations

import contextlib
import json
import math
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.load_test.engine.arrivals import ReplayedArrivals
from low_latency_endpoint.plan.recorded_rise import largest_rise
from low_latency_endpoint.plan.recorded_traffic import (
    Recording,
    read_recorded_traffic,
    read_recording,
    recording_of,
    shape_of_counts,
)
from tests.depth import examples

LEVELS = ((60.0, 0.5), (120.0, 1.0), (180.0, 0.0), (240.0, 0.25))
TIMES = [f"2026-11-20T10:0{minute}:00" for minute in (0, 1, 3)]
COUNTS = [600.0, 1200.0, 300.0]


def _points(suffix: str) -> list[dict[str, object]]:
    """In no order, as CloudWatch gives them."""
    made = [
        {"Timestamp": time + suffix, "Sum": count, "Unit": "None"}
        for time, count in zip(TIMES, COUNTS, strict=True)
    ]
    return [made[2], made[0], made[1]]


FORMS = {
    "csv": "\n".join(f"{time}Z,{count}" for time, count in zip(TIMES, COUNTS, strict=True)),
    "csv-with-a-head": "time, count\r\n2026-11-20 10:00, 600\r\n2026-11-20 10:01, 1200\r\n"
    "2026-11-20 10:03, 300\r\n",
    "csv-in-any-order": "2026-11-20T10:03Z,300\n\n2026-11-20T11:00+01:00,600\n2026-11-20T10:01Z,1200",
    "statistics": json.dumps({"Label": "Invocations", "Datapoints": _points("+00:00")}),
    "statistics-z": json.dumps({"Label": "Invocations", "Datapoints": _points("Z")}),
    "metric-data": json.dumps(
        {"MetricDataResults": [{"Id": "m1", "Timestamps": TIMES[::-1], "Values": COUNTS[::-1]}]}
    ),
    "pages-of-one-query": '{"MetricDataResults": [{"Id": "a", "StatusCode": "PartialData", '
    '"Timestamps": ["2026-11-20T10:03:00Z", "2026-11-20T10:01:00Z"], "Values": [300, 1200]}, {"Id": '
    '"a", "StatusCode": "Complete", "Timestamps": ["2026-11-20T10:00:00Z"], "Values": [600]}]}',
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_every_form_gives_the_same_shape(text: str, tmp_path: Path) -> None:
    file = tmp_path / "monday.txt"
    file.write_text(text, "utf-8", newline="")
    shape = read_recorded_traffic(file)
    assert shape.levels == LEVELS
    assert shape.name == "monday"
    assert shape.recorded_peak == 20
    assert shape.description == (
        "recorded: 4 periods of 60 s (not in the file, so taken as without requests: 1), at "
        "most 20 requests per second, times in ISO 8601"
    )


@pytest.mark.parametrize(
    ("start", "unit", "name"),
    [
        (0, 1, "seconds from a start"),
        (1_700_000_000, 1, "seconds since 1970"),
        (1_700_000_000, 10**3, "milliseconds since 1970"),
        (1_700_000_000, 10**6, "microseconds since 1970"),
        (1_700_000_000, 10**9, "nanoseconds since 1970"),
    ],
)
def test_numbers_have_the_unit_of_their_magnitude_which_is_said(
    start: int, unit: int, name: str
) -> None:
    times = [(start + second) * unit for second in (0, 60, 180)]
    text = "\n".join(f"{time},{count}" for time, count in zip(times, COUNTS, strict=True))
    recording = recording_of(text, "monday")
    assert recording.shape().levels == LEVELS
    assert recording.shape().description.endswith(f"times in {name}")
    assert str(recording) == f"3 counts, times in {name}"


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-20 10:00:10\n2026-11-20 10:00:01\n2026-11-20 10:02:30",
        "arrived\n5.25\n45\n131",
        "1700000005\n1700000045\n1700000131",
    ],
    ids=["iso", "seconds", "epoch"],
)
def test_lines_of_single_requests_are_counted(text: str) -> None:
    recording = recording_of(text, "a")
    assert recording.counts is None
    assert str(recording).startswith("3 requests, times in ")
    assert recording.shape().levels == ((60.0, 1.0), (120.0, 0.0), (180.0, 0.5))
    assert recording.shape(120).levels == ((120.0, 1.0), (240.0, 0.5))
    assert recording.shape().times == recording.times


def test_requests_of_less_than_a_minute_have_a_peak_of_their_own_length() -> None:
    # Three requests a second apart, and a second for the last: 3 in 3 s, not 3 in 60 s.
    shape = recording_of("0\n1\n2", "a").shape()
    assert shape.levels == ((3.0, 1.0),)
    assert shape.recorded_peak == 1


def test_single_requests_keep_their_times(tmp_path: Path) -> None:
    file = tmp_path / "requests.csv"
    file.write_text("1700000002.5\n1700000000\n1700000000\n", "utf-8")
    assert read_recording(file) == Recording(
        "requests",
        (0.0, 0.0, 2.5),
        None,
        "seconds since 1970",
        str(file),
        datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),  # `date -u -d @1700000000`
    )


FIRST, LAST = "0001-01-01T00:0", "9999-12-31T23:5"
SPARSE = "2026-11-20T10:00Z,600\n2026-11-20T10:02Z,1200\n2026-11-20T10:06Z,600"


@pytest.mark.parametrize(("period", "peak"), [(60.0, 20), (120.0, 10)])
def test_who_says_the_period_has_its_rate(period: float, peak: float) -> None:
    assert recording_of(SPARSE, "a").shape(period).recorded_peak == peak


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty file"),
        ("0,1", "1 times"),
        ("time,count", "no line"),
        ("0,5\n0,6", "one time twice, 0 s"),
        ("2026-11-20T10:00Z,5\n2026-11-20T11:00+01:00,6", "one time twice"),
        ("2026-11-20T10:00Z,5\n2026-11-20T10:01,6", "with a zone and times without"),
        ("2026-11-20T10:00Z,5\n60,6", "ISO 8601 and numbers"),
        ("20261120,5\n20261121,6", "a day or a number of seconds"),
        ("day,count\n20261120,5\n20261121,6", "a day or a number of seconds"),
        ("0,5\n60,x", "'x' is no number"),
        ("0,5\n60,NaN", "'NaN' is no number"),
        ("0,5\n60,", "'' is no number"),
        ("0,5\n60,5.21 K", "'5.21 K' is no number"),
        ('0,5\n60,"5,210"', "'5,210' is no number"),
        ("0;5\n60;4", "'60;4' is no time"),
        ("0\t5\n60\t4", "is no time"),
        ("soon,5\nlater,6", "'later' is no time"),
        ("0,5\nlater,6", "'later' is no time"),
        ("11/20/2026 10:00,5\n11/20/2026 10:01,5", "is no time"),
        (
            "Full label,Invocations\nStatistic,Sum\n2026/11/20 10:00:00,600",
            "'Statistic' is no time",
        ),
        ("0,5,6\n60,5,6", "lines of 3 columns"),
        ("0,5\n60,5,6", "lines of 2 and 3 columns"),
        ("time,req/s\n0,91\n60,90", "'req/s'"),
        ("time,prompt_tokens\n0,91\n60,90", "'prompt_tokens'"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n0,5,5\n1,6,6", "lines of 3 columns"),
        ("0,5\n60,-1", "a count of -1"),
        ("0,5e-324\n60,5e-324\n120,5e-324", "a count of 4.94066e-324"),
        ("0,1e308\n60,1e308\n120,1e308", "a count of 1e+308"),
        ("0,1\n5e-324,1\n1e-323,1", "periods of 4.94066e-324 s"),
        ("0\n5e-324\n1e-323", "periods of 1.4822e-323 s"),
        ("0,1\n500000000,1", "periods of 5e+08 s"),
        ("0,1\n36000000,1\n72000000,1", "1,250 days, where 731 are the most"),
        ("0,1e15\n0.01,1", "1e+17 requests per second, where 1,000,000,000"),
        (f"{FIRST}0:00+23:59,1\n{FIRST}1:00+23:59,1", "outside of 1970 to 2160"),
        (f"{LAST}7:00-23:59,1\n{LAST}8:00-23:59,1", "outside of 1970 to 2160"),
        (f"{FIRST}0:00+23:59\n{FIRST}1:00+23:59", "outside of 1970 to 2160"),
        ("1969-12-31T23:59Z,1\n1970-01-01T00:00Z,1", "outside of 1970 to 2160"),
        ("0,0\n60,0", "not one request"),
        ("0,5", "1 times"),
        ("0,5\n60,5\n150,5", "no multiple"),
        ("0,1\n60,1\n99999960,1", "periods of 60 s"),
        ("1700000000,5\n1700000060000,6", "years in one of"),
        ("0,5\n1700000060,6", "years in one of"),
        ("-60,5\n0,6", "years in one of"),
        ("99999999999,5\n99999999959,5", "years in one of"),
        (SPARSE, "say it with --period"),
        ("{", "no whole JSON"),
        ("[" * 9999, ""),
        ("[1, 2]", "an object is needed"),
        ("{}", "MetricDataResults"),
        (
            '{"timestamp": 0, "input_length": 67}\n{"timestamp": 1, "input_length": 7}',
            "no whole JSON",
        ),
        ('{"seconds": 60, "counts": [1, 2]}', "MetricDataResults"),
        ('{"times": [0, 1]}', "MetricDataResults"),
        ('{"status": "success", "data": {"result": []}}', "MetricDataResults"),
        ('{"Datapoints": [{"Timestamp": "2026-11-20T10:00:00Z", "Average": 5}]}', "Sum"),
        ('{"Datapoints": [{"Timestamp": 0, "Sum": null}, {"Timestamp": 60, "Sum": 1}]}', "null"),
        ('{"Datapoints": [{"Timestamp": true, "Sum": 1}, {"Timestamp": 60, "Sum": 1}]}', "true"),
        ('{"Datapoints": [], "NextToken": "a"}', "NextToken"),
        ('{"Datapoints": []}', "0 times"),
        ('{"MetricDataResults": []}', "0 times"),
        ('{"MetricDataResults": [{"Timestamps": [1], "Values": []}]}', "not as many"),
        ('{"MetricDataResults": [{"Id": "a"}, {"Id": "b"}]}', "several series"),
        ('{"MetricDataResults": [{"StatusCode": "PartialData"}]}', "PartialData"),
    ],
)
def test_anything_else_has_a_code_and_own_words(text: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        recording_of(text, "mine", "mine.csv").shape()
    assert caught.value.code == "LLS130"
    assert caught.value.where == "mine.csv"
    assert says in caught.value.got


EAST, WEST = (timezone(sign * timedelta(hours=23, minutes=59)) for sign in (1, -1))
EXTREMES = st.sampled_from([0, 5e-324, 1e-300, 1e-9, 1e-6, 1, 6e8, 1e15, 1e300, 1e308])
NUMBERS = EXTREMES | st.floats(0, allow_nan=False, allow_infinity=False)
MOMENTS = st.one_of(
    NUMBERS.map(repr),
    st.floats(0, 1e9).map(repr),
    st.datetimes(timezones=st.sampled_from([UTC, EAST, WEST])).map(datetime.isoformat),
    st.datetimes().map(datetime.isoformat),
)


@st.composite
def recordings(draw: st.DrawFn) -> str:
    """Lines with a time alone or a time and a count, in steps or at any times."""
    start, step = draw(NUMBERS), draw(NUMBERS)
    steps = [repr(start + number * step) for number in range(25)]
    times = draw(st.just(steps) | st.lists(MOMENTS, min_size=2, max_size=6))
    if draw(st.booleans()):
        return "\n".join(times)
    counts = draw(st.lists(NUMBERS, min_size=len(times), max_size=len(times)))
    return "\n".join(f"{time},{count!r}" for time, count in zip(times, counts, strict=True))


@given(recordings(), st.none() | NUMBERS)
@settings(max_examples=examples(400))
def test_a_recording_of_any_numbers_is_planned_with_or_refused(
    text: str, period: float | None
) -> None:
    with contextlib.suppress(ConfigurationError):
        shape = recording_of(text, "mine").shape(period)
        assert math.isfinite(shape.recorded_peak or 0)
        largest_rise(shape, 1e9)
        ReplayedArrivals.of_recording(recording_of(text, "mine"))


@pytest.mark.parametrize("period", [0.0, 45.0, 300.0])
def test_a_period_that_the_times_contradict(period: float) -> None:
    with pytest.raises(ConfigurationError, match=f"{period:g} s"):
        recording_of(SPARSE, "a").shape(period)


@pytest.mark.parametrize("planned", [(), (20,), (150,), (2.5,), (1200, 30)])
def test_a_peak_of_the_plans_order_of_magnitude_is_silent(planned: tuple[float, ...]) -> None:
    assert recording_of("0,600\n60,1200", "a").shape().far_from(*planned) == ""


@pytest.mark.parametrize("planned", [(1200,), (200,), (2,), (0.3, 900)])
def test_a_peak_of_another_order_of_magnitude_is_said(planned: tuple[float, ...]) -> None:
    said = recording_of("0,600\n60,1200", "a").shape().far_from(*planned)
    assert "20 requests per second is not in the order of magnitude" in said


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_recorded_traffic(tmp_path / "none.csv")
    assert caught.value.code == "LLS130"


def test_counts_in_python() -> None:
    assert shape_of_counts("mine", [600, 1200, 0, 300], 60).levels == LEVELS
    with pytest.raises(ConfigurationError):
        shape_of_counts("mine", [0, 0], 60)


@pytest.mark.parametrize("count", [-1.0, 5e-324, 1e308, math.inf, math.nan])
def test_counts_in_python_that_none_can_be(count: float) -> None:
    with pytest.raises(ConfigurationError) as caught:
        shape_of_counts("mine", [600, count], 60)
    assert caught.value.code == "LLS130"
