"""``low-latency load-test`` is ended with its result, also where SIGINT came ignored."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from local_sagemaker import LocalAws
from local_sagemaker.model_servers import ServiceTime, SimulatedModelServer

from .servers import serve_sentiment

pytestmark = pytest.mark.realtime


#: So slow that what a busy generator is late by is small beside it.
SERVER = SimulatedModelServer(service_time=ServiceTime.constant(0.02), concurrency=8)
RATES = f"--tps 10 {'--tps 20 ' * 30} --duration 2s"
SEARCH = "--find-limit --target p99=200ms --duration 60s"


@pytest.mark.parametrize(
    ("number", "ignored", "load", "after"),
    [
        (signal.SIGINT, True, RATES, "10 TPS"),
        (signal.SIGINT, False, RATES, "10 TPS"),
        (signal.SIGTERM, True, RATES, "10 TPS"),
        # The first rate is kept; the second is under way.
        (signal.SIGTERM, True, SEARCH, "(rise): kept"),
    ],
)
def test_a_load_test_that_is_ended_writes_what_it_has_and_leaves_nothing(
    tmp_path: Path, number: signal.Signals, ignored: bool, load: str, after: str
) -> None:
    def ignore() -> None:
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    typed = (
        f"load-test sentiment {load} --alone 1s --metrics-wait 0s --payload {{}} "
        "-o result.json --html page.html --csv steps.csv"
    )
    with LocalAws.in_process(model_servers={"*": SERVER}) as aws, contextlib.ExitStack() as leaving:
        aws.reset()  # all in one process share their state
        leaving.callback(aws.reset)
        serve_sentiment(aws, instances=1)
        with subprocess.Popen(
            [
                sys.executable,
                "-c",
                "from low_latency_endpoint.cli import main; main()",
                *typed.split(),
            ],
            cwd=tmp_path,
            env={**os.environ, **aws.exports(), "INTERRUPTED": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=ignore,
        ) as process:
            deadline = time.monotonic() + 240
            assert process.stderr is not None
            said = ""
            # The step of one caller and one of load are over; thirty are to come.
            while after not in said:
                assert time.monotonic() < deadline
                line = process.stderr.readline()
                assert line, f"ended by itself: {said}"
                said += line
            process.send_signal(number)
            out, err = process.communicate(timeout=120)
    assert process.returncode == 1, err
    assert "Traceback" not in said + err
    assert "Interrupted after " in out
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["interrupted"] is True
    if load is SEARCH:
        assert result["limit"]["lower_bound"] is True
        assert result["limit"]["rate"] > 0
        ended = result["steps"][1]
        assert ended["step"]["seconds"] < 60, "its verdict was certain before its end"
        assert "min left" in said or "The search takes" in said
    else:
        assert result["limit"] is None
    assert (tmp_path / "page.html").stat().st_size > 1000
    assert (tmp_path / "steps.csv").read_text().startswith("step,")
    deadline = time.monotonic() + 15
    while left := processes_with(f"INTERRUPTED={tmp_path}".encode()):
        assert time.monotonic() < deadline, left
        time.sleep(0.2)


def processes_with(variable: bytes) -> list[str]:
    """Processes of this machine with a variable in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if variable in (folder / "environ").read_bytes().split(b"\0"):
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found
