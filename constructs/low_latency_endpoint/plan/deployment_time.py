"""How long the deployment of a new version takes, and the load that comes meanwhile.

Start at :func:`deployment_time`. SageMaker blocks scaling until a deployment is over, so that the
instances of its beginning hold all that comes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from ..facts.deployments import rolls_back
from ..facts.durations import seconds_of
from ..facts.token_values import is_token
from ..options.alarms import ErrorLimit
from ..options.deployment import DeploymentPolicy, default_deployment
from ..options.throughput import stated
from ..report.numbers import readable
from .alarm_warnings import when_quietest
from .decisions import PlanWarning
from .plan import Plan
from .scaling_pace import METRIC_PERIOD_SECONDS, fewest_for_rises

ROLLBACK_SECONDS = 180
"""Until the rollback alarms go off: two periods of a minute, and a minute until metrics arrive."""
_SEEN_SHARE = Fraction(1, 10)
"""Of failing requests, which rollback alarms should see at the lowest stated rate: our judgement."""


class DeploymentTime(NamedTuple):
    """From the start of the first new instances until the old ones are gone, if nothing fails."""

    starts: tuple[int, int]  # one after the other: fewest and most; several only of batches
    start_seconds: int  # of one start
    wait_seconds: float  # after each start
    kept_seconds: float  # besides: waits of other parts, and of the old fleet
    final_seconds: float = (
        0.0  # of the last baking period, at most: AWS does not say how long it is
    )

    @property
    def seconds(self) -> tuple[float, float]:
        """The shortest and the longest."""
        fewest, most = self.starts
        of_a_start = self.start_seconds + self.wait_seconds
        shortest = fewest * of_a_start + self.kept_seconds
        return shortest, most * of_a_start + self.kept_seconds + self.final_seconds

    @property
    def text(self) -> str:
        """It in words, with the starts that it consists of."""
        start = _minutes(self.start_seconds)
        fewest, most = self.starts
        if most == 1:
            unknown = ""
            if self.final_seconds:
                unknown = " (AWS does not say how long the last baking period is)"
            return f"about {_range(self.seconds)}{unknown}, of which new instances take {start} to start"
        batches = f"{fewest} batches"
        if fewest < most:
            batches = f"{fewest} to {most} batches (AWS does not say how it rounds them)"
        of_a_batch = f"{start} to start"
        if self.wait_seconds:
            of_a_batch += f" and {_minutes(self.wait_seconds)} to be watched"
        return f"about {_range(self.seconds)}: {batches}, each with {of_a_batch}"


def deployment_time(plan: Plan) -> DeploymentTime | None:
    """How long a deployment takes; None where a token hides it."""
    policy = deployment_of(plan)
    waits = policy.waits
    if waits is None:
        return None
    start = plan.request.start_seconds
    if policy.kind != "ROLLING":
        # Once all traffic is on the new fleet, a last baking period follows, which a canary's wait may
        # last too: https://docs.aws.amazon.com/sagemaker/latest/dg/deployment-guardrails-blue-green-canary.html
        final = seconds_of(policy.wait) if policy.kind == "CANARY" else 0.0
        return DeploymentTime((1, 1), start, 0.0, waits.total_seconds(), final)
    fleets = (plan.fewest, plan.largest_fleet)
    if any(is_token(fleet) for fleet in fleets):
        return None
    starts = _batches(range(fleets[0], fleets[1] + 1), policy.percent)
    return DeploymentTime(starts, start, seconds_of(policy.wait), 0.0)


def deployment_of(plan: Plan) -> DeploymentPolicy:
    """How a new version takes over: as stated, or by default."""
    return plan.request.deployment or default_deployment(plan.request.serving.types)


def _batches(fleets: range, percent: int) -> tuple[int, int]:
    """The fewest and the most batches of fleets of such sizes.

    AWS documents a batch as a percentage of the capacity, from 5 to 50, and not how it becomes a
    number of instances.
    """
    rounded_up = [-(-fleet // -(-fleet * percent // 100)) for fleet in fleets]
    rounded_down = [-(-fleet // max(1, fleet * percent // 100)) for fleet in fleets]
    return min(rounded_up), max(rounded_down)


def deployment_warnings(plan: Plan) -> Iterator[PlanWarning]:
    """Warns about a deployment that takes longer than its own limit, or that no alarm can judge."""
    time = deployment_time(plan)
    if time is None:
        return
    limit = deployment_of(plan).maximum_execution
    if limit is not None and not is_token(limit) and seconds_of(limit) <= time.seconds[1]:
        yield PlanWarning(
            "deployment-too-long",
            f"a deployment takes {time.text}. deployment.maximum_execution ends it after "
            f"{_minutes(seconds_of(limit))}, and SageMaker then rolls it back: raise it above "
            f"{_minutes(time.seconds[1])}",
        )
    yield from _unseen_failures(plan)


def requests_of_first_part(plan: Plan, tps: float) -> Fraction | None:
    """Requests per second that the first part of a new version answers before the rest follows.

    AWS does not say how a part's percentage becomes a number of instances: it may be more or less.
    """
    percent = deployment_of(plan).percent
    return None if is_token(percent) else stated(tps) * Fraction(percent, 100)


def first_part_words(plan: Plan) -> str:
    """How many requests judge a new version before the rest of it follows, with a semicolon."""
    policy, measured = deployment_of(plan), plan.request.throughput
    watched = _watched_seconds(policy)
    if measured is None or not watched:
        return ""
    name, lowest = measured.quietest
    at_peak = requests_of_first_part(plan, measured.peak_tps)
    quiet = requests_of_first_part(plan, lowest)
    if at_peak is None or quiet is None:
        return ""
    counted = f"{readable(math.floor(at_peak * stated(watched)))} requests at the peak"
    if name:
        counted += f", {readable(math.floor(quiet * stated(watched)))} in {name},"
    return f"about {counted} judge {_part(policy)}; "


def errors_seen(plan: Plan) -> str:
    """The share of errors from which on the rollback alarms see a new version; empty if unknown.

    At the peak and in the time of the lowest peak: a minute with few requests has few failures.
    """
    limit, measured = plan.request.error_limit, plan.request.throughput
    if limit is None or measured is None or is_token(limit.rate) or is_token(limit.failures):
        return ""
    name, lowest = measured.quietest
    at_peak = _share_seen(limit, requests_of_first_part(plan, measured.peak_tps))
    text = f"errors from {at_peak} % on in each of two minutes"
    if name:
        text += f", {_share_seen(limit, requests_of_first_part(plan, lowest))} % in {name}"
    return text


def _share_seen(limit: ErrorLimit, tps: Fraction | None) -> str:
    """In percent: the stated share, or so many failures of a minute's requests."""
    share = stated(limit.rate)
    if tps:
        share = max(share, stated(limit.failures) / (60 * tps))
    return readable(float(100 * min(share, Fraction(1))), 2)


