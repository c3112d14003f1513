"""Starts Locust quickly and often: imported once, then a process forked for each run.

Importing Locust and what its users need takes a second and more of processor time, most of what a
short run costs. Reads what to start or to wait for as JSON from each line of standard input, and
answers with a line of JSON; :mod:`.locust_runs` is the other side.
"""

from __future__ import annotations

import locust.main  # isort: skip  # first: it patches the standard library

import gc
import json
import os
import signal
import sys
import time
from typing import Any

import boto3  # noqa: F401
import gevent.os
import geventhttpclient  # noqa: F401
from gevent import monkey

# What users import, but for the modules that change Locust: that is for each run to do.
import low_latency_endpoint.load_test.engine.arrivals
import low_latency_endpoint.load_test.engine.steps  # noqa: F401

# Nothing here may wait as gevent does: a process with a running loop is no good parent.
_sleep, _waitpid = monkey.get_original("time", "sleep"), monkey.get_original("os", "waitpid")


def main() -> None:
    """Do what is asked for until standard input ends."""
    ended: dict[int, int] = {}
    sys.path.pop(0)  # this folder
    gc.freeze()
    for line in sys.stdin:
        case = json.loads(line)
        if "start" in case:
            pid = gevent.os.fork()
            if not pid:
                _become(case)
                sys.exit(locust.main.main())
            print(json.dumps(pid), flush=True)
        else:
            print(json.dumps(_wait(case["wait"], case["seconds"], ended)), flush=True)


def _wait(pid: int, seconds: float, ended: dict[int, int]) -> int | None:
    """The exit code of a process that was started here, if it ends in time."""
    deadline = time.monotonic() + seconds
    while pid not in ended:
        found, status = _waitpid(pid, os.WNOHANG)
        if found:
            ended[pid] = os.waitstatus_to_exitcode(status)
        elif time.monotonic() >= deadline:
            return None
        else:
            _sleep(0.01)
    return ended[pid]


def _become(case: dict[str, Any]) -> None:
    """In the child: be as a shell would have started it."""
    if case["new_session"]:
        os.setsid()
    os.chdir(case["folder"])
    os.environ.clear()
    os.environ.update(case["environment"])
    for descriptor, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, case["out"], os.O_WRONLY | os.O_APPEND),
        (2, case["err"], os.O_WRONLY | os.O_APPEND),
    ):
        opened = os.open(path, flags)
        os.dup2(opened, descriptor)
        os.close(opened)
    sys.argv = ["locust", *case["start"]]
    signal.signal(signal.SIGINT, signal.SIG_IGN if case["ignored"] else signal.default_int_handler)


if __name__ == "__main__":
    main()
