"""A client made before a fork, as by gunicorn with ``--preload``."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from .chaos import ChaosServer

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

_PARENT = """
import os, sys
from datetime import timedelta
import boto3
from low_latency_client.hedging import Hedging
from low_latency_client.blocking_client import RuntimeClient

url = sys.argv[1]
for kind in sys.argv[2:]:
    if not (parent := os.fork()):
        break  # a process of its own for each, which has imported all this already
    os.waitpid(parent, 0)
else:
    sys.exit()
client = RuntimeClient(
    latency_target=timedelta(seconds=5), url=url, concurrency=4,
    hedging=Hedging() if kind == "hedged" else None,
    session=boto3.Session("AKID", "secret", region_name="us-east-1"))

def all_answers_are_mine(who):
    for number in range(100):
        body = f"{who} {number}".encode()
        if client.invoke_endpoint(EndpointName="echo", Body=body)["Body"].read() != body:
            return False
    return True

all_answers_are_mine("before")  # hedging's threads run now
children = []
for child in range(3):
    if not (process := os.fork()):
        os._exit(0 if all_answers_are_mine(f"child {child}") else 1)
    children.append(process)
own = all_answers_are_mine("parent")
ends = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in children]
print(kind, own, ends, flush=True)
"""


CASES = ["plain", "hedged"]


@pytest.fixture(scope="module")
def outcomes() -> list[str]:
    """A line for each case: whether each process read its own answers only."""
    with ChaosServer({}) as server:  # which echoes all
        done = subprocess.run(
            [sys.executable, "-c", _PARENT, server.url, *CASES],
            capture_output=True,
            text=True,
            timeout=240,
        )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("case", CASES)
def test_children_and_parent_read_their_own_answers_only(outcomes: list[str], case: str) -> None:
    assert f"{case} True [0, 0, 0]" in outcomes
