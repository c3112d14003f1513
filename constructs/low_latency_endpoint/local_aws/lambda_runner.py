"""Runs a deployed Python function in a subprocess, without Docker.

The code runs with the user's own rights on this machine. What it gets is a minimal environment:
nothing of the user's, and an endpoint URL and keys that can only reach the local AWS.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .connections import DUMMY_KEY

_BOOTSTRAP = Path(__file__).with_name("lambda_bootstrap.py")
_folders: dict[str, Path] = {}
_folders_lock = threading.Lock()

# Variables by which a function could be turned towards a real account.
_REDIRECTING = (
    "AWS_ACCESS_KEY",
    "AWS_CONFIG_FILE",
    "AWS_CONTAINER_",
    "AWS_DEFAULT_PROFILE",
    "AWS_ENDPOINT_URL",
    "AWS_IGNORE_CONFIGURED",
    "AWS_PROFILE",
    "AWS_ROLE_ARN",
    "AWS_SECRET",
    "AWS_SESSION_TOKEN",
    "AWS_SHARED_CREDENTIALS",
    "AWS_WEB_IDENTITY",
)


@dataclass(frozen=True)
class Function:
    """What is needed to run a function."""

    name: str
    arn: str
    runtime: str
    handler: str
    code: bytes
    timeout: int
    memory: int
    environment: Mapping[str, str]
    region: str
    url: str


@dataclass(frozen=True)
class Outcome:
    """How an invocation ended.

    `payload` is the function's answer as JSON, or Lambda's error document when `failed`.
    """

    payload: str
    failed: bool
    log: str

    @property
    def error(self) -> str:
        """The error's message, empty when there was none."""
        if not self.failed:
            return ""
        document = json.loads(self.payload)
        return str(document.get("errorMessage", self.payload))


def run(function: Function, event: Any) -> Outcome:
    """Invoke a function and wait for it."""
    if not function.runtime.startswith("python"):
        return _failure(
            "Runtime.NotEmulated",
            f"the local AWS runs Python functions only; {function.name} is {function.runtime}",
        )
    with tempfile.TemporaryDirectory(prefix="local-lambda-") as scratch:
        answer = Path(scratch) / "answer.json"
        command = [sys.executable, "-I", str(_BOOTSTRAP), str(answer)]
        try:
            process = subprocess.run(
                command,
                input=json.dumps(event).encode(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=_environment(function, scratch),
                cwd=_unpacked(function.code),
                timeout=function.timeout,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            log = (error.stdout or b"").decode("utf-8", "replace")
            message = f"Task timed out after {function.timeout:.2f} seconds"
            return _failure("Sandbox.Timedout", message, log)
        log = process.stdout.decode("utf-8", "replace")
        if not answer.exists():
            message = f"Runtime exited with error: exit status {process.returncode}"
            return _failure("Runtime.ExitError", message, log)
        result = json.loads(answer.read_text())
        return Outcome(json.dumps(result["payload"]), result["failed"], log)


def _failure(kind: str, message: str, log: str = "") -> Outcome:
    payload = json.dumps({"errorType": kind, "errorMessage": message})
    return Outcome(payload, True, f"{log}\n{message}".strip())


def _environment(function: Function, scratch: str) -> dict[str, str]:
    own = {
        name: value
        for name, value in function.environment.items()
        if not name.startswith(_REDIRECTING)
    }
    minimal = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    return {
        **minimal,
        "HOME": scratch,
        "TMPDIR": scratch,
        "LANG": "C.UTF-8",
        **own,
        "_HANDLER": function.handler,
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory),
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{function.name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": "local",
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{function.runtime}",
        "LAMBDA_TASK_ROOT": str(_unpacked(function.code)),
        "LOCAL_FUNCTION_ARN": function.arn,
        "LOCAL_FUNCTION_TIMEOUT": str(function.timeout),
        "AWS_REGION": function.region,
        "AWS_DEFAULT_REGION": function.region,
        "AWS_ENDPOINT_URL": function.url,
        "AWS_ACCESS_KEY_ID": DUMMY_KEY,
        "AWS_SECRET_ACCESS_KEY": DUMMY_KEY,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def _unpacked(code: bytes) -> Path:
    """Unpack a function's archive, once per archive."""
    digest = hashlib.sha256(code).hexdigest()
    with _folders_lock:
        if digest not in _folders:
            folder = Path(tempfile.mkdtemp(prefix="local-lambda-code-"))
            with zipfile.ZipFile(io.BytesIO(code)) as archive:
                archive.extractall(folder)
            _folders[digest] = folder
        return _folders[digest]
