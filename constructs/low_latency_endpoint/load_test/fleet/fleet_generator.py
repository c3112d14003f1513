"""A load generator whose processes are tasks of the deployed fleet."""

from __future__ import annotations

import contextlib
import importlib.util
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...account.sessions import aws_errors_in_words
from ...errors import ConfigurationError, rule
from ...facts.limit_kinds import Range
from ...facts.load_test_fleet_rules import MASTER_PORT
from ...report.numbers import readable
from ..engine.generator_process import error_of
from ..engine.payloads import Payloads
from ..engine.steps import Progress, Step, StepResult, Watch, ignore_progress
from ..engine.target import Target
from .description import FleetDescription, find_fleet
from .exchange import CONTROL, MODULE, RUN, STATUS, RunFolder
from .task import BUCKET_VARIABLE, MASTER_VARIABLE, MODULE_VARIABLE, PORT_VARIABLE, RUN_VARIABLE
from .tasks import FLEET_STARTS, FleetTask, FleetTasks

WORKERS = Range(
    rule(
        "LLT124",
        "the number of the fleet's workers is out of range",
        fix="One worker sends some thousand requests per second. A new account runs few "
        "Fargate tasks (quota: Fargate On-Demand vCPU resource count).",
        source="/AmazonECS/latest/developerguide/service-quotas.html",
    ),
    "the number of workers",
    1,
    200,
    "workers",
)
FLEET_ANSWERS = rule(
    "LLT126",
    "the fleet stopped before its result was there",
    fix="Read the end of the task's log, in the fleet's log group.",
)
PAYLOADS_TRAVEL = rule(
    "LLT127",
    "the payload generator cannot be sent to the fleet",
    fix="Put it into a one-file module that imports only the standard library and the load "
    "generator image's packages, or write its payloads into a folder.",
)

_ADDRESS_SECONDS = 180.0
_READY_SECONDS = 420.0
_STOP_SECONDS = 120.0
_AFTER_STEP_SECONDS = 180.0
"""What a step may take beyond its own time: last answers, merging, S3."""
_PATIENCE_SECONDS = 180.0
"""Without a sign of this machine for so long, the master ends the run."""
_SIGNS = 6  # in that time
_LOOK_EVERY = 10.0
"""How often ECS is asked about the tasks while a step runs."""


