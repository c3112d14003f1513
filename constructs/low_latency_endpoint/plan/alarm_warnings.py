"""Warnings about alarms that judge too few requests."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from ..facts.rules import OBJECTIVE
from ..facts.token_values import is_token
from ..options.alarms import BURN_RATES, MINIMUM_FAILURES, ErrorLimit
from ..options.throughput import MeasuredThroughput, stated
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
_OF_A_DAY = 10  # times as much at a day's peak as at its night, of usual callers


class _Time(NamedTuple):
    """A time of the day at which alarms are judged, with the variant's rate in it."""

    words: str
    tps: float
    fewest: int  # requests in a period below which an outage may not raise the alarm on errors
    longer_helps: bool  # whether the alarms' own periods would be long enough


def sample_warnings(plan: Plan) -> Iterator[PlanWarning]:
    """Warns about alarms that judge too few requests, at the peak or at the lowest peak of the day.

    Yields one warning of a kind: what is too little at the peak is so at all times.
    """
    measured = plan.request.throughput
    if measured is None:
        return
    lowest = measured.quietest[1]
    is_stated = plan.request.alarm_window.period_seconds is not None
    peak = _Time("even at the peak", measured.peak_tps, FEWEST_REQUESTS, is_stated)
    warnings = {warning.id: warning for warning in _at(plan, peak)}
    if lowest < measured.peak_tps:
        # At this rate three requests of a period fail within minutes of an outage, if all do.
        quiet = _Time(when_quietest(measured), lowest, 0, False)
        warnings = {warning.id: warning for warning in _at(plan, quiet)} | warnings
    yield from warnings.values()


def when_quietest(measured: MeasuredThroughput) -> str:
    """The lowest peak of the day, in words before what is too little then."""
    name, tps = measured.quietest
    if not name:
        return "even at the peak"
    return f"at the {readable(tps)} requests per second of throughput.peaks.{name}"


def _at(plan: Plan, time: _Time) -> Iterator[PlanWarning]:
    yield from _percentiles(plan, time)
    yield from _errors(plan.request, time)
    yield from _slow_requests(plan.request, time)


def _percentiles(plan: Plan, time: _Time) -> Iterator[PlanWarning]:
    """Percentiles that single requests decide."""
    remedy = (
        "leave alarms.period out for one that is long enough"
        if time.longer_helps
        else "watch a lower percentile"
    )
    for alarm in plan.alarms:
        beyond = samples_beyond(alarm.window, alarm.statistic, time.tps)
        if beyond is None or beyond >= SAMPLES_BEYOND:
            continue
        slower = plain_number(float(beyond), 2)
        are = "request is" if slower == "1" else "requests are"
        yield PlanWarning(
            f"few-samples-{alarm.statistic}",
            f"{time.words} only {slower} {are} slower than {alarm.statistic} in "
            f"{period_text(alarm.window)}, so single requests raise the alarm: {remedy}",
        )


def _errors(request: EndpointRequest, time: _Time) -> Iterator[PlanWarning]:
    """An alarm on errors that an outage may not raise."""
    if request.error_limit is None or request.canary_bytes is not None:  # a canary tells by itself
        return
    window = share_window(request.alarm_window, request.peak_tps)
    requests = requests_in_period(window, time.tps)
    failures = request.error_limit.failures
    fewest = time.fewest if is_token(failures) else max(time.fewest, failures)
    if requests >= fewest:
        return
    remedy = (
        "Leave alarms.period out for one that is long enough"
        if time.longer_helps
        else "A canary, or warm_up.keep_warm, sends more; alarms.minimum_failures can be lower"
    )
    count = plain_number(float(requests), 2)
    come = "request comes" if count == "1" else "requests come"
    yield PlanWarning(
        "few-requests",
        f"{time.words} only {count} {come} in {period_text(window)}, and the error alarm waits for "
        f"{_failures(request)}: it may stay silent while all requests fail. {remedy}",
    )


def _failures(request: EndpointRequest) -> str:
    limit = request.error_limit or ErrorLimit()
    return "the stated failures" if is_token(limit.failures) else f"{limit.failures} failures"


def assumed_rates(request: EndpointRequest) -> str:
    """What the alarms' periods rest on if so low a peak is the only stated rate, or nothing."""
    measured = request.throughput
    if measured is None or measured.quietest[1] < measured.peak_tps:
        return ""
    window = share_window(request.alarm_window, measured.peak_tps)
    if requests_in_period(window, measured.peak_tps) >= _OF_A_DAY * FEWEST_REQUESTS:
        return ""
    return (
        "no time is much quieter than the peak, whose rate the alarms' periods follow "
        "(throughput.peaks states quiet times)"
    )


def _slow_requests(request: EndpointRequest, time: _Time) -> Iterator[PlanWarning]:
    """Alarms on slow requests that a few of them raise, which says nothing of a month."""
    limit = request.slow_limit
    tps = time.tps
    if limit is None or not few_slow_page(limit.budget, tps):
        return
    hour, six_hours = (_requests_in(minutes, tps) for minutes, _, _ in BURN_RATES.values())
    in_hour, in_six_hours = (
        math.floor(threshold) + 1 for threshold in _slow_thresholds(limit.budget, tps)
    )
    highest = highest_objective(tps)
    advice = (
        "Calls are too rare for alarms.slow_requests: leave it out"
        if highest is None
        else f"Lower its objective to at most {readable(float(highest))}"
    )
    yield PlanWarning(
        "few-requests-for-objective",
        f"{time.words} only {readable(float(hour))} requests come in an hour and "
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
