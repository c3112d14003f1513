"""What the fleet's containers run: ``python -m low_latency_endpoint.load_test.fleet.task``.

Between the master and the machine that started the run pass a few objects in the run's folder: S3 is the
one service that isolated subnets reach for nothing. Every object exists before the tasks start and is only
ever written anew, so nobody needs the right to list, and a reader sees either the old or the new one (S3
is strongly consistent).

========== ================ =====================================================================
object     written by       content
========== ================ =====================================================================
run.json   that machine     target, payloads, number of workers; once
control    that machine     number of the step wanted, the step; again and again, as a sign of life
status     the master       what it does, progress of the step, its result
========== ================ =====================================================================
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NoReturn

import boto3
from botocore.config import Config

from ...facts.load_test_fleet_rules import RUNS_PREFIX
from ..engine.generator_process import GeneratorProcess, problem_of
from ..engine.payloads import Payloads
from ..engine.steps import Generator, Progress, Step
from ..engine.target import Target

RUN, CONTROL, STATUS = "run.json", "control.json", "status.json"
MODULE = "payload_module.py"
"""The source of the user's payload generator."""
BUCKET_VARIABLE = "LOAD_TEST_BUCKET"
RUN_VARIABLE = "LOAD_TEST_RUN"
PORT_VARIABLE = "LOAD_TEST_MASTER_PORT"
MASTER_VARIABLE = "LOAD_TEST_MASTER"
MODULE_VARIABLE = "LOAD_TEST_PAYLOAD_MODULE"
_POLL_SECONDS = 0.5
_LOOKS = 6
"""How often the sign of life is looked for in the time without one that ends the run."""
_ABANDONED = 3
"""Exit code of a master that nobody waits for any more."""
_KEPT_SECONDS = 30
"""How many seconds of progress the status holds: the reader looks every second."""
_MODULE = "low_latency_endpoint.load_test.engine.generator"


