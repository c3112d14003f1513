"""Warnings about alarms that judge too few requests."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from ..facts.rules import OBJECTIVE
from ..facts.token_values import is_token
from ..options.alarms import BURN_RATES, MINIMUM_FAILURES, ErrorLimit
from ..options.throughput import stated
from ..report.numbers import plain_number, readable
from .alarm_windows import (
    FEWEST_REQUESTS,
    SAMPLES_BEYOND,
    period_text,
    requests_in_period,
    samples_beyond,
    share_window,
)
from .decisions import PlanWarning
from .endpoint_request import EndpointRequest
from .plan import Plan

_DIGITS_OF_BUDGET = 2  # of the budget that an advised objective leaves


def sample_warnings(plan: Plan) -> Iterator[PlanWarning]:
    """Warns about alarms that judge too few requests, whatever period they take."""
    peak_tps = plan.request.peak_tps
    if peak_tps is None:
        return
    yield from _percentiles(plan, peak_tps)
    yield from _errors(plan.request, peak_tps)
    yield from _slow_requests(plan.request, peak_tps)


def _percentiles(plan: Plan, peak_tps: float) -> Iterator[PlanWarning]:
    """Percentiles that single requests decide."""
    longer = (
        "watch a lower percentile"
        if plan.request.alarm_window.period_seconds is None
        else "leave alarms.period out for one that is long enough"
    )
    for alarm in plan.alarms:
        beyond = samples_beyond(alarm.window, alarm.statistic, peak_tps)
        if beyond is None or beyond >= SAMPLES_BEYOND:
            continue
        yield PlanWarning(
            f"few-samples-{alarm.statistic}",
            f"even at the peak only {plain_number(float(beyond), 2)} requests in "
            f"{period_text(alarm.window)} are slower than {alarm.statistic}, so single requests "
            f"raise the alarm: {longer}",
        )


def _errors(request: EndpointRequest, peak_tps: float) -> Iterator[PlanWarning]:
    """An alarm on errors that an outage may not raise."""
    if request.error_limit is None:
        return
    window = share_window(request.alarm_window, peak_tps)
    requests = requests_in_period(window, peak_tps)
    failures = request.error_limit.failures
    if requests < FEWEST_REQUESTS or (not is_token(failures) and requests < failures):
        yield PlanWarning(
            "few-requests",
            f"even at the peak only {plain_number(float(requests), 2)} requests come in "
            f"{period_text(window)}, and the error alarm waits for {_failures(request)}: it may stay "
            "silent while all requests fail. "
            + (
                "A canary, or warm_up.keep_warm, sends more; alarms.minimum_failures can be lower"
                if request.alarm_window.period_seconds is None
                else "Leave alarms.period out for one that is long enough"
            ),
        )


def _failures(request: EndpointRequest) -> str:
    limit = request.error_limit or ErrorLimit()
    return "the stated failures" if is_token(limit.failures) else f"{limit.failures} failures"


def _slow_requests(request: EndpointRequest, peak_tps: float) -> Iterator[PlanWarning]:
    """Alarms on slow requests that a few of them raise, which says nothing of a month."""
    limit = request.slow_limit
    if limit is None or not few_slow_page(limit.budget, peak_tps):
        return
    hour, six_hours = (_requests_in(minutes, peak_tps) for minutes, _, _ in BURN_RATES.values())
    in_hour, in_six_hours = (
        math.floor(threshold) + 1 for threshold in _slow_thresholds(limit.budget, peak_tps)
    )
    highest = highest_objective(peak_tps)
    advice = (
        "Calls are too rare for alarms.slow_requests: leave it out"
        if highest is None
        else f"Lower its objective to at most {readable(float(highest))}"
    )
    yield PlanWarning(
        "few-requests-for-objective",
        f"even at the peak only {readable(float(hour))} requests come in an hour and "
        f"{readable(float(six_hours))} in six hours: the alarm of alarms.slow_requests goes off at "
        f"{in_hour} slow in an hour or {in_six_hours} in six hours, also in a month that keeps the "
        f"budget. {advice}",
    )


def few_slow_page(budget: Fraction, peak_tps: float) -> bool:
    """Whether three slow requests or fewer raise an alarm on slow requests.

    From four on, a share of slow requests a tenth of the alarm's threshold, 1.44 times the budget,
    raises at most one alarm in 10,000 minutes; three raise up to two, and two raise six.
    """
    return any(threshold < MINIMUM_FAILURES for threshold in _slow_thresholds(budget, peak_tps))


def highest_objective(peak_tps: float) -> Fraction | None:
    """The highest objective on slow requests that a few do not decide; None if none is allowed."""
    most = Fraction(0)
    for minutes, _, burn_rate in BURN_RATES.values():
        least_budget = MINIMUM_FAILURES / (stated(burn_rate) * _requests_in(minutes, peak_tps))
        most = max(most, least_budget)
    step = Fraction(10) ** (math.floor(math.log10(most)) + 1 - _DIGITS_OF_BUDGET)
    objective = min(1 - math.ceil(most / step) * step, stated(OBJECTIVE.maximum or 1))
    return objective if OBJECTIVE.holds(float(objective)) else None


def _slow_thresholds(budget: Fraction, peak_tps: float) -> list[Fraction]:
    """Slow requests above which each burn rate's long window is on, at the peak."""
    return [
        stated(burn_rate) * budget * _requests_in(minutes, peak_tps)
        for minutes, _, burn_rate in BURN_RATES.values()
    ]


def _requests_in(minutes: int, peak_tps: float) -> Fraction:
    return stated(peak_tps) * 60 * minutes
