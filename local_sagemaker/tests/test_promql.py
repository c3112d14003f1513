"""The queries that alarms on tokens make: cases worked by hand, by Prometheus's documentation."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import time
import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_sagemaker.promql import http_api
from local_sagemaker.promql.http_api import answer
from local_sagemaker.promql.queries import LONGEST_QUERY, QueryError, parse, quantile
from local_sagemaker.promql.series import Form, SeriesStore, samples_of

INF = float("inf")
ONE = '{"g", "aws.sagemaker.endpoint.name"="one"}'


def store_of(*series: tuple[str, dict[str, str], list[float | None]], step: float = 60.0):
    """Series with a value every minute from 0 on; None leaves one out."""
    store = SeriesStore()
    for name, labels, values in series:
        for number, value in enumerate(values):
            if value is not None:
                store.put(name, labels, number * step, value)
    return store


def asked(store: SeriesStore, query: str, at: float = 0.0) -> dict[str, float]:
    return parse(query).evaluate(store, at)


# ---------------------------------------------------------------------------------------- counters


@pytest.mark.parametrize(
    ("values", "increase"),
    [
        # The window (-60, 180] begins 60 s before the first point, which is no more than 1.1 times
        # their distance; but the counter was 0 then, so it cannot have risen before.
        ([0, 10, 20, 30], 30.0),
        # At its pace it was 0 thirty seconds before: 30 x (180 + 30) / 180.
        ([5, 15, 25, 35], 35.0),
        # It would have been 0 an hour before, so all 60 s count: 30 x 240 / 180.
        ([600, 610, 620, 630], 40.0),
        # Set back after 20: it rose by 10, then from 0 to 15. 25 x (180 + 180 x 10 / 25 = 72 of
        # which 60 are in the window) / 180.
        ([10, 20, 5, 15], 25 * 240 / 180),
    ],
)
def test_an_increase_is_extrapolated_but_not_below_zero(values, increase):
    store = store_of(("c", {}, values), ("c", {"host": "b"}, values))
    assert asked(store, 'sum(increase({"c"}[240s]))', 180.0)[""] == pytest.approx(2 * increase)


def test_a_range_is_open_at_its_beginning_so_one_point_gives_no_increase():
    store = store_of(("c", {}, [0, 10, 20]))
    assert asked(store, 'sum(increase({"c"}[60s]))', 120.0) == {}
    assert asked(store, 'sum(increase({"c"}[61s]))', 120.0)[""] > 0


# ------------------------------------------------------------------------------------- gauges, alarms


@pytest.fixture
def gauges() -> SeriesStore:
    return store_of(
        ("g", {"host": "a", "aws.sagemaker.endpoint.name": "one"}, [3.0, 5.0]),
        ("g", {"host": "b", "aws.sagemaker.endpoint.name": "one"}, [7.0, 5.0]),
        ("g", {"host": "c", "aws.sagemaker.endpoint.name": "two"}, [9.0, 9.0]),
    )


AVERAGE = f"max(avg_over_time({ONE}[300s]))"
OTHER = AVERAGE.replace('"g"', '"nothing"')


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (AVERAGE, [6.0]),
        (AVERAGE.replace('"one"', '"two"'), [9.0]),
        (AVERAGE.replace('"one"', '"three"'), []),
        (AVERAGE.replace("300s", "30s"), [5.0]),
        (f"{OTHER} or {AVERAGE}", [6.0]),
        (f"{AVERAGE} or {AVERAGE.replace('one', 'two')}", [6.0]),
        (f"({AVERAGE})", [6.0]),
        (f"100 * ({AVERAGE})", [600.0]),
        (f"0.5 * ({OTHER} or {AVERAGE})", [3.0]),
        (f"({AVERAGE}) > 5", [6.0]),
        (f"({AVERAGE}) > 6", []),
        (f"({OTHER} or {AVERAGE}) > 5.9 and ({AVERAGE}) >= 6", [6.0]),
        (f"({AVERAGE}) > 5 and ({AVERAGE}) >= 6.1", []),
        (f"({AVERAGE}) > 5 and ({OTHER}) >= 0", []),
    ],
)
def test_gauges(gauges, query, expected):
    assert list(asked(gauges, query, 60.0).values()) == pytest.approx(expected)


# -------------------------------------------------------------------------------------- histograms


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        # 40 of 100 up to 0.1, 90 up to 0.2, all up to 0.4, nothing above.
        (0.4, 0.1),
        (0.65, 0.15),
        (0.95, 0.3),
        (1.0, 0.4),
        (0.2, 0.05),  # the lowest bucket begins at 0
    ],
)
def test_buckets_are_linear_within(share, expected):
    assert quantile(share, [(0.1, 40), (0.2, 90), (0.4, 100), (INF, 100)]) == pytest.approx(
        expected
    )


def test_above_the_highest_bound_nothing_is_known_but_the_bound():
    assert quantile(0.9, [(0.1, 40), (0.2, 50), (INF, 100)]) == 0.2


def test_without_measurements_there_is_no_percentile():
    assert math.isnan(quantile(0.5, [(0.1, 0), (INF, 0)]))


def test_two_bounds_without_infinity_are_no_histogram():
    assert math.isnan(quantile(0.5, [(0.1, 5), (0.2, 9)]))


def page(counts: list[float], total: float) -> str:
    """What vLLM prints: cumulative counts at 0.1, 0.2 and infinity."""
    lines = ["# HELP vllm:ttft_seconds To the first token.", "# TYPE vllm:ttft_seconds histogram"]
    for bound, count in zip(("0.1", "0.2", "+Inf"), itertools.accumulate(counts), strict=True):
        lines.append(f'vllm:ttft_seconds_bucket{{le="{bound}",model_name="m"}} {count}')
    lines += [f'vllm:ttft_seconds_sum{{model_name="m"}} {total}']
    lines += [f'vllm:ttft_seconds_count{{model_name="m"}} {sum(counts)}']
    return "\n".join(lines)


HOST = "@resource.host.id"
FORMS = {
    "vllm:ttft_seconds": Form("as-scraped", "exponential"),
    "vllm_ttft_seconds": Form("underscores", "exponential"),
    "vllm:ttft_seconds_bucket": Form("as-scraped", "explicit"),
    "vllm_ttft_seconds_bucket": Form("underscores", "explicit"),
}


def percentile(metric: str, by: str = "") -> str:
    group = f' by ("{by}") ' if by else ""
    if metric.endswith("_bucket"):
        group = f' by (le, "{by}") ' if by else " by (le) "
    return f'histogram_quantile(0.75, sum{group}(rate({{"{metric}"}}[300s])))'


@pytest.mark.parametrize("metric", FORMS)
def test_each_form_gives_the_percentile_of_the_window_only(metric):
    store = SeriesStore()
    for minute in range(10):  # long ago: all were slow
        store.ingest(page([0, 0, 1000], 300.0), {HOST: "a"}, minute * 60.0, FORMS[metric])
    for minute in range(10, 16):  # since then 60 a minute, half up to 0.1, half up to 0.2
        more = 30.0 * (minute - 9)
        text = page([more, more, 1000], 300.0 + more * 0.25)
        store.ingest(text, {HOST: "a"}, minute * 60.0, FORMS[metric])
    # Three quarters: half of those between 0.1 and 0.2.
    assert asked(store, percentile(metric), 900.0) == pytest.approx({"": 0.15})
    assert asked(store, percentile(metric, by=HOST), 900.0) == pytest.approx({"a": 0.15})
    others = [each for each in FORMS if each != metric]
    assert [asked(store, percentile(each), 900.0) for each in others] == [{}] * 3
    alternatives = " or ".join(map(percentile, FORMS))
    assert asked(store, alternatives, 900.0) == pytest.approx({"": 0.15})


@pytest.mark.parametrize("by", ["", HOST])
def test_where_nothing_was_measured_the_percentile_is_no_number(by):
    for metric, form in FORMS.items():
        store = SeriesStore()
        for minute in range(3):
            store.ingest(page([0, 0, 0], 0.0), {HOST: "a"}, minute * 60.0, form)
        (value,) = asked(store, percentile(metric, by=by), 120.0).values()
        assert math.isnan(value)


def test_a_server_that_starts_anew_is_seen_in_its_histogram():
    store = SeriesStore()
    for minute, count in enumerate([10, 20, 5, 15]):
        store.ingest(page([count, 0, 0], count * 0.05), {}, minute * 60.0)
    rise = asked(store, 'histogram_count(sum(increase({"vllm:ttft_seconds"}[240s])))', 180.0)
    assert rise == pytest.approx({"": 25 * 240 / 180})  # as that of the counter above


# ------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("topk(3, g)", "topk"),
        ("label_replace(g, 'a', '$1', 'b', '(.*)')", "label_replace"),
        ("vector(1)", "vector"),
        ("up", "up"),
        ("", "1 to 10000 characters"),
        ("g" * 10_001, "10000 characters"),
        ('{"g"}', "the query's shape from"),
        ('max(avg_over_time({"g", "host"=~"a.*"}[300s]))', "the query's shape from"),
        ('max(avg_over_time({"g"}[5m]))', "m is not known"),
        (f"{AVERAGE} > 5", "the query's shape from ' > 5' on"),
        (f"({AVERAGE}) > 5 or ({AVERAGE}) > 6", "the query's shape from"),
        (f"({AVERAGE}) > 5 and ({AVERAGE}) > 6", "the query's shape from"),
        (f"{AVERAGE} or ", "the query's shape from ''"),
        (f"{percentile('a', HOST)} or {percentile('b_bucket')}", "the query's shape from"),
        ("(" * 2000 + AVERAGE + ")" * 2000, "the query's shape from"),
    ],
)
def test_what_is_not_known_is_refused_by_its_name(query, named):
    with pytest.raises(QueryError, match=named.replace("(", r"\(")):
        parse(query)


PIECES = ["(", ")", " or ", " and (", ") > 1", ") >= 1", '{"g"}', "[300s]", '"a"="b"', ", ", "sum"]


@given(st.lists(st.sampled_from([*PIECES, AVERAGE, percentile("x"), "{", '"', "a" * 50])))
def test_no_text_takes_long_or_is_a_fault_of_ours(pieces):
    text = ("".join(pieces) * (LONGEST_QUERY // (len("".join(pieces)) or 1)))[:LONGEST_QUERY]
    began = time.process_time()
    for query in (text, "".join(pieces)):
        with contextlib.suppress(QueryError):
            parse(query)
    assert time.process_time() - began < 1


# --------------------------------------------------------------------------------------- the format


def test_the_text_format_with_what_scrapers_meet():
    text = """
    # TYPE a gauge
    a{x="with \\"quotes\\", a comma and a } brace",y="1"} 1e3
    a 2 1712000000000
    b_total{} NaN
    broken{x=1} 3
    c +Inf
    """
    found = [(one.name, dict(one.labels), str(one.value), one.type) for one in samples_of(text)]
    assert found == [
        ("a", {"x": 'with "quotes", a comma and a } brace', "y": "1"}, "1000.0", "gauge"),
        ("a", {}, "2.0", "gauge"),
        ("b_total", {}, "nan", "untyped"),
        ("c", {}, "inf", "untyped"),
    ]


# ----------------------------------------------------------------------------------------- the API


def http(store, path: str, method: str = "GET", now: float = 60.0, **fields: str):
    text = urllib.parse.urlencode(
        {name.replace("match", "match[]"): v for name, v in fields.items()}
    )
    query, body = (text, b"") if method == "GET" else ("", text.encode())
    status, document = answer(store, method, path, query, body, now)
    return status, json.loads(document)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_instant_query(gauges, method):
    status, found = http(gauges, "query", method, query=AVERAGE)
    assert (status, found) == (
        200,
        {
            "status": "success",
            "data": {"resultType": "vector", "result": [{"metric": {}, "value": [60.0, "6"]}]},
        },
    )


def test_a_range_query_has_a_point_for_each_step():
    store = store_of(("c", {}, [0, 60, 120, 180]))
    query = 'sum(increase({"c"}[120s]))'
    _, found = http(store, "query_range", query=query, start="60", end="180", step="60")
    assert found["data"]["resultType"] == "matrix"
    (row,) = found["data"]["result"]
    assert [(at, float(value)) for at, value in row["values"]] == [(60, 60), (120, 120), (180, 120)]


def test_a_range_query_gives_others_their_turn(monkeypatch):
    monkeypatch.setattr(http_api, "_LONGEST", -1.0)
    status, found = http(SeriesStore(), "query_range", **RANGE)
    assert (status, found["errorType"]) == (503, "timeout")
    assert http(SeriesStore(), "query", query=AVERAGE)[0] == 200


def test_a_label_tells_the_series_of_a_range_apart():
    store = SeriesStore()
    for minute, host in itertools.product(range(3), ("a", "b")):
        store.ingest(page([minute, 0, 0], 0.0), {HOST: host}, minute * 60.0)
    query = percentile("vllm:ttft_seconds", by=HOST)
    _, found = http(store, "query_range", query=query, start="60", end="120", step="60")
    assert [row["metric"] for row in found["data"]["result"]] == [{HOST: "a"}, {HOST: "b"}]


RANGE = {"query": AVERAGE, "start": "0", "end": "9", "step": "1"}


@pytest.mark.parametrize(
    ("path", "fields", "status", "told"),
    [
        ("query", {}, 400, "query"),
        ("query", {"query": "sum("}, 400, "shape"),
        ("query", {"query": "topk(1, c)"}, 400, "topk"),
        ("query", {"query": AVERAGE, "time": "yesterday"}, 400, "time"),
        ("query", {"query": AVERAGE.replace("300s", "691200s")}, 422, "7 days"),
        ("query_range", {**RANGE, "step": ""}, 400, "step"),
        ("query_range", {**RANGE, "start": "10"}, 400, "end"),
        ("query_range", {**RANGE, "step": "0"}, 400, "step"),
        ("query_range", {**RANGE, "end": "604801", "step": "3600"}, 422, "7 days"),
        ("query_range", {**RANGE, "end": "90000"}, 400, "11,000"),
        ("label/a/values", {"match": 'g{a="b"}'}, 400, "NAME"),
        ("rules", {}, 404, "rules"),
    ],
)
def test_refusals_are_prometheus_documents(path, fields, status, told):
    got, document = http(SeriesStore(), path, **fields)
    assert (got, document["status"]) == (status, "error")
    assert told in document["error"]


def test_the_values_of_a_label(gauges):
    _, names = http(gauges, "label/__name__/values")
    assert names["data"] == ["g"]
    path = "label/aws.sagemaker.endpoint.name/values"
    assert http(gauges, path, match='{"g"}')[1]["data"] == ["one", "two"]
    assert http(gauges, path, match='{"g", "host"="c"}')[1]["data"] == ["two"]
    assert http(gauges, path, start="61", end="90")[1]["data"] == []
