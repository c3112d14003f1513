"""SageMaker's routing strategies: what each does, what it demands, and which one to start with."""

from __future__ import annotations

from typing import NamedTuple

from .limits import CONCURRENCY_THRESHOLD, PREFIX_LENGTH, ROUTING_STRATEGY
from .rules import PREFIX_SETTINGS
from .token_values import is_token

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
    "simulation (the same where most workers are idle, by 66 % where instances serve one call at a "
    "time and are two thirds busy)"
)


class RoutingRecommendation(NamedTuple):
    """A strategy, why, and who says so."""

    value: str
    reason: str
    source: str = BLOG


def recommend_routing(
    *, generative: bool = False, instances: int | None = None
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
    return RoutingRecommendation(
        LEAST,
        f"{_EVIDENCE}; AWS adds that responses up to hundreds of milliseconds may benefit more "
        "from RANDOM: low-latency compare-routing measures both on your model",
    )


def check_routing(
    strategy: str,
    *,
    prefix_length: int | None = None,
    concurrency_threshold: int | None = None,
    where: str = "",
) -> str:
    """Return the strategy, or raise when it or its settings cannot be deployed; tokens pass."""
    if is_token(strategy):
        return strategy
    ROUTING_STRATEGY.check(strategy, where)
    settings = {"prefix length": prefix_length, "concurrency threshold": concurrency_threshold}
    given = [name for name, value in settings.items() if value is not None]
    if strategy != "PREFIX_AWARE":
        if given:
            raise PREFIX_SETTINGS.error(
                got=f"{' and '.join(given)} with {strategy}",
                allowed="neither, or PREFIX_AWARE",
                where=where,
            )
        return strategy
    if missing := [name for name in settings if name not in given]:
        raise PREFIX_SETTINGS.error(
            got=f"no {' and no '.join(missing)}",
            allowed=f"prefix length {PREFIX_LENGTH.allowed}, "
            f"concurrency threshold {CONCURRENCY_THRESHOLD.allowed}",
            where=where,
        )
    for limit, value in (
        (PREFIX_LENGTH, prefix_length),
        (CONCURRENCY_THRESHOLD, concurrency_threshold),
    ):
        if not is_token(value):
            limit.check(value, where)
    return strategy
