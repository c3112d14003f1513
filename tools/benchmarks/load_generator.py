"""The load generator's Locust user against the one it replaces, on loopback, plain and over TLS.

The other is the user of AWS's own example: a boto3 client per user, no retries, the same event for
Locust. ``python -m tools.benchmarks.load_generator CLIENT FOLDER`` measures one in a process of its own
and prints JSON; ``python -m tools.benchmarks.load_generator serve FOLDER`` is the server, in another,
on the other processor. It checks no signature and says in each answer how long it had the request,
so that what the client adds is known to the microsecond.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .measure import BenchmarkFailed, heading, line, percentile, run, sized

USERS = 16
SERVICE_MS = 20
CLIENTS = ("boto3", "ours", "no request")
SERVER = ("tools.benchmarks.load_generator", "serve")
BODY = b'{"inputs": "hello world, write me a function", "parameters": {"max_new_tokens": 64}}'
TOKEN = "T" * 700  # as long as a role's
WARM_SECONDS = sized(0.2, 0.0)
BUSY_SECONDS = sized(0.7, 0.2)
LATENCY_SECONDS = sized(2.5, 0.3)
RATES = sized((100, 1000, 4000), (100,))
PACED_SECONDS = sized(3.0, 0.5)


# The server.


class Answering(asyncio.Protocol):
    """One client's connection: answers at once, or after as many milliseconds as the name says."""

    _head = (
        b"HTTP/1.1 200 OK\r\nx-amzn-RequestId: 5c4b7b1e-1111-4222-8333-444455556666\r\n"
        b"x-Amzn-Invoked-Production-Variant: primary\r\nContent-Type: application/json\r\n"
        b"Content-Length: 100\r\n\r\n"
    )

    def __init__(self) -> None:
        self._buffer = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        came = time.perf_counter()
        buffer = self._buffer + data if self._buffer else data
        end = buffer.find(b"\r\n\r\n")
        # Every request of a benchmark has the same body; one is under way per connection.
        if end < 0 or len(buffer) < end + 4 + len(BODY):
            self._buffer = buffer
            return
        self._buffer = b""
        at = buffer.index(b"/endpoints/d") + 12
        wait = int(buffer[at : buffer.index(b"/", at)])
        if wait:
            asyncio.get_running_loop().call_later(wait / 1000, self._answer, came)
        else:
            self._answer(came)

    def _answer(self, came: float) -> None:
        if not self._transport.is_closing():
            held = b'{"seconds": %.7f, "text": "' % (time.perf_counter() - came)
            self._transport.write(self._head + held + b"x" * (98 - len(held)) + b'"}')


async def serve(folder: Path) -> None:
    """Listen, plain and over TLS, until standard input closes."""
    import ssl

    from client.tests.loopback_runtime import write_certificates

    write_certificates(folder)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "server.pem")
    loop = asyncio.get_running_loop()
    urls = {}
    for scheme, context in (("http", None), ("https", tls)):
        server = await loop.create_server(Answering, "127.0.0.1", 0, ssl=context, backlog=512)
        urls[scheme] = f"{scheme}://localhost:{server.sockets[0].getsockname()[1]}"
    partial = folder / "server.tmp"
    partial.write_text(json.dumps(urls), encoding="utf-8")
    partial.replace(folder / "server.json")
    await loop.run_in_executor(None, sys.stdin.buffer.read)


# The clients.


