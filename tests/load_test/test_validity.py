"""Was the generator the limit, or nearly? Each rule on both sides of its bound."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest

from low_latency_endpoint.load_test.engine.arrivals import ConstantArrivals
from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram
from low_latency_endpoint.load_test.engine.steps import GeneratorLoad, Step, StepResult
from low_latency_endpoint.load_test.engine.token_results import TokenResult
from low_latency_endpoint.load_test.engine.validity import client_bound, warnings

#: So many that ten lie beyond p99.99: fewer would be a warning of their own.
COUNT = 100_000
LATENCY = LatencyHistogram.of([0.100] * COUNT)
PUNCTUAL = LatencyHistogram.of([1e-6] * COUNT)


def result(**changes: Any) -> StepResult:
    """Requests at the right moment, answered after 100 ms each."""
    step = Step("s", 100, ConstantArrivals(1_000))
    return replace(
        StepResult(step, 0, 100, COUNT, COUNT, COUNT, COUNT, {}, LATENCY, LATENCY, None, PUNCTUAL),
        **changes,
    )


def lags(late: int, seconds: float) -> LatencyHistogram:
    """So many requests start late."""
    return LatencyHistogram.of([1e-6] * (COUNT - late) + [seconds] * late)


def test_a_generator_that_keeps_up_is_no_limit() -> None:
    assert client_bound(result()) == ()
    assert warnings(result()) == ()


@pytest.mark.parametrize(("share", "bound"), [(0.89, 0), (0.90, 1), (0.99, 1)])
def test_a_processor_without_reserve(share: float, bound: int) -> None:
    reasons = client_bound(result(generator=GeneratorLoad(cpu_share=share)))
    assert len(reasons) == bound
    assert all(f"used {share:.0%} of a core" in each for each in reasons)


@pytest.mark.parametrize(("unsent", "bound"), [(100, 0), (101, 1), (9000, 1)])
def test_one_request_in_a_thousand_may_stay_unsent(unsent: int, bound: int) -> None:
    reasons = client_bound(result(sent=COUNT - unsent))
    assert len(reasons) == bound
    assert all(
        each == f"{unsent} of 100000 requests that were due were never sent" for each in reasons
    )


@pytest.mark.parametrize(("postponed", "bound"), [(100, 0), (101, 1)])
def test_one_request_in_a_thousand_may_wait_for_a_connection(postponed: int, bound: int) -> None:
    reasons = client_bound(result(generator=GeneratorLoad(postponed=postponed)))
    assert len(reasons) == bound
    assert all(f"{postponed} of 100000 requests waited" in each for each in reasons)


@pytest.mark.parametrize(("lag", "bound"), [(0.0099, 0), (0.0101, 1)])
def test_half_of_the_requests_a_tenth_of_the_latency_late(lag: float, bound: int) -> None:
    reasons = client_bound(result(send_lag=LatencyHistogram.of([lag] * COUNT)))
    assert len(reasons) == bound
    assert all(
        "half of the requests" in each and "10% of the median latency" in each for each in reasons
    )


@pytest.mark.parametrize(
    ("late", "lag", "bound"),
    [
        (2_000, 0.026, 1),  # two in a hundred, by more than a quarter of the p99
        (2_000, 0.024, 0),  # by less
        (500, 0.090, 0),  # one in two hundred is not the p99
    ],
)
def test_one_request_in_a_hundred_a_quarter_of_the_p99_late(
    late: int, lag: float, bound: int
) -> None:
    reasons = client_bound(result(send_lag=lags(late, lag)))
    assert len(reasons) == bound
    assert all(
        each == "one request in a hundred started 26 ms late or more, 26% of the p99 of 100 ms"
        for each in reasons
    )


def test_the_tail_is_measured_by_the_p99_and_not_by_the_median() -> None:
    """26 ms are much of 50 ms and little of the slow ones' 500 ms."""
    slow = LatencyHistogram.of([0.050] * 90_000 + [0.500] * 10_000)
    assert client_bound(result(latency=slow, send_lag=lags(2_000, 0.026))) == ()


@pytest.mark.parametrize(("lag", "bound"), [(0.024, 0), (0.026, 1)])
def test_a_closed_loop_is_judged_by_its_event_loop(lag: float, bound: int) -> None:
    waiting = result(send_lag=LatencyHistogram(), generator=GeneratorLoad(loop_lag_p99=lag))
    reasons = client_bound(waiting)
    assert len(reasons) == bound
    assert all(
        "the event loop woke 26 ms late" in each and "26% of the p99" in each for each in reasons
    )
    assert client_bound(result(generator=GeneratorLoad(loop_lag_p99=lag))) == (), "an open loop"


def test_a_closed_loop_too_is_measured_by_the_p99() -> None:
    """One slow answer in a thousand hides no late event loop."""
    latency = LatencyHistogram.of([0.100] * 99_900 + [10.0] * 100)
    assert client_bound(
        result(
            latency=latency,
            send_lag=LatencyHistogram(),
            generator=GeneratorLoad(loop_lag_p99=0.026),
        )
    )


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the kernel tells no arrivals")
@pytest.mark.parametrize(("lag", "bound"), [(0.019, 0), (0.021, 1)])
def test_an_event_loop_may_be_as_late_as_the_next_token_is(lag: float, bound: int) -> None:
    """Two of one stream would wait together then, of which the kernel tells the last one's moment."""
    pairs = LatencyHistogram.of([0.0, 0.040] * 50)  # two in a segment
    tokens = TokenResult(inter_token=pairs)
    reasons = client_bound(result(tokens=tokens, generator=GeneratorLoad(loop_lag_p99=lag)))
    assert len(reasons) == bound
    assert all("woke 21 ms late" in each and "the 20 ms between" in each for each in reasons)


def test_without_an_answer_there_is_no_latency_to_compare_with() -> None:
    nothing = result(latency=LatencyHistogram(), completed=0)
    assert client_bound(nothing) == ()
    assert client_bound(replace(nothing, send_lag=LatencyHistogram())) == ()
    assert warnings(replace(nothing, refused=LATENCY)) == ()


@pytest.mark.parametrize(("lag", "flagged"), [(0.00099, 0), (0.0011, 1)])
def test_a_lag_of_a_hundredth_of_the_median_is_flagged(lag: float, flagged: int) -> None:
    found = warnings(result(send_lag=lags(2_000, lag)))
    assert len(found) == flagged
    assert all(
        "flagged above 1%" in each and "1.1% of the median latency" in each for each in found
    )
    assert warnings(result(send_lag=LatencyHistogram())) == ()


def test_who_waited_in_vain_makes_high_percentiles_lower_bounds() -> None:
    (one,) = warnings(result(unanswered=3))
    assert one.startswith("3 of 100000 requests were not answered in time")


def test_slow_refusals_are_told() -> None:
    (one,) = warnings(result(refused=LatencyHistogram.of([0.010, 0.200])))
    assert "up to 200 ms, more than the p99 of 100 ms" in one
    assert warnings(result(refused=LatencyHistogram.of([0.010, 0.050]))) == ()


def test_percentiles_of_fewer_than_ten_samples_beyond_are_named() -> None:
    (one,) = warnings(result(latency=LatencyHistogram.of([0.1] * 5_000)))
    assert one == "p99.9, p99.99 rest on fewer than ten samples beyond: 5000 samples in all"
    (one,) = warnings(result(latency=LatencyHistogram.of([0.1] * 50_000)))
    assert one.startswith("p99.99 rests on fewer")
