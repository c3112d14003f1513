"""SageMaker's routing strategies: what each does, what it demands, and which one to start with."""

from __future__ import annotations

from typing import NamedTuple

BLOG = (
    "https://aws.amazon.com/blogs/machine-learning/"
    "minimize-real-time-inference-latency-by-using-amazon-sagemaker-routing-strategies/"
)

LEAST = "LEAST_OUTSTANDING_REQUESTS"

# The simulator on plans of this library, with a coefficient of variation of 1: the same p99 with 48
# workers on each of 8 instances, a quarter busy; 7,248 and 2,443 ms with one worker on each of 28,
# two thirds busy. What lies between depends on how often a random choice meets a busy instance.
_EVIDENCE = (
    "the lower p99 in AWS's measurements (by 4 to 33 %, a language model), and no higher one in any "
    "simulation (the same where instances serve dozens of calls at once and most workers are idle, by "
    "66 % where instances serve one call at a time and are two thirds busy)"
)


# AWS's words; from "hundreds of milliseconds to minutes" on it advises the strategy that the rule gives.
_CAVEAT = "responses up to hundreds of milliseconds may benefit more from RANDOM"
_CAVEAT_ENDS_MS = 1000.0


class RoutingRecommendation(NamedTuple):
    """A strategy, why, what nobody has measured of it, and who says so."""

    value: str
    reason: str
    assumed: str = ""
    source: str = BLOG


def recommend_routing(
    *, generative: bool = False, instances: int | None = None, target_ms: float | None = None
) -> RoutingRecommendation:
    """LEAST_OUTSTANDING_REQUESTS, at every response time: the simulator knows no cost of routing."""
    if instances == 1:
        return RoutingRecommendation(LEAST, "one instance serves every request; any strategy does")
    if generative:
        return RoutingRecommendation(
            LEAST,
            "generated answers differ much in length: a random choice queues short requests "
            "behind long ones",
        )
    is_doubted = target_ms is None or target_ms < _CAVEAT_ENDS_MS
    return RoutingRecommendation(
        LEAST,
        f"{_EVIDENCE}; AWS adds that {_CAVEAT}: low-latency compare-routing measures both on your "
        "model",
        assumed=f"the routing suits the model (AWS: {_CAVEAT})" if is_doubted else "",
    )
