"""Work on several requests at once, each slowed by its neighbours: continuous batching."""

from __future__ import annotations

import asyncio
import heapq
import itertools

__all__ = ["SharedWork"]


class SharedWork:
    """With n at work, each takes 1 + slope x (n - 1) times as long as alone.

    The simulator's law of a batching instance (``planning.simulation``), on the event loop's clock.

    Parameters
    ----------
    slope : float
        0 for workers that do not feel each other, 1 for a processor that all share.
    """

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
