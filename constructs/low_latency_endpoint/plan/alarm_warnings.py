"""Warnings about alarms that judge too few requests."""

from __future__ import annotations

from collections.abc import Iterator

from ..facts.token_values import is_token
from ..options.alarms import ErrorLimit
from ..report.numbers import plain_number
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


def sample_warnings(plan: Plan) -> Iterator[PlanWarning]:
    """Warns about alarms that judge too few requests, whatever period they take."""
    request = plan.request
    if request.peak_tps is None:
        return
    for alarm in plan.alarms:
        beyond = samples_beyond(alarm.window, alarm.statistic, request.peak_tps)
        if beyond is None or beyond >= SAMPLES_BEYOND:
            continue
        longer = (
            "watch a lower percentile"
            if request.alarm_window.period_seconds is None
            else "leave alarms.period out for one that is long enough"
        )
        yield PlanWarning(
            f"few-samples-{alarm.statistic}",
            f"even at the peak only {plain_number(float(beyond), 2)} requests in "
            f"{period_text(alarm.window)} are slower than {alarm.statistic}, so single requests "
            f"raise the alarm: {longer}",
        )
    if request.error_limit is None:
        return
    window = share_window(request.alarm_window, request.peak_tps)
    requests = requests_in_period(window, request.peak_tps)
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
