"""What a load test found one instance to hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .argument_kinds import checked_arguments
from .capacity import instances_at_peak, invocations_target
from .limits import PEAK_TPS, SAFETY_FACTOR, TPS_PER_INSTANCE


@checked_arguments
@dataclass(frozen=True)
class MeasuredThroughput:
    """Peak traffic and the throughput of one instance.

    Parameters
    ----------
    peak_tps : float
        Highest rate of requests per second that the endpoint must hold.
    tps_per_instance : float
        Requests per second that one instance held within the latency target in a load test.
    safety_factor : float
        Share of ``tps_per_instance`` that scaling aims at. By default 0.5, AWS's starting point.

    Raises
    ------
    ConfigurationError
        ``LLE603``, ``LLE604``, ``LLE606`` for numbers out of range, ``LLE807`` for what is none.

    Notes
    -----
    Source of the default and of the target's formula: `Load testing your auto scaling
    configuration <https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-scaling-loadtest.html>`_.

    Examples
    --------
    >>> measured = MeasuredThroughput(peak_tps=1000, tps_per_instance=200, safety_factor=0.65)
    >>> measured.target_invocations_per_instance, measured.instances_at_peak(client_zones=2)
    (7800.0, 8)
    """

    peak_tps: float
    tps_per_instance: float
    safety_factor: float = 0.5

    def __post_init__(self) -> None:
        PEAK_TPS.check(self.peak_tps, "peak_tps")
        TPS_PER_INSTANCE.check(self.tps_per_instance, "tps_per_instance")
        SAFETY_FACTOR.check(self.safety_factor, "safety_factor")

    @property
    def target_invocations_per_instance(self) -> float:
        """Invocations per instance and minute that scaling aims at."""
        return invocations_target(self.tps_per_instance, self.safety_factor)

    def instances_at_peak(self, client_zones: int | Sequence[str]) -> int:
        """Instances that hold the peak: at least one per client zone and at least two."""
        return instances_at_peak(
            self.peak_tps, self.tps_per_instance, self.safety_factor, client_zones
        )
