"""One process's sending: what counts, from when, and what a stalled endpoint looks like."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gevent
import pytest

from low_latency_endpoint.load_test.engine import sending
from low_latency_endpoint.load_test.engine.arrivals import (
    Arrivals,
    ConstantArrivals,
    PoissonArrivals,
)
from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram
from low_latency_endpoint.load_test.engine.measurement import Invocation, Measurement
from low_latency_endpoint.load_test.engine.sending import Pacer, StepRun, callers_allowed
from low_latency_endpoint.load_test.engine.steps import Step, StepResult

from .agreement import Busyness, Pairs, agree, pairs_of
from .histograms import buckets
from .servers import precise_server


def answer(
    started: float,
    ended: float,
    error: str | None = None,
    status: int = 200,
    first_byte: float | None = None,
) -> Invocation:
    """What an invoker returns."""
    return Invocation(status, 0, error, started, ended, first_byte, b"", "", "")


def sleeping(seconds: float) -> Callable[[int], Invocation]:
    """An endpoint without a network."""

    def invoke(number: int) -> Invocation:
        started = time.perf_counter()
        gevent.sleep(seconds)
        return answer(started, time.perf_counter())

    return invoke


def run(
    step: Step,
    invoke: Callable[[int], Invocation],
    numbers: list[int] | None = None,
    **options: object,
) -> Measurement:
    """Run a step here, from now on; note the numbers of the requests."""
    noted = [] if numbers is None else numbers

    def noting(number: int) -> Invocation:
        noted.append(number)
        return invoke(number)

    return StepRun(step, noting, time.perf_counter(), **options).run()  # type: ignore[arg-type]


def test_every_request_that_is_due_is_sent_once_with_its_number() -> None:
    numbers: list[int] = []
    records = run(Step("s", 1, PoissonArrivals(200)), sleeping(0.005), numbers)
    expected = sum(1 for _ in PoissonArrivals(200).offsets(1))
    assert numbers == list(range(expected))
    assert (records.intended, records.sent, records.completed) == (expected,) * 3
    assert records.latency.count == records.service.count == records.send_lag.count == expected


def test_a_part_sends_its_own_numbers() -> None:
    numbers: list[int] = []
    run(Step("s", 0.5, ConstantArrivals(60)), sleeping(0.0), numbers, part=2, parts=3)
    assert numbers == list(range(2, 30, 3))


def test_latency_counts_from_the_intended_start() -> None:
    """A generator that is held up for 0.3 s shows it: in the lag and in the latency."""
    held = itertools.count()

    def invoke(number: int) -> Invocation:
        started = time.perf_counter()
        if next(held) == 20:
            time.sleep(0.3)  # the whole process
        return answer(started, time.perf_counter())

    records = run(Step("s", 1, ConstantArrivals(100)), invoke)
    assert records.intended == records.sent == 100
    # What was due in that time started late: 30 requests, evenly from 0.3 s late to none.
    assert records.send_lag.percentile(99) > 0.25
    assert records.latency.percentile(99) > 0.25
    assert records.service.percentile(90) < 0.1
    late = sum(count for low, _, count in buckets(records.send_lag) if low > 0.05)
    assert late >= 20


def test_settling_is_sent_but_not_counted() -> None:
    numbers: list[int] = []
    records = run(Step("s", 1, ConstantArrivals(100), settle_seconds=0.4), sleeping(0.001), numbers)
    assert len(numbers) == 100
    assert records.intended == records.sent == records.latency.count == 60


def test_a_closed_loop_waits_for_its_answers() -> None:
    under_way = most = 0

    def invoke(number: int) -> Invocation:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        found = sleeping(0.02)(number)
        under_way -= 1
        return found

    records = run(Step("s", 1, users=5), invoke)
    assert most == 5
    assert records.intended == records.sent == records.completed
    assert 50 <= records.sent <= 260  # 250 at full speed
    assert records.send_lag.count == 0


def test_users_are_shared_between_processes() -> None:
    numbers: list[int] = []
    for part in range(3):
        run(Step("s", 0.1, users=7), sleeping(0.01), numbers, part=part, parts=3)
    assert {number % 7 for number in numbers} == set(range(7))


def test_errors_are_counted_by_kind_and_quick_ones_are_in_no_percentile() -> None:
    kinds = itertools.cycle([None, "400 ThrottlingException", "check failed"])

    def invoke(number: int) -> Invocation:
        kind = next(kinds)
        now = time.perf_counter()
        return answer(now, now + 0.001, kind, 400 if kind and kind[0] == "4" else 200)

    records = run(Step("s", 0.9, ConstantArrivals(100)), invoke)
    assert records.errors == {"400 ThrottlingException": 30, "check failed": 30}
    assert records.completed == 30
    # An answer of 2xx that fails its check took its time all the same.
    assert records.latency.count == 60
    assert records.refused.count == 30
    assert records.unanswered == 0


@pytest.mark.parametrize("load", [{"arrivals": ConstantArrivals(100)}, {"users": 2}])
@pytest.mark.parametrize(
    ("kind", "status"), [("timeout", 0), ("connection timeout", 0), ("504 Gateway Timeout", 504)]
)
def test_who_waits_in_vain_does_not_improve_the_percentiles(
    load: dict[str, Any], kind: str, status: int
) -> None:
    """One in four waits for a second and gives up; the others are answered in 10 ms."""

    def invoke(number: int) -> Invocation:
        now = time.perf_counter()
        gevent.sleep(0.01)
        return answer(now, now + 1, kind, status) if number % 4 == 1 else answer(now, now + 0.01)

    step = Step("s", 0.5, **load)
    records = run(step, invoke)
    count = records.sent
    assert records.unanswered == records.errors[kind] > 0
    assert records.latency.count == records.service.count == count
    assert sum(n for low, _, n in buckets(records.latency) if low > 0.99) == records.unanswered
    result = StepResult.of(step, records, 0.0)
    assert any("high percentiles are lower bounds" in one for one in result.warnings)


def test_slow_failures_are_told_though_they_are_in_no_percentile() -> None:
    def invoke(number: int) -> Invocation:
        now = time.perf_counter()
        return answer(now, now + 30, "503 X", 503) if number == 7 else answer(now, now + 0.01)

    step = Step("s", 0.5, ConstantArrivals(100))
    result = StepResult.of(step, run(step, invoke), 0.0)
    assert (result.latency.count, result.refused.count) == (49, 1)
    assert any("took up to" in one and "in no percentile" in one for one in result.warnings)
    read = StepResult.of_dict(json.loads(json.dumps(result.to_dict())))
    assert (read.refused, read.unanswered) == (result.refused, result.unanswered)


def test_each_time_is_in_the_result_by_its_own_name() -> None:
    """Above all the latency, which counts from when a request was due, not from when it was sent."""
    records, names = (
        Measurement(first_byte=LatencyHistogram()),
        ("latency", "service", "first_byte", "send_lag", "refused"),
    )
    for seconds, name in enumerate(names, 1):
        getattr(records, name).record(seconds)
    result = StepResult.of(Step("s", 1, ConstantArrivals(50)), records, 0.0)
    found = {name: round(getattr(result, name).percentile(50)) for name in names}
    assert found == {name: seconds for seconds, name in enumerate(names, 1)}


@pytest.mark.parametrize("load", [{"arrivals": ConstantArrivals(100)}, {"users": 3}])
def test_what_is_under_way_when_a_run_is_killed_failed(load: dict[str, Any]) -> None:
    """The first requests are answered; then nobody is, and the run is killed."""
    answers = itertools.count()

    def invoke(number: int) -> Invocation:
        return sleeping(0.0 if next(answers) < 10 else 3600)(number)

    step_run = StepRun(Step("s", 60, **load), invoke, time.perf_counter())
    greenlet = gevent.spawn(step_run.run)
    gevent.sleep(0.6)
    greenlet.kill()
    for records in (step_run.records, step_run.take_interval()[0]):
        failed = records.errors["no answer"]
        assert failed >= 3
        assert records.completed == 10
        assert records.sent == records.completed + failed == records.latency.count
        assert records.latency.max > 0.4


def test_a_fault_of_the_client_is_an_error_not_the_end() -> None:
    def invoke(number: int) -> Invocation:
        if number % 2:
            raise KeyError("credentials")
        return sleeping(0.001)(number)

    records = run(Step("s", 0.2, ConstantArrivals(100)), invoke)
    assert records.completed == 10
    assert records.errors == {"client KeyError": 10}
    assert records.messages == {"client KeyError": "'credentials'"}


def test_with_all_callers_busy_requests_wait_and_late_ones_are_never_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sending, "callers_allowed", lambda: 4)
    records = run(Step("s", 1, ConstantArrivals(50)), sleeping(0.4))
    assert records.postponed >= 40
    assert records.sent <= 4 * 4
    assert records.intended == 50
    result = StepResult.of(Step("s", 1, ConstantArrivals(50)), records, 0.0)
    assert any("never sent" in reason for reason in result.client_bound)
    assert any("waited for a connection" in reason for reason in result.client_bound)


def test_an_answer_that_never_comes_does_not_hold_up_the_end() -> None:
    step = Step("s", 0.2, ConstantArrivals(20))
    records = run(step, sleeping(3600), timeout_seconds=-4.5)  # 0.5 s with the reserve
    assert records.errors == {"no answer": 4}
    assert records.unanswered == records.latency.count == 4
    assert records.latency.min > 0.4


def test_streams_have_their_first_byte_from_the_intended_start() -> None:
    def invoke(number: int) -> Invocation:
        started = time.perf_counter()
        gevent.sleep(0.02)
        return answer(started, started + 0.5, first_byte=started + 0.1)

    records = run(Step("s", 0.5, ConstantArrivals(40)), invoke, streaming=True)
    assert records.first_byte.count == 20
    # Their sum is exact: lag + 0.1 s for each.
    assert records.first_byte.mean == pytest.approx(0.1 + records.send_lag.mean, abs=1e-6)


def test_streams_without_a_first_byte_do_not_improve_it() -> None:
    def invoke(number: int) -> Invocation:
        started = time.perf_counter()
        first = started + 0.1 if number % 2 else None
        return answer(started, started + 2, "timeout", 0, first)

    step = Step("s", 0.5, ConstantArrivals(40))
    records = run(step, invoke, streaming=True)
    assert records.first_byte.count == records.unanswered == 20
    assert records.first_byte.mean == pytest.approx((0.1 + 2) / 2 + records.send_lag.mean, abs=1e-6)
    assert run(step, invoke).first_byte is None, "only streams have a first byte to wait for"


@pytest.mark.realtime
def test_requests_do_not_wait_for_each_other_and_answers_count_in_their_time() -> None:
    """At 100 a second and half a second each, fifty are under way; none starts late for it.

    An endpoint that answers at its own pace does not get faster by the wait after the end.
    """
    records = run(Step("s", 1, ConstantArrivals(100)), sleeping(0.5))
    assert records.sent == records.completed == 100
    assert records.send_lag.percentile(50) < 0.05
    assert records.latency.max < 1.0
    assert 35 <= records.answered_in_time <= 52


def test_what_the_interval_saw_is_taken_once() -> None:
    step_run = StepRun(
        Step("s", 1, ConstantArrivals(100), settle_seconds=0.5),
        sleeping(0.001),
        time.perf_counter(),
    )
    taken: list[Measurement] = []

    def report() -> None:
        for _ in range(4):
            gevent.sleep(0.35)
            taken.append(step_run.take_interval()[0])

    reporter = gevent.spawn(report)
    step_run.run()
    reporter.join()
    assert sum(one.sent for one in taken) == 100  # settling is shown, though it does not count
    assert sum(one.completed for one in taken) == 100


def blocking(seconds: float) -> Callable[[int], Invocation]:
    """A client that lets no other greenlet run, such as one that waits in C."""

    def invoke(number: int) -> Invocation:
        started = time.perf_counter()
        time.sleep(seconds)
        return answer(started, time.perf_counter())

    return invoke


LOADS = [{"users": 2}, {"arrivals": ConstantArrivals(100)}]


@pytest.mark.parametrize("load", LOADS)
def test_a_loop_that_is_blocked_all_along_was_late_all_along(load: dict[str, Any]) -> None:
    step = Step("s", 0.6, settle_seconds=0.1, **load)
    records = run(step, blocking(0.02))
    assert records.loop_lag_p99 > 0.3
    assert StepResult.of(step, records, 0.0).client_bound
    # Beside processes that are well, too.
    well = run(step, sleeping(0.001))
    assert Measurement.sum([well] * 4 + [records]).loop_lag_p99 > 0.2


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("invoke", [sleeping(0.001), blocking(0.03), blocking(0.2)])
def test_every_tick_of_the_loop_is_a_sample(
    load: dict[str, Any], invoke: Callable[[int], Invocation]
) -> None:
    """Few ticks are left out of a loop that is blocked often, or it would look punctual."""
    records = run(Step("s", 0.8, settle_seconds=0.2, **load), invoke)
    assert 20 <= records.loop_lag.count <= 60  # 30 ticks of 20 ms; the last may be long


def test_no_sample_of_the_loop_is_no_result() -> None:
    step = Step("s", 1, users=1)
    well = StepResult.of(step, run(step, sleeping(0.01)), 0.0)
    unseen = replace(well, loop_lag=LatencyHistogram()).judged()
    assert any("was not measured" in reason for reason in unseen.client_bound)
    content = json.loads(json.dumps(unseen.to_dict(), allow_nan=False))
    assert content["generator"]["loop_lag_p99_ms"] is None
    assert StepResult.of_dict(content).judged().client_bound == unseen.client_bound
    again = StepResult.of_dict(json.loads(json.dumps(well.to_dict())))
    assert again.loop_lag_p99 == pytest.approx(well.loop_lag_p99, rel=0.01)


def test_messages_between_processes_lose_nothing() -> None:
    records = run(Step("s", 0.3, PoissonArrivals(200)), sleeping(0.002))
    other = Measurement.of_message(records.to_message())
    assert other == records
    both = Measurement.sum([records, other])
    assert both.sent == 2 * records.sent
    assert both.processes == 2
    assert both.cpu_share == records.cpu_share


def paced() -> list[float]:
    """How late a pacer acts on half a second of moments, sorted."""
    pacer, begin = Pacer(), time.perf_counter() + 0.01
    moments = [begin + offset for offset in PoissonArrivals(500).offsets(0.5)]
    acted: list[tuple[float, float]] = []
    pacer.act_at(iter(moments), lambda moment: acted.append((moment, time.perf_counter())))
    pacer.close()
    assert [moment for moment, _ in acted] == moments
    return sorted(now - moment for moment, now in acted)


@pytest.mark.realtime
def test_a_pacer_wakes_in_time_and_in_order() -> None:
    for _ in range(5):
        busyness = Busyness()
        lags = paced()
        assert lags[0] >= -1e-6
        # gevent's own timers are 0.5 ms late in the median.
        if lags[len(lags) // 4] < 0.0005:
            return
    assert busyness.disturbs


def test_without_timer_files_the_pacer_uses_gevents_timers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("low_latency_endpoint.load_test.engine.sending.sys.platform", "darwin")
    records = run(Step("s", 0.5, ConstantArrivals(100)), sleeping(0.001))
    assert records.sent == records.completed == 50


def test_without_timer_files_a_last_request_after_the_end_is_answered_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Late(Arrivals):
        kind = "late"

        def offsets(self, seconds: float, **_: object):  # type: ignore[no-untyped-def,override]
            yield 0.0
            time.sleep(2 * seconds)  # as a busy machine's scheduler does
            yield 0.9 * seconds

    monkeypatch.setattr("low_latency_endpoint.load_test.engine.sending.sys.platform", "darwin")
    records = run(Step("s", 0.05, Late()), sleeping(0.001))
    assert records.sent == records.completed == 2


def test_a_fault_of_the_arrivals_ends_the_step() -> None:
    class Broken(Arrivals):
        kind = "broken"

        def offsets(self, seconds: float, **_: object):  # type: ignore[no-untyped-def,override]
            yield 0.0
            raise ArithmeticError("a fault")

    with pytest.raises(ArithmeticError):
        run(Step("s", 1, Broken()), sleeping(0.001))


def test_some_thousand_callers_are_allowed() -> None:
    assert 100 < callers_allowed() <= 10_000


# --- through the network, against a server that tells its true times ------------------------------


def lognormal(count: int) -> list[float]:
    draw = random.Random(11)
    return [min(2.0, draw.lognormvariate(-0.5, 0.4)) for _ in range(count)]


#: Long enough that one percent is more than what the scheduler of a busy machine takes away.
DISTRIBUTIONS = {"constant": [0.5], "bimodal": [0.5] * 17 + [1.5] * 3, "lognormal": lognormal(1000)}


def measured(seconds: list[float], longer: float) -> tuple[StepResult, Pairs]:
    """A run, and its percentiles beside the server's true ones."""
    with precise_server(seconds) as server, server.generator() as generator:
        result = generator.run(Step("distribution", 3 * longer, PoissonArrivals(400)))
        true = server.times()
    assert result.completed == len(true)
    return result, pairs_of(true, result.latency)


@pytest.mark.realtime
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_percentiles_are_those_of_the_server(name: str) -> None:
    agree(lambda longer: measured(DISTRIBUTIONS[name], longer))
