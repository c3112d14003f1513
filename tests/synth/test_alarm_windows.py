"""Whom the alarms page, by simulated minutes: nobody while all is well, somebody in an outage.

The alarms are read from the template and evaluated here as CloudWatch documents it: every minute, on
windows that slide. Nothing of the plan's arithmetic is used.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import accumulate
from statistics import NormalDist
from typing import Any

import pytest
from aws_cdk import Stack

from low_latency_endpoint import (
    AlarmOptions,
    Endpoint,
    LatencyAlarms,
    SlowRequests,
    VariantAttributes,
)
from tests.depth import examples

from .conftest import make_stack, make_template

MINUTES = 10_000
NORMAL = NormalDist()
THRESHOLD_MS = 200
SEED = 59
RATES = 24  # of each test, drawn between the smallest and the largest
SMALLEST, LARGEST = 0.005, 1000.0
LONGEST_SECONDS = 6 * 3600


@dataclass(frozen=True)
class Case:
    """A variant's rate, the objective of its requests, and its alarms from the template."""

    rate: float  # requests per second
    objective: float | None
    alarms: dict[str, dict[str, Any]]  # by "<metric>/<statistic>"


def drawn_rates() -> list[float]:
    """Rates spread evenly over the orders of magnitude, those of the report among them."""
    rng = random.Random(SEED)
    low, high = math.log(SMALLEST), math.log(LARGEST)
    drawn = [round(math.exp(rng.uniform(low, high)), 5) for _ in range(examples(RATES))]
    return [SMALLEST, 0.02, 0.34, 0.5, 1, 1.6, 5, 100, LARGEST, *drawn]


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """An imported endpoint for each rate, all in one stack."""
    stack, rng = make_stack(), random.Random(SEED)
    made = {}
    for number, rate in enumerate(drawn_rates()):
        objective = rng.choice([None, 0.99, 0.999, 0.9999])
        made[number] = (rate, objective, alarms_of(stack, number, rate, objective))
    template = make_template(stack)
    return [
        Case(rate, objective, named(template.made_of(alarms.alarms)))
        for rate, objective, alarms in made.values()
    ]


def alarms_of(stack: Stack, number: int, rate: float, objective: float | None) -> LatencyAlarms:
    threshold = timedelta(milliseconds=THRESHOLD_MS)
    slow = SlowRequests(threshold=threshold, objective=objective) if objective else None
    return LatencyAlarms(
        stack,
        f"Alarms{number}",
        endpoint=Endpoint.from_endpoint_attributes(
            stack,
            f"Endpoint{number}",
            endpoint_name=f"e{number}",
            variants=[VariantAttributes(name="primary")],
        ),
        options=replace(
            AlarmOptions.none(),
            model_latency=dict.fromkeys(("p50", "p99", "p99.9"), threshold),
            error_rate="planned",
            client_error_rate=0.05,
            slow_requests=slow,
            expect_traffic=True,
        ),
        peak_tps={"primary": rate},
    )


