"""What a load test found one instance to hold, and how many instances follow from it.

Calculated with fractions of the decimals as stated, because 1000 / (200 * 0.1) in floating point
can end a hair above a whole number and cost one instance too many.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, ClassVar

from ..errors.findings import Finding, finding
from ..errors.frozen import dataclass
from ..facts import limits
from ..facts.limit_kinds import number_range
from ..facts.limits import PEAK_TPS, SAFETY_FACTOR, SCALING_TARGET, TPS_PER_INSTANCE
from ..facts.rules import ONE_KIND_OF_RISE
from ..report.numbers import plain_number, readable
from .argument_kinds import checked_arguments
from .option import Option, Options

HELD_SHARE = 0.9
"""Of a measured limit, up to which a load counts as held. Our judgement: at the limit itself the
percentile equals its target, and a load test finds the limit to a few percent."""
FEWEST_INSTANCES = 2  # SageMaker spreads an endpoint over zones only from two instances on


ZONES_TO_COUNT = number_range("LLE365", "the number of client zones to count with", 1, 16)


def stated(value: float | Fraction) -> Fraction:
    """The decimal as somebody wrote it: 0.65 is 13/20, not the binary double next to it."""
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def zone_count(client_zones: int | Sequence[str]) -> int:
    """The number of client zones, given as a number or by name."""
    if isinstance(client_zones, Sequence):
        return len(client_zones)
    return int(ZONES_TO_COUNT.check(client_zones, "client_zones"))


def counted_instances(count: float) -> str:
    """A number of instances in words; a mean may have a fraction."""
    text = f"{count:,}" if float(count).is_integer() else readable(count, 4)
    return f"{text.removesuffix('.0')} instance" + ("s" if count != 1 else "")


def instances_for(tps: float, tps_per_instance: float, share: float | Fraction = 1.0) -> int:
    """Instances that hold a load at a share of what each was measured to hold."""
    return math.ceil(stated(tps) / (stated(tps_per_instance) * stated(share)))


def factor_for(instances: int, tps: float, tps_per_instance: float) -> float:
    """The largest safety factor, in hundredths, with which a load asks for so many instances."""
    return (math.ceil(100 * stated(tps) / stated(tps_per_instance) / (instances - 1)) - 1) / 100


def instances_at_peak(
    peak_tps: float,
    tps_per_instance: float,
    safety_factor: float,
    client_zones: int | Sequence[str],
) -> int:
    """Instances that hold the peak: at least one per client zone and at least two."""
    PEAK_TPS.check(peak_tps, "peak_tps")
    TPS_PER_INSTANCE.check(tps_per_instance, "tps_per_instance")
    SAFETY_FACTOR.check(safety_factor, "safety_factor")
    needed = instances_for(peak_tps, tps_per_instance, safety_factor)
    return max(needed, zone_count(client_zones), FEWEST_INSTANCES)


def invocations_target(tps_per_instance: float, safety_factor: float) -> float:
    """Target of ``SageMakerVariantInvocationsPerInstance``: invocations per instance and minute."""
    TPS_PER_INSTANCE.check(tps_per_instance, "tps_per_instance")
    SAFETY_FACTOR.check(safety_factor, "safety_factor")
    target = stated(tps_per_instance) * stated(safety_factor) * 60
    if target > Fraction(SCALING_TARGET.maximum or 0):
        raise SCALING_TARGET.rule.error(
            got=f"{tps_per_instance!r} x {safety_factor!r} x 60", allowed=SCALING_TARGET.allowed
        )
    return float(target)


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class MeasuredThroughput(Options):
    """The load to serve, and the load that one instance served in a load test.

    Args:
        peak_tps: Highest rate to serve, in requests per second.
        tps_per_instance: Requests per second that one instance held within the latency target in a load test.
        safety_factor: Share of that throughput that scaling targets. Default: 0.5, AWS's starting point.
        from_tps: Rate from which traffic may jump to the peak: the minimum then serves the peak, unless the fleet at this rate can. Default: not known, with a warning.
        rise_tps_per_minute: Instead of from_tps: fastest rise of traffic, in requests per second each minute. The minimum serves the rise until scaling catches up.
        concurrency_per_instance: Requests in flight on one instance, on average, at tps_per_instance; load-test writes it for language models. With tokens or token targets, scaling targets this number times the safety factor, at most what fits in the KV cache. Default: not known; scaling counts invocations of any length.

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

    left_out: ClassVar[Mapping[str, str]] = {
        "tps_per_instance": "Not measured yet? Leave out throughput and state instances."
    }

    peak_tps: Annotated[float, Option(limits.PEAK_TPS, 1000, planned=True)]
    tps_per_instance: Annotated[float, Option(limits.TPS_PER_INSTANCE, 200, planned=True)]
    safety_factor: Annotated[float, Option(limits.SAFETY_FACTOR, 0.65, planned=True)] = 0.5
    from_tps: Annotated[float | None, Option(limits.FROM_TPS, 100, planned=True)] = None
    rise_tps_per_minute: Annotated[float | None, Option(limits.RISE_TPS, 10, planned=True)] = None
    concurrency_per_instance: Annotated[
        float | None, Option(limits.CONCURRENCY_PER_INSTANCE, 24, planned=True)
    ] = None

    def _rules(self) -> Iterator[Finding]:
        """A jump ends at the peak, and is not told twice."""
        if self.from_tps is None:
            return
        start, peak = plain_number(self.from_tps), plain_number(self.peak_tps)
        if self.rise_tps_per_minute is not None:
            rise = plain_number(self.rise_tps_per_minute)
            got = f"from_tps {start} and rise_tps_per_minute {rise}"
            yield finding(ONE_KIND_OF_RISE, "from_tps", got=got, allowed="one of the two")
        if self.from_tps > self.peak_tps:
            got = f"{start} with a peak of {peak}"
            yield finding(limits.FROM_TPS.rule, "from_tps", got=got, allowed=f"0 to {peak}")

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
