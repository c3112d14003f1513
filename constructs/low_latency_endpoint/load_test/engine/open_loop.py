"""A Locust user whose requests come when they are due, not when the last answer has come."""

from __future__ import annotations

from .users import SageMakerUser  # isort: skip

import logging
import time
from typing import Any, ClassVar

import gevent
from locust import events
from locust.exception import StopUser

from ...errors import LowLatencyEndpointError
from .arrivals import Arrivals
from .invoking import Invocation
from .open_loop_streams import Streams, take_part
from .sending import StepRun
from .steps import STEP_FORM, Step

_log = logging.getLogger(__name__)
_A_WEEK = 7 * 24 * 3600.0
_POLL_SECONDS = 0.1
#: Without --stop-timeout, answers to what is under way when Locust stops are waited for so long:
#: the last requests to a healthy endpoint are no failures.
_LAST_ANSWERS_SECONDS = 1.0


class OpenLoopSageMakerUser(SageMakerUser):
    """Sends its share of the class's arrivals, each request at its time.

    Takes the attributes of :class:`.users.SageMakerUser`, and runs no ``@task``: every arrival is
    one :meth:`request`.

    Attributes
    ----------
    arrivals : Arrivals
        Of all users of the class together.
    seconds : float, optional
        After which no more is sent; ramps need it. By default until Locust stops the test.
    seed : int
        Of random arrivals. By default 1.
    """

    abstract = True

    arrivals: Arrivals | None = None
    seconds: float | None = None
    seed: ClassVar[int] = 1

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        self.tasks = [_stream]

    def request(self, number: int) -> Invocation:
        """Send request ``number`` of the class and wait for its answer; override it.

        By default the payload of that number. An override calls :meth:`send` once, such as
        ``return self.send(body, SessionId=...)``.
        """
        assert self._shared is not None
        payloads = self._shared.payloads
        return self.send(payloads.next(number), **(payloads.parameters(number) or {}))

    def send(self, body: bytes, **overrides: Any) -> Invocation:
        """Send one request that is counted when :meth:`request` returns it.

        Parameters
        ----------
        **overrides
            As for :meth:`.users.SageMakerUser.invoke`.
        """
        if self._shared is None:
            raise StopUser()
        self._shared.sent += 1
        return self._checked(self._shared.send(body, overrides))

    def _answered(self, answer: Invocation, latency: float) -> None:
        assert self._shared is not None
        self._count(self._shared.name, answer, time.time() - latency, latency)

    @classmethod
    def step(cls) -> Step:
        """What the users of the class send together."""
        if cls.arrivals is None:
            raise STEP_FORM.error(
                got="none",
                allowed="arrivals such as PoissonArrivals(100)",
                where=f"{cls.__name__}.arrivals",
            )
        return Step(cls.__name__, cls.seconds or _A_WEEK, cls.arrivals, seed=cls.seed)


def _stream(user: OpenLoopSageMakerUser) -> None:
    """The one task of an open-loop user: its share, until it is stopped or has sent all."""
    try:
        step = user.step()
    except LowLatencyEndpointError as problem:
        _log.error("%s", problem)
        user.environment.process_exit_code = 2
        user.environment.runner.quit()
        return
    if user._shared is None:
        raise StopUser()
    streams: Streams = user.environment.open_loop_streams
    streams.join(user)
    runs: list[tuple[StepRun, Any]] = []
    version = -1
    try:
        while user._state == "running":
            if version != streams.version:
                version = streams.version
                share = streams.share_of(user)
                for run, _ in runs:
                    run.stop()
                if share is not None:
                    part, parts = share
                    run = StepRun(
                        step,
                        user.request,
                        streams.start,
                        part=part,
                        parts=parts,
                        timeout_seconds=user._shared.invoker.target.timeout_seconds,
                        streaming=user._shared.invoker.target.streaming,
                        answered=user._answered,
                        resumed=True,
                    )
                    streams.runs.append(run)
                    runs.append((run, gevent.spawn(run.run)))
            elif runs and runs[-1][1].ready():
                raise StopUser()
            streams.changed.wait(_POLL_SECONDS)
        for run, _ in runs:
            run.stop()
        gevent.joinall([greenlet for _, greenlet in runs])
    finally:
        _end(user, runs)
        streams.leave(user)


def _end(user: OpenLoopSageMakerUser, runs: list[tuple[StepRun, Any]]) -> None:
    """Let nothing vanish: what is under way is answered, or fails with the time it has waited."""
    greenlets = [greenlet for _, greenlet in runs]
    for run, _ in runs:
        run.stop()
    try:
        if user._state == "running":  # killed, and not because its --stop-timeout was over
            gevent.joinall(greenlets, timeout=_LAST_ANSWERS_SECONDS)
    finally:
        gevent.killall(greenlets)


_events: Any = events
_events.init.add_listener(take_part)
