"""How numbers, fleets and deployments are written, and small values by hand."""

from __future__ import annotations

import math
import re
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.options.alarms import SlowLimit
from low_latency_endpoint.simulate import (
    Constant,
    Exponential,
    OpenLoop,
    Rollout,
    Scenario,
    simulate,
)
from low_latency_endpoint.simulate.estimates import Estimate, student_quantile
from low_latency_endpoint.simulate.run_length import Memory
from low_latency_endpoint.simulate.scenario_sentences import rollout_words
from low_latency_endpoint.simulate.service_laws import ServiceLaw
from low_latency_endpoint.simulate.wording import (
    _rounded_up,
    burn_rate_sentences,
    milliseconds,
    minutes,
    verdict,
)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (milliseconds(Estimate(0.19732, 0.0012)), "197 ± 1.2 ms"),
        (milliseconds(Estimate(612.5, 12)), "612 ± 12 s"),
        (milliseconds(Estimate(0.19732, math.inf)), "too short to tell"),
        (milliseconds(Estimate(0.0451, 1e-17)), "45.1 ms"),  # rounding
        (milliseconds(Estimate(0.0000014, 0.0000011)), "0.0014 ± 0.0011 ms"),
        (milliseconds(Estimate(0.0000014, 0.0000021)), "at most 0.0035 ms"),
        (minutes(Estimate(120.0, 180.0)), "at most 5"),
        (minutes(Estimate(120.0, 180.0), 240.0), "at most 4"),
        (minutes(Estimate(1230.0, 45.0)), "20.5 ± 0.75"),
        (minutes(Estimate(1200.0, 0.0)), "20"),
        (verdict(Estimate(0.1, 0.01), 0.2), "within"),
        (verdict(Estimate(0.1, 0.2), 0.2), "too near to tell"),
        (milliseconds(Estimate(0.033, 4.1e-17)), "33 ms"),  # an interval that is only rounding
        (str(Estimate(0.033, 4.1e-17)), "0.033"),
        (minutes(Estimate(1200.0, 1e-12)), "20"),
        (_rounded_up(4_014_217), 4_100_000),
        (_rounded_up(200_000), 200_000),
        (
            rollout_words(Rollout(at=0.0, kind="rolling", step_share=0.1, wait_seconds=1200.0)),
            "rolling, in batches of 10 %, 1,200 s apart",
        ),
        (Memory(queues=1, spell=100.0).requests(99.0, replications=8), 400_000),  # M/M/1 at 90 %
        (round(student_quantile(0.99, 9), 4), 3.2498),
        (round(student_quantile(0.95, 1), 3), 12.706),
    ],
    ids=str,
)
def test_values(found: object, expected: object) -> None:
    assert found == expected


NO_SERVICE = Constant(1e-6)  # so that all of a time is waiting


def _simulated(
    times: list[float], target: float | None, half_width: float, service: ServiceLaw = NO_SERVICE
) -> Any:
    """A result of calls that took so long, in ascending order; each interval holds the truth."""
    late = sum(time > (target or 0) for time in times) / len(times)
    return SimpleNamespace(
        at_rank=lambda at: Estimate(times[math.ceil(len(times) * at / 100) - 1], half_width),
        slow_share=Estimate(late, 0.0),
        scenario=SimpleNamespace(latency_target=target, service=service),
    )


@pytest.mark.parametrize("seed", range(200))
def test_a_burn_rate_is_never_more_than_the_calls_spend(seed: int) -> None:
    """And of a target at the objective's own threshold it is exactly what they spend."""
    random = Random(seed)
    scale = random.choice([0.01, 0.05, 0.2])
    times = sorted(random.expovariate(1 / scale) for _ in range(20_000))
    threshold = random.choice([0.05, 0.12, 0.4])
    target = random.choice([None, 0.05, 0.12, 0.4])
    limit = SlowLimit(1000 * threshold, random.choice([0.95, 0.99, 0.999, 0.9999]))
    half_width = random.choice([0.0, 0.002, math.inf])
    said = burn_rate_sentences(limit, _simulated(times, target, half_width))
    late = sum(time > threshold for time in times) / len(times)
    burn_rate = late / (1 - limit.objective)
    if target == threshold:
        assert bool(said) == (burn_rate > 1 + 1e-9)
    for sentence in said:
        if sentence.startswith("Up to"):
            most = float(sentence.split(" ")[2].replace(",", ""))
            assert most >= 100 * late * 0.95
            continue
        match = re.search(r"least ([\d.,]+) % .*slow_requests ([\d.,]+) times", sentence)
        assert match, sentence
        share, rate = (float(number.replace(",", "")) for number in match.groups())
        assert share <= 100 * late * 1.05  # written with two digits
        assert rate <= burn_rate * 1.05
        assert "stays on" not in sentence or burn_rate > 6
        if target == threshold:
            assert (share, rate) == pytest.approx((100 * late, burn_rate), rel=0.05)


def test_what_is_late_without_any_wait_is_surely_late() -> None:
    """Of an exponential law of 50 ms e ** -4.6 are above 230 ms: 1 %, ten times 0.1 %."""
    limit = SlowLimit(50 * 4.60517, 0.999)
    times = [0.1] * 1000
    (said,) = burn_rate_sentences(limit, _simulated(times, 0.1, math.inf, Exponential(0.05)))
    assert said.startswith("At least 1 % of the calls take longer than 230")
    assert "10 times too fast: its alarm stays on" in said


def test_a_share_of_late_calls_is_told_between_the_percentiles() -> None:
    """Of 1,000 calls 26 are late: between p95 and p99, whose bound alone would be 1 %."""
    times = [0.05] * 974 + [0.2] * 26
    (said,) = burn_rate_sentences(SlowLimit(100.0, 0.998), _simulated(times, None, 0.0))
    assert said.startswith("At least 2 % of the calls take longer than 100 ms")
    assert "10 times too fast: its alarm stays on" in said


def test_without_an_objective_no_burn_rate_is_told() -> None:
    assert burn_rate_sentences(None, _simulated([1.0] * 1000, 0.1, 0.0)) == []


TIMES = st.floats(1e-4, 100.0)


@given(TIMES, st.floats(0.0, 0.5), st.floats(-1.0, 1.0))
def test_a_target_in_the_interval_is_neither_missed_nor_held(
    time: float, width: float, place: float
) -> None:
    """Wherever in it: the interval is what the runs cannot tell apart."""
    half = width * time
    target = time + place * half
    assert verdict(Estimate(time, half), target) in ("too near to tell", "at the limit")


@given(TIMES, st.floats(0.0, 1e-10))
def test_rounding_is_not_shown_as_an_interval(time: float, rounding: float) -> None:
    value = Estimate(time, rounding * time)
    for text in (milliseconds(value), minutes(value), str(value)):
        assert "±" not in text


@pytest.mark.parametrize("time", [0.001, 0.0125, 0.033, 0.0330001, 0.1, 1 / 3, 7.0])
def test_a_constant_time_that_is_the_target_is_at_the_limit_and_not_late(time: float) -> None:
    """Without a queue: 50 workers for two requests at a time on average."""
    scenario = Scenario(
        service=Constant(time),
        traffic=OpenLoop(2 / time),
        instances=1,
        concurrency=50,
        latency_target=time,
    )
    found = simulate(scenario, requests=20_000, replications=3)
    assert found.slow_share.mean == 0
    for percentile in (50.0, 95.0, 99.0):
        assert verdict(found.percentile(percentile), time) == "at the limit"
