"""What blocks of neighbouring seconds tell, whose requests depend on each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, pvariance, stdev

from ...simulate.estimates import student_quantile
from .bounds import binomial_tail


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
    """How many requests are worth one independent request, from the hits in neighbouring blocks.

    Examples
    --------
    Of 100 requests a block 10 are late, or none: 5² 8/7 over 100 · 0.05 · 0.95.

    >>> round(design_effect([100] * 8, [0, 10, 10, 0, 0, 10, 0, 10]), 1)
    6.0
    """
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

    Examples
    --------
    >>> independent([1, 2] * 10)
    20.0
    >>> round(independent(range(20)), 1)
    1.0
    """
    n, mean = len(values), fmean(values)
    spread = sum((each - mean) ** 2 for each in values)
    if spread <= 0 or n < 3:
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
