"""PromQL: small cases worked by hand, by Prometheus's documentation of each function."""

from __future__ import annotations

import itertools
import json
import math
import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_sagemaker.promql.evaluation import evaluate
from local_sagemaker.promql.exposition import samples_of
from local_sagemaker.promql.histograms import Histogram, classic_quantile, from_explicit
from local_sagemaker.promql.http_api import answer
from local_sagemaker.promql.series import Form, SeriesStore
from local_sagemaker.promql.vectors import QueryError

INF = float("inf")
# vLLM's for the time to first token (vllm/v1/metrics/loggers.py).
BOUNDS = [
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5),
    *(10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0, INF),
]


def store_of(*series: tuple[str, dict[str, str], list[float | None]], step: float = 60.0):
    """Series with a value every minute from 0 on; None leaves one out."""
    store = SeriesStore()
    for name, labels, values in series:
        for number, value in enumerate(values):
            if value is not None:
                store.put(name, labels, number * step, value)
    return store


def asked(store: SeriesStore, query: str, at: float = 0.0) -> dict[tuple[str, ...], float]:
    """The values of an instant vector, by the values of their labels in order of the names."""
    found = evaluate(store, query, at)
    assert isinstance(found, list)
    return {tuple(v for _, v in sorted(one.labels.items())): one.value for one in found}


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
    store = store_of(("c", {}, values))
    assert asked(store, "increase(c[4m])", 180.0)[()] == pytest.approx(increase)
    assert asked(store, "rate(c[4m])", 180.0)[()] == pytest.approx(increase / 240)


def test_a_range_is_open_at_its_beginning_so_one_point_gives_no_rate():
    store = store_of(("c", {}, [0, 10, 20]))
    assert asked(store, "rate(c[1m])", 120.0) == {}
    assert asked(store, "rate(c[61s])", 120.0)[()] > 0


def test_a_value_is_the_present_one_for_five_minutes():
    store = store_of(("g", {}, [7.0]))
    assert asked(store, "g", 299.0) == {("g",): 7.0}
    assert asked(store, "g", 300.0) == {}
    assert asked(store, "g offset 4m", 300.0) == {("g",): 7.0}


# -------------------------------------------------------------------------------------- operations


@pytest.fixture
def waiting() -> SeriesStore:
    return store_of(
        ("vllm:waiting", {"host": "a", "aws.sagemaker.endpoint.name": "one"}, [3.0]),
        ("vllm:waiting", {"host": "b", "aws.sagemaker.endpoint.name": "one"}, [5.0]),
        ("vllm:waiting", {"host": "c", "aws.sagemaker.endpoint.name": "two"}, [9.0]),
    )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('sum({"vllm:waiting", "aws.sagemaker.endpoint.name"="one"})', {(): 8.0}),
        ("max(vllm:waiting{'aws.sagemaker.endpoint.name'=\"one\"})", {(): 5.0}),
        ("min(vllm:waiting)", {(): 3.0}),
        ("count(vllm:waiting)", {(): 3.0}),
        ("avg(vllm:waiting)", {(): 17 / 3}),
        ('sum by ("aws.sagemaker.endpoint.name") (vllm:waiting)', {("one",): 8.0, ("two",): 9.0}),
        ("sum without (host) (vllm:waiting)", {("one",): 8.0, ("two",): 9.0}),
        ('vllm:waiting{host=~"a|c"} * 2', {("one", "a"): 6.0, ("two", "c"): 18.0}),
        ('vllm:waiting{host!~"a.*"} > 5', {("vllm:waiting", "two", "c"): 9.0}),
        ("5 < vllm:waiting", {("vllm:waiting", "two", "c"): 9.0}),
        ('vllm:waiting{host="c"} > bool 10', {("two", "c"): 0.0}),
        ("sum(vllm:waiting) or vector(0)", {(): 17.0}),
        ("sum(nothing) or vector(0)", {(): 0.0}),
        ('vllm:waiting and vllm:waiting{host="b"}', {("vllm:waiting", "one", "b"): 5.0}),
        ('vllm:waiting unless on(host) vllm:waiting{host!="b"}', {("vllm:waiting", "one", "b"): 5}),
        ('vllm:waiting{host="a"} - vllm:waiting{host="a"}', {("one", "a"): 0.0}),
        ('vllm:waiting{host="a"} / on() vllm:waiting{host="c"}', {(): 3 / 9}),
        ("-vllm:waiting + 1", {("one", "a"): -2.0, ("one", "b"): -4.0, ("two", "c"): -8.0}),
        ('absent(nothing{host="x"})', {("x",): 1.0}),
        ("absent(vllm:waiting)", {}),
        ('clamp_min(vllm:waiting{host="a"}, 4)', {("one", "a"): 4.0}),
        ("vector(2 ^ 3 ^ 2 % 100)", {(): 12.0}),
    ],
)
def test_operations(waiting, query, expected):
    assert asked(waiting, query) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("avg_over_time", 2.5),
        ("min_over_time", 1.0),
        ("max_over_time", 4.0),
        ("sum_over_time", 10.0),
        ("count_over_time", 4.0),
        ("present_over_time", 1.0),
        ("stddev_over_time", math.sqrt(1.25)),
    ],
)
def test_functions_over_time(function, expected):
    store = store_of(("g", {"host": "a"}, [4.0, 1.0, 3.0, 2.0]))
    assert asked(store, f"{function}(g[10m])", 180.0) == pytest.approx({("a",): expected})
    assert asked(store, f"{function}(g[10m])", 7200.0) == {}


