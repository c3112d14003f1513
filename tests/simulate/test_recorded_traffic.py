"""Recorded numbers of requests as a traffic shape."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.simulate import read_recorded_traffic, shape_of_counts
from low_latency_endpoint.simulate.recorded_traffic import recorded_traffic

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


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0,1",
        "time,count",
        "0,5\n0,6",
        "0,5\n60,x",
        "soon,5\nlater,6",
        "0,5,6\n60,5,6",
        "0,5\n60,-1",
        "0,0\n60,0",
        "0,5\n60,5\n150,5",
        "0,1\n0.001,1\n9999,1",
        "{",
        "[1, 2]",
        "{}",
        '{"Datapoints": [{"Timestamp": "2026-11-20T10:00:00Z", "Average": 5}]}',
        '{"Datapoints": []}',
        '{"MetricDataResults": []}',
        '{"MetricDataResults": [{"Timestamps": ["2026-11-20T10:00:00Z"], "Values": []}]}',
        '{"seconds": 0, "counts": [1, 2]}',
        '{"seconds": 60, "counts": [1, null]}',
        '{"seconds": 60, "counts": [1, NaN]}',
        '{"seconds": true, "counts": [1, 2]}',
    ],
)
def test_anything_else_has_a_code(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        recorded_traffic(text, "mine", "mine.csv")
    assert caught.value.code == "LLS130"
    assert caught.value.where == "mine.csv"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_recorded_traffic(tmp_path / "none.csv")
    assert caught.value.code == "LLS130"


def test_counts_in_python() -> None:
    assert shape_of_counts("mine", [600, 1200, 0, 300], 60).levels == LEVELS
    with pytest.raises(ConfigurationError):
        shape_of_counts("mine", [0, 0], 60)
