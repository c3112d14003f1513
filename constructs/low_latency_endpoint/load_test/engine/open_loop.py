"""A Locust user whose requests come when they are due, not when the last answer has come."""

from __future__ import annotations

from .users import SageMakerUser  # isort: skip  # first: Locust patches the standard library

import logging
import time
from dataclasses import replace
from typing import Any, ClassVar

import gevent
from gevent.event import Event
from locust import events
from locust.exception import StopUser
from locust.runners import STATE_MISSING, STATE_RUNNING, STATE_SPAWNING, MasterRunner, WorkerRunner

from ...errors import LowLatencyEndpointError
from ..search.measured_steps import summary_lines
from .arrivals import Arrivals, ConstantArrivals
from .invoking import Invocation
from .locust_endings import FAREWELL_SECONDS, hear_those_who_left, invalid, sends_open_loop
from .measurement import Measurement
from .sending import StepRun, keep_for_good
from .steps import STEP_FORM, Step, StepResult

_log = logging.getLogger(__name__)
_SHARES, _FINISH = "low-latency-shares", "low-latency-finish"
_RECORDS = "low_latency_records"
_LEAD_SECONDS = 0.3
_CLOCKS_AGREE = 1.0
_A_WEEK = 7 * 24 * 3600.0
_POLL_SECONDS = 0.1
#: Without --stop-timeout, answers to what is under way when Locust stops are waited for so long:
#: the last requests to a healthy endpoint are no failures.
_LAST_ANSWERS_SECONDS = 1.0
#: For the last report of a worker whose users have ended.
_LAST_REPORT_SECONDS = 10.0


