"""Two sides of an endpoint compared: the change of each figure, and how sure it is.

Load is sent in blocks, to one side and to the other in turn, and two neighbouring blocks make a
pair. The figures come from all blocks of a side together, so that a p99 rests on all requests
beyond it. Their uncertainty comes from the pairs: each is left out once, the change is calculated
without it, and how much that moves it is how much one pair matters (the jackknife; Efron and Stein
1981). Student's law turns that into an interval, of the logarithm of the ratio.

Why so, and not otherwise:

- Requests that queued behind each other are not independent. Blocks much longer than a queue's
  memory are, nearly; so the block is the unit, and its number of requests says nothing.
- A pair's blocks follow each other, so a machine or a fleet that becomes slower meets both. The
  order turns from pair to pair (A B, B A, A B ...), so a steady drift favours neither side; what
  the order explains is taken out by regression instead of widening the interval.
- Ten pairs are few. Intervals from a bootstrap of ten values hold the truth in 90 of 100 tests and
  not in 95 (their spread is short by a factor of 0.95, and their tails are the normal law's);
  Student's are right for a few nearly normal values, and need no random numbers.
- One block's own p99 rests on the last few of its requests, so its mean over blocks would be more
  chance than need be, and biased. That of all blocks together is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...simulate.estimates import estimate, student_quantile
from ..engine.latencies import SAMPLES_NEEDED_BEYOND, LatencyHistogram

#: Of which an interval can be made, with the order of the sides taken out.
FEWEST_PAIRS = 4
#: With this chance a difference of ``would_see`` is found.
POWER = 0.80
#: Buckets of a histogram are as wide as this share of their value.
_RESOLUTION = 0.001

_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
STATISTICS = (*_QUANTILES, "mean", "throughput")


@dataclass(frozen=True)
class Block:
    """What one side answered in one block.

    Attributes
    ----------
    answered : int
        Good answers within the block's time.
    seconds : float
        That counted.
    """

    latency: LatencyHistogram
    answered: int
    seconds: float


@dataclass(frozen=True)
class Pair:
    """Neighbouring blocks of both sides; ``base_first`` says which was sent first."""

    base: Block
    other: Block
    base_first: bool


@dataclass(frozen=True)
class Difference:
    """How a figure of the other side differs from that of the base.

    Attributes
    ----------
    statistic : str
        ``p50``, ``p90``, ``p99``, ``mean`` (seconds) or ``throughput`` (per second).
    base, other : float
        The figure of each side, from all its blocks.
    change : float
        ``other / base - 1``.
    low, high : float
        The interval of the change.
    would_see : float
        A difference of this size, as a share, is found in four of five such tests.
    beyond : int
        Fewest requests beyond the percentile on either side; 0 where it is no percentile.
    """

    statistic: str
    base: float
    other: float
    change: float
    low: float
    high: float
    would_see: float
    confidence: float
    pairs: int
    beyond: int = 0

    @property
    def found(self) -> bool:
        """Whether the interval leaves out that there is no difference."""
        return self.low > 0 or self.high < 0

    @property
    def reliable(self) -> bool:
        """Whether it rests on enough requests: ten beyond a percentile, and one for each pair."""
        return self.statistic not in _QUANTILES or self.beyond >= max(
            SAMPLES_NEEDED_BEYOND, self.pairs
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON; latencies in milliseconds, throughput in requests per second."""
        unit, factor = ("per_second", 1.0) if self.statistic == "throughput" else ("ms", 1000.0)
        return {
            f"base_{unit}": factor * self.base,
            f"other_{unit}": factor * self.other,
            "change": self.change,
            "low": self.low,
            "high": self.high,
            "found": self.found,
            "would_see": self.would_see,
            "confidence": self.confidence,
            "pairs": self.pairs,
            "requests_beyond": self.beyond,
            "reliable": self.reliable,
        }


