"""The simulated model server: it takes the time it is told."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import json
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from ..runtime.http_server import Connection, Request
from .instance_task import InstanceTask
from .specifications import SimulatedModelServer


class SharedWork:
    """A batching instance: of n requests each takes 1 + slope x (n - 1) times its time alone."""

    def __init__(self, slope: float) -> None:
        self._slope = slope
        # What each request at work has received so far; a change of speed moves nobody's mark.
        self._progress = 0.0
        self._since = 0.0
        self._marks: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()
        self._timer: asyncio.TimerHandle | None = None

    def change_slope(self, slope: float) -> None:
        """Go on with another slope, in the event loop; what is at work feels it at once."""
        self._catch_up()
        self._slope = slope
        self._await_next()

    async def work(self, seconds: float) -> None:
        """Return when ``seconds`` of undisturbed work are done."""
        done = asyncio.get_running_loop().create_future()
        self._catch_up()
        heapq.heappush(self._marks, (self._progress + seconds, next(self._numbers), done))
        self._await_next()
        try:
            await done
        except asyncio.CancelledError:
            self._catch_up()
            self._marks = [each for each in self._marks if each[2] is not done]
            heapq.heapify(self._marks)
            self._await_next()
            raise

    @property
    def _slowness(self) -> float:
        return 1 + self._slope * (len(self._marks) - 1)

    def _catch_up(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._marks:
            self._progress += (now - self._since) / self._slowness
        else:
            self._progress = 0.0  # so that the digits of a long sum do not run out
        self._since = now

    def _await_next(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._marks:
            left = max(0.0, self._marks[0][0] - self._progress) * self._slowness
            self._timer = asyncio.get_running_loop().call_at(self._since + left, self._end)

    def _end(self) -> None:
        self._timer = None
        self._catch_up()
        # The timer was set for the first: it ends, whatever the last bit of the clock says.
        limit = max(self._progress, self._marks[0][0])
        while self._marks and self._marks[0][0] <= limit:
            _, _, done = heapq.heappop(self._marks)
            if not done.done():
                done.set_result(None)
        self._await_next()


_IDLE = 2.0  # percent of a CPU
_SESSION = "x-amzn-sagemaker-session-id"


@dataclass(eq=False)
class _Job:
    share: float
    done: asyncio.Future[float] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Simulation(InstanceTask[SimulatedModelServer]):
    """Answers the container contract as a `SimulatedModelServer` says."""

    def __init__(
        self,
        settings: SimulatedModelServer,
        place: int,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        super().__init__(settings, place, sleep)
        self._waiting: deque[_Job] = deque()
        self._idle = settings.concurrency
        self._shared = SharedWork(settings.slope)
        self._served = 0
        self._busy_seconds = 0.0
        self._busy_since: dict[int, float] = {}
        self._told_at = time.perf_counter()

    def change(self, settings: SimulatedModelServer) -> None:
        self._idle += settings.concurrency - self._settings.concurrency
        self._shared.change_slope(settings.slope)
        super().change(settings)

    async def __call__(self, request: Request, connection: Connection) -> None:
        path = request.target.partition("?")[0]
        if path == "/ping":
            connection.send(self._settings.ping_status if self._ready else 503, (), b"")
        elif path == "/utilization":
            body = json.dumps(self.utilization()).encode()
            connection.send(200, [("content-type", "application/json")], body)
        elif path == "/invocations" and request.method == "POST":
            await self._invoke(request, connection)
        else:
            connection.send(404, (), b"no such path")

    async def _invoke(self, request: Request, connection: Connection) -> None:
        settings = self._settings
        draw = self._random.random() if settings.failure_share or settings.hang_share else 1.0
        if draw < settings.hang_share:
            while connection.is_open:
                await asyncio.sleep(0.1)
            return
        full = settings.queue_limit is not None and len(self._waiting) >= settings.queue_limit
        if full and self._idle <= 0:
            connection.send(503, (), b"the queue is full")
            return
        if draw < settings.hang_share + settings.failure_share:
            await self._work()
            connection.send(settings.failure_status, (), settings.failure_message.encode())
            return
        headers = [("content-type", request.headers.get("content-type", "application/json"))]
        custom = request.headers.get("x-amzn-sagemaker-custom-attributes")
        if custom:
            headers.append(("x-amzn-sagemaker-custom-attributes", custom))
        if request.headers.get(_SESSION) == "NEW_SESSION":
            headers.append(("x-amzn-sagemaker-new-session-id", str(uuid.uuid4())))
        if settings.stream_chunks == 1:
            await self._work()
            connection.send(200, headers, request.body)
            return
        await self._stream(request.body, headers, connection)

    async def _stream(
        self, body: bytes, headers: list[tuple[str, str]], connection: Connection
    ) -> None:
        """Send the answer in parts: each takes its part of the time, in its turn at a worker."""
        count = self._settings.stream_chunks
        size = max(1, -(-len(body) // count))
        for number in range(count):
            await self._work(1.0 / count)
            if number == 0:
                connection.start_stream(200, headers)
            await connection.send_chunk(body[number * size : (number + 1) * size])
        connection.end_stream()

    async def _work(self, share: float = 1.0) -> None:
        """Wait for a worker and for its work."""
        job = _Job(share)
        self._waiting.append(job)
        if self._idle > 0:
            self._idle -= 1
            self._begin(self._serve())
        await job.done

    async def _serve(self) -> None:
        """Be one worker until nothing waits."""
        me = id(asyncio.current_task())
        while self._waiting and self._idle >= 0:
            settings = self._settings
            job = self._waiting.popleft()
            seconds = settings.service_time.draw(self._random) * self._slowness * job.share
            if self._served < settings.cold_requests:
                seconds *= settings.cold_factor
            self._served += 1
            self._busy_since[me] = time.perf_counter()
            if seconds and settings.slope:
                await self._shared.work(seconds)
            elif seconds:
                await asyncio.sleep(seconds)
            self._busy_seconds += time.perf_counter() - self._busy_since.pop(me)
            if not job.done.done():
                job.done.set_result(seconds)
        self._idle += 1

    def utilization(self) -> dict[str, float]:
        """Tell utilisation since the last time it was asked, in AWS's names and percent."""
        settings, now = self._settings, time.perf_counter()
        busy = self._busy_seconds + sum(now - since for since in self._busy_since.values())
        for worker in self._busy_since:
            self._busy_since[worker] = now
        elapsed = max(now - self._told_at, 1e-9)
        share = min(1.0, busy / elapsed / settings.concurrency)
        self._busy_seconds, self._told_at = 0.0, now
        return {
            "CPUUtilization": _IDLE + (settings.cpu_busy - _IDLE) * share,
            "MemoryUtilization": settings.memory,
        }