def test_the_last_value_keeps_its_name_and_the_median_lies_between_two():
    store = store_of(("g", {}, [4.0, 1.0, 3.0, 2.0]))
    assert asked(store, "last_over_time(g[10m])", 180.0) == {("g",): 2.0}
    assert asked(store, "quantile_over_time(0.5, g[10m])", 180.0) == {(): 2.5}


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("topk(3, g)", "topk"),
        ("label_replace(g, 'a', '$1', 'b', '(.*)')", "label_replace"),
        ("max_over_time(rate(g[5m])[1h:1m])", "subquery"),
        ("g * on(host) group_left h", "group_left"),
        ("g @ 100", "@"),
        ("g atan2 g", "atan2"),
        ("rate(g)", "parse error"),
        ("nosuch(g)", "nosuch"),
        ("1 > 2", "(?i)bool"),
        ("g[5m]", "range vector"),
        ('{host="a"}', "select a metric by name"),
        ('{__name__=~"vllm.waiting"}', "select a metric by name"),
        ("g" * 10_001, "10000 characters"),
        ("g offset 1e309", "parse error"),  # at which the parser panics
        ("g" + "+g" * 1500, "too deeply"),
        ("(" * 2000 + "g" + ")" * 2000, "too deeply"),
    ],
)
def test_what_is_not_known_is_refused_by_its_name_on_no_data_at_all(query, named):
    with pytest.raises(QueryError, match=named):
        evaluate(SeriesStore(), query, 0.0)


def test_a_side_with_two_of_a_pair_is_refused(waiting):
    with pytest.raises(QueryError, match="duplicate series"):
        evaluate(waiting, 'vllm:waiting{host="c"} + on() vllm:waiting', 0.0)


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
        (-0.1, -INF),
        (1.1, INF),
    ],
)
def test_explicit_buckets_are_linear_within(share, expected):
    assert classic_quantile(share, [(0.1, 40), (0.2, 90), (0.4, 100), (INF, 100)]) == pytest.approx(
        expected
    )


def test_above_the_highest_bound_nothing_is_known_but_the_bound():
    assert classic_quantile(0.9, [(0.1, 40), (0.2, 50), (INF, 100)]) == 0.2
    made = from_explicit([(0.1, 40), (0.2, 50), (INF, 100)], 20.0)
    assert 0.2 <= made.quantile(0.9) <= 0.2 * 2 ** (1 / 8)


def test_without_measurements_there_is_no_percentile():
    assert math.isnan(classic_quantile(0.5, [(0.1, 0), (INF, 0)]))
    assert math.isnan(Histogram().quantile(0.5))


def test_two_bounds_without_infinity_are_no_histogram():
    assert math.isnan(classic_quantile(0.5, [(0.1, 5), (0.2, 9)]))


def cumulative(values: list[float]) -> list[tuple[float, float]]:
    return [(bound, float(sum(value <= bound for value in values))) for bound in BOUNDS]


@given(
    st.lists(st.floats(0.0001, 3000), min_size=1, max_size=200), st.sampled_from([0.5, 0.9, 0.99])
)
def test_conversion_keeps_count_and_sum_and_the_bucket_of_a_percentile(values, share):
    made = from_explicit(cumulative(values), math.fsum(values))
    assert made.count == len(values)
    assert made.sum == math.fsum(values)
    assert math.fsum(made.buckets.values()) == pytest.approx(len(values))
    # The explicit bucket in which the percentile lies, by counting; one exponential bucket, a
    # factor of 2^(1/8), may reach across its ends.
    counts = [count for _, count in cumulative(values)]
    index = next(i for i, count in enumerate(counts) if count >= share * len(values) * (1 - 1e-12))
    low = BOUNDS[index - 1] if index else 0.0
    high = min(BOUNDS[index], BOUNDS[-2] * 2 ** (1 / 8))
    assert low / 1.0906 <= made.quantile(share) <= high * 1.0906


