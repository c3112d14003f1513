"""Whole searches for a limit, on servers whose limit is known: are the stated confidences kept?

``python -m tests.load_test.test_search_coverage 60`` prints the table of so many searches a server.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from statistics import fmean

import pytest
from scipy.stats import binom

from low_latency_endpoint.load_test.search.measured_steps import MeasuredStep
from tests.depth import BY_NIGHT

from .known_servers import GOAL, SERVERS, KnownServer, search, shares_beyond
from .test_step_coverage import FOUR

SEARCHES = 20 if BY_NIGHT else 2  # of each server


@dataclass(frozen=True)
class Search:
    """What a search said, and what of it is true."""

    server: KnownServer
    rate: float
    confidence: float | None
    assured_rate: float | None
    seconds: float  # in which it sent
    true_in_its_minutes: bool  # of the assured rate; of a server that drifts

    @property
    def true(self) -> bool:
        """Whether the server holds the rate that the search answers for."""
        assert self.assured_rate is not None
        return self.assured_rate <= self.server.limit or self.true_in_its_minutes


@cache
def searched(name: str, seed: int) -> Search:
    """Run a search."""
    server = SERVERS[name]
    done, seconds = search(server, seed)
    limit = done.limit
    assert limit is not None
    assert limit.usable, limit.problem
    assert limit.rate is not None
    assured = limit.assured
    true = False
    if assured is not None and server.swing:
        step = [step for step in done.loads if step.offered == assured.rate][-1]
        true = holds_in_minutes_of(server, step)
    rate = None if assured is None else assured.rate
    return Search(server, limit.rate, limit.confidence, rate, seconds, true)


def holds_in_minutes_of(server: KnownServer, step: MeasuredStep) -> bool:
    """Whether p99 keeps its target at the server's pace of these minutes, over 40 repetitions."""
    rate = step.offered
    assert rate is not None
    result = step.result
    requests = round(rate * result.seconds)
    shares = [
        shares_beyond(server, rate, requests, seed=seed, began=result.started_at)[0]
        for seed in range(40)
    ]
    return fmean(shares) <= 0.01


def most_wrong(claims: int) -> int:
    """What chance makes of 5 % of so many: more in one test of a thousand."""
    return int(binom.ppf(0.999, claims, 0.05))


@pytest.fixture(scope="module")
def searches() -> list[Search]:
    """Every server is searched as often; by night 140 searches."""
    return [searched(name, seed) for name in SERVERS for seed in range(1, SEARCHES + 1)]


def test_stated_confidences_hold(searches: list[Search]) -> None:
    claims = [one for one in searches if one.confidence is not None]
    assert claims
    wrong = [one for one in claims if not one.true]
    assert len(wrong) <= most_wrong(len(claims)), wrong


def test_rates_that_a_plan_takes_hold(searches: list[Search]) -> None:
    """With a confidence of the limit or without: at the limit, or at the lower rate in its place."""
    claims = [one for one in searches if one.assured_rate is not None]
    assert len(claims) > 0.8 * len(searches), "nearly every search finds one"
    wrong = [one for one in claims if not one.true]
    assert len(wrong) <= most_wrong(len(claims)), wrong
    assert fmean(one.assured_rate / one.server.limit for one in claims) > 0.8


def test_searches_take_minutes(searches: list[Search]) -> None:
    """5.5 to 8.5 on average by server, 6.8 of all: no step more than a search needs."""
    assert fmean(one.seconds for one in searches) < 9 * 60


def test_limits_of_the_books() -> None:
    """The finite buffer by Erlang's formula of M/M/c/K: four servers, and sixteen that wait."""
    assert SERVERS["M/M/4"].limit == pytest.approx(FOUR.limit, abs=0.01)
    load = SERVERS["finite buffer"].limit * 0.020
    chances = [1.0]
    for under_way in range(1, 21):
        chances.append(chances[-1] * load / min(under_way, 4))
    assert chances[-1] / sum(chances) == pytest.approx(GOAL.allowed_errors, rel=0.001)


@pytest.mark.nightly
@pytest.mark.parametrize("name", SERVERS)
def test_limits_are_those_of_long_runs(name: str) -> None:
    """One in a hundred is late at the limit, or one in a thousand fails."""
    server = SERVERS[name]
    late, failed = shares_beyond(server, server.limit, 3_000_000, seed=5)
    used = max(late / 0.01, failed / GOAL.allowed_errors)
    assert used == pytest.approx(1, abs=0.12)


def print_table(runs: int) -> None:
    """A row of figures for each server."""
    print(
        "| server | rate <= limit | with confidence | of these right | plan's rate | of these right"
    )
    print("| rate / limit | plan's rate / limit | minutes |")
    for name, server in SERVERS.items():
        rows = [searched(name, seed) for seed in range(1, runs + 1)]
        sure = [row for row in rows if row.confidence is not None]
        assured = [row for row in rows if row.assured_rate is not None]
        cells = (
            name,
            f"{sum(row.rate <= server.limit for row in rows)}/{runs}",
            len(sure),
            sum(row.true for row in sure),
            len(assured),
            sum(row.true for row in assured),
            f"{fmean(row.rate for row in rows) / server.limit:.3f}",
            f"{fmean(row.assured_rate or 0.0 for row in assured) / server.limit:.3f}",
            f"{fmean(row.seconds for row in rows) / 60:.1f}",
        )
        print("|", " | ".join(map(str, cells)), "|", flush=True)


if __name__ == "__main__":
    print_table(int(sys.argv[1]))
