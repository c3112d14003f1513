"""Where the saturation comes from."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from low_latency_endpoint.account.scaling import Suspended
from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram
from low_latency_endpoint.load_test.engine.target import Target
from low_latency_endpoint.load_test.search.load_testing import run
from low_latency_endpoint.load_test.search.result_file import LoadTestReport, LoadTestRun
from low_latency_endpoint.load_test.search.run_plans import (
    SearchPlan,
    limit_plan,
    rate_plan,
    users_plan,
)
from low_latency_endpoint.load_test.search.saturation import (
    fleet_not_planned,
    fleet_scales,
    loaded_step,
    verdicts,
)
from low_latency_endpoint.load_test.search.serving import JoinedMetrics
from low_latency_endpoint.load_test.search.verdict_texts import VERDICTS

from .fake_account import FLEET, GOAL, kinds, metrics_of
from .fake_generator import QUEUE_FULL, FakeGenerator


def overloaded(**more: Any) -> LoadTestRun:
    """A minute alone, then rising rates; the last, too much for four workers, has minute 6."""
    return run(
        rate_plan([50, 150, 230], seconds=130, goal=GOAL, alone_seconds=60), FakeGenerator(**more)
    )


def ending(done: LoadTestRun, **result: Any) -> LoadTestRun:
    """Its last step has another result."""
    last = done.steps[-1]
    last = replace(last, result=replace(last.result, **result))
    return replace(done, steps=(*done.steps[:-1], last))


def broken(done: LoadTestRun, answers: Callable[[float], float], **result: Any) -> LoadTestRun:
    """Its only load broke, with so many answers in each second."""
    (step,) = ending(done, **result).loads
    timeline = tuple(replace(each, completed=answers(each.seconds)) for each in step.timeline)
    judgement = replace(step.judgement, outcome="broken", errors=True)
    return replace(done, steps=(replace(step, timeline=timeline, judgement=judgement),))


def test_full_processors() -> None:
    done = overloaded(queue_limit=20)
    metrics = metrics_of(CPUUtilization_Average=[25, 25, 25, 70, 75, 75, 97, 97])
    found = verdicts(done, FLEET, metrics)
    assert kinds(found) == ["errors", "cpu", "queueing"]
    errors, cpu, _ = found
    assert errors.title == "Requests fail at 230 TPS: the instances are full (CPU 97 %)"
    assert QUEUE_FULL in errors.evidence[0]
    assert (cpu.title, cpu.severity) == ("The CPU is full", "limit")
    assert cpu.advice == (
        "A safety factor of at most 0.67 keeps it near 65 %. Which type: low-latency recommend."
    )


def test_waiting_inside_the_instances_or_before_them() -> None:
    done = overloaded()
    waiting = 1000 * done.loads[-1].result.latency.mean
    inside = metrics_of(
        ModelLatency_Average=[20] * 5 + [30, waiting, waiting], CPUUtilization_Average=[30] * 8
    )
    found = verdicts(done, FLEET, inside)
    assert kinds(found) == ["queueing"]
    assert found[0].title == "Requests wait inside the instances"
    assert "an instance works on about 4 at once; the others wait" in found[0].evidence
    assert "more workers" in found[0].advice
    before = metrics_of(ModelLatency_Average=[20] * 8, OverheadLatency_Average=[2] * 8)
    assert kinds(verdicts(done, FLEET, before)) == ["before-the-model"]
    routed = metrics_of(
        ModelLatency_Average=[20] * 8, OverheadLatency_Average=[2] * 6 + [waiting - 20] * 2
    )
    (overhead,) = verdicts(done, FLEET, routed)
    assert overhead.kind == "overhead"
    assert "low-latency compare-routing" in overhead.advice


@pytest.mark.parametrize(
    ("used", "advice"),
    [
        ({}, "More instances, or larger ones. Which type: low-latency recommend."),
        ({"CPUUtilization_Average": [69.0] * 8}, "give the container more workers"),
        ({"CPUUtilization_Average": [70.0] * 8}, "Which type: low-latency recommend."),
    ],
)
def test_what_helps_those_who_wait_inside(used: dict[str, list[float]], advice: str) -> None:
    """Whether the hardware is full is known, or it is not; the client alone tells of alone."""
    done = overloaded()
    waiting = 1000 * done.loads[-1].result.latency.mean
    metrics = metrics_of(ModelLatency_Average=[None] * 6 + [waiting] * 2, **used)
    (found,) = (each for each in verdicts(done, FLEET, metrics) if each.kind == "queueing")
    assert found.title == "Requests wait inside the instances"
    assert advice in found.advice


@pytest.mark.parametrize(
    ("percent", "title", "advice"),
    [
        (69.9, "though the hardware is not full", "more workers"),
        (70.0, "the instances are nearly full (CPU 70 %), or the container fails", "ore instances"),
        (
            84.9,
            "the instances are nearly full (CPU 85 %), or the container fails",
            "container's log",
        ),
        (85.0, "the instances are full", "ore instances"),
    ],
)
def test_failures_of_a_full_fleet_are_told_from_others(
    percent: float, title: str, advice: str
) -> None:
    metrics = metrics_of(CPUUtilization_Average=[percent] * 8)
    errors = verdicts(overloaded(queue_limit=20), FLEET, metrics)[0]
    assert errors.kind == "errors"
    assert title in errors.title
    assert advice in errors.advice


def in_shared_minutes(rate: float, **more: Any) -> LoadTestRun:
    """One load of a minute, half of it in either of two minutes of CloudWatch."""
    generator = FakeGenerator(**more)
    generator.clock += 30
    return run(rate_plan([rate], seconds=60, goal=GOAL, alone_seconds=60), generator)


@pytest.mark.parametrize(
    ("percent", "title", "advice"),
    [
        (34, ", though the hardware is not full", "more workers"),
        (36, "; whether the hardware was full is not known", "--duration 2m"),
        (59, "; whether the hardware was full is not known", "--duration 2m"),
        (85, ": the instances are full (CPU 85 %)", "ore instances"),
    ],
)
def test_a_step_that_shares_its_minutes_may_have_used_all_that_they_show(
    percent: float, title: str, advice: str
) -> None:
    """Half of a minute at 36 % may be 72 % in the step and nothing beside it."""
    done = in_shared_minutes(230, queue_limit=20)
    errors = verdicts(done, FLEET, metrics_of(CPUUtilization_Average=[percent] * 4))[0]
    assert errors.title == "Requests fail at 230 TPS" + title
    assert advice in errors.advice


@pytest.mark.parametrize(("percent", "kind"), [(34, "not-saturated"), (36, "not-read")])
def test_what_shared_minutes_do_not_show_is_not_called_unused(percent: float, kind: str) -> None:
    done = in_shared_minutes(50)
    found = verdicts(done, FLEET, metrics_of(CPUUtilization_Average=[percent] * 4))
    assert kinds(found) == [kind]
    assert f"CPU at {percent} % (in minutes of which the step has 50 %)" in found[0].evidence


def test_timeouts_at_a_constant_rate_of_answers_are_the_capacity() -> None:
    """400 requests a second, of which four workers of 20 ms answer 200, whoever gives up."""
    done = run(rate_plan([400], seconds=30, goal=GOAL, alone_seconds=0), FakeGenerator(timeout=1))
    errors = verdicts(done, FLEET, JoinedMetrics())[0]
    assert errors.kind == "errors"
    assert errors.title == (
        "The endpoint answers about 200 requests a second, however many come: its capacity"
    )
    assert "timeout" in errors.evidence[0]
    assert "400" in errors.evidence[1]
    assert "More instances" in errors.advice
    assert "log" not in errors.advice


def test_timeouts_of_an_endpoint_that_stalls_are_no_capacity() -> None:
    """It answers all, then nobody: what it answers is not constant."""
    done = run(rate_plan([100], seconds=30, goal=GOAL, alone_seconds=0), FakeGenerator(timeout=1))
    lost = {"errors": {"timeout": 1700}, "unanswered": 1700}
    answered = {"completed": 1200, "answered_in_time": 1200}
    stalled = broken(done, lambda second: 100 if second < 12 else 0, **lost, **answered)
    assert "log" in verdicts(stalled, FLEET, JoinedMetrics())[0].advice


def test_nothing_saturated() -> None:
    generator = FakeGenerator()
    generator.clock += 30  # no full minute
    done = run(rate_plan([50], seconds=60, goal=GOAL, alone_seconds=60), generator)
    found = verdicts(done, FLEET, metrics_of(CPUUtilization_Average=[10, 30, 30]))
    assert kinds(found) == ["not-saturated"]
    assert "CPU at 30 % (in minutes of which the step has 50 %)" in found[0].evidence
    warm = verdicts(done, FLEET, metrics_of(CPUUtilization_Average=[10, 80, 80]))
    assert [(each.kind, each.severity) for each in warm] == [
        ("cpu", "risk"),
        ("not-saturated", "fine"),
    ]


def test_a_client_at_its_limit_makes_the_result_invalid() -> None:
    done = run(rate_plan([50, 150], seconds=20, goal=GOAL), FakeGenerator(client_bound_above=100))
    found = verdicts(done, FLEET, JoinedMetrics())
    assert (found[0].kind, found[0].severity) == ("client-bound", "invalid")
    assert found[0].title.startswith("Client-bound: result invalid. The machine that sent")
    assert LoadTestReport(Target("e", "us-east-1"), done, verdicts=found).invalid
    assert not done.held


def test_a_stumble_alone_is_told_and_spoils_nothing() -> None:
    done = run(
        rate_plan([150], seconds=20, goal=GOAL),
        FakeGenerator(unlucky=lambda step: step.name == "alone"),
    )
    found = verdicts(done, FLEET, JoinedMetrics())
    assert [(each.kind, each.severity) for each in found] == [
        ("client-bound", "risk"),
        ("not-read", "risk"),  # CloudWatch gave nothing
    ]
    assert done.held


def test_a_fleet_that_changed_makes_the_result_invalid() -> None:
    done = run(limit_plan(SearchPlan(GOAL, 20, instances=1)), FakeGenerator())
    found = verdicts(done, FLEET, JoinedMetrics(), replace(FLEET, instances=2))
    assert (found[0].kind, found[0].severity) == ("fleet-changed", "invalid")
    report = LoadTestReport(Target("e", "us-east-1"), done, FLEET, verdicts=found, peak_tps=1000)
    assert report.throughput is None
    assert "number of instances changed" in report.to_dict()["limit"]["problem"]


def test_concurrency_by_littles_law() -> None:
    assert overloaded(queue_limit=20).concurrency(1) == 4
    assert overloaded(workers=7, service=0.035, queue_limit=20).concurrency(1) == 7
    assert overloaded(workers=8, service=0.040, queue_limit=20).concurrency(2) == 4
    assert overloaded(workers=1, service=0.005, queue_limit=20).concurrency(1) == 1
    idle = run(rate_plan([50], seconds=10, goal=GOAL), FakeGenerator())
    assert idle.concurrency(1) is None, "instances that were never full tell nothing"


def slower(done: LoadTestRun, share: float) -> LoadTestRun:
    """The last step's requests wait for this share of their time; nothing else happens."""
    last, alone = done.steps[-1], done.alone
    mean = alone.result.service.mean / (1 - share)
    done = ending(done, errors={}, unanswered=0, latency=LatencyHistogram.of([mean] * 1_000))
    judgement = replace(last.judgement, outcome="broken", errors=False, reasons=("slow",))
    return replace(done, steps=(*done.steps[:-1], replace(done.steps[-1], judgement=judgement)))


