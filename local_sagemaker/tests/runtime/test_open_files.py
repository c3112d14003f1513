"""A machine that allows few open files: callers read why, and no instance is taken for dead."""

from __future__ import annotations

import resource
import subprocess
import sys

CALLS = """
import resource
from concurrent.futures import ThreadPoolExecutor

from hosting_site import Site

from local_sagemaker import LocalAws
from local_sagemaker.model_servers import ServiceTime, SimulatedModelServer

MODEL = SimulatedModelServer(ServiceTime.constant(1.0), concurrency=1000)


def call(client, endpoint):
    try:
        return client.invoke_endpoint(EndpointName=endpoint, Body=b"x")["Body"].read().decode()
    except client.exceptions.ClientError as error:
        return error.response["Error"]["Message"]


with LocalAws.in_process(model_servers={"model": MODEL}) as aws:
    print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    endpoint = Site(aws).endpoint()
    clients = [aws.client("sagemaker-runtime") for _ in range(CALLERS)]
    with ThreadPoolExecutor(len(clients)) as pool:
        print(*sorted(set(pool.map(lambda one: call(one, endpoint), clients))), sep="\\n")
    print(call(clients[0], endpoint))
"""


def answers(callers: int, soft: int, hard: int) -> list[str]:
    """The limit of a local AWS, the answers to many callers at once, and that to one afterwards."""
    done = subprocess.run(
        [sys.executable, "-c", CALLS.replace("CALLERS", str(callers))],
        env={"PYTHONPATH": ":".join(sys.path), "PATH": ""},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_limit_is_raised_as_far_as_it_may_be() -> None:
    limit, *told = answers(20, 100, 1000)
    assert (int(limit), told) == (1000, ["x", "x"])


def test_callers_beyond_the_limit_read_the_reason() -> None:
    limit, *told, afterwards = answers(90, 320, 320)
    assert (int(limit), afterwards) == (320, "x")
    assert len(told) > 1
    assert all("ulimit -n" in each for each in told if each != "x")
