"""Two sides of an endpoint compared: the change of each figure, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ...simulate.estimates import estimate, student_quantile
from ..engine.latencies import SAMPLES_NEEDED_BEYOND, LatencyHistogram
from ..engine.measurement import TokenResult
from ..engine.steps import StepResult

#: Of which an interval can be made, with the order of the sides taken out.
FEWEST_PAIRS = 4
#: With this chance a difference of ``would_see`` is found.
_POWER = 0.80
#: Buckets of a histogram are as wide as this share of their value.
_RESOLUTION = 0.001

T = TypeVar("T")

#: Each percentile's histogram, and its share.
_PERCENTILES = {
    "p50": ("latency", 0.5),
    "p90": ("latency", 0.9),
    "p99": ("latency", 0.99),
    "ttft_p50": ("first_token", 0.5),
    "ttft_p90": ("first_token", 0.9),
    "ttft_p99": ("first_token", 0.99),
    "itl_p50": ("inter_token", 0.5),
    "itl_p99": ("inter_token", 0.99),
}
STATISTICS = ("p50", "p90", "p99", "mean", "throughput")
#: Of language models beside those: time to first token, inter-token latency (all gaps of all
#: streams), output tokens per second, and the share of prompt tokens found in a prefix cache.
CACHED = "cached_share"
TOKEN_STATISTICS = (
    "ttft_p50",
    "ttft_p90",
    "ttft_p99",
    "itl_p50",
    "itl_p99",
    "output_tokens",
    CACHED,
)
#: What is counted by the second.
RATES = ("throughput", "output_tokens")


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
        """Why the generator was the limit; empty when it was not."""
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

    # one of ``STATISTICS`` and ``TOKEN_STATISTICS``: percentiles and ``mean`` in seconds,
    # ``throughput`` in requests and ``output_tokens`` in tokens per second, ``cached_share`` from
    # 0 to 1
    statistic: str
    base: float  # the figure of each side, from all its blocks
    other: float
    change: float  # ``other / base - 1``; of ``cached_share``, which may be 0, ``other - base``
    low: float  # the interval of the change
    high: float
    would_see: float  # A change of this size is found in four of five such tests
    confidence: float
    pairs: int
    # fewest requests beyond the percentile on either side; of gaps between tokens as if each
    # stream had one. 0 where it is no percentile.
    beyond: int = 0

    @property
    def found(self) -> bool:
        """Whether the interval leaves out that there is no difference."""
        return self.low > 0 or self.high < 0

    @property
    def reliable(self) -> bool:
        """Whether it rests on enough requests: ten beyond a percentile, and one for each pair."""
        return self.statistic not in _PERCENTILES or self.beyond >= max(
            SAMPLES_NEEDED_BEYOND, self.pairs
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON; latencies in milliseconds, throughput in requests or tokens per second."""
        unit, factor = ("ms", 1000.0)
        if self.statistic in RATES:
            unit, factor = ("per_second", 1.0)
        elif self.statistic == CACHED:
            unit, factor = ("share", 1.0)
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
    """The change of each statistic; none that a side has no figure for."""
    if len(pairs) < FEWEST_PAIRS:
        raise ValueError(f"an interval needs at least {FEWEST_PAIRS} pairs: {len(pairs)}")
    sides = [
        _SideFigures([pair.base for pair in pairs]),
        _SideFigures([pair.other for pair in pairs]),
    ]
    order = [1.0 if pair.base_first else -1.0 for pair in pairs]
    names: tuple[str, ...] = STATISTICS
    if all(block.tokens is not None for pair in pairs for block in pair.results):
        names += TOKEN_STATISTICS
    differences = {}
    for name in names:
        both = [side.figures(name) for side in sides]
        values = [value for each in both for value in each]
        enough = any(values) if name == CACHED else all(value > 0 for value in values)
        if enough and all(map(math.isfinite, values)):
            beyond = min(side.beyond(name) for side in sides)
            differences[name] = _change(name, both[0], both[1], order, confidence, beyond)
    return differences


