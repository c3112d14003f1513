"""What language models' servers tell, and queries over it."""

from __future__ import annotations

import pytest

from local_sagemaker.promql.queries import parse
from low_latency_endpoint.facts.container_metrics import (
    ENDPOINT_LABEL,
    above,
    check_interval,
    container_metric,
    container_metrics,
    count_query,
    data_part,
    fullest_query,
    label_in,
    metric_names_in,
    percentile_query,
    percentile_share,
    promql_regions,
    watched_metric,
)
from tests.refusals import refused

OF = {"endpoint": "chat", "variant": "primary"}
MEANINGS = {
    "time_to_first_token": ("histogram", "seconds"),
    "inter_token_latency": ("histogram", "seconds"),
    "requests_waiting": ("gauge", "requests"),
    "requests_running": ("gauge", "requests"),
    "kv_cache_use": ("gauge", "share"),
}


@pytest.mark.parametrize("server", ["vllm", "sglang"])
def test_each_server_has_a_metric_of_each_meaning_with_its_source(server):
    for meaning, (kind, unit) in MEANINGS.items():
        found = container_metric(server, meaning)
        assert (found.type, found.unit) == (kind, unit)
        assert found.metric.startswith(f"{server}:")
        assert found.source
        assert found.read >= "2026-11-22"
    assert len(container_metrics()) == 2 * len(MEANINGS)


def test_names_that_vllm_has_given_up_are_not_asked_for():
    gone = {"vllm:gpu_cache_usage_perc", "vllm:time_per_output_token_seconds"}
    assert gone.isdisjoint(each.metric for each in container_metrics().values())


def queries():
    """Every query there is, and as an alarm."""
    for metric in container_metrics().values():
        if metric.type == "histogram":
            data = percentile_query(metric, 0.99, **OF)
            enough = count_query(metric, **OF)
            yield from (data, enough, above(data, 0.5, least=(enough, 20)))
        else:
            data = fullest_query(metric, **OF)
            yield from (data, above(data, 0.5))


def test_every_query_is_known_and_selects_by_name_one_endpoint_and_variant():
    for query in queries():
        parse(query)
        selectors = query.count("{")
        assert query.count(f'"{ENDPOINT_LABEL}"="chat"') == selectors
        assert query.count('"aws.sagemaker.variant.name"="primary"') == selectors


def test_every_query_asks_for_each_name_that_aws_may_have():
    ttft = container_metric("vllm", "time_to_first_token")
    name = "time_to_first_token_seconds"
    for query, ending in (
        (percentile_query(ttft, 0.5, **OF), "_bucket"),
        (count_query(ttft, **OF), "_count"),
    ):
        assert set(metric_names_in(query)) == {
            f"vllm:{name}",
            f"vllm_{name}",
            f"vllm:{name}{ending}",
            f"vllm_{name}{ending}",
        }
    assert metric_names_in(fullest_query(container_metric("vllm", "kv_cache_use"), **OF)) == (
        "vllm:kv_cache_usage_perc",
        "vllm_kv_cache_usage_perc",
    )


@pytest.mark.parametrize(
    ("query", "data"),
    [
        ("my_gauge < 20", "my_gauge"),
        ("(max(a) or max(b)) > 0.5 and (sum(c)) >= 20", "max(a) or max(b)"),
        ('max({"a", "b"=") > 1"}) >= 1', 'max({"a", "b"=") > 1"})'),
        ("(a + b) * (c) > 1", "(a + b) * (c)"),
        ("sum by (a) (b) == 1", "sum by (a) (b)"),
        ("a > 1 or b > 2", None),
        ("a or b > 2", None),
        ("a > 1 unless b", None),
        ("absent(a)", None),
    ],
)
def test_the_data_of_an_alarms_query_is_what_it_compares(query, data):
    assert data_part(query) == data


def test_a_label_is_found_in_either_kind_of_quotes():
    assert label_in("x{'aws.sagemaker.endpoint.name'=\"e\"}", ENDPOINT_LABEL) == "e"
    assert label_in("max(x)", ENDPOINT_LABEL) == ""


@pytest.mark.parametrize(
    ("name", "share"), [("p50", 0.5), ("p95", 0.95), ("p99.9", 0.999), ("p1", 0.01)]
)
def test_percentiles_by_name(name, share):
    assert percentile_share(name) == share


@pytest.mark.parametrize("name", ["p0", "p100", "P95", "95", "average", "tm99", ""])
def test_what_is_no_percentile_is_refused(name):
    with refused("LLE992"):
        percentile_share(name)


@pytest.mark.parametrize("seconds", [10, 20, 30, 60, 120, 3600])
def test_intervals_that_cloudwatch_takes(seconds):
    assert check_interval(seconds) == seconds


@pytest.mark.parametrize("seconds", [0, 5, 40, 45, 90, 3601, 3660, 10.5])
def test_intervals_that_it_refuses(seconds):
    with refused("LLE990"):
        check_interval(seconds)


def test_thresholds_are_written_without_an_exponent():
    assert above("a", 0.00005) == "(a) > 0.00005"
    assert above("a", 1000000) == "(a) > 1000000"


def test_regions_are_those_of_the_guides_table():
    found = promql_regions()
    assert len(found) == 31
    assert not [name for name in found if name.startswith(("me-", "cn-", "us-gov-", "il-"))]


@pytest.mark.parametrize("server", ["vllm", "sglang"])
def test_what_an_alarm_watches_is_what_it_was_made_of(server: str) -> None:
    first, between = (
        container_metric(server, meaning)
        for meaning in ("time_to_first_token", "inter_token_latency")
    )
    # The least number of requests is counted by another metric, which is not the one watched.
    query = above(percentile_query(between, 0.95, **OF), 0.05, least=(count_query(first, **OF), 20))
    assert watched_metric(query) == ("inter_token_latency", "p95", 0.05)
    query = above(fullest_query(container_metric(server, "kv_cache_use"), **OF), 0.9)
    assert watched_metric(query) == ("kv_cache_use", "", 0.9)


@pytest.mark.parametrize(
    "query", ["", "up > 1", 'max({"vllm:num_requests_waiting"})', 'max({"other"}) > 1']
)
def test_what_is_watched_is_unknown_of_other_queries(query: str) -> None:
    assert watched_metric(query) is None
