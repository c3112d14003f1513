"""Where the true value of a step's statistic lies: bounds of quantiles, means and shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist, fmean, pvariance, stdev
from typing import Any

from ...errors.impossible import out_of_range, outside, refuse
from ...simulate.estimates import ROUNDING, student_quantile
from ..engine.latencies import IMPOSSIBLE, LatencyHistogram

#: Of each bound on its own. A step holds when the bound of every target holds, so this is also the
#: confidence that all targets are met: whichever of them is missed, its own bound says that it is
#: met with a chance of at most 5 % (an intersection-union test; Berger 1982).
CONFIDENCE = 0.95
_MOST_REQUESTS = 100_000_000  # that a test is told to send


@dataclass(frozen=True)
class Bounds:
    """A statistic of a step and where the true one lies: seconds, or a share of the requests."""

    value: float  # NaN without a request
    low: float
    high: float  # infinite where there are too few requests to bound it
    samples: int

    def __post_init__(self) -> None:
        refuse(IMPOSSIBLE, "bounds", self._problems())

    def _problems(self) -> Iterator[str]:
        yield from out_of_range({"lower bound": self.low, "samples": self.samples})
        if self.samples:
            yield from out_of_range({"value": self.value})
            yield from outside("value", self.value, self.low, self.high)

    def to_dict(self) -> dict[str, Any]:
        """JSON of seconds, in milliseconds; ``null`` for no bound."""
        return {
            "ms": _ms(self.value),
            "low_ms": _ms(self.low),
            "high_ms": _ms(self.high),
            "samples": self.samples,
        }

    def share_to_dict(self) -> dict[str, Any]:
        """JSON of a share."""
        return {name: None if math.isnan(value) else value for name, value in vars(self).items()}


def samples_for(quantile: float, confidence: float = CONFIDENCE) -> int:
    """Fewest requests that can show a quantile to be within a target: none of them may miss it."""
    return math.ceil(math.log(1 - confidence) / math.log(quantile))


def requests_at_share(seen: float, share: float, confidence: float = CONFIDENCE) -> int | None:
    """Fewest requests that show that at most ``share`` of all are hit, if ``seen`` of them are.

    None if no number does, or only more than a hundred million.
    """
    if seen >= share:
        return None
    alpha = 1 - confidence

    def shows(requests: int) -> bool:
        return 1 - binomial_tail(requests, math.ceil(seen * requests) + 1, share) <= alpha

    too_few = 0
    enough = samples_for(1 - share, confidence)
    while not shows(enough):
        too_few = enough
        enough *= 2
        if enough > _MOST_REQUESTS:
            return None
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if shows(middle):
            enough = middle
        else:
            too_few = middle
    return enough


def rank_bounds(samples: int, quantile: float, confidence: float = CONFIDENCE) -> tuple[int, int]:
    """Ranks (from 1) of the ordered sample that bound a quantile from below and from above.

    Each bound holds with the confidence on its own. Rank 0 and rank ``samples + 1`` stand for no
    bound.
    """
    beyond = 1 - quantile
    below_alpha, above_rest = _binomial_ranks(samples, beyond, 1 - confidence)
    return max(0, samples - above_rest), samples - below_alpha


def _binomial_ranks(samples: int, share: float, alpha: float) -> tuple[int, int]:
    """Largest k with P(X <= k) <= alpha (or -1), smallest m with P(X <= m) >= 1 - alpha."""
    mean, spread = samples * share, math.sqrt(samples * share * (1 - share))
    start = max(0, math.floor(mean - 12 * spread) - 1)
    below, summed, k = -1, 0.0, start
    while k <= samples:
        summed += math.exp(_log_binomial(samples, k, share))
        if summed <= alpha:
            below = k
        if summed >= 1 - alpha:
            return below, k
        k += 1
    return below, samples


def _log_binomial(n: int, k: int, p: float) -> float:
    return (
        math.lgamma(n + 1)
        - math.lgamma(k + 1)
        - math.lgamma(n - k + 1)
        + k * math.log(p)
        + (n - k) * math.log1p(-p)
    )


def binomial_tail(n: int, k: int, p: float) -> float:
    """The chance of at least ``k`` hits of ``n`` independent ones that each hit with chance ``p``."""
    if k <= 0:
        return 1.0
    # The smaller side, from its largest term on: they fall quickly.
    above = k > n * p
    summed = 0.0
    for each in range(k, n + 1) if above else range(k - 1, -1, -1):
        term = math.exp(_log_binomial(n, each, p))
        summed += term
        if term < 1e-12 * summed:
            break
    return min(1.0, summed) if above else max(0.0, 1 - summed)


def share_bounds(hits: int, samples: int, confidence: float = CONFIDENCE) -> Bounds:
    """A share with its bounds (Clopper and Pearson 1934)."""
    if not samples:
        return Bounds(math.nan, 0.0, 1.0, 0)
    alpha = 1 - confidence
    # The share at which so many hits, or so few, are just not explained by chance.
    low = _root(lambda share: binomial_tail(samples, hits, share) > alpha) if hits else 0.0
    high = (
        _root(lambda share: 1 - binomial_tail(samples, hits + 1, share) <= alpha)
        if hits < samples
        else 1.0
    )
    return Bounds(hits / samples, low, high, samples)


def clustered_share_bounds(
    hits: int, requests: int, worth: float, confidence: float = CONFIDENCE
) -> Bounds:
    """A share with its bounds, where so many requests are worth an independent one.

    Counted in independent ones, the hits are a fraction: each bound takes the whole number on its
    own side, and never passes the share that was seen.
    """
    if not requests:
        return Bounds(math.nan, 0.0, 1.0, 0)
    share = hits / requests
    samples = max(1, math.floor(requests / worth))
    fewest = min(samples, math.floor(hits / worth))
    most = min(samples, math.ceil(hits / worth))
    low = share_bounds(fewest, samples, confidence).low
    high = share_bounds(most, samples, confidence).high
    return Bounds(share, min(low, share), max(high, share), samples)


def _root(beyond: Callable[[float], bool]) -> float:
    """The share between 0 and 1 from which on it is true."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(middle) else (middle, high)
    return (low + high) / 2


