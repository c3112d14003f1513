"""Why each alarm on a latency, on errors and on slow requests stands where it does."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from ..errors import AWS_DOCS
from ..facts.metrics import metric_facts
from ..facts.token_values import is_token
from ..options.alarms import BURN_RATES, DEFAULT_ERROR_RATE, FAST_BURN_RATE, SLOW_BURN_RATE
from ..options.throughput import stated
from ..report.numbers import milliseconds, readable
from .alarm_windows import (
    FEWEST_REQUESTS,
    SAMPLES_BEYOND,
    WINDOW_SOURCE,
    period_text,
    requests_in_period,
    samples_beyond,
    share_window,
    window_text,
)
from .decisions import Decision, alarm_name
from .endpoint_request import EndpointRequest
from .plan import AlarmThreshold, Plan
from .token_explanations import WHOLE_CALLS_OF_STREAMS

_MONITORING = AWS_DOCS + "/sagemaker/latest/dg/monitoring-cloudwatch.html"
_BURN_RATES = "https://sre.google/workbook/alerting-on-slos/"
_MONTH_DAYS = 30


def explain_alarms(plan: Plan) -> Iterator[Decision[Any]]:
    """One threshold per metric and statistic, in milliseconds, never above the target."""
    tightest = plan.request.latency.tightest if plan.request.latency else None
    for alarm in plan.alarms:
        if alarm.metric == "ModelLatency":
            rule = (
                "the target less the share kept for network and SageMaker's overhead, on the "
                "statistic of the target"
            )
            note = "AWS publishes no usual overhead: once measured, set the share to it"
            if plan.request.of_tokens:
                note = f"{WHOLE_CALLS_OF_STREAMS}, and answers differ in length; {note}"
        else:
            assert tightest is not None
            rule = (
                "the share of the tightest target kept for network and overhead; on the "
                "average, because no percentiles are listed as valid for this metric"
            )
            note = f"from {tightest[0]}; the callers' network is in no metric of SageMaker's"
        yield Decision(
            name=alarm_name(alarm.metric, alarm.statistic),
            value=alarm.milliseconds,
            unit="ms",
            rule=rule,
            inputs={
                "metric": alarm.metric,
                "statistic": alarm.statistic,
                "target in ms": alarm.target,
                "share": alarm.share,
                "evaluates": window_text(alarm.window),
                f"threshold in {metric_facts(alarm.metric).unit.lower()}": alarm.microseconds,
            },
            source=_MONITORING,
            overridden=plan.request.overhead_share is not None,
            note=f"{note}; {_window_note(plan.request, alarm)}",
        )
    yield from _errors(plan.request)
    yield from _slow_requests(plan.request)


def _window_note(request: EndpointRequest, alarm: AlarmThreshold) -> str:
    """Why a latency's alarm evaluates the periods that it does."""
    if request.alarm_window.period_seconds is not None:
        return "the period is stated"
    if request.peak_tps is None:
        return "without a throughput the period is a minute"
    beyond = samples_beyond(alarm.window, alarm.statistic, request.peak_tps)
    if beyond is not None:
        return (
            f"at the peak {readable(float(beyond))} requests in {period_text(alarm.window)} are slower than "
            f"{alarm.statistic}; with fewer than {SAMPLES_BEYOND} single requests decide"
        )
    requests = requests_in_period(alarm.window, request.peak_tps)
    return f"at the peak {readable(float(requests))} requests come in {period_text(alarm.window)}"


def _slow_requests(request: EndpointRequest) -> Iterator[Decision[Any]]:
    """The share of slow requests that pages, and what an objective's alarm never sees."""
    limit = request.slow_limit
    if limit is None or (request.share is not None and request.share.shadow):
        return
    budget = 100 * limit.budget
    fast, slow = (min(Fraction(100), stated(rate) * budget) for _, _, rate in BURN_RATES.values())
    days = readable(_MONTH_DAYS / SLOW_BURN_RATE)
    percentile = f"p{readable(100 * limit.objective)}"
    yield Decision(
        name="alarm_slow_requests",
        value=float(fast),
        unit="%",
        rule=f"{readable(FAST_BURN_RATE)} times the budget that the objective leaves, over an hour and "
        f"five minutes; or {readable(SLOW_BURN_RATE)} times, over six hours and thirty minutes",
        inputs={
            "objective": limit.objective,
            "slow from": milliseconds(limit.milliseconds, 6),
            "budget in %": float(budget),
            "over six hours in %": float(slow),
        },
        source=_BURN_RATES,
        note=f"slow requests that stay at {readable(float(slow))} % or less never page, and spend a "
        f"month's budget in {days} days or more: an alarm on {percentile} of ModelLatency sees them "
        f"(alarms.model_latency: {{{percentile}: {milliseconds(limit.milliseconds, 6)}}})",
    )


def _errors(request: EndpointRequest) -> Iterator[Decision[Any]]:
    """The share of failures that pages, and the periods in which they are counted."""
    limit = request.error_limit
    if limit is None or (request.share is not None and request.share.shadow):
        return
    window = share_window(request.alarm_window, request.peak_tps)
    inputs: dict[str, Any] = {
        "least failures in a period": _plain(limit.failures),
        "evaluates": window_text(window),
    }
    note = "callers that try again make several failures of one request, within one period"
    if limit.objective is not None:
        inputs["objective"] = limit.objective
    if request.peak_tps is not None:
        requests = requests_in_period(window, request.peak_tps)
        inputs["requests in a period at the peak"] = float(requests)
        if not is_token(limit.failures) and not is_token(limit.rate):
            share = limit.failures / requests
            if share > limit.rate:
                note = (
                    f"at the peak {limit.failures} failures are {readable(float(share * 100), 3)} % of a "
                    f"period's requests: a smaller share pages only where it lasts; {note}"
                )
    yield Decision(
        name="alarm_error_rate",
        value=_plain(limit.rate * 100 if not is_token(limit.rate) else limit.rate),
        unit="%",
        rule=(
            f"{readable(FAST_BURN_RATE)} times the budget that the objective leaves"
            if limit.objective is not None
            else "the share of requests that may fail"
        )
        + f", in periods with at least {FEWEST_REQUESTS} requests at the peak",
        inputs=inputs,
        source=WINDOW_SOURCE,
        overridden=limit.rate != DEFAULT_ERROR_RATE and limit.objective is None,
        note=note,
    )


def _plain(value: float) -> Any:
    """A number, or that a token stands for it."""
    return "as stated" if is_token(value) else value
