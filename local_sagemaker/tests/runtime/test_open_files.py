"""A machine that allows few open files: callers read why, and no instance is taken for dead."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import Served, command

PREPARED = """
import resource
import socket
from concurrent.futures import ThreadPoolExecutor

from hosting_site import Site, taking

from local_sagemaker import LocalAws


def call(client, endpoint):
    try:
        return client.invoke_endpoint(EndpointName=endpoint, Body=b"x")["Body"].read().decode()
    except client.exceptions.ClientError as error:
        return error.response["Error"]["Message"]


with LocalAws.in_process(model_servers={"model": taking(2.0, concurrency=1000)}) as aws:
    print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    endpoint = Site(aws).endpoint()
    client = aws.client("sagemaker-runtime")
"""

MANY_CALLERS = """
    with ThreadPoolExecutor(CALLERS) as pool:
        print(*pool.map(lambda _: call(client, endpoint), range(CALLERS)), sep="\\n")
    print(call(client, endpoint))
"""

HALF_REQUESTS = """
    address = client.meta.endpoint_url.removeprefix("http://").split(":")
    begun = [socket.create_connection(address) for _ in range(100)]
    for each in begun:
        each.sendall(b"POST / HTTP/1.1\\r\\n")
    print(call(client, endpoint))
    for each in begun:
        each.close()
    print(call(client, endpoint))
"""


def printed(calls: str, soft: int, hard: int) -> list[str]:
    """The limit of a local AWS in a process of its own, and what those calls print."""
    done = subprocess.run(
        [sys.executable, "-c", PREPARED + calls],
        env={"PYTHONPATH": ":".join(sys.path), "PATH": ""},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "Too many open files" not in done.stderr
    return done.stdout.splitlines()


def test_the_limit_is_raised_as_far_as_it_may_be() -> None:
    limit, *told = printed(MANY_CALLERS.replace("CALLERS", "20"), 100, 1000)
    assert (int(limit), set(told)) == (1000, {"x"})
    assert len(told) == 21


def test_many_callers_are_answered_or_read_the_reason() -> None:
    limit, *told, afterwards = printed(MANY_CALLERS.replace("CALLERS", "90"), 320, 320)
    assert (limit, len(told), afterwards) == ("320", 90, "x")
    assert len(set(told)) > 1
    assert all("ulimit -n" in each for each in told if each != "x")


def test_a_caller_beyond_the_limit_reads_the_reason() -> None:
    limit, told, afterwards = printed(HALF_REQUESTS, 320, 320)
    assert (limit, afterwards) == ("320", "x")
    assert "serves 40 connections" in told
    assert "ulimit -n" in told


@pytest.mark.parametrize(("files", "connections"), [(64, 200), (256, 600)])
def test_idle_connections_silence_nobody(files: int, connections: int, tmp_path: Path) -> None:
    """Without a key, at a limit that nobody may raise: each new one ends the longest idle one.

    Each call comes by a connection of its own: one that rested is among the idle ones, and who
    sends while it ends has to send again, as boto3 does by default.
    """
    told = tmp_path / "stderr"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    with told.open("w") as stderr, command(stderr=stderr, preexec_fn=limit) as (_, exports):
        address = ("127.0.0.1", int(exports["AWS_ENDPOINT_URL"].rpartition(":")[2]))
        idle = []
        for _ in range(connections):
            idle.append(socket.create_connection(address))
            if len(idle) % 40 == 0:
                sts = Served(exports).client("sts")
                began = time.monotonic()
                assert sts.get_caller_identity()["Account"]
                assert time.monotonic() < began + 5
        for each in idle:
            each.close()
    assert told.stat().st_size < 4000