class FleetGenerator:
    """Runs steps on the endpoint's load-test fleet, whose tasks live as long as this context."""

    def __init__(
        self,
        client: Callable[[str], Any],
        fleet: FleetDescription,
        target: Target,
        payloads: Payloads,
        *,
        workers: int,
        tell: Callable[[str], None],
        master_port: int = MASTER_PORT,
        poll_seconds: float = 1.0,
    ) -> None:
        self.workers: int = WORKERS.check(workers, "--fleet")
        if payloads.prompts is not None:
            payloads.prompts.check_processes(workers)
        self._module = _module_of(payloads)
        self.run_id = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        self.folder = RunFolder(client("s3"), fleet.bucket, self.run_id)
        self._fleet, self._target, self._payloads = fleet, target, payloads
        self._tasks = FleetTasks(client, fleet, self.run_id)
        self._tell, self._port, self._poll = tell, master_port, poll_seconds
        self._control: dict[str, Any] = {"step": 0}
        self._writing = threading.Lock()
        self._closed = threading.Event()

    @classmethod
    def of_endpoint(
        cls, client: Callable[[str], Any], target: Target, payloads: Payloads, **options: Any
    ) -> FleetGenerator:
        """On the fleet that is deployed for the target's endpoint (LLT123)."""
        with aws_errors_in_words():
            fleet = find_fleet(client, target.endpoint_name)
            return cls(client, fleet, target, payloads, **options)

    # ---------------------------------------------------------------------------------- start

    def __enter__(self) -> FleetGenerator:
        try:
            with aws_errors_in_words():
                self._start()
        except BaseException:
            self.close()
            raise
        return self

    def _start(self) -> None:
        if others := self._tasks.running():
            self._tell(
                f"{len(others)} task(s) of another run are still running in "
                f"{self._fleet.cluster}: {', '.join(others)}"
            )
        self.folder.write(
            RUN,
            {
                "target": self._target.to_dict(),
                "payloads": self._payloads.to_dict(),
                "workers": self.workers,
                "patience_seconds": _PATIENCE_SECONDS,
            },
        )
        self.folder.write(STATUS, {"state": "starting", "step": 0})
        self._write_control()
        region = self._fleet.region
        variables = {
            BUCKET_VARIABLE: self._fleet.bucket,
            RUN_VARIABLE: self.run_id,
            PORT_VARIABLE: str(self._port),
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
        }
        if self._module is not None:
            name, source = self._module
            self.folder.put(MODULE, source)
            variables[MODULE_VARIABLE] = name
        threading.Thread(target=self._show_life, name="fleet-sign-of-life", daemon=True).start()
        self._tasks.start("master", 1, variables)
        self._tell(f"Run {self.run_id}: the master is starting")
        master = self._wait_for_address()
        self._tasks.start("worker", self.workers, {**variables, MASTER_VARIABLE: master.address})
        zones = ", ".join(self._fleet.zones)
        self._tell(
            f"The master is at {master.address}; {self.workers} worker(s) are starting in {zones}"
        )
        self._wait_until_ready()
        self._tell("All workers are connected")

    def _wait_for_address(self) -> FleetTask:
        for _ in self._until(_ADDRESS_SECONDS):
            for master in self._tasks.described():
                if master.ending:
                    raise self._ended(master, FLEET_STARTS.error)
                if master.address:
                    return master
        raise FLEET_STARTS.error(
            got=f"no address within {readable(_ADDRESS_SECONDS)} s",
            allowed="a master with an address",
            where=self.run_id,
        )

    def _wait_until_ready(self) -> None:
        looked, told = 0.0, ""
        for now in self._until(_READY_SECONDS):
            status = self._status(0)
            if status["state"] == "ready":
                return
            if now - looked < min(_LOOK_EVERY, 5 * self._poll):
                continue
            looked = now
            tasks = self._tasks.described()
            for task in tasks:
                if task.ending:
                    raise self._ended(task, FLEET_STARTS.error)
            started = sum(task.kind == "worker" and task.status == "RUNNING" for task in tasks)
            text = f"{started} of {self.workers} worker(s) are running"
            if text != told:
                self._tell(text)
                told = text
        raise FLEET_STARTS.error(
            got=f"workers missing after {readable(_READY_SECONDS)} s",
            where=self.run_id,
            allowed=f"{self.workers} workers connected to their master",
        )

    # ------------------------------------------------------------------------------------ run

    def run(self, step: Step, progress: Watch = ignore_progress) -> StepResult:
        """Run one step on the fleet (LLT126)."""
        with aws_errors_in_words():
            return self._run(step, progress)

    def _run(self, step: Step, progress: Watch) -> StepResult:
        number = self._control["step"] + 1
        self._control = {"step": number, "content": step.to_dict()}
        self._write_control()
        seen, looked = -1.0, time.monotonic()
        for now in self._until(step.seconds + self._target.timeout_seconds + _AFTER_STEP_SECONDS):
            status = self._status(number)
            for content in status.get("progress", ()):
                if content["seconds"] > seen:
                    seen = content["seconds"]
                    if progress(Progress.of_message(content)) and "stop" not in self._control:
                        self._control = {**self._control, "stop": number}
                        self._write_control()
            if status["state"] == "done":
                return StepResult.of_dict(status["result"])
            if now - looked >= _LOOK_EVERY:
                looked = now
                self._check_alive()
        raise FLEET_ANSWERS.error(
            got=f"no result of step {step.name} in time", allowed="a result", where=self.folder.url
        )

    def _status(self, number: int) -> dict[str, Any]:
        """The master's status, as far as it is about this step; what it failed with is raised."""
        status = self.folder.read(STATUS)
        if status["state"] == "failed":
            raise error_of(status["failure"])
        return status if status["step"] == number else {"state": "waiting", "step": number}

    def _check_alive(self) -> None:
        for task in self._tasks.described():
            if task.ending:
                self._status(-1)  # it may have said why
                raise self._ended(task, FLEET_ANSWERS.error)

    def _ended(
        self, task: FleetTask, error: Callable[..., ConfigurationError]
    ) -> ConfigurationError:
        log = self._tasks.last_words(task)
        got = f"{task.kind} {task.id} {task.status.lower()}: {task.reason or 'no reason given'}"
        return error(
            got=got + (f"\n{log}" if log else ""),
            allowed="a running task",
            where=f"log group {self._fleet.log_group}",
        )

    # ------------------------------------------------------------------------------------ end

    def close(self) -> None:
        """Stop every task of the run and wait until ECS says so; a second time does nothing."""
        if self._closed.is_set():
            return
        self._closed.set()
        with _no_interrupts():
            try:
                self._stop()
            except Exception as problem:  # whatever ended the run counts more
                self._tell(
                    f"The fleet could not be stopped: {problem}\nIt ends by itself within "
                    f"{readable(_PATIENCE_SECONDS / 60)} minutes; its tasks: "
                    f"{', '.join(self._tasks.arns) or 'none'}"
                )

    def _stop(self) -> None:
        if not self._tasks.arns and not self._tasks.running(self.run_id):
            return
        self._tell("Stopping the fleet")
        self._tasks.stop("load test ended")
        for _ in self._until(_STOP_SECONDS):
            if all(task.ended for task in self._tasks.described()):
                break
        left = [task.arn for task in self._tasks.described() if not task.ended]
        if left := list(dict.fromkeys([*self._tasks.running(self.run_id), *left])):
            self._tell(
                "STILL RUNNING, stop them by hand: "
                + "; ".join(
                    f"aws ecs stop-task --cluster {self._fleet.cluster} --task {arn}"
                    for arn in left
                )
            )
        else:
            self._tell("The fleet is stopped; nothing of it runs any more")

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write_control(self) -> None:
        with self._writing:
            self.folder.write(CONTROL, self._control)

    def _show_life(self) -> None:
        while not self._closed.wait(_PATIENCE_SECONDS / _SIGNS):
            # The next sign may get through; the master has patience for several.
            with contextlib.suppress(Exception):
                self._write_control()

    def _until(self, seconds: float) -> Iterator[float]:
        """Poll for so long; gives the time."""
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            yield now
            time.sleep(self._poll)


@contextlib.contextmanager
def _no_interrupts() -> Iterator[None]:
    """Let no second Ctrl-C leave tasks behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _module_of(payloads: Payloads) -> tuple[str, bytes] | None:
    """Name and source of the module whose function makes the payloads; None for given bodies."""
    if payloads.generator is None:
        return None
    name = payloads.generator.partition(":")[0]
    spec = importlib.util.find_spec(name) if "." not in name else None
    if (
        spec is None
        or not spec.origin
        or not spec.origin.endswith(".py")
        or Path(spec.origin).name == "__init__.py"
    ):
        raise PAYLOADS_TRAVEL.error(got=payloads.generator, allowed="a module of one .py file")
    return name, Path(spec.origin).read_bytes()
