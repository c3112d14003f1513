"""The requests that come: their arrivals and their work, drawn block by block."""

from __future__ import annotations

import hashlib
from typing import Any

from . import kernels
from .compilation import Loops
from .core import ENTRY, FILLED, NEXT_ARRIVAL
from .scenario import Scenario
from .service_laws import Constant, Exponential, LawParameters
from .traffic import ArrivalTrace, ClosedLoop, OpenLoop, ShapedLoop
from .world import World


class Workload:
    """The requests of one replication, block by block."""

    def __init__(self, scenario: Scenario, world: World, seed: int, replication: int) -> None:
        loops = world.loops
        self.world = world
        self.loops = loops
        self.traffic = scenario.traffic
        self.block = len(world.requests.demand)
        self.consumed = 0  # requests in all blocks before this one
        self.arrivals, self.work, self.picks = (
            Stream(loops, seed, replication, purpose) for purpose in ("arrivals", "work", "picks")
        )
        self.service = Law(loops, scenario.service.parameters())
        self.gaps = Law(loops, self._gap_law())
        self.levels = self.position = None
        if isinstance(self.traffic, ShapedLoop):
            flat = [
                value
                for end, share in self.traffic.shape.levels
                for value in (end, share * self.traffic.peak_rate)
            ]
            self.levels = loops.floats(flat)
            self.position = loops.floats([0.0, 0.0])
        self._first_arrival()

    def _gap_law(self) -> LawParameters:
        traffic = self.traffic
        if isinstance(traffic, ClosedLoop):
            return traffic.think.parameters()
        if isinstance(traffic, OpenLoop):
            return traffic.gaps.parameters()
        if isinstance(traffic, ShapedLoop):  # in units of expected requests
            return (Exponential(1.0) if traffic.poisson else Constant(1.0)).parameters()
        return Constant(0.0).parameters()

    def _first_arrival(self) -> None:
        traffic = self.traffic
        clock = self.world.clock
        if isinstance(traffic, ClosedLoop):
            return  # all users start at 0, as the heap of pauses says
        if isinstance(traffic, ArrivalTrace):
            clock[NEXT_ARRIVAL] = traffic.seconds[0]
            return
        one = self.loops.same_float(0.0, 1)
        self._fill_gaps(one, 1)
        clock[NEXT_ARRIVAL] = one[0]

    def _fill_gaps(self, out: Any, size: int) -> None:
        traffic = self.traffic
        if isinstance(traffic, ArrivalTrace):
            times = traffic.seconds
            begin = self.consumed
            for at in range(size):
                here = begin + at
                out[at] = times[here + 1] - times[here] if here + 1 < len(times) else float("inf")
            return
        self.gaps.fill(self.arrivals, out, size)
        if self.levels is not None:
            self.loops.fill_steps(self.levels, len(self.levels) // 2, self.position, out, size)

    def refill(self) -> None:
        """The next block; the present one must be used up."""
        world = self.world
        size = self.block
        self.consumed += int(world.state[FILLED])
        self._fill_gaps(world.requests.gap, size)
        self.service.fill(self.work, world.requests.demand, size)
        self.picks.uniform(world.requests.pick, size)
        world.state[ENTRY] = 0
        world.state[FILLED] = size

    @property
    def entered(self) -> int:
        """Requests that have arrived so far."""
        return self.consumed + self.world.entered


class Stream:
    """One stream of random numbers, by seed, replication and purpose."""

    def __init__(self, loops: Loops, seed: int, replication: int, purpose: str) -> None:
        digest = hashlib.sha256(f"{seed}/{replication}/{purpose}".encode()).digest()
        words = [int.from_bytes(digest[at : at + 4], "big") for at in (0, 4, 8)]
        self.loops = loops
        self.words = loops.wholes([*words, 1])
        loops.fill_uniform(self.words, loops.same_float(0.0, 12), 12)

    def uniform(self, out: Any, size: int) -> None:
        """Numbers above 0 and below 1."""
        self.loops.fill_uniform(self.words, out, size)


class Law:
    """A law ready for the loops."""

    def __init__(self, loops: Loops, parameters: LawParameters) -> None:
        self.loops = loops
        self.parameters = parameters
        self.table = loops.floats(parameters.table)
        self.random = parameters.kind != kernels.CONSTANT

    def fill(self, stream: Stream, out: Any, size: int) -> None:
        """Draws of the law."""
        if self.random:
            stream.uniform(out, size)
        at = self.parameters
        self.loops.fill_law(at.kind, at.one, at.two, self.table, len(self.table), out, size)
