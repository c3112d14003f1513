"""What is said of a limit that has no confidence: what was seen, and what a plan takes in its place."""

from __future__ import annotations

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
