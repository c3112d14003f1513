"""Two sides of an endpoint compared: the change of each figure, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors.impossible import out_of_range, outside, refuse
from ...simulate.estimates import estimate, student_quantile
from ..engine.failure_causes import cause_of_most
from ..engine.latencies import IMPOSSIBLE, SAMPLES_NEEDED_BEYOND, LatencyHistogram
from ..engine.steps import StepResult

#: Of which an interval can be made, with the order of the sides taken out.
FEWEST_PAIRS = 4
#: With this chance a difference of ``would_see`` is found.
_POWER = 0.80
#: Buckets of a histogram are as wide as this share of their value.
_RESOLUTION = 0.001
_PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
STATISTICS = (*_PERCENTILES, "mean", "throughput")
#: The requests beyond it come in few spells of queueing. So this percentile of all may stand still
#: whichever pair is left out, though the pairs differ.
_TAIL = "p99"


@dataclass(frozen=True)
class Pair:
    """Neighbouring blocks of both sides; ``base_first`` says which was sent first."""

    base: StepResult
    other: StepResult
    base_first: bool

    @property
    def results(self) -> tuple[StepResult, StepResult]:
        """The base's and the other's."""
        return self.base, self.other

    @property
    def client_bound(self) -> tuple[str, ...]:
        """Why the generator was the limit; empty when it was not, or most requests reached nothing."""
        if any(cause_of_most(result) for result in self.results):
            return ()
        return tuple(
            dict.fromkeys(
                f"{result.step.name}: {reason}"
                for result in self.results
                for reason in result.client_bound
            )
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON: both blocks with their whole histograms."""
        return {
            "base_first": self.base_first,
            "base": self.base.to_dict(),
            "other": self.other.to_dict(),
        }


@dataclass(frozen=True)
class Difference:
    """How a figure of the other side differs from that of the base."""

    # one of ``STATISTICS``: percentiles and ``mean`` in seconds, ``throughput`` in requests per second
    statistic: str
    base: float  # the figure of each side, from all its blocks
    other: float
    change: float  # ``other / base - 1``
    low: float  # the interval of the change
    high: float
    would_see: float  # A change of this size is found in four of five such tests
    # fewest requests beyond the percentile on either side; 0 where it is no percentile.
    beyond: int
    reliable: bool  # whether it rests on enough requests: ten beyond a percentile, and one a pair

    def __post_init__(self) -> None:
        refuse(IMPOSSIBLE, f"change of {self.statistic}", self._problems())

    def _problems(self) -> Iterator[str]:
        figures = ("base", "other", "would_see", "beyond")
        yield from out_of_range({name: getattr(self, name) for name in figures})
        changes = {"change": self.change, "lower end": self.low, "upper end": self.high}
        yield from out_of_range(changes, low=-1.0)
        yield from outside("change", self.change, self.low, self.high)

    @property
    def found(self) -> bool:
        """Whether the interval leaves out that there is no difference."""
        return self.low > 0 or self.high < 0

    def to_dict(self) -> dict[str, Any]:
        """JSON; latencies in milliseconds, throughput in requests per second."""
        throughput = self.statistic == "throughput"
        unit = "per_second" if throughput else "ms"
        factor = 1.0 if throughput else 1000.0
        return {
            f"base_{unit}": factor * self.base,
            f"other_{unit}": factor * self.other,
            "change": self.change,
            "low": self.low,
            "high": self.high,
            "found": self.found,
            "would_see": self.would_see,
            "requests_beyond": self.beyond,
            "reliable": self.reliable,
        }


