"""Language models: by hand, against a plain server of the same rules, and against theory."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.plan.token_traffic import TokenLengths, TokenTraffic
from low_latency_endpoint.simulate import (
    ClosedLoop,
    IterationTime,
    OpenLoop,
    TokenScenario,
    TokenServer,
    TokenTargets,
    TokenTrace,
    compare_tokens,
    iteration_profile,
    iteration_profiles,
    largest_rate,
    simulate_tokens,
)
from low_latency_endpoint.simulate.compilation import loops, token_loop
from low_latency_endpoint.simulate.iteration_times import parse_iteration_times
from low_latency_endpoint.simulate.token_blocks import GAP_SUM, GAPS, TOKENS
from low_latency_endpoint.simulate.token_world import Served, served

from . import naive_token_server as naive

TEN = IterationTime(points=((1, 0.010),))  # every iteration takes 10 ms
PER_TOKEN = IterationTime(points=((1, 0.010), (101, 0.110)))  # 9 ms and 1 ms for each token
LEAST = "LEAST_OUTSTANDING_REQUESTS"


def run_trace(trace: TokenTrace, server: TokenServer, **more: Any) -> Served:
    scenario = TokenScenario(server=server, traffic=trace, **more)
    return served(
        scenario,
        loops(False),
        token_loop(False),
        requests=len(trace.seconds),
        window=None,
        seed=1,
        replication=0,
    )


def firsts(run: Served) -> list[float]:
    """Times to first token, in milliseconds."""
    return [1000 * (first - at) for first, at in zip(run.first, run.arrival, strict=True)]


def near(*milliseconds: float) -> Any:
    return pytest.approx(list(milliseconds), abs=1e-6)


# --- by hand -------------------------------------------------------------------------------------


def test_one_request_reads_its_prompt_and_then_decodes() -> None:
    run = run_trace(TokenTrace((1.0,), (100,), (4,)), TokenServer(iteration=TEN))
    assert firsts(run) == near(10)
    assert run.end[0] == pytest.approx(1.040)
    assert run.sums[GAPS] == 3
    assert run.sums[GAP_SUM] == pytest.approx(0.030)


def test_who_comes_during_an_iteration_joins_the_next() -> None:
    # A reads 0-10 ms and decodes 10-20, in which B reads; 20-30 both decode, and both end.
    run = run_trace(TokenTrace((0.0, 0.005), (100, 50), (3, 2)), TokenServer(iteration=TEN))
    assert firsts(run) == near(10, 15)
    assert list(run.end) == pytest.approx([0.030, 0.030])


def test_a_prompt_lengthens_the_gaps_of_others() -> None:
    # A alone: 9 + 100 = 109 ms. Then one token of A beside 50 of B: 9 + 51 = 60 ms; then two: 11.
    run = run_trace(TokenTrace((0.0, 0.005), (100, 50), (3, 2)), TokenServer(iteration=PER_TOKEN))
    assert firsts(run) == near(109, 169 - 5)
    assert list(run.end) == pytest.approx([0.180, 0.180])
    assert run.sums[GAP_SUM] == pytest.approx(0.060 + 0.011 + 0.011)


def test_who_arrives_while_many_iterations_are_taken_at_once_joins_at_the_end_of_the_running_one() -> (
    None
):
    # A decodes from 10 ms on in iterations of 10 ms; B comes at 1,234 ms and reads 1,240-1,250.
    run = run_trace(TokenTrace((0.0, 1.234), (16, 16), (500, 1)), TokenServer(iteration=TEN))
    assert firsts(run) == near(10, 16)
    assert run.end[0] == pytest.approx(5.0)


def test_at_the_very_end_of_an_iteration_it_joins_at_once() -> None:
    law = IterationTime(points=((1, 0.25),))  # exact in binary
    run = run_trace(TokenTrace((0.0, 1.5), (16, 16), (50, 1)), TokenServer(iteration=law))
    assert firsts(run) == near(250, 250)


def test_long_prompts_are_read_in_chunks_beside_others_answers() -> None:
    # Budget 64: A's 100 tokens as 64 (73 ms) and 36 (45 ms). B's 80, from 118 ms on, as 63 beside
    # A's token (73 ms), then 17 beside another (27 ms).
    server = TokenServer(iteration=PER_TOKEN, max_batched_tokens=64, max_sequences=8)
    run = run_trace(TokenTrace((0.0, 0.1), (100, 80), (3, 1)), server)
    assert firsts(run) == near(118, 118 + 73 + 27 - 100)
    assert run.end[0] == pytest.approx(0.218)


def test_whole_prompts_let_answers_stall() -> None:
    """The same without chunks: A's next gap holds all of B's prompt."""
    server = TokenServer(
        iteration=PER_TOKEN, max_batched_tokens=64, max_sequences=8, chunked_prefill=False
    )
    run = run_trace(TokenTrace((0.0, 0.1), (100, 80), (3, 2)), server)
    # A reads 0-109 ms, B alone 109-198; then both decode in 11 ms, and A alone in 10.
    assert firsts(run) == near(109, 98)
    assert list(run.end) == pytest.approx([0.219, 0.209])
    assert run.sums[GAP_SUM] == pytest.approx((0.209 - 0.109) + 0.010 + 0.011)


def test_the_time_of_an_iteration_has_a_part_for_what_it_reads() -> None:
    law = IterationTime(points=((1, 0.010),), seconds_per_cached_token=0.001)
    run = run_trace(TokenTrace((0.0,), (10,), (4,)), TokenServer(iteration=law))
    # Reading finds nothing in the cache; then 10, 11 and 12 tokens are there.
    assert run.end[0] == pytest.approx(0.010 + 0.020 + 0.021 + 0.022)


def test_and_one_for_the_tokens_that_a_prompt_looks_back_on() -> None:
    law = IterationTime(points=((1, 0.010),), seconds_per_attended_pair=0.001)
    server = TokenServer(iteration=law, max_batched_tokens=2, max_sequences=2)
    run = run_trace(TokenTrace((0.0,), (4,), (2,)), server)
    # Chunks of two: 1 + 2 pairs, then 3 + 4; a token of the answer costs nothing of that.
    assert run.end[0] == pytest.approx(0.013 + 0.017 + 0.010)


def test_without_a_free_block_the_last_admitted_starts_again() -> None:
    # Two blocks. Both read in one iteration, 0-10 ms; A's next token needs a block, so B gives its
    # own. A ends at 30 ms; B computes 16 + 1 tokens anew by 40 ms and has its third at 50 ms.
    server = TokenServer(iteration=TEN, kv_tokens=32)
    run = run_trace(TokenTrace((0.0, 0.0), (16, 16), (3, 3)), server)
    assert firsts(run) == near(10, 10)
    assert list(run.end) == pytest.approx([0.030, 0.050])
    assert list(run.preempted) == [0, 1]
    assert run.sums[GAP_SUM] == pytest.approx(0.010 + 0.010 + 0.030 + 0.010)


def test_what_never_fits_is_refused() -> None:
    server = TokenServer(iteration=TEN, kv_tokens=32)
    result = simulate_tokens(
        TokenScenario(
            server=server, traffic=TokenTrace((0.0, 0.0), (30, 30), (4, 3)), ttft_target=1.0
        ),
        replications=2,
        compiled=False,
    )
    # 30 + 3 tokens that must be held, the last of an answer not: 33 do not fit into 32.
    assert [run.refused for run in result.replications] == [1, 1]
    assert result.goodput.mean == 0.5


def test_a_shared_prefix_is_read_once() -> None:
    trace = TokenTrace((0.0, 1.0), (40, 40), (1, 1), prefix=(0, 0), shared=(32, 32))
    run = run_trace(trace, TokenServer(iteration=PER_TOKEN))
    assert firsts(run) == near(49, 17)  # 9 + 40; 9 + 8
    assert list(run.hit) == [0, 32]
    cold = run_trace(trace, TokenServer(iteration=PER_TOKEN, prefix_cache=False))
    assert firsts(cold) == near(49, 49)


def test_whole_blocks_of_it_only() -> None:
    trace = TokenTrace((0.0, 1.0), (40, 40), (1, 1), prefix=(0, 0), shared=(39, 39))
    run = run_trace(trace, TokenServer(iteration=PER_TOKEN))
    assert list(run.hit) == [0, 32]


def test_the_least_recently_used_blocks_go_first_and_the_end_of_a_prefix_before_its_beginning() -> (
    None
):
    # Four blocks. A leaves two of a prefix behind one of its own; B, unshared, takes the one that
    # was never used, A's own, and the prefix's second. C finds the first.
    trace = TokenTrace(
        (0.0, 1.0, 2.0), (40, 48, 40), (1, 1, 1), prefix=(0, -1, 0), shared=(32, 0, 32)
    )
    run = run_trace(trace, TokenServer(iteration=PER_TOKEN, kv_tokens=64))
    assert list(run.hit) == [0, 0, 16]


def test_a_prefix_in_use_is_never_taken() -> None:
    # Three blocks: A holds two of the prefix and one of its own until the end; B must wait.
    trace = TokenTrace((0.0, 0.010), (33, 16), (5, 1), prefix=(0, -1), shared=(32, 0))
    run = run_trace(trace, TokenServer(iteration=TEN, kv_tokens=48))
    assert run.end[0] == pytest.approx(0.050)
    assert firsts(run) == near(10, 50)


def test_prefix_aware_passes_over_a_busy_instance() -> None:
    count = 12
    trace = TokenTrace(
        (0.0,) * count, (40,) * count, (5,) * count, prefix=(3,) * count, shared=(32,) * count
    )
    server = TokenServer(iteration=TEN)
    run = run_trace(trace, server, instances=4, routing="PREFIX_AWARE", concurrency_threshold=6)
    counts = sorted(list(run.instance).count(k) for k in range(4))
    assert counts == [2, 2, 2, 6]
    alone = run_trace(trace, server, instances=4, routing="PREFIX_AWARE", concurrency_threshold=100)
    assert len(set(alone.instance)) == 1


def test_least_outstanding_spreads_what_comes_at_once() -> None:
    trace = TokenTrace((0.0,) * 12, (40,) * 12, (5,) * 12)
    run = run_trace(trace, TokenServer(iteration=TEN), instances=4, routing=LEAST)
    assert sorted(list(run.instance).count(k) for k in range(4)) == [3, 3, 3, 3]


def test_users_wait_for_their_answers() -> None:
    """Four users, answers of nine iterations of 10 ms, all at the same time."""
    scenario = TokenScenario(
        server=TokenServer(iteration=TEN),
        traffic=ClosedLoop(4),
        tokens=TokenTraffic(input=20, output=9),
    )
    result = simulate_tokens(scenario, requests=400, replications=2)
    # All end at once, so nothing else runs and the next four begin at once.
    assert result.requests_per_second.mean == pytest.approx(4 / 0.090, rel=0.01)


# --- against a plain server of the same rules -------------------------------------------------------

REQUEST = st.tuples(
    st.integers(0, 40),  # gap to the one before, in ms
    st.integers(1, 90),  # tokens of the prompt beside the prefix
    st.integers(1, 60),
    st.integers(-1, 2),
)


@settings(max_examples=150, deadline=None)
@given(
    asked=st.lists(REQUEST, min_size=1, max_size=25),
    blocks=st.integers(13, 60),
    budget=st.sampled_from((8, 24, 64, 512)),
    sequences=st.sampled_from((1, 3, 8)),
    compiled=st.booleans(),
)
def test_it_does_what_a_plain_server_does(
    asked: list[tuple[int, int, int, int]], blocks: int, budget: int, sequences: int, compiled: bool
) -> None:
    """Every token at the same time, each request preempted as often, with as many hits."""
    lengths = {-1: 0, 0: 16, 1: 37, 2: 48}  # tokens of the prefixes
    law = IterationTime(
        points=((1, 0.010), (32, 0.013), (64, 0.031)),
        seconds_per_cached_token=1e-6,
        seconds_per_attended_pair=1e-7,
        overhead_seconds=0.001,
    )
    now, requests = 0.0, []
    for gap, own, output, prefix in asked:
        now += gap / 1000
        requests.append(naive.Request(now, own + lengths[prefix], output, prefix, lengths[prefix]))
    naive.run(requests, seconds=law.seconds, budget=budget, sequences=sequences, blocks=blocks)
    trace = TokenTrace(
        tuple(each.arrival for each in requests),
        tuple(each.prompt for each in requests),
        tuple(each.output for each in requests),
        tuple(each.prefix for each in requests),
        tuple(each.shared for each in requests),
    )
    server = TokenServer(
        iteration=law, max_batched_tokens=budget, max_sequences=sequences, kv_tokens=16 * blocks
    )
    if compiled:
        pytest.importorskip("numba")
    found = served(
        TokenScenario(server=server, traffic=trace),
        loops(compiled),
        token_loop(compiled),
        requests=len(requests),
        window=None,
        seed=1,
        replication=0,
    )
    assert list(found.first) == pytest.approx([each.tokens[0] for each in requests], rel=1e-9)
    assert list(found.end) == pytest.approx([each.tokens[-1] for each in requests], rel=1e-9)
    assert list(found.preempted) == [each.preempted for each in requests]
    assert list(found.hit) == [each.hit for each in requests]
    gaps = [b - a for each in requests for a, b in pairwise(each.tokens)]
    assert found.sums[GAPS] == len(gaps)
    assert found.sums[GAP_SUM] == pytest.approx(math.fsum(gaps), rel=1e-9, abs=1e-12)
    assert sum(found.gaps) == len(gaps)


@settings(max_examples=60, deadline=None)
@given(
    asked=st.lists(REQUEST, min_size=1, max_size=30),
    chunked=st.booleans(),
    instances=st.integers(1, 4),
    routing=st.sampled_from(("RANDOM", LEAST, "PREFIX_AWARE")),
)
def test_no_token_and_no_time_is_lost(
    asked: list[tuple[int, int, int, int]], chunked: bool, instances: int, routing: str
) -> None:
    times, now = [], 0.0
    for gap, *_ in asked:
        now += gap / 1000
        times.append(now)
    trace = TokenTrace(
        tuple(times),
        tuple(own + 20 for _, own, _, _ in asked),
        tuple(output for _, _, output, _ in asked),
        tuple(prefix for *_, prefix in asked),
        tuple(20 if prefix >= 0 else 0 for *_, prefix in asked),
    )
    run = run_trace(
        trace,
        TokenServer(iteration=PER_TOKEN, kv_tokens=256, chunked_prefill=chunked, max_sequences=6),
        instances=instances,
        routing=routing,
        concurrency_threshold=3 if routing == "PREFIX_AWARE" else None,
    )
    tokens = sum(trace.output)
    assert run.sums[TOKENS] == tokens
    assert run.sums[GAPS] == sum(run.gaps) == tokens - len(asked)
    # Gaps of a request sum to the time from its first token to its last.
    spans = math.fsum(end - first for first, end in zip(run.first, run.end, strict=True))
    assert run.sums[GAP_SUM] == pytest.approx(spans, rel=1e-9, abs=1e-12)
    for at, first in enumerate(run.first):
        # Never quicker than alone with all of its prefix known.
        alone = PER_TOKEN.seconds(max(1, trace.input[at] - 16))
        assert first - times[at] >= alone - 1e-9
        assert run.end[at] - first >= (trace.output[at] - 1) * PER_TOKEN.seconds(1) - 1e-9


# --- theory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_one_at_a_time_is_m_d_1(load: float) -> None:
    """Answers of one token, one at a time, 10 ms each: a queue with constant service."""
    scenario = TokenScenario(
        server=TokenServer(iteration=TEN, max_sequences=1),
        traffic=OpenLoop(load / 0.010),
        tokens=TokenTraffic(input=16, output=1),
    )
    result = simulate_tokens(scenario, requests=40_000, replications=8)
    exact = 0.010 * (1 + load / (2 * (1 - load)))  # Pollaczek and Khinchine
    mean = result.estimate(lambda run: run.mean_ttft)
    assert mean.holds(exact)
    assert mean.half_width < 0.03 * exact


def test_a_batch_for_everyone_takes_an_iteration_and_a_half() -> None:
    """Many arrivals, room for all: half an iteration until the next, and that one."""
    scenario = TokenScenario(
        server=TokenServer(iteration=TEN, max_sequences=4096, max_batched_tokens=1_000_000),
        traffic=OpenLoop(5000.0),
        tokens=TokenTraffic(input=16, output=1),
    )
    result = simulate_tokens(scenario, requests=40_000, replications=4)
    assert result.estimate(lambda run: run.mean_ttft).mean == pytest.approx(0.015, rel=0.01)


def test_requests_in_flight_follow_little() -> None:
    """100 in flight on average: 5 per second for 2 s of 200 tokens, each 10 ms, on 10 instances."""
    scenario = TokenScenario(
        server=TokenServer(iteration=TEN, kv_tokens=16 * 10_000),
        traffic=OpenLoop(50.0),
        tokens=TokenTraffic(input=1600, output=200),
        instances=10,
        routing=LEAST,
    )
    result = simulate_tokens(scenario, requests=4000, replications=4)
    # 10 in flight on an instance, each with 100 blocks of the prompt and half of 12.5 more.
    assert result.kv_use.mean == pytest.approx(10 * 106.25 / 10_000, rel=0.05)
    assert result.tokens_per_second.mean == pytest.approx(50 * 200, rel=0.05)


def test_a_small_cache_preempts_and_a_large_one_does_not() -> None:
    def found(kv_tokens: int) -> float:
        scenario = TokenScenario(
            server=TokenServer(iteration=TEN, kv_tokens=kv_tokens),
            traffic=OpenLoop(20.0),
            tokens=TokenTraffic(input=64, output=TokenLengths(p50=100, p95=400)),
        )
        return simulate_tokens(scenario, requests=1000, replications=2).preemptions.mean

    # Some 30 in flight hold about 150 tokens each: 4,500.
    assert found(100_000) == 0
    assert found(4_000) > 0.05


# --- routing --------------------------------------------------------------------------------------


def routed(prefixes: int, threshold: int, **more: Any) -> dict[str, Any]:
    base = TokenScenario(
        server=TokenServer(iteration=PER_TOKEN, kv_tokens=16_000),
        traffic=OpenLoop(12.0),
        tokens=TokenTraffic(input=500, output=4, shared_prefix=0.9),
        prefixes=prefixes,
        instances=8,
        **more,
    )
    return compare_tokens(
        {
            "random": base,
            LEAST: base.with_(routing=LEAST),
            "aware": base.with_(routing="PREFIX_AWARE", concurrency_threshold=threshold),
        },
        requests=4000,
        replications=4,
    )


def test_prefix_aware_wins_where_many_prefixes_do_not_fit_into_every_cache() -> None:
    # 160 prefixes of 28 blocks: 20 for each of 8 instances fit into its 1,000 blocks, 160 do not.
    found = routed(160, threshold=8)
    assert found["aware"].cache_hits.low > 0.7
    assert found["random"].cache_hits.high < 0.3
    assert found["aware"].ttft(50).high < 0.4 * found["random"].ttft(50).low
    assert found["aware"].ttft(95).high < found[LEAST].ttft(95).low


def test_prefix_aware_loses_where_one_prefix_dominates_and_its_threshold_lets_it_queue() -> None:
    found = routed(1, threshold=1000)
    # All on one instance: 12 per second of 52 tokens that are not known, 61 ms alone, are near its
    # limit, while others that know the prefix as well idle.
    assert found["aware"].ttft(95).low > 2 * found[LEAST].ttft(95).high
    # With a threshold of 2, one prompt may be before it, which is read in 61 ms too.
    assert routed(1, threshold=2)["aware"].ttft(95).high < 2 * 0.061


# --- the largest rate ---------------------------------------------------------------------------------


def test_the_largest_rate_is_where_the_target_breaks() -> None:
    """M/D/1 at 10 ms with a time to first token of 30 ms on average is 80 %; here at p95."""
    scenario = TokenScenario(
        server=TokenServer(iteration=TEN, max_sequences=1),
        traffic=OpenLoop(1.0),
        tokens=TokenTraffic(input=16, output=1),
    )
    targets = TokenTargets({95.0: 0.050}, {})
    rate, at = largest_rate(scenario, targets, requests=20_000, replications=4)
    assert at is not None
    assert at.ttft(95).high <= 0.050
    assert at.goodput.low >= 0.95
    options: dict[str, Any] = {"requests": 20_000, "replications": 4}
    more = simulate_tokens(targets.on(scenario).with_(traffic=OpenLoop(rate * 1.06)), **options)
    assert not targets.kept(more)


def test_no_rate_where_a_lone_request_misses() -> None:
    scenario = TokenScenario(
        server=TokenServer(iteration=TEN),
        traffic=OpenLoop(1.0),
        tokens=TokenTraffic(input=16, output=2),
    )
    options: dict[str, Any] = {"requests": 100, "replications": 2}
    assert largest_rate(scenario, TokenTargets({}, {95.0: 0.009}), **options) == (0.0, None)


def test_goodput_asks_for_both_targets_of_the_same_request() -> None:
    # A is read in 109 ms, then gaps of 60 and 11 ms: 35.5 ms per output token; B in 164 ms and 11.
    trace = TokenTrace((0.0, 0.005), (100, 50), (3, 2))

    def goodput(ttft: float, itl: float) -> float:
        scenario = TokenScenario(
            server=TokenServer(iteration=PER_TOKEN), traffic=trace, ttft_target=ttft, itl_target=itl
        )
        return simulate_tokens(scenario, replications=2).goodput.mean

    assert [goodput(*each) for each in ((0.2, 0.04), (0.12, 0.04), (0.12, 0.03), (0.2, 0.03))] == [
        1.0,
        0.5,
        0.0,
        0.5,
    ]


def test_targets_name_the_share_as_load_tests_do() -> None:
    assert TokenTargets({50.0: 0.1, 95.0: 0.5}, {99.0: 0.05}).share == 0.95
    assert TokenTargets({}, {99.0: 0.05}).share == 0.99
    assert TokenTargets({95.0: 0.5}, {}, goodput=0.9).share == 0.9


# --- the same with and without numba, whatever is loaded ---------------------------------------------


@pytest.mark.parametrize("routing", ["RANDOM", LEAST, "PREFIX_AWARE"])
def test_plain_python_and_numba_agree_to_the_last_bit(routing: str) -> None:
    pytest.importorskip("numba")
    scenario = TokenScenario(
        server=TokenServer(
            iteration=iteration_profile("a100/llama-3-8b/tp1"),
            max_batched_tokens=512,
            max_sequences=32,
            kv_tokens=12_000,
        ),
        traffic=OpenLoop(16.0),
        tokens=TokenTraffic(
            input=TokenLengths(p50=300, p95=1800),
            output=TokenLengths(p50=60, p95=300),
            shared_prefix=0.3,
        ),
        prefixes=9,
        popularity=1.0,
        instances=3,
        routing=routing,
        concurrency_threshold=6 if routing == "PREFIX_AWARE" else None,
        ttft_target=0.5,
        itl_target=0.05,
    )
    compiled, plain = (
        simulate_tokens(scenario, requests=600, replications=2, compiled=each).replications
        for each in (True, False)
    )
    assert compiled == plain
    assert plain[0].cache_hits > 0.05
    assert plain[0] != plain[1]


def test_kept_machine_code_needs_no_numba_in_memory(tmp_path: Path) -> None:
    """What numba brings itself is not there when the kept code is loaded."""
    pytest.importorskip("numba")
    program = """