def changes(pairs: Sequence[Pair], *, confidence: float = 0.95) -> dict[str, Difference]:
    """The change of each statistic; none that a side has no figure for.

    Parameters
    ----------
    pairs : sequence of Pair
        In the order of time.
    confidence : float
        Of each interval on its own; of five at 0.95, one misses in up to one of four tests.

    Raises
    ------
    ValueError
        For fewer than four pairs.

    Examples
    --------
    >>> def block(milliseconds):
    ...     latency = LatencyHistogram.of([milliseconds / 1000] * 1000)
    ...     return Block(latency, answered=1000, seconds=10.0)
    >>> found = changes([Pair(block(100 + drift), block(75 + drift), base_first=drift % 2 == 0)
    ...                  for drift in range(6)])
    >>> round(found["p50"].change, 2), found["p50"].found, found["throughput"].found
    (-0.25, True, False)
    """
    if len(pairs) < FEWEST_PAIRS:
        raise ValueError(f"an interval needs at least {FEWEST_PAIRS} pairs: {len(pairs)}")
    sides = [_Side([pair.base for pair in pairs]), _Side([pair.other for pair in pairs])]
    order = [1.0 if pair.base_first else -1.0 for pair in pairs]
    found = {}
    for name in STATISTICS:
        both = [side.figures(name) for side in sides]
        if all(math.isfinite(value) and value > 0 for each in both for value in each):
            beyond = (
                min(side.beyond(_QUANTILES[name]) for side in sides) if name in _QUANTILES else 0
            )
            found[name] = _change(name, both[0], both[1], order, confidence, beyond)
    return found


def _change(
    name: str,
    base: list[float],
    other: list[float],
    order: list[float],
    confidence: float,
    beyond: int,
) -> Difference:
    """From the figures with all pairs (first) and with each pair left out."""
    logs = [math.log(b / a) for a, b in zip(base, other, strict=True)]
    whole, without = logs[0], logs[1:]
    count, mean = len(without), sum(without) / len(without)
    # What each pair says, around what all say together (pseudo-values, their small bias left out).
    values = [whole + (count - 1) * (mean - each) for each in without]
    mixed = abs(sum(order)) < count
    found = estimate(values, confidence=confidence, controls=[order] if mixed else ())
    freedom = count - 2 if mixed else count - 1
    error = found.half_width / student_quantile(confidence, freedom)
    resolution = 0.0 if name in ("throughput", "mean") else _RESOLUTION
    half = found.half_width + resolution
    seen = (
        student_quantile(confidence, freedom) + student_quantile(2 * POWER - 1, freedom)
    ) * error + resolution
    return Difference(
        name,
        base[0],
        other[0],
        math.expm1(found.mean),
        math.expm1(found.mean - half),
        math.expm1(found.mean + half),
        math.expm1(seen),
        confidence,
        count,
        beyond,
    )


class _Side:
    """All blocks of a side together, and together without each one."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = blocks
        latencies = [block.latency for block in blocks]
        self._whole = LatencyHistogram.sum(latencies)
        self._latencies = [self._whole, *LatencyHistogram.sums_without_each(latencies)]
        self._quantiles = [each.quantiles(_QUANTILES.values()) for each in self._latencies]

    def figures(self, name: str) -> list[float]:
        """A statistic of all blocks, then of all without each one."""
        if name in _QUANTILES:
            at = list(_QUANTILES).index(name)
            return [each[at] for each in self._quantiles]
        if name == "mean":
            return [each.mean for each in self._latencies]
        answered = _left_out(self._blocks, lambda block: block.answered)
        seconds = _left_out(self._blocks, lambda block: block.seconds)
        return [a / s if s > 0 else math.nan for a, s in zip(answered, seconds, strict=True)]

    def beyond(self, quantile: float) -> int:
        """Requests beyond a quantile."""
        return self._whole.count - math.ceil(quantile * self._whole.count - 1e-9)


def _left_out(blocks: Sequence[Block], value: Callable[[Block], float]) -> list[float]:
    total = math.fsum(value(block) for block in blocks)
    return [total, *(total - value(block) for block in blocks)]
