"""Texts and numbers at their edges, which hardly a plan has."""

from __future__ import annotations

from datetime import date

import pytest

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.facts.container_metrics import server_of
from low_latency_endpoint.facts.limit_kinds import Range
from low_latency_endpoint.facts.prices import Price
from low_latency_endpoint.facts.s3_names import bucket_of
from low_latency_endpoint.facts.token_values import is_token
from low_latency_endpoint.facts.warm_up_rules import keep_warm_threshold, least_unreserved
from low_latency_endpoint.facts.zones import is_stand_in
from low_latency_endpoint.options.throughput import counted_instances, instances_for
from low_latency_endpoint.plan.decisions import Decision
from low_latency_endpoint.plan.endpoint_request import VariantShare
from low_latency_endpoint.plan.price_file import days_old
from low_latency_endpoint.plan.traffic_shapes import SECONDS


def test_counts() -> None:
    words = [counted_instances(count) for count in (0.5, 1, 1.0, 2.0, 1200, 4.4956)]
    assert words == [
        "0.5 instances",
        "1 instance",
        "1 instance",
        "2 instances",
        "1,200 instances",
        "4.496 instances",
    ]
    assert (instances_for(1000, 200), instances_for(1000, 200, 0.65)) == (5, 8)
    assert (least_unreserved(1000), least_unreserved(10)) == (100, 10)
    assert keep_warm_threshold(zones=2, requests_per_zone=60, every_seconds=60, below_tps=None) == 4
    share = VariantShare(variant="challenger", weight=1, of=10)
    assert share.text == "10 % of the requests (weight 1 of 10)"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1, "requests in flight per instance", "1 request in flight per instance"),
        (1, "instances", "1 instance"),
        (2, "tokens per second", "2 tokens per second"),
        (1, "ms", "1 ms"),
        (None, "instances", "not known"),
    ],
)
def test_one_of_a_unit(value: float | None, unit: str, text: str) -> None:
    assert Decision(name="target", value=value, unit=unit, rule="").value_text == text


@pytest.mark.parametrize(("least", "fix"), [(0, "0 or more"), (1e-6, "more than 0"), (-2, "-2 or")])
def test_the_least_number_that_is_allowed(least: float, fix: str) -> None:
    limit = Range(SECONDS.rule, "a time", least, None, whole=False)
    with pytest.raises(ConfigurationError) as refused:
        limit.check(-3)
    assert fix in refused.value.fix


def test_what_a_text_is() -> None:
    assert server_of(["huggingface-vllm"]) == "vllm"
    assert server_of(["my.registry/team/pytorch:vllm"]) is None
    found = [is_token(value) for value in ("${Token[TOKEN.12]}", "us-east-1", 7, 10**400)]
    assert found == [True, False, False, False]
    assert [is_stand_in(name) for name in ("dummy1a", "dummy", "us-east-1a")] == [
        True,
        False,
        False,
    ]
    assert bucket_of("s3://models/llama/") == "models"
    assert bucket_of("https://models.s3.amazonaws.com/a") is None


def test_the_oldest_price_that_aws_stated_counts() -> None:
    today = date(2026, 11, 23)
    assert days_old([Price(1.0, "", read="2026-05-01")], today) == 206
    assert days_old([Price(1.0, "yours"), Price(1.0, "", read="2026-11-01")], today) is None
