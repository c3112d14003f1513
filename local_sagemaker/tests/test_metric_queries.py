"""Statistics and metric math of the local AWS, by GetMetricData and GetMetricStatistics."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import botocore.exceptions
import pytest
from alarms_under_test import MINUTE, NOON, dimensions


def summed(metric: str, statistic: str = "Sum") -> dict[str, Any]:
    named = {"Namespace": "Test", "MetricName": metric}
    return {"Metric": named, "Period": 60, "Stat": statistic}


def put(client: Any, *data: dict[str, Any], at: datetime = NOON, metric: str = "m") -> None:
    client.put_metric_data(
        Namespace="Test",
        MetricData=[{"MetricName": metric, "Timestamp": at, **datum} for datum in data],
    )


def statistic(client: Any, name: str) -> float | None:
    """By both operations, which must agree."""
    window = {"StartTime": NOON, "EndTime": NOON + MINUTE}
    query = {"Id": "m", "MetricStat": summed("m", name)}
    (result,) = client.get_metric_data(**window, MetricDataQueries=[query])["MetricDataResults"]
    simple = name in ("SampleCount", "Average", "Sum", "Minimum", "Maximum")
    kind = "Statistics" if simple else "ExtendedStatistics"
    points = client.get_metric_statistics(
        Namespace="Test", MetricName="m", Period=60, **window, **{kind: [name]}
    )["Datapoints"]
    other = [point[name] if simple else point["ExtendedStatistics"][name] for point in points]
    assert other == result["Values"]
    return result["Values"][0] if result["Values"] else None


HUNDRED = {"Values": [float(n) for n in range(1, 101)]}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SampleCount", 100),
        ("Sum", 5050),
        ("Average", 50.5),
        ("Minimum", 1),
        ("Maximum", 100),
        ("p0", 1),
        ("p50", 50),
        ("p99", 99),
        ("p99.5", 100),
        ("p100", 100),
        ("tm90", 45.5),
        ("TM(2%:98%)", 50.5),
        ("TM(90%:)", 95.5),
        ("TM(10:20)", 15.5),
        ("IQM", 50.5),
        # The highest tenth counts as 90: (1 + ... + 90 + 10 x 90) / 100.
        ("wm90", 49.95),
        ("WM(10%:90%)", 50.4),  # and the lowest tenth as 10
        ("tc90", 90),
        ("TC(10:20)", 10),
        ("TC(:20)", 20),
        ("ts90", 4095),
        ("TS(80%:)", 1810),
        ("PR(:30)", 30),
        ("PR(30:)", 70),
        ("PR(10:30)", 20),
    ],
)
def test_statistics_of_one_to_a_hundred(cloudwatch, name, expected):
    put(cloudwatch, HUNDRED)
    assert statistic(cloudwatch, name) == pytest.approx(expected)


def test_counts_weigh_values(cloudwatch):
    put(cloudwatch, {"Values": [1.0, 10.0], "Counts": [989.0, 11.0]})
    assert statistic(cloudwatch, "p99") == 10
    assert statistic(cloudwatch, "p98") == 1
    assert statistic(cloudwatch, "PR(1:)") == pytest.approx(1.1)
    assert statistic(cloudwatch, "SampleCount") == 1000


def statistic_set(low: float, high: float, total: float, count: float) -> dict[str, Any]:
    return {
        "StatisticValues": {"Minimum": low, "Maximum": high, "Sum": total, "SampleCount": count}
    }


@pytest.mark.parametrize(
    ("data", "average", "p99"),
    [
        (statistic_set(5, 5, 5, 1), 5, 5),
        (statistic_set(5, 5, 50, 10), 5, 5),
        (statistic_set(1, 9, 50, 10), 5, None),
        ({"Values": [5.0, -1.0]}, 2, None),
    ],
)
def test_percentiles_need_raw_values_that_are_not_negative(cloudwatch, data, average, p99):
    put(cloudwatch, data)
    assert statistic(cloudwatch, "Average") == average
    assert statistic(cloudwatch, "p99") == p99


@pytest.mark.parametrize("name", ["p", "p101", "median", "PR(1%:2%)", "TM(:)", "TM(1%:2)", "tm"])
def test_statistics_that_do_not_exist(cloudwatch, name):
    with pytest.raises(botocore.exceptions.ClientError):
        statistic(cloudwatch, name)


def test_other_dimensions_are_another_metric(cloudwatch):
    put(cloudwatch, {"Value": 1}, {"Value": 10, "Dimensions": [{"Name": "Zone", "Value": "a"}]})
    assert statistic(cloudwatch, "Sum") == 1
    found = cloudwatch.list_metrics(Dimensions=[{"Name": "Zone"}])["Metrics"]
    assert [m["Dimensions"] for m in found] == [[{"Name": "Zone", "Value": "a"}]]


# --- metric math: m1 is 10, 20, 0, 0; m2 is 20, missing, 20, missing; m3 is 1, 2, 4, missing.
SERIES: dict[str, list[float | None]] = {
    "m1": [30, 20, 0, 0],
    "m2": [20, None, 20, None],
    "m3": [1, 2, 4, None],
}
_ = None


def math(client: Any, expression: str) -> list[list[float | None]]:
    """The values of each series of the result, minute by minute."""
    for name, values in SERIES.items():
        for minute, number in enumerate(values):
            if number is not None:
                put(client, {"Value": number}, at=NOON + minute * MINUTE, metric=name)
    queries = [{"Id": n, "ReturnData": False, "MetricStat": summed(n)} for n in SERIES]
    results = client.get_metric_data(
        StartTime=NOON,
        EndTime=NOON + 4 * MINUTE,
        MetricDataQueries=[*queries, {"Id": "e", "Expression": expression}],
    )["MetricDataResults"]
    series = [dict(zip(each["Timestamps"], each["Values"], strict=True)) for each in results]
    return [[found.get(NOON + n * MINUTE) for n in range(4)] for found in series]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        # From the tables of AWS's page "Metric math syntax and functions".
        ("m1 < m2", [0, 0, 1, 0]),
        ("m1 >= 30", [1, 0, 0, 0]),
        ("m1 > 15 AND m2 > 15", [1, 0, 0, 0]),
        # Missing values of one of two series are 0; a division by zero drops the point.
        ("m1 + m2", [50, 20, 20, 0]),
        ("m2 / m1", [20 / 30, 0, _, _]),
        ("-m3 ^ 2", [-1, -4, -16, _]),
        ("m3 * 2 + 1", [3, 5, 9, _]),
        ("(m3 + 1) * 2", [4, 6, 10, _]),
        ("2 - 3 - m3", [-2, -3, -5, _]),
        # From the left, comparisons too: (m3 > 1) == 1, not m3 > 1 and 1 == 1.
        ("m3 > 1 == 1", [0, 1, 1, _]),
        ("m3 > 0 > 2", [0, 0, 0, _]),
        ("IF(m1 >= 20, m1 / m3, 0)", [30, 10, 0, 0]),
        ("IF(m3 > 1, m3)", [_, 2, 4, _]),
        ("IF(m1, m2, m3)", [20, 0, 4, _]),
        ("IF(m2 == 20 || m3 == 2, 1, 0)", [1, 1, 1, _]),
        ("SUM([m1, m2, m3])", [51, 22, 24, 0]),
        ("MAX([m1, m2])", [30, 20, 20, 0]),
        ("MIN([m1, m3])", [1, 2, 0, 0]),
        ("AVG([m1, m2])", [25, 10, 10, 0]),
        ("m3 / MAX(m3)", [0.25, 0.5, 1, _]),
        ("MAX([m3, 2])", [2, 2, 4, _]),
        ("FILL(m2, 7)", [20, 7, 20, 7]),
        ("m3 / PERIOD(m3)", [1 / 60, 2 / 60, 4 / 60, _]),
    ],
)
def test_metric_math(cloudwatch, expression, expected):
    (found,) = math(cloudwatch, expression)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("SEARCH('Test', 'Sum', 60)", "by a schema in braces"),
        ("SEARCH('{Test} a OR b', 'Sum', 60)", "terms of the form"),
        ("SELECT AVG(x) FROM y", "Insights"),
        ("UNKNOWN(m1)", "UNKNOWN is not emulated"),
        ("m1 +", "is not an expression"),
        ("m1 // m2", "is not an expression"),
        ("m1 if m2 else m3", "is not an expression"),
        ("(m1, m2)", "is not an expression of metric math"),
        ("+m1", "is not an expression of metric math"),
        ("(MAX)(m1)(m2)", "is not an expression of metric math"),
        ("ABS(m1)", "ABS is not emulated"),
        ("SUM(METRICS())", "METRICS is not emulated"),
        ("FILL(m2, REPEAT)", "No query has the id"),
        ("FILL(m2, m3)", "FILL takes a time series and a number"),
        ("2 * SEARCH('{Test,A}', 'Sum', 60)", "Operators on arrays"),
        ("'m1'", "A string or a list stands where a value is expected"),
        ("m1 # + m2", "Cannot read"),
        ("m9", "No query has the id"),
        ("e", "refers to itself"),
        ("MAX(m1)", "must be a time series"),
        ("m1 $ 2", "Cannot read"),
    ],
)
def test_expressions_refused_aloud(cloudwatch, expression, words):
    with pytest.raises(botocore.exceptions.ClientError, match=words):
        math(cloudwatch, expression)
    with pytest.raises(botocore.exceptions.ClientError):
        cloudwatch.put_metric_alarm(
            AlarmName="a",
            ComparisonOperator="GreaterThanThreshold",
            EvaluationPeriods=1,
            Threshold=1,
            Metrics=[
                {"Id": "m1", "MetricStat": summed("m1"), "ReturnData": False},
                {"Id": "e", "Expression": expression},
            ],
        )
    assert cloudwatch.describe_alarms()["MetricAlarms"] == []


def test_a_search_finds_metrics_by_schema_and_terms(cloudwatch):
    def of(metric: str, **named: str) -> dict[str, Any]:
        return {
            "MetricName": metric,
            "Timestamp": NOON,
            "Value": 1.0,
            "Dimensions": dimensions(**named),
        }

    cloudwatch.put_metric_data(
        Namespace="Test",
        MetricData=[
            of("calls", Zone="b", App="x"),
            of("calls", Zone="a", App="x"),
            of("calls", Zone="a"),
            of("calls", Zone="a", App="y"),
            of("errors", Zone="a", App="x"),
        ],
    )
    search = """SEARCH('{Test,Zone,App} MetricName="calls" App="x"', 'Sum', 60)"""
    found = cloudwatch.get_metric_data(
        StartTime=NOON, EndTime=NOON + MINUTE, MetricDataQueries=[{"Id": "s", "Expression": search}]
    )["MetricDataResults"]
    assert [(each["Label"], each["Values"]) for each in found] == [("a", [1.0]), ("b", [1.0])]
