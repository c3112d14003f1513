"""Runs inside a function's subprocess: loads the handler, calls it, writes the answer.

This file is started as a script and must not import anything of the library's.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
import uuid
from pathlib import Path


class Context:
    """What a handler gets as its second argument."""

    def __init__(self) -> None:
        self.function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
        self.function_version = "$LATEST"
        self.invoked_function_arn = os.environ["LOCAL_FUNCTION_ARN"]
        self.memory_limit_in_mb = os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"]
        self.aws_request_id = str(uuid.uuid4())
        self.log_group_name = os.environ["AWS_LAMBDA_LOG_GROUP_NAME"]
        self.log_stream_name = os.environ["AWS_LAMBDA_LOG_STREAM_NAME"]
        self.identity = None
        self.client_context = None
        self._deadline = time.monotonic() + float(os.environ["LOCAL_FUNCTION_TIMEOUT"])

    def get_remaining_time_in_millis(self) -> int:
        """Give the time left before Lambda would stop the function."""
        return max(0, int((self._deadline - time.monotonic()) * 1000))


def main(event_file: Path, answer: Path) -> None:
    """Call the handler with the event of a file."""
    answer.with_name("begun").touch()
    task_root = os.environ["LAMBDA_TASK_ROOT"]
    # First the function's own code; last the modules that Lambda brings along for inline code.
    sys.path.insert(0, task_root)
    sys.path.append(str(Path(__file__).with_name("lambda_modules")))
    event = json.loads(event_file.read_text())
    module, _, function = os.environ["_HANDLER"].rpartition(".")
    try:
        handler = getattr(importlib.import_module(module.replace("/", ".")), function)
        result = {"failed": False, "payload": handler(event, Context())}
        text = json.dumps(result, default=str)
    except BaseException as error:
        traceback.print_exc()
        failure = {
            "errorMessage": str(error),
            "errorType": type(error).__name__,
            "stackTrace": traceback.format_tb(error.__traceback__),
        }
        text = json.dumps({"failed": True, "payload": failure})
    answer.write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
