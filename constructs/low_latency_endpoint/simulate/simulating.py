"""Simulate a scenario in several replications; compare scenarios under the same chance."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from statistics import fmean
from typing import Any

from ..errors import rule
from ..errors.impossible import refuse
from ..facts.limit_kinds import number_range
from ..report.numbers import readable
from .compilation import loops
from .estimates import IMPOSSIBLE, Estimate, estimate
from .kernels import PER_OCTAVE
from .replication import (
    PERCENTILES,
    UNANSWERED,
    Replication,
    RunLength,
    TimelineWindow,
    impossible_figures,
    replicate,
)
from .run_length import memory, run_lengths
from .scenario import Scenario
from .service_laws import percentile_name

REPLICATIONS = number_range("LLS109", "the number of replications", 2, 100_000)
CONFIDENCE = number_range(
    "LLS115", "a confidence", 0.5, 0.999999, whole=False, fix="0.99 means 99 %."
)
PERCENTILE = rule(
    "LLS116", "this percentile cannot be simulated", fix="Choose 50, 90, 95, 99 or 99.9."
)
Controls = list[list[float]]
_FIGURES = (
    *("mean", "waiting", "longest", "slow_share"),
    *("throughput", "utilisation", "in_system"),
)
Job = tuple[Scenario, RunLength, int, int, bool | None]
_FREEDOM = 5  # more replications than controls: Student's t at 99 % is 4.6, with three more 9.9
_SHORTEST = RunLength(16, discard=0.0)  # which calls every loop that a scenario needs
_BIN = 1 / PER_OCTAVE  # share of a percentile within which its histogram has it
_START_IN = 30  # warm-ups that a run must hold when its start was counted


@dataclass(frozen=True)
class SimulationResult:
    """What the replications of one scenario found; ``confidence`` is that of all intervals.

    Raises
    ------
    ConfigurationError
        ``LLS150`` for figures that cannot be right together.
    """

    scenario: Scenario  # what was simulated
    replications: tuple[Replication, ...]  # what each run found
    seed: int  # of the random numbers
    confidence: float = 0.99  # of all intervals
    discard: float = 0.1  # not counted at the start, as :class:`.replication.RunLength` has it

    def __post_init__(self) -> None:
        refuse(IMPOSSIBLE, "simulation", self._problems(self.controls))

    def requests_needed(self, percentile: float | None = None) -> int:
        """Requests of each replication that a percentile, or means, need; 0 if load changes."""
        found = memory(self.scenario)
        if found is None:
            return 0
        needed = found.requests(percentile, len(self.replications))
        discarded = self.discard * min(run.requests for run in self.replications)
        if discarded >= found.warm_up * 0.99:  # runs end at whole blocks of requests
            return needed
        return max(needed, _START_IN * found.warm_up)

    def too_short(self, percentile: float | None = None) -> bool:
        """Whether the runs are too short to tell a percentile, or the means.

        Near its limit a fleet's queues come and go slowly: a run of many requests then holds few
        busy spells, and what it seems to show is too good. Estimates of such runs have an
        interval without end. See :mod:`.run_length`.
        """
        counted = min(run.requests for run in self.replications)
        return counted < self.requests_needed(percentile)

    def _steady(
        self, value: Callable[[Replication], float], percentile: float | None = None
    ) -> Estimate:
        found = self.estimate(value)
        return Estimate(found.mean, math.inf) if self.too_short(percentile) else found

    def _problems(self, controls: Controls) -> Iterator[str]:
        """What is impossible about the figures that these controls lead to."""
        figures = {name: self._estimate(attrgetter(name), controls).mean for name in _FIGURES}
        if not self.answered:
            yield from impossible_figures(figures | UNANSWERED)
            return
        percentiles = {
            rank: self._estimate(_percentile(rank), controls).mean for rank in PERCENTILES
        }
        yield from impossible_figures(figures | {"percentiles": percentiles})

    def estimate(self, value: Callable[[Replication], float]) -> Estimate:
        """Any number of a replication, as mean with interval.

        Where the scenario's laws have known means, the luck of the draw is taken out of the value
        (control variates), so the interval is narrower than the replications differ.
        """
        return self._estimate(value, self.controls)

    def _estimate(self, value: Callable[[Replication], float], controls: Controls) -> Estimate:
        values = [value(replication) for replication in self.replications]
        known = [value for value in values if not math.isnan(value)]
        if len(known) < len(values):  # one that answered nothing has no latency
            return Estimate(fmean(known) if known else math.nan, math.inf)
        return estimate(values, confidence=self.confidence, controls=controls)

    @cached_property
    def controls(self) -> Controls:
        """The luck to take out of each figure; none where figures would contradict each other.

        Regressions on few replications may do that, such as p90 below p50 where both are nearly equal.
        Means of replications never do.
        """
        luck = self._luck
        return [] if any(self._problems(luck)) else luck

    @property
    def _luck(self) -> Controls:
        """What chance gave each replication, less what it gives on average, as a share of that.

        None of a law that does not vary, and none if a replication drew nothing: there is no luck to
        take out. None for few replications: the interval would grow more with each degree of freedom
        lost than luck could save.
        """
        runs = self.replications
        drawn = (
            (self.scenario.service, [run.mean_service for run in runs]),
            (self.scenario.traffic.gaps, [run.mean_gap for run in runs]),
        )
        varying = [(law, means) for law, means in drawn if law is not None and law.varies]
        if len(runs) < len(varying) + _FREEDOM:
            return []
        return [
            [mean / law.mean_seconds - 1 for mean in means if mean is not None]
            for law, means in varying
            if None not in means
        ]

    @property
    def mean(self) -> Estimate:
        """Mean client latency, in seconds; no interval if it would be wider than the latency."""
        return self._steady(lambda run: run.mean).told

    @property
    def waiting(self) -> Estimate:
        """Mean wait in line, in seconds."""
        return self._steady(lambda run: run.waiting)

    def percentile(self, percentile: float) -> Estimate:
        """Of the client latency in seconds: 50, 90, 95, 99, 99.9.

        No interval if the runs are too short, or if it would be wider than the latency.
        """
        _check_percentile(percentile)
        return self.at_rank(percentile)

    def at_rank(self, rank: float) -> Estimate:
        """:meth:`percentile` at each rank that is counted, ``RANKS`` of :mod:`.replication`."""
        value = self._steady(_percentile(rank), rank)
        return value.at_least(_BIN * value.mean).told

    @property
    def throughput(self) -> Estimate:
        """Answers per second and instance."""
        return self.estimate(lambda run: run.throughput)

    @property
    def utilisation(self) -> Estimate:
        """Mean share of the instances' concurrency that is at work."""
        return self.estimate(lambda run: run.utilisation)

    @property
    def slow_share(self) -> Estimate:
        """Share of the answers later than the latency target."""
        return self._steady(lambda run: run.slow_share)

    @property
    def time_over_target(self) -> Estimate | None:
        """Seconds in windows whose p99 was above the target; failed calls count as late."""
        if self.scenario.latency_target is None or not all(
            run.timeline for run in self.replications
        ):
            return None
        return self.estimate(lambda run: run.seconds_over_target)

    @property
    def instance_hours(self) -> Estimate:
        """Paid instance hours."""
        return self.estimate(lambda run: run.instance_hours)

    @property
    def requests(self) -> int:
        """Requests counted in all replications."""
        return sum(run.requests for run in self.replications)

    @property
    def answered(self) -> bool:
        """Whether every replication answered a request."""
        return all(run.requests for run in self.replications)

    @property
    def failed(self) -> int:
        """Requests that failed in all replications."""
        return sum(run.failed for run in self.replications)

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe: latencies in ms, other times in s.

        ``half_width`` is null if the runs cannot tell; if it would be above the mean there is the
        interval's end instead, ``at_most``. ``mean`` is null where nothing was answered.
        """

        def shown(
            value: Estimate, factor: float = 1.0, highest: float = math.inf
        ) -> dict[str, float | None]:
            known = not math.isnan(value.mean)
            tells = value.told.tells
            at_most = {"at_most": min(value.high, highest) * factor} if value.is_wide else {}
            return {
                "mean": value.mean * factor if known else None,
                "half_width": value.half_width * factor if tells else None,
                **at_most,
            }

        over = self.time_over_target
        return {
            "instances": self.scenario.instances,
            "routing": self.scenario.routing,
            "replications": len(self.replications),
            "seed": self.seed,
            "confidence": self.confidence,
            "requests": self.requests,
            "failed": self.failed,
            "client_latency_ms": {
                "mean": shown(self.mean, 1e3),
                **{percentile_name(at): shown(self.percentile(at), 1e3) for at in PERCENTILES},
            },
            "wait_ms": shown(self.waiting, 1e3),
            "throughput_per_instance": shown(self.throughput),
            "utilisation": shown(self.utilisation, highest=1.0),
            "in_system": shown(self.estimate(lambda run: run.in_system)),
            "slower_than_target": shown(self.slow_share, highest=1.0),
            "time_over_target_seconds": shown(over) if over else None,
            "instance_hours": shown(self.instance_hours),
            "littles_law": max(run.littles_law for run in self.replications),
            "timeline": [
                _line(lines)
                for lines in zip(*(run.timeline for run in self.replications), strict=True)
            ],
        }


def _line(windows: Sequence[TimelineWindow]) -> dict[str, float | None]:
    """One window of all replications; percentiles of those in which requests were answered."""

    def mean(name: str, factor: float = 1.0, *, answered: bool = False) -> float | None:
        values = [
            factor * getattr(window, name) for window in windows if window.requests or not answered
        ]
        return fmean(values) if values else None

    return {
        "begin_seconds": windows[0].begin,
        "end_seconds": windows[0].end,
        "p50_ms": mean("p50", 1e3, answered=True),
        "p99_ms": mean("p99", 1e3, answered=True),
        **{
            name: mean(name)
            for name in (
                "requests",
                "slow",
                "failed",
                "serving",
                "launched",
                "in_flight",
                "over_target",
            )
        },
    }


@dataclass(frozen=True)
class Comparison:
    """Scenarios by name, the first the base, under the same chance: differences are surer."""

    results: dict[str, SimulationResult]  # by the scenario's name

    @property
    def base(self) -> str:
        """What the others are compared with."""
        return next(iter(self.results))

    def change(
        self, name: str, value: Callable[[Replication], float], percentile: float | None = None
    ) -> Estimate:
        """The relative change of a number, or a percentile, against the base; paired by replication."""
        one = self.results[self.base]
        other = self.results[name]
        pairs = zip(one.replications, other.replications, strict=True)
        values = [(value(before), value(after)) for before, after in pairs]
        if not all(before > 0 and after >= 0 for before, after in values):  # NaN: no answer
            return Estimate(math.nan, math.inf)
        ratio = estimate(
            [after / before for before, after in values],
            confidence=other.confidence,
            controls=other.controls,
        )
        too_short = one.too_short(percentile) or other.too_short(percentile)
        # Nothing falls by more than 100 %: an interval that says so says nothing.
        if too_short or ratio.is_wide:
            return Estimate(ratio.mean - 1, math.inf)
        change = Estimate(ratio.mean - 1, ratio.half_width)
        return change if percentile is None else change.at_least(2 * _BIN * ratio.mean)

    def percentile_change(self, name: str, percentile: float) -> Estimate:
        """The relative change of a percentile of the client latency."""
        _check_percentile(percentile)
        return self.change(name, lambda run: run.percentiles[percentile], percentile)

    def throughput_change(self, name: str) -> Estimate:
        """The relative change of the throughput per instance."""
        return self.change(name, lambda run: run.throughput)


def _percentile(percentile: float) -> Callable[[Replication], float]:
    return lambda run: run.percentiles[percentile]


def _check_percentile(percentile: float) -> None:
    if percentile not in PERCENTILES:
        raise PERCENTILE.error(
            got=f"{percentile!r}",
            where="percentile",
            allowed=", ".join(readable(percentile) for percentile in PERCENTILES),
        )


def simulate(
    scenario: Scenario,
    *,
    requests: int | None = None,
    seconds: float | None = None,
    discard: float | None = None,
    window: float | None = None,
    replications: int = 8,
    seed: int = 1,
    confidence: float = 0.99,
    processes: int = 1,
    compiled: bool | None = None,
) -> SimulationResult:
    """Simulate a scenario.

    Parameters
    ----------
    scenario : Scenario
        What to simulate.
    requests : int, optional
        Requests to count in each replication. By default the whole shape or trace; at a steady
        load as many as p99 needs there (:mod:`.run_length`), from 200,000 to 2,000,000.
    seconds : float, optional
        Simulated seconds of each replication, instead of a number of requests.
    discard : float, optional
        Share at the start that is not counted. By default until the start is forgotten, and at
        least 0.1; 0 for shapes and traces, whose start is part of them.
    window : float, optional
        Length of a line of the timeline, in seconds. By default no timeline; 60 for shapes.
    replications : int
        Independent runs. By default 8.
    seed : int
        The same seed gives the same results to the last bit, on one process or more, with numba
        or without. By default 1.
    confidence : float
        Of the intervals. By default 0.99.
    processes : int
        Processes over which replications are spread, at most one for each replication and for each
        processor of the machine. By default 1.
    compiled : bool, optional
        Whether numba compiles the loops. By default when it is installed.

    Raises
    ------
    ConfigurationError
        ``LLS109``, ``LLS111``, ``LLS113``, ``LLS115`` for numbers out of range, ``LLS117`` for a
        window that makes no timeline, ``LLS127`` for a steady open loop that the fleet can never
        serve, ``LLS128`` for a run that counts nothing.

    Examples
    --------
    >>> from low_latency_endpoint.simulate import Exponential, OpenLoop
    >>> result = simulate(
    ...     Scenario(service=Exponential(0.1), traffic=OpenLoop(rate=5.0)),
    ...     requests=4000, replications=4)
    >>> result.utilisation.holds(0.5)  # rate x service time
    True
    """
    return compare(
        {"": scenario},
        requests=requests,
        seconds=seconds,
        discard=discard,
        window=window,
        replications=replications,
        seed=seed,
        confidence=confidence,
        processes=processes,
        compiled=compiled,
    ).results[""]


def compare(
    scenarios: Mapping[str, Scenario],
    *,
    replications: int = 8,
    seed: int = 1,
    confidence: float = 0.99,
    processes: int = 1,
    compiled: bool | None = None,
    **length: Any,
) -> Comparison:
    """Simulate scenarios with the same arrivals and the same work, request by request.

    Parameters
    ----------
    scenarios : mapping of str to Scenario
        By name; the first is the base of the changes.
    replications, seed, confidence, processes, compiled
        As for :func:`simulate`.
    **length
        ``requests``, ``seconds``, ``discard`` and ``window`` of :func:`simulate`.
    """
    REPLICATIONS.check(replications, "replications")
    CONFIDENCE.check(confidence, "confidence")
    lengths = run_lengths(list(scenarios.values()), replications, **length)
    jobs = [
        (scenario, each, seed, number, compiled)
        for scenario, each in zip(scenarios.values(), lengths, strict=True)
        for number in range(replications)
    ]
    workers = min(processes, len(jobs), os.cpu_count() or 1)
    if workers <= 1:
        runs = [_replicate(job) for job in jobs]
    else:
        if loops(compiled).compiled:  # compile here, and not in each process
            _replicate((jobs[0][0], _SHORTEST, seed, 0, compiled))
        runs = _replicated(jobs, workers)
    return Comparison(
        {
            name: SimulationResult(
                scenario,
                tuple(runs[at * replications : (at + 1) * replications]),
                seed,
                confidence,
                lengths[at].discard,
            )
            for at, (name, scenario) in enumerate(scenarios.items())
        }
    )


def _replicated(jobs: Sequence[Job], workers: int) -> list[Replication]:
    """The jobs' replications, of processes that end with this call, however it ends."""
    others = multiprocessing.active_children()
    with ProcessPoolExecutor(workers, initializer=_end_when_told) as pool:
        # Not by map(): it cancels what is open, which the pool's thread stumbles over when workers end.
        open_jobs = [pool.submit(_replicate, job) for job in jobs]
        try:
            return [job.result() for job in open_jobs]
        except KeyboardInterrupt:  # the pool would wait for what is under way
            for worker in multiprocessing.active_children():
                if worker not in others:
                    worker.terminate()
            raise


def _end_when_told() -> None:
    """In a worker: Ctrl-C comes to all processes of a terminal, and the first one ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _replicate(job: Job) -> Replication:
    scenario, length, seed, number, compiled = job
    return replicate(scenario, length, loops(compiled), seed, number)
