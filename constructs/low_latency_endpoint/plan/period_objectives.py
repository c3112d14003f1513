"""The service level objective on periods: which threshold it judges, and where too few requests decide.

Start at :func:`planned_objective`. Application Signals takes periods of at most 15 minutes, so at a
low rate a period has fewer requests than the alarm on the same threshold waits for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple, cast

from ..facts.rules import LONGEST_OBJECTIVE_PERIOD_SECONDS, OBJECTIVE, has_objectives
from ..facts.zones import region_of_zone
from ..options.alarms import WindowOptions, tightest_of
from ..options.throughput import stated
from ..report.numbers import milliseconds, readable
from .alarm_warnings import highest_objective, when_quietest
from .alarm_windows import SAMPLES_ALONE, AlarmWindow, latency_window, period_text, share_beyond
from .daily_peaks import share_of_day
from .decisions import PlanWarning
from .endpoint_request import EndpointRequest
from .plan import Plan

_LOWER_PERCENTILES = ("p99.9", "p99", "p95", "p90", "p50")  # those that a target can state


class PlannedObjective(NamedTuple):
    """What Application Signals judges of one variant."""

    share: float  # of the periods that must meet the threshold
    statistic: str
    milliseconds: float
    seconds: int  # of a period

    @property
    def periods(self) -> str:
        """Its periods in words."""
        return f"periods of {period_text(AlarmWindow(self.seconds, 1, 1))}"

    @property
    def text(self) -> str:
        """It in words."""
        return (
            f"{self.statistic} {milliseconds(self.milliseconds, 6)} in "
            f"{readable(100 * self.share)} % of {self.periods}"
        )


def planned_objective(plan: Plan) -> PlannedObjective | None:
    """The service level objective that a plan's variant gets; None without one.

    Shadows have none, nor has an endpoint in a Region without Application Signals.
    """
    request = plan.request
    objective = request.period_objective
    if objective is None or (request.share and request.share.shadow):
        return None
    if not has_objectives(region_of_zone(request.client_zones[0]) or ""):
        return None
    threshold = objective.threshold or tightest_of(plan.thresholds("ModelLatency").items())
    if threshold is None:
        return None
    statistic, limit = threshold
    seconds = objective_seconds(request.alarm_window, statistic, request.peak_tps)
    return PlannedObjective(objective.share, statistic, limit, seconds)


def objective_seconds(options: WindowOptions, statistic: str, tps: float | None) -> int:
    """The period of an objective: that of the threshold's alarm, as far as it is taken."""
    window = latency_window(options, statistic, tps)
    return min(window.seconds, LONGEST_OBJECTIVE_PERIOD_SECONDS)


def objective_warnings(plan: Plan) -> Iterator[PlanWarning]:
    """Warns about an objective that a model which just meets the threshold cannot keep.

    It is judged at the peak and, if that is enough, in the time of the day's lowest peak.
    """
    objective, measured = planned_objective(plan), plan.request.throughput
    if objective is None or measured is None:
        return
    of_day = Fraction(1)
    words, tps = "even at the peak", measured.peak_tps
    if not _keeps(objective, tps, of_day):
        yield _too_few(plan, objective, words, tps, of_day)
        return
    name, tps = measured.quietest
    if not name:
        return
    of_day = share_of_day(measured.peaks[name])
    words = when_quietest(measured)
    if not _keeps(objective, tps, of_day):
        yield _too_few(plan, objective, words, tps, of_day)


def _keeps(objective: PlannedObjective, tps: float, of_day: Fraction) -> bool:
    """Whether a model that just meets the threshold keeps the objective in a part of the day."""
    sample = _Sample.of(objective.statistic, objective.seconds, tps)
    if sample is None or sample.is_enough:
        return True
    missed = sample.missed(float(sample.beyond)) * float(of_day)
    # A period of a single request is no stricter than it.
    return missed <= float(1 - stated(objective.share)) * (1 + 1e-9)


