"""The account under test: its clients, what deploys into it, how time passes in it, traffic."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Protocol, cast

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from .hub_model import HubModel

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "acceptance"
"""What a run writes: lock files, assemblies, what its steps saw, its report."""

_CALLERS = 8
_REQUESTS_PER_SECOND = 2.0
_MOST_PER_SECOND = 48.0  # to a local AWS with a fast clock: enough for its alarms, cheap here


class Deployer(Protocol):
    """Deploys a variant, and destroys its stack; each gives what went wrong, or nothing."""

    def deploy(self, suffix: str, zones: list[str], variant: str) -> str: ...

    def destroy(self, suffix: str, zones: list[str], variant: str) -> str: ...


def target_of(client: Any) -> str:
    """Where a client's requests go, read from the URL that it would use."""
    host = str(client.meta.endpoint_url).partition("://")[2].partition("/")[0]
    of_aws = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws", ".amazonaws.eu")
    return "aws" if host.endswith(of_aws) else "local"


@dataclass(frozen=True)
class World:
    """The account under test."""

    client: Callable[[str], Any]
    """Service name to boto3 client, in the region."""
    account: str
    region: str
    target: str
    """``aws`` or ``local``: evidence of the second proves nothing about the first."""
    deployer: Deployer
    speed: float = 1.0
    """How many times faster than real time the target's clock runs."""

    def wait(self, seconds: float) -> None:
        """Wait for seconds of the target's clock; to ask more often than that is no use."""
        time.sleep(max(seconds / self.speed, 0.02))


class CdkCli:
    """The CDK CLI of package-lock.json, unmodified, as ``make deploy`` runs it."""

    def __init__(self, account: str, region: str, folder: Path, hub: HubModel) -> None:
        self._folder = folder
        self._hub = hub
        self._environment = {
            **os.environ,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            "CDK_DEFAULT_ACCOUNT": account,
            "CDK_DEFAULT_REGION": region,
            "JSII_RUNTIME_PACKAGE_CACHE": "enabled",
            "NODE_NO_WARNINGS": "1",
        }

    def deploy(self, suffix: str, zones: list[str], variant: str) -> str:
        """``cdk deploy``; an unchanged stack is no error."""
        return self._run("deploy", suffix, zones, variant, "--require-approval", "never")

    def destroy(self, suffix: str, zones: list[str], variant: str) -> str:
        """``cdk destroy``; a stack that is gone is no error."""
        return self._run("destroy", suffix, zones, variant, "--force")

    def _run(self, verb: str, suffix: str, zones: list[str], variant: str, *more: str) -> str:
        assembly = self._folder / f"cdk.out-{suffix}-{variant}"
        app = str(assembly)
        if not (assembly / "manifest.json").exists():  # it is what the synthesis writes last
            shutil.rmtree(assembly, ignore_errors=True)
            app = f'"{sys.executable}" -m tools.acceptance.app'
        command = [str(ROOT / "node_modules" / ".bin" / "cdk"), verb, "--all", *more]
        command += ["--app", app, "--output", str(assembly), "--no-notices", "--no-color", "--ci"]
        for context in (
            f"suffix={suffix}",
            f"variant={variant}",
            f"zones={','.join(zones)}",
            f"hub={json.dumps(asdict(self._hub))}",
        ):
            command += ["-c", context]
        # In this process's group, so that whatever kills the run kills the CLI with it.
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            output = cast(IO[str], process.stdout)
            tail = deque((line.rstrip() for line in output), maxlen=15)
        return "\n".join(tail) if process.returncode else ""


@contextmanager
def traffic(
    world: World, endpoint: str, request: Mapping[str, Any] | None = None
) -> Iterator[Counter[str]]:
    """Send two requests a second, by the target's clock, while the block lasts; counts answers."""
    client, answers = world.client("sagemaker-runtime"), Counter[str]()
    body = json.dumps(request or {"fail": False}).encode()
    pause = _CALLERS / min(_REQUESTS_PER_SECOND * world.speed, _MOST_PER_SECOND)
    stop = threading.Event()

    def send() -> None:
        while not stop.is_set():
            began = time.monotonic()
            try:
                client.invoke_endpoint(
                    EndpointName=endpoint, ContentType="application/json", Body=body
                )
                answer = "ok"
            except ClientError as refused:
                answer = str(refused.response["Error"]["Code"])
            except BotoCoreError as broken:
                answer = type(broken).__name__
            answers[answer] += 1
            stop.wait(max(0.0, pause - (time.monotonic() - began)))

    threads = [threading.Thread(target=send, daemon=True) for _ in range(_CALLERS)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        stop.set()
        for thread in threads:
            thread.join()


ONE_TRY = Config(retries={"total_max_attempts": 1}, read_timeout=70)
"""For invocations: a retry would hide the failure that is counted."""
