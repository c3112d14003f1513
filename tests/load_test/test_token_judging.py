"""Steps of language models: what is recorded, how it is judged, and the limit by goodput."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from low_latency_endpoint.load_test.engine.arrivals import ConstantArrivals
from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram
from low_latency_endpoint.load_test.engine.measurement import Invocation, Measurement, TokenResult
from low_latency_endpoint.load_test.engine.steps import (
    OnSecond,
    Progress,
    Step,
    StepResult,
    warnings,
)
from low_latency_endpoint.load_test.engine.target import Target, TokenLimits
from low_latency_endpoint.load_test.engine.token_streams import TokenTimes
from low_latency_endpoint.load_test.report import over_time, percentiles, throughput_and_latency
from low_latency_endpoint.load_test.search.bounds import rank_bounds, share_bounds
from low_latency_endpoint.load_test.search.early_verdict import blocks_of, worth_of
from low_latency_endpoint.load_test.search.judging import GOODPUT, LatencyGoal, judge
from low_latency_endpoint.load_test.search.load_testing import run
from low_latency_endpoint.load_test.search.result_file import LoadTestReport
from low_latency_endpoint.load_test.search.run_plans import SearchPlan, limit_plan, rate_plan
from low_latency_endpoint.load_test.search.steps_table import step_columns, steps_csv

from .fake_generator import FakeGenerator
from .histograms import buckets

GOAL = LatencyGoal({"ttft-p95": 0.5, "itl-p95": 0.05})
TIGHT = LatencyGoal({"ttft-p95": 0.012, "itl-p95": 0.05})


def invocation(error: str | None = None, tokens: TokenTimes | None = None) -> Invocation:
    """Begun at 10 s, a second after it was due, ended at 14 s."""
    return Invocation(0 if error else 200, 9, error, 10.0, 14.0, 10.1, b"", "", "", tokens)


ANY = TokenLimits()


def recorded(*answers: Invocation, limits: TokenLimits = ANY) -> TokenResult:
    found = TokenResult()
    for answer in answers:
        found.count(answer, 5.0, limits)
    return found


STREAM = TokenTimes(11.0, 13.0, [0.5, 1.5], 5, 100, 64, True)


def test_the_first_token_counts_from_the_intended_start() -> None:
    records = recorded(invocation(tokens=STREAM))
    assert records.first_token.mean == pytest.approx(2.0), "due at 9 s, first token at 11 s"
    assert records.inter_token.count == 2
    assert records.inter_token.mean == pytest.approx(1.0)
    # Two seconds from first to last, four tokens after the first.
    assert records.per_token.mean == pytest.approx(0.5)
    assert (records.output_tokens, records.prompt_tokens, records.cached_tokens) == (5, 100, 64)
    assert (records.good, records.uncounted, records.unstreamed) == (1, 0, 0)


@pytest.mark.parametrize(
    ("first_token", "per_token", "good"),
    [(None, None, 1), (2.0, 0.5, 1), (1.9, 0.5, 0), (2.0, 0.49, 0), (None, 0.49, 0)],
)
def test_a_good_answer_keeps_both_limits(
    first_token: float | None, per_token: float | None, good: int
) -> None:
    limits = TokenLimits(first_token, per_token)
    assert recorded(invocation(tokens=STREAM), limits=limits).good == good


def test_a_request_given_up_has_waited_all_the_same() -> None:
    records = recorded(
        invocation("timeout", TokenTimes(None, None, [], 0, 0, 0, False)),
        invocation("timeout", STREAM),
    )
    # Nothing came in 5 s; then the first came after 2 s.
    assert sorted(seconds for seconds, _, _ in buckets(records.first_token)) == pytest.approx(
        [2.0, 5.0], rel=0.001
    )
    # After the last token at 13 s it waited one second for the next.
    assert records.inter_token.count == 3
    assert records.inter_token.mean == pytest.approx((0.5 + 1.5 + 1.0) / 3)
    assert records.good == 0


def test_an_answer_of_one_token_has_nothing_between_tokens() -> None:
    records = recorded(invocation(tokens=TokenTimes(11.0, 11.0, [], 1, 0, 0, False)))
    assert records.inter_token.count == records.per_token.count == 0
    assert (records.good, records.uncounted, records.unstreamed) == (1, 1, 0)


def test_many_tokens_in_one_chunk_are_no_stream() -> None:
    records = recorded(invocation(tokens=TokenTimes(13.0, 13.0, [], 40, 9, 0, True)))
    assert records.unstreamed == 1


# --- judged -------------------------------------------------------------------------------------


def tokens(ttft: float, gap: float, streams: int = 400, each: int = 50, **more: Any) -> TokenResult:
    return TokenResult(
        LatencyHistogram.of([ttft] * streams),
        LatencyHistogram.of([gap] * streams * each),
        LatencyHistogram.of([gap] * streams),
        **{"good": streams, "output_tokens": streams * (each + 1), **more},
    )


WHOLE = LatencyHistogram.of([3.0] * 400)
#: Of 400 requests without a failure at most 0.75 % fail: 0.9925 ** 400 is 4.9 %.
FEW = replace(GOAL, allowed_errors=0.0075)


def outcome(found: TokenResult, goal: LatencyGoal = FEW) -> str:
    return judge(goal, Measurement(latency=WHOLE, sent=400, tokens=found)).outcome


def test_both_targets_and_the_goodput_are_kept_or_not() -> None:
    assert outcome(tokens(0.4, 0.04)) == "held"
    assert outcome(tokens(0.6, 0.04)) == "broken"
    assert outcome(tokens(0.4, 0.06)) == "broken"
    assert outcome(tokens(0.4, 0.04, good=340)) == "broken", "15 % of the answers are bad"
    assert outcome(tokens(0.4, 0.04, good=382)) == "unclear", "95.5 %, of 400"


@pytest.mark.parametrize(
    ("good", "kept"),
    [(400, True), (382, True), (380, True), (379, False), (340, False)],  # 380 are 95 %
)
@pytest.mark.parametrize("client_bound", [(), ("busy",)])
def test_a_step_is_kept_with_as_many_good_answers_as_the_goal_asks_for(
    good: int, kept: bool, client_bound: tuple[str, ...]
) -> None:
    found = Measurement(latency=WHOLE, sent=400, tokens=tokens(0.4, 0.04, good=good))
    assert judge(GOAL, found, client_bound=client_bound).kept is kept


def test_goodput_is_the_share_measured_with_bounds_of_independent_requests() -> None:
    """Four requests are worth one: of 400 with 380 good ones as much is known as 95 of 100 tell."""
    step = Measurement(latency=WHOLE, sent=400, tokens=tokens(0.4, 0.04, good=380))
    for worth, expected in (({}, share_bounds(380, 400)), ({GOODPUT: 4.0}, share_bounds(95, 100))):
        found = judge(GOAL, step, worth=worth)
        assert found.goodput == expected
        assert found.to_dict()["goodput"] == {
            "value": 0.95,
            "low": expected.low,
            "high": expected.high,
            "samples": expected.samples,
        }
    # The value is what was measured, whatever the rounding of 381 / 4.
    step = Measurement(latency=WHOLE, sent=400, tokens=tokens(0.4, 0.04, good=381))
    found = judge(GOAL, step, worth={GOODPUT: 4.0})
    assert found.goodput is not None
    assert found.goodput.value == 381 / 400
    assert judge(LatencyGoal({"p99": 5.0}), step).to_dict()["goodput"] is None


def test_the_goodput_asked_for_is_the_lower_of_the_percentiles() -> None:
    goal = LatencyGoal({"ttft-p99": 0.5, "ttft-p50": 0.2, "itl-p90": 0.05})
    assert goal.goodput == 0.9
    assert goal.limits == TokenLimits(0.5, 0.05)
    assert LatencyGoal({"p99": 1.0, "ttfb-p99": 0.1}).goodput is None
    assert LatencyGoal({"p99": 1.0, "ttfb-p99": 0.1}).limits is None
    assert LatencyGoal({"ttft-p95": 0.5}).limits == TokenLimits(0.5, None)
    assert LatencyGoal({"itl-Average": 0.05}).limits == TokenLimits(None, None)
    assert LatencyGoal({"tpot-p99": 0.03}).limits == TokenLimits(None, 0.03)


def test_an_interval_of_gaps_rests_on_the_streams_not_on_the_gaps() -> None:
    streams, each = 100, 1_000
    # Six streams of a hundred are slow: a slow one's thousand gaps are no thousand witnesses.
    gaps = LatencyHistogram.of([0.04] * 94 * each + [0.06] * 6 * each)
    found = TokenResult(
        LatencyHistogram.of([0.1] * streams),
        gaps,
        LatencyHistogram.of([0.04] * streams),
        good=streams,
    )
    judged = judge(
        LatencyGoal({"itl-p95": 0.07}), Measurement(latency=WHOLE, sent=streams, tokens=found)
    )
    bounds = judged.bounds["itl-p95"]
    assert bounds.samples == streams
    low, high = rank_bounds(streams, 0.95)
    assert low <= 94 < high, "so that the interval holds both kinds"
    assert (bounds.low, bounds.high) == pytest.approx((0.04, 0.06), rel=0.001)


def seconds_of_gaps(late: Sequence[int], each: int = 1_000) -> list[Progress]:
    """Seconds of a thousand gaps, so many of which are late."""
    second = Progress(seconds=0.0, sent=10, completed=10)
    gaps = [LatencyHistogram.of([0.06] * count + [0.02] * (each - count)) for count in late]
    return [
        replace(second, seconds=n + 1.0, tokens=TokenResult(inter_token=of))
        for n, of in enumerate(gaps)
    ]


def test_late_gaps_that_are_spread_evenly_are_as_many_as_they_seem() -> None:
    chance = random.Random(1)
    late = [sum(chance.random() < 0.03 for _ in range(1_000)) for _ in range(40)]
    assert worth_of(blocks_of(seconds_of_gaps(late)), "itl-p95", 0.05) < 2


def test_late_gaps_that_come_together_are_few() -> None:
    # Every tenth second holds all of them: a thousand at a time, as a batch stands still.
    late = [1_000 if n % 10 == 0 else 0 for n in range(40)]
    found = worth_of(blocks_of(seconds_of_gaps(late)), "itl-p95", 0.05)
    assert found > 900, "hardly more of them than there are seconds"


def test_without_a_gap_nothing_depends() -> None:
    assert worth_of([], "itl-p95", 0.05) == 1


def test_targets_for_tokens_of_other_answers_are_unclear() -> None:
    judged = judge(GOAL, Measurement(latency=WHOLE, sent=400))
    assert judged.outcome == "unclear"
    assert judged.goodput is None
    assert not judged.kept


@pytest.mark.parametrize(("hits", "samples"), [(0, 10), (10, 10), (95, 100), (399, 400), (3, 7)])
def test_the_bounds_of_a_share_are_those_of_the_binomial_law(hits: int, samples: int) -> None:
    from math import comb

    def at_least(k: int, share: float) -> float:
        return sum(
            comb(samples, n) * share**n * (1 - share) ** (samples - n)
            for n in range(k, samples + 1)
        )

    found = share_bounds(hits, samples)
    if hits:
        assert at_least(hits, found.low) == pytest.approx(0.05, abs=1e-6)
    else:
        assert found.low == 0
    if hits < samples:
        assert 1 - at_least(hits + 1, found.high) == pytest.approx(0.05, abs=1e-6)
    else:
        assert found.high == 1


def test_answers_that_do_not_keep_pace_are_never_held() -> None:
    # 508 requests a second are due, 190 are answered, each of them well within a long target.
    generator = FakeGenerator(service=0.1, workers=19, variation=0)
    plan = rate_plan([508], seconds=9, goal=LatencyGoal({"p99": 30.0}), alone_seconds=0)
    (step,) = run(plan, generator).steps
    assert step.result.latency.max < 30
    assert step.judgement.outcome == "unclear"
    assert not step.judgement.kept
    assert any("keep pace" in reason or "rose" in reason for reason in step.judgement.reasons)


# --- a model whose tokens follow from its latency --------------------------------------------------


@dataclass
class TokenGenerator(FakeGenerator):
    """Of each latency 40 % is the time to the first of five tokens, in equal gaps."""

    limits: TokenLimits = field(default_factory=lambda: GOAL.limits or TokenLimits())

    def run(self, step: Step, progress: OnSecond = lambda each: None) -> StepResult:
        def told(second: Progress) -> object:
            return progress(replace(second, tokens=self._tokens(second.latency)))

        result = super().run(step, told)
        found = self._tokens(result.latency)
        in_time = 5 * result.answered_in_time
        return replace(result, tokens=replace(found, tokens_in_time=in_time))

    def _tokens(self, latency: LatencyHistogram) -> TokenResult:
        first, gaps, per = LatencyHistogram(), LatencyHistogram(), LatencyHistogram()
        good = 0
        for low, high, count in buckets(latency):
            whole = (low + high) / 2
            ttft, gap = 0.4 * whole, 0.15 * whole
            good += (
                count
                * (ttft <= (self.limits.first_token or 1e9))
                * (gap <= (self.limits.per_token or 1e9))
            )
            for _ in range(count):
                first.record(ttft)
                per.record(gap)
                for _ in range(4):
                    gaps.record(gap)
        return TokenResult(first, gaps, per, 5 * latency.count, 0, 100 * latency.count, 0, good)


def test_the_limit_is_the_rate_at_which_the_goodput_holds() -> None:
    # Of 0.02 s with 4 workers 200 TPS are all there is, in seconds or in tokens.
    plan = limit_plan(SearchPlan(GOAL, 20, instances=2, poisson=False))
    done = run(plan, TokenGenerator(instances=2))
    limit = done.limit
    assert limit.usable
    assert limit.rate == pytest.approx(400, rel=0.06)
    assert "goodput of at least 95 %" in limit.how
    held = [
        each
        for each in done.steps
        if each.offered and math.isclose(each.offered, limit.rate) and each.judgement.kept
    ][-1]
    assert limit.concurrency == pytest.approx(held.result.rate * held.result.latency.mean)
    assert limit.token_rate == pytest.approx(5 * limit.rate, rel=0.02)
    told = limit.to_dict()
    assert told["concurrency_per_instance"] == pytest.approx(limit.concurrency / 2, rel=0.01)
    assert told["concurrency_per_instance"] <= limit.concurrency / 2
    assert told["tokens_per_instance"] == pytest.approx(5 * limit.rate / 2, rel=0.02)


def test_the_limit_of_random_arrivals_carries_its_requests_in_flight_too() -> None:
    # A rate between others is no round number: the step at it is found all the same.
    plan = limit_plan(SearchPlan(TIGHT, 20, instances=1, first_rate=2.5757))
    limit = run(plan, TokenGenerator(limits=TIGHT.limits)).limit
    assert limit.usable
    assert limit.concurrency_per_instance is not None
    assert limit.tokens_per_instance is not None


def test_whole_answers_have_no_tokens_in_their_limit() -> None:
    plan = limit_plan(SearchPlan(LatencyGoal({"p99": 0.2}), 20, instances=1, poisson=False))
    limit = run(plan, FakeGenerator()).limit
    assert limit.usable
    assert limit.concurrency_per_instance is limit.tokens_per_instance is None


def test_streams_under_way_are_not_late_and_a_search_settles_until_answers_end() -> None:
    # Each answer takes 3 s; its first token comes after 1.2 s of the 2 s allowed.
    goal = LatencyGoal({"ttft-p95": 2.0, "itl-p95": 0.6})
    generator = TokenGenerator(service=3.0, workers=1_000, variation=0, limits=goal.limits)
    plan = limit_plan(SearchPlan(goal, 20, instances=1, first_rate=20, highest_rate=20))
    done = run(plan, generator)
    assert [each.judgement.kept for each in done.loads if each.purpose == "rise"] == [True]
    assert all(step.settle_seconds >= 6 for step in generator.steps if step.users is None)


# --- told ---------------------------------------------------------------------------------------


def report() -> LoadTestReport:
    plan = rate_plan([50], seconds=20, goal=GOAL, alone_seconds=0)
    return LoadTestReport(Target("chat", "us-east-1", streaming=True), run(plan, TokenGenerator()))


def test_a_result_survives_its_file() -> None:
    (step,) = report().run.steps
    again = StepResult.of_dict(json.loads(json.dumps(step.result.to_dict())))
    assert again.tokens == step.result.tokens
    assert again == step.result


def test_the_table_and_the_csv_tell_tokens() -> None:
    found = report()
    columns = {each.name: each.cells[0].text for each in step_columns(found.run.steps)}
    assert columns["TTFT p95"].removesuffix("?").endswith("ms")
    assert columns["ITL p95"].removesuffix("?").endswith("ms")
    assert columns["Goodput"] == "100 %"
    assert float(columns["Tokens/s"]) == pytest.approx(250, rel=0.1)
    assert "First byte p99" not in columns
    names, values = (line.split(",") for line in steps_csv(found).splitlines()[:2])
    row = dict(zip(names, values, strict=True))
    assert float(row["ttft_p95_ms"]) == pytest.approx(8, rel=0.6)
    assert float(row["goodput"]) == 1
    assert row["cached_tokens"] == "0"


def test_a_goodput_of_nearly_all_is_not_said_to_be_all() -> None:
    found = report()
    (step,) = found.run.steps
    assert step.result.tokens is not None
    result = replace(step.result, sent=100_000, tokens=replace(step.result.tokens, good=99_999))
    columns = step_columns([replace(step, result=result)])
    assert next(each for each in columns if each.name == "Goodput").cells[0].text == "99.9 %"


def test_warnings_name_answers_that_do_not_stream_or_do_not_count() -> None:
    (step,) = report().run.steps
    assert step.result.tokens is not None
    doubtful = replace(step.result, tokens=replace(step.result.tokens, unstreamed=3, uncounted=4))
    text = " ".join(warnings(doubtful))
    assert "3 answers of several tokens came in one chunk" in text
    assert "4 answers did not say how many tokens" in text


def test_records_of_several_processes_add_up_to_one_result() -> None:
    one, two = (Measurement(1, 1, 1, tokens=recorded(invocation(tokens=STREAM))) for _ in range(2))
    again = Measurement.sum([Measurement.of_message(each.to_message()) for each in (one, two)])
    step = Step("s", 10, ConstantArrivals(1))
    found = StepResult.of(step, again, 0.0).tokens
    assert (found.good, found.output_tokens, found.first_token.count) == (2, 10, 2)


def test_charts_put_targets_of_tokens_beside_tokens_and_not_beside_whole_answers() -> None:
    found = report()
    (rates,) = throughput_and_latency(found).panels
    assert [line.name for line in rates.lines] == ["first token p95", "between tokens p95"]
    assert [name for name, _ in rates.limits] == ["ttft-p95 target 500 ms", "itl-p95 target 50 ms"]
    first, between = percentiles(found).panels
    assert [name for name, _ in first.limits] == ["ttft-p95 target 500 ms"]
    assert [name for name, _ in between.limits] == ["itl-p95 target 50 ms"]
    panels = {panel.title: panel for panel in over_time(found).panels}
    assert not panels["Client latency, from the intended start"].limits
    assert len(panels["First token, and between tokens"].limits) == 2
