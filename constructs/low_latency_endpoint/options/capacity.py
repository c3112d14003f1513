"""How many instances, and what scaling aims at, from measured throughput.

Calculated with fractions of the decimals as stated, because 1000 / (200 * 0.1) in floating point
can end a hair above a whole number and cost one instance too many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from ..facts.limit_kinds import number_range
from ..facts.limits import PEAK_TPS, SAFETY_FACTOR, SCALING_TARGET, TPS_PER_INSTANCE
from ..report.numbers import readable

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
