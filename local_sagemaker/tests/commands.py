"""`local-sagemaker` as a process of its own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any


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