def named(alarms: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {key.removeprefix("primary/"): alarm for key, alarm in alarms.items()}


# ------------------------------------------------------------------ CloudWatch, minute by minute


def poisson(rng: random.Random, mean: float) -> int:
    """A count with this mean: exactly, and by the normal law where that is as good."""
    if mean > 60:
        return max(0, round(rng.gauss(mean, math.sqrt(mean))))
    limit, count, product = math.exp(-mean), 0, rng.random()
    while product > limit:
        count += 1
        product *= rng.random()
    return count


@dataclass(frozen=True)
class Minutes:
    """Requests of each minute, and how many of them are bad: failed, or slower than a threshold."""

    requests: Sequence[int]
    bad: Sequence[int]


def minutes_of(
    rng: random.Random, rate: float, share: Callable[[int], float], count: int
) -> Minutes:
    """Poisson arrivals, of which a share is bad in each minute."""
    bad = [poisson(rng, 60 * rate * share(minute)) for minute in range(count)]
    good = [poisson(rng, 60 * rate * (1 - share(minute))) for minute in range(count)]
    return Minutes([g + b for g, b in zip(good, bad, strict=True)], bad)


def period_seconds(alarm: dict[str, Any]) -> int:
    if "Period" in alarm:
        return int(alarm["Period"])
    periods = {m["MetricStat"]["Period"] for m in alarm["Metrics"] if "MetricStat" in m}
    (seconds,) = periods
    return int(seconds)


def states(alarm: dict[str, Any], minutes: Minutes) -> Iterator[bool]:
    """Whether the alarm is on after each minute from the first full window on."""
    assert alarm["TreatMissingData"] == "notBreaching"
    assert alarm["ComparisonOperator"] == "GreaterThanThreshold"
    length, count = period_seconds(alarm) // 60, alarm["EvaluationPeriods"]
    requests = [0, *accumulate(minutes.requests)]
    bad = [0, *accumulate(minutes.bad)]
    breaching = breaches(alarm)
    over = [
        end >= length
        and requests[end] > requests[end - length]
        and breaching(requests[end] - requests[end - length], bad[end] - bad[end - length])
        for end in range(len(requests))
    ]
    for end in range(length * count, len(over)):
        yield sum(over[end - length * n] for n in range(count)) >= alarm["DatapointsToAlarm"]


def breaches(alarm: dict[str, Any]) -> Callable[[int, int], bool]:
    """Whether a period of so many requests and bad ones is above the threshold."""
    if "ExtendedStatistic" in alarm:  # a percentile is above it if more than the rest are
        beyond = 1 - float(alarm["ExtendedStatistic"][1:]) / 100
        return lambda requests, bad: bad > beyond * requests
    (formula,) = (m["Expression"] for m in alarm["Metrics"] if "Expression" in m)
    compiled = compile(formula, "alarm", "eval")
    chosen = {"IF": lambda condition, one, other: one if condition else other}
    return lambda requests, bad: (
        eval(compiled, {}, {**chosen, "errors": bad, "invocations": requests}) > alarm["Threshold"]
    )


def episodes(alarm: dict[str, Any], minutes: Minutes) -> int:
    """How often it goes on."""
    on = list(states(alarm, minutes))
    return sum(now and not before for before, now in zip([False, *on], on, strict=False))


# ------------------------------------------------------------------------------------- errors


def test_the_objective_reaches_the_alarm_on_errors(cases):
    for case in cases:
        threshold = case.alarms["Invocation5XXErrors/Rate"]["Threshold"]
        budget = 1 - (case.objective or 0)
        # 14.4 times the budget of 99 and 99.9 % is more than the usual 1 %.
        assert threshold == pytest.approx(min(0.01, 14.4 * budget))
    assert {case.objective for case in cases} == {None, 0.99, 0.999, 0.9999}


@pytest.mark.parametrize("name", ["Invocation5XXErrors/Rate", "Invocation4XXErrors/Rate"])
def test_a_tenth_of_the_threshold_pages_once_in_ten_thousand_minutes(cases, name):
    """At every rate, on average: 0.3 at the worst one, where three failures are just the share."""
    rng = random.Random(SEED)
    paged = {}
    for case in cases:
        alarm = case.alarms[name]
        healthy = minutes_of(rng, case.rate, lambda _, a=alarm: a["Threshold"] / 10, MINUTES)
        paged[case.rate] = episodes(alarm, healthy)
    assert max(paged.values()) <= 2, paged  # of the worst rates 3 in 100 have two
    assert sum(paged.values()) <= 0.3 * len(paged), paged


def test_single_failures_page_nobody(cases):
    """One request that fails each hour, at every rate: callers may try it five times."""
    for case in cases:
        requests = [
            poisson(random.Random(SEED + minute), 60 * case.rate) for minute in range(MINUTES)
        ]
        bad = [0] * MINUTES
        for minute in range(0, MINUTES, 360):
            bad[minute] = 5
            requests[minute] += 5
        alarm = case.alarms["Invocation5XXErrors/Rate"]
        assert not episodes(alarm, Minutes(requests, bad)), case.rate


def test_a_total_outage_pages_within_three_periods_at_every_rate(cases):
    rng = random.Random(SEED)
    for case in cases:
        alarm = case.alarms["Invocation5XXErrors/Rate"]
        periods = 3 * period_seconds(alarm) // 60
        for _ in range(5):
            start = 2 * periods
            hit = minutes_of(rng, case.rate, lambda m, s=start: float(m >= s), start + periods)
            *_, on = states(alarm, hit)
            assert on, case.rate


def test_the_stated_times_of_a_total_outage():
    """Those of docs/reference/monitoring.md: three periods of ten requests, in whole minutes."""
    stack = make_stack()
    rates = {0.02: 30, 0.05: 15, 0.1: 6, 0.17: 3, 1: 3, 100: 3}
    made = {rate: alarms_of(stack, n, rate, None) for n, rate in enumerate(rates)}
    template = make_template(stack)
    for rate, alarms in made.items():
        alarm = named(template.made_of(alarms.alarms))["Invocation5XXErrors/Rate"]
        assert 3 * period_seconds(alarm) / 60 == rates[rate]


# ------------------------------------------------------------------------------------ latency


def slow_share(percentile: float, sigma: float, at: float) -> float:
    """The share above a threshold of a log-normal whose percentile is so much of the threshold."""
    distance = NORMAL.inv_cdf(percentile / 100) + math.log(1 / at) / sigma
    return 1 - NORMAL.cdf(distance)


@pytest.mark.parametrize("percentile", [99.0, 99.9])
@pytest.mark.parametrize(
    ("at", "sigma", "most"), [(0.5, 0.6, 0), (0.5, 1.0, 1), (0.8, 0.6, 2), (0.8, 1.0, 15)]
)
def test_a_percentile_below_its_threshold_stays_silent(cases, percentile, at, sigma, most):
    """Episodes in 10,000 minutes; periods of a minute had 53 and 243 at one request a second.

    The plan warns of lower rates: fewer than ten requests in the longest period are beyond.
    """
    rng = random.Random(SEED)
    share = slow_share(percentile, sigma, at)
    paged = {}
    for case in cases:
        if case.rate * LONGEST_SECONDS * (1 - percentile / 100) < 10:
            continue
        alarm = case.alarms[f"ModelLatency/p{percentile:g}"]
        healthy = minutes_of(rng, case.rate, lambda _: share, MINUTES)
        paged[case.rate] = episodes(alarm, healthy)
    assert max(paged.values()) <= most, paged


def test_when_all_requests_are_slow_somebody_is_paged_within_minutes(cases):
    """A window slides: 1 % of its requests are enough, however long it is."""
    rng = random.Random(SEED)
    for case in cases:
        alarm = case.alarms["ModelLatency/p99"]
        length = period_seconds(alarm) // 60 * alarm["EvaluationPeriods"]
        # Two minutes of three; or 1 % of the window, and as much again for Poisson's sake. Few
        # requests have to come at all: five of them.
        lasting = max(3, math.ceil(0.02 * length), math.ceil(12 / (60 * case.rate)))
        start = 2 * length
        hit = minutes_of(rng, case.rate, lambda m, s=start: float(m >= s), start + lasting)
        *_, on = states(alarm, hit)
        assert on, (case.rate, lasting)


# ------------------------------------------------------------------------------- all of them


def test_cloudwatch_takes_every_window(cases):
    """Periods times their number: a day, and a week from an hour's period on."""
    for case in cases:
        for name, alarm in case.alarms.items():
            seconds = period_seconds(alarm)
            most = 86_400 if seconds < 3600 else 604_800
            assert seconds % 60 == 0, name
            assert seconds * alarm["EvaluationPeriods"] <= most, (name, case.rate)


def test_silence_is_told_from_chance(cases):
    """Poisson arrivals leave the periods empty with a probability of e^-20 at most."""
    for case in cases:
        alarm = case.alarms["Invocations/Silence"]
        assert case.rate * period_seconds(alarm) * alarm["EvaluationPeriods"] >= 20, case.rate


def test_a_stated_period_wins(stack_of_one):
    alarms = stack_of_one(period=timedelta(minutes=5))
    assert {period_seconds(alarm) for alarm in alarms.values()} == {300}
    assert {alarm["EvaluationPeriods"] for alarm in alarms.values()} == {3}


def test_stated_datapoints_win(stack_of_one):
    alarms = stack_of_one(evaluation_periods=4, datapoints_to_alarm=4)
    # Ten requests beyond p99 of one a second take 1,000 s; 20 minutes are the next period.
    assert period_seconds(alarms["ModelLatency/p99"]) == 1200
    assert {alarm["EvaluationPeriods"] for alarm in alarms.values()} == {4}


@pytest.fixture
def stack_of_one() -> Callable[..., dict[str, dict[str, Any]]]:
    """Alarms on p99 and errors at one request a second, with these options."""

    def made(**options: Any) -> dict[str, dict[str, Any]]:
        stack = make_stack()
        alarms = LatencyAlarms(
            stack,
            "Alarms",
            endpoint=Endpoint.from_endpoint_attributes(
                stack, "E", endpoint_name="e", variants=[VariantAttributes(name="primary")]
            ),
            options=replace(
                AlarmOptions.none(),
                model_latency={"p99": timedelta(milliseconds=THRESHOLD_MS)},
                error_rate=0.01,
                **options,
            ),
            peak_tps={"primary": 1},
        )
        return named(make_template(stack).made_of(alarms.alarms))

    return made
