"""SageMaker's routing strategies: what each does, what it demands, and which one to start with."""

from __future__ import annotations

from typing import NamedTuple

from .limits import CONCURRENCY_THRESHOLD, PREFIX_LENGTH, ROUTING_STRATEGY
from .rules import PREFIX_SETTINGS

BLOG = (
    "https://aws.amazon.com/blogs/machine-learning/"
    "minimize-real-time-inference-latency-by-using-amazon-sagemaker-routing-strategies/"
)

# AWS: least outstanding requests for "hundreds of milliseconds to minutes"; below, random "may".
LONG_RESPONSE_MS = 100.0


class RoutingRecommendation(NamedTuple):
    """A strategy, why, and who says so."""

    value: str
    reason: str
    source: str = BLOG


def recommend_routing(
    latency_ms: float | None, *, generative: bool = False, instances: int | None = None
) -> RoutingRecommendation:
    """The strategy to start with; measure the other one too.

    Parameters
    ----------
    latency_ms : float or None
        Response time to expect, in milliseconds; ``None`` when unknown.
    generative : bool
        Whether responses differ much in length, as those of language models do.
    instances : int, optional
        Instances that serve; with one there is nothing to choose.

    Examples
    --------
    >>> recommend_routing(2000).value, recommend_routing(8).value
    ('LEAST_OUTSTANDING_REQUESTS', 'RANDOM')
    """
    least = "LEAST_OUTSTANDING_REQUESTS"
    if instances == 1:
        return RoutingRecommendation(least, "one instance serves every request; any strategy does")
    if generative:
        return RoutingRecommendation(
            least,
            "generated answers differ much in length: a random choice queues short requests "
            "behind long ones",
        )
    if latency_ms is None:
        return RoutingRecommendation(
            least,
            "the response time is unknown: this one never sends a request to a busy "
            "instance while another is idle",
        )
    if latency_ms >= LONG_RESPONSE_MS:
        return RoutingRecommendation(
            least,
            f"at a response time of {latency_ms:g} ms: AWS finds this one better from "
            "hundreds of milliseconds on; measure RANDOM too",
        )
    return RoutingRecommendation(
        "RANDOM",
        f"at a response time of {latency_ms:g} ms: AWS finds that random routing may win "
        "below hundreds of milliseconds; measure LEAST_OUTSTANDING_REQUESTS too",
    )


def check_routing(
    strategy: str,
    *,
    prefix_length: int | None = None,
    concurrency_threshold: int | None = None,
    where: str = "",
) -> str:
    """Return the strategy, or raise when it or its settings cannot be deployed.

    Raises
    ------
    ConfigurationError
        ``LLE410`` for a strategy that CloudFormation does not take, ``LLE411`` and ``LLE412``
        for settings out of range, ``LLE423`` for missing or misplaced ones.

    Examples
    --------
    >>> check_routing("PREFIX_AWARE", prefix_length=4096, concurrency_threshold=8)
    'PREFIX_AWARE'
    """
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
    PREFIX_LENGTH.check(prefix_length, where)
    CONCURRENCY_THRESHOLD.check(concurrency_threshold, where)
    return strategy
