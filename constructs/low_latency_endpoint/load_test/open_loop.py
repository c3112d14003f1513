"""A Locust user whose requests come when they are due, not when the last answer has come.

Use it in a locustfile::

    from low_latency_endpoint.load_test.arrivals import PoissonArrivals
    from low_latency_endpoint.load_test.open_loop import OpenLoopSageMakerUser
    from low_latency_endpoint.load_test.payloads import Payloads

    class Sentiment(OpenLoopSageMakerUser):
        endpoint_name = "sentiment"
        payloads = Payloads.of_folder("requests")
        arrivals = PoissonArrivals(400)

The class's users share its arrivals: with N of them, each sends every Nth request. So ``-u 4
--processes 4`` sends 400 requests per second from four processes and ``-u 1`` the same 400 from
one; the number of users says who sends, never how much. One user per process is right.

Response times in Locust's table, CSV and HTML count from the moment a request was due. When the
test ends, master (or the single process) prints p50 to p99.99 of the merged histograms, how late
requests started, and whether the generator was the limit.
"""

from __future__ import annotations

from .users import InvocationFailed, REQUEST_TYPE, SageMakerUser  # isort: skip

import logging
import time
from typing import Any, ClassVar

import gevent
from gevent.event import Event
from locust import events
from locust.exception import StopUser
from locust.runners import MasterRunner, WorkerRunner

from ..errors import LowLatencyEndpointError
from .arrivals import Arrivals, ConstantArrivals
from .invoking import CHECK_FAILED, Invocation
from .recording import Records, result_of
from .rules import STEP_FORM
from .sending import StepRun, keep_for_good
from .steps import Step, StepResult
from .summaries import summary_lines

__all__ = ["OpenLoopSageMakerUser"]

_log = logging.getLogger(__name__)
_SHARES = "low-latency-shares"
_RECORDS = "low_latency_records"
_A_WEEK = 7 * 24 * 3600.0
_LEAD_SECONDS = 0.3
_CLOCKS_AGREE = 1.0
_POLL_SECONDS = 0.1


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
        return self.send(self._shared.payloads.next(number))

    def send(self, body: bytes, **overrides: Any) -> Invocation:
        """Send one request that is counted when :meth:`request` returns it.

        Parameters
        ----------
        body : bytes
        **overrides
            As for :meth:`.users.SageMakerUser.invoke`.
        """
        if self._shared is None:
            raise StopUser()
        self._shared.sent += 1
        answer = self._shared.send(body, overrides)
        if self._checks and answer.error is None:
            found = self.check(answer.body)
            if found is False or (isinstance(found, str) and found):
                return answer._replace(error=CHECK_FAILED, message=found or "")
        return answer

    def _answered(self, answer: Any, latency: float) -> None:
        assert self._shared is not None
        self._fire(
            request_type=REQUEST_TYPE, name=self._shared.name,
            start_time=time.time() - latency, response_time=1000 * latency,
            response_length=getattr(answer, "length", 0), response=answer,
            context=self.context(),
            exception=None if answer.error is None else InvocationFailed(answer.error),
        )
        if answer.first_byte is not None:
            self.environment.stats.get(self._shared.name, "first byte").log(
                1000 * (answer.first_byte - answer.ended + latency), 0)

    @classmethod
    def step(cls) -> Step:
        """What the users of the class send together."""
        if cls.arrivals is None:
            raise STEP_FORM.error(got="none", allowed="arrivals such as PoissonArrivals(100)",
                                  where=f"{cls.__name__}.arrivals")
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
    streams: _Streams = user.environment.open_loop_streams
    members = streams.members.setdefault(type(user).__name__, [])
    members.append(user)
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
                    run = StepRun(step, user.request, streams.start, part=part, parts=parts,
                                  timeout_seconds=user.timeout_seconds, answered=user._answered,
                                  resumed=True)
                    streams.runs.append(run)
                    runs.append((run, gevent.spawn(run.run)))
            elif runs and runs[-1][1].ready():
                raise StopUser()
            streams.changed.wait(_POLL_SECONDS)
        for run, _ in runs:
            run.stop()
        gevent.joinall([greenlet for _, greenlet in runs])
    finally:
        members.remove(user)
        gevent.killall([greenlet for _, greenlet in runs])