@pytest.mark.parametrize(
    ("share", "found"), [(0.24, ["unexplained"]), (0.26, ["queueing"]), (0.45, ["queueing"])]
)
def test_a_quarter_of_the_time_is_worth_a_word(share: float, found: list[str]) -> None:
    assert kinds(verdicts(slower(overloaded(), share), FLEET, JoinedMetrics())) == found


@pytest.mark.parametrize(("overhead", "kind"), [(14.0, "overhead"), (12.0, "before-the-model")])
def test_overhead_that_grew_by_a_quarter_and_takes_half_of_the_wait(
    overhead: float, kind: str
) -> None:
    """A request takes 20 ms alone and 28 ms loaded; the model itself needs 1 ms more."""
    metrics = metrics_of(
        ModelLatency_Average=[10] * 5 + [11] * 3, OverheadLatency_Average=[10] * 5 + [overhead] * 3
    )
    assert kinds(verdicts(slower(overloaded(), 8 / 28), FLEET, metrics)) == [kind]


@dataclass(frozen=True)
class Times:
    """Milliseconds of a request that is answered: in the model, and all else."""

    model: float
    outside: float

    @property
    def whole(self) -> float:
        """What the client measures."""
        return self.model + self.outside


LOADED = overloaded()


def waiting(
    alone: Times, loaded: Times, failed: float = 0.0, refused_after: float = 0.0, **told: bool
) -> list[str]:
    """What is said of requests that wait, beside a share of refused ones.

    CloudWatch's average holds them; ``counted``: its minutes hold their number too; ``mixed``: the
    minute of the caller alone holds the load too.
    """
    times = LatencyHistogram.of([loaded.whole / 1000] * 1_000)
    refused = round(1_000 * failed / (1 - failed))
    done = ending(
        LOADED,
        sent=1_000 + refused,
        completed=1_000,
        unanswered=0,
        latency=times,
        errors={QUEUE_FULL: refused} if refused else {},
        refused=LatencyHistogram.of([refused_after / 1000] * refused),
    )
    first = LOADED.alone
    service = LatencyHistogram.of([alone.whole / 1000] * 1_000)
    first = replace(first, result=replace(first.result, service=service))
    done = replace(done, steps=(first, *done.steps[1:]))
    share = refused / (1_000 + refused)
    model = (1 - share) * loaded.model + share * refused_after
    before = (alone.model + model) / 2 if told.get("mixed") else alone.model
    metrics = metrics_of(
        ModelLatency_Average=[before] * 5 + [model] * 3,
        Invocations_Sum=[6_000.0] * 8,
        Invocation5XXErrors_Sum=[0.0] * 5 + [share * 6_000 if told.get("counted") else 0.0] * 3,
    )
    if told.get("mixed"):
        shorter = replace(
            first, result=replace(first.result, ended_at=first.result.started_at + 10)
        )
        done = replace(done, steps=(shorter, *done.steps[1:]))
    found = verdicts(done, FLEET, metrics)
    return [each.title for each in found if each.kind in ("queueing", "before-the-model")]


