"""Whose fault it is that a load generator was late: its machine's, or that of answers that did not come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...report.numbers import milliseconds
from ..engine.steps import was_punctual, was_without_connections
from .measured_steps import MeasuredStep
from .result_file import LoadTestRun
from .verdict_texts import Verdict, verdict_of

#: How many times longer than alone a request takes of an endpoint that is full; and of one that is not.
_FULL, _AS_ALONE = 2.0, 1.25
_FEWER = "Send fewer requests a second: --find-limit finds how many it holds."
_MORE_WAIT = "More processes would only let more requests wait."


class _Cause(NamedTuple):
    """Why a generator was late, and what helps; empty where the row of ``client-bound`` says it."""

    title: str = ""
    advice: str = ""
    evidence: tuple[str, ...] = ()


def sender_verdict(run: LoadTestRun) -> Iterator[Verdict]:
    """The verdict on the steps that the generator limited, by the last of them."""
    bound = [step for step in run.steps if step.judgement.outcome == "client-bound"]
    if not bound:
        return
    last = bound[-1]
    # A search goes on after one stumble, and one caller alone is not what is judged.
    whole = any(step.purpose != "alone" for step in bound) and not (
        run.limit is not None and run.limit.found
    )
    cause = _cause(run, last)
    said = cause.title or "The machine that sent was too busy"
    names = ", ".join(step.result.step.name for step in bound)
    title = f"{said} in {names}: those latencies are no measurement of the endpoint's"
    if whole:
        title = f"Client-bound: result invalid. {cause.title}" if cause.title else ""
    reasons = (f"{last.result.step.name}: {reason}" for reason in last.result.client_bound)
    yield verdict_of(
        "client-bound",
        "invalid" if whole else "risk",
        *reasons,
        *cause.evidence,
        title=title,
        advice=cause.advice,
    )


def _cause(run: LoadTestRun, step: MeasuredStep) -> _Cause:
    """Why the generator was late in a step, as far as the figures tell."""
    result, alone = step.result, run.alone
    if not was_without_connections(result):
        return _Cause()
    if not was_punctual(result):
        return _Cause(
            "The machine that sent was too busy, or the endpoint too slow for so many requests: which "
            "of the two is not known",
            f"{_FEWER} Look at what else keeps the machine busy.",
        )
    waiting = "All connections of the machine that sent were waiting for answers"
    if alone is None or not alone.result.service.count:
        return _Cause(
            f"{waiting}: whether the endpoint is over its limit is not known, as nobody called it alone",
            f"{_FEWER} Leave out --alone 0s: one caller alone shows what an answer takes.",
        )
    now, before = result.service.mean, alone.result.service.mean
    times = (
        f"a request takes {milliseconds(1000 * now, 4)} on average from when it was sent, and "
        f"{milliseconds(1000 * before, 4)} alone",
    )
    if now > _FULL * before:
        title = f"{waiting}: the endpoint is over its limit"
        return _Cause(title, f"{_FEWER} {_MORE_WAIT}", times)
    if now < _AS_ALONE * before:
        title = f"{waiting}, which took no longer than alone: it has too few for this rate"
        return _Cause(title, "Use more --processes, or a fleet: each process has 10,000.", times)
    return _Cause(f"{waiting}: whether the endpoint is over its limit is not known", _FEWER, times)
