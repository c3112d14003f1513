"""A client made before a fork, as by gunicorn with ``--preload``, or entered before one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
from botocore.credentials import DeferredRefreshableCredentials

from low_latency_client.signing import RenewedCredentials

from .chaos import ChaosServer
from .loopback_runtime import LoopbackRuntime

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
# Python 3.12 and newer warn of each fork of a process with threads; these clients are made for it.
_UNWARNED = ("-W", "ignore:This process:DeprecationWarning")


def lines_of(program: str, *arguments: str) -> list[str]:
    """What a program prints that ends well."""
    done = subprocess.run(
        [sys.executable, *_UNWARNED, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def outcomes() -> list[str]:
    """A line for each case: whether each process read its own answers only."""
    with ChaosServer({}) as server:  # which echoes all
        return lines_of(_PARENT, server.url, *CASES)


@pytest.mark.parametrize("case", CASES)
def test_children_and_parent_read_their_own_answers_only(outcomes: list[str], case: str) -> None:
    assert f"{case} True [0, 0, 0]" in outcomes


_EVENT_LOOP = """
import asyncio, os, sys, threading
import boto3, uvloop
from low_latency_client import AsyncRuntimeClient, ConfigurationError, Hedging

url, kind = sys.argv[1:]
run = uvloop.run if kind == "uvloop" else asyncio.run
client = AsyncRuntimeClient(
    latency_target="10s", url=url, preconnect=2, hedging=Hedging(),
    session=boto3.Session("AKID", "secret", region_name="us-east-1"))
call = {"EndpointName": "plain", "Body": b"{}"}

async def child(stream):
    stream.close()
    await client.close()
    try:
        await client.invoke_endpoint(**call)
    except ConfigurationError as error:
        print("child", error.code, flush=True)
    async with client:
        await asyncio.gather(*(client.invoke_endpoint(**call) for _ in range(4)))
    print("child called", flush=True)

async def parent():
    async with client:
        answer = await client.invoke_endpoint_with_response_stream(
            **{**call, "EndpointName": "half-stream-1"})
        await client.invoke_endpoint(**call)
        process = os.fork()
        if not process:
            # Not in this thread, in which the parent's event loop runs.
            thread = threading.Thread(target=lambda: run(child(answer["Body"])))
            thread.start()
            thread.join()
            os._exit(0)
        await asyncio.to_thread(os.waitpid, process, 0)
        async with asyncio.timeout(5):
            await asyncio.gather(*(client.invoke_endpoint(**call) for _ in range(4)))
            print("parent", len(await anext(aiter(answer["Body"]))), flush=True)

run(parent())
"""


@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_a_child_that_closes_a_client_takes_nothing_from_the_parent(kind: str) -> None:
    """Both processes' event loops watch their connections by one epoll."""
    with LoopbackRuntime() as server:
        assert lines_of(_EVENT_LOOP, server.url, kind) == [
            "child LLC112",
            "child called",
            "parent 1",
        ]


@pytest.mark.parametrize("method", ["start", "close"])
def test_a_child_needs_no_lock_that_a_thread_of_the_parent_held(method: str) -> None:
    source = DeferredRefreshableCredentials(lambda: None, "test")
    credentials = RenewedCredentials(source)
    credentials.start()
    credentials._process = -1  # as in a child
    child = threading.Thread(target=getattr(credentials, method), daemon=True)
    of_parent = credentials.wake
    with of_parent._cond:
        child.start()
        child.join(5)
        assert not child.is_alive()
    of_parent.set()
    credentials.close()
