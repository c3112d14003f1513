"""EventBridge's scheduled rules, which run when a test says so."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from moto.awslambda.exceptions import UnknownFunctionException
from moto.awslambda.models import lambda_backends
from moto.events.models import events_backends

from .connections import ACCOUNT
from .corrections.lambda_functions import run
from .permissions.gate import is_enforced
from .permissions.judge import may_deliver
from .runtime.service import Runtime


def run_schedules(runtime: Runtime) -> list[str]:
    """Run the functions of all enabled scheduled rules once; gives their names."""
    due = [
        (function, _input(rule, target), region, rule)
        for region, rule in _rules()
        for target in rule.targets
        if (function := _function(runtime, region, rule, target["Arn"])) is not None
    ]

    def invoke(function: Any, given: str | None, region: str, rule: Any) -> str:
        event = json.loads(given) if given else _event(runtime, region, rule)
        run(function, runtime.aws_url, event)
        return str(function.function_name)

    with ThreadPoolExecutor(max_workers=max(1, len(due))) as pool:
        return list(pool.map(lambda each: invoke(*each), due))


def _input(rule: Any, target: Mapping[str, Any]) -> str | None:
    if unknown := {"InputPath", "InputTransformer"}.intersection(target):
        raise ValueError(f"{', '.join(sorted(unknown))} of {rule.name} is not emulated: use Input")
    return target.get("Input")


def _rules() -> Iterator[tuple[str, Any]]:
    for region, backend in list(events_backends[ACCOUNT].items()):
        for bus in list(backend.event_buses.values()):
            for rule in list(bus.rules.values()):
                if rule.scheduled_expression and rule.state != "DISABLED":
                    yield region, rule


def _function(runtime: Runtime, region: str, rule: Any, arn: str) -> Any:
    """Find a target; None when it is no function, or does not let the rule in."""
    # Source: EventBridge user guide, "Using resource-based policies": a rule whose target refuses it
    # runs nothing, and says so in a metric only.
    if not arn.startswith("arn:aws:lambda:"):
        return None
    if is_enforced(runtime.aws_url) and not may_deliver("events", arn, rule.arn):
        return None
    try:
        return lambda_backends[ACCOUNT][region].get_function(arn)
    except UnknownFunctionException:
        return None


def _event(runtime: Runtime, region: str, rule: Any) -> dict[str, Any]:
    # Source: EventBridge user guide, "Creating a rule that runs on a schedule".
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": ACCOUNT,
        "time": f"{runtime.clock.moment():%Y-%m-%dT%H:%M:%SZ}",
        "region": region,
        "resources": [rule.arn],
        "detail": {},
    }