def changes(pairs: Sequence[Pair], *, confidence: float = 0.95) -> dict[str, Difference]:
    """The change of each statistic; none that a side has no figure for."""
    if len(pairs) < FEWEST_PAIRS:
        raise ValueError(f"an interval needs at least {FEWEST_PAIRS} pairs: {len(pairs)}")
    base = [pair.base for pair in pairs]
    other = [pair.other for pair in pairs]
    base_figures = _figures(base)
    other_figures = _figures(other)
    own = _own_changes(base, other, _PERCENTILES[_TAIL])
    order = [1.0 if pair.base_first else -1.0 for pair in pairs]
    requests = min(sum(block.latency.count for block in blocks) for blocks in (base, other))
    differences = {}
    for name in STATISTICS:
        figures = [*base_figures[name], *other_figures[name]]
        if all(0 < value < math.inf for value in figures):
            differences[name] = _change(
                name,
                base_figures[name],
                other_figures[name],
                own if name == _TAIL else [],
                order,
                confidence,
                requests,
            )
    return differences


def _change(
    name: str,
    base: list[float],
    other: list[float],
    own: list[float],
    order: list[float],
    confidence: float,
    requests: int,
) -> Difference:
    """From the figures with all pairs (first) and with each pair left out.

    The interval is no narrower than that of the pairs' ``own`` changes (logarithms), if there are any.
    """
    whole, *without = (math.log(b / a) for a, b in zip(base, other, strict=True))
    count = len(without)
    mean = sum(without) / count
    # What each pair says, around what all say together (pseudo-values, their small bias left out).
    values = [whole + (count - 1) * (mean - value) for value in without]
    mixed = abs(sum(order)) < count
    controls = [order] if mixed else ()
    found = estimate(values, confidence=confidence, controls=controls)
    resolution = 0.0
    beyond = 0
    reliable = True
    if name in _PERCENTILES:
        resolution = _RESOLUTION
        beyond = requests - math.ceil(_PERCENTILES[name] * requests - 1e-9)
        reliable = beyond >= max(SAMPLES_NEEDED_BEYOND, count)
    if own:
        found = found.at_least(estimate(own, confidence=confidence, controls=controls).half_width)
    freedom = count - 2 if mixed else count - 1
    error = found.half_width / student_quantile(confidence, freedom)
    half = found.half_width + resolution
    seen = (
        student_quantile(confidence, freedom) + student_quantile(2 * _POWER - 1, freedom)
    ) * error + resolution
    return Difference(
        name,
        base[0],
        other[0],
        _as_change(found.mean),
        _as_change(found.mean - half),
        _as_change(found.mean + half),
        _as_change(seen),
        beyond,
        reliable,
    )


def _as_change(logarithm: float) -> float:
    """The change of which this is the logarithm; at most as large as a float can be."""
    return math.expm1(min(logarithm, 700.0))


def _figures(blocks: Sequence[StepResult]) -> dict[str, list[float]]:
    """Each statistic of all blocks of a side together, then of all without each one."""
    latencies = [block.latency for block in blocks]
    pooled = [LatencyHistogram.sum(latencies), *LatencyHistogram.sums_without_each(latencies)]
    figures = {"mean": [histogram.mean for histogram in pooled]}
    # Once for all percentiles: a histogram sorts its buckets for them.
    rows = [histogram.quantiles(_PERCENTILES.values()) for histogram in pooled]
    for at, name in enumerate(_PERCENTILES):
        figures[name] = [row[at] for row in rows]
    answered = _left_out([block.answered_in_time for block in blocks])
    seconds = _left_out([block.seconds for block in blocks])
    figures["throughput"] = [count / time for count, time in zip(answered, seconds, strict=True)]
    return figures


def _own_changes(
    base: Sequence[StepResult], other: Sequence[StepResult], share: float
) -> list[float]:
    """The logarithm of each pair's own change of a percentile; none if a block has no answer."""
    lengths = [
        (a.latency.quantiles([share])[0], b.latency.quantiles([share])[0])
        for a, b in zip(base, other, strict=True)
    ]
    if not all(a > 0 < b for a, b in lengths):
        return []
    return [math.log(b / a) for a, b in lengths]


def _left_out(values: Sequence[float]) -> list[float]:
    """The sum of all values, then the sums without each one."""
    total = math.fsum(values)
    return [total, *(total - value for value in values)]