def _unseen_failures(plan: Plan) -> Iterator[PlanWarning]:
    """A first part so small, or watched so briefly, that its failures raise no rollback alarm."""
    request, policy = plan.request, deployment_of(plan)
    measured, limit = request.throughput, request.error_limit
    watched = _watched_seconds(policy)
    if not rolls_back(policy.rollback_on_alarms, request.serving.types) or limit is None:
        return
    if watched is not None and watched < ROLLBACK_SECONDS:
        yield PlanWarning(
            "wait-too-short-for-rollback",
            f"a deployment watches {_part(policy)} for {_minutes(watched)}, and the rollback alarms take "
            f"{_minutes(ROLLBACK_SECONDS)}, two periods and the delay of metrics: whatever fails, the rest "
            "follows before they go off. Wait longer",
        )
        return
    if measured is None or is_token(limit.failures):
        return
    requests = requests_of_first_part(plan, measured.quietest[1])
    if requests is None or 60 * requests * _SEEN_SHARE >= limit.failures:
        return
    yield PlanWarning(
        "few-requests-for-rollback",
        f"{when_quietest(measured)} {_part(policy)} gets only "
        f"{readable(float(60 * requests), 2)} requests a minute, and the rollback alarms wait for "
        f"{limit.failures} failures in each of two minutes: a version that fails "
        f"{_share_unseen(60 * requests, limit.failures)} may be rolled out. Take a larger part, deploy "
        "when more requests come, or lower alarms.minimum_failures",
    )


def _share_unseen(requests: Fraction, failures: int) -> str:
    if requests <= failures:
        return "every request"
    return f"less than {readable(float(100 * failures / requests), 2)} % of them"


def _watched_seconds(policy: DeploymentPolicy) -> float | None:
    """How long the alarms watch the first part; None where a token hides it."""
    if policy.waits is None:
        return None
    if policy.kind == "ALL_AT_ONCE":
        return policy.waits.total_seconds()
    return seconds_of(policy.wait)


def _part(policy: DeploymentPolicy) -> str:
    if policy.kind == "ALL_AT_ONCE":
        return "the new fleet"
    return f"the first {policy.percent} % of a new version"


def fewest_while_rising(plan: Plan) -> int:
    """Instances with which a deployment may begin while load rises as stated; 0 if any number may.

    Nothing scales until the deployment is over. An alarm that stood on acts within a minute of its
    end, and the instances that it asks for have to start.
    """
    time = deployment_time(plan)
    if time is None or plan.scaling is None:
        return 0
    seconds = round(time.seconds[1]) + METRIC_PERIOD_SECONDS + plan.request.start_seconds
    fewest = [0]
    for load in plan.under_load:
        measured, held = load.measured, load.held_tps
        if measured is None or held is None or measured.rise_tps_per_minute is None:
            continue
        enough = fewest_for_rises(measured, seconds, held)
        most = stated(measured.peak_tps)  # traffic ends its rise at the peak
        if enough > load.fleet.minimum and load.fleet.minimum * held.limit < most:
            fewest.append(enough)
    return max(fewest)


def _range(seconds: tuple[float, float]) -> str:
    low, high = (_minutes(value) for value in seconds)
    return low if low == high else f"{low.removesuffix(' minutes')} to {high}"


def _minutes(seconds: float) -> str:
    minutes = readable(seconds / 60, 3)
    return "1 minute" if minutes == "1" else f"{minutes} minutes"