INSIDE, BEFORE = VERDICTS["queueing"][0], VERDICTS["before-the-model"][0]
UNKNOWN = "Requests wait, inside the instances or before them"


TIMES = st.builds(Times, st.floats(1, 500), st.floats(1, 500))
MIXED = st.fixed_dictionaries({"counted": st.booleans(), "mixed": st.booleans()})


@given(TIMES, TIMES, st.floats(0, 0.99), st.floats(0, 1), MIXED)
def test_quick_refusals_never_move_the_wait_before_the_model(
    alone: Times, loaded: Times, failed: float, quick: float, told: dict[str, bool]
) -> None:
    """However many, and however quick: of those that were answered nothing has changed."""
    mixed = waiting(alone, loaded, failed, quick * loaded.model, **told)
    if BEFORE in mixed:
        assert failed < 0.0105
        assert waiting(alone, loaded) == [BEFORE]


@given(TIMES, TIMES, st.floats(0, 0.99), st.floats(0, 2_000), MIXED)
def test_the_place_of_the_wait_is_true_or_not_told(
    alone: Times, loaded: Times, failed: float, refused_after: float, told: dict[str, bool]
) -> None:
    """Failures may be slow as well, such as a time limit of SageMaker's that is over."""
    half = (loaded.whole - alone.whole) / 2
    inside = loaded.model - alone.model
    assume(abs(inside - half) > 0.005 * loaded.whole)  # a histogram's buckets are wider
    done = waiting(alone, loaded, failed, min(refused_after, 10 * loaded.whole), **told)
    if BEFORE in done:
        assert inside < half
    if INSIDE in done:
        assert inside > half
    if not (failed or told["mixed"]) and loaded.whole > 1.4 * alone.whole:
        assert done == [INSIDE if inside > half else BEFORE]