class Streams:
    """Who sends which share, and what was recorded; one for each Locust environment."""

    def __init__(self, environment: Any) -> None:
        self._environment = environment
        self.members: dict[str, list[Any]] = {}
        self.runs: list[StepRun] = []
        self.start = 0.0
        self.version = 0
        self.changed = Event()
        self._reset()

    def _reset(self) -> None:
        self._shares: dict[str, tuple[int, int]] = {}
        self._start_at: float | None = None
        self._ended_at: float | None = None
        self._over = self._told = False
        self._judged = Event()
        self._load = _Load()
        self._merged = Measurement()
        self._by_worker: dict[str, _Load] = {}
        self._finished: set[str] = set()

    # --- shares --------------------------------------------------------------------------------
    def join(self, user: Any) -> None:
        """A user begins to send."""
        self.members.setdefault(type(user).__name__, []).append(user)
        self._load.resume()

    def leave(self, user: Any) -> None:
        """A user sends no more."""
        self.members[type(user).__name__].remove(user)
        if not any(self.members.values()):
            self._load.pause()

    def share_of(self, user: Any) -> tuple[int, int] | None:
        """Part and number of parts; none before all users have been spawned."""
        name = type(user).__name__
        first, total = self._shares.get(name, (0, 0))
        part = first + self.members[name].index(user)
        return (part, total) if part < total else None

    def begin(self, **_: Any) -> None:
        """A new test."""
        self._reset()
        self.runs.clear()

    def share(self, **_: Any) -> None:
        """All users have been spawned: tell every process its place among them."""
        runner = self._environment.runner
        if not isinstance(runner, MasterRunner):
            self._start_at = self._start_at or time.time() + _LEAD_SECONDS
            self._take(
                {
                    "shares": {
                        name: (0, count) for name, count in runner.user_classes_count.items()
                    },
                    "start_at": self._start_at,
                    "sent_at": time.time(),
                }
            )
            return
        self._share_among_workers(runner)
        if self._reported_fewer(runner):
            gevent.spawn(self._share_when_reported, runner)

    def _share_among_workers(self, runner: Any) -> None:
        totals = dict(runner.reported_user_classes_count)
        if not any(totals.values()):
            return
        self._start_at = self._start_at or time.time() + _LEAD_SECONDS
        firsts = dict.fromkeys(totals, 0)
        for client in runner.clients.all:
            shares = {}
            for name, count in client.user_classes_count.items():
                shares[name] = (firsts.get(name, 0), totals.get(name, 0))
                firsts[name] = firsts.get(name, 0) + count
            runner.send_message(
                _SHARES,
                {"shares": shares, "start_at": self._start_at, "sent_at": time.time()},
                client.id,
            )

    @staticmethod
    def _reported_fewer(runner: Any) -> bool:
        reported = runner.reported_user_classes_count
        return any(
            reported[name] < count for name, count in runner.target_user_classes_count.items()
        )

    def _share_when_reported(self, runner: Any) -> None:
        """Locust waits one second for what its workers report, and a busy one may take longer."""
        before = dict(runner.reported_user_classes_count)
        while runner.state in (STATE_SPAWNING, STATE_RUNNING) and self._ended_at is None:
            reported = dict(runner.reported_user_classes_count)
            if any(count > before.get(name, 0) for name, count in reported.items()):
                self._share_among_workers(runner)
                before = reported
            if not self._reported_fewer(runner):
                return
            gevent.sleep(_POLL_SECONDS)

    def receive(self, environment: Any, msg: Any, **_: Any) -> None:
        """The master's word on this process's place."""
        self._take(msg.data)

    def _take(self, content: dict[str, Any]) -> None:
        if not self.version:
            keep_for_good()  # the users have made their clients by now
        if not self._shares:
            self._load = _Load()  # of sending, not of making users
            self._load.resume()
        wall = time.time()
        if abs(wall - content["sent_at"]) > _CLOCKS_AGREE:  # other machines' clocks may be wrong
            wall = content["sent_at"]
        self.start = time.perf_counter() + content["start_at"] - wall
        self._shares = {name: (first, total) for name, (first, total) in content["shares"].items()}
        self.version += 1
        self.changed.set()
        self.changed.clear()

    # --- what was recorded ---------------------------------------------------------------------
    def _taken(self) -> dict[str, Any]:
        """This process's records since the last call."""
        records = Measurement.sum([run.take_interval()[0] for run in self.runs])
        seconds, records.cpu_seconds = self._load.take()
        return {"records": records.to_message(), "seconds": seconds, "last": self._over}

    def report(self, client_id: str, data: dict[str, Any], **_: Any) -> None:
        """On a worker: put records into Locust's own report."""
        data[_RECORDS] = self._taken()

    def merge(self, client_id: str, data: dict[str, Any], **_: Any) -> None:
        """On the master: add a worker's records."""
        if _RECORDS not in data:
            return
        self._add(client_id, data[_RECORDS])

    def _add(self, client_id: str, content: dict[str, Any]) -> None:
        records = Measurement.of_message(content["records"])
        if records.sent or client_id in self._by_worker:  # one that idles says nothing of its load
            load = self._by_worker.setdefault(client_id, _Load())
            load.add(content["seconds"], records.cpu_seconds)
        self._merged.add(records)
        if content["last"]:
            self._finished.add(client_id)

    def _missing(self) -> set[str]:
        """Workers that sent and have not reported for the last time."""
        return set(self._by_worker) - self._finished

    def result(self) -> StepResult | None:
        """What all processes recorded, judged; none without a request."""
        records = self._merged
        if not records.intended or self._start_at is None:
            return None
        records.processes = len(self._by_worker)
        records.cpu_share = max((each.share for each in self._by_worker.values()), default=0.0)
        seconds = max((self._ended_at or time.time()) - self._start_at, 1e-3)
        step = Step("open loop", seconds, ConstantArrivals(records.intended / seconds))
        records.answered_in_time = records.completed
        result = StepResult.of(step, records, self._start_at)
        lost, missing = result.sent - result.completed - result.failed, len(self._missing())
        if lost or missing:
            result = replace(
                result,
                warnings=(
                    *result.warnings,
                    (
                        f"{lost} requests were sent of which nothing is known, and {missing} workers ended "
                        "without a last report: the figures leave out what these would have told"
                    ),
                ),
            )
        return result

    # --- the end -------------------------------------------------------------------------------
    def stopping(self, **_: Any) -> None:
        """No more is sent; what was due so far is waited for."""
        if self._ended_at is None:
            self._ended_at = time.time()
        self._load.pause()

    def stopped(self, **_: Any) -> None:
        """This process's users have ended; on the master, perhaps not yet the workers'."""
        runner = self._environment.runner
        self._over = True
        if isinstance(runner, WorkerRunner):
            if self._start_at is not None or self._shares:
                # Now, not with the next report in three seconds: so the master has all when it
                # hears that there are no more users. Locust itself forgets it on Ctrl-C.
                runner._send_stats()
            return
        if isinstance(runner, MasterRunner):
            if self._start_at is not None:
                self._finish_workers(runner)
                hear_those_who_left(self._environment, self._missing)
        else:
            self._add("local", self._taken())
            self._finished.add("local")
        self.tell()
        if self._start_at is not None and not self._told and sends_open_loop(self._environment):
            invalid(self._environment, "no request was sent")
        self._judged.set()

    def settle(self, **_: Any) -> None:
        """Locust chooses its exit code next: the test is judged first, whoever stops it."""
        runner = self._environment.runner
        if isinstance(runner, WorkerRunner):
            return
        if runner.state in (STATE_SPAWNING, STATE_RUNNING):
            if isinstance(runner, MasterRunner):
                runner.stop(send_stop_to_client=False)  # as its quit() does
            else:
                runner.stop()
        if self._ended_at is not None:
            self._judged.wait(
                _LAST_REPORT_SECONDS + FAREWELL_SECONDS + (self._environment.stop_timeout or 0)
            )

    def _finish_workers(self, runner: Any) -> None:
        """Locust's master that quits waits half a second for workers, however long theirs take."""
        ends = time.perf_counter() + _LAST_REPORT_SECONDS + (self._environment.stop_timeout or 0)
        asked: set[str] = set()
        while time.perf_counter() < ends:
            waited = {
                client.id for client in runner.clients.all if client.state != STATE_MISSING
            } - self._finished
            if not waited:
                return
            for client_id in waited - asked:
                runner.send_message(_FINISH, None, client_id)
            asked |= waited
            gevent.sleep(_POLL_SECONDS)

    def finish(self, environment: Any, **_: Any) -> None:
        """On a worker: the master waits for the last report."""
        if self._over:
            environment.runner._send_stats()
        elif self._ended_at is None:  # else it is stopping, and reports when it has
            environment.runner.stop()

    def tell(self, **_: Any) -> None:
        """Print the merged percentiles, once for each test."""
        if self._told:
            return
        result = self.result()
        if result is None:
            return
        self._told = True
        for line in summary_lines(result):
            _log.info("%s", line)
        if result.client_bound:
            invalid(self._environment, "client-bound")
        elif self._missing():
            invalid(self._environment, "of what some workers sent nothing is known")


