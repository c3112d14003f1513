"""A run from plan to result: steps, events, first bytes, what is opened and closed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.load_test.engine.arrivals import RampArrivals
from low_latency_endpoint.load_test.engine.generator_process import GENERATOR
from low_latency_endpoint.load_test.engine.steps import Step, StepResult
from low_latency_endpoint.load_test.engine.target import Target
from low_latency_endpoint.load_test.search.judging import LatencyGoal, Outcome
from low_latency_endpoint.load_test.search.limit_search import limit_so_far
from low_latency_endpoint.load_test.search.load_testing import StepEvent, run
from low_latency_endpoint.load_test.search.result_file import LoadTestReport, write_text
from low_latency_endpoint.load_test.search.run_plans import (
    RunPlan,
    SearchPlan,
    confirm_plan,
    limit_plan,
    rate_plan,
    users_plan,
)
from low_latency_endpoint.load_test.search.settings_file import read_found_limit
from tests.refusals import refused

from .fake_account import GOAL, FakeAws, loaded
from .fake_generator import FakeGenerator


def test_steps_run_in_order_and_tell_of_themselves() -> None:
    events: list[StepEvent] = []
    done = run(rate_plan([50, 100], seconds=10, goal=GOAL), FakeGenerator(), events.append)
    started = [each for each in events if each.began]
    assert [(each.step.name, each.number, each.of, each.purpose) for each in started] == [
        ("alone", 1, 3, "alone"),
        ("50 TPS", 2, 3, "rate"),
        ("100 TPS", 3, 3, "rate"),
    ]
    assert [each.measured for each in events if each.measured] == list(done.steps)
    seconds = [each for each in events if each.progress and each.step.name == "50 TPS"]
    assert len(seconds) == 11, "one of settling, ten that count"
    assert [each.result.step.name for each in done.loads] == ["50 TPS", "100 TPS"]
    assert done.alone.result.service.percentile(50) == pytest.approx(0.02, rel=0.002)


def test_users_wait_for_their_answers() -> None:
    done = run(users_plan([4, 8], seconds=10, alone_seconds=0), FakeGenerator())
    rates = [each.result.rate for each in done.steps]
    assert rates == pytest.approx([200, 200], rel=0.05), "four workers, and no more than they do"
    assert [each.offered for each in done.steps] == [None, None]
    assert done.steps[1].result.latency.percentile(50) == pytest.approx(0.04, rel=0.01)


def test_a_ramp_is_a_step() -> None:
    done = run(rate_plan([RampArrivals(10, 190)], seconds=20, goal=GOAL), FakeGenerator())
    assert done.loads[0].result.step.name == "10 to 190 TPS"
    assert done.loads[0].offered == pytest.approx(100)


def test_confirm_holds_or_does_not() -> None:
    def held(instances: int) -> bool:
        return run(
            confirm_plan(1000, GOAL, seconds=20), FakeGenerator(instances=instances, queue_limit=20)
        ).held

    assert held(6)
    assert not held(4)


def test_a_run_without_a_target_is_judged_by_errors() -> None:
    assert run(rate_plan([150], seconds=10), FakeGenerator()).held
    assert not run(rate_plan([300], seconds=10), FakeGenerator(queue_limit=5)).held


def test_interrupting_keeps_the_whole_steps() -> None:
    generator = FakeGenerator()

    def emit(event: StepEvent) -> None:
        if event.progress and event.step.name == "100 TPS":
            raise KeyboardInterrupt

    done = run(rate_plan([50, 100, 150], seconds=10, goal=GOAL), generator, emit)
    assert done.interrupted
    assert not done.held
    assert [each.result.step.name for each in done.steps] == ["alone", "50 TPS"]


def test_a_generator_that_ends_keeps_the_whole_steps() -> None:
    class Ending(FakeGenerator):
        def run(self, step: Step, progress: Any = lambda each: None) -> StepResult:
            if step.name == self.broken:
                raise GENERATOR.error(got="a worker was lost", allowed="a running generator")
            self.broken, name = "", self.broken
            result = super().run(step, progress)
            self.broken = name
            return result

    plan = rate_plan([50, 100, 150], seconds=10, goal=GOAL)
    done = run(plan, Ending(broken="100 TPS"))
    assert [each.result.step.name for each in done.steps] == ["alone", "50 TPS"]
    assert (done.interrupted, done.held) == (True, False)
    assert "a worker was lost" in done.failure
    with refused(GENERATOR.code):  # nothing to keep
        run(plan, Ending(broken="50 TPS"))


def test_an_endpoint_that_answers_nothing_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = FakeGenerator(broken="403 AccessDeniedException")
    with refused("LLT112", says="403 AccessDeniedException"):
        loaded(monkeypatch, FakeAws(), rate_plan([50, 100], seconds=10), generator)
    assert generator.closed
    assert len(generator.steps) == 1


def test_a_plan_is_steps_or_a_search() -> None:
    with refused("LLT108"):
        RunPlan("rate", GOAL)


def test_a_stream_is_judged_by_its_first_byte() -> None:
    def outcome(goal: dict[str, float], share: float) -> str:
        plan = rate_plan([100], seconds=40, goal=LatencyGoal(goal), alone_seconds=0)
        (step,) = run(plan, FakeGenerator(first_byte_share=share)).steps
        assert step.judgement.bounds["ttfb-p99"].value == pytest.approx(
            share * step.result.latency.percentile(99), rel=0.01
        )
        return step.judgement.outcome

    assert outcome({"ttfb-p99": 0.015}, share=0.1) == "held"
    assert outcome({"ttfb-p99": 0.015}, share=0.9) == "broken"
    assert outcome({"ttfb-p99": 0.015, "p99": 0.010}, share=0.1) == "broken", "both are kept"
    assert outcome({"ttfb-p99": 0.015, "ttfb-Average": 0.001}, share=0.1) == "broken"


def test_a_target_for_the_first_byte_needs_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    generator, plan = FakeGenerator(), rate_plan([10], goal=LatencyGoal({"ttfb-p99": 0.1}))
    with refused("LLT139", got="ttfb-p99"):
        loaded(monkeypatch, FakeAws(), plan, generator)
    assert generator.steps == []


def test_the_whole_test_opens_and_closes_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    aws, generator, said = FakeAws(invocations=[1e9]), FakeGenerator(instances=2), []
    plan = limit_plan(SearchPlan(GOAL, 20, poisson=False))
    report = loaded(monkeypatch, aws, plan, generator, say=said.append)
    assert generator.closed
    assert report.run.limit.instances == 2, "what SageMaker says serves"
    assert report.run.limit.tps_per_instance == pytest.approx(200, rel=0.06)
    assert said == ["Reading the endpoint", "Starting the load generator", "Reading CloudWatch"]
    assert "cloudwatch.GetMetricData" in aws.asked


def test_waiting_for_cloudwatch_may_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def say(text: str) -> None:
        if "has counted" in text:
            raise KeyboardInterrupt

    plan = rate_plan([200], seconds=20)
    report = loaded(monkeypatch, FakeAws(), plan, FakeGenerator(), say=say)
    assert report.run.held
    assert report.metrics.unknown == ("CloudWatch: interrupted",)


@pytest.mark.parametrize("between", [False, True])
def test_a_search_that_is_stopped_keeps_its_limit_so_far_as_a_lower_bound(
    between: bool, tmp_path: Path
) -> None:
    held: list[float] = []

    def emit(event: StepEvent) -> None:
        if event.measured and event.measured.judgement.kept:
            held.append(event.measured.offered or 0.0)
        stops = event.began if between else event.progress
        if len(held) > 3 and stops:  # one caller, and three rates
            raise KeyboardInterrupt

    done = run(limit_plan(SearchPlan(GOAL, 20, instances=2)), FakeGenerator(instances=2), emit)
    assert done.interrupted
    assert not done.held
    assert (done.limit.rate, done.limit.lower_bound) == (max(held), True)
    assert (done.limit.confirmed, done.limit.confidence) == (False, None), "it shows the way"
    file = tmp_path / "result.json"
    write_text(file, LoadTestReport(Target("sentiment", "us-east-1"), done).to_json())
    with refused("LLT138"):
        read_found_limit(file)
    with refused("LLT180"):
        read_found_limit(file, accept_lower_bound=True)


def test_no_step_sends_the_prompts_of_another() -> None:
    plan = rate_plan([50, 100], seconds=4, goal=GOAL)
    same, apart = FakeGenerator(), FakeGenerator()
    run(plan, same)
    run(plan, apart, numbers=1_000)
    assert [step.first_number for step in same.steps] == [0, 0, 0]
    assert [step.first_number for step in apart.steps] == [0, 1_000, 2_000]


@pytest.mark.parametrize(
    ("outcomes", "told"),
    [
        (("client-bound", "unclear"), "was not decided, as the machine that sent was late; the"),
        (("unclear",), "was not decided; the limit may be higher"),
        (("unclear", "broken"), "did not: the limit lies between them"),
        ((), "stopped; the limit may be higher"),
    ],
)
def test_only_a_rate_that_broke_is_told_as_above_the_limit(
    outcomes: tuple[Outcome, ...], told: str
) -> None:
    plan = SearchPlan(GOAL, 20, instances=2)
    steps = run(limit_plan(plan), FakeGenerator(instances=2)).steps
    kept = [each for each in steps if each.judgement.kept and each.offered]
    rates = sorted(kept, key=lambda each: each.offered or 0.0)
    held, above = rates[0], rates[-1]
    more = [
        replace(above, judgement=replace(above.judgement, outcome=outcome, kept=False))
        for outcome in outcomes
    ]
    limit = limit_so_far(plan, [held, *more])
    assert limit is not None
    assert told in limit.how
    assert (limit.broken_rate is not None) is ("broken" in outcomes)