def test_refused_calls_are_said_to_be_in_the_average() -> None:
    """The load-testing post's closed loop: 99 % are refused in 6 ms, the others wait in a queue."""
    done = ending(
        overloaded(queue_limit=20),
        latency=LatencyHistogram.of([0.608] * 1_192),
        refused=LatencyHistogram.of([0.006] * 139_958),
        errors={QUEUE_FULL: 139_958},
        sent=141_150,
    )
    metrics = metrics_of(ModelLatency_Average=[20] * 5 + [7] * 3)
    (found,) = (each for each in verdicts(done, FLEET, metrics) if each.kind == "queueing")
    assert found.title == UNKNOWN
    assert found.evidence[-1] == (
        "99 % of the calls failed: ModelLatency may hold refused calls, which the client's average "
        "leaves out"
    )
    assert "network" not in found.advice


@pytest.mark.parametrize(("failed", "title"), [(0.009, BEFORE), (0.0105, UNKNOWN)])
def test_a_few_failures_leave_the_network_in_question(failed: float, title: str) -> None:
    """From one in a hundred on, as the alarm on errors, they are too many to say so."""
    assert waiting(Times(20, 1), Times(20, 100), failed) == [title]


def test_all_who_are_under_way_are_counted() -> None:
    """By Little's law also those that are refused: 100 answers of 0.5 s, 900 refusals of 0.01 s."""
    done = slower(overloaded(), 0.5)
    seconds = done.loads[-1].result.seconds
    answers, refused = round(100 * seconds), round(900 * seconds)
    done = ending(
        done,
        latency=LatencyHistogram.of([0.5] * answers),
        refused=LatencyHistogram.of([0.01] * refused),
        errors={QUEUE_FULL: refused},
        sent=answers + refused,
    )
    evidence = [line for each in verdicts(done, FLEET, JoinedMetrics()) for line in each.evidence]
    assert "59 requests are under way at a time (Little's law)" in evidence


