"""Servers whose limit is known, simulated in virtual time: what a search of the command would find.

``SERVERS`` has one row for each server. :func:`search` runs the command's own search on it.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from low_latency_endpoint.load_test.engine.steps import Step
from low_latency_endpoint.load_test.search.judging import LatencyGoal
from low_latency_endpoint.load_test.search.load_testing import run
from low_latency_endpoint.load_test.search.result_file import LoadTestRun
from low_latency_endpoint.load_test.search.run_plans import SearchPlan, limit_plan

from .fake_generator import QUEUE_FULL, FakeGenerator

GOAL = LatencyGoal({"p99": 0.150})
STEP_SECONDS = 60.0
Law = Callable[[random.Random], float]


def exponential(rng: random.Random) -> float:
    """A service time of 20 ms on average."""
    return rng.expovariate(50)


def log_normal(rng: random.Random) -> float:
    """20 ms on average, with a coefficient of variation of 1."""
    spread = math.log(2)
    return rng.lognormvariate(math.log(0.020) - spread / 2, math.sqrt(spread))


def bimodal(rng: random.Random) -> float:
    """20 ms on average: four in five requests take 5 ms, the fifth takes 80 ms."""
    return 0.080 if rng.random() < 0.2 else 0.005


@dataclass(frozen=True)
class KnownServer:
    """How a server answers.

    Attributes
    ----------
    limit : float
        Requests a second at which p99 is 150 ms, or one in a thousand fails, whichever is lower.
    workers : int or None
        That work at once, with one queue; ``None`` for as many as there are requests.
    queue : float
        Requests that may wait; others are refused.
    knee : int or None
        Requests under way above which each takes longer, in proportion.
    tokens_per_second, burst : float
        Of a token bucket that refuses requests without a token.
    swing, period : float
        Service times rise and fall by that share, once in so many seconds.
    """

    name: str
    limit: float
    law: Law = exponential
    workers: int | None = 4
    queue: float = math.inf
    knee: int | None = None
    tokens_per_second: float = math.inf
    burst: float = math.inf
    swing: float = 0.0
    period: float = 300.0

    def pace(self, moment: float) -> float:
        """The factor on service times at a moment."""
        return 1 + self.swing * math.sin(2 * math.pi * moment / self.period)

    def answers(
        self, arrivals: Iterator[float], rng: random.Random, began: float = 0.0
    ) -> Iterator[tuple[float, float, str]]:
        """Each request's arrival, its end, and the kind of its failure."""
        free = [0.0] * (self.workers or 0)
        waiting: list[float] = []  # when each begins
        under_way: list[float] = []  # when each ends
        tokens = self.burst
        before = 0.0
        for at in arrivals:
            tokens = min(self.burst, tokens + self.tokens_per_second * (at - before))
            before = at
            for queue in (waiting, under_way):
                while queue and queue[0] <= at:
                    heapq.heappop(queue)
            if len(waiting) >= self.queue or tokens < 1:
                yield at, at, QUEUE_FULL
                continue
            tokens -= 1
            taken = self.law(rng) * self.pace(began + at)
            if self.knee is not None:
                taken *= max(1.0, (len(under_way) + 1) / self.knee)
            begins = max(at, heapq.heappop(free)) if free else at
            ends = begins + taken
            if self.workers is not None:
                heapq.heappush(free, ends)
            if begins > at:
                heapq.heappush(waiting, begins)
            heapq.heappush(under_way, ends)
            yield at, ends, ""


#: ``M/M/4`` by Erlang's formula, the finite buffer by that of M/M/4/20, the others by bisecting
#: :func:`shares_beyond` with 5 million requests; of the drift over whole periods.
SERVERS = {
    server.name: server
    for server in (
        KnownServer("M/M/4", 164.46),
        KnownServer("log-normal", 162.45, law=log_normal),
        KnownServer("bimodal", 143.83, law=bimodal),
        KnownServer("knee", 243.8, workers=None, knee=6),
        KnownServer("token bucket", 278.5, workers=None, tokens_per_second=300, burst=30),
        KnownServer("finite buffer", 147.64, queue=16),
        KnownServer("drift", 155.72, swing=0.1),
    )
}


def shares_beyond(
    server: KnownServer, rate: float, requests: int, *, seed: int = 1, began: float = 0.0
) -> tuple[float, float]:
    """The share of the answers that are late, and that of the requests that fail."""
    rng = random.Random(seed)
    late = 0
    failed = 0
    for at, ends, kind in server.answers(_arrivals(rate, requests, rng), rng, began):
        failed += bool(kind)
        late += ends - at > GOAL.targets["p99"]
    return late / (requests - failed), failed / requests


def _arrivals(rate: float, requests: int, rng: random.Random) -> Iterator[float]:
    at = 0.0
    for _ in range(requests):
        at += rng.expovariate(rate)
        yield at


@dataclass
class VirtualGenerator(FakeGenerator):
    """Sends to a known server; the clock is that of the server's drift."""

    server: KnownServer = field(default_factory=lambda: SERVERS["M/M/4"])

    def _open(self, step: Step, rng: random.Random) -> Iterator[tuple[float, float, str]]:
        arrivals = step.arrivals.offsets(step.seconds, seed=step.seed)
        return self.server.answers(arrivals, rng, self.clock)

    def _draw(self, rng: random.Random) -> float:
        return self.server.law(rng) * self.server.pace(self.clock)


def search(server: KnownServer, seed: int, goal: LatencyGoal = GOAL) -> tuple[LoadTestRun, float]:
    """One search, begun at a random phase of the drift, and the seconds in which it sent."""
    clock = 1_800_000_000 + random.Random(seed).uniform(0, server.period)
    generator = VirtualGenerator(server=server, clock=clock)
    plan = SearchPlan(goal, STEP_SECONDS, instances=1, seed=1000 * seed)
    done = run(limit_plan(plan), generator, clock=lambda: generator.clock)
    return done, generator.sent_seconds
