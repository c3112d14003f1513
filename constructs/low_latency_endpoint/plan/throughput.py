"""What a load test found one instance to hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..report.numbers import plain_number
from .argument_kinds import checked_arguments
from .capacity import instances_at_peak, invocations_target
from .limits import (
    CONCURRENCY_PER_INSTANCE,
    FROM_TPS,
    PEAK_TPS,
    RISE_TPS,
    SAFETY_FACTOR,
    TPS_PER_INSTANCE,
)
from .rules import ONE_KIND_OF_RISE
from .token_values import check_known


@checked_arguments
@dataclass(frozen=True)
class MeasuredThroughput:
    """Peak traffic and the throughput of one instance.

    Args:
        peak_tps: Highest rate of requests per second that the endpoint must hold.
        tps_per_instance: Requests per second that one instance held within the latency target in a load test.
        safety_factor: Share of ``tps_per_instance`` that scaling aims at. By default 0.5, AWS's starting point.
        from_tps: Rate from which traffic may jump to the peak, faster than scaling follows. By default nothing is known of jumps, and the plan says what they would cost.
        rise_tps_per_minute: By how much traffic rises in a minute at most, instead of ``from_tps``.
        concurrency_per_instance: Requests in flight on one instance, on average, at ``tps_per_instance``, for language models: scaling holds each instance at this times the safety factor. By default not known, and scaling counts invocations, which take no account of how long answers are.

    Raises:
        ConfigurationError: ``LLE603``, ``LLE604``, ``LLE606``, ``LLE607``, ``LLE608``
            for numbers out of range, ``LLE896`` for requests in flight, ``LLE609`` for
            both kinds of rise, ``LLE807`` for what is no number, ``LLE825`` for tokens.

    Notes:
        Source of the default and of the target's formula: `Load testing your auto scaling
        configuration <https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-scaling-loadtest.html>`_.

    Examples:
        >>> measured = MeasuredThroughput(peak_tps=1000, tps_per_instance=200, safety_factor=0.65)
        >>> measured.target_invocations_per_instance, measured.instances_at_peak(client_zones=2)
        (7800.0, 8)
    """

    peak_tps: float
    tps_per_instance: float
    safety_factor: float = 0.5
    from_tps: float | None = None
    rise_tps_per_minute: float | None = None
    concurrency_per_instance: float | None = None

    def __post_init__(self) -> None:
        check_known(PEAK_TPS, self.peak_tps, "peak_tps")
        check_known(TPS_PER_INSTANCE, self.tps_per_instance, "tps_per_instance")
        check_known(SAFETY_FACTOR, self.safety_factor, "safety_factor")
        if self.from_tps is not None:
            check_known(FROM_TPS, self.from_tps, "from_tps")
            if self.from_tps > self.peak_tps:
                raise FROM_TPS.rule.error(
                    got=f"{plain_number(self.from_tps)} with a peak of {plain_number(self.peak_tps)}",
                    allowed=f"0 to {plain_number(self.peak_tps)}",
                    where="from_tps",
                )
            if self.rise_tps_per_minute is not None:
                raise ONE_KIND_OF_RISE.error(
                    got=f"from_tps {plain_number(self.from_tps)} and rise_tps_per_minute "
                    + plain_number(self.rise_tps_per_minute),
                    allowed="one of the two",
                    where="from_tps",
                )
        if self.rise_tps_per_minute is not None:
            check_known(RISE_TPS, self.rise_tps_per_minute, "rise_tps_per_minute")
        if self.concurrency_per_instance is not None:
            check_known(
                CONCURRENCY_PER_INSTANCE, self.concurrency_per_instance, "concurrency_per_instance"
            )

    @property
    def states_rises(self) -> bool:
        """Whether something is known of how fast traffic rises."""
        return self.from_tps is not None or self.rise_tps_per_minute is not None

    @property
    def target_invocations_per_instance(self) -> float:
        """Invocations per instance and minute that scaling aims at."""
        return invocations_target(self.tps_per_instance, self.safety_factor)

    def instances_at_peak(self, client_zones: int | Sequence[str]) -> int:
        """Instances that hold the peak: at least one per client zone and at least two."""
        return instances_at_peak(
            self.peak_tps, self.tps_per_instance, self.safety_factor, client_zones
        )
