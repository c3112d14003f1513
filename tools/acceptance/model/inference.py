"""The model under test: answers at once, slowly, with failures, or not at all.

SageMaker's PyTorch containers import this file from ``code/`` of the model archive and call
``model_fn`` and ``transform_fn``. Standard library only, and nothing of the library's.
"""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any


def model_fn(model_dir: str, context: Any = None) -> str:
    """Nothing to load; the crashing variant ends its container."""
    variant = os.environ.get("ACCEPTANCE_VARIANT", "good")
    if variant == "crashing":
        parent = os.getppid()
        # TorchServe would start another worker for ever: with it the container ends.
        if b"java" in Path(f"/proc/{parent}/cmdline").read_bytes():
            os.kill(parent, signal.SIGKILL)
        os._exit(1)
    return variant


def transform_fn(
    variant: str, body: Any, content_type: str, accept: str, context: Any = None
) -> str:
    """Answer with this instance's addresses: they tell its Availability Zone."""
    request = json.loads(body)
    if variant == "failing" or request.get("fail"):
        raise RuntimeError("told to fail")
    if variant == "slow":
        time.sleep(1.5)
    answer: dict[str, Any] = {"variant": variant}
    if request.get("addresses"):
        told = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False)
        answer["addresses"] = told.stdout.split()
    return json.dumps(answer)
