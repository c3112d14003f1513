"""A load generator whose processes are tasks of the deployed fleet."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...account.sessions import aws_errors_in_words
from ...errors import ConfigurationError, rule
from ...errors.shell_words import shell_word
from ...facts.limit_kinds import Range
from ...facts.load_test_fleet_rules import MASTER_PORT, descriptions_path
from ...report.numbers import readable
from ..engine.generator_process import error_of
from ..engine.payloads import Payloads
from ..engine.steps import OnSecond, Progress, Step, StepResult, ignore_progress
from ..engine.target import Target
from .task import (
    BUCKET_VARIABLE,
    CONTROL,
    MASTER_VARIABLE,
    MODULE,
    MODULE_VARIABLE,
    PORT_VARIABLE,
    RUN,
    RUN_VARIABLE,
    STATUS,
    RunFolder,
)

ONE_FLEET = rule(
    "LLT170",
    "this endpoint has several load-test fleets",
    fix="Delete the stacks of all fleets but one. The command cannot tell which fleet to start.",
)
FLEET_DEPLOYED = rule(
    "LLT123",
    "this endpoint has no load-test fleet in this account and region",
    fix="Deploy one: cdk deploy --all -c load-test-fleet=true, or add a LoadTestFleet. "
    "Check --region and --profile.",
)
FLEET_STARTS = rule(
    "LLT125",
    "the fleet's tasks did not start",
    fix="Read ECS's message above. CannotPullContainerError, ResourceInitializationError: the "
    "subnets do not reach ECR, S3 or Logs (interface_endpoints of LoadTestFleet). Capacity: "
    "use fewer workers, or try later.",
    source="/AmazonECS/latest/developerguide/stopped-task-error-codes.html",
)
WORKERS = Range(
    rule(
        "LLT124",
        "the number of the fleet's workers is out of range",
        fix="One worker sends some thousand requests per second. New accounts run few Fargate "
        "tasks (quota: Fargate On-Demand vCPU resource count).",
        source="/AmazonECS/latest/developerguide/service-quotas.html",
    ),
    "the number of workers",
    1,
    200,
    "workers",
)
FLEET_ANSWERS = rule(
    "LLT126",
    "the load-test fleet stopped before it wrote a result",
    fix="Read the end of the task's log, in the fleet's log group.",
)
PAYLOADS_TRAVEL = rule(
    "LLT127",
    "the payload generator cannot be sent to the fleet",
    fix="Use a one-file module that imports only the standard library and the load "
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
_RUNTIME_URL = "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME"
"""Where botocore takes the runtime's URL from."""
_TASKS_PER_CALL = 10  # https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_RunTask.html
_DESCRIBED_PER_CALL = 100
_LOG_LINES = 12


@dataclass(frozen=True)
class FleetDescription:
    """What a run needs to know of the fleet."""

    cluster: str
    #: ARNs of the task definitions.
    master: str
    worker: str
    #: Where tasks run, one subnet for each client zone.
    subnets: tuple[str, ...]
    zones: tuple[str, ...]
    security_group: str
    bucket: str
    log_group: str
    #: What workers in each subnet call; empty when the runtime's own name will do.
    zonal_urls: tuple[str, ...] = ()

    @property
    def region(self) -> str:
        """The fleet's Region."""
        return self.worker.split(":")[3]


def find_fleet(client: Any, endpoint_name: str) -> FleetDescription:
    """Read the description of an endpoint's fleet (LLT123, LLT170)."""
    path = descriptions_path(endpoint_name)
    pages = client("ssm").get_paginator("get_parameters_by_path").paginate(Path=path)
    found = [parameter for page in pages for parameter in page["Parameters"]]
    if not found:
        raise FLEET_DEPLOYED.error(
            got=f"no parameter below {path}",
            allowed="a deployed LoadTestFleet",
            where=endpoint_name,
        )
    if len(found) > 1:
        raise ONE_FLEET.error(
            got=", ".join(sorted(each["Name"] for each in found)),
            allowed="one",
            where=endpoint_name,
        )
    name, value = found[0]["Name"], found[0]["Value"]
    try:
        content = json.loads(value)
        content.setdefault("zonal_urls", ())
        fields = {key: content[key] for key in FleetDescription.__dataclass_fields__}
        lists = {key: tuple(fields[key]) for key in ("subnets", "zones", "zonal_urls")}
        return FleetDescription(**{**fields, **lists})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FLEET_DEPLOYED.error(
            got=f"{name} holds {value[:200]!r}",
            where=endpoint_name,
            allowed="the description that this version's LoadTestFleet writes",
            fix="Deploy the fleet again with this version of the library.",
        ) from error


@dataclass(frozen=True)
class _FleetTask:
    """A task as ECS describes it."""

    arn: str
    kind: str  # master or worker
    status: str
    address: str = ""  # empty until it has one
    reason: str = ""  # why it stopped; empty while it runs

    @property
    def id(self) -> str:
        """The last part of the ARN."""
        return self.arn.rpartition("/")[2]

    @property
    def ending(self) -> bool:
        """Whether it has ended, or is about to."""
        return self.ended or self.status in ("DEACTIVATING", "STOPPING")

    @property
    def ended(self) -> bool:
        """Whether its containers have ended; its network interface may still be there."""
        return self.status in ("DEPROVISIONING", "STOPPED", "DELETED")