def user_class(client: str, url: str, wait_ms: int) -> type[Any]:
    """The Locust user to measure."""
    name = f"d{wait_ms}"
    if client == "ours":
        from low_latency_endpoint.load_test.engine.payloads import Payloads
        from low_latency_endpoint.load_test.engine.users import SageMakerUser

        return type(
            "Ours",
            (SageMakerUser,),
            {
                "endpoint_name": name,
                "endpoint_urls": (url,),
                "region": "us-east-1",
                "payloads": Payloads.of_bytes(BODY),
            },
        )
    from locust import User, task

    class NoRequest(User):
        """What Locust itself spends on each turn of a user."""

        @task
        def turn(self) -> None:
            self.environment.events.request.fire(
                request_type="InvokeEndpoint",
                name="SageMaker",
                start_time=time.time(),
                response_time=1.0,
                response_length=100,
                response=None,
                context={},
                exception=None,
            )

    if client == "no request":
        return NoRequest
    import boto3
    from botocore.config import Config

    class Boto3(User):
        """AWS's example, word for word but for its logging of every answer."""

        def __init__(self, environment: Any) -> None:
            super().__init__(environment)
            config = Config(retries={"max_attempts": 0, "mode": "standard"})
            self.client = boto3.client("sagemaker-runtime", config=config, endpoint_url=url)

        @task
        def send(self) -> None:
            meta: dict[str, Any] = {
                "request_type": "InvokeEndpoint",
                "name": "SageMaker",
                "start_time": time.time(),
                "response_length": 0,
                "response": None,
                "context": {},
                "exception": None,
            }
            started = time.perf_counter()
            try:
                answer = self.client.invoke_endpoint(
                    EndpointName=name, Body=BODY, ContentType="application/json"
                )
                meta["response"] = answer["Body"].read()
            except Exception as error:
                meta["exception"] = error
            meta["response_time"] = (time.perf_counter() - started) * 1000
            self.environment.events.request.fire(**meta)

    return Boto3


def measure_users(cls: type[Any], users: int, seconds: float) -> dict[str, Any]:
    """Run users for a while: requests, processor time, and what was added to the server's time."""
    import gevent
    import locust
    from locust.env import Environment

    events: Any = locust.events
    environment = Environment(user_classes=[cls], events=events)
    runner = environment.create_local_runner()
    added: list[float] = []

    def note(response: Any, response_time: float, exception: Any, **_: Any) -> None:
        if exception is None and response is not None:
            body = response if isinstance(response, bytes) else response.body
            added.append(response_time - json.loads(body)["seconds"] * 1000)

    runner.start(users, spawn_rate=100)
    # Clients and connections are made. Starting replaces the total, so it is taken after.
    while environment.stats.total.num_requests < 5 * users and not environment.stats.errors:
        gevent.sleep(0.02)
    total = environment.stats.total
    gevent.sleep(WARM_SECONDS)
    if users == 1:
        events.request.add_listener(note)
    before, used = total.num_requests, time.process_time()
    gevent.sleep(seconds)
    used, requests = time.process_time() - used, total.num_requests - before
    if total.num_failures:
        raise BenchmarkFailed(str([one.error for one in environment.stats.errors.values()]))
    if users == 1:
        events.request.remove_listener(note)
    runner.quit()
    return {"requests": requests, "cpu": used / max(requests, 1), "added": added}


def measure_client(client: str, folder: Path) -> dict[str, Any]:
    """Everything about one client, in this process."""
    import locust  # noqa: F401  # first: it patches the standard library

    urls = json.loads((folder / "server.json").read_text(encoding="utf-8"))
    if client == "no request":
        return {"http": measure_users(user_class(client, "", 0), USERS, BUSY_SECONDS)}
    return {
        "http": measure_users(user_class(client, urls["http"], 0), USERS, BUSY_SECONDS),
        "https": measure_users(user_class(client, urls["https"], 0), USERS, BUSY_SECONDS),
        "waiting": measure_users(user_class(client, urls["http"], SERVICE_MS), 1, LATENCY_SECONDS),
    }


