"""Whole steps of queues whose limit is known exactly: how often they are said to hold at it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom

from low_latency_endpoint.load_test.engine.arrivals import PoissonArrivals
from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram
from low_latency_endpoint.load_test.engine.steps import Progress, Step
from low_latency_endpoint.load_test.search.early_verdict import EarlyVerdict, looks_of
from low_latency_endpoint.load_test.search.judging import LatencyGoal
from low_latency_endpoint.load_test.search.measured_steps import judged

from .fake_generator import answered


@dataclass(frozen=True)
class Queue:
    """Poisson arrivals at servers whose times are exponential, or constant for a single one."""

    servers: int
    service: float
    target: float  # of p99

    def late(self, rate: float) -> float:
        """The share of requests that take longer than the target, exactly."""
        load = rate * self.service
        if self.servers == 1:  # M/D/1 (Erlang 1909)
            waits = self.target - self.service
            terms = (
                ((at := rate * (k * self.service - waits)) ** k) * math.exp(-at) / math.factorial(k)
                for k in range(int(waits / self.service) + 1)
            )
            return 1 - (1 - load) * sum(terms)
        rates = [load**k / math.factorial(k) for k in range(self.servers + 1)]
        busy = rates.pop() / (1 - load / self.servers)
        waits = busy / (sum(rates) + busy)  # Erlang C
        leave, drain = 1 / self.service, self.servers / self.service - rate
        served, drained = math.exp(-leave * self.target), math.exp(-drain * self.target)
        both = (drain * served - leave * drained) / (drain - leave)
        return (1 - waits) * served + waits * both

    @property
    def limit(self) -> float:
        """The rate at which exactly one in a hundred is late."""
        full = self.servers / self.service
        return float(brentq(lambda rate: self.late(rate) - 0.01, 0.3 * full, 0.999 * full))

    def steps(self, rate: float, seconds: int, runs: int) -> Iterator[list[Progress]]:
        """Independent steps, each begun in the steady state (Kiefer and Wolfowitz 1955)."""
        rng, warm = np.random.default_rng(7), 500 * self.service
        count = int(rate * (seconds + warm) * 1.05) + 200
        gaps = rng.exponential(1 / rate, (count, runs))
        works = (
            rng.exponential(self.service, (count, runs))
            if self.servers > 1
            else np.full((count, runs), self.service)
        )
        left, latency = np.zeros((runs, self.servers)), np.empty((count, runs))
        for gap, work, found in zip(gaps, works, latency, strict=True):
            np.maximum(left - gap[:, None], 0, out=left)
            left.sort(axis=1)
            left[:, 0] += work
            found[:] = left[:, 0]
        begun = np.cumsum(gaps, axis=0) - warm
        for at, taken in zip(begun.T, latency.T, strict=True):
            yield list(self._seconds(at, taken, seconds))

    @staticmethod
    def _seconds(at: np.ndarray, taken: np.ndarray, seconds: int) -> Iterator[Progress]:
        taken, at = taken[at >= 0], at[at >= 0]
        for second in range(seconds):
            ends = taken[(second <= at + taken) & (at + taken < second + 1)]
            found = LatencyHistogram.of(ends.tolist())
            sent = int(((second <= at) & (at < second + 1)).sum())
            yield Progress(seconds=second + 1.0, sent=sent, completed=len(ends), latency=found)


FOUR, SLOW, ONE = Queue(4, 0.020, 0.150), Queue(4, 0.200, 1.500), Queue(1, 0.010, 0.060)


def test_limits_are_those_of_the_books() -> None:
    assert FOUR.limit == pytest.approx(164.46, abs=0.01)
    assert SLOW.limit == pytest.approx(16.446, abs=0.001)
    # M/D/1 at a load of 0.8: of those who wait, 1 % wait for longer than 10.3 times the service.
    assert Queue(1, 1.0, 11.34).late(0.8) == pytest.approx(0.01, abs=0.0005)


def outcomes(queue: Queue, of_limit: float, seconds: int, runs: int) -> dict[str, Counter[str]]:
    """What is said of fixed steps, and of those that confirm a limit and may end at half."""
    rate = of_limit * queue.limit
    # No request fails: what is judged is latency. Errors are those of test_search_coverage.py.
    goal = LatencyGoal({"p99": queue.target}, allowed_errors=0)
    step = Step("s", seconds, PoissonArrivals(rate))
    looks = looks_of(goal, seconds, seconds, rate, hold_error=0.05, holds_from=seconds / 2)
    found = {"fixed": Counter[str](), "confirming": Counter[str]()}
    for each in queue.steps(rate, seconds, runs):
        early = EarlyVerdict(goal, step, looks)
        ended = next((at for at, second in enumerate(each, 1) if early.add(second)), seconds)
        for kind, until, of in (("fixed", seconds, None), ("confirming", ended, early)):
            latency = LatencyHistogram.sum(second.latency for second in each[:until])
            judgement = judged(goal, answered(step, latency), each[:until], of)
            found[kind][judgement.outcome] += 1
    return found


NIGHTLY = pytest.mark.nightly


@pytest.mark.parametrize(
    "of_limit", [1.0, pytest.param(1.03, marks=NIGHTLY), pytest.param(1.05, marks=NIGHTLY)]
)
@pytest.mark.parametrize(
    ("queue", "seconds", "runs"),
    [
        (FOUR, 60, 100),
        pytest.param(FOUR, 300, 30, marks=NIGHTLY),
        (SLOW, 60, 100),
        (SLOW, 300, 60),
        (ONE, 60, 100),
    ],
)
def test_a_step_at_the_limit_or_above_holds_by_chance_only(
    queue: Queue, seconds: int, runs: int, of_limit: float
) -> None:
    """5 % at most; requests taken for independent said so of 57 % of the minutes at the limit."""
    for found in outcomes(queue, of_limit, seconds, runs).values():
        assert found["held"] <= binom.ppf(0.999, runs, 0.05)
        if of_limit == 1:  # a third was broken with 95 % confidence
            assert found["broken"] <= binom.ppf(0.999, runs, 0.1)


@pytest.mark.parametrize(
    ("queue", "of_limit", "seconds", "outcome"),
    [
        (FOUR, 0.8, 60, "held"),
        pytest.param(FOUR, 0.9, 300, "held", marks=NIGHTLY),
        (FOUR, 1.15, 60, "broken"),
        (SLOW, 0.6, 300, "held"),
        (SLOW, 1.2, 300, "broken"),
        (ONE, 0.7, 60, "held"),
    ],
)
def test_a_step_well_beside_the_limit_is_told_for_certain(
    queue: Queue, of_limit: float, seconds: int, outcome: str
) -> None:
    assert outcomes(queue, of_limit, seconds, 20)["fixed"][outcome] >= 16