@given(st.lists(st.floats(0.001, 100), min_size=1), st.lists(st.floats(0.001, 100), min_size=1))
def test_added_histograms_are_those_of_all_measurements(some, others):
    together = from_explicit(cumulative(some), math.fsum(some)) + from_explicit(
        cumulative(others), math.fsum(others)
    )
    at_once = from_explicit(cumulative([*some, *others]), math.fsum([*some, *others]))
    assert together.count == at_once.count
    assert together.quantile(0.5) == pytest.approx(at_once.quantile(0.5), rel=1e-6)
    back = together - from_explicit(cumulative(others), math.fsum(others))
    assert back.count == len(some)


def page(counts: list[float], total: float) -> str:
    """What vLLM prints: cumulative counts at 0.1, 0.2 and infinity."""
    lines = ["# HELP vllm:ttft_seconds To the first token.", "# TYPE vllm:ttft_seconds histogram"]
    for bound, count in zip(("0.1", "0.2", "+Inf"), itertools.accumulate(counts), strict=True):
        lines.append(f'vllm:ttft_seconds_bucket{{le="{bound}",model_name="m"}} {count}')
    lines += [f'vllm:ttft_seconds_sum{{model_name="m"}} {total}']
    lines += [f'vllm:ttft_seconds_count{{model_name="m"}} {sum(counts)}']
    return "\n".join([*lines, "# TYPE vllm:tokens_total counter", "vllm:tokens_total 5 1712"])


RESOURCE = {"aws.sagemaker.endpoint.name": "e"}
FORMS = [
    pytest.param(
        Form("as-scraped", "exponential"), '{"vllm:ttft_seconds"}', "vllm:tokens_total", id="c"
    ),
    pytest.param(
        Form("underscores", "explicit"), "vllm_ttft_seconds_bucket", "vllm_tokens_total", id="b"
    ),
]


@pytest.mark.parametrize(("form", "metric", "counter"), FORMS)
def test_both_forms_give_the_percentile_of_the_window_only(form, metric, counter):
    store = SeriesStore()
    for minute in range(10):  # long ago: all were slow
        store.ingest(page([0, 0, 1000], 300.0), RESOURCE, minute * 60.0, form)
    for minute in range(10, 16):  # since then 60 a minute, half up to 0.1, half up to 0.2
        more = 30.0 * (minute - 9)
        store.ingest(page([more, more, 1000], 300.0 + more * 0.25), RESOURCE, minute * 60.0, form)
    by = "by (le)" if form.histograms == "explicit" else ""
    query = f"histogram_quantile(0.75, sum {by} (rate({metric}[5m])))"
    # Three quarters: half of those between 0.1 and 0.2; of equal share on a line, or on a
    # logarithm within the ninth part of the range that an exponential bucket is.
    assert asked(store, query, 900.0)[()] == pytest.approx(0.15, rel=0.05)
    assert asked(store, f"sum({counter})", 900.0) == {(): 5.0}
    other = '{"vllm:ttft_seconds"}' if form.histograms == "explicit" else "vllm_ttft_seconds_bucket"
    assert asked(store, other, 900.0) == {}


def test_the_average_of_an_exponential_histogram_is_exact():
    store = SeriesStore()
    store.ingest(page([3, 1, 0], 0.5), RESOURCE, 0.0)
    assert asked(store, 'histogram_avg({"vllm:ttft_seconds"})') == {("e", "m"): 0.125}
    assert asked(store, 'histogram_count({"vllm:ttft_seconds"})') == {("e", "m"): 4.0}
    assert asked(store, '{"vllm:ttft_seconds"} > 0') == {}  # no number to compare


def test_a_server_that_starts_anew_is_seen_in_its_histogram():
    store = SeriesStore()
    for minute, count in enumerate([10, 20, 5, 15]):
        store.ingest(page([count, 0, 0], count * 0.05), RESOURCE, minute * 60.0)
    rise = asked(store, 'histogram_count(increase({"vllm:ttft_seconds"}[4m]))', 180.0)
    assert rise == pytest.approx({("e", "m"): 25 * 240 / 180})  # as that of the counter above


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