class RunFolder:
    """The folder of one run in the fleet's bucket."""

    def __init__(self, s3: Any, bucket: str, run_id: str) -> None:
        self._s3, self.bucket, self.run_id = s3, bucket, run_id

    @property
    def url(self) -> str:
        """Where it is, for people."""
        return f"s3://{self.bucket}/{RUNS_PREFIX}{self.run_id}/"

    def write(self, name: str, content: Mapping[str, Any]) -> None:
        """Write an object anew."""
        self.put(name, json.dumps(content).encode())

    def put(self, name: str, body: bytes) -> None:
        """Write an object of another form."""
        self._s3.put_object(Bucket=self.bucket, Key=self._key(name), Body=body)

    def read(self, name: str) -> dict[str, Any]:
        """What an object holds."""
        content: dict[str, Any] = json.loads(self.get(name)[0])
        return content

    def get(self, name: str) -> tuple[bytes, float]:
        """An object's bytes and age."""
        answer = self._s3.get_object(Bucket=self.bucket, Key=self._key(name))
        with answer["Body"] as stream:
            body: bytes = stream.read()
        sent = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        now = parsedate_to_datetime(sent) if sent else datetime.now(UTC)
        return body, (now - answer["LastModified"]).total_seconds()

    def _key(self, name: str) -> str:
        return f"{RUNS_PREFIX}{self.run_id}/{name}"


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the master or a worker, until a signal ends it."""
    parser = argparse.ArgumentParser(prog="python -m low_latency_endpoint.load_test.fleet.task")
    parser.add_argument("kind", choices=["master", "worker"])
    kind = parser.parse_args(arguments).kind
    missing = [
        name
        for name in (
            BUCKET_VARIABLE,
            RUN_VARIABLE,
            PORT_VARIABLE,
            *([MASTER_VARIABLE] if kind == "worker" else []),
        )
        if not os.environ.get(name)
    ]
    if missing:
        parser.error(
            f"the environment lacks {', '.join(missing)}: start the fleet with "
            "low-latency load-test ENDPOINT --fleet N"
        )
    _fetch_module()
    if kind == "master":
        _master()
    else:
        _worker()


def _worker() -> NoReturn:
    address = f"{os.environ[MASTER_VARIABLE]}:{os.environ[PORT_VARIABLE]}"
    print(f"worker of {address}", flush=True)
    # In place of this process, so that the task's signals reach it.
    os.execv(sys.executable, [sys.executable, "-m", _MODULE, "--worker", address])


def _master() -> NoReturn:
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    signal.signal(signal.SIGUSR1, lambda number, frame: sys.exit(_ABANDONED))
    folder = _folder()
    run = folder.read(RUN)
    threading.Thread(target=_watch, args=[folder, run["patience_seconds"]], daemon=True).start()

    try:
        payloads = Payloads.of_dict(run["payloads"])
        if payloads.generator is not None:
            Payloads.of_generator(payloads.generator)  # says now what the image lacks for it
        with GeneratorProcess(
            Target.of_dict(run["target"]),
            payloads,
            expect_workers=run["workers"],
            bind=f"0.0.0.0:{os.environ[PORT_VARIABLE]}",
        ) as generator:
            generator.wait_until_ready()
            folder.write(STATUS, {"state": "ready", "step": 0})
            _serve(folder, generator)
    except Exception as problem:
        print(f"failed: {problem}", flush=True)
        folder.write(STATUS, {"state": "failed", "step": -1, "failure": problem_of(problem)})
        raise


def _serve(folder: RunFolder, generator: Generator) -> NoReturn:
    """Run each step that is asked for, until a signal ends it."""
    done = 0
    while True:
        control = folder.read(CONTROL)
        if control["step"] == done:
            time.sleep(_POLL_SECONDS)
            continue
        done = control["step"]
        _run_step(folder, generator, done, Step.of_dict(control["content"]))


def _run_step(folder: RunFolder, generator: Generator, number: int, step: Step) -> None:
    seconds: list[dict[str, Any]] = []

    def tell(state: str, **more: Any) -> None:
        folder.write(STATUS, {"state": state, "step": number, **more})

    def progress(second: Progress) -> bool:
        seconds.append(second.to_message())
        tell("running", progress=seconds[-_KEPT_SECONDS:])
        return bool(folder.read(CONTROL).get("stop") == number)

    print(f"step {number}: {step.name}", flush=True)
    tell("running")
    result = generator.run(step, progress)
    tell("done", progress=seconds[-_KEPT_SECONDS:], result=result.to_dict())


def _watch(folder: RunFolder, patience: float) -> None:
    """End the master, wherever it is, when the machine that started the run is silent."""
    heard = time.monotonic()
    while True:
        time.sleep(patience / _LOOKS)
        with contextlib.suppress(Exception):  # S3 may be away for a while
            heard = max(heard, time.monotonic() - folder.get(CONTROL)[1])
        silent = time.monotonic() - heard
        if silent > patience:
            print(
                f"ending: no sign of the machine that started this for {silent:.0f} s", flush=True
            )
            os.kill(os.getpid(), signal.SIGUSR1)


def _folder() -> RunFolder:
    # A second without S3 must not end a run of an hour. Only the Region's own name is behind the
    # gateway endpoint for certain: in us-east-1 the SDK may still ask the global one.
    config = Config(
        retries={"mode": "standard", "total_max_attempts": 6},
        connect_timeout=5,
        read_timeout=20,
        s3={"us_east_1_regional_endpoint": "regional"},
    )
    return RunFolder(
        boto3.client("s3", config=config), os.environ[BUCKET_VARIABLE], os.environ[RUN_VARIABLE]
    )


def _fetch_module() -> None:
    """Put the user's payload module where it is imported from: the current folder."""
    name = os.environ.get(MODULE_VARIABLE)
    if name:
        Path(f"{name}.py").write_bytes(_folder().get(MODULE)[0])


if __name__ == "__main__":
    main()
