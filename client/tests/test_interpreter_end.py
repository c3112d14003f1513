"""Processes that end with clients open: without a traceback, without a wait; late calls are served."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time

import pytest

from low_latency_client.hedging import Hedging

from .callers import Caller
from .loopback_runtime import LoopbackRuntime

_BEGIN = """
import asyncio, atexit, sys, threading, time
import boto3
from low_latency_client import AsyncRuntimeClient, Hedging, RuntimeClient

def client(kind=RuntimeClient, **options):
    session = boto3.Session("AKID", "secret", region_name="us-east-1")
    return kind(latency_target="5s", url=sys.argv[1], session=session, preconnect=2, **options)

def call(client, name="plain"):
    client.invoke_endpoint(EndpointName=name, Body=b"{}")

def for_ever(client):
    while True:
        call(client)

async def enter_and_call(client):
    await client.__aenter__()
    await client.invoke_endpoint(EndpointName="plain", Body=b"{}")

"""
CASES = {
    "clients_are_open": """
plain = client()
call(plain)
late = client(hedging=Hedging(delay="20ms"))
call(late, "slow-100")
threading.Thread(target=call, args=(late, "slow-30000"), daemon=True).start()
entered = client(AsyncRuntimeClient)
asyncio.run(enter_and_call(entered))
entered_too = client(AsyncRuntimeClient)
loop = asyncio.new_event_loop()
loop.run_until_complete(enter_and_call(entered_too))
time.sleep(0.1)
print("ended")
""",
    "daemon_threads_call": """
for options in {}, {"hedging": Hedging()}:
    thread = threading.Thread(target=for_ever, args=(client(**options),), daemon=True)
    thread.start()
async def calls():
    async with client(AsyncRuntimeClient) as entered:
        while True:
            await entered.invoke_endpoint(EndpointName="plain", Body=b"{}")
threading.Thread(target=asyncio.run, args=(calls(),), daemon=True).start()
time.sleep(0.2)
print("ended")
""",
    "calls_follow_the_main_thread": """
hedging = client(hedging=Hedging(delay="20ms"))
def work():
    threading.main_thread().join()
    call(hedging, "slow-100")
    call(client())
    print("served", flush=True)
threading.Thread(target=work).start()
atexit.register(lambda: (call(hedging), print("ended")))
""",
}
PRINTED = {"calls_follow_the_main_thread": ["served", "ended"]}


@pytest.mark.parametrize("case", CASES)
def test_a_process_ends_with_its_clients_open(case: str) -> None:
    with LoopbackRuntime() as server:
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", _BEGIN + CASES[case], server.url],
            capture_output=True,
            text=True,
            timeout=60,
        )
        took = time.monotonic() - started
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == PRINTED.get(case, ["ended"])
    assert took < 25  # a call of 30 s is under way


@pytest.mark.parametrize("hedging", [None, Hedging(delay="20ms")])
def test_calls_are_served_where_no_thread_can_be_started(
    hedging: Hedging | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at the interpreter's end, and when the system has no more threads."""

    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with LoopbackRuntime() as server:
        monkeypatch.setattr(threading.Thread, "start", fail)
        url = server.url.replace("127.0.0.1", "localhost")
        with Caller("threads", url=url, hedging=hedging, preconnect=3) as caller:
            assert caller.client.counts.connections_opened == 3
            assert caller.invoke("plain")["Body"]


def test_a_hedging_client_that_is_closed_ends_its_threads() -> None:
    before = threading.active_count()
    with LoopbackRuntime() as server:
        for leave in (Caller.close, lambda _: None):  # closed, or only collected
            caller = Caller("threads", url=server.url, hedging=Hedging(delay="20ms"))
            caller.together(4, "slow-100")
            leave(caller)
            del caller
    ends = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < ends:
        gc.collect()  # of errors, which hold their own tracebacks
        time.sleep(0.01)
    assert threading.active_count() <= before