def _change(
    name: str,
    base: list[float],
    other: list[float],
    order: list[float],
    confidence: float,
    beyond: int,
) -> Difference:
    """From the figures with all pairs (first) and with each pair left out."""
    both = zip(base, other, strict=True)
    told: Callable[[float], float]
    if name == CACHED:
        each_change, told = [b - a for a, b in both], float
    else:
        each_change, told = [math.log(b / a) for a, b in both], math.expm1
    whole, without = each_change[0], each_change[1:]
    count, mean = len(without), sum(without) / len(without)
    # What each pair says, around what all say together (pseudo-values, their small bias left out).
    values = [whole + (count - 1) * (mean - each) for each in without]
    mixed = abs(sum(order)) < count
    found = estimate(values, confidence=confidence, controls=[order] if mixed else ())
    freedom = count - 2 if mixed else count - 1
    error = found.half_width / student_quantile(confidence, freedom)
    resolution = _RESOLUTION if name in _PERCENTILES else 0.0
    half = found.half_width + resolution
    seen = (
        student_quantile(confidence, freedom) + student_quantile(2 * _POWER - 1, freedom)
    ) * error + resolution
    return Difference(
        name,
        base[0],
        other[0],
        told(found.mean),
        told(found.mean - half),
        told(found.mean + half),
        told(seen),
        confidence,
        count,
        beyond,
    )


class _SideFigures:
    """All blocks of a side together, and together without each one."""

    def __init__(self, blocks: Sequence[StepResult]) -> None:
        self._blocks = blocks
        self._tokens = [block.tokens or TokenResult() for block in blocks]
        self._pooled: dict[str, list[LatencyHistogram]] = {}
        self._found: dict[str, dict[str, list[float]]] = {}

    def figures(self, name: str) -> list[float]:
        """A statistic of all blocks, then of all without each one."""
        if name in _PERCENTILES:
            return self._percentiles(_PERCENTILES[name][0])[name]
        if name == "mean":
            return [histogram.mean for histogram in self._histograms("latency")]
        if name == CACHED:
            cached = _left_out(self._tokens, lambda token: token.cached_tokens)
            return _divided(cached, _left_out(self._tokens, lambda token: token.prompt_tokens))
        seconds = _left_out(self._blocks, lambda block: block.seconds)
        if name == "output_tokens":
            tokens = _left_out(self._tokens, lambda token: token.tokens_in_time)
            return _divided(tokens, seconds)
        return _divided(_left_out(self._blocks, lambda block: block.answered_in_time), seconds)

    def beyond(self, name: str) -> int:
        """Requests beyond a percentile; 0 for what is none."""
        if name not in _PERCENTILES:
            return 0
        histogram, share = _PERCENTILES[name]
        # Of the gaps of one stream, one.
        count = self._histograms("per_token" if histogram == "inter_token" else histogram)[0].count
        return count - math.ceil(share * count - 1e-9)

    def _percentiles(self, histogram: str) -> dict[str, list[float]]:
        """Every percentile of a histogram: its buckets are sorted once."""
        if histogram not in self._found:
            shares = {name: share for name, (of, share) in _PERCENTILES.items() if of == histogram}
            rows = [values.quantiles(shares.values()) for values in self._histograms(histogram)]
            self._found[histogram] = dict(
                zip(shares, map(list, zip(*rows, strict=True)), strict=True)
            )
        return self._found[histogram]

    def _histograms(self, name: str) -> list[LatencyHistogram]:
        if name not in self._pooled:
            of: Sequence[StepResult | TokenResult] = (
                self._blocks if name == "latency" else self._tokens
            )
            each = [getattr(one, name) for one in of]
            self._pooled[name] = [
                LatencyHistogram.sum(each),
                *LatencyHistogram.sums_without_each(each),
            ]
        return self._pooled[name]


def _divided(values: list[float], by: list[float]) -> list[float]:
    return [a / b if b > 0 else math.nan for a, b in zip(values, by, strict=True)]


def _left_out(blocks: Sequence[T], value: Callable[[T], float]) -> list[float]:
    total = math.fsum(value(block) for block in blocks)
    return [total, *(total - value(block) for block in blocks)]
