"""The load generator's processes: one that sends, or a master and the workers that send for it.

:class:`.generator_process.GeneratorProcess` starts it, and they exchange JSON lines. Workers and
master speak Locust's own protocol, in whose messages steps go out and records come back.
"""

from __future__ import annotations

import locust  # noqa: F401  # isort: skip  # first: it patches the standard library

import argparse
import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any, cast

import boto3
import gevent
from gevent.fileobject import FileObjectPosix
from gevent.queue import Empty, Queue
from locust.env import Environment
from locust.event import Events

from .generator_process import GENERATOR, NO_REPORT, error_of, problem_of
from .invoking import SageMakerInvoker
from .measurement import Invocation, Measurement
from .memory import available_bytes, check_bodies
from .payloads import Payloads
from .processors import available_processors, fix_of_silence, not_started, start_seconds
from .sending import StepRun, keep_for_good
from .steps import Progress, Step, StepResult
from .target import Target

if TYPE_CHECKING:
    from .conversation_sessions import ConversationSessions

_MODULE = "low_latency_endpoint.load_test.engine.generator"
#: A step begins this long after the message that announces it, so that all workers have it.
_LEAD_SECONDS = 0.3
#: Clocks of machines that differ by more are not used; the message's arrival is.
_CLOCKS_AGREE = 1.0
_REPORT_SECONDS = 1.0
#: Waiting for a message of a worker, and between looks for processes that ended.
_LOOK_SECONDS = 0.5
#: A worker of another machine from which nothing was heard for so long is lost.
_SILENCE_SECONDS = 15.0
#: What a busy process of this machine may take beyond a step and its last answers.
_BUSY_SECONDS = 60.0

_HELLO, _CONFIGURE, _READY = "low-latency-hello", "low-latency-configure", "low-latency-ready"
_STEP, _STOP = "low-latency-step", "low-latency-stop"
_INTERVAL, _RECORDS = "low-latency-interval", "low-latency-records"