def http(store, path: str, method: str = "GET", now: float = 120.0, **fields: str):
    text = urllib.parse.urlencode(
        {name.replace("match", "match[]"): v for name, v in fields.items()}
    )
    query, body = (text, b"") if method == "GET" else ("", text.encode())
    status, document = answer(store, method, path, query, body, now)
    return status, json.loads(document)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_instant_query(waiting, method):
    status, found = http(waiting, "query", method, query="sum(vllm:waiting)")
    assert (status, found) == (
        200,
        {
            "status": "success",
            "data": {"resultType": "vector", "result": [{"metric": {}, "value": [120.0, "17"]}]},
        },
    )


def test_a_range_query_has_a_point_for_each_step():
    store = store_of(("c", {}, [0, 60, 120, 180]))
    fields = {"query": "rate(c[2m])", "start": "60", "end": "180", "step": "1m"}
    _, found = http(store, "query_range", **fields)
    assert found["data"]["resultType"] == "matrix"
    (row,) = found["data"]["result"]
    assert [(at, float(value)) for at, value in row["values"]] == [(60, 0.5), (120, 1), (180, 1)]


@pytest.mark.parametrize(
    ("path", "fields", "status", "told"),
    [
        ("query", {}, 400, "query"),
        ("query", {"query": "sum("}, 400, "parse error"),
        ("query", {"query": "topk(1, c)"}, 400, "topk"),
        ("query", {"query": "c", "time": "yesterday"}, 400, "time"),
        ("query", {"query": "rate(c[8d])"}, 422, "7 days"),
        ("query", {"query": "c", "limit": "501"}, 400, "limit"),
        ("query_range", {"query": "c", "start": "0", "end": "9"}, 400, "step"),
        ("query_range", {"query": "c", "start": "9", "end": "0", "step": "1"}, 400, "end"),
        ("query_range", {"query": "c", "start": "0", "end": "9", "step": "0"}, 400, "step"),
        ("query_range", {"query": "c", "start": "0", "end": "604801", "step": "1h"}, 422, "7 days"),
        ("query_range", {"query": "c", "start": "0", "end": "90000", "step": "1"}, 400, "11,000"),
        ("series", {"match": "c"}, 400, "start"),
        ("series", {"match": '{a="b"}', "start": "0", "end": "9"}, 400, "by name"),
        ("rules", {}, 404, "rules"),
    ],
)
def test_refusals_are_prometheus_documents(path, fields, status, told):
    got, document = http(SeriesStore(), path, **fields)
    assert (got, document["status"]) == (status, "error")
    assert told in document["error"]


def test_more_than_500_series_are_cut_off_with_a_warning():
    store = store_of(*(("c", {"n": str(n)}, [1.0]) for n in range(501)))
    _, found = http(store, "query", query="c")
    assert len(found["data"]["result"]) == 500
    assert "500" in found["warnings"][0]
    _, found = http(store, "query", query="c", limit="2")
    assert len(found["data"]["result"]) == 2
    _, found = http(store, "query", query='c{n!="0"}')
    assert "warnings" not in found


def test_discovery_tells_names_labels_and_their_values(waiting):
    _, names = http(waiting, "label/__name__/values")
    assert names["data"] == ["vllm:waiting"]
    values = "label/aws.sagemaker.endpoint.name/values"
    _, found = http(waiting, values, match='{"vllm:waiting", "host"="c"}')
    assert found["data"] == ["two"]
    _, labels = http(waiting, "labels")
    assert labels["data"] == ["__name__", "aws.sagemaker.endpoint.name", "host"]
    _, late = http(waiting, "label/__name__/values", start="1", end="9")
    assert late["data"] == []
    fields = {"match": 'vllm:waiting{host="a"}', "start": "0", "end": "9"}
    _, series = http(waiting, "series", **fields)
    assert series["data"] == [
        {"__name__": "vllm:waiting", "aws.sagemaker.endpoint.name": "one", "host": "a"}
    ]


def test_an_exponential_histogram_is_told_with_its_buckets():
    store = SeriesStore()
    store.put("h", {}, 0.0, from_explicit([(1.0, 0), (2.0, 4), (INF, 4)], 6.0))
    _, found = http(store, "query", query="h", time="0")
    _, told = found["data"]["result"][0]["histogram"]
    assert (told["count"], told["sum"]) == ("4", "6")
    assert sum(float(count) for *_, count in told["buckets"]) == pytest.approx(4)
    assert [told["buckets"][0][1], told["buckets"][-1][2]] == ["1", "2"]