def test_the_lowest_load_that_broke_shows_what_limits() -> None:
    done = run(rate_plan([230, 300], seconds=10, goal=GOAL), FakeGenerator())
    assert [each.judgement.outcome for each in done.loads] == ["broken", "broken"]
    found = loaded_step(done)
    assert found.offered == 230


def test_without_one_that_broke_it_is_the_highest() -> None:
    done = run(users_plan([2, 4, 1], seconds=10, goal=GOAL), FakeGenerator())
    found = loaded_step(done)
    assert found.result.step.users == 4


def test_without_a_caller_alone_nothing_is_known_of_the_work_at_once() -> None:
    """Neither without the number of instances."""
    full = overloaded(queue_limit=20)
    assert full.concurrency(None) is None
    assert replace(full, steps=full.loads).concurrency(1) is None


def test_a_fleet_that_may_grow_is_told_beforehand() -> None:
    (found,) = fleet_scales(replace(FLEET, minimum=1, maximum=3))
    assert found.evidence == ("from 1 to 3 instances",)
    assert list(fleet_scales(FLEET)) == []
    assert list(fleet_scales(replace(FLEET, minimum=2, maximum=2))) == []


@pytest.mark.parametrize("instances", [None, 1, 2, 3])
@pytest.mark.parametrize("scale_in", [False, True])
@pytest.mark.parametrize("scale_out", [False, True])
@pytest.mark.parametrize("scheduled", [(), ("night",)])
def test_a_fleet_scales_only_where_something_moves_it(
    instances: int | None, scale_in: bool, scale_out: bool, scheduled: tuple[str, ...]
) -> None:
    """From one to three instances: suspended both ways, and without a schedule, it stays."""
    suspended = Suspended(scale_in=scale_in, scale_out=scale_out)
    fleet = replace(FLEET, instances=instances, minimum=1, maximum=3)
    found = list(fleet_scales(replace(fleet, suspended=suspended, scheduled=scheduled)))
    shrinks = not scale_in and instances != 1
    grows = not scale_out and instances != 3
    assert bool(found) is (shrinks or grows or bool(scheduled))
    for verdict in found:
        said = "; ".join(verdict.evidence)
        assert ("night" in said) is bool(scheduled)
        assert ("ScheduledScalingSuspended" in verdict.advice) is bool(scheduled)
        ends = {1 if shrinks else instances, 3 if grows else instances} - {None}
        assert re.findall(r"\d+", said) == [str(end) for end in sorted(ends) if shrinks or grows]
        assert "None" not in said


@pytest.mark.parametrize(
    ("mode", "instances", "planned", "found"),
    [
        ("confirm", 1, 2, ["The fleet has 1 instance, the plan says 2 at the peak"]),
        ("confirm", 3, 2, ["The fleet has 3 instances, the plan says 2 at the peak"]),
        ("confirm", 2, 2, []),
        ("confirm", None, 2, []),
        ("confirm", 1, None, []),
        ("rate", 1, 2, []),
    ],
)
def test_a_plan_is_confirmed_on_the_fleet_that_it_planned(
    mode: str, instances: int | None, planned: int | None, found: list[str]
) -> None:
    told = fleet_not_planned(mode, replace(FLEET, instances=instances), planned)
    assert [each.title for each in told] == found