class _Load:
    """Processor time of a process while its users send: of this one, or as a worker told it."""

    def __init__(self) -> None:
        self._since: tuple[float, float] | None = None
        self._seconds = self._cpu_seconds = 0.0

    @property
    def share(self) -> float:
        return self._cpu_seconds / self._seconds if self._seconds else 0.0

    def add(self, seconds: float, cpu_seconds: float) -> None:
        self._seconds += seconds
        self._cpu_seconds += cpu_seconds

    def resume(self) -> None:
        if self._since is None:
            self._since = time.perf_counter(), time.process_time()

    def pause(self) -> None:
        if self._since is not None:
            since, cpu = self._since
            self.add(time.perf_counter() - since, time.process_time() - cpu)
            self._since = None

    def take(self) -> tuple[float, float]:
        """Seconds that passed and those of processor time, since the last time."""
        runs = self._since is not None
        self.pause()
        taken = self._seconds, self._cpu_seconds
        self._seconds = self._cpu_seconds = 0.0
        if runs:
            self.resume()
        return taken


def take_part(environment: Any, runner: Any, **_: Any) -> None:
    """Locust has made its runner: take part in its messages."""
    streams = environment.open_loop_streams = Streams(environment)
    hooks = environment.events
    hooks.test_start.add_listener(streams.begin)
    hooks.test_stopping.add_listener(streams.stopping)
    hooks.test_stop.add_listener(streams.stopped)
    if isinstance(runner, WorkerRunner):
        runner.register_message(_SHARES, streams.receive)
        # Beside the loop that reads messages, which a stop would hold up.
        runner.register_message(_FINISH, streams.finish, concurrent=True)
        hooks.report_to_master.add_listener(streams.report)
        return
    hooks.spawning_complete.add_listener(streams.share)
    hooks.worker_report.add_listener(streams.merge)
    hooks.quitting.add_listener(streams.settle)
    hooks.quit.add_listener(streams.tell)


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
