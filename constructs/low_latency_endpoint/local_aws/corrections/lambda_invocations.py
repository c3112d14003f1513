"""Lambda invocations: moto needs Docker; here the function runs in a subprocess."""

from __future__ import annotations

import json
from typing import Any

from flask import request
from moto.awslambda.models import LambdaFunction

from .. import lambda_runner


def as_function(found: Any, url: str) -> lambda_runner.Function:
    """Translate moto's function into the runner's."""
    return lambda_runner.Function(
        name=found.function_name,
        arn=found.function_arn,
        runtime=str(found.run_time),
        handler=found.handler,
        code=found.code_bytes,
        timeout=int(found.timeout or 3),
        memory=int(found.memory_size or 128),
        environment={k: str(v) for k, v in (found.environment_vars or {}).items()},
        region=found.region,
        url=url,
    )


def apply() -> None:
    """Run functions without Docker, and write their output to their log group."""

    def invoke(self: Any, event: Any = None) -> tuple[str, bool, str]:
        self.logs_backend.ensure_log_group(self.logs_group_name)
        payload = json.loads(event) if isinstance(event, str) else event
        url = f"http://{request.host}"
        outcome = lambda_runner.run(as_function(self, url), payload or {})
        self.save_logs(outcome.log or " ")
        return outcome.payload, outcome.failed, outcome.log

    LambdaFunction._invoke_lambda = invoke