@pytest.mark.parametrize(("throttled", "kind"), [(50, "throttled"), (49, "errors")])
def test_half_of_the_failures_are_throttled_or_it_is_none(throttled: int, kind: str) -> None:
    errors = {"400 ThrottlingException": throttled, QUEUE_FULL: 100 - throttled}
    done = ending(overloaded(queue_limit=20), errors=errors)
    assert kinds(verdicts(done, FLEET, JoinedMetrics()))[0] == kind


@pytest.mark.parametrize(
    ("percent", "title", "is_last"),
    [
        (69.9, None, "not-saturated"),
        (70.0, "The CPU is above what AWS advises", "not-saturated"),
        (84.9, "The CPU is above what AWS advises", "not-saturated"),
        (85.0, "The CPU is above what AWS advises", "cpu"),
        (90.0, "The CPU is full", "cpu"),
    ],
)
def test_seventy_percent_are_more_than_is_advised_and_ninety_are_full(
    percent: float, title: str | None, is_last: str
) -> None:
    """What is full, for which failures are explained from 85 % on, is not called unsaturated."""
    done = run(rate_plan([50], seconds=60, goal=GOAL, alone_seconds=60), FakeGenerator())
    metrics = metrics_of(CPUUtilization_Average=[10, percent, percent])
    found = verdicts(done, FLEET, metrics)
    assert [each.title for each in found if each.kind == "cpu"] == ([title] if title else [])
    assert found[-1].kind == is_last


def gave_up(rate: float, seconds: float, refused: float = 0.0) -> str:
    """What is said of a fleet that answers so many of 100 requests a second, always as many.

    The others wait in vain, but for this share of them, which is refused.
    """
    done = run(rate_plan([100], seconds=seconds, goal=GOAL, alone_seconds=0), FakeGenerator())
    lost = round((100 - rate) * seconds)
    found = broken(
        done,
        lambda second: int(rate),
        errors={"timeout": lost},
        unanswered=round(lost * (1 - refused)),
        answered_in_time=int(rate * seconds),
    )
    return verdicts(found, FLEET, JoinedMetrics())[0].title


@pytest.mark.parametrize(
    ("rate", "seconds", "refused", "capacity"),
    [
        (80, 30, 0.0, True),
        (90, 30, 0.0, False),
        (95, 30, 0.0, False),  # the few that waited in vain are no queue of all others
        (80, 6, 0.0, True),
        (80, 5, 0.0, False),  # thirds of two seconds at least
        (80, 30, 0.5, True),
        (80, 30, 0.51, False),  # half of those who failed waited in vain, at least
    ],
)
def test_capacity_needs_many_unanswered_and_time(
    rate: float, seconds: float, refused: float, capacity: bool
) -> None:
    assert ("its capacity" in gave_up(rate, seconds, refused)) is capacity


def test_capacity_is_of_the_seconds_that_count() -> None:
    """Of the settling and of what is answered after the end nothing is known."""
    done = run(rate_plan([100], seconds=6, goal=GOAL, alone_seconds=0), FakeGenerator())
    (step,) = done.loads
    second = step.timeline[0]
    timeline = tuple(
        replace(second, seconds=float(at), completed=1000 if at == 5 else 0 if at == 12 else 80)
        for at in range(5, 13)
    )
    result = replace(
        step.result,
        step=replace(step.result.step, seconds=11.0, settle_seconds=5.0),
        ended_at=step.result.started_at + 6,
        errors={"timeout": 120},
        unanswered=120,
        answered_in_time=480,
    )
    judgement = replace(step.judgement, outcome="broken", errors=True)
    broken = replace(step, result=result, timeline=timeline, judgement=judgement)
    found = verdicts(replace(done, steps=(broken,)), FLEET, JoinedMetrics())[0]
    assert found.title.startswith("The endpoint answers about 80 requests a second")


def test_a_miss_while_the_sender_was_late_names_the_machine_too() -> None:
    done = slower(run(rate_plan([50], seconds=10, goal=GOAL), FakeGenerator()), 0.24)
    late = "send lag p99 is 82 ms, 70% of the median latency"
    found = verdicts(ending(done, warnings=(late,)), FLEET, JoinedMetrics())
    (missed,) = [each for each in found if each.kind == "unexplained"]
    assert "it may be that machine" in missed.title
    assert missed.evidence == ("slow", late)
    (quiet,) = [
        each for each in verdicts(done, FLEET, JoinedMetrics()) if each.kind == "unexplained"
    ]
    assert "machine" not in quiet.title