class _Streams:
    """Who sends which share, and what was recorded; one for each Locust environment."""

    def __init__(self, environment: Any) -> None:
        self._environment = environment
        self.members: dict[str, list[OpenLoopSageMakerUser]] = {}
        self.runs: list[StepRun] = []
        self.start = 0.0
        self.version = 0
        self.changed = Event()
        self._shares: dict[str, tuple[int, int]] = {}
        self._start_at: float | None = None
        self._merged = Records(processes=0)
        self._by_worker: dict[str, float] = {}
        self._since = time.perf_counter(), time.process_time()

    def share_of(self, user: OpenLoopSageMakerUser) -> tuple[int, int] | None:
        """Part and number of parts; none before all users have been spawned."""
        name = type(user).__name__
        first, total = self._shares.get(name, (0, 0))
        part = first + self.members[name].index(user)
        return (part, total) if part < total else None

    def begin(self, **_: Any) -> None:
        """A new test."""
        self._start_at = None
        self._merged, self._by_worker = Records(processes=0), {}
        self.runs.clear()
        self._shares = {}
        self._since = time.perf_counter(), time.process_time()

    def share(self, **_: Any) -> None:
        """All users have been spawned: tell every process its place among them."""
        now = time.time()
        if self._start_at is None:
            self._start_at = now + _LEAD_SECONDS
        runner = self._environment.runner
        if not isinstance(runner, MasterRunner):
            self._take({"shares": {name: (0, count) for name, count
                                   in runner.user_classes_count.items()},
                        "start_at": self._start_at, "sent_at": now})
            return
        totals = runner.reported_user_classes_count
        firsts = dict.fromkeys(totals, 0)
        for client in runner.clients.all:
            shares = {}
            for name, count in client.user_classes_count.items():
                shares[name] = (firsts.get(name, 0), totals.get(name, 0))
                firsts[name] = firsts.get(name, 0) + count
            runner.send_message(_SHARES, {"shares": shares, "start_at": self._start_at,
                                          "sent_at": now}, client.id)

    def receive(self, environment: Any, msg: Any, **_: Any) -> None:
        """The master's word on this process's place."""
        self._take(msg.data)

    def _take(self, content: dict[str, Any]) -> None:
        if not self.version:
            keep_for_good()  # the users have made their clients by now
        wall = time.time()
        if abs(wall - content["sent_at"]) > _CLOCKS_AGREE:  # other machines' clocks may be wrong
            wall = content["sent_at"]
        self.start = time.perf_counter() + content["start_at"] - wall
        self._shares = {name: (first, total) for name, (first, total)
                        in content["shares"].items()}
        self.version += 1
        self.changed.set()
        self.changed.clear()

    # --- what was recorded ---------------------------------------------------------------------
    def taken(self) -> Records:
        """What this process recorded since the last time; its processor time with it."""
        records = Records.sum([run.take_interval()[0] for run in self.runs])
        since, cpu = self._since
        self._since = now, used = time.perf_counter(), time.process_time()
        records.processes = 1
        records.cpu_seconds = used - cpu
        records.cpu_share = records.cpu_seconds / max(now - since, 1e-9)
        return records

    def report(self, client_id: str, data: dict[str, Any], **_: Any) -> None:
        """On a worker: put records into Locust's own report."""
        data[_RECORDS] = self.taken().to_message()

    def merge(self, client_id: str, data: dict[str, Any], **_: Any) -> None:
        """On the master: add a worker's records."""
        if _RECORDS in data:
            self._add(client_id, Records.of_message(data[_RECORDS]))

    def _add(self, client_id: str, records: Records) -> None:
        if records.sent:  # a worker that idles says nothing about its load
            self._by_worker[client_id] = max(self._by_worker.get(client_id, 0.0),
                                             records.cpu_share)
        records.processes = 0
        self._merged.add(records)
        self._merged.processes = len(self._by_worker)

    def result(self) -> StepResult | None:
        """What all processes recorded, judged; none without a request."""
        if not isinstance(self._environment.runner, MasterRunner):
            self._add("local", self.taken())
        records = self._merged
        if not records.intended or self._start_at is None:
            return None
        seconds = max(time.time() - self._start_at, 1e-3)
        step = Step("open loop", seconds, ConstantArrivals(records.intended / seconds))
        records.answered_in_time = records.completed
        return result_of(step, records, self._start_at, streaming=records.first_byte.count > 0)

    def tell(self, **_: Any) -> None:
        """Print the merged percentiles."""
        result = self.result()
        if result is not None:
            for line in summary_lines(result):
                _log.info("%s", line)


def _prepare(environment: Any, runner: Any, **_: Any) -> None:
    """Locust has made its runner: take part in its messages."""
    streams = environment.open_loop_streams = _Streams(environment)
    hooks = environment.events
    hooks.test_start.add_listener(streams.begin)
    if isinstance(runner, WorkerRunner):
        runner.register_message(_SHARES, streams.receive)
        hooks.report_to_master.add_listener(streams.report)
        return
    hooks.spawning_complete.add_listener(streams.share)
    hooks.worker_report.add_listener(streams.merge)
    hooks.quit.add_listener(streams.tell)


_events: Any = events
_events.init.add_listener(_prepare)
