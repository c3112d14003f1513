"""Ends a load test whose requests reach no instance: what it would measure is not the endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from ...errors import rule
from ..engine.failure_causes import (
    CONNECTIONS,
    LASTING,
    NOT_THE_INSTANCES,
    SENDER,
    cause_of_most,
    causes,
    explained,
)
from ..engine.steps import Progress, StepResult, most_frequent
from .measured_steps import MeasuredStep

NOTHING_ANSWERED = rule(
    "LLT112",
    "the endpoint barely serves a single caller",
    fix="Send one request by hand. Check payload, content type, sagemaker:InvokeEndpoint and "
    "the container's log.",
    source="/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html",
)
NO_INSTANCE_REACHED = rule(
    "LLT143",
    "the load test ended early: most of its requests reached no instance",
    fix="Mend what failed the requests, and test again.",
)
_FAILED_ALONE = 0.5


def check_reached(
    result: StepResult, timeline: Sequence[Progress] = (), *, lasting: bool = False
) -> None:
    """End a load test of which most requests reach no instance; ``lasting``: by a cause that stays."""
    cause = cause_of_most(result)
    if not cause or (lasting and cause not in LASTING):
        return
    meaning = explained(result, cause)
    raise NO_INSTANCE_REACHED.error(
        got=f"{NOT_THE_INSTANCES[cause]} in {result.failed:,} of {result.sent:,} requests"
        f"{_since(result, timeline)}: {most_frequent(result.failures)}",
        allowed="requests that reach an instance",
        fix=meaning.fix if meaning is not None else "",
        where=result.step.name,
    )


def _since(result: StepResult, timeline: Sequence[Progress]) -> str:
    """Since when a step had no good answer; empty where it had one until its end."""
    answered = [second.seconds for second in timeline if second.completed]
    last_answer = max(answered, default=0.0)
    if result.completed and (not timeline or last_answer >= timeline[-1].seconds):
        return ""
    began = result.started_at - result.step.settle_seconds
    since = datetime.fromtimestamp(began + last_answer, UTC)
    return f", since {since:%H:%M:%S} UTC"


def check_answered(alone: MeasuredStep) -> None:
    """Refuse to load an endpoint that does not even answer one caller."""
    result = alone.result
    cause = cause_of_most(result)
    if cause in (CONNECTIONS, SENDER):
        check_reached(alone.result, alone.timeline)
    throttled = causes(result.errors)["throttled"]  # by the account, and that is told
    if result.completed + throttled and result.failed - throttled <= _FAILED_ALONE * result.sent:
        return
    kinds = most_frequent(result.failures, None)
    meaning = explained(result, cause) if cause else None
    raise NOTHING_ANSWERED.error(
        got=f"{result.completed:,} good answers to {result.sent:,} requests"
        + (f" ({kinds})" if kinds else ""),
        allowed="good answers to most requests",
        fix=meaning.fix if meaning is not None else "",
        where=result.step.name,
    )
