"""One run of one scenario with one stream of chance, and the counts of what its requests met."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..errors.impossible import falling, mean_out_of_percentiles, out_of_range, refuse
from . import core, kernels
from .auto_scaling import AutoScaling
from .compilation import Loops
from .deployment import FleetReplacement
from .estimates import IMPOSSIBLE
from .fleet_control import FleetControl
from .outage import FleetOutage
from .scenario import Scenario
from .service_laws import percentile_name
from .traffic import ArrivalTrace
from .workload import Workload
from .world import World

PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9)
#: What is counted of each run: the percentiles that are told, and ranks between them that bound the
#: share of late requests.
RANKS = (50.0, 60.0, 70.0, 80.0, 90.0, 92.0, 94.0, 95.0, 96.0, 97.0, 98.0, 99.0, 99.5, 99.9)
#: In the system over time and the sum of the times there differ by rounding alone.
_LITTLES_LAW = 1e-6


@dataclass(frozen=True, slots=True)
class TimelineWindow:
    """What happened from one time to another (attributes: :class:`.replication.Replication`)."""

    begin: float
    end: float
    requests: int
    p50: float
    p99: float
    slow: int
    failed: int
    serving: int
    launched: int
    in_flight: int

    def __post_init__(self) -> None:
        refuse(IMPOSSIBLE, "timeline", self._problems())

    def _problems(self) -> Iterator[str]:
        numbers = {name: getattr(self, name) for name in self.__slots__}
        yield from out_of_range(numbers)
        for pair in (("begin", "end"), ("p50", "p99"), ("slow", "requests")):
            yield from falling({name: numbers[name] for name in pair})

    @property
    def over_target(self) -> bool:
        """Whether more than one call in a hundred was answered late or failed."""
        return 100 * (self.slow + self.failed) > self.requests + self.failed


class Counter:
    """Histograms and sums of one replication: those of closed windows, and of the open one."""

    def __init__(self, loops: Loops, target: float | None) -> None:
        self.loops = loops
        self.target = float("inf") if target is None else target * _EQUAL
        self.forget()

    def forget(self) -> None:
        """Start anew: what was counted belonged to the start of the run."""
        self.latencies, self.window = (self.loops.same_whole(0, kernels.BINS) for _ in range(2))
        self.sums, self.window_sums = (self.loops.same_float(0.0, 4) for _ in range(2))
        self.windows: list[TimelineWindow] = []

    def take(self, latency: Any, wait: Any, size: int) -> None:
        """Count a block of results into the open window."""
        self.loops.tally(latency, wait, size, self.target, self.window, self.window_sums)

    def close_window(self, begin: float, end: float, **at_end: int) -> None:
        """End a window: note its line and add it to the whole."""
        sums = self.window_sums
        count = float(sums[0])
        p50, p99 = (
            self.loops.quantile(self.window, share * count) if count else 0.0
            for share in (0.50, 0.99)
        )
        self.windows.append(
            TimelineWindow(begin, end, int(count), float(p50), float(p99), int(sums[3]), **at_end)
        )
        self.finish()

    def finish(self) -> None:
        """Count what stands in the open window to the whole."""
        sums = self.window_sums
        if sums[0]:
            self.loops.add_and_clear(self.window, self.latencies)
        for at in range(4):
            self.sums[at] += sums[at]
            sums[at] = 0.0

    @property
    def requests(self) -> int:
        """Requests answered."""
        return int(self.sums[0] + self.window_sums[0])

    def latency(self, percentile: float) -> float:
        """A percentile of the client latency, in seconds."""
        return float(self.loops.quantile(self.latencies, percentile / 100 * self.requests))


_AREAS = (core.SYSTEM_AREA, core.WORK_AREA)
#: What takes exactly as long as the target is not late; times are differences of moments, and rounded.
_EQUAL = 1 + 1e-6
_FOREVER = 1e300  # finite, so that an event that never comes is later


@dataclass(frozen=True, slots=True)
class RunLength:
    """How long a run lasts and what is not counted of it."""

    requests: int | None  # to count; `None` when `seconds` says how long
    seconds: float | None = None  # simulated, from the start
    discard: float = 0.1  # at the start: share of the seconds, or of the requests to count
    window: float | None = None  # seconds of a line of the timeline

    @property
    def block(self) -> int:
        """Requests that are drawn at once; the end of a run falls on a whole block."""
        if self.requests is None:
            return 16384
        return max(16, min(16384, 1 << (self.requests // 32).bit_length()))


@dataclass(frozen=True)
class Replication:
    """What one run found; times in seconds, NaN where no request was answered.

    Raises
    ------
    ConfigurationError
        ``LLS150`` for numbers that no run has.
    """

    requests: int  # counted
    seconds: float  # simulated, in which they were counted
    mean: float  # client latency
    waiting: float  # mean wait in line
    percentiles: dict[float, float]  # of the client latency, at each of RANKS
    longest: float  # client latency
    throughput: float  # answers per second and instance, of the mean number that serve and start
    utilisation: float  # mean share of an instance's concurrency that is at work
    in_system: float  # mean requests in the whole system, at work or in line
    slow_share: float  # of the answers, later than the latency target
    failed: int  # requests lost with an instance, or that met none
    instance_hours: float  # paid for, from launch to end
    mean_service: float | None  # drawn of those that arrived while it counted; None when none did
    mean_gap: float | None  # the same: controls for an estimate
    littles_law: float  # in the system over time against the sum of times there: 0 but for rounding
    entered: int  # requests that arrived, counted or not
    # By window: answered, p50 and p99, slow, failed; at its end serving, launched (paid for), in flight
    timeline: tuple[TimelineWindow, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        refuse(IMPOSSIBLE, "replication", self._problems())

    def _problems(self) -> Iterator[str]:
        numbers = (
            "requests",
            "seconds",
            "failed",
            "entered",
            "instance_hours",
            "mean_service",
            "mean_gap",
        )
        yield from out_of_range({name: getattr(self, name) for name in numbers})
        yield from out_of_range({"Little's law": self.littles_law}, high=_LITTLES_LAW)
        figures = vars(self) | ({} if self.requests else UNANSWERED)
        yield from impossible_figures(figures)

    @property
    def seconds_over_target(self) -> float:
        """Time in windows whose p99 was above the latency target, failed calls counted as late."""
        return sum(line.end - line.begin for line in self.timeline if line.over_target)


#: The figures of a run that answered no request.
UNANSWERED: dict[str, Any] = dict.fromkeys(
    ("mean", "waiting", "percentiles", "longest", "slow_share")
)


def impossible_figures(figures: dict[str, Any]) -> Iterator[str]:
    """What the figures of a replication, or of several on average, cannot be.

    All of it is linear in the figures, so that it holds for averages if it holds for each.
    """
    sizes = ("mean", "waiting", "longest", "throughput", "in_system")
    yield from out_of_range({name: figures[name] for name in sizes})
    yield from out_of_range({name: figures[name] for name in ("utilisation", "slow_share")}, high=1)
    if figures["percentiles"] is None:
        return
    percentiles = {percentile_name(rank): value for rank, value in figures["percentiles"].items()}
    yield from out_of_range(percentiles)
    yield from falling({**percentiles, "longest": figures["longest"]})
    yield from falling({"mean wait": figures["waiting"], "mean latency": figures["mean"]})
    yield from mean_out_of_percentiles(figures["mean"], figures["percentiles"], figures["longest"])


def places_needed(scenario: Scenario) -> int:
    """Places for all instances that may be there at once, those that drain included."""
    most = max(scenario.instances, scenario.scaling.most if scenario.scaling else 0)
    if scenario.scaling or scenario.deployment or scenario.faults:
        most = 2 * most * (2 if scenario.deployment else 1)
        if scenario.faults:
            most *= scenario.zones
        most = -(-most // scenario.zones) * scenario.zones
    return most


class _Run:
    """The loop around the event loop."""

    def __init__(
        self, scenario: Scenario, length: RunLength, loops: Loops, seed: int, number: int
    ) -> None:
        self.scenario, self.length = scenario, length
        self.world = World(scenario, loops, places_needed(scenario), length.block)
        self.workload = Workload(scenario, self.world, seed, number)
        self.control = FleetControl(scenario, self.world, self.workload)
        self._begin_changes()
        self.counter = Counter(loops, scenario.latency_target)
        self.window_begin = 0.0
        self.failed_before = 0
        self.drawn = [0.0, 0.0]  # sums of the service times and gaps of those that arrived
        self.added = 0  # up to which request of the block they are added
        self._start_counting()

    def _begin_changes(self) -> None:
        """Put on the agenda what changes the fleet; of two changes at one time, in this order."""
        scenario, control = self.scenario, self.control
        if scenario.scaling:
            AutoScaling(scenario.scaling, control).begin()
        if scenario.deployment:
            FleetReplacement(scenario.deployment, control).begin()
        for outage in scenario.faults:
            FleetOutage(outage, control).begin()

    def run(self) -> Replication:
        """Run for the stated seconds, or until the stated requests are counted."""
        length = self.length
        if length.requests is not None:
            self._count(int(length.requests * length.discard))
            self._start_counting()
            self._count(length.requests)
        elif length.seconds is not None:
            self._run_for(length.seconds)
        return self._result()

    def _run_for(self, seconds: float) -> None:
        """Run for so many seconds, with a line of the timeline for each window."""
        if self.length.discard:
            self._run_to(self.length.discard * seconds)
            self._start_counting()
        window = self.length.window
        self.window_begin = self.world.now
        while window and self.window_begin + window < seconds:
            self._run_to(self.window_begin + window)
            self._close_window(self.window_begin + window)
        self._run_to(seconds)
        self._drain()
        if window:
            self._close_window(seconds)

    def _count(self, requests: int) -> None:
        lost = self._failed + 10 * requests  # nobody serves any more: stop asking
        while self.counter.requests < requests and not self._exhausted and self._failed < lost:
            self._step(math.inf)
        self._take()

    def _drain(self) -> None:
        """Await the last answers of a trace that has ended: they are part of what was recorded."""
        if not isinstance(self.scenario.traffic, ArrivalTrace):
            return
        while self.world.clock[core.NEXT_ARRIVAL] == math.inf and not self._exhausted:
            self._step(math.inf)
        self._take()

    def _run_to(self, time: float) -> None:
        while not self._step(time):
            pass
        self._take()

    @property
    def _exhausted(self) -> bool:
        """Whether nothing can happen any more: a trace has ended."""
        world = self.world
        return (
            world.ends.key[1] == math.inf
            and world.clock[core.NEXT_ARRIVAL] == math.inf
            and not world.state[core.PENDING]
        )

    def _step(self, until: float) -> bool:
        """Run until something is needed or due; whether ``until`` has been reached."""
        world, control = self.world, self.control
        due = control.next_time
        status = world.advance(min(due, until, _FOREVER))
        if status == core.NEEDS_REQUESTS:
            self._take()
            self._add_drawn()
            self.workload.refill()
            self.added = 0
        elif status == core.RESULTS_FULL:
            self._take()
        elif status == core.JOBS_FULL:
            world.more_jobs()
        elif status == core.COUNTS_FULL:
            world.more_counts()
        elif due <= until and due < math.inf:
            self._move_to(due)
            control.act()
        else:
            if until < math.inf:
                self._move_to(until)
            return True
        return False

    def _add_drawn(self) -> None:
        """Add what was drawn for the requests that have arrived since the last time."""
        world, begin, end = self.world, self.added, self.world.entered
        for at, drawn in enumerate((world.requests.demand, world.requests.gap)):
            self.drawn[at] += float(world.loops.total(drawn[begin:end], end - begin))
        self.added = end

    def _move_to(self, time: float) -> None:
        """Let time pass in which nothing happens."""
        clock, state = self.world.clock, self.world.state
        passed = time - clock[core.NOW]
        if passed > 0:
            clock[core.SYSTEM_AREA] += state[core.IN_SYSTEM] * passed
            clock[core.WORK_AREA] += state[core.AT_WORK] * passed
            clock[core.NOW] = time

    @property
    def _gaps_end(self) -> bool:
        """Whether each request has a next one; the last of a trace has none."""
        return math.isfinite(self.drawn[1])

    def _take(self) -> None:
        size = self.world.take_results()
        if size:
            self.counter.take(self.world.results.latency, self.world.results.wait, size)

    @property
    def _failed(self) -> int:
        return self.world.failed + int(self.world.state[core.LOST])

    def _close_window(self, time: float) -> None:
        self.counter.close_window(
            self.window_begin,
            time,
            failed=self._failed - self.failed_before,
            serving=len(self.world.serving),
            launched=self.control.paid_instances,
            in_flight=int(self.world.state[core.IN_SYSTEM]),
        )
        self.window_begin = time
        self.failed_before = self._failed

    def _start_counting(self) -> None:
        world = self.world
        self.counter.forget()
        self.began = world.now
        self.areas = [float(world.clock[at]) for at in _AREAS]
        self.ages = world.ages() if world.state[core.IN_SYSTEM] else 0.0
        self.failures = self.failed_before = self._failed
        self.failed_time = world.failed_time
        self.entered_before = self.workload.entered
        self.drawn = [0.0, 0.0]
        self.added = world.entered
        self.control.restart_payment(world.now)

    def _result(self) -> Replication:
        world, counter, control = self.world, self.counter, self.control
        counter.finish()
        self._add_drawn()
        control.pay_until(world.now)
        seconds = world.now - self.began
        requests = counter.requests
        areas = [
            float(world.clock[at]) - before for at, before in zip(_AREAS, self.areas, strict=True)
        ]
        instance_seconds = control.instance_seconds or 1e-300
        total = float(counter.sums[1])
        spent = total + world.ages() - self.ages + world.failed_time - self.failed_time
        entered = self.workload.entered - self.entered_before
        return Replication(
            requests=requests,
            seconds=seconds,
            mean=total / requests if requests else math.nan,
            waiting=float(counter.sums[2]) / requests if requests else math.nan,
            percentiles={at: counter.latency(at) if requests else math.nan for at in RANKS},
            longest=counter.latency(100.0) if requests else math.nan,
            throughput=requests / instance_seconds,
            utilisation=areas[1] / instance_seconds / self.scenario.concurrency,
            in_system=areas[0] / seconds if seconds else 0.0,
            slow_share=float(counter.sums[3]) / requests if requests else math.nan,
            failed=self._failed - self.failures,
            instance_hours=control.instance_seconds / 3600,
            mean_service=self.drawn[0] / entered if entered else None,
            mean_gap=self.drawn[1] / entered if entered and self._gaps_end else None,
            littles_law=abs(areas[0] - spent) / areas[0] if areas[0] else 0.0,
            entered=self.workload.entered,
            timeline=tuple(counter.windows),
        )


def replicate(
    scenario: Scenario, length: RunLength, loops: Loops, seed: int, number: int
) -> Replication:
    """Run one replication."""
    return _Run(scenario, length, loops, seed, number).run()