def _too_few(
    plan: Plan, objective: PlannedObjective, words: str, tps: float, of_day: Fraction
) -> PlanWarning:
    """That the requests of a period decide an objective by chance, and what ends that."""
    sample = cast(_Sample, _Sample.of(objective.statistic, objective.seconds, tps))
    missed = sample.missed(float(sample.beyond))
    allowed = float(1 - stated(objective.share))
    lets = f"the objective lets {_percent(allowed)}"
    if of_day < 1:
        allowed = min(1.0, allowed / float(of_day))
        lets += f" of a day's, {_percent(allowed)} of those in this time"
    return PlanWarning(
        "few-samples-for-objective",
        f"the service level objective judges {objective.statistic} in {objective.periods}, and "
        f"{words} only {readable(float(sample.requests))} requests come in one: a model "
        f"that just meets {milliseconds(objective.milliseconds, 6)} misses about "
        f"{_percent(missed)} of the periods, and {lets}, for which "
        f"only about {_percent(sample.slow_for(allowed))} of the requests may be slow, not "
        f"{_percent(float(sample.beyond))}. {_advice(plan, objective, sample.beyond, tps)}",
    )


class _Sample(NamedTuple):
    """The requests of a period, of which a percentile leaves a share beyond it."""

    requests: Fraction
    beyond: Fraction

    @classmethod
    def of(cls, statistic: str, seconds: int, tps: float) -> _Sample | None:
        """That of a percentile; None for another statistic, and for p0, which is the minimum."""
        beyond = share_beyond(statistic)
        if beyond is None or beyond == 1:
            return None
        return cls(stated(tps) * seconds, beyond)

    @property
    def is_enough(self) -> bool:
        """Whether a period decides alone as well as the alarm's does."""
        return self.requests * self.beyond >= SAMPLES_ALONE

    def missed(self, slow: float) -> float:
        """The share of the periods whose percentile is slow if this share of the requests is.

        It is slow if more requests are than lie beyond it: a binomial law.
        """
        requests = max(1, round(self.requests))
        probability = (1 - slow) ** requests  # that none is slow
        met = 0.0
        for count in range(math.floor(requests * self.beyond) + 1):
            met += probability
            probability *= (requests - count) / (count + 1) * slow / (1 - slow)
        return 1 - met

    def slow_for(self, allowed: float) -> float:
        """The largest share of slow requests at which no more of the periods are missed."""
        low = 0.0
        high = float(self.beyond)
        for _ in range(50):
            middle = (low + high) / 2
            if self.missed(middle) > allowed:
                high = middle
            else:
                low = middle
        return low


def _advice(plan: Plan, objective: PlannedObjective, beyond: Fraction, tps: float) -> str:
    """What ends the warning, each by itself."""
    request = plan.request
    options = request.alarm_window
    remedies = []
    derived = _seconds_without_period(request, objective.statistic)
    if options.period_seconds is not None and _is_enough(derived, objective.statistic, tps):
        remedies.append("leave alarms.period out")
    for statistic in _LOWER_PERCENTILES:
        is_lower = (share_beyond(statistic) or 0) > beyond
        seconds = objective_seconds(options, statistic, request.peak_tps)
        if is_lower and _is_enough(seconds, statistic, tps):
            remedies.append(
                f"make it about {statistic}, by giving that the shortest threshold of "
                "alarms.model_latency"
            )
            break
    of_requests = _objective_of_requests(beyond, tps)
    if request.slow_limit is not None:
        remedies.append(
            "leave alarms.service_level_objective out, as alarms.slow_requests judges requests"
        )
    elif of_requests is not None:
        remedies.append(
            "state alarms.slow_requests in its place, which judges requests, with that threshold and "
            f"an objective of at most {readable(float(of_requests))}"
        )
    if not remedies:
        remedies.append("leave alarms.service_level_objective out: requests are too rare for one")
    text = "; or ".join(remedies)
    return f"{text[0].upper()}{text[1:]}"


def _seconds_without_period(request: EndpointRequest, statistic: str) -> int:
    """The period that the rate would give if none were stated."""
    derived = request.alarm_window._replace(period_seconds=None)
    return objective_seconds(derived, statistic, request.peak_tps)


def _is_enough(seconds: int, statistic: str, tps: float) -> bool:
    sample = _Sample.of(statistic, seconds, tps)
    return sample is not None and sample.is_enough


def _objective_of_requests(beyond: Fraction, tps: float) -> Fraction | None:
    """The objective on slow requests that says what a percentile does, if the rate is high enough."""
    highest = highest_objective(tps)
    if highest is None:
        return None
    objective = min(1 - beyond, highest)
    return objective if OBJECTIVE.holds(float(objective)) else None


def _percent(share: float) -> str:
    return f"{readable(100 * share, 2)} %"