class FleetTasks:
    """The tasks of one run; each is started by the run's name, so that none is lost sight of."""

    def __init__(self, client: Any, fleet: FleetDescription, run_id: str) -> None:
        self._ecs, self._logs = client("ecs"), client("logs")
        self.fleet, self.run_id = fleet, run_id
        self.arns: list[str] = []

    def start(self, kind: str, count: int, environment: Mapping[str, str]) -> None:
        """Start tasks, spread evenly over the fleet's subnets (LLT125)."""
        urls = dict(zip(self.fleet.subnets, self.fleet.zonal_urls, strict=False))
        for subnet, number in _spread(self.fleet.subnets, count):
            if kind == "worker" and subnet in urls:
                environment = {**environment, _RUNTIME_URL: urls[subnet]}
            while number > 0:
                batch = min(number, _TASKS_PER_CALL)
                self._run(kind, batch, subnet, environment)
                number -= batch

    def _run(self, kind: str, count: int, subnet: str, environment: Mapping[str, str]) -> None:
        answer = self._ecs.run_task(
            cluster=self.fleet.cluster,
            taskDefinition=self.fleet.master if kind == "master" else self.fleet.worker,
            count=count,
            launchType="FARGATE",
            startedBy=self.run_id,
            networkConfiguration={
                "awsvpcConfiguration": {
                    "subnets": [subnet],
                    "securityGroups": [self.fleet.security_group],
                    "assignPublicIp": "DISABLED",
                }
            },
            overrides={
                "containerOverrides": [
                    {
                        "name": kind,
                        "environment": [
                            {"name": name, "value": value} for name, value in environment.items()
                        ],
                    }
                ]
            },
        )
        self.arns += [task["taskArn"] for task in answer["tasks"]]
        if len(answer["tasks"]) < count:
            reasons = sorted(
                {
                    " ".join(filter(None, [failure.get("reason"), failure.get("detail")]))
                    for failure in answer.get("failures", [])
                }
            )
            raise FLEET_STARTS.error(
                got=f"{len(answer['tasks'])} of {count} in {subnet}: "
                + ("; ".join(reasons) or "ECS gives no reason"),
                allowed=f"{count} {kind} task{'s' * (count != 1)}",
                where=self.fleet.cluster,
            )

    def described(self) -> list[_FleetTask]:
        """The run's tasks as they are."""
        found = []
        for start in range(0, len(self.arns), _DESCRIBED_PER_CALL):
            arns = self.arns[start : start + _DESCRIBED_PER_CALL]
            answer = self._ecs.describe_tasks(cluster=self.fleet.cluster, tasks=arns)
            found += [_task(task) for task in answer["tasks"]]
        return found

    def stop(self, reason: str) -> None:
        """Stop every task of the run that ECS still runs, those of a lost answer too."""
        for arn in dict.fromkeys([*self.running(self.run_id), *self.arns]):
            self._ecs.stop_task(cluster=self.fleet.cluster, task=arn, reason=reason)

    def running(self, started_by: str | None = None) -> list[str]:
        """ARNs of the tasks in the fleet's cluster that are not to stop; of one run, or all."""
        named = {"startedBy": started_by} if started_by else {}
        pages = self._ecs.get_paginator("list_tasks").paginate(
            cluster=self.fleet.cluster, desiredStatus="RUNNING", **named
        )
        return [arn for page in pages for arn in page["taskArns"]]

    def last_words(self, task: _FleetTask) -> str:
        """The end of a task's log; empty when there is none."""
        stream = f"load-test/{task.kind}/{task.id}"
        try:
            answer = self._logs.get_log_events(
                logGroupName=self.fleet.log_group,
                logStreamName=stream,
                limit=_LOG_LINES,
                startFromHead=False,
            )
        except self._logs.exceptions.ClientError:
            return ""
        return " | ".join(event["message"] for event in answer["events"])


def _spread(subnets: Sequence[str], count: int) -> Iterator[tuple[str, int]]:
    """Each subnet with how many of the tasks it takes."""
    each, rest = divmod(count, len(subnets))
    for number, subnet in enumerate(subnets):
        if here := each + (number < rest):
            yield subnet, here


def _task(task: Mapping[str, Any]) -> _FleetTask:
    details = {
        detail["name"]: detail["value"]
        for attachment in task.get("attachments", [])
        for detail in attachment.get("details", [])
    }
    container = (task.get("containers") or [{}])[0]
    code = container.get("exitCode")
    reasons = filter(None, [task.get("stoppedReason"), container.get("reason")])
    return _FleetTask(
        arn=task["taskArn"],
        kind=container.get("name", ""),
        status=task.get("lastStatus", ""),
        address=details.get("privateIPv4Address", ""),
        reason=": ".join(dict.fromkeys(reasons)) + (f" (exit code {code})" if code else ""),
    )


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

    def _wait_for_address(self) -> _FleetTask:
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

    def run(self, step: Step, progress: OnSecond = ignore_progress) -> StepResult:
        """Run one step on the fleet (LLT126)."""
        with aws_errors_in_words():
            return self._run(step, progress)

    def _run(self, step: Step, progress: OnSecond) -> StepResult:
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
        self, task: _FleetTask, error: Callable[..., ConfigurationError]
    ) -> ConfigurationError:
        log = self._tasks.last_words(task)
        got = f"{task.kind} {task.id} {task.status.lower()}: {task.reason or 'no reason given'}"
        return error(
            got=got + (f" | {log}" if log else ""),
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
                    f"aws ecs stop-task --cluster {shell_word(self._fleet.cluster)} --task {shell_word(arn)}"
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
