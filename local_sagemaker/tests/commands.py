"""`local-sagemaker` as a process of its own, and other programs."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from signed_requests import client_with


def python(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    told = [sys.executable, *arguments]
    return subprocess.run(told, capture_output=True, text=True, check=False, timeout=300, **more)


@contextlib.contextmanager
def command(*arguments: str, **more: Any) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """The process, and the variables that it has printed; it ends with the block."""
    with subprocess.Popen(
        [sys.executable, "-m", "local_sagemaker", *arguments],
        stdout=subprocess.PIPE,
        **{"stderr": subprocess.DEVNULL, "text": True, **more},
    ) as process:
        assert process.stdout is not None
        exported: dict[str, str] = {}
        try:
            while "CDK_DISABLE_CLI_TELEMETRY" not in exported:  # the last of them
                line = process.stdout.readline()
                assert line, "it ended"
                key, _, value = line.strip().removeprefix("export ").partition("=")
                exported[key] = value
            yield process, exported
        finally:
            process.terminate()
            process.wait(60)


@dataclass(frozen=True)
class Served:
    """A local AWS in a process of its own, known by the variables that it prints."""

    variables: Mapping[str, str]
    account: str = "123456789012"
    known: dict[str, Any] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        if service not in self.known:
            given = self.variables
            own = f"AWS_ENDPOINT_URL_{service.upper()}".replace("-", "_")
            keys = (given["AWS_ACCESS_KEY_ID"], given["AWS_SECRET_ACCESS_KEY"])
            url = given.get(own, given["AWS_ENDPOINT_URL"])
            self.known[service] = client_with(service, url, *keys)
        return self.known[service]