import sys
from low_latency_endpoint.simulate import *
from low_latency_endpoint.plan.token_traffic import TokenTraffic
result = simulate_tokens(
    TokenScenario(server=TokenServer(iteration=IterationTime(points=((1, 0.01),))),
                  traffic=OpenLoop(20.0), tokens=TokenTraffic(input=100, output=50)),
    requests=200, replications=2, compiled=True)
print("numba" in sys.modules, repr(result.replications[0].mean_ttft))
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    said = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env=environment
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.split())
    assert [said[0][0], said[1][0]] == ["True", "False"]
    assert said[0][1] == said[1][1]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["loops.o", "token_loops.o"]


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "make"),
    [
        ("LLS136", lambda: IterationTime(points=())),
        ("LLS136", lambda: IterationTime(points=((8, 0.1), (8, 0.2)))),
        ("LLS136", lambda: IterationTime(points=((1, 0.0),))),
        ("LLS136", lambda: IterationTime(points=((1, 0.2), (8, 0.1)))),
        ("LLS136", lambda: parse_iteration_times("1=ten")),
        ("LLS111", lambda: IterationTime(points=((1, -0.1),))),
        ("LLS137", lambda: TokenServer(iteration=TEN, max_batched_tokens=0)),
        ("LLS138", lambda: TokenServer(iteration=TEN, max_sequences=0)),
        ("LLS138", lambda: TokenServer(iteration=TEN, max_batched_tokens=100)),
        ("LLS139", lambda: TokenServer(iteration=TEN, kv_tokens=15)),
        ("LLS140", lambda: TokenTrace((0.0,), (1, 2), (1,))),
        ("LLS140", lambda: TokenTrace((0.0,), (0,), (1,))),
        ("LLS140", lambda: TokenTrace((0.0,), (32,), (1,), (0,), (32,))),
        ("LLS140", lambda: TokenTrace((0.0, 0.0), (40, 40), (1, 1), (0, 0), (32, 16))),
        ("LLS121", lambda: TokenTrace((1.0, 0.0), (1, 2), (1, 1))),
        ("LLS142", lambda: iteration_profile("abacus")),
        ("LLS144", lambda: TokenTargets({}, {})),
        ("LLS141", lambda: TokenScenario(server=TokenServer(iteration=TEN), traffic=OpenLoop(1.0))),
        (
            "LLS108",
            lambda: TokenScenario(
                server=TokenServer(iteration=TEN),
                traffic=TokenTrace((0.0,), (1,), (1,)),
                routing="POWER_OF_TWO",
            ),
        ),
        (
            "LLS143",
            lambda: simulate_tokens(
                TokenScenario(
                    server=TokenServer(iteration=TEN),
                    traffic=OpenLoop(1.0),
                    tokens=TokenTraffic(input=1, output=1),
                ),
                requests=0,
            ),
        ),
    ],
)
def test_it_refuses(code: str, make: Any) -> None:
    with pytest.raises(ConfigurationError) as refused:
        make()
    assert refused.value.code == code


def test_profiles_hold_what_vidur_measured() -> None:
    """Numbers of shared facts that were derived from the same files by another program."""
    profiles = iteration_profiles()
    for name, tokens, milliseconds in (
        ("a100/llama-3-8b/tp1", 1, 9.70),
        ("a100/llama-3-8b/tp4", 128, 4.54),
        ("h100/llama-2-7b/tp1", 512, 12.0),
        ("a40/llama-2-7b/tp1", 128, 30.3),
        ("a100/llama-3-70b/tp8", 256, 30.6),
    ):
        assert 1e3 * profiles[name].seconds(tokens) == pytest.approx(milliseconds, rel=0.01)