def paced(rate: float, folder: Path, environment: dict[str, str]) -> tuple[float, ...]:
    """How late requests of an open loop start, p50 and p99; the server has the other processor."""
    import os

    from low_latency_endpoint.load_test.engine.arrivals import PoissonArrivals
    from low_latency_endpoint.load_test.engine.generator_process import GeneratorProcess
    from low_latency_endpoint.load_test.engine.payloads import Payloads
    from low_latency_endpoint.load_test.engine.steps import Step
    from low_latency_endpoint.load_test.engine.target import Target

    from .clients import pin

    url = json.loads((folder / "server.json").read_text(encoding="utf-8"))["http"]
    target = Target(f"d{SERVICE_MS}", "us-east-1", (url,))
    with GeneratorProcess(
        target, Payloads.of_bytes(BODY), environment={**os.environ, **environment}
    ) as generator:
        pin(0, generator.pid)
        step = Step("paced", PACED_SECONDS + 0.5, PoissonArrivals(rate), settle_seconds=0.5)
        result = generator.run(step)
    if result.errors:
        raise BenchmarkFailed(f"the paced generator met errors: {dict(result.errors)}")
    return tuple(result.send_lag.quantiles((0.5, 0.99)))


# What `make bench` prints.


def load_generator(rounds: int) -> None:
    """All users in turns; the ratios beside their goals."""
    from .clients import running_server

    found: dict[str, list[Any]] = {client: [] for client in CLIENTS}
    with tempfile.TemporaryDirectory() as name, running_server(Path(name), *SERVER):
        environment = {
            "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_SESSION_TOKEN": TOKEN,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CA_BUNDLE": str(Path(name, "bundle.pem")),
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        lags = [paced(rate, Path(name), environment) for rate in RATES]
        for number in range(rounds):
            for client in CLIENTS:
                if client != "no request" or not number:
                    found[client].append(
                        run(
                            "-m",
                            "tools.benchmarks.load_generator",
                            client,
                            name,
                            environment=environment,
                        ).answer()
                    )

    def cpu(client: str, part: str) -> float:
        return float(statistics.median(one[part]["cpu"] for one in found[client]))

    def added(client: str, share: float) -> float:
        # The turn least disturbed by whatever else the machine does: a few milliseconds away from
        # the processor are as much as what is measured.
        return min(percentile(one["waiting"]["added"], share) for one in found[client])

    heading(
        f"Load generator: Locust, {USERS} users in one process, {len(BODY)} bytes; "
        f"medians of {rounds} turns"
    )
    for part, title in (("http", "plain"), ("https", "TLS")):
        for client in ("boto3", "ours"):
            line(
                f"{title}, {'boto3, a client per user' if client == 'boto3' else 'SageMakerUser'}:"
                " processor time per request",
                f"{cpu(client, part) * 1e6:.0f} us",
            )
        pairs = zip(found["boto3"], found["ours"], strict=True)
        ratio = statistics.median(one[part]["cpu"] / two[part]["cpu"] for one, two in pairs)
        line(
            "  requests per second and core, times boto3's",
            f"{ratio:.1f} ({1 / cpu('ours', part):,.0f})",
            "9 or more",
        )
    line(
        "of it Locust itself: a user's turn and its event, no request",
        f"{cpu('no request', 'http') * 1e6:.0f} us",
    )
    heading(
        f"Load generator: 1 user, a server that takes {SERVICE_MS} ms; what is added to it, "
        f"least of {rounds}"
    )
    for share, title in ((0.5, "p50"), (0.99, "p99")):
        boto3s, ours = added("boto3", share), added("ours", share)
        line(f"{title}: boto3, SageMakerUser", f"{boto3s:.2f}, {ours:.2f} ms")
        line("  share of boto3's", f"{ours / boto3s:.2f}", "0.33 or less")
    heading("Load generator: open loop of one process; how late requests start, p50 and p99")
    for rate, (p50, p99) in zip(RATES, lags, strict=True):
        line(f"{rate:,} requests per second", f"{p50 * 1e6:.0f}, {p99 * 1e6:.0f} us")


def main() -> None:
    """Serve, or measure one client and print JSON."""
    role, folder = sys.argv[1], Path(sys.argv[2])
    if role == "serve":
        from client.tests.loopback_runtime import run_quickly

        run_quickly(serve(folder))
        return
    import locust  # noqa: F401  # first: it patches the standard library

    from .clients import pin

    pin(0)
    print(json.dumps(measure_client(role, folder)))


if __name__ == "__main__":
    main()
