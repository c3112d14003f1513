"""Where the alarms on a latency, on errors and on slow requests stand, and why."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from ..errors import AWS_DOCS
from ..facts.metrics import check_statistic, metric_facts, microseconds_from_milliseconds
from ..facts.token_values import is_token
from ..options.alarms import BURN_RATES, DEFAULT_ERROR_RATE, FAST_BURN_RATE, SLOW_BURN_RATE
from ..options.throughput import stated
from ..report.numbers import milliseconds, readable
from .alarm_windows import (
    FEWEST_REQUESTS,
    SAMPLES_BEYOND,
    WINDOW_SOURCE,
    AlarmWindow,
    latency_window,
    period_text,
    requests_in_period,
    samples_beyond,
    share_window,
    window_text,
)
from .decisions import Decision, alarm_name
from .endpoint_request import EndpointRequest

_MONITORING = AWS_DOCS + "/sagemaker/latest/dg/monitoring-cloudwatch.html"
_BURN_RATES = "https://sre.google/workbook/alerting-on-slos/"
_MONTH_DAYS = 30
DEFAULT_OVERHEAD_SHARE = 0.2
WHOLE_CALLS_OF_STREAMS = (
    "of a streamed answer no page of AWS's says whether ModelLatency ends with the first or with "
    "the last byte"
)


class AlarmThreshold(NamedTuple):
    """One threshold: the target's share for the metric, never above the target."""

    metric: str
    statistic: str
    target: float  # in milliseconds
    window: AlarmWindow
    decision: Decision[float]  # in milliseconds

    @property
    def milliseconds(self) -> float:
        """The threshold."""
        return self.decision.value

    @property
    def microseconds(self) -> float:
        """The threshold as CloudWatch has the metric."""
        return microseconds_from_milliseconds(self.milliseconds)


def alarm_thresholds(request: EndpointRequest) -> Iterator[AlarmThreshold]:
    """Split the target between model and overhead; one threshold per metric and statistic."""
    latency = request.latency
    if latency is None or latency.tightest is None or request.is_rare:
        return  # of rare calls a percentile, and an average, is that of a single one
    kept = kept_for_overhead(request)
    note = "AWS publishes no usual overhead: once measured, set the share to it"
    if request.of_tokens:
        note = f"{WHOLE_CALLS_OF_STREAMS}, and answers differ in length; {note}"
    for statistic, target in latency.milliseconds.items():
        yield _threshold(
            request,
            "ModelLatency",
            statistic,
            target,
            1 - kept,
            rule="the target less the share kept for network and SageMaker's overhead, on the "
            "statistic of the target",
            note=note,
        )
    yield _threshold(
        request,
        "OverheadLatency",
        "Average",
        latency.tightest[1],
        kept,
        rule="the share of the tightest target kept for network and overhead; on the "
        "average, because no percentiles are listed as valid for this metric",
        note=f"from {latency.tightest[0]}; the callers' network is in no metric of SageMaker's",
    )


def _threshold(
    request: EndpointRequest,
    metric: str,
    statistic: str,
    target: float,
    share: Fraction,
    *,
    rule: str,
    note: str,
) -> AlarmThreshold:
    """Return the threshold on a metric and a statistic from a target and the share of it."""
    check_statistic(metric, statistic)
    window = latency_window(request.alarm_window, statistic, request.peak_tps)
    milliseconds = share_of_target(target, share)
    unit = metric_facts(metric).unit.lower()
    decision = Decision(
        name=alarm_name(metric, statistic),
        value=milliseconds,
        unit="ms",
        rule=rule,
        inputs={
            "metric": metric,
            "statistic": statistic,
            "target in ms": target,
            "share": float(share),
            "evaluates": window_text(window),
            f"threshold in {unit}": microseconds_from_milliseconds(milliseconds),
        },
        source=_MONITORING,
        overridden=request.overhead_share is not None,
        note=f"{note}; {_window_note(request, window, statistic)}",
    )
    return AlarmThreshold(metric, statistic, target, window, decision)


def kept_for_overhead(request: EndpointRequest) -> Fraction:
    """The share of the target for network and SageMaker's overhead."""
    return stated(
        DEFAULT_OVERHEAD_SHARE if request.overhead_share is None else request.overhead_share
    )


def share_of_target(target: float, share: Fraction) -> float:
    """A share of a target in milliseconds; never more than the target, whatever is rounded."""
    return min(float(stated(target) * share), target)


def _window_note(request: EndpointRequest, window: AlarmWindow, statistic: str) -> str:
    """Why a latency's alarm evaluates the periods that it does."""
    if request.alarm_window.period_seconds is not None:
        return "the period is stated"
    if request.peak_tps is None:
        return "without a throughput the period is a minute"
    beyond = samples_beyond(window, statistic, request.peak_tps)
    if beyond is not None:
        return (
            f"at the peak {readable(float(beyond))} requests in {period_text(window)} are slower than "
            f"{statistic}; with fewer than {SAMPLES_BEYOND} single requests decide"
        )
    requests = requests_in_period(window, request.peak_tps)
    return f"at the peak {readable(float(requests))} requests come in {period_text(window)}"


def explain_errors_and_slow_requests(request: EndpointRequest) -> Iterator[Decision[Any]]:
    """The shares of failures and of slow requests that page."""
    yield from _errors(request)
    yield from _slow_requests(request)


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