class _StepWorker:
    """Runs the steps that the master sends to this process."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._target: Target | None = None
        self._invoke: Callable[[int], Invocation] = _unconfigured
        self._body_bytes = 0
        self._sessions: ConversationSessions | None = None
        self._running: tuple[int, StepRun] | None = None
        runner.register_message(_CONFIGURE, self._configure, concurrent=True)
        runner.register_message(_STEP, self._step, concurrent=True)
        runner.register_message(_STOP, self._stop, concurrent=True)

    def announce(self) -> None:
        """Tell the master that messages can come."""
        self._runner.send_message(_HELLO)

    def _configure(self, environment: Any, msg: Any, **_: Any) -> None:
        content = msg.data
        try:
            self._target = target = Target.of_dict(content["target"])
            payloads = Payloads.of_dict(content["payloads"])
            self._body_bytes = payloads.largest_bytes or len(payloads.next(0))
            session = boto3.Session(
                profile_name=content["profile"], region_name=content["target"]["region"]
            )
            invoke = SageMakerInvoker(target, session=session).invoke
            self._invoke = lambda number: invoke(payloads.next(number), payloads.parameters(number))
            if payloads.prompts is not None and payloads.prompts.sessions:
                from .conversation_sessions import ConversationSessions

                self._sessions = ConversationSessions(target, payloads, invoke, session)
                self._invoke = self._sessions.invoke
        except Exception as problem:
            self._runner.send_message(_READY, {"problem": problem_of(problem)})
        else:
            keep_for_good()
            self._runner.send_message(_READY, {"problem": None})

    def _step(self, environment: Any, msg: Any, **_: Any) -> None:
        content = msg.data
        try:
            records = self._run(content)
        except Exception as problem:
            message = {"problem": problem_of(problem)}
        else:
            message = {"records": records.to_message()}
        self._runner.send_message(_RECORDS, {"step": content["number"], **message})

    def _stop(self, environment: Any, msg: Any, **_: Any) -> None:
        if self._running is not None and self._running[0] == msg.data["step"]:
            self._running[1].stop()

    def _run(self, content: Mapping[str, Any]) -> Measurement:
        lead = content["start_at"] - time.time()
        if abs(lead - _LEAD_SECONDS) > _CLOCKS_AGREE:
            lead = _LEAD_SECONDS
        target = self._target
        step = Step.of_dict(content["step"])
        users = math.ceil((step.users or 0) / content["parts"])
        check_bodies(users, self._body_bytes, available_bytes(), f"step {step.name}")
        if self._sessions is not None:
            self._sessions.begin(step, content["part"], content["parts"])
        run = StepRun(
            step,
            self._invoke,
            time.perf_counter() + lead,
            part=content["part"],
            parts=content["parts"],
            timeout_seconds=target.timeout_seconds if target else 60.0,
            streaming=target.streaming if target else False,
            tokens=target.tokens if target else None,
        )
        self._running = content["number"], run
        reporter = gevent.spawn(self._report, run, content["number"], lead)
        try:
            return run.run()
        finally:
            reporter.kill()
            if self._sessions is not None:
                self._sessions.end()

    def _report(self, run: StepRun, number: int, lead: float) -> None:
        gevent.sleep(max(0.0, lead))
        while True:
            gevent.sleep(_REPORT_SECONDS)
            records, seconds = run.take_interval()
            self._runner.send_message(
                _INTERVAL, {"step": number, "records": records.to_message(), "seconds": seconds}
            )


class _StepMaster:
    """Gives steps to workers, its own process among them when it is the only one."""

    def __init__(self, content: Mapping[str, Any], emit: Callable[[dict[str, Any]], None]) -> None:
        self._content, self._emit = content, emit
        self._local: list[subprocess.Popen[bytes]] = []
        self._messages: Queue[tuple[str, str, dict[str, Any]]] = Queue()
        self._workers: list[str] = []
        self._number = 0
        self._stopped_at: float | None = None
        environment = Environment(events=Events())  # type: ignore[no-untyped-call]
        single = content["processes"] == 1 and not content["expect_workers"]
        if single:
            self._runner: Any = environment.create_local_runner()
        else:
            host, _, number = content["bind"].rpartition(":")
            self._runner = environment.create_master_runner(
                "*" if host == "0.0.0.0" else host, int(number)
            )
        for kind in (_HELLO, _READY, _INTERVAL, _RECORDS):
            self._runner.register_message(kind, self._receive)
        port: int | None = None if single else self._runner.server.port
        emit({"listening": port})
        wanted = 1 if single else content["expect_workers"] or content["processes"]
        if single:
            _StepWorker(self._runner).announce()
        elif port is not None and not content["expect_workers"]:
            self._local = [self._start_worker(port) for _ in range(wanted)]
        self._await_workers(wanted)
        emit({"ready": len(self._workers)})

    def _receive(self, environment: Any, msg: Any, **_: Any) -> None:
        self._messages.put((msg.type, msg.node_id, msg.data or {}))

    @staticmethod
    def _start_worker(port: int) -> subprocess.Popen[bytes]:
        # Its standard input stays open as long as this process lives, however it ends.
        return subprocess.Popen(
            [sys.executable, "-m", _MODULE, "--worker", f"127.0.0.1:{port}", "--parent"],
            stdin=subprocess.PIPE,
            stdout=sys.stderr.fileno(),
        )

    def _await_workers(self, wanted: int) -> None:
        """Until so many workers have target and payloads; for remote ones without an end."""
        processors = available_processors()
        deadline = time.perf_counter() + start_seconds(wanted, processors)
        while len(self._workers) < wanted:
            kind, worker, data = self._next(1.0)
            if kind == _HELLO:
                self._runner.send_message(
                    _CONFIGURE,
                    {
                        "target": self._content["target"],
                        "payloads": self._content["payloads"],
                        "profile": self._content["profile"],
                    },
                    worker,
                )
            elif kind == _READY:
                if data["problem"] is not None:
                    raise error_of(data["problem"])
                self._workers.append(worker)
            if not self._content["expect_workers"] and time.perf_counter() > deadline:
                raise not_started(len(self._workers), wanted, processors)

    def _next(self, seconds: float) -> tuple[str, str, dict[str, Any]]:
        """The next message of a worker, or none; fails when a worker of this machine ended."""
        try:
            message: tuple[str, str, dict[str, Any]] = self._messages.get(timeout=seconds)
        except Empty:
            self._check_ended()
            return "", "", {}
        return message

    def _check_ended(self) -> None:
        """Fail when a worker of this machine has ended."""
        for number, process in enumerate(self._local):
            status = process.poll()
            if status is not None:
                raise GENERATOR.error(
                    got=f"worker {number} ended with status {status}", allowed="running workers"
                )

    def run(self, step: Step) -> None:
        """Run one step and emit its progress and its result."""
        self._number += 1
        self._stopped_at = None
        start_at = time.time() + _LEAD_SECONDS
        workers = list(self._workers)
        for part, worker in enumerate(workers):
            self._send(
                _STEP,
                worker,
                {
                    "step": step.to_dict(),
                    "number": self._number,
                    "part": part,
                    "parts": len(workers),
                    "start_at": start_at,
                },
            )
        self._runner.state = "running"
        done: dict[str, Measurement] = {}
        pending: dict[str, tuple[Measurement, float]] = {}
        fix = "" if self._content["expect_workers"] else _fix_here(len(workers))
        heard = _Heard(workers, self._patience(step), fix)
        while len(done) < len(workers):
            kind, worker, data = self._next(_LOOK_SECONDS)
            if heard.looks():
                self._check_ended()
            if kind and data.get("step") == self._number:
                heard.of(worker)
                if kind == _INTERVAL:
                    if worker in pending:
                        self._progress(pending, start_at)
                    pending[worker] = Measurement.of_message(data["records"]), data["seconds"]
                    if len(pending) == len(workers) - len(done):
                        self._progress(pending, start_at)
                elif kind == _RECORDS:
                    if "problem" in data:
                        raise error_of(data["problem"])
                    done[worker] = Measurement.of_message(data["records"])
            heard.check(done)
        self._runner.state = "stopped"
        if self._stopped_at is not None and self._stopped_at < start_at + step.seconds:
            step = replace(step, seconds=self._stopped_at - start_at)
        records = Measurement.sum([done[worker] for worker in workers])
        prompts = self._content["payloads"].get("prompts") or {}
        conversations = prompts["conversations"] if prompts.get("turns", 1) > 1 else 0
        result = StepResult.of(step, records, start_at, conversations=conversations)
        self._emit({"result": result.to_dict()})

    def _patience(self, step: Step) -> float:
        """Seconds for which a worker may be silent; one of this machine that lives is only busy."""
        if self._content["expect_workers"]:
            return _SILENCE_SECONDS
        return step.seconds + float(self._content["target"]["timeout_seconds"]) + _BUSY_SECONDS

    def stop(self) -> None:
        """Let the workers send no more of the step that runs; it ends with its last answers."""
        self._stopped_at = time.time()
        for worker in self._workers:
            self._send(_STOP, worker, {"step": self._number})

    def _send(self, kind: str, worker: str, content: dict[str, Any]) -> None:
        if worker == "local":
            # The local runner calls listeners in the greenlet that sends.
            gevent.spawn(self._runner.send_message, kind, content)
        else:
            self._runner.send_message(kind, content, worker)

    def _progress(self, pending: dict[str, tuple[Measurement, float]], start_at: float) -> None:
        records = Measurement.sum([one for one, _ in pending.values()])
        seconds = max(seconds for _, seconds in pending.values())
        pending.clear()
        progress = Progress(**vars(records), seconds=time.time() - start_at, interval=seconds)
        self._emit({"progress": progress.to_message()})

    def close(self) -> None:
        """End the workers, the remote ones too."""
        if hasattr(self._runner, "clients"):
            self._runner.quit()
        for process in self._local:
            cast(IO[bytes], process.stdin).close()
        for process in self._local:
            try:
                process.wait(timeout=3)
            except subprocess.TimeoutExpired:
                process.kill()


class _Heard:
    """When each worker was heard last, by the time in which this process itself could listen."""

    def __init__(self, workers: Sequence[str], patience: float, fix: str = "") -> None:
        self._patience, self._fix = patience, fix
        self._looked = self._ended_looked = time.perf_counter()
        self._at = dict.fromkeys(workers, self._looked + _LEAD_SECONDS)

    def looks(self) -> bool:
        """Note that messages were looked for; whether it is time to look at the processes, too."""
        now = time.perf_counter()
        # A master that stood still for some seconds heard nobody: that is no one's silence.
        stood_still = max(0.0, now - self._looked - _LOOK_SECONDS)
        self._at = {worker: at + stood_still for worker, at in self._at.items()}
        self._looked = now
        if now - self._ended_looked < _LOOK_SECONDS:
            return False
        self._ended_looked = now
        return True

    def of(self, worker: str) -> None:
        """Note a message of a worker."""
        self._at[worker] = time.perf_counter()

    def check(self, done: Container[str]) -> None:
        """Fail when a worker that is not done was silent for too long."""
        for number, (worker, at) in enumerate(self._at.items()):
            silent = time.perf_counter() - at
            if worker not in done and silent > self._patience:
                raise NO_REPORT.error(
                    got=f"no report from worker {number} for {silent:.0f} s",
                    allowed="a report every second",
                    fix=self._fix,
                )


def _fix_here(workers: int) -> str:
    return fix_of_silence(workers, available_processors())


def _unconfigured(number: int) -> Invocation:
    raise RuntimeError("the worker was sent a step before its target")


def main(arguments: list[str] | None = None) -> None:
    """Run the process that the command line asks for."""
    parser = argparse.ArgumentParser(prog=f"python -m {_MODULE}")
    parser.add_argument("--worker", metavar="HOST:PORT", help="be a worker of this master")
    parser.add_argument(
        "--parent",
        action="store_true",
        help="end when standard input ends (how local workers notice)",
    )
    options = parser.parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    if options.worker:
        host, _, port = options.worker.rpartition(":")
        _run_worker(host, int(port), options.parent)
    else:
        _run_master()


def _run_worker(host: str, port: int, parent: bool) -> None:
    if parent:
        gevent.spawn(_end_with, sys.stdin.fileno())
    environment = Environment(events=Events())  # type: ignore[no-untyped-call]
    runner = environment.create_worker_runner(host, port)
    _StepWorker(runner).announce()
    runner.greenlet.join()


def _run_master() -> None:
    emit = _private_output()
    requests: Queue[dict[str, Any]] = Queue()
    master: _StepMaster | None = None

    def listen() -> None:
        """End with the last line, in the middle of a step too."""
        for line in _lines(sys.stdin.fileno()):
            message = json.loads(line)
            if "stop" not in message:
                requests.put(message)
            elif master is not None:
                master.stop()
        if master is not None:
            master.close()
        os._exit(0)

    gevent.spawn(listen)
    try:
        master = _StepMaster(requests.get(), emit)
        while True:
            master.run(Step.of_dict(requests.get()["run"]))
    except Exception as problem:
        emit({"failed": problem_of(problem)})
        if master is not None:
            master.close()
        raise


def _private_output() -> Callable[[dict[str, Any]], None]:
    """Standard output for the protocol alone: what user code prints goes to standard error."""
    descriptor = os.dup(1)
    os.dup2(2, 1)

    def emit(message: dict[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):  # the reader is gone; its end of input tells us
            while data:
                data = data[os.write(descriptor, data) :]

    return emit


def _lines(descriptor: int) -> Iterable[bytes]:
    """Lines of a pipe, without holding up other greenlets."""
    lines: Iterable[bytes] = FileObjectPosix(descriptor, "rb", closefd=False)
    return lines


def _end_with(descriptor: int) -> None:
    """End this process at once when its parent does, whatever it was doing."""
    for _ in _lines(descriptor):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
