"""What a load test found one instance to hold, and how many instances follow from it.

Calculated with fractions of the decimals as stated, because 1000 / (200 * 0.1) in floating point
can end a hair above a whole number and cost one instance too many.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from typing import Annotated, ClassVar, NamedTuple

from ..errors import rule
from ..errors.findings import Finding, breaches, finding
from ..errors.frozen import dataclass
from ..facts import limits
from ..facts.limit_kinds import number_range, text_form
from ..facts.limits import PEAK_TPS, SAFETY_FACTOR, TPS_PER_INSTANCE
from ..facts.rules import ONE_KIND_OF_RISE
from ..facts.token_values import is_token
from ..report.numbers import plain_number, readable
from .argument_kinds import checked_arguments
from .option import Option, Options
from .scaling import SCHEDULE_NAME, ScalingOptions, check_time_zone

HELD_SHARE = 0.9
"""Of a measured limit, up to which a load counts as held. Our judgement: at the limit itself the
percentile equals its target, and a load test finds the limit to a few percent."""
DEFAULT_SAFETY_FACTOR = 0.5  # AWS's starting point
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


def instances_for(
    tps: float, tps_per_instance: float | Fraction, share: float | Fraction = 1.0
) -> int:
    """Instances that hold a load at a share of what each was measured to hold."""
    return math.ceil(stated(tps) / (stated(tps_per_instance) * stated(share)))


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


def instances_with_a_zone_lost(tps: float, tps_per_instance: float | Fraction, zones: int) -> int:
    """The fewest instances of which the outage of the fullest of several zones leaves enough."""
    left = instances_for(tps, tps_per_instance, HELD_SHARE)
    return -(-left * zones // (zones - 1))


def invocations_target(tps_per_instance: float, safety_factor: float) -> float:
    """Target of ``SageMakerVariantInvocationsPerInstance``: invocations per instance and minute."""
    TPS_PER_INSTANCE.check(tps_per_instance, "tps_per_instance")
    SAFETY_FACTOR.check(safety_factor, "safety_factor")
    return float(stated(tps_per_instance) * stated(safety_factor) * 60)


TIME_OF_DAY = text_form(
    "LLE643",
    "a time of the day",
    r"(?:[01]\d|2[0-3]):[0-5]\d",
    "hours and minutes, such as '22:00'",
)
PEAK_WITHOUT_LENGTH = rule(
    "LLE644",
    "a peak ends when it begins",
    fix="Give it another end. What holds all day is peak_tps.",
)
ONE_TIME_ZONE = rule(
    "LLE645",
    "the peaks are in several time zones",
    fix="State all of them in one time zone: zones change their clocks on different days.",
)


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class PeakAtTime(Options):
    """Another peak than the usual one, each day between two times; it may be lower too.

    Raises:
        ConfigurationError: ``LLE606`` for the rate, ``LLE613`` for the time zone, ``LLE643`` for
            a time, ``LLE644`` for a peak without length, ``LLE825`` for tokens.

    Examples:
        >>> PeakAtTime(tps=2000, start="22:00", end="06:00", time_zone="Europe/Berlin").text
        'from 22:00 to 06:00 Europe/Berlin'
    """

    tps: Annotated[float, Option(limits.PEAK_TPS, 2000, planned=True)]
    """Highest rate to serve between the two times, in requests per second."""
    start: Annotated[str, Option(TIME_OF_DAY, "22:00", key="from")]
    """When it begins, hours and minutes, such as 22:00.

    In a settings file it is called ``from``.
    """
    end: Annotated[str, Option(TIME_OF_DAY, "06:00", key="to")]
    """When it ends, such as 06:00. A time before the start is of the next day.

    In a settings file it is called ``to``.
    """
    time_zone: Annotated[str | None, Option(example="Europe/Berlin")] = None
    """IANA time zone of both, the same for all peaks. Default: UTC."""

    def _rules(self) -> Iterator[Finding]:
        """The two times differ, and the zone is one."""
        if self.start == self.end:
            got, allowed = f"{self.start} to {self.end}", "two times of the day"
            yield finding(PEAK_WITHOUT_LENGTH, "end", got=got, allowed=allowed)
        yield from breaches(("time_zone",), check_time_zone, self.time_zone)

    @property
    def text(self) -> str:
        """Its times in words."""
        return f"from {self.start} to {self.end} {self.time_zone or 'UTC'}"


class HeldTps(NamedTuple):
    """Requests per second of one instance."""

    limit: Fraction  # that it holds: as measured, or fewer where its KV cache holds fewer
    kept: Fraction  # at which scaling keeps it; above the limit only by a target of your own
    by_target: bool  # whether a scaling target of your own says so, and not the safety factor

    @property
    def planned(self) -> Fraction:
        """Those that the fleet is counted with; the rest of the limit is in reserve."""
        return min(self.kept, self.limit)

    @property
    def used(self) -> Fraction:
        """The share of the limit at which scaling keeps an instance."""
        return self.kept / self.limit


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class MeasuredThroughput(Options):
    """The load to serve, and the load that one instance served in a load test.

    Raises:
        ConfigurationError: ``LLE603``, ``LLE604``, ``LLE606``, ``LLE607``, ``LLE608``
            for numbers out of range, ``LLE645`` for peaks in several time zones, ``LLE896`` for requests in flight, ``LLE609`` for
            both kinds of rise, ``LLE807`` for what is no number, ``LLE825`` for tokens.

    Notes:
        Source of the default and of the target's formula: `Load testing your auto scaling
        configuration <https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-scaling-loadtest.html>`_.

    Examples:
        >>> measured = MeasuredThroughput(peak_tps=1000, tps_per_instance=200, safety_factor=0.45)
        >>> measured.target_invocations_per_instance, measured.instances_at_peak(client_zones=2)
        (5400.0, 12)
    """

    left_out: ClassVar[Mapping[str, str]] = {
        "tps_per_instance": "Not measured yet? Leave out throughput and state instances."
    }

    peak_tps: Annotated[float, Option(limits.PEAK_TPS, 1000, planned=True)]
    """Highest rate to serve, in requests per second."""
    tps_per_instance: Annotated[float, Option(limits.TPS_PER_INSTANCE, 200, planned=True)]
    """Requests per second that one instance held within the latency target in a load test."""
    safety_factor: Annotated[float, Option(limits.SAFETY_FACTOR, 0.45, planned=True)] = (
        DEFAULT_SAFETY_FACTOR
    )
    """Share of that throughput that scaling targets, if scaling states no target. Default: 0.5,
    AWS's starting point; with 0.45, one of two zones may fail at the peak, with 0.6 one of three."""
    from_tps: Annotated[float | None, Option(limits.FROM_TPS, 100, planned=True)] = None
    """Rate from which traffic may jump to the peak: the minimum then serves the peak, unless the
    fleet at this rate can. Default: not known, with a warning."""
    rise_tps_per_minute: Annotated[float | None, Option(limits.RISE_TPS, 10, planned=True)] = None
    """Instead of from_tps: fastest rise of traffic, in requests per second each minute. The minimum
    serves the rise until scaling catches up."""
    peaks: Annotated[
        Mapping[str, PeakAtTime],
        Option(
            keys=SCHEDULE_NAME, example={"night": {"tps": 2000, "from": "22:00", "to": "06:00"}}
        ),
    ] = field(default_factory=dict, hash=False)
    """Other peaks at set times, by name, such as a batch at night or a quiet time: scheduled
    actions with minimum and maximum follow, ahead of each by the time that instances need. A higher
    peak is a jump at its start. Where peaks overlap, the highest counts; peak_tps is the peak of
    the rest of the day. Default: none.

    In Python, a mapping such as ``{"night": PeakAtTime(...)}``.
    """
    concurrency_per_instance: Annotated[
        float | None, Option(limits.CONCURRENCY_PER_INSTANCE, 24, planned=True)
    ] = None
    """Requests in flight on one instance, on average, at tps_per_instance; load-test writes it for
    language models. With tokens or token targets, scaling targets this number times the safety
    factor, at most what fits in the KV cache. Default: not known; scaling counts invocations of any
    length."""

    def _rules_of_peaks(self) -> Iterator[Finding]:
        """All peaks are in one time zone."""
        zones = sorted({peak.time_zone or "UTC" for peak in self.peaks.values()})
        if len(zones) > 1:
            got, allowed = ", ".join(zones), "one time zone for all peaks"
            yield finding(ONE_TIME_ZONE, "peaks", got=got, allowed=allowed)

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
    def highest_tps(self) -> float:
        """The highest rate to serve at any time."""
        return max([self.peak_tps, *(peak.tps for peak in self.peaks.values())])

    @property
    def quietest(self) -> tuple[str, float]:
        """The lowest peak of the day and its rate; the name is empty if it is the usual peak."""
        rates = {"": self.peak_tps} | {name: peak.tps for name, peak in self.peaks.items()}
        name = min(rates, key=rates.__getitem__)
        return name, rates[name]

    @property
    def call_seconds(self) -> Fraction | None:
        """How long a call took in the load test, by Little's law; ``None`` where not known."""
        if self.concurrency_per_instance is None:
            return None
        return stated(self.concurrency_per_instance) / stated(self.tps_per_instance)

    def at_peak(self, peak: PeakAtTime) -> MeasuredThroughput:
        """The load during another peak.

        A higher one is a jump at its start, known in advance, from any rate. What is stated of jumps
        and rises is about the rest of the day, and about lower peaks.
        """
        if peak.tps > self.peak_tps:
            return replace(self, peak_tps=peak.tps, from_tps=0, rise_tps_per_minute=None, peaks={})
        jumps_from = None if self.from_tps is None else min(self.from_tps, peak.tps)
        return replace(self, peak_tps=peak.tps, from_tps=jumps_from, peaks={})

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


def tps_held(measured: MeasuredThroughput, room: int | None, scaling: ScalingOptions) -> HeldTps:
    """What one instance holds, and what scaling keeps it at.

    That is what a scaling target of your own says, else the safety factor's share of the measured
    limit. The KV cache has room for ``room`` requests; ``None`` where not known.
    """
    limit = limit_tps(measured, room)
    target = target_tps(measured, scaling)
    if target is not None:
        return HeldTps(limit, target, by_target=True)
    share = stated(measured.tps_per_instance) * stated(measured.safety_factor)
    return HeldTps(limit, min(limit, share), by_target=False)


def limit_tps(measured: MeasuredThroughput, room: int | None) -> Fraction:
    """What one instance holds, whose KV cache has room for so many requests; None if not known.

    By Little's law: a call takes as long as the measured numbers say. No room at all is no limit
    here, but a warning of its own.
    """
    limit = stated(measured.tps_per_instance)
    if room and measured.call_seconds is not None:
        return min(limit, room / measured.call_seconds)
    return limit


def target_tps(measured: MeasuredThroughput, scaling: ScalingOptions) -> Fraction | None:
    """Requests per second at which a scaling target of your own keeps an instance.

    ``None`` without one, and where it does not say: as a token of CDK's, or in requests in flight
    where nobody measured how long a call takes.
    """
    invocations = scaling.invocations_target
    if invocations is not None and not is_token(invocations):
        return stated(invocations) / 60
    in_flight = scaling.concurrency_target
    if in_flight is None or is_token(in_flight) or measured.call_seconds is None:
        return None
    return stated(in_flight) / measured.call_seconds
