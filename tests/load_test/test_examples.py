"""Examples of what the load test's inner functions give."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import pytest

from low_latency_endpoint.load_test.engine.arrivals import ConstantArrivals
from low_latency_endpoint.load_test.engine.connections import connection_error
from low_latency_endpoint.load_test.engine.failure_causes import cause_of
from low_latency_endpoint.load_test.engine.generator_process import error_of, problem_of
from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram, milliseconds
from low_latency_endpoint.load_test.engine.locust_options import settings_of
from low_latency_endpoint.load_test.engine.prompts import Prompts
from low_latency_endpoint.load_test.engine.steps import Progress, Step
from low_latency_endpoint.load_test.engine.token_streams import TokenReader
from low_latency_endpoint.load_test.fleet.fleet_generator import _spread
from low_latency_endpoint.load_test.search.bounds import (
    binomial_tail,
    design_effect,
    independent,
    quantile_bounds,
    rank_bounds,
    samples_for,
    share_bounds,
)
from low_latency_endpoint.load_test.search.early_verdict import EarlyVerdict, looks_of
from low_latency_endpoint.load_test.search.judging import (
    LatencyGoal,
    histogram_of,
    piles_up,
    quantile_of,
    without_prefix,
)
from low_latency_endpoint.options.load import TokenTraffic

GOAL = LatencyGoal({"p99": 0.2})


def test_the_kind_of_a_connections_error() -> None:
    refused = ConnectionRefusedError(111, "Connection refused")
    assert connection_error(refused) == "connection refused"


def test_a_problem_without_a_code_travels_as_its_text() -> None:
    assert error_of(problem_of(KeyError("x"))).got == "KeyError: 'x'"


def test_samples_above_a_latency() -> None:
    assert LatencyHistogram.of([0.1, 0.2, 0.3]).count_above(0.2) == 1


def test_latencies_for_people() -> None:
    shown = [milliseconds(seconds) for seconds in (0.00042, 0.0204, 0.1204, 2.5, math.nan)]
    assert shown == ["0.42 ms", "20.4 ms", "120 ms", "2,500 ms", "-"]


def test_locusts_options_that_were_given() -> None:
    parsed = SimpleNamespace(
        sagemaker_endpoint_name="sentiment", sagemaker_region="", sagemaker_timeout_seconds="5"
    )
    assert settings_of(parsed) == {"endpoint_name": "sentiment", "timeout_seconds": 5.0}


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        ("400 ThrottlingException", "throttled"),
        ("429 ModelNotReadyException", "loading"),
        ("424 ModelError 503", "busy"),
        ("424 ModelError 0", "gave-up"),
        ("timeout", ""),
    ],
)
def test_causes_of_errors(kind: str, cause: str) -> None:
    assert cause_of(kind) == cause


def test_prompts_share_their_prefix_and_nothing_else() -> None:
    prompts = Prompts(TokenTraffic(input=40, output=8, shared_prefix=0.5))
    first, second = (json.loads(prompts.body(number)) for number in (0, 1))
    assert first["messages"][0] == second["messages"][0]
    assert first["messages"][1] != second["messages"][1]
    assert (len(first["messages"][0]["content"].split()), first["max_tokens"]) == (20, 8)


def test_a_request_in_a_conversation_begins_with_all_of_the_one_before() -> None:
    talks = Prompts(TokenTraffic(input=40, output=8, shared_prefix=0.5), turns=3)
    before, now = (json.loads(talks.body(number))["messages"] for number in (4, 5))
    assert before == now[: len(before)]
    assert [each["role"] for each in now[len(before) :]] == ["assistant", "user"]


def test_lengths_as_the_command_line_gives_them() -> None:
    source = Prompts.of("input=300:1800,output=128").source
    assert source == "prompts of 300 (p50) to 1,800 (p95) tokens in, 128 out"


def test_a_stream_of_tokens_cut_anywhere() -> None:
    reader = TokenReader()
    reader.feed(b'data: {"choices": [{"delta": {"content": ""}}]}\n\n', 1.0)
    reader.feed(b'data: {"choices": [{"delta": {"content": "Yes"}}]}\n\ndata: {"ch', 1.2)
    reader.feed(b'oices": [{"delta": {"content": "!"}, "finish_reason": "stop"}]}\n\n', 1.3)
    assert reader.end() is None
    assert reader.times().first == 1.2
    assert [round(gap, 3) for gap in reader.times().gaps] == [0.1]


def test_tasks_are_spread_over_subnets() -> None:
    assert list(_spread(("a", "b"), 5)) == [("a", 3), ("b", 2)]
    assert list(_spread(("a", "b", "c"), 1)) == [("a", 1)]


def test_how_many_requests_can_tell() -> None:
    assert (samples_for(0.5), samples_for(0.99), samples_for(0.999)) == (5, 299, 2995)
    ranks = [rank_bounds(samples, 0.99) for samples in (298, 299, 1000)]
    assert ranks == [(292, 299), (293, 299), (985, 996)]


def test_chances_and_shares() -> None:
    assert binomial_tail(10, 0, 0.5) == 1.0
    assert round(binomial_tail(10, 9, 0.5) * 1024) == 11
    found = share_bounds(299, 299)  # without a bad one: 99 % or more are good, as samples_for says
    assert (found.value, round(found.low, 4), found.high) == (1.0, 0.99, 1.0)


def test_bounds_of_a_quantile() -> None:
    made = quantile_bounds(LatencyHistogram.of(n / 1000 for n in range(1, 1001)), 0.99)
    assert [round(each, 3) for each in (made.low, made.value, made.high)] == [0.985, 0.99, 0.996]


def test_requests_that_are_late_together() -> None:
    # Of 100 requests a block 10 are late, or none: 5² 8/7 over 100 · 0.05 · 0.95.
    assert round(design_effect([100] * 8, [0, 10, 10, 0, 0, 10, 0, 10]), 1) == 6.0
    assert independent([1, 2] * 10) == 20.0
    assert round(independent(range(20)), 1) == 1.0


def test_when_a_step_is_looked_at() -> None:
    looks = looks_of(GOAL, 60, 120, 100, hold_error=0.05)
    moments = [3.0, 4.5, 6.8, 10.1, 15.2, 22.8, 34.2, 60, 90.0, 120]
    assert [round(each, 1) for each in looks.seconds] == moments
    assert [round(sum(each), 9) for each in (looks.holds, looks.misses)] == [0.05, 0.05]


def test_a_step_far_below_its_limit_is_certain_after_seven_seconds() -> None:
    step = Step("100 TPS", 120, ConstantArrivals(100))
    early = EarlyVerdict(GOAL, step, looks_of(GOAL, 60, 120, 100, hold_error=0.05))
    latency = LatencyHistogram.of([0.02 + 0.0001 * n for n in range(100)])
    seconds = (
        Progress(seconds=second, sent=100, completed=100, latency=latency)
        for second in range(1, 61)
    )
    certain = next(second.seconds for second in seconds if early.add(second))
    assert (early.verdict, certain) == ("held", 7)


def test_names_of_statistics() -> None:
    assert (without_prefix("itl-p95"), without_prefix("p99")) == ("p95", "p99")
    assert (histogram_of("p99"), histogram_of("ttft-p95")) == ("latency", "first_token")
    assert [quantile_of(name) for name in ("p99", "p99.9", "ttfb-p90")] == [0.99, 0.999, 0.9]


def test_requests_that_pile_up() -> None:
    assert piles_up([100 * second for second in range(1, 10)])
    assert not piles_up([1, 1, 1, 2, 2, 3, 2, 3, 4])
