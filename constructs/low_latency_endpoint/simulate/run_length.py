"""How many requests a run needs until its intervals cover the true value.

Latencies of neighbouring requests are alike, because they meet the same queue. A run therefore tells
as much as its number of *spells*: stretches of requests that are late together. The formulas and how
they were checked: docs/explanation/simulation.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import rule
from ..facts.limit_kinds import number_range
from ..plan.traffic_shapes import SECONDS
from ..report.numbers import readable
from .replication import RunLength
from .scenario import Scenario
from .traffic import ArrivalTrace, ClosedLoop, OpenLoop, ShapedLoop

REQUESTS = number_range("LLS113", "the number of simulated requests", 100, 10_000_000_000)
TIMELINE = rule(
    "LLS117",
    "the time window of a timeline is not valid",
    fix="Give seconds above zero, at most a million windows in the run.",
)
OVERLOADED = rule(
    "LLS127",
    "more requests arrive than the fleet can serve",
    fix="Use more instances, lower the rate, or state how many requests an instance works on at once: "
    "concurrency.",
)
WARM_UP = rule(
    "LLS128",
    "no requests are left to count",
    fix="Simulate more requests or seconds, or discard fewer at the start.",
)

DEFAULT_REQUESTS = 200_000
MOST_REQUESTS = 2_000_000  # of a replication, up to which a run is lengthened by itself
PATIENCE = 500_000  # requests up to which a run is lengthened for p99.9 as well
_MOST_LINES = 1_000_000
_OVERLOAD = 0.999  # offered load above which a steady queue never ends
# Spells beyond a percentile, in all replications together. Against the exact law of M/M/1 the 95 %
# interval of eight replications covers p99 and p99.9 in 94 to 95 % of 200 seeds with 100 spells, in
# 88 % with 40, in 80 % with 10.
SPELLS = 320
SPELLS_EACH = 20  # in each replication: with fewer, its percentile is too low on average
_SHARE_OF_MEAN = 0.1  # a tenth of the requests dominates a mean, which needs runs as long as a p90
RELAXATIONS = (
    3  # relaxation times of a warm-up, after which e^-3, a twentieth, of the start is left
)
_ENDLESS = 1e12  # the spell of a queue that grows for ever: no run is long enough


@dataclass(frozen=True, slots=True)
class Memory:
    """For how many requests the state of a steady system lasts."""

    queues: int  # queues that fill and empty independently
    spell: float  # requests of one queue that are late together
    tail: float = 1.0  # requests that a mean needs until rare long service times average out

    @property
    def warm_up(self) -> int:
        """Requests, over all queues, after which the empty start no longer matters."""
        return math.ceil(RELAXATIONS * 4 * self.spell * self.queues)

    def requests(self, percentile: float | None, replications: int) -> int:
        """Requests that each replication must count for a percentile, or for the means."""
        spells = max(SPELLS_EACH, SPELLS / replications)
        if percentile is None:
            return math.ceil(spells * max(self.spell, self.tail) / _SHARE_OF_MEAN)
        # Less by a rounding error, which would add a request.
        return math.ceil(spells * self.spell / (1 - percentile / 100) * (1 - 1e-9))


def memory(scenario: Scenario) -> Memory | None:
    """The memory of a scenario; ``None`` if its traffic or fleet changes over time."""
    traffic = scenario.traffic
    if (
        not isinstance(traffic, (OpenLoop, ClosedLoop))
        or scenario.scaling
        or scenario.deployment
        or scenario.faults
    ):
        return None
    queues = _queues(scenario)
    # The mean wait depends on the squares of the service times. Their relative second moment,
    # E[S^4] / E[S^2]^2, is that of a lognormal law of the same variation.
    tail = (1 + scenario.service.variation**2) ** 4
    if isinstance(traffic, ClosedLoop):
        return Memory(queues, max(1.0, _closed_spell(scenario, traffic, queues)), tail)
    load = traffic.rate / scenario.peak_service_rate
    # Squared variation of the gaps between arrivals; at one of several random queues nearly Poisson.
    gaps = 1.0 if traffic.poisson or queues > 1 else 0.0
    return Memory(queues, max(1.0, _open_spell(scenario, load, gaps, queues)), tail)


def _open_spell(scenario: Scenario, load: float, gaps: float, queues: int) -> float:
    """The relaxation time of a queue in heavy traffic, in requests, or that of its batches."""
    if load >= 1:
        return _ENDLESS
    waiting = (gaps + scenario.service.variation**2) / (2 * (1 - load) ** 2)
    return max(waiting, _in_batches(scenario, load) / queues)


def _closed_spell(scenario: Scenario, traffic: ClosedLoop, queues: int) -> float:
    """A queue is at most as long as its users are many: its length is a random walk up to there."""
    think, alone = traffic.think.mean_seconds, scenario.service.mean_seconds
    users = traffic.users / queues
    load = traffic.users / (think + alone) / scenario.peak_service_rate
    waiting = max(users * alone / (think + alone), users * (1 - 1 / load) if load > 1 else 0.0)
    walk = (1 + scenario.service.variation**2) / 2 * waiting**2 if queues > 1 else waiting
    return min(max(walk, waiting), _open_spell(scenario, load, 1.0, queues))


def _queues(scenario: Scenario) -> int:
    """Queues that fill and empty independently: with RANDOM routing, one on each instance."""
    return scenario.instances if scenario.routing == "RANDOM" else 1


def _in_batches(scenario: Scenario, load: float) -> float:
    """Requests that the fleet serves until the requests in its batches have been replaced."""
    slope = scenario.slope
    if not slope:
        return 1.0
    speed = load * scenario.instance_rate * scenario.service.mean_seconds
    rest = 1 - min(slope * speed, 0.999999)
    at_once = min(float(scenario.concurrency), speed * max(1 - slope, 0.0) / rest + slope)
    return scenario.instances * at_once * (1 + slope * at_once) / max(1 - slope, 1 - load)


def warm_up_requests(scenario: Scenario, requests: int) -> int:
    """Requests to simulate before the first counted one: at least a tenth of ``requests``."""
    found = memory(scenario)
    if found is None:
        return 0
    return int(min(max(requests / 10, found.warm_up), MOST_REQUESTS))


def default_requests(scenario: Scenario, replications: int) -> int:
    """Requests of each replication by default: enough for p99, and if few more do, for p99.9."""
    found = memory(scenario)
    if found is None:
        return DEFAULT_REQUESTS
    asked = min(found.requests(99.0, replications), MOST_REQUESTS)
    tail = found.requests(99.9, replications)
    return max(DEFAULT_REQUESTS, asked, tail if tail <= PATIENCE else 0)


def run_lengths(scenarios: Sequence[Scenario], replications: int, **stated: Any) -> list[RunLength]:
    """The length that the scenario with the longest memory needs, for all of them.

    All then see the same random requests, which makes their difference more certain.
    """
    run_lengths = [_run_length(scenario, replications, **stated) for scenario in scenarios]
    steady = [
        run_length
        for run_length in run_lengths
        if run_length.requests is not None and run_length.discard
    ]
    longest = max((run_length.requests or 0 for run_length in steady), default=0)
    warm_up = max(
        ((run_length.requests or 0) * run_length.discard for run_length in steady), default=0.0
    )
    return [
        replace(run_length, requests=longest, discard=warm_up / longest)
        if run_length in steady
        else run_length
        for run_length in run_lengths
    ]


def _run_length(
    scenario: Scenario,
    replications: int,
    requests: int | None = None,
    seconds: float | None = None,
    discard: float | None = None,
    window: float | None = None,
) -> RunLength:
    """Check a length that is stated, and choose one otherwise."""
    traffic = scenario.traffic
    has_an_end = isinstance(traffic, (ShapedLoop, ArrivalTrace))
    warm_up_by_load = discard is None and not has_an_end
    if discard is None:
        discard = 0.0 if has_an_end else 0.1
    if not 0 <= discard < 1:
        raise WARM_UP.error(got=discard, allowed="a share from 0 to below 1", where="discard")
    if seconds is not None:
        SECONDS.check(seconds, "seconds")
        if not seconds:
            raise WARM_UP.error(got="0 seconds", allowed="above 0", where="seconds")
    elif requests is not None:
        REQUESTS.check(requests, "requests")
    elif isinstance(traffic, ShapedLoop):
        seconds = traffic.shape.seconds
    elif isinstance(traffic, ArrivalTrace):
        requests = len(traffic.seconds)
    else:
        requests = default_requests(scenario, replications)
    if (
        isinstance(traffic, OpenLoop)
        and not (scenario.scaling or scenario.faults)
        and (load := traffic.rate / scenario.peak_service_rate) > _OVERLOAD
    ):
        raise OVERLOADED.error(
            got=f"{load:.0%} of what {scenario.instances} instances serve at concurrency {scenario.concurrency}",
            where="traffic",
            allowed="below 100 %",
        )
    if window is None and isinstance(traffic, ShapedLoop):
        window = 60.0
    if window is not None:
        if seconds is None:
            raise TIMELINE.error(
                got="a timeline without an end in seconds",
                where="window",
                allowed="seconds with window",
            )
        if not (window > 0 and seconds / window <= _MOST_LINES):
            raise TIMELINE.error(
                got=f"{window!r} seconds of {readable(seconds)}",
                where="window",
                allowed=f"{readable(seconds / _MOST_LINES)} seconds or more, above 0",
            )
    if warm_up_by_load and requests is not None and seconds is None:
        discard = warm_up_requests(scenario, requests) / requests
    return RunLength(requests, seconds, discard, window)
