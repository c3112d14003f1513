"""Expressions of odd form: a value, or a validation error that names the query; nothing else.

Sources: CloudWatch user guide, "Metric math syntax and functions" and "CloudWatch search expression
syntax"; API reference, MetricDataQuery (2,048 characters).
"""

from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest
from alarms_under_test import MINUTE, NOON
from hypothesis import given
from hypothesis import strategies as st
from signed_requests import refusal

from local_sagemaker.cloudwatch.metric_math import ExpressionError
from local_sagemaker.cloudwatch.metric_store import MetricStore
from local_sagemaker.cloudwatch.queries import Queries, Window

METRIC = {"Namespace": "Odd", "MetricName": "m"}
STAT = {"Id": "m", "MetricStat": {"Metric": METRIC, "Period": 60, "Stat": "Sum"}}
NOTHING = "SEARCH('{Odd} MetricName=\"nothing\"', 'Sum', 60)"
HUGE = "m * 1e300"
WINDOW = {"StartTime": NOON, "EndTime": NOON + MINUTE}


def asked(expression: str) -> list[dict[str, Any]]:
    return [{**STAT, "ReturnData": False}, {"Id": "e", "Expression": expression}]


@pytest.mark.parametrize(
    "expression",
    [
        *(f"{name}([])" for name in ("AVG", "MAX", "MIN", "SUM")),
        *(f"{name}({NOTHING})" for name in ("AVG", "MAX", "MIN", "SUM")),
        f"AVG([{NOTHING}])",
        "m + AVG([])",
        "e",
        "m + e",
        "ANOMALY_DETECTION_BAND(e)",
        "ANOMALY_DETECTION_BAND(ANOMALY_DETECTION_BAND(m))",
        "ANOMALY_DETECTION_BAND()",
        "ANOMALY_DETECTION_BAND(m, 2, 3)",
        " + ".join(["m"] * 2001),
        "-" * 2000 + "m",
        "(" * 300 + "m" + ")" * 300,
        "IF(" * 250 + "m" + ", 1)" * 250,
        "((m",
        "m)",
        "[m",
        "m m",
        "m +",
        " ",
        "m[0]",
        "m, m",
        "'a'('b')",
        "FILL()",
        "PERIOD()",
        "SEARCH()",
        "SEARCH('{Odd}', 'Sum', 0)",
        "SEARCH('{Odd}', 'Sum', 61)",
        "SEARCH('{Odd}', 'Nothing', 60)",
        "9" * 400,
        "m + 1e999",
        "1 / 0",
    ],
)
def test_an_odd_expression_is_a_validation_error_of_both_operations(cloudwatch, expression):
    code, message = refusal(
        cloudwatch.get_metric_data, **WINDOW, MetricDataQueries=asked(expression)
    )
    assert code == "ValidationError"
    alarm = {"AlarmName": "odd", "EvaluationPeriods": 1, "Threshold": 0.0}
    alarm |= {"Metrics": asked(expression), "ComparisonOperator": "GreaterThanThreshold"}
    assert refusal(cloudwatch.put_metric_alarm, **alarm)[0] == "ValidationError"
    if len(expression) <= 2048:
        assert message.startswith("Error in expression 'e': ")


def test_an_expression_of_2048_characters_is_a_value(cloudwatch):
    cloudwatch.put_metric_data(
        Namespace="Odd", MetricData=[{"MetricName": "m", "Timestamp": NOON, "Value": 2.0}]
    )
    queries = asked("+".join(["m"] * 1024))
    assert len(queries[1]["Expression"]) == 2047
    (result,) = cloudwatch.get_metric_data(**WINDOW, MetricDataQueries=queries)["MetricDataResults"]
    assert result["Values"] == [2048.0]


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("expressions", "seconds", "allowed"),
    [
        (["FILL(m, 0)"], 100_800, True),
        (["FILL(m, 0)"], 100_801, False),
        (["FILL(m, 0) + FILL(m, 1)"], 50_400, True),
        (["FILL(m, 0) + FILL(m, 1)"], 50_401, False),
        (["FILL(m, 0)"] * 2, 50_401, False),
        (["ANOMALY_DETECTION_BAND(FILL(m, 0))"], 100_801, False),
        (["FILL(m, 0)"], 4_000_000_000, False),
    ],
)
def test_a_request_has_100800_datapoints(cloudwatch, expressions, seconds, allowed):
    """API reference, GetMetricData: "with a total of as many as 100,800 data points"."""
    put = {"MetricName": "fine", "Timestamp": NOON, "Value": 2.0}
    cloudwatch.put_metric_data(Namespace="Odd", MetricData=[put])
    fine = {"Metric": {**METRIC, "MetricName": "fine"}, "Period": 1, "Stat": "Sum"}
    queries = [{"Id": "m", "MetricStat": fine, "ReturnData": False}]
    for number, expression in enumerate(expressions):
        queries.append({"Id": f"e{number}", "Expression": expression})
    start = NOON.timestamp()
    asked_for = {"StartTime": start, "EndTime": start + seconds, "MetricDataQueries": queries}
    if allowed:
        (result,) = cloudwatch.get_metric_data(**asked_for)["MetricDataResults"]
        assert len(result["Values"]) == seconds
    else:
        code, message = refusal(cloudwatch.get_metric_data, **asked_for)
        assert code == "ValidationError"
        assert "100,800 datapoints" in message


ATOMS = st.sampled_from(
    ["m", "h", "e", "other", "[]", "[m]", "[m, 2]", "0", "2", "1e308", "'a'", NOTHING, HUGE, "q"]
)
FORMS = st.sampled_from(
    [
        *(f"{name}({{0}})" for name in ("SUM", "AVG", "MAX", "MIN", "PERIOD", "NOTHING")),
        *(f"{{0}} {sign} {{1}}" for sign in ("+", "-", "*", "/", "^", "<", "==", "AND", "||")),
        "IF({0}, {1})",
        "IF({0}, {1}, {0})",
        "FILL({0}, {1})",
        "ANOMALY_DETECTION_BAND({0}, {1})",
        "[{0}, {1}]",
        "-({0})",
        "({0}",
        "{0} {1}",
    ]
)
EXPRESSIONS = st.one_of(
    st.text(),
    st.text("m[]()+-*/^&|<>=,.'\"1e _", max_size=30),
    st.recursive(ATOMS, lambda inner: st.builds(str.format, FORMS, inner, inner), max_leaves=12),
)


@given(EXPRESSIONS, EXPRESSIONS, st.lists(st.floats(allow_nan=False), max_size=20))
def test_any_expression_is_a_value_or_a_validation_error(expression, other, values):
    store = MetricStore()
    for minute, value in enumerate(values):
        for name in "mh":
            datum = {"MetricName": name, "Timestamp": 60.0 * minute, "Value": value}
            store.put("Odd", datum, NOON)
    metric = {**STAT["MetricStat"], "Metric": {**METRIC, "MetricName": "h"}}
    queries = [
        STAT,
        {"Id": "h", "MetricStat": metric},
        {"Id": "e", "Expression": expression},
        {"Id": "other", "Expression": other},
    ]
    with contextlib.suppress(ExpressionError):
        result = Queries(store, queries).result("e", Window(600.0, 1200.0))
        series = result if isinstance(result, list) else [result]
        for points in series:
            assert isinstance(points, float) or all(map(math.isfinite, points.values.values()))
