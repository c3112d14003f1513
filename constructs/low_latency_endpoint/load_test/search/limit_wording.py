"""What is said of a limit: the instances that follow; without a confidence what was seen, and what a plan takes."""

from __future__ import annotations

from ...options.throughput import (
    DEFAULT_SAFETY_FACTOR,
    FEWEST_INSTANCES,
    MeasuredThroughput,
    counted_instances,
    instances_with_a_zone_lost,
)
from ...report.numbers import readable
from .judging import LatencyGoal, percent_at_most
from .limit_search import Limit


def without_confidence(limit: Limit) -> str:
    """The verdict on a limit that was only seen to hold."""
    found = readable(limit.tps_per_instance)
    if limit.assured is None or limit.assured.rate == limit.rate:
        return f"One instance held {found} requests a second, without a confidence"
    return (
        f"One instance holds {readable(limit.assured_tps_per_instance)} requests a second; "
        f"{found} were held without a confidence"
    )


def plan_takes(limit: Limit, goal: LatencyGoal) -> str:
    """What a plan may rest on where the limit has no confidence."""
    assured = limit.assured
    if assured is None:
        return (
            "No lower rate held with a confidence either: the plan takes none of them. Longer steps "
            "(--duration) tell more."
        )
    used = readable(limit.assured_tps_per_instance)
    sure = f"{goal.confidence:.0%} confidence {assured.when}"
    if assured.failures <= goal.allowed_errors:
        return f"The plan takes {used}, which held with {sure}."
    return (
        f"The plan takes {used}, whose latency held with {sure}; none of {assured.requests:,} "
        f"requests failed, which shows that at most {percent_at_most(assured.failures)} do."
    )


def instances_counted(
    each: float,
    throughput: MeasuredThroughput | None,
    *,
    at_most: bool = False,
    certain: bool = True,
) -> str:
    """How many instances, of which each holds so many requests a second, hold the peak.

    Returns
    -------
    str
        Without a peak, by what to divide it. ``at_most``: an instance may hold more; ``certain``: it
        was shown with a confidence.
    """
    factor = DEFAULT_SAFETY_FACTOR if throughput is None else throughput.safety_factor
    words = f"factor {readable(factor)}"
    if factor == DEFAULT_SAFETY_FACTOR:
        words += ", at which AWS starts"
    if throughput is None:
        return (
            f"Instances for a peak: its requests a second divided by {readable(factor * each, 4)} "
            f"({readable(each)} each, {words}), at least {FEWEST_INSTANCES}. --peak-tps counts them."
        )
    peak = throughput.peak_tps
    at_peak = throughput.instances_at_peak(1)
    of_two, of_three = (
        max(at_peak, instances_with_a_zone_lost(peak, each, zones)) for zones in (2, 3)
    )
    most, least = ("at most ", "at least ") if at_most else ("", "")
    holds = f"{least}{readable(each)} requests a second"
    rests_on = f"{holds.capitalize()} each"
    if not certain:
        rests_on = f"If an instance holds {holds}, which was not shown with a confidence"
    return (
        f"{rests_on}: {readable(peak)} a second are {most}"
        f"{counted_instances(at_peak)} ({words}), {most}{of_two:,} if one of two zones may be lost, "
        f"{most}{of_three:,} if one of three may; at least one per zone. Scaling target: {least}"
        f"{readable(throughput.target_invocations_per_instance)} invocations per instance and minute."
    )
