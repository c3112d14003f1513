"""Recorded numbers of requests as a traffic shape."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.simulate import read_recorded_traffic, shape_of_counts
from low_latency_endpoint.simulate.traffic import recorded_traffic

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


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"{time}Z,{count}" for time, count in zip(TIMES, COUNTS, strict=True)),
        "time,count\r\n0,600\r\n60,1200\r\n180,300\r\n",
        json.dumps({"Label": "Invocations", "Datapoints": _points("+00:00")}),
        json.dumps({"Label": "Invocations", "Datapoints": _points("Z")}),
        json.dumps(
            {"MetricDataResults": [{"Id": "m1", "Timestamps": TIMES[::-1], "Values": COUNTS[::-1]}]}
        ),
        json.dumps({"seconds": 60, "counts": [600, 1200, 0, 300]}),
    ],
    ids=["csv", "csv-heads", "statistics", "statistics-z", "metric-data", "counts"],
)
def test_every_form_gives_the_same_shape(text: str, tmp_path: Path) -> None:
    file = tmp_path / "monday.txt"
    file.write_text(text, "utf-8", newline="")
    shape = read_recorded_traffic(file)
    assert shape.levels == LEVELS
    assert shape.name == "monday"
    assert shape.description == "recorded: 4 periods of 60 s, at most 20 requests per second"


READ = {
    **{
        f"epoch-{unit}": f"{1700000000 * unit},600\n{1700000060 * unit},1200\n{1700000180 * unit},300"
        for unit in (1, 10**3, 10**6, 10**9)
    },
    "unsorted": "180,300\n0,600\n60,1200",
    "grafana": 'sep=;\n"Time";"Invocations"\n"2026-11-20 10:00:00";"600"\n'
    '"2026-11-20 10:01:00";"1200"\n"2026-11-20 10:02:00";""\n"2026-11-20 10:03:00";"300"',
    "grafana-series": '"Series","Time","Value"\n"a","2026-11-20T10:00:00+01:00",600\n'
    '"a","2026-11-20T10:01:00+01:00",1200\n"a","2026-11-20T09:03:00Z",300',
    "kibana": '"@timestamp per minute","Count"\n"2026-11-20 10:00",600\n'
    '"2026-11-20 10:01","1,200"\n"2026-11-20 10:03",300',
    "console": "Full label,Invocations\nStatistic,Sum\n2026/11/20 10:00:00,600\n"
    "2026/11/20 10:01:00,1200\n2026/11/20 10:03:00,300",
    "prometheus": '{"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}, '
    '"values": [[1700000000, "600"], [1700000060, "1200"], [1700000180, "300"]]}]}}',
    "pages-of-one-query": '{"MetricDataResults": [{"Id": "a", "StatusCode": "PartialData", '
    '"Timestamps": ["2026-11-20T10:03:00Z", "2026-11-20T10:01:00Z"], "Values": [300, 1200]}, {"Id": '
    '"a", "StatusCode": "Complete", "Timestamps": ["2026-11-20T10:00:00Z"], "Values": [600]}]}',
}


@pytest.mark.parametrize("text", READ.values(), ids=READ)
def test_what_tools_export_gives_it_too(text: str) -> None:
    shape = recorded_traffic(text, "monday")
    assert shape.levels == LEVELS
    assert shape.recorded_peak == 20


TRACES = {
    "burstgpt": "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,GPT-4,47,18,65,"
    "API log\n45,GPT-4,1,2,3,API log\n131,GPT-4,4,0,4,API log",
    "azure": "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n"
    "2023-11-16 18:17:04.0319600,3180,8\n2023-11-16 18:19:30.0000000,3180,8",
    "vidur": "arrived_at,num_prefill_tokens,num_decode_tokens\n0,1,2\n0,1,2\n121.5,3,4",
    "mooncake": '{"timestamp": 0, "input_length": 67, "output_length": 1}\n{"timestamp": 0, "input_length": 7, "output_length": 1}\n'
    '{"timestamp": 125000, "input_length": 7, "output_length": 1}',
    "qwen": '{"chat_id": 1, "timestamp": 0.5, "input_length": 67, "output_length": 1}\n{"timestamp": 9.0, '
    '"input_length": 7, "output_length": 1}\n{"timestamp": 125.0, "input_length": 7, "output_length": 1}',
    "times": "2026-11-20 10:00:10\n2026-11-20 10:00:01\n2026-11-20 10:02:30",
}


@pytest.mark.parametrize("text", TRACES.values(), ids=TRACES)
def test_lines_of_single_requests_are_counted(text: str) -> None:
    assert recorded_traffic(text, "a").levels == ((60.0, 1.0), (120.0, 0.0), (180.0, 0.5))
    assert recorded_traffic(text, "a", period=120).levels == ((120.0, 1.0), (240.0, 0.5))


SPARSE = "2026-11-20T10:00Z,600\n2026-11-20T10:02Z,1200\n2026-11-20T10:06Z,600"


@pytest.mark.parametrize(("period", "peak"), [(60.0, 20), (120.0, 10)])
def test_who_says_the_period_has_its_rate(period: float, peak: float) -> None:
    assert recorded_traffic(SPARSE, "a", period=period).recorded_peak == peak


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty file"),
        ("0,1", "1 times"),
        ("time,count", "no line"),
        ("0,5\n0,6", "one time twice, 0 s"),
        ("2026-11-20T10:00Z,5\n2026-11-20T11:00+01:00,6", "2026-11-20 10:00:00+00:00"),
        ("0,5\n60,x", "'x' is no number"),
        ("0,5\n60,NaN", "'NaN' is no number"),
        ("0,5\n60,5.21 K", "'5.21 K' is no number"),
        ("0;5.210\n60;4.200", "thousands or a fraction"),
        ("soon,5\nlater,6", "no line"),
        ("0,5\nlater,6", "'later' is no time"),
        ("11/20/2026 10:00,5", "no line"),
        ("0,5,6\n60,5,6", "3 columns"),
        ("series,time,value\na,0,6\nb,60,6", "3 columns"),
        ("0,5\n60,5,6", "different lengths"),
        ("time,req/s\n0,91\n60,90", "'req/s'"),
        ("0,5\n60,-1", "a count of -1"),
        ("0,0\n60,0", "not one request"),
        ("0,5\n60,5\n150,5", "no multiple"),
        ("0,1\n60,1\n99999960,1", "periods of 60 s"),
        ("1700000000,5\n1700000060000,6", "no years in one of"),
        ("0,5\n1700000060,6", "no years in one of"),
        ("99999999999,5\n99999999959,5", "no years in one of"),
        (SPARSE, "Say it with --period"),
        ("time,prompt_tokens\n0,91\n60,90", "'prompt_tokens'"),
        ("time,ContextTokens,GeneratedTokens\n0,5,5\n1,6,6", "one period of 60 s"),
        ("{", "no whole JSON"),
        ("[" * 9999, ""),
        ("[1, 2]", "another form"),
        ("{}", "'data'"),
        ('{"a": 1}\n{"a": 2}', "no trace"),
        ('{"Datapoints": [{"Timestamp": "2026-11-20T10:00:00Z", "Average": 5}]}', "'Sum'"),
        ('{"Datapoints": [], "NextToken": "a"}', "NextToken"),
        ('{"Datapoints": []}', "0 times"),
        ('{"MetricDataResults": []}', "0 times"),
        ('{"MetricDataResults": [{"Timestamps": [1], "Values": []}]}', "not as many"),
        ('{"MetricDataResults": [{"Id": "a"}, {"Id": "b"}]}', "several series"),
        ('{"MetricDataResults": [{"StatusCode": "PartialData"}]}', "PartialData"),
        ('{"status": "error", "error": "bad query"}', "bad query"),
        ('{"data": {"result": [{"metric": {}, "value": [1, "5"]}]}}', "'values'"),
        ('{"seconds": 0, "counts": [1, 2]}', "periods of 0 s"),
        ('{"seconds": 60, "counts": [1, null]}', "None"),
        ('{"seconds": 60, "counts": [1, NaN]}', "nan"),
        ('{"seconds": true, "counts": [1, 2]}', "True"),
    ],
)
def test_anything_else_has_a_code_and_own_words(text: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        recorded_traffic(text, "mine", "mine.csv")
    assert caught.value.code == "LLS130"
    assert caught.value.where == "mine.csv"
    assert says in caught.value.got


@pytest.mark.parametrize("period", [0.0, 45.0, 300.0])
def test_a_period_that_the_times_contradict(period: float) -> None:
    with pytest.raises(ConfigurationError, match=f"{period:g} s"):
        recorded_traffic(SPARSE, "a", period=period)


@pytest.mark.parametrize("planned", [(), (20,), (150,), (2.5,), (1200, 30)])
def test_a_peak_of_the_plans_order_of_magnitude_is_silent(planned: tuple[float, ...]) -> None:
    assert recorded_traffic("0,600\n60,1200", "a").far_from(*planned) == ""


@pytest.mark.parametrize("planned", [(1200,), (200,), (2,), (0.3, 900)])
def test_a_peak_of_another_order_of_magnitude_is_said(planned: tuple[float, ...]) -> None:
    said = recorded_traffic("0,600\n60,1200", "a").far_from(*planned)
    assert "20 requests per second is not in the order of magnitude" in said


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_recorded_traffic(tmp_path / "none.csv")
    assert caught.value.code == "LLS130"


def test_counts_in_python() -> None:
    assert shape_of_counts("mine", [600, 1200, 0, 300], 60).levels == LEVELS
    with pytest.raises(ConfigurationError):
        shape_of_counts("mine", [0, 0], 60)
