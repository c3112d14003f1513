"""A generator without processes: a queue in front of workers, calculated request by request."""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram
from low_latency_endpoint.load_test.engine.steps import OnSecond, Progress, Step, StepResult

from .histograms import buckets

QUEUE_FULL = "503 ServiceUnavailable"
#: Kinds of failures whose callers waited in vain.
_WAITED = ("timeout", "connection timeout")
_CONNECT_SECONDS = 3.0


def failed(at: float, kind: str) -> tuple[float, float, str]:
    """A request that fails without an instance: when it began, when it ended, and how."""
    return at, at + (_CONNECT_SECONDS if kind in _WAITED else 0.0), kind


def answered(
    step: Step, latency: LatencyHistogram, started: float = 0.0, **changes: Any
) -> StepResult:
    """What came of a step of which every request was answered well, with these latencies."""
    count = latency.count
    return replace(
        StepResult(
            step=step,
            started_at=started + step.settle_seconds,
            ended_at=started + step.seconds,
            **dict.fromkeys(("intended", "sent", "completed", "answered_in_time"), count),
            latency=latency,
            service=latency,
            processes=1,
        ),
        **changes,
    )


@dataclass
class FakeGenerator:
    """Instances with workers and one queue each, dealt to in turn; time passes in zero seconds."""

    service: float = 0.020
    variation: float = 0.0
    workers: int = 4
    instances: int = 1
    queue_limit: int | None = None
    timeout: float = math.inf
    """How long callers wait; nobody works on a request whose caller has gone."""
    broken: str = ""
    client_bound_above: float = math.inf
    unlucky: Callable[[Step], bool] = lambda step: False
    """Steps in which the machine of the generator stumbled."""
    late_by: float = 0.0
    """How late every request of such a step, or above that rate, is sent."""
    clock: float = 1_800_000_000.0
    steps: list[Step] = field(default_factory=list)
    sent_seconds: float = 0.0
    """How long requests were sent, all steps together."""
    closed: bool = False
    first_byte_share: float | None = None
    """Of a response stream: when its first byte comes, as a share of the whole."""

    @property
    def capacity(self) -> float:
        """Requests per second of all instances."""
        return self.instances * self.workers / self.service

    def run(self, step: Step, progress: OnSecond = lambda each: None) -> StepResult:
        """Run one step."""
        self.steps.append(step)
        rng = random.Random(f"{step.seed}/{step.name}")
        results = list(self._closed(step, rng) if step.users else self._open(step, rng))
        counted = sum(at >= step.settle_seconds for at, _, _ in results)
        late = counted / step.counted_seconds > self.client_bound_above or self.unlucky(step)
        delay = self.late_by if late else 0.0
        for each in _timeline(step, results, delay):
            first_byte = self._first_bytes(each.latency)
            if first_byte is not None:
                each = replace(each, first_byte=first_byte)
            if progress(each) and each.seconds > step.settle_seconds:
                step = replace(step, seconds=each.seconds)
                results = [one for one in results if one[0] < each.seconds]
                break
        self.sent_seconds += step.seconds
        started, self.clock = self.clock, self.clock + step.seconds
        latency, errors = LatencyHistogram(), Counter[str]()
        intended = in_time = unanswered = 0
        for at, finished, kind in results:
            if at < step.settle_seconds:
                continue
            intended += 1
            if kind:
                errors[kind] += 1
                if kind in _WAITED:
                    unanswered += 1
                    latency.record(finished - at)
                continue
            latency.record(finished - at + delay)
            in_time += finished <= step.seconds
        rate = intended / step.counted_seconds
        bound = ("the busiest generator process used 99% of a core",) if late else ()
        return StepResult(
            step=step,
            started_at=started + step.settle_seconds,
            ended_at=self.clock,
            intended=intended,
            sent=intended,
            completed=latency.count - unanswered,
            answered_in_time=in_time,
            unanswered=unanswered,
            errors=errors,
            latency=latency,
            service=latency,
            first_byte=self._first_bytes(latency),
            send_lag=LatencyHistogram.of([1e-5] * intended),
            client_bound=bound,
            cpu_share=0.99 if late else min(0.89, rate / 5000),
            processes=1,
        )

    def _first_bytes(self, latency: LatencyHistogram) -> LatencyHistogram | None:
        share = self.first_byte_share
        if share is None:
            return None
        return LatencyHistogram.of(
            share * (low + high) / 2 for low, high, count in buckets(latency) for _ in range(count)
        )

    def close(self) -> None:
        """End."""
        self.closed = True

    def _draw(self, rng: random.Random) -> float:
        if not self.variation:
            return self.service
        spread = math.log1p(self.variation**2)
        return rng.lognormvariate(math.log(self.service) - spread / 2, math.sqrt(spread))

    def _open(self, step: Step, rng: random.Random) -> Iterator[tuple[float, float, str]]:
        free = [[0.0] * self.workers for _ in range(self.instances)]
        waiting: list[list[float]] = [[] for _ in range(self.instances)]  # their starts
        for number, at in enumerate(step.arrivals.offsets(step.seconds, seed=step.seed)):
            if self.broken:
                yield failed(at, self.broken)
                continue
            one = number % self.instances
            queue = waiting[one]
            while queue and queue[0] <= at:
                heapq.heappop(queue)
            if self.queue_limit is not None and len(queue) >= self.queue_limit:
                yield at, at, QUEUE_FULL
                continue
            if free[one][0] - at > self.timeout:
                yield at, at + self.timeout, "timeout"
                continue
            begin = max(at, heapq.heappop(free[one]))
            finished = begin + self._draw(rng)
            heapq.heappush(free[one], finished)
            if begin > at:
                heapq.heappush(queue, begin)
            yield at, finished, ""

    def _closed(self, step: Step, rng: random.Random) -> Iterator[tuple[float, float, str]]:
        callers = [0.0] * step.users
        workers = [0.0] * (self.workers * self.instances)
        while callers[0] < step.seconds:
            at = heapq.heappop(callers)
            if self.broken:
                heapq.heappush(callers, at + 0.01)
                yield failed(at, self.broken)
                continue
            finished = max(at, heapq.heappop(workers)) + self._draw(rng)
            heapq.heappush(workers, finished)
            heapq.heappush(callers, finished)
            yield at, finished, ""


def _timeline(
    step: Step, results: list[tuple[float, float, str]], delay: float
) -> Iterator[Progress]:
    """Each second by the answers that came in it, as the real generator tells it."""
    seconds = math.floor(step.seconds)
    sent, lost, waited = Counter[int](), Counter[int](), Counter[int]()
    answered = [LatencyHistogram() for _ in range(seconds)]
    for at, finished, kind in results:
        sent[int(at)] += 1
        lost[int(finished)] += bool(kind)
        waited[int(finished)] += kind in _WAITED
        if kind in ("", *_WAITED) and finished < seconds:
            answered[int(finished)].record(finished - at + delay)
    for second in range(seconds):
        yield Progress(
            seconds=second + 1.0,
            sent=sent[second],
            completed=answered[second].count - waited[second],
            errors={"failed": lost[second]},
            send_lag=LatencyHistogram.of([1e-5]),
            cpu_share=0.1,
            latency=answered[second],
        )
