"""Starts the precise server and generators on it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roles_under_test import give_hosting_role

from local_sagemaker import LocalAws
from low_latency_endpoint.account.calls import Account
from low_latency_endpoint.account.sessions import open_clients
from low_latency_endpoint.load_test.compare.sides import Side, read_sides
from low_latency_endpoint.load_test.engine.generator_process import GeneratorProcess
from low_latency_endpoint.load_test.engine.payloads import Payloads
from low_latency_endpoint.load_test.engine.target import Target

#: An environment in which nothing can be signed for a real account.
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}
PAYLOADS = Payloads.of_bytes(b'{"inputs": "I like you."}')


def serve_sentiment(aws: LocalAws, *, instances: int, of: str = "ml.c7i.xlarge") -> None:
    """Create the endpoint ``sentiment`` in a local AWS and wait for it."""
    make_model(aws)
    make_endpoint(aws, "sentiment", {"InitialInstanceCount": instances, "InstanceType": of})


def make_model(aws: LocalAws, name: str = "model", tag: str = "1", **container: Any) -> None:
    """Create a model in a local AWS."""
    image = f"123456789012.dkr.ecr.us-east-1.amazonaws.com/model:{tag}"
    aws.client("sagemaker").create_model(
        ModelName=name,
        ExecutionRoleArn=give_hosting_role(aws),
        PrimaryContainer={"Image": image, **container},
    )


def make_endpoint(aws: LocalAws, name: str, *variants: Mapping[str, Any]) -> None:
    """Create an endpoint of the model and wait for it; ``Routing`` is a strategy."""
    sagemaker, made = aws.client("sagemaker"), []
    for variant in variants:
        one = {
            "VariantName": "primary",
            "ModelName": "model",
            "InstanceType": "ml.g5.xlarge",
            "InitialInstanceCount": 5,
            **variant,
        }
        if (routing := one.pop("Routing", None)) is not None:
            one["RoutingConfig"] = {"RoutingStrategy": routing}
        made.append(one)
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=made)
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    sagemaker.get_waiter("endpoint_in_service").wait(
        EndpointName=name, WaiterConfig={"Delay": 0.1, "MaxAttempts": 600}
    )


def read_both(*endpoints: str, variants: tuple[str, ...] = ()) -> tuple[Side, Side]:
    """Both sides of a comparison, in the AWS of the environment."""
    client, region = open_clients(None, None)
    return read_sides(Account(client, region), endpoints, variants)


@dataclass(frozen=True)
class PreciseServer:
    """A running precise server."""

    url: str

    @property
    def target(self) -> Target:
        """It, as an endpoint."""
        return Target("sentiment", "us-east-1", (self.url,), timeout_seconds=10)

    def times(self) -> list[float]:
        """Seconds that each answer really took, in the order of the answers."""
        with urllib.request.urlopen(f"{self.url}/times", timeout=60) as answer:
            times: list[float] = json.loads(answer.read())
        return times

    def generator(self, processes: int = 1, **options: Any) -> GeneratorProcess:
        """A generator that calls it."""
        options.setdefault("environment", ENVIRONMENT)
        payloads = options.pop("payloads", PAYLOADS)
        return GeneratorProcess(self.target, payloads, processes, **options)


class Scripted:
    """A server that sends bytes, piece by piece, in answer to each request of a connection.

    Then it closes, or without an end waits until the caller has gone; ``read`` has the requests.
    """

    def __init__(self, *answers: tuple[bytes, ...], ends: bool = True) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._answers, self._ends = answers, ends
        self.read: list[bytes] = []
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Scripted:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            for pieces in self._answers:
                self.read.append(connection.recv(1 << 16))
                for piece in pieces:
                    connection.sendall(piece)
                    time.sleep(0.02)
            if not self._ends:
                connection.recv(1)


def said_by(program: str) -> str:
    """What a Python program says in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@contextmanager
def served_by(program: str, **options: Any) -> Iterator[str]:
    """The URL of a server of this folder, in a process of its own."""
    with subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name(program))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(options).encode() + b"\n")
            process.stdin.flush()
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


@contextmanager
def precise_server(seconds: Sequence[float]) -> Iterator[PreciseServer]:
    """A server with these service times, taken in turn or by the request's own number."""
    with served_by("precise_server.py", seconds=seconds) as url:
        yield PreciseServer(url)