def quantile_bounds(
    latencies: LatencyHistogram,
    quantile: float,
    confidence: float = CONFIDENCE,
    samples: int | None = None,
) -> Bounds:
    """A quantile with its bounds."""
    count = latencies.count if samples is None else min(samples, latencies.count)
    if not count:
        return Bounds(math.nan, 0.0, math.inf, 0)
    low, high = rank_bounds(count, quantile, confidence)
    value, lower, upper = latencies.quantiles(
        [quantile, max(low, 1) / count, min(high, count) / count]
    )
    # The highest of few independent samples bounds a high quantile from below. Of many requests that
    # are worth so few, the highest is above the quantile itself.
    lower = min(lower, value) if low >= 1 else 0.0
    return Bounds(value, lower, upper if high <= count else math.inf, count)


def mean_bounds(
    latencies: LatencyHistogram, confidence: float = CONFIDENCE, samples: int | None = None
) -> Bounds:
    """The mean with its bounds, by the normal law; the upper one is corrected for skewness.

    Latencies have a long upper tail. A sample that happens to have little of it has a low mean and
    a small deviation at once, so the plain upper bound is too low (Chen 1995, the adjusted central
    limit theorem).
    """
    count = latencies.count if samples is None else min(samples, latencies.count)
    if not count:
        return Bounds(math.nan, 0.0, math.inf, 0)
    mean = latencies.mean
    if count == 1:
        return Bounds(mean, 0.0, math.inf, count)
    variance, skewness = latencies.variance_and_skewness
    error = math.sqrt(variance / (count - 1))
    normal = NormalDist().inv_cdf(confidence)
    tail = max(0.0, skewness) * (1 + 2 * normal**2) / (6 * math.sqrt(count))
    return Bounds(mean, max(0.0, mean - normal * error), mean + (normal + tail) * error, count)


def _ms(seconds: float) -> float | None:
    return 1000 * seconds if math.isfinite(seconds) else None


# --- what blocks of neighbouring seconds tell, whose requests depend on each other ---------------
def few_enough(
    counts: Sequence[int], late: Sequence[int], worth: float, share: float, alpha: float
) -> bool:
    """Whether so few are late that chance does not explain it, at that share."""
    n, beyond = math.floor(sum(counts) / worth), math.ceil(sum(late) / worth)
    return 1 - binomial_tail(n, beyond + 1, share) <= alpha


def too_many(
    counts: Sequence[int],
    hits: Sequence[int],
    share: float,
    alpha: float,
    worth: float | None = None,
) -> bool:
    """Whether so many are hit that chance does not explain it, at that share of independent ones."""
    total, hit = sum(counts), sum(hits)
    if not total or hit <= share * total:
        return False
    worth = design_effect(counts, hits) if worth is None else worth
    return binomial_tail(math.ceil(total / worth), round(hit / worth), share) <= alpha


def design_effect(counts: Sequence[int], hits: Sequence[int]) -> float:
    """How many requests are worth one independent request, from the hits in neighbouring blocks."""
    total, hit = sum(counts), sum(hits)
    if not 0 < hit < total or len(counts) < 2:
        return 1.0
    share, mean = hit / total, total / len(counts)
    between = pvariance([h - share * n for h, n in zip(hits, counts, strict=True)])
    between *= len(counts) / (len(counts) - 1)
    shares = [h / n if n else 0.0 for h, n in zip(hits, counts, strict=True)]
    return max(1.0, between / (mean * share * (1 - share)) * len(counts) / independent(shares))


def independent(values: Sequence[float]) -> float:
    """How many independent values a series is worth whose neighbours are alike.

    By the correlation of neighbours, which a short series shows too small by ``(1 + 3 r) / n``
    (Kendall and Marriott 1954), in a first-order process.
    """
    n = len(values)
    mean = fmean(values)
    spread = sum((value - mean) ** 2 for value in values)
    # Equal values differ from their mean by rounding, each by the same.
    if spread <= n * (ROUNDING * mean) ** 2 or n < 3:
        return float(n)
    found = sum((a - mean) * (b - mean) for a, b in pairwise(values)) / spread
    correlation = min(max(0.0, found + (1 + 3 * found) / n), 0.999)
    return max(1.0, n * (1 - correlation) / (1 + correlation))


def half_width(means: Sequence[float], alpha: float) -> float:
    """Half of the interval of a mean of blocks."""
    worth = independent(means)
    if worth < 2:
        return math.inf
    return student_quantile(1 - 2 * alpha, int(worth) - 1) * stdev(means) / math.sqrt(worth)
